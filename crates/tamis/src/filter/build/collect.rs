//! keys and negatives, in any order -> sorted sides -> a filter.
//!
//! ```text
//!   Collector   push* exclude* expect*        in any order; negatives are kept, on disk past the memory limit
//!      │ seal
//!   Sealed      exclude(key)*  expect(..)*    keys are complete: negatives pass a sieve, and few are kept
//!      │ finish
//!   Filter
//! ```

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use super::diff::PatchHead;
use super::expect::{Workload, WorkloadPlan, goal_with_max_fpr};
use super::sieve::Sieve;
use super::{Options, Progress, Report, to_file, to_memory, to_writer, write};
use crate::arch::arena::Output;
use crate::error::{BuildError, Error};
use crate::filter::options::PROGRESS_INTERVAL;
use crate::filter::query::Filter;
use crate::filter::steps::ROUND;
use crate::gather::counter::{Counter, units};
use crate::gather::{KeyIntake, Keys, OnConflict, Shards, Sketch, Sorted, Suspects, Tagged, Workspace};
use crate::hash::attempts::{ATTEMPTS, number};
use crate::hash::{Digest, Key, KeyType};
use crate::plan::{Comparison, Goal, Plan, compare};

/// A measured rate so much above the goal keeps it: it is the chance of many light queries, and not worth another build.
const GOAL_TOLERANCE: f64 = 1.02;

/// The largest number that salts follow from where the first ones missed a goal: two bytes more in the file.
const MAX_SALTS: u64 = (1 << 14) - 1;

/// Takes keys in; sorts and spills them on the way.
pub struct Collector<'a> {
    options: Options<'a>,
    /// How many keys will come, if that is known.
    total: Option<u64>,
    workspace: Arc<Workspace>,
    keys: KeyIntake,
    negatives: Option<Box<Negatives>>,
    expected: Option<Box<Counter>>,
    count: u64,
}

struct Negatives {
    intake: KeyIntake,
    /// Those that may be keys, where the others are kept without their places.
    suspects: Option<Suspects>,
    sketch: Sketch,
    /// How many distinct ones there will be, if they were counted.
    counted: Option<u64>,
    /// How many of them are excluded, where the others are queries to expect.
    excluded: Option<u64>,
    /// Negatives that came, those that a sieve let go included.
    count: u64,
}

impl Negatives {
    fn new(workspace: &Arc<Workspace>, memory: u64, tagged: bool) -> Negatives {
        let intake = KeyIntake::new(workspace, memory, tagged);
        Negatives { intake, suspects: None, sketch: Sketch::new(), counted: None, excluded: None, count: 0 }
    }

    /// For keys that are complete.
    fn beside(shards: &Shards, workspace: &Arc<Workspace>, options: &Options<'_>) -> Result<Negatives, BuildError> {
        let weighed = options.expecting || matches!(options.goal, Goal::ExcludedFpr(_));
        let suspects = match !weighed && shards.has_places() {
            true => shards.suspects(workspace, &|| options.common.stop())?,
            false => None,
        };
        let tagged = weighed || (shards.has_places() && suspects.is_none());
        Ok(Negatives { suspects, ..Negatives::new(workspace, options.side_memory(workspace), tagged) })
    }

    /// How many distinct ones there are, about.
    fn distinct(&mut self, shards: &Shards, options: &Options<'_>) -> Result<u64, BuildError> {
        match self.counted {
            Some(counted) => Ok(counted),
            // An attacker who knows all keys can still forge the estimate, but not beyond what came.
            None => {
                let distinct = self.sketch.distinct(|| shards.set_hash(&|| options.common.stop()))?;
                Ok(distinct.min(self.count + self.count / 16))
            }
        }
    }

    /// Counts those that came before the keys were complete.
    fn recount(&mut self, shards: &Shards, options: &Options<'_>) -> Result<(), BuildError> {
        let Negatives { intake, sketch, .. } = self;
        let stop = || options.common.stop();
        intake.scan(&stop, |digests| sketch.add(digests, || shards.set_hash(&stop)))
    }

    fn push(&mut self, digest: Digest, options: &Options<'_>) -> Result<(), BuildError> {
        self.keep(digest, self.count, options)?;
        self.count += 1;
        Ok(())
    }

