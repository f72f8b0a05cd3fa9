//! keys in many sets -> indexes to compare: which sets hold this key?
//!
//! The rivals of the library's own many-sets index, written here after their papers, with the same hash, the same number
//! of probes and the same memory for all:
//!
//! ```text
//!   bigsi::PerSet      n Bloom filters of m bits, one after the other          k n probes
//!   bigsi::Rows        the same bits, m rows of n                              k rows
//!   rambo::Rambo       b filters for each of r partitions of the sets          k b r probes, a union, an intersection
//!   tree::Tree         filters of sets under filters of their unions           from the root
//!   shifting::Shifting one filter, set i at bit h(x) + i                       k runs of n bits
//!   per_set_cuckoo     n cuckoo filters, each sized for the largest set        2 n buckets
//! ```
//!
//! [`Load`] is what they are built from, [`measured`] what they are compared by.

use std::error::Error;

use tamis::internals::Salt;
use tamis::{Digest, Hasher};
use tamis_bench::stream::place;

pub(crate) mod bigsi;
mod filters;
pub(crate) mod generated;
pub(crate) mod load;
pub(crate) mod measured;
pub(crate) mod per_set_cuckoo;
pub(crate) mod rambo;
pub(crate) mod real;
pub(crate) mod shifting;
pub(crate) mod tree;

pub(crate) use load::Load;

/// Something that knows which sets hold a key, and errs on the side of more sets.
pub(crate) trait Index {
    /// All bits that a query may read, as charged.
    fn bits(&self) -> u64;

    /// Replaces `sets` by the sets that may hold `key`, ascending.
    fn find(&self, key: u64, sets: &mut Vec<u32>);

    /// The sets of many keys, in the keys' order.
    fn find_many(&self, keys: &[u64], each: &mut dyn FnMut(&[u32])) {
        let mut sets = Vec::new();
        for &key in keys {
            self.find(key, &mut sets);
            each(&sets);
        }
    }
}

/// An index, or why there is none.
pub(crate) type Built = Result<Box<dyn Index>, Box<dyn Error>>;

/// Probes of every Bloom filter of the rivals: \[CSC\] 6.3.
pub(crate) const PROBES: usize = 3;

/// The digest of a key: one hash for all rivals, the same as the library's.
#[inline]
fn digest(key: u64) -> Digest {
    Hasher::seeded(0).integer(key)
}

/// The parent of the salts of all rivals.
const SALT: Salt = Salt::new(0x6d61_6e79);

/// The salts of `PROBES` probes, other ones in every repetition.
fn salts(repetition: usize) -> [Salt; PROBES] {
    std::array::from_fn(|j| SALT.child((repetition * PROBES + j) as u64))
}

/// The probes of a key in a table of `m` places.
#[inline(always)]
fn places(digest: Digest, salts: &[Salt; PROBES], m: usize) -> [usize; PROBES] {
    salts.map(|salt| place(digest.salted(salt), m))
}

/// The positions of the ones of `word`, each plus `first`.
#[inline(always)]
fn push_ones(mut word: u64, first: usize, sets: &mut Vec<u32>) {
    while word != 0 {
        sets.push(first as u32 + word.trailing_zeros());
        word &= word - 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// No rival loses a pair, whatever the sizes of the sets and however little memory it has.
    #[test]
    fn every_pair_is_found_in_every_rival() {
        for (sets, pairs) in [(1, 50), (3, 400), (63, 3000), (64, 3000), (65, 3000), (130, 9000), (700, 40_000)] {
            let load = generated::skewed("test", sets, pairs, 2.5, 1 + pairs / sets / 8, 1);
            let slots = (sets * load.sizes().into_iter().max().unwrap()) as u64;
            for bits_per_pair in [4.0, 16.0] {
                let bits = (bits_per_pair * pairs as f64) as u64;
                let rivals: [(&str, Built); 6] = [
                    ("per set", bigsi::PerSet::build(&load, bits)),
                    ("rows", bigsi::Rows::build(&load, bits)),
                    ("rambo", rambo::Rambo::build(&load, bits, sets.div_ceil(10), 3)),
                    ("tree", tree::Tree::build(&load, bits)),
                    ("shifting", shifting::Shifting::build(&load, bits)),
                    ("cuckoo", per_set_cuckoo::PerSetCuckoo::build(&load, slots * 10 + 1000)),
                ];
                for (name, built) in rivals {
                    let index = built.unwrap();
                    let tally = measured::check(index.as_ref(), &load);
                    assert_eq!((tally.pairs, tally.lost), (pairs as u64, 0), "{name}, {sets} sets");
                    assert!(tally.ascending, "{name}, {sets} sets");
                }
            }
        }
    }

    /// Two layouts of the same bits give the same answers; a tree gives them too.
    #[test]
    fn layouts_of_the_same_filters_agree() {
        let load = generated::skewed("test", 128, 20_000, 3.0, 20, 2);
        let m = 2048;
        let per_set = bigsi::PerSet::build(&load, 128 * m).unwrap();
        let rows = bigsi::Rows::build(&load, 128 * m).unwrap();
        let tree = tree::Tree::build(&load, 128 * m).unwrap();
        assert_eq!((per_set.bits(), rows.bits(), tree.bits()), (128 * m, 128 * m, 128 * m));
        let mut answers = [Vec::new(), Vec::new(), Vec::new()];
        for key in load.keys.iter().copied().chain(load.absent(5000)) {
            per_set.find(key, &mut answers[0]);
            rows.find(key, &mut answers[1]);
            tree.find(key, &mut answers[2]);
            assert_eq!(answers[0], answers[1]);
            assert_eq!(answers[0], answers[2]);
        }
    }
}
