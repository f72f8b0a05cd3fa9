//! keys + a goal -> bytes: the front door, and the parallel construction behind it.
//!
//! ```text
//!   keys ──push──▶ Intake ──▶ Shards ──▶ plan ──▶ workers, one shard each ──in order──▶ Writer ──▶ memory or a file
//! ```
//!
//! Keys to exclude come in at the same door, in any order. Best after the keys: then those that stage one refuses, nearly
//! all of them, are let go at once (`build/sieve.rs`). A file is written under a temporary name and renamed when it is complete.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::arch::arena::Output;
use crate::debug::brief_debug;
use crate::error::{BuildError, Error};
use crate::filter::query::Filter;
use crate::format::{Form, Header, MAX_SHARD_BITS, Writer};
use crate::gather::{OnConflict, Shards, Stats};
use crate::hash::{Digest, Hasher, Key, KeyType};
use crate::plan::{Columns, Comparison, Goal, Kind, Layout, Plan, Request, Step};

mod collect;
mod expect;
mod goals;
mod groups;
mod partition;
mod shard;
mod sieve;

pub(crate) use crate::file::{to_file, to_memory};
pub use crate::filter::options::{Common, Progress};
use crate::filter::options::{common, set};
pub use collect::{Collector, Sealed};
pub use expect::{Outcome, Prediction};
use goals::Goals;
pub use partition::Partitioned;
use sieve::Sieve;
#[cfg(feature = "maps")]
pub(crate) use {collect::same_key_type, shard::build_steps};

/// Starts a filter on these keys: anything that iterates over text, bytes or `u64`.
///
/// ```
/// let denied = ["ads.example", "spam.example"];
/// let filter = tamis::build(denied).fpr(0.001).finish()?;
/// assert!(filter.contains("ads.example")?);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn build<I>(keys: I) -> FilterBuilder<I>
where
    I: IntoIterator<Item: Key>,
{
    FilterBuilder { keys, negatives: std::iter::empty(), expected: std::iter::empty(), options: Options::default() }
}

/// Starts a filter on keys that will be pushed one by one, from a source that may fail.
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
pub fn stream() -> FilterBuilder<()> {
    FilterBuilder { keys: (), negatives: std::iter::empty(), expected: std::iter::empty(), options: Options::default() }
}

/// Starts a filter on digests that `hasher` made of keys of this type, for an engine that hashes its keys once. Digests in
/// ascending order are neither copied nor sorted.
///
/// Where the digests are of another hash, `hasher` must be [`Hasher::foreign`], and the key type is then [`KeyType::Digest`].
///
/// ```
/// use tamis::{KeyType, Hasher};
/// let hasher = Hasher::seeded(7);
/// let digests: Vec<_> = ["ann", "bob"].iter().map(|name| hasher.bytes(name.as_bytes())).collect();
/// let filter = tamis::build_digests(digests, hasher, KeyType::Bytes).finish()?;
/// assert!(filter.contains("bob")?);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn build_digests(digests: impl Into<Arc<[Digest]>>, hasher: Hasher, key_type: KeyType) -> FilterBuilder<Digests> {
    let keys = Digests { digests: digests.into(), excluded: None };
    let common = Common { hasher, ..Common::default() };
    let key_type = if hasher.is_foreign() { KeyType::Digest } else { key_type };
    let options = Options { key_type: Some(key_type), common, ..Options::default() };
    FilterBuilder { keys, negatives: std::iter::empty(), expected: std::iter::empty(), options }
}

/// Keys that are hashed already: see [`build_digests`].
pub struct Digests {
    digests: Arc<[Digest]>,
    excluded: Option<Arc<[Digest]>>,
}

brief_debug!(Digests, it => keys: it.digests.len(), excluded: it.excluded.as_ref().map_or(0, |excluded| excluded.len()));

/// A filter to be: what is wanted of it, and how it may be made. `N` are the keys to exclude and `Q` the queries to expect,
/// none at first.
#[must_use = "nothing is built before `finish`"]
pub struct FilterBuilder<I, N = std::iter::Empty<u64>, Q = std::iter::Empty<(u64, f64)>> {
    keys: I,
    negatives: N,
    expected: Q,
    options: Options,
}

