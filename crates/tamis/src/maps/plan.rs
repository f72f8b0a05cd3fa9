//! how often each value occurs -> the tree of a compressed map.
//!
//! [Chained] section 5.2 stores a Huffman code in a chained filter, bit by bit. A Huffman code spends a whole bit on every
//! choice, however lopsided, and the filter saves some of that; here the tree itself is made for what its nodes can do:
//!
//! ```text
//!   exact node   n keys, a share p of them yes:   n H(p) bits and a few percent            (steered ribbon)
//!   flat node    n keys, b bits each:             n b bits and half a percent              (plain ribbon)
//! ```
//!
//! A flat node is right where all its ways are equally likely, an exact one where they are not. So:
//!
//! 1. **Classes.** Values in the order of their counts are cut into runs of 2^b whose counts are about equal; a flat node
//!    of b bits tells the values of a class apart. A class of M keys takes M (b + log2(n / M)) bits, its share of the choice of
//!    the class included; the table of values takes log2 of (all values / its values) for each value to say whose class it is; a
//!    node has a price. All of that is a sum over classes, so dynamic programming over the cuts finds the best. Frequent
//!    values are classes of their own.
//! 2. **A Huffman tree over the classes.** Each of its inner nodes is exact if that is smaller than a bit per key, with the
//!    minority as the positive side (the chain rule holds for any tree, so what counts is only what a node loses).
//! 3. **Inner nodes that are not exact are joined**: where all ways of a node are open for d levels, one flat node of d
//!    bits takes their place.
//!
//! Symbols are numbered in the order of the tree's leaves, so every node stands for a range of symbols.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::table::heaviest_first;
use super::tree::{self, MAX_FAN_BITS, Target, WORD_BITS};
use crate::error::BuildError;
use crate::format::put_varint;
use crate::leaves::{Design, ribbon};
use crate::math::portable::log2;
use crate::plan::recipes::cascade::LAYERS;
use crate::plan::{self, Effort, Goal, Kind, Layout, Request};

#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: Target,
    pub(crate) nodes: Vec<Node>,
    /// The symbol of every value, in the order of the counts given.
    pub(crate) symbols: Vec<u32>,
    pub(crate) classes: Vec<u32>,
    /// How many values each class has, in the order of their symbols.
    pub(crate) sizes: Vec<u32>,
    /// About how many bits it will take, without the table of values.
    pub(crate) bits: f64,
}

#[derive(Debug)]
pub(crate) enum Node {
    /// Symbols below `middle` are the positive side.
    Exact { plan: plan::Plan, yes: Target, no: Target, middle: u32 },
    /// The value is the symbol less `first`.
    Symbols { bits: u32, first: u32 },
    /// One child for every value, with the symbol from which on it is meant.
    Children { bits: u32, children: Vec<(Target, u32)> },
}

impl Node {
    /// Writes what a directory says of a node besides its leaves; a flat node has so many bits of fingerprint.
    pub(super) fn encode(&self, fingerprint: u32, out: &mut Vec<u8>) {
        let mut flat = |kind: u8, bits: u32| {
            out.push(kind);
            put_varint(out, bits.into());
            put_varint(out, fingerprint.into());
        };
        match self {
            Node::Exact { yes, no, .. } => {
                out.push(tree::EXACT);
                yes.encode(out);
                no.encode(out);
            }
            Node::Symbols { bits, first } => {
                flat(tree::SYMBOLS, *bits);
                put_varint(out, (*first).into());
            }
            Node::Children { bits, children } => {
                flat(tree::CHILDREN, *bits);
                children.iter().for_each(|(child, _)| child.encode(out));
            }
        }
    }
}

/// What a tree is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeOptions {
    pub(crate) effort: Effort,
    pub(crate) layout: Layout,
    pub(crate) shards: u64,
    /// One flat node for all, as a function of fixed width has it.
    pub(crate) uniform: bool,
    /// How much the table of values is expected to take for naming classes: 1 if values of all counts are mixed, less if
    /// neighbours have about the same.
    pub(crate) naming: f64,
}

/// Bits that a shard of a node takes besides its payload, about.
const NODE_BITS: f64 = 8.0 * 24.0;
/// What flat nodes take beyond their bits.
const FLAT_OVERHEAD: f64 = 1.006;
/// What the choice of a class takes beyond its entropy, about.
const CHOICE_OVERHEAD: f64 = 1.02;

