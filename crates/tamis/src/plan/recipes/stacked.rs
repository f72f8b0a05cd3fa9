//! keys, the queries to expect, a goal -> `P N P .. P`: layers in turn on keys and on frequent negatives ([Stacked] section 3).
//!
//! ```text
//!   keys               ──▶ P ──all──▶ N ──few──▶ P ──all──▶ N ──▶ ..        what N does not know gets its yes
//!   frequent negatives ──▶ P ──few──▶ N ──all──▶ P ──few──▶ N ──▶ ..        what P does not know gets its no
//!   other queries      ──▶ P ──few──▶ N ──▶ nearly all get a yes
//! ```
//!
//! A frequent negative must get past every `P`, so its chance falls exponentially with their number, while every layer is a small
//! part of the one before. How many negatives to know and how strict each layer is, is found by `math::stack::optimise`: continuous rates
//! for Bloom, fuse and ribbon layers, whole bits for cuckoo and quotient layers. It counts with formulas; real leaves come in whole
//! hash functions and rounded tables, so at last all rates are raised or lowered together until the leaves keep the budget, and the search goes on
//! with less where they then match more unlisted keys than they may.
//!
//! Wherever a leaf can hold an exact bit, `P E` ([`super::chained`]) is better on every count: nothing it knows passes, unlisted keys pass
//! less often, and it takes fewer bits. Stacks are for leaves that cannot, and for those that take keys after they were built
//! ([`crate::Stacked`]).

use crate::error::{BuildError, Lack};
use crate::leaves::Role;
use crate::math::portable::exp2;
use crate::math::shape::Shape;
use crate::math::stack::{self, Aim, Limits, Size, Stack};
use crate::plan::{Base, Goal, MIN_UNLISTED_SHARE, Request, Step, predict};

/// How far from the best rate an optimiser may stay, as a share of the rate of a plain filter.
const RATE_TOLERANCE: f64 = 1e-3;
/// The largest rate of a layer.
const MAX_RATE: f64 = 0.5;
/// A part of the rate that is not worth a layer.
const MIN_RATE_SHARE: f64 = 1e-3;
/// How often a search keeps to a lower rate for unlisted keys than the last one found, and how much lower.
const MAX_STRICTER_SEARCHES: usize = 8;
const STRICTER_FACTOR: f64 = 0.85;

/// The steps of a request, and how many of the expected queries, the heaviest first, they know: the best whose leaves match at most `cap` of unlisted
/// keys; a single layer, which matches the fewest, where none does.
pub(crate) fn steps(base: Base, request: &Request, shape: &Shape, cap: f64) -> Result<(Vec<Step>, u64), BuildError> {
    if request.negatives > 0 {
        return Err(request.unfit(Lack::Negatives));
    }
    let (size, whole) = (size(base), matches!(base, Base::Cuckoo | Base::Quotient));
    let per_key = |bits: f64| bits / request.keys.max(1) as f64;
    let (aims, alone) = match request.goal {
        // Where unlisted keys may match no more often than expected ones, a second layer has nothing to give.
        Goal::Fpr(rate) if cap <= rate => (vec![], cap),
        Goal::Fpr(rate) => (vec![Aim::LeastBits { rate }], rate),
        Goal::BitsPerKey(_) => {
            // The file's share is that of a short stack. A stack near its least size grows whichever way its rates are moved, and whole bits
            // can only be halved: then one for a little less.
            let bits = per_key(request.room(3)?);
            let aims = [1.0, 0.985, 0.97, 0.93].map(|less| Aim::LeastRate { bits: less * bits });
            (aims.to_vec(), size.alpha(bits).min(MAX_RATE))
        }
        Goal::Exact | Goal::ExcludedFpr(_) => return Err(request.unfit(Lack::Exactness)),
    };
    let search = |aim: Aim, efpb: f64| {
        let limits = Limits { aim, most_efpb: Some(efpb), most_checks: None, epsilon: RATE_TOLERANCE * alone };
        let found = match whole {
            true => stack::integer(size, request.keys, shape, &limits),
            false => stack::fixed(size, request.keys, shape, &limits),
        };
        found.map(|stack| shortened(stack, shape))
    };
    let real = |stack: &Stack| match request.goal {
        Goal::BitsPerKey(_) => fit(base, request, stack),
        Goal::Fpr(_) | Goal::Exact | Goal::ExcludedFpr(_) => layers(base, request, stack, 1.0),
    };
    // What is to be small, if the leaves keep the limits.
    let judged = |steps: &[Step], known: u64| {
        let (psi, seen) = (shape.mass(known), predict(steps, &Request { negatives: known, ..*request }));
        let rate = psi * seen.known_fpr + (1.0 - psi) * seen.fpr;
        match request.goal {
            Goal::Fpr(goal) => (seen.bits, seen.fpr.max(rate / goal * cap)),
            Goal::BitsPerKey(_) | Goal::Exact | Goal::ExcludedFpr(_) => (rate, seen.fpr),
        }
    };
    let single = real(&Stack::new(size, request.keys, shape, 0, vec![alone]));
    let mut best = single.map(|steps| (judged(&steps, 0), steps, 0));
    let mut found = false;
    for aim in aims {
        if found && !whole {
            break;
        }
        // Leaves are rounded, and so is the share that they match: the search goes on below the cap until they keep it.
        let mut efpb = cap;
        for _ in 0..MAX_STRICTER_SEARCHES {
            let Some(stack) = search(aim, efpb) else { break };
            efpb = STRICTER_FACTOR * stack.efpb.min(efpb);
            let Ok(steps) = real(&stack) else { continue };
            let (cost, strangers) = judged(&steps, stack.known);
            if strangers > cap {
                efpb *= 0.995 / STRICTER_FACTOR * cap / strangers;
                continue;
            }
            found = true;
            if best.as_ref().map_or(true, |&((least, most), ..)| cost < least || most > cap) {
                best = Ok(((cost, strangers), steps, stack.known));
            }
            break;
        }
    }
    best.map(|(_, steps, known)| (steps, known))
}

