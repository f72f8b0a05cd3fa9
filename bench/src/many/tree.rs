//! sets -> a sequence Bloom tree: filters of sets at the leaves, above every two nodes the union of their bits.
//!
//! A query goes down from the root wherever all its bits are set. Sets of similar size are neighbours: a union of two
//! full filters stops nobody, and those of the many small sets are kept apart from it. All filters have one size; the tree
//! is charged for its leaves only, as in \[CSC\] 6.3, though it takes twice that.

use super::bits::Bits;
use super::{Built, Index, Load, PROBES, digest, places, salts};

/// Nodes of a heap: node i has the children 2 i and 2 i + 1, the root is node 1, leaves come last.
pub(crate) struct Tree {
    nodes: Vec<Bits>,
    /// The set of leaf number i, which is node `sets + i`.
    set: Vec<u32>,
    m: usize,
}

impl Tree {
    /// A tree whose leaves take `bits` together.
    pub(crate) fn build(load: &Load, bits: u64) -> Built {
        let n = load.sets;
        let m = (bits as usize / n).max(1);
        let sizes = load.sizes();
        let mut set: Vec<u32> = (0..n as u32).collect();
        set.sort_by_key(|&set| sizes[set as usize]);
        let mut leaf = vec![0; n];
        set.iter().enumerate().for_each(|(i, &set)| leaf[set as usize] = n + i);
        let mut nodes: Vec<Bits> = (0..2 * n).map(|_| Bits::zeros(m)).collect();
        let salts = salts(0);
        for (key, sets) in load.entries() {
            let places = places(digest(key), &salts, m);
            for &set in sets {
                places.into_iter().for_each(|place| nodes[leaf[set as usize]].set(place));
            }
        }
        for node in (1..n).rev() {
            let (above, below) = nodes.split_at_mut(2 * node);
            for child in &below[..2] {
                above[node].words_mut().iter_mut().zip(child.words()).for_each(|(a, b)| *a |= b);
            }
        }
        Ok(Box::new(Tree { nodes, set, m }))
    }

    fn descend(&self, node: usize, places: &[usize; PROBES], sets: &mut Vec<u32>) {
        if !places.iter().all(|&place| self.nodes[node].get(place)) {
            return;
        }
        match node.checked_sub(self.set.len()) {
            Some(leaf) => sets.push(self.set[leaf]),
            None => {
                self.descend(2 * node, places, sets);
                self.descend(2 * node + 1, places, sets);
            }
        }
    }
}

impl Index for Tree {
    fn bits(&self) -> u64 {
        (self.m * self.set.len()) as u64
    }

    fn find(&self, key: u64, sets: &mut Vec<u32>) {
        sets.clear();
        self.descend(1, &places(digest(key), &salts(0), self.m), sets);
        sets.sort_unstable();
    }
}
