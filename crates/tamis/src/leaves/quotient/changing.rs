//! keys in and out, also chosen ones -> a table that spreads what crowds.
//!
//! The blocks that insertions read and write are counted against a budget, [`ALLOWANCE`] for each and some in reserve. Ordinary keys
//! need a third of it in a table that is full to its capacity, and nearly nothing in others. When it is spent, or no slot from a key's
//! place to the end is free, all fingerprints go to new places under a random number, and the budget is doubled: so this happens a
//! few times at most, also where other places do not help. The reserve is about the work of spreading once; so chosen keys cost a
//! bounded number of blocks each, and no cluster that they make has more than some thousand slots.
//!
//! Copies of one fingerprint cannot be spread. Those beyond the first [`COPIES`] are not in the slots but counted in a map, which is
//! empty for most filters. A query finds one of the first; a deletion takes the others first.

use std::collections::BTreeMap;

use super::build::{Add, Count, Delete, SPARE};
use super::change::Put;
use super::owned::OwnedQuotient;
use super::table::BLOCK;
use super::{Quotient, places};
use crate::arch::dispatch;
use crate::error::BuildError;
use crate::hash::Digest;
use crate::hash::attempts::random_number;
use crate::leaves::change::Full;
use crate::math::quotient::MAX_SLOTS;

/// Copies of a fingerprint that are in slots.
const COPIES: usize = 64;

/// Blocks that an insertion may read and write beyond its own, on average. At a load of 19/20 it moves 200 slots: four or five blocks.
const ALLOWANCE: i64 = 16;

/// Blocks that insertions may still read and write.
#[derive(Clone, Copy, Debug)]
struct Budget {
    left: i64,
    /// More for each insertion.
    allowance: i64,
    /// `left` does not grow beyond this: a block for each slot.
    most: i64,
    /// How often all was spent.
    spent: u32,
}

impl Budget {
    fn new(slots: u64, spent: u32) -> Budget {
        let times = 1 << spent.min(20);
        // At most 2^40 slots: no product overflows.
        let most = (slots as i64 + 1024) * times;
        Budget { left: most / 8, allowance: ALLOWANCE * times, most, spent }
    }

    /// Whether there was enough for an insertion.
    #[inline(always)]
    fn spend(&mut self, blocks: usize) -> bool {
        self.left = (self.left + self.allowance).min(self.most) - blocks as i64;
        self.left >= 0
    }
}

/// A table for keys that anybody may choose.
#[derive(Clone, Debug)]
pub(crate) struct Changing {
    pub(crate) held: OwnedQuotient,
    /// How many copies are not in the slots, by place. The geometry counts them as keys.
    copies: BTreeMap<u64, u64>,
    budget: Budget,
}

impl From<OwnedQuotient> for Changing {
    fn from(held: OwnedQuotient) -> Changing {
        Changing { copies: BTreeMap::new(), budget: Budget::new(held.geometry.slots, 0), held }
    }
}

impl Changing {
    /// With these places, sorted, of a table whose budget was spent so often.
    fn of(geometry: Quotient, mut sorted: Vec<u64>, spent: u32) -> Result<Changing, BuildError> {
        let keys = sorted.len() as u64;
        let mut copies = BTreeMap::new();
        for equal in sorted.chunk_by(|a, b| a == b).filter(|equal| equal.len() > COPIES) {
            copies.insert(equal[0], (equal.len() - COPIES) as u64);
        }
        if !copies.is_empty() {
            let (mut last, mut count) = (None, 0);
            sorted.retain(|&place| {
                count = if last == Some(place) { count + 1 } else { 1 };
                last = Some(place);
                count <= COPIES
            });
        }
        let mut held = OwnedQuotient::of(geometry, &sorted)?;
        held.geometry.keys = keys;
        Ok(Changing { held, copies, budget: Budget::new(geometry.slots, spent) })
    }

    /// What a file holds; none if no writer wrote it.
    pub(crate) fn checked(geometry: Quotient, payload: &[u8]) -> Result<Option<Changing>, BuildError> {
        let Some(held) = OwnedQuotient::checked(geometry, payload)? else { return Ok(None) };
        let places = held.places();
        match places.chunk_by(|a, b| a == b).any(|equal| equal.len() > COPIES) {
            true => Changing::of(held.geometry, places, 0).map(Some),
            false => Ok(Some(held.into())),
        }
    }

    /// What a file holds of it: all copies in slots.
    pub(crate) fn whole(&self) -> Result<OwnedQuotient, BuildError> {
        match self.copies.is_empty() {
            true => Ok(self.held.clone()),
            false => OwnedQuotient::of(self.held.geometry, &self.places()),
        }
    }

    /// All places, sorted.
    fn places(&self) -> Vec<u64> {
        let mut all = self.held.places();
        for (&place, &count) in &self.copies {
            all.extend((0..count).map(|_| place));
        }
        // Two sorted lists: the standard library's stable sort finds them and merges.
        all.sort();
        all
    }

