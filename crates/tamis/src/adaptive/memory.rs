//! keys -> chains by name and chains by order: a reverse map in memory.
//!
//! One node per key, on two chains: that of its name's bucket and that of its place in the order, which is the top bits of its digest. Digests are
//! spread evenly, so the buckets of the order are short, and walking from one to the next is walking through the keys.

use std::convert::Infallible;

use super::ReverseMap;
use crate::debug::brief_debug;
use crate::hash::{Digest, scramble};

/// Reverse map in memory: about 48 bytes per key and a few memory accesses per call, for fewer than 2^32 - 1 keys. When their number has
/// doubled, all keys are linked again.
///
/// ```
/// use tamis::adaptive::{Memory, ReverseMap};
/// use tamis::Digest;
/// let mut map = Memory::new();
/// let key = Digest::from_hash(1);
/// map.file(key, 7)?;
/// let mut found = vec![];
/// map.filed(7, &mut found)?;
/// assert_eq!(found, [key]);
/// assert_eq!((map.next(None)?, map.next(Some(key))?), (Some(key), None));
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Clone)]
pub struct Memory {
    /// log2 of the number of buckets of either kind.
    bits: u32,
    /// The first node of each bucket of names, and of each bucket of the order.
    heads: [Vec<u32>; 2],
    nodes: Vec<Node>,
    /// The first of the nodes that are free.
    free: u32,
    len: usize,
}

brief_debug!(Memory, it => keys: it.len);

#[derive(Clone, Copy, Debug)]
struct Node {
    key: Digest,
    name: u64,
    /// The next node of the same bucket of names, and of the order.
    next: [u32; 2],
}

const NAME: usize = 0;
const ORDER: usize = 1;
const END: u32 = u32::MAX;
/// log2 of the fewest buckets.
const MIN_BUCKET_BITS: u32 = 4;

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Memory {
    /// Returns an empty map.
    pub fn new() -> Memory {
        Memory { bits: MIN_BUCKET_BITS, heads: empty(MIN_BUCKET_BITS), nodes: vec![], free: END, len: 0 }
    }

    /// How many keys are filed.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a key is filed.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn contains(&self, key: Digest) -> bool {
        self.chain(ORDER, self.order(key)).any(|at| self.nodes[at as usize].key == key)
    }

    /// All keys, in no order.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn keys(&self) -> impl Iterator<Item = Digest> + '_ {
        let heads = self.heads[ORDER].iter();
        heads.flat_map(|&head| self.from(ORDER, head)).map(|at| self.nodes[at as usize].key)
    }

    fn order(&self, key: Digest) -> usize {
        key.shard(self.bits)
    }

    fn bucket(&self, name: u64) -> usize {
        (scramble(name) >> (64 - self.bits)) as usize
    }

    fn chain(&self, kind: usize, bucket: usize) -> impl Iterator<Item = u32> + '_ {
        self.from(kind, self.heads[kind][bucket])
    }

    fn from(&self, kind: usize, head: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |at: u32| (at != END).then_some(at);
        std::iter::successors(some(head), move |&at| some(self.nodes[at as usize].next[kind]))
    }

    fn link(&mut self, kind: usize, at: u32) {
        let Node { key, name, .. } = self.nodes[at as usize];
        let bucket = if kind == NAME { self.bucket(name) } else { self.order(key) };
        self.nodes[at as usize].next[kind] = std::mem::replace(&mut self.heads[kind][bucket], at);
    }

    /// Takes a node out of a chain: the first that is meant.
    fn unlink(&mut self, kind: usize, bucket: usize, meant: impl Fn(u32, &Node) -> bool) -> Option<u32> {
        let (mut before, mut at) = (END, self.heads[kind][bucket]);
        while at != END {
            let node = self.nodes[at as usize];
            if meant(at, &node) {
                match before {
                    END => self.heads[kind][bucket] = node.next[kind],
                    before => self.nodes[before as usize].next[kind] = node.next[kind],
                }
                return Some(at);
            }
            (before, at) = (at, node.next[kind]);
        }
        None
    }

    /// As many buckets as keys, more or less.
    fn fit(&mut self) {
        let wanted = self.len.next_power_of_two().ilog2().max(MIN_BUCKET_BITS);
        if wanted <= self.bits && wanted + 3 >= self.bits {
            return;
        }
        let keys: Vec<u32> = self.heads[ORDER].iter().flat_map(|&head| self.from(ORDER, head)).collect();
        self.bits = wanted;
        self.heads = empty(wanted);
        for at in keys {
            self.link(NAME, at);
            self.link(ORDER, at);
        }
    }
}

