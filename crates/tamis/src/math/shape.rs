//! weights of known negatives -> their rank-frequency law: what share of all negative queries the heaviest carry.
//!
//! ```text
//!    share of one value
//!    |#                       mass(3): the area of the first three columns
//!    |# #                     unseen: the queries that fall on none of the values
//!    |# # # #
//!    |# # # # # # # # #
//!    +-----------------> rank
//! ```
//!
//! Values of equal weight form a class, and a law is a short list of classes: counts of a query log are small integers that repeat.

use crate::debug::brief_debug;
pub use crate::error::ShapeError;
use crate::math::portable::{exp2, log2};

/// More classes than this are merged: the search stays in the cache and the error below 1 % of a value's weight.
const MAX_CLASSES: usize = 4096;

/// Ranks of [`Shape::zipf`] that are classes of their own; `known` ranks take 192 classes per doubling after them.
const SINGLE_RANKS: u64 = 1024;

/// The rank-frequency law of the negative queries a filter expects.
///
/// ```
/// use tamis::internals::Shape;
/// // One value asked 6 times, two asked twice, and a tenth of all queries on values nobody knows.
/// let shape = Shape::new([(2.0, 2), (6.0, 1)], 0.1)?;
/// assert_eq!(shape.known(), 3);
/// assert!((shape.mass(1) - 0.54).abs() < 1e-12);
/// assert!((shape.mass(3) - 0.9).abs() < 1e-12);
/// assert!((shape.share(2) - 0.18).abs() < 1e-12);
/// assert_eq!(shape.top(0.6), 2);
/// # Ok::<(), tamis::internals::ShapeError>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Shape {
    /// Heaviest first; no two of the same share.
    classes: Vec<Class>,
    unseen: f64,
}

brief_debug!(Shape, it => classes: it.classes.len(), unseen: it.unseen);

/// Values of the same share.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Class {
    /// Of one value, among all negative queries.
    share: f64,
    /// Values up to and with this class.
    ranks: u64,
    /// Their share of all negative queries.
    mass: f64,
}

impl Shape {
    /// The law of values given as (weight of each, how many), in any order, and the share of queries on none of them.
    ///
    /// Weights need no unit. Values of weight 0 are dropped: they are never queried. Without values every query is
    /// unseen. More than 4096 different weights are merged with their neighbours, by equal ratios; masses and counts
    /// stay exact where two merged classes meet, and are linear between.
    ///
    /// # Errors
    ///
    /// A weight that is negative or no finite number, an `unseen` outside 0 to 1, or more than 2^64 values.
    pub fn new(classes: impl IntoIterator<Item = (f64, u64)>, unseen: f64) -> Result<Shape, ShapeError> {
        Shape::of(&mut classes.into_iter(), unseen)
    }

    fn of(classes: &mut dyn Iterator<Item = (f64, u64)>, unseen: f64) -> Result<Shape, ShapeError> {
        if !(0.0..=1.0).contains(&unseen) {
            let what = "unlisted_share";
            return Err(ShapeError::Parameter { what, found: unseen, allowed: "0 to 1" });
        }
        let mut sorted = Vec::new();
        let mut known = 0u64;
        for (weight, count) in classes {
            if !weight.is_finite() || weight < 0.0 {
                return Err(ShapeError::Weight { found: weight });
            }
            if weight > 0.0 && count > 0 {
                known = known.checked_add(count).ok_or(ShapeError::TooMany)?;
                sorted.push((weight, count));
            }
        }
        sorted.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        sorted.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        // In units of the heaviest no sum overflows.
        let Some(&(heaviest, _)) = sorted.first() else {
            return Ok(Shape { classes: Vec::new(), unseen: 1.0 });
        };
        let mass = |(weight, count): (f64, u64)| (weight / heaviest * count as f64, count);
        let masses = sorted.into_iter().map(mass).collect();
        Ok(Shape::from_masses(merge(masses), unseen))
    }

