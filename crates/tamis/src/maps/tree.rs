//! a digest -> a symbol: the tree of a map, and its bytes.
//!
//! ```text
//!   digest ──▶ front ──▶ node ──▶ node ──▶ symbol ──table──▶ value
//!              absent?
//!   exact   a list of steps: yes or no               the minority of the keys that get here is the positive side
//!   flat    a function of some bits                  its value is a child's number, or a symbol's
//! ```
//!
//! A child has a higher number than its parent, so that every walk ends. The front is a filter of fingerprints for maps that
//! recognise absent keys; where the first node is flat it holds the fingerprints itself, next to its values.

use std::sync::Arc;

use bytes::Bytes;

use super::table::Table;
use crate::arch::QueryFn;
use crate::error::FormatError;
use crate::filter::open::{decode_steps, lay_out};
use crate::filter::steps::{self, ROUND, Step, Steps};
use crate::format::{self, Budget, Form, Header, Reader};
use crate::hash::{Digest, Salt};
use crate::leaves::{Leaf, Role};
use crate::math::portable::exp2;

/// More nodes than any plan has.
const MAX_NODES: u64 = 1 << 12;
/// Bits of a flat node with children.
pub(crate) const MAX_FAN_BITS: u32 = 8;
/// Bits of one leaf's values.
pub(crate) const WORD_BITS: u32 = 32;
/// Of the fingerprints; no step has this number.
pub(crate) const FINGERPRINT_SALT: Salt = Salt::new(1 << 33);

/// Where a walk goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Node(u32),
    Symbol(u64),
}

impl Target {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        format::put_varint(
            out,
            match self {
                Target::Symbol(symbol) => 2 * symbol,
                Target::Node(node) => 2 * u64::from(node) + 1,
            },
        );
    }

    /// Reads a target of node `from`, or of none, among so many nodes.
    fn decode(reader: &mut Reader<'_>, from: Option<u64>, nodes: u64) -> Result<Target, FormatError> {
        let code = reader.varint()?;
        match code & 1 {
            0 => Ok(Target::Symbol(code >> 1)),
            _ if code >> 1 < nodes && from.is_none_or(|from| code >> 1 > from) => Ok(Target::Node((code >> 1) as u32)),
            _ => {
                Err(FormatError::invalid(format!("directory: node {} leads to node {}", from.unwrap_or(0), code >> 1)))
            }
        }
    }
}

/// A place where ways part.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are a dozen, and a query must have no pointer to follow")]
pub(crate) enum Node {
    Exact { steps: Steps, yes: Target, no: Target },
    Flat(Flat),
}

/// A static function and where its values lead.
#[derive(Debug)]
pub(crate) struct Flat {
    /// The low 32 bits of every value, or all if there are fewer.
    leaf: Leaf,
    fetch: QueryFn<Leaf, u32>,
    /// The others, 32 bits each; the last one the rest.
    more: Box<[(Leaf, QueryFn<Leaf, u32>)]>,
    bits: u32,
    /// Bits above the value that tell keys from unlisted keys.
    fingerprint: u32,
    to: Destination,
}

#[derive(Debug)]
enum Destination {
    /// The value counts from this symbol on.
    Symbols(u64),
    Children(Box<[Target]>),
}

impl Flat {
    #[inline(always)]
    fn get(&self, key: Digest) -> Option<Target> {
        let low = u64::from(self.fetch.call(&self.leaf, key));
        if self.more.is_empty() {
            return self.target(low, (low >> self.bits) as u32, key);
        }
        let more = self
            .more
            .iter()
            .rev()
            .fold(0, |value, (leaf, fetch)| value << WORD_BITS | u128::from(fetch.call(leaf, key)));
        let value = more << WORD_BITS | u128::from(low);
        self.target(value as u64, (value >> self.bits) as u32, key)
    }

    /// Where a value leads, if the bits above it are the fingerprint.
    #[inline(always)]
    fn target(&self, value: u64, mark: u32, key: Digest) -> Option<Target> {
        if self.fingerprint > 0 && !has_fingerprint(mark, key, self.fingerprint) {
            return None;
        }
        self.target_of(value)
    }

    #[inline(always)]
    fn target_of(&self, value: u64) -> Option<Target> {
        let value = value & (u64::MAX >> (64 - self.bits));
        match &self.to {
            Destination::Symbols(first) => Some(Target::Symbol(first.wrapping_add(value))),
            Destination::Children(children) => children.get(value as usize).copied(),
        }
    }