brief_debug!(FilterBuilder<I, N, Q>, it => options: it.options);

#[derive(Clone)]
pub(crate) struct Options {
    goals: Goals,
    /// What follows from the goals when keys come in.
    goal: Goal,
    /// The largest rate for unlisted keys where queries are expected, if the caller set one.
    cap: Option<f64>,
    kind: Kind,
    layout: Layout,
    delta: Option<f64>,
    first_bits: Option<f64>,
    columns: Option<Vec<f64>>,
    on_conflict: OnConflict,
    /// Room for more keys, as a share of them.
    spare: f64,
    /// How many keys there shall be room for in all.
    capacity: Option<u64>,
    /// Whether queries are expected: then the plan is not known before they are counted.
    expecting: bool,
    /// Whether keys keep their places in the input, to be shown in conflicts.
    places: bool,
    /// That of the keys, once there is one.
    key_type: Option<KeyType>,
    common: Common,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { goals, kind, common, .. } = self;
        write!(f, "{:?}, {kind:?}, {common:?}", goals.resolve().0)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            goals: Goals::default(),
            goal: Goals::default().resolve().0,
            cap: None,
            kind: Kind::Auto,
            layout: Layout::Auto,
            delta: None,
            first_bits: None,
            columns: None,
            on_conflict: OnConflict::Error,
            spare: 0.0,
            capacity: None,
            expecting: false,
            places: false,
            key_type: None,
            common: Common::default(),
        }
    }
}

impl Options {
    fn key_type(&self) -> KeyType {
        self.key_type.unwrap_or(KeyType::Bytes)
    }

    /// Refuses a goal that speaks of excluded keys alone where there are none: everything would match.
    fn check_excluded(&self, keys: u64, excluded: u64) -> Result<(), BuildError> {
        match self.goal {
            Goal::Exact | Goal::ExcludedFpr(_) if keys > 0 && excluded == 0 => Err(BuildError::NothingExcluded),
            Goal::Exact | Goal::ExcludedFpr(_) | Goal::Fpr(_) | Goal::BitsPerKey(_) => Ok(()),
        }
    }

    /// The options as keys come in.
    fn resolved(mut self) -> Options {
        (self.goal, self.cap) = self.goals.resolve();
        self
    }

    /// Refuses options that contradict each other, have no effect, or are out of range.
    fn check(&self) -> Result<(), BuildError> {
        self.goals.check(self.expecting)?;
        if self.capacity.is_some() && self.spare != 0.0 {
            return Err(BuildError::TwoGoals { first: "capacity", second: "extra_capacity" });
        }
        let knobs = [
            ("delta", self.delta.is_some(), matches!(self.kind, Kind::Cascade(_)), "Kind::Cascade"),
            (
                "first_bits",
                self.first_bits.is_some(),
                matches!(self.kind, Kind::Chained(_) | Kind::Integrated(..) | Kind::Steered | Kind::Auto),
                "Kind::Chained, Integrated or Steered",
            ),
            (
                "steered_columns",
                self.columns.is_some(),
                matches!(self.kind, Kind::Steered | Kind::Auto),
                "Kind::Steered",
            ),
        ];
        if let Some(&(option, .., needs)) = knobs.iter().find(|(_, given, fits, _)| *given && !fits) {
            return Err(BuildError::NoEffect { option, needs });
        }
        let range = |option, given, least, most| Err(BuildError::Range { option, given, least, most });
        let columns = self.columns.iter().flatten();
        match (self.first_bits, columns.clone().find(|slack| !(0.03125..=4.0).contains(*slack))) {
            (Some(bits), _) if bits != 0.0 && !(1.0..=32.0).contains(&bits) => range("first_bits", bits, 1.0, 32.0),
            (_, Some(&slack)) => range("steered_columns", slack, 0.03125, 4.0),
            _ if columns.count() > Columns::MAX_COLUMNS => {
                Err(BuildError::TooMany { what: "steered columns", most: Columns::MAX_COLUMNS as u64 })
            }
            _ => Ok(()),
        }
    }

