//! sets -> a cuckoo filter of the same size for every set: "NCF" of \[CSC\] 6.3.
//!
//! Every filter has the buckets that the largest set needs, four slots each; what memory there is decides how wide a
//! fingerprint is. The alternate bucket is c - p modulo the number of buckets, c from the fingerprint, so that the number
//! need not be a power of two: the rival is not charged for rounding up.

use tamis_bench::bits::Bits;
use tamis_bench::stream::{Stream, place, scramble};

use super::{Built, Index, Load, SALT, digest};

/// Slots of a bucket, evictions before a filter is full, and the share of slots that it is planned to fill.
const SLOTS: u32 = 4;
const EVICTIONS: usize = 500;
const FILL: f64 = 0.94;

/// The widths of a fingerprint: fewer bits leave too few other buckets to go to, and a bucket fits one read.
const WIDTHS: std::ops::RangeInclusive<u32> = 4..=16;

pub(crate) struct PerSetCuckoo {
    filters: Vec<Bits>,
    buckets: usize,
    width: u32,
}

impl PerSetCuckoo {
    /// Filters that take at most `bits` together.
    pub(crate) fn build(load: &Load, bits: u64) -> Built {
        let largest = load.sizes().into_iter().max().unwrap_or(0);
        let mut buckets = ((largest as f64 / f64::from(SLOTS) / FILL) as usize + 1).max(2);
        for _ in 0..16 {
            let width = (bits / (load.sets * buckets) as u64 / u64::from(SLOTS)).min(u64::from(*WIDTHS.end())) as u32;
            if width < *WIDTHS.start() {
                return Err("cuckoo filters sized for the largest set leave no bits for a fingerprint".into());
            }
            if let Some(index) = PerSetCuckoo::fill(load, buckets, width) {
                return Ok(Box::new(index));
            }
            // Small filters are fuller than planned more often.
            buckets += 1 + buckets / 50;
        }
        Err("a cuckoo filter stays full".into())
    }

    fn fill(load: &Load, buckets: usize, width: u32) -> Option<PerSetCuckoo> {
        let bits = buckets * (SLOTS * width) as usize;
        let filters = (0..load.sets).map(|_| Bits::zeros(bits)).collect();
        let mut index = PerSetCuckoo { filters, buckets, width };
        let mut dice = Stream::new(1);
        for (key, sets) in load.entries() {
            let (bucket, fingerprint) = index.hash(key);
            for &set in sets {
                index.insert(set as usize, bucket, fingerprint, &mut dice)?;
            }
        }
        Some(index)
    }

    /// Bucket and fingerprint of a key; a fingerprint is never 0, which is an empty slot.
    #[inline(always)]
    fn hash(&self, key: u64) -> (usize, u64) {
        let hash = digest(key).salted(SALT);
        let fingerprint = digest(key).salted(SALT.child(1)) >> (64 - self.width);
        (place(hash, self.buckets), fingerprint.max(1))
    }

    /// The other bucket: this of that one is the first again.
    #[inline(always)]
    fn other(&self, bucket: usize, fingerprint: u64) -> usize {
        let c = place(scramble(fingerprint), self.buckets);
        if c >= bucket { c - bucket } else { c + self.buckets - bucket }
    }

    #[inline(always)]
    fn bucket(&self, set: usize, bucket: usize) -> u64 {
        let width = SLOTS * self.width;
        self.filters[set].word_at(bucket * width as usize) & (u64::MAX >> (64 - width))
    }

    #[inline(always)]
    fn slot(&self, bucket: u64, fingerprint: u64) -> Option<u32> {
        let mask = (1 << self.width) - 1;
        (0..SLOTS).find(|slot| bucket >> (slot * self.width) & mask == fingerprint)
    }

    /// Puts a fingerprint in place of what is in a slot, which it returns.
    fn swap(&mut self, set: usize, bucket: usize, slot: u32, fingerprint: u64) -> u64 {
        let at = (bucket * SLOTS as usize + slot as usize) * self.width as usize;
        let old = self.filters[set].word_at(at) & ((1 << self.width) - 1);
        self.filters[set].replace(at, self.width, fingerprint);
        old
    }

    /// `None` if there is no room.
    fn insert(&mut self, set: usize, bucket: usize, fingerprint: u64, dice: &mut Stream) -> Option<()> {
        let (mut bucket, mut fingerprint) = (bucket, fingerprint);
        for candidate in [bucket, self.other(bucket, fingerprint)] {
            if let Some(slot) = self.slot(self.bucket(set, candidate), 0) {
                self.swap(set, candidate, slot, fingerprint);
                return Some(());
            }
        }
        for _ in 0..EVICTIONS {
            let slot = (dice.draw() >> 62) as u32;
            fingerprint = self.swap(set, bucket, slot, fingerprint);
            bucket = self.other(bucket, fingerprint);
            if let Some(slot) = self.slot(self.bucket(set, bucket), 0) {
                self.swap(set, bucket, slot, fingerprint);
                return Some(());
            }
        }
        None
    }
}

impl Index for PerSetCuckoo {
    fn bits(&self) -> u64 {
        (self.filters.len() * self.buckets) as u64 * u64::from(SLOTS * self.width)
    }

    fn find(&self, key: u64, sets: &mut Vec<u32>) {
        sets.clear();
        let (first, fingerprint) = self.hash(key);
        let second = self.other(first, fingerprint);
        for set in 0..self.filters.len() {
            let held = |bucket| self.slot(self.bucket(set, bucket), fingerprint).is_some();
            if held(first) || held(second) {
                sets.push(set as u32);
            }
        }
    }
}
