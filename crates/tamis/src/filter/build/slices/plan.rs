//! surveys and sketches -> a plan, as text; a plan and the digests of a slice -> the bytes of the slice.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;

use super::gather::{Gather, Sides};
use super::join::{Piece, refined};
use super::survey::{MAX_KEYS, Sketch, Survey, Totals, checksum};
use super::text::{self, Lines};
use super::{KeyRange, wrong};
use crate::error::{BuildError, Error};
use crate::file::to_file;
use crate::filter::build::shard::build_slice;
use crate::filter::build::sieve::{ROUNDS, more_like, planned};
use crate::filter::build::{Options, Papers};
use crate::filter::options::Common;
use crate::filter::sliced::SliceHead;
use crate::format::{Form, Header, Source, Writer};
use crate::gather::{Cell, Limits, OnConflict, Shards, Sketch as Estimate, Stats, shard_bits};
use crate::hash::{Digest, Hasher, KeyType};
use crate::leaves::Role;
use crate::math::chance::too_many;
use crate::plan::{Goal, Plan as Layers, Step, Structure};

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Round {
    /// [`Plan::sketch`] of every range, and [`Plan::with_sketch`].
    Sketch,
    /// [`Plan::slice`] of every slice, and [`join`](super::join).
    Build,
}

/// What was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SliceReport {
    /// Distinct keys of the slice.
    pub keys: u64,
    /// Distinct excluded keys of the slice.
    pub excluded: u64,
    /// Length of the slice.
    pub bytes: u64,
}

/// Plan of a filter that is built in slices: plain data, which is printed and read as JSON.
///
/// ```
/// use tamis::slices::{KeyRange, Plan, Round, Survey, join};
/// use tamis::{Digest, KeyType};
///
/// let options = tamis::Options::default().fpr(0.01).shard_bytes(4096);
/// let keys = tamis::Hasher::seeded(0).digests(&(0..20_000u64).collect::<Vec<_>>());
/// let of = |range: KeyRange| keys.iter().copied().filter(move |&digest| range.contains(digest));
///
/// let survey = Survey::new(&options, KeyRange::ALL, of(KeyRange::ALL), [])?;
/// let text = Plan::new(&options, KeyType::Integer, survey, 4)?.to_string();
///
/// let plan: Plan = text.parse()?; // on another machine
/// assert_eq!((plan.round(), plan.slices()), (Round::Build, 4));
/// let slices = (0..4).map(|number| plan.slice(number, of(plan.range(number)?), [])).collect::<Result<Vec<_>, _>>()?;
///
/// let filter = join(slices)?;
/// assert_eq!(filter.as_bytes(), options.build(0..20_000u64).finish()?.as_bytes());
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Plan {
    options: Options<'static>,
    /// log2 of the most slices that are wanted.
    most: u32,
    totals: Totals,
    /// About how many distinct excluded keys; 0 while that is not known and there are some.
    estimate: u64,
    /// As how many ordinary ones they are, and how often slices were built to find that out.
    like: u64,
    attempt: u32,
    design: Option<Arc<Design>>,
}

/// What follows from the counts.
#[derive(Debug)]
struct Design {
    layers: Layers,
    /// The first stage, if what passes it is to be counted.
    watched: Option<Structure>,
    shard_bits: u32,
    slice_bits: u32,
    stats: Stats,
    /// As the header has them.
    negatives: u64,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan of {} keys: {:?}", self.totals.keys, self.options)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().print())
    }
}

impl FromStr for Plan {
    type Err = Error;

