//! expected queries -> which of them a filter covers, and the measured rates.
//!
//! ```text
//!   expect(key, weight)* ──▶ Counter ──▶ those that are no keys ──▶ Shape ──▶ planner ──▶ a plan, and how many to know
//!                                                 │                                              │
//!                                                 └────────── the heaviest so many ◀─────────────┘
//!                                                                     │
//!                                                              negatives of the build
//! ```

use super::Options;
use crate::error::BuildError;
use crate::filter::query::Filter;
use crate::filter::steps::ROUND;
use crate::gather::counter::{Counts, ONE};
use crate::gather::{Shards, Tagged};
use crate::hash::Digest;
use crate::math::shape::Shape;
use crate::plan::{Comparison, Expected, Goal, PlannedDesign, compare};

/// Why the share of unlisted queries may be wrong: the top of a list of popular keys has no rare ones.
const NO_ESTIMATE: &str = "unlisted_share: cannot be estimated and counts as 0, because no expected key has weight 1; if the workload is only the top of a list, set it";

/// Report of a workload: what the filter covers, predicted and measured rates.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct WorkloadReport {
    /// All queries, those for keys too, by weight.
    pub queries: f64,
    /// Distinct expected keys that are not members.
    pub keys: u64,
    /// Distinct members among them, which were dropped.
    pub dropped_members: u64,
    /// True if every key was counted; otherwise memory was short, and the light ones count as unlisted.
    pub counted: bool,
    /// The share of negative queries outside the workload.
    pub unlisted_share: f64,
    /// Expected keys that the filter stores, heaviest first.
    pub covered: u64,
    /// The share of negative queries that are for covered keys.
    pub covered_share: f64,
    /// The largest rate for unlisted keys that the planner allowed: what [`fpr`](super::FilterBuilder::fpr) says, or its default; 1 for an exact filter.
    pub max_fpr: f64,
    /// Warnings about the queries, in sentences.
    pub warnings: Vec<String>,
    /// Rates that the planner computed.
    pub predicted: Rates,
    /// Rates of the built filter, where it could be read.
    pub measured: Option<Rates>,
}

/// Size and false positive rates of a filter, predicted or measured.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Rates {
    /// Bits per key, file and all.
    pub bits_per_key: f64,
    /// The share of negative queries of the workload that match: covered keys are queried, the others follow the formula.
    pub workload_fpr: f64,
    /// The share of unlisted keys that match.
    pub fpr: f64,
}

/// The queries to expect, counted, without those that are keys.
pub(super) struct Workload {
    counts: Counts,
    pub(super) shape: Shape,
    queries: f64,
    keys: u64,
    warnings: Vec<String>,
}

/// What will be built for them.
pub(super) struct WorkloadPlan {
    pub(super) workload: Workload,
    pub(super) comparison: Comparison,
    pub(super) design: PlannedDesign,
}

impl Workload {
    /// Drops those that are keys. None if nothing is left that a filter could do well at.
    pub(super) fn new(mut counts: Counts, shards: &Shards, options: &Options) -> Result<Option<Workload>, BuildError> {
        let queries = counts.queries as f64 / ONE as f64;
        let keys = drop_keys(&mut counts, shards, options)?;
        let unseen = options.goals.unlisted_share.unwrap_or_else(|| counts.unseen());
        if !(0.0..=1.0).contains(&unseen) {
            return Err(BuildError::Range { option: "unlisted_share", given: unseen, least: 0.0, most: 1.0 });
        }
        if counts.queries == 0 {
            return Ok(None);
        }
        let classes = counts.histogram().into_iter().map(|(weight, count)| (weight as f64 / ONE as f64, count));
        let shape = Shape::new(classes, unseen)?;
        let unknown = options.goals.unlisted_share.is_none() && unseen == 0.0;
        let warnings = if unknown { vec![NO_ESTIMATE.to_string()] } else { vec![] };
        Ok(Some(Workload { counts, shape, queries, keys, warnings }))
    }

    /// Plans for them, and for `excluded` keys that must never match.
    pub(super) fn plan(
        &self,
        keys: u64,
        excluded: u64,
        options: &Options,
    ) -> Result<(Comparison, PlannedDesign), BuildError> {
        check(options.cap)?;
        let expected = Expected { shape: &self.shape, cap: options.cap };
        options.check_capacity(keys)?;
        let (mut comparison, design) = compare(&options.request(keys, excluded), Some(expected))?;
        comparison.reasons.extend_from_slice(&self.warnings);
        Ok((comparison, design))
    }

