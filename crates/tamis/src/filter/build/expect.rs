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
use crate::gather::{Counted, Shards, Tagged};
use crate::hash::Digest;
use crate::math::shape::Shape;
use crate::parallel::Stop;
use crate::plan::{Comparison, Expected, Goal, PlannedDesign, compare};

/// Why the share of unlisted queries may be wrong: the top of a list of popular keys has no rare ones.
const NO_ESTIMATE: &str = "unlisted_share: cannot be estimated and counts as 0, because no expected key has weight 1; if the workload is only the top of a list, set it";

/// Why a workload without weights is not taken for a log, of which every query was for a new key.
const ALL_ONCE: &str = "workload: all weights are 1; did you mean exclude? It is taken for a list of keys that are not members, and the share of other queries counts as 0; if it is a sample of queries, set unlisted_share";

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
    /// Rates of the built filter.
    pub measured: Rates,
}

/// Size and false positive rates of a filter, predicted or measured.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Rates {
    /// Bits per key, file and all.
    pub bits_per_key: f64,
    /// The share of negative queries of the workload that match. Of a built filter: all keys of the workload are queried, and
    /// unlisted keys follow the formula.
    pub workload_fpr: f64,
    /// The share of unlisted keys that match.
    pub fpr: f64,
}

/// The queries to expect, counted, without those that are keys.
pub(super) struct Workload {
    counts: Counts,
    pub(super) shape: Shape,
    /// All of them, those for keys too.
    queries: f64,
    keys: u64,
    dropped: u64,
    warnings: Vec<String>,
}

/// What will be built for them.
pub(super) struct WorkloadPlan {
    pub(super) workload: Workload,
    pub(super) comparison: Comparison,
    pub(super) design: PlannedDesign,
}

impl WorkloadPlan {
    /// What was planned, next to what the filter does.
    pub(super) fn outcome(&self, filter: &Filter, stop: Stop<'_>) -> Result<WorkloadReport, BuildError> {
        let WorkloadPlan { workload, design, .. } = self;
        let bits = |bits: f64| bits / filter.len().max(1) as f64;
        Ok(WorkloadReport {
            queries: workload.queries,
            keys: workload.keys,
            dropped_members: workload.dropped,
            unlisted_share: workload.shape.unseen(),
            covered: design.known,
            covered_share: workload.shape.mass(design.known),
            max_fpr: design.cap,
            warnings: workload.warnings.clone(),
            predicted: Rates {
                bits_per_key: bits(design.prediction.bits),
                workload_fpr: design.workload_fpr.unwrap_or(design.prediction.fpr),
                fpr: design.prediction.fpr,
            },
            measured: Rates {
                bits_per_key: bits(filter.as_bytes().len() as f64 * 8.0),
                workload_fpr: workload.passing(filter, stop)?,
                fpr: filter.fpr(),
            },
        })
    }
}

impl Workload {
    /// Drops those that are keys. None if nothing is left that a filter could do well at.
    pub(super) fn new(counts: Counts, shards: &Shards, options: &Options) -> Result<Option<Workload>, BuildError> {
        let stop = || options.common.stop();
        let queries = counts.queries() as f64 / ONE as f64;
        let (counts, dropped, members_once) = counts.without_keys(shards, &stop)?;
        let weights = counts.weights(&stop)?;
        // Keys that all come once are no sample of queries, of which some would come again.
        let is_list = members_once && weights.once == weights.keys;
        let estimate = if is_list { 0.0 } else { weights.unseen() };
        let unseen = options.goals.unlisted_share.unwrap_or(estimate);
        if !(0.0..=1.0).contains(&unseen) {
            return Err(BuildError::Range { option: "unlisted_share", given: unseen, least: 0.0, most: 1.0 });
        }
        if weights.keys == 0 {
            return Ok(None);
        }
        let shape = Shape::new(weights.classes, unseen)?;
        let warning = match options.goals.unlisted_share {
            Some(_) => None,
            None if is_list => Some(ALL_ONCE),
            None => (unseen == 0.0).then_some(NO_ESTIMATE),
        };
        let warnings = warning.map(String::from).into_iter().collect();
        Ok(Some(Workload { counts, shape, queries, keys: weights.keys, dropped, warnings }))
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
        stop: Stop<'_>,
        mut take: impl FnMut(Tagged) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        self.counts
            .heaviest(known, stop, |Counted { digest, weight }| take(Tagged { digest, weight, ordinal: u64::MAX }))
    }

    /// The share of negative queries that pass: all that were counted are queried.
    fn passing(&self, filter: &Filter, stop: Stop<'_>) -> Result<f64, BuildError> {
        let mut passing = 0;
        let (mut digests, mut answers) = ([Digest::default(); ROUND], [false; ROUND]);
        self.counts.each(stop, &mut |part| {
            for part in part.chunks(ROUND) {
                let answers = &mut answers[..part.len()];
                digests.iter_mut().zip(part).for_each(|(digest, query)| *digest = query.digest);
                filter.contains_digests(&digests[..part.len()], answers);
                let passed = part.iter().zip(answers).filter(|(_, yes)| **yes);
                passing += passed.map(|(query, _)| query.weight).sum::<u64>();
            }
            Ok(())
        })?;
        let unseen = self.shape.unseen();
        let seen = passing as f64 / self.counts.queries().max(1) as f64;
        Ok((1.0 - unseen) * seen + unseen * filter.fpr())
    }
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
