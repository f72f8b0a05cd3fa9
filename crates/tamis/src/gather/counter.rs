//! queries in any order -> how often each value was asked for: exact while memory lasts, then exact for the frequent ones.
//!
//! ```text
//!   digest, weight ──▶ table ──── full: the lightest leave ────▶ sketch
//!                        ▲                                         │
//!                        └── an estimate above those that left ────┘
//! ```
//!
//! **The table** is open addressing in one vector of (digest, count), 24 bytes an entry. The home of a digest is its salted
//! hash scaled to the number of slots, which keeps the order of hashes; probing goes forward and never wraps, so a run of
//! occupied slots holds exactly the entries whose homes are in it. That makes every rebuild an in-place sweep: growing moves
//! runs up, from the last to the first; leaving out entries moves the others down, from the first to the last. There is never a
//! second table, and in the end the vector itself, closed up and sorted, is the result.
//!
//! The salt of the homes is random, and another one in each counter: with a public one, lines of a log can be chosen that all have
//! the same home, and counting them takes quadratic time. No result depends on it, because no choice follows the order of the table:
//! of equally heavy entries those with the smallest digests leave, and they enter the sketch in the order of digests.
//!
//! **The sketch** is a count-min sketch with conservative update: a value raises only those of its four cells that are
//! smaller than its new estimate. A value that goes back to the table takes its estimate out of all four cells. So the
//! cells of a row never add up to more than the weight in the sketch, an estimate is never more than that weight, and table and
//! sketch together always hold exactly what was pushed. What is still in the sketch at the end is *outside*: queries of values that
//! are not known.
//!
//! Estimates depend on the salt of the sketch, so that it cannot be random: one log must give one result. It is a hash of all
//! entries that are in the table when the first of them leave. To find values that share their cells with those of others one has to
//! know all that others have asked for by then, and gains little: no count in the table changes, and what moves from one
//! value to another is at most as heavy as those that left.
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
/// [`BuildError::Unreachable`] if the weight is negative, not finite, below 2^-20 or above 2^43.
///
/// ```
/// use tamis::workload::{ONE, units};
/// assert_eq!(units(3.0)?, 3 * ONE);
/// assert!(units(-1.0).is_err() && units(1e-9).is_err());
/// # Ok::<(), tamis::BuildError>(())
/// ```
pub fn units(weight: f64) -> Result<u64, BuildError> {
    let shown = || if weight.abs() < 1e15 { weight.to_string() } else { format!("{weight:e}") };
    let wrong = |why: &str| Err(BuildError::Unreachable { reason: format!("a weight of {} {why}", shown()) });
    if !weight.is_finite() || weight < 0.0 {
        return wrong("makes no sense, expected a number from 0 to 2^43");
    }
    if weight > MAX_WEIGHT {
        return wrong("is more than 2^43; scale the weights down");
    }
    let units = weight * ONE as f64;
    if weight > 0.0 && units < 1.0 {
        return wrong("is less than 2^-20; scale the weights up");
    }
    Ok(units.round() as u64)
}

/// Counts queries within a memory limit.
///
/// ```
/// use tamis::workload::{Counter, ONE};
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
    /// The most slots the table may have.
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

