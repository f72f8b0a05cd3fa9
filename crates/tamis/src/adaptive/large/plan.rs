//! a task + what the map says -> a change of the filter, or the reason why there is none.

use super::LargeBroom;
use super::front::{self, Print};
use super::yard::{EVICTED, NO_FREE_SLOT, tombstone_word};
use crate::adaptive::frontier::Side;
use crate::adaptive::map::{done, ensure, filed, next_key, only};
use crate::adaptive::verbs::full;
use crate::adaptive::{AdaptError, AdaptiveFilter, Kept, PlanRemoval, Remove, ReverseMap};
use crate::debug::brief_debug;
use crate::hash::Digest;

/// A change of a [`LargeBroom`], ready to be made.
pub struct Change {
    pub(super) act: Act,
    /// Words that planning looked at.
    pub(super) words: u32,
}

brief_debug!(Change, it => words: it.words);

#[derive(Debug)]
pub(super) enum Act {
    /// A new key comes in.
    Insert { side: Side, to: Destination },
    /// A key leaves, and perhaps a tombstone stays.
    Remove { side: Side, from: Source },
    /// The key of a slot goes to the yard, under this hash.
    Evict { slot: usize, hash: u64 },
    /// Two keys with the same hash in the yard: only the next hash function helps.
    AddMoves,
    /// The next key goes to the next hash function.
    Move { key: Digest, from: Source, to: Destination },
    /// Tombstones of a hash function that is gone are swept away.
    Sweep,
    /// All keys have moved.
    Turn,
}

/// Where a key goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destination {
    /// A slot of its bin.
    Front(Print),
    /// The yard.
    Backyard { hash: u64, state: u64 },
    /// Its tombstone in the yard: it was here before, and was removed.
    Tombstone { word: u64 },
}

/// Where a key is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Front(usize),
    Backyard(u64),
}

type Planned<E> = Result<Option<Change>, AdaptError<E>>;

/// Words of a plan that looks at one bin, and at the yard a few times.
const WORDS_PER_PLAN: u32 = front::WORDS + 4;

fn change<E>(act: Act, words: u32) -> Planned<E> {
    Ok(Some(Change { act, words }))
}

/// The name of a print: what the keys that have it are filed under. Other prints may share it.
fn name(print: &Print) -> u64 {
    // The low bits of a bin and a signature are all that one word holds next to a long rest.
    let place = (print.bin as u64) << 16 | u64::from(print.signature);
    place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ print.rest
}

impl LargeBroom {
    /// Where a key that is not in the filter goes. `room`: whether the yard takes one.
    fn destination(&self, print: Print, hash: u64, room: bool) -> Option<Destination> {
        let state = match self.front.find(print.bin, print.signature) {
            None if self.front.free_slot(print.bin).is_some() => return Some(Destination::Front(print)),
            None => NO_FREE_SLOT,
            // As if it had been evicted: the other key may be, by a false positive with this print.
            Some(slot) if self.front.rest(slot) == print.rest => EVICTED,
            Some(_) => NO_FREE_SLOT,
        };
        room.then_some(Destination::Backyard { hash, state })
    }

    pub(super) fn plan_insert<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Planned<M::Error> {
        let (side, print, hash) = (self.frontier.side(key), self.print(key), self.yard_hash(key));
        let (slot, word) = (self.front.holder(&print), self.yard.find(hash));
        if (slot.is_some() || word.is_some()) && filed(map, name(&print))?.contains(&key) {
            return Ok(None);
        }
        ensure(self.len() < self.capacity, full(self))?;
        let function = self.frontier.number(side);
        let to = match self.yard.is_tombstone(hash, function) {
            true => Some(Destination::Tombstone { word: tombstone_word(hash, function) }),
            // Another key with this hash: what is in the yard must be so for all keys of a hash, or they could not be told apart.
            false if word.is_some() => {
                self.yard.has_room().then_some(Destination::Backyard { hash, state: NO_FREE_SLOT })
            }
            false => self.destination(print, hash, self.yard.has_room()),
        };
        let to = to.ok_or_else(|| full(self))?;
        map.file(key, name(&print)).map_err(AdaptError::Store)?;
        change(Act::Insert { side, to }, WORDS_PER_PLAN)
    }

