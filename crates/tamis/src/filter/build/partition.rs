//! keys that carry labels, and keys to exclude that do -> a partitioned filter.
//!
//! ```text
//!   (label, key) ──push──▶ Intake ──▶ Sorted ──┐           ┌──▶ Sealed, group 1 ──┐
//!                                              ├──Tally──▶ ├──▶ Sealed, group 2 ──┼──▶ Writer
//!   (label, key) ─exclude─▶ Intake ─▶ Sorted ──┘  groups   └──▶ ..              ──┘
//! ```
//!
//! Which labels share a group is known when all keys and negatives are counted, so both sides are gathered first, on
//! disk past the memory limit, and read twice: to be counted label by label, and to be handed to their groups. A group is
//! built like any filter, of digests that are a key's mixed with its label's. Its negatives pass its sieve on the way, which has
//! its last width from the start: their number is known.
//!
//! Labels have numbers in the order of their appearance. What a file holds is in the order of their digests.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::collect::{Sealed, same_key_type};
use super::groups::{Count, bound as bound_of, choose, share_bound};
use super::shard::build_shard;
use super::sieve::Sieve;
use super::{Common, Options, Progress, Report, to_file, to_memory, to_writer};
use crate::arch::arena::Output;
use crate::error::{BuildError, Error};
use crate::filter::open::decode_steps;
use crate::filter::partition::{Label, encode_table, fingerprint_width};
use crate::filter::query::Filter;
use crate::filter::steps::{self, Steps};
use crate::format::{Encoded, Form, Header, MAX_SHARD_BITS, Reader, Writer, put_varint};
use crate::gather::{Intake, Labelled, Limits, OnConflict, Shards, Sorted, Tally, Workspace, walk};
use crate::hash::attempts::ATTEMPTS;
use crate::hash::{Digest, Hasher, Key};
use crate::parallel::in_order;
use crate::plan::{Goal, Plan, Step};

/// Takes in keys that carry labels: issuers, countries, tables.
///
/// Every label spends the bits that its own number of excluded keys calls for, and the labels share one file. A key belongs to
/// its partition: it may be a member of one and excluded in another. Keys and excluded keys come in any order.
///
/// ```
/// let mut keys = tamis::stream().exact().partitioned();
/// for serial in 0..1000u64 {
///     keys.push("few", serial)?;
///     keys.exclude("few", 1000 + serial)?;
///     keys.push("many", 5000 + serial)?;
/// }
/// for serial in 0..50_000u64 {
///     keys.exclude("many", 10_000 + serial)?;
/// }
/// let filter = keys.finish()?;
/// assert_eq!(filter.partitions(), 2);
/// assert!(filter.contains_in("few", 77u64)? && !filter.contains_in("few", 1077u64)?);
/// assert!(filter.contains_in("many", 5077u64)? && !filter.contains_in("many", 10_077u64)?);
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct Partitioned<'a> {
    options: Options<'a>,
    workspace: Arc<Workspace>,
    labels: Labels,
    keys: Intake<Labelled>,
    negatives: Intake<Labelled>,
}

impl fmt::Debug for Partitioned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Partitioned, {} keys under {} labels: {:?}", self.keys.count(), self.labels.len(), self.options)
    }
}

/// The part of the workspace that either side may use, and that all groups together may use for either side.
const SHARE: u64 = 4;
/// The least that a group may use for one side: below, a run on disk is little more than its index.
const LEAST: u64 = 256 << 10;

impl<'a> Partitioned<'a> {
    pub(super) fn new(options: Options<'a>) -> Self {
        let workspace = options.common.workspace();
        let intake = || Intake::new(&workspace, workspace.memory / SHARE);
        let (keys, negatives) = (intake(), intake());
        Partitioned { options, workspace, labels: Labels::default(), keys, negatives }
    }

