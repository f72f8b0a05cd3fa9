//! a longer fingerprint <-> a word; a whole hash <-> a word.
//!
//! ```text
//!   entry   base 38 | further bits 18, the last one lowest | how many 5 | tombstone 1 | hash function, odd or even 1 | 1
//!   whole   hash 58 | 0 0 0 | hash function 1 | tombstone 1 | 1
//! ```

/// Bits of a base.
pub(super) const BASE_BITS: u32 = 38;
/// The most bits next to a base.
pub(super) const MAX_EXTRA_BITS: u32 = 18;
/// Bits of an entry after the base.
pub(super) const SHIFT: u32 = 64 - BASE_BITS;

/// The hash of a key under one hash function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) base: u64,
    /// The bits after the base, from the top.
    pub(super) rest: u64,
    /// Whether the hash function is an odd one.
    pub(super) parity: u64,
    /// Another hash.
    pub(super) whole: u64,
}

impl Place {
    /// How many bits after the base are the same.
    pub(super) fn common(&self, other: &Place) -> u32 {
        (self.rest ^ other.rest).leading_zeros()
    }

    /// The fingerprint with so many bits after the base, 1 to 18.
    pub(super) fn entry(&self, len: u32) -> Entry {
        let Place { base, rest, parity, .. } = *self;
        Entry { base, bits: rest >> (64 - len), len, tombstone: false, parity }
    }
}

/// A fingerprint that is longer than its base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) base: u64,
    pub(super) bits: u64,
    pub(super) len: u32,
    pub(super) tombstone: bool,
    pub(super) parity: u64,
}

impl Entry {
    pub(super) fn pack(self) -> u64 {
        let Entry { base, bits, len, tombstone, parity } = self;
        base << SHIFT | bits << 8 | u64::from(len) << 3 | u64::from(tombstone) << 2 | parity << 1 | 1
    }

    pub(super) fn unpack(word: u64) -> Entry {
        Entry {
            base: word >> SHIFT,
            bits: word >> 8 & ((1 << MAX_EXTRA_BITS) - 1),
            len: (word >> 3 & 31) as u32,
            tombstone: word >> 2 & 1 == 1,
            parity: word >> 1 & 1,
        }
    }

    /// Whether a word is one that [`pack`](Self::pack) makes.
    pub(super) fn is_sound(word: u64) -> bool {
        let Entry { bits, len, .. } = Entry::unpack(word);
        word & 1 == 1 && (1..=MAX_EXTRA_BITS).contains(&len) && bits >> len == 0
    }

    /// How many of its bits after the base a hash has.
    pub(super) fn common(&self, place: &Place) -> u32 {
        (place.rest ^ self.bits << (64 - self.len)).leading_zeros().min(self.len)
    }

    /// Whether it is a prefix of a hash with its base.
    #[inline]
    pub(super) fn is_prefix(&self, place: &Place) -> bool {
        place.rest >> (64 - self.len) == self.bits
    }
}

/// The words of whole hashes.
pub(super) struct Whole;

impl Whole {
    pub(super) const SHIFT: u32 = 6;

    pub(super) fn upper(place: &Place) -> u64 {
        place.whole >> Whole::SHIFT
    }

    pub(super) fn pack(place: &Place, tombstone: bool) -> u64 {
        Whole::upper(place) << Whole::SHIFT | place.parity << 2 | u64::from(tombstone) << 1 | 1
    }

    pub(super) fn is_tombstone(word: u64) -> bool {
        word >> 1 & 1 == 1
    }

    pub(super) fn parity(word: u64) -> u64 {
        word >> 2 & 1
    }

    pub(super) fn is_sound(word: u64) -> bool {
        word & 0b11_1001 == 1
    }
}

/// Where a fingerprint is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Match {
    /// In the quotient table, no longer than its base.
    Bare,
    /// There, and in this entry.
    Long(Entry),
    /// As a whole hash.
    Whole,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::scramble;

    #[test]
    fn words_are_what_was_packed() {
        for i in 0..2000 {
            let place = Place { base: scramble(i) >> SHIFT, rest: scramble(!i), parity: i & 1, whole: scramble(i + 7) };
            for len in 1..=MAX_EXTRA_BITS {
                let entry = place.entry(len);
                assert_eq!(Entry::unpack(entry.pack()), entry);
                assert!(Entry::is_sound(entry.pack()) && entry.pack() >> SHIFT == place.base);
                assert!(entry.is_prefix(&place) && entry.common(&place) == len);
                let other = Place { rest: place.rest ^ 1 << (64 - len), ..place };
                assert!(!entry.is_prefix(&other) && entry.common(&other) == len - 1 && place.common(&other) == len - 1);
            }
            for tombstone in [false, true] {
                let word = Whole::pack(&place, tombstone);
                assert!(
                    Whole::is_sound(word) && Whole::is_tombstone(word) == tombstone && Whole::parity(word) == i & 1
                );
                assert_eq!(word >> Whole::SHIFT, Whole::upper(&place));
            }
        }
        assert!(![0, 1, 19 << 3 | 1, 1 << 8 | 1 << 7].into_iter().any(Entry::is_sound) && !Whole::is_sound(0));
    }
}