    pub(super) fn plan_adapt<M: ReverseMap>(&self, false_positive: Digest, map: &mut M) -> Planned<M::Error> {
        if !self.contains_digest(false_positive) {
            return Ok(None);
        }
        let print = self.print(false_positive);
        let keys = filed(map, name(&print))?;
        ensure(!keys.contains(&false_positive), AdaptError::Member)?;
        let Some(slot) = self.front.holder(&print) else { return change(Act::AddMoves, WORDS_PER_PLAN) };
        let hash = self.yard_hash(self.owner(&print, &keys)?);
        ensure(self.yard.has_room(), full(self))?;
        change(Act::Evict { slot, hash }, WORDS_PER_PLAN)
    }

    pub(super) fn plan_move<M: ReverseMap>(&self, map: &mut M) -> Planned<M::Error> {
        let Some(key) = next_key(map, self.frontier.last)? else {
            return match self.old {
                0 if self.yard.tombstones(self.gone()) > 0 => change(Act::Sweep, 0),
                0 => change(Act::Turn, 0),
                // Keys that the map has lost would be lost with their hash function.
                _ => Err(AdaptError::order()),
            };
        };
        let print = self.print(key);
        let from = match (self.front.holder(&print), self.yard.find(self.yard_hash(key))) {
            (None, None) => return Err(AdaptError::order()),
            (Some(slot), None) => Source::Front(slot),
            (None, Some(word)) => Source::Backyard(word),
            // The slot is another key's, unless two keys have one hash in the yard.
            (Some(slot), Some(word)) => match self.owner(&print, &filed(map, name(&print))?)? == key {
                true => Source::Front(slot),
                false => Source::Backyard(word),
            },
        };
        let hashes = &self.hashes[Side::New as usize];
        let there = self.print_by(hashes, key);
        let room = self.yard.has_room() || matches!(from, Source::Backyard(_));
        let to = self.destination(there, key.salted(hashes.yard), room).ok_or_else(|| full(self))?;
        // A key that is not filed there is not in the set, even if it matches.
        done(map.refile(key, name(&print), name(&there)), AdaptError::order())?;
        change(Act::Move { key, from, to }, 2 * WORDS_PER_PLAN)
    }

    /// Of the keys under the name of this print, the one with the slot: all others that have the print are in the yard.
    fn owner<E>(&self, print: &Print, keys: &[Digest]) -> Result<Digest, AdaptError<E>> {
        let in_yard = |key: &&Digest| self.yard.find(self.yard_hash(**key)).is_some();
        let owners = keys.iter().filter(|key| self.print(**key) == *print && !in_yard(key));
        only(owners.copied(), name(print))
    }
}

impl Remove for LargeBroom {}

impl PlanRemoval for LargeBroom {
    fn plan_remove<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Result<Change, AdaptError<M::Error>> {
        ensure(self.contains_digest(key), AdaptError::NotMember)?;
        let print = self.print(key);
        let keys = filed(map, name(&print))?;
        ensure(keys.contains(&key), AdaptError::NotMember)?;
        let from = match (self.front.holder(&print), self.yard.find(self.yard_hash(key))) {
            (None, Some(word)) => Source::Backyard(word),
            // Not held; "contains" has said otherwise.
            (None, None) => return Err(AdaptError::NotMember),
            (Some(slot), word) => match self.owner(&print, &keys)? == key {
                true => Source::Front(slot),
                false => Source::Backyard(word.ok_or(AdaptError::ambiguous(name(&print)))?),
            },
        };
        done(map.unfile(key, name(&print)), AdaptError::unfiled(name(&print)))?;
        Ok(Change { act: Act::Remove { side: self.frontier.side(key), from }, words: WORDS_PER_PLAN })
    }
}
