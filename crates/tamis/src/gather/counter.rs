//! queries in any order -> how often each key was queried: exact while memory lasts, then exact for the frequent ones.
//!
//! ```text
//!   digest, weight ──▶ table ──── full: the lightest leave ────▶ sketch
//!                        ▲                                         │
//!                        └── an estimate above those that left ────┘
//! ```
//!
//! **The table** is open addressing in one vector of (digest, count), 24 bytes an entry. The home of a digest is its salted
//! hash scaled to the number of slots; probing goes forward and never wraps. So a run of occupied slots holds exactly the entries
//! whose homes are in it, and every rebuild is an in-place sweep: growing moves runs up, from the last to the first; leaving out
//! entries moves the others down. There is never a second table, and in the end the vector, closed up and sorted, is the result.
//!
//! The salt of the homes is random: with a public one, a log can be chosen whose lines all have the same home, and counting takes
//! quadratic time. No result depends on it: of equally heavy entries those with the smallest digests leave, in order of digests.
//!
//! **The sketch** is a count-min sketch with conservative update: a value raises only those of its four cells that are
//! smaller than its new estimate. A value that goes back to the table takes its estimate out of all four cells. So the
//! cells of a row never add up to more than the weight in the sketch, and table and sketch together always hold exactly what was
//! pushed. What is still in the sketch at the end is *outside*: queries of values that are not known.
//!
//! Estimates depend on the salt of the sketch, which cannot be random: one log must give one result. It is a hash of all entries
//! in the table when the first of them leave. Aiming at it takes all that others have queried by then, and gains little: no
//! count in the table changes, and what moves from one value to another is at most as heavy as those that left.
//!
//! Weights are integers, 2^20 to the query ([`ONE`]), so that sums do not depend on the order of the log.

use std::mem;

use crate::arch::prefetch;
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::hash::attempts::{SetHash, random};
use crate::hash::{Digest, Salt};

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

/// Counts queries within a memory limit.
///
/// ```
/// use tamis::internals::{Counter, ONE};
/// use tamis::{Hasher, Key};
///
/// let mut counter = Counter::new(1 << 20);
/// let hasher = Hasher::seeded(0);
/// for query in ["a", "b", "a", "c", "a"] {
///     counter.push(query.digest(&hasher), ONE)?;
/// }
/// let counts = counter.finish();
/// assert_eq!(counts.histogram(), [(3 * ONE, 1), (ONE, 2)]);
/// assert_eq!(counts.unseen(), 0.4); // two of five queries were the only ones for their value
/// # Ok::<(), tamis::BuildError>(())
/// ```
pub struct Counter {
    table: Table,
    max_slots: usize,
    /// Cells in a row of the sketch, once there is one.
    width: usize,
    sketch: Option<Sketch>,
    /// Queries whose place in the table is on its way from memory.
    pending: Vec<(Digest, u64)>,
    /// All units pushed.
    queries: u64,
    /// Units in the sketch.
    sketch_weight: u64,
    /// Everything in the sketch was at most this heavy when it got there.
    floor: u64,
}

brief_debug!(Counter, it => values: it.table.entries, queries: it.queries);

/// Less memory than this is taken for this much.
const MIN_MEMORY: u64 = 1 << 16;

const SLOT_BYTES: u64 = mem::size_of::<(Digest, u64)>() as u64;

/// How many queries wait for memory at the same time.
const MAX_PENDING: usize = 32;

impl Counter {
    /// A counter that uses about this many bytes, and less while there is little to count. About `memory / 40` distinct
    /// values are counted exactly: three quarters are for the table, one for the sketch.
    pub fn new(memory: u64) -> Counter {
        // A 32-bit machine has no more to give.
        let memory = memory.clamp(MIN_MEMORY, (usize::MAX / 4) as u64);
        let max_slots = (memory / 4 * 3 / SLOT_BYTES) as usize - TAIL_SLOTS;
        let width = (memory / 4 / (8 * ROWS as u64)) as usize;
        let pending = Vec::with_capacity(MAX_PENDING);
        let table = Table::new(INITIAL_SLOTS, Salt::new(random()));
        Counter { table, max_slots, width, sketch: None, pending, queries: 0, sketch_weight: 0, floor: 0 }
    }

    /// Counts a query of this weight in units; one of no weight is no query.
    ///
    /// # Errors
    /// [`BuildError::Weights`] if the sum of all weights would be 2^44 queries or more; nothing is counted then.
    #[inline]
    pub fn push(&mut self, digest: Digest, weight: u64) -> Result<(), BuildError> {
        if weight == 0 {
            return Ok(());
        }
        // Every count is at most the sum of all: no other sum can overflow.
        self.queries = self.queries.checked_add(weight).ok_or(BuildError::Weights)?;
        if self.pending.len() == MAX_PENDING {
            self.flush_pending();
        }
        prefetch(&self.table.slots, self.table.home(digest));
        self.pending.push((digest, weight));
        Ok(())
    }

