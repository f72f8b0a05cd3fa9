//! one shard of pairs + a tree to build -> one part per leaf.
//!
//! The pairs walk down the tree together. At an exact node they part into two lists, the keys and the negatives of its
//! filter; at a flat node every pair leaves the number of its way in the function and goes on to that child.

use std::collections::HashMap;

use super::build::{FRONT, Flats, frame};
use super::plan::Node;
use super::tree::{self, Target, WORD, fingerprint, words};
use crate::build::Work;
use crate::error::BuildError;
use crate::format::{Encoded, put_varint};
use crate::hash::{Digest, Salt};
use crate::leaves::Values;
use crate::plan::Structure;
use crate::shard::{Paired, Stop};
use crate::steps::Role;

/// Numbers of values -> symbols.
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
                symbols.get(number.wrapping_sub(*least) as usize).copied().unwrap_or(0).into()
            }
            Symbols::Sparse(symbols) => symbols.get(&number).copied().unwrap_or(0).into(),
        }
    }
}

/// What is built of every shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'a> {
    /// Bits of the filter in front.
    front: u32,
    /// Bits beside the values of the first node.
    fingerprint: u32,
    flats: Flats,
    root: Target,
    nodes: &'a [Node],
    symbols: &'a Symbols,
}

/// The keys that got to a node, sorted, and their symbols.
#[derive(Default)]
struct Crowd {
    digests: Vec<Digest>,
    symbols: Vec<u64>,
}

impl Crowd {
    fn push(&mut self, digest: Digest, symbol: u64) {
        self.digests.push(digest);
        self.symbols.push(symbol);
    }

    fn iter(&self) -> impl Iterator<Item = (Digest, u64)> {
        self.digests.iter().copied().zip(self.symbols.iter().copied())
    }
}