    /// Calls `take` with the heaviest `known` of them.
    pub(super) fn heaviest(
        &self,
        known: u64,
        mut take: impl FnMut(Tagged) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let known = usize::try_from(known).unwrap_or(usize::MAX).min(self.counts.known.len());
        // Equal weights in an order that has nothing to do with shards, which follow the first word of a digest.
        let order = |&(digest, weight): &(Digest, u64)| (std::cmp::Reverse(weight), digest.lo, digest.hi);
        let last = match known {
            0 => return Ok(()),
            _ if known == self.counts.known.len() => None,
            _ => {
                let mut orders: Vec<_> = self.counts.known.iter().map(order).collect();
                Some(*orders.select_nth_unstable(known - 1).1)
            }
        };
        let within = |both: &&(Digest, u64)| last.is_none_or(|last| order(both) <= last);
        for &(digest, weight) in self.counts.known.iter().filter(within) {
            take(Tagged { digest, weight, ordinal: u64::MAX })?;
        }
        Ok(())
    }

    /// What was planned, next to what the filter does.
    pub(super) fn outcome(&self, design: &PlannedDesign, keys: u64, filter: Option<&Filter>) -> WorkloadReport {
        let bits = |bits: f64| bits / keys.max(1) as f64;
        let measured = filter.map(|filter| Rates {
            bits_per_key: bits(filter.as_bytes().len() as f64 * 8.0),
            workload_fpr: self.passing(filter),
            fpr: filter.fpr(),
        });
        WorkloadReport {
            queries: self.queries,
            keys: self.counts.known.len() as u64,
            dropped_members: self.keys,
            counted: self.counts.exact,
            unlisted_share: self.shape.unseen(),
            covered: design.known,
            covered_share: self.shape.mass(design.known),
            max_fpr: design.cap,
            warnings: self.warnings.clone(),
            predicted: Rates {
                bits_per_key: bits(design.prediction.bits),
                workload_fpr: design.workload_fpr.unwrap_or(design.prediction.fpr),
                fpr: design.prediction.fpr,
            },
            measured,
        }
    }

    /// The share of negative queries that pass: all that were counted are queried.
    fn passing(&self, filter: &Filter) -> f64 {
        let (mut passing, mut all) = (0.0, 0.0);
        let (mut digests, mut answers) = ([Digest::default(); ROUND], [false; ROUND]);
        for known in self.counts.known.chunks(ROUND) {
            let answers = &mut answers[..known.len()];
            digests.iter_mut().zip(known).for_each(|(digest, (known, _))| *digest = *known);
            filter.contains_digests(&digests[..known.len()], answers);
            for (&(_, weight), yes) in known.iter().zip(answers) {
                all += weight as f64;
                passing += if *yes { weight as f64 } else { 0.0 };
            }
        }
        let unseen = self.shape.unseen();
        let seen = if all > 0.0 { passing / all } else { 0.0 };
        (1.0 - unseen) * seen + unseen * filter.fpr()
    }
}

/// Takes out what is a key; says how many.
fn drop_keys(counts: &mut Counts, shards: &Shards, options: &Options) -> Result<u64, BuildError> {
    let stop = || options.common.stop();
    let mut dropped = 0;
    let known = std::mem::take(&mut counts.known);
    let mut rest = &known[..];
    for shard in 0..shards.count() {
        let (these, later) = rest.split_at(rest.partition_point(|(digest, _)| digest.shard(shards.bits) <= shard));
        rest = later;
        if these.is_empty() {
            continue;
        }
        let keys = shards.keys(shard, &stop)?;
        let mut keys = keys.iter().peekable();
        for &(digest, weight) in these {
            while keys.next_if(|&&key| key < digest).is_some() {}
            if keys.peek() == Some(&&digest) {
                dropped += 1;
                counts.queries -= weight;
                counts.once -= u64::from(weight == ONE);
            } else {
                counts.known.push((digest, weight));
            }
        }
    }
    Ok(dropped)
}

fn check(cap: Option<f64>) -> Result<(), BuildError> {
    match cap.filter(|cap| !(*cap > 0.0 && *cap <= 1.0)) {
        None => Ok(()),
        Some(given) => Err(BuildError::Range { option: "fpr", given, least: 0.0, most: 1.0 }),
    }
}

/// A goal that also keeps a limit for unlisted keys.
pub(super) fn goal_with_max_fpr(goal: Goal, cap: Option<f64>) -> Result<Goal, BuildError> {
    check(cap)?;
    match (goal, cap) {
        (goal, None) => Ok(goal),
        (Goal::Fpr(rate), Some(cap)) => Ok(Goal::Fpr(rate.min(cap))),
        (Goal::BitsPerKey(_), Some(_)) => Err(BuildError::NothingExpected { goal: "bits_per_key" }),
        (Goal::Exact | Goal::ExcludedFpr(_), Some(_)) => Err(BuildError::NothingExpected { goal: "exact" }),
    }
}