    /// What was counted.
    pub fn finish(mut self) -> Counts {
        self.flush_pending();
        let mut known = self.table.slots;
        known.retain(|&(_, count)| count > 0);
        known.sort_unstable();
        known.shrink_to_fit();
        let once = known.iter().filter(|&&(_, count)| count == ONE).count() as u64;
        Counts { known, queries: self.queries, once, outside: self.sketch_weight, exact: self.sketch.is_none() }
    }

    fn flush_pending(&mut self) {
        let mut pending = mem::take(&mut self.pending);
        for (digest, weight) in pending.drain(..) {
            self.count(digest, weight);
        }
        self.pending = pending;
    }

    #[inline]
    fn count(&mut self, digest: Digest, weight: u64) {
        let mut i = self.table.home(digest);
        while let Some((found, count)) = self.table.slots.get_mut(i).filter(|(_, count)| *count > 0) {
            if *found == digest {
                *count += weight;
                return;
            }
            i += 1;
        }
        self.admit(digest, weight);
    }

    /// A value that is not in the table: it gets a place there, or is counted in the sketch.
    #[inline(never)]
    fn admit(&mut self, digest: Digest, mut weight: u64) {
        if let Some(sketch) = &mut self.sketch {
            let estimate = sketch.add(digest, weight);
            self.sketch_weight += weight;
            if estimate <= self.floor {
                return;
            }
            sketch.subtract(digest, estimate);
            self.sketch_weight -= estimate;
            weight = estimate;
        }
        if self.table.is_full() {
            if self.table.places < self.max_slots {
                let places = self.table.places;
                self.table.grow((places + places / 2).min(self.max_slots));
            } else {
                self.evict_lightest();
            }
        }
        self.table.place(digest, weight);
    }

    /// The lightest quarter of the table moves to the sketch.
    #[cold]
    fn evict_lightest(&mut self) {
        let mut classes = vec![0usize; class(u64::MAX) + 1];
        for (_, count) in self.table.iter() {
            classes[class(count)] += 1;
        }
        // Of the last class that leaves only as many as must: where all are alike, most are still known.
        let leaving = self.table.entries / 4 + 1;
        let mut quota = leaving;
        let mut last = 0;
        while classes[last] < quota {
            quota -= classes[last];
            last += 1;
        }
        let of_last = self.table.iter().filter(|&(_, count)| class(count) == last).map(|(digest, _)| digest);
        let highest = nth(of_last, quota - 1).unwrap_or_default();
        let sketch = self.sketch.get_or_insert_with(|| {
            // A sum, which has no order. Aiming at it takes all entries, and with them the salt of any other hash is known too.
            let hash = self.table.iter().fold(0, |sum: u64, (digest, _)| sum.wrapping_add(SetHash::of(&[digest])));
            Sketch::new(self.width, Salt::new(hash))
        });
        let mut left = Vec::with_capacity(leaving);
        self.table.retain(|digest, count| {
            let stays = (class(count), digest) > (last, highest);
            if !stays {
                left.push((digest, count));
            }
            stays
        });
        left.sort_unstable();
        for (digest, count) in left {
            sketch.add(digest, count);
            self.sketch_weight += count;
        }
        self.floor = self.floor.max(heaviest(last));
    }
}

/// The digest with `rank` smaller ones, of more than `rank` different ones. Nothing is copied: byte after byte of it is found by
/// counting, until no other begins with them. That takes three or four sweeps, and 16 for chosen digests.
fn nth(mut digests: impl Iterator<Item = Digest> + Clone, mut rank: usize) -> Option<Digest> {
    let top = |digest: Digest, bits: u32| (u128::from(digest.hi) << 64 | u128::from(digest.lo)) >> (128 - bits);
    let mut prefix = 0;
    for bits in (8..=128).step_by(8) {
        let mut bytes = [0; 256];
        for digest in digests.clone().map(|digest| top(digest, bits)).filter(|digest| digest >> 8 == prefix) {
            bytes[digest as usize & 255] += 1;
        }
        let mut byte = 0;
        while byte < 255 && bytes[byte] <= rank {
            rank -= bytes[byte];
            byte += 1;
        }
        prefix = prefix << 8 | byte as u128;
        if bytes[byte] == 1 {
            return digests.find(|&digest| top(digest, bits) == prefix);
        }
    }
    None
}

/// Counts in classes an eighth of an octave wide, in order of weight.
fn class(count: u64) -> usize {
    let octave = count.max(8).ilog2();
    (octave as usize - 3) * 8 + (count >> (octave - 3)) as usize
}

fn heaviest(class: usize) -> u64 {
    let octave = (class / 8).saturating_sub(1);
    let first = class - octave * 8;
    ((first as u64) << octave) | ((1 << octave) - 1)
}

const INITIAL_SLOTS: usize = 64;

/// Room behind the last home, so that the vector is rarely longer than requested.
const TAIL_SLOTS: usize = 64;

#[derive(Debug)]
struct Table {
    /// An entry with count 0 is an empty slot. Entries of the last homes go past `places`.
    slots: Vec<(Digest, u64)>,
    /// Homes.
    places: usize,
    entries: usize,
    salt: Salt,
}

