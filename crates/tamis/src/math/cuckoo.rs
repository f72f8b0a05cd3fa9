//! keys and buckets -> false positive rate, and back: the formulas of the cuckoo filter.
//!
//! A key has a fingerprint, one of `F = 2^bits - 1` values, and a pair of buckets, one of about `m / 2` (\[Cuckoo\]). An unlisted key is let
//! through if some key has both in common with it: where the fingerprints lie, and who had to move, does not matter. So the rate is
//! exact for any number of keys, not only for a full table, and the usual `1 - (1 - 1/2^bits)^8` is its value there, nearly.
//!
//! As in [`bloom`](super::bloom), only operations that every platform rounds the same way are used.

use std::ops::RangeInclusive;

use super::bloom::{one_minus_exp, power, smallest};

/// Fingerprints in a bucket.
pub const SLOTS: u64 = 4;
/// The bits that a fingerprint can have.
pub const BITS: RangeInclusive<u32> = 4..=32;
/// The bits where keys come one by one. With four, more than eight keys of one fingerprint and one pair are no rarity: a hundredth of
/// all tables of a million keys would reject one.
pub const CHANGING_BITS: RangeInclusive<u32> = 5..=32;
/// The most buckets.
pub const MAX_BUCKETS: u64 = 1 << 40;

/// The false positive rate of a cuckoo filter of `buckets` buckets of four fingerprints of `bits` bits that holds `n` keys.
///
/// ```
/// // Full to 95 % an unlisted key is compared with 7.6 fingerprints.
/// let rate = tamis::internals::math::cuckoo::rate(950_000, 250_000, 12);
/// assert!((rate * 4095.0 - 7.6).abs() < 0.01);
/// ```
pub fn rate(n: u64, buckets: u64, bits: u32) -> f64 {
    if n == 0 || buckets == 0 {
        return 0.0;
    }
    let (m, values) = (buckets as f64, ((1u64 << bits.min(63)) - 1).max(1) as f64);
    match buckets {
        1 => any(1.0 / values, n),
        // One bucket is its own other one, for every fingerprint: half as many keys meet there.
        _ if buckets % 2 == 1 => {
            let lone = 1.0 / m;
            (1.0 - lone) * any(2.0 / (m * values), n) + lone * any(1.0 / (m * values), n)
        }
        _ => any(2.0 / (m * values), n),
    }
}

/// The probability that something of probability `p` happens in one of `n` trials.
fn any(p: f64, n: u64) -> f64 {
    match p > 1e-3 {
        true => 1.0 - power(1.0 - p, n),
        // -ln(1 - p), by its series: 1 - p has lost the digits of a small p.
        false => one_minus_exp(n as f64 * p * (1.0 + p * (0.5 + p * (1.0 / 3.0 + p / 4.0)))),
    }
}

/// The fewest buckets for `n` keys that are known beforehand: a load of 95 %.
///
/// ```
/// assert_eq!(tamis::internals::math::cuckoo::buckets(1_000_000), 263_158);
/// ```
pub fn buckets(n: u64) -> u64 {
    // 4 * 0.95 = 19 / 5 keys per bucket.
    u64::try_from((u128::from(n) * 5).div_ceil(19)).unwrap_or(u64::MAX)
}

/// Buckets in which `n` keys that come one by one find a place: a few more than [`buckets`], because a small table, or one of short
/// fingerprints, has more bad luck than others and cannot begin again.
pub fn roomy(n: u64, bits: u32) -> u64 {
    let more = if bits < 6 { n / 40 } else { n / 200 };
    buckets(n.saturating_add(more)).saturating_add(6)
}

