//! digests -> Shards: sorted, distinct, disjoint; in memory or in temporary files; and what the planner counts.
//!
//! ```text
//!   keys ──────▶ Intake ──finish──▶ Sorted ──┐            ┌──keys(i)──▶ all of them
//!                 │  ▲                       ├──count───▶ Shards
//!   negatives ──▶ Intake ──finish──▶ Sorted ─┘   Stats,   └──negatives(i)──▶ part by part
//!                 ▼  │
//!             temporary file
//! ```
//!
//! A structure is built from one shard: all digests with the same top bits. The number of shards follows from the number of
//! distinct keys alone (`shard_bits`). Order of the input, threads and limits leave no trace, so that a file's bytes are reproducible.
//!
//! Up to the memory limit an `Intake` sorts in place and shards are slices. Past it, sorted runs go to one unnamed temporary
//! file per side. Runs repeat one another's keys, so the *count* reads every range of digests once, both sides together. It
//! counts, adds weights and finds the keys that are also negatives. Why not an estimate of the number of keys: the bytes would
//! follow the estimate. Why not merge the runs into one while counting: twice the disk, and hundreds of runs load nearly as fast.
//!
//! Memory. The limit covers the records that intakes gather and the count reads; it is raised to `MIN_MEMORY`. On top come
//! less than 1 MiB per thread of fixed buffers. The count takes as many threads as have room for a *cell* each, a 4096th of
//! the digests and the unit in which runs are read. A cell that does not fit, because of chosen digests, is cut
//! (`gather/span.rs`). Shards that the caller loads come on top: `Shards::cost` says what each takes. The keys of a shard are
//! loaded as a whole, for construction needs them all; its negatives, of any number, are read in parts.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::format::MAX_SHARD_BITS;
use crate::hash::Digest;
use crate::names::named;

pub mod counter;
mod crowd;
mod intake;
mod keys;
mod labels;
mod negatives;
mod record;
mod sketch;
mod sort;
mod span;
mod spill;
mod suspects;
#[cfg(test)]
mod tests;

pub use crate::parallel::Stop;
use crate::parallel::{check, run};
pub(crate) use crowd::{Cell, hash_of};
pub use intake::{Intake, Sorted};
pub(crate) use keys::KeyIntake;
pub use keys::Keys;
use keys::with_records;
pub(crate) use labels::{Tally, walk};
pub(crate) use record::Labelled;
#[cfg(feature = "maps")]
pub(crate) use record::Paired;
pub use record::{Counted, Record, Tagged};
pub(crate) use sketch::{Lows, Sketch};
use span::{Side, Span};
pub(crate) use suspects::Suspects;

/// A shard has at most this many keys, if its digests are spread evenly: 24 MB.
pub(crate) const SHARD_KEYS: u64 = 1_500_000;
/// The least memory that a [`Workspace`] works with; a lower limit is raised to it. The index of a run is then 1 % of the run.
pub const MIN_MEMORY: u64 = 4 << 20;
/// Runs are indexed by this many top bits.
pub(crate) const CELL_BITS: u32 = 12;
/// Negatives that are shown at a time.
const PART: usize = 256;
/// A conflict is reported with at most this many examples.
const EXAMPLES: usize = 8;

/// The number of top bits that choose the shard, for `n` distinct keys: the least that leaves at most `per_shard` to each.
///
/// With [`SHARD_KEYS`], which is the default, a million keys are one shard, ten million are 8, a hundred million 128. It is part
/// of the promise of equal bytes for equal sets, and must not depend on anything else.
pub(crate) fn shard_bits(n: u64, per_shard: u64) -> u32 {
    // A file has no more. That many serve 2.5 * 10^13 keys; where shards are to be small, they are larger from then on.
    (0..MAX_SHARD_BITS).find(|&bits| n >> bits <= per_shard).unwrap_or(MAX_SHARD_BITS)
}

/// How much memory and disk a build may use.
///
/// ```
/// let limits = tamis::Limits::default().memory(256 << 20).disk(10 << 30).tmp("/var/tmp");
/// let filter = tamis::build(0..1000).limits(limits).finish()?;
/// # assert!(filter.contains(7)?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    pub(crate) memory: u64,
    pub(crate) disk: u64,
    pub(crate) tmp: Option<PathBuf>,
}

