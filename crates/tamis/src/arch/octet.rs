//! octets of ribbon rows -> sums, products, parities: the three inner loops of a ribbon.
//!
//! An *octet* is eight neighbouring rows. In elimination it is an [`Octet`]: not the rows but all their sums. In a table it is one
//! byte per column, bit `i` of which belongs to row `i`.

/// The part of an equation behind its octet: a value in the low bits, then one byte of coefficients per octet.
pub(crate) trait Word:
    Copy
    + Default
    + PartialEq
    + Send
    + Sync
    + std::fmt::Debug
    + std::ops::BitXor<Output = Self>
    + std::ops::BitAnd<Output = Self>
    + std::ops::Shr<u32, Output = Self>
    + std::ops::Shl<u32, Output = Self>
    + From<u32>
    + 'static
{
    /// The low 32 bits.
    fn low(self) -> u32;
    /// All bits, or none.
    fn all(yes: bool) -> Self;
}

macro_rules! words {
    ($($word:ty),*) => {
        $(impl Word for $word {
            #[inline(always)]
            fn low(self) -> u32 {
                self as u32
            }
            #[inline(always)]
            fn all(yes: bool) -> $word {
                <$word>::from(yes).wrapping_neg()
            }
        })*
    };
}
words!(u64, u128);

/// The rows of an octet, completely reduced (no row has a coefficient where another has its pivot), as sums: entry `x` of the first
/// sixteen is for equations whose head, the eight coefficients in this octet, has the low nibble `x`; the others are for high nibbles.
///
/// Without rows it is all zeros.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Octet<W> {
    /// What is added to the tail of an equation.
    pub(crate) tails: [W; 32],
    /// What is added to its head.
    pub(crate) heads: [u8; 32],
}

impl<W: Word> Octet<W> {
    /// No rows.
    pub(crate) fn empty() -> Octet<W> {
        Octet { tails: [W::default(); 32], heads: [0; 32] }
    }

    /// Takes all rows out.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.tails.fill(W::default());
        self.heads.fill(0);
    }

    /// Adds the rows to an equation that has coefficients at their pivots.
    #[inline(always)]
    pub(crate) fn reduce(&self, head: u8, tail: W) -> (u8, W) {
        let (low, high) = (head as usize & 15, 16 + (head as usize >> 4));
        (head ^ self.heads[low] ^ self.heads[high], tail ^ self.tails[low] ^ self.tails[high])
    }

    /// Where the row with this pivot is by itself, once all others are reduced.
    #[inline(always)]
    pub(crate) fn entry_of(pivot: u32) -> usize {
        (1 << (pivot % 4)) + 16 * (pivot as usize / 4 % 2)
    }

    /// Takes back the last row that was added: adding is its own inverse.
    pub(crate) fn remove(&mut self, pivot: u32, entries: u32) {
        let own = Self::entry_of(pivot);
        let (head, tail) = (self.heads[own], self.tails[own]);
        for x in (0..32).filter(|x| entries >> x & 1 == 1) {
            self.heads[x] ^= head;
            self.tails[x] = self.tails[x] ^ tail;
        }
    }
}

/// The nibble that an entry is for, as part of a head.
const NIBBLES: [u8; 32] = {
    let mut nibbles = [0; 32];
    let mut x = 0;
    while x < 16 {
        nibbles[x] = x as u8;
        nibbles[16 + x] = (x << 4) as u8;
        x += 1;
    }
    nibbles
};

/// Adds a reduced row, whose lowest coefficient is at `pivot`, to every entry that has this coefficient left. Returns which.
#[inline(always)]
pub(super) fn add<W: Word>(octet: &mut Octet<W>, pivot: u32, head: u8, tail: W) -> u32 {
    let mut entries = 0;
    for (x, nibble) in NIBBLES.iter().enumerate() {
        let left = (octet.heads[x] ^ nibble) >> pivot & 1;
        entries |= u32::from(left) << x;
        octet.heads[x] ^= head & left.wrapping_neg();
        octet.tails[x] = octet.tails[x] ^ (tail & W::all(left == 1));
    }
    entries
}

