//! keys, known negatives, a goal -> one leaf with all columns side by side, after plain bits where there are too many negatives.
//!
//! ```text
//!   keys       ──▶ (P, w bits) ──all──▶ c steered columns, exact bit ──▶ yes
//!   negatives  ──▶ (P) ──2^-w──▶ fewer than half a column ──▶ exact bit ──▶ no
//!   unlisted keys  rate 2^-(w + c + 1)
//! ```
//!
//! For every number of columns and every slack the bits of the octets and of the rest are known (`leaves/local/size.rs`), and the
//! fewest win.

use crate::error::{BuildError, Lack};
use crate::leaves::Role;
use crate::leaves::local::{MAX_STEERED, Params};
use crate::math::portable::exp2;
use crate::plan::recipes::steered;
use crate::plan::{Base, Effort, Goal, Layout, Plan, Request, Step};

/// More negatives per key are left to plain bits before: six columns would carry 112, but all of these are held in memory, and
/// against many a slack that all columns share buys little.
const MAX_NEGATIVES_PER_KEY: f64 = 32.0;
/// Slacks that are tried, in 1024ths: for an exact set, the most of all. A rate needs ample slack: where no row is free an unlisted key
/// matches all columns at once.
const MIN_SLACK: u16 = 64;
const MAX_SLACK: u16 = 512;
/// How much larger than the compact layout it may be and is still chosen.
const MAX_SIZE_RATIO: f64 = 1.005;
/// Sets of fewer keys are in the caches anyway.
const MIN_KEYS: u64 = 100_000;
/// What it is worth, in bits per key, that the rest need not be queried.
const REST_QUERY_COST_BITS: f64 = 0.3;

/// Whether a request gets it: where it was given, or where it was left open and costs next to nothing.
///
/// Of an exact set with far more keys than negatives the negatives are stored, and no leaf that is built on the keys comes
/// near. Left open, only where no filter comes first: how wide that is would depend on the layout, and the sieve could not know.
pub(crate) fn wanted(request: &Request) -> Result<bool, BuildError> {
    let Request { keys, negatives, goal, .. } = *request;
    let possible = match goal {
        Goal::ExcludedFpr(_) => false,
        Goal::Exact => negatives.saturating_mul(4) >= keys.saturating_mul(3),
        Goal::Fpr(_) | Goal::BitsPerKey(_) => true,
    };
    Ok(match request.layout {
        Layout::Compact => false,
        Layout::Local => possible && request.columns.is_none(),
        Layout::Auto => {
            let few = goal == Goal::Exact
                && (MIN_KEYS..=keys.saturating_mul(steered::MAX_NEGATIVES_PER_KEY)).contains(&negatives)
                && keys >= MIN_KEYS;
            let free = request.columns.is_none() && request.first.is_none() && request.effort == Effort::Balanced;
            let worth = |request: &Request| -> Result<bool, BuildError> {
                let bits = |steps: &[Step]| request.bits_of(steps);
                Ok(bits(&steps(request)?) <= MAX_SIZE_RATIO * bits(&steered::plan(request)?.steps))
            };
            possible && few && free && worth(request)?
        }
    })
}

/// A plan; plain bits that come first may sieve the negatives, unless a rate is to be met: with more columns side by side that
/// needs fewer of them.
pub(crate) fn plan(request: &Request) -> Result<Plan, BuildError> {
    let steps = steps(request)?;
    let sieve = match (&steps[..], request.goal) {
        ([Step { structure, .. }, _], Goal::Exact) => structure.nested(),
        _ => None,
    };
    Ok(Plan { sieve, ..Plan::new(steps) })
}

/// The steps of a request.
fn steps(request: &Request) -> Result<Vec<Step>, BuildError> {
    let mu = request.negatives as f64 / request.keys.max(1) as f64;
    let beam = steered::beam(request);
    let filter = |width: u16| Base::Ribbon.leaf(request, width, true);
    let (width, params) = match request.goal {
        Goal::Exact | Goal::ExcludedFpr(_) => {
            // It only grows with the negatives, on which the sieve relies.
            let width =
                (0..=32u16).find(|&bits| mu * exp2(-f64::from(bits)) <= MAX_NEGATIVES_PER_KEY).unwrap_or(32) * 256;
            (width, best(mu * passing(width), beam, 0..=MAX_STEERED as u8, MIN_SLACK))
        }
        Goal::Fpr(rate) => {
            let mut found: Option<(f64, u16, Params)> = None;
            for columns in 0..=MAX_STEERED as u8 {
                let last = exp2(-f64::from(columns + 1));
                let width = if last <= rate {
                    0
                } else {
                    request.least_width(|width| Ok(filter(width)?.rate_at(1) * last <= rate))?
                };
                let params = best(mu * passing(width), beam, columns..=columns, steered::MIN_SLACK_SMALL_SET);
                let cost = f64::from(width) / 256.0 + params.cost(mu * passing(width)).1;
                if found.is_none_or(|(least, ..)| cost < least) {
                    found = Some((cost, width, params));
                }
            }
            let (_, width, params) = found.ok_or_else(|| request.too_low())?;
            (width, params)
        }
        Goal::BitsPerKey(_) => return Err(request.unfit(Lack::LocalBudget)),
    };
    let decide = Step { role: Role::Exact, structure: params.into() };
    Ok(match width {
        0 => vec![decide],
        _ => vec![Step { role: Role::Positive, structure: filter(width)? }, decide],
    })
}

/// The share of the negatives that pass plain bits of this width.
fn passing(width: u16) -> f64 {
    if width == 0 { 1.0 } else { (1.0 - f64::from(width % 256) / 512.0) * exp2(-f64::from(width / 256)) }
}

/// The parameters that make the leaf smallest for `mu` negatives per key, with a slack of `least` and more where columns are steered.
fn best(mu: f64, beam: u16, columns: std::ops::RangeInclusive<u8>, least: u16) -> Params {
    let all = columns.flat_map(|columns| {
        let slacks = (least..=MAX_SLACK).step_by(4).chain((columns == 0).then_some(0));
        slacks.flat_map(move |slack| [1, 2].map(|exact| Params { columns, exact, slack, beam }))
    });
    let possible = all.filter(|params| params.columns + params.exact >= 2);
    let dear = |params: &Params| {
        let (in_rest, bits) = params.cost(mu);
        bits + REST_QUERY_COST_BITS * in_rest / (1.0 + params.left(mu))
    };
    let first = Params { columns: 1, exact: 1, slack: 128, beam };
    let least = (f64::INFINITY, first);
    possible.map(|params| (dear(&params), params)).fold(least, |a, b| if b.0 < a.0 { b } else { a }).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaves::steered::BALANCED;

    /// What the essay of the leaf promises.
    #[test]
    fn sizes_stand_near_the_bound() {
        for (mu, most) in
            [(1.0, 1.04), (2.0, 1.09), (3.0, 1.06), (8.0, 1.06), (16.0, 1.06), (30.0, 1.06), (100.0, 1.07)]
        {
            let params = best(mu, BALANCED, 0..=6, MIN_SLACK);
            let ratio = params.cost(mu).1 / crate::math::bounds::f(0.0, mu);
            assert!((1.0..most).contains(&ratio), "{mu}: {params:?} {ratio}");
        }
    }
}
