//! queries in any order -> how often each key was queried: in one table, and in sorted runs on disk once that is full.
//!
//! ```text
//!   digest, weight ──▶ table ── full: sorted, written ──▶ runs ──┐
//!                        └─────── in the end, sorted ────────────┴──▶ Sorted<Counted> ──▶ classes of weights, the k heaviest
//! ```
//!
//! **The table** is open addressing in one vector of (digest, weight), 24 bytes an entry. The home of a digest is its salted
//! hash scaled to the number of slots; probing goes forward and never wraps. So a run of occupied slots holds exactly the entries
//! whose homes are in it, and the table grows in place: runs move up, from the last to the first. There is never a second table, and
//! in the end the vector, closed up and sorted, is the result, or its last run.
//!
//! The salt of the homes is random: with a public one, a log can be chosen whose lines all have the same home, and counting takes
//! quadratic time. No result depends on it, nor on how often the table was full: records with equal digests are merged where they
//! are read, and weights are integers, 2^20 to the query ([`ONE`]), so that sums do not depend on the order of the log. Why not
//! estimates past the limit: the plan and the bytes would follow them.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use super::labels::walk;
use super::record::Counted;
use super::sort::sort_distinct;
use super::spill::Spill;
use super::{Record, Shards, Sorted, Workspace};
use crate::arch::prefetch;
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::hash::attempts::random;
use crate::hash::{Digest, Salt};
use crate::parallel::Stop;

/// The weight of one query, in units.
pub const ONE: u64 = 1 << 20;

/// The heaviest single weight, in queries: two of them still have a sum.
const MAX_WEIGHT: f64 = (1u64 << 43) as f64;

/// A weight in queries as units, rounded to the nearest. Zero is zero, and may be left out.
///
/// # Errors
/// [`BuildError::Weight`] if the weight is negative, not finite, below 2^-20 or above 2^43.
///
/// ```
/// use tamis::internals::{ONE, units};
/// assert_eq!(units(3.0)?, 3 * ONE);
/// assert!(units(-1.0).is_err() && units(1e-9).is_err());
/// # Ok::<(), tamis::BuildError>(())
/// ```
pub fn units(weight: f64) -> Result<u64, BuildError> {
    let units = weight * ONE as f64;
    match weight == 0.0 || (units >= 1.0 && weight <= MAX_WEIGHT) {
        true => Ok(units.round() as u64),
        false => Err(BuildError::Weight { weight }),
    }
}

/// Counts queries within a memory limit, and past it on disk.
///
/// ```
/// use tamis::internals::{Counter, ONE, Workspace};
/// use tamis::{Hasher, Key, Limits};
///
/// let mut counter = Counter::new(&Workspace::new(&Limits::default(), 1), 1 << 20);
/// let hasher = Hasher::seeded(0);
/// for query in ["a", "b", "a", "c", "a"] {
///     counter.push(query.digest(&hasher), ONE, &|| false)?;
/// }
/// let weights = counter.finish(&|| false)?.weights(&|| false)?;
/// assert_eq!(weights.classes, [(3.0, 1), (1.0, 2)]);
/// assert_eq!(weights.unseen(), 0.4); // two of five queries were the only ones for their key
/// # Ok::<(), tamis::BuildError>(())
/// ```
pub struct Counter {
    table: Table,
    max_slots: usize,
    spill: Option<Spill>,
    /// Queries whose place in the table is on its way from memory.
    pending: Vec<Counted>,
    /// All units pushed.
    queries: u64,
    memory: u64,
    workspace: Arc<Workspace>,
}

brief_debug!(Counter, it => keys: it.table.entries, queries: it.queries);

/// Less memory than this is taken for this much.
const MIN_MEMORY: u64 = 1 << 16;

/// How many queries wait for memory at the same time.
const MAX_PENDING: usize = 32;

impl Counter {
    /// A counter that uses at most so many bytes, and less while there is little to count. About `memory / 53` distinct keys fit
    /// in them: while the table grows, old and new space may be alive together.
    pub fn new(workspace: &Arc<Workspace>, memory: u64) -> Counter {
        // A 32-bit machine has no more to give.
        let memory = memory.clamp(MIN_MEMORY, (usize::MAX / 4) as u64);
        let max_slots = (memory / 16 * 9) as usize / Counted::SIZE - TAIL_SLOTS;
        let table = Table::new(INITIAL_SLOTS, Salt::new(random()));
        let pending = Vec::with_capacity(MAX_PENDING);
        Counter { table, max_slots, spill: None, pending, queries: 0, memory, workspace: workspace.clone() }
    }