/// Bytes of one slot of the table.
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
    /// [`BuildError::Unreachable`] if the sum of all weights would be 2^44 queries or more; nothing is counted then.
    #[inline]
    pub fn push(&mut self, digest: Digest, weight: u64) -> Result<(), BuildError> {
        if weight == 0 {
            return Ok(());
        }
        // Every count is at most the sum of all: no other sum can overflow.
        self.queries = self.queries.checked_add(weight).ok_or_else(too_many)?;
        if self.pending.len() == MAX_PENDING {
            self.flush_pending();
        }
        prefetch(&self.table.slots, self.table.home(digest));
        self.pending.push((digest, weight));
        Ok(())
    }

    /// Counts many, each as [`Counter::push`] does.
    ///
    /// # Errors
    /// As [`Counter::push`]; those before the one that failed are counted.
    pub fn push_many(&mut self, queries: &[(Digest, u64)]) -> Result<(), BuildError> {
        queries.iter().try_for_each(|&(digest, weight)| self.push(digest, weight))
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

    /// Counts those that waited.
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

#[cold]
fn too_many() -> BuildError {
    let reason = "the counts of the expected queries add up to more than 2^44; scale them down".into();
    BuildError::Unreachable { reason }
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

/// The heaviest count of a class.
fn heaviest(class: usize) -> u64 {
    let octave = (class / 8).saturating_sub(1);
    let first = class - octave * 8;
    ((first as u64) << octave) | ((1 << octave) - 1)
}

/// Slots of a new table.
const INITIAL_SLOTS: usize = 64;

/// Room behind the last home, so that the vector is rarely longer than asked for.
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

/// How often each value was asked for.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Counts {
    /// Values and their units, by digest.
    pub known: Vec<(Digest, u64)>,
    /// All units: those of `known` and those outside.
    pub queries: u64,
    /// How many known values were asked for exactly once.
    pub once: u64,
    /// Units of values that are not known, for want of memory.
    pub outside: u64,
    /// Whether memory was enough: then all values are known, with their exact counts.
    pub exact: bool,
}

brief_debug!(Counts, it => known: it.known.len(), queries: it.queries, once: it.once, outside: it.outside, exact: it.exact);

impl Counts {
    /// The share of queries to come that ask for a value that is not known, as \[Stacked\] 5.1 estimates it: take each query
    /// out of the log in turn, and see whether its value is then gone. It is for those asked for once, and those outside
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::{BTreeMap, HashMap};

    use proptest::prelude::*;

    use super::*;
    use crate::hash::{Hasher, scramble};

    fn digest(i: u64) -> Digest {
        Hasher::seeded(1).integer(i)
    }

    fn count(memory: u64, queries: &[(Digest, u64)]) -> Counts {
        count_with(Counter::new(memory), queries)
    }

    fn count_with(mut counter: Counter, queries: &[(Digest, u64)]) -> Counts {
        queries.iter().for_each(|&(digest, weight)| counter.push(digest, weight).unwrap());
        counter.finish()
    }

    /// What must be true of any counts, exact or not.
    fn check(counts: &Counts, pushed: u64) {
        assert_eq!(counts.queries, pushed);
        assert_eq!(counts.known.iter().map(|&(_, count)| count).sum::<u64>() + counts.outside, pushed);
        assert!(counts.known.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(counts.known.iter().all(|&(_, count)| count > 0));
        assert!((0.0..=1.0).contains(&counts.unseen()), "{}", counts.unseen());
        let by_weight = counts.histogram();
        assert!(by_weight.windows(2).all(|pair| pair[0].0 > pair[1].0));
        assert_eq!(by_weight.iter().map(|&(_, n)| n).sum::<u64>(), counts.known.len() as u64);
        assert_eq!(by_weight.iter().map(|&(weight, n)| weight * n).sum::<u64>() + counts.outside, pushed);
    }

    fn oracle(queries: &[(Digest, u64)]) -> BTreeMap<Digest, u64> {
        let mut map = BTreeMap::new();
        queries
            .iter()
            .filter(|query| query.1 > 0)
            .for_each(|&(digest, weight)| *map.entry(digest).or_default() += weight);
        map
    }

    fn check_exact(queries: &[(Digest, u64)], memory: u64) {
        let counts = count(memory, queries);
        let expected = oracle(queries);
        check(&counts, expected.values().sum());
        assert!(counts.exact && counts.outside == 0);
        assert_eq!(counts.once, expected.values().filter(|&&count| count == ONE).count() as u64);
        assert!(counts.known.iter().copied().eq(expected));
    }

    #[test]
    fn every_small_number_of_values_and_every_growth() {
        for n in (0..300).chain([1000, 5000, 70_000]) {
            // i mod 3 + 1 times each, in an order that spreads the repetitions.
            let queries: Vec<_> =
                (0..3).flat_map(|k| (0..n).filter(move |i| i % 3 >= k).map(|i| (digest(i), ONE))).collect();
            check_exact(&queries, 1 << 24);
        }
    }

    #[test]
    fn nothing_at_all_and_weights_of_nothing() {
        let counts = count(0, &[]);
        assert_eq!(counts, Counts { known: vec![], queries: 0, once: 0, outside: 0, exact: true });
        assert_eq!((counts.unseen(), counts.histogram()), (0.0, vec![]));
        assert_eq!(count(0, &[(digest(1), 0), (digest(2), 0)]), counts);
    }

    /// The digest of zeros is a value like any other, though an empty slot holds it.
    #[test]
    fn the_empty_digest_is_counted() {
        let zero = Digest::default();
        check_exact(&[(zero, ONE), (digest(1), 3), (zero, 2 * ONE), (zero, 0)], 0);
    }

    /// With a salt that is known.
    fn aimed_at(memory: u64) -> Counter {
        let mut counter = Counter::new(memory);
        counter.table.salt = Salt::new(7);
        counter
    }

    /// Values that all want the first slot, or the last: slow, and right.
    #[test]
    fn values_with_one_home() {
        // A factor of zero makes the salted hash zero.
        let first = |lo| Digest { hi: scramble(7), lo };
        let table = Table::new(1000, Salt::new(7));
        assert!((0..100).all(|lo| table.home(first(lo)) == 0));
        let last = (0..).map(digest).filter(|&digest| table.home(digest) == 999).take(500);
        let queries: Vec<_> = (0..500).map(first).chain(last).map(|digest| (digest, ONE)).collect();
        let exact = count_with(aimed_at(1 << 20), &queries.repeat(2));
        assert_eq!(exact, count(1 << 20, &queries.repeat(2)));
        check_exact(&queries.repeat(2), 1 << 20);
        let queries: Vec<_> = (0..5000).map(|lo| (first(lo), ONE * (lo % 7 + 1))).collect();
        let counts = count_with(aimed_at(0), &queries);
        check(&counts, queries.iter().map(|query| query.1).sum());
        assert_eq!(counts, count(0, &queries));
    }

    /// No chosen values crowd: those with neighbouring homes for one salt are spread by that of another counter.
    #[test]
    fn chosen_values_do_not_crowd() {
        let longest = |counter: &Counter| {
            let runs = counter.table.slots.split(|&(_, count)| count == 0);
            runs.map(<[_]>::len).max().unwrap_or(0)
        };
        let places = |salt| (0..).map(digest).filter(move |digest| digest.salted(salt) >> 58 == 0).take(20_000);
        for salt in [Salt::new(0x0063_6f75_6e74), Salt::new(7), Counter::new(0).table.salt] {
            let [mut aimed, mut counter] = [aimed_at(1 << 22), Counter::new(1 << 22)];
            for digest in places(salt) {
                aimed.push(digest, ONE).unwrap();
                counter.push(digest, ONE).unwrap();
            }
            // At a load of 4/5 runs of a thousand slots are rarer than one in 10^9.
            assert!(longest(&counter) < 2000, "{}", longest(&counter));
            assert!(salt != Salt::new(7) || longest(&aimed) > 10_000);
        }
    }

    #[test]
    fn the_nth_digest_is_that_of_the_sorted_ones() {
        let near = |i: u64| Digest { hi: 5, lo: i };
        let all: Vec<Digest> = (0..300).map(digest).chain((0..300).map(near)).collect();
        for n in [1, 2, 300, 301, 600] {
            let mut sorted = all[..n].to_vec();
            sorted.sort_unstable();
            for (rank, &digest) in sorted.iter().enumerate() {
                assert_eq!(nth(all[..n].iter().copied(), rank), Some(digest));
            }
        }
        assert_eq!(nth([Digest { hi: u64::MAX, lo: u64::MAX }].into_iter(), 0).map(|digest| digest.lo), Some(u64::MAX));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn agrees_with_a_map_in_any_order(
            mut queries in prop::collection::vec((0u64..400, 0u64..4), 0..3000),
            by in 0usize..3000,
        ) {
            let with_digests = |queries: &[(u64, u64)]| -> Vec<(Digest, u64)> {
                queries.iter().map(|&(i, weight)| (digest(i), weight * ONE / 2)).collect()
            };
            let forward = with_digests(&queries);
            check_exact(&forward, 0);
            let len = queries.len().max(1);
            queries.rotate_left(by % len);
            queries.reverse();
            prop_assert_eq!(count(0, &forward), count(0, &with_digests(&queries)));
        }

        /// Far too many values for the memory, with all kinds of weights: nothing is lost.
        #[test]
        fn weight_is_conserved_without_memory(seed: u64, distinct in 1u64..40_000, octaves in 1u32..40) {
            let queries: Vec<_> = (0..30_000)
                .map(|i| {
                    let random = scramble(seed ^ scramble(i));
                    (digest(random % distinct), (random >> 24) >> (random as u32 % octaves))
                })
                .collect();
            let counts = count(0, &queries);
            check(&counts, queries.iter().map(|query| query.1).sum());
            // The salt of the table is another one each time.
            prop_assert!(counts == count(0, &queries) && counts == count_with(aimed_at(0), &queries));
        }
    }

    /// Ranks 1 to about `distinct`, the chance of each about 1 / rank.
    fn zipf(n: u64, distinct: f64) -> Vec<(Digest, u64)> {
        let share = |i| (scramble(i) >> 11) as f64 / (1u64 << 53) as f64;
        (0..n).map(|i| (digest(distinct.powf(share(i)) as u64), ONE)).collect()
    }

    /// Ten times as many values as the table holds: the frequent ones are all kept, and their counts are close.
    #[test]
    fn heavy_hitters_survive() {
        const MEMORY: u64 = 1 << 19;
        let room = MEMORY / 40;
        let queries = zipf(1_000_000, 400_000.0);
        let exact = oracle(&queries);
        assert!(exact.len() as u64 > 10 * room, "{} {room}", exact.len());
        let counts = count(MEMORY, &queries);
        check(&counts, queries.len() as u64 * ONE);
        assert!(!counts.exact && counts.known.len() as u64 > room / 2, "{} {room}", counts.known.len());

        let known: HashMap<Digest, u64> = counts.known.iter().copied().collect();
        let mut top: Vec<_> = exact.iter().map(|(&digest, &count)| (count, digest)).collect();
        top.sort_unstable_by(|a, b| b.cmp(a));
        // The classical bound of a count-min sketch: e / width of all weight, and then only for one in e^4.
        let width = MEMORY as f64 / 4.0 / 8.0 / ROWS as f64;
        let error = std::f64::consts::E / width * queries.len() as f64 * ONE as f64;
        for &(count, digest) in &top[..room as usize / 10] {
            let found = known.get(&digest).copied().unwrap_or(0);
            assert!(found.abs_diff(count) as f64 <= error, "{} for {}", found / ONE, count / ONE);
            assert!(found > 0);
        }
        // The first hundred came early and never left.
        assert!(top[..100].iter().all(|(count, digest)| known.get(digest) == Some(count)));
    }

    /// A value that becomes frequent only when the table is full of others comes in.
    #[test]
    fn latecomers_are_promoted() {
        let mut queries: Vec<_> = (0..100_000).map(|i| (digest(i), ONE)).collect();
        queries.extend((0..2000).map(|i| (digest(1_000_000 + i % 10), ONE)));
        let counts = count(1 << 17, &queries);
        check(&counts, queries.len() as u64 * ONE);
        for i in 0..10 {
            let at = counts.known.binary_search_by_key(&digest(1_000_000 + i), |known| known.0).unwrap();
            // Those before it in its cells may have added to it.
            assert!((190..=400).contains(&(counts.known[at].1 / ONE)), "{}", counts.known[at].1 / ONE);
        }
        // All others are alike: most of the table is still theirs.
        assert!(counts.known.len() > (1 << 17) / 40 / 2, "{}", counts.known.len());
    }

    #[test]
    fn the_unseen_share_is_that_of_single_queries_and_of_the_outside() {
        let counts = count(0, &[(digest(1), ONE), (digest(2), 3 * ONE), (digest(3), ONE / 2), (digest(4), ONE)]);
        assert_eq!((counts.once, counts.queries), (2, 5 * ONE + ONE / 2));
        assert_eq!(counts.unseen(), 2.0 / 5.5);
        let counts = Counts { outside: 2 * ONE, queries: counts.queries + 2 * ONE, exact: false, ..counts };
        assert_eq!(counts.unseen(), 4.0 / 7.5);
    }

    #[test]
    fn sums_do_not_wrap() {
        let mut counter = Counter::new(0);
        counter.push(digest(1), u64::MAX - 5).unwrap();
        counter.push(digest(1), 3).unwrap();
        let error = counter.push_many(&[(digest(2), 2), (digest(3), 1)]).unwrap_err();
        assert!(error.to_string().starts_with("the counts of the expected queries add up to more than"), "{error}");
        let counts = counter.finish();
        check_sum(&counts, u64::MAX);
        assert_eq!(counts.known.len(), 2);
    }

    fn check_sum(counts: &Counts, sum: u64) {
        assert_eq!((counts.known.iter().map(|known| known.1).sum::<u64>(), counts.queries), (sum, sum));
    }

    #[test]
    fn weights_become_units() {
        for (weight, expected) in
            [(0.0, 0), (-0.0, 0), (1.0, ONE), (0.5, ONE / 2), (1e6, 1_000_000 * ONE), (MAX_WEIGHT, 1 << 63)]
        {
            assert_eq!(units(weight).unwrap(), expected, "{weight}");
        }
        assert_eq!(units(1.0 / ONE as f64).unwrap(), 1);
        for (weight, expected) in [
            (-1.0, "-1 makes no sense"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (1e-7, "scale the weights up"),
            (f64::MIN_POSITIVE, "scale the weights up"),
            (MAX_WEIGHT * 1.01, "scale the weights down"),
            (f64::MAX, "scale the weights down"),
        ] {
            let error = units(weight).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn classes_are_in_order_and_know_their_heaviest() {
        let counts = (0..64).flat_map(|bit| [0, 1, 3, 5].map(|k| (1u64 << bit).saturating_add(k << bit >> 3)));
        for count in counts.chain(0..1000).chain([u64::MAX]) {
            let c = class(count);
            assert!(heaviest(c) >= count && class(heaviest(c)) == c, "{count}");
            assert!(heaviest(c) == u64::MAX || class(heaviest(c) + 1) == c + 1, "{count}");
        }
    }
}
