//! a filter of yesterday + the lists of today -> a patch, or one file of a filter and its patches.
//!
//! ```text
//!   listed key ──▶ digest ──base and patches──▶ wrong ──▶ keys      ┐
//!                                               right ──▶ excluded  ┴──▶ a filter of the first against the second, or a list
//! ```
//!
//! Every listed key is queried as it comes, and both sides are gathered like the keys of any filter: on disk past the memory limit.
//!
//! Members are gathered apart first, by their answer, and so are the members of the old list. One pass over both, in order, finds
//! the old keys that are no members any more (an equal key has an equal answer, so only those of one answer are compared), and
//! counts distinct members. How many members of the base are in neither list follows from counts alone ([`Census`]).

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

use super::collect::Collector;
use super::{Options, Papers, to_file, to_memory};
use crate::arch::arena::Output;
use crate::error::{BuildError, Error};
use crate::filter::partition::Label;
use crate::filter::patch::{Kind as PatchKind, MAX_LISTED, MAX_PATCHES, Patch, encode_list, list_hash};
use crate::filter::patched::Patched;
use crate::filter::query::Filter;
use crate::format::{Form, Header, Writer, bytes_of, put_varint};
use crate::gather::{Intake, OnConflict, together};
use crate::hash::attempts::{ATTEMPTS, SetHash, numbers};
use crate::hash::{Digest, Hasher, Key};
use crate::plan::{Goal, Kind, Layout};

/// Salts that a list is tried with: of some, the one that takes the fewest bits.
const LIST_SALTS: usize = 4;
/// The largest rate of a list: where few other keys are listed, hardly any bits would tell them apart.
const LIST_RATE: f64 = 1.0 / 256.0;
/// A base has a rate of its own if it matches fewer unlisted keys than this part of what its excluded keys alone call for.
const OWN_RATE: f64 = 0.25;
/// The rate of a patch behind a base of its own rate, as a part of that.
const RATE_SHARE: f64 = 0.01;
/// The rate of a patch where every listed key changed: an exact filter of it would flip everything.
const RATE_WITHOUT_OTHERS: f64 = 0.01;

/// Parts of half of the memory, of which the collector has the other half: for members that the filter rejects and those that it
/// matches, and the same for old keys.
const MEMBER_SHARES: [u64; 2] = [8, 2];
const OLD_SHARES: [u64; 2] = [8, 4];

/// What the contents of a patch begin with, and its partitions.
#[derive(Clone, Default)]
pub(super) struct PatchHead {
    contents: Vec<u8>,
    pub(super) labels: Vec<u8>,
    census: Census,
}

impl PatchHead {
    /// The contents, up to the list or the layers; `header` is that of the patch, with `conflicts` keys of both lists.
    pub(super) fn contents(&self, header: &Header, conflicts: u64) -> Vec<u8> {
        let mut contents = self.contents.clone();
        let (members, delisted) = self.census.result(header, conflicts);
        for count in [members, *delisted.start(), delisted.end() - delisted.start()] {
            put_varint(&mut contents, count);
        }
        contents
    }
}

/// Distinct keys, counted: what is known about members of the base that are in neither list of today.
///
/// All members of the file before match, and so do keys that were delisted before. Less the matching keys that are listed today or
/// turned off, they are delisted. That is the least number: a listed key that matches by chance counts as a member and hides a delisted
/// one. About how many do follows from the rate and from the listed keys that do not match.
#[derive(Clone, Default)]
struct Census {
    /// Members of the file before, and its delisted keys.
    before: u64,
    delisted: (u64, u64),
    /// The rate of unlisted keys.
    rate: f64,
    /// Members of today by their answer.
    members: [u64; 2],
    /// Old keys by their answer, if there is an old list.
    old: [u64; 2],
    has_old: bool,
    /// Members that gave way to excluded keys: those that the filter rejects.
    settled: u64,
    /// Whether members give way.
    yields: bool,
}

