//! keys + a goal -> bytes: the builder, and the parallel construction behind it.
//!
//! ```text
//!   keys ──push──▶ Intake ──▶ Shards ──▶ plan ──▶ workers, one shard each ──in order──▶ Writer ──▶ memory or a file
//! ```
//!
//! Excluded keys come in any order. Best after the keys: then those that stage one rejects, nearly all of them, are dropped at
//! once (`build/sieve.rs`). A file is written under a temporary name and renamed when it is complete.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::arch::arena::{Arena, Output};
use crate::debug::brief_debug;
use crate::error::{BuildError, Error};
use crate::filter::query::Filter;
use crate::format::{Form, Header, MAX_SHARD_BITS, Writer};
use crate::gather::{Shards, Stats};
use crate::hash::{Digest, Hasher, Key, KeyType};
use crate::plan::{Comparison, Goal, Plan, Step};

mod collect;
mod diff;
mod expect;
mod goals;
mod groups;
mod partition;
mod policy;
mod shard;
mod sieve;
pub mod slices;

pub(crate) use crate::file::{to_file, to_memory, to_writer};
pub(crate) use crate::filter::options::Common;
pub use crate::filter::options::Progress;
pub use collect::{Collector, Sealed};
pub use diff::Diff;
pub use expect::{Rates, WorkloadReport};
pub use partition::Partitioned;
#[cfg(feature = "internals")]
pub use policy::with_shard_keys;
pub use policy::{Options, Papers};
use sieve::{ROUNDS, Sieve, fits, more_like, planned};
#[cfg(feature = "maps")]
pub(crate) use {collect::same_key_type, shard::build_steps};

/// Returns a builder of a filter of these keys.
///
/// ```
/// let denied = ["ads.example", "spam.example"];
/// let filter = tamis::build(denied).fpr(0.001).finish()?;
/// assert!(filter.contains("ads.example")?);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn build<'a, K: Key>(keys: impl IntoIterator<Item = K> + 'a) -> FilterBuilder<'a> {
    Options::default().build(keys)
}

/// Returns a builder of a filter of digests that `hasher` made of keys of this type, for an engine that hashes its keys once.
///
/// A `Vec` is used where it is. Digests in ascending order are not sorted again.
///
/// Where the digests are of another hash, `hasher` must be [`Hasher::foreign`], and the key type is then [`KeyType::Digest`].
///
/// ```
/// use tamis::{KeyType, Hasher};
/// let hasher = Hasher::seeded(7);
/// let filter = tamis::build_digests(hasher.digests(&["ann", "bob"]), hasher, KeyType::Bytes).finish()?;
/// assert!(filter.contains("bob")?);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn build_digests<'a>(digests: impl Into<Arc<Vec<Digest>>>, hasher: Hasher, key_type: KeyType) -> FilterBuilder<'a> {
    Options::default().hasher(hasher).build_digests(digests, key_type)
}

/// Returns the options of a filter whose keys are pushed one by one: see [`Options::start`].
///
/// ```
/// let mut keys = tamis::stream().fpr(0.001).start();
/// for line in "one\ntwo\nthree".lines() {
///     keys.push(line)?;
/// }
/// let filter = keys.finish()?;
/// assert_eq!(filter.len(), 3);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn stream<'a>() -> Options<'a> {
    Options::default()
}

/// Hands all keys of one call to a collector.
type Feed<'a, T> = Box<dyn FnOnce(&mut T) -> Result<(), Error> + 'a>;

/// What a filter is built from.
#[derive(Default)]
struct Source<'a> {
    keys: Option<Feed<'a, Collector<'a>>>,
    /// Keys that are hashed already.
    digests: Option<Arc<Vec<Digest>>>,
    excluded_digests: Option<Arc<Vec<Digest>>>,
    excluded: Vec<Feed<'a, Sealed<'a>>>,
    workload: Vec<Feed<'a, Sealed<'a>>>,
}

/// Builder of a [`Filter`].
///
/// ```
/// let filter = tamis::build(["ads.example", "spam.example"]).exclude(["news.example"]).fpr(0.01).finish()?;
/// assert!(filter.contains("ads.example")? && !filter.contains("news.example")?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[must_use = "nothing is built before `finish`"]
pub struct FilterBuilder<'a> {
    source: Source<'a>,
    options: Options<'a>,
}

