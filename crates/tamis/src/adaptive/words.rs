//! words -> a table that finds each by some of its bits: whole hashes, and fingerprints with something next to them.
//!
//! Open addressing with linear probing, at most four slots of five in use. Removing a word moves later words back. No slot is ever
//! marked as deleted, so searches stay short however often words change.

use std::marker::PhantomData;

use crate::error::{BuildError, FormatError};
use crate::hash::{reduce, scramble};

/// How the words of a table are found.
pub(super) trait Home {
    /// The bits that a word is found by. The other bits are data, and never all zero: 0 is a free slot.
    const FIND: u64;
    /// Whether the first slot follows the last. Otherwise more slots follow the last home.
    const ROUND: bool;
    /// The home of a word whose other bits are zero.
    fn home(word: u64, homes: u64) -> u64;
}

/// Homes without order, for words that are found by all but their lowest `SHIFT` bits.
#[derive(Clone, Debug)]
pub(super) struct Scattered<const SHIFT: u32>;

impl<const SHIFT: u32> Home for Scattered<SHIFT> {
    const FIND: u64 = u64::MAX << SHIFT;
    const ROUND: bool = true;

    fn home(word: u64, homes: u64) -> u64 {
        reduce(scramble(word >> SHIFT), homes)
    }
}

/// Homes in the order of the words, for 58 bits of a hash with the length of a fingerprint.
///
/// With 58 bits two hashes of a table do not collide by chance, nor does an unlisted key match one.
#[derive(Clone, Debug)]
pub(super) struct Ordered;

impl Home for Ordered {
    const FIND: u64 = !63;
    const ROUND: bool = false;

    #[inline(always)]
    fn home(word: u64, homes: u64) -> u64 {
        reduce(word, homes)
    }
}

impl Ordered {
    const MAX_LENGTH: u32 = 62;

    /// The word of a hash: the low bits are one more than the length, so that no word is zero.
    pub(super) fn pack(hash: u64, length: u32) -> u64 {
        hash | (u64::from(length.min(Ordered::MAX_LENGTH)) + 1)
    }

    pub(super) fn length(word: u64) -> u32 {
        (word & !Ordered::FIND) as u32 - 1
    }
}

/// Hashes of keys that found no room in their block (\[Broom\] section 4.3, and the overflow of 4.2).
///
/// All hashes of a block lie close together. So the block alone finds them when it has room for one of them again.
pub(super) type Backyard = Words<Ordered>;

/// The slots after the last home, where the first slot does not follow.
const TAIL: usize = 128;

/// A multiset of words that are not zero.
#[derive(Clone, Debug)]
pub(super) struct Words<H> {
    slots: Vec<u64>,
    homes: u64,
    len: usize,
    capacity: usize,
    home: PhantomData<H>,
}

impl<H: Home> Words<H> {
    fn with(slots: Vec<u64>, capacity: usize) -> Words<H> {
        let len = slots.iter().filter(|&&word| word != 0).count();
        let homes = homes(capacity, H::ROUND);
        let capacity = if H::ROUND { capacity } else { homes - homes / 5 };
        Words { slots, homes: homes as u64, len, capacity, home: PhantomData }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn bytes(&self) -> usize {
        8 * self.slots.capacity()
    }

    #[inline(always)]
    fn home(&self, word: u64) -> usize {
        H::home(word & H::FIND, self.homes) as usize
    }

    #[inline(always)]
    fn next(&self, slot: usize) -> usize {
        if H::ROUND && slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    /// The slots from the home of a word on, with what is in them. The caller stops at a free slot; there is one if slots go round.
    #[inline(always)]
    fn probe(&self, word: u64) -> impl Iterator<Item = (usize, u64)> + '_ {
        let mut next = self.home(word);
        std::iter::from_fn(move || {
            let slot = next;
            next = self.next(slot);
            Some((slot, *self.slots.get(slot)?))
        })
    }

    /// The words that are found by the same bits as this one, with their slots.
    #[inline(always)]
    pub(super) fn like(&self, word: u64) -> impl Iterator<Item = (usize, u64)> + '_ {
        let taken = self.probe(word).take_while(|&(_, found)| found != 0);
        taken.filter(move |&(_, found)| (found ^ word) & H::FIND == 0)
    }