    fn keep(&mut self, digest: Digest, ordinal: u64, options: &Options<'_>) -> Result<(), BuildError> {
        self.intake.push(Tagged { digest, weight: 1, ordinal }, &|| options.common.stop())
    }
}

impl fmt::Debug for Collector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collector of {} keys: {:?}", self.count, self.options)
    }
}

/// A filter holds one kind of keys.
pub(crate) fn same_key_type<K: Key>(key_type: &mut Option<KeyType>) -> Result<(), BuildError> {
    Ok(key_type.get_or_insert(K::KEY_TYPE).check(K::KEY_TYPE)?)
}

impl<'a> Collector<'a> {
    pub(super) fn new(options: Options<'a>) -> Self {
        let workspace = options.common.workspace();
        let memory = if options.places || options.expecting { workspace.memory / 2 } else { workspace.memory };
        let keys = KeyIntake::new(&workspace, memory, options.places);
        Collector { options, total: None, workspace, keys, negatives: None, expected: None, count: 0 }
    }

    pub(super) fn options(&self) -> &Options<'a> {
        &self.options
    }

    pub(super) fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// Makes it a patch that begins with this.
    pub(super) fn set_patch(&mut self, head: PatchHead) {
        self.options.patch = Some(Arc::new(head));
    }

    pub(super) fn set_goal(&mut self, goal: Goal) {
        self.options.goal = goal;
    }

    /// Hands on all digests that are excluded so far, in some order.
    pub(super) fn scan_excluded(
        &self,
        part: impl FnMut(&[Digest]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        match &self.negatives {
            Some(negatives) => negatives.intake.scan(&|| self.options.common.stop(), part),
            None => Ok(()),
        }
    }

    /// Announces the number of keys, if it is known: memory for them is then taken once, and [`Progress`] has a total.
    ///
    /// ```
    /// let mut keys = tamis::stream().start();
    /// keys.announce(Some(2));
    /// ["ann", "bob"].into_iter().try_for_each(|key| keys.push(key))?;
    /// assert_eq!(keys.finish()?.len(), 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn announce(&mut self, total: Option<u64>) {
        self.total = total;
        self.keys.expect(total.unwrap_or(0));
    }

    /// Adds a key. Equal keys count once.
    ///
    /// # Errors
    ///
    /// [`BuildError::MixedKeyTypes`] if the key type is not that of earlier keys, [`BuildError::Cancelled`], and errors of limits and
    /// temporary files.
    #[inline]
    pub fn push<K: Key>(&mut self, key: K) -> Result<(), BuildError> {
        same_key_type::<K>(&mut self.options.key_type)?;
        self.push_digest(key.digest(&self.options.common.hasher))
    }

    /// The same for a digest.
    #[inline]
    pub(super) fn push_digest(&mut self, digest: Digest) -> Result<(), BuildError> {
        let options = &self.options;
        self.keys.push(Tagged { digest, weight: 1, ordinal: self.count }, &|| options.common.stop())?;
        self.count += 1;
        options.common.report_progress(self.count, Progress::Read { keys: self.count, total: self.total })
    }

    /// Adds all keys of an iterator that may fail, and stops at its first error.
    ///
    /// # Errors
    ///
    /// The first error of the iterator, or that of [`push`](Self::push).
    ///
    /// ```
    /// use std::io::BufRead;
    /// let mut keys = tamis::stream().start();
    /// keys.try_extend(std::io::Cursor::new("ann\nbob\n").lines())?;
    /// assert!(keys.finish()?.contains("bob")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn try_extend<K: Key, E: From<BuildError>>(
        &mut self,
        keys: impl IntoIterator<Item = Result<K, E>>,
    ) -> Result<(), E> {
        keys.into_iter().try_for_each(|key| Ok(self.push(key?)?))
    }

    /// Adds a key that must never match. It is kept until all keys are known; where they come first, [`Collector::seal`] saves
    /// memory and time.
    ///
    /// ```
    /// let mut filter = tamis::stream().with_excluded().start();
    /// filter.exclude("news.example")?;
    /// filter.push("ads.example")?;
    /// let filter = filter.finish()?;
    /// assert!(filter.contains("ads.example")? && !filter.contains("news.example")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn exclude<K: Key>(&mut self, key: K) -> Result<(), BuildError> {
        same_key_type::<K>(&mut self.options.key_type)?;
        let digest = key.digest(&self.options.common.hasher);
        self.keep_excluded(digest, true)
    }

    /// The same for a digest, without its place.
    pub(super) fn exclude_digest(&mut self, digest: Digest) -> Result<(), BuildError> {
        self.keep_excluded(digest, false)
    }

    fn keep_excluded(&mut self, digest: Digest, tagged: bool) -> Result<(), BuildError> {
        let options = &self.options;
        let negatives = match &mut self.negatives {
            Some(negatives) => negatives,
            none => {
                // From now on there are two sides to share the memory.
                self.keys.share(self.workspace.memory / 2, &|| options.common.stop())?;
                none.insert(Box::new(Negatives::new(&self.workspace, options.side_memory(&self.workspace), tagged)))
            }
        };
        negatives.push(digest, options)?;
        options.common.report_progress(negatives.count, Progress::Excluded { keys: negatives.count, total: None })
    }

    /// Adds an expected query with its weight: see [`FilterBuilder::workload`](super::FilterBuilder::workload).
    ///
    /// ```
    /// let mut keys = tamis::stream().bits_per_key(12.0).with_workload().start();
    /// for key in 0..1000u64 {
    ///     keys.push(key)?;
    ///     keys.push_query(key + 5000, 1e9 / (key + 1) as f64)?;
    /// }
    /// let filter = keys.finish()?;
    /// assert!(filter.contains(7u64)? && !filter.contains(5000u64)?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push), and [`BuildError::Weight`] if the weight is negative, not finite, below 2^-20 or above 2^43.
    pub fn push_query<K: Key>(&mut self, key: K, weight: f64) -> Result<(), BuildError> {
        same_key_type::<K>(&mut self.options.key_type)?;
        if self.expected.is_none() {
            self.keys.share(self.workspace.memory / 2, &|| self.options.common.stop())?;
            self.options.expecting = true;
        }
        let digest = key.digest(&self.options.common.hasher);
        take_expected(&mut self.expected, digest, weight, &self.options, &self.workspace)
    }

    /// Ends the keys: from now on excluded keys that the first layer rejects are not stored.
    ///
    /// ```
    /// let mut keys = tamis::stream().fpr(0.01).with_excluded().start();
    /// for key in 0..1000u64 {
    ///     keys.push(key)?;
    /// }
    /// let mut sealed = keys.seal()?;
    /// for key in 1000..1_000_000u64 {
    ///     sealed.exclude(key)?;
    /// }
    /// let filter = sealed.finish()?;
    /// assert!(filter.contains(7u64)? && !filter.contains(77_777u64)?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Build`] if an option is out of range or without effect, the goal cannot be reached, or the build is cancelled;
    /// [`Error::Io`] if temporary files fail.
    pub fn seal(self) -> Result<Sealed<'a>, Error> {
        let Collector { mut options, workspace, keys, mut negatives, expected, count, .. } = self;
        options.check()?;
        options.common.report(Progress::Read { keys: count, total: Some(count) });
        let before = options.common.clone();
        let stop = || before.stop();
        let shards = spread(Shards::new(keys.finish(&stop)?, None, OnConflict::Error, &stop)?, &mut options)?;
        if let Some(mut listed) = negatives.take() {
            if options.common.hasher != before.hasher {
                listed.intake = listed.intake.mapped(|digest| options.common.hasher.mix(digest), &stop)?;
            }
            listed.recount(&shards, &options)?;
            negatives = Some(listed);
        }
        Ok(Sealed { expected, ..Sealed::new(shards, negatives, workspace, options) })
    }

    /// Builds the filter in memory.
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::finish`](super::FilterBuilder::finish).
    pub fn finish(self) -> Result<Filter, Error> {
        self.seal()?.finish()
    }

    /// Builds the filter in memory and reports what was read.
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::finish`](super::FilterBuilder::finish).
    pub fn finish_with_report(self) -> Result<(Filter, Report), Error> {
        self.seal()?.finish_with_report()
    }

    /// Builds the filter into a file: see [`FilterBuilder::finish_to`](super::FilterBuilder::finish_to).
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::finish_to`](super::FilterBuilder::finish_to).
    pub fn finish_to(self, path: impl AsRef<Path>) -> Result<Report, Error> {
        self.seal()?.finish_to(path)
    }

    /// Builds the filter and writes it to `out`: see [`FilterBuilder::finish_into`](super::FilterBuilder::finish_into).
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::finish_into`](super::FilterBuilder::finish_into).
    pub fn finish_into(self, out: impl Write) -> Result<Report, Error> {
        self.seal()?.finish_into(out)
    }
}