impl Census {
    /// The number of members of today, and how many keys are delisted: at least, and about at most.
    fn result(&self, header: &Header, conflicts: u64) -> (u64, RangeInclusive<u64>) {
        let [rejected, matched] = self.members;
        let both = if self.yields { conflicts } else { 0 };
        let rejected = rejected.saturating_sub(self.settled);
        // Excluded or old keys that match.
        let off = header.keys.saturating_sub(rejected);
        let accounted = (matched + off).saturating_sub(both);
        let (least, most) = self.delisted;
        let [least, most] = [least, most].map(|delisted| self.before.saturating_add(delisted));
        let by_chance = |rejected: u64| (rejected as f64 * self.rate / (1.0 - self.rate).max(f64::EPSILON)) as u64;
        let excluded = header.negatives.saturating_sub(matched).saturating_add(off);
        let hidden = by_chance(rejected).saturating_add(off.min((excluded as f64 * self.rate) as u64));
        let least = least.saturating_sub(accounted);
        let unlisted = most.min(most.saturating_add(hidden).saturating_sub(accounted));
        let [rejected_old, matched_old] = self.old;
        let not_old = most.saturating_add(by_chance(rejected_old)).saturating_sub(matched_old);
        let most = unlisted.min(if self.has_old { not_old } else { most }).max(least);
        ((rejected + matched).saturating_sub(both), least..=most)
    }
}

/// Builder of a [`Patch`]: takes the lists of today.
///
/// Both lists are given as a whole, as for a new filter. Of keys that are in neither of them, members of the file before go on matching
/// unless [`push_old`](Self::push_old) names them, and others may get any answer.
///
/// ```
/// let mut keys = tamis::stream().exact().partitioned();
/// keys.push("DE", 17)?;
/// keys.exclude("FR", 17)?;
/// let yesterday = keys.finish()?;
///
/// let mut diff = yesterday.diff()?;
/// diff.exclude_in("DE", 17)?;
/// diff.push_in("FR", 17)?;
/// diff.push_in("IT", 5)?;
/// let today = yesterday.with_patches([diff.finish()?])?;
/// assert!(!today.contains_in("DE", 17)? && today.contains_in("FR", 17)? && today.contains_in("IT", 5)?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[must_use = "nothing is built before `finish`"]
pub struct Diff<'a> {
    filter: Filter,
    collector: Collector<'a>,
    ends: [[u8; 16]; 2],
    /// The changed keys, while they are few.
    few: Option<BTreeSet<Digest>>,
    /// The list that gives way where a key is in both: that of the members, or the other.
    yields: Option<bool>,
    /// Changed keys of that list, until it is known which of them the other list has too.
    pending: Vec<Digest>,
    /// How many of them memory is for.
    most_pending: u64,
    unchanged: u64,
    /// Fingerprints of partitions that are new.
    labels: BTreeSet<u64>,
    /// Members by their answer, until all are known.
    members: [Intake<Digest>; 2],
    /// The same of the old list.
    old: [Intake<Digest>; 2],
    /// Most often a partition comes again at once.
    last: Option<(Vec<u8>, List, Label)>,
}

/// Where a key comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Members,
    Excluded,
    Old,
}

impl fmt::Debug for Diff<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Diff of {:?}", self.filter)
    }
}

impl Filter {
    /// Returns a builder of the patch that makes this filter answer as the lists of today say.
    ///
    /// # Errors
    ///
    /// As [`diff_with`](Self::diff_with).
    pub fn diff<'a>(&self) -> Result<Diff<'a>, BuildError> {
        self.diff_with(Options::default())
    }

