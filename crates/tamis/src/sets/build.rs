//! pairs of keys and sets -> an index: builder, collector and construction.
//!
//! ```text
//!   pairs ──push──▶ Intake ──▶ Sorted ──count───▶ tune ──▶ sketch ──┐
//!                                  └────────────────────▶ frozen ──┴──▶ Index ──▶ bytes
//! ```
//!
//! Pairs are gathered as the keys of a filter are, in memory or on disk: a pair is sixteen bytes, the set's number inside the digest ([`super::key`]). Sorted, the pairs
//! of a key are neighbours, and equal ones are one.

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::freeze;
use super::index::{Index, MAX_KMER, MAX_SETS, SetEntry, by_name, check_name};
use super::info::Kind;
use super::key;
use super::pairs::{count_set_sizes, each_key};
use super::query::Sets;
use super::segment::{Segment, max_partitions};
use super::sketch;
use super::tune::{self, SetSizes, Shape, TuneGoal};
use crate::arch::arena::Output;
use crate::debug::brief_debug;
use crate::error::{BuildError, Error, ValueError};
use crate::file::finish;
use crate::filter::build::{same_key_type, total};
use crate::filter::options::{Common, Progress, check_capacity, common, set};
use crate::gather::{KeyIntake, Keys, Tagged, Workspace};
use crate::hash::{Digest, Hasher, Key, KeyType};

/// Starts an index of these pairs of a key and the name of a set.
///
/// ```
/// let index = tamis::sets([("ann", "red"), ("bob", "red"), ("ann", "blue")]).finish()?;
/// assert_eq!(index.find("ann")?, [0, 1]);
/// assert_eq!(index.id("blue"), Some(1));
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn sets<'a, I, K: Key, S: AsRef<str>>(pairs: I) -> SetsBuilder<'a, I>
where
    I: IntoIterator<Item = (K, S)>,
{
    SetsBuilder { pairs, options: Settings::default() }
}

/// Starts an index whose pairs are pushed one by one, from a source that may fail.
///
/// ```
/// let mut pairs = tamis::sets::stream().start();
/// for line in "ann red\nbob red\nann blue".lines() {
///     let (key, name) = line.split_once(' ').unwrap();
///     let set = pairs.set(name)?;
///     pairs.push(key, set)?;
/// }
/// assert_eq!(pairs.finish()?.pairs(), 3);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn stream<'a>() -> SetsBuilder<'a, ()> {
    SetsBuilder { pairs: (), options: Settings::default() }
}

/// Builder of [`Sets`].
///
/// ```
/// let pairs = (0..1000u64).map(|key| (key, if key % 2 == 0 { "even" } else { "odd" }));
/// let (index, report) = tamis::sets(pairs).false_sets(0.001).finish_with_report()?;
/// assert_eq!((report.sets, report.pairs, report.set_lists), (2, 1000, Some(2)));
/// assert_eq!(index.find(7u64)?, [1]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[must_use = "nothing is built before `finish`"]
pub struct SetsBuilder<'a, I> {
    pairs: I,
    options: Settings<'a>,
}

brief_debug!(SetsBuilder<'a, I>, it => kind: it.options.kind, options: it.options.common);

#[derive(Clone, Debug, Default)]
struct Settings<'a> {
    common: Common<'a>,
    kind: Kind,
    false_sets: Option<f64>,
    member_false_sets: Option<f64>,
    budget: Option<f64>,
    shape: Option<Shape>,
    existence: Option<f64>,
    heavy: Option<u32>,
    counts: bool,
    capacity: u64,
    kmer: Option<u32>,
    by_name: bool,
    names: Vec<SetEntry>,
    model: Option<Model>,
}

/// What an index takes from the last segment of another, unless the caller says otherwise.
#[derive(Clone, Copy, Debug)]
struct Model {
    kind: Kind,
    false_sets: f64,
    member_false_sets: f64,
    capacity: u64,
}

impl Model {
    /// A table that is not full yet has fewer false sets than it was planned for, and one that is overfull has more.
    fn near(found: f64, usual: f64) -> f64 {
        if found > 0.0 { found.clamp(0.01 * usual, 10.0 * usual) } else { usual }
    }
}

impl<'a> crate::filter::build::Options<'a> {
    /// Returns a builder of an index of these sets: see [`sets`].
    pub fn sets<I: IntoIterator<Item = (K, S)>, K: Key, S: AsRef<str>>(self, pairs: I) -> SetsBuilder<'a, I> {
        sets(pairs).options(self)
    }
}