impl Limits {
    /// Sets the bytes of memory for gathering and sorting keys, all threads together. The default is 2 GiB, and at least 4 MiB are
    /// used.
    ///
    /// More keys go to temporary files; without the feature `spill` they are an error. Shards under construction come on top. The
    /// largest take up to 60 MB per thread for members alone, 120 MB with excluded keys or a workload, and 220 MB in exact filters,
    /// maps and set indexes. [`Kind::Naive`](crate::Kind::Naive), whose first leaf holds excluded keys too, takes 220 MB with
    /// as many excluded keys as members, and more with more.
    pub fn memory(self, bytes: u64) -> Limits {
        Limits { memory: bytes, ..self }
    }

    /// Sets the bytes of temporary files. By default there is no limit.
    pub fn disk(self, bytes: u64) -> Limits {
        Limits { disk: bytes, ..self }
    }

    /// Sets the folder of temporary files. The default is the system's. The files have no name and vanish with the process.
    pub fn tmp(self, folder: impl Into<PathBuf>) -> Limits {
        Limits { tmp: Some(folder.into()), ..self }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory: 2 << 30, disk: u64::MAX, tmp: None }
    }
}

/// What becomes of a key that is also listed as a negative.
///
/// ```
/// assert_eq!(tamis::OnConflict::default(), tamis::OnConflict::Error);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnConflict {
    /// The build fails with [`BuildError::Conflict`], which says how many and which.
    #[default]
    Error,
    /// It stays a key; the negative is dropped.
    Keep,
    /// It is dropped from the keys and stays a negative.
    Drop,
}

named!(OnConflict: "error" => Error, "keep" => Keep, "drop" => Drop);

/// What is known about the keys before a filter is planned: counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Distinct keys, without those that a conflict dropped.
    pub keys: u64,
    /// Keys that repeated an earlier one.
    pub duplicate_keys: u64,
    /// Distinct listed negatives, without those that a conflict dropped.
    pub negatives: u64,
    /// Negatives that repeated an earlier one.
    pub duplicate_negatives: u64,
    /// Whether `negatives` and `duplicate_negatives` are estimates, with a standard deviation of 0.8 % of all: negatives that
    /// stage one rejects are dropped at once, and whether two of them were equal is not known.
    pub estimated: bool,
    /// Distinct keys that were also listed as negatives.
    pub conflicts: u64,
    /// The weights of those `negatives`, added up; stops at `u64::MAX`.
    pub negative_weight: u64,
}

/// What the intakes of one build share: limits, threads, and the count of disk in use.
#[derive(Debug)]
pub struct Workspace {
    /// Bytes, [`MIN_MEMORY`] at least.
    pub memory: u64,
    /// Threads for sorting and counting.
    pub threads: usize,
    disk: u64,
    tmp: Option<PathBuf>,
    /// Bytes of temporary files in use.
    used: AtomicU64,
    cell_bits: u32,
    /// The most keys of a shard.
    pub(crate) shard_keys: u64,
    /// Negatives of one part, about.
    part: u64,
}

impl Workspace {
    /// A workspace within these limits.
    pub fn new(limits: &Limits, threads: usize) -> Arc<Workspace> {
        Workspace::sharded(limits, threads, SHARD_KEYS)
    }

    /// The same for shards of at most so many keys.
    pub fn sharded(limits: &Limits, threads: usize, shard_keys: u64) -> Arc<Workspace> {
        Arc::new(Workspace {
            memory: limits.memory.max(MIN_MEMORY),
            threads: threads.max(1),
            disk: limits.disk,
            tmp: limits.tmp.clone(),
            used: AtomicU64::new(0),
            cell_bits: CELL_BITS,
            shard_keys: shard_keys.max(1),
            part: negatives::PART,
        })
    }

    fn cells(&self) -> usize {
        1 << self.cell_bits
    }

    /// All digests whose top `bits` bits are `index`.
    fn cover(&self, bits: u32, index: usize) -> Span {
        match self.cell_bits.checked_sub(bits) {
            Some(finer) => Span::cells(index << finer..(index + 1) << finer),
            None => {
                let coarser = bits - self.cell_bits;
                let border = |index: usize| {
                    let inside = index & ((1 << coarser) - 1) != 0;
                    inside.then(|| Digest { hi: (index as u64) << (64 - bits), lo: 0 })
                };
                let cell = index >> coarser;
                Span { cells: cell..cell + 1, from: border(index), until: border(index + 1) }
            }
        }
    }