    /// Returns [`diff`](Self::diff) with options: limits, threads, effort, [`on_conflict`](Options::on_conflict), and
    /// [`fpr`](Options::fpr), the largest share of unlisted keys that the patch may flip.
    ///
    /// By default a patch of an exact filter is exact, which makes it smallest. If the filter has an fpr far below that of an exact
    /// one, the fpr of the patch is a hundredth of it.
    ///
    /// # Errors
    ///
    /// [`BuildError::Patch`] if the filter has 128 patches; [`BuildError::NoEffect`] for options that patches do not have.
    pub fn diff_with<'a>(&self, options: Options<'a>) -> Result<Diff<'a>, BuildError> {
        if self.patches().len() as u64 >= MAX_PATCHES {
            return Err(BuildError::Patch { reason: "the filter has 128 patches; expected fewer; build it again" });
        }
        let set = |goals: [bool; 3]| goals.iter().any(|&set| set);
        let goals = options.goals;
        let unused = [
            ("bits_per_key", goals.bits_per_key.is_some()),
            ("excluded_fpr", goals.excluded_fpr.is_some()),
            ("workload_fpr", set([goals.workload_fpr.is_some(), goals.unlisted_share.is_some(), options.expecting])),
            (
                "kind",
                set([options.kind != Kind::Auto, options.layout != Layout::Auto, options.papers != Papers::default()]),
            ),
            ("capacity", options.capacity.is_some() || options.spare != 0.0),
            ("hasher", options.common.hasher != Hasher::seeded(0) || options.common.secret_beside),
        ];
        if let Some((option, _)) = unused.iter().find(|(_, set)| *set) {
            return Err(BuildError::NoEffect {
                option,
                needs: "limits, threads, effort, on_conflict or fpr for a patch",
            });
        }
        // Of a key in both lists one record is changed and the other is not. The list that gives way decides which of them counts.
        let (yields, on_conflict) = match options.on_conflict {
            OnConflict::Error => (None, OnConflict::Error),
            OnConflict::Keep => (Some(false), OnConflict::Keep),
            OnConflict::Drop => (Some(true), OnConflict::Keep),
        };
        let most_pending = options.common.limits.memory / size_of::<Digest>() as u64;
        let mut options = Options { key_type: Some(self.key_type()), places: false, on_conflict, ..options };
        let base = self.clone().with_chain(None).fpr();
        let exact = self.len() as f64 / (self.len() + self.excluded_len()).max(1) as f64;
        match options.goals.fpr {
            Some(_) => {}
            None if base > 0.0 && base < OWN_RATE * exact => options.goals.fpr = Some(RATE_SHARE * base),
            None => options.goals.exact = true,
        }
        let identity = crate::format::identity(self.file());
        let ends = [identity, self.patches().last().map_or(identity, Patch::identity)];
        options.common.limits.memory /= 2;
        let collector = options.start();
        let workspace = collector.workspace();
        let intakes = |shares: [u64; 2]| shares.map(|share| Intake::new(workspace, workspace.memory / share));
        let (members, old) = (intakes(MEMBER_SHARES), intakes(OLD_SHARES));
        Ok(Diff {
            filter: self.clone(),
            collector,
            ends,
            few: Some(BTreeSet::new()),
            yields,
            pending: vec![],
            most_pending,
            unchanged: 0,
            labels: BTreeSet::new(),
            members,
            old,
            last: None,
        })
    }
}

impl Patched {
    /// Returns a builder of the next patch: see [`Filter::diff`].
    ///
    /// # Errors
    ///
    /// As [`Filter::diff_with`].
    pub fn diff<'a>(&self) -> Result<Diff<'a>, BuildError> {
        self.filter().diff()
    }

    /// Returns a builder of the next patch: see [`Filter::diff_with`].
    ///
    /// # Errors
    ///
    /// As [`Filter::diff_with`].
    pub fn diff_with<'a>(&self, options: Options<'a>) -> Result<Diff<'a>, BuildError> {
        self.filter().diff_with(options)
    }

    /// Returns one filter of the base and its patches, in memory. It needs no lists.
    ///
    /// ```
    /// let base = tamis::build(0..500).exclude(500..4000).exact().finish()?;
    /// let mut diff = base.diff()?;
    /// (0..501).try_for_each(|key| diff.push(key))?;
    /// (501..4000).try_for_each(|key| diff.exclude(key))?;
    /// let one = base.with_patches([diff.finish()?])?.finish()?;
    /// let again = tamis::Filter::open(one.into_bytes())?;
    /// assert!(again.contains(500)? && !again.contains(501)?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if the base cannot be opened again, because its secret is kept beside it and is another one.
    pub fn finish(&self) -> Result<Filter, Error> {
        let (bytes, ()) = to_memory(|out| self.write(out))?;
        Ok(Filter::opened(bytes, self.filter().needed_secret())?)
    }

    /// Writes the file of [`finish`](Self::finish), which appears, or replaces an older one, when it is complete.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let filter = self.filter();
        let inside = filter.hasher().is_written();
        to_file(path.as_ref(), inside, |out| self.write(out))
    }

    fn write(&self, out: &mut dyn Output) -> Result<(), Error> {
        let (base, patches) = (self.filter().file(), self.patches());
        if patches.is_empty() {
            return Ok(out.write_all(base)?);
        }
        let mut contents = vec![PatchKind::Chain as u8];
        put_varint(&mut contents, patches.len() as u64);
        for file in std::iter::once(&base[..]).chain(patches.iter().map(Patch::as_bytes)) {
            put_varint(&mut contents, file.len() as u64);
        }
        let (keys, negatives) = (self.filter().len(), self.filter().excluded_len());
        // A release reads the whole only if it reads all of its files.
        let may_change = crate::format::may_change(base) || patches.iter().any(Patch::may_change);
        let header = Header::new(Form::Patch, Hasher::seeded(0), self.key_type());
        let header = Header { keys, negatives, may_change, ..header };
        let mut writer = Writer::new(out, &header, vec![])?.with_metadata(self.filter().metadata());
        writer.payload(base)?;
        patches.iter().try_for_each(|patch| writer.payload(patch.as_bytes()))?;
        writer.close(contents)?;
        Ok(())
    }
}

