//! rates and counts of known negatives -> bits: how small a filter can be.
//!
//! Everything is per key of the set unless a name says otherwise, and `lambda` is the number of known negatives per
//! key.
//!
//! These numbers are compared and printed. They use the platform's `log2`, whose last digit differs between systems; what a
//! file is sized by must not come from here.
//!
//! Papers: \[Chained\] for the bound on exact filters, \[FPFS\] for filters with a false-positive-free set. Derivations are
//! in `docs/math.md`.

#![allow(clippy::disallowed_methods, reason = "what is compared and printed decides no byte")]

use std::f64::consts::LOG2_E;

/// The least bits per key that tell the keys from `lambda` known negatives per key, of which a share `eps` may pass.
///
/// \[Chained\], Theorem 2.1, with Shannon's entropy H:
/// `f(eps, lambda) = (lambda + 1) H(1 / (lambda + 1)) - (eps lambda + 1) H(1 / (eps lambda + 1))`.
/// No negatives cost nothing; infinitely many are unlisted keys, and cost `log2(1 / eps)`.
///
/// ```
/// use tamis::bounds::f;
/// assert_eq!(f(0.0, 1.0), 2.0);
/// assert_eq!(f(1.0 / 256.0, f64::INFINITY), 8.0);
/// ```
pub fn f(eps: f64, lambda: f64) -> f64 {
    let (eps, lambda) = (eps.clamp(0.0, 1.0), lambda.max(0.0));
    if eps == 1.0 || lambda == 0.0 {
        return 0.0;
    }
    let survivors = eps * lambda;
    if survivors.is_finite() {
        // g(lambda) - g(survivors) with g(x) = ln(1 + x) + x ln(1 + 1/x), so that nothing large cancels.
        let logarithms =
            if lambda > 1.0 { ((lambda + 1.0) / (survivors + 1.0)).ln() } else { lambda.ln_1p() - survivors.ln_1p() };
        return (logarithms + (ring(lambda) - ring(survivors))) * LOG2_E;
    }
    if eps == 0.0 { f64::INFINITY } else { -eps.log2() }
}

/// The least bits per key of filters joined by `&`, however many, where a share `eps` of `lambda` known negatives per key may pass
/// and a single filter takes `filter(eps, lambda)` bits.
///
/// \[Chained\], Theorem 4.2: what the best chain takes is the largest function that is nowhere above `filter` and that no two
/// filters in a row fall below. Found over chains whose rates lie on a grid, at most 32 points for each halving.
///
/// ```
/// use tamis::bounds::{and_limit, f};
/// // One bit for every listed key, or a filter that knows no negatives.
/// let exact = |eps: f64, lambda: f64| if eps <= 0.5 { lambda + 1.0 - 2.0 * eps * lambda } else { f64::INFINITY };
/// let bloomier = |eps: f64, lambda: f64| exact(eps, lambda).min(-eps.log2());
/// let over = and_limit(bloomier, 0.0, 16.0) / f(0.0, 16.0) - 1.0;
/// assert!((over - 0.08).abs() < 0.005); // figure 4: 8 % above the bound
/// ```
pub fn and_limit(filter: impl Fn(f64, f64) -> f64, eps: f64, lambda: f64) -> f64 {
    /// Points of the grid: the time grows with their square.
    const MAX_POINTS: f64 = 1024.0;
    let (eps, lambda) = (eps.clamp(0.0, 1.0), lambda.max(0.0));
    // Where none may pass, the last filter has at most 2^-8 negatives per key.
    let halvings = if eps > 0.0 { -eps.log2() } else { (8.0 + lambda.max(1.0).log2()).min(1000.0) };
    let points = (32.0 * halvings).ceil().min(MAX_POINTS);
    let left = |i: usize| (-halvings * i as f64 / points.max(1.0)).exp2();
    // The least for what is left at a point, from the last one back.
    let mut least = vec![];
    for i in (0..=points as usize).rev() {
        let rest = lambda * left(i);
        let last = if eps > 0.0 && i == points as usize { 0.0 } else { filter(eps / left(i), rest) };
        // A chain that goes on from a later point.
        let on = least.iter().rev().enumerate().map(|(step, bits)| filter(left(i + 1 + step) / left(i), rest) + bits);
        least.push(on.fold(last, f64::min));
    }
    least.pop().unwrap_or(0.0)
}

