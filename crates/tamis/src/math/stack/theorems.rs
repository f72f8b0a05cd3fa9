//! a workload -> whether a stack is worth it: the theorems, and what they save.

use super::{Size, endless_bits};
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
/// use tamis::math::stack::step;
/// use tamis::workload::Shape;
/// let shape = Shape::new([(1.0, 1000)], 0.0)?;
/// // 1 % on unknown values, 0.9 % at best so far: below that only with more than a tenth of the queries known.
/// assert_eq!(step(&shape, 0, 0.01, 0.0089), 110);
/// // It always goes on.
/// assert_eq!(step(&shape, 500, 0.01, 0.0089), 501);
/// # Ok::<(), tamis::workload::ShapeError>(())
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
/// use tamis::math::stack::{Size, best_alpha, endless_bits};
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

/// The most known negatives per key for which a stack reaches `alpha` in fewer bits than one filter, if they carry a
/// share `psi` of the queries (\[Stacked\], Theorem 3); below 0 where there is none.
///
/// `log2(1 / (1 - k)) / (log2((1 - k) / alpha) + c) (1 - k - alpha) / alpha - 1` for the best k up to `psi`: layers of
/// rate `alpha / (1 - k)` against one of rate `alpha`. The paper has natural logarithms, right for c = 0 alone: c counts
/// bits.
///
/// ```
/// use tamis::math::stack::{Size, most_known};
/// // [Stacked], section 7: at 5 %, a quarter of the queries on half as many values as there are keys.
/// assert!((most_known(Size::BLOOM, 0.05, 0.25) - 0.5).abs() < 0.02);
/// ```
pub fn most_known(size: Size, alpha: f64, psi: f64) -> f64 {
    let at = |k: f64| {
        let layer = log2((1.0 - k) / alpha) + size.c;
        -log2(1.0 - k) / layer * (1.0 - k - alpha) / alpha - 1.0
    };
    // Beyond 1 - alpha layers would let everything pass.
    let most = psi.min(1.0 - alpha * (1.0 + 1e-9)).max(0.0);
    let mut best = -1.0f64;
    // One maximum: a grid, then the two cells around it.
    let (mut low, mut high) = (0.0, most);
    for _ in 0..12 {
        let width = (high - low) / 16.0;
        let (mut top, mut here) = (low, f64::NEG_INFINITY);
        for i in 0..=16 {
            let k = if i == 16 { high } else { low + f64::from(i) * width };
            let value = at(k);
            if value > here {
                (top, here) = (k, value);
            }
        }
        best = best.max(here);
        (low, high) = ((top - width).max(low), (top + width).min(high));
    }
    best
}

/// Bits per key that an endless stack of equal layers saves against one filter of rate `alpha`, where `nu` known
/// negatives per key carry a share `psi` of the queries; 0 where none (\[Stacked\], section 7, Figure 2c).
///
/// The layers may have rates up to `alpha / (1 - psi)`; the smallest stack is there, or at [`best_alpha`] before it.
///
/// ```
/// use tamis::math::stack::{Size, saved};
/// // Half of the queries on as many values as there are keys: 1.1 of 9.6 bits.
/// assert!((saved(Size::BLOOM, 0.01, 1.0, 0.5) - 1.11).abs() < 0.01);
/// assert_eq!(saved(Size::BLOOM, 0.01, 1.0, 0.0), 0.0);
/// ```
pub fn saved(size: Size, alpha: f64, nu: f64, psi: f64) -> f64 {
    let layer = (alpha / (1.0 - psi)).min(best_alpha(size, nu)).min(1.0 - 1e-9);
    (size.bits(alpha) - endless_bits(size, nu, layer)).max(0.0)
}
