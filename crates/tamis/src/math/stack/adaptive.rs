//! a workload, a budget, a lifetime -> how long a stack of three layers should watch before it is finished (\[Stacked\] section 6).
//!
//! ```text
//!    queries   0 ............ N_o .................................. lifetime
//!    asked     layer 1 alone   | layers 1, 2, 3
//!    rate      alpha_1         | psi alpha_1 alpha_3 + (1 - psi) alpha_1 (1 - alpha_2 + alpha_2 alpha_3)
//! ```
//!
//! It watches N_o negative queries, and those that pass the first layer go into the second. A longer look sees more of the weight, and leaves
//! less time to gain by it and less room for the first layer. So N_o and the three rates are chosen together, for the mean rate over the lifetime.

use super::optimise::{MAX_ALPHA, MIN_ENTRIES};
use super::{Size, bits, expected_rate};
use crate::math::portable::{exp_m1, exp2, ln_1p};
use crate::math::shape::Shape;

/// What `queries` negative queries are expected to show: the share of all queries on the values seen, and how many
/// values that is (\[Stacked\], section 6).
///
/// A value of share f is among them with probability 1 - (1 - f)^queries. Each unseen query is counted as a new value.
///
/// ```
/// use tamis::internals::math::stack::observed;
/// use tamis::internals::Shape;
/// let shape = Shape::new([(1.0, 2)], 0.5)?;
/// // Two queries: each of the two values is seen with 1 - (3/4)^2 = 7/16, and one query is unseen.
/// let (psi, known) = observed(&shape, 2);
/// assert!((psi - 2.0 * 0.25 * 7.0 / 16.0).abs() < 1e-12 && (known - (1.0 + 14.0 / 16.0)).abs() < 1e-12);
/// # Ok::<(), tamis::internals::ShapeError>(())
/// ```
pub fn observed(shape: &Shape, queries: u64) -> (f64, f64) {
    let (mut psi, mut known) = (0.0, shape.unseen() * queries as f64);
    for (share, values) in shape.classes() {
        let seen = -exp_m1(queries as f64 * ln_1p(-share)) * values as f64;
        psi += share * seen;
        known += seen;
    }
    (psi, known)
}
/// How many negative queries show so many values on average: the inverse of the second number of [`observed`].
///
/// No more than `most`, where even these do not.
///
/// ```
/// use tamis::internals::math::stack::{observed, watched};
/// use tamis::internals::Shape;
/// let shape = Shape::zipf(1.0, 1_000_000, 500_000)?;
/// let queries = watched(&shape, 10_000.0, 1 << 40);
/// assert!(observed(&shape, queries).1 >= 10_000.0 && observed(&shape, queries - 1).1 < 10_000.0);
/// # Ok::<(), tamis::internals::ShapeError>(())
/// ```
pub fn watched(shape: &Shape, known: f64, most: u64) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if observed(shape, middle).1 >= known { high = middle } else { low = middle + 1 }
    }
    low
}

/// Three layers that learn what to reject, and what they are expected to do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Quick {
    /// Negative queries to watch before the third layer is built: N_o.
    pub queries: u64,
    /// The share of later queries on values that were seen meanwhile.
    pub psi: f64,
    /// How many values are seen: `alphas[0]` of them go into the second layer.
    pub known: f64,
    /// The rates of the layers; the first one alone answers while it watches.
    pub alphas: [f64; 3],
    /// The rate of the three.
    pub late: f64,
    /// The rate over the whole lifetime.
    pub mean: f64,
    /// Bits per key.
    pub bits: f64,
}

/// Looks per doubling of N_o before they are refined.
const LOOKS_PER_DOUBLING: u32 = 2;
/// The lowest rates that are tried, as powers of 1/2.
const MAX_RATE_EXPONENT: u32 = 18;

