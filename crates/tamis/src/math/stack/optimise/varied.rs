//! a stack of equal layers -> one whose layers have rates of their own: a pattern search, the same everywhere.

use super::{Aim, Limits, MAX_LAYERS, MIN_ENTRIES, Problem, Stack, Sums, fixed};
use crate::math::portable::{exp2, log2};
use crate::math::shape::Shape;
use crate::math::stack::Size;

/// Stacks looked at from one start, at most.
const MAX_LOOKS: u32 = 2000;

/// The stack of `fixed`, polished by a search over the rates of all layers and the number of negatives
/// (\[Stacked\], section 5.2.2, *Varying FPRs*); never worse.
///
/// The paper polishes with a general method for limits. Here the first layer's rate follows from the others: it takes
/// what the budget leaves, or what the rate needs. So there is no limit to keep in the search, and steps along the
/// coordinates, halved when none helps, are enough.
///
/// ```
/// use tamis::internals::math::stack::{Limits, Size, fixed, varied};
/// use tamis::internals::Shape;
/// let shape = Shape::zipf(1.0, 1_000_000, 100_000)?;
/// let limits = Limits::bits(8.0);
/// let equal = fixed(Size::BLOOM, 50_000, &shape, &limits).unwrap();
/// let stack = varied(Size::BLOOM, 50_000, &shape, &limits).unwrap();
/// assert!(stack.efpr <= equal.efpr && stack.bits <= 8.0);
/// # Ok::<(), tamis::internals::ShapeError>(())
/// ```
pub fn varied(size: Size, keys: u64, shape: &Shape, limits: &Limits) -> Option<Stack> {
    let problem = Problem { size, keys, shape, limits };
    let equal = fixed(size, keys, shape, limits)?;
    let mut best = equal.clone();
    if shape.known() == 0 {
        return Some(best);
    }
    let equal_width = -log2(equal.alphas.first().copied().unwrap_or(0.5).max(f64::MIN_POSITIVE));
    for layers in (3..=MAX_LAYERS.min(9)).step_by(2) {
        for width in [equal_width.max(1.0), 4.0] {
            // The first coordinate is the number of negatives; the first layer's rate follows from the rest.
            let mut point = vec![width; layers];
            point[0] = log2(if equal.known > 0 { equal.known } else { keys.min(shape.known()) } as f64);
            // Fewer, until some first layer keeps the limits.
            while point[0] > 1.0 && complete(&problem, &point).is_none() {
                point[0] -= 1.0;
            }
            let Some(stack) = polish(&problem, point) else { continue };
            if problem.value(&stack) < problem.value(&best) - limits.slack(problem.value(&best)) / 3.0 {
                best = stack;
            }
        }
    }
    Some(best)
}

/// Hooke and Jeeves: a step along each coordinate, then the same move again while it helps, then half the step.
fn polish(problem: &Problem<'_>, mut point: Vec<f64>) -> Option<Stack> {
    let mut looks = 0;
    let mut look = |point: &[f64]| {
        looks += 1;
        (complete(problem, point).map_or(f64::INFINITY, |(value, ..)| value), looks < MAX_LOOKS)
    };
    let (mut best, _) = look(&point);
    let mut step = 1.0;
    'search: while step > 1e-3 {
        let before = point.clone();
        for i in 0..point.len() {
            for change in [step, -step] {
                let old = point[i];
                point[i] += change;
                let (value, more) = look(&point);
                if value < best {
                    best = value;
                    break;
                }
                point[i] = old;
                if !more {
                    break 'search;
                }
            }
        }
        if point == before {
            step /= 2.0;
            continue;
        }
        let further: Vec<f64> = point.iter().zip(&before).map(|(now, then)| 2.0 * now - then).collect();
        let (value, _) = look(&further);
        if value < best {
            (best, point) = (value, further);
        }
    }
    let (_, known, alphas) = complete(problem, &point)?;
    let stack = Stack::new(problem.size, problem.keys, problem.shape, known, alphas);
    problem.keeps(&stack).then_some(stack)
}

/// The stack of a point: log2 of the negatives, then the lengths of the layers from the second on. What is to be small,
/// the negatives and the rates; none where no first layer keeps the limits.
fn complete(problem: &Problem<'_>, point: &[f64]) -> Option<(f64, u64, Vec<f64>)> {
    let Problem { size, shape, limits, .. } = *problem;
    if point[1..].iter().any(|&width| !(1.0..=64.0).contains(&width)) || point[0] < 0.0 {
        return None;
    }
    let known = (exp2(point[0]).ceil() as u64).clamp(1, shape.known());
    let (nu, psi) = (problem.nu(known), shape.mass(known));
    let mut alphas: Vec<f64> = point.iter().map(|&width| exp2(-width)).collect();
    // With a first layer that lets all pass, the sums are those of what comes after it.
    alphas[0] = 1.0;
    let rest = Sums::of(size, &alphas);
    let rest_rate = psi * rest.known_rate + (1.0 - psi) * rest.unknown_rate;
    let rest_keys = rest.keys - size.c / size.f;
    let negatives = nu * rest.known;
    let least = log2(rest.unknown_rate / limits.efpb()).max(1.0);
    // The whole is (width + c) / f + rest_keys + negatives 2^-width: least where its slope vanishes.
    let bottom = log2((negatives * size.f * std::f64::consts::LN_2).max(f64::MIN_POSITIVE)).max(1.0);
    let width = match limits.aim {
        Aim::LeastRate { bits } => {
            let mut width = (bits - rest_keys) * size.f - size.c;
            // From the right the tangents of a convex function lead to its larger root, and never past it.
            for _ in 0..50 {
                let over = (width + size.c) / size.f + rest_keys + negatives * exp2(-width) - bits;
                let slope = 1.0 / size.f - std::f64::consts::LN_2 * negatives * exp2(-width);
                if over <= 1e-12 * bits || slope <= 0.0 {
                    break;
                }
                width -= over / slope;
            }
            // The last digits of the logarithm.
            width - 1e-10
        }
        Aim::LeastBits { rate } => (log2(rest_rate / rate).max(bottom) + 1e-11).max(least + 1e-11),
    };
    if width < least || (width < bottom && negatives > 0.0) {
        return None;
    }
    let alpha = exp2(-width);
    if known as f64 * alpha < MIN_ENTRIES {
        return None;
    }
    alphas[0] = alpha;
    let total = (width + size.c) / size.f + rest_keys + negatives * alpha;
    let value = match limits.aim {
        Aim::LeastRate { bits } if total > bits => return None,
        Aim::LeastRate { .. } => alpha * rest_rate,
        Aim::LeastBits { .. } => total,
    };
    limits.allows(psi, &super::checks(&alphas)).then_some((value, known, alphas))
}