/// Keys that crowd in one shard get digests that are mixed: by a number that follows from all of them, so that no one can have
/// chosen them for it.
fn spread(shards: Shards, options: &mut Options<'_>) -> Result<Shards, BuildError> {
    if options.common.hasher.is_secret() || !shards.is_crowded(&|| options.common.stop())? {
        return Ok(shards);
    }
    let hasher = options.common.hasher.mixed(shards.set_hash(&|| options.common.stop())?);
    let shards = shards.mapped(|digest| hasher.mix(digest), &|| options.common.stop())?;
    options.common.hasher = hasher;
    Ok(shards)
}

/// Builder of a filter whose keys are complete; takes excluded keys and expected queries.
pub struct Sealed<'a> {
    options: Options<'a>,
    /// How many excluded keys will come, if that is known.
    pub(super) total: Option<u64>,
    workspace: Arc<Workspace>,
    /// The keys alone.
    shards: Shards,
    negatives: Option<Box<Negatives>>,
    expected: Option<Box<Counter>>,
    sieve: Sieve,
    /// Negatives that were not yet looked at: a sieve is queried for many at a time.
    batch: Vec<Digest>,
}

impl fmt::Debug for Sealed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed with {} keys: {:?}", self.shards.stats.keys, self.options)
    }
}