fn empty(bits: u32) -> [Vec<u32>; 2] {
    [vec![END; 1 << bits], vec![END; 1 << bits]]
}

impl ReverseMap for Memory {
    type Error = Infallible;

    fn file(&mut self, key: Digest, name: u64) -> Result<(), Infallible> {
        let node = Node { key, name, next: [END; 2] };
        if self.free == END {
            self.free = self.nodes.len() as u32;
            self.nodes.push(node);
        }
        let at = self.free;
        self.free = self.nodes[at as usize].next[NAME];
        self.nodes[at as usize] = node;
        self.link(NAME, at);
        self.link(ORDER, at);
        self.len += 1;
        self.fit();
        Ok(())
    }

    fn unfile(&mut self, key: Digest, name: u64) -> Result<bool, Infallible> {
        let meant = |_: u32, node: &Node| node.key == key && node.name == name;
        let Some(at) = self.unlink(NAME, self.bucket(name), meant) else { return Ok(false) };
        self.unlink(ORDER, self.order(key), |node, _| node == at);
        self.nodes[at as usize].next[NAME] = std::mem::replace(&mut self.free, at);
        self.len -= 1;
        self.fit();
        Ok(true)
    }

    fn refile(&mut self, key: Digest, from: u64, to: u64) -> Result<bool, Infallible> {
        let meant = |_: u32, node: &Node| node.key == key && node.name == from;
        let Some(at) = self.unlink(NAME, self.bucket(from), meant) else { return Ok(false) };
        self.nodes[at as usize].name = to;
        self.link(NAME, at);
        Ok(true)
    }

    fn filed(&mut self, name: u64, found: &mut Vec<Digest>) -> Result<(), Infallible> {
        let nodes = self.chain(NAME, self.bucket(name)).map(|at| self.nodes[at as usize]);
        found.extend(nodes.filter(|node| node.name == name).map(|node| node.key));
        Ok(())
    }

    fn next(&mut self, after: Option<Digest>) -> Result<Option<Digest>, Infallible> {
        let first = after.map_or(0, |key| self.order(key));
        for bucket in first..1 << self.bits {
            let keys = self.chain(ORDER, bucket).map(|at| self.nodes[at as usize].key);
            if let Some(key) = keys.filter(|&key| Some(key) > after).min() {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Against ordered maps, through growing and shrinking.
    #[test]
    fn a_map_answers_as_ordered_maps_do() {
        let mut map = Memory::new();
        let mut names: BTreeMap<Digest, u64> = BTreeMap::new();
        let mut filed: BTreeSet<(u64, Digest)> = BTreeSet::new();
        let mut state = 1;
        let mut random = || {
            state = scramble(state);
            state
        };
        for round in 0..20_000u64 {
            let grow = (round / 4000).is_multiple_of(2);
            let key = Digest { hi: random(), lo: random() };
            if grow || random() % 8 == 0 {
                // Few names, so that many keys share one.
                let name = random() % 500;
                map.file(key, name).unwrap();
                names.insert(key, name);
                filed.insert((name, key));
            } else if let Some((&key, &name)) = names.range(key..).next().or(names.iter().next()) {
                assert!(filed.remove(&(name, key)));
                if random() % 3 == 0 {
                    assert!(map.refile(key, name, name + 1).unwrap());
                    names.insert(key, name + 1);
                    filed.insert((name + 1, key));
                } else {
                    assert!(map.unfile(key, name).unwrap());
                    names.remove(&key);
                }
            }
            let name = random() % 500;
            let mut found = vec![];
            map.filed(name, &mut found).unwrap();
            found.sort();
            let expected = filed.range((name, Digest::default())..(name + 1, Digest::default()));
            assert!(expected.map(|entry| &entry.1).eq(&found), "round {round}");
            assert_eq!(map.next(Some(key)).unwrap(), names.range(key..).map(|entry| *entry.0).find(|&k| k > key));
            assert_eq!((map.len(), map.contains(key)), (names.len(), names.contains_key(&key)));
        }
        let all: BTreeSet<Digest> = map.keys().collect();
        assert!(all.iter().eq(names.keys()));
        assert_eq!(map.next(None).unwrap(), names.keys().next().copied());
        // A key that is not there can be queried.
        assert!(!map.unfile(Digest { hi: 1, lo: 1 }, 0).unwrap());
        assert!(!map.refile(Digest { hi: 1, lo: 1 }, 0, 1).unwrap());
        assert_eq!(map.len(), names.len());
    }
}