impl<'a> Shape<'a> {
    pub(super) fn new(bits: u32, flats: Flats, root: Target, nodes: &'a [Node], symbols: &'a Symbols) -> Shape<'a> {
        let beside = root == Target::Node(0) && !matches!(nodes.first(), None | Some(Node::Exact { .. }));
        let (front, fingerprint) = if beside { (0, bits) } else { (bits, 0) };
        Shape { front, fingerprint, flats, root, nodes, symbols }
    }

    /// The filter in front, if there is one.
    fn front(&self) -> Option<Structure> {
        (self.front > 0).then(|| Flats::Ribbon { wide: false }.leaf(self.front))
    }

    /// Bits beside the values of a node.
    fn beside(&self, node: usize) -> u32 {
        if node == 0 { self.fingerprint } else { 0 }
    }

    /// The leaves of a flat node.
    fn leaves(&self, node: usize, bits: u32) -> Vec<Structure> {
        let whole = bits + self.beside(node);
        (0..words(whole)).map(|word| self.flats.leaf((whole - WORD * word).min(WORD))).collect()
    }

    /// What every leaf is, in the order of the file.
    pub(super) fn kinds(&self) -> Vec<(Role, u8)> {
        let mut kinds: Vec<(Role, u8)> = self.front().iter().map(|front| (FRONT, front.tag())).collect();
        for (number, node) in self.nodes.iter().enumerate() {
            match node {
                Node::Exact { plan, .. } => {
                    kinds.extend(plan.steps.iter().map(|step| (step.role, step.structure.tag())))
                }
                Node::Symbols { bits, .. } | Node::Children { bits, .. } => {
                    kinds.extend(self.leaves(number, *bits).iter().map(|leaf| (Role::Decide, leaf.tag())));
                }
            }
        }
        kinds
    }

    /// Front, root and nodes as a directory has them; `geometries` are those of all leaves.
    pub(super) fn encode(&self, geometries: &[Vec<u8>], out: &mut Vec<u8>) {
        let kinds = self.kinds();
        let mut leaves = kinds.iter().zip(geometries);
        let mut list = |count: usize, out: &mut Vec<u8>| {
            put_varint(out, count as u64);
            let listed: Vec<_> = leaves.by_ref().take(count).collect();
            listed.iter().for_each(|((role, tag), _)| out.extend_from_slice(&[role.encode(), *tag]));
            listed.iter().for_each(|(_, geometry)| out.extend_from_slice(geometry));
        };
        list(self.front().iter().count(), out);
        self.root.encode(out);
        put_varint(out, self.nodes.len() as u64);
        for (number, node) in self.nodes.iter().enumerate() {
            frame(node, self.beside(number), &mut vec![]).encode(out);
            match node {
                Node::Exact { plan, .. } => list(plan.steps.len(), out),
                Node::Symbols { bits, .. } | Node::Children { bits, .. } => {
                    list(self.leaves(number, *bits).len(), out);
                }
            }
        }
    }

    /// Builds one shard.
    pub(super) fn build(
        &self,
        pairs: &[Paired],
        skip: u32,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<Vec<Encoded>, BuildError> {
        let mut crowds: Vec<Option<Crowd>> = vec![];
        crowds.resize_with(self.nodes.len(), Default::default);
        let all = Crowd {
            digests: pairs.iter().map(|pair| pair.digest).collect(),
            symbols: pairs.iter().map(|pair| self.symbols.get(pair.value)).collect(),
        };
        let mut parts = vec![];
        if let Some(front) = self.front() {
            parts.push(front.build(&all.digests, Values::Fingerprints, Salt::new(0), threads)?);
        }
        let go = |crowds: &mut Vec<Option<Crowd>>, target: Target, crowd: Crowd| {
            if let Target::Node(node) = target {
                crowds[node as usize] = Some(crowd);
            }
        };
        go(&mut crowds, self.root, all);
        for (number, node) in self.nodes.iter().enumerate() {
            if stop() {
                return Err(BuildError::Cancelled);
            }
            let crowd = crowds[number].take().unwrap_or_default();
            match node {
                Node::Exact { plan, yes, no, middle } => {
                    let mut sides = [Crowd::default(), Crowd::default()];
                    for (digest, symbol) in crowd.iter() {
                        sides[(symbol >= u64::from(*middle)) as usize].push(digest, symbol);
                    }
                    drop(crowd);
                    let work = Work { skip, salt: parts.len() as u64, threads, stop };
                    parts.extend(work.steps(plan, &sides[0].digests, &&sides[1].digests[..], None)?);
                    let [yeses, noes] = sides;
                    go(&mut crowds, *yes, yeses);
                    go(&mut crowds, *no, noes);
                }
                Node::Symbols { bits, first } => {
                    let ways = crowd.symbols.iter().map(|symbol| symbol - u64::from(*first));
                    self.flat(number, *bits, &crowd.digests, ways, threads, &mut parts)?;
                }
                Node::Children { bits, children } => {
                    let way = |symbol: u64| children.partition_point(|&(_, first)| u64::from(first) <= symbol) - 1;
                    let ways: Vec<u64> = crowd.symbols.iter().map(|&symbol| way(symbol) as u64).collect();
                    self.flat(number, *bits, &crowd.digests, ways.iter().copied(), threads, &mut parts)?;
                    let mut below: Vec<Crowd> = vec![];
                    below.resize_with(children.len(), Crowd::default);
                    for ((digest, symbol), &way) in crowd.iter().zip(&ways) {
                        below[way as usize].push(digest, symbol);
                    }
                    for ((target, _), crowd) in children.iter().zip(below) {
                        go(&mut crowds, *target, crowd);
                    }
                }
            }
        }
        Ok(parts)
    }

    /// The leaves of a flat node: one for every 32 bits of value and fingerprint.
    fn flat(
        &self,
        number: usize,
        bits: u32,
        digests: &[Digest],
        values: impl Iterator<Item = u64> + Clone,
        threads: usize,
        parts: &mut Vec<Encoded>,
    ) -> Result<(), BuildError> {
        let beside = self.beside(number);
        for (word, leaf) in self.leaves(number, bits).iter().enumerate() {
            let piece = |(&digest, value): (&Digest, u64)| {
                let mark = if beside > 0 { u128::from(fingerprint(digest, beside)) << bits } else { 0 };
                ((u128::from(value) | mark) >> (word as u32 * tree::WORD)) as u32
            };
            let pieces: Vec<u32> = digests.iter().zip(values.clone()).map(piece).collect();
            let salt = Salt::new(parts.len() as u64);
            parts.push(leaf.build(digests, Values::Given(&pieces), salt, threads)?);
        }
        Ok(())
    }
}