    /// All fingerprints, sorted.
    pub(crate) fn fingerprints(&self) -> Vec<u64> {
        let Quotient { number, .. } = self.held.geometry;
        let mut all = self.places();
        if number != 0 {
            let range = self.held.geometry.range();
            all.iter_mut().for_each(|place| *place = places::back(number, range, *place));
            all.sort_unstable();
        }
        all
    }

    /// Adds a key, or a copy of it. If there is no room nothing is changed.
    #[inline]
    pub(crate) fn insert(&mut self, key: Digest) -> Result<(), Full> {
        let OwnedQuotient { geometry, payload } = &mut self.held;
        let full = Full { keys: geometry.keys, capacity: geometry.capacity() };
        if full.keys >= full.capacity {
            return Err(full);
        }
        let place = geometry.placed(geometry.fingerprint(key));
        let blocks = match dispatch(geometry.level, Add(geometry.table(), payload, geometry.split(place), COPIES)) {
            Put::Done(blocks) => blocks,
            Put::Many => {
                *self.copies.entry(place).or_default() += 1;
                1
            }
            Put::Full => {
                let fingerprint = places::back(geometry.number, geometry.range(), place);
                return self.spread(Some(fingerprint)).map_err(|_| full);
            }
        };
        geometry.keys += 1;
        if !self.budget.spend(blocks) {
            self.relieve();
        }
        Ok(())
    }

    /// The budget is spent. Without memory for other places all stays where it is.
    #[cold]
    #[inline(never)]
    fn relieve(&mut self) {
        if self.spread(None).is_err() {
            self.budget = Budget::new(self.held.geometry.slots, self.budget.spent + 1);
        }
    }

    /// All fingerprints, and perhaps one more, in new places.
    #[cold]
    #[inline(never)]
    fn spread(&mut self, more: Option<u64>) -> Result<(), BuildError> {
        let mut all = self.fingerprints();
        all.extend(more);
        let spent = self.budget.spent + 1;
        let Quotient { slots, .. } = self.held.geometry;
        // Beyond the last slot too there is more room each time, for many copies of many fingerprints.
        let blocks = (slots + slots.min(SPARE << spent.min(32))).div_ceil(BLOCK as u64);
        let geometry = Quotient { number: random_number(), blocks, ..self.held.geometry };
        *self = Changing::of(geometry, geometry.places(all), spent)?;
        Ok(())
    }

    /// Takes out one copy of a key; false, and nothing is changed, if there is none.
    #[inline]
    pub(crate) fn remove(&mut self, key: Digest) -> bool {
        let OwnedQuotient { geometry, payload } = &mut self.held;
        let place = geometry.placed(geometry.fingerprint(key));
        let removed = match self.copies.get_mut(&place) {
            Some(count) => {
                *count -= 1;
                if *count == 0 {
                    self.copies.remove(&place);
                }
                true
            }
            None => dispatch(geometry.level, Delete(geometry.table(), payload, geometry.split(place))),
        };
        geometry.keys = geometry.keys.saturating_sub(removed.into());
        removed
    }

    /// How many copies of a key there are.
    pub(crate) fn count(&self, key: Digest) -> u64 {
        let OwnedQuotient { geometry, payload } = &self.held;
        let place = geometry.placed(geometry.fingerprint(key));
        let in_slots = dispatch(geometry.level, Count(geometry.table(), payload, geometry.split(place)));
        in_slots + self.copies.get(&place).copied().unwrap_or(0)
    }

    /// The same keys in twice the slots, with one bit less in each; none if there is no bit to spare.
    pub(crate) fn doubled(&self) -> Result<Option<Changing>, BuildError> {
        let Quotient { slots, remainder, salt, number, .. } = self.held.geometry;
        if remainder == 1 || slots > MAX_SLOTS / 2 {
            return Ok(None);
        }
        // There are as many fingerprints as before: places stay what they are.
        let geometry = Quotient { number, ..Quotient::new((2 * slots, remainder - 1), salt)? };
        Changing::of(geometry, self.places(), self.budget.spent).map(Some)
    }

    /// The keys of both in the slots of the first; an error if there is no room. The two have the same range and salt.
    pub(crate) fn merged(&self, other: &Changing) -> Result<Result<Changing, Full>, BuildError> {
        let geometry = self.held.geometry;
        let (keys, capacity) = (geometry.keys.saturating_add(other.held.geometry.keys), geometry.capacity());
        if keys > capacity {
            return Ok(Err(Full { keys: geometry.keys, capacity }));
        }
        let mut all = self.fingerprints();
        all.extend(other.fingerprints());
        all.sort();
        let places = geometry.places(all.clone());
        let (geometry, places) = match geometry.is_crowded(&places) {
            true => {
                let geometry = Quotient { number: random_number(), ..geometry };
                (geometry, geometry.places(all))
            }
            false => (geometry, places),
        };
        Ok(Ok(Changing::of(geometry, places, self.budget.spent)?))
    }
}

#[cfg(test)]
mod tests;
