//! digest -> the 96 bits of it that an index keeps: next to them a pair's set fits in 16 bytes.
//!
//! Pairs are sorted by the millions before anything is built, and sorting them is most of the work. With the set's id in the low 32 bits a pair
//! is an ordinary digest: the intake, the radix sort and the runs on disk take it as it is, equal pairs fall together, and the pairs of one key are
//! neighbours. Two of a billion keys share their 96 bits with a chance of one in 10^11.

use crate::hash::{Digest, Hasher, Key, KeyType};

const SET_MASK: u64 = 0xffff_ffff;

/// Odd: the product with it is a bijection.
const SPREAD: u64 = 0xd6e8_feb8_6659_fd93;

/// The key that an index knows: low half of `lo` zero.
#[inline(always)]
pub(crate) fn truncate_digest(digest: Digest) -> Digest {
    // Digests of small integers have 64 random bits, all of them in `lo`: what is cut off there must be in `hi` too.
    Digest { hi: digest.hi ^ digest.lo.wrapping_mul(SPREAD), lo: digest.lo & !SET_MASK }
}

/// A key's name with a set.
#[inline(always)]
pub(crate) fn pair(name: Digest, set: u32) -> Digest {
    Digest { lo: name.lo | u64::from(set), ..name }
}

#[inline(always)]
pub(crate) fn parts(pair: Digest) -> (Digest, u32) {
    (Digest { lo: pair.lo & !SET_MASK, ..pair }, (pair.lo & SET_MASK) as u32)
}

/// A key that was hashed before, for the filter and the map inside a frozen segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashed(pub(crate) Digest);

impl Key for Hashed {
    const KEY_TYPE: KeyType = KeyType::Bytes;

    #[inline(always)]
    fn digest(&self, _: &Hasher) -> Digest {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn integers_keep_their_names_apart() {
        let hasher = Hasher::seeded(5);
        let mut high = HashSet::new();
        for key in 0..300_000u64 {
            let name = truncate_digest(hasher.integer(key));
            assert_eq!(name.lo & SET_MASK, 0);
            // 64 of the 96 bits keep so few apart already.
            assert!(high.insert(name.hi));
            assert_eq!(parts(pair(name, 0xdead_beef)), (name, 0xdead_beef));
        }
    }
}
