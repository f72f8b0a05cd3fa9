//! (key, set) pairs -> one cuckoo filter for all sets, queried for all of them at once, that gives pairs back ([CSC] section 4.3).
//!
//! A key has a fingerprint and an anchor; the pair of key and set i has that fingerprint, in one of two buckets of four slots:
//!
//! ```text
//!   first(i)  = (anchor + i) mod buckets             ascending from the anchor
//!   second(i) = (mirror - first(i)) mod buckets      descending; mirror = a hash of the fingerprint
//! ```
//!
//! The mirror is its own inverse for any number of buckets, so a fingerprint moves without its key, and the second buckets of
//! neighbouring sets are neighbours too: a query reads two runs of buckets and compares every slot with one value. The mirror
//! is odd if the number of buckets is even: then the two always differ.
//!
//! A slot's lowest bit says whether its fingerprint is in its second bucket; the others are the fingerprint, which is never zero.
//! Without that bit a key's own pairs answer for other sets wherever its two runs overlap: a false set in ten answers if sets are
//! many and the table is small. With it they cannot, and an unlisted key meets as many equal slots as with a fingerprint one bit
//! longer. Pairs that could be confused are alike in both buckets, so it does not matter which copy is taken out.
//!
//! With several repetitions there are as many tables, and sets share buckets by partitions ([`Groups`]). Each pair has its
//! own copy, so that one can go without the other. With counts a pair that is there is counted, up to 255, and not stored again.
//!
//! ```text
//!   table      bucket 0: [slot][slot][slot][slot] | bucket 1 .. | zeros up to a whole word, and a word more
//!   payload    table of each repetition | a byte per slot of each table, if pairs are counted
//! ```
//!
//! Slots have 4 to 32 bits, 0 is free, and lie bit after bit. The word at the end lets every bucket be read with one load: of eight
//! bytes if slots have up to 16 bits, of sixteen if they are wider.

use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, MAX_NUMBER, Salt, reduce, scramble};
use crate::math::csc::fingerprints;
use crate::math::portable::{exp2, log2};
use crate::sets::groups::{Groups, MAX_REPETITIONS, Repeats};

#[cfg(feature = "build")]
mod change;
mod kernel;

/// Bits of a slot.
pub(super) const BITS: std::ops::RangeInclusive<u32> = 4..=32;
/// Up to so many bits of a slot a bucket is in one word of 64 bits.
const NARROW: u32 = 16;
const MAX_BUCKETS: u64 = 1 << 40;
/// Cache lines that are prefetched ahead of a query.
const PREFETCH_LINES: u64 = 32;

/// One for each repetition.
const SALTS: [Salt; MAX_REPETITIONS as usize] = {
    let mut salts = [Salt::new(0x0063_7363_6375_636b); MAX_REPETITIONS as usize];
    let mut t = 0;
    while t < salts.len() {
        salts[t] = salts[t].child(t as u64);
        t += 1;
    }
    salts
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CscCuckoo {
    buckets: u64,
    /// Bits of a slot.
    bits: u32,
    pub(crate) repeats: Repeats,
    pub(crate) counting: bool,
    /// Of the salts below those of the repetitions; 0 for these themselves.
    pub(crate) number: u32,
}

/// The buckets of a key in one table.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    /// The two buckets of the first set, or partition.
    first: u64,
    second: u64,
    /// What a slot of the first run has; one more in the second.
    value: u64,
}

/// How the buckets of one table are read: four lanes in a word.
#[derive(Debug, Clone, Copy)]
struct Lanes {
    bits: u32,
    /// The lowest bit of every lane, and the highest.
    ones: u128,
    tops: u128,
}

impl Lanes {
    #[inline(always)]
    fn new(bits: u32) -> Lanes {
        let ones = 1 | 1 << bits | 1 << (2 * bits) | 1 << (3 * bits);
        Lanes { bits, ones, tops: ones << (bits - 1) }
    }

    /// The same value in every lane.
    #[inline(always)]
    fn all(&self, value: u64) -> u128 {
        self.ones * u128::from(value)
    }

    /// The lanes of a bucket, and whatever follows them; zero where there is none.
    #[inline(always)]
    fn read(&self, table: &[u8], bucket: u64) -> u128 {
        if self.bits <= NARROW {
            return self.read_narrow(table, bucket).into();
        }
        self.read_wide(table, bucket)
    }

