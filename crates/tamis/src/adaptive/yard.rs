//! hashes that found no room -> a small table of whole hashes: the back yard (\[Broom\] section 4.3; here also the overflow of 4.2).
//!
//! An entry is 58 bits of a hash and 6 bits for the length of the fingerprint it has earned. Entries lie as near after
//! their home as there is room, and homes are in the order of the hashes: so all entries of a block of the front yard lie close together,
//! and can be found by the block alone when it has room for one of them again.
//!
//! With 58 bits two hashes in the yard do not meet by chance, and a stranger meets none: the yard needs no repairs.

use super::file::{bytes_of, words_of};
use crate::error::FormatError;

/// The low bits of an entry: one more than its length, so that no entry is zero.
const LENGTH: u64 = 63;

/// The bits of a hash that are kept.
pub(super) const HASH: u64 = !LENGTH;

/// The longest length of an entry.
const LONGEST: u32 = 62;

/// The entries beyond the last home.
const SPARE: usize = 128;

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Yard {
    words: Vec<u64>,
    homes: u64,
    len: usize,
}

impl Yard {
    /// A yard for this many entries.
    pub(super) fn new(room: usize) -> Yard {
        let homes = homes(room);
        Yard { words: vec![0; words(homes)], homes: homes as u64, len: 0 }
    }

    /// How many entries it takes.
    pub(super) fn room(&self) -> usize {
        (self.homes - self.homes / 5) as usize
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        8 * self.words.len()
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        ((hash as u128 * self.homes as u128) >> 64) as usize
    }

    /// Where the entry of a hash is.
    #[inline(always)]
    fn place(&self, hash: u64) -> Option<usize> {
        let rest = &self.words[self.home(hash)..];
        let at = rest.iter().position(|&word| word == 0 || word & HASH == hash)?;
        (rest[at] != 0).then_some(self.home(hash) + at)
    }

    /// Whether a hash is in it.
    #[inline(always)]
    pub(super) fn has(&self, hash: u64) -> bool {
        self.place(hash).is_some()
    }

    /// Whether there is room for this hash, and for one more: a change may put two in.
    pub(super) fn takes(&self, hash: u64) -> bool {
        let free = self.words[self.home(hash)..].iter().filter(|&&word| word == 0);
        self.len + 2 <= self.room() && free.take(2).count() == 2
    }

    /// Puts a hash in; nothing happens if there is no room. Returns the words it touched.
    pub(super) fn insert(&mut self, hash: u64, length: u32) -> u32 {
        let home = self.home(hash);
        let free = self.words[home..].iter().position(|&word| word == 0);
        debug_assert!(free.is_some() && self.len < self.room(), "nobody asked whether there is room");
        let Some(free) = free else { return 0 };
        self.words[home + free] = hash | (u64::from(length.min(LONGEST)) + 1);
        self.len += 1;
        free as u32 + 1
    }

    /// Takes a hash out; returns the length it had.
    pub(super) fn remove(&mut self, hash: u64) -> Option<u32> {
        let at = self.place(hash)?;
        let length = length(self.words[at]);
        self.remove_at(at);
        Some(length)
    }

    fn remove_at(&mut self, at: usize) {
        let mut gap = at;
        for next in at + 1..self.words.len() {
            let word = self.words[next];
            if word == 0 {
                break;
            }
            if self.home(word) <= gap {
                self.words[gap] = word;
                gap = next;
            }
        }
        self.words[gap] = 0;
        self.len -= 1;
    }