    fn request(&self, keys: u64, negatives: u64) -> Request {
        let Options { goal, kind, layout, .. } = *self;
        let spare = match self.capacity {
            Some(capacity) if capacity > keys && keys > 0 => (capacity - keys) as f64 / keys as f64,
            Some(_) => 0.0,
            None => self.spare,
        };
        let (effort, delta) = (self.common.effort, self.delta.unwrap_or(0.5));
        let first = self.first_bits.map(|bits| (bits * 256.0).round() as u16);
        let columns = self.columns.as_deref().map(Columns::new);
        Request { keys, negatives, goal, kind, effort, layout, delta, first, columns, spare }
    }
}

impl<I, N, Q> FilterBuilder<I, N, Q> {
    set! {
        /// Lets at most this share of strangers through. The default is 0.01.
        fpr(p: f64) => options.goals.fpr = Some(p);

        /// Spends at most this many bits per key.
        bits_per_key(bits: f64) => options.goals.bits_per_key = Some(bits);

        /// Only listed keys will be asked for, wanted or excluded: the smallest filter that is right about all of them. What it
        /// says of other keys is a guess; [`Filter::fpr`] tells how good. Without excluded or expected keys it is
        /// [`BuildError::NothingExcluded`]: such a filter would match every key.
        ///
        /// ```
        /// let filter = tamis::build(0..1000u64).exclude(1000..20_000).exact().finish()?;
        /// assert!((0..20_000).all(|key| filter.contains(key) == Ok(key < 1000)));
        /// assert!(filter.as_bytes().len() * 8 < 8 * 1000); // 5.75 bits per key is the bound
        /// # Ok::<(), tamis::Error>(())
        /// ```
        exact() => options.goals.exact = true;

        /// Of the excluded keys at most this share may match; other keys than the listed ones do not matter. Between
        /// [`exact`](FilterBuilder::exact) and a filter that knows nothing of them: smaller than both. An excluded key that is listed
        /// several times counts as often, and those with large counts match last.
        ///
        /// ```
        /// let filter = tamis::build(0..10_000u64).exclude(10_000..310_000).excluded_fpr(0.01).finish()?;
        /// assert!((0..10_000).all(|key| filter.contains(key) == Ok(true)));
        /// let matching = (10_000..310_000u64).filter(|&key| filter.contains(key) == Ok(true)).count();
        /// assert!(matching <= 3000);
        /// assert!(filter.as_bytes().len() * 8 < 64_000); // a filter of 1 % takes 68,000
        /// # Ok::<(), tamis::Error>(())
        /// ```
        excluded_fpr(p: f64) => options.goals.excluded_fpr = Some(p);

        /// The steered columns of [`Kind::Steered`], chosen by hand: how many rows each has beyond one per key, as a share of the
        /// keys, between 1/32 and 4. At most eight. With [`first_bits`](FilterBuilder::first_bits) plain bits come before them; an exact
        /// bit comes after them unless the goal is [`excluded_fpr`](FilterBuilder::excluded_fpr).
        ///
        /// ```
        /// let filter = tamis::build(0..5000u64).exclude(5000..20_000).kind(tamis::Kind::Steered).steered_columns(&[0.25]).exact().finish()?;
        /// assert_eq!(filter.layers().count(), 2);
        /// assert!((0..20_000).all(|key| filter.contains(key) == Ok(key < 5000)));
        /// # Ok::<(), tamis::Error>(())
        /// ```
        steered_columns(slacks: &[f64]) => options.columns = Some(slacks.to_vec());

        /// Lets at most a share `p` of the negative queries of the [`workload`](FilterBuilder::workload) match; [`fpr`](FilterBuilder::fpr) is
        /// then the ceiling for unlisted keys, and 1 lifts it. The default of both is the other one.
        ///
        /// With [`bits_per_key`](FilterBuilder::bits_per_key) as the goal, the ceiling is by default 1.42 times (half a bit) the rate of a plain
        /// filter of the same kind and budget. A workload may show too few unlisted keys, or none.
        ///
        /// ```
        /// let popular = || (1000..3000u64).map(|site| (site, 2.0));
        /// let build = || tamis::build(0..1000u64).workload(popular()).workload_fpr(0.01);
        /// let usual = build().finish()?;
        /// let strict = build().fpr(0.001).finish()?;
        /// let open = build().fpr(1.0).finish()?;
        /// assert!(usual.fpr() <= 0.01 && strict.fpr() <= 0.001 && open.fpr() > 0.1);
        /// assert!(open.as_bytes().len() < usual.as_bytes().len());
        /// # Ok::<(), tamis::Error>(())
        /// ```
        workload_fpr(p: f64) => options.goals.workload_fpr = Some(p);

        /// With queries to expect: the share of negative queries to come that are for none of them. Unless set, it is estimated from
        /// the sample: as many as there are values in it that were asked for once ([Stacked] section 5.1).
        ///
        /// [Stacked]: https://doi.org/10.14778/3436905.3436919
        unlisted_share(share: f64) => options.goals.unlisted_share = Some(share);

        /// What becomes of a key that is also excluded. By default the build fails and says which.
        on_conflict(policy: OnConflict) => options.on_conflict = policy;
    }