    /// Counts bytes that are about to be written.
    fn take_disk(&self, bytes: u64) -> Result<(), BuildError> {
        let take = |used: u64| used.checked_add(bytes).filter(|&used| used <= self.disk);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(_) => Err(BuildError::DiskLimit { limit: self.disk }),
        }
    }

    /// Where temporary files are made. Targets without files have no such directory, so that only a spill may call this.
    fn dir(&self) -> PathBuf {
        self.tmp.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// An error of the temporary file, which has no name, says where it is.
    fn explain(&self, error: io::Error) -> BuildError {
        let error = io::Error::new(error.kind(), format!("temporary file: {error}"));
        BuildError::Io { path: Some(self.dir()), error }
    }
}

/// All shards of one build.
pub struct Shards {
    /// A shard is the digests that share this many top bits.
    pub bits: u32,
    /// What was counted.
    pub stats: Stats,
    /// About how many distinct negatives were listed: the same for any order and any limit.
    pub(crate) approx_negatives: u64,
    /// How many of them are only expected, and not excluded.
    pub(crate) expected: u64,
    keys: Keys,
    negatives: Option<Keys>,
    /// Those of the only shard, for whoever builds it.
    alone: Mutex<Option<Vec<Digest>>>,
    on_conflict: OnConflict,
}

brief_debug!(Shards, it => stats: it.stats);

impl Shards {
    /// Counts both sides.
    pub fn new(
        keys: Keys,
        negatives: Option<Keys>,
        on_conflict: OnConflict,
        stop: Stop<'_>,
    ) -> Result<Shards, BuildError> {
        Shards::with_suspects(keys, negatives, None, on_conflict, stop)
    }

    /// Counts both sides. Where negatives have no places, those that `suspects` has are shown in conflicts.
    fn with_suspects(
        keys: Keys,
        negatives: Option<Keys>,
        suspects: Option<Sorted<Tagged>>,
        on_conflict: OnConflict,
        stop: Stop<'_>,
    ) -> Result<Shards, BuildError> {
        let mut counts = keys.count_sides(negatives.as_ref(), stop)?;
        let listed = negatives.as_ref().map_or(0, Keys::count);
        if let Some(suspects) = suspects.filter(|_| counts.conflicts > 0) {
            let both = keys.count_sides(Some(&Keys::Tagged(suspects)), stop)?;
            (counts.first, counts.conflict_weight) = (both.first, both.conflict_weight);
        }
        if let Some(Keys::Plain(_)) = negatives {
            // How often each was listed is not known, but how often all of them were.
            counts.weight = listed.saturating_sub(counts.conflict_weight);
        }
        let stats = counts.stats(keys.count(), listed, on_conflict)?;
        // Nobody asks for places any more.
        let keys = if negatives.is_some() { keys.without_places() } else { keys };
        let bits = shard_bits(stats.keys, keys.side().workspace().shard_keys);
        let alone = Mutex::new(None);
        Ok(Shards { bits, stats, approx_negatives: 0, expected: 0, keys, negatives, alone, on_conflict })
    }

    /// Some of the shards of a larger build, which counted all of them.
    pub(crate) fn of_slice(
        bits: u32,
        stats: Stats,
        keys: Keys,
        negatives: Option<Keys>,
        on_conflict: OnConflict,
    ) -> Shards {
        let alone = Mutex::new(None);
        Shards { bits, stats, approx_negatives: 0, expected: 0, keys, negatives, alone, on_conflict }
    }

    /// What finds the negatives that may be keys, if conflicts are to be shown with their places.
    pub(crate) fn suspects(&self, workspace: &Arc<Workspace>, stop: Stop<'_>) -> Result<Option<Suspects>, BuildError> {
        Suspects::new(&self.keys, self.stats.keys, workspace, stop)
    }

    /// Takes out the queries that are for keys; what both sides add up to says how many these are.
    fn without_keys(
        &self,
        queries: Sorted<Counted>,
        stop: Stop<'_>,
    ) -> Result<(Sorted<Counted>, SideCounts), BuildError> {
        with_records!(Keys, &self.keys, keys => without(keys, queries, stop))
    }

    /// Whether keys have their places in the input.
    pub(crate) fn has_places(&self) -> bool {
        matches!(self.keys, Keys::Tagged(_))
    }