/// The tree for values of these counts, none of them 0.
pub(crate) fn plan(counts: &[u64], options: &TreeOptions) -> Result<Tree, BuildError> {
    // By count; equal counts stay in the order of their values.
    let order = heaviest_first(counts);
    let sorted: Vec<u64> = order.iter().map(|&value| counts[value as usize]).collect();
    let classes = match options.uniform {
        true => vec![Class { start: 0, end: counts.len(), bits: bits_for(counts.len()), keys: counts.iter().sum() }],
        false => classes(&sorted, options),
    };
    let mut planner = Planner {
        options,
        huffman: huffman(&classes),
        classes: &classes,
        tree: Tree {
            root: Target::Symbol(0),
            nodes: vec![],
            symbols: vec![0; counts.len()],
            classes: vec![0; counts.len()],
            sizes: vec![],
            bits: 0.0,
        },
        order: &order,
        next: 0,
    };
    planner.decide()?;
    if let Some(root) = planner.huffman.len().checked_sub(1) {
        planner.tree.root = planner.emit(root);
    }
    Ok(planner.tree)
}

/// Bits that tell so many values apart.
fn bits_for(values: usize) -> u32 {
    values.next_power_of_two().ilog2()
}

/// Values of about the same count: a run of the sorted counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Class {
    start: usize,
    end: usize,
    bits: u32,
    keys: u64,
}

/// The best classes for counts that descend.
fn classes(counts: &[u64], options: &TreeOptions) -> Vec<Class> {
    let all = counts.len();
    let mut sums = vec![0u64; all + 1];
    for (i, count) in counts.iter().enumerate() {
        sums[i + 1] = sums[i] + count;
    }
    let keys = sums[all] as f64;
    let cost = |class: &Class| {
        let mass = class.keys as f64;
        let choice = CHOICE_OVERHEAD * log2(keys / mass);
        let listed = (class.end - class.start) as f64 * log2(all as f64 / (class.end - class.start) as f64);
        let flat = if class.bits > 0 { FLAT_OVERHEAD * f64::from(class.bits) } else { 0.0 };
        let nodes = if class.bits > 0 { 3.0 } else { 1.5 };
        mass * (choice + flat) + options.naming * listed + nodes * NODE_BITS * options.shards as f64
    };
    // The best way to cover all values before a cut, and its last class. Cuts are the rarer the further down, 32 for every
    // power of two: there are a few hundred of them whatever the number of values.
    let mut best: Vec<(f64, Option<Class>)> = vec![(f64::INFINITY, None); all + 1];
    best[0].0 = 0.0;
    for start in 0..all {
        let (before, _) = best[start];
        if before == f64::INFINITY {
            continue;
        }
        for bits in 0..=bits_for(all - start) {
            let end = all.min(start + (1 << bits));
            if end < all && !end.is_multiple_of(1 << end.ilog2().saturating_sub(5)) {
                continue;
            }
            let class = Class { start, end, bits, keys: sums[end] - sums[start] };
            let total = before + cost(&class);
            if total < best[end].0 {
                best[end] = (total, Some(class));
            }
        }
    }
    let mut classes = vec![];
    let mut end = all;
    while let Some((_, Some(class))) = best.get(end) {
        classes.push(*class);
        end = class.start;
    }
    classes.reverse();
    classes
}

/// A node of the Huffman tree; the last is the root.
#[derive(Debug)]
struct HuffmanNode {
    keys: u64,
    /// The class it is, or its two sides, the smaller one first.
    below: Result<usize, [usize; 2]>,
    /// The filter, if it is an exact node.
    exact: Option<plan::Plan>,
    /// How many levels below it are open.
    open: u32,
}

fn huffman(classes: &[Class]) -> Vec<HuffmanNode> {
    let node = |keys, below| HuffmanNode { keys, below, exact: None, open: 0 };
    let leaves = classes.iter().enumerate();
    let mut huffman: Vec<HuffmanNode> = leaves.clone().map(|(at, class)| node(class.keys, Ok(at))).collect();
    let mut heap: BinaryHeap<_> = leaves.map(|(at, class)| Reverse((class.keys, at))).collect();
    while let (Some(Reverse((least, small))), Some(Reverse((more, large)))) = (heap.pop(), heap.pop()) {
        heap.push(Reverse((least + more, huffman.len())));
        huffman.push(node(least + more, Err([small, large])));
    }
    huffman
}

struct Planner<'a> {
    options: &'a TreeOptions,
    huffman: Vec<HuffmanNode>,
    classes: &'a [Class],
    tree: Tree,
    order: &'a [u32],
    next: u32,
}