/// The share of `mu` known negatives per key that pass one column with `1 + slack` rows per key, if the best of all
/// its solutions is taken: the `x` below 1/2 with `mu (1 - H(x)) = slack`, or 0 where even that is not all.
///
/// ```
/// use tamis::bounds::steered;
/// assert_eq!(steered(5.0, 0.0), 0.5); // nothing to choose
/// assert!((steered(2.0, 0.25) - 0.295).abs() < 0.001);
/// assert_eq!(steered(0.5, 0.5), 0.0); // a bit for every negative
/// ```
pub fn steered(mu: f64, slack: f64) -> f64 {
    let (mut low, mut high) = (0.0, 0.5);
    // H grows up to 1/2.
    for _ in 0..60 {
        let x: f64 = (low + high) / 2.0;
        let entropy = -(x * x.ln() + (1.0 - x) * (-x).ln_1p()) * LOG2_E;
        if mu * (1.0 - entropy) < slack { high = x } else { low = x }
    }
    if mu <= slack { 0.0 } else { (low + high) / 2.0 }
}

/// `x ln(1 + 1/x)`: 0 at 0, 1 at infinity.
fn ring(x: f64) -> f64 {
    // Below the normal numbers 1/x overflows.
    if x < f64::MIN_POSITIVE {
        0.0
    } else if x.is_infinite() {
        1.0
    } else {
        x * x.recip().ln_1p()
    }
}

/// A size and the rate at which it is reached.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Least {
    /// Bits of the whole filter.
    pub bits: f64,
    /// The share of unlisted keys that pass: `FPP'` of \[FPFS\], at most what was allowed.
    pub rate: f64,
}

/// The least bits of a filter for `s` keys that rejects `t` known negatives and matches a share `fpp` of unlisted keys.
///
/// \[FPFS\], section 3.2: the least of `s log2(1/p) + t log2(1/(1-p))` over `p <= fpp`. The derivative vanishes at
/// `p = s / (s + t)`. When that is allowed, the bound is `s f(0, t / s)`: rejecting unlisted keys then takes no bits.
///
/// ```
/// use tamis::bounds::{f, free_set};
/// let few = free_set(1_000_000, 0, 1.0 / 256.0);
/// assert_eq!((few.bits, few.rate), (8e6, 1.0 / 256.0));
/// let many = free_set(1_000_000, 1_000_000_000, 1.0 / 256.0);
/// assert!(many.rate < 0.001 && (many.bits / (1e6 * f(0.0, 1000.0)) - 1.0).abs() < 1e-12);
/// ```
pub fn free_set(s: u64, t: u64, fpp: f64) -> Least {
    let (keys, negatives) = (s as f64, t as f64);
    let best = if t == 0 { 1.0 } else { keys / (keys + negatives) };
    let rate = best.min(fpp.clamp(0.0, 1.0));
    Least { bits: times(keys, -rate.log2()) + times(negatives, -(-rate).ln_1p() * LOG2_E), rate }
}