impl<'a> Sealed<'a> {
    fn new(shards: Shards, negatives: Option<Box<Negatives>>, workspace: Arc<Workspace>, options: Options<'a>) -> Self {
        Sealed {
            options,
            total: None,
            workspace,
            shards,
            negatives,
            expected: None,
            sieve: Sieve::new(),
            batch: vec![],
        }
    }

    /// Keys that are hashed already.
    pub(super) fn of_digests(keys: Arc<Vec<Digest>>, mut options: Options<'a>) -> Result<Self, Error> {
        let (workspace, before) = (options.common.workspace(), options.common.clone());
        let stop = || before.stop();
        let sorted = Sorted::shared(keys, &workspace, &stop)?;
        let shards = spread(Shards::new(Keys::Plain(sorted), None, OnConflict::Error, &stop)?, &mut options)?;
        Ok(Sealed::new(shards, None, workspace, options))
    }

    /// Excluded keys that are hashed already. `keys` shows where conflicts are, if the keys were hashed too.
    pub(super) fn exclude_digests(&mut self, excluded: &[Digest], keys: Option<&[Digest]>) -> Result<(), Error> {
        let hasher = self.options.common.hasher.clone();
        for digests in excluded.chunks(ROUND) {
            self.batch.extend(digests.iter().map(|&digest| hasher.mix(digest)));
            self.sieve_batch()?;
        }
        let Some(keys) = keys.filter(|_| self.expected.is_none()) else { return Ok(()) };
        match self.finish_excluded() {
            // The digests are at hand: where they stand is easily found.
            Err(Error::Build(BuildError::Conflict { count, .. })) => {
                Err(BuildError::Conflict { count, first: conflicts(keys, excluded) }.into())
            }
            other => other,
        }
    }

    /// The keys of one group of labels, which has this many distinct negatives; these may use `memory` bytes.
    pub(super) fn of_group(
        keys: Sorted<Digest>,
        negatives: u64,
        memory: u64,
        workspace: &Arc<Workspace>,
        options: Options<'a>,
    ) -> Result<Self, Error> {
        let shards = Shards::new(Keys::Plain(keys), None, OnConflict::Error, &|| options.common.stop())?;
        let tagged = matches!(options.goal, Goal::ExcludedFpr(_));
        let listed = Negatives { counted: Some(negatives), ..Negatives::new(workspace, memory, tagged) };
        Ok(Sealed::new(shards, Some(Box::new(listed)), workspace.clone(), options))
    }