impl<'a, I> SetsBuilder<'a, I> {
    set! {
        /// Sets the structure. The default is [`Kind::Auto`].
        kind(kind: Kind) => options.kind = kind;

        /// Sets the largest number of false sets of an unlisted key, on average. The default is 0.01.
        false_sets(sets: f64) => options.false_sets = Some(sets);

        /// Sets the largest number of false sets of a member, on average. The default is 0.1; a frozen index has none.
        member_false_sets(sets: f64) => options.member_false_sets = Some(sets);

        /// Builds a sketch of this many bits per pair, with as few false sets as possible. This goal replaces
        /// [`false_sets`](SetsBuilder::false_sets) and [`member_false_sets`](SetsBuilder::member_false_sets).
        bits_per_pair(bits: f64) => options.budget = Some(bits);

        /// Builds a sketch with these parameters, instead of those that reach a goal. The kind follows from them.
        ///
        /// ```
        /// use tamis::sets::{Body, Kind, Shape};
        /// let body = Body::Cuckoo { buckets: 50, bits: 20, repetitions: 1, partitions: 0 };
        /// let shape = Shape { body, existence: None, heavy: None };
        /// let index = tamis::sets([("ann", "red"), ("bob", "blue")]).shape(shape).finish()?;
        /// assert_eq!(index.segments().next().map(|segment| segment.kind), Some(Kind::Cuckoo));
        /// # Ok::<(), tamis::Error>(())
        /// ```
        shape(shape: Shape) => options.shape = Some(shape);

        /// Builds no filter in front of the tables: smaller and faster where nearly all queries are for members.
        without_filter() => options.existence = Some(1.0);

        /// Builds a sketch that counts how often each pair was pushed, up to 255: see [`Sets::frequencies`].
        ///
        /// Counts are never too low. They are too high about as often as there are false sets. The sketch is eight times as large.
        ///
        /// ```
        /// let pairs = [("ann", "red"), ("ann", "red"), ("ann", "blue")];
        /// let index = tamis::sets(pairs).counts(true).finish()?;
        /// assert_eq!(index.frequencies("ann")?, [(0, 2), (1, 1)]);
        /// # Ok::<(), tamis::Error>(())
        /// ```
        counts(counts: bool) => options.counts = counts;

        /// Builds a sketch for this many pairs in all: goals hold until it has as many. A number below that of the pairs changes nothing.
        capacity(pairs: u64) => options.capacity = pairs;

        /// Numbers the sets by name, in the order of their bytes, and not in the order in which they come: equal pairs in any order make
        /// equal bytes. Ids that [`Collector::set`] returned are then those of the collector alone. Sets of an index that a builder is
        /// [like](SetsBuilder::like) keep their numbers.
        ///
        /// ```
        /// let index = tamis::sets([("ann", "red"), ("ann", "blue")]).by_name().finish()?;
        /// assert_eq!(index.id("blue"), Some(0));
        /// # Ok::<(), tamis::Error>(())
        /// ```
        by_name() => options.by_name = true;

        /// Notes in the file that keys are k-mers of this length, from 1 to 31, packed in a `u64`: see [`Sets::kmer`].
        kmer(length: u32) => options.kmer = Some(length);
    }

    /// Takes sets, hash and k-mers from another index: the two can be merged, and pairs go to it by [`Editor::add`](super::Editor::add).
    ///
    /// Unless a kind, a goal, counts or a capacity are set, the new index is of the kind of the other's last segment, has about as
    /// few false sets and, if it is a sketch, a capacity of a quarter of the other's pairs.
    pub fn like(mut self, other: &Sets) -> Self {
        self.options.join(&other.index);
        self.options.model = other.segments().last().map(|last| Model {
            kind: last.kind,
            false_sets: Model::near(last.false_sets, FALSE_SETS),
            member_false_sets: Model::near(last.member_false_sets, MEMBER_FALSE_SETS),
            capacity: other.index.growth(),
        });
        self
    }

    common!(options.common);
}

