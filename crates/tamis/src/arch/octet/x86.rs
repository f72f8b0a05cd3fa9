//! an [`Octet`] or bytes of a table -> sums, parities, solved rows, with AVX2 and AVX-512: the twins of the portable loops.

use std::arch::x86_64::*;

use super::{NIBBLES, Octet, PAIRS, Word, transpose};

/// The twin of [`super::add`] with AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn add_avx2<W: Word>(octet: &mut Octet<W>, head: u8, tail: W) -> u32 {
    let (heads, tails) = (&raw mut octet.heads, &raw mut octet.tails);
    let wide = size_of::<W>() == 16;
    // SAFETY: 32 heads are one vector and 32 tails are 8 or 16, all of them part of the octet that is borrowed; loads and stores need
    // no alignment. A tail of 16 bytes fills half a vector, which is read as such.
    unsafe {
        let bit = _mm256_set1_epi8((head & head.wrapping_neg()) as i8);
        let old = _mm256_loadu_si256(heads.cast());
        let nibbles = _mm256_loadu_si256(NIBBLES.as_ptr().cast());
        let has = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_xor_si256(old, nibbles), bit), bit);
        let new = _mm256_xor_si256(old, _mm256_and_si256(has, _mm256_set1_epi8(head as i8)));
        _mm256_storeu_si256(heads.cast(), new);
        let entries = _mm256_movemask_epi8(has) as u32;
        let tails = tails.cast::<__m256i>();
        let (tail, bits, step) = match wide {
            false => (_mm256_set1_epi64x(std::mem::transmute_copy::<W, i64>(&tail)), _mm256_setr_epi64x(1, 2, 4, 8), 4),
            true => {
                let tail = _mm_loadu_si128((&raw const tail).cast());
                (_mm256_broadcastsi128_si256(tail), _mm256_setr_epi64x(1, 1, 2, 2), 2)
            }
        };
        // The bits of entries that are not added to.
        let others = _mm256_set1_epi64x(i64::from(!entries));
        for i in 0..32 / step {
            let bits = _mm256_sll_epi64(bits, _mm_cvtsi32_si128(step * i));
            let mask = _mm256_cmpeq_epi64(_mm256_and_si256(others, bits), _mm256_setzero_si256());
            let at = tails.add(i as usize);
            _mm256_storeu_si256(at, _mm256_xor_si256(_mm256_loadu_si256(at), _mm256_and_si256(mask, tail)));
        }
        entries
    }
}

/// The twin of [`super::add`] with AVX-512.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(in crate::arch) fn add_avx512<W: Word>(octet: &mut Octet<W>, head: u8, tail: W) -> u32 {
    let (heads, tails) = (&raw mut octet.heads, &raw mut octet.tails);
    let wide = size_of::<W>() == 16;
    // SAFETY: as above, with 4 or 8 vectors of tails.
    unsafe {
        let old = _mm256_loadu_si256(heads.cast());
        let left = _mm256_xor_si256(old, _mm256_loadu_si256(NIBBLES.as_ptr().cast()));
        let entries = _mm256_test_epi8_mask(left, _mm256_set1_epi8((head & head.wrapping_neg()) as i8));
        _mm256_storeu_si256(heads.cast(), _mm256_xor_si256(old, _mm256_maskz_set1_epi8(entries, head as i8)));
        let tails = tails.cast::<__m512i>();
        if wide {
            let tail = _mm512_broadcast_i64x2(_mm_loadu_si128((&raw const tail).cast()));
            for i in 0..8 {
                let mask = 3 * _pdep_u32(entries >> (4 * i), 0x55);
                let at = tails.add(i);
                let x = _mm512_loadu_si512(at);
                _mm512_storeu_si512(at, _mm512_mask_xor_epi64(x, mask as u8, x, tail));
            }
        } else {
            let tail = _mm512_set1_epi64(std::mem::transmute_copy::<W, i64>(&tail));
            for i in 0..4 {
                let at = tails.add(i);
                let x = _mm512_loadu_si512(at);
                _mm512_storeu_si512(at, _mm512_mask_xor_epi64(x, (entries >> (8 * i)) as u8, x, tail));
            }
        }
        entries
    }
}