/// Without the layers that make next to no difference: what of the known values gets past the others is little against what unlisted keys do.
pub(crate) fn shortened(mut stack: Stack, shape: &Shape) -> Stack {
    let psi = shape.mass(stack.known);
    let enough = |alphas: &[f64]| {
        psi * stack::known_rate(alphas)
            <= MIN_RATE_SHARE * (1.0 - psi).max(MIN_UNLISTED_SHARE) * stack::unknown_rate(alphas)
    };
    let length = (3..stack.alphas.len()).step_by(2).find(|&length| enough(&stack.alphas[..length]));
    stack.alphas.truncate(length.unwrap_or(stack.alphas.len()));
    stack
}

/// What a layer takes. Buckets of cuckoo filters in a stack are semi-sorted: bits matter more there than in one filter.
pub(crate) fn size(base: Base) -> Size {
    match base {
        Base::Bloom => Size::BLOOM,
        Base::Fuse => Size::FUSE,
        Base::Fuse4 => Size::FUSE4,
        Base::Ribbon => Size::RIBBON,
        Base::Cuckoo => Size::CUCKOO_SEMI_SORTED,
        Base::Quotient => Size::QUOTIENT,
    }
}

/// The layers with all rates times one factor, the least with which the leaves keep the budget.
fn fit(base: Base, request: &Request, stack: &Stack) -> Result<Vec<Step>, BuildError> {
    let counted = Request { negatives: stack.known, ..*request };
    let mut least = f64::INFINITY;
    let mut found = None;
    // Powers of two, from where no filter is small enough to where the budget was forgotten.
    let (mut low, mut high) = (-1.0, 7.0);
    for _ in 0..13 {
        let middle = (low + high) / 2.0;
        let steps = layers(base, request, stack, exp2(middle))?;
        let (bits, room) = (counted.bits_of(&steps), request.room(steps.len())?);
        least = least.min(bits);
        if bits <= room {
            (found, high) = (Some(steps), middle);
        } else {
            low = middle;
        }
    }
    found.ok_or_else(|| request.too_few(stack.alphas.len(), least))
}

/// A leaf for every layer, each for as many keys as are expected to get that far.
fn layers(base: Base, request: &Request, stack: &Stack, factor: f64) -> Result<Vec<Step>, BuildError> {
    let mut sides = [request.keys as f64, stack.known as f64];
    let mut steps = vec![];
    for (layer, &rate) in stack.alphas.iter().enumerate() {
        let [listed, others] = sides;
        let n = (listed.ceil() as u64).max(1);
        let role = if layer % 2 == 0 { Role::Positive } else { Role::Negative };
        let structure = base.with_rate(request, n, (rate * factor).min(MAX_RATE.max(rate)))?;
        steps.push(Step { role, structure });
        sides = [others * structure.rate_at(n), listed];
    }
    Ok(steps)
}
