//! a plan -> the same with room for keys that are still to come.

use super::{Goal, Request, Step};
use crate::error::{BuildError, Lack};
use crate::gather::{SHARD_KEYS, shard_bits};
use crate::leaves::Role;

/// Keys more for which a layer behind the first has room: a key that was a known negative goes through all of them.
const LATER_LAYER_RESERVE: f64 = 64.0;

/// Steps with room for more keys, planned by `plan` for as many as there will be, and how many expected queries they know.
pub(crate) fn plan_with_capacity(
    request: &Request,
    plan: impl Fn(&Request) -> Result<(Vec<Step>, u64), BuildError>,
) -> Result<(Vec<Step>, u64), BuildError> {
    let mut grown = request.grown();
    // Tables are rounded up in every shard.
    let rounding = (512u64 << shard_bits(request.keys, SHARD_KEYS)) as f64;
    let mut least = f64::INFINITY;
    for _ in 0..8 {
        let (steps, known) = plan(&grown).map_err(|error| BuildError::Capacity { cause: error.into() })?;
        let negatives = request.negatives + known;
        let steps = add_capacity(steps, request, negatives)?;
        let bits = Request { negatives, ..*request }.bits_of(&steps) + rounding * steps.len() as f64;
        let room = request.room(steps.len())?;
        match grown.goal {
            Goal::BitsPerKey(budget) if bits > room => {
                least = least.min(bits);
                grown.goal = Goal::BitsPerKey(budget * 0.999 * (room / bits).clamp(0.5, 1.0));
            }
            Goal::BitsPerKey(_) | Goal::Fpr(_) | Goal::Exact | Goal::ExcludedFpr(_) => return Ok((steps, known)),
        }
    }
    Err(request.too_few(1, least))
}

/// Makes room for more keys in steps that were planned for all of them, with so many negatives.
fn add_capacity(mut steps: Vec<Step>, request: &Request, negatives: u64) -> Result<Vec<Step>, BuildError> {
    let (mut keys, mut negatives) = (request.grown().keys as f64, negatives as f64);
    for (i, step) in steps.iter_mut().enumerate() {
        if step.role == Role::Negative {
            keys *= step.structure.rate_at(negatives.ceil() as u64);
            continue;
        }
        negatives *= step.structure.rate_at(keys.ceil() as u64);
        let some = if i == 0 { 0.0 } else { LATER_LAYER_RESERVE / keys.max(1.0) };
        let room = step.structure.with_room(request.spare.max(some));
        step.structure = room.ok_or_else(|| request.unfit(Lack::MoreKeys))?;
    }
    Ok(steps)
}
