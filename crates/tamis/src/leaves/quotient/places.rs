//! a number + a fingerprint -> where it is kept: a bijection of all fingerprints, so that those that crowd are spread.
//!
//! ```text
//!   x -> x ^ (x >> h);  a x + c;  x ^ (x >> h);  b x;  x ^ (x >> h)        modulo 2^k, h = ceil(k / 2)
//! ```
//!
//! 2^k is the least power of two that is not below the number of fingerprints R. Each line is a bijection of 2^k values, for odd a and b.
//! It is repeated until the value is below R: that walks along a cycle of the bijection from one value below R to the next, and
//! takes less than two rounds on average. Number 0 leaves everything where it is.

use crate::hash::scramble;

struct Mix {
    /// a, b and c.
    words: [u64; 3],
    mask: u64,
    half: u32,
}

impl Mix {
    /// For `range` values, 2 at least.
    fn new(number: u32, range: u64) -> Mix {
        let (a, bits) = (scramble(number.into()), 64 - (range - 1).leading_zeros());
        let b = scramble(a);
        Mix { words: [a | 1, b | 1, scramble(b)], mask: u64::MAX >> (64 - bits), half: bits.div_ceil(2) }
    }

    fn there(&self, x: u64) -> u64 {
        let [a, b, c] = self.words;
        let x = (x ^ x >> self.half).wrapping_mul(a).wrapping_add(c) & self.mask;
        let x = (x ^ x >> self.half).wrapping_mul(b) & self.mask;
        x ^ x >> self.half
    }

    #[cfg(feature = "build")]
    fn back(&self, x: u64) -> u64 {
        // Half of the bits at least: a second time undoes the first.
        let [a, b, c] = self.words;
        let x = (x ^ x >> self.half).wrapping_mul(inverse(b)) & self.mask;
        let x = (x ^ x >> self.half).wrapping_sub(c).wrapping_mul(inverse(a)) & self.mask;
        x ^ x >> self.half
    }
}

/// That of an odd word modulo 2^64: every step doubles the bits that are right.
#[cfg(feature = "build")]
fn inverse(odd: u64) -> u64 {
    (0..6).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))))
}

/// Where a fingerprint below `range` is kept; the number is not 0.
#[cold]
#[inline(never)]
pub(super) fn there(number: u32, range: u64, fingerprint: u64) -> u64 {
    walk(range, fingerprint, |mix, x| mix.there(x), number)
}

/// What is kept at a place; as it is if no fingerprint is kept there.
#[cfg(feature = "build")]
pub(super) fn back(number: u32, range: u64, place: u64) -> u64 {
    if number == 0 { place } else { walk(range, place, |mix, x| mix.back(x), number) }
}

fn walk(range: u64, from: u64, step: impl Fn(&Mix, u64) -> u64, number: u32) -> u64 {
    // A cycle that has a value below the range comes back to one; others need not.
    if from >= range || range < 2 {
        return from;
    }
    let mix = Mix::new(number, range);
    let mut x = step(&mix, from);
    while x >= range {
        x = step(&mix, x);
    }
    x
}

#[cfg(all(test, feature = "build"))]
mod tests {
    use super::*;

    #[test]
    fn every_fingerprint_has_a_place_of_its_own() {
        for range in (2..300).chain([1 << 12, (1 << 12) + 2, 10_000]) {
            for number in [1, 2, u32::MAX] {
                let mut places: Vec<u64> = (0..range).map(|x| there(number, range, x)).collect();
                for (x, &place) in places.iter().enumerate() {
                    assert_eq!(back(number, range, place), x as u64);
                }
                places.sort_unstable();
                assert!(places.into_iter().eq(0..range));
            }
        }
        for range in [(1 << 62) - 2, 1 << 62, 3 << 40] {
            for x in (0..1000).flat_map(|x| [x, range - 1 - x, scramble(x) % range]) {
                let place = there(77, range, x);
                assert!(place < range && back(77, range, place) == x);
            }
        }
        // What is no place stays what it is, and nothing goes on for ever.
        assert_eq!([back(5, 100, 100), back(5, 100, u64::MAX), back(5, 0, 0), there(5, 1, 0)], [100, u64::MAX, 0, 0]);
    }

    /// They are in files, and must never change.
    #[test]
    fn places_are_fixed_for_ever() {
        assert_eq!([0, 1, 2].map(|x| there(1, 1000, x)), [205, 883, 901]);
        let far = [3_090_685_098_671, 1_055_863_501_545, 655_528_013_970];
        assert_eq!([0, 1, 1 << 40].map(|x| there(u32::MAX, 3 << 40, x)), far);
    }

    /// Neighbours, multiples and values that share their upper or lower bits are all over the place afterwards.
    #[test]
    fn patterns_are_spread() {
        const RANGE: u64 = 3 << 26;
        const BINS: u64 = 256;
        let patterns: [fn(u64) -> u64; 4] = [|i| i, |i| RANGE - 1 - i, |i| i * 12_287, |i| (i >> 7) << 20 | i & 127];
        for number in [1, 2, 3, 1 << 31] {
            for pattern in patterns {
                let mut bins = [0u32; BINS as usize];
                for i in 0..16_384 {
                    bins[(there(number, RANGE, pattern(i)) * BINS / RANGE) as usize] += 1;
                }
                // 64 each: twice that is 8 standard deviations of a random spread.
                assert!(bins.iter().all(|&count| (8..128).contains(&count)), "{number}: {bins:?}");
            }
        }
    }
}
