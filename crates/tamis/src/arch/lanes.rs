//! a digest and the numbers of some columns -> their parities: steered columns and an exact bit in one go.
//!
//! Every column hashes a key with a salt of its own, scales the hash to a place and multiplies it to a band. In the lanes of a register
//! the products of up to three columns and the bit are made at once.

use crate::hash::{Digest, fold, reduce};

/// The bit and at most so many columns.
pub(crate) const LANES: usize = 5;

/// Numbers of an exact bit, in lane 0, and of columns. All but salts, starts in the file and factors are below 2^32; lanes that are
/// not used are zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    salts: [[u64; LANES]; 2],
    /// Rows of a strip where bands start.
    rows: [u64; LANES],
    strips: [u64; LANES],
    /// Bytes of a strip.
    octets: [u64; LANES],
    /// Where the bytes start in the file.
    at: [u64; LANES],
    /// What multiplies a hash to a band.
    factors: [u64; LANES],
}

/// Numbers of one column. A bit has one octet to a strip, and its hash is a part of its band.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    pub(crate) salt: [u64; 2],
    pub(crate) rows: u64,
    pub(crate) strips: u64,
    pub(crate) octets: u64,
    pub(crate) at: u64,
    pub(crate) factor: u64,
}

/// Where a query reads, and under which coefficients. A bit has a second word behind the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) at: [u64; LANES],
    /// For the second word of the bit, and for those of the columns.
    bands: [u64; LANES],
    /// The octet of the bit, and the coefficients of its first word.
    pub(crate) octet: u64,
    pub(crate) band: u64,
}

impl Lanes {
    /// Adds a lane; nothing if a number is too large or there are too many.
    pub(crate) fn set(&mut self, i: usize, lane: Lane) -> Option<()> {
        let Lane { salt, rows, strips, octets, at, factor } = lane;
        if (rows | strips | octets) >> 32 != 0 {
            return None;
        }
        for (all, one) in self.salts.iter_mut().zip(salt) {
            *all.get_mut(i)? = one;
        }
        (self.rows[i], self.strips[i], self.octets[i], self.at[i], self.factors[i]) =
            (rows, strips, octets, at, factor);
        Some(())
    }

    #[inline(always)]
    fn lane(&self, i: usize) -> Lane {
        Lane {
            salt: self.salts.map(|salts| salts[i]),
            rows: self.rows[i],
            strips: self.strips[i],
            octets: self.octets[i],
            at: self.at[i],
            factor: self.factors[i],
        }
    }
}

impl Lane {
    #[inline(always)]
    fn hash(&self, key: Digest) -> u64 {
        fold(key.hi ^ self.salt[0], key.lo.wrapping_add(self.salt[1]))
    }

    /// Octet and parity of an exact bit, alone.
    #[inline(always)]
    pub(crate) fn find_bit(&self, file: &[u8], key: Digest, place: u64) -> (u64, u32) {
        let (octet, band) = (reduce(place, self.strips), self.hash(key));
        let [first, second] = words(file, self.at + octet);
        (octet, (first & band ^ second & fold(band, self.factor)).count_ones() & 1)
    }
}

/// Eight bytes, or `N` times as many; zeros if they are not there.
#[inline(always)]
fn words<const N: usize>(file: &[u8], at: u64) -> [u64; N] {
    let bytes = file.get(at as usize..).and_then(|rest| rest.get(..8 * N)).unwrap_or(&[]).as_chunks().0;
    std::array::from_fn(|i| bytes.get(i).map_or(0, |&bytes| u64::from_le_bytes(bytes)))
}

/// The places of the bit and of `N` columns. `place` chooses strips: the digest's bits from the first in which keys differ.
#[inline(always)]
pub(super) fn places<const N: usize>(lanes: &Lanes, key: Digest, place: u64) -> Places {
    let mut found = Places::default();
    for i in 0..=N {
        let lane = lanes.lane(i);
        let (h, strip) = (lane.hash(key), reduce(place, lane.strips));
        if i == 0 {
            (found.octet, found.band) = (strip, h);
            (found.at[0], found.bands[0]) = (lane.at + strip, fold(h, lane.factor));
        } else {
            let row = reduce(h, lane.rows);
            found.at[i] = lane.at + strip * lane.octets + row / 8;
            found.bands[i] = (fold(h, lane.factor) | 1) << (row % 8);
        }
    }
    found
}

/// Bit `i` is the parity of lane `i`.
#[inline(always)]
pub(super) fn odd<const N: usize>(file: &[u8], places: &Places) -> u32 {
    let [first, second] = words(file, places.at[0]);
    let mut odd = (first & places.band ^ second & places.bands[0]).count_ones() & 1;
    for i in 1..=N {
        let [word] = words(file, places.at[i]);
        odd |= ((word & places.bands[i]).count_ones() & 1) << i;
    }
    odd
}

