//! sorted runs of keys, oldest first -> the run that a get reads: a filter for each run, exact against all later runs.
//!
//! A log-structured store writes its keys in sorted runs. A key may be in several of them, and the newest one has its value. Usually every run has a
//! filter of its own, and with many runs their false positives add up: each is a read for nothing. [`Level`] makes the filters know each other, so
//! that a get of a key that exists reads one run and no other.
//!
//! ```
//! use tamis::lsm::Level;
//! let mut level = Level::new::<str>()?;
//! let old = level.push_run(["ann", "bob"])?;
//! let new = level.push_run(["ann", "cid"])?;
//! assert_eq!(level.find("ann")?, Some(new)); // its newest version; the old one is not read
//! assert_eq!(level.find("bob")?, Some(old));
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! # The filters
//!
//! The filter of a run is a ribbon of its keys and an exact bit for what passes the ribbon. Members of the run have a 1, and keys of
//! *later* runs that pass have a 0. The ribbon is never changed. A new run is queried in all older filters, and what passes there gets its 0 in their exact bits
//! ([`Othello`](crate::Othello)): no older run is read again.
//!
//! ```text
//!   run     1 (oldest)    2             3 (new)
//!   holds   a b           b c           a d
//!   filter  b 1  a 0      b 1  c 1      a 1  d 1        a of run 1 is superseded: its 1 becomes a 0
//!           c 0  d 0      a 0  d 0                      (0 only for keys that pass the ribbon)
//!            └───────────── get: filters from the oldest on, first match ──────▶ read that run, and be done
//! ```
//!
//! # What is guaranteed
//!
//! Let the runs be R1 (oldest) to RN, and different keys have different digests. Filter i matches every x in Ri that is in no later run,
//! and rejects every x that is in a later run. Of keys that are in none of Ri .. RN it matches a share p, the [`fpr`](LevelBuilder::fpr).
//!
//! **Theorem 1.** *If x is in a run, the first filter that matches x, from the oldest on, is that of the newest run with x. If x is in no run, at most
//! one run is read.* Proof: let Rj be the newest run with x. Filters before j reject x, because it is in a later run. Filter j matches it. So
//! the run read first is Rj, and what it holds is final. If that run lacks x, then x is in no run, and nothing else needs to be read. ∎
//!
//! So a get reads at most one run; of an absent key it reads one with a probability of 1 - (1 - p)^N.
//! Deletions are keys with a tombstone: members of their run like all others. A store with several levels, each with a [`Level`], reads at most one run
//! in vain for every level above the key's.
//!
//! **With all versions** ([`LevelBuilder::all_versions`]) superseded members keep their 1. That is what [Chained] section 5.4 describes: filter i matches every
//! x in Ri, and rejects every x that is in a later run and not in Ri. Old versions stay visible, for snapshots and for merges of values.
//!
//! **Theorem 2.** *The runs whose filters match x, from the oldest on, are first all runs that hold x, and then runs that do not.* Proof: if filter i matches x and Ri
//! lacks it, x is in no later run, or filter i would reject it. ∎ So the first run without x ends the search: all runs that hold x are read, and at most one more.
//!
//! What the paper claims, and what is so:
//!
//! * "No more than one additional search, whether or not items repeat": so it is, by Theorem 2.
//! * "No false positive when querying existing items": only if the search ends at the first run with the key, as it may while no key is in two runs.
//!   By the rule for keys that repeat, a get of a key whose newest run is j has an additional search with a probability of 1 - (1 - p)^(N - j).
//!   That is 13 % on average with 30 runs and p = 1 %. Theorem 1 has none, and repeated keys do not matter.
//! * The order is from the oldest run to the newest. From the newest on, nothing is guaranteed: filters of runs after j know nothing about x.
//!
//! # What may change
//!
//! Runs are added at the newest end ([`Level::push_run`]) and leave at the oldest ([`Level::remove_oldest`]), where the next level is; adjacent
//! ones become one ([`Level::merge`]). Filters only know *later* runs, so none of the others changes when the oldest leave.
//!
//! # What it costs
//!
//! With p = 1 % a level of 7 runs takes 8.2 bits per key, and one of 30 runs 8.7 (`cargo run -p tamis-bench-papers -- chained --apps lsm`). Readers need
//! [`Reader`] alone: ribbons and exact bits. The digests of what is listed, which changes need, are with the [`Level`]: 28 to 34 bytes per key.
//!
//! Exact bits do little for absent keys. In as many bits, a plain ribbon for each run has a rate of about p / 3: gets of absent keys read a run a third as often,
//! and gets of existing keys read one run in vain now and then. A level pays where most gets are of existing keys, or where a bound matters.
//!
//! # Why not the other way round
//!
//! Filters could exclude the keys of *older* runs, and gets read from the newest on. That also reads one run, and no filter ever changes. But all
//! older keys are needed whenever a run is written. Here a run brings its own keys, and nothing else is read.
//!
//! [Chained]: https://doi.org/10.48550/arXiv.2308.13649

