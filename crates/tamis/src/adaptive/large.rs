//! keys, false positives -> a broom filter of large remainders (\[Broom\] section 4.3), for rates from about 2^-14 down to 2^-40.
//!
//! ```text
//!   hash 1 ──▶ bin ──▶ │ signature │ signature │ ··· 64 ···│     front yard: one bin, compared all at once
//!                           │ equal?
//!   hash 2 ──▶ rest ──▶ │ rest │ rest │ ···                      one look, for one key in a thousand
//!   hash 3 ──▶ 61 bits ──▶ │ hash │ hash │ ···                   back yard: 2 to 8 % of the keys
//! ```
//!
//! Almost every key has a slot: a *signature* of 16 bits that no other key of its bin has, and next to it the *rest* of its
//! remainder, as many bits as the rate needs. Keys that find their bin full or their signature taken go to
//! the back yard, where 61 bits of another hash stand for them. That reads no map.
//!
//! **Adapting** evicts the key behind the false positive from its slot into the back yard. Its hash there has nothing to do with
//! its slot, so it does not match the same false positive again. The price is a yard that fills, and the answer is to
//! move [`STEPS`](crate::math::large::STEPS) keys to the next hash function for every false positive; so few of them are needed that this is cheap.
//! The yard never fills, however long an attack goes on: see [`math::large`](crate::math::large).
//!
//! **Removing a key that was evicted** leaves a tombstone. When the key comes back it goes into the yard at once, for if it got its slot again,
//! so would its false positive. The paper's own removals forget this.
//!
//! **Why three hashes.** If the 61 bits of the yard were those of the slot and some more, few would be left to tell a key
//! from its false positive where the rate is low. Independent ones all count.
//!
//! **What it costs.** [`Broom`](super::Broom) is 8 bits per key smaller wherever it reaches, to 2^-24. This one is for the rates below.
//!
//! **Names.** A key is filed under its bin, signature and rest, in the yard as well: being evicted writes nothing to the map.
//!
//! Two keys with the same 61 bits (one pair in 2^61) share the answer "yes" until the next hash function; no key is ever lost by it,
//! but the one with a slot cannot be removed while the other is in the yard: [`AdaptError::Inconsistent`](super::AdaptError::Inconsistent).

mod codec;
mod front;
mod plan;
mod yard;

use std::io;

use super::builder::{AdaptiveBuilder, Built, Empty, Sizing};
use super::frontier::{Frontier, Side};
use super::{Adapt, AdaptError, AdaptiveFilter, Mechanism, ReverseMap, Task};
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::hash::{Digest, Hasher, KeyType, Salt};
use crate::math::large::{STEPS, shape};
use front::{Front, Print};
use plan::Change as LargeChange;
use plan::{Act, Destination, Source};
use yard::{Backyard, EVICTED};

/// Slots of the yard that a step looks through for tombstones that are no longer needed.
const SLOTS_PER_SWEEP: u32 = 16;

/// Adaptive filter for rates from 2^-24 to 2^-40, for any sequence of queries.
///
/// It does not grow: a key more than its capacity is [`ChangeError::Full`](crate::error::ChangeError::Full).
///
/// ```
/// use tamis::adaptive::{Adapt, AdaptiveFilter, LargeBroom, Memory, Remove};
/// let mut map = Memory::new();
/// let mut broom = LargeBroom::with_capacity(1000).fpr(1e-6).build::<str>()?;
/// broom.insert("ann", &mut map)?;
/// assert!(broom.contains("ann")?);
/// if broom.contains("bob")? {
///     broom.adapt("bob", &mut map)?; // one in a million; not again
/// }
/// broom.remove("ann", &mut map)?;
/// assert!(broom.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LargeBroom {
    capacity: u64,
    rate: f64,
    frontier: Frontier,
    hashes: [Hashes; 2],
    front: Front,
    yard: Backyard,
    /// Keys on the old side of the frontier.
    old: u64,
}

brief_debug!(LargeBroom, it => keys: it.len(), capacity: it.capacity, rate: it.rate, bytes: it.memory_bytes());

impl Built for LargeBroom {
    type Options = Sizing<()>;
}

impl Empty for LargeBroom {
    type More = ();

    fn empty(sizing: &Sizing<()>, key_type: KeyType, hasher: Hasher) -> Result<LargeBroom, BuildError> {
        let Sizing { capacity, fpr: rate, .. } = *sizing;
        let none = BuildError::NoSize { structure: "broom filter of large remainders", keys: capacity, rate };
        let shape = shape(capacity, rate).ok_or(none)?;
        let front = Front::new(shape.bins, shape.rest);
        let yard = Backyard::new(shape.yard_slots, shape.yard_keys);
        let (Some(front), Some(yard)) = (front, yard) else {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory).into());
        };
        let frontier = Frontier::new(hasher, key_type);
        let hashes = hashes(&frontier);
        Ok(LargeBroom { capacity, rate, frontier, hashes, front, yard, old: 0 })
    }
}

