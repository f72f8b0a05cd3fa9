//! keys, known negatives, a goal -> plain bits, steered columns, an exact bit: exact sets within a few percent of entropy.
//!
//! ```text
//!   keys        ──▶ P, w bits ──▶ P P .. N .. ──▶ E ──▶ yes
//!   negatives   ──▶ P ──at most 18 per key──▶ P P .. N .. ──about 1 per key──▶ E ──▶ no
//! ```
//!
//! Steering pays where negatives per key are few: of hundreds, a column refuses little more than half whatever it tries. So
//! plain ribbon bits come first, as many as leave a few negatives per key; then columns whose number, sides and slacks
//! `optimise.rs` finds; then one exact bit. Columns on the negatives (`Admit`) close the gaps between the powers of two: they cost
//! mu bits per key instead of one.
//!
//! * **Exact**: the smallest of all. With fewer negatives than keys the sides are exchanged.
//! * **A rate or a budget for unlisted keys**: columns on the keys only, because a negative layer says yes to half of all unlisted keys. Every
//!   column halves them as a plain bit does, so that w shrinks by the number of columns; where steering saves nothing the plan
//!   is the chained filter.
//! * **A share of the negatives may pass** (`Goal::ExcludedFpr`): no exact bit; the last column may be for a part of the keys. Where
//!   negatives have weights, the search adds these up, and the light ones pass first. With fewer negatives than keys an exact filter
//!   leaves out the light ones, as in `chained.rs`.
//!
//! The sieve (`build/sieve.rs`) wants to know how wide the first filter will be at least, however many negatives are still to
//! come: that grows with the negatives, for they are to be few behind it.

use crate::error::BuildError;
use crate::gather::Stats;
use crate::leaves::Role;
use crate::leaves::steered::{BALANCED, FAST, Params, SMALLEST};
use crate::math::portable::{exp2, log2};
use crate::plan::recipes::chained;
use crate::plan::{Base, Effort, Goal, Plan, Request, Step, Structure};

mod optimise;

pub(crate) use optimise::Column;
use optimise::{MAX_COLUMNS, Values};

/// More negatives per key are left to plain bits. A little more than a power of two, so that estimates of their number do not
/// decide for sets that have one.
pub(crate) const MAX_NEGATIVES_PER_KEY: u64 = 18;
/// With fewer keys, what every step adds to the file is more than steering saves.
const MIN_KEYS: u64 = 256;
/// Columns of fewer keys leave more others than was measured on many: where a share was promised, plain bits keep it.
const MIN_KEYS_FOR_SHARE: u64 = 4096;
/// With little slack there is now and then a stretch of rows without a free one, where every key matches: in one of five tables of
/// 20,000 keys with a slack of 64, in one of 8,000 with this one. A plan for a rate has no less. Among many strips these
/// are as many as was measured; one in a single strip is more than a promised share allows.
const MIN_KEYS_LITTLE_SLACK: u64 = 1 << 18;
pub(super) const MIN_SLACK_SMALL_SET: u16 = 160;