/// The twin of [`super::broad_parities`] with AVX2, up to sixteen columns in one pass and more in another; nothing if it would read too far.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(in crate::arch) fn broad_parities_avx2(bytes: &[u8], stride: usize, band: u64) -> Option<u32> {
    let from = stride.saturating_sub(16);
    if stride > 32 || bytes.len() < from + 7 * stride + 16 {
        return None;
    }
    let band = _mm256_set1_epi64x(band as i64);
    let half = |from: usize| {
        let mut sum = _mm256_setzero_si256();
        for k in [0, 2, 4, 6] {
            // SAFETY: two loads of sixteen bytes, the last of which ends where `bytes` was found to reach.
            let octets = unsafe {
                let octet = |k: usize| _mm_loadu_si128(bytes.as_ptr().add(from + k * stride).cast());
                _mm256_set_m128i(octet(k + 1), octet(k))
            };
            let spread = _mm256_set_m128i(_mm_set1_epi8(k as i8 + 1), _mm_set1_epi8(k as i8));
            sum = _mm256_xor_si256(sum, _mm256_and_si256(octets, _mm256_shuffle_epi8(band, spread)));
        }
        let sum = _mm_xor_si128(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        odd_bytes(sum)
    };
    let low = half(0);
    // The last sixteen may overlap the first: equal bits.
    let value = if from == 0 { low } else { low | half(from) << from };
    Some(_bzhi_u32(value, stride as u32))
}

/// Bit `i` is the parity of byte `i`.
#[inline]
#[target_feature(enable = "avx2")]
fn odd_bytes(sum: __m128i) -> u32 {
    // The parity of a byte is that of its nibbles together: a sign in a table of sixteen.
    let nibbles = _mm_and_si128(_mm_xor_si128(sum, _mm_srli_epi16::<4>(sum)), _mm_set1_epi8(15));
    let odd = _mm_setr_epi8(0, -1, -1, 0, -1, 0, 0, -1, -1, 0, 0, -1, 0, -1, -1, 0);
    _mm_movemask_epi8(_mm_shuffle_epi8(odd, nibbles)) as u32
}

/// Byte `k` of column `j` in a row of octets of 9 to 16 columns, in the order of `k + 8 j`.
const BROAD_COLUMNS: [[u8; 128]; 8] = {
    let mut columns = [[0; 128]; 8];
    let mut i = 0;
    while i < 8 * 128 {
        let (stride, at) = (9 + i / 128, i % 128);
        columns[i / 128][at] = (at % 8 * stride + at / 8) as u8 & 127;
        i += 1;
    }
    columns
};

/// The twin of [`super::broad_parities`] with AVX-512; nothing if it would read too far.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512bitalg,avx512vpopcntdq,bmi2")]
pub(in crate::arch) fn broad_parities_avx512(bytes: &[u8], stride: usize, band: u64) -> Option<u32> {
    if !(9..=32).contains(&stride) || bytes.len() < 8 * stride {
        return None;
    }
    let at = bytes.as_ptr();
    if stride <= 16 {
        let columns = &BROAD_COLUMNS[stride - 9];
        // SAFETY: eight octets of 9 to 16 bytes are 64 bytes and up to 64 more, and what is masked out is not read; the table has 128 bytes.
        let [first, second, low, high] = unsafe {
            [
                _mm512_loadu_si512(at.cast()),
                _mm512_maskz_loadu_epi8(_bzhi_u64(u64::MAX, 8 * stride as u32 - 64), at.add(64).cast()),
                _mm512_loadu_si512(columns.as_ptr().cast()),
                _mm512_loadu_si512(columns.as_ptr().add(64).cast()),
            ]
        };
        let band = _mm512_set1_epi64(band as i64);
        let odd = |columns: __m512i| {
            let words = _mm512_and_si512(_mm512_permutex2var_epi8(first, columns, second), band);
            u32::from(_mm512_test_epi64_mask(_mm512_popcnt_epi64(words), _mm512_set1_epi64(1)))
        };
        return Some(_bzhi_u32(odd(low) | odd(high) << 8, stride as u32));
    }
    let band = _mm256_set1_epi64x(band as i64);
    let mut sum = _mm256_setzero_si256();
    for k in 0..8 {
        // SAFETY: what is masked out is not read, and `bytes` has eight octets.
        let octet = unsafe { _mm256_maskz_loadu_epi8(_bzhi_u32(u32::MAX, stride as u32), at.add(k * stride).cast()) };
        let spread = _mm256_shuffle_epi8(band, _mm256_set1_epi8(k as i8));
        sum = _mm256_xor_si256(sum, _mm256_and_si256(octet, spread));
    }
    Some(_mm256_test_epi8_mask(_mm256_popcnt_epi8(sum), _mm256_set1_epi8(1)))
}

