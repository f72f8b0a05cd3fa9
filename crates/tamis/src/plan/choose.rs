//! counts, expected queries, a goal -> every design side by side, and the best of them.
//!
//! One family of lists of steps covers all designs, and all are judged alike, by what they do on the expected queries:
//!
//! ```text
//!   workload rate = psi * (share of known negatives that match) + (1 - psi) * (share of unlisted keys that match)
//! ```
//!
//! where psi is the share of queries that fall on the keys that a filter covers. How many it covers, the heaviest first, is a
//! choice too: every one costs bits, and the light ones are not worth them. For a filter and an exact bit (`P E`) with nu of them per
//! key, L bits before the exact one and C bits of file per bit of information,
//!
//! ```text
//!   bits = C (L + 1 + nu 2^-L)          rate = (1 - psi) 2^-(L + 1)
//! ```
//!
//! so a value of weight w is worth knowing while w n > (1 - psi) ln 2 2^-L: with eight bits or more, nearly always. The curve is
//! flat at its best, so a coarse search on this formula is enough, and the recipes plan exactly for what it finds. Stacks have optimisers
//! of their own (`math::stack`).

use std::f64::consts::{LN_2, LOG2_E};

use super::kind::Chosen;
use super::predict::{LayersPrediction, predict};
use super::{Base, Effort, Goal, Kind, Plan, Request, Step, plan, plan_with_capacity};
use crate::error::BuildError;
use crate::leaves::integrated::IntegratedVariant;
use crate::math::portable::{exp2, log2};
use crate::math::shape::Shape;
use crate::plan::recipes::stacked;

/// The queries to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) shape: &'a Shape,
    /// The largest rate for unlisted keys; unless given, the [`ceiling`] of the request.
    pub(crate) cap: Option<f64>,
}

/// With queries to expect and a budget of bits, unlisted keys match at most so many times as often as with a plain filter of the same kind and
/// budget, unless [`fpr`](crate::FilterBuilder::workload_fpr) says otherwise.
///
/// It is half a bit, and in no paper: \[Stacked\] limits the rate of unlisted keys (EFPB) only on request, and a sample that shows none
/// of them would then give them all away.
///
/// ```
/// use tamis::internals::GUARD;
/// let popular = (1000..3000u64).map(|site| (site, 2.0)); // none was queried once
/// let plain = tamis::build(0..1000u64).bits_per_key(9.0).finish()?;
/// let filter = tamis::build(0..1000u64).bits_per_key(9.0).workload(popular).finish()?;
/// assert!(filter.fpr() <= GUARD * plain.fpr());
/// # Ok::<(), tamis::Error>(())
/// ```
pub const GUARD: f64 = 1.42;

/// The largest rate for unlisted keys where none is given: the rate itself, or [`GUARD`] times what the budget gives without expected
/// queries. An exact filter has none.
fn ceiling(request: &Request) -> Result<f64, BuildError> {
    Ok(match request.goal {
        Goal::Fpr(rate) => rate,
        Goal::BitsPerKey(_) => (GUARD * predict(&plan(request)?.steps, request).fpr).min(1.0),
        Goal::Exact | Goal::ExcludedFpr(_) => 1.0,
    })
}

/// A design that can be built.
#[derive(Clone, Debug)]
pub(crate) struct PlannedDesign {
    pub(crate) plan: Plan,
    /// How many of the expected queries, the heaviest first, are negatives of the plan.
    pub(crate) known: u64,
    pub(crate) prediction: LayersPrediction,
    /// EFPR.
    pub(crate) workload_fpr: Option<f64>,
    /// The largest rate for unlisted keys that it had to keep.
    pub(crate) cap: f64,
}

/// What unlisted keys count at least, as a share of the queries: a sample never says that there will be none.
pub(crate) const MIN_UNLISTED_SHARE: f64 = 1e-6;

impl PlannedDesign {
    /// The less the better.
    fn cost(&self, goal: Goal) -> f64 {
        match goal {
            Goal::BitsPerKey(_) => self.workload_fpr.unwrap_or(0.0) + MIN_UNLISTED_SHARE * self.prediction.fpr,
            Goal::Fpr(_) | Goal::Exact | Goal::ExcludedFpr(_) => self.prediction.bits,
        }
    }
}

/// What the planner looks at: one or two of every family.
pub(super) fn considered(request: &Request) -> Vec<Kind> {
    let usual = |kind: &Kind| {
        *kind != Kind::Auto && !matches!(kind, Kind::Integrated(_, parts) if *parts != IntegratedVariant::One)
    };
    if request.kind != Kind::Auto {
        return vec![request.kind];
    }
    Kind::ALL.iter().map(|&(_, kind)| kind).filter(usual).collect()
}

/// Whether a kind may be chosen by the planner: at the lowest effort, only what is built fast.
pub(super) fn eligible(kind: Kind, effort: Effort) -> bool {
    match kind.traits().chosen {
        Chosen::Always => true,
        Chosen::NotFast => effort != Effort::Fast,
        Chosen::Never => false,
    }
}