    fn from_str(text: &str) -> Result<Plan, Error> {
        let lines = Lines::parse(text)?;
        let release: String = lines.read_text("release")?;
        if release != RELEASE || lines.read_number("tamis_plan", u64::MAX)? != VERSION {
            let release: String = release.chars().take(40).collect();
            let reason = format!("of release {}; expected {RELEASE}, as this one", release.escape_debug());
            return Err(wrong("plan", reason));
        }
        let mut options = text::read_options(&lines)?;
        options.key_type = Some(text::read_key_type(&lines)?);
        let count = |name| lines.read_number(name, MAX_KEYS);
        let plan = Plan {
            options: prepared_as_read(options)?,
            most: KeyRange::new(0, lines.read_number("most_slices", KeyRange::MAX.into())? as u32)?.bits,
            totals: Totals {
                keys: count("keys")?,
                set: lines.read_word("set")?,
                check: lines.read_word("check")?,
                listed: count("listed")?,
                excluded: count("excluded")?,
                conflicts: count("conflicts")?,
                weight: count("weight")?,
                conflict_weight: count("conflict_weight")?,
            },
            estimate: count("estimate")?,
            like: count("like")?,
            attempt: lines.read_number("attempt", ROUNDS.into())? as u32,
            design: None,
        };
        let Totals { keys, listed, excluded, conflicts, .. } = plan.totals;
        if excluded > listed || conflicts > keys.min(excluded) {
            return Err(lines.wrong("excluded"));
        }
        let many = excluded > Estimate::EXACT;
        if plan.estimate != excluded && !(many && (plan.estimate == 0 || plan.estimate >= Estimate::EXACT)) {
            return Err(lines.wrong("estimate"));
        }
        if plan.like < plan.estimate || (plan.attempt == 0 && plan.like != plan.estimate) {
            return Err(lines.wrong("like"));
        }
        let plan = plan.designed()?;
        match plan.lines().differs(&lines) {
            Some(name) => Err(lines.wrong(&name)),
            None => Ok(plan),
        }
    }
}

const RELEASE: &str = env!("CARGO_PKG_VERSION");
const VERSION: u64 = 1;

