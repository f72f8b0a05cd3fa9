//! a workload -> a filter and an exact bit: how many negatives to know and how long the filter's fingerprints are.

use std::f64::consts::LN_2;

use super::optimise::{Aim, Family, Limits, sweep};
use crate::math::portable::{exp2, log2};
use crate::math::shape::Shape;

/// A filter on the keys, and an exact bit for the keys and the known negatives that pass it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Chained {
    /// How many negatives it knows: the heaviest. None of them pass.
    pub known: u64,
    /// Bits of fingerprint of the first filter; any positive number.
    pub width: f64,
    /// The expected rate over all negative queries.
    pub efpr: f64,
    /// The rate on values it does not know: 2^-(width + 1).
    pub efpb: f64,
    /// Bits per key.
    pub bits: f64,
}

/// The best filter of two stages ([Chained]) for expected queries, with structures that take `overhead` bits per bit;
/// none where none keeps the limits.
///
/// With `nu` negatives per key and L bits in the first stage, `overhead (L + 1 + nu 2^-L)` bits per key, and a rate of
/// `(1 - psi) 2^-(L + 1)`. A negative of share w is worth its place where
/// `w n (1 - nu ln 2 2^-L) > (1 - psi) ln 2 2^-L`. Limits on layers do not apply: one query asks two tables at most.
///
/// ```
/// use tamis::math::stack::{Limits, chained};
/// use tamis::workload::Shape;
/// let shape = Shape::zipf(1.0, 100_000_000, 50_000_000)?;
/// let filter = chained(1.005, 1_000_000, &shape, &Limits::bits(10.0)).unwrap();
/// assert!((filter.efpr - 4.0e-5).abs() < 0.1e-5);
/// # Ok::<(), tamis::workload::ShapeError>(())
/// ```
pub fn chained(overhead: f64, keys: u64, shape: &Shape, limits: &Limits) -> Option<Chained> {
    if keys == 0 || overhead.is_nan() || overhead <= 0.0 || !limits.possible() {
        return None;
    }
    let mut family = Pairs { overhead, limits };
    let worst = match limits.aim {
        Aim::LeastRate { .. } => 1.0,
        Aim::LeastBits { rate } => family.bits(0.0, rate.min(limits.efpb())) * (1.0 + 1e-12),
    };
    // Nothing known is a plain filter, and a choice.
    let known = sweep(&mut family, keys, shape, limits, worst).unwrap_or(0);
    let with = |known: u64| {
        let (nu, psi) = (known as f64 / keys as f64, shape.mass(known));
        let width = match limits.aim {
            Aim::LeastRate { bits } => family.width(nu, bits)?,
            Aim::LeastBits { rate } => family.least(nu, (rate / (1.0 - psi)).min(limits.efpb())),
        };
        let efpb = exp2(-(width + 1.0));
        let bits = family.total(nu, width);
        (efpb <= limits.efpb()).then_some(Chained { known, width, efpr: (1.0 - psi) * efpb, efpb, bits })
    };
    let value = |filter: &Chained| match limits.aim {
        Aim::LeastRate { .. } => filter.efpr,
        Aim::LeastBits { .. } => filter.bits,
    };
    [with(0), with(known)].into_iter().flatten().min_by(|a, b| value(a).total_cmp(&value(b)))
}

/// Filters of two stages.
struct Pairs<'a> {
    overhead: f64,
    limits: &'a Limits,
}

impl Pairs<'_> {
    /// Bits per key.
    fn total(&self, nu: f64, width: f64) -> f64 {
        self.overhead * (width + 1.0 + nu * exp2(-width))
    }

    /// The longest first stage in a budget: the larger root, by Newton from the right, where tangents never go past it.
    fn width(&self, nu: f64, bits: f64) -> Option<f64> {
        let mut width = bits / self.overhead - 1.0;
        for _ in 0..60 {
            let survivors = nu * exp2(-width);
            let over = width + 1.0 + survivors - bits / self.overhead;
            if over <= 1e-12 * bits {
                break;
            }
            let slope = 1.0 - LN_2 * survivors;
            if slope <= 0.0 {
                return None;
            }
            width -= over / slope;
        }
        // The budget is kept to the last digit.
        width -= 1e-10 * f64::from(u8::from(self.total(nu, width) > bits));
        (width >= 0.0 && self.total(nu, width) <= bits).then_some(width)
    }

    /// The first stage of the smallest filter with such a rate on unknown values, or a lower one.
    fn least(&self, nu: f64, rate: f64) -> f64 {
        let bottom = log2((nu * LN_2).max(f64::MIN_POSITIVE));
        (-log2(rate.max(f64::MIN_POSITIVE)) - 1.0 + 1e-11).max(bottom).max(0.0)
    }
}

impl Family for Pairs<'_> {
    fn rate(&mut self, nu: f64, bits: f64) -> Option<f64> {
        self.width(nu, bits).map(|width| exp2(-(width + 1.0)))
    }

    fn bits(&mut self, nu: f64, rate: f64) -> f64 {
        self.total(nu, self.least(nu, rate))
    }

    fn enough(&self, _known: u64, _rate: f64) -> bool {
        true
    }

    fn allows(&self, _psi: f64, rate: f64) -> bool {
        rate <= self.limits.efpb()
    }
}