brief_debug!(FilterBuilder<'a>, it => options: it.options);

/// How many items an iterator has, if it knows.
pub(crate) fn total(keys: &impl Iterator) -> Option<u64> {
    let (least, most) = keys.size_hint();
    (most == Some(least)).then_some(least as u64)
}

impl<'a> FilterBuilder<'a> {
    /// Adds keys that must never match. They are of the key type of the keys; it may be called several times.
    ///
    /// Nearly all of them are dropped at once, and the build stores the few that are hard to tell from the keys. This holds for
    /// [`Kind::Steered`](crate::Kind::Steered), which is the default, and for [`Kind::Chained`](crate::Kind::Chained), unless the goal is
    /// [`bits_per_key`](Self::bits_per_key) or [`excluded_fpr`](Self::excluded_fpr), or [`OnConflict::Drop`](crate::OnConflict::Drop) is set. Otherwise they
    /// are gathered like keys.
    ///
    /// ```
    /// let allowed = ["shop.example", "news.example"];
    /// let filter = tamis::build(["ads.example", "spam.example"]).exclude(allowed).fpr(0.01).finish()?;
    /// assert!(filter.contains("ads.example")?);
    /// assert!(!filter.contains("news.example")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn exclude<K: Key>(mut self, keys: impl IntoIterator<Item = K> + 'a) -> Self {
        self.options.places = true;
        self.source.excluded.push(Box::new(move |sealed| {
            let keys = keys.into_iter();
            sealed.total = total(&keys);
            keys.into_iter().try_for_each(|key| sealed.exclude(key))
        }));
        self
    }

    /// Adds digests that must never match, made by the hasher of the keys: see [`exclude`](Self::exclude).
    pub fn exclude_digests(mut self, digests: impl Into<Arc<Vec<Digest>>>) -> Self {
        let more = digests.into();
        match &mut self.source.excluded_digests {
            Some(now) => Arc::make_mut(now).extend(&*more),
            none => *none = Some(more),
        }
        self
    }

    /// Adds expected queries with their weights, or a sample of them, in any order. They are of the key type of the keys; it may be
    /// called several times.
    ///
    /// Weights of equal queries add up, and queries for members are dropped. The planner chooses the structure, and which queries
    /// it covers, by what happens on the workload: [`workload_fpr`](Self::workload_fpr) is the share of its negative queries that
    /// may match, and [`bits_per_key`](Self::bits_per_key) finds the smallest such share. [`fpr`](Self::fpr) is the ceiling for
    /// unlisted keys. [`Report::workload`] has the outcome.
    ///
    /// A weight is a count: a query that occurs once stands for others that have not occurred yet
    /// ([`unlisted_share`](Self::unlisted_share)).
    ///
    /// ```
    /// let popular = (1000..2000).map(|site| (site, 1e6 / (site - 999) as f64));
    /// let filter = tamis::build(0..1000).workload(popular).bits_per_key(10.0).finish()?;
    /// assert!((0..1000).all(|key| filter.contains(key) == Ok(true)));
    /// assert_eq!(filter.contains(1000), Ok(false)); // the most popular of them all
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn workload<K: Key>(mut self, queries: impl IntoIterator<Item = (K, f64)> + 'a) -> Self {
        self.options.expecting = true;
        self.source.workload.push(Box::new(move |sealed| {
            queries.into_iter().try_for_each(|(key, weight)| sealed.push_query(key, weight))
        }));
        self
    }

    /// Builds the filter in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] if the options contradict each other, the goal cannot be reached, a member is also excluded, or the build is
    /// cancelled; [`Error::Io`] if temporary files cannot be written.
    pub fn finish(self) -> Result<Filter, Error> {
        self.collect()?.finish()
    }

    /// Builds the filter in memory and reports what was read.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish).
    pub fn finish_with_report(self) -> Result<(Filter, Report), Error> {
        self.collect()?.finish_with_report()
    }

    /// Builds the filter into a file, shard by shard. It is held in memory as a whole only where it is checked before it is written: with
    /// a [`workload`](Self::workload), and with excluded keys that were all kept, if the first layer is smaller than a quarter of the memory
    /// limit. An existing file is replaced when, and only when, the new one is complete.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish), and [`Error::Io`] if the file cannot be written.
    ///
    /// ```
    /// let path = std::env::temp_dir().join("tamis-finish-to.tamis");
    /// let report = tamis::build(0..5000).finish_to(&path)?;
    /// assert_eq!(report.stats.keys, 5000);
    /// assert!(tamis::Filter::read(&path)?.contains(77)?);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn finish_to(self, path: impl AsRef<Path>) -> Result<Report, Error> {
        self.collect()?.finish_to(path)
    }

    /// Builds the filter and writes it to `out`, front to back. After an error `out` holds a part of it.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish), and [`Error::Io`] if `out` fails.
    ///
    /// ```
    /// let mut bytes = vec![];
    /// tamis::build(["ann", "bob"]).finish_into(&mut bytes)?;
    /// assert!(tamis::Filter::open(bytes)?.contains("ann")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn finish_into(self, out: impl Write) -> Result<Report, Error> {
        self.collect()?.finish_into(out)
    }

    /// Returns all designs side by side, for these keys and this goal, and which of them would be built. Builds nothing.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish), except for goals: a design that cannot reach the goal says so in its row.
    ///
    /// ```
    /// let plan = tamis::build(0..1000).exclude(1000..9000).fpr(0.01).plan()?;
    /// let chosen = plan.chosen().unwrap();
    /// assert!(chosen.prediction.as_ref().unwrap().fpr <= 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn plan(self) -> Result<Comparison, Error> {
        self.collect()?.plan()
    }

    fn collect(self) -> Result<Sealed<'a>, Error> {
        let FilterBuilder { source, options } = self;
        options.check()?;
        let options = options.resolved();
        let excluded_digests = source.excluded_digests;
        let mut keys = None;
        let mut sealed = match source.digests {
            Some(digests) => {
                // They are needed once more to show conflicts.
                keys = excluded_digests.is_some().then(|| digests.clone());
                Sealed::of_digests(digests, options)?
            }
            None => {
                let mut collector = Collector::new(options);
                source.keys.map_or(Ok(()), |feed| feed(&mut collector))?;
                collector.seal()?
            }
        };
        source.excluded.into_iter().try_for_each(|feed| feed(&mut sealed))?;
        source.workload.into_iter().try_for_each(|feed| feed(&mut sealed))?;
        if let Some(excluded) = excluded_digests {
            sealed.exclude_digests(&excluded, keys.as_ref().map(|keys| &keys[..]))?;
        }
        Ok(sealed)
    }
}