    set! {
        /// Sets the bits per key of the first of two stages, for [`Kind::Chained`], [`Kind::Integrated`] and [`Kind::Steered`]: 0 for
        /// none, else 1 to 32. The goal then has no effect: see [`Filter::fpr`].
        first_bits(bits: f64) => options.first_bits = Some(bits);

        /// How much shorter every list of a [`Kind::Cascade`] is than the one before, between 0 and 1; 0.5 unless set.
        delta(delta: f64) => options.delta = Some(delta);

        /// Room for this share of keys more, for structures that take keys after they were built: [`Kind::Bloom`],
        /// [`Kind::ClassicBloom`], [`Kind::Cuckoo`], [`Kind::Quotient`] and [`Kind::Stacked`] on the last three. The goal is reached when the
        /// room is used up.
        ///
        /// ```
        /// let filter = tamis::build(0..1000u64).kind(tamis::Kind::Cuckoo).extra_capacity(0.5).finish()?;
        /// let mut filter = tamis::Cuckoo::restore(filter.as_bytes().to_vec())?;
        /// (1000..1500u64).try_for_each(|key| filter.insert(key))?;
        /// # Ok::<(), tamis::Error>(())
        /// ```
        extra_capacity(share: f64) => options.spare = share;

        /// Makes room for this many keys in all: see [`extra_capacity`](FilterBuilder::extra_capacity). Fewer than there are change
        /// nothing.
        ///
        /// ```
        /// let filter = tamis::build(0..1000u64).kind(tamis::Kind::Cuckoo).capacity(1500).finish()?;
        /// let mut filter = tamis::Cuckoo::restore(filter.as_bytes().to_vec())?;
        /// (1000..1500u64).try_for_each(|key| filter.insert(key))?;
        /// # Ok::<(), tamis::Error>(())
        /// ```
        capacity(keys: u64) => options.capacity = Some(keys);

        /// Names the structure instead of leaving it to the planner.
        kind(kind: Kind) => options.kind = kind;

        /// How the bits of a filter with excluded keys are laid out: as small as can be, or side by side.
        ///
        /// ```
        /// let filter = tamis::build(0..5000u64).exclude(5000..45_000).exact().layout(tamis::Layout::Local).finish()?;
        /// assert!((0..45_000).all(|key| filter.contains(key) == Ok(key < 5000)));
        /// assert_eq!(filter.layers().count(), 1);
        /// # Ok::<(), tamis::Error>(())
        /// ```
        layout(layout: Layout) => options.layout = layout;
    }

    common!(options.common);
}

