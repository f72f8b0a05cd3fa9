//! bytes of a key -> a score: the sum of the weights of all runs of two and three bytes in it.
//!
//! A weight is a signed byte, found by a hash of the run. Runs that share a weight blur each other a little; that is what makes the model
//! small. The ends of a key are marked, so that the last letters are other runs than the same letters inside.

use bytes::Bytes;

use super::Scorer;
use crate::debug::brief_debug;

/// log2 of the number of weights.
pub(super) const BITS: std::ops::RangeInclusive<u32> = 6..=20;
/// Bytes of a key that count: the score of a longer key is that of its beginning.
const LONGEST: usize = 256;
/// Marks of the ends.
const ENDS: [u8; 2] = [2, 3];
const MULTIPLIER: u64 = 0x9fb2_1c65_1e98_df25;

/// The model of learned filters: hashed runs of two and three bytes, and a weight for each hash.
///
/// The first 256 bytes of a key count. The score of an empty key is 0.
///
/// ```
/// use tamis::learned::{Grams, Scorer};
/// let zeros = Grams::from_bytes(vec![0; 64].into()).unwrap();
/// assert_eq!(zeros.score(b"any key"), 0);
/// assert!(Grams::from_bytes(vec![0; 63].into()).is_none()); // not a power of two
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Grams {
    /// 2^bits signed bytes.
    weights: Bytes,
    bits: u32,
}

brief_debug!(Grams, it => weights: it.weights.len());

impl Scorer for Grams {
    const NUMBER: u64 = 1;

    #[inline]
    fn score(&self, key: &[u8]) -> i32 {
        let mut score = 0;
        // At most 512 runs of weights from -128 to 127.
        for_each_run(key, self.bits, |at| score += i32::from(self.weights[at] as i8));
        score
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.weights.to_vec()
    }

    fn from_bytes(weights: Bytes) -> Option<Grams> {
        let bits = weights.len().checked_ilog2().filter(|bits| BITS.contains(bits))?;
        (weights.len() == 1 << bits).then_some(Grams { weights, bits })
    }
}

/// Calls `visit` with the place of every run among 2^bits weights: two for each byte of the key.
///
/// ```text
///   \2 k e y \3 0 ..      \2k  ke  ey      \2ke  key  ey\3
/// ```
#[inline]
pub(super) fn for_each_run(key: &[u8], bits: u32, mut visit: impl FnMut(usize)) {
    let len = key.len().min(LONGEST);
    let mut text = [0; LONGEST + 9];
    text[0] = ENDS[0];
    text[1..=len].copy_from_slice(&key[..len]);
    text[len + 1] = ENDS[1];
    let mut run = |run: u32| visit((u64::from(run).wrapping_mul(MULTIPLIER) >> (64 - bits)) as usize);
    for word in text.windows(4).take(len) {
        let word = u32::from_le_bytes([word[0], word[1], word[2], 0]);
        run(word & 0xffff);
        run(word | 1 << 24);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The runs of a key, as docs/format.md has them.
    fn oracle(key: &[u8], weights: &[i8]) -> i32 {
        let key = &key[..key.len().min(256)];
        let text = [&[2], key, &[3]].concat();
        let bits = weights.len().ilog2();
        let weight = |run: &[u8]| {
            let number = run.iter().rev().fold(u64::from(run.len() == 3), |sum, &byte| sum << 8 | u64::from(byte));
            i32::from(weights[(number.wrapping_mul(0x9fb2_1c65_1e98_df25) >> (64 - bits)) as usize])
        };
        (0..key.len()).map(|at| weight(&text[at..at + 2]) + weight(&text[at..at + 3])).sum()
    }

    #[test]
    fn scores_are_sums_of_weights() {
        for bits in [6, 9, 14] {
            let weights: Vec<i8> = (0..1u32 << bits).map(|i| (i.wrapping_mul(77) >> 2) as i8).collect();
            let grams = Grams::from_bytes(weights.iter().map(|&w| w as u8).collect::<Vec<_>>().into()).unwrap();
            for len in (0..40).chain([255, 256, 257, 1 << 20]) {
                let key: Vec<u8> = (0..len).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
                assert_eq!(grams.score(&key), oracle(&key, &weights), "{len} bytes, 2^{bits} weights");
            }
        }
    }

    /// Also with the lowest and the highest weights there are.
    #[test]
    fn no_key_overflows() {
        for weight in [i8::MIN, i8::MAX] {
            let grams = Grams::from_bytes(vec![weight as u8; 64].into()).unwrap();
            assert_eq!(grams.score(&[0xff; 1 << 20]), 512 * i32::from(weight));
            assert_eq!((grams.score(b""), grams.score(b"x")), (0, 2 * i32::from(weight)));
        }
    }

    #[test]
    fn other_lengths_are_rejected() {
        for len in [0, 1, 32, 63, 65, 96, 1 << 21] {
            assert!(Grams::from_bytes(vec![0; len].into()).is_none(), "{len}");
        }
    }
}