/// What figures of the papers set by hand.
#[cfg(feature = "internals")]
#[doc(hidden)]
impl<I> SetsBuilder<'_, I> {
    set! {
        /// Sets the false positive rate of the filter in front; from 1 on there is none.
        existence(rate: f64) => options.existence = Some(rate);

        /// Sets from how many sets on the set list of a key is stored exactly, outside the sketch; `u32::MAX` stores none.
        heavy(sets: u32) => options.heavy = Some(sets);
    }
}

impl<'a> SetsBuilder<'a, ()> {
    /// Starts a collector of pairs.
    pub fn start(self) -> Collector<'a> {
        Collector::new(self.options, None)
    }
}

impl<'a, I, K: Key, S: AsRef<str>> SetsBuilder<'a, I>
where
    I: IntoIterator<Item = (K, S)>,
{
    finish!("index", Sets, this => this.collect()?);

    fn collect(self) -> Result<Collector<'a>, Error> {
        self.options.check()?;
        let mut collector = Collector::new(self.options, Some(K::KEY_TYPE));
        let pairs = self.pairs.into_iter();
        collector.total = total(&pairs);
        for (key, name) in pairs {
            let set = collector.set(name.as_ref())?;
            collector.push(key, set)?;
        }
        Ok(collector)
    }
}

/// What was read and built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Number of sets, those without keys included.
    pub sets: u32,
    /// Number of sets without keys.
    pub empty: u32,
    /// Number of distinct keys.
    pub keys: u64,
    /// Number of distinct pairs.
    pub pairs: u64,
    /// Number of pairs that repeat an earlier one.
    pub duplicates: u64,
    /// Number of distinct set lists of a frozen index.
    pub set_lists: Option<u64>,
    shape: Option<Shape>,
    /// Predicted false sets of an unlisted key.
    pub false_sets: f64,
    /// Predicted false sets of a member, averaged over all keys.
    pub member_false_sets: f64,
    /// Length of the file.
    pub bytes: u64,
}

impl Report {
    /// Returns the parameters of a sketch, chosen or [set](SetsBuilder::shape).
    pub fn shape(&self) -> Option<&Shape> {
        self.shape.as_ref()
    }
}

/// Collector of the pairs of an index: see [`stream`]. It sorts pairs, and writes them to temporary files where memory is limited.
pub struct Collector<'a> {
    options: Settings<'a>,
    /// How many pairs come, where that is known.
    total: Option<u64>,
    key_type: Option<KeyType>,
    workspace: Arc<Workspace>,
    pairs: KeyIntake,
    names: Vec<SetEntry>,
    /// How many of them are those of another index.
    joined: usize,
    by_name: HashMap<Box<str>, u32>,
}

impl fmt::Debug for Collector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collector of {} pairs in {} sets", self.pairs.count(), self.names.len())
    }
}