    /// Zipf's law: the value of rank i among `values` has a weight of i^-`exponent`, and the `known` heaviest are known.
    ///
    /// ```
    /// use tamis::internals::Shape;
    /// // [Stacked], section 8: 10^8 values, of which the heavier half is known.
    /// let shape = Shape::zipf(1.0, 100_000_000, 50_000_000)?;
    /// assert!((shape.unseen() - 0.0365).abs() < 1e-4);
    /// assert!((shape.mass(1_000_000) - 0.7576).abs() < 1e-4);
    /// # Ok::<(), tamis::internals::ShapeError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// An exponent outside 0 to 16.
    pub fn zipf(exponent: f64, values: u64, known: u64) -> Result<Shape, ShapeError> {
        if !(0.0..=16.0).contains(&exponent) {
            let what = "exponent";
            return Err(ShapeError::Parameter { what, found: exponent, allowed: "0 to 16" });
        }
        let known = known.min(values);
        if known == 0 {
            return Ok(Shape { classes: Vec::new(), unseen: 1.0 });
        }
        let mut masses: Vec<(f64, u64)> =
            (1..=known.min(SINGLE_RANKS)).map(|rank| (power(rank, -exponent), 1)).collect();
        let mut from = masses.len() as u64;
        if from < known {
            let doublings = log2(known as f64 / from as f64).max(1.0);
            let steps = (doublings * 192.0).min((MAX_CLASSES - masses.len()) as f64).max(1.0) as u32;
            for i in 1..=steps {
                let next = from_ratio(SINGLE_RANKS, known, f64::from(i) / f64::from(steps));
                if next > from {
                    masses.push((zipf_between(exponent, from, next), next - from));
                    from = next;
                }
            }
        }
        // Below the first thousand ranks the series is not exact enough: they are added one by one.
        let until = values.min(SINGLE_RANKS).max(known);
        let singles: f64 = (known..until).map(|before| power(before + 1, -exponent)).sum();
        let rest = singles + if values > until { zipf_between(exponent, until, values) } else { 0.0 };
        let sum: f64 = masses.iter().map(|class| class.0).sum();
        Ok(Shape::from_masses(masses, rest / (sum + rest)))
    }

    /// Running sums of (mass, values), in any unit of mass.
    fn from_masses(masses: Vec<(f64, u64)>, unseen: f64) -> Shape {
        let total: f64 = masses.iter().map(|class| class.0).sum();
        let unit = (1.0 - unseen) / total;
        let mut classes = Vec::with_capacity(masses.len());
        let (mut ranks, mut mass) = (0u64, 0.0);
        for (class, count) in masses {
            ranks += count;
            mass += class;
            // The last is the whole, whatever was rounded on the way.
            let mass = (mass * unit).min(1.0 - unseen);
            classes.push(Class { share: class * unit / count as f64, ranks, mass });
        }
        if let Some(last) = classes.last_mut() {
            last.mass = 1.0 - unseen;
        }
        Shape { classes, unseen }
    }

    /// How many values are known.
    pub fn known(&self) -> u64 {
        self.classes.last().map_or(0, |class| class.ranks)
    }

    /// The share of negative queries on values that are not known.
    pub fn unseen(&self) -> f64 {
        self.unseen
    }

    /// The share of all negative queries that fall on the `top` heaviest values (psi in \[Stacked\]).
    pub fn mass(&self, top: u64) -> f64 {
        let class = self.classes.partition_point(|class| class.ranks < top);
        let (ranks, mass) = self.before(class);
        match self.classes.get(class) {
            Some(class) => (mass + (top - ranks) as f64 * class.share).min(class.mass),
            None => mass,
        }
    }

    /// The share of all negative queries that fall on the value of this rank, counted from 1; 0 where none is known.
    pub fn share(&self, rank: u64) -> f64 {
        let class = self.classes.partition_point(|class| class.ranks < rank);
        if rank == 0 { 0.0 } else { self.classes.get(class).map_or(0.0, |class| class.share) }
    }

