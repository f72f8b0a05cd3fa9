//! one shard of pairs + a tree to build -> one part per leaf.
//!
//! The pairs walk down the tree together. At an exact node they part into two lists, the keys and the negatives of its
//! filter; at a flat node every pair leaves the number of its way in the function and goes on to that child.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::build::{FRONT, Flats};
use super::plan::Node;
use super::tree::{self, Target, WORD_BITS, fingerprint, words};
use crate::error::BuildError;
use crate::filter::build::build_steps;
use crate::format::{Encoded, put_varint};
use crate::gather::Paired;
use crate::hash::{Digest, Salt};
use crate::leaves::{Role, Sides, Values, Work};
use crate::parallel::{Stop, check, each, run};
use crate::plan::{Plan, Step, Structure};

#[derive(Debug)]
pub(super) enum Symbols {
    /// The number less this.
    Offset(u64),
    /// By the number less the least.
    Dense(u64, Vec<u32>),
    Sparse(HashMap<u64, u32>),
}

impl Symbols {
    pub(super) fn listed(pairs: impl Iterator<Item = (u64, u32)> + Clone) -> Symbols {
        let (least, most, count) = pairs.clone().fold((u64::MAX, 0, 0), |(least, most, count), (number, _)| {
            (number.min(least), number.max(most), count + 1)
        });
        if count == 0 || most - least > 4 * count + 1024 {
            return Symbols::Sparse(pairs.collect());
        }
        let mut dense = vec![0; (most - least) as usize + 1];
        pairs.for_each(|(number, symbol)| dense[(number - least) as usize] = symbol);
        Symbols::Dense(least, dense)
    }

    #[inline]
    fn get(&self, number: u64) -> u64 {
        match self {
            Symbols::Offset(least) => number.wrapping_sub(*least),
            Symbols::Dense(least, symbols) => {
                symbols.get(number.wrapping_sub(*least) as usize).map_or(0, |&s| s.into())
            }
            Symbols::Sparse(symbols) => symbols.get(&number).map_or(0, |&symbol| symbol.into()),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'a> {
    front: u32,
    /// Bits next to the values of the first node.
    fingerprint: u32,
    flats: Flats,
    root: Target,
    nodes: &'a [Node],
    symbols: &'a Symbols,
}

/// The keys that got to a node, sorted, and their symbols.
#[derive(Default)]
struct NodeKeys {
    digests: Vec<Digest>,
    symbols: Vec<u64>,
}

impl NodeKeys {
    /// Keys by the side of a node: before the symbol `middle`, or from it on.
    fn sides(keys: impl Iterator<Item = (Digest, u64)>, middle: u64) -> [NodeKeys; 2] {
        let mut sides = [NodeKeys::default(), NodeKeys::default()];
        keys.for_each(|(digest, symbol)| sides[(symbol >= middle) as usize].push(digest, symbol));
        sides
    }

    /// The sides of pairs, parts of which are taken by several threads.
    fn sides_of(pairs: &[Paired], symbols: &Symbols, middle: u64, threads: usize) -> [NodeKeys; 2] {
        let part = pairs.len().div_ceil(threads).max(1);
        let mut parts = each(pairs.chunks(part).collect(), threads, |pairs: &[Paired]| {
            NodeKeys::sides(pairs.iter().map(|pair| (pair.digest, symbols.get(pair.value))), middle)
        })
        .into_iter();
        let mut sides = parts.next().unwrap_or_default();
        for part in parts {
            for (side, mut part) in sides.iter_mut().zip(part) {
                side.digests.append(&mut part.digests);
                side.symbols.append(&mut part.symbols);
            }
        }
        sides
    }

    fn push(&mut self, digest: Digest, symbol: u64) {
        self.digests.push(digest);
        self.symbols.push(symbol);
    }

    fn iter(&self) -> impl Iterator<Item = (Digest, u64)> {
        self.digests.iter().copied().zip(self.symbols.iter().copied())
    }
}

/// A node to build, apart from the others.
struct Job<'a> {
    number: usize,
    /// The number of its first salt.
    salt: u64,
    work: Task<'a>,
}

enum Task<'a> {
    /// The first against the second.
    Exact(&'a Plan, Arc<Vec<Digest>>, Arc<Vec<Digest>>),
    Flat(u32, Arc<Vec<Digest>>, Vec<u64>),
}

impl Job<'_> {
    fn keys(&self) -> usize {
        match &self.work {
            Task::Exact(_, yes, no) => yes.len() + no.len(),
            Task::Flat(_, keys, _) => keys.len(),
        }
    }
}