impl Planner<'_> {
    /// Which Huffman nodes are exact nodes, and how far the others can be joined.
    fn decide(&mut self) -> Result<(), BuildError> {
        for node in 0..self.huffman.len() {
            let Err([small, large]) = self.huffman[node].below else { continue };
            let [yes, no] = [small, large].map(|node| self.huffman[node].keys);
            // Near a half a filter cannot win.
            if (yes as f64) < 0.47 * (yes + no) as f64 {
                let request = exact(yes, no, self.options);
                let plan = plan::plan(&request)?;
                let shards = self.options.shards as f64;
                let bits = request.bits_of(&plan.steps) + NODE_BITS * shards * plan.steps.len() as f64;
                if bits < flat_bits(yes + no, 1) + NODE_BITS * shards {
                    self.tree.bits += bits;
                    self.huffman[node].exact = Some(plan);
                    continue;
                }
            }
            let open = self.huffman[small].open.min(self.huffman[large].open);
            self.huffman[node].open = (open + 1).min(MAX_FAN_BITS);
        }
        Ok(())
    }

    /// Makes nodes of a Huffman node and of all below it.
    fn emit(&mut self, node: usize) -> Target {
        let (below, exact, open) = (self.huffman[node].below, self.huffman[node].exact.take(), self.huffman[node].open);
        let number = self.tree.nodes.len();
        match (below, exact) {
            (Ok(class), _) => self.class(class),
            (Err([small, large]), Some(plan)) => {
                // Its place is taken first: children come later.
                self.tree.nodes.push(Node::Symbols { bits: 1, first: 0 });
                let yes = self.emit(small);
                let middle = self.next;
                let no = self.emit(large);
                self.tree.nodes[number] = Node::Exact { plan, yes, no, middle };
                Target::Node(number as u32)
            }
            (Err(_), None) => {
                self.tree.nodes.push(Node::Symbols { bits: 1, first: 0 });
                self.tree.bits += flat_bits(self.huffman[node].keys, open) + NODE_BITS * self.options.shards as f64;
                let mut level = vec![node];
                for _ in 0..open {
                    let sides = |&node: &usize| self.huffman[node].below.err().unwrap_or([node, node]);
                    level = level.iter().flat_map(sides).collect();
                }
                let child = |node: usize| {
                    let first = self.next;
                    (self.emit(node), first)
                };
                let children = level.into_iter().map(child).collect();
                self.tree.nodes[number] = Node::Children { bits: open, children };
                Target::Node(number as u32)
            }
        }
    }

    fn class(&mut self, class: usize) -> Target {
        let Class { start, end, bits, keys } = self.classes[class];
        let first = self.next;
        let mut values = self.order[start..end].to_vec();
        values.sort_unstable();
        for value in values {
            self.tree.symbols[value as usize] = self.next;
            self.tree.classes[value as usize] = self.tree.sizes.len() as u32;
            self.next += 1;
        }
        self.tree.sizes.push((end - start) as u32);
        if bits == 0 {
            return Target::Symbol(first.into());
        }
        self.tree.bits += flat_bits(keys, bits) + NODE_BITS * self.options.shards as f64;
        self.tree.nodes.push(Node::Symbols { bits, first });
        Target::Node(self.tree.nodes.len() as u32 - 1)
    }
}

/// Payload bits of a flat node, about.
pub(crate) fn flat_bits(keys: u64, bits: u32) -> f64 {
    let leaf = |bits: u32| ribbon::Params { width: 256 * bits as u16, tight: true, nested: false }.bits(keys, 0);
    let rest = bits % WORD_BITS;
    f64::from(bits / WORD_BITS) * leaf(WORD_BITS) + if rest > 0 { leaf(rest) } else { 0.0 }
}