    /// The same, for slots of more than [`NARROW`] bits.
    #[inline(always)]
    fn read_wide(&self, table: &[u8], bucket: u64) -> u128 {
        let bit = bucket * u64::from(4 * self.bits);
        let bytes = table.get((bit / 8) as usize..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u128::from_le_bytes(*bytes)) >> (bit % 8)
    }

    /// The same, for slots of up to [`NARROW`] bits.
    #[inline(always)]
    fn read_narrow(&self, table: &[u8], bucket: u64) -> u64 {
        let bit = bucket * u64::from(4 * self.bits);
        let bytes = table.get((bit / 8) as usize..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes)) >> (bit % 8)
    }

    /// The top bit of every lane that is `all`'s.
    #[inline(always)]
    fn equal(&self, lanes: u128, all: u128) -> u128 {
        let (x, low) = (lanes ^ all, self.tops - self.ones);
        !(((x & low) + low) | x) & self.tops
    }

    #[inline(always)]
    fn find(&self, table: &[u8], bucket: u64, value: u64) -> Option<u64> {
        match self.equal(self.read(table, bucket), self.all(value)) {
            0 => None,
            found => Some(4 * bucket + u64::from(found.trailing_zeros() / self.bits)),
        }
    }
}

impl CscCuckoo {
    #[inline(always)]
    fn run(&self, t: u32, key: Digest) -> Run {
        let salt = SALTS[t as usize % SALTS.len()];
        let hash = if self.number == 0 { key.salted(salt) } else { self.moved(salt, key) };
        let fingerprint = (((hash & 0xffff_ffff) * ((1 << (self.bits - 1)) - 1)) >> 32) + 1;
        let (first, value) = (reduce(hash, self.buckets), 2 * fingerprint);
        Run { first, second: self.other(first, value), value }
    }

    /// The bits of a key in a table whose keys were chosen.
    #[cold]
    #[inline(never)]
    fn moved(&self, salt: Salt, key: Digest) -> u64 {
        key.salted(salt.child(self.number.into()))
    }

    /// The other bucket of a value in this one.
    #[inline(always)]
    fn other(&self, bucket: u64, value: u64) -> u64 {
        let mirror = reduce(scramble(value >> 1), self.buckets) | (!self.buckets & 1);
        let other = mirror.wrapping_sub(bucket);
        if bucket > mirror { other.wrapping_add(self.buckets) } else { other }
    }

    /// The two buckets of a place in the runs, and the value in each.
    #[inline(always)]
    fn pair(&self, run: Run, offset: u32) -> [(u64, u64); 2] {
        let (offset, buckets) = (u64::from(offset), self.buckets);
        let offset = if offset < buckets { offset } else { offset % buckets };
        let (first, second) = (run.first + offset, run.second + buckets - offset);
        let [first, second] = [first, second].map(|bucket| if bucket < buckets { bucket } else { bucket - buckets });
        [(first, run.value), (second, run.value | 1)]
    }

    /// Bytes of one table: whole words and one more.
    fn table_len(&self) -> u64 {
        (self.buckets * u64::from(self.bits)).div_ceil(16) * 8 + 8
    }