/// As [`places`], for up to three columns.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn places_avx2(lanes: &Lanes, key: Digest, place: u64) -> Places {
    use std::arch::x86_64::*;
    let [a, b] = &lanes.salts;
    // SAFETY: arrays of five words; the first four are read.
    let [a, b, rows, strips, octets, starts, factors] =
        [a, b, &lanes.rows, &lanes.strips, &lanes.octets, &lanes.at, &lanes.factors]
            .map(|words| unsafe { _mm256_loadu_si256(words.as_ptr().cast()) });
    let [hi, lo, place] = [key.hi, key.lo, place].map(|word| _mm256_set1_epi64x(word as i64));
    let h = fold_avx2(_mm256_xor_si256(hi, a), _mm256_add_epi64(lo, b));
    let (row, strip) = (scale(h, rows), scale(place, strips));
    let in_strip = _mm256_srli_epi64::<3>(row);
    let at = _mm256_add_epi64(_mm256_add_epi64(starts, _mm256_mul_epu32(strip, octets)), in_strip);
    let band = _mm256_or_si256(fold_avx2(h, factors), _mm256_set_epi64x(1, 1, 1, 0));
    let band = _mm256_sllv_epi64(band, _mm256_and_si256(row, _mm256_set1_epi64x(7)));
    let first = |x: __m256i| _mm_cvtsi128_si64(_mm256_castsi256_si128(x)) as u64;
    let mut found = Places { octet: first(strip), band: first(h), ..Places::default() };
    // SAFETY: arrays of five words; the first four are written.
    unsafe {
        _mm256_storeu_si256(found.at.as_mut_ptr().cast(), at);
        _mm256_storeu_si256(found.bands.as_mut_ptr().cast(), band);
    }
    found
}

/// As [`odd`], with one check for all places; nothing if it would read beyond the end.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "popcnt")]
pub(super) fn odd_popcnt<const N: usize>(file: &[u8], places: &Places) -> Option<u32> {
    let limit = file.len().checked_sub(16)? as u64;
    let beyond = |&at: &u64| at > limit;
    if places.at[..=N].iter().map(beyond).fold(false, |any, one| any | one) {
        return None;
    }
    let word = |at: u64| {
        // SAFETY: every place is sixteen bytes before the end, or more.
        u64::from_le(unsafe { file.as_ptr().add(at as usize).cast::<u64>().read_unaligned() })
    };
    let at = places.at[0];
    let mut odd = (word(at) & places.band ^ word(at + 8) & places.bands[0]).count_ones() & 1;
    for i in 1..=N {
        odd |= ((word(places.at[i]) & places.bands[i]).count_ones() & 1) << i;
    }
    Some(odd)
}

/// As [`odd`], for up to three columns; nothing if it would read beyond the end.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "popcnt,avx2,avx512f,avx512bw,avx512vl,avx512vpopcntdq")]
pub(super) fn odd_avx512<const N: usize>(file: &[u8], places: &Places) -> Option<u32> {
    use std::arch::x86_64::*;
    // SAFETY: arrays of five words; the first four are read.
    let [at, bands] = [&places.at, &places.bands].map(|words| unsafe { _mm256_loadu_si256(words.as_ptr().cast()) });
    let limit = _mm256_set1_epi64x(file.len().checked_sub(16)? as i64);
    if _mm256_cmpgt_epu64_mask(at, limit) != 0 {
        return None;
    }
    let word = |at: u64| {
        // SAFETY: every place is sixteen bytes before the end, or more.
        unsafe { file.as_ptr().add(at as usize).cast::<i64>().read_unaligned() }
    };
    let two = |x: i64, y: i64| _mm_set_epi64x(y, x);
    let [p, q, r, s, _] = places.at;
    let words = _mm256_set_m128i(
        match N {
            ..=1 => _mm_setzero_si128(),
            2 => _mm_cvtsi64_si128(word(r)),
            _ => two(word(r), word(s)),
        },
        two(word(p + 8), word(q)),
    );
    let count = _mm256_popcnt_epi64(_mm256_and_si256(words, bands));
    let odd = u32::from(_mm256_test_epi64_mask(count, _mm256_set1_epi64x(1)));
    Some(odd ^ ((word(p) as u64 & places.band).count_ones() & 1))
}

/// [`reduce`] to numbers below 2^32.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn scale(x: std::arch::x86_64::__m256i, size: std::arch::x86_64::__m256i) -> std::arch::x86_64::__m256i {
    use std::arch::x86_64::*;
    let low = _mm256_srli_epi64::<32>(_mm256_mul_epu32(x, size));
    _mm256_srli_epi64::<32>(_mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64::<32>(x), size), low))
}

