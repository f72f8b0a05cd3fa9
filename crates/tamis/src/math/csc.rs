//! sets, keys and bits -> expected false sets: the formulas of "which of n sets hold this key" (\[CSC\]).
//!
//! A table holds pairs (key, set). A key's hash is an anchor, the set is an offset from it, so that a query reads whole rows. Each
//! function takes what \[CSC\] takes and says where it differs:
//!
//! * Equation 2 and Theorem 3 have the slots of a bucket twice; an unlisted key is compared with `2 |S| / m` fingerprints, not `2 a |S| / m`.
//! * Theorem 2 bounds what [`zeros`] and [`Rows::offsets`] say exactly: two sets of one key that share a partition set the same bits.
//! * A key does not collide with itself as an unlisted key does. In a Bloom table its own hash cannot have set the bit of a set it is not in.
//!   In a cuckoo table its pairs have one fingerprint, and the second bucket of one may be the first bucket of another; slots that know
//!   in which of their buckets they are keep them apart, at the price of a bit of the fingerprint.
//!
//! As in [`bloom`](super::bloom), only operations that every platform rounds the same way are used. Multiplicities are of type `f64`
//! because a planner puts neighbouring ones together.

use super::bloom::{one_minus_exp, power};
use super::portable::log2;

/// How rows are laid out: `partitions` columns in each of `repetitions` tables, or one column for each set and one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// How many sets there are.
    pub sets: u32,
    /// How many tables; with one there are no partitions.
    pub repetitions: u32,
    /// To how many partitions the sets are hashed, again in each table. Not looked at for one table.
    pub partitions: u32,
}

impl Rows {
    /// The length of a row.
    pub fn columns(&self) -> u32 {
        if self.repetitions < 2 { self.sets } else { self.partitions.max(1) }
    }

    /// In how many different columns a key of `v` sets is, on average: `b (1 - (1 - 1/b)^v)`.
    ///
    /// ```
    /// let rows = tamis::internals::math::csc::Rows { sets: 100, repetitions: 2, partitions: 10 };
    /// assert!((rows.offsets(2.0) - 1.9).abs() < 1e-12); // one time in ten the second set is where the first is
    /// ```
    pub fn offsets(&self, v: f64) -> f64 {
        if self.repetitions < 2 { v } else { f64::from(self.columns()) * self.shared(v) }
    }

    /// The probability that a set is in the same partition as one of `v` others: `1 - (1 - 1/b)^v`.
    pub fn shared(&self, v: f64) -> f64 {
        if self.repetitions < 2 || v <= 0.0 {
            return 0.0;
        }
        one_minus_exp(v * minus_ln(1.0 / f64::from(self.columns())))
    }

    /// The probability that a set is reported though the key, of `v` sets, is not in it (\[CSC\], Theorems 2 and 3), where a column that
    /// is none of the key's is reported with probability `rate`.
    pub fn reported(&self, v: f64, rate: f64) -> f64 {
        let shared = self.shared(v);
        power(shared + (1.0 - shared) * rate, u64::from(self.repetitions.max(1)))
    }

    /// The expected false sets for a key of `v` sets; of none, for an unlisted key.
    ///
    /// ```
    /// let rows = tamis::internals::math::csc::Rows { sets: 100, repetitions: 1, partitions: 0 };
    /// assert!((rows.false_sets(0.0, 0.001) - 0.1).abs() < 1e-12);
    /// assert!((rows.false_sets(50.0, 0.001) - 0.05).abs() < 1e-12);
    /// ```
    pub fn false_sets(&self, v: f64, rate: f64) -> f64 {
        (f64::from(self.sets) - v).max(0.0) * self.reported(v, rate)
    }
}