/// The steps of a request, and the narrowest first filter that any larger number of negatives may have.
pub(crate) fn plan(request: &Request) -> Result<Plan, BuildError> {
    let Request { keys, negatives, goal, .. } = *request;
    if let Some(columns) = request.columns {
        return Ok(Plan::new(by_hand(request, columns.as_slice())?));
    }
    if let Goal::ExcludedFpr(allowed) = goal {
        return Ok(Plan::sharing(leaving(request, allowed)?, request));
    }
    if request.first.is_some() {
        return chained::plan(Base::Ribbon, request);
    }
    // Of the same bands as the sieve, or it would let through what the sieve has let go.
    let chained = chained::steps(Base::Ribbon, &Request { effort: Effort::Balanced, ..*request });
    let sieve = sieve(request)?;
    let mut all = if goal == Goal::Exact { around(request, negatives < keys)? } else { vec![] };
    if keys.min(negatives) >= MIN_KEYS {
        match goal {
            Goal::Exact if negatives < keys => all.push(exact(request, negatives, keys, true)?),
            Goal::Exact => {
                all.push(exact(request, keys, negatives, false)?);
                // Columns of few keys refuse less than was measured on many: then fewer of them may do better.
                if keys < MIN_KEYS_FOR_SHARE {
                    all.extend(on_keys(request, 3, 3)?);
                }
            }
            Goal::Fpr(_) | Goal::BitsPerKey(_) | Goal::ExcludedFpr(_) => all.extend(on_keys(request, MAX_COLUMNS, 6)?),
        }
    }
    // Of those that reach the goal, the smallest; a chained filter is asked faster, so it may be a little larger.
    let fits = |steps: &Vec<Step>| request.room(steps.len()).is_ok_and(|room| request.bits_of(steps) <= room);
    let cost = |steps: &[Step]| match goal {
        Goal::BitsPerKey(_) => rate(steps),
        Goal::Fpr(_) | Goal::Exact | Goal::ExcludedFpr(_) => request.likely_bits(steps),
    };
    let costs = all.into_iter().filter(fits).map(|steps| (cost(&steps), steps));
    let steps = match (chained, costs.min_by(|a, b| a.0.total_cmp(&b.0))) {
        (Ok(chained), Some((best, steps))) => {
            let slack = match goal {
                Goal::BitsPerKey(_) => 0.97,
                Goal::Exact => 1.0,
                Goal::Fpr(_) | Goal::ExcludedFpr(_) => 0.997,
            };
            if best < slack * cost(&chained) { steps } else { chained }
        }
        (Err(_), Some((_, steps))) => steps,
        (chained, None) => chained?,
    };
    Ok(Plan { sieve, ..Plan::new(steps) })
}

/// Chained filters whose first stage is not what the formula says but near it, and none: what leaves of few keys take goes in steps.
fn around(request: &Request, exchanged: bool) -> Result<Vec<Vec<Step>>, BuildError> {
    let Request { keys, negatives, .. } = *request;
    let (role, listed, others) =
        if exchanged { (Role::Negative, negatives, keys) } else { (Role::Positive, keys, negatives) };
    // No narrower than the sieve.
    let least = if exchanged { 0 } else { whole_bits(keys, negatives) };
    let ratio = others.checked_div(listed).unwrap_or(0).checked_ilog2().unwrap_or(0) as u16;
    let widths = (ratio.saturating_sub(1)..=ratio + 2).chain([0]).filter(|&width| width >= least && width <= 32);
    widths
        .map(|width| {
            let mut steps = plain(request, role, 256 * width)?;
            steps.push(decide(request)?);
            Ok(steps)
        })
        .collect()
}

/// Whole bits that leave at most [`MAX_NEGATIVES_PER_KEY`] others for each of `listed`.
fn whole_bits(listed: u64, others: u64) -> u16 {
    (0..32).find(|&bits| others >> bits <= MAX_NEGATIVES_PER_KEY * listed).unwrap_or(32)
}

/// States of the search.
pub(super) fn beam(request: &Request) -> u16 {
    match request.effort {
        Effort::Fast => FAST,
        Effort::Balanced => BALANCED,
        Effort::Smallest => SMALLEST,
    }
}

/// The filter that the first step will hold at least.
fn sieve(request: &Request) -> Result<Option<Structure>, BuildError> {
    let enough = whole_bits(request.keys, request.negatives);
    let bits = match request.goal {
        // Columns, an exact bit and a fraction may take the place of so many plain bits.
        Goal::Fpr(rate) => (-log2(rate) as u16).saturating_sub(MAX_COLUMNS as u16 + 2).max(enough),
        Goal::Exact => enough,
        Goal::BitsPerKey(_) | Goal::ExcludedFpr(_) => return Ok(None),
    };
    if bits == 0 { Ok(None) } else { filter(request, bits.min(32) * 256).map(Some) }
}

/// The share of unlisted keys that match all steps.
fn rate(steps: &[Step]) -> f64 {
    steps.iter().map(|step| step.structure.rate_at(1)).product()
}

/// A plain filter. Bands of 64 whatever the effort: others are queried twice as slowly, and save next to nothing.
fn filter(request: &Request, width: u16) -> Result<Structure, BuildError> {
    Base::Ribbon.leaf(&Request { effort: Effort::Balanced, ..*request }, width, true)
}

