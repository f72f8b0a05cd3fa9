//! keys -> an adaptive cuckoo filter: the rival, after the idea of Mitzenmacher, Pontarelli and Reviriego (2018).
//!
//! A cuckoo hash table of the keys themselves, and beside it a filter of the same shape: slot for slot, a fingerprint and a selector.
//!
//! ```text
//!   filter   | bucket: 4 x (selector 2 bits, fingerprint) | ...      a query reads two buckets of it
//!   mirror   | bucket: 4 x key                            | ...      asked when the filter says yes
//! ```
//!
//! The selector of a slot says which of four fingerprint functions it uses. A false positive advances the selector of the slot that it
//! met, and the fingerprint is computed anew from the key in the mirror. Nothing else ever changes: keys that a slot once took for its own
//! come back with its fourth false positive, and nothing bounds the rate of an adversary who looks for such keys.
//!
//! A fingerprint is never 0, which is an empty slot. Both buckets of a key come from its hash, not from the fingerprint: the mirror knows the key.

use tamis::internals::Salt;
use tamis::{Digest, Hasher};

use crate::adversary::subject::Cost;
use crate::bits::Bits;
use crate::stream::{Stream, place};

/// Slots of a bucket, and the bits of a selector.
const SLOTS: usize = 4;
const SELECTOR: u32 = 2;
const EVICTIONS: usize = 500;
/// The share of the slots that is planned to be filled.
pub(crate) const FILL: f64 = 0.95;

const BUCKETS: [Salt; 2] = [Salt::new(0xacf0), Salt::new(0xacf1)];
const FINGERPRINT: Salt = Salt::new(0xacf2);

pub(crate) struct AdaptiveCuckoo {
    hasher: Hasher,
    /// Bits of a fingerprint: four of them are cut from one hash.
    width: u32,
    buckets: usize,
    cells: Bits,
    mirror: Vec<Option<Digest>>,
    len: u64,
    dice: Stream,
}

/// Where a key may be, and its four fingerprints.
struct Hashed {
    buckets: [usize; 2],
    fingerprints: [u64; 1 << SELECTOR],
}

impl AdaptiveCuckoo {
    /// A filter for `capacity` keys, with fingerprints of `width` bits, from 4 to 14.
    pub(crate) fn new(capacity: u64, width: u32, key: [u64; 2]) -> AdaptiveCuckoo {
        let buckets = ((capacity as f64 / FILL / SLOTS as f64).ceil() as usize).max(2);
        AdaptiveCuckoo {
            hasher: Hasher::secret(key),
            width: width.clamp(4, 14),
            buckets,
            cells: Bits::zeros(buckets * SLOTS * (width.clamp(4, 14) + SELECTOR) as usize),
            mirror: vec![None; buckets * SLOTS],
            len: 0,
            dice: Stream::new(key[0] ^ key[1].rotate_left(32)),
        }
    }

    /// The rate that it has for strangers, planned full: eight slots are compared with.
    pub(crate) fn fpr(&self) -> f64 {
        // Two values of a hash are fingerprint 1.
        let values = (1u64 << self.width) as f64;
        let one = (values + 2.0) / (values * values);
        1.0 - (1.0 - one).powf(2.0 * SLOTS as f64 * FILL)
    }

    /// Bytes of the filter; the mirror is not among them.
    pub(crate) fn bytes(&self) -> usize {
        (self.buckets * SLOTS * (self.width + SELECTOR) as usize).div_ceil(8)
    }

    pub(crate) fn digest(&self, key: u64) -> Digest {
        self.hasher.integer(key)
    }

    #[inline(always)]
    fn hash(&self, key: Digest) -> Hashed {
        let place = |salt| place(key.salted(salt), self.buckets);
        let bits = key.salted(FINGERPRINT);
        let mask = (1 << self.width) - 1;
        let fingerprints = [0, 1, 2, 3].map(|i| (bits >> (i * self.width) & mask).max(1));
        Hashed { buckets: BUCKETS.map(place), fingerprints }
    }

    #[inline(always)]
    fn cell_bits(&self) -> u32 {
        self.width + SELECTOR
    }

    /// A slot as it is stored: the selector is in the low bits.
    #[inline(always)]
    fn cell(&self, at: usize) -> u64 {
        self.cells.word_at(at * self.cell_bits() as usize) & ((1 << self.cell_bits()) - 1)
    }

    fn set(&mut self, at: usize, key: Option<Digest>, selector: usize) {
        let cell = key.map_or(0, |key| self.hash(key).fingerprints[selector] << SELECTOR | selector as u64);
        let width = self.cell_bits();
        self.cells.replace(at * width as usize, width, cell);
    }

    /// Whether a slot with these bits matches the key.
    #[inline(always)]
    fn takes(cell: u64, hashed: &Hashed) -> bool {
        cell >> SELECTOR == hashed.fingerprints[(cell & 3) as usize]
    }

    #[inline(always)]
    pub(crate) fn contains(&self, key: Digest) -> bool {
        let hashed = self.hash(key);
        let width = self.cell_bits();
        hashed.buckets.into_iter().any(|bucket| {
            let cells = self.cells.word_at(bucket * SLOTS * width as usize);
            let mask = (1 << width) - 1;
            (0..SLOTS as u32).any(|slot| AdaptiveCuckoo::takes(cells >> (slot * width) & mask, &hashed))
        })
    }

    /// The slots of both buckets; the second is left out if it is the first.
    fn slots(hashed: &Hashed) -> impl Iterator<Item = usize> {
        let [a, b] = hashed.buckets;
        let count = if a == b { 1 } else { 2 };
        [a, b].into_iter().take(count).flat_map(|bucket| bucket * SLOTS..(bucket + 1) * SLOTS)
    }