/// Options that slices have, with what is another machine's business left out.
pub(super) fn prepared(options: &Options<'_>) -> Result<Options<'static>, Error> {
    options.check()?;
    let refuse = |option: &'static str| Err(wrong(option, "not possible in slices; expected a build in one process"));
    match () {
        () if options.expecting => return refuse("with_workload"),
        () if options.papers != Papers::default() => return refuse("papers"),
        () if options.common.secret_beside => return refuse("secret_beside"),
        () if options.kind.name() == "custom" => return refuse("kind"),
        () => {}
    }
    let Options { goal, kind, layout, on_conflict, spare, capacity, common, .. } = options.clone().resolved();
    let common = Common {
        hasher: common.hasher,
        effort: common.effort,
        limits: common.limits,
        threads: common.threads,
        cancel: common.cancel,
        metadata: common.metadata,
        shard_keys: common.shard_keys,
        ..Common::default()
    };
    Ok(Options { goal, kind, layout, on_conflict, spare, capacity, common, ..Options::default() })
}

/// The same for options of a text, whose shards are cut already.
fn prepared_as_read(options: Options<'static>) -> Result<Options<'static>, Error> {
    options.check()?;
    Ok(options)
}

impl Plan {
    /// Plans a filter of keys of this type in at most so many slices, a power of two up to 4,096, from the survey of all ranges.
    ///
    /// # Errors
    ///
    /// [`BuildError::Slices`] if a range is missing, the survey has other options, or keys crowd in one shard: they were chosen, and
    /// need a secret. Else as a build with these options; a conflict has no positions.
    pub fn new(options: &Options<'_>, key_type: KeyType, survey: Survey, slices: u32) -> Result<Plan, Error> {
        Plan::of_prepared(prepared(options)?, key_type, survey, slices)
    }

    pub(super) fn of_prepared(
        mut options: Options<'static>,
        key_type: KeyType,
        survey: Survey,
        slices: u32,
    ) -> Result<Plan, Error> {
        let (totals, cells) = survey.complete(&options)?;
        options.key_type = Some(if options.common.hasher.is_foreign() { KeyType::Digest } else { key_type });
        if options.on_conflict == OnConflict::Error && totals.conflicts > 0 {
            return Err(BuildError::Conflict { count: totals.conflicts, first: vec![] }.into());
        }
        let most = KeyRange::new(0, slices)
            .map_err(|_| wrong("slices", format!("{slices}; expected a power of two, 1 to {}", KeyRange::MAX)))?;
        let (most, estimate) = (most.bits, if totals.excluded > Estimate::EXACT { 0 } else { totals.excluded });
        let plan = Plan { options, most, totals, estimate, like: estimate, attempt: 0, design: None };
        if plan.is_crowded(&cells) {
            return Err(crowded());
        }
        plan.designed()
    }

    /// The number of shards before conflicts drop keys.
    fn bits_of_all(&self) -> u32 {
        shard_bits(self.totals.keys, self.options.common.shard_keys)
    }

    /// Whether cells show that a shard has far more keys than chance would give it.
    fn is_crowded(&self, cells: &[Cell]) -> bool {
        let bits = self.bits_of_all();
        let Some(finer) = crate::gather::CELL_BITS.checked_sub(bits).filter(|_| bits > 0 && self.may_crowd()) else {
            return false;
        };
        let most = self.options.common.shard_keys as f64;
        let shards = cells.chunk_by(|a, b| a.number >> finer == b.number >> finer);
        shards.map(|cells| cells.iter().map(|cell| cell.keys).sum::<u64>()).any(|keys| too_many(keys as usize, most))
    }

    fn may_crowd(&self) -> bool {
        !self.options.common.hasher.is_secret()
    }

    /// Works out what follows from the counts.
    fn designed(mut self) -> Result<Plan, Error> {
        self.design = None;
        if self.round() == Round::Sketch {
            return Ok(self);
        }
        let Plan { options, totals, .. } = &self;
        let Totals { keys, excluded, conflicts, weight, conflict_weight, .. } = *totals;
        let (dropped, kept) = match options.on_conflict {
            OnConflict::Drop => (conflicts, 0),
            OnConflict::Keep => (0, conflicts),
            OnConflict::Error => (0, 0),
        };
        let stats = Stats {
            keys: keys - dropped,
            negatives: excluded - kept,
            negative_weight: if dropped > 0 { weight.saturating_add(conflict_weight) } else { weight },
            conflicts,
            ..Stats::default()
        };
        let known = self.estimate.saturating_sub(kept);
        options.check_excluded(stats.keys, known)?;
        let (request, layers, watched) = planned(stats.keys, self.like, options)?;
        let watched = watched.filter(|_| self.attempt < ROUNDS);
        let promised = !matches!(request.goal, Goal::ExcludedFpr(_)) && layers.promises(request.keys);
        let shard_bits = if layers.steps.is_empty() { 0 } else { shard_bits(stats.keys, options.common.shard_keys) };
        let (slice_bits, negatives) = (shard_bits.min(self.most), if promised { known } else { 0 });
        self.design = Some(Arc::new(Design { layers, watched, shard_bits, slice_bits, stats, negatives }));
        Ok(self)
    }

    fn design(&self) -> Result<&Design, Error> {
        self.design.as_deref().ok_or_else(|| wrong("plan", "the sketch is missing; expected with_sketch first"))
    }

    fn lines(&self) -> Lines {
        let (mut lines, totals) = (Lines::new(), &self.totals);
        lines.number("tamis_plan", VERSION);
        lines.text("release", RELEASE);
        lines.text("round", if self.round() == Round::Sketch { "sketch" } else { "build" });
        lines.number("slices", self.slices().into());
        lines.number("shards", self.shards());
        let layer = |step: &Step| format!("{} {}", role(step.role), step.structure.name());
        let layers = self.design.iter().flat_map(|design| design.layers.steps.iter().map(layer));
        lines.text("layers", layers.collect::<Vec<_>>().join(", "));
        lines.text("key_type", self.options.key_type());
        text::put_options(&mut lines, &self.options);
        lines.number("most_slices", 1 << self.most);
        lines.number("keys", totals.keys);
        lines.word("set", totals.set);
        lines.word("check", totals.check);
        lines.number("listed", totals.listed);
        lines.number("excluded", totals.excluded);
        lines.number("conflicts", totals.conflicts);
        lines.number("weight", totals.weight);
        lines.number("conflict_weight", totals.conflict_weight);
        lines.number("estimate", self.estimate);
        lines.number("like", self.like);
        lines.number("attempt", self.attempt.into());
        lines
    }

    /// Sets what a slice may use; the text of the plan does not have it.
    pub fn limits(mut self, limits: Limits) -> Plan {
        self.options.common.limits = limits;
        self
    }

    /// Writes the text of the plan to a file, which is there whole or not at all. Only its owner may read one with a secret.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        to_file(path.as_ref(), self.writes_secret(), |out| Ok(out.write_all(self.to_string().as_bytes())?))
    }

    /// Stops slices with [`BuildError::Cancelled`] soon after this flag becomes true.
    pub fn cancel(mut self, flag: Arc<AtomicBool>) -> Plan {
        self.options.common.cancel = flag;
        self
    }

    /// Sets the number of threads of a slice; the text of the plan does not have it.
    pub fn threads(mut self, threads: usize) -> Plan {
        self.options.common.threads = threads;
        self
    }

    /// Returns what comes next.
    pub fn round(&self) -> Round {
        if self.estimate == 0 && self.totals.excluded > 0 { Round::Sketch } else { Round::Build }
    }

    /// Returns the number of slices: at most as many as are wanted, and one where the sketch is missing.
    pub fn slices(&self) -> u32 {
        self.design.as_ref().map_or(1, |design| 1 << design.slice_bits)
    }

    /// Returns the digests of a slice, as a range.
    ///
    /// # Errors
    ///
    /// [`BuildError::Slices`] if there is no slice of this number.
    pub fn range(&self, slice: u32) -> Result<KeyRange, Error> {
        let none = |_| wrong("slice", format!("{slice} of {}; expected less", self.slices()));
        KeyRange::new(slice, self.slices()).map_err(none)
    }

    /// Returns the slice that a digest belongs to.
    pub fn slice_of(&self, digest: Digest) -> u32 {
        digest.shard(self.design.as_ref().map_or(0, |design| design.slice_bits)) as u32
    }

    /// Returns the number of shards of the filter, 0 where the sketch is missing.
    pub fn shards(&self) -> u64 {
        self.design.as_ref().map_or(0, |design| 1 << design.shard_bits)
    }

    /// Returns the hash function that makes the digests.
    pub fn hasher(&self) -> &Hasher {
        &self.options.common.hasher
    }

    /// Returns the key type.
    pub fn key_type(&self) -> KeyType {
        self.options.key_type()
    }

    pub(super) fn set(&self) -> u64 {
        self.totals.set
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.options.common.stop()
    }

    /// Returns the number of distinct keys.
    pub fn keys(&self) -> u64 {
        self.totals.keys
    }

    /// Sketches the excluded keys of a range, which need not be that of a survey. For [`Round::Sketch`]; elsewhere nobody needs it.
    ///
    /// # Errors
    ///
    /// [`BuildError::Slices`] if a digest is not of this range; errors of limits and temporary files.
    pub fn sketch(&self, range: KeyRange, excluded: impl IntoIterator<Item = Digest>) -> Result<Sketch, Error> {
        self.gather_range(range).all([], excluded)?.sketch(self)
    }

    /// Starts a sketch whose digests come one by one: [`Gather::exclude`], then [`Gather::sketch`].
    pub fn gather_range(&self, range: KeyRange) -> Gather {
        Gather::prepared(self.options.clone(), range)
    }

    /// Goes on with the sketch of all ranges.
    ///
    /// # Errors
    ///
    /// [`BuildError::Slices`] if a range is missing or the sketch is for another plan; else as a build with these options.
    pub fn with_sketch(mut self, sketch: Sketch) -> Result<Plan, Error> {
        let distinct = sketch.complete(&self)?;
        let Totals { listed, excluded, .. } = self.totals;
        if self.round() == Round::Build {
            return Ok(self);
        }
        if distinct < Estimate::EXACT {
            let reason = format!("{distinct} excluded keys where {excluded} were surveyed; expected the same digests");
            return Err(wrong("sketch", reason));
        }
        // An attacker who knows all keys can still forge the estimate, but not beyond what came.
        self.estimate = distinct.min(listed + listed / 16);
        self.like = self.estimate;
        self.designed()
    }

    /// Builds a slice of the file, from the digests of its range, in any order, repeated or not.
    ///
    /// # Errors
    ///
    /// [`BuildError::Slices`] if a digest is not of this slice or the plan has no layers yet; else as a build with the plan's options.
    pub fn slice(
        &self,
        slice: u32,
        keys: impl IntoIterator<Item = Digest>,
        excluded: impl IntoIterator<Item = Digest>,
    ) -> Result<Bytes, Error> {
        self.gather(slice)?.all(keys, excluded)?.slice(self)
    }

    /// Builds a slice into a file, which is there whole or not at all: see [`slice`](Self::slice).
    ///
    /// # Errors
    ///
    /// As [`slice`](Self::slice), and [`Error::Io`] if the file cannot be written.
    pub fn slice_to(
        &self,
        path: impl AsRef<Path>,
        slice: u32,
        keys: impl IntoIterator<Item = Digest>,
        excluded: impl IntoIterator<Item = Digest>,
    ) -> Result<SliceReport, Error> {
        self.gather(slice)?.all(keys, excluded)?.slice_to(self, path)
    }

    /// Starts a slice whose digests come one by one.
    ///
    /// # Errors
    ///
    /// [`BuildError::Slices`] if there is no slice of this number, or the plan has no layers yet.
    pub fn gather(&self, slice: u32) -> Result<Gather, Error> {
        self.design()?;
        // Threads may have been set since.
        self.options.check()?;
        Ok(Gather::prepared(self.options.clone(), self.range(slice)?))
    }

    /// Writes a slice with what these options may use.
    pub(super) fn write(
        &self,
        options: &Options<'_>,
        slice: u32,
        sides: Sides,
        out: &mut dyn std::io::Write,
    ) -> Result<SliceReport, Error> {
        let Design { layers, shard_bits, slice_bits, stats, .. } = self.design()?;
        let common = &options.common;
        let stop = || common.stop();
        let Sides { keys, excluded } = sides;
        let check = checksum(&keys.cells(&stop)?);
        let counts = keys.count_sides(excluded.as_ref(), &stop)?;
        let shards = Shards::of_slice(*shard_bits, *stats, keys, excluded, self.options.on_conflict);
        if self.may_crowd() && shards.is_crowded_in(self.bits_of_all(), &stop)? {
            return Err(crowded());
        }
        let header = Header { keys: counts.keys, negatives: counts.negatives, ..self.header(Form::Slice)? };
        let kinds = layers.steps.iter().map(Step::kind).collect();
        let mut writer = Writer::new(out, &header, kinds)?;
        let first = (slice as usize) << (shard_bits - slice_bits);
        let range = first..first + (1 << (shard_bits - slice_bits));
        let left = if layers.steps.is_empty() { 0 } else { build_slice(&shards, layers, range, common, &mut writer)? };
        common.check_cancel()?;
        let head = SliceHead { slice, slice_bits: *slice_bits, check, left, plan: &self.to_string() };
        let contents = [head.encode(), writer.list()].concat();
        let bytes = writer.close(contents)?;
        Ok(SliceReport { keys: counts.keys, excluded: counts.negatives, bytes })
    }

    /// The header of the joined file, in this form.
    pub(super) fn header(&self, form: Form) -> Result<Header, Error> {
        let Design { layers, shard_bits, stats, negatives, .. } = self.design()?;
        let common = &self.options.common;
        let header = common.header(form, common.hasher.clone(), self.options.key_type())?;
        let may_change = layers.steps.iter().any(Step::may_change);
        Ok(Header { shard_bits: *shard_bits, keys: stats.keys, negatives: *negatives, may_change, ..header })
    }

    /// The steps of the joined file, as a directory names them.
    pub(super) fn kinds(&self) -> Result<Vec<[u8; 2]>, Error> {
        Ok(self.design()?.layers.steps.iter().map(Step::kind).collect())
    }

    /// What its slices add up to: keys, excluded keys, and the sum of cells.
    pub(super) fn sums(&self) -> [u64; 3] {
        [self.totals.keys, self.totals.excluded, self.totals.check]
    }

    pub(super) fn metadata(&self) -> &[u8] {
        &self.options.common.metadata
    }

    pub(super) fn writes_secret(&self) -> bool {
        self.options.common.writes_secret()
    }

    /// Where more excluded keys pass the first layer than chance lets through, the plan for that.
    pub(super) fn again(&self, left: u64) -> Result<Option<Plan>, Error> {
        let Some(watched) = &self.design()?.watched else { return Ok(None) };
        let Some(like) = more_like(left as usize, self.like, watched) else { return Ok(None) };
        Ok(Some(Plan { like, attempt: self.attempt + 1, ..self.clone() }.designed()?))
    }

    /// Returns the next plan, if the excluded keys were chosen so that more of them pass the first layer than chance lets through; all
    /// slices must then be built again. Nothing, if these slices can be joined. After at most four times they can.
    ///
    /// # Errors
    ///
    /// As [`join`](super::join).
    pub fn refine<S: Source>(&self, slices: impl IntoIterator<Item = S>) -> Result<Option<Plan>, Error> {
        let pieces =
            slices.into_iter().map(|slice| Piece::of_bytes(slice.into_bytes())).collect::<Result<Vec<_>, _>>()?;
        refined(self, pieces)
    }

    /// As [`refine`](Self::refine), of files, of which the directories alone are read.
    ///
    /// # Errors
    ///
    /// As [`join_to`](super::join_to).
    pub fn refine_files<P: AsRef<Path>>(&self, slices: impl IntoIterator<Item = P>) -> Result<Option<Plan>, Error> {
        let pieces = slices.into_iter().map(|slice| Piece::of_file(slice.as_ref())).collect::<Result<Vec<_>, _>>()?;
        refined(self, pieces)
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Positive => "positive",
        Role::Negative => "negative",
        Role::Exact => "exact",
    }
}

fn crowded() -> Error {
    wrong("keys", "too many in one shard, as keys that were chosen; expected others; use a secret, or one process")
}