/// A plain filter, if it has bits.
fn plain(request: &Request, role: Role, width: u16) -> Result<Vec<Step>, BuildError> {
    match width {
        0 => Ok(vec![]),
        _ => Ok(vec![Step { role, structure: filter(request, width)? }]),
    }
}

fn decide(request: &Request) -> Result<Step, BuildError> {
    Ok(Step { role: Role::Exact, structure: Base::Ribbon.exact(request)? })
}

/// A column of a plan as a step; with the sides exchanged it is the other's.
fn step(request: &Request, column: Column, exchanged: bool) -> Step {
    let (role, slack) = match (column, exchanged) {
        (Column::Keys(slack), false) | (Column::Negatives(slack), true) => (Role::Positive, slack),
        (Column::Negatives(slack), false) | (Column::Keys(slack), true) => (Role::Negative, slack),
    };
    Step { role, structure: Params::new(slack, beam(request)).into() }
}

/// The smallest for `listed` keys against `others`.
fn exact(request: &Request, listed: u64, others: u64, exchanged: bool) -> Result<Vec<Step>, BuildError> {
    let width = whole_bits(listed, others);
    let mu = others as f64 / (1u64 << width) as f64 / listed as f64;
    let role = if exchanged { Role::Negative } else { Role::Positive };
    let mut steps = plain(request, role, 256 * width)?;
    let columns = Values::of(beam(request)).exact(mu);
    steps.extend(columns.into_iter().map(|column| step(request, column, exchanged)));
    steps.push(decide(request)?);
    Ok(steps)
}

/// Plans with columns on the keys only, at most so many: for every number of them the narrowest first filter that does, and wider ones, so
/// many in all.
fn on_keys(request: &Request, columns: usize, filters: u16) -> Result<Vec<Vec<Step>>, BuildError> {
    let Request { keys, negatives, goal, .. } = *request;
    let values = Values::of(beam(request));
    let enough = 256 * whole_bits(keys, negatives);
    let mut plans = vec![];
    for count in 1..=columns {
        let least = match goal {
            Goal::Fpr(rate) => {
                let columns = exp2(-(count as f64 + 1.0));
                let reached = |width: u16| Ok(filter(request, width)?.rate_at(1) * columns <= rate);
                // Without a first filter, if the columns are enough.
                if columns <= rate { 0 } else { request.least_width(reached)? }
            }
            Goal::BitsPerKey(_) | Goal::Exact | Goal::ExcludedFpr(_) => 0,
        };
        let least = least.max(enough);
        let widths = (0..filters).map(|more| if more == 0 { least } else { (least / 256 + more) * 256 });
        for width in widths.filter(|&width| width <= 32 * 256) {
            let mut steps = plain(request, Role::Positive, width)?;
            let mu = negatives as f64 / keys as f64 * rate(&steps);
            steps.extend(values.on_keys(mu, count).into_iter().map(|column| step(request, column, false)));
            steps.push(decide(request)?);
            plans.push(steps);
        }
    }
    Ok(plans)
}

/// The share to plan for, so that hardly ever more than `allowed` pass: how many do is chance, and columns of few keys refuse a
/// little less than was measured on many.
pub(crate) fn aim(allowed: f64, keys: u64, negatives: u64) -> f64 {
    let expected = negatives as f64 * allowed;
    let few = 1.0 - 400.0 / keys.max(4000) as f64;
    (expected - 3.0 * expected.sqrt()).max(0.8 * expected) * 0.995 * few / negatives.max(1) as f64
}

