//! keys, known negatives, delta, layers -> `P N P N .. E`: every filter stores the wrong matches of the one before ([Chained] 4.3.2).
//!
//! ```text
//!   P   the keys                          rejects all but a share delta / lambda of the negatives: delta n are left
//!   N   those negatives                   matches all but delta^2 of the keys
//!   P   those keys                        rejects all but delta^2 of the negatives of the step before
//!   N   ..                                every list is delta times the one before
//!   E   what is left of both sides, one exact bit each
//! ```
//!
//! Algorithm 2 goes on until a filter errs on nothing; the Remark of Theorem 4.3 replaces the last filters by one exact
//! structure, after about log log n of them: four, unless the caller says otherwise. Construction holds one filter and the keys it errs
//! on, and any filter will do: this is the composite for filters that can only say "maybe". With perfect filters and many steps it takes
//! log2(lambda) + (1 + delta) / (1 - delta) log2(1 / delta) bits per key; with delta near 1 this is log2(lambda) + 2.885, not "log 4e
//! lambda". A leaf has at least one bit, so that no filter lets more than half pass: delta 0.71 and log2(lambda) + 2.914 is as near as
//! it gets. An exact bit behind few filters is smaller than that; `P E` ([`super::chained`]) is the smallest wherever the leaf can hold one.

use crate::error::BuildError;
use crate::leaves::Role;
use crate::math::portable::exp2;
use crate::plan::{Base, Goal, Request, Step};

/// The lowest rate of a leaf: 32 bits.
const MIN_RATE: f64 = 1.0 / (1u64 << 32) as f64;
/// Layers, unless the caller chose how many: filters, and the exact bit.
pub(crate) const LAYERS: u8 = 5;

/// The steps of a request.
pub(crate) fn steps(base: Base, request: &Request) -> Result<Vec<Step>, BuildError> {
    let Request { keys, negatives, goal, delta, layers, .. } = *request;
    if !(delta > 0.0 && delta < 1.0) {
        return Err(BuildError::Range { option: "delta", given: delta, least: 0.0, most: 1.0 });
    }
    // The shorter list first; but what unlisted keys get depends on the first, so only where they do not matter.
    let swapped = goal == Goal::Exact && negatives < keys;
    let (long, short) = if swapped { (keys, negatives) } else { (negatives, keys) };
    let fair = delta * short.max(1) as f64 / long.max(1) as f64;
    let with_first = |rate: f64| -> Result<Vec<Step>, BuildError> {
        let mut sizes = [short as f64, long as f64];
        let mut steps = vec![];
        for i in 0..layers.max(1) - 1 {
            let [listed, others] = sizes;
            let rate = if i == 0 { rate } else { delta * delta };
            // Any rate will do for exactness, so a tiny delta gets the lowest there is.
            let rate = if i == 0 && goal != Goal::Exact { rate } else { rate.max(MIN_RATE) };
            let structure = base.with_rate(request, listed.ceil() as u64, rate.min(0.5))?;
            let role = if (i % 2 == 0) != swapped { Role::Positive } else { Role::Negative };
            steps.push(Step { role, structure });
            sizes = [others * structure.rate_at(listed.ceil() as u64), listed];
        }
        steps.push(Step { role: Role::Exact, structure: base.exact(request)? });
        Ok(steps)
    };
    match goal {
        Goal::Exact | Goal::ExcludedFpr(_) => with_first(fair),
        Goal::Fpr(rate) => with_first(fair.min(rate)),
        Goal::BitsPerKey(_) => {
            let room = request.room(layers.into())?;
            // Every halving of the first rate costs a bit per key; in steps of a quarter.
            let rates = (0..128).map(|quarter| fair.min(0.5) * exp2(-f64::from(quarter) / 4.0));
            let mut best = None;
            for rate in rates {
                // The lowest rates are out of reach of some leaves.
                match with_first(rate) {
                    Ok(steps) if request.bits_of(&steps) <= room => best = Some(steps),
                    _ => break,
                }
            }
            match best {
                Some(steps) => Ok(steps),
                None => Err(request.too_few(layers.into(), request.bits_of(&with_first(fair)?))),
            }
        }
    }
}