/// The expected share of zeros in a table of `m` bits and `k` hashes (\[CSC\], Theorem 1): the product over all keys of `(1 - d/m)^k`. The
/// keys come as (columns `d`, number of keys).
///
/// ```
/// // Two keys, one in one set, one in three, and two hashes.
/// let zeros = tamis::internals::math::csc::zeros(64.0, 2, [(1.0, 1.0), (3.0, 1.0)]);
/// assert!((zeros - (63.0f64 / 64.0).powi(2) * (61.0f64 / 64.0).powi(2)).abs() < 1e-12);
/// ```
pub fn zeros(m: f64, k: u32, keys: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let sum: f64 = keys.into_iter().filter(|key| key.1 > 0.0).map(|(d, keys)| keys * minus_ln(d / m)).sum();
    1.0 - one_minus_exp(f64::from(k) * sum)
}

/// The probability that all `k` bits of a column are set, for a key that is not in it and has `d` columns of its own. The hash that
/// leads to a bit has not set it, so that one factor of [`zeros`] is missing.
pub fn bloom_column(m: f64, k: u32, zeros: f64, d: f64) -> f64 {
    let rest = 1.0 - d / m;
    if rest <= zeros { 0.0 } else { power(1.0 - zeros / rest, u64::from(k)) }
}

/// The probability that no pair has the fingerprint and the pair of buckets that an unlisted key has in a given column (\[CSC\], equation 2,
/// corrected): the product over all keys of `1 - 2 v / (m F)` with `F = 2^bits - 2`, twice the number of fingerprints. The keys come as (sets `v`, number of
/// keys).
///
/// ```
/// // The table is full to 95 %: an unlisted key is compared with 7.6 fingerprints, and not with four times as many.
/// let misses = tamis::internals::math::csc::misses(250_000.0, 12, [(1.0, 950_000.0)]);
/// assert!(((1.0 - misses) * 4094.0 - 7.6).abs() < 0.01);
/// ```
pub fn misses(m: f64, bits: u32, keys: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let chance = 2.0 / (m * fingerprints(bits));
    let sum: f64 = keys.into_iter().filter(|key| key.1 > 0.0).map(|(v, keys)| keys * minus_ln(v * chance)).sum();
    1.0 - one_minus_exp(sum)
}

/// How many values a slot has: a fingerprint, which is not zero, and one bit that says in which of its two buckets it is. An unlisted key meets
/// one of two buckets with one of them.
pub fn fingerprints(bits: u32) -> f64 {
    ((1u64 << bits.clamp(2, 63)) - 2) as f64
}

/// The bits of one set of `v` among `n`: `log2 C(n, v)`, by Stirling's series.
///
/// ```
/// assert!((tamis::internals::math::csc::log2_choose(10.0, 3.0) - 120f64.log2()).abs() < 1e-6);
/// ```
pub fn log2_choose(n: f64, v: f64) -> f64 {
    if v <= 0.0 || v >= n {
        return 0.0;
    }
    (log2_factorial(n) - log2_factorial(v) - log2_factorial(n - v)).max(0.0)
}

/// The binary logarithm of `x!`, to nine digits from 0 on.
fn log2_factorial(x: f64) -> f64 {
    use std::f64::consts::{LOG2_E, PI};
    // The series wants a large argument: for a small one ten steps up, and their product taken off again.
    let up = if x < 16.0 { 10 } else { 0 };
    let steps: f64 = (1..=up).map(|i| log2(x + f64::from(i))).sum();
    let x = x + f64::from(up);
    let tail = (1.0 / 12.0 - 1.0 / (360.0 * x * x)) / x;
    (x + 0.5) * log2(x) + LOG2_E * (tail - x) + 0.5 * log2(2.0 * PI) - steps
}

/// `-ln(1 - x)` for `x` from 0 to 1, with all digits also for small `x`.
pub(crate) fn minus_ln(x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    if x > 1e-3 {
        return -std::f64::consts::LN_2 * log2(1.0 - x);
    }
    x * (1.0 + x * (0.5 + x * (1.0 / 3.0 + x * (0.25 + x * 0.2))))
}

#[cfg(test)]
mod tests;