impl<'a> Collector<'a> {
    fn new(options: Settings<'a>, key_type: Option<KeyType>) -> Collector<'a> {
        let mut options = options.resolved();
        let workspace = options.common.workspace();
        let pairs = options.intake(&workspace);
        let names = std::mem::take(&mut options.names);
        let by_name = by_name(&names);
        Collector { options, total: None, key_type, workspace, pairs, joined: names.len(), names, by_name }
    }

    /// Returns the id of the set with this name, a new one unless there is such a set. A set may stay without keys.
    ///
    /// # Errors
    ///
    /// [`BuildError::Value`] if no set may have this name, [`BuildError::TooMany`] above 2^24 sets.
    pub fn set(&mut self, name: &str) -> Result<u32, BuildError> {
        add_set(&mut self.names, &mut self.by_name, name)
    }

    /// Adds a key to the set with this id, which [`set`](Collector::set) returned. Equal pairs count once.
    ///
    /// # Errors
    ///
    /// [`BuildError::MixedKeyTypes`] if the key type is not that of earlier keys, [`BuildError::Value`] if no set has this id, and errors of
    /// temporary files.
    pub fn push<K: Key>(&mut self, key: K, set: u32) -> Result<(), BuildError> {
        self.push_times(key, set, 1)
    }

    /// Adds a key to a set as [`push`](Collector::push) does `times` times: for an index with [counts](SetsBuilder::counts).
    ///
    /// # Errors
    ///
    /// As [`push`](Collector::push), [`BuildError::Range`] if `times` is not 1 to 2^32 - 1, and [`BuildError::NoEffect`] if it is not 1 and the index
    /// has no counts.
    pub fn push_times<K: Key>(&mut self, key: K, set: u32, times: u64) -> Result<(), BuildError> {
        same_key_type::<K>(&mut self.key_type)?;
        if set as usize >= self.names.len() {
            return Err(ValueError::NotFromSet { set, sets: self.names.len() }.into());
        }
        if !(1..=u64::from(u32::MAX)).contains(&times) {
            let (given, most) = (times as f64, f64::from(u32::MAX));
            return Err(BuildError::Range { option: "push_times", given, least: 1.0, most });
        }
        if times > 1 && !self.options.counts {
            return Err(BuildError::NoEffect { option: "push_times", needs: "counts" });
        }
        let common = &self.options.common;
        let digest = key::pair(key::truncate_digest(key.digest(&common.hasher)), set);
        self.pairs.push(Tagged { digest, weight: times, ordinal: 0 }, &|| common.stop())?;
        common.report_progress(self.pairs.count(), Progress::Read { keys: self.pairs.count(), total: self.total })
    }

    /// Numbers new sets by name, where that is wanted: no more of them come.
    pub(super) fn number_by_name(&mut self) -> Result<(), BuildError> {
        let (old, new) = self.names.split_at_mut(self.joined);
        if !self.options.by_name || new.is_sorted_by(|a, b| a.name <= b.name) {
            return Ok(());
        }
        let mut order: Vec<usize> = (0..new.len()).collect();
        order.sort_unstable_by(|&a, &b| new[a].name.cmp(&new[b].name));
        let mut numbers: Vec<u32> = (0..(old.len() + new.len()) as u32).collect();
        order.iter().enumerate().for_each(|(number, &set)| numbers[old.len() + set] = (old.len() + number) as u32);
        new.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        self.by_name = by_name(&self.names);
        let pairs = std::mem::replace(&mut self.pairs, self.options.intake(&self.workspace));
        let renumbered = |pair: Digest| {
            let (key, set) = key::parts(pair);
            key::pair(key, numbers.get(set as usize).copied().unwrap_or(set))
        };
        self.pairs = pairs.mapped(renumbered, &|| self.options.common.stop())?;
        Ok(())
    }

    /// Hands every distinct pair to `take`, in the order of the keys; those that it does not take stay. Returns how many pairs repeated another.
    pub(super) fn offer(&mut self, mut take: impl FnMut(Digest, u32) -> Result<bool, Error>) -> Result<u64, Error> {
        let Collector { options, workspace, pairs: left, .. } = self;
        let stop = || options.common.stop();
        let pairs = std::mem::replace(left, options.intake(workspace)).finish(&stop)?;
        let mut distinct = 0;
        each_key(&pairs, &stop, &mut |key, sets, times| {
            distinct += sets.len() as u64;
            for (&set, &weight) in sets.iter().zip(times) {
                if !take(key, set)? {
                    left.push(Tagged { digest: key::pair(key, set), weight, ordinal: 0 }, &stop)?;
                }
            }
            Ok(())
        })?;
        Ok(pairs.count() - distinct)
    }

    /// Its sets, and what an index must have in common with it to take its pairs.
    pub(super) fn common(&self) -> (&[SetEntry], (&Hasher, Option<KeyType>, u32)) {
        (&self.names, (&self.options.common.hasher, self.key_type, self.options.kmer.unwrap_or(0)))
    }

    /// Whether no pair was pushed, or is left.
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.count() == 0
    }

    finish!("index", Sets, this => this);

    fn write(self, out: &mut dyn Output) -> Result<Report, Error> {
        let common = self.options.common.clone();
        common.report(Progress::Read { keys: self.pairs.count(), total: Some(self.pairs.count()) });
        let (index, mut report) = self.into_index()?;
        common.check_cancel()?;
        out.expect(index.approx_bytes());
        report.bytes = index.write(out)?;
        Ok(report)
    }

