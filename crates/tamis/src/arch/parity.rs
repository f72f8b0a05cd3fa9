//! masked words -> parities: the inner loop of a ribbon query.

/// Bit `j` of the result is the parity of word `j` of `first` under `low` and word `j` of `second` under `high`, for `R`
/// words of eight bytes; words that are not there count as zero.
#[inline(always)]
pub(super) fn scalar<const R: usize>(first: &[u8], second: &[u8], low: u64, high: u64) -> u32 {
    let mut value = 0;
    for j in 0..R {
        let x = (word(first, j) & low) ^ (word(second, j) & high);
        value |= (x.count_ones() & 1) << j;
    }
    value
}

#[inline(always)]
fn word(words: &[u8], j: usize) -> u64 {
    words.get(8 * j..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The same, up to eight columns at a time.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
pub(super) fn avx512<const R: usize>(first: &[u8], second: &[u8], low: u64, high: u64) -> u32 {
    use std::arch::x86_64::*;
    if R > 8 || first.len() < 8 * R || second.len() < 8 * R {
        return scalar::<R>(first, second, low, high);
    }
    let lanes = ((1u32 << R) - 1) as u8;
    // SAFETY: `lanes` has R bits, and both slices hold at least R words, as was just checked; lanes that are masked out are
    // not read, and the loads need no alignment.
    let (first, second) = unsafe {
        (
            _mm512_maskz_loadu_epi64(lanes, first.as_ptr().cast()),
            _mm512_maskz_loadu_epi64(lanes, second.as_ptr().cast()),
        )
    };
    let x = _mm512_and_si512(first, _mm512_set1_epi64(low as i64));
    let y = _mm512_and_si512(second, _mm512_set1_epi64(high as i64));
    let ones = _mm512_popcnt_epi64(_mm512_xor_si512(x, y));
    _mm512_test_epi64_mask(ones, _mm512_set1_epi64(1)) as u32
}

#[cfg(test)]
mod tests {
    use crate::arch::{Isa, Kernel, Level, dispatch};
    use crate::hash::scramble;

    struct Parities<'a, const R: usize>(&'a [u8], &'a [u8], u64, u64);
    impl<const R: usize> Kernel for Parities<'_, R> {
        type Output = u32;
        #[inline(always)]
        fn run<I: Isa>(self) -> u32 {
            I::parities::<R>(self.0, self.1, self.2, self.3)
        }
    }

    fn agree<const R: usize>() {
        let mut ones = 0;
        for i in 0..2000u64 {
            let bytes: Vec<u8> = (0..150).map(|j| scramble(i << 8 | j) as u8).collect();
            // Lengths from too short to too long, at any alignment.
            let (first, second) =
                (&bytes[i as usize % 7..][..64 + i as usize % 9], &bytes[70..][..8 * R - (i % 5 == 0) as usize]);
            let (low, high) = (scramble(i), scramble(!i));
            let expected = super::scalar::<R>(first, second, low, high);
            ones += expected.count_ones();
            for level in Level::available() {
                assert_eq!(dispatch(level, Parities::<R>(first, second, low, high)), expected, "{level:?} {R} {i}");
            }
        }
        let all = 2000 * R as u32;
        assert!(ones > all / 3 && ones < all * 2 / 3, "{ones} of {all}");
    }

    #[test]
    fn every_level_is_the_portable_twin() {
        agree::<1>();
        agree::<3>();
        agree::<5>();
        agree::<7>();
        agree::<8>();
    }
}