use std::ops::Range;
use std::sync::Arc;

use crate::debug::brief_debug;
use crate::dynamic::access::Alone;
use crate::dynamic::othello::change::Graphs;
use crate::dynamic::othello::{Bits, forest::Stream};
use crate::error::{BuildError, ChangeError, Error, QueryError};
use crate::filter::build::Options;
use crate::hash::{Digest, Hasher, Key, KeyType, Salt};
use crate::parallel;
use crate::plan::Kind;

mod builder;
mod reader;

pub use builder::LevelBuilder;
pub use reader::{Candidates, Reader, RunId, Search, Stats};

use reader::Run;

const NOT_A_RANGE: &str =
    "merge: the runs are not in the level, or not from old to new; expected the first and the last of adjacent runs";

/// The runs of one level of a log-structured store, and which of them holds a key: see the [module](self).
///
/// This is the side of the writer. [`reader`](Self::reader) is what gets need; it can be cloned at little cost and given to other threads.
///
/// If others choose keys, give the level a secret: see [`LevelBuilder::hasher`].
#[derive(Clone)]
pub struct Level {
    shown: Reader,
    /// What changes need, for every run.
    graphs: Vec<Graphs>,
    fpr: f64,
    threads: usize,
    next: u64,
}

brief_debug!(Level, it => runs: it.shown.runs.len(), stats: it.stats(), hasher: it.shown.hasher);

impl Level {
    /// Makes a level without runs for keys of type `K`: `u64`, `str`, `[u8]`, .. See [`LevelBuilder`] for options.
    ///
    /// # Errors
    ///
    /// [`BuildError`]; not to be expected with these options.
    pub fn new<K: Key + ?Sized>() -> Result<Level, BuildError> {
        LevelBuilder::new().build::<K>()
    }

    /// Adds a run, which is the newest from now on. Keys in any order; equal ones count once.
    ///
    /// # Errors
    ///
    /// [`ChangeError::KeyType`] if the key type is not the level's, [`Error::Build`] if the filter cannot be built. No answer for a key of the level
    /// has changed then.
    ///
    /// # Complexity
    ///
    /// A query of every key in every older filter, and a change of an exact bit for each that passes. [`Reader`]s that are in use are not changed: the
    /// exact bits are copied first.
    pub fn push_run<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<RunId, Error> {
        let end = self.shown.runs.len();
        self.place(end..end, keys)
    }

    /// Makes one run of adjacent ones, `first` to `last`, with the keys that the merged run holds.
    ///
    /// A key that the merge drops, such as one with a tombstone, is found in older runs no more.
    ///
    /// ```
    /// use tamis::lsm::Level;
    /// let mut level = Level::new::<u64>()?;
    /// let runs = [level.push_run(0..100)?, level.push_run(50..150)?, level.push_run(90..95)?];
    /// let merged = level.merge(runs[0], runs[1], 0..150)?;
    /// assert_eq!((level.find(7)?, level.find(140)?, level.find(92)?), (Some(merged), Some(merged), Some(runs[2])));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ChangeError::Unsupported`] if the two are no runs of the level from old to new, others as [`push_run`](Self::push_run).
    pub fn merge<K: Key>(
        &mut self,
        first: RunId,
        last: RunId,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<RunId, Error> {
        let at = |id| self.shown.runs.iter().position(|run| run.id == id);
        match (at(first), at(last)) {
            (Some(first), Some(last)) if first <= last => self.place(first..last + 1, keys),
            (Some(_) | None, _) => Err(ChangeError::Unsupported { what: NOT_A_RANGE }.into()),
        }
    }

    /// Removes the oldest runs, at most so many, because they moved to the next level. The filters of the others stay as they are.
    ///
    /// Newer runs than those that stay cannot be removed, only [merged](Self::merge): a store that moved them below older ones would be wrong.
    pub fn remove_oldest(&mut self, count: usize) {
        let count = count.min(self.graphs.len());
        self.shown.runs.drain(..count);
        self.graphs.drain(..count);
    }

    /// Returns what gets need. A clone of it stays as it is while the level changes: publish one after every change.
    ///
    /// ```
    /// let mut level = tamis::lsm::Level::new::<u64>()?;
    /// let first = level.push_run(0..1000)?;
    /// let before = level.reader().clone();
    /// let second = level.push_run(500..1500)?;
    /// assert_eq!((before.find(700)?, level.find(700)?), (Some(first), Some(second)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn reader(&self) -> &Reader {
        &self.shown
    }