    /// The fewest of the heaviest values that carry `mass`; all of them where even these do not.
    pub fn top(&self, mass: f64) -> u64 {
        let class = self.classes.partition_point(|class| class.mass < mass);
        let (ranks, before) = self.before(class);
        match self.classes.get(class) {
            // Nothing, and what is not a number, needs no value.
            Some(_) if mass.is_nan() || mass <= 0.0 => 0,
            Some(class) => (ranks + ((mass - before) / class.share).ceil() as u64).min(class.ranks),
            None => ranks,
        }
    }

    /// The classes, heaviest first: the share of one value, and how many values have it.
    ///
    /// ```
    /// use tamis::internals::Shape;
    /// let shape = Shape::new([(1.0, 4), (4.0, 1)], 0.0)?;
    /// assert_eq!(shape.classes().collect::<Vec<_>>(), [(0.5, 1), (0.125, 4)]);
    /// # Ok::<(), tamis::internals::ShapeError>(())
    /// ```
    pub fn classes(&self) -> impl ExactSizeIterator<Item = (f64, u64)> + '_ {
        self.classes.iter().enumerate().map(|(i, class)| (class.share, class.ranks - self.before(i).0))
    }

    /// Values and mass of the classes before this one.
    fn before(&self, class: usize) -> (u64, f64) {
        match class.checked_sub(1).and_then(|i| self.classes.get(i)) {
            Some(class) => (class.ranks, class.mass),
            None => (0, 0.0),
        }
    }
}

/// Classes of (mass, values), heaviest values first, merged by equal ratios of weight until they are few.
fn merge(classes: Vec<(f64, u64)>) -> Vec<(f64, u64)> {
    let weight = |class: &(f64, u64)| (class.0 / class.1 as f64).max(f64::MIN_POSITIVE);
    let (Some(first), Some(last)) = (classes.first().map(weight), classes.last().map(weight)) else {
        return classes;
    };
    if classes.len() <= MAX_CLASSES {
        return classes;
    }
    let per_class = MAX_CLASSES as f64 / log2(first / last).max(1e-9);
    let mut merged: Vec<(f64, u64)> = Vec::with_capacity(MAX_CLASSES);
    let mut current = u64::MAX;
    for class in classes {
        let bucket = (log2(first / weight(&class)) * per_class) as u64;
        match merged.last_mut() {
            Some(kept) if bucket == current => {
                kept.0 += class.0;
                kept.1 += class.1;
            }
            _ => merged.push(class),
        }
        current = bucket;
    }
    merged
}

/// `low` times the `exponent`-th power of `high / low`, rounded; exact at both ends.
fn from_ratio(low: u64, high: u64, exponent: f64) -> u64 {
    if exponent >= 1.0 {
        return high;
    }
    ((low as f64 * exp2(exponent * log2(high as f64 / low as f64))) as u64).clamp(low, high)
}

fn power(rank: u64, exponent: f64) -> f64 {
    exp2(exponent * log2(rank as f64))
}

/// The sum of i^-s for from < i <= to, by Euler and Maclaurin: the integral, half the ends, and a twelfth of the slopes.
///
/// The first term left out is s (s + 1) (s + 2) / 720 from^-(s + 3): nothing, from a thousand on.
fn zipf_between(s: f64, from: u64, to: u64) -> f64 {
    let (a, b) = (power(from, -s), power(to, -s));
    let (from, to) = (from as f64, to as f64);
    // (to^(1 - s) - from^(1 - s)) / (1 - s), which is ln(to / from) at s = 1: by (e^t - 1) / t nothing cancels.
    let ln = log2(to / from) * std::f64::consts::LN_2;
    let t = (1.0 - s) * ln;
    let growth = match t.abs() < 0.5 {
        true => (2..16).rev().fold(1.0, |series, k| 1.0 + series * t / f64::from(k)),
        false => (exp2(t * std::f64::consts::LOG2_E) - 1.0) / t,
    };
    a * from * ln * growth + (b - a) / 2.0 + s / 12.0 * (a / from - b / to)
}

#[cfg(test)]
mod tests;