impl Diff<'_> {
    /// Adds a member of today.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] if the key type is not the filter's or the filter is partitioned, and as
    /// [`Collector::push`](super::Collector::push).
    pub fn push<K: Key>(&mut self, key: K) -> Result<(), Error> {
        let digest = self.filter.digest_of(&key)?;
        self.take(digest, None, List::Members)
    }

    /// Adds an excluded key of today.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn exclude<K: Key>(&mut self, key: K) -> Result<(), Error> {
        let digest = self.filter.digest_of(&key)?;
        self.take(digest, None, List::Excluded)
    }

    /// Adds a member of a partition of today.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push); the filter must be partitioned.
    pub fn push_in<K: Key>(&mut self, partition: impl AsRef<[u8]>, key: K) -> Result<(), Error> {
        self.take_in(partition.as_ref(), key, List::Members)
    }

    /// Adds an excluded key of a partition of today.
    ///
    /// # Errors
    ///
    /// As [`push_in`](Self::push_in).
    pub fn exclude_in<K: Key>(&mut self, partition: impl AsRef<[u8]>, key: K) -> Result<(), Error> {
        self.take_in(partition.as_ref(), key, List::Excluded)
    }

    /// Adds a key of the old list, the members before: if it is no member today, the patch turns it off, as if it were excluded.
    ///
    /// Without the old list, members of the base that are in neither list of today go on matching. [`Patch::delisted`] says how many
    /// they are.
    ///
    /// ```
    /// let monday = tamis::build(["ann", "bob", "eve"]).exclude(["joe"]).fpr(0.01).finish()?;
    /// let mut diff = monday.diff()?;
    /// diff.push("ann")?;
    /// diff.exclude("joe")?;
    /// ["ann", "bob", "eve"].iter().try_for_each(|key| diff.push_old(key))?;
    /// let tuesday = monday.with_patches([diff.finish()?])?;
    /// assert!(tuesday.contains("ann")? && !tuesday.contains("bob")? && !tuesday.contains("eve")?);
    /// assert_eq!(tuesday.delisted(), 0..=0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_old<K: Key>(&mut self, key: K) -> Result<(), Error> {
        let digest = self.filter.digest_of(&key)?;
        self.take(digest, None, List::Old)
    }

    /// Adds a key of the old list and its partition: see [`push_old`](Self::push_old).
    ///
    /// # Errors
    ///
    /// As [`push_in`](Self::push_in).
    pub fn push_old_in<K: Key>(&mut self, partition: impl AsRef<[u8]>, key: K) -> Result<(), Error> {
        self.take_in(partition.as_ref(), key, List::Old)
    }

    fn take_in<K: Key>(&mut self, partition: &[u8], key: K, list: List) -> Result<(), Error> {
        let label = match &self.last {
            Some((last, of, label)) if last == partition && *of == list => *label,
            _ => {
                let label = self.filter.label(partition);
                if !self.filter.has_partition(partition)? && list != List::Old {
                    self.labels.insert(label.fingerprint(0, 8));
                }
                self.last = Some((partition.to_vec(), list, label));
                label
            }
        };
        let digest = self.filter.digest_of_label(&label, &key)?;
        self.take(digest, Some(&label), list)
    }

    fn take(&mut self, digest: Digest, label: Option<&Label>, list: List) -> Result<(), Error> {
        let answer = self.filter.answer_listed(label, digest);
        let intake = match list {
            List::Excluded => return self.put(digest, answer, false),
            List::Members => &mut self.members[answer as usize],
            List::Old => &mut self.old[answer as usize],
        };
        let common = &self.collector.options().common;
        Ok(intake.push(digest, &|| common.stop())?)
    }

    /// Puts the members on their side, and the old keys that are none: they count as excluded.
    fn put_members(&mut self) -> Result<Census, Error> {
        let common = self.collector.options().common.clone();
        let stop = || common.stop();
        let take = |intake: &mut Intake<Digest>| std::mem::replace(intake, Intake::new(self.collector.workspace(), 0));
        let (members, old) = (self.members.each_mut().map(take), self.old.each_mut().map(take));
        let last = self.filter.patches().last();
        let mut census = Census {
            before: last.map_or(self.filter.len(), Patch::members),
            delisted: self.filter.delisted().into_inner(),
            rate: self.filter.fpr(),
            has_old: old.iter().any(|old| old.count() > 0),
            ..Census::default()
        };
        for (answer, (members, old)) in [false, true].into_iter().zip(members.into_iter().zip(old)) {
            together(&members.finish(&stop)?, &old.finish(&stop)?, &stop, |members, old| {
                census.members[answer as usize] += members.len() as u64;
                census.old[answer as usize] += old.len() as u64;
                for &digest in old.iter().filter(|digest| members.binary_search(digest).is_err()) {
                    if answer { self.take_changed(digest)? } else { self.put(digest, false, false)? }
                }
                members.iter().try_for_each(|&digest| self.put(digest, answer, true))
            })?;
        }
        Ok(census)
    }

    /// Puts a key, which the filter answers so, on its side.
    fn put(&mut self, digest: Digest, answer: bool, member: bool) -> Result<(), Error> {
        if answer == member {
            self.unchanged += 1;
            return Ok(self.collector.exclude_digest(digest)?);
        }
        if self.yields == Some(member) {
            if self.pending.len() as u64 >= self.most_pending {
                let bytes = self.most_pending * size_of::<Digest>() as u64;
                return Err(BuildError::MemoryLimit { bytes }.into());
            }
            self.pending.push(digest);
            return Ok(());
        }
        self.take_changed(digest)
    }

    fn take_changed(&mut self, digest: Digest) -> Result<(), Error> {
        if let Some(few) = &mut self.few {
            few.insert(digest);
            if few.len() as u64 > MAX_LISTED {
                self.few = None;
            }
        }
        Ok(self.collector.push_digest(digest)?)
    }

    /// Puts the changed keys of the list that gives way on their side: those that the other list has too did not change, and are
    /// counted.
    fn settle(&mut self) -> Result<u64, Error> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_unstable();
        pending.dedup();
        let mut both = vec![false; pending.len()];
        if !pending.is_empty() {
            self.collector.scan_excluded(|digests| {
                for digest in digests {
                    if let Ok(at) = pending.binary_search(digest) {
                        both[at] = true;
                    }
                }
                Ok(())
            })?;
        }
        let settled = both.iter().filter(|both| **both).count() as u64;
        pending
            .into_iter()
            .zip(both)
            .filter(|(_, both)| !both)
            .try_for_each(|(digest, _)| self.take_changed(digest))?;
        Ok(settled)
    }

    /// Builds the patch in memory.
    ///
    /// # Errors
    ///
    /// [`BuildError::Conflict`] if a key is a member and excluded, unless [`Options::on_conflict`] says which;
    /// [`BuildError::MemoryLimit`] if it does, and the changed keys of the list that gives way exceed the memory limit; and as
    /// [`FilterBuilder::finish`](super::FilterBuilder::finish).
    pub fn finish(self) -> Result<Patch, Error> {
        let (bytes, ()) = to_memory(|out| self.write(out))?;
        Ok(Patch::opened(bytes, None)?)
    }

    /// Builds the patch into a file, which appears, or replaces an older one, when it is complete.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish), and [`Error::Io`] if the file cannot be written.
    pub fn finish_to(self, path: impl AsRef<Path>) -> Result<(), Error> {
        to_file(path.as_ref(), false, |out| self.write(out))
    }

    fn write(mut self, out: &mut dyn Output) -> Result<(), Error> {
        let mut census = self.put_members()?;
        let settled = self.settle()?;
        if self.yields == Some(true) {
            (census.yields, census.settled) = (true, settled);
        }
        let Diff { filter, mut collector, ends, few, unchanged, labels, .. } = self;
        let number = filter.patches().len() as u64 + 1;
        let head = |kind: PatchKind| {
            let mut contents = vec![kind as u8];
            put_varint(&mut contents, number);
            contents.extend_from_slice(ends[..if number == 1 { 1 } else { 2 }].as_flattened());
            put_varint(&mut contents, labels.len() as u64);
            let labels = bytes_of(&labels.iter().copied().collect::<Vec<_>>());
            PatchHead { contents, labels, census }
        };
        if let Some(few) = few {
            let header = Header::new(Form::Patch, Hasher::seeded(0), filter.key_type());
            let header = Header { keys: few.len() as u64, negatives: unchanged, ..header };
            return write_list(&few, &collector, &header, head(PatchKind::List), out);
        }
        collector.set_patch(head(PatchKind::Steps));
        if unchanged == 0 && collector.options().goal == Goal::Exact {
            collector.set_goal(Goal::Fpr(RATE_WITHOUT_OTHERS));
        }
        match collector.seal()?.write(None, out) {
            // Places on these sides are no places in the lists.
            Err(Error::Build(BuildError::Conflict { count, .. })) => {
                Err(BuildError::Conflict { count, first: vec![] }.into())
            }
            written => written.map(drop),
        }
    }
}