fn exact(yes: u64, no: u64, options: &TreeOptions) -> Request {
    Request {
        keys: yes,
        shard_bits: 0,
        negatives: no,
        goal: Goal::Exact,
        kind: Kind::Auto,
        effort: options.effort,
        layout: options.layout,
        delta: 0.5,
        layers: LAYERS,
        first: None,
        columns: None,
        spare: 0.0,
        hash_bytes: 1,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const OPTIONS: TreeOptions =
        TreeOptions { effort: Effort::Balanced, layout: Layout::Compact, shards: 1, uniform: false, naming: 1.0 };

    /// Every symbol has one way, every node one parent, and every node stands for the symbols it says.
    fn check(tree: &Tree, values: usize) {
        let mut seen = vec![0; tree.nodes.len()];
        let mut reached = vec![];
        if values > 0 {
            walk(tree, tree.root, 0..values as u32, &mut seen, &mut reached);
        }
        assert_eq!(reached, (0..values as u32).collect::<Vec<_>>());
        assert!(seen.iter().all(|&times| times == 1), "{seen:?}");
        let mut symbols = tree.symbols.clone();
        symbols.sort_unstable();
        assert!(symbols.iter().copied().eq(0..values as u32));
        assert_eq!(tree.sizes.iter().sum::<u32>() as usize, values);
        // Inside a class symbols ascend with their values.
        let mut last = vec![None; tree.sizes.len()];
        for (&class, &symbol) in tree.classes.iter().zip(&tree.symbols) {
            assert!(last[class as usize].is_none_or(|last| last < symbol));
            last[class as usize] = Some(symbol);
        }
    }

    fn walk(tree: &Tree, at: Target, range: std::ops::Range<u32>, seen: &mut [u32], reached: &mut Vec<u32>) {
        let Target::Node(number) = at else {
            assert_eq!(at, Target::Symbol(range.start.into()));
            assert_eq!(range.len(), 1);
            return reached.push(range.start);
        };
        seen[number as usize] += 1;
        let later = |target: &Target| match target {
            Target::Node(child) => assert!(*child > number),
            Target::Symbol(_) => {}
        };
        match &tree.nodes[number as usize] {
            Node::Exact { yes, no, middle, .. } => {
                [yes, no].into_iter().for_each(later);
                walk(tree, *yes, range.start..*middle, seen, reached);
                walk(tree, *no, *middle..range.end, seen, reached);
            }
            Node::Symbols { bits, first } => {
                assert_eq!(*first, range.start);
                assert!(range.len() <= 1 << bits);
                reached.extend(range);
            }
            Node::Children { bits, children } => {
                assert_eq!(children.len(), 1 << bits);
                let ends = children.iter().skip(1).map(|child| child.1).chain([range.end]);
                for ((target, first), end) in children.iter().zip(ends) {
                    later(target);
                    walk(tree, *target, *first..end, seen, reached);
                }
            }
        }
    }

    #[test]
    fn trees_lead_to_every_value() {
        let laws: [fn(u64) -> u64; 6] =
            [|_| 1, |_| 1000, |i| i + 1, |i| 1_000_000 / (i + 1), |i| 1 << (i % 40), |i| 1 + 1_000_000 * (i % 2)];
        for law in laws {
            for values in (0..40).chain([63, 64, 65, 255, 256, 257, 1000, 5000]) {
                let counts: Vec<u64> = (0..values).map(law).collect();
                for (uniform, naming) in [(false, 1.0), (false, 0.0), (true, 1.0)] {
                    let options = TreeOptions { uniform, naming, ..OPTIONS };
                    let tree = plan(&counts, &options).unwrap();
                    check(&tree, counts.len());
                    assert!(!uniform || tree.nodes.len() <= 1);
                }
            }
        }
    }

    /// Theorem 5.1 of \[Chained\] is about any tree; the shapes here are those that its figures have.
    #[test]
    fn shapes_follow_the_counts() {
        let shape = |counts: &[u64]| {
            let tree = plan(counts, &OPTIONS).unwrap();
            let exact = tree.nodes.iter().filter(|node| matches!(node, Node::Exact { .. })).count();
            (exact, tree.nodes.len() - exact)
        };
        assert_eq!(shape(&[]), (0, 0));
        assert_eq!(shape(&[7]), (0, 0));
        // Equal counts: one function. Lopsided ones: filters.
        assert_eq!(shape(&[100_000; 2]), (0, 1));
        assert_eq!(shape(&[100_000; 256]), (0, 1));
        assert_eq!(shape(&[100_000, 5000]), (1, 0));
        assert_eq!(shape(&[1_000_000, 100_000, 10_000]), (2, 0));
        // Ten equal ones: eight and two, told apart by a filter.
        assert_eq!(shape(&[100_000; 10]), (1, 2));
        // Of few keys nothing is worth a filter.
        assert_eq!(shape(&[8, 2, 1, 1]).0, 0);
    }

    /// About as many bits as the values are worth, by the estimate itself.
    #[test]
    fn plans_are_near_the_entropy() {
        for omega in 3..=10u64 {
            let counts: Vec<u64> =
                (0..40).map(|i| 1_000_000 / omega.pow(i.min(19))).take_while(|&count| count > 0).collect();
            let keys = counts.iter().sum::<u64>() as f64;
            let entropy: f64 = counts.iter().map(|&count| count as f64 * log2(keys / count as f64)).sum();
            let tree = plan(&counts, &OPTIONS).unwrap();
            let over = (tree.bits - entropy) / keys;
            assert!(over > 0.0 && over < 0.1, "omega {omega}: {over}");
        }
    }
}