impl<'a> Shape<'a> {
    pub(super) fn new(bits: u32, flats: Flats, root: Target, nodes: &'a [Node], symbols: &'a Symbols) -> Shape<'a> {
        let beside = root == Target::Node(0) && !matches!(nodes.first(), None | Some(Node::Exact { .. }));
        let (front, fingerprint) = if beside { (0, bits) } else { (bits, 0) };
        Shape { front, fingerprint, flats, root, nodes, symbols }
    }

    fn front(&self) -> Option<Structure> {
        (self.front > 0).then(|| Flats::Ribbon.leaf(self.front))
    }

    /// Bits next to the values of a node.
    fn beside(&self, node: usize) -> u32 {
        if node == 0 { self.fingerprint } else { 0 }
    }

    /// The leaves of a node.
    fn leaves(&self, number: usize) -> Vec<Step> {
        match &self.nodes[number] {
            Node::Exact { plan, .. } => plan.steps.clone(),
            Node::Symbols { bits, .. } | Node::Children { bits, .. } => {
                let whole = bits + self.beside(number);
                let leaf = |word: u32| self.flats.leaf((whole - WORD_BITS * word).min(WORD_BITS));
                (0..words(whole)).map(|word| Step { role: Role::Exact, structure: leaf(word) }).collect()
            }
        }
    }

    /// What every leaf is, in the order of the file.
    pub(super) fn kinds(&self) -> Vec<[u8; 2]> {
        let front = self.front().map(|structure| Step { role: FRONT, structure });
        let leaves = (0..self.nodes.len()).flat_map(|number| self.leaves(number));
        front.into_iter().chain(leaves).map(|step| step.kind()).collect()
    }

    /// Front, root and nodes as a directory has them; `geometries` are those of all leaves.
    pub(super) fn encode(&self, geometries: &[Vec<u8>], out: &mut Vec<u8>) {
        let kinds = self.kinds();
        let mut leaves = kinds.iter().zip(geometries);
        let mut list = |count: usize, out: &mut Vec<u8>| {
            put_varint(out, count as u64);
            let listed: Vec<_> = leaves.by_ref().take(count).collect();
            listed.iter().for_each(|(kind, _)| out.extend_from_slice(*kind));
            listed.iter().for_each(|(_, geometry)| out.extend_from_slice(geometry));
        };
        list(self.front().iter().count(), out);
        self.root.encode(out);
        put_varint(out, self.nodes.len() as u64);
        for (number, node) in self.nodes.iter().enumerate() {
            node.encode(self.beside(number), out);
            list(self.leaves(number).len(), out);
        }
    }

    /// Builds one shard. Nodes of few keys are left to one thread each, and those with many are built by all of them.
    pub(super) fn build(
        &self,
        pairs: &[Paired],
        skip: u32,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<Vec<Encoded>, BuildError> {
        let mut parts: Vec<Vec<Encoded>> = vec![];
        if let Some(front) = self.front() {
            let digests: Vec<Digest> = pairs.iter().map(|pair| pair.digest).collect();
            let work = Work { salt: Salt::new(0), skip, threads, stop };
            parts.push(vec![front.build(&mut Sides::alone(&digests, Values::Fingerprints), &work)?]);
        }
        let before = parts.len();
        parts.resize_with(before + self.nodes.len(), Vec::new);
        let mut later = vec![];
        self.jobs(pairs, threads, before as u64, &mut |job: Job<'_>| {
            check(stop)?;
            match threads == 1 || job.keys() * threads >= pairs.len() {
                true => parts[before + job.number] = self.node(&job, skip, threads, stop)?,
                false => later.push(job),
            }
            Ok(())
        })?;
        later.sort_by_key(|job| Reverse(job.keys()));
        let numbers: Vec<usize> = later.iter().map(|job| job.number).collect();
        let built = run(later, threads, |job| self.node(&job, skip, 1, stop))?;
        for (number, built) in numbers.into_iter().zip(built) {
            parts[before + number] = built;
        }
        Ok(parts.into_iter().flatten().collect())
    }

    /// Leads pairs down the tree and hands on what is to be built at every node.
    fn jobs(
        &self,
        pairs: &[Paired],
        threads: usize,
        mut salt: u64,
        take: &mut dyn FnMut(Job<'a>) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let mut node_keys: Vec<Option<NodeKeys>> = vec![];
        node_keys.resize_with(self.nodes.len(), Default::default);
        // Keys that go on share the digests with the node that is built.
        let pass_on = |node_keys: &mut Vec<Option<NodeKeys>>, target: Target, keys: NodeKeys| -> Arc<Vec<Digest>> {
            match target {
                Target::Node(node) => {
                    let digests = Arc::new(keys.digests.clone());
                    node_keys[node as usize] = Some(keys);
                    digests
                }
                Target::Symbol(_) => Arc::new(keys.digests),
            }
        };
        for (number, node) in self.nodes.iter().enumerate() {
            let first = self.root == Target::Node(number as u32);
            let keys = match node {
                _ if !first => node_keys[number].take().unwrap_or_default(),
                Node::Exact { .. } => NodeKeys::default(),
                Node::Symbols { .. } | Node::Children { .. } => NodeKeys {
                    digests: pairs.iter().map(|pair| pair.digest).collect(),
                    symbols: pairs.iter().map(|pair| self.symbols.get(pair.value)).collect(),
                },
            };
            let work = match node {
                Node::Exact { plan, yes, no, middle } => {
                    let middle = u64::from(*middle);
                    let [yeses, noes] = match first {
                        true => NodeKeys::sides_of(pairs, self.symbols, middle, threads),
                        false => NodeKeys::sides(keys.iter(), middle),
                    };
                    drop(keys);
                    Task::Exact(plan, pass_on(&mut node_keys, *yes, yeses), pass_on(&mut node_keys, *no, noes))
                }
                Node::Symbols { bits, first } => {
                    let NodeKeys { digests, mut symbols } = keys;
                    symbols.iter_mut().for_each(|symbol| *symbol -= u64::from(*first));
                    Task::Flat(*bits, Arc::new(digests), symbols)
                }
                Node::Children { bits, children } => {
                    let way = |symbol: u64| children.partition_point(|&(_, first)| u64::from(first) <= symbol) - 1;
                    let ways: Vec<u64> = keys.symbols.iter().map(|&symbol| way(symbol) as u64).collect();
                    let mut below: Vec<NodeKeys> = vec![];
                    below.resize_with(children.len(), NodeKeys::default);
                    for ((digest, symbol), &way) in keys.iter().zip(&ways) {
                        below[way as usize].push(digest, symbol);
                    }
                    for ((target, _), keys) in children.iter().zip(below) {
                        if let Target::Node(node) = target {
                            node_keys[*node as usize] = Some(keys);
                        }
                    }
                    Task::Flat(*bits, Arc::new(keys.digests), ways)
                }
            };
            take(Job { number, salt, work })?;
            salt += self.leaves(number).len() as u64;
        }
        Ok(())
    }

    /// The leaves of a node.
    fn node(&self, job: &Job<'_>, skip: u32, threads: usize, stop: Stop<'_>) -> Result<Vec<Encoded>, BuildError> {
        check(stop)?;
        let Job { number, salt, work: task } = job;
        let work = Work { salt: Salt::new(*salt), skip, threads, stop };
        let (bits, digests, values) = match task {
            Task::Exact(plan, yes, no) => return build_steps(plan, Sides::new(yes, &&no[..]), None, *salt, None, work),
            Task::Flat(bits, digests, values) => (*bits, digests, values),
        };
        let beside = self.beside(*number);
        let mut parts = vec![];
        for (word, Step { structure, .. }) in (0..).zip(self.leaves(*number)) {
            let piece = |(&digest, &value): (&Digest, &u64)| {
                let mark = if beside > 0 { u128::from(fingerprint(digest, beside)) << bits } else { 0 };
                ((u128::from(value) | mark) >> (word * tree::WORD_BITS)) as u32
            };
            let pieces: Vec<u32> = digests.iter().zip(values).map(piece).collect();
            let work = Work { salt: Salt::new(salt + u64::from(word)), ..work };
            parts.push(structure.build(&mut Sides::alone(digests, Values::Given(&pieces)), &work)?);
        }
        Ok(parts)
    }
}