impl Table {
    fn new(places: usize, salt: Salt) -> Table {
        Table { slots: vec![(Digest::default(), 0); places + TAIL_SLOTS], places, entries: 0, salt }
    }

    fn iter(&self) -> impl Iterator<Item = (Digest, u64)> + Clone + '_ {
        self.slots.iter().copied().filter(|(_, count)| *count > 0)
    }

    /// Where the search for a digest begins. Digests of integers have patterns, salted ones have none.
    #[inline(always)]
    fn home(&self, digest: Digest) -> usize {
        scale(digest.salted(self.salt), self.places)
    }

    /// Four fifths: a quarter more slots than entries.
    fn is_full(&self) -> bool {
        self.entries >= self.places / 5 * 4
    }

    /// Puts a digest that is not there in the first empty slot.
    #[inline]
    fn place(&mut self, digest: Digest, count: u64) {
        let home = self.home(digest);
        let free = self.slots[home..].iter().position(|&(_, count)| count == 0);
        let i = free.map_or(self.slots.len(), |steps| home + steps);
        if i == self.slots.len() {
            self.extend(i + TAIL_SLOTS);
        }
        self.slots[i] = (digest, count);
        self.entries += 1;
    }

    /// Empty slots up to this many. Large vectors grow where they are, by their pages, on the systems that can.
    fn extend(&mut self, slots: usize) {
        self.slots.reserve_exact(slots - self.slots.len());
        self.slots.resize(slots, (Digest::default(), 0));
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
            if entry.1 > 0 {
                run.push(entry);
            }
            if entry.1 == 0 || end == 0 {
                run.drain(..).for_each(|(digest, count)| self.place(digest, count));
            }
        }
    }

    /// Keeps those entries. They go down, the first one first: each finds its own slot free, if no earlier one.
    fn retain(&mut self, mut keep: impl FnMut(Digest, u64) -> bool) {
        self.entries = 0;
        for i in 0..self.slots.len() {
            let (digest, count) = mem::take(&mut self.slots[i]);
            if count > 0 && keep(digest, count) {
                self.place(digest, count);
            }
        }
    }
}

/// A hash as a number below `n`, in the order of hashes.
#[inline(always)]
fn scale(hash: u64, n: usize) -> usize {
    ((u128::from(hash) * n as u128) >> 64) as usize
}

/// Cells per value.
const ROWS: usize = 4;

#[derive(Debug)]
struct Sketch {
    /// Row after row.
    cells: Vec<u64>,
    width: usize,
    salt: Salt,
}

impl Sketch {
    fn new(width: usize, salt: Salt) -> Sketch {
        Sketch { cells: vec![0; ROWS * width], width, salt }
    }

    fn places(&self, digest: Digest) -> [usize; ROWS] {
        std::array::from_fn(|row| row * self.width + scale(digest.salted(self.salt.child(row as u64)), self.width))
    }

    /// Adds a weight and returns the estimate, which is at least all that was added for the digest, if nothing was subtracted.
    fn add(&mut self, digest: Digest, weight: u64) -> u64 {
        let places = self.places(digest);
        let estimate = weight + places.iter().map(|&i| self.cells[i]).min().unwrap_or(0);
        for i in places {
            self.cells[i] = self.cells[i].max(estimate);
        }
        estimate
    }

    /// Takes out what [`Sketch::add`] has just returned.
    fn subtract(&mut self, digest: Digest, estimate: u64) {
        for i in self.places(digest) {
            self.cells[i] -= estimate;
        }
    }
}

/// How often each key was queried.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Counts {
    /// Values and their units, by digest.
    pub known: Vec<(Digest, u64)>,
    /// All units: those of `known` and those outside.
    pub queries: u64,
    /// How many known keys were queried exactly once.
    pub once: u64,
    /// Units of values that are not known, for want of memory.
    pub outside: u64,
    /// Whether memory was enough: then all values are known, with their exact counts.
    pub exact: bool,
}

brief_debug!(Counts, it => known: it.known.len(), queries: it.queries, once: it.once, outside: it.outside, exact: it.exact);

impl Counts {
    /// The share of expected queries for a key that is not known, as \[Stacked\] 5.1 estimates it: take each query
    /// out of the log in turn, and see whether its value is then gone. It is for those queried once, and those outside
    /// were never known. 0 for no queries.
    pub fn unseen(&self) -> f64 {
        match self.queries {
            0 => 0.0,
            queries => (self.once as f64 * ONE as f64 + self.outside as f64) / queries as f64,
        }
    }

    /// The weights of the known values in units, the heaviest first, and how many values have each.
    pub fn histogram(&self) -> Vec<(u64, u64)> {
        let mut weights: Vec<u64> = self.known.iter().map(|&(_, count)| count).collect();
        weights.sort_unstable();
        weights.chunk_by(|a, b| a == b).rev().map(|equal| (equal[0], equal.len() as u64)).collect()
    }
}

#[cfg(test)]
mod tests;
