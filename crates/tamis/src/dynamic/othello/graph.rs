//! the items of one shard -> a forest: each item is an edge between its two cells.

use super::cells::Shard;
use crate::arch::prefetch;
use crate::hash::Digest;

/// No edge.
pub(super) const NONE: u16 = u16::MAX;

/// An item: the next one at its first cell, and at its second. Twenty bytes.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct Edge {
    key: [u64; 2],
    next: [u16; 2],
}

/// The edges of a shard, in lists that start at its cells.
#[derive(Clone, Default)]
pub(super) struct Graph {
    edges: Vec<Edge>,
    heads: Vec<u16>,
    /// How many bits of a prefix lead here.
    pub(super) depth: u32,
}

/// An item to be stored.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub(super) key: Digest,
    pub(super) bit: bool,
}

/// Two trees, as far as they were walked. It is kept for its memory alone.
#[derive(Clone, Default)]
pub(super) struct Walk {
    /// Cells, and the edge that led there.
    seen: [Vec<(u16, u16)>; 2],
}

impl Graph {
    /// Items with these ends, which are a forest.
    pub(super) fn new(depth: u32, cells: usize, items: &[Item], ends: &[[u16; 2]]) -> Graph {
        // A shard grows by a seventh before it is built again.
        let room = items.len() + items.len() / 7 + 1;
        let mut graph = Graph { edges: Vec::with_capacity(room), heads: vec![NONE; cells], depth };
        for (item, ends) in items.iter().zip(ends) {
            graph.push(item.key, ends.map(usize::from));
        }
        graph
    }

    pub(super) fn len(&self) -> usize {
        self.edges.len()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = Digest> + '_ {
        self.edges.iter().map(|edge| digest(*edge))
    }

    /// The digest of an edge.
    pub(super) fn key(&self, edge: u16) -> Digest {
        digest(self.edges[usize::from(edge)])
    }

    /// The edge of a digest.
    pub(super) fn find(&self, key: Digest, ends: [usize; 2]) -> Option<u16> {
        // The next to be read, if the edge changes.
        prefetch(&self.heads, ends[1]);
        let mut at = self.heads[ends[0]];
        while at != NONE {
            let edge = self.edges[usize::from(at)];
            if digest(edge) == key {
                return Some(at);
            }
            at = edge.next[0];
        }
        None
    }

    /// Adds an edge, which is the last one.
    pub(super) fn push(&mut self, key: Digest, ends: [usize; 2]) {
        let number = self.edges.len() as u16;
        self.edges.push(Edge { key: [key.hi, key.lo], next: ends.map(|cell| self.heads[cell]) });
        ends.into_iter().for_each(|cell| self.heads[cell] = number);
    }

    /// Takes out an edge; the last one gets its number.
    pub(super) fn remove(&mut self, edge: u16, shard: &Shard) {
        let ends = |graph: &Graph, edge| shard.ends(graph.key(edge));
        let after = self.edges[usize::from(edge)].next;
        self.replace(edge, ends(self, edge), after);
        let last = self.edges.len() as u16 - 1;
        if edge != last {
            self.replace(last, ends(self, last), [edge; 2]);
        }
        self.edges.swap_remove(usize::from(edge));
    }

    /// Makes what points to an edge, from either cell, point to others.
    fn replace(&mut self, edge: u16, ends: [usize; 2], by: [u16; 2]) {
        for side in 0..2 {
            let mut at = self.heads[ends[side]];
            if at == edge {
                self.heads[ends[side]] = by[side];
                continue;
            }
            while at != NONE {
                let next = self.edges[usize::from(at)].next[side];
                if next == edge {
                    self.edges[usize::from(at)].next[side] = by[side];
                    break;
                }
                at = next;
            }
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        (self.edges.capacity() * size_of::<Edge>() + self.heads.capacity() * size_of::<u16>()) as u64
    }
}

fn digest(edge: Edge) -> Digest {
    let [hi, lo] = edge.key;
    Digest { hi, lo }
}

impl Walk {
    /// Walks from both ends in turn, never over the edge `skip`, until one of the trees has no more cells: which. None if it is one tree.
    ///
    /// The time is that of the smaller tree.
    pub(super) fn smaller(&mut self, graph: &Graph, shard: &Shard, ends: [usize; 2], skip: u16) -> Option<usize> {
        for (seen, end) in self.seen.iter_mut().zip(ends) {
            seen.clear();
            seen.push((end as u16, skip));
        }
        let half = shard.half();
        prefetch(&graph.edges, usize::from(graph.heads[ends[1]]));
        for at in 0.. {
            for side in 0..2 {
                let Some(&(cell, via)) = self.seen[side].get(at) else { return Some(side) };
                let cell = usize::from(cell);
                let own = usize::from(cell >= half);
                let mut number = graph.heads[cell];
                while number != NONE {
                    let edge = graph.edges[usize::from(number)];
                    if number != via && number != skip {
                        let far = shard.ends(digest(edge))[1 - own];
                        prefetch(&graph.heads, far);
                        if far == ends[1 - side] {
                            return None;
                        }
                        self.seen[side].push((far as u16, number));
                    }
                    number = edge.next[own];
                }
            }
        }
        None
    }

    /// The cells of a tree that was walked to its end.
    pub(super) fn cells(&self, side: usize) -> impl Iterator<Item = usize> + '_ {
        self.seen[side].iter().map(|&(cell, _)| usize::from(cell))
    }
}
