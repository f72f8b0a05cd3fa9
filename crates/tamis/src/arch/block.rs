//! 32 bits of hash -> eight bits of a 256-bit block: the inner step of the split-block Bloom filter.
//!
//! Lane `i` of the block is a little-endian 32-bit word; its bit is the top five bits of `hash * ODD[i]`.
//!
//! ```text
//!   bytes  0..4   4..8   8..12  12..16 16..20 20..24 24..28 28..32
//!   lane   0      1      2      3      4      5      6      7         one bit in each
//! ```
//!
//! AVX2 computes the eight bits with one multiplication and two shifts, and tests them all with one `vptest`. NEON does the
//! same with two registers.

/// One odd multiplier per lane: the constants of the split-block filter in the Apache Parquet format.
const ODD: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// The portable twin of [`contains_avx2`].
#[inline(always)]
pub(super) fn contains(block: &[u8; 32], hash: u32) -> bool {
    let (lanes, _) = block.as_chunks::<4>();
    let mut all = 1;
    // No early exit: eight short steps cost less than a branch that nobody can predict.
    for (&lane, odd) in lanes.iter().zip(ODD) {
        all &= u32::from_le_bytes(lane) >> (hash.wrapping_mul(odd) >> 27);
    }
    all & 1 == 1
}

/// The portable twin of [`insert_avx2`].
#[inline(always)]
pub(super) fn insert(block: &mut [u8; 32], hash: u32) {
    let (lanes, _) = block.as_chunks_mut::<4>();
    for (lane, odd) in lanes.iter_mut().zip(ODD) {
        *lane = (u32::from_le_bytes(*lane) | 1 << (hash.wrapping_mul(odd) >> 27)).to_le_bytes();
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::{contains_avx2, insert_avx2};

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::ODD;

    /// One bit in each lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask(hash: u32) -> __m256i {
        // SAFETY: `ODD` is 32 bytes, and this load needs no alignment.
        let odd = unsafe { _mm256_loadu_si256(ODD.as_ptr().cast()) };
        let bit = _mm256_srli_epi32::<27>(_mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), odd));
        _mm256_sllv_epi32(_mm256_set1_epi32(1), bit)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn contains_avx2(block: &[u8; 32], hash: u32) -> bool {
        // SAFETY: the block is 32 bytes, and this load needs no alignment.
        let block = unsafe { _mm256_loadu_si256(block.as_ptr().cast()) };
        _mm256_testc_si256(block, mask(hash)) == 1
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::arch) fn insert_avx2(block: &mut [u8; 32], hash: u32) {
        let at = block.as_mut_ptr().cast();
        // SAFETY: the block is 32 bytes and borrowed for writing; load and store need no alignment.
        unsafe { _mm256_storeu_si256(at, _mm256_or_si256(_mm256_loadu_si256(at), mask(hash))) }
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) mod neon {
    use std::arch::aarch64::*;

    use super::ODD;

    /// Half a block: the bits of four lanes.
    #[inline]
    #[target_feature(enable = "neon")]
    fn mask(hash: u32, half: usize) -> uint8x16_t {
        // SAFETY: `ODD` has eight numbers, four for each half.
        let odd = unsafe { vld1q_u32(ODD.as_ptr().add(4 * (half & 1))) };
        let bit = vshrq_n_u32::<27>(vmulq_u32(vdupq_n_u32(hash), odd));
        vreinterpretq_u8_u32(vshlq_u32(vdupq_n_u32(1), vreinterpretq_s32_u32(bit)))
    }

    /// The twin of [`super::contains`].
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::arch) fn contains(block: &[u8; 32], hash: u32) -> bool {
        // SAFETY: the block is 32 bytes.
        let [low, high] = unsafe { [vld1q_u8(block.as_ptr()), vld1q_u8(block.as_ptr().add(16))] };
        let missing = vorrq_u8(vbicq_u8(mask(hash, 0), low), vbicq_u8(mask(hash, 1), high));
        vmaxvq_u8(missing) == 0
    }

    /// The twin of [`super::insert`].
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::arch) fn insert(block: &mut [u8; 32], hash: u32) {
        for half in 0..2 {
            // SAFETY: the block is 32 bytes and borrowed for writing.
            unsafe {
                let at = block.as_mut_ptr().add(16 * half);
                vst1q_u8(at, vorrq_u8(vld1q_u8(at), mask(hash, half)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::arch::{Isa, Kernel, Level, dispatch};
    use crate::hash::scramble;

    struct Both([u8; 32], u32);
    impl Kernel for Both {
        type Output = (bool, [u8; 32]);
        #[inline(always)]
        fn run<I: Isa>(mut self) -> Self::Output {
            let before = I::block_contains(&self.0, self.1);
            I::block_insert(&mut self.0, self.1);
            assert!(I::block_contains(&self.0, self.1));
            (before, self.0)
        }
    }

    #[test]
    fn every_level_is_the_portable_twin() {
        let mut yes = 0;
        for i in 0..crate::arch::rounds(20_000) {
            let mut block = [0u8; 32];
            // About seven bits of eight are set, so that both answers are common.
            for (j, byte) in block.iter_mut().enumerate() {
                let r = scramble(i << 8 | j as u64);
                *byte = (r | r >> 8 | r >> 16) as u8;
            }
            let hash = scramble(i) as u32;
            let expected = (super::contains(&block, hash), {
                let mut block = block;
                super::insert(&mut block, hash);
                block
            });
            yes += u64::from(expected.0);
            let bits = |block: &[u8; 32]| block.iter().map(|b| b.count_ones()).sum::<u32>();
            assert!(bits(&expected.1) <= bits(&block) + 8);
            for level in Level::available() {
                assert_eq!(dispatch(level, Both(block, hash)), expected, "{level:?}");
            }
        }
        // (7/8)^8 = 0.34
        let all = crate::arch::rounds(20_000);
        assert!((all * 30 / 100..all * 39 / 100).contains(&yes), "{yes}");
    }

    /// The file promises the same bytes for ever.
    #[test]
    fn bits_are_fixed_for_ever() {
        let mut block = [0u8; 32];
        super::insert(&mut block, 1);
        // The top five bits of each multiplier.
        let bits = [8, 8, 17, 20, 14, 5, 19, 11];
        let mut expected = Vec::new();
        for bit in bits {
            expected.extend_from_slice(&(1u32 << bit).to_le_bytes());
        }
        assert_eq!(block.as_slice(), expected);
    }
}