    /// Inserts a key. In case of an error, a full table, the table is as it was before.
    pub(crate) fn insert(&mut self, key: Digest) -> Result<Cost, String> {
        let mut stats = Cost { changed: true, ..Cost::default() };
        let mut walk: Vec<usize> = Vec::new();
        let mut carried = key;
        loop {
            let hashed = self.hash(carried);
            stats.words += 2;
            if let Some(at) = AdaptiveCuckoo::slots(&hashed).find(|&at| self.cell(at) == 0) {
                self.put(at, Some(carried));
                stats.writes += 1;
                self.len += 1;
                return Ok(stats);
            }
            if walk.len() == EVICTIONS {
                break;
            }
            let dice = self.dice.draw();
            let at = hashed.buckets[(dice >> 63) as usize] * SLOTS + (dice & 3) as usize;
            // A key that must go elsewhere is in the mirror only.
            stats.reads += 1;
            stats.writes += 1;
            let Some(evicted) = self.mirror[at] else { return Err("a slot without a key".into()) };
            self.put(at, Some(carried));
            walk.push(at);
            carried = evicted;
        }
        for at in walk.into_iter().rev() {
            if let Some(back) = self.mirror[at] {
                self.put(at, Some(carried));
                carried = back;
            }
        }
        Err(format!("{} keys in {} slots: full", self.len, self.buckets * SLOTS))
    }

    /// A key in a slot starts with the first function.
    fn put(&mut self, at: usize, key: Option<Digest>) {
        self.mirror[at] = key;
        self.set(at, key, 0);
    }

    pub(crate) fn remove(&mut self, key: Digest) -> Result<Cost, String> {
        let hashed = self.hash(key);
        let at = AdaptiveCuckoo::slots(&hashed).find(|&at| self.mirror[at] == Some(key)).ok_or("no such key")?;
        self.put(at, None);
        self.len -= 1;
        Ok(Cost { changed: true, words: 3, reads: 1, writes: 1, ..Cost::default() })
    }

    /// Advances every slot that takes the key for its own; the keys in those slots are added to `found`.
    pub(crate) fn adapt(&mut self, key: Digest, found: &mut Vec<Digest>) -> Result<Cost, String> {
        let hashed = self.hash(key);
        let mut stats = Cost { words: 2, ..Cost::default() };
        for at in AdaptiveCuckoo::slots(&hashed) {
            let cell = self.cell(at);
            if cell == 0 || !AdaptiveCuckoo::takes(cell, &hashed) {
                continue;
            }
            stats.reads += 1;
            let owner = self.mirror[at].filter(|&owner| owner != key).ok_or("the key is in the set")?;
            self.set(at, Some(owner), ((cell & 3) as usize + 1) & 3);
            found.push(owner);
            stats.words += 1;
            stats.changed = true;
        }
        Ok(stats)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::HashSet;

    /// Against a set: keys come, go and are evicted, and false positives are repaired all the while.
    #[test]
    fn no_key_is_ever_lost() {
        for (capacity, width) in [(1, 8), (2, 8), (7, 4), (300, 8), (5000, 11)] {
            let mut filter = AdaptiveCuckoo::new(capacity, width, [capacity, 2]);
            let mut set: HashSet<u64> = HashSet::new();
            let mut dice = Stream::new(capacity);
            for round in 0..20_000u64 {
                let key = dice.draw() | 1;
                match dice.draw() % 3 {
                    0 if (set.len() as u64) < capacity => {
                        // A table so small may be full early: then it is as it was.
                        if filter.insert(filter.digest(key)).is_ok() {
                            set.insert(key);
                        }
                    }
                    1 if set.len() as u64 > capacity / 2 => {
                        let key = *set.iter().next().unwrap();
                        assert!(filter.remove(filter.digest(key)).unwrap().changed);
                        set.remove(&key);
                    }
                    _ => {
                        let stranger = filter.digest(key & !1);
                        if filter.contains(stranger) {
                            let mut found = vec![];
                            assert!(filter.adapt(stranger, &mut found).unwrap().changed && !found.is_empty());
                        }
                    }
                }
                if round % 500 == 0 {
                    assert!(set.iter().all(|&key| filter.contains(filter.digest(key))), "{capacity} {round}");
                }
            }
            assert!(set.iter().all(|&key| filter.contains(filter.digest(key))));
            for &key in &set {
                assert!(filter.adapt(filter.digest(key), &mut vec![]).is_err());
            }
            assert!(filter.remove(filter.digest(2)).is_err());
        }
    }

    /// Strangers pass as often as planned, and a repaired one does not pass until its slot has been through all functions.
    #[test]
    fn the_rate_is_that_of_eight_slots() {
        let mut filter = AdaptiveCuckoo::new(20_000, 8, [5, 6]);
        let mut dice = Stream::new(9);
        for _ in 0..20_000 {
            filter.insert(filter.digest(dice.draw() | 1)).unwrap();
        }
        let strangers = 400_000;
        let (mut wrong, mut again) = (0, 0);
        for _ in 0..strangers {
            let key = filter.digest(dice.draw() & !1);
            if filter.contains(key) {
                wrong += 1;
                filter.adapt(key, &mut vec![]).unwrap();
                again += u32::from(filter.contains(key));
            }
        }
        let mean = filter.fpr() * f64::from(strangers);
        assert!((f64::from(wrong) - mean).abs() < 5.0 * mean.sqrt(), "{wrong} {mean}");
        assert!(f64::from(again) < 0.02 * f64::from(wrong), "{again} {wrong}");
        assert_eq!(filter.bytes(), filter.buckets * 5);
    }
}