    /// Whether a shard has far more keys than chance would give it.
    pub(crate) fn is_crowded(&self, stop: Stop<'_>) -> Result<bool, BuildError> {
        self.is_crowded_in(self.bits, stop)
    }

    /// The same for another number of shards.
    pub(crate) fn is_crowded_in(&self, bits: u32, stop: Stop<'_>) -> Result<bool, BuildError> {
        crowd::is_crowded(self.keys.side(), bits, stop)
    }

    /// A hash of the set of keys, whatever becomes of conflicts.
    pub(crate) fn set_hash(&self, stop: Stop<'_>) -> Result<u64, BuildError> {
        self.keys.set_hash(stop)
    }

    /// The same keys, before there are negatives, with other digests.
    pub(crate) fn mapped(self, map: impl Fn(Digest) -> Digest, stop: Stop<'_>) -> Result<Shards, BuildError> {
        let keys = match self.keys {
            Keys::Plain(keys) => Keys::Plain(keys.mapped(map, stop)?),
            Keys::Tagged(keys) => Keys::Tagged(keys.mapped(map, stop)?),
        };
        Shards::new(keys, None, self.on_conflict, stop)
    }

    /// About how many distinct negatives there are: those that a conflict made keys are none.
    pub(crate) fn known(&self) -> u64 {
        match self.on_conflict {
            OnConflict::Keep => self.approx_negatives.saturating_sub(self.stats.conflicts),
            OnConflict::Error | OnConflict::Drop => self.approx_negatives,
        }
    }

    /// How many of them are excluded, and not only expected.
    pub(crate) fn excluded(&self) -> u64 {
        self.known().saturating_sub(self.expected)
    }

    /// The number of shards.
    pub fn count(&self) -> usize {
        1 << self.bits
    }

    /// The same keys with other negatives. After an error there are none of either.
    pub fn set_negatives(
        &mut self,
        negatives: Keys,
        suspects: Option<Sorted<Tagged>>,
        on_conflict: OnConflict,
        stop: Stop<'_>,
    ) -> Result<(), BuildError> {
        *self = Shards::with_suspects(self.keys.take(), Some(negatives), suspects, on_conflict, stop)?;
        Ok(())
    }