/// Bits of a fingerprint and number of buckets of the smallest table in which `n` keys have at most this rate. `choice` are the bits
/// there are, and `least` the fewest buckets with so many. None if no bits are enough at half the load.
pub fn table(
    n: u64,
    choice: RangeInclusive<u32>,
    least: impl Fn(u32) -> u64,
    goal: f64,
    semi_sorted: bool,
) -> Option<(u32, u64)> {
    let size = |bits: u32, buckets: u64| u128::from(buckets) * u128::from(4 * bits - 4 * u32::from(semi_sorted));
    let mut best: Option<(u32, u64)> = None;
    for bits in choice {
        let least = least(bits).max(1);
        let most = least.saturating_mul(2);
        let found = match rate(n, least, bits) <= goal {
            true => Some(least),
            false => smallest(n, most, least, |buckets| rate(n, buckets, bits) <= goal),
        };
        let Some(buckets) = found else { continue };
        if best.is_none_or(|(b, m)| size(bits, buckets) < size(b, m)) {
            best = Some((bits, buckets));
        }
        // Wider fingerprints cannot have fewer buckets.
        if buckets == least {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[track_caller]
    fn close(a: f64, b: f64, relative: f64) {
        assert!((a - b).abs() <= relative * b.abs(), "{a}, expected {b}");
    }

    #[test]
    fn rates_of_tables_that_can_be_counted() {
        // One bucket: an unlisted key is compared with every key.
        close(rate(3, 1, 4), 1.0 - (14.0f64 / 15.0).powi(3), 1e-14);
        // Two buckets are one pair.
        close(rate(5, 2, 5), 1.0 - (30.0f64 / 31.0).powi(5), 1e-14);
        // Three: a pair, and a bucket of its own.
        let (pair, lone) = (1.0 - 2.0 / 45.0, 1.0 - 1.0 / 45.0f64);
        close(rate(4, 3, 4), 1.0 - (2.0 * f64::powi(pair, 4) + lone.powi(4)) / 3.0, 1e-14);
        assert_eq!((rate(0, 5, 8), rate(5, 0, 8)), (0.0, 0.0));
    }

    /// Fan et al. give 8 / 2^f as an upper bound for a full table, and r + 3 bits for a rate of 2^-r.
    #[test]
    fn rates_of_the_paper() {
        for bits in 7..=32 {
            let full = rate(3_800_000, 1_000_000, bits);
            assert!(full < 8.0 / (bits as f64).exp2(), "{bits} bits: {full}");
            close(full, 7.6 / ((bits as f64).exp2() - 1.0), 0.04);
            close(rate(1_900_000, 1_000_000, bits), full / 2.0, 0.02);
            let goal = 0.5f64.powi(bits as i32 - 3);
            assert_eq!(table(1_000_000, BITS, |_| buckets(1_000_000), goal, false), Some((bits, 263_158)));
        }
        // All digits of the smallest: the bits are many and the keys are few.
        close(rate(1, 1 << 40, 32), 2.0 / (2f64.powi(40) * (2f64.powi(32) - 1.0)), 1e-12);
        assert_eq!(rate(u64::MAX, 4, 4), 1.0);
    }

    #[test]
    fn the_two_ways_to_a_power_meet() {
        for n in [1, 7, 1000, 100_000] {
            let (p, q) = (0.000_999_9, 0.001_000_1);
            close(any(p, n), -(n as f64 * (-p).ln_1p()).exp_m1(), 1e-12);
            close(any(q, n), -(n as f64 * (-q).ln_1p()).exp_m1(), 1e-12);
        }
    }

    #[test]
    fn tables_reach_their_goal_and_are_the_smallest() {
        for n in [1, 2, 3, 10, 100, 12_345] {
            for goal in [0.5, 0.3, 0.06, 0.03, 0.02, 0.015, 0.001, 1e-6, 1.5e-9] {
                for semi_sorted in [false, true] {
                    let width = |bits: u32| u64::from(4 * bits - 4 * u32::from(semi_sorted));
                    let (bits, found) = table(n, BITS, |_| buckets(n), goal, semi_sorted).unwrap();
                    assert!(rate(n, found, bits) <= goal && found >= buckets(n));
                    for other in BITS {
                        let fit = (width(bits) * found - 1) / width(other);
                        let smaller = fit >= buckets(n) && fit <= 2 * buckets(n) && rate(n, fit, other) <= goal;
                        assert!(!smaller, "{n} keys at {goal}: {other} bits in {fit} buckets, not {bits} in {found}");
                    }
                }
            }
        }
        assert_eq!(table(100, BITS, |_| buckets(100), 1e-12, false), None);
        assert_eq!(table(100, BITS, |_| buckets(100), f64::NAN, false), None);
    }

    #[test]
    fn loads_are_those_that_were_promised() {
        assert_eq!([0, 1, 3, 4, 19, 20].map(buckets), [0, 1, 1, 2, 5, 6]);
        for n in [0, 1, 1000, 1 << 40] {
            assert!(roomy(n, 5) >= roomy(n, 6) && roomy(n, 6) == roomy(n, 32));
            assert!(roomy(n, 32) > buckets(n) && roomy(n, 32) <= buckets(n) * 1006 / 1000 + 7);
        }
        assert!(buckets(u64::MAX) > 1 << 60 && roomy(u64::MAX, 5) > 1 << 60);
    }
}
