//! keys, known negatives, a goal -> `P E`: a filter, then one exact bit for what passes ([Chained] sections 4.1 and 4.2).
//!
//! ```text
//!   keys       ──▶ P, w bits ──all──▶ E, one bit ──▶ yes
//!   negatives  ──▶ P ──2^-w of them──▶ E ──▶ no
//!   unlisted   ──▶ P ──2^-w of them──▶ E ──half──▶ yes        rate 2^-(w+1)
//! ```
//!
//! With `lambda` negatives per key this takes C w + C (1 + lambda 2^-w) bits per key, C a little above 1: a bit more in `P` costs
//! one bit per key and halves the negatives that `E` must know. For exactness alone w is about log2 lambda (Algorithm 1, and the
//! Remark of Theorem 4.1: at most 1.11 C times the bound); with a goal for unlisted keys it is at least what the goal needs (strategy (a)
//! of section 4.2.1, the "two filters" of [FPFS] section 3.5, their `a` chosen by size instead of a rule). Strategy (b), which
//! promises unlisted keys that pass `E` more seldom, does not hold for structures that xor: it is a formula in `docs/math.md`.
//!
//! **Some negatives may match** (`Goal::ExcludedFpr`, a share eps of their weight): of those that pass `P` the lightest, about 2 eps
//! lambda n, are left out of `E`, where each matches with probability 1/2. This is Corollary 4.1 (a), C (log2(2 e lambda ln 2) - 2 eps
//! lambda) bits per key. Where all that passes may be left out, `E` has the keys alone and is the last bit of a plain filter.
//!
//! Where there are more keys than negatives, the same with the sides exchanged, `N E`: a filter on the negatives matches what
//! it does not know. Unlisted keys nearly all get a yes, and so do negatives that are left out: `N` leaves out eps lambda n, and each
//! saves its bits in both stages.

use crate::error::BuildError;
use crate::leaves::Role;
use crate::plan::{Base, Goal, Plan, Request, Step, most};

/// The steps of a request. The first of them, rounded down to whole bits, may sieve the negatives before all of them are known:
/// with more it is not narrower. Not so with a budget, where more negatives leave fewer bits for it.
pub(crate) fn plan(base: Base, request: &Request) -> Result<Plan, BuildError> {
    let steps = steps(base, request)?;
    let sieve = match (&steps[..], request.goal) {
        // What may pass is a share of the weight of all, those that a sieve would let go included.
        (_, Goal::BitsPerKey(_) | Goal::ExcludedFpr(_)) => None,
        ([Step { role: Role::Positive, structure }, Step { role: Role::Exact, .. }], _) => structure.nested(),
        _ => None,
    };
    Ok(Plan { sieve, ..Plan::sharing(steps, request) })
}

/// The steps alone.
pub(crate) fn steps(base: Base, request: &Request) -> Result<Vec<Step>, BuildError> {
    let Request { keys, negatives, goal, .. } = *request;
    let exact = base.leaf(request, 256, false)?;
    // Widths in 256ths of a bit; 0: no first stage.
    let first = |width: u16| base.leaf(request, width, true);
    let mut role = Role::Positive;
    let width = match (request.first, goal) {
        (Some(width), _) => width,
        (None, Goal::Exact | Goal::ExcludedFpr(_)) => {
            let whole = || (0..=32).map(|bits| bits * 256);
            // Between whole bits both stages together are never smaller, but where all that passes the first may pass.
            let left_out = request.left_out(Role::Exact, request.share()) / negatives.max(1) as f64;
            let enough = request.least_width(|width| Ok(first(width)?.rate_at(1) <= left_out)).ok();
            let enough = enough.filter(|_| left_out > 0.0);
            let (width, bits) = smallest(base, request, whole().chain(enough), Role::Positive)?;
            let (swapped, fewer) = smallest(base, request, whole(), Role::Negative)?;
            if negatives < keys && fewer < bits {
                role = Role::Negative;
                swapped
            } else {
                width
            }
        }
        (None, Goal::Fpr(rate)) => {
            let least = request.least_width(|width| Ok(first(width)?.rate_at(1) * exact.rate_at(1) <= rate))?;
            // Where the exact bit alone reaches the goal, there is no first stage.
            let none = (exact.rate_at(1) <= rate).then_some(0);
            smallest(base, request, none.into_iter().chain(least..=32 * 256), Role::Positive)?.0
        }
        (None, Goal::BitsPerKey(_)) => {
            let room = request.room(2)?;
            let bits = |width: u16| -> Result<f64, BuildError> {
                Ok(match width {
                    0 => exact.bits(keys, negatives),
                    _ => {
                        let first = first(width)?;
                        let left = most(negatives as f64 * first.rate_at(1), negatives, 4.0);
                        first.bits(keys, 0) + exact.bits(keys, left)
                    }
                })
            };
            // With many negatives the narrow ones are too large as well, so all are looked at; the widest that fits is best.
            let (mut widest, mut least) = (None, f64::INFINITY);
            for width in std::iter::once(0).chain((256..=32 * 256).step_by(16)) {
                let bits = bits(width)?;
                least = least.min(bits);
                if bits <= room {
                    widest = Some(width);
                }
            }
            widest.ok_or_else(|| request.too_few(2, least))?
        }
    };
    let decide = Step { role: Role::Exact, structure: exact };
    Ok(match width {
        0 => vec![decide],
        _ => vec![Step { role, structure: first(width)? }, decide],
    })
}

/// The width that makes both stages together smallest, and their bits, for a first stage with this role.
///
/// What a leaf really takes goes in steps (rows come in blocks, segments in powers of two), and a minimum over steps may fall back
/// to a narrower first stage when negatives are added. So the leaves count with what they take per bit at this number of keys:
/// the best width then grows with the number of others, on which the sieve relies.
fn smallest(
    base: Base,
    request: &Request,
    widths: impl Iterator<Item = u16>,
    role: Role,
) -> Result<(u16, f64), BuildError> {
    let Request { keys, negatives, .. } = *request;
    let (listed, others) = if role == Role::Negative { (negatives, keys) } else { (keys, negatives) };
    let n = listed.max(1);
    // Half a percent is granted to the first stage: of two widths that are as good, the wider is better for unlisted keys.
    let per_bit = 0.995 * base.leaf(request, 2048, true)?.bits(n, 0) / 8.0;
    let per_key = base.leaf(request, 256, false)?.bits(2 * n, 0) / (2 * n) as f64;
    let mut best = (0, f64::INFINITY);
    for width in widths {
        let rate = if width == 0 { 1.0 } else { base.leaf(request, width, true)?.rate_at(1) };
        let left = others as f64 * rate;
        let (keys, negatives) = if role == Role::Negative { (left, n as f64) } else { (n as f64, left) };
        let at = if role == Role::Negative && width > 0 { role } else { Role::Exact };
        let negatives = (negatives - request.left_out(at, request.share())).max(0.0);
        let first = if at == Role::Negative { negatives } else { n as f64 };
        let bits = per_bit * f64::from(width) / 256.0 * first / n as f64 + per_key * (keys + negatives);
        if bits < best.1 {
            best = (width, bits);
        }
    }
    Ok(best)
}