    /// Adds a key to a partition. Equal keys of one partition count once.
    ///
    /// # Errors
    ///
    /// As [`Collector::push`](super::Collector::push), and [`BuildError::TooMany`] above 2^32 - 1 partitions.
    pub fn push<K: Key>(&mut self, partition: impl AsRef<[u8]>, key: K) -> Result<(), BuildError> {
        let (digest, label) = self.record(partition.as_ref(), key)?;
        let Partitioned { options, keys, .. } = self;
        keys.push(Labelled { digest, label, ordinal: keys.count() }, &|| options.common.stop())?;
        options.common.report_progress(keys.count(), Progress::Read { keys: keys.count(), total: None })
    }

    /// Adds a key that must never match in this partition.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn exclude<K: Key>(&mut self, partition: impl AsRef<[u8]>, key: K) -> Result<(), BuildError> {
        let (digest, label) = self.record(partition.as_ref(), key)?;
        let Partitioned { options, negatives, .. } = self;
        negatives.push(Labelled { digest, label, ordinal: negatives.count() }, &|| options.common.stop())?;
        options.common.report_progress(negatives.count(), Progress::Excluded { keys: negatives.count(), total: None })
    }

    fn record<K: Key>(&mut self, label: &[u8], key: K) -> Result<(Digest, u32), BuildError> {
        same_key_type::<K>(&mut self.options.key_type)?;
        let hasher = &self.options.common.hasher;
        let (label, number) = self.labels.number(hasher, label)?;
        Ok((label.mix(key.digest(hasher)), number))
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
    pub fn finish_with_report(self) -> Result<(Filter, Report), Error> {
        let secret = self.options.common.needed_secret();
        let (bytes, report) = to_memory(|out| self.write(out))?;
        Ok((Filter::opened(bytes, secret)?, report))
    }

    /// Builds the filter into a file: see [`FilterBuilder::finish_to`](super::FilterBuilder::finish_to).
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::finish_to`](super::FilterBuilder::finish_to).
    pub fn finish_to(self, path: impl AsRef<Path>) -> Result<Report, Error> {
        to_file(path.as_ref(), self.options.common.writes_secret(), |out| self.write(out))
    }

    /// Builds the filter and writes it to `out`: see [`FilterBuilder::finish_into`](super::FilterBuilder::finish_into).
    ///
    /// # Errors
    ///
    /// As [`FilterBuilder::finish_into`](super::FilterBuilder::finish_into).
    pub fn finish_into(self, out: impl std::io::Write) -> Result<Report, Error> {
        to_writer(out, |out| self.write(out))
    }

    fn write(self, out: &mut dyn Output) -> Result<Report, Error> {
        let Partitioned { options, workspace, labels, keys, negatives } = self;
        options.check()?;
        options.common.report(Progress::Read { keys: keys.count(), total: Some(keys.count()) });
        if negatives.count() > 0 {
            options.common.report(Progress::Excluded { keys: negatives.count(), total: Some(negatives.count()) });
        }
        let stop = || options.common.stop();
        let (mut keys, mut negatives) = (keys.finish(&stop)?, negatives.finish(&stop)?);
        let tally = Tally::new(&keys, &negatives, labels.len(), options.on_conflict, &stop)?;
        let stats = tally.stats;
        options.check_excluded(stats.keys, stats.negatives)?;
        let counts = tally.keys.into_iter().zip(tally.negatives);
        let counts: Vec<Count> = counts.map(|(keys, negatives)| Count { keys, negatives }).collect();
        let (group_of, groups) = choose(&counts, options.goal);
        let labels = labels.sorted();

        let table = 8 * (labels.len() * (fingerprint_width(labels.len() as u64) + 1) + FRAME) as u64;
        let (group_of, groups) = (&group_of[..], &groups[..]);
        let conflicts = stats.conflicts > 0;
        let gather = Gather { options: &options, workspace: &workspace, groups, group_of, conflicts, table };
        let mut sealed = gather.keys(&keys, &negatives)?;
        let mut hasher = options.common.hasher.clone();
        let is_crowded = |found: bool, sealed: &Sealed| Ok::<_, BuildError>(found || sealed.is_crowded()?);
        if !hasher.is_secret() && sealed.iter().try_fold(false, is_crowded)? {
            drop(sealed);
            // As for keys without labels; these are mixed with their labels first.
            hasher = hasher.mixed(keys.set_hash(&stop)?);
            keys = keys.mapped(|digest| hasher.mix(digest), &stop)?;
            negatives = negatives.mapped(|digest| hasher.mix(digest), &stop)?;
            sealed = gather.keys(&keys, &negatives)?;
        }
        let parts = gather.plan(gather.negatives(sealed, keys, negatives)?)?;

        let header = Header {
            keys: stats.keys,
            // Where some of them may match, nothing is promised about any.
            negatives: if matches!(options.goal, Goal::ExcludedFpr(_)) { 0 } else { stats.negatives },
            may_change: parts.iter().flat_map(|part| &part.plan.steps).any(Step::may_change),
            ..options.common.header(Form::Partitioned, hasher, options.key_type())
        };
        out.expect(parts.iter().map(|part| part.bytes).sum::<u64>() + table / 8);
        let mut writer = Writer::new(out, &header, vec![])?.with_metadata(&options.common.metadata);
        let (lists, rates) = write_groups(&parts, groups, &options, &mut writer)?;

        // In the order of digests, for sums of rounded numbers depend on theirs.
        let bound = |&(_, number): &(Digest, u32)| {
            let (count, group) = (counts[number as usize], group_of[number as usize] as usize);
            match (group.checked_sub(1), options.goal) {
                (None, _) => 0.0,
                (Some(_), Goal::ExcludedFpr(share)) => share_bound(count, share),
                (Some(group), _) => bound_of(count, rates[group]),
            }
        };
        let bound: f64 = labels.iter().map(bound).sum();
        let mut directory = (bound.round() as u64).to_le_bytes().to_vec();
        put_varint(&mut directory, groups.len() as u64);
        directory.extend_from_slice(&lists);
        let entry = |&(digest, number): &(Digest, u32)| (Label::of(digest), group_of[number as usize]);
        let Some(table) = encode_table(labels.iter().map(entry), &mut directory) else {
            let (structure, attempts) = ("table of labels", ATTEMPTS);
            return Err(BuildError::Unsolvable { structure, keys: labels.len(), attempts }.into());
        };
        writer.payload(&table)?;
        let bytes = writer.close(directory)?;
        // The last shards do not check the flag, and a cancelled build leaves no file.
        options.common.check_cancel()?;
        Ok(Report { stats, bytes, workload: None })
    }
}

/// Bytes of a partitioned directory besides its lists of steps and the entries of its labels, at most, for one group.
const FRAME: usize = 8 + 1 + 1 + 10 + 10 + 5 + 5;

/// Numbers for labels, in the order of appearance.
#[derive(Default)]
struct Labels {
    numbers: HashMap<Digest, u32>,
    /// Most often a label comes again at once.
    last: Option<(Vec<u8>, Label, u32)>,
}

impl Labels {
    fn len(&self) -> usize {
        self.numbers.len()
    }

    fn number(&mut self, hasher: &Hasher, text: &[u8]) -> Result<(Label, u32), BuildError> {
        if let Some((last, label, number)) = &self.last
            && last == text
        {
            return Ok((*label, *number));
        }
        let label = Label::new(hasher, text);
        let next = u32::try_from(self.numbers.len()).ok().filter(|&next| next < u32::MAX);
        let next = next.ok_or(BuildError::TooMany { what: "partitions", most: u32::MAX.into() })?;
        let number = *self.numbers.entry(label.digest()).or_insert(next);
        // A label of a megabyte is not worth a copy.
        if text.len() <= 1024 {
            let mut copy = self.last.take().map(|(copy, ..)| copy).unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(text);
            self.last = Some((copy, label, number));
        }
        Ok((label, number))
    }

    fn sorted(self) -> Vec<(Digest, u32)> {
        let mut labels: Vec<(Digest, u32)> = self.numbers.into_iter().collect();
        labels.sort_unstable();
        labels
    }
}

/// Hands records to their groups.
struct Gather<'a> {
    options: &'a Options<'a>,
    workspace: &'a Arc<Workspace>,
    groups: &'a [Count],
    /// The group of each label, from 1 on.
    group_of: &'a [u8],
    /// Whether a key is excluded under its own label.
    conflicts: bool,
    /// Bits of the labels' table, which a budget has to pay for.
    table: u64,
}

/// A group that is ready to be built.
struct Part {
    shards: Shards,
    sieve: Sieve,
    plan: Plan,
    bytes: u64,
}

impl<'a> Gather<'a> {
    fn group(&self, record: &Labelled) -> Option<usize> {
        (*self.group_of.get(record.label as usize)? as usize).checked_sub(1)
    }

    /// A group's share of something, by how many there are of all.
    fn share(&self, whole: u64, part: u64, of: impl Fn(&Count) -> u64) -> u64 {
        let all: u64 = self.groups.iter().map(of).sum();
        (whole as u128 * part as u128 / all.max(1) as u128) as u64
    }

    fn keys(&self, keys: &Sorted<Labelled>, negatives: &Sorted<Labelled>) -> Result<Vec<Sealed<'a>>, Error> {
        let stop = || self.options.common.stop();
        let whole = self.workspace.memory / SHARE;
        let room = |count: &Count| self.share(whole, count.keys, |count| count.keys).max(LEAST);
        let mut intakes: Vec<Intake<Digest>> =
            self.groups.iter().map(|count| Intake::new(self.workspace, room(count))).collect();
        let dropped = (self.conflicts && self.options.on_conflict == OnConflict::Drop).then_some(negatives);
        walk(keys, dropped, &stop, &mut |records| {
            for record in records {
                if let Some(intake) = self.group(record).and_then(|group| intakes.get_mut(group)) {
                    intake.push(record.digest, &stop)?;
                }
            }
            Ok::<(), Error>(())
        })?;
        let seal = |(intake, count): (Intake<Digest>, &Count)| {
            let room = self.share(whole, count.negatives, |count| count.negatives).max(LEAST);
            let options = self.group_options(count);
            Sealed::of_group(intake.finish(&stop)?, count.negatives, room, self.workspace, options)
        };
        intakes.into_iter().zip(self.groups).map(seal).collect()
    }

    /// The same with their negatives. What the sides held is gone afterwards.
    fn negatives(
        &self,
        mut sealed: Vec<Sealed<'a>>,
        keys: Sorted<Labelled>,
        negatives: Sorted<Labelled>,
    ) -> Result<Vec<Sealed<'a>>, Error> {
        let kept = (self.conflicts && self.options.on_conflict == OnConflict::Keep).then_some(keys);
        walk(&negatives, kept.as_ref(), &|| self.options.common.stop(), &mut |records| {
            for record in records {
                if let Some(sealed) = self.group(record).and_then(|group| sealed.get_mut(group)) {
                    sealed.exclude_digest(record.digest)?;
                }
            }
            Ok::<(), Error>(())
        })?;
        Ok(sealed)
    }

    fn plan(&self, sealed: Vec<Sealed>) -> Result<Vec<Part>, Error> {
        let part = |(sealed, count): (Sealed, &Count)| {
            let (shards, mut sieve) = sealed.into_parts()?;
            if shards.bits > MAX_SHARD_BITS {
                return Err(BuildError::TooManyKeys { keys: count.keys, place: "group of partitions" }.into());
            }
            let planned = sieve.plan(&shards, &self.group_options(count));
            let explain = |error| if let Error::Build(error) = error { self.explain(error).into() } else { error };
            let (request, plan) = planned.map_err(explain)?;
            let bytes = plan.bytes(&request);
            Ok(Part { shards, sieve, plan, bytes })
        };
        sealed.into_iter().zip(self.groups).map(part).collect()
    }

    /// What a group is built with.
    fn group_options(&self, count: &Count) -> Options<'a> {
        let options = self.options;
        let goal = match options.goal {
            Goal::BitsPerKey(bits) => Goal::BitsPerKey(bits - self.table as f64 / count.keys.max(1) as f64),
            goal @ (Goal::Fpr(_) | Goal::Exact | Goal::ExcludedFpr(_)) => goal,
        };
        let memory = self.share(options.common.limits.memory, count.keys, |count| count.keys);
        let limits = Limits { memory, ..options.common.limits.clone() };
        // Conflicts are settled, and progress is told of all groups together.
        let common = Common { limits, progress: None, ..options.common.clone() };
        Options { goal, on_conflict: OnConflict::Error, places: false, common, ..options.clone() }
    }

    /// A budget that is too small was meant for labels and keys.
    fn explain(&self, error: BuildError) -> BuildError {
        let Goal::BitsPerKey(given) = self.options.goal else { return error };
        let keys: u64 = self.groups.iter().map(|count| count.keys).sum();
        BuildError::PartitionTable { cause: error.into(), given, table: self.table as f64 / keys.max(1) as f64 }
    }
}

/// Builds and writes all groups, several shards at a time whichever group they are of; returns their part of the
/// directory, and the rates that their bounds are for.
fn write_groups(
    parts: &[Part],
    groups: &[Count],
    options: &Options,
    writer: &mut Writer<'_>,
) -> Result<(Vec<u8>, Vec<f64>), Error> {
    // A list of no steps has no parts to shard.
    let bits = |part: &Part| if part.plan.steps.is_empty() { 0 } else { part.shards.bits };
    let mut jobs = vec![];
    for (group, part) in parts.iter().enumerate().filter(|(_, part)| !part.plan.steps.is_empty()) {
        jobs.extend((0..part.shards.count()).map(|shard| (group, shard)));
    }
    // Fewer shards than threads: what can be done on several threads inside a shard is.
    let inside = (options.common.threads / jobs.len().max(1)).max(1);
    let work = |job: usize| {
        let (group, shard) = jobs[job];
        let Part { shards, sieve, plan, .. } = &parts[group];
        build_shard(shards, plan, sieve.first(plan), shard, inside, None, &|| options.common.stop())
    };
    writer.start(vec![], 0);
    let mut lists = vec![writer.list(); parts.len()];
    in_order(jobs.len(), options.common.threads, work, |job, built: Vec<Encoded>| {
        let (group, shard) = jobs[job];
        let Part { shards, plan, .. } = &parts[group];
        if shard == 0 {
            writer.start(plan.steps.iter().map(Step::kind).collect(), bits(&parts[group]));
        }
        writer.shard(&built)?;
        if shard + 1 == shards.count() {
            lists[group] = writer.list();
        }
        options.common.report(Progress::Built { shards: job as u64 + 1, total: jobs.len() as u64 });
        Ok(())
    })?;

    let (mut directory, mut rates) = (vec![], vec![]);
    for ((part, count), list) in parts.iter().zip(groups).zip(&lists) {
        for number in [bits(part) as u64, count.keys, count.negatives] {
            put_varint(&mut directory, number);
        }
        directory.extend_from_slice(list);
        let steps = decode_steps(&mut Reader::new(list, "directory"), bits(part), 0)?;
        let steps = Steps::new(steps, &Bytes::new());
        let rate = steps::rate(&steps);
        rates.push(match options.goal {
            Goal::Exact => 1.0,
            // More negatives than unlisted keys call for make a filter stricter than its goal.
            Goal::Fpr(asked) if count.negatives > 0 => asked.max(rate),
            Goal::Fpr(_) | Goal::BitsPerKey(_) | Goal::ExcludedFpr(_) => rate,
        });
    }
    Ok((directory, rates))
}