    /// Counts a query of this weight in units; one of no weight is no query. Now and then this sorts and writes the table.
    ///
    /// # Errors
    /// [`BuildError::Weights`] if the sum of all weights would be 2^44 queries or more, and those of temporary files; nothing is counted then.
    #[inline]
    pub fn push(&mut self, digest: Digest, weight: u64, stop: Stop<'_>) -> Result<(), BuildError> {
        if weight == 0 {
            return Ok(());
        }
        if self.pending.len() == MAX_PENDING {
            self.flush_pending(stop)?;
        }
        // Every weight is at most the sum of all: no other sum can overflow.
        self.queries = self.queries.checked_add(weight).ok_or(BuildError::Weights)?;
        prefetch(&self.table.slots, self.table.home(digest));
        self.pending.push(Counted { digest, weight });
        Ok(())
    }

    /// Whether the next queries may need the disk.
    #[cfg(feature = "adaptive")]
    pub(crate) fn is_full(&self) -> bool {
        self.table.places == self.max_slots && self.table.entries + 2 * MAX_PENDING > self.table.most_entries()
    }

    /// What was counted.
    ///
    /// # Errors
    /// Those of temporary files.
    pub fn finish(mut self, stop: Stop<'_>) -> Result<Counts, BuildError> {
        self.flush_pending(stop)?;
        let Counter { mut table, spill, queries, memory, workspace, .. } = self;
        let last = table.take(workspace.threads, stop)?;
        Ok(Counts { keys: Sorted::of_runs(spill, last, queries, memory, workspace, stop)?, queries })
    }

    fn flush_pending(&mut self, stop: Stop<'_>) -> Result<(), BuildError> {
        while let Some(&query) = self.pending.last() {
            self.count(query, stop)?;
            self.pending.pop();
        }
        Ok(())
    }

    #[inline]
    fn count(&mut self, query: Counted, stop: Stop<'_>) -> Result<(), BuildError> {
        let mut i = self.table.home(query.digest);
        while let Some(found) = self.table.slots.get_mut(i).filter(|found| found.weight > 0) {
            if found.digest == query.digest {
                found.weight += query.weight;
                return Ok(());
            }
            i += 1;
        }
        self.admit(query, stop)
    }

    /// A key that is not in the table gets a place there.
    #[inline(never)]
    fn admit(&mut self, query: Counted, stop: Stop<'_>) -> Result<(), BuildError> {
        if self.table.entries >= self.table.most_entries() {
            match self.table.places {
                places if places < self.max_slots => self.table.grow((places + places / 2).min(self.max_slots)),
                _ => self.write_run(stop)?,
            }
        }
        self.table.place(query);
        Ok(())
    }

    /// The whole table becomes a run. After an error it is as it was.
    #[cold]
    fn write_run(&mut self, stop: Stop<'_>) -> Result<(), BuildError> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::new(self.workspace.clone())?),
        };
        let records = self.table.take(self.workspace.threads, stop)?;
        let written = spill.write(&records, stop);
        match &written {
            Ok(()) => self.table.refill(records, &[]),
            Err(_) => self.table.refill(vec![], &records),
        }
        written
    }
}

const INITIAL_SLOTS: usize = 64;

/// Room behind the last home, so that the vector is rarely longer than requested.
const TAIL_SLOTS: usize = 64;

#[derive(Debug)]
struct Table {
    /// An entry with weight 0 is an empty slot. Entries of the last homes go past `places`.
    slots: Vec<Counted>,
    /// Homes.
    places: usize,
    entries: usize,
    salt: Salt,
}

impl Table {
    fn new(places: usize, salt: Salt) -> Table {
        Table { slots: vec![Counted::default(); places + TAIL_SLOTS], places, entries: 0, salt }
    }

    /// Where the search for a digest begins. Digests of integers have patterns, salted ones have none.
    #[inline(always)]
    fn home(&self, digest: Digest) -> usize {
        scale(digest.salted(self.salt), self.places)
    }

