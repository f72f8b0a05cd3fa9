//! excluded keys -> found again by the gate that keeps them out.
//!
//! A hash table of lists, each with the keys behind some gate. It is cut into parts that grow one at a time, so that no insertion waits for
//! all of them. Keys that were chosen for one gate would make one long list: they move to a tree.

use std::collections::{BTreeMap, BTreeSet};

use crate::arch::prefetch;
use crate::hash::{Digest, fold};

/// Keys for which a part is made: it doubles a few times when more come.
const PART: u64 = 1024;
const MAX_PARTS: u64 = 1 << 12;
/// Keys under one gate that are searched one by one.
const MANY: usize = 64;
/// Of so many keys that move to another gate, one is added with a look at all that wait there: a crowd is found a little later.
const LOOKS: u64 = 16;
/// Gates ahead whose list is on its way from memory, and whose first key is.
const FAR: usize = 8;
const NEAR: usize = 4;
const NONE: u32 = u32::MAX;

/// The excluded keys that must be found again.
#[derive(Clone)]
pub(super) struct Waiting {
    parts: Vec<Part>,
    /// What keeps gates from being chosen that meet in one list.
    key: [u64; 2],
}

#[derive(Clone, Default)]
struct Part {
    /// The first key of every list; a power of two of them.
    heads: Vec<u32>,
    nodes: Vec<Node>,
    /// Nodes that were given up.
    free: u32,
    used: usize,
    /// Gates with many keys.
    crowded: BTreeMap<u32, BTreeSet<Digest>>,
}

#[derive(Clone, Copy)]
struct Node {
    key: Digest,
    /// A hash of the gate: gates that share it are distinguished by the caller.
    gate: u32,
    next: u32,
}

impl Waiting {
    /// For about so many keys.
    pub(super) fn new(expected: u64, key: [u64; 2]) -> Waiting {
        let parts = (expected / PART).clamp(1, MAX_PARTS).next_power_of_two();
        Waiting { parts: vec![Part { free: NONE, ..Part::default() }; parts as usize], key }
    }

    fn part(&self, gate: u64) -> (usize, u32) {
        let hash = fold(gate ^ self.key[0], self.key[1] | 1);
        // The top bits of a product of two words: as many as there are parts.
        (((u128::from(hash) * self.parts.len() as u128) >> 64) as usize, hash as u32)
    }

    /// Adds a key behind a gate; false if it is there.
    pub(super) fn add(&mut self, gate: u64, key: Digest) -> bool {
        let (part, gate) = self.part(gate);
        self.parts[part].add(gate, key)
    }

    /// The same for a key that is not there. Which keys are added with a look cannot be chosen.
    pub(super) fn add_new(&mut self, gate: u64, key: Digest) {
        let looks = fold(key.hi ^ self.key[1], self.key[0] | 1).is_multiple_of(LOOKS);
        let (part, gate) = self.part(gate);
        let part = &mut self.parts[part];
        if looks || part.crowded.contains_key(&gate) {
            part.add(gate, key);
        } else {
            part.link(gate, key);
        }
    }

    /// Before the list of the gate at a place among many is read: starts to load those of the places after it.
    pub(super) fn prefetch(&self, at: usize, gates: impl Fn(usize) -> Option<u64>) {
        let heads = if at == 0 { 0 } else { at + FAR }..=at + FAR;
        let nodes = if at == 0 { 0 } else { at + NEAR }..=at + NEAR;
        for gate in heads.filter_map(&gates) {
            let (part, gate) = self.part(gate);
            let part = &self.parts[part];
            prefetch(&part.heads, part.head(gate));
        }
        for gate in nodes.filter_map(&gates) {
            let (part, gate) = self.part(gate);
            let part = &self.parts[part];
            if let Some(&first) = part.heads.get(part.head(gate)) {
                prefetch(&part.nodes, first as usize);
            }
        }
    }

    /// Takes a key from behind a gate; false if it is not there.
    pub(super) fn take(&mut self, gate: u64, key: Digest) -> bool {
        let (part, gate) = self.part(gate);
        self.parts[part].take(gate, key)
    }

    /// Whether a key is behind a gate.
    pub(super) fn holds(&self, gate: u64, key: Digest) -> bool {
        let (part, gate) = self.part(gate);
        let part = &self.parts[part];
        match part.crowded.get(&gate) {
            Some(keys) => keys.contains(&key),
            None => part.list(gate).any(|found| found == key),
        }
    }

    /// The keys behind a gate, and perhaps behind another.
    pub(super) fn behind(&self, gate: u64) -> impl Iterator<Item = Digest> + '_ {
        let (part, gate) = self.part(gate);
        let part = &self.parts[part];
        part.list(gate).chain(part.crowded.get(&gate).into_iter().flatten().copied())
    }

    /// All of them.
    pub(super) fn keys(&self) -> impl Iterator<Item = Digest> + '_ {
        self.parts.iter().flat_map(|part| {
            let lists = part.heads.iter().flat_map(|&head| part.follow(head)).map(|node| node.key);
            lists.chain(part.crowded.values().flatten().copied())
        })
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        let crowded = |part: &Part| part.crowded.values().map(BTreeSet::len).sum::<usize>() * 2 * size_of::<Digest>();
        let bytes = |part: &Part| {
            size_of::<Part>() + 4 * part.heads.capacity() + part.nodes.capacity() * size_of::<Node>() + crowded(part)
        };
        self.parts.iter().map(bytes).sum::<usize>() as u64
    }
}

