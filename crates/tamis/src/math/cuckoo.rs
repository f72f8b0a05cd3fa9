//! keys and buckets -> false positive rate, and back: the formulas of the cuckoo filter.
//!
//! A key has a fingerprint, one of `F = 2^bits - 1` values, and a pair of buckets, one of about `m / 2` ([Cuckoo]). A stranger is let
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
/// The most buckets.
pub const MAX_BUCKETS: u64 = 1 << 40;

/// The false positive rate of a cuckoo filter of `buckets` buckets of four fingerprints of `bits` bits that holds `n` keys.
///
/// ```
/// // Full to 95 % a stranger is compared with 7.6 fingerprints.
/// let rate = tamis::math::cuckoo::rate(950_000, 250_000, 12);
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
/// assert_eq!(tamis::math::cuckoo::buckets(1_000_000), 263_158);
/// ```
pub fn buckets(n: u64) -> u64 {
    // 4 * 0.95 = 19 / 5 keys per bucket.
    u64::try_from((u128::from(n) * 5).div_ceil(19)).unwrap_or(u64::MAX)
}

/// Buckets in which `n` keys that come one by one find a place: a few more than [`buckets`], because a small table, or one of short
/// fingerprints, has more bad luck than others and cannot begin again.
pub fn roomy(n: u64, bits: u32) -> u64 {
    let more = match bits {
        4 => n / 12,
        5 => n / 40,
        _ => n / 200,
    };
    buckets(n.saturating_add(more)).saturating_add(4)
}

/// Bits of a fingerprint and number of buckets of the smallest table in which `n` keys have at most this rate; `least` are the fewest
/// buckets for fingerprints of so many bits. None if 32 bits are not enough at half the load.
pub fn table(n: u64, least: impl Fn(u32) -> u64, goal: f64, semi_sorted: bool) -> Option<(u32, u64)> {
    let size = |bits: u32, buckets: u64| u128::from(buckets) * u128::from(4 * bits - 4 * u32::from(semi_sorted));
    let mut best: Option<(u32, u64)> = None;
    for bits in BITS {
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
