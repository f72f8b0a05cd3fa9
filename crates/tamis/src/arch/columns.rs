//! a hash and bytes -> parities of columns that lie side by side: the inner loop of a local query.
//!
//! Eight octets lie one after the other, a byte of each of `C` columns. Their mask is made of words `fold(h, masks[k])`, each of which
//! covers as many octets as fit into it. In a register all words are made at once, mask and bytes are sorted by column, and every
//! column has its parity in one step.

use crate::hash::fold;

/// Octets of `columns` bytes that a word of eight bytes covers: a power of two.
pub(crate) const fn octets_per_word(columns: usize) -> usize {
    match columns {
        ..=2 => 4,
        3 | 4 => 2,
        _ => 1,
    }
}

/// Bytes that the words of a mask cover: some beyond the last octet.
pub(crate) const fn span(columns: usize) -> usize {
    8 * columns + 8 - octets_per_word(columns) * columns
}

/// The first word of a mask: its first octet begins with the key's row, whose bit is set in every column.
#[inline(always)]
pub(crate) fn head(columns: usize, word: u64, row: u64) -> u64 {
    let bytes = 0x0101_0101_0101_0101 >> (64 - 8 * columns);
    let bit = bytes << (row % 8);
    (word & !(bit - bytes)) | bit
}

/// The lowest bit of byte `c` is the parity of column `c` under the mask of a hash; other bits mean nothing. Of the first octet, rows before `first` do not count, and
/// that one does. Nothing if there are fewer bytes than [`span`].
#[inline(always)]
pub(super) fn scalar<const C: usize>(bytes: &[u8], h: u64, masks: &[u64; 8], first: u32) -> Option<u64> {
    let (bytes, taken) = (bytes.get(..span(C))?, octets_per_word(C));
    let word = |k: usize| match bytes.get(k * taken * C..).and_then(|rest| rest.first_chunk()) {
        Some(word) => u64::from_le_bytes(*word),
        None => 0,
    };
    let mut x = word(0) & head(C, fold(h, masks[0]), first.into());
    let mut k = 1;
    while k < 8 / taken {
        x ^= word(k) & fold(h, masks[k]);
        k += 1;
    }
    if taken == 4 {
        x ^= x >> (16 * C);
    }
    if taken >= 2 {
        x ^= x >> (8 * C);
    }
    x ^= x >> 4;
    x ^= x >> 2;
    Some(x ^ x >> 1)
}

/// Where byte `i % 8` of column `i / 8` is: in the words of the mask, and among the octets.
#[cfg(target_arch = "x86_64")]
struct Sorted<const C: usize>;

#[cfg(target_arch = "x86_64")]
impl<const C: usize> Sorted<C> {
    const WORDS: [u8; 64] = Self::by_column(octets_per_word(C));
    const BYTES: [u8; 64] = Self::by_column(8);

    /// The same where `taken` octets lie together, and then the next ones from the next eight bytes on.
    const fn by_column(taken: usize) -> [u8; 64] {
        let mut at = [0; 64];
        let mut i = 0;
        while i < 8 * C {
            let (column, octet) = (i / 8, i % 8);
            at[i] = (octet / taken * 8 + octet % taken * C + column) as u8;
            i += 1;
        }
        at
    }
}

/// The same for two to four columns, in bit `c`.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,avx512vbmi,avx512vpopcntdq,bmi2")]
pub(super) fn four_avx512<const C: usize>(bytes: &[u8], h: u64, masks: &[u64; 8], first: u32) -> Option<u64> {
    use std::arch::x86_64::*;
    if C > 4 || bytes.len() < 8 * C {
        return None;
    }
    // SAFETY: tables have 64 bytes; what is masked out of the octets is not read, and the rest is there.
    let (words, sorted, m, data) = unsafe {
        (
            _mm256_loadu_si256(Sorted::<C>::WORDS.as_ptr().cast()),
            _mm256_loadu_si256(Sorted::<C>::BYTES.as_ptr().cast()),
            _mm256_loadu_si256(masks.as_ptr().cast()),
            _mm256_maskz_loadu_epi8(u32::MAX >> (32 - 8 * C), bytes.as_ptr().cast()),
        )
    };
    let mask = _mm256_permutexvar_epi8(words, super::lanes::fold_avx2(_mm256_set1_epi64x(h as i64), m));
    let bit = 1i64 << first;
    // Rows of the mask from this one on, and this one.
    let mask = _mm256_ternarylogic_epi64::<0xea>(mask, _mm256_set1_epi64x(-bit), _mm256_set1_epi64x(bit));
    let x = _mm256_and_si256(mask, _mm256_permutexvar_epi8(sorted, data));
    Some(u64::from(_mm256_test_epi64_mask(_mm256_popcnt_epi64(x), _mm256_set1_epi64x(1))))
}