    pub(super) fn is_crowded(&self) -> Result<bool, BuildError> {
        self.shards.is_crowded(&|| self.options.common.stop())
    }

    /// No more negatives: all that a build needs.
    pub(super) fn into_parts(mut self) -> Result<(Shards, Sieve), Error> {
        self.finish_excluded()?;
        Ok((self.shards, self.sieve))
    }

    /// Adds a key that must never match.
    ///
    /// # Errors
    ///
    /// As [`Collector::push`].
    pub fn exclude<K: Key>(&mut self, key: K) -> Result<(), Error> {
        same_key_type::<K>(&mut self.options.key_type)?;
        self.exclude_digest(key.digest(&self.options.common.hasher))
    }

    /// Adds an expected query with its weight: see [`FilterBuilder::workload`](super::FilterBuilder::workload). After excluded keys it must be
    /// announced with [`with_workload`](super::Options::with_workload).
    ///
    /// # Errors
    ///
    /// As [`Collector::push_query`], and if excluded keys came before and no workload was announced.
    pub fn push_query<K: Key>(&mut self, key: K, weight: f64) -> Result<(), Error> {
        same_key_type::<K>(&mut self.options.key_type)?;
        if self.sieve.is_active() {
            return Err(BuildError::WorkloadLate.into());
        }
        self.options.expecting = true;
        // As those that came before the keys were complete.
        let digest = key.digest(&self.options.common.hasher.unmixed());
        Ok(take_expected(&mut self.expected, digest, weight, &self.options, &self.workspace)?)
    }

    /// The same for a digest.
    pub(super) fn exclude_digest(&mut self, digest: Digest) -> Result<(), Error> {
        self.batch.push(digest);
        if self.batch.len() < ROUND { Ok(()) } else { self.sieve_batch() }
    }

    /// Lets go what the sieve rejects and keeps the rest.
    fn sieve_batch(&mut self) -> Result<(), Error> {
        let Sealed { options, total, workspace, shards, negatives, sieve, batch, .. } = self;
        if batch.is_empty() {
            return Ok(());
        }
        let negatives = match negatives {
            Some(negatives) => negatives,
            none => none.insert(Box::new(Negatives::beside(shards, workspace, options)?)),
        };
        let count = negatives.count;
        if sieve.refresh(shards, || negatives.distinct(shards, options), count, options)? {
            // What an earlier, coarser sieve let through.
            negatives.intake.retain(|digests, keep| sieve.ask(digests, keep));
        }
        // More than a round if an error came between: what it left is still there, and nothing is lost.
        for batch in batch.chunks(ROUND) {
            let mut passing = [true; ROUND];
            sieve.ask(batch, &mut passing[..batch.len()]);
            if negatives.counted.is_none() {
                negatives.sketch.add(batch, || shards.set_hash(&|| options.common.stop()))?;
            }
            if let Some(suspects) = &mut negatives.suspects {
                suspects.look(batch, negatives.count, &|| options.common.stop())?;
            }
            for (&digest, passing) in batch.iter().zip(passing) {
                if passing {
                    negatives.keep(digest, negatives.count, options)?;
                }
                negatives.count += 1;
            }
        }
        batch.clear();
        // One call for every so many, however they fall into batches.
        if negatives.count % PROGRESS_INTERVAL < ROUND as u64 {
            options.common.check_cancel()?;
            options.common.report(Progress::Excluded { keys: negatives.count, total: *total });
        }
        Ok(())
    }

    /// No more negatives: finds the conflicts.
    fn finish_excluded(&mut self) -> Result<(), Error> {
        self.sieve_batch()?;
        let Some(mut listed) = self.negatives.take() else { return Ok(()) };
        let Sealed { options, shards, sieve, .. } = self;
        options.common.report(Progress::Excluded { keys: listed.count, total: Some(listed.count) });
        let stop = || options.common.stop();
        let about = listed.distinct(shards, options)?;
        let suspects = listed.suspects.take().map(|suspects| suspects.finish(&stop)).transpose()?;
        let negatives = listed.intake.finish(&stop)?;
        shards.set_negatives(negatives, suspects, options.on_conflict, &stop)?;
        shards.approx_negatives = about;
        if let Some(excluded) = listed.excluded {
            shards.expected = about.saturating_sub(excluded);
            shards.stats.negatives = excluded.min(shards.stats.negatives);
            shards.stats.duplicate_negatives = listed.count.saturating_sub(excluded);
        }
        if sieve.is_active() {
            let excluded = shards.excluded();
            let stats = &mut shards.stats;
            stats.estimated = true;
            stats.negatives = excluded;
            stats.duplicate_negatives = listed.count.saturating_sub(shards.approx_negatives);
            stats.negative_weight = listed.count;
        }
        Ok(())
    }