/// Kinds with what was planned for each, or why nothing could be.
pub(super) type Designs = Vec<(Kind, Result<PlannedDesign, BuildError>)>;

/// The best design that may be chosen, and its place in the list. Of two that are nearly as good, the one that reads fewer lines.
pub(super) fn best<'a>(designs: &'a Designs, request: &Request) -> Option<(usize, &'a PlannedDesign)> {
    let named = request.kind != Kind::Auto;
    let fit = |(i, (kind, design)): (usize, &'a (Kind, Result<PlannedDesign, BuildError>))| {
        let design = design.as_ref().ok().filter(|_| named || eligible(*kind, request.effort))?;
        Some((i, design, design.cost(request.goal)))
    };
    let open = || designs.iter().enumerate().filter_map(fit);
    let least = open().map(|(.., cost)| cost).min_by(f64::total_cmp)?;
    let slack = if matches!(request.goal, Goal::BitsPerKey(_)) { 1.03 } else { SIZE_TOLERANCE };
    let near = open().filter(|&(.., cost)| cost <= least * slack);
    let lines = |design: &PlannedDesign| design.prediction.lines[2];
    near.min_by(|a, b| lines(a.1).total_cmp(&lines(b.1)).then(a.2.total_cmp(&b.2))).map(|(i, design, _)| (i, design))
}

/// The smallest budget that an error names.
fn needed(error: &BuildError) -> f64 {
    let error = if let BuildError::Capacity { cause } = error { cause } else { error };
    if let BuildError::Budget { needed, .. } = error { *needed } else { f64::INFINITY }
}

/// No design reaches the goal, or the one named by hand does not: says which could.
pub(super) fn unreachable(request: &Request, expected: Option<Expected<'_>>, designs: Designs) -> BuildError {
    if let (Kind::Auto, Some(cap), Goal::BitsPerKey(bits)) = (request.kind, expected.and_then(|e| e.cap), request.goal)
    {
        return BuildError::UnlistedBudget { given: bits, fpr: cap, needed: -log2(cap) };
    }
    // The design that comes closest knows the smallest budget.
    let errors = designs.into_iter().filter_map(|(_, design)| design.err());
    let closest = errors.min_by(|a, b| needed(a).total_cmp(&needed(b))).unwrap_or_else(|| request.too_low());
    if request.kind == Kind::Auto {
        return closest;
    }
    let others = Request { kind: Kind::Auto, first: None, columns: None, ..*request };
    let kinds = considered(&others)
        .into_iter()
        .filter(|&kind| eligible(kind, Effort::Balanced) && design(kind, &others, expected).is_ok())
        .map(Kind::name)
        .collect();
    BuildError::Instead { cause: closest.into(), kinds }
}

/// Plans one kind.
pub(super) fn design(
    kind: Kind,
    request: &Request,
    expected: Option<Expected<'_>>,
) -> Result<PlannedDesign, BuildError> {
    let request = Request { kind, ..*request };
    let Some(Expected { shape, cap: given }) = expected else {
        let plan = plan(&request)?;
        let prediction = predict(&plan.steps, &request);
        return Ok(PlannedDesign { plan, known: 0, prediction, workload_fpr: None, cap: 1.0 });
    };
    let cap = given.map_or_else(|| ceiling(&request.grown()), Ok)?;
    let judge = |steps: Vec<Step>, known: u64| -> Result<PlannedDesign, BuildError> {
        let negatives = request.negatives.saturating_add(known);
        let prediction = predict(&steps, &Request { negatives, ..request });
        // Sums of shares are rounded: what is left of one may be nothing.
        let psi = if 1.0 - shape.mass(known) < 1e-12 { 1.0 } else { shape.mass(known) };
        let rate = psi * prediction.known_fpr + (1.0 - psi) * prediction.fpr;
        // One layer of whole bits may be coarser than the plain filter of its budget, and has no better.
        let plain = given.is_none() && known == 0 && matches!(request.goal, Goal::BitsPerKey(_));
        let cap = if plain { cap.max(prediction.fpr) } else { cap };
        if prediction.fpr > cap * (1.0 + 1e-9) {
            return Err(BuildError::UnlistedFpr { fpr: prediction.fpr, most: cap });
        }
        if let Goal::Fpr(goal) = request.goal
            && rate > goal * (1.0 + 1e-9)
        {
            return Err(BuildError::Workload { rate, goal });
        }
        Ok(PlannedDesign { plan: Plan::new(steps), known, prediction, workload_fpr: Some(rate), cap })
    };
    if let Kind::Stacked(base) = kind
        && request.keys > 0
    {
        let (steps, known) = match request.spare > 0.0 {
            true => plan_with_capacity(&request, |grown| stacked::steps(base, grown, shape, cap))?,
            false => stacked::steps(base, &request, shape, cap)?,
        };
        return judge(steps, known);
    }
    // With values that it knows, unlisted keys may pass a little more often.
    let planned = |known: u64| {
        let goal = match request.goal {
            Goal::Fpr(goal) => {
                let unknown = (1.0 - shape.mass(known)).max(f64::MIN_POSITIVE);
                let rate = (goal / unknown).min(cap);
                if rate < 1.0 { Goal::Fpr(rate) } else { Goal::Exact }
            }
            goal @ (Goal::BitsPerKey(_) | Goal::Exact | Goal::ExcludedFpr(_)) => goal,
        };
        let planned = plan(&Request { negatives: request.negatives.saturating_add(known), goal, ..request })?;
        judge(planned.steps, known)
    };
    if !kind.traits().negatives {
        return planned(0);
    }
    let mut worth = if request.goal == Goal::Exact { shape.known() } else { worth_knowing(&request, shape, cap)? };
    let mut best: Result<PlannedDesign, BuildError> = planned(worth);
    // Leaves of few keys take more than the formula says: where it needs too much, fewer are known, and none at last: that is the
    // least rate for unlisted keys.
    for tries in 0..=MAX_COVERED_RETRIES {
        if best.is_ok() || worth == 0 || request.goal == Goal::Exact {
            break;
        }
        worth = if tries < MAX_COVERED_RETRIES { worth / 4 * 3 } else { 0 };
        best = planned(worth);
    }
    if worth < shape.known() {
        let all = planned(shape.known());
        if let Ok(all) = all
            && best.as_ref().map_or(true, |best| all.cost(request.goal) < best.cost(request.goal))
        {
            best = Ok(all);
        }
    }
    best
}

