//! goals, structure, hash, limits -> the options of a build: one policy for any number of filters.
//!
//! A builder has the setters of its options: one list makes both.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::collect::Collector;
use super::diff::PatchHead;
use super::goals::Goals;
use super::partition::Partitioned;
use super::{Feed, FilterBuilder, Source, total};
use crate::error::BuildError;
use crate::filter::open::MAX_STEPS;
use crate::filter::options::{Common, Progress, set};
use crate::format::Header;
use crate::gather::{Limits, OnConflict, Workspace, shard_bits};
use crate::hash::{Digest, Hasher, Key, KeyType};
use crate::plan::recipes::cascade::LAYERS;
use crate::plan::{Columns, Effort, Goal, Kind, Layout, MAX_EXTRA_CAPACITY, Request, plan};

/// Options of a build, for a program that builds many filters, maps or set indexes alike.
///
/// Its setters are those of [`FilterBuilder`].
///
/// ```
/// let options = tamis::Options::default().seed(7).threads(2);
/// let filters: Vec<_> = (0..3).map(|table| options.clone().fpr(0.001).build(table..100).finish()).collect::<Result<_, _>>()?;
/// assert!(filters[2].contains(99)?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Options<'a> {
    pub(super) goals: Goals,
    /// What follows from the goals when keys come in.
    pub(super) goal: Goal,
    /// The largest rate for unlisted keys where there is a workload, if the caller set one.
    pub(super) cap: Option<f64>,
    pub(super) kind: Kind,
    pub(super) layout: Layout,
    pub(super) papers: Papers,
    pub(super) on_conflict: OnConflict,
    /// Extra capacity, as a share of the keys.
    pub(super) spare: f64,
    /// Capacity in all.
    pub(super) capacity: Option<u64>,
    /// Whether there is a workload: then the plan is not known before its queries are counted.
    pub(super) expecting: bool,
    /// Whether keys keep their places in the input, to be shown in conflicts.
    pub(super) places: bool,
    /// That of the keys, once there is one.
    pub(super) key_type: Option<KeyType>,
    /// Bytes of a shard at most, where it is to be read in one piece.
    pub(super) shard_bytes: Option<u64>,
    /// What a patch begins with, if it is one that is built.
    pub(super) patch: Option<Arc<PatchHead>>,
    pub(crate) common: Common<'a>,
}

/// Options with shards of at most so many keys, in maps too: golden files of several shards would be large without.
#[cfg(feature = "internals")]
pub fn with_shard_keys(options: Options<'_>, keys: u64) -> Options<'_> {
    Options { common: Common { shard_keys: keys, ..options.common }, ..options }
}

/// Smaller shards would be all directory, larger ones are no different from the default.
const SHARD_BYTES: std::ops::RangeInclusive<u64> = 1 << 12..=1 << 30;

/// Parameters of the papers' structures, for `papers` of [`FilterBuilder`] and [`Options`]. The planner chooses what is not set.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Papers {
    delta: Option<f64>,
    layers: Option<u32>,
    first_bits: Option<f64>,
    steered_columns: Option<Vec<f64>>,
}

impl Papers {
    set! {
        /// Sets how much shorter every list of a [`Kind::Cascade`] is than the one before, between 0 and 1. The default is 0.5.
        delta(delta: f64) => delta = Some(delta);

        /// Sets the number of layers of a [`Kind::Cascade`], the exact one included: 1 to 64. The default is 5.
        layers(count: u32) => layers = Some(count);

        /// Sets the bits per key of the first of two stages, for [`Kind::Chained`], [`Kind::Integrated`] and [`Kind::Steered`]: 0 for
        /// none, else 1 to 32. The goal then has no effect: see [`Filter::fpr`](crate::Filter::fpr).
        first_bits(bits: f64) => first_bits = Some(bits);

        /// Sets the columns of [`Kind::Steered`], at most eight: rows of each beyond one per key, as a share of the keys, between
        /// 1/32 and 4. An exact layer comes after them unless the goal is [`excluded_fpr`](FilterBuilder::excluded_fpr).
        steered_columns(slacks: &[f64]) => steered_columns = Some(slacks.to_vec());
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { goals, kind, common, .. } = self;
        write!(f, "{:?}, {kind:?}, {common:?}", goals.resolve().0)
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            goals: Goals::default(),
            goal: Goals::default().resolve().0,
            cap: None,
            kind: Kind::Auto,
            layout: Layout::Auto,
            papers: Papers::default(),
            on_conflict: OnConflict::Error,
            spare: 0.0,
            capacity: None,
            expecting: false,
            places: false,
            key_type: None,
            shard_bytes: None,
            patch: None,
            common: Common::default(),
        }
    }
}