    /// Four fifths: a quarter more slots than entries.
    fn most_entries(&self) -> usize {
        self.places / 5 * 4
    }

    /// Puts a record that is not there in the first empty slot.
    #[inline]
    fn place(&mut self, record: Counted) {
        let home = self.home(record.digest);
        let free = self.slots[home..].iter().position(|slot| slot.weight == 0);
        let i = free.map_or(self.slots.len(), |steps| home + steps);
        if i == self.slots.len() {
            self.extend(i + TAIL_SLOTS);
        }
        self.slots[i] = record;
        self.entries += 1;
    }

    /// Empty slots up to this many. Large vectors grow where they are, by their pages, on the systems that can.
    fn extend(&mut self, slots: usize) {
        self.slots.reserve_exact(slots - self.slots.len());
        self.slots.resize(slots, Counted::default());
    }

    /// More homes. Runs go up, the last one first: no home gets a smaller number, so what a run leaves and what is above it is
    /// free for it.
    fn grow(&mut self, places: usize) {
        let mut end = self.slots.len();
        self.extend((places + TAIL_SLOTS).max(end));
        self.places = places;
        self.entries = 0;
        let mut run = Vec::new();
        while end > 0 {
            end -= 1;
            let entry = mem::take(&mut self.slots[end]);
            if entry.weight > 0 {
                run.push(entry);
            }
            if entry.weight == 0 || end == 0 {
                run.drain(..).for_each(|record| self.place(record));
            }
        }
    }

    /// Takes all records out, sorted. The table is left without slots.
    fn take(&mut self, threads: usize, stop: Stop<'_>) -> Result<Vec<Counted>, BuildError> {
        self.slots.retain(|slot| slot.weight > 0);
        self.entries = 0;
        let mut records = mem::take(&mut self.slots);
        match sort_distinct(&mut records, threads, stop) {
            Ok(()) => Ok(records),
            Err(error) => {
                self.refill(records.clone(), &records);
                Err(error)
            }
        }
    }

    /// Has slots again, where `slots` was, and these records.
    fn refill(&mut self, mut slots: Vec<Counted>, records: &[Counted]) {
        slots.clear();
        self.slots = slots;
        self.extend(self.places + TAIL_SLOTS);
        records.iter().for_each(|&record| self.place(record));
    }
}

/// A hash as a number below `n`, in the order of hashes.
#[inline(always)]
fn scale(hash: u64, n: usize) -> usize {
    ((u128::from(hash) * n as u128) >> 64) as usize
}

/// How often each key was queried.
pub struct Counts {
    keys: Sorted<Counted>,
    /// All units.
    queries: u64,
}

brief_debug!(Counts, it => queries: it.queries);

impl Counts {
    /// All units.
    pub fn queries(&self) -> u64 {
        self.queries
    }

    /// The same counts of other digests.
    pub(crate) fn mapped(self, map: impl Fn(Digest) -> Digest, stop: Stop<'_>) -> Result<Counts, BuildError> {
        Ok(Counts { keys: self.keys.mapped(map, stop)?, ..self })
    }

    /// Takes out what is a key; says how many there were, and whether each of them was queried once.
    pub(crate) fn without_keys(self, shards: &Shards, stop: Stop<'_>) -> Result<(Counts, u64, bool), BuildError> {
        let (keys, members) = shards.without_keys(self.keys, stop)?;
        let once = members.conflict_weight == members.conflicts * ONE;
        Ok((Counts { keys, queries: self.queries - members.conflict_weight }, members.conflicts, once))
    }