impl<I, Q> FilterBuilder<I, std::iter::Empty<u64>, Q> {
    /// Keys that must never match, whatever the goal for strangers: of the same kind as the keys, any number of them. Nearly
    /// all are let go at once, and `build` holds the few that are hard to tell from the keys: for [`Kind::Steered`], which is
    /// the default, and [`Kind::Chained`], unless the goal is a budget of bits or a share of them, or [`OnConflict::Drop`] is
    /// set. Otherwise they are gathered like keys.
    ///
    /// ```
    /// let allowed = ["shop.example", "news.example"];
    /// let filter = tamis::build(["ads.example", "spam.example"]).exclude(allowed).fpr(0.01).finish()?;
    /// assert!(filter.contains("ads.example")?);
    /// assert!(!filter.contains("news.example")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn exclude<N: IntoIterator<Item: Key>>(self, negatives: N) -> FilterBuilder<I, N, Q> {
        let FilterBuilder { keys, expected, options, .. } = self;
        FilterBuilder { keys, negatives, expected, options: Options { places: true, ..options } }
    }
}

impl<I, N> FilterBuilder<I, N> {
    /// The queries to come, each with how often it is asked, or a sample of them: of the same kind as the keys, in any order; the
    /// weights of equal ones add up, and those that are keys are dropped. The planner then chooses the structure, and which of them it
    /// shall know, by what happens on these queries: [`workload_fpr`](FilterBuilder::workload_fpr) is the share of
    /// *expected* negative queries that may match, and [`bits_per_key`](FilterBuilder::bits_per_key) asks for the smallest such share.
    /// [`fpr`](FilterBuilder::fpr) is the ceiling for unlisted keys. [`Report::workload`] says what came of it.
    ///
    /// Weights are counts: a value that was asked for once stands for others that were not seen yet ([`unlisted_share`](FilterBuilder::unlisted_share)).
    ///
    /// ```
    /// let popular = (1000..2000u64).map(|site| (site, 1e6 / (site - 999) as f64));
    /// let filter = tamis::build(0..1000u64).workload(popular).bits_per_key(10.0).finish()?;
    /// assert!((0..1000u64).all(|key| filter.contains(key) == Ok(true)));
    /// assert_eq!(filter.contains(1000u64), Ok(false)); // the most popular of them all
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn workload<K: Key, Q: IntoIterator<Item = (K, f64)>>(self, queries: Q) -> FilterBuilder<I, N, Q> {
        let FilterBuilder { keys, negatives, options, .. } = self;
        FilterBuilder { keys, negatives, expected: queries, options: Options { expecting: true, ..options } }
    }
}

impl FilterBuilder<()> {
    set! {
        /// [`Collector::exclude`] will be called: keys keep their places in the input, so that a conflict can show them.
        with_excluded() => options.places = true;

        /// [`Collector::push_query`] or [`Sealed::push_query`] will be called: keys to exclude are kept until all is known.
        with_workload() => options.expecting = true;
    }

    /// Opens the door for keys.
    pub fn start(self) -> Collector {
        Collector::new(self.options.resolved())
    }

    /// Opens the door for keys that carry labels, each label with keys to exclude of its own: see [`Partitioned`].
    pub fn partitioned(self) -> Partitioned {
        Partitioned::new(self.options.resolved())
    }
}

impl<I, N, K, Q> FilterBuilder<I, N, Q>
where
    I: IntoIterator<Item: Key>,
    N: IntoIterator<Item: Key>,
    K: Key,
    Q: IntoIterator<Item = (K, f64)>,
{
    /// Builds the filter in memory.
    pub fn finish(self) -> Result<Filter, Error> {
        self.collect()?.finish()
    }

    /// Builds the filter into a file, without ever holding it in memory; an existing file is replaced when, and only when,
    /// the new one is complete.
    ///
    /// ```
    /// let path = std::env::temp_dir().join("tamis-finish-to.tamis");
    /// let report = tamis::build(0..5000u64).finish_to(&path)?;
    /// assert_eq!(report.stats.keys, 5000);
    /// assert!(tamis::Filter::read(&path)?.contains(77u64)?);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn finish_to(self, path: impl AsRef<Path>) -> Result<Report, Error> {
        self.collect()?.finish_to(path)
    }

    /// All designs side by side, for these keys and this goal, and which of them would be built. Builds nothing.
    ///
    /// ```
    /// let plan = tamis::build(0..1000u64).exclude(1000..9000u64).fpr(0.01).plan()?;
    /// let chosen = plan.chosen().unwrap();
    /// assert!(chosen.forecast.as_ref().unwrap().fpr <= 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn plan(self) -> Result<Comparison, Error> {
        self.collect()?.plan()
    }

    fn collect(self) -> Result<Sealed, Error> {
        self.options.check()?;
        let mut collector =
            Collector::new(Options { key_type: Some(<I::Item as Key>::KEY_TYPE), ..self.options.resolved() });
        for key in self.keys {
            collector.push(key)?;
        }
        let mut sealed = collector.seal()?;
        for key in self.negatives {
            sealed.exclude(key)?;
        }
        for (key, weight) in self.expected {
            sealed.push_query(key, weight)?;
        }
        Ok(sealed)
    }
}