/// Lets a share of the negatives pass.
fn leaving(request: &Request, allowed: f64) -> Result<Vec<Step>, BuildError> {
    let Request { keys, negatives, .. } = *request;
    let values = Values::of(beam(request));
    let lambda = negatives as f64 / keys as f64;
    let aimed = aim(allowed, keys, negatives);
    let target = lambda * aimed;
    // Where negatives are few, telling most of them from the keys is the smallest, and leaving out the rest.
    let exchanged = negatives < keys;
    let stored = negatives.saturating_sub(request.left_out(Role::Negative, allowed) as u64).max(1);
    let exactly = if exchanged { exact(request, stored, keys, true)? } else { exact(request, keys, negatives, false)? };
    let mut best = (request.likely_bits(&exactly), exactly);
    for steps in around(request, exchanged)? {
        let bits = request.likely_bits(&steps);
        if bits < best.0 {
            best = (bits, steps);
        }
    }
    // A share that no width reaches is left to the exact set.
    let alone = request.least_width(|width| Ok(filter(request, width)?.rate_at(1) <= aimed)).ok();
    let steered = if keys < MIN_KEYS_FOR_SHARE { 0..0 } else { 0..alone.unwrap_or(32 * 256) / 256 + 1 };
    let least = if keys < MIN_KEYS_LITTLE_SLACK { MIN_SLACK_SMALL_SET } else { 0 };
    for width in steered.map(|bits| bits * 256).chain(alone) {
        let mut steps = plain(request, Role::Positive, width)?;
        let left = lambda * rate(&steps);
        let Some((_, columns)) = values.leaving(left, target, MAX_COLUMNS - 1, least) else { continue };
        steps.extend(columns.into_iter().map(|column| {
            let params = Params { slack: column.slack, beam: beam(request), share: column.share };
            Step { role: Role::Positive, structure: params.into() }
        }));
        let bits = request.likely_bits(&steps);
        if bits < best.0 {
            best = (bits, steps);
        }
    }
    Ok(best.1)
}

/// Slacks and first bits chosen by the caller.
fn by_hand(request: &Request, slacks: &[u16]) -> Result<Vec<Step>, BuildError> {
    let mut steps = plain(request, Role::Positive, request.first.unwrap_or(0))?;
    steps.extend(slacks.iter().map(|&slack| step(request, Column::Keys(slack), false)));
    if !matches!(request.goal, Goal::ExcludedFpr(_)) {
        steps.push(decide(request)?);
    }
    Ok(steps)
}

/// Turns the weights of negatives into integers that can be added up: small ones for a search, fine ones where a share of all that was
/// promised is spent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WeightScale {
    /// 2^20 / mean weight.
    Search(u64),
    /// Mean weight: weight of all negatives, and how many there are.
    Spend(u64, u64),
}

/// A negative of mean weight.
const MEAN_WEIGHT: u64 = 16;
/// The heaviest: whatever weighs more is as sure to be refused.
const MAX_WEIGHT: u64 = 1024;
/// A negative of mean weight, where a share is spent. Rounded up none counts too little.
const FINE_MEAN_WEIGHT: u64 = 1 << 12;

impl WeightScale {
    /// Weights matter where some negatives may pass and not all weigh the same.
    pub(crate) fn new(plan: &Plan, stats: &Stats) -> Option<WeightScale> {
        let exact = plan.steps.last().is_none_or(|step| step.role == Role::Exact);
        let steered = plan.steps.iter().any(|step| matches!(step.structure, Structure::Steered(_)));
        let (count, weight) = (stats.negatives, stats.negative_weight.max(1));
        match plan.allowed > 0.0 {
            _ if count == 0 || weight == count => None,
            true => Some(WeightScale::Spend(weight, count)),
            false if exact || !steered => None,
            false => Some(WeightScale::Search(((u128::from(count) << 20) / u128::from(weight)) as u64)),
        }
    }

    pub(crate) fn weigh(self, weight: u64) -> u32 {
        match self {
            WeightScale::Search(scale) => {
                let scaled = (u128::from(weight) * u128::from(scale) * u128::from(MEAN_WEIGHT)) >> 20;
                scaled.clamp(1, MAX_WEIGHT.into()) as u32
            }
            WeightScale::Spend(all, count) => {
                let scaled =
                    u128::from(weight).saturating_mul(u128::from(count)).saturating_mul(FINE_MEAN_WEIGHT.into());
                scaled.div_ceil(all.into()).min(u32::MAX.into()) as u32
            }
        }
    }

    /// What a negative of mean weight weighs.
    pub(crate) fn mean(self) -> u64 {
        match self {
            WeightScale::Search(_) => MEAN_WEIGHT,
            WeightScale::Spend(..) => FINE_MEAN_WEIGHT,
        }
    }
}
