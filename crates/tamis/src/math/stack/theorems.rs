//! a workload -> which stacks are worth a look: theorems 1 and 2.

use super::Size;
use crate::math::portable::log2;
use crate::math::shape::Shape;

/// The next number of known negatives worth a look, after one whose best rate on unknown values is `unknown` (\[Stacked\],
/// Theorem 1).
///
/// More known negatives leave less room, so further on that rate is never better; and they carry at most what the end of
/// a skipped range carries. What is skipped is thus at least `(1 - mass(end)) unknown`: the end is the first that could
/// reach `goal`, the best rate so far less what may be lost.
///
/// ```
/// use tamis::internals::math::stack::step;
/// use tamis::internals::Shape;
/// let shape = Shape::new([(1.0, 1000)], 0.0)?;
/// // 1 % on unknown values, 0.9 % at best so far: below that only with more than a tenth of the queries known.
/// assert_eq!(step(&shape, 0, 0.01, 0.0089), 110);
/// // It always goes on.
/// assert_eq!(step(&shape, 500, 0.01, 0.0089), 501);
/// # Ok::<(), tamis::internals::ShapeError>(())
/// ```
pub fn step(shape: &Shape, known: u64, unknown: f64, goal: f64) -> u64 {
    // Where even all known negatives do not reach it, all of them is the last look.
    shape.top(1.0 - goal / unknown).max(known.saturating_add(1))
}

/// The rate of equal layers for which the endless stack is smallest; 1 where it shrinks all the way (\[Stacked\],
/// Theorem 2).
///
/// The size falls before it and rises after. Its derivative vanishes where
/// `alpha (1 + nu) (c ln 2 - ln alpha) = (1 + nu alpha) (1 - alpha)`.
///
/// ```
/// use tamis::internals::math::stack::{Size, best_alpha, endless_bits};
/// let best = best_alpha(Size::BLOOM, 20.0);
/// let at = |alpha| endless_bits(Size::BLOOM, 20.0, alpha);
/// assert!(at(best) < at(best * 0.99) && at(best) < at(best * 1.01));
/// // With no more negatives than keys, the thinner the layers the better.
/// assert_eq!(best_alpha(Size::BLOOM, 1.0), 1.0);
/// ```
pub fn best_alpha(size: Size, nu: f64) -> f64 {
    let falls = |alpha: f64| {
        alpha * (1.0 + nu) * (size.c - log2(alpha)) * std::f64::consts::LN_2 < (1.0 + nu * alpha) * (1.0 - alpha)
    };
    // At 1 both sides vanish without c; their second derivatives decide: (nu - 1) / 2.
    if size.c == 0.0 && nu <= 1.0 {
        return 1.0;
    }
    let (mut low, mut high) = (f64::MIN_POSITIVE, 1.0);
    for _ in 0..2000 {
        // By the exponents first: the rate may be tiny.
        let middle = if high > 2.0 * low { (low * high).sqrt() } else { (low + high) / 2.0 };
        if middle <= low || middle >= high {
            break;
        }
        if falls(middle) { low = middle } else { high = middle }
    }
    low
}