    fn get_many(&self, file: &[u8], keys: &[Digest], out: &mut [Option<Target>]) {
        let mut words = [0; ROUND];
        let mut values = [0u128; ROUND];
        for (keys, out) in keys.chunks(ROUND).zip(out.chunks_mut(ROUND)) {
            let (words, values) = (&mut words[..keys.len()], &mut values[..keys.len()]);
            if self.more.is_empty() {
                self.leaf.get_many(file, keys, words);
                for ((out, &word), &key) in out.iter_mut().zip(&*words).zip(keys) {
                    *out = self.target(word.into(), (u64::from(word) >> self.bits) as u32, key);
                }
                continue;
            }
            values.fill(0);
            for leaf in self.more.iter().rev().map(|(leaf, _)| leaf).chain([&self.leaf]) {
                leaf.get_many(file, keys, words);
                values
                    .iter_mut()
                    .zip(&*words)
                    .for_each(|(value, word)| *value = *value << WORD_BITS | u128::from(*word));
            }
            for ((out, &value), &key) in out.iter_mut().zip(&*values).zip(keys) {
                *out = self.target(value as u64, (value >> self.bits) as u32, key);
            }
        }
    }
}

/// Sends keys on their way, each by its answer: to the end, or to wait at a node. Without a branch for any of them.
fn route(
    waiting: &mut [Waiting],
    out: &mut [Option<u64>],
    places: &[u16],
    answers: &[bool],
    yes: Option<Target>,
    no: Option<Target>,
) {
    let symbol = |target: Option<Target>| match target {
        Some(Target::Symbol(symbol)) => Some(symbol),
        _ => None,
    };
    let ends = [symbol(no), symbol(yes)];
    for (&place, &answer) in places.iter().zip(answers) {
        out[place as usize] = ends[answer as usize];
    }
    for (target, wanted) in [(yes, true), (no, false)] {
        if let Some(Target::Node(node)) = target {
            let waiting = &mut waiting[node as usize];
            places.iter().zip(answers).for_each(|(&place, &answer)| waiting.push(place, answer == wanted));
        }
    }
}

/// So many bits that a key's value carries to be recognised.
#[inline(always)]
pub(crate) fn fingerprint(key: Digest, bits: u32) -> u32 {
    key.salted(FINGERPRINT_SALT) as u32 & (u32::MAX >> (32 - bits))
}

/// Whether a mark, with any bits above it, is the fingerprint of a key.
#[inline(always)]
fn has_fingerprint(mark: u32, key: Digest, bits: u32) -> bool {
    mark & (u32::MAX >> (32 - bits)) == fingerprint(key, bits)
}

/// How many leaves hold so many bits.
pub(crate) fn words(bits: u32) -> u32 {
    bits.div_ceil(WORD_BITS)
}

/// A function of at most 64 bits, fingerprints included, and nothing on the way to it.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    low: (Leaf, QueryFn<Leaf, u32>),
    /// The bits from the 33rd on.
    high: Option<(Leaf, QueryFn<Leaf, u32>)>,
    bits: u32,
    /// The bits of a value, and of the fingerprint above them.
    value: u64,
    mark: u32,
    first: u64,
}

impl Function {
    #[inline(always)]
    pub(crate) fn get(&self, key: Digest) -> Option<u64> {
        let fetch = |(leaf, fetch): &(Leaf, QueryFn<Leaf, u32>)| u64::from(fetch.call(leaf, key));
        let low = fetch(&self.low);
        self.symbol(self.high.as_ref().map_or(low, |high| fetch(high) << WORD_BITS | low), key)
    }

    #[inline(always)]
    fn symbol(&self, value: u64, key: Digest) -> Option<u64> {
        if self.mark > 0 && ((value >> self.bits) as u32 ^ key.salted(FINGERPRINT_SALT) as u32) & self.mark != 0 {
            return None;
        }
        Some((value & self.value).wrapping_add(self.first))
    }

