//! a bucket's bits <-> four fingerprints side by side in one word, compared all at once.
//!
//! ```text
//!   plain          [ a ][ b ][ c ][ d ]         four lanes of f bits
//!   semi-sorted    [code][a'][b'][c'][d']       12 bits for the four low nibbles, in order; four lanes of f - 4 bits
//! ```
//!
//! Four nibbles whose order does not matter are one of 3,876 multisets: 12 bits instead of 16, a bit per fingerprint saved
//! ([Cuckoo] section 5.2). All work is done on the plain lanes; a semi-sorted bucket is unpacked first. A payload of zeros is a
//! table of empty buckets in both forms, and the first empty lane is followed by empty lanes only until a key is removed.

use std::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

/// A word that holds a bucket wherever in a byte it starts.
pub(super) trait Word:
    Copy
    + Ord
    + From<u32>
    + Not<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    const BYTES: usize;
    fn load(bytes: &[u8]) -> Option<Self>;
    fn store(self, bytes: &mut [u8]);
    fn minus(self, other: Self) -> Self;
    fn zeros_below(self) -> u32;
    fn low(self) -> u32;
    /// The same value in every lane, if this word has a one in each.
    fn times(self, value: u32) -> Self;
}

macro_rules! word {
    ($type:ty) => {
        impl Word for $type {
            const BYTES: usize = size_of::<$type>();
            #[inline(always)]
            fn load(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|chunk| <$type>::from_le_bytes(*chunk))
            }
            #[inline(always)]
            fn store(self, bytes: &mut [u8]) {
                if let Some(chunk) = bytes.first_chunk_mut() {
                    *chunk = self.to_le_bytes();
                }
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn zeros_below(self) -> u32 {
                self.trailing_zeros()
            }
            #[inline(always)]
            fn low(self) -> u32 {
                self as u32
            }
            #[inline(always)]
            fn times(self, value: u32) -> Self {
                self.wrapping_mul(value.into())
            }
        }
    };
}
word!(u64);
word!(u128);

/// Bits of a bucket of four fingerprints.
pub(super) const fn width(bits: u32, semi_sorted: bool) -> u32 {
    4 * bits - if semi_sorted { 4 } else { 0 }
}

/// Bytes of the word that holds a bucket: four lanes and, where buckets do not start at whole bytes, four bits more.
pub(super) const fn word_bytes(bits: u32) -> u64 {
    if bits <= 16 { 8 } else { 16 }
}

/// How the buckets of one table are read and written.
#[derive(Clone, Copy)]
pub(super) struct Buckets<W, const SEMI: bool> {
    bits: u32,
    width: u64,
    /// The lowest bit of every lane, and the highest.
    ones: W,
    tops: W,
}

impl<W: Word, const SEMI: bool> Buckets<W, SEMI> {
    /// Buckets of fingerprints of 4 to 32 bits.
    #[inline(always)]
    pub(super) fn new(bits: u32) -> Self {
        let ones = lanes(W::from(1), bits);
        Buckets { bits, width: u64::from(width(bits, SEMI)), ones, tops: ones << (bits - 1) }
    }

    /// The byte in which a bucket starts.
    #[inline(always)]
    pub(super) fn byte(&self, bucket: u64) -> usize {
        // On a 32-bit processor a payload that is there has fewer bits than a u64 can count.
        usize::try_from(bucket * self.width / 8).unwrap_or(usize::MAX)
    }

    /// The bits of a bucket, and whatever follows them; zero where there is none.
    #[inline(always)]
    fn raw(&self, payload: &[u8], bucket: u64) -> W {
        let bytes = payload.get(self.byte(bucket)..).unwrap_or(&[]);
        W::load(bytes).unwrap_or(W::from(0)) >> (bucket * self.width % 8) as u32
    }

    /// The same fingerprint in every lane.
    #[inline(always)]
    pub(super) fn all(&self, fingerprint: u32) -> W {
        self.ones.times(fingerprint)
    }

    /// Where the first lane with this fingerprint starts; `all` has it in every lane.
    #[inline(always)]
    pub(super) fn find(&self, lanes: W, all: W) -> Option<u32> {
        let found = zero(lanes ^ all, self.ones, self.tops);
        if found == W::from(0) { None } else { Some(found.zeros_below() + 1 - self.bits) }
    }