    #[inline(always)]
    pub(super) fn has(&self, word: u64) -> bool {
        self.like(word).next().is_some()
    }

    /// How many slots a search for this word reads.
    pub(super) fn reach(&self, word: u64) -> u32 {
        self.probe(word).take_while(|&(_, found)| found != 0).count() as u32 + 1
    }

    /// Whether there is room for this word and for one more: a change may insert two.
    pub(super) fn takes(&self, word: u64) -> bool {
        self.len + 2 <= self.capacity && self.probe(word).filter(|&(_, found)| found == 0).take(2).count() == 2
    }

    /// Adds a word and returns how many slots it read; `None` if there is no room, and nothing changes.
    pub(super) fn insert(&mut self, word: u64) -> Option<u32> {
        if self.len >= self.capacity || word == 0 {
            return None;
        }
        let (read, (slot, _)) = (1..).zip(self.probe(word)).find(|&(_, (_, found))| found == 0)?;
        self.slots[slot] = word;
        self.len += 1;
        Some(read)
    }

    /// Adds a word unless it is there; false if it is, or if there is no room.
    pub(super) fn insert_new(&mut self, word: u64) -> bool {
        !self.like(word).any(|(_, found)| found == word) && self.insert(word).is_some()
    }

    /// Removes a word; false if it is not there.
    pub(super) fn remove(&mut self, word: u64) -> bool {
        let found = self.like(word).find(|&(_, found)| found == word);
        found.inspect(|&(slot, _)| self.remove_at(slot)).is_some()
    }

    /// Empties a slot; words after it that may lie there move back.
    pub(super) fn remove_at(&mut self, mut hole: usize) {
        let slots = self.slots.len();
        // How far a slot lies after another, round the end.
        let after = |from: usize, to: usize| if to >= from { to - from } else { to + slots - from };
        let mut slot = self.next(hole);
        while let Some(&word) = self.slots.get(slot).filter(|&&word| word != 0) {
            if after(self.home(word), slot) >= after(hole, slot) {
                self.slots[hole] = word;
                hole = slot;
            }
            slot = self.next(slot);
        }
        self.slots[hole] = 0;
        self.len -= 1;
    }

    /// Removes the words that are `gone` from `count` slots from `from` on. Returns the slot to continue from, `None` at the end.
    pub(super) fn sweep(&mut self, from: usize, count: usize, gone: impl Fn(u64) -> bool) -> Option<usize> {
        let end = from.saturating_add(count).min(self.slots.len());
        for slot in from..end {
            while self.slots[slot] != 0 && gone(self.slots[slot]) {
                self.remove_at(slot);
            }
        }
        (end < self.slots.len()).then_some(end)
    }
}

impl<const SHIFT: u32> Words<Scattered<SHIFT>> {
    pub(super) fn new(capacity: usize) -> Result<Words<Scattered<SHIFT>>, BuildError> {
        let count = homes(capacity, true);
        let mut slots = vec![];
        slots.try_reserve_exact(count).map_err(|_| BuildError::NoMemory { bytes: 8 * count as u64 })?;
        slots.resize(count, 0);
        Ok(Words::with(slots, capacity))
    }

    /// All words in order, as a snapshot holds them.
    pub(super) fn sorted(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.slots.iter().copied().filter(|&word| word != 0).collect();
        all.sort_unstable();
        all
    }

    /// Fills an empty table from a snapshot; false if the words are not in order or too many.
    pub(super) fn fill(&mut self, sorted: &[u64]) -> bool {
        if sorted.len() > self.capacity || !sorted.is_sorted() || sorted.first() == Some(&0) {
            return false;
        }
        // In the order of their homes no word has to search for its slot: a file may give all words one home.
        let mut words: Vec<(u64, u64)> = sorted.iter().map(|&word| (self.home(word) as u64, word)).collect();
        words.sort_unstable();
        let (mut next, mut start) = (0, 0);
        for (home, word) in words {
            next = next.max(home as usize);
            let past = next >= self.slots.len();
            while past && self.slots[start] != 0 {
                start += 1;
            }
            self.slots[if past { start } else { next }] = word;
            next += 1;
        }
        self.len = sorted.len();
        true
    }
}

