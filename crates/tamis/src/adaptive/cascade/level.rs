//! a key -> alive, dead or absent: one level of a cascade, which is a filter and the set of its dead spots.
//!
//! A *spot* is what keys share that a level cannot tell apart: a fingerprint, or a cell of a Bloom filter's first segment. A false
//! positive makes its spot dead, and from then on keys at the spot are sent on to the next level. Marks are not one bit per slot
//! but a set of their own: at most two spots per `steps` keys are ever dead, and a quotient table of so few spots takes less than
//! a bit per key. It is exact, because a spot is a small number: all of its bits are stored.

use crate::adaptive::file::Kind;
use crate::error::{BuildError, FormatError};
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, Salt};
use crate::leaves::change::Layer;
use crate::leaves::quotient::OwnedQuotient;
use crate::math::quotient::{MAX_REMAINDER, capacity, slots};

/// A filter that can be a level of a [`Cascade`](super::Cascade): [`Quotients`](super::Quotients), [`Cuckoos`](super::Cuckoos) or
/// [`Segments`](crate::adaptive::Segments).
// Sealed: what a level does is a matter of this crate.
#[allow(private_bounds)]
pub trait Level: Store {}

/// A [`Level`] that stores fingerprints, so that a removed key leaves nothing behind: [`Quotients`](super::Quotients) and [`Cuckoos`](super::Cuckoos).
pub trait Erase: Level {}

/// What a level does.
pub(crate) trait Store: Sized + Clone {
    /// The cascade of such levels in a file.
    const KIND: Kind;
    /// Whether fingerprints are kept as they are: they can be counted, and taken out. An [`Erase`] has them.
    const LOSSLESS: bool = true;
    /// Keys that leave with one spot, on average; rather more.
    const KEYS_PER_FINGERPRINT: f64 = 1.25;
    fn new(capacity: u64, rate: f64, salt: Salt) -> Result<Self, BuildError>;
    /// How many spots there are; at most 2^57.
    fn spots(&self) -> u64;
    fn spot(&self, key: Digest) -> u64;
    /// Whether a key looks as if it were here.
    fn holds(&self, key: Digest) -> bool;
    /// Takes a key in; false, and nothing is changed, if it finds no place.
    fn insert(&mut self, key: Digest) -> bool;
    /// A key is on its way to a later level.
    fn pass(&mut self, _: Digest) {}
    /// Takes out a key that moves on, or one that is removed; false if it is not there. A Bloom filter keeps its bits.
    fn remove(&mut self, key: Digest) -> bool;
    /// How many keys are at the spot of this one, if it can tell.
    fn copies(&self, key: Digest) -> Option<u64>;
    /// What is in it: keys, or insertions so far.
    fn len(&self) -> u64;
    fn table(&self) -> &[u8];
    /// A level with this table; nothing, and no memory is taken, if no level of this size has it. `len` is what it had.
    fn load(capacity: u64, rate: f64, salt: Salt, table: &[u8], len: u64) -> Result<Option<Self>, BuildError>;
}

/// Slots and remainder of a table for `count` dead spots below `spots`, or for more. The quotient of a spot is its upper bits, so the
/// number of slots is that of spots, halved a few times.
fn marks_size(count: u64, spots: u64) -> (u64, u32) {
    let enough = |remainder: &u32| (spots >> remainder) + 1 >= slots(count);
    let remainder = (1..=MAX_REMAINDER).rev().find(enough).unwrap_or(1);
    // Where there are fewer spots than marks, all of them can die.
    (((spots >> remainder) + 1).max(slots(count)), remainder)
}

/// What a level says of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It is not in the set.
    Absent,
    /// It is here, perhaps.
    Alive,
    /// It is at a later level, perhaps.
    Dead,
}

/// Spots whose keys found no place in the table. A cuckoo table has no place for a key once in many tables, a quotient table never in practice.
const MAX_STASH: usize = 16;
/// More keys than a file can claim for a level.
const MAX_LEVEL_KEYS: u64 = 1 << 48;

/// A level with its dead spots.
#[derive(Clone, Debug)]
pub(super) struct Tier<L> {
    pub(super) level: L,
    dead: OwnedQuotient,
    stash: Vec<u64>,
    size: Size,
}

/// Numbers of a tier.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Size {
    pub(super) capacity: u64,
    pub(super) rate: f64,
    /// Spots that can die.
    pub(super) marks: u64,
    /// Keys here from which on the generation wants to be replaced.
    pub(super) worn: u64,
}

impl Size {
    /// The spots of a level, if they are few enough.
    fn spots<L: Level>(&self, level: &L) -> Result<u64, BuildError> {
        let Size { capacity: keys, rate, .. } = *self;
        match level.spots() {
            spots if spots > 1 << 57 => Err(BuildError::Fingerprints { structure: "cascade", keys, rate, bits: 57 }),
            spots => Ok(spots),
        }
    }
}