    /// Whether a bucket has this fingerprint; `all` has it in every lane.
    #[inline(always)]
    pub(super) fn has(&self, payload: &[u8], bucket: u64, fingerprint: u32, all: W) -> bool {
        let raw = self.raw(payload, bucket);
        if !SEMI {
            return zero(raw ^ all, self.ones, self.tops) != W::from(0);
        }
        let high = self.bits - 4;
        // Most unlisted keys leave here. Lanes without bits are all alike.
        if high > 0 {
            let ones = lanes(W::from(1), high);
            let all = lanes(W::from(fingerprint >> 4), high);
            if zero((raw >> 12) ^ all, ones, ones << (high - 1)) == W::from(0) {
                return false;
            }
        }
        self.find(self.unpack(raw), all).is_some()
    }

    /// The lanes of a bucket.
    #[inline(always)]
    pub(super) fn read(&self, payload: &[u8], bucket: u64) -> W {
        let raw = self.raw(payload, bucket);
        if SEMI { self.unpack(raw) } else { raw & self.mask() }
    }

    /// Writes the lanes of a bucket and leaves its neighbours alone.
    #[inline(always)]
    pub(super) fn write(&self, payload: &mut [u8], bucket: u64, lanes: W) {
        let packed = if SEMI { self.pack(lanes) } else { lanes };
        let shift = (bucket * self.width % 8) as u32;
        let mask = self.mask() << shift;
        let Some(bytes) = payload.get_mut(self.byte(bucket)..) else { return };
        if let Some(old) = W::load(bytes) {
            ((old & !mask) | (packed << shift)).store(bytes);
        }
    }

    /// The bits of a bucket.
    #[inline(always)]
    fn mask(&self) -> W {
        !W::from(0) >> (8 * W::BYTES as u32 - self.width as u32)
    }

    /// The fingerprint that starts at a bit.
    #[inline(always)]
    pub(super) fn lane(&self, lanes: W, at: u32) -> u32 {
        (lanes >> at).low() & low_bits(self.bits)
    }

    /// All four fingerprints.
    #[inline(always)]
    pub(super) fn four(&self, lanes: W) -> [u32; 4] {
        let lane = |k| self.lane(lanes, k * self.bits);
        [lane(0), lane(1), lane(2), lane(3)]
    }

    #[inline(always)]
    fn unpack(&self, raw: W) -> W {
        let nibbles = u32::from(NIBBLES[(raw.low() & 0xfff) as usize]);
        let (high, rest) = (self.bits - 4, raw >> 12);
        [0, 1, 2, 3].into_iter().fold(W::from(0), |lanes, k| {
            let upper = W::from((rest >> (k * high)).low() & low_bits(high));
            lanes | (W::from((nibbles >> (4 * k)) & 15) | (upper << 4)) << (k * self.bits)
        })
    }

    #[inline(always)]
    fn pack(&self, lanes: W) -> W {
        // The nibble first: it decides the order, and the rest makes the order independent of who came first.
        let [a, b, c, d] = descending(self.four(lanes)); // empty lanes last
        let high = self.bits - 4;
        (0..).zip([a, b, c, d]).fold(W::from(rank(a >> 28, b >> 28, c >> 28, d >> 28)), |packed, (k, turned)| {
            packed | (W::from(turned & 0x0fff_ffff) << (12 + k * high))
        })
    }
}

/// Four fingerprints, each turned so that its nibble is on top, the largest first.
#[inline(always)]
fn descending([a, b, c, d]: [u32; 4]) -> [u32; 4] {
    let two = |a: u32, b: u32| (a.max(b), a.min(b));
    let ((a, b), (c, d)) = (two(a.rotate_right(4), b.rotate_right(4)), two(c.rotate_right(4), d.rotate_right(4)));
    let ((a, c), (b, d)) = (two(a, c), two(b, d));
    let (b, c) = two(b, c);
    [a, b, c, d]
}

/// The same value in four lanes.
#[inline(always)]
fn lanes<W: Word>(value: W, bits: u32) -> W {
    let two = value | (value << bits);
    two | (two << (2 * bits))
}