impl Backyard {
    pub(super) fn empty(capacity: usize) -> Backyard {
        Words::with(vec![0; backyard_slots(capacity)], capacity)
    }

    /// The slots as they lie, which is what a snapshot holds.
    pub(super) fn as_words(&self) -> &[u64] {
        &self.slots
    }

    /// A table for this capacity from its slots; the error says that no such table has them.
    pub(super) fn from_words(slots: Vec<u64>, capacity: usize) -> Result<Backyard, FormatError> {
        let (found, expected) = (8 * slots.len(), 8 * backyard_slots(capacity));
        FormatError::check(found == expected, || format!("back yard: {found} bytes, expected {expected}"))?;
        let yard: Backyard = Words::with(slots, capacity);
        let mut first = 0; // one past the last free slot so far
        for (slot, &word) in yard.slots.iter().enumerate() {
            if word == 0 {
                first = slot + 1;
                continue;
            }
            let found = word & !Ordered::FIND != 0 && (first..=slot).contains(&yard.home(word));
            FormatError::check(found, || "back yard: an entry is not where it is looked for")?;
        }
        FormatError::check(yard.len <= yard.capacity, || "back yard: more entries than it has room for")?;
        Ok(yard)
    }

    /// The words with hashes in `from..=to`, with their slots.
    pub(super) fn between(&self, from: u64, to: u64) -> impl Iterator<Item = (usize, u64)> + '_ {
        let last = self.home(to);
        let near = self.probe(from).take_while(move |&(slot, word)| slot <= last || word != 0);
        near.filter(move |&(_, word)| word != 0 && (from..=to).contains(&(word & Ordered::FIND)))
    }
}

/// Homes for so many words: searches grow long where less than a fifth is free.
fn homes(capacity: usize, round: bool) -> usize {
    capacity.saturating_add(capacity / 4).saturating_add(if round { 2 } else { 8 })
}

/// Bytes of memory of a [`Scattered`] table.
pub(super) fn cost(capacity: usize) -> u64 {
    8 * homes(capacity, true) as u64
}