impl FilterBuilder<Digests> {
    /// Digests that must never match, made with the same hasher as the keys: see [`FilterBuilder::exclude`].
    pub fn exclude_digests(mut self, digests: impl Into<Arc<[Digest]>>) -> Self {
        self.keys.excluded = Some(digests.into());
        self
    }

    /// Builds the filter in memory.
    pub fn finish(self) -> Result<Filter, Error> {
        self.sealed()?.finish()
    }

    /// Builds the filter into a file: see [`FilterBuilder::finish_to`].
    pub fn finish_to(self, path: impl AsRef<Path>) -> Result<Report, Error> {
        self.sealed()?.finish_to(path)
    }

    fn sealed(self) -> Result<Sealed, Error> {
        let FilterBuilder { keys: Digests { digests, excluded }, options, .. } = self;
        options.check()?;
        Sealed::of_digests(digests, excluded, options.resolved())
    }
}

/// What was built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// What was read.
    pub stats: Stats,
    /// The length of the file.
    pub bytes: u64,
    /// What was made of the queries to expect, if there are any.
    pub workload: Option<Outcome>,
}

/// Plans, builds and writes a filter to `out`, which is told how many bytes to expect. Where queries are expected the plan is made
/// already.
fn write(
    shards: &Shards,
    sieve: &mut Sieve,
    planned: Option<Plan>,
    options: &Options,
    out: &mut dyn Output,
) -> Result<Report, Error> {
    options.check_excluded(shards.stats.keys, shards.known())?;
    // As the sieve counted them: a plan for fewer could have a narrower first stage, which lets more through.
    let (request, plan) = match planned {
        Some(plan) => (options.request(shards.stats.keys, shards.approx_negatives), plan),
        None => sieve.plan(shards, options)?,
    };
    out.expect(plan.bytes(&request));
    // Where some of them may match, nothing is promised about any.
    let promised = !matches!(request.goal, Goal::ExcludedFpr(_)) && plan.promises(request.keys);
    let excluded = if promised { shards.excluded() } else { 0 };
    let bytes = write_plan(shards, &plan, sieve.first(&plan), excluded, options, out)?;
    // The last shards do not check the flag, and a cancelled build leaves no file.
    options.common.check_cancel()?;
    Ok(Report { stats: shards.stats, bytes, workload: None })
}

/// Builds and writes what was planned; `first` has the leaf of the first step, if that is there already.
fn write_plan(
    shards: &Shards,
    plan: &Plan,
    first: Option<&Filter>,
    negatives: u64,
    options: &Options,
    out: &mut dyn Output,
) -> Result<u64, Error> {
    if shards.bits > MAX_SHARD_BITS {
        return Err(BuildError::TooManyKeys { keys: shards.stats.keys, place: "file" }.into());
    }
    // A list of no steps has no parts to shard.
    let shard_bits = if plan.steps.is_empty() { 0 } else { shards.bits };
    let (hasher, key_type, keys) = (options.common.hasher, options.key_type(), shards.stats.keys);
    let header = Header { hasher, key_type, shard_bits, form: Form::Filter, keys, negatives };
    let kinds = plan.steps.iter().map(Step::kind).collect();
    let mut writer = Writer::new(out, &header, kinds)?;
    if !plan.steps.is_empty() {
        shard::build_shards(shards, plan, first, &options.common, &mut writer)?;
    }
    Ok(writer.finish()?)
}