    /// The tables of a payload and the counts behind them; nothing if it is too short.
    fn parts<'a>(&self, payload: &'a [u8]) -> (impl Iterator<Item = &'a [u8]> + use<'a>, &'a [u8]) {
        let whole = usize::try_from(self.payload_len()).ok().and_then(|len| payload.get(..len));
        // No overflow: the payload is there.
        let tables = (u64::from(self.repeats.repetitions) * self.table_len()) as usize;
        let (tables, counts) = whole.and_then(|whole| whole.split_at_checked(tables)).unwrap_or_default();
        (tables.chunks_exact(self.table_len() as usize), counts)
    }

    pub(crate) fn slots(&self) -> u64 {
        4 * self.buckets
    }

    pub(crate) fn payload_len(&self) -> u64 {
        let counts = if self.counting { self.slots() } else { 0 };
        u64::from(self.repeats.repetitions) * (self.table_len() + counts)
    }

    /// Directory: buckets, bits, repeats, counting (varints).
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let CscCuckoo { buckets, bits, repeats, counting, number } = *self;
        let counting = u64::from(counting) | u64::from(number != 0) << 1;
        put_varint(out, buckets);
        put_varint(out, bits.into());
        repeats.encode(out);
        put_varint(out, counting);
        if number != 0 {
            put_varint(out, number.into());
        }
    }

    /// Reads what [`CscCuckoo::encode`] wrote, every number checked.
    pub(crate) fn decode(from: &mut Reader<'_>) -> Result<CscCuckoo, FormatError> {
        let buckets = from.within("buckets of a table", 1..=MAX_BUCKETS)?;
        let bits = from.within("bits of a slot", (*BITS.start()).into()..=(*BITS.end()).into())? as u32;
        let repeats = Repeats::decode(from)?;
        let counting = from.within("counting", 0..=3)?;
        let number = if counting < 2 { 0 } else { from.within("salt", 1..=MAX_NUMBER)? as u32 };
        Ok(CscCuckoo { buckets, bits, repeats, counting: counting % 2 == 1, number })
    }

    /// Prefetches the first cache lines of a key's runs.
    #[inline]
    pub(crate) fn prefetch(&self, payload: &[u8], key: Digest, sets: u32) {
        let width = self.repeats.width(sets);
        let bytes = |buckets: u64| buckets * u64::from(self.bits) / 2;
        let lines = (PREFETCH_LINES / u64::from(2 * self.repeats.repetitions)).min(bytes(width.into()) / 64 + 1);
        for t in 0..self.repeats.repetitions {
            let run = self.run(t, key);
            let start = u64::from(t) * self.table_len();
            for line in 0..lines {
                crate::arch::prefetch(payload, (start + bytes(run.first) + 64 * line) as usize);
                // The last byte of the bucket, for the first line; it may be the only one.
                let last = start + bytes(run.second + 1) - 1;
                crate::arch::prefetch(payload, last.saturating_sub(64 * line) as usize);
            }
        }
    }

    /// How often a pair was added, or more; without counts 1 or 0.
    pub(crate) fn frequency(&self, payload: &[u8], groups: &Groups, key: Digest, set: u32) -> u8 {
        let (tables, counts) = self.parts(payload);
        let mut least = None;
        for (t, table) in (0..).zip(tables) {
            let Some(slot) = self.slot(t, table, groups, key, set) else { return 0 };
            let at = (u64::from(t) * self.slots() + slot) as usize;
            // A pair that is there was added once at least, whatever a damaged file says.
            let count = counts.get(at).map_or(1, |&count| count.max(1));
            least = Some(least.unwrap_or(u8::MAX).min(count));
        }
        least.unwrap_or(0)
    }

    /// Where a pair is in table `t`.
    #[inline(always)]
    fn slot(&self, t: u32, table: &[u8], groups: &Groups, key: Digest, set: u32) -> Option<u64> {
        let run = self.run(t, key);
        let lanes = Lanes::new(self.bits);
        let pair = self.pair(run, groups.offset(t, set));
        pair.into_iter().find_map(|(bucket, value)| lanes.find(table, bucket, value))
    }

    /// The share of slots that are in use, of the fullest table.
    pub(crate) fn fill(&self, payload: &[u8]) -> f64 {
        let lanes = Lanes::new(self.bits);
        let free = |table, bucket| u64::from(lanes.equal(lanes.read(table, bucket), 0).count_ones());
        let used = |table| self.slots() - (0..self.buckets).map(|bucket| free(table, bucket)).sum::<u64>();
        self.parts(payload).0.map(used).max().unwrap_or(0) as f64 / self.slots() as f64
    }

    /// Pairs that it can hold, each as often as it can be counted.
    pub(crate) fn capacity(&self) -> u64 {
        self.slots() * if self.counting { 255 } else { 1 }
    }

    /// The share of places in a row of one table at which a key is seen that is not there, as full as the tables are: it is compared with the
    /// fingerprints of two buckets ([CSC] equation 2, corrected).
    pub(crate) fn fpr(&self, payload: &[u8]) -> f64 {
        1.0 - exp2(8.0 * self.fill(payload) * log2(1.0 - 1.0 / fingerprints(self.bits)))
    }

    pub(crate) fn details(&self) -> String {
        let counts = if self.counting { " with counts" } else { "" };
        format!("{} buckets of 4 fingerprints of {} bits{counts}{}", self.buckets, self.bits, self.repeats)
    }
}

#[cfg(all(test, feature = "build"))]
mod tests;