impl<'a> Options<'a> {
    /// Returns a builder of a filter of these keys: see [`build`](crate::build()).
    pub fn build<K: Key>(self, keys: impl IntoIterator<Item = K> + 'a) -> FilterBuilder<'a> {
        let feed: Feed<'a, Collector<'a>> = Box::new(move |collector| {
            let keys = keys.into_iter();
            collector.announce(total(&keys));
            keys.into_iter().try_for_each(|key| Ok(collector.push(key)?))
        });
        let options = Options { key_type: Some(K::KEY_TYPE), ..self };
        FilterBuilder { source: Source { keys: Some(feed), ..Source::default() }, options }
    }

    /// Returns a builder of a filter of digests, which this hasher made: see [`build_digests`](crate::build_digests).
    pub fn build_digests(self, digests: impl Into<Arc<Vec<Digest>>>, key_type: KeyType) -> FilterBuilder<'a> {
        let key_type = if self.common.hasher.is_foreign() { KeyType::Digest } else { key_type };
        let source = Source { digests: Some(digests.into()), ..Source::default() };
        FilterBuilder { source, options: Options { key_type: Some(key_type), ..self } }
    }

    /// Returns a collector of keys that are pushed one by one.
    pub fn start(self) -> Collector<'a> {
        Collector::new(self.resolved())
    }

    /// Returns a collector of keys that are pushed with the name of a partition.
    pub fn partitioned(self) -> Partitioned<'a> {
        Partitioned::new(self.resolved())
    }

    set! {
        /// Announces calls of [`Collector::exclude`]: keys keep their places in the input, so that a conflict can show them.
        with_excluded() => places = true;

        /// Announces calls of [`Sealed::push_query`](crate::Sealed::push_query) after excluded keys, which are kept until then.
        with_workload() => expecting = true;

        /// Announces the key type of the keys, which a [`Collector`] otherwise has from the first of them: that of a filter without keys.
        ///
        /// ```
        /// let none = tamis::stream().with_key_type(tamis::KeyType::Integer).start().finish()?;
        /// assert!(!none.contains(7)?);
        /// # Ok::<(), tamis::Error>(())
        /// ```
        with_key_type(key_type: KeyType) => key_type = Some(key_type);
    }

    /// The options that all builds share, for a build that is no filter.
    #[cfg(feature = "maps")]
    pub(crate) fn into_common(self) -> Common<'a> {
        Common { unused: self.filter_option(), ..self.common }
    }

    /// The same with other options that all builds share.
    #[cfg(feature = "sets")]
    pub(crate) fn with_common(self, common: Common<'a>) -> Self {
        Options { common, ..self }
    }

    /// The goal, and the kind.
    #[cfg(feature = "learned")]
    pub(crate) fn aim(&self) -> (Goal, Kind) {
        (self.goals.resolve().0, self.kind)
    }

    /// The same hash and limits with this goal alone; without one, the rate for unlisted keys is the default's.
    #[cfg(feature = "learned")]
    pub(crate) fn with_goal(&self, goal: Goal) -> Self {
        let options = Options { common: self.common.clone(), on_conflict: self.on_conflict, ..Options::default() };
        match goal {
            Goal::Fpr(p) => options.fpr(p),
            Goal::BitsPerKey(bits) => options.bits_per_key(bits),
            Goal::Exact => options.exact(),
            Goal::ExcludedFpr(p) => options.excluded_fpr(p),
        }
    }

    /// The name of an option that was set and that only filters have.
    #[cfg(feature = "maps")]
    fn filter_option(&self) -> Option<&'static str> {
        let Options { goals, kind, layout, papers, on_conflict, spare, capacity, expecting, .. } = self;
        let set = [
            ("kind", *kind != Kind::Auto),
            ("layout", *layout != Layout::Auto),
            ("papers", *papers != Papers::default()),
            ("on_conflict", *on_conflict != OnConflict::Error),
            ("extra_capacity", *spare != 0.0),
            ("capacity", capacity.is_some()),
            ("with_workload", *expecting),
            ("shard_bytes", self.shard_bytes.is_some()),
        ];
        goals.first().or_else(|| set.iter().find(|(_, set)| *set).map(|(name, _)| *name))
    }

    pub(super) fn key_type(&self) -> KeyType {
        self.key_type.unwrap_or(KeyType::Bytes)
    }

    /// What the excluded keys may use of the workspace's memory: the keys have half of it, and queries need some too.
    pub(super) fn side_memory(&self, workspace: &Workspace) -> u64 {
        workspace.memory / if self.expecting { 4 } else { 2 }
    }

    /// Rejects a capacity below the number of keys, or far above it. Planning does the latter too, but knows only their ratio.
    pub(super) fn check_capacity(&self, keys: u64) -> Result<(), BuildError> {
        let (least, most) = (keys as f64, (MAX_EXTRA_CAPACITY + 1.0) * keys as f64);
        match self.capacity.map(|capacity| capacity as f64) {
            Some(given) if keys > 0 && !(least..=most).contains(&given) => {
                Err(BuildError::Range { option: "capacity", given, least, most })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Rejects a goal for excluded keys alone where there are none: everything would match.
    pub(super) fn check_excluded(&self, keys: u64, excluded: u64) -> Result<(), BuildError> {
        self.check_capacity(keys)?;
        match self.goal {
            Goal::Exact | Goal::ExcludedFpr(_) if keys > 0 && excluded == 0 => Err(BuildError::NothingExcluded),
            Goal::Exact | Goal::ExcludedFpr(_) | Goal::Fpr(_) | Goal::BitsPerKey(_) => Ok(()),
        }
    }

    /// The options as keys come in.
    pub(super) fn resolved(mut self) -> Self {
        (self.goal, self.cap) = self.goals.resolve();
        if let Some(bytes) = self.shard_bytes {
            self.common.shard_keys = self.keys_of_shard(bytes);
        }
        self
    }

    /// How many keys make a shard of so many bytes. Shards are cut before the plan is made, so one is made here for a shard, whose size it
    /// says, and again for a shard of that size.
    fn keys_of_shard(&self, bytes: u64) -> u64 {
        let excluding = self.places || matches!(self.goal, Goal::Exact | Goal::ExcludedFpr(_));
        let mut keys = bytes;
        for _ in 0..4 {
            let request = self.request(keys, if excluding { 16 * keys } else { 0 });
            // What cannot be planned is an error later on.
            let bits = plan(&request).map_or(16.0, |plan| request.bits_of(&plan.steps) / keys as f64);
            // Shards differ by chance: five standard deviations.
            let most = bytes as f64 * 8.0 / bits.max(0.5);
            keys = ((most - 5.0 * most.sqrt()).max(most / 4.0) as u64).max(1);
        }
        keys
    }

    /// Rejects options that contradict each other, have no effect, or are out of range.
    pub(super) fn check(&self) -> Result<(), BuildError> {
        self.goals.check(self.expecting)?;
        self.common.check()?;
        if let Some(bytes) = self.shard_bytes.filter(|bytes| !SHARD_BYTES.contains(bytes)) {
            let [given, least, most] = [bytes, *SHARD_BYTES.start(), *SHARD_BYTES.end()].map(|bytes| bytes as f64);
            return Err(BuildError::Range { option: "shard_bytes", given, least, most });
        }
        if self.capacity.is_some() && self.spare != 0.0 {
            return Err(BuildError::TwoGoals { first: "capacity", second: "extra_capacity" });
        }
        let papers = &self.papers;
        let knobs = [
            ("delta", papers.delta.is_some(), matches!(self.kind, Kind::Cascade(_)), "kind cascade"),
            ("layers", papers.layers.is_some(), matches!(self.kind, Kind::Cascade(_)), "kind cascade"),
            (
                "first_bits",
                papers.first_bits.is_some(),
                matches!(self.kind, Kind::Chained(_) | Kind::Integrated(..) | Kind::Steered | Kind::Auto),
                "kind chained, integrated or steered",
            ),
            (
                "steered_columns",
                papers.steered_columns.is_some(),
                matches!(self.kind, Kind::Steered | Kind::Auto),
                "kind steered",
            ),
        ];
        if let Some(&(option, .., needs)) = knobs.iter().find(|(_, given, fits, _)| *given && !fits) {
            return Err(BuildError::NoEffect { option, needs });
        }
        let range = |option, given, least, most| Err(BuildError::Range { option, given, least, most });
        if let Some(layers) = papers.layers.filter(|layers| !(1..=MAX_STEPS as u32).contains(layers)) {
            return range("layers", layers.into(), 1.0, MAX_STEPS as f64);
        }
        let columns = papers.steered_columns.iter().flatten();
        match (papers.first_bits, columns.clone().find(|slack| !(0.03125..=4.0).contains(*slack))) {
            (Some(bits), _) if bits != 0.0 && !(1.0..=32.0).contains(&bits) => range("first_bits", bits, 1.0, 32.0),
            (_, Some(&slack)) => range("steered_columns", slack, 0.03125, 4.0),
            _ if columns.count() > Columns::MAX_COLUMNS => {
                Err(BuildError::TooMany { what: "steered_columns", most: Columns::MAX_COLUMNS as u64 })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn request(&self, keys: u64, negatives: u64) -> Request {
        let Options { goal, kind, layout, .. } = *self;
        let spare = match self.capacity {
            Some(capacity) if capacity > keys && keys > 0 => (capacity - keys) as f64 / keys as f64,
            Some(_) => 0.0,
            None => self.spare,
        };
        let (effort, delta) = (self.common.effort, self.papers.delta.unwrap_or(0.5));
        let first = self.papers.first_bits.map(|bits| (bits * 256.0).round() as u16);
        let columns = self.papers.steered_columns.as_deref().map(Columns::new);
        // Others than these were rejected.
        let layers = self.papers.layers.map_or(LAYERS, |layers| layers.min(MAX_STEPS as u32) as u8);
        let hash_bytes = Header::hash_bytes(&self.common.hasher);
        let shard_bits = shard_bits(keys, self.common.shard_keys);
        Request {
            keys,
            shard_bits,
            negatives,
            goal,
            kind,
            effort,
            layout,
            delta,
            layers,
            first,
            columns,
            spare,
            hash_bytes,
        }
    }
}

/// The setters of [`FilterBuilder`], and those of [`Options`], whose documentation refers to them.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($value:ident: $type:ty)?) => $($field:ident).+ = $to:expr;)+) => {
        impl<'a> FilterBuilder<'a> {
            set! { $($(#[$doc])* $name($($value: $type)?) => options.$($field).+ = $to;)+ }
        }

        impl<'a> Options<'a> {
            set! { $(
                #[doc = concat!("See [`FilterBuilder::", stringify!($name), "`].")]
                $name($($value: $type)?) => $($field).+ = $to;
            )+ }
        }
    };
}

setters! {
    /// Sets the largest share of unlisted keys that match. The default is 0.01.
    ///
    /// With a [`workload`](Self::workload) it is the ceiling, 1 for none, and
    /// [`workload_fpr`](Self::workload_fpr) or [`bits_per_key`](Self::bits_per_key) is the goal.
    fpr(p: f64) => goals.fpr = Some(p);

    /// Sets the size: at most this many bits per key, the whole file counted. The filter has the lowest fpr of that size.
    bits_per_key(bits: f64) => goals.bits_per_key = Some(bits);

    /// Builds the smallest filter that is right for all members and excluded keys; unlisted keys get arbitrary answers, at the
    /// rate [`Filter::fpr`](crate::Filter::fpr).
    ///
    /// Without excluded keys or a workload the build fails with [`BuildError::NothingExcluded`]: every key would match.
    ///
    /// ```
    /// let filter = tamis::build(0..1000).exclude(1000..20_000).exact().finish()?;
    /// assert!((0..20_000).all(|key| filter.contains(key) == Ok(key < 1000)));
    /// assert!(filter.as_bytes().len() * 8 < 8 * 1000); // 5.75 bits per key is the bound
    /// # Ok::<(), tamis::Error>(())
    /// ```
    exact() => goals.exact = true;

    /// Lets at most a share `p` of the excluded keys match, weighted by how often each is listed; unlisted keys get arbitrary answers.
    ///
    /// Smaller than [`exact`](Self::exact). `p` must be between 0 and 1, exclusive. For [`Kind::Steered`], which is the default, and
    /// [`Kind::Chained`], which stores what is listed most often.
    ///
    /// ```
    /// let filter = tamis::build(0..10_000).exclude(10_000..310_000).excluded_fpr(0.01).finish()?;
    /// assert!((0..10_000).all(|key| filter.contains(key) == Ok(true)));
    /// let matches = (10_000..310_000).filter(|&key| filter.contains(key) == Ok(true)).count();
    /// assert!(matches <= 3000);
    /// assert!(filter.as_bytes().len() * 8 < 64_000); // a filter of 1 % takes 68,000
    /// # Ok::<(), tamis::Error>(())
    /// ```
    excluded_fpr(p: f64) => goals.excluded_fpr = Some(p);

    /// Lets at most a share `p` of the negative queries of the [`workload`](Self::workload) match; [`fpr`](Self::fpr) is then the
    /// ceiling for unlisted keys, and 1 lifts it. The default of both is the other one.
    ///
    /// The built filter is queried for the whole workload. Where frequent queries match by chance, so that the goal is missed by more than
    /// 2 %, it is built again with other salts; after 64 of them it is an error that has the best rate.
    ///
    /// With [`bits_per_key`](Self::bits_per_key) as the goal, the ceiling is by default 1.42 times (half a bit) the rate of a plain
    /// filter of the same kind and size. A workload may show too few unlisted keys, or none.
    ///
    /// ```
    /// let popular = || (1000..3000).map(|site| (site, 2.0));
    /// let build = || tamis::build(0..1000).workload(popular()).workload_fpr(0.01);
    /// let usual = build().finish()?;
    /// let strict = build().fpr(0.001).finish()?;
    /// let open = build().fpr(1.0).finish()?;
    /// assert!(usual.fpr() <= 0.01 && strict.fpr() <= 0.001 && open.fpr() > 0.1);
    /// assert!(open.as_bytes().len() < usual.as_bytes().len());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    workload_fpr(p: f64) => goals.workload_fpr = Some(p);

    /// Sets the share of negative queries that are outside the [`workload`](Self::workload). By default it is estimated as the share
    /// of queries that occur once in the workload ([Stacked] section 5.1). Where every key has weight 1 it is a list and no sample: the
    /// share counts as 0, and [`Report::workload`](crate::Report::workload) has a warning.
    ///
    /// [Stacked]: https://doi.org/10.14778/3436905.3436919
    unlisted_share(share: f64) => goals.unlisted_share = Some(share);

    /// Sets what happens to a member that is also excluded. By default the build fails and shows the first of them.
    on_conflict(policy: OnConflict) => on_conflict = policy;

    /// Sets the capacity to this share of keys more than there are, for filters that change: [`Kind::Bloom`],
    /// [`Kind::ClassicBloom`], [`Kind::Cuckoo`], [`Kind::Quotient`] and [`Kind::Stacked`] on the last three. The goal is reached when
    /// the filter is full.
    ///
    /// ```
    /// let filter = tamis::build(0..1000).kind(tamis::Kind::Cuckoo).extra_capacity(0.5).finish()?;
    /// let mut filter = tamis::Cuckoo::restore(filter.into_bytes())?;
    /// (1000..1500).try_for_each(|key| filter.insert(key))?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    extra_capacity(share: f64) => spare = share;

    /// Sets the capacity to this many keys in all: see [`extra_capacity`](Self::extra_capacity). Fewer than there are is an error.
    capacity(keys: u64) => capacity = Some(keys);

    /// Names the structure. By default the planner chooses it.
    kind(kind: Kind) => kind = kind;

    /// Sets how the bits of a filter with excluded keys are laid out: as small as possible, or side by side.
    ///
    /// ```
    /// let filter = tamis::build(0..5000).exclude(5000..45_000).exact().layout(tamis::Layout::Local).finish()?;
    /// assert!((0..45_000).all(|key| filter.contains(key) == Ok(key < 5000)));
    /// assert_eq!(filter.layers().count(), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    layout(layout: Layout) => layout = layout;

    /// Sets the hash function.
    hasher(hasher: Hasher) => common.hasher = hasher;

    /// Sets the seed of the hash; equal input, options and seeds give equal bytes. The default is 0.
    seed(seed: u64) => common.hasher = Hasher::seeded(seed);

    /// Sets a secret for the hash, where others may choose queries or keys. The file stores it, so the file must stay private.
    ///
    /// Without a secret anyone can compute which keys match, and can make different keys with equal digests, which then count as
    /// one key. Chosen keys cannot stop a build or make it much larger. A query takes 2.0 to 2.2 times as long with a secret for
    /// names, about 3 times for integers.
    secret(secret: [u64; 2]) => common.hasher = Hasher::secret(secret);

    /// Keeps the secret out of the file: only those who have it can open the file, by `open_with_secret`. A wrong secret is an error.
    ///
    /// ```
    /// let bytes = tamis::build(["ann"]).secret([1, 2]).secret_beside().finish()?.into_bytes();
    /// assert!(tamis::Filter::open(bytes.clone()).is_err());
    /// assert!(tamis::Filter::open_with_secret(bytes.clone(), [1, 3]).is_err());
    /// assert!(tamis::Filter::open_with_secret(bytes, [1, 2])?.contains("ann")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    secret_beside() => common.secret_beside = true;

    /// Puts a note of the caller's into the file, at most 65,536 bytes: see [`Filter::metadata`](crate::Filter::metadata).
    ///
    /// ```
    /// let filter = tamis::build(["ann"]).metadata("source: 2026-11-18").finish()?;
    /// assert_eq!(filter.metadata(), b"source: 2026-11-18");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    metadata(note: impl AsRef<[u8]>) => common.metadata = note.as_ref().into();

    /// Makes shards of at most about so many bytes, 4,096 to 2^30, so that a query of a file in a store reads no more than that: see
    /// [`Remote`](crate::Remote). 65,536 is a good choice there. Elsewhere the default is smaller and faster.
    ///
    /// Where keys are excluded, their number is not known when shards are cut, and 16 for each member are assumed: with many more, shards are
    /// larger. What many shards add to the file is not counted in [`bits_per_key`](Self::bits_per_key).
    ///
    /// ```
    /// let filter = tamis::build(0..1_000_000).fpr(0.01).shard_bytes(65_536).finish()?;
    /// assert_eq!(filter.shards(), 16);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    shard_bytes(bytes: u64) => shard_bytes = Some(bytes);

    /// Sets how hard to search for a smaller file.
    effort(effort: Effort) => common.effort = effort;

    /// Limits memory and disk, and sets the folder of temporary files.
    ///
    /// Some things are held in memory on top of them: distinct values of a map that are text or bytes, the table of a sketch, and the
    /// distinct set lists of a frozen index.
    limits(limits: Limits) => common.limits = limits;

    /// Sets the number of threads, 1 to 1024; all processors by default. The bytes are equal for any number.
    threads(threads: usize) => common.threads = threads;

    /// Calls `callback` about every 65,536 keys and after every shard.
    progress(callback: impl Fn(Progress) + Send + Sync + 'a) => common.progress = Some(Arc::new(callback));

    /// Stops the build with [`BuildError::Cancelled`] soon after this flag becomes true.
    cancel(flag: Arc<AtomicBool>) => common.cancel = flag;
}

#[cfg(feature = "papers")]
setters! {
    /// Sets parameters of the papers' structures by hand.
    ///
    /// ```
    /// let papers = tamis::Papers::default().steered_columns(&[0.25]);
    /// let filter = tamis::build(0..5000).exclude(5000..20_000).kind(tamis::Kind::Steered).papers(papers).exact().finish()?;
    /// assert_eq!(filter.layers().count(), 2);
    /// assert!((0..20_000).all(|key| filter.contains(key) == Ok(key < 5000)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    papers(papers: Papers) => papers = papers;
}