/// A file so much larger is as good as the smallest.
const SIZE_TOLERANCE: f64 = 1.003;

/// How often fewer queries are tried.
const MAX_COVERED_RETRIES: usize = 6;

/// How many of the expected queries a filter with an exact bit should know, by the formula above.
fn worth_knowing(request: &Request, shape: &Shape, cap: f64) -> Result<u64, BuildError> {
    let keys = request.keys.max(1) as f64;
    // What a bit of information takes in a leaf of so many keys.
    let base = request.kind.traits().base.unwrap_or(Base::Ribbon);
    let per_bit = match base {
        Base::Ribbon | Base::Fuse | Base::Fuse4 => {
            base.leaf(request, 2048, true)?.bits(request.keys.max(1), 0) / 8.0 / keys
        }
        Base::Bloom | Base::Cuckoo | Base::Quotient => LOG2_E,
    };
    let room = request.room(2)? / keys;
    // Lower is better: the rate for a budget, the bits for a rate.
    let cost = |known: u64| -> f64 {
        let nu = (known + request.negatives) as f64 / keys;
        let unknown = (1.0 - shape.mass(known)).max(MIN_UNLISTED_SHARE);
        // The width that makes the file smallest.
        let least = if nu * LN_2 > 1.0 { log2(nu * LN_2) } else { 0.0 };
        let bits = |first: f64| per_bit * (first + 1.0 + nu * exp2(-first));
        match request.goal {
            Goal::BitsPerKey(_) => {
                if bits(least) > room {
                    return f64::INFINITY;
                }
                let (mut low, mut high) = (least, 64.0);
                for _ in 0..24 {
                    let middle = (low + high) / 2.0;
                    if bits(middle) <= room { low = middle } else { high = middle }
                }
                let strangers = exp2(-(low + 1.0));
                if strangers > cap { f64::INFINITY } else { unknown * strangers }
            }
            Goal::Fpr(goal) => {
                let strangers = (goal / unknown.max(f64::MIN_POSITIVE)).min(cap).min(1.0);
                let wanted = -log2(strangers.max(1e-30)) - 1.0;
                bits(wanted.max(least))
            }
            Goal::Exact | Goal::ExcludedFpr(_) => 0.0,
        }
    };
    // Eighths of octaves from all of them down to one, and none.
    let all = shape.known();
    let octaves = 64 - all.leading_zeros();
    let counts = (0..octaves).flat_map(|octave| (5..=8u64).rev().map(move |eighths| (all >> octave) / 8 * eighths));
    let counts = std::iter::once(all).chain(counts.filter(|&count| count > 0)).chain([0]);
    let costs: Vec<(u64, f64)> = counts.map(|count| (count, cost(count))).collect();
    let least = costs.iter().map(|&(_, cost)| cost).fold(f64::INFINITY, f64::min);
    // For a rate, more of them where that costs next to nothing: the rate is then kept with room to spare.
    let slack = if matches!(request.goal, Goal::Fpr(_)) { SIZE_TOLERANCE } else { 1.0 };
    Ok(costs.into_iter().find(|&(_, cost)| cost <= slack * least).map_or(all, |(count, _)| count))
}

#[cfg(test)]
mod tests;
