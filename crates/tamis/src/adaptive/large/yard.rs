//! the entire hash of a key -> its place in the back yard, or its tombstone (\[Broom\] section 4.3).
//!
//! A word is 61 bits of hash and 3 bits of state. Linear probing; a word gives way to one that is further from home (Robin Hood), so
//! a search ends as soon as it meets a word that is nearer to its own: a query for an unlisted key reads two or three, all in one or two cache lines.
//!
//! ```text
//!   0 free   1 no free slot   2 evicted (a false positive)   3, 4, 5 a tombstone, of a hash function by its number mod 3
//! ```
//!
//! A *tombstone* is a key that was evicted and then removed: if it comes back under the same hash function it must come back here, or the
//! false positive that evicted it would match again. The tombstones of a function that is no longer in use are swept away by steps. Two
//! functions are in use and one may still have tombstones: hence three marks.

use crate::error::FormatError;

pub(super) const NO_FREE_SLOT: u64 = 1;
pub(super) const EVICTED: u64 = 2;
const TOMBSTONE: u64 = 3;
const STATE: u64 = 7;

/// The mark of a tombstone of this hash function.
pub(super) fn tombstone(function: u64) -> u64 {
    TOMBSTONE + function % 3
}

pub(super) fn tombstone_word(hash: u64, function: u64) -> u64 {
    hash & !STATE | tombstone(function)
}

/// Whether the key of a word was evicted from its slot.
pub(super) fn is_evicted(word: u64) -> bool {
    word & STATE == EVICTED
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Backyard {
    pub(super) words: Vec<u64>,
    /// Words that may be taken.
    pub(super) limit: u64,
    /// Keys, without tombstones.
    pub(super) keys: u64,
    tombstones: [u64; 3],
    /// Where the sweeping goes on.
    pub(super) broom: usize,
}

impl Backyard {
    /// An empty yard; none if there is no memory for it.
    pub(super) fn new(slots: u64, limit: u64) -> Option<Backyard> {
        let slots = usize::try_from(slots).ok()?;
        let mut words = vec![];
        words.try_reserve_exact(slots).ok()?;
        words.resize(slots, 0);
        Some(Backyard { words, limit, keys: 0, tombstones: [0; 3], broom: 0 })
    }

    /// Tombstones of this hash function.
    pub(super) fn tombstones(&self, function: u64) -> u64 {
        self.tombstones[(function % 3) as usize]
    }

    /// Words that are taken.
    pub(super) fn taken(&self) -> u64 {
        self.keys + self.tombstones.iter().sum::<u64>()
    }

    pub(super) fn has_room(&self) -> bool {
        self.taken() < self.limit
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    #[inline(always)]
    fn home(&self, word: u64) -> usize {
        ((u128::from(word & !STATE) * self.words.len() as u128) >> 64) as usize
    }

    #[inline(always)]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.words.len() { 0 } else { at + 1 }
    }

    /// How far from home a word lies.
    #[inline(always)]
    fn distance(&self, word: u64, at: usize) -> usize {
        let home = self.home(word);
        if at >= home { at - home } else { at + self.words.len() - home }
    }

    /// The place of the first word of this hash whose state is wanted.
    #[inline(always)]
    fn search(&self, hash: u64, wanted: impl Fn(u64) -> bool) -> Option<usize> {
        let mut at = self.home(hash);
        for far in 0..self.words.len() {
            let word = self.words[at];
            if word == 0 {
                return None;
            }
            if (word ^ hash) & !STATE == 0 && wanted(word & STATE) {
                return Some(at);
            }
            if self.distance(word, at) < far {
                return None;
            }
            at = self.after(at);
        }
        None
    }

    /// The word of a key with this hash. Tombstones do not count.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64) -> Option<u64> {
        self.search(hash, |state| state < TOMBSTONE).map(|at| self.words[at])
    }

    /// Whether a key with this hash was evicted, and then removed.
    pub(super) fn is_tombstone(&self, hash: u64, function: u64) -> bool {
        self.tombstones(function) > 0 && self.search(hash, |state| state == tombstone(function)).is_some()
    }

    fn count(&mut self, state: u64) -> &mut u64 {
        match state {
            TOMBSTONE.. => &mut self.tombstones[(state - TOMBSTONE) as usize % 3],
            _ => &mut self.keys,
        }
    }

    /// Puts a hash in; there must be room. Returns how many words were looked at.
    pub(super) fn put(&mut self, hash: u64, state: u64) -> u32 {
        let mut word = hash & !STATE | state;
        *self.count(state) += 1;
        let (mut at, mut far) = (self.home(word), 0);
        for looked in 1.. {
            let resident = self.words[at];
            if resident == 0 {
                self.words[at] = word;
                return looked;
            }
            let distance = self.distance(resident, at);
            if distance < far {
                self.words[at] = std::mem::replace(&mut word, resident);
                far = distance;
            }
            (at, far) = (self.after(at), far + 1);
        }
        0
    }

    /// Takes out a word that is there. Returns how many words were looked at.
    pub(super) fn take(&mut self, word: u64) -> u32 {
        match self.search(word, |state| state == word & STATE) {
            Some(at) => self.free(at),
            None => 0,
        }
    }

    /// Frees a slot: those behind it that are not at home come one nearer.
    fn free(&mut self, mut at: usize) -> u32 {
        *self.count(self.words[at] & STATE) -= 1;
        for looked in 1.. {
            let next = self.after(at);
            let word = self.words[next];
            if word == 0 || self.distance(word, next) == 0 {
                self.words[at] = 0;
                return looked;
            }
            self.words[at] = word;
            at = next;
        }
        0
    }

    /// Goes on sweeping through so many slots: the tombstones of this hash function disappear.
    pub(super) fn sweep(&mut self, function: u64, slots: u32) -> u32 {
        let mut looked = 0;
        for _ in 0..slots {
            if self.tombstones(function) == 0 {
                break;
            }
            looked += 1;
            match self.words[self.broom] & STATE == tombstone(function) {
                // Another word has come here; it is looked at next.
                true => looked += self.free(self.broom),
                false => self.broom = self.after(self.broom),
            }
        }
        looked
    }

    /// A yard from its parts; the error says what no filter writes.
    pub(super) fn from_parts(limit: u64, broom: u64, words: Vec<u64>) -> Result<Backyard, FormatError> {
        let slots = words.len() as u64;
        FormatError::check(limit < slots && broom < slots, || {
            format!("yard: {limit} words may be taken and the broom is at {broom}, expected less than {slots}")
        })?;
        let mut yard = Backyard { words, limit, keys: 0, tombstones: [0; 3], broom: broom as usize };
        for at in 0..yard.words.len() {
            let (word, next) = (yard.words[at], yard.after(at));
            let state = word & STATE;
            FormatError::check(word == 0 || state != 0, || format!("yard, slot {at}: a hash without a state"))?;
            FormatError::check(state < 6, || format!("yard, slot {at}: state {state}, expected 0 to 5"))?;
            if state != 0 {
                *yard.count(state) += 1;
            }
            let follower = yard.words[next];
            let reach = if word == 0 { 0 } else { yard.distance(word, at) + 1 };
            FormatError::check(follower == 0 || yard.distance(follower, next) <= reach, || {
                format!("yard, slot {next}: a hash that is not found from its home")
            })?;
        }
        let taken = yard.taken();
        FormatError::check(taken <= limit, || format!("yard: {taken} words are taken, expected at most {limit}"))?;
        Ok(yard)
    }
}