    /// The entries with hashes in `from..=to`, as (place, hash, length).
    pub(super) fn between(&self, from: u64, to: u64) -> impl Iterator<Item = (usize, u64, u32)> + '_ {
        let (first, last) = (self.home(from), self.home(to));
        let words = self.words.iter().enumerate().skip(first);
        words.take_while(move |&(at, &word)| at <= last || word != 0).filter_map(move |(at, &word)| {
            let inside = (from..=to).contains(&(word & HASH));
            (word != 0 && inside).then(|| (at, word & HASH, length(word)))
        })
    }

    /// Takes out the entry at a place that [`between`](Self::between) named.
    pub(super) fn take(&mut self, at: usize) {
        self.remove_at(at);
    }

    /// How many words a search for this hash looks at.
    pub(super) fn reach(&self, hash: u64) -> u32 {
        let rest = &self.words[self.home(hash)..];
        rest.iter().position(|&word| word == 0).map_or(rest.len(), |at| at + 1) as u32
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        bytes_of(&self.words)
    }

    /// A yard for `room` entries with these words; the error is that they are no such yard.
    pub(super) fn decode(bytes: &[u8], room: usize) -> Result<Yard, FormatError> {
        let homes = homes(room);
        if bytes.len() != 8 * words(homes) {
            let (found, expected) = (bytes.len(), 8 * words(homes));
            return Err(FormatError::invalid(format!("back yard: {found} bytes, expected {expected}")));
        }
        let words = words_of(bytes)?;
        let len = words.iter().filter(|&&word| word != 0).count();
        let yard = Yard { words, homes: homes as u64, len };
        let mut free = 0; // one past the last free word so far
        for (at, &word) in yard.words.iter().enumerate() {
            if word == 0 {
                free = at + 1;
            } else if word & LENGTH == 0 || !(free..=at).contains(&yard.home(word)) {
                return Err(FormatError::invalid("back yard: an entry is not where it is looked for"));
            }
        }
        if yard.len > yard.room() {
            return Err(FormatError::invalid("back yard: more entries than it has room for"));
        }
        Ok(yard)
    }
}

/// Homes for this many entries: searches grow long where less than a fifth is free.
fn homes(room: usize) -> usize {
    room + room / 4 + 8
}

/// Words for this many homes.
fn words(homes: usize) -> usize {
    homes + SPARE.min(homes)
}

/// The length in an entry.
#[inline(always)]
fn length(word: u64) -> u32 {
    (word & LENGTH) as u32 - 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::hash::scramble;
    use std::collections::BTreeMap;

    #[test]
    fn a_yard_is_a_map() {
        for room in [0, 1, 10, 1000] {
            let mut yard = Yard::new(room);
            let mut map: BTreeMap<u64, u32> = BTreeMap::new();
            for round in 0..20_000u64 {
                let random = scramble(round);
                // Half of them close together, as the hashes of one block are.
                let hash = if random & 1 == 0 { scramble(random) & HASH } else { (random >> 8) << 46 | 64 };
                let known = map.range(hash..).next().map(|entry| *entry.0);
                if random & 6 != 0 && !map.contains_key(&hash) {
                    let takes = yard.takes(hash);
                    assert!(takes || yard.len() * 2 + 4 > room, "{} of {room}", yard.len());
                    if takes {
                        yard.insert(hash, (random >> 50) as u32 % 70);
                        map.insert(hash, ((random >> 50) as u32 % 70).min(LONGEST));
                    }
                } else if let Some(known) = known {
                    assert_eq!(yard.remove(known), map.remove(&known));
                }
                assert_eq!((yard.has(hash), yard.len()), (map.contains_key(&hash), map.len()));
                if round % 500 == 0 {
                    assert!(map.keys().all(|&hash| yard.has(hash)));
                    let (from, to) = (hash, hash.saturating_add(u64::MAX / 3));
                    let mut found: Vec<(u64, u32)> =
                        yard.between(from, to).map(|(_, hash, length)| (hash, length)).collect();
                    found.sort();
                    assert_eq!(found, map.range(from..=to).map(|(k, v)| (*k, *v)).collect::<Vec<_>>());
                    let again = Yard::decode(&yard.encode(), room).unwrap();
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
                let mut yard = Yard::new(room);
                for i in 0.. {
                    let random = scramble(seed << 32 | i);
                    // Every eighth is one of the sixteen hashes that a full block at the end may have spilled.
                    let last = i % 8 == 0 && i < 128;
                    let hash = if last { random | u64::MAX << 48 } else { random } & HASH;
                    if yard.len() + 2 > yard.room() {
                        break;
                    }
                    assert!(yard.takes(hash), "{} of {room}", yard.len());
                    yard.insert(hash, 1);
                }
            }
        }
    }

    #[test]
    fn a_damaged_yard_is_refused() {
        let mut yard = Yard::new(100);
        (0..80u64).for_each(|i| assert!(yard.insert(scramble(i) & HASH, 3) > 0));
        let bytes = yard.encode();
        assert!(Yard::decode(&bytes[8..], 100).is_err() && Yard::decode(&bytes, 90).is_err());
        for at in 0..yard.homes as usize - 1 {
            let mut changed = bytes.clone();
            changed[8 * at..8 * at + 8].fill(0xff); // whose home is the last of all
            assert!(Yard::decode(&changed, 100).is_err(), "{at}");
        }
    }
}