    /// Counts the expected queries, plans for them, and makes those that the filter covers its negatives.
    fn plan_workload(&mut self) -> Result<Option<WorkloadPlan>, Error> {
        self.sieve_batch()?;
        let Some(counter) = self.expected.take() else { return Ok(None) };
        if self.options.on_conflict == OnConflict::Drop && self.negatives.is_some() {
            return Err(BuildError::WorkloadDrop.into());
        }
        let (hasher, stop) = (&self.options.common.hasher, || self.options.common.stop());
        let mut counts = counter.finish(&stop)?;
        if hasher.mixes() {
            counts = counts.mapped(|digest| hasher.mix(digest), &stop)?;
        }
        let Some(workload) = Workload::new(counts, &self.shards, &self.options)? else {
            // Only keys are expected: the goal for unlisted keys holds for all others.
            self.options.goal = goal_with_max_fpr(self.options.goal, self.options.cap)?;
            return Ok(None);
        };
        let Sealed { options, workspace, shards, negatives, .. } = self;
        let excluded = match negatives {
            Some(negatives) => negatives.distinct(shards, options)?,
            None => 0,
        };
        let (comparison, design) = workload.plan(shards.stats.keys, excluded, options)?;
        let mut listed = match negatives.take() {
            Some(listed) => listed,
            None => Box::new(Negatives::new(workspace, options.side_memory(workspace), true)),
        };
        let stop = || options.common.stop();
        listed.intake = listed.intake.with_weights(&stop)?;
        let negatives = negatives.insert(listed);
        workload.heaviest(design.known, &stop, |record| negatives.intake.push(record, &stop))?;
        negatives.counted = Some(excluded + design.known);
        negatives.excluded = Some(excluded);
        Ok(Some(WorkloadPlan { workload, comparison, design }))
    }