    /// The index of the pairs.
    pub(super) fn into_index(mut self) -> Result<(Index, Report), Error> {
        self.number_by_name()?;
        let Collector { options, key_type, mut names, pairs, .. } = self;
        options.check()?;
        let common = &options.common;
        common.check()?;
        let pairs = pairs.finish(&|| common.stop())?;
        let mut sizes = vec![0; names.len()];
        let set_sizes = count_set_sizes(&pairs, &mut sizes, &|| common.stop())?;
        names.iter_mut().zip(&sizes).for_each(|(entry, &size)| entry.pairs = size);
        let mut report = Report {
            sets: names.iter().filter(|entry| !entry.removed).count() as u32,
            empty: names.iter().filter(|entry| !entry.removed && entry.pairs == 0).count() as u32,
            keys: set_sizes.keys(),
            pairs: set_sizes.pairs(),
            duplicates: pairs.count() - set_sizes.pairs(),
            set_lists: None,
            shape: None,
            false_sets: 0.0,
            member_false_sets: 0.0,
            bytes: 0,
        };
        let segment = options.segment(&pairs, &set_sizes, &sizes, &mut report)?;
        let index = Index {
            hasher: common.hasher.clone().with_secret_beside(common.secret_beside),
            key_type: key_type.unwrap_or(KeyType::Bytes),
            kmer: options.kmer.unwrap_or(0),
            removed: names.len() as u32 - report.sets,
            names,
            segments: segment.into_iter().collect(),
            metadata: common.metadata.clone(),
        };
        Ok((index, report))
    }
}

/// The number of the set with this name, which is new unless it was there before.
pub(super) fn add_set(
    names: &mut Vec<SetEntry>,
    by_name: &mut HashMap<Box<str>, u32>,
    name: &str,
) -> Result<u32, BuildError> {
    if let Some(&id) = by_name.get(name) {
        return Ok(id);
    }
    check_name(name)?;
    let many = BuildError::TooMany { what: "sets", most: MAX_SETS.into() };
    let id = u32::try_from(names.len()).ok().filter(|&sets| sets < MAX_SETS).ok_or(many)?;
    names.push(SetEntry { name: name.into(), removed: false, pairs: 0 });
    by_name.insert(name.into(), id);
    Ok(id)
}

/// So many pairs of the same kind; of one set each, in a few sets, where nothing is known yet.
pub(super) fn planned(set_sizes: &SetSizes, pairs: u64) -> SetSizes {
    let known = set_sizes.pairs();
    if known == 0 {
        return SetSizes { sets: set_sizes.sets.max(DEFAULT_SETS), multiplicities: vec![(1, pairs)] };
    }
    let scale = |keys: u64| (u128::from(keys) * u128::from(pairs)).div_ceil(u128::from(known)) as u64;
    let multiplicities = set_sizes.multiplicities.iter().map(|&(sets, keys)| (sets, scale(keys))).collect();
    SetSizes { sets: set_sizes.sets, multiplicities }
}

/// How often a sketch that is larger than its budget is built again.
const MAX_ATTEMPTS: u32 = 3;
/// Pairs from which on a budget is kept: of fewer, what every sketch has takes more than a thousandth.
const MIN_BUDGET_PAIRS: u64 = 1 << 16;

/// False sets and member false sets, unless the caller sets a goal.
pub(super) const FALSE_SETS: f64 = 0.01;
pub(super) const MEMBER_FALSE_SETS: f64 = 0.1;
/// What false sets and bits per pair may be.
const GOALS: RangeInclusive<f64> = 1e-9..=1e9;
/// Sets to expect where none is known.
const DEFAULT_SETS: u32 = 64;