/// Marks at the top of lanes; the lowest is that of the lowest lane that is zero, and there is none if no lane is. A borrow goes up
/// only, so what lies above the lanes does not matter.
#[inline(always)]
fn zero<W: Word>(lanes: W, ones: W, tops: W) -> W {
    lanes.minus(ones) & !lanes & tops
}

#[inline(always)]
const fn low_bits(bits: u32) -> u32 {
    ((1u64 << bits) - 1) as u32
}

/// The number of four nibbles a >= b >= c >= d among all such: those with a smaller a come first, then those with a smaller b,
/// and so on.
const fn rank(a: u32, b: u32, c: u32, d: u32) -> u32 {
    a * (a + 1) * (a + 2) * (a + 3) / 24 + b * (b + 1) * (b + 2) / 6 + c * (c + 1) / 2 + d
}

/// The nibbles with each number, the largest lowest; zeros where there are none, which only a damaged file needs.
static NIBBLES: [u16; 4096] = {
    let mut all = [0; 4096];
    let mut quad = 0u32;
    while quad < 1 << 16 {
        let (a, b, c, d) = (quad & 15, (quad >> 4) & 15, (quad >> 8) & 15, quad >> 12);
        if a >= b && b >= c && c >= d {
            all[rank(a, b, c, d) as usize] = quad as u16;
        }
        quad += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::scramble;

    #[test]
    fn every_multiset_of_nibbles_has_a_number_of_its_own() {
        let used = NIBBLES.iter().filter(|&&quad| quad != 0).count();
        assert_eq!((used, rank(15, 15, 15, 15), rank(0, 0, 0, 0)), (3875, 3875, 0));
    }

    fn round_trip<W: Word + std::fmt::Debug, const SEMI: bool>(bits: u32) {
        const COUNT: u64 = 40;
        let buckets = Buckets::<W, SEMI>::new(bits);
        assert!(u64::from(width(bits, SEMI)) + u64::from(bits % 2 == 1) * 4 <= 8 * W::BYTES as u64);
        let mut payload = vec![0; ((COUNT - 1) * buckets.width / 8) as usize + W::BYTES];
        let four = |bucket: u64| {
            [0, 1, 2, 3].map(|k| {
                let random = scramble(bucket * 4 + k);
                if random >> 60 < 4 { 0 } else { random as u32 & low_bits(bits) }
            })
        };
        // In any order, and twice: neighbours must not be touched.
        for bucket in (0..COUNT).chain((0..COUNT).rev()) {
            let four = four(bucket);
            let lanes = (0..4).fold(W::from(0), |l, k| l | (W::from(four[k as usize]) << (k * bits)));
            buckets.write(&mut payload, bucket, lanes);
        }
        for bucket in 0..COUNT {
            let mut found = buckets.four(buckets.read(&payload, bucket));
            let mut wanted = four(bucket);
            if SEMI {
                let written = buckets.read(&payload, bucket);
                buckets.write(&mut payload, bucket, written);
                assert_eq!(buckets.read(&payload, bucket), written);
                found.sort_unstable();
                wanted.sort_unstable();
            }
            assert_eq!(found, wanted, "{bits} bits, bucket {bucket}");
            for fingerprint in wanted.into_iter().chain(1..16).chain([low_bits(bits)]) {
                let (all, lanes) = (buckets.all(fingerprint), buckets.read(&payload, bucket));
                let there = wanted.contains(&fingerprint);
                assert_eq!(buckets.has(&payload, bucket, fingerprint, all), there, "{bits} bits, bucket {bucket}");
                let at = buckets.find(lanes, all);
                assert_eq!(at.map(|at| buckets.lane(lanes, at)), there.then_some(fingerprint));
            }
        }
        assert!(!buckets.has(&payload, COUNT + 20, 1, buckets.all(1)));
        assert!(!buckets.has(&payload, 1 << 40, 1, buckets.all(1)));
    }

    #[test]
    fn buckets_hold_what_they_are_given() {
        for bits in 4..=32 {
            match word_bytes(bits) {
                8 => round_trip::<u64, false>(bits),
                _ => round_trip::<u128, false>(bits),
            }
            match word_bytes(bits) {
                8 => round_trip::<u64, true>(bits),
                _ => round_trip::<u128, true>(bits),
            }
        }
    }
}