impl<L: Level> Tier<L> {
    pub(super) fn new(size: &Size, salt: Salt) -> Result<Tier<L>, BuildError> {
        let level = L::new(size.capacity, size.rate, salt)?;
        let dead = OwnedQuotient::empty(marks_size(size.marks, size.spots(&level)?), Salt::new(0))?;
        Ok(Tier { level, dead, stash: vec![], size: *size })
    }

    /// Whether keys at the spot of this one are sent on.
    pub(super) fn is_dead(&self, key: Digest) -> bool {
        self.dead.has(self.level.spot(key))
    }

    #[inline]
    pub(super) fn find(&self, key: Digest) -> State {
        let holds = self.level.holds(key) || (!self.stash.is_empty() && self.stash.contains(&self.level.spot(key)));
        // A table of fingerprints has lost those of a dead spot; a Bloom filter still has their bits.
        match (L::LOSSLESS, holds) {
            (true, true) => State::Alive,
            (false, false) => State::Absent,
            _ if self.is_dead(key) => State::Dead,
            (true, false) => State::Absent,
            (false, true) => State::Alive,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.level.len() < self.size.capacity && self.stash.len() < MAX_STASH
    }

    pub(super) fn can_kill(&self) -> bool {
        self.dead() < capacity(self.dead.geometry.range() >> self.dead.remainder())
    }

    /// Whether it wants to be replaced.
    pub(super) fn is_worn(&self) -> bool {
        2 * self.dead() >= self.size.marks || self.level.len() >= self.size.worn || self.stash.len() > MAX_STASH / 2
    }

    pub(super) fn dead(&self) -> u64 {
        self.dead.keys()
    }

    pub(super) fn insert(&mut self, key: Digest) {
        if !self.level.insert(key) {
            self.stash.push(self.level.spot(key));
        }
    }

    pub(super) fn remove(&mut self, key: Digest) {
        if !self.level.remove(key) {
            let spot = self.level.spot(key);
            if let Some(at) = self.stash.iter().position(|&found| found == spot) {
                self.stash.swap_remove(at);
            }
        }
    }

    pub(super) fn copies(&self, key: Digest) -> Option<u64> {
        let spot = self.level.spot(key);
        let more = self.stash.iter().filter(|&&found| found == spot).count() as u64;
        self.level.copies(key).map(|copies| copies + more)
    }

    /// The spot of this key is dead from now on.
    pub(super) fn kill(&mut self, key: Digest) {
        if !self.is_dead(key) {
            self.dead.put(self.level.spot(key));
        }
    }

    /// Keys in it, or insertions.
    pub(super) fn len(&self) -> u64 {
        self.level.len() + self.stash.len() as u64
    }

    pub(super) fn bytes(&self) -> usize {
        self.level.table().len() + self.dead.payload.capacity() + 8 * self.stash.capacity()
    }

    /// Fields: length of the level, number of stashed spots, they themselves. Payloads: the level, the dead spots.
    pub(super) fn encode(&self, fields: &mut Vec<u8>, payloads: &mut Vec<Vec<u8>>) {
        put_varint(fields, self.level.len());
        put_varint(fields, self.stash.len() as u64);
        self.stash.iter().for_each(|&spot| put_varint(fields, spot));
        payloads.extend([self.level.table().to_vec(), self.dead.payload.clone()]);
    }

    pub(super) fn load(
        size: &Size,
        salt: Salt,
        from: &mut Reader<'_>,
        [level, dead]: [&[u8]; 2],
    ) -> Result<Tier<L>, FormatError> {
        let fail = |e: BuildError| FormatError::invalid(e.to_string());
        let wrong = || FormatError::invalid("payload: the slots of a level contradict one another");
        from.draw(OwnedQuotient::CHECK * (level.len() + dead.len()) as u64)?;
        let len = from.within("keys of a level", 0..=MAX_LEVEL_KEYS)?;
        let level = L::load(size.capacity, size.rate, salt, level, len).map_err(fail)?.ok_or_else(wrong)?;
        let spots = size.spots(&level).map_err(fail)?;
        let count = from.within("stashed keys", 0..=4 * MAX_STASH as u64)?;
        let mut stash = from.room(count)?;
        for _ in 0..count {
            stash.push(from.within("stashed spot", 0..=spots - 1)?);
        }
        let dead = OwnedQuotient::reopened(marks_size(size.marks, spots), Salt::new(0), dead);
        let dead = dead.map_err(fail)?.ok_or_else(wrong)?;
        let mut all = dead.places();
        all.dedup();
        match level.len() == len && all.len() as u64 == dead.keys() {
            true => Ok(Tier { level, dead, stash, size: *size }),
            false => Err(wrong()),
        }
    }
}
