//! sets -> a shifting Bloom filter: one array for all sets, set i of a key at the bits h(x) + i.
//!
//! The linear layout of its paper: anchors leave room for n bits after them, and nothing wraps around. A query reads k runs
//! of n bits, each from any bit on, 64 at a time.

use tamis_bench::bits::Bits;

use super::{Built, Index, Load, PROBES, digest, places, push_ones, salts};

pub(crate) struct Shifting {
    bits: Bits,
    /// Anchors are below this.
    anchors: usize,
    sets: usize,
}

impl Shifting {
    pub(crate) fn build(load: &Load, bits: u64) -> Built {
        let total = bits as usize;
        let anchors = (total + 1).checked_sub(load.sets).filter(|&anchors| anchors > 0);
        let anchors = anchors.ok_or("fewer bits than sets")?;
        // The last run may be read up to 63 bits beyond its end.
        let mut bits = Bits::zeros(total + 64);
        let salts = salts(0);
        for (key, sets) in load.entries() {
            let places = places(digest(key), &salts, anchors);
            for &set in sets {
                places.into_iter().for_each(|anchor| bits.set(anchor + set as usize));
            }
        }
        Ok(Box::new(Shifting { bits, anchors, sets: load.sets }))
    }
}

impl Index for Shifting {
    fn bits(&self) -> u64 {
        (self.anchors + self.sets - 1) as u64
    }

    fn find(&self, key: u64, sets: &mut Vec<u32>) {
        sets.clear();
        let [a, b, c]: [usize; PROBES] = places(digest(key), &salts(0), self.anchors);
        for first in (0..self.sets).step_by(64) {
            let word = |anchor: usize| self.bits.word_at(anchor + first);
            let left = (self.sets - first).min(64);
            push_ones(word(a) & word(b) & word(c) & (u64::MAX >> (64 - left)), first, sets);
        }
    }
}
