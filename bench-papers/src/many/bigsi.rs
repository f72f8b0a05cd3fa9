//! sets -> BIGSI: one Bloom filter of the same size for every set, in two layouts.
//!
//! Per set, as \[CSC\] measures it: a filter after the other, so that a query probes all over the memory, and a new set is
//! a new filter. In rows, as BIGSI's own programme keeps it: bit h of all filters side by side, so that a query reads k
//! rows; the number of sets is fixed once and for all.

use super::filters::Filters;
use super::{Built, Index, Load, PROBES, digest, places, push_ones, salts};

/// Filters one after the other, and how many of them are queried.
pub(crate) struct PerSet(Filters, usize);

impl PerSet {
    pub(crate) fn build(load: &Load, bits: u64) -> Built {
        Ok(Box::new(PerSet::filters(load, bits)))
    }

    /// The same filters, of which so many are queried.
    pub(crate) fn queried(self, sets: usize) -> PerSet {
        PerSet(self.0, sets)
    }

    /// The same, not boxed.
    pub(crate) fn filters(load: &Load, bits: u64) -> PerSet {
        let m = (bits as usize / load.sets).max(1);
        let mut filters = Filters::empty(load.sets, m);
        let salts = salts(0);
        for (key, sets) in load.entries() {
            let places = places(digest(key), &salts, m);
            sets.iter().for_each(|&set| filters.insert(set as usize, places));
        }
        PerSet(filters, load.sets)
    }

    pub(crate) fn loads(&self) -> Vec<f64> {
        self.0.loads()
    }
}

impl Index for PerSet {
    fn bits(&self) -> u64 {
        (self.0.m * self.0.len()) as u64
    }

    fn find(&self, key: u64, sets: &mut Vec<u32>) {
        sets.clear();
        self.0.first(self.1, &places(digest(key), &salts(0), self.0.m), |set| sets.push(set as u32));
    }
}

pub(crate) struct Rows {
    words: Vec<u64>,
    /// Words of a row, and how many of them are queried.
    width: usize,
    queried: usize,
    m: usize,
}

impl Rows {
    /// Rows of whole words that take `bits` together.
    pub(crate) fn build(load: &Load, bits: u64) -> Built {
        Ok(Box::new(Rows::filters(load, bits)))
    }

    /// The same rows, of which the words of the first so many sets are queried.
    pub(crate) fn queried(self, sets: usize) -> Rows {
        Rows { queried: sets.div_ceil(64).min(self.width), ..self }
    }

    /// The same, not boxed.
    pub(crate) fn filters(load: &Load, bits: u64) -> Rows {
        let width = load.sets.div_ceil(64);
        let m = (bits as usize / (64 * width)).max(1);
        let mut words = vec![0; m * width];
        let salts = salts(0);
        for (key, sets) in load.entries() {
            let places = places(digest(key), &salts, m);
            for &set in sets {
                places.into_iter().for_each(|row| words[row * width + set as usize / 64] |= 1 << (set % 64));
            }
        }
        Rows { words, width, queried: width, m }
    }
}

impl Index for Rows {
    fn bits(&self) -> u64 {
        64 * self.words.len() as u64
    }

    fn find(&self, key: u64, sets: &mut Vec<u32>) {
        sets.clear();
        let rows: [&[u64]; PROBES] =
            places(digest(key), &salts(0), self.m).map(|row| &self.words[row * self.width..][..self.queried]);
        let [a, b, c] = rows;
        for (i, ((a, b), c)) in a.iter().zip(b).zip(c).enumerate() {
            push_ones(a & b & c, 64 * i, sets);
        }
    }
}