impl Settings<'_> {
    /// Takes sets, hash and k-mers from another index.
    fn join(&mut self, index: &Index) {
        (self.common.hasher, self.common.secret_beside) = (index.hasher.clone(), index.hasher.is_beside());
        self.kmer = Some(index.kmer).filter(|&length| length > 0);
        self.names = index.names.iter().map(|entry| SetEntry { pairs: 0, ..entry.clone() }).collect();
    }

    /// The options as pairs come in: those of the model, unless some are set.
    fn resolved(mut self) -> Self {
        let goals = [self.false_sets, self.member_false_sets, self.budget, self.existence];
        let plain = self.kind == Kind::Auto && self.capacity == 0 && !self.counts && self.shape.is_none();
        if let Some(model) = self.model.take().filter(|_| plain && goals == [None; 4]) {
            self.kind = model.kind;
            self.false_sets = Some(model.false_sets);
            if model.kind != Kind::Frozen {
                (self.member_false_sets, self.capacity) = (Some(model.member_false_sets), model.capacity);
            }
        }
        self
    }

    fn intake(&self, workspace: &Arc<Workspace>) -> KeyIntake {
        // The other half is for what is built of them.
        KeyIntake::new(workspace, workspace.memory / 2, self.counts)
    }

    /// Rejects options that are out of range, contradict each other, or have no effect.
    fn check(&self) -> Result<(), BuildError> {
        let ranges = [
            ("false_sets", self.false_sets, GOALS),
            ("member_false_sets", self.member_false_sets, GOALS),
            ("bits_per_pair", self.budget, GOALS),
            ("existence", self.existence, GOALS),
            ("kmer", self.kmer.map(f64::from), 1.0..=f64::from(MAX_KMER)),
        ];
        for (option, given, range) in ranges {
            if let Some(given) = given.filter(|given| !range.contains(given)) {
                let (&least, &most) = (range.start(), range.end());
                return Err(BuildError::Range { option, given, least, most });
            }
        }
        let goals = [
            ("shape", self.shape.is_some()),
            ("bits_per_pair", self.budget.is_some()),
            ("false_sets", self.false_sets.is_some()),
            ("member_false_sets", self.member_false_sets.is_some()),
        ];
        let mut set = goals.iter().filter(|goal| goal.1).map(|goal| goal.0);
        if let (Some(first @ ("shape" | "bits_per_pair")), Some(second)) = (set.next(), set.next()) {
            return Err(BuildError::TwoGoals { first, second });
        }
        // Without a filter in front a frozen index has a set list for every key.
        let unfiltered = self.existence.is_some_and(|rate| rate >= 1.0);
        if self.kind()? == Kind::Frozen && unfiltered && self.false_sets.is_some() {
            return Err(BuildError::NoEffect { option: "false_sets", needs: "a filter, or kind bloom or cuckoo" });
        }
        Ok(())
    }

    /// The kind that is meant.
    fn kind(&self) -> Result<Kind, BuildError> {
        let frozen = |option| Err(BuildError::Frozen { option });
        match self.kind {
            Kind::Auto if self.counts => Ok(Kind::Bloom),
            Kind::Auto => match self.shape.as_ref().map(|shape| &shape.body) {
                Some(tune::Body::Bloom { .. }) => Ok(Kind::Bloom),
                Some(tune::Body::Cuckoo { .. }) => Ok(Kind::Cuckoo),
                None if self.budget.is_some() || self.capacity > 0 => Ok(Kind::Bloom),
                None => Ok(Kind::Frozen),
            },
            Kind::Frozen if self.counts => frozen("counts"),
            Kind::Frozen if self.budget.is_some() => frozen("bits_per_pair"),
            Kind::Frozen if self.capacity > 0 => frozen("capacity"),
            Kind::Frozen if self.shape.is_some() => frozen("shape"),
            Kind::Frozen if self.member_false_sets.is_some() => frozen("member_false_sets"),
            Kind::Frozen | Kind::Bloom | Kind::Cuckoo => Ok(self.kind),
        }
    }

    fn segment(
        &self,
        pairs: &Keys,
        set_sizes: &SetSizes,
        sizes: &[u64],
        report: &mut Report,
    ) -> Result<Option<Segment>, Error> {
        let kind = self.kind()?;
        if kind == Kind::Frozen {
            if set_sizes.keys() == 0 {
                return Ok(None);
            }
            // An unlisted key that passes gets the set list of some key.
            let list = set_sizes.pairs() as f64 / set_sizes.keys() as f64;
            let rate = self.existence.unwrap_or(self.false_sets.unwrap_or(FALSE_SETS) / list);
            let (segment, set_lists) = freeze::build(pairs, set_sizes, sizes, rate, &self.common)?;
            report.set_lists = Some(set_lists);
            report.false_sets = rate.min(1.0) * list;
            return Ok(Some(segment));
        }
        check_capacity(self.capacity, set_sizes.pairs())?;
        let capacity = self.capacity.max(set_sizes.pairs());
        if capacity == 0 {
            return Ok(None);
        }
        let mut planned = planned(set_sizes, capacity);
        // A table that grows will have more sets, too. Counts are as right as if there were some sets: with one, nothing else could be false.
        if capacity > set_sizes.pairs() || self.counts {
            planned.sets = planned.sets.max(DEFAULT_SETS);
        }
        let budget = self.budget.map(|bits| bits * capacity as f64);
        let mut aim = self.budget;
        let mut attempts = 0;
        let (tuned, segment) = loop {
            let tuned = self.tuned(kind, &planned, aim)?;
            let segment = sketch::build(pairs, set_sizes, tuned.shape, capacity, self.counts, &|| self.common.stop())?;
            // What lists next to the table take is known when they are there.
            let over = budget.map_or(0.0, |budget| segment.bits() / budget);
            attempts += 1;
            if over <= 1.001 || attempts == MAX_ATTEMPTS || self.shape.is_some() || capacity < MIN_BUDGET_PAIRS {
                break (tuned, segment);
            }
            aim = aim.map(|bits| bits / over);
        };
        report.false_sets = tuned.false_sets;
        report.member_false_sets = tuned.member_false_sets;
        report.shape = Some(tuned.shape);
        Ok(Some(segment))
    }

    fn tuned(&self, kind: Kind, set_sizes: &SetSizes, budget: Option<f64>) -> Result<tune::Tuned, BuildError> {
        if let Some(shape) = &self.shape {
            let (tune::Body::Bloom { partitions, .. } | tune::Body::Cuckoo { partitions, .. }) = shape.body;
            let most = max_partitions(set_sizes.sets);
            if partitions > most {
                return Err(BuildError::SetPartitions { partitions, sets: set_sizes.sets, most });
            }
            return Ok(tune::predict(set_sizes, shape));
        }
        let goal = match budget {
            Some(bits) => TuneGoal::BitsPerPair(bits),
            // More false sets than there are sets need not be kept out.
            None => {
                let most = f64::from(set_sizes.sets.max(1));
                let [false_sets, member_false_sets] =
                    [self.false_sets.unwrap_or(FALSE_SETS), self.member_false_sets.unwrap_or(MEMBER_FALSE_SETS)];
                TuneGoal::Targets { false_sets: false_sets.min(most), member_false_sets: member_false_sets.min(most) }
            }
        };
        let sketch = if kind == Kind::Cuckoo { tune::Sketch::Cuckoo } else { tune::Sketch::Bloom };
        // Where its size is given, what it keeps out is no concern of the table.
        let existence = self.existence.map(|_| false);
        // A list next to the table has no counts.
        let heavy = if self.counts { Some(u32::MAX) } else { self.heavy };
        // With partitions a set that comes later would share the places of others: a row for all is as long as there are sets.
        let repetitions = if self.capacity > 0 { 1 } else { tune::Options::default().repetitions };
        let options = tune::Options { existence, heavy, counting: self.counts, repetitions };
        let tuned = tune::tune(sketch, set_sizes, goal, &options)?;
        let Some(rate) = self.existence.filter(|&rate| rate < 1.0) else { return Ok(tuned) };
        let behind = |tuned: tune::Tuned| tune::predict(set_sizes, &Shape { existence: Some(rate), ..tuned.shape });
        let found = behind(tuned);
        let TuneGoal::BitsPerPair(bits) = goal else { return Ok(found) };
        // The filter is paid for out of the same budget.
        let left = bits - (found.bits - tuned.bits) / set_sizes.pairs().max(1) as f64;
        Ok(behind(tune::tune(sketch, set_sizes, TuneGoal::BitsPerPair(left), &options)?))
    }
}