/// Writes a patch that is a list, under the salt that tells its keys from all others by the fewest bits.
fn write_list(
    keys: &BTreeSet<Digest>,
    others: &Collector<'_>,
    header: &Header,
    head: PatchHead,
    out: &mut dyn Output,
) -> Result<(), Error> {
    let options = others.options();
    let rate = if let Goal::Fpr(rate) = options.goal { rate } else { LIST_RATE };
    let mut least = 1;
    while least < 64 && keys.len() as f64 > rate * (1u64 << least) as f64 {
        least += 1;
    }
    let sorted: Vec<Digest> = keys.iter().copied().collect();
    let (mut best, mut conflicts): (Option<(u32, u64, Vec<u64>)>, _) = (None, 0);
    for (attempt, number) in numbers(keys.len(), || SetHash::of(&sorted)) {
        // One number is enough where nothing can be gained.
        if best.as_ref().is_some_and(|best| attempt as usize >= LIST_SALTS || best.0 == least) {
            break;
        }
        let mut hashes: Vec<u64> = sorted.iter().map(|&digest| list_hash(digest, number)).collect();
        hashes.sort_unstable();
        // Bits that the two have in common.
        let common = |a: u64, b: u64| (a ^ b).leading_zeros();
        let mut most = hashes.windows(2).map(|pair| common(pair[0], pair[1])).max().unwrap_or(0);
        let mut both: BTreeSet<Digest> = BTreeSet::new();
        others.scan_excluded(|digests| {
            for &digest in digests {
                let hash = list_hash(digest, number);
                let at = hashes.partition_point(|&other| other < hash);
                let near = hashes[at.saturating_sub(1)..].iter().take(2).map(|&other| common(other, hash));
                let near = near.max().unwrap_or(0);
                if near == 64 && keys.contains(&digest) {
                    both.insert(digest);
                } else {
                    most = most.max(near);
                }
            }
            Ok(())
        })?;
        conflicts = both.len() as u64;
        if conflicts > 0 && options.on_conflict == OnConflict::Error {
            return Err(BuildError::Conflict { count: conflicts, first: vec![] }.into());
        }
        let bits = (most + 1).max(least);
        if bits <= 64 && best.as_ref().is_none_or(|best| bits < best.0) {
            best = Some((bits, number, hashes));
        }
    }
    let Some((bits, number, hashes)) = best else {
        return Err(
            BuildError::Unsolvable { structure: "list of digests", keys: keys.len(), attempts: ATTEMPTS }.into()
        );
    };
    let (low, payload) = encode_list(&hashes, bits);
    let mut writer = Writer::new(out, header, vec![])?.with_metadata(&options.common.metadata);
    writer.payload(&payload)?;
    writer.payload(&head.labels)?;
    let mut contents = head.contents(header, conflicts);
    for field in [number, bits.into(), low.into(), payload.len() as u64] {
        put_varint(&mut contents, field);
    }
    writer.close(contents)?;
    options.common.check_cancel()?;
    Ok(())
}