    /// Returns the run that a get reads: see [`Reader::find`].
    ///
    /// # Errors
    ///
    /// As [`Reader::find`].
    pub fn find<K: Key>(&self, key: K) -> Result<Option<RunId>, QueryError> {
        self.shown.find(key)
    }

    /// Returns how large the level is.
    pub fn stats(&self) -> Stats {
        let listed = self.graphs.iter().map(|graphs| graphs.len() as u64).sum();
        let side_bytes = self.graphs.iter().map(Graphs::bytes).sum();
        Stats { listed, side_bytes, ..self.shown.stats() }
    }

    /// Puts a run of these keys where others are.
    fn place<K: Key>(&mut self, at: Range<usize>, keys: impl IntoIterator<Item = K>) -> Result<RunId, Error> {
        let Reader { ref hasher, key_type, all_versions, .. } = self.shown;
        let digests = keys.into_iter().map(|key| key_type.digest(key, hasher)).collect::<Result<Vec<_>, _>>();
        let mut digests = digests.map_err(ChangeError::from)?;
        digests.sort_unstable();
        digests.dedup();
        let digests = Arc::new(digests);
        let (mut run, mut graphs) = self.build(&digests)?;
        // As if the later runs came now. Each of their keys has a 1 in the newest run that holds it.
        for (later, known) in self.shown.runs.iter().zip(&self.graphs).skip(at.end) {
            let live: Vec<Digest> = known.keys().filter(|key| later.exact.get(*key)).collect();
            let held = exclude(&mut run, &mut graphs, &live)?;
            supersede(&mut run, &mut graphs, &held, all_versions)?;
        }
        // First what can fail: zeros of keys that are in no run so far change no answer for a key of the level.
        let older = self.shown.runs.iter_mut().zip(&mut self.graphs).take(at.start).collect();
        let excluded = parallel::run(older, self.threads, |(run, graphs): (&mut Run, &mut Graphs)| {
            let held = exclude(run, graphs, &digests)?;
            Ok((run, graphs, held))
        });
        parallel::run(excluded?, self.threads, |(run, graphs, held)| supersede(run, graphs, &held, all_versions))?;
        let id = run.id;
        self.shown.runs.splice(at.clone(), [run]);
        self.graphs.splice(at, [graphs]);
        self.next += 1;
        Ok(id)
    }

    /// A run of distinct digests in ascending order, against no other.
    fn build(&self, digests: &Arc<Vec<Digest>>) -> Result<(Run, Graphs), Error> {
        let hasher = &self.shown.hasher;
        // The exact bit of an unlisted key is a coin.
        let first =
            Options::default().hasher(Hasher::foreign(0)).kind(Kind::Ribbon).fpr(2.0 * self.fpr).threads(self.threads);
        let first = first.build_digests(Arc::clone(digests), KeyType::Digest).finish()?;
        // Equal salts would make the coins of two runs alike.
        let random = match hasher.is_secret() {
            true => Stream::new(Salt::secret(hasher, 0x6c65_7665_6c00_0000 ^ self.next).words()),
            false => Stream::random(),
        };
        let Bits { cells, graphs } = Bits::build(digests.iter().map(|&key| (key, true)), random)?;
        Ok((Run { id: RunId(self.next), first: Arc::new(first), exact: Arc::new(cells) }, graphs))
    }
}

/// Gives keys of later runs a 0 where they pass. Returns those that are members with a 1, whose bits stay.
fn exclude(run: &mut Run, graphs: &mut Graphs, keys: &[Digest]) -> Result<Vec<Digest>, BuildError> {
    // The one error of a filter without partitions cannot occur, and a zero for every key is safe.
    let passes = run.first.contains_many_digests(keys).unwrap_or_else(|_| vec![true; keys.len()]);
    let (mut fresh, mut held) = (vec![], vec![]);
    for (&key, _) in keys.iter().zip(passes).filter(|(_, passes)| *passes) {
        match graphs.listed(&run.exact, key) {
            None => fresh.push((key, false)),
            Some(true) => held.push(key),
            Some(false) => {}
        }
    }
    if !fresh.is_empty() {
        graphs.set_many(&mut Alone(Arc::make_mut(&mut run.exact)), fresh)?;
    }
    Ok(held)
}

/// Gives members that a later run holds too a 0, unless all versions are to be found.
///
/// A bit of a listed key changes by a flip of a tree, which needs no other salt: it cannot fail.
fn supersede(run: &mut Run, graphs: &mut Graphs, held: &[Digest], all_versions: bool) -> Result<(), BuildError> {
    if all_versions || held.is_empty() {
        return Ok(());
    }
    let exact = Arc::make_mut(&mut run.exact);
    held.iter().try_for_each(|&key| graphs.set(&mut Alone(exact), key, false).map(drop))
}

#[cfg(test)]
mod tests;