    /// Hands on all keys, sorted and distinct, some at a time.
    ///
    /// # Errors
    /// Those of temporary files and of `part`.
    pub fn each(
        &self,
        stop: Stop<'_>,
        part: &mut dyn FnMut(&[Counted]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        walk(&self.keys, None, stop, part)
    }

    /// The weights of the keys.
    ///
    /// # Errors
    /// Those of temporary files.
    pub fn weights(&self, stop: Stop<'_>) -> Result<Weights, BuildError> {
        let (mut keys, mut once) = (0, 0);
        let mut exact = BTreeMap::new();
        let mut classes = vec![(0u64, 0u64); class(u64::MAX) + 1];
        self.each(stop, &mut |part| {
            for &Counted { weight, .. } in part {
                keys += 1;
                once += u64::from(weight == ONE);
                if exact.len() <= MAX_EXACT_WEIGHTS {
                    *exact.entry(weight).or_insert(0) += 1;
                }
                let (sum, count) = &mut classes[class(weight)];
                (*sum, *count) = (*sum + weight, *count + 1);
            }
            Ok(())
        })?;
        let queries = |units: u64, count: u64| units as f64 / ONE as f64 / count as f64;
        let classes = match exact.len() <= MAX_EXACT_WEIGHTS {
            true => exact.into_iter().rev().map(|(weight, count)| (queries(weight, 1), count)).collect(),
            false => {
                let filled = classes.into_iter().rev().filter(|&(_, count)| count > 0);
                filled.map(|(sum, count)| (queries(sum, count), count)).collect()
            }
        };
        Ok(Weights { classes, keys, once, queries: self.queries })
    }

    /// Calls `take` with the `most` heaviest keys: of equal weights in an order that has nothing to do with shards, which follow the
    /// first word of a digest.
    ///
    /// # Errors
    /// Those of temporary files and of `take`.
    pub fn heaviest(
        &self,
        most: u64,
        stop: Stop<'_>,
        mut take: impl FnMut(Counted) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let Some(last) = self.last_of(most, stop)? else { return Ok(()) };
        self.each(stop, &mut |part| part.iter().filter(|key| order(key) <= last).try_for_each(|&key| take(key)))
    }

    /// Where the `most` heaviest keys end in their order, if there are any. Nothing is copied: piece after piece of the place is found by
    /// counting the keys that begin with the pieces before it.
    fn last_of(&self, most: u64, stop: Stop<'_>) -> Result<Option<[u64; 3]>, BuildError> {
        let Some(mut rank) = most.checked_sub(1) else { return Ok(None) };
        let (mut last, mut same) = ([0; 3], [0; 3]);
        for piece in 0..12 {
            let (word, shift) = (piece / 4, 48 - 16 * (piece % 4));
            let mut counts = vec![0u64; 1 << 16];
            self.each(stop, &mut |part| {
                let places = part.iter().map(order).filter(|place| (0..3).all(|i| place[i] & same[i] == last[i]));
                places.for_each(|place| counts[(place[word] >> shift) as u16 as usize] += 1);
                Ok(())
            })?;
            let found = counts.iter().position(|&count| {
                let here = rank < count;
                rank -= if here { 0 } else { count };
                here
            });
            // Fewer than `most`, or exactly these: all that begin so are among them.
            let Some(found) = found else { return Ok(Some([u64::MAX; 3])) };
            last[word] |= (found as u64) << shift;
            same[word] |= 0xffff << shift;
            if rank + 1 == counts[found] {
                break;
            }
        }
        Ok(Some(std::array::from_fn(|i| last[i] | !same[i])))
    }
}

/// The place of a key in the order of weights: the smaller the heavier.
fn order(key: &Counted) -> [u64; 3] {
    [!key.weight, key.digest.lo, key.digest.hi]
}

/// Weights of counted keys.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Weights {
    /// Weights in queries, the heaviest first, and how many keys have each. Very many different ones are means of a percent of their
    /// weights.
    pub classes: Vec<(f64, u64)>,
    /// How many keys there are.
    pub keys: u64,
    /// How many of them were queried exactly once.
    pub once: u64,
    queries: u64,
}

impl Weights {
    /// The share of expected queries for a key that is not known, as \[Stacked\] 5.1 estimates it: take each query
    /// out of the log in turn, and see whether its key is then gone. It is for those queried once. 0 for no queries.
    pub fn unseen(&self) -> f64 {
        match self.queries {
            0 => 0.0,
            queries => self.once as f64 * ONE as f64 / queries as f64,
        }
    }
}

/// More different weights than this are put in classes: half a megabyte of them.
const MAX_EXACT_WEIGHTS: usize = 1 << 14;

/// Weights in classes, 128 to the octave, in order of weight.
fn class(weight: u64) -> usize {
    let octave = weight.max(128).ilog2() - 7;
    (octave as usize * 128) + (weight >> octave) as usize
}

#[cfg(test)]
mod tests;