    /// The symbols of at most [`ROUND`] keys.
    pub(crate) fn get_many(&self, file: &[u8], keys: &[Digest], mut found: impl FnMut(usize, Option<u64>)) {
        let (mut low, mut high) = ([0; ROUND], [0; ROUND]);
        let (low, high) = (&mut low[..keys.len().min(ROUND)], &mut high[..keys.len().min(ROUND)]);
        self.low.0.get_many(file, keys, low);
        if let Some((leaf, _)) = &self.high {
            leaf.get_many(file, keys, high);
        }
        for (at, ((&low, &high), &key)) in low.iter().zip(&*high).zip(keys).enumerate() {
            found(at, self.symbol(u64::from(high) << WORD_BITS | u64::from(low), key));
        }
    }
}

/// Who waits at every node.
pub(crate) struct Scratch(Vec<Waiting>);

/// Places of keys that wait at a node. A key waits at one node at a time, so there is room for all, and for one that does not stay.
#[derive(Clone, Copy)]
struct Waiting {
    places: [u16; ROUND + 1],
    count: usize,
}

impl Waiting {
    #[inline(always)]
    fn push(&mut self, place: u16, stays: bool) {
        self.places[self.count.min(ROUND)] = place;
        self.count += stays as usize;
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Tree {
    front: Option<Steps>,
    root: Target,
    nodes: Arc<Vec<Node>>,
}

impl Tree {
    /// The symbol of a key; nothing for a key that is seen to be absent.
    #[inline(always)]
    pub(crate) fn find(&self, key: Digest) -> Option<u64> {
        if let Some(steps) = &self.front
            && !steps.contains(key)
        {
            return None;
        }
        let mut at = self.root;
        loop {
            match at {
                Target::Symbol(symbol) => return Some(symbol),
                Target::Node(node) => {
                    at = match self.nodes.get(node as usize)? {
                        Node::Exact { steps, yes, no } => {
                            if steps.contains(key) {
                                *yes
                            } else {
                                *no
                            }
                        }
                        Node::Flat(flat) => flat.get(key)?,
                    }
                }
            }
        }
    }

    /// Room for [`Tree::find_many`] to work in.
    pub(crate) fn scratch(&self) -> Scratch {
        Scratch(vec![Waiting { places: [0; ROUND + 1], count: 0 }; self.nodes.len()])
    }

    /// The symbols of at most [`ROUND`] keys: node by node, so that every structure is queried for many keys at once.
    pub(crate) fn find_many(&self, file: &[u8], keys: &[Digest], out: &mut [Option<u64>], scratch: &mut Scratch) {
        let waiting = &mut scratch.0[..];
        let mut answers = [true; ROUND];
        if let Some(steps) = &self.front {
            steps::contains_many(steps, file, keys, &mut answers[..keys.len()]);
        }
        let all: [u16; ROUND] = std::array::from_fn(|place| place as u16);
        out.fill(None);
        route(waiting, out, &all[..keys.len()], &answers[..keys.len()], Some(self.root), None);
        let mut targets = [None; ROUND];
        let mut asked = [Digest::default(); ROUND];
        for (number, node) in self.nodes.iter().enumerate() {
            let Waiting { places, count } = waiting[number];
            if count == 0 {
                continue;
            }
            waiting[number].count = 0;
            let (places, some) = (&places[..count], &mut asked[..count]);
            // At the root, unless some were rejected, all are waiting in order, and are queried as they are.
            let asked = match count == keys.len() && self.root == Target::Node(number as u32) {
                true => keys,
                false => {
                    some.iter_mut().zip(places).for_each(|(digest, &place)| *digest = keys[place as usize]);
                    some
                }
            };
            match node {
                Node::Exact { steps, yes, no, .. } => {
                    let answers = &mut answers[..count];
                    steps::contains_many_at_once(steps, file, asked, answers);
                    route(waiting, out, places, answers, Some(*yes), Some(*no));
                }
                Node::Flat(flat) => {
                    let targets = &mut targets[..count];
                    flat.get_many(file, asked, targets);
                    for (&place, &target) in places.iter().zip(&*targets) {
                        match target {
                            Some(Target::Symbol(symbol)) => out[place as usize] = Some(symbol),
                            Some(Target::Node(node)) => waiting[node as usize].push(place, true),
                            None => {}
                        }
                    }
                }
            }
        }
    }

    pub(crate) fn is_function(&self) -> bool {
        matches!(&self.nodes[..], [Node::Flat(Flat { to: Destination::Symbols(_), .. })])
    }

    /// The whole tree as one function, if it is one.
    pub(crate) fn function(&self) -> Option<Function> {
        let (None, Target::Node(0), [Node::Flat(flat)]) = (&self.front, self.root, &self.nodes[..]) else {
            return None;
        };
        let Flat { leaf, fetch, more, bits, fingerprint, to: Destination::Symbols(first) } = flat else { return None };
        let high = match &more[..] {
            [] => None,
            [high] => Some(high.clone()),
            _ => return None,
        };
        let (value, mark) = (u64::MAX >> (64 - bits), ((1u64 << fingerprint) - 1) as u32);
        Some(Function { low: (leaf.clone(), *fetch), high, bits: *bits, value, mark, first: *first })
    }

    /// The share of unlisted keys that get a value.
    pub(crate) fn fpr(&self) -> f64 {
        match (&self.front, self.root, &self.nodes[..]) {
            (Some(steps), ..) => steps::rate(steps),
            (None, Target::Node(0), [Node::Flat(flat), ..]) => exp2(-f64::from(flat.fingerprint)),
            _ => 1.0,
        }
    }

    /// What is in it, for a person: (which node, how deep, what it does, its leaves).
    pub(crate) fn parts(&self) -> Vec<(Option<usize>, usize, String, Vec<&Leaf>)> {
        let mut parts = vec![];
        if let Some(steps) = &self.front {
            parts.push((None, 0, "recognises keys".to_string(), steps.iter().map(|step| &step.leaf).collect()));
        }
        let mut depths = vec![0; self.nodes.len()];
        for (number, node) in self.nodes.iter().enumerate() {
            let depth = depths[number];
            let mut below = |target: &Target| {
                if let Target::Node(child) = target {
                    depths[*child as usize] = depth + 1;
                }
            };
            parts.push(match node {
                Node::Exact { steps, yes, no, .. } => {
                    [yes, no].into_iter().for_each(&mut below);
                    (Some(number), depth, "yes or no".to_string(), steps.iter().map(|step| &step.leaf).collect())
                }
                Node::Flat(Flat { leaf, more, bits, to, fingerprint, .. }) => {
                    let unit = if *bits == 1 { "bit" } else { "bits" };
                    let what = match to {
                        Destination::Symbols(_) if *fingerprint > 0 => {
                            format!("values of {bits} {unit}, {fingerprint} more to recognise keys")
                        }
                        Destination::Symbols(_) => format!("values of {bits} {unit}"),
                        Destination::Children(children) => {
                            children.iter().for_each(&mut below);
                            format!("{} ways", children.len())
                        }
                    };
                    (Some(number), depth, what, [leaf].into_iter().chain(more.iter().map(|(leaf, _)| leaf)).collect())
                }
            });
        }
        parts
    }
}

/// A map, taken apart.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) header: Header,
    pub(crate) tree: Tree,
    pub(crate) table: Table,
    pub(crate) table_len: u64,
    /// What the values say about themselves, in bits.
    pub(crate) entropy: u64,
}

/// Kinds of nodes in a directory.
pub(super) const EXACT: u8 = 0;
pub(super) const SYMBOLS: u8 = 1;
pub(super) const CHILDREN: u8 = 2;

/// What a node does with the answers of its steps.
enum Ways {
    Exact { yes: Target, no: Target },
    Flat { bits: u32, fingerprint: u32, to: Destination },
}

/// Reads and checks everything of a map but the payloads.
///
/// ```text
///   entropy of the values in bits  varint
///   the front                      a list of steps, none or one
///   root                           target: twice a symbol, or twice a node's number and one more
///   number of nodes                varint, 0 to 4096
///   per node: kind u8              0: exact, 1: flat with symbols, 2: flat with children
///     0: yes, no                   targets; a list of steps, as in an ordinary directory
///     1: bits                      varint, 1 to 64
///        fingerprint               varint, 0 to 32
///        first symbol              varint; the list
///     2: bits                      varint, 1 to 8; the fingerprint; a target for every value; the list
///     1, 2: a list of steps, fuse or ribbon: one for every 32 bits of value and fingerprint
///   the table of values            see `maps::table`
/// ```
///
/// Salts have the numbers of the leaves in this order.
pub(crate) fn open(
    bytes: &Bytes,
    expected: Form,
    secret: Option<[u64; 2]>,
    budget: &Budget,
) -> Result<Contents, FormatError> {
    let (header, mut from, mut places) = format::parts(bytes, secret, budget)?;
    if header.form != expected {
        return Err(FormatError::Form { found: header.form.name(), expected: expected.name() });
    }
    let bits = header.shard_bits;
    let entropy = from.varint()?;
    let mut front = decode_steps(&mut from, bits, 0)?;
    if front.len() > 1 || front.iter().any(|step| step.role != Role::Positive) {
        return Err(FormatError::invalid("directory: the front of a map is one filter that refuses, or none"));
    }
    let root = Target::decode(&mut from, None, MAX_NODES)?;
    let count = from.within("number of nodes", 0..=MAX_NODES.min(from.len()))?;
    if matches!(root, Target::Node(root) if u64::from(root) >= count) {
        return Err(FormatError::invalid("directory: the root is no node"));
    }
    let mut salt = front.len() as u64;
    let mut raw = from.room(count)?;
    for number in 0..count {
        let left = from.left();
        let node = decode_node(&mut from, number, count, bits, salt)?;
        // A map that is one function keeps it once more.
        from.draw(if count == 1 { left - from.left() } else { 0 })?;
        salt += node.0.len() as u64;
        raw.push(node);
    }
    let table_len = from.varint()?;
    from.end()?;

    from.draw(salt * size_of::<&Step>() as u64)?;
    let steps = raw.iter_mut().flat_map(|(steps, _)| steps);
    lay_out(&mut places, &mut front.iter_mut().chain(steps).collect::<Vec<_>>(), bits)?;
    let values = places.take(table_len)?;
    places.check()?;
    let mut values = Reader::budgeted(&values, "table of values", budget);
    let table = Table::decode(&mut values, bytes)?;
    values.end()?;
    let mut nodes = from.room(count)?;
    for (steps, ways) in raw {
        nodes.push(match ways {
            Ways::Exact { yes, no } => Node::Exact { steps: Steps::new(steps, bytes), yes, no },
            Ways::Flat { bits, fingerprint, to } => {
                let mut leaves = Vec::with_capacity(steps.len());
                for Step { leaf, .. } in steps {
                    let none = || FormatError::invalid("directory: the leaf of a node holds no values");
                    let fetch = leaf.value_fn().ok_or_else(none)?;
                    leaves.push((leaf, fetch));
                }
                // There is one at least, for a node has bits.
                let (leaf, fetch) = leaves.remove(0);
                Node::Flat(Flat { leaf, fetch, more: leaves.into(), bits, fingerprint, to })
            }
        });
    }
    let front = if front.is_empty() { None } else { Some(Steps::new(front, bytes)) };
    Ok(Contents { header, tree: Tree { front, root, nodes: nodes.into() }, table, table_len, entropy })
}

/// The steps of a node, whose payloads have no places yet, and what it does with their answers.
fn decode_node(
    from: &mut Reader<'_>,
    number: u64,
    nodes: u64,
    shards: u32,
    salt: u64,
) -> Result<(Vec<Step>, Ways), FormatError> {
    let kind = from.u8()?;
    if kind == EXACT {
        let [yes, no] = [Target::decode(from, Some(number), nodes)?, Target::decode(from, Some(number), nodes)?];
        return Ok((decode_steps(from, shards, salt)?, Ways::Exact { yes, no }));
    }
    if kind > CHILDREN {
        return Err(FormatError::unsupported("kind of node", kind));
    }
    let widest = if kind == CHILDREN { MAX_FAN_BITS } else { 64 };
    let bits = from.within("bits of a node", 1..=widest.into())? as u32;
    let fingerprint = from.within("bits of a fingerprint", 0..=32)? as u32;
    let to = match kind {
        CHILDREN => {
            let mut children = from.room(1 << bits)?;
            for _ in 0..1u32 << bits {
                children.push(Target::decode(from, Some(number), nodes)?);
            }
            Destination::Children(children.into())
        }
        _ => Destination::Symbols(from.varint()?),
    };
    let steps = decode_steps(from, shards, salt)?;
    if steps.len() != words(bits + fingerprint) as usize {
        let reason = format!("directory: a node of {bits} bits and {fingerprint} more has no function of so many");
        return Err(FormatError::invalid(reason));
    }
    Ok((steps, Ways::Flat { bits, fingerprint, to }))
}