/// The twin of [`super::parities`] with AVX2, for strides up to eight; nothing if it would read too far.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn parities_avx2(bytes: &[u8], stride: usize, band: u64) -> Option<u32> {
    if bytes.len() < 6 * stride + 16 {
        return None;
    }
    let stride = stride.min(8);
    let [spread, second] = &PAIRS[stride];
    // SAFETY: the four loads end at 6 * stride + 16 at most, which `bytes` has; tables have 16 bytes; nothing needs alignment.
    let (first, last, spread, second) = unsafe {
        let octets = |k: usize| _mm_loadu_si128(bytes.as_ptr().add(k * stride).cast());
        let table = |table: &[u8; 16]| _mm_loadu_si128(table.as_ptr().cast());
        (_mm256_set_m128i(octets(2), octets(0)), _mm256_set_m128i(octets(6), octets(4)), table(spread), table(second))
    };
    let band = _mm256_set1_epi64x(band as i64);
    let low =
        _mm256_add_epi8(_mm256_broadcastsi128_si256(spread), _mm256_setr_m128i(_mm_setzero_si128(), _mm_set1_epi8(2)));
    let high = _mm256_add_epi8(low, _mm256_set1_epi8(4));
    let sum = _mm256_xor_si256(
        _mm256_and_si256(first, _mm256_shuffle_epi8(band, low)),
        _mm256_and_si256(last, _mm256_shuffle_epi8(band, high)),
    );
    let sum = _mm_xor_si128(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
    let sum = _mm_xor_si128(sum, _mm_shuffle_epi8(sum, second));
    Some(odd_bytes(sum))
}

/// Byte `k` of column `j` in a row of octets.
const COLUMNS: [[u8; 64]; 9] = {
    let mut columns = [[0; 64]; 9];
    let mut stride = 0;
    while stride < 9 {
        let mut i = 0;
        while i < 64 {
            columns[stride][i] = ((i % 8) * stride + i / 8) as u8 & 63;
            i += 1;
        }
        stride += 1;
    }
    columns
};

/// The twin of [`super::parities`] with AVX-512, for strides up to eight: columns become words.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,bmi2")]
pub(in crate::arch) fn parities_avx512(bytes: &[u8], stride: usize, band: u64) -> Option<u32> {
    if bytes.len() < 8 * stride {
        return None;
    }
    let stride = stride.min(8);
    let columns = &COLUMNS[stride];
    // SAFETY: what is masked out is not read, and `bytes` has eight octets; the table has 64 bytes.
    let (octets, columns) = unsafe {
        let mask = _bzhi_u64(u64::MAX, 8 * stride as u32);
        (_mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()), _mm512_loadu_si512(columns.as_ptr().cast()))
    };
    let words = _mm512_and_si512(_mm512_permutexvar_epi8(columns, octets), _mm512_set1_epi64(band as i64));
    Some(u32::from(_mm512_test_epi64_mask(_mm512_popcnt_epi64(words), _mm512_set1_epi64(1))))
}