/// The same for up to eight columns.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vpopcntdq")]
pub(super) fn eight_avx512<const C: usize>(bytes: &[u8], h: u64, masks: &[u64; 8], first: u32) -> Option<u64> {
    use std::arch::x86_64::*;
    if bytes.len() < 8 * C {
        return None;
    }
    // SAFETY: tables have 64 bytes; what is masked out of the octets is not read, and the rest is there.
    let (words, sorted, m, data) = unsafe {
        (
            _mm512_loadu_si512(Sorted::<C>::WORDS.as_ptr().cast()),
            _mm512_loadu_si512(Sorted::<C>::BYTES.as_ptr().cast()),
            _mm512_loadu_si512(masks.as_ptr().cast()),
            _mm512_maskz_loadu_epi8(u64::MAX >> (64 - 8 * C), bytes.as_ptr().cast()),
        )
    };
    let h = _mm512_set1_epi64(h as i64);
    let (h_high, m_high) = (_mm512_srli_epi64::<32>(h), _mm512_srli_epi64::<32>(m));
    let (ll, hl) = (_mm512_mul_epu32(h, m), _mm512_mul_epu32(h_high, m));
    let (lh, hh) = (_mm512_mul_epu32(h, m_high), _mm512_mul_epu32(h_high, m_high));
    let t = _mm512_add_epi64(hl, _mm512_srli_epi64::<32>(ll));
    let u = _mm512_add_epi64(lh, _mm512_maskz_mov_epi32(0x5555, t));
    let high = _mm512_add_epi64(_mm512_add_epi64(hh, _mm512_srli_epi64::<32>(t)), _mm512_srli_epi64::<32>(u));
    let low = _mm512_mask_shuffle_epi32::<0b1010_0000>(ll, 0xaaaa, u);
    let mask = _mm512_permutexvar_epi8(words, _mm512_xor_si512(low, high));
    let bit = 1i64 << first;
    let mask = _mm512_ternarylogic_epi64::<0xea>(mask, _mm512_set1_epi64(-bit), _mm512_set1_epi64(bit));
    let x = _mm512_and_si512(mask, _mm512_permutexvar_epi8(sorted, data));
    Some(u64::from(_mm512_test_epi64_mask(_mm512_popcnt_epi64(x), _mm512_set1_epi64(1))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Isa, Kernel, Level, dispatch};
    use crate::hash::scramble;

    struct Ask<'a, const C: usize>(&'a [u8], u64, &'a [u64; 8], u32);
    impl<const C: usize> Kernel for Ask<'_, C> {
        type Output = Option<u32>;
        #[inline(always)]
        fn run<I: Isa>(self) -> Option<u32> {
            let found = I::columns::<C>(self.0, self.1, self.2, self.3)?;
            Some((0..C as u32).map(|column| (found >> (column * I::APART) & 1) << column).sum::<u64>() as u32)
        }
    }

    /// The definition, bit by bit.
    fn expected<const C: usize>(bytes: &[u8], h: u64, masks: &[u64; 8], first: u32) -> u32 {
        let taken = octets_per_word(C);
        let mut parities = 0;
        for i in 0..64 * C {
            let (octet, column, row) = (i / 8 / C, i / 8 % C, i as u32 % 8);
            let byte = octet % taken * C + column;
            let masked = fold(h, masks[octet / taken]) >> (8 * byte as u32 + row) & 1 == 1;
            let counts = if octet == 0 && row <= first { row == first } else { masked };
            parities ^= u32::from(counts && bytes[i / 8] >> row & 1 == 1) << column;
        }
        parities
    }

    fn every_level<const C: usize>() {
        let masks = std::array::from_fn(|k| scramble(k as u64) | 1);
        for i in 0..crate::arch::rounds(1000) {
            let bytes: Vec<u8> = (0..span(C) as u64 + i % 40).map(|j| scramble(i << 8 | j) as u8).collect();
            let (h, first) = (scramble(!i), i as u32 % 8);
            let right = expected::<C>(&bytes, h, &masks, first);
            for level in Level::available() {
                let found = dispatch(level, Ask::<C>(&bytes, h, &masks, first));
                assert_eq!(found, Some(right), "{level:?} {C} {i}");
                assert_eq!(dispatch(level, Ask::<C>(&bytes[..8 * C - 1], h, &masks, first)), None, "{level:?} {C} {i}");
            }
        }
    }

    #[test]
    fn parities_are_those_of_the_definition_at_every_level() {
        every_level::<2>();
        every_level::<3>();
        every_level::<4>();
        every_level::<5>();
        every_level::<6>();
        every_level::<7>();
        every_level::<8>();
    }
}