impl Part {
    fn head(&self, gate: u32) -> usize {
        gate as usize & self.heads.len().wrapping_sub(1)
    }

    fn follow(&self, head: u32) -> impl Iterator<Item = Node> + '_ {
        let node = |at: u32| self.nodes.get(at as usize).copied();
        std::iter::successors(node(head), move |last| node(last.next))
    }

    fn list(&self, gate: u32) -> impl Iterator<Item = Digest> + '_ {
        let head = if self.heads.is_empty() { NONE } else { self.heads[self.head(gate)] };
        self.follow(head).filter(move |node| node.gate == gate).map(|node| node.key)
    }

    fn add(&mut self, gate: u32, key: Digest) -> bool {
        if let Some(keys) = self.crowded.get_mut(&gate) {
            return keys.insert(key);
        }
        let mut others = 0;
        for found in self.list(gate) {
            if found == key {
                return false;
            }
            others += 1;
        }
        if others >= MANY {
            let mut keys: BTreeSet<Digest> = self.list(gate).collect();
            for &key in &keys {
                self.unlink(gate, key);
            }
            keys.insert(key);
            self.crowded.insert(gate, keys);
            return true;
        }
        self.link(gate, key);
        true
    }

    /// Puts a key at the start of a list.
    fn link(&mut self, gate: u32, key: Digest) {
        if self.used == self.heads.len() {
            self.double();
        }
        let at = match self.nodes.get(self.free as usize) {
            Some(node) => std::mem::replace(&mut self.free, node.next),
            None => self.nodes.len() as u32,
        };
        let head = self.head(gate);
        let node = Node { key, gate, next: self.heads[head] };
        match self.nodes.get_mut(at as usize) {
            Some(place) => *place = node,
            None => self.nodes.push(node),
        }
        self.heads[head] = at;
        self.used += 1;
    }

    fn take(&mut self, gate: u32, key: Digest) -> bool {
        let Some(keys) = self.crowded.get_mut(&gate) else { return self.unlink(gate, key) };
        let taken = keys.remove(&key);
        if keys.is_empty() {
            self.crowded.remove(&gate);
        }
        taken
    }

    /// Takes a key out of its list.
    fn unlink(&mut self, gate: u32, key: Digest) -> bool {
        if self.heads.is_empty() {
            return false;
        }
        let head = self.head(gate);
        let (mut before, mut at) = (NONE, self.heads[head]);
        while let Some(&Node { key: found, gate: under, next }) = self.nodes.get(at as usize) {
            if found == key && under == gate {
                match self.nodes.get_mut(before as usize) {
                    Some(node) => node.next = next,
                    None => self.heads[head] = next,
                }
                self.nodes[at as usize].next = std::mem::replace(&mut self.free, at);
                self.used -= 1;
                return true;
            }
            (before, at) = (at, next);
        }
        false
    }

    /// Twice the lists.
    fn double(&mut self) {
        let old = std::mem::take(&mut self.heads);
        self.heads = vec![NONE; (2 * old.len()).max(16)];
        for mut at in old {
            while let Some(&Node { gate, next, .. }) = self.nodes.get(at as usize) {
                let head = self.head(gate);
                self.nodes[at as usize].next = std::mem::replace(&mut self.heads[head], at);
                at = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{Hasher, scramble};

    /// Gates with few keys and gates with many, against a set.
    #[test]
    fn keys_are_found_by_their_gates() {
        let (mut waiting, mut set) = (Waiting::new(5_000, [1, 2]), BTreeSet::new());
        let digest = |i: u64| Hasher::seeded(1).integer(i);
        for step in 0..60_000u64 {
            let random = scramble(step);
            let (gate, key) =
                if step % 3 == 0 { (7, digest(random % 300)) } else { (random % 4_000, digest(random % 9)) };
            match random >> 32 & 3 {
                0 => assert_eq!(waiting.take(gate, key), set.remove(&(gate, key))),
                1 if !set.contains(&(gate, key)) => {
                    waiting.add_new(gate, key);
                    set.insert((gate, key));
                }
                _ => assert_eq!(waiting.add(gate, key), set.insert((gate, key))),
            }
            assert_eq!(waiting.holds(gate, key), set.contains(&(gate, key)));
        }
        assert!(waiting.parts.iter().any(|part| !part.crowded.is_empty()), "a gate with 300 keys is crowded");
        for gate in 0..4_000 {
            let mut found: Vec<Digest> = waiting.behind(gate).collect();
            found.sort();
            let least = Digest::default();
            assert!(found.iter().copied().eq(set.range((gate, least)..(gate + 1, least)).map(|&(_, key)| key)));
        }
        assert_eq!(waiting.keys().count(), set.len());
        set.iter().for_each(|&(gate, key)| assert!(waiting.take(gate, key)));
        assert!(waiting.keys().next().is_none());
        assert!(waiting.parts.iter().all(|part| part.used == 0 && part.crowded.is_empty()));
    }
}