fn backyard_slots(capacity: usize) -> usize {
    let homes = homes(capacity, false);
    homes + TAIL.min(homes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    type Table = Words<Scattered<8>>;

    /// Against an ordered map of counts: clusters, the end of the table, copies.
    #[test]
    fn words_come_and_go() {
        for capacity in [0, 1, 2, 7, 100] {
            let mut table = Table::new(capacity).unwrap();
            let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
            let mut state = capacity as u64;
            for round in 0..4000 {
                state = scramble(state);
                // Few upper parts, so that many words share one.
                let word = ((state >> 40) % 20) << 8 | (1 + (state >> 20) % 3);
                let there = counts.get(&word).copied().unwrap_or(0);
                if state & 1 == 0 {
                    let room = table.len() < capacity;
                    assert_eq!(table.insert(word).is_some(), room);
                    if counts.values().sum::<usize>() < capacity {
                        counts.insert(word, there + 1);
                    }
                } else {
                    assert_eq!(table.remove(word), there > 0);
                    counts.insert(word, there.saturating_sub(1));
                }
                let mut found: Vec<u64> = table.like(word).map(|(_, word)| word).collect();
                found.sort_unstable();
                let wanted = counts.range(word >> 8 << 8..(word >> 8 << 8) + 256);
                let wanted: Vec<u64> = wanted.flat_map(|(&w, &count)| std::iter::repeat_n(w, count)).collect();
                assert_eq!(found, wanted, "round {round}");
                assert_eq!(table.len(), counts.values().sum::<usize>());
            }
            let mut again = Table::new(capacity).unwrap();
            assert!(again.fill(&table.sorted()) && again.sorted() == table.sorted());
            let mut from = Some(0);
            while let Some(at) = from {
                from = again.sweep(at, 3, |word| word & 1 == 1);
            }
            let left: Vec<u64> = table.sorted().into_iter().filter(|word| word & 1 == 0).collect();
            assert_eq!(again.sorted(), left);
        }
        assert!(!Table::new(3).unwrap().fill(&[2, 1]) && !Table::new(3).unwrap().fill(&[0]));
    }

    #[test]
    fn a_yard_is_a_map() {
        for room in [0, 1, 10, 1000] {
            let mut yard = Backyard::empty(room);
            let mut map: BTreeMap<u64, u32> = BTreeMap::new();
            for round in 0..20_000u64 {
                let random = scramble(round);
                // Half of them close together, as the hashes of one block are.
                let hash = if random & 1 == 0 { scramble(random) & Ordered::FIND } else { (random >> 8) << 46 | 64 };
                let known = map.range(hash..).next().map(|entry| *entry.0);
                if random & 6 != 0 && !map.contains_key(&hash) {
                    let takes = yard.takes(hash);
                    assert!(takes || yard.len() * 2 + 4 > room, "{} of {room}", yard.len());
                    if takes {
                        assert!(yard.insert(Ordered::pack(hash, (random >> 50) as u32 % 70)).is_some());
                        map.insert(hash, ((random >> 50) as u32 % 70).min(Ordered::MAX_LENGTH));
                    }
                } else if let Some(known) = known {
                    let (at, word) = yard.like(known).next().unwrap();
                    yard.remove_at(at);
                    assert_eq!(map.remove(&known), Some(Ordered::length(word)));
                }
                assert_eq!((yard.has(hash), yard.len()), (map.contains_key(&hash), map.len()));
                if round % 500 == 0 {
                    assert!(map.keys().all(|&hash| yard.has(hash)));
                    let (from, to) = (hash, hash.saturating_add(u64::MAX / 3));
                    let mut found: Vec<(u64, u32)> =
                        yard.between(from, to).map(|(_, word)| (word & Ordered::FIND, Ordered::length(word))).collect();
                    found.sort();
                    assert_eq!(found, map.range(from..=to).map(|(k, v)| (*k, *v)).collect::<Vec<_>>());
                    let again = Backyard::from_words(yard.as_words().to_vec(), room).unwrap();
                    assert!(map.keys().all(|&hash| again.has(hash)) && again.len() == yard.len());
                }
            }
            assert!(map.len() + 2 >= room.min(500), "{} of {room}", map.len());
        }
    }

    /// The words beyond the last home are enough, for as many as there is room for and with hashes of a few crowded blocks among them.
    #[test]
    fn no_yard_is_full_at_its_end_by_chance() {
        for (room, yards) in [(1, 200), (2, 200), (10, 200), (50, 200), (120, 200), (1000, 100), (20_000, 5)] {
            for seed in 0..yards {
                let mut yard = Backyard::empty(room);
                for i in 0.. {
                    let random = scramble(seed << 32 | i);
                    // Every eighth is one of the sixteen hashes that a full block at the end may have spilled.
                    let last = i % 8 == 0 && i < 128;
                    let hash = if last { random | u64::MAX << 48 } else { random } & Ordered::FIND;
                    if yard.len() + 2 > yard.capacity() {
                        break;
                    }
                    assert!(yard.takes(hash), "{} of {room}", yard.len());
                    assert!(yard.insert(Ordered::pack(hash, 1)).is_some());
                }
            }
        }
    }

    #[test]
    fn a_damaged_yard_is_rejected() {
        let mut yard = Backyard::empty(100);
        (0..80u64).for_each(|i| assert!(yard.insert(Ordered::pack(scramble(i) & Ordered::FIND, 3)).is_some()));
        let words = yard.as_words();
        let restored = |words: &[u64], capacity| Backyard::from_words(words.to_vec(), capacity);
        assert!(restored(&words[1..], 100).is_err() && restored(words, 90).is_err());
        for at in 0..yard.homes as usize - 1 {
            let mut changed = words.to_vec();
            changed[at] = u64::MAX; // whose home is the last of all
            assert!(restored(&changed, 100).is_err(), "{at}");
        }
    }
}
