//! keys, keys that must never match, a goal -> the other constructions of [FPFS]: naive, and both stages in one word.
//!
//! The "two filters" of section 3.5 are `P E`: [`super::chained`]. Here are the rest.
//!
//! * **naive** (section 3.4): one filter that holds the excluded keys too, with the wrong fingerprint. One probe, and as many bits
//!   for an excluded key as for a key.
//! * **integrated** (sections 3.6 and 3.8): the two stages of `P E` share their places, so members cost one probe instead of
//!   two. The paper's rules for the bits of stage one are in `docs/math.md`; here they are chosen by the size that comes out.

use crate::error::BuildError;
use crate::leaves::Design;
use crate::leaves::Role;
use crate::leaves::integrated::{IntegratedVariant, Params};
use crate::plan::{Base, Goal, Request, Step};

/// One filter on keys and excluded keys.
pub(crate) fn naive(base: Base, request: &Request) -> Result<Vec<Step>, BuildError> {
    let all = request.keys + request.negatives;
    let leaf = |width: u16| base.leaf(request, width, false);
    let width = match request.goal {
        Goal::Exact | Goal::ExcludedFpr(_) => 256,
        // Values that are not fingerprints have whole bits.
        Goal::Fpr(rate) => {
            let least = request.least_width(|width| Ok(leaf(width)?.rate_at(1) <= rate))?;
            least.div_ceil(256) * 256
        }
        Goal::BitsPerKey(_) => {
            let room = request.room(1)?;
            let fits = |width: u16| leaf(width).is_ok_and(|leaf| leaf.bits(all, 0) <= room);
            let widest = (1..=32).map(|bits| bits * 256).take_while(|&width| fits(width)).last();
            match widest {
                Some(width) => width,
                None => return Err(request.too_few(1, leaf(256)?.bits(all, 0))),
            }
        }
    };
    Ok(vec![Step { role: Role::Exact, structure: leaf(width)? }])
}

/// Both stages in one leaf.
pub(crate) fn integrated(base: Base, parts: IntegratedVariant, request: &Request) -> Result<Vec<Step>, BuildError> {
    /// What a word has room for.
    const MAX_FIRST_BITS: u8 = 30;
    let arity = base.arity()?;
    let all = (1..=MAX_FIRST_BITS).map(|first| Params { arity, first, parts });
    let bits = |params: &Params| params.bits(request.keys, request.negatives);
    let smallest = |some: &mut dyn Iterator<Item = Params>| some.min_by(|a, b| bits(a).total_cmp(&bits(b)));
    let params = match (request.first, request.goal) {
        (Some(width), _) => {
            Some(Params { arity, first: width.div_ceil(256).clamp(1, MAX_FIRST_BITS.into()) as u8, parts })
        }
        (None, Goal::Exact | Goal::ExcludedFpr(_)) => smallest(&mut all.clone()),
        (None, Goal::Fpr(rate)) => {
            let found = smallest(&mut all.clone().filter(|params| params.rate_at(1) <= rate));
            Some(found.ok_or_else(|| request.too_low())?)
        }
        (None, Goal::BitsPerKey(_)) => {
            let room = request.room(1)?;
            all.clone().rev().find(|params| bits(params) <= room)
        }
    };
    match params {
        Some(params) => Ok(vec![Step { role: Role::Exact, structure: params.into() }]),
        None => Err(request.too_few(1, all.map(|params| bits(&params)).fold(f64::INFINITY, f64::min))),
    }
}