impl Sets {
    /// Builds a frozen index of these keys, with the sets that this index names for each of them, false ones included. Keys without sets
    /// are left out.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if this index is damaged, [`Error::Query`] if the key type is not the index's, and those of
    /// [`finish`](SetsBuilder::finish).
    ///
    /// ```
    /// use tamis::sets::Kind;
    /// let sketch = tamis::sets([("ann", "red"), ("bob", "blue")]).kind(Kind::Bloom).finish()?;
    /// let frozen = sketch.freeze(["ann", "bob"])?;
    /// assert_eq!(frozen.find("bob")?, sketch.find("bob")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn freeze<K: Key>(&self, keys: impl IntoIterator<Item = K>) -> Result<Sets, Error> {
        self.verify()?;
        let mut builder = stream().kind(Kind::Frozen);
        builder.options.join(&self.index);
        let mut pairs = builder.start();
        let mut keys = keys.into_iter();
        loop {
            let part: Vec<K> = keys.by_ref().take(FREEZE_BATCH).collect();
            if part.is_empty() {
                return pairs.finish();
            }
            let mut result = Ok(());
            self.find_many(&part, |at, ids| {
                for &id in ids {
                    if result.is_ok() {
                        result = pairs.push(&part[at], id);
                    }
                }
            })?;
            result?;
        }
    }
}

/// Keys of one batch of queries.
const FREEZE_BATCH: usize = 1 << 12;