/// A product in which nothing times infinity is nothing: no keys need no bits.
fn times(count: f64, bits: f64) -> f64 {
    // Adding zero makes the negative zero of log2(1) an ordinary one.
    if count == 0.0 { 0.0 } else { count * bits + 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAMBDAS: [f64; 14] = [0.0, 1e-9, 0.3, 1.0, 1.5, 2.0, 3.0, 7.9, 16.0, 100.0, 1e6, 1e15, 1e300, f64::INFINITY];
    const RATES: [f64; 9] = [0.0, 1e-300, 1e-9, 0.01, 0.25, 0.5, 0.7, 0.999, 1.0];

    #[track_caller]
    fn close(found: f64, expected: f64, tolerance: f64) {
        let equal = found == expected || (found - expected).abs() <= tolerance * expected.abs().max(1.0);
        assert!(equal, "{found}, expected {expected}");
    }

    /// Shannon's entropy and Theorem 2.1 word by word.
    fn f_oracle(eps: f64, lambda: f64) -> f64 {
        let h = |p: f64| if p <= 0.0 || p >= 1.0 { 0.0 } else { -p * p.log2() - (1.0 - p) * (1.0 - p).log2() };
        let part = |x: f64| (x + 1.0) * h(1.0 / (x + 1.0));
        part(lambda) - part(eps * lambda)
    }

    /// The table of the bound for lambda from 1 to 1000, and the paper's form of it.
    #[test]
    fn f_is_theorem_2_1() {
        let table = [
            (1.0, 2.0),
            (2.0, 2.755),
            (3.0, 3.245),
            (5.0, 3.9),
            (8.0, 4.529),
            (10.0, 4.834),
            (16.0, 5.487),
            (30.0, 6.373),
            (100.0, 8.094),
            (1000.0, 11.409),
        ];
        for (lambda, bits) in table {
            assert_eq!((f(0.0, lambda) * 1000.0).round() / 1000.0, bits);
            // Table 2 of the paper, last column.
            close(f(0.0, lambda), lambda.log2() + (lambda + 1.0) * (1.0 + 1.0 / lambda).log2(), 1e-12);
        }
        for lambda in [0.3, 1.0, 2.5, 16.0, 100.0] {
            for eps in RATES {
                close(f(eps, lambda), f_oracle(eps, lambda), 1e-11);
            }
        }
    }

    /// With more and more negatives the bound tends to that of unlisted keys, from below and without a step.
    #[test]
    fn f_ends_at_the_bound_of_approximate_filters() {
        for eps in [1e-9, 0.01, 0.25, 0.999] {
            let mut last = 0.0;
            for lambda in LAMBDAS {
                let bits = f(eps, lambda);
                assert!(
                    bits >= last * (1.0 - 1e-12) && bits <= -eps.log2() * (1.0 + 1e-12),
                    "f({eps}, {lambda}) = {bits} after {last}"
                );
                last = bits;
            }
            close(f(eps, 1e15), -eps.log2(), 1e-5);
            assert_eq!(last, -eps.log2());
        }
        assert_eq!(f(0.0, f64::INFINITY), f64::INFINITY);
    }

    #[test]
    fn nothing_is_nan_or_negative() {
        for lambda in LAMBDAS.into_iter().chain([-1.0]) {
            assert!(RATES.into_iter().chain([-0.5, 2.0]).all(|x| f(x, lambda) >= 0.0), "{lambda}");
        }
        for (s, t) in [(0, 0), (0, 9), (9, 0), (1, u64::MAX), (u64::MAX, 1), (u64::MAX, u64::MAX)] {
            for fpp in RATES {
                let least = free_set(s, t, fpp);
                assert!(least.bits >= 0.0 && least.rate >= 0.0 && least.rate <= fpp, "{s}, {t}, {fpp}: {least:?}");
            }
        }
    }

    /// Chains of perfect filters lose nothing (Theorem 2.2), chains of Bloomier filters reach Corollary 4.1 (a): at lambda = 16 the 8 % of
    /// figure 4, where one of them takes 210 % more than the bound.
    #[test]
    fn and_limit_is_theorem_4_2() {
        let bloomier = |eps: f64, lambda: f64| {
            let exact = if eps <= 0.5 { lambda + 1.0 - 2.0 * eps * lambda } else { f64::INFINITY };
            exact.min(-eps.log2())
        };
        let percent = |bits: f64| ((bits / f(0.0, 16.0) - 1.0) * 100.0).round();
        assert_eq!([bloomier(0.0, 16.0), and_limit(bloomier, 0.0, 16.0)].map(percent), [210.0, 8.0]);
        for (eps, lambda) in [(0.0, 2.0), (0.0, 100.0), (0.01, 16.0), (0.03, 8.0), (0.1, 4.0)] {
            let corollary = (2.0 * std::f64::consts::E * lambda * std::f64::consts::LN_2).log2() - 2.0 * lambda * eps;
            close(and_limit(bloomier, eps, lambda), corollary, 1e-3);
            close(and_limit(f, eps, lambda), f(eps, lambda), 1e-9);
        }
        // Few negatives leave no first filter, and a high rate no exact bit.
        assert_eq!(and_limit(bloomier, 0.0, 1.0), 2.0);
        close(and_limit(bloomier, 0.1, 16.0), 10f64.log2(), 1e-9);
        for (eps, lambda) in [(1.0, 5.0), (1e-300, 1e9), (0.0, 1e300), (0.0, 0.0), (f64::MIN_POSITIVE, f64::INFINITY)] {
            let bits = and_limit(bloomier, eps, lambda);
            assert!(bits >= 0.0 && bits <= bloomier(eps, lambda), "{eps}, {lambda}: {bits}");
        }
    }

    #[test]
    fn the_free_set_bound_is_the_least_of_all_rates() {
        for (s, t) in [(1, 1), (1000, 3), (1000, 1000), (1000, 77_777), (2500, 20_000_000)] {
            for fpp in [0.5, 0.1, 1.0 / 256.0] {
                let rates = (0..200_000).map(|i| fpp * (-f64::from(i) / 10_000.0).exp());
                let bits = |p: f64| s as f64 * -p.log2() + t as f64 * -(1.0 - p).log2();
                close(free_set(s, t, fpp).bits, rates.map(bits).fold(f64::INFINITY, f64::min), 1e-6);
            }
        }
        // With a rate that does not bind, the bound is that of exact membership.
        close(free_set(1000, 16_000, 0.5).bits, 1000.0 * f(0.0, 16.0), 1e-12);
        assert_eq!(free_set(1000, 16_000, 0.5).rate, 1.0 / 17.0);
        assert_eq!(free_set(7, 5, 0.0).bits, f64::INFINITY);
    }
}
