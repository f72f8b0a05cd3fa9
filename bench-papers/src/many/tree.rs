//! sets -> a sequence Bloom tree: filters of sets at the leaves, above every two nodes the union of their bits.
//!
//! A query goes down from the root wherever all its bits are set. Sets of similar size are neighbours: a union of two
//! full filters stops nobody, and those of the many small sets are kept apart from it. All filters have one size; the tree
//! is charged for its leaves only, as in \[CSC\] 6.3, though it takes twice that.

use super::filters::Filters;
use super::{Built, Index, Load, PROBES, digest, places, salts};

/// Nodes of a heap: node i has the children 2 i and 2 i + 1, the root is node 1, leaves come last.
pub(crate) struct Tree {
    nodes: Filters,
    /// The set of leaf number i, which is node `sets + i`.
    set: Vec<u32>,
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
        let mut nodes = Filters::empty(2 * n, m);
        let salts = salts(0);
        for (key, sets) in load.entries() {
            let places = places(digest(key), &salts, m);
            sets.iter().for_each(|&set| nodes.insert(leaf[set as usize], places));
        }
        for node in (2..2 * n).rev() {
            nodes.unite(node / 2, node);
        }
        Ok(Box::new(Tree { nodes, set }))
    }

    fn descend(&self, node: usize, places: &[usize; PROBES], sets: &mut Vec<u32>) {
        if !self.nodes.contains(node, places) {
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
        (self.nodes.m * self.set.len()) as u64
    }

    fn find(&self, key: u64, sets: &mut Vec<u32>) {
        sets.clear();
        self.descend(1, &places(digest(key), &salts(0), self.nodes.m), sets);
        sets.sort_unstable();
    }
}
