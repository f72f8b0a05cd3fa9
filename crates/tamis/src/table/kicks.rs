//! a key whose buckets are full -> the moves that make a place: a chain of kicks, searched before anything is written.
//!
//! The search goes through buckets breadth first, each at most once, so the chain is the shortest and no slot is on it twice. It starts with the
//! first bucket. So a key is in its second bucket only if the first was full, and without removals Theorem 5.2 of \[Chained\] holds: with one slot, a
//! bucket of the first table is empty only if no key has it.
//!
//! Moves are made from the end of the chain, each entry copied before its slot is overwritten. A slot whose entry was copied is a hole from
//! then on, whatever it holds. So an error of the store at any point loses nothing: what was moved has moved, and the key is not inserted.

use std::io;

use super::shape::Place;
use super::store::Store;
use super::{Error, Table};
use crate::hash::{Digest, Key};

/// Buckets that a search reads at most.
const MAX_READS: usize = 512;

/// A bucket that was found, and the slot of an earlier one whose entry could move there.
struct Node {
    bucket: u64,
    from: Option<(usize, usize)>,
}

impl<K: Key + Eq + Clone, V: Clone, S: Store<K, V>> Table<K, V, S> {
    /// The places of a chain, from the free one to that of the new key; none if the search ends without.
    pub(super) fn chain(&self, key: Digest) -> Result<Option<Vec<Place>>, Error> {
        let mut nodes: Vec<Node> =
            [false, true].map(|second| Node { bucket: self.shape.bucket(key, second), from: None }).into();
        let mut at = 0;
        while let Some(&Node { bucket, .. }) = nodes.get(at) {
            let slots = self.store.read(bucket)?;
            let free = |slot: &usize| match slots.get(*slot) {
                Some(None) => true,
                Some(Some(_)) => self.holes.contains(&Place { bucket, slot: *slot }),
                None => false,
            };
            if let Some(slot) = (0..self.shape.slots).find(free) {
                let (mut chain, mut from) = (vec![Place { bucket, slot }], nodes[at].from);
                while let Some((node, slot)) = from {
                    chain.push(Place { bucket: nodes[node].bucket, slot });
                    from = nodes[node].from;
                }
                return Ok(Some(chain));
            }
            for (slot, (other, _)) in self.entries(bucket, &slots) {
                let other = self.shape.bucket(other.digest(&self.hasher), !self.shape.is_second(bucket));
                if nodes.len() < MAX_READS && nodes.iter().all(|node| node.bucket != other) {
                    nodes.push(Node { bucket: other, from: Some((at, slot)) });
                }
            }
            at += 1;
        }
        Ok(None)
    }

    /// Makes the moves of a chain, and puts the new key at its end.
    pub(super) fn follow(&mut self, chain: &[Place], key: Digest, entry: (K, V)) -> Result<(), Error> {
        for (to, from) in chain.iter().zip(&chain[1..]) {
            let moved = self.store.read(from.bucket)?.get(from.slot).cloned().flatten();
            let moved = moved.ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a slot is empty that was full; expected a store that only its table writes",
                )
            })?;
            let digest = moved.0.digest(&self.hasher);
            self.put(*to, digest, moved)?;
            self.keys[usize::from(self.shape.is_second(from.bucket))] -= 1;
            self.holes.push(*from);
            self.counters.moves += 1;
        }
        match chain.last() {
            Some(place) => self.put(*place, key, entry),
            None => Ok(()),
        }
    }

    /// Writes an entry to a free slot; the predictor learns it.
    fn put(&mut self, to: Place, key: Digest, entry: (K, V)) -> Result<(), Error> {
        self.store.write(to.bucket, to.slot, Some(entry))?;
        self.holes.retain(|hole| *hole != to);
        let second = self.shape.is_second(to.bucket);
        self.keys[usize::from(second)] += 1;
        let learnt = self.trained.as_mut().is_none_or(|trained| trained.put(key, second).is_ok());
        if !learnt {
            // Gets read both buckets until the next change builds another.
            self.trained = None;
        }
        Ok(())
    }
}