/// The three hashes of a side of the frontier.
#[derive(Clone, Copy, Debug)]
struct Hashes {
    place: Salt,
    rest: Salt,
    yard: Salt,
}

fn hashes(frontier: &Frontier) -> [Hashes; 2] {
    [Side::Old, Side::New].map(|side| {
        let salt = frontier.salt(side);
        Hashes { place: salt, rest: salt.child(1), yard: salt.child(2) }
    })
}

impl LargeBroom {
    /// Starts a filter for `capacity` keys.
    pub fn with_capacity(capacity: u64) -> AdaptiveBuilder<LargeBroom> {
        AdaptiveBuilder::new(capacity, ())
    }

    /// Keys and tombstones in the back yard, and how many it may hold.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn yard(&self) -> (u64, u64) {
        (self.yard.taken(), self.yard.limit)
    }

    fn print(&self, key: Digest) -> Print {
        self.print_by(&self.hashes[self.frontier.side(key) as usize], key)
    }

    fn print_by(&self, hashes: &Hashes, key: Digest) -> Print {
        let (bin, signature) = self.front.place(key.salted(hashes.place));
        Print { bin, signature, rest: self.front.rest_of(key.salted(hashes.rest)) }
    }

    fn yard_hash(&self, key: Digest) -> u64 {
        key.salted(self.hashes[self.frontier.side(key) as usize].yard)
    }

    /// The number of the last hash function that went out of use, as far as tombstones can tell.
    fn gone(&self) -> u64 {
        self.frontier.epoch + 2
    }

    fn put(&mut self, to: Destination) -> u32 {
        match to {
            Destination::Front(print) => {
                // Planned: the bin has a free slot.
                self.front.put(print);
                front::WORDS
            }
            Destination::Backyard { hash, state } => {
                // Each evicted key adds moves, also one that another key evicted.
                if state == EVICTED {
                    self.frontier.add_moves(STEPS);
                }
                self.yard.put(hash, state)
            }
            Destination::Tombstone { word } => self.yard.take(word) + self.yard.put(word, EVICTED),
        }
    }

    /// Takes a key out; returns how many words were looked at.
    fn take(&mut self, from: Source) -> u32 {
        match from {
            Source::Front(slot) => {
                self.front.free(slot);
                front::WORDS
            }
            Source::Backyard(word) => self.yard.take(word),
        }
    }

    fn sweep(&mut self) -> u32 {
        self.yard.sweep(self.gone(), SLOTS_PER_SWEEP)
    }
}

impl Mechanism for LargeBroom {
    type Change = LargeChange;

    fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    fn plan<M: ReverseMap>(&self, task: Task, map: &mut M) -> Result<Option<LargeChange>, AdaptError<M::Error>> {
        match task {
            Task::Insert(key) => self.plan_insert(key, map),
            Task::Adapt(key) => self.plan_adapt(key, map),
            Task::Move => self.plan_move(map),
        }
    }

    fn apply(&mut self, LargeChange { act, words: planning }: LargeChange) -> u32 {
        let making = match act {
            Act::Insert { side, to } => {
                self.old += u64::from(side == Side::Old);
                self.put(to)
            }
            Act::Remove { side, from } => {
                // Saturating: a file, or a map that lies, may have counted wrong.
                self.old = self.old.saturating_sub(u64::from(side == Side::Old));
                let mut words = self.take(from);
                if let Source::Backyard(word) = from
                    && yard::is_evicted(word)
                {
                    words += self.yard.put(word, yard::tombstone(self.frontier.number(side)));
                    self.frontier.add_moves(STEPS);
                }
                words
            }
            Act::Evict { slot, hash } => {
                self.frontier.add_moves(STEPS);
                self.front.free(slot);
                self.yard.put(hash, EVICTED) + front::WORDS
            }
            Act::AddMoves => {
                self.frontier.add_moves(STEPS);
                0
            }
            Act::Move { key, from, to } => {
                self.old = self.old.saturating_sub(1);
                self.frontier.pass(key);
                self.take(from) + self.put(to) + self.sweep()
            }
            Act::Sweep => {
                self.frontier.made_move();
                self.sweep()
            }
            Act::Turn => {
                self.frontier.made_move();
                self.frontier.turn();
                self.old = self.len();
                self.hashes = hashes(&self.frontier);
                0
            }
        };
        planning + making
    }
}

impl AdaptiveFilter for LargeBroom {
    fn len(&self) -> u64 {
        self.front.keys + self.yard.keys
    }

    fn memory_bytes(&self) -> usize {
        size_of::<LargeBroom>() + self.front.bytes() + self.yard.bytes()
    }

    fn fpr(&self) -> f64 {
        self.rate
    }
}

impl Adapt for LargeBroom {
    fn capacity(&self) -> u64 {
        self.capacity
    }
}

#[cfg(test)]
mod tests;