/// The twin of [`super::solve`] with AVX2: a shuffle is sixteen look-ups. Low nibbles in the lower lane, high ones in the upper.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn solve_avx2(rows: &[[u64; 8]], out: &mut [u64]) {
    let mut sums = [_mm256_setzero_si256(); 8];
    let pairs = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    let (nibble, shift) = (_mm256_set1_epi8(15), _mm256_setr_epi64x(0, 0, 4, 4));
    let numbers = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    for (o, (rows, out)) in rows.iter().zip(out).enumerate().rev() {
        let two = |i: usize| _mm_shuffle_epi8(_mm_set_epi64x(rows[i + 1] as i64, rows[i] as i64), pairs);
        let (a, b, c, d) = (two(0), two(2), two(4), two(6));
        let (ab, ab_high) = (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b));
        let (cd, cd_high) = (_mm_unpacklo_epi16(c, d), _mm_unpackhi_epi16(c, d));
        // Bytes 2 i and 2 i + 1 of all eight rows.
        let bytes = [
            _mm_unpacklo_epi32(ab, cd),
            _mm_unpackhi_epi32(ab, cd),
            _mm_unpacklo_epi32(ab_high, cd_high),
            _mm_unpackhi_epi32(ab_high, cd_high),
        ];
        let (mut even, mut odd) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for (i, &bytes) in bytes.iter().enumerate() {
            let nibbles = _mm256_and_si256(_mm256_srlv_epi64(_mm256_broadcastsi128_si256(bytes), shift), nibble);
            if i > 0 {
                even = _mm256_xor_si256(even, _mm256_shuffle_epi8(sums[(o + 2 * i) % 8], nibbles));
            }
            odd = _mm256_xor_si256(odd, _mm256_shuffle_epi8(sums[(o + 2 * i + 1) % 8], nibbles));
        }
        let both = _mm256_blend_epi32::<0b1100_1100>(even, odd);
        let sum = _mm_xor_si128(_mm256_castsi256_si128(both), _mm256_extracti128_si256::<1>(both));
        let solved = _mm_xor_si128(bytes[0], _mm_xor_si128(sum, _mm_unpackhi_epi64(sum, sum)));
        // Row i belongs to the sums whose number has bit i.
        let solved_twice = _mm256_broadcastq_epi64(solved);
        let mut new = _mm256_setzero_si256();
        for i in 0..4 {
            let row = _mm256_shuffle_epi8(solved_twice, _mm256_setr_m128i(_mm_set1_epi8(i), _mm_set1_epi8(i + 4)));
            let bit = _mm256_set1_epi8(1 << i);
            let has = _mm256_cmpeq_epi8(_mm256_and_si256(numbers, bit), bit);
            new = _mm256_xor_si256(new, _mm256_and_si256(row, has));
        }
        sums[o % 8] = new;
        *out = transpose(_mm_cvtsi128_si64(solved) as u64);
    }
}