/// [`fold`].
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn fold_avx2(a: std::arch::x86_64::__m256i, b: std::arch::x86_64::__m256i) -> std::arch::x86_64::__m256i {
    use std::arch::x86_64::*;
    let (a_high, b_high) = (_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
    let (ll, hl) = (_mm256_mul_epu32(a, b), _mm256_mul_epu32(a_high, b));
    let (lh, hh) = (_mm256_mul_epu32(a, b_high), _mm256_mul_epu32(a_high, b_high));
    let t = _mm256_add_epi64(hl, _mm256_srli_epi64::<32>(ll));
    let u = _mm256_add_epi64(lh, _mm256_blend_epi32::<0x55>(_mm256_setzero_si256(), t));
    let high = _mm256_add_epi64(_mm256_add_epi64(hh, _mm256_srli_epi64::<32>(t)), _mm256_srli_epi64::<32>(u));
    _mm256_xor_si256(_mm256_blend_epi32::<0xaa>(ll, _mm256_slli_epi64::<32>(u)), high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Isa, Kernel, Level, dispatch};
    use crate::hash::scramble;

    struct Ask<'a, const N: usize>(&'a Lanes, &'a [u8], Digest, u64);
    impl<const N: usize> Kernel for Ask<'_, N> {
        type Output = (Places, u32);
        #[inline(always)]
        fn run<I: Isa>(self) -> (Places, u32) {
            let places = I::places::<N>(self.0, self.2, self.3);
            (places, I::odd::<N>(self.1, &places) & ((2 << N) - 1))
        }
    }

    /// The definition, bit by bit.
    fn expected(lanes: &Lanes, count: usize, file: &[u8], key: Digest, place: u64) -> u32 {
        let bit = |row: u64| file.get((row / 8) as usize).map_or(0, |byte| u32::from(byte >> (row % 8) & 1));
        let parity = |first: u64, band: u64| (0..64).fold(0, |sum, i| sum ^ bit(first + i) & (band >> i) as u32 & 1);
        (0..=count)
            .map(|i| {
                let Lane { rows, strips, octets, at, factor, .. } = lanes.lane(i);
                let h = lanes.lane(i).hash(key);
                let start = 8 * (at + reduce(place, strips) * octets);
                let odd = match i {
                    0 => parity(start, h) ^ parity(start + 64, fold(h, factor)),
                    _ => {
                        let row = reduce(h, rows);
                        // What is shifted out of the eight bytes does not count.
                        parity(start + row / 8 * 8, (fold(h, factor) | 1) << (row % 8))
                    }
                };
                odd << i
            })
            .sum()
    }

    fn every_level<const N: usize>() {
        for i in 0..crate::arch::rounds(500) {
            let random = |j: u64| scramble(i << 8 | j);
            let mut lanes = Lanes::default();
            let mut at = 0;
            for j in 0..=N as u64 {
                let (strips, octets) = (1 + random(10 * j) % 9, if j == 0 { 1 } else { 8 + random(10 * j + 1) % 40 });
                let rows = if j == 0 { 0 } else { 8 * octets - 56 };
                let salt = [random(10 * j + 2), random(10 * j + 3)];
                let lane = Lane { salt, rows, strips, octets, at, factor: random(10 * j + 4) | 1 };
                assert!(lanes.set(j as usize, lane).is_some());
                at += strips * octets + if j == 0 { 15 } else { 0 };
            }
            // Long enough for any level, just long enough, and too short: then zeros are read, and nobody minds which answer it is.
            for len in [at + 16, at, at / 2] {
                let file: Vec<u8> = (0..len).map(|j| random(200 + j) as u8).collect();
                let (key, place) = (Digest { hi: random(100), lo: random(101) }, random(102));
                let right = expected(&lanes, N, &file, key, place);
                for level in Level::available() {
                    let (places, odd) = dispatch(level, Ask::<N>(&lanes, &file, key, place));
                    assert_eq!(places.at[..=N], super::places::<N>(&lanes, key, place).at[..=N], "{level:?} {N} {i}");
                    assert!(odd == right || len < at, "{level:?} {N} {i}");
                }
            }
        }
        let large = Lane { salt: [0; 2], rows: 1 << 32, strips: 1, octets: 1, at: 0, factor: 1 };
        assert!(Lanes::default().set(1, large).is_none());
        assert!(Lanes::default().set(LANES, Lane { rows: 1, ..large }).is_none());
    }

    #[test]
    fn parities_are_those_of_the_definition_at_every_level() {
        every_level::<1>();
        every_level::<2>();
        every_level::<3>();
        every_level::<4>();
    }
}