/// The three layers with the least mean rate over `lifetime` negative queries in `bits` per key; none where one layer alone
/// is as good.
///
/// `whole`: fingerprints have whole bits. A grid over N_o and the rates of layers 2 and 3, then ever smaller steps around the best; the
/// first layer takes the room that is left.
///
/// ```
/// use tamis::internals::math::stack::{Size, quick};
/// use tamis::internals::Shape;
/// // [Stacked], section 8.4: 10^6 keys, 10^8 values by Zipf's law, 10 bits per key, 10^7 queries.
/// let shape = Shape::zipf(1.0, 100_000_000, 50_000_000)?;
/// let plan = quick(Size::BLOOM, false, 1_000_000, &shape, 10.0, 10_000_000).unwrap();
/// assert!(plan.bits <= 10.0 && plan.mean < Size::BLOOM.alpha(10.0) / 1.9);
/// # Ok::<(), tamis::internals::ShapeError>(())
/// ```
pub fn quick(size: Size, whole: bool, keys: u64, shape: &Shape, bits: f64, lifetime: u64) -> Option<Quick> {
    if keys == 0 || lifetime == 0 || bits.is_nan() || bits <= 0.0 {
        return None;
    }
    let search = Search { size, whole, keys, bits, lifetime };
    let alone = search.first(0.0, 0.0, bits)?;
    let mut best: Option<(Quick, [u32; 2])> = None;
    for look in 0..=lifetime.ilog2() * LOOKS_PER_DOUBLING {
        let queries = exp2(f64::from(look) / f64::from(LOOKS_PER_DOUBLING)) as u64;
        let seen = observed(shape, queries);
        for powers in
            (1..=MAX_RATE_EXPONENT).flat_map(|second| (1..=MAX_RATE_EXPONENT).map(move |third| [second, third]))
        {
            let found = search.at(queries, seen, powers.map(|power| exp2(-f64::from(power))));
            if let Some(found) = found.filter(|found| best.as_ref().is_none_or(|best| found.mean < best.0.mean)) {
                best = Some((found, powers));
            }
        }
    }
    let (mut best, powers) = best?;
    let mut powers = powers.map(f64::from);
    let mut step = 0.5;
    for _ in 0..16 {
        let mut better = false;
        for (queries, second, third) in
            [(-1.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0), (0.0, 0.0, 1.0)]
        {
            // Whole bits stay whole.
            if whole && queries == 0.0 {
                continue;
            }
            let queries = (best.queries as f64 * exp2(queries * step)) as u64;
            let tried = [(powers[0] + second * step).max(1.0), (powers[1] + third * step).max(1.0)];
            let found = search.at(queries, observed(shape, queries), tried.map(|power| exp2(-power)));
            if let Some(found) = found.filter(|found| found.mean < best.mean) {
                (best, powers) = (found, tried);
                better = true;
            }
        }
        // A step that helped is made again.
        if !better {
            step /= 2.0;
        }
    }
    (best.mean < alone).then_some(best)
}

/// What stays the same through a search.
struct Search {
    size: Size,
    whole: bool,
    keys: u64,
    bits: f64,
    lifetime: u64,
}

impl Search {
    /// What three layers do that watch so many queries, with these rates of the second and third.
    fn at(&self, queries: u64, (psi, known): (f64, f64), [second, third]: [f64; 2]) -> Option<Quick> {
        if queries > self.lifetime {
            return None;
        }
        let nu = known / self.keys as f64;
        let first = self.first(nu, self.size.bits(second), self.bits - second * self.size.bits(third))?;
        if first * known < MIN_ENTRIES {
            return None;
        }
        let alphas = [first, second, third];
        let late = expected_rate(psi, &alphas);
        let early = queries as f64 / self.lifetime as f64;
        let mean = early * first + (1.0 - early) * late;
        Some(Quick { queries, psi, known, alphas, late, mean, bits: bits(self.size, nu, &alphas) })
    }

    /// The least rate of a first layer that leaves room for a second of `each` bits per entry: s(a) + nu a each <= room.
    fn first(&self, nu: f64, each: f64, room: f64) -> Option<f64> {
        let taken = |alpha: f64| self.size.bits(alpha) + nu * alpha * each;
        if self.whole {
            return (1..=32).rev().map(|bits| exp2(-f64::from(bits))).find(|&alpha| taken(alpha) <= room);
        }
        // It falls up to here, and the first root is left of it.
        let least = match nu * each {
            0.0 => MAX_ALPHA,
            slope => (std::f64::consts::LOG2_E / (self.size.f * slope)).min(MAX_ALPHA),
        };
        if taken(least) > room {
            return None;
        }
        let (mut low, mut high) = (self.size.alpha(room).min(least), least);
        for _ in 0..32 {
            let middle = (low + high) / 2.0;
            if taken(middle) <= room { high = middle } else { low = middle }
        }
        Some(high)
    }
}

#[cfg(test)]
mod tests;