    /// Returns all designs, and which of them [`finish`](Sealed::finish) would build: see [`FilterBuilder::plan`](super::FilterBuilder::plan).
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::plan`](super::FilterBuilder::plan).
    pub fn plan(mut self) -> Result<Comparison, Error> {
        if let Some(planned) = self.plan_workload()? {
            return Ok(planned.comparison);
        }
        self.finish_excluded()?;
        let Sealed { options, shards, .. } = self;
        options.check_excluded(shards.stats.keys, shards.known())?;
        Ok(compare(&options.request(shards.stats.keys, shards.approx_negatives), None)?.0)
    }

    /// Builds the filter in memory.
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::finish`](super::FilterBuilder::finish).
    pub fn finish(self) -> Result<Filter, Error> {
        Ok(self.finish_with_report()?.0)
    }

    /// Builds the filter in memory and returns a report of it.
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::finish`](super::FilterBuilder::finish).
    pub fn finish_with_report(mut self) -> Result<(Filter, Report), Error> {
        match self.plan_workload()? {
            Some(planned) => self.build_workload(&planned),
            None => self.build(None),
        }
    }

    /// Builds the filter into a file: see [`FilterBuilder::finish_to`](super::FilterBuilder::finish_to).
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::finish_to`](super::FilterBuilder::finish_to).
    pub fn finish_to(mut self, path: impl AsRef<Path>) -> Result<Report, Error> {
        let planned = self.plan_workload()?;
        to_file(path.as_ref(), self.options.common.writes_secret(), |out| self.write_planned(planned, out))
    }

    /// Builds the filter and writes it to `out`: see [`FilterBuilder::finish_into`](super::FilterBuilder::finish_into).
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::finish_into`](super::FilterBuilder::finish_into).
    pub fn finish_into(mut self, out: impl Write) -> Result<Report, Error> {
        let planned = self.plan_workload()?;
        to_writer(out, |out| self.write_planned(planned, out))
    }

    /// Where there is a workload the filter is complete, and does what it should, before any of it is written.
    fn write_planned(&mut self, planned: Option<WorkloadPlan>, out: &mut dyn Output) -> Result<Report, Error> {
        let Some(planned) = planned else { return self.write(None, out) };
        let (filter, report) = self.build_workload(&planned)?;
        out.write_all(filter.as_bytes())?;
        Ok(report)
    }

    fn build(&mut self, plan: Option<Plan>) -> Result<(Filter, Report), Error> {
        let secret = self.options.common.needed_secret();
        let (bytes, report) = to_memory(|out| self.write(plan, out))?;
        Ok((Filter::opened(bytes, secret)?, report))
    }

    /// Builds what was planned for a workload, and queries it for all of that: with other salts where its goal is missed.
    fn build_workload(&mut self, planned: &WorkloadPlan) -> Result<(Filter, Report), Error> {
        let goal = if let Goal::Fpr(goal) = self.options.goal { goal } else { 1.0 };
        let mut plan = planned.design.plan.clone();
        let (mut least, mut set) = (f64::INFINITY, 0);
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                if attempt == 1 {
                    set = self.shards.set_hash(&|| self.options.common.stop())?;
                }
                plan.salts = number(set, attempt) & MAX_SALTS;
            }
            let (filter, mut report) = self.build(Some(plan.clone()))?;
            let outcome = planned.outcome(&filter, &|| self.options.common.stop())?;
            least = least.min(outcome.measured.workload_fpr);
            if least <= GOAL_TOLERANCE * goal {
                report.workload = Some(outcome);
                return Ok((filter, report));
            }
        }
        Err(BuildError::Workload { rate: least, goal }.into())
    }

    pub(super) fn write(&mut self, plan: Option<Plan>, out: &mut dyn Output) -> Result<Report, Error> {
        self.finish_excluded()?;
        write(&mut self.shards, &mut self.sieve, plan, &self.options, out)
    }
}

fn take_expected(
    counter: &mut Option<Box<Counter>>,
    digest: Digest,
    weight: f64,
    options: &Options<'_>,
    workspace: &Arc<Workspace>,
) -> Result<(), BuildError> {
    let units = units(weight)?;
    let memory = options.common.limits.memory / 4;
    let counter = counter.get_or_insert_with(|| Box::new(Counter::new(workspace, memory)));
    counter.push(digest, units, &|| options.common.stop())
}

/// The first keys that are also excluded, as (position among the keys, position among the excluded).
fn conflicts(keys: &[Digest], excluded: &[Digest]) -> Vec<(u64, u64)> {
    let sorted = |digests: &[Digest]| {
        let mut sorted: Vec<(Digest, u64)> = digests.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        sorted.dedup_by_key(|(digest, _)| *digest);
        sorted
    };
    let excluded = sorted(excluded);
    let find = |&(key, place): &(Digest, u64)| {
        let at = excluded.binary_search_by_key(&key, |&(digest, _)| digest).ok()?;
        Some((place, excluded[at].1))
    };
    let mut first: Vec<(u64, u64)> = sorted(keys).iter().filter_map(find).collect();
    first.sort_unstable();
    first.truncate(8);
    first
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A plan always promises a mean that keeps the goal. What no salt keeps is an error that has the best rate, and no endless loop.
    #[test]
    fn a_goal_that_no_salts_keep_is_an_error_that_has_the_best() {
        let mut keys = Options::default().kind(crate::Kind::Bloom).workload_fpr(0.2).with_workload().start();
        (0..100u64).for_each(|key| keys.push(key).unwrap());
        (100..1100u64).for_each(|key| keys.push_query(key, 2.0).unwrap());
        let mut sealed = keys.seal().unwrap();
        let planned = sealed.plan_workload().unwrap().unwrap();
        let (_, report) = sealed.build_workload(&planned).unwrap();
        let first = report.workload.unwrap().measured.workload_fpr;
        sealed.options.goal = Goal::Fpr(0.001);
        let Err(Error::Build(BuildError::Workload { rate, goal })) = sealed.build_workload(&planned) else {
            unreachable!("a mean of 20 % in place of 0.1 %")
        };
        assert!(goal == 0.001 && (0.01..=first).contains(&rate), "{rate}");
    }
}