/// Report of a build: what it read and wrote.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Numbers of keys that were read.
    pub stats: Stats,
    /// Length of the file.
    pub bytes: u64,
    /// Predicted and measured rates of the workload, if there is one.
    pub workload: Option<WorkloadReport>,
}

/// Plans, builds and writes a filter to `out`, which gets the number of bytes first. Where queries are expected the plan is made
/// already.
fn write(
    shards: &mut Shards,
    sieve: &mut Sieve,
    mut ready: Option<Plan>,
    options: &Options<'_>,
    out: &mut dyn Output,
) -> Result<Report, Error> {
    options.check_excluded(shards.stats.keys, shards.known())?;
    let (mut like, mut rounds) = (shards.approx_negatives, 0..ROUNDS);
    loop {
        // As the sieve counted them: a plan for fewer could have a narrower first stage, which lets more through.
        let (request, plan, watched) = match ready.take() {
            Some(plan) => (options.request(shards.stats.keys, shards.approx_negatives), plan, None),
            None if sieve.is_active() => sieve.plan(shards, options).map(|(request, plan)| (request, plan, None))?,
            None => planned(shards.stats.keys, like, options)?,
        };
        // Where some of them may match, nothing is promised about any.
        let promised = !matches!(request.goal, Goal::ExcludedFpr(_)) && plan.promises(request.keys);
        let excluded = if promised { shards.excluded() } else { 0 };
        let bytes = match watched.filter(|first| fits(first, &request, options) && rounds.next().is_some()) {
            // All negatives are there, and stay: if they were chosen to pass the first step, the filter is built again.
            Some(first) => {
                let (mut file, left) = (Arena::new(plan.bytes(&request)), AtomicU64::new(0));
                let bytes = write_plan(shards, &plan, None, Some(&left), excluded, options, &mut file)?;
                if let Some(more) = more_like(left.into_inner() as usize, like, &first) {
                    like = more;
                    continue;
                }
                out.expect(bytes);
                out.write_all(&file.finish())?;
                bytes
            }
            None => {
                out.expect(plan.bytes(&request));
                shards.hand_over();
                write_plan(shards, &plan, sieve.first(&plan), None, excluded, options, out)?
            }
        };
        // The last shards do not check the flag, and a cancelled build leaves no file.
        options.common.check_cancel()?;
        return Ok(Report { stats: shards.stats, bytes, workload: None });
    }
}

/// Builds and writes what was planned; `first` has the leaf of the first step, if that is there already, and `left` counts the negatives
/// that pass it.
fn write_plan(
    shards: &Shards,
    plan: &Plan,
    first: Option<&Filter>,
    left: Option<&AtomicU64>,
    negatives: u64,
    options: &Options<'_>,
    out: &mut dyn Output,
) -> Result<u64, Error> {
    let patch = options.patch.as_deref();
    if shards.bits > MAX_SHARD_BITS {
        return Err(BuildError::TooManyKeys { keys: shards.stats.keys, place: "file" }.into());
    }
    // A list of no steps has no parts to shard.
    let shard_bits = if plan.steps.is_empty() { 0 } else { shards.bits };
    let (hasher, key_type, keys) = (options.common.hasher.clone(), options.key_type(), shards.stats.keys);
    let may_change = plan.steps.iter().any(Step::may_change);
    let form = if patch.is_some() { Form::Patch } else { Form::Filter };
    let header = options.common.header(form, hasher, key_type)?;
    let header = Header { shard_bits, salts: plan.salts, keys, negatives, may_change, ..header };
    let kinds = plan.steps.iter().map(Step::kind).collect();
    let mut writer = Writer::new(out, &header, kinds)?.with_metadata(&options.common.metadata);
    if !plan.steps.is_empty() {
        shard::build_shards(shards, plan, first, left, &options.common, &mut writer)?;
    }
    let Some(patch) = patch else { return Ok(writer.finish()?) };
    writer.payload(&patch.labels)?;
    let contents = [patch.contents(&header, shards.stats.conflicts), writer.list()].concat();
    Ok(writer.close(contents)?)
}