/// The twin of [`super::solve`] with AVX-512: eight products of bit matrices in one instruction. It multiplies the rows in the bytes of a
/// word by the matrix whose column `j` is byte `7 - j` of another. The product with the octet before is apart: the others do not wait for it.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(in crate::arch) fn solve_avx512(rows: &[[u64; 8]], out: &mut [u64]) {
    // SAFETY: the table has 64 bytes.
    let bytes = unsafe { _mm512_loadu_si512(COLUMNS[8].as_ptr().cast()) };
    let reverse = _mm512_set4_epi32(0x0809_0a0b, 0x0c0d_0e0f, 0x0001_0203, 0x0405_0607);
    let identity = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    let (second, up) = (_mm512_set1_epi64(1), _mm512_setr_epi64(0, 1, 0, 2, 3, 4, 5, 6));
    // Word 0 leaves values as they are, word 1 is zero, word k has the matrix of the k-th octet from here; `next` has that of the first.
    let mut later = _mm512_maskz_set1_epi64(1, 0x0102_0408_1020_4080);
    let mut next = _mm512_setzero_si512();
    for (rows, out) in rows.iter().zip(out).rev() {
        // SAFETY: eight rows are 64 bytes.
        let rows = unsafe { _mm512_loadu_si512(rows.as_ptr().cast()) };
        let bytes = _mm512_permutexvar_epi8(bytes, rows);
        let x = _mm512_gf2p8affine_epi64_epi8::<0>(bytes, later);
        // The sum of all words, in every word.
        let x = _mm512_xor_si512(x, _mm512_shuffle_i64x2::<0b01_00_11_10>(x, x));
        let x = _mm512_xor_si512(x, _mm512_shuffle_i64x2::<0b10_11_00_01>(x, x));
        let x = _mm512_xor_si512(x, _mm512_shuffle_epi32::<0b01_00_11_10>(x));
        let x = _mm512_xor_si512(x, _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_permutexvar_epi64(second, bytes), next));
        let columns = _mm512_gf2p8affine_epi64_epi8::<0>(identity, _mm512_shuffle_epi8(x, reverse));
        *out = _mm_cvtsi128_si64(_mm512_castsi512_si128(columns)) as u64;
        later = _mm512_mask_permutexvar_epi64(next, 0b1111_1011, up, later);
        next = _mm512_shuffle_epi8(columns, reverse);
    }
}

/// Bytes of eight rows of sixteen: byte `k` of row `i` becomes byte `i` of word `k`, for the first eight `k` and for the others.
const WIDE_ROWS: [[u8; 64]; 2] = {
    let mut tables = [[0; 64]; 2];
    let mut i = 0;
    while i < 128 {
        tables[i / 64][i % 64] = (16 * (i % 8) + i / 8) as u8;
        i += 1;
    }
    tables
};

/// The twin of [`super::solve_wide`] with AVX-512: sixteen products.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(in crate::arch) fn solve_wide_avx512(rows: &[[u128; 8]], out: &mut [u64]) {
    // SAFETY: the tables have 64 bytes.
    let [near, far] = unsafe { [0, 1].map(|half| _mm512_loadu_si512(WIDE_ROWS[half].as_ptr().cast())) };
    let reverse = _mm512_set4_epi32(0x0809_0a0b, 0x0c0d_0e0f, 0x0001_0203, 0x0405_0607);
    let identity = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    let up = _mm512_setr_epi64(0, 0, 1, 2, 3, 4, 5, 6);
    // Words as in `solve_avx512`; those of `beyond` have the matrices from the eighth octet on.
    let mut later = _mm512_maskz_set1_epi64(1, 0x0102_0408_1020_4080);
    let mut beyond = _mm512_setzero_si512();
    for (rows, out) in rows.iter().zip(out).rev() {
        // SAFETY: eight rows are 128 bytes.
        let [low, high] = unsafe { [0, 1].map(|half| _mm512_loadu_si512(rows.as_ptr().cast::<__m512i>().add(half))) };
        let x = _mm512_xor_si512(
            _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_permutex2var_epi8(low, near, high), later),
            _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_permutex2var_epi8(low, far, high), beyond),
        );
        let x = _mm512_xor_si512(x, _mm512_shuffle_i64x2::<0b01_00_11_10>(x, x));
        let x = _mm512_xor_si512(x, _mm512_shuffle_i64x2::<0b10_11_00_01>(x, x));
        let x = _mm512_xor_si512(x, _mm512_shuffle_epi32::<0b01_00_11_10>(x));
        let columns = _mm512_gf2p8affine_epi64_epi8::<0>(identity, _mm512_shuffle_epi8(x, reverse));
        *out = _mm_cvtsi128_si64(_mm512_castsi512_si128(columns)) as u64;
        beyond = _mm512_alignr_epi64::<7>(beyond, later);
        later = _mm512_mask_permutexvar_epi64(_mm512_shuffle_epi8(columns, reverse), 0b1111_1101, up, later);
    }
}