/// The same.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn add_avx2<W: Word>(octet: &mut Octet<W>, pivot: u32, head: u8, tail: W) -> u32 {
    use std::arch::x86_64::*;
    let (heads, tails) = (&raw mut octet.heads, &raw mut octet.tails);
    let wide = size_of::<W>() == 16;
    // SAFETY: 32 heads are one vector and 32 tails are 8 or 16, all of them part of the octet that is borrowed; loads and stores need
    // no alignment. A tail of 16 bytes fills half a vector, which is read as such.
    unsafe {
        let bit = _mm256_set1_epi8((1u8 << (pivot & 7)) as i8);
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
        for i in 0..32 / step {
            let here = _mm256_and_si256(_mm256_set1_epi64x((entries >> (step * i)) as i64), bits);
            let mask = _mm256_cmpeq_epi64(here, bits);
            let at = tails.add(i as usize);
            _mm256_storeu_si256(at, _mm256_xor_si256(_mm256_loadu_si256(at), _mm256_and_si256(mask, tail)));
        }
        entries
    }
}

/// The same.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
pub(super) fn add_avx512<W: Word>(octet: &mut Octet<W>, pivot: u32, head: u8, tail: W) -> u32 {
    use std::arch::x86_64::*;
    let (heads, tails) = (&raw mut octet.heads, &raw mut octet.tails);
    let wide = size_of::<W>() == 16;
    // SAFETY: as above, with 4 or 8 vectors of tails.
    unsafe {
        let old = _mm256_loadu_si256(heads.cast());
        let left = _mm256_xor_si256(old, _mm256_loadu_si256(NIBBLES.as_ptr().cast()));
        let entries = _mm256_test_epi8_mask(left, _mm256_set1_epi8((1u8 << (pivot & 7)) as i8));
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

/// Bit `j` of the result is the parity of column `j` under a band of 64 coefficients, for eight columns at most. Octet `k` of the
/// band starts at `k * stride`. Bytes that are not there are zero.
#[inline(always)]
pub(crate) fn parities(bytes: &[u8], stride: usize, band: u64) -> u32 {
    let mut sum = 0;
    for k in 0..8 {
        sum ^= load(bytes, k * stride) & (band >> (8 * k) & 255).wrapping_mul(0x0101_0101_0101_0101);
    }
    sum ^= sum >> 4;
    sum ^= sum >> 2;
    sum ^= sum >> 1;
    ((sum & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

/// Eight bytes, as far as they exist.
#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(octet) => u64::from_le_bytes(*octet),
        None => load_part(bytes, at),
    }
}

#[cold]
fn load_part(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).unwrap_or(&[]).iter().take(8).rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// The same for more than eight columns, and 32 at most.
#[inline(always)]
pub(crate) fn broad_parities(bytes: &[u8], stride: usize, band: u64) -> u32 {
    let (mut value, mut column) = (0, 0);
    loop {
        value |= parities(bytes.get(column..).unwrap_or(&[]), stride, band) << column;
        if column + 8 >= stride {
            return value;
        }
        // The last eight may overlap those before: equal bits.
        column = (stride - 8).min(column + 8);
    }
}

/// The same, up to sixteen columns in one pass and more in another; nothing if it would read too far.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(super) fn broad_parities_avx2(bytes: &[u8], stride: usize, band: u64) -> Option<u32> {
    use std::arch::x86_64::*;
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
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn odd_bytes(sum: std::arch::x86_64::__m128i) -> u32 {
    use std::arch::x86_64::*;
    // The parity of a byte is that of its nibbles together: a sign in a table of sixteen.
    let nibbles = _mm_and_si128(_mm_xor_si128(sum, _mm_srli_epi16::<4>(sum)), _mm_set1_epi8(15));
    let odd = _mm_setr_epi8(0, -1, -1, 0, -1, 0, 0, -1, -1, 0, 0, -1, 0, -1, -1, 0);
    _mm_movemask_epi8(_mm_shuffle_epi8(odd, nibbles)) as u32
}

/// Byte `k` of column `j` in a row of octets of 9 to 16 columns, in the order of `k + 8 j`.
#[cfg(target_arch = "x86_64")]
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

/// The same.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512bitalg,avx512vpopcntdq,bmi2")]
pub(super) fn broad_parities_avx512(bytes: &[u8], stride: usize, band: u64) -> Option<u32> {
    use std::arch::x86_64::*;
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

/// Two octets of up to eight columns: which of two bytes of the band belongs to each byte, and where to find the second octet.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const PAIRS: [[[u8; 16]; 2]; 9] = {
    let mut pairs = [[[0x80; 16]; 2]; 9];
    let mut stride = 0;
    while stride < 9 {
        let mut j = 0;
        while j < stride {
            pairs[stride][0][j] = 0;
            pairs[stride][0][stride + j] = 1;
            pairs[stride][1][j] = (stride + j) as u8;
            j += 1;
        }
        stride += 1;
    }
    pairs
};

/// The same, for strides up to eight; nothing if it would read too far.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn parities_avx2(bytes: &[u8], stride: usize, band: u64) -> Option<u32> {
    use std::arch::x86_64::*;
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
#[cfg(target_arch = "x86_64")]
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

/// The same, for strides up to eight: columns become words.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,bmi2")]
pub(super) fn parities_avx512(bytes: &[u8], stride: usize, band: u64) -> Option<u32> {
    use std::arch::x86_64::*;
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

/// Eight rows of eight bits (byte `i` is row `i`) -> eight columns (byte `j` is column `j`), and back.
#[inline(always)]
pub(crate) fn transpose(x: u64) -> u64 {
    let t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    let x = x ^ t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    let x = x ^ t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ (t << 28)
}

/// Back substitution for bands of 64 and values of a byte. Eight rows are an octet, each with its value in byte 0 and its coefficients
/// in the `k`-th octet from here in byte `k`; a free row is zero. From the last octet to the first, `out` gets eight columns each.
pub(super) fn solve(rows: &[[u64; 8]], out: &mut [u64]) {
    solve_rows(rows, out, u64::to_le_bytes);
}

/// The same for bands of 128.
pub(super) fn solve_wide(rows: &[[u128; 8]], out: &mut [u64]) {
    solve_rows(rows, out, u128::to_le_bytes);
}

#[inline(always)]
fn solve_rows<W: Copy, const BAND: usize>(rows: &[[W; 8]], out: &mut [u64], bytes: impl Fn(W) -> [u8; BAND]) {
    // The sums of rows 0..4 and of rows 4..8, for every nibble; those of octet o at o % BAND.
    let mut sums = [[[0u8; 16]; 2]; BAND];
    for (o, (rows, out)) in rows.iter().zip(out).enumerate().rev() {
        let mut solved = [0u8; 8];
        for (solved, &row) in solved.iter_mut().zip(rows) {
            let row = bytes(row);
            *solved = row[0];
            for k in 1..BAND {
                let [low, high] = &sums[(o + k) % BAND];
                *solved ^= low[row[k] as usize & 15] ^ high[row[k] as usize >> 4];
            }
        }
        for (half, sums) in sums[o % BAND].iter_mut().enumerate() {
            for x in 1..16usize {
                sums[x] = sums[x & (x - 1)] ^ solved[4 * half + x.trailing_zeros() as usize];
            }
        }
        *out = transpose(u64::from_le_bytes(solved));
    }
}

/// The same: a shuffle is sixteen look-ups. Low nibbles in the lower lane, high ones in the upper.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn solve_avx2(rows: &[[u64; 8]], out: &mut [u64]) {
    use std::arch::x86_64::*;
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

/// The same: eight products of bit matrices in one instruction. It multiplies the rows in the bytes of a word by the matrix whose
/// column `j` is byte `7 - j` of another.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) fn solve_avx512(rows: &[[u64; 8]], out: &mut [u64]) {
    use std::arch::x86_64::*;
    // SAFETY: the table has 64 bytes.
    let bytes = unsafe { _mm512_loadu_si512(COLUMNS[8].as_ptr().cast()) };
    let reverse = _mm512_set4_epi32(0x0809_0a0b, 0x0c0d_0e0f, 0x0001_0203, 0x0405_0607);
    let identity = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    let up = _mm512_setr_epi64(0, 0, 1, 2, 3, 4, 5, 6);
    // Word 0 leaves values as they are, word k has the matrix of the k-th octet from here.
    let mut later = _mm512_maskz_set1_epi64(1, 0x0102_0408_1020_4080);
    for (rows, out) in rows.iter().zip(out).rev() {
        // SAFETY: eight rows are 64 bytes.
        let rows = unsafe { _mm512_loadu_si512(rows.as_ptr().cast()) };
        let x = _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_permutexvar_epi8(bytes, rows), later);
        // The sum of all words, in every word.
        let x = _mm512_xor_si512(x, _mm512_shuffle_i64x2::<0b01_00_11_10>(x, x));
        let x = _mm512_xor_si512(x, _mm512_shuffle_i64x2::<0b10_11_00_01>(x, x));
        let x = _mm512_xor_si512(x, _mm512_shuffle_epi32::<0b01_00_11_10>(x));
        let columns = _mm512_gf2p8affine_epi64_epi8::<0>(identity, _mm512_shuffle_epi8(x, reverse));
        *out = _mm_cvtsi128_si64(_mm512_castsi512_si128(columns)) as u64;
        later = _mm512_mask_permutexvar_epi64(_mm512_shuffle_epi8(columns, reverse), 0b1111_1101, up, later);
    }
}

/// Bytes of eight rows of sixteen: byte `k` of row `i` becomes byte `i` of word `k`, for the first eight `k` and for the others.
#[cfg(target_arch = "x86_64")]
const WIDE_ROWS: [[u8; 64]; 2] = {
    let mut tables = [[0; 64]; 2];
    let mut i = 0;
    while i < 128 {
        tables[i / 64][i % 64] = (16 * (i % 8) + i / 8) as u8;
        i += 1;
    }
    tables
};

/// The same for bands of 128: sixteen products.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) fn solve_wide_avx512(rows: &[[u128; 8]], out: &mut [u64]) {
    use std::arch::x86_64::*;
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

#[cfg(target_arch = "aarch64")]
pub(super) mod neon {
    use std::arch::aarch64::*;

    use super::{NIBBLES, Octet, PAIRS, Word, transpose};

    /// Bit `i % 8` in byte `i`.
    const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

    /// Sixteen bytes of a table.
    #[inline]
    #[target_feature(enable = "neon")]
    fn table(bytes: &[u8; 16]) -> uint8x16_t {
        // SAFETY: there are sixteen.
        unsafe { vld1q_u8(bytes.as_ptr()) }
    }

    /// The band in both halves of a register.
    #[inline]
    #[target_feature(enable = "neon")]
    fn twice(band: u64) -> uint8x16_t {
        vreinterpretq_u8_u64(vdupq_n_u64(band))
    }

    /// Bit `i` is the parity of byte `i`.
    #[inline]
    #[target_feature(enable = "neon")]
    fn odd_bytes(sum: uint8x8_t) -> u32 {
        let odd = vtst_u8(vcnt_u8(sum), vdup_n_u8(1));
        vaddv_u8(vand_u8(odd, vget_low_u8(table(&BITS)))).into()
    }

    /// The twin of [`super::parities`] for strides up to eight, two octets at a time; nothing if it would read too far.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::arch) fn parities(bytes: &[u8], stride: usize, band: u64) -> Option<u32> {
        if bytes.len() < 6 * stride + 16 {
            return None;
        }
        let stride = stride.min(8);
        let [spread, second] = &PAIRS[stride];
        let (spread, second) = (table(spread), table(second));
        let mut sum = vdupq_n_u8(0);
        for k in [0, 2, 4, 6] {
            // SAFETY: the last load ends at 6 * stride + 16, which `bytes` has.
            let octets = unsafe { vld1q_u8(bytes.as_ptr().add(k * stride)) };
            // What is beyond the table is zero, and stays beyond it.
            let mask = vqtbl1q_u8(twice(band), vaddq_u8(spread, vdupq_n_u8(k as u8)));
            sum = veorq_u8(sum, vandq_u8(octets, mask));
        }
        Some(odd_bytes(veor_u8(vget_low_u8(sum), vqtbl1_u8(sum, vget_low_u8(second)))))
    }

    /// The twin of [`super::broad_parities`], up to sixteen columns in one pass and more in another; nothing if it would read too far.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::arch) fn broad_parities(bytes: &[u8], stride: usize, band: u64) -> Option<u32> {
        let from = stride.saturating_sub(16);
        if !(9..=32).contains(&stride) || bytes.len() < from + 7 * stride + 16 {
            return None;
        }
        let half = |from: usize| {
            let mut sum = vdupq_n_u8(0);
            for k in 0..8 {
                // SAFETY: sixteen bytes, the last of which ends where `bytes` was found to reach.
                let octet = unsafe { vld1q_u8(bytes.as_ptr().add(from + k * stride)) };
                sum = veorq_u8(sum, vandq_u8(octet, vqtbl1q_u8(twice(band), vdupq_n_u8(k as u8))));
            }
            odd_bytes(vget_low_u8(sum)) | odd_bytes(vget_high_u8(sum)) << 8
        };
        let low = half(0);
        // The last sixteen may overlap the first: equal bits.
        let value = if from == 0 { low } else { low | half(from) << from };
        Some(value & u32::MAX >> (32 - stride))
    }

    /// The twin of [`super::add`].
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::arch) fn add<W: Word>(octet: &mut Octet<W>, pivot: u32, head: u8, tail: W) -> u32 {
        let (heads, tails) = (octet.heads.as_mut_ptr(), octet.tails.as_mut_ptr().cast::<u8>());
        let bit = vdupq_n_u8(1 << (pivot & 7));
        // Tails in a register, and the entries of the first one by byte.
        let step = 16 / size_of::<W>();
        let first = vcombine_u8(vdup_n_u8(0), vdup_n_u8(step as u8 - 1));
        // SAFETY: a tail has eight bytes, or sixteen.
        let tail = unsafe {
            match step {
                2 => vreinterpretq_u8_u64(vld1q_dup_u64((&raw const tail).cast())),
                _ => vld1q_u8((&raw const tail).cast()),
            }
        };
        let mut marks = [vdupq_n_u8(0); 2];
        for (half, marks) in marks.iter_mut().enumerate() {
            // SAFETY: 32 heads and 32 nibbles are two registers each; what is written is part of the octet that is borrowed.
            let has = unsafe {
                let heads = heads.add(16 * half);
                let old = vld1q_u8(heads);
                let has = vtstq_u8(veorq_u8(old, vld1q_u8(NIBBLES.as_ptr().add(16 * half))), bit);
                vst1q_u8(heads, veorq_u8(old, vandq_u8(has, vdupq_n_u8(head))));
                has
            };
            for i in 0..16 / step {
                let mask = vqtbl1q_u8(has, vaddq_u8(first, vdupq_n_u8((i * step) as u8)));
                // SAFETY: sixteen entries are `16 / step` registers of tails.
                unsafe {
                    let at = tails.add(16 * (16 / step * half + i));
                    vst1q_u8(at, veorq_u8(vld1q_u8(at), vandq_u8(mask, tail)));
                }
            }
            *marks = vandq_u8(has, table(&BITS));
        }
        // Eight bytes with a bit each become one, by three sums of neighbours.
        let sum = vpaddq_u8(marks[0], marks[1]);
        let sum = vpaddq_u8(sum, sum);
        vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vpaddq_u8(sum, sum)))
    }

    /// Entry `x` is row `i` if bit `i % 4` of `x` is set, and beyond any table if not.
    const ROWS: [[u8; 16]; 8] = {
        let mut rows = [[255; 16]; 8];
        let mut at = 0;
        while at < 128 {
            let (i, x) = (at / 16, at % 16);
            if x >> (i % 4) & 1 == 1 {
                rows[i][x] = i as u8;
            }
            at += 1;
        }
        rows
    };

    /// The twin of [`super::solve`] and [`super::solve_wide`], for eight rows that fill `N` registers: sixteen look-ups at a time.
    #[target_feature(enable = "neon")]
    pub(in crate::arch) fn solve<W: Word, const N: usize>(rows: &[[W; 8]], out: &mut [u64]) {
        const { assert!(size_of::<[W; 8]>() == 16 * N) };
        // The sums of rows 0..4 and of rows 4..8; those of octet o at o % 2 and o / 2 % N.
        let mut sums = [[[vdupq_n_u8(0); 2]; N]; 2];
        for (o, (rows, out)) in rows.iter().zip(out).enumerate().rev() {
            let mut bytes = [vdupq_n_u8(0); N];
            for (i, bytes) in bytes.iter_mut().enumerate() {
                // SAFETY: eight rows are `N` registers.
                *bytes = unsafe { vld1q_u8(rows.as_ptr().cast::<u8>().add(16 * i)) };
            }
            // Shuffling the first half into the second moves the top bit of a byte's place to the bottom. Three times, and the
            // three bits of the row are there: register i has bytes 2 i and 2 i + 1 of all rows.
            for _ in 0..3 {
                let old = bytes;
                for i in 0..N / 2 {
                    let (a, b) = (old[i], old[i + N / 2]);
                    (bytes[2 * i], bytes[2 * i + 1]) = (vzip1q_u8(a, b), vzip2q_u8(a, b));
                }
            }
            let mut found = [vdupq_n_u8(0); 2];
            for (i, &bytes) in bytes.iter().enumerate() {
                let (low, high) = (vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8::<4>(bytes));
                for (odd, found) in found.iter_mut().enumerate() {
                    // Byte 0 is the value.
                    if i + odd > 0 {
                        let at = o + 2 * i + odd;
                        let sums = sums[at % 2][at / 2 % N];
                        *found = veorq_u8(*found, veorq_u8(vqtbl1q_u8(sums[0], low), vqtbl1q_u8(sums[1], high)));
                    }
                }
            }
            let sum = veor_u8(vget_low_u8(found[0]), vget_high_u8(found[1]));
            let solved = veor_u8(vget_low_u8(bytes[0]), sum);
            let both = vcombine_u8(solved, solved);
            for (half, sums) in sums[o % 2][o / 2 % N].iter_mut().enumerate() {
                *sums = vdupq_n_u8(0);
                for i in 0..4 {
                    *sums = veorq_u8(*sums, vqtbl1q_u8(both, table(&ROWS[4 * half + i])));
                }
            }
            *out = transpose(vget_lane_u64::<0>(vreinterpret_u64_u8(solved)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Isa, Kernel, Level, dispatch};
    use crate::hash::scramble;

    struct Parities<'a>(&'a [u8], usize, u64);
    impl Kernel for Parities<'_> {
        type Output = Option<u32>;
        #[inline(always)]
        fn run<I: Isa>(self) -> Option<u32> {
            I::parities(self.0, self.1, self.2)
        }
    }

    struct BroadParities<'a>(&'a [u8], usize, u64);
    impl Kernel for BroadParities<'_> {
        type Output = Option<u32>;
        #[inline(always)]
        fn run<I: Isa>(self) -> Option<u32> {
            I::broad_parities(self.0, self.1, self.2)
        }
    }

    /// The definition: the parity of each column, bit by bit.
    fn expected(bytes: &[u8], stride: usize, band: u64) -> u32 {
        let bit = |column: usize, row: usize| {
            let byte = bytes.get(row / 8 * stride + column).copied().unwrap_or(0);
            u32::from(byte >> (row % 8) & 1) & (band >> row) as u32 & 1
        };
        (0..stride).map(|column| (0..64).fold(0, |sum, row| sum ^ bit(column, row)) << column).sum()
    }

    #[test]
    fn parities_are_those_of_the_definition_at_every_level() {
        for i in 0..4000u64 {
            let stride = 1 + i as usize % 8;
            let bytes: Vec<u8> = (0..i % 150).map(|j| scramble(i << 8 | j) as u8).collect();
            let (band, mask) = (scramble(i), u32::MAX >> (32 - stride));
            let right = expected(&bytes, stride, band);
            assert_eq!(parities(&bytes, stride, band) & mask, right, "{stride} {i}");
            for level in Level::available() {
                let found = dispatch(level, Parities(&bytes, stride, band));
                assert!(found.is_none_or(|found| found & mask == right), "{level:?} {stride} {i}");
                assert!(found.is_some() || bytes.len() < 80, "{level:?} {stride} {i}");
            }
        }
        for i in 0..2000u64 {
            let stride = 9 + i as usize % 24;
            let bytes: Vec<u8> = (0..i % 300).map(|j| scramble(i << 9 | j) as u8).collect();
            let right = expected(&bytes, stride, scramble(i));
            assert_eq!(broad_parities(&bytes, stride, scramble(i)), right, "{stride} {i}");
            for level in Level::available() {
                let found = dispatch(level, BroadParities(&bytes, stride, scramble(i)));
                assert!(found.is_none_or(|found| found == right), "{level:?} {stride} {i}");
                assert!(found.is_some() || bytes.len() < 8 * stride + 16, "{level:?} {stride} {i}");
            }
        }
    }

    struct Add<'a, W>(&'a mut Octet<W>, u32, u8, W);
    impl<W: Word> Kernel for Add<'_, W> {
        type Output = u32;
        #[inline(always)]
        fn run<I: Isa>(self) -> u32 {
            I::add_row(self.0, self.1, self.2, self.3)
        }
    }

    /// Rows that come in reduce every equation alike, at every level, and go out again.
    fn rows_come_and_go<W: Word>(tail: impl Fn(u64) -> W) {
        for level in Level::available() {
            for seed in 0..200 {
                let (mut octet, mut twin) = (Octet::empty(), Octet::empty());
                let mut added = vec![];
                for i in 0..12 {
                    let random = scramble(seed << 8 | i);
                    let (head, tail) = octet.reduce(random as u8, tail(random));
                    if head != 0 {
                        let pivot = head.trailing_zeros();
                        let entries = dispatch(level, Add(&mut octet, pivot, head, tail));
                        assert_eq!(add(&mut twin, pivot, head, tail), entries, "{level:?}");
                        assert!(octet.heads == twin.heads && octet.tails == twin.tails, "{level:?}");
                        assert_eq!(octet.reduce(random as u8, W::default()).0, 0);
                        added.push((pivot, entries));
                    }
                }
                for (pivot, entries) in added.into_iter().rev() {
                    octet.remove(pivot, entries);
                }
                assert!(octet.heads == [0; 32] && octet.tails == [W::default(); 32], "{level:?}");
            }
        }
    }

    #[test]
    fn rows_of_either_size_come_and_go() {
        rows_come_and_go::<u64>(|random| scramble(!random));
        rows_come_and_go::<u128>(|random| u128::from(scramble(!random)) << 64 | u128::from(random));
    }

    struct Solve<'a>(&'a [[u64; 8]], &'a [[u128; 8]], [&'a mut [u64]; 2]);
    impl Kernel for Solve<'_> {
        type Output = ();
        #[inline(always)]
        fn run<I: Isa>(self) {
            let [narrow, wide] = self.2;
            I::solve(self.0, narrow);
            I::solve_wide(self.1, wide);
        }
    }

    #[test]
    fn every_level_solves_alike() {
        for len in [0, 1, 2, 9, 17, 100] {
            let rows: Vec<[u64; 8]> = (0..len).map(|o| std::array::from_fn(|i| scramble(o << 3 | i as u64))).collect();
            let wide: Vec<[u128; 8]> =
                rows.iter().map(|rows| rows.map(|row| u128::from(scramble(row)) << 64 | u128::from(row))).collect();
            // Rows whose second half is empty are those of bands of 64.
            let half: Vec<[u128; 8]> = rows.iter().map(|rows| rows.map(u128::from)).collect();
            let mut right = [vec![0; rows.len()], vec![0; rows.len()], vec![0; rows.len()]];
            solve(&rows, &mut right[0]);
            solve_wide(&wide, &mut right[1]);
            solve_wide(&half, &mut right[2]);
            assert_eq!(right[0], right[2], "{len}");
            for level in Level::available() {
                let (mut narrow, mut found) = (vec![1; rows.len()], vec![1; rows.len()]);
                dispatch(level, Solve(&rows, &wide, [&mut narrow, &mut found]));
                assert_eq!([&narrow, &found], [&right[0], &right[1]], "{level:?} {len}");
            }
        }
    }
}