    /// Loads the keys of one shard on this thread, sorted and distinct: a slice if everything stayed in memory.
    pub fn keys(&self, shard: usize, stop: Stop<'_>) -> Result<Cow<'_, [Digest]>, BuildError> {
        check(stop)?;
        let mut keys = match &self.keys {
            Keys::Plain(keys) => keys.range(self.bits, shard, stop)?,
            Keys::Tagged(keys) => Cow::Owned(keys.range(self.bits, shard, stop)?.iter().map(|k| k.digest).collect()),
        };
        if let Some(negatives) = self.listed(OnConflict::Drop) {
            with_records!(Keys, negatives, negatives => negatives::each(negatives, self.bits, shard, stop, |part| {
                subtract(&mut keys, part);
                Ok(())
            }))?;
        }
        Ok(keys)
    }

    /// The negatives, if there are conflicts that `policy` resolves.
    fn listed(&self, policy: OnConflict) -> Option<&Keys> {
        self.negatives.as_ref().filter(|_| self.stats.conflicts > 0 && self.on_conflict == policy)
    }

    /// Shows all negatives to `ask`, some at a time; it returns an answer for each.
    pub(crate) fn listed_negatives(
        &self,
        stop: Stop<'_>,
        mut ask: impl FnMut(&[Digest], &mut [bool]),
    ) -> Result<(), BuildError> {
        let Some(negatives) = &self.negatives else { return Ok(()) };
        let mut answers = [false; PART];
        for span in span::all(negatives.side(), None, 1, stop)?.0 {
            check(stop)?;
            negatives.side().digests(&span, stop, &mut |digests| {
                digests.chunks(PART).for_each(|digests| ask(digests, &mut answers[..digests.len()]));
            })?;
        }
        Ok(())
    }

    /// Reads the negatives of one shard, whose keys are `keys`, in parts: sorted, distinct, and none of them a key.
    pub fn negatives(
        &self,
        shard: usize,
        keys: &[Digest],
        stop: Stop<'_>,
        part: &mut dyn FnMut(Part<'_>) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let Some(negatives) = &self.negatives else { return Ok(()) };
        let keep = self.listed(OnConflict::Keep).is_some();
        with_records!(Keys, negatives, negatives => negatives::each(negatives, self.bits, shard, stop, |listed| match keep {
            false => part(listed.into()),
            true => {
                let mut listed = Cow::Borrowed(listed);
                subtract(&mut listed, keys);
                part((&*listed).into())
            }
        }))
    }

    /// Nobody but the build of the shards will read the negatives: if there is one, and no conflict, it may use them up.
    pub(crate) fn hand_over(&mut self) {
        if self.bits == 0 && self.stats.conflicts == 0 && self.negatives_in_memory(0).is_some() {
            let negatives = self.negatives.take();
            *self.alone.get_mut().unwrap_or_else(PoisonError::into_inner) = negatives.and_then(Keys::into_plain);
        }
    }

    /// All negatives, once, if they were handed over.
    pub(crate) fn take_negatives(&self) -> Option<Vec<Digest>> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The negatives of one shard, if they are in memory as digests, and none of them is a key.
    pub(crate) fn negatives_in_memory(&self, shard: usize) -> Option<&[Digest]> {
        match self.negatives.as_ref().filter(|_| self.listed(OnConflict::Keep).is_none())? {
            Keys::Plain(negatives) => negatives.slice(self.bits, shard),
            Keys::Tagged(_) => None,
        }
    }

    /// Bytes that the keys of this shard and a part of its negatives take at most, not counting a buffer of 64 KiB.
    pub fn cost(&self, shard: usize) -> u64 {
        // What is in memory is copied only to take conflicts out.
        let keys = match &self.keys {
            Keys::Plain(keys) => match keys.in_memory().is_some() && self.listed(OnConflict::Drop).is_none() {
                true => 0,
                false => 16 * keys.at_most(self.bits, shard),
            },
            // The digests alone, next to the records if these are read from disk.
            Keys::Tagged(keys) => match keys.in_memory() {
                Some(_) => 16 * keys.at_most(self.bits, shard),
                None => (32 + 16) * keys.at_most(self.bits, shard),
            },
        };
        let negatives = match &self.negatives {
            Some(negatives) => with_records!(Keys, negatives, negatives => {
                if negatives.in_memory().is_none() || self.listed(OnConflict::Keep).is_some() {
                    negatives::largest(negatives, self.bits, shard)
                } else {
                    0
                }
            }),
            None => 0,
        };
        keys + negatives
    }
}

/// The records that are no keys, and what both sides add up to.
fn without<K: Record>(
    keys: &Sorted<K>,
    records: Sorted<Counted>,
    stop: Stop<'_>,
) -> Result<(Sorted<Counted>, SideCounts), BuildError> {
    let counts = count_sides(keys, Some(&records), stop, |_, _| {})?;
    if counts.conflicts == 0 {
        return Ok((records, counts));
    }
    let mut left = records.intake();
    for span in span::all(keys, Some(&records), 1, stop)?.0 {
        let mut found = records.span(&span, stop)?;
        subtract(&mut found, &keys.span(&span, stop)?);
        left.push_slice(&found, stop)?;
    }
    Ok((left.finish(stop)?, counts))
}

/// Some negatives, with weights or without.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// All weigh the same.
    Plain(&'a [Digest]),
    /// Each with its weight.
    Tagged(&'a [Tagged]),
}

impl<'a> From<&'a [Digest]> for Part<'a> {
    fn from(digests: &'a [Digest]) -> Part<'a> {
        Part::Plain(digests)
    }
}

impl<'a> From<&'a [Tagged]> for Part<'a> {
    fn from(records: &'a [Tagged]) -> Part<'a> {
        Part::Tagged(records)
    }
}

/// Removes from one sorted list what another holds.
fn subtract<A: Record, B: Record>(from: &mut Cow<'_, [A]>, other: &[B]) {
    let mut other = other.iter().map(B::order).peekable();
    from.to_mut().retain(|record| {
        let order = record.order();
        while other.next_if(|&o| o < order).is_some() {}
        other.peek() != Some(&order)
    });
}

/// What the ranges of both sides add up to.
#[derive(Default)]
pub(crate) struct SideCounts {
    pub(crate) keys: u64,
    pub(crate) negatives: u64,
    /// Of the negatives that are not keys.
    pub(crate) weight: u64,
    pub(crate) conflicts: u64,
    /// Of the negatives that are keys.
    pub(crate) conflict_weight: u64,
    /// The first conflicts by (ordinal of the key, ordinal of the negative), at most [`EXAMPLES`] of them.
    first: Vec<(u64, u64)>,
}

impl SideCounts {
    fn of<K: Record, N: Record>(keys: &[K], negatives: &[N]) -> SideCounts {
        let mut counts =
            SideCounts { keys: keys.len() as u64, negatives: negatives.len() as u64, ..Default::default() };
        let mut rest = keys.iter().peekable();
        for negative in negatives {
            let order = negative.order();
            while rest.next_if(|key| key.order() < order).is_some() {}
            match rest.peek().filter(|key| key.order() == order) {
                None => counts.weight = counts.weight.saturating_add(negative.weight()),
                Some(key) => {
                    counts.conflicts += 1;
                    counts.conflict_weight = counts.conflict_weight.saturating_add(negative.weight());
                    counts.first.extend(key.ordinal().zip(negative.ordinal()));
                    if counts.first.len() >= 1024 {
                        counts.trim();
                    }
                }
            }
        }
        counts.trim();
        counts
    }

    /// What was counted, of so many listed keys and negatives, once conflicts are resolved.
    fn stats(self, keys: u64, negatives: u64, on_conflict: OnConflict) -> Result<Stats, BuildError> {
        let mut stats = Stats {
            keys: self.keys,
            duplicate_keys: keys - self.keys,
            negatives: self.negatives,
            duplicate_negatives: negatives - self.negatives,
            conflicts: self.conflicts,
            negative_weight: self.weight,
            estimated: false,
        };
        match on_conflict {
            OnConflict::Error if self.conflicts > 0 => {
                return Err(BuildError::Conflict { count: self.conflicts, first: self.first });
            }
            OnConflict::Error => {}
            OnConflict::Keep => stats.negatives -= self.conflicts,
            OnConflict::Drop => {
                stats.keys -= self.conflicts;
                stats.negative_weight = self.weight.saturating_add(self.conflict_weight);
            }
        }
        Ok(stats)
    }

    fn trim(&mut self) {
        self.first.sort_unstable();
        self.first.truncate(EXAMPLES);
    }

    fn add(mut self, other: SideCounts) -> SideCounts {
        self.keys += other.keys;
        self.negatives += other.negatives;
        self.weight = self.weight.saturating_add(other.weight);
        self.conflicts += other.conflicts;
        self.conflict_weight = self.conflict_weight.saturating_add(other.conflict_weight);
        self.first.extend(other.first);
        self.trim();
        self
    }
}

/// Hands on two sides, each sorted and distinct, range by range.
pub(crate) fn together<E: From<BuildError>>(
    one: &Sorted<Digest>,
    other: &Sorted<Digest>,
    stop: Stop<'_>,
    mut part: impl FnMut(&[Digest], &[Digest]) -> Result<(), E>,
) -> Result<(), E> {
    for span in span::all(one, Some(other), 1, stop)?.0 {
        check(stop)?;
        part(&one.span(&span, stop)?, &other.span(&span, stop)?)?;
    }
    Ok(())
}

/// Reads both sides once, range by range; `tally` may count what it likes, on several threads.
fn count_sides<K: Record, N: Record>(
    keys: &Sorted<K>,
    negatives: Option<&Sorted<N>>,
    stop: Stop<'_>,
    tally: impl Fn(&[K], &[N]) + Sync,
) -> Result<SideCounts, BuildError> {
    if let (Some(all), None) = (keys.in_memory(), negatives) {
        tally(all, &[]);
        return Ok(SideCounts { keys: all.len() as u64, ..Default::default() });
    }
    let (spans, threads) = span::all(keys, negatives.map(|n| n as &dyn Side), keys.workspace().threads, stop)?;
    let counts = run(spans, threads, |span| {
        check(stop)?;
        let keys = keys.span(&span, stop)?;
        let negatives = match negatives {
            Some(negatives) => negatives.span(&span, stop)?,
            None => Cow::Borrowed(&[][..]),
        };
        tally(&keys, &negatives);
        Ok(SideCounts::of(&keys, &negatives))
    })?;
    Ok(counts.into_iter().fold(SideCounts::default(), SideCounts::add))
}
