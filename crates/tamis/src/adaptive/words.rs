//! words -> a table that finds them by their upper bits: whole hashes, and fingerprints with something beside them.
//!
//! Open addressing with linear probing, four slots of five in use at most. Taking a word out moves those after it back, so no slot is
//! ever marked as deleted and a long life wears nothing.

use crate::error::BuildError;
use crate::hash::scramble;
use crate::leaves::bloom::reduce;

/// A multiset of words that are not zero.
#[derive(Clone, Debug)]
pub(super) struct Words {
    slots: Vec<u64>,
    len: usize,
    capacity: usize,
    /// Lower bits of a word that are not looked for.
    shift: u32,
}

impl Words {
    /// Room for so many words, found by all but their lowest `shift` bits.
    pub(super) fn new(capacity: usize, shift: u32) -> Result<Words, BuildError> {
        let count = count(capacity);
        let mut slots = vec![];
        let none = |_| BuildError::Unreachable { reason: format!("no memory for a table of {count} words") };
        slots.try_reserve_exact(count).map_err(none)?;
        slots.resize(count, 0);
        Ok(Words { slots, len: 0, capacity, shift })
    }

    /// Bytes of memory for so many words.
    pub(super) fn cost(capacity: usize) -> u64 {
        8 * count(capacity) as u64
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

    fn home(&self, word: u64) -> usize {
        reduce(scramble(word >> self.shift), self.slots.len() as u64) as usize
    }

    fn next(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    /// The words whose upper bits are these.
    #[inline]
    pub(super) fn like(&self, upper: u64) -> impl Iterator<Item = u64> + '_ {
        let wanted = upper << self.shift;
        // An empty slot ends the search, and there always is one.
        let slots = std::iter::successors(Some(self.home(wanted)), |&slot| Some(self.next(slot)));
        let words = slots.map(|slot| self.slots[slot]).take_while(|&word| word != 0);
        words.filter(move |word| word >> self.shift == upper)
    }

    /// Adds a word; false, and nothing is changed, if the table is full.
    pub(super) fn insert(&mut self, word: u64) -> bool {
        if self.len >= self.capacity || word == 0 {
            return false;
        }
        let mut slot = self.home(word);
        while self.slots[slot] != 0 {
            slot = self.next(slot);
        }
        self.slots[slot] = word;
        self.len += 1;
        true
    }

    /// Takes a word out; false if it is not there.
    pub(super) fn remove(&mut self, word: u64) -> bool {
        let mut slot = self.home(word);
        while self.slots[slot] != word {
            if self.slots[slot] == 0 {
                return false;
            }
            slot = self.next(slot);
        }
        self.take(slot);
        true
    }

    /// Empties a slot; what follows and may stand there moves back.
    fn take(&mut self, mut hole: usize) {
        let slots = self.slots.len();
        // How far a slot lies after another, round the end.
        let after = |from: usize, to: usize| if to >= from { to - from } else { to + slots - from };
        let mut slot = self.next(hole);
        while self.slots[slot] != 0 {
            let home = self.home(self.slots[slot]);
            if after(home, slot) >= after(hole, slot) {
                self.slots[hole] = self.slots[slot];
                hole = slot;
            }
            slot = self.next(slot);
        }
        self.slots[hole] = 0;
        self.len -= 1;
    }

    /// Takes out what `gone` says of the slots from `from` on, `count` of them; returns the slot to go on from, none at the end.
    pub(super) fn sweep(&mut self, from: usize, count: usize, gone: impl Fn(u64) -> bool) -> Option<usize> {
        let end = from.saturating_add(count).min(self.slots.len());
        for slot in from..end {
            while self.slots[slot] != 0 && gone(self.slots[slot]) {
                self.take(slot);
            }
        }
        (end < self.slots.len()).then_some(end)
    }

    /// All words, in order: what a snapshot holds.
    pub(super) fn sorted(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.slots.iter().copied().filter(|&word| word != 0).collect();
        all.sort_unstable();
        all
    }

    /// Fills an empty table with what a snapshot holds; false if that is not in order, or too much.
    pub(super) fn fill(&mut self, sorted: &[u64]) -> bool {
        if sorted.len() > self.capacity || !sorted.is_sorted() || sorted.first() == Some(&0) {
            return false;
        }
        // In the order of their homes no word has to search for its slot: a file may give all words one home.
        let mut words: Vec<(usize, u64)> = sorted.iter().map(|&word| (self.home(word), word)).collect();
        words.sort_unstable();
        let (mut next, mut start) = (0, 0);
        for (home, word) in words {
            next = next.max(home);
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

/// Slots for so many words.
fn count(capacity: usize) -> usize {
    capacity.saturating_add(capacity / 4).saturating_add(2)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    /// Against an ordered map of counts: clusters, the end of the table, copies.
    #[test]
    fn words_come_and_go() {
        for capacity in [0, 1, 2, 7, 100] {
            let mut table = Words::new(capacity, 8).unwrap();
            let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
            let mut state = capacity as u64;
            for round in 0..4000 {
                state = scramble(state);
                // Few upper parts, so that many words share one.
                let word = ((state >> 40) % 20) << 8 | (1 + (state >> 20) % 3);
                let there = counts.get(&word).copied().unwrap_or(0);
                if state & 1 == 0 {
                    let room = table.len() < capacity;
                    assert_eq!(table.insert(word), room);
                    if counts.values().sum::<usize>() < capacity {
                        counts.insert(word, there + 1);
                    }
                } else {
                    assert_eq!(table.remove(word), there > 0);
                    counts.insert(word, there.saturating_sub(1));
                }
                let mut found: Vec<u64> = table.like(word >> 8).collect();
                found.sort_unstable();
                let wanted = counts.range(word >> 8 << 8..(word >> 8 << 8) + 256);
                let wanted: Vec<u64> = wanted.flat_map(|(&w, &count)| std::iter::repeat_n(w, count)).collect();
                assert_eq!(found, wanted, "round {round}");
                assert_eq!(table.len(), counts.values().sum::<usize>());
            }
            let mut again = Words::new(capacity, 8).unwrap();
            assert!(again.fill(&table.sorted()) && again.sorted() == table.sorted());
            let mut from = Some(0);
            while let Some(at) = from {
                from = again.sweep(at, 3, |word| word & 1 == 1);
            }
            let left: Vec<u64> = table.sorted().into_iter().filter(|word| word & 1 == 0).collect();
            assert_eq!(again.sorted(), left);
        }
        assert!(!Words::new(3, 8).unwrap().fill(&[2, 1]) && !Words::new(3, 8).unwrap().fill(&[0]));
    }
}
