//! keys and slots -> false positive rate, and back: the formulas of the quotient filter.
//!
//! A quotient filter of `m` slots and remainders of `r` bits keeps, of every key, a fingerprint below `M = m 2^r`, and keeps it
//! exactly (\[Quotient\] sections 2 and 3). An unlisted key is let through if its fingerprint is that of a key: `1 - (1 - 1/M)^n`.
//!
//! Only additions, multiplications and divisions are used: a planned size is the same integer on every platform.

use super::bloom::one_minus_exp;

/// The most slots of a quotient filter.
pub const MAX_SLOTS: u64 = 1 << 40;
/// The longest remainder, in bits.
pub const MAX_REMAINDER: u32 = 32;
/// The most fingerprints there are: `slots << remainder` is at most this.
pub const MAX_FINGERPRINTS: u64 = 1 << 62;

/// Metadata of a slot, in bits: two bits, and an eighth for the offset of its block.
const METADATA_BITS: f64 = 2.125;

/// The share of unlisted keys that a quotient filter of `slots` slots lets through if it holds `n` keys.
///
/// ```
/// let rate = tamis::internals::math::quotient::rate(950_000, 1_000_000, 8);
/// assert!((rate - 0.95 / 256.0).abs() < 1e-5);
/// ```
pub fn rate(n: u64, slots: u64, remainder: u32) -> f64 {
    if n == 0 || slots == 0 {
        return 0.0;
    }
    let one = 1.0 / (slots as f64 * (1u64 << remainder.clamp(1, MAX_REMAINDER)) as f64);
    // -ln(1 - 1/M), by its series; M is 2 at least, and a term is small long before the 60th.
    let (mut log, mut power) = (0.0, one);
    for k in 1..60 {
        let term = power / f64::from(k);
        log += term;
        if term < log * 1e-18 {
            break;
        }
        power *= one;
    }
    one_minus_exp(n as f64 * log)
}

/// How many keys `slots` slots are made for: 19 of 20.
///
/// Beyond that insertion slows down fast: what a new key moves grows with the square of `1 / (1 - load)`.
pub fn capacity(slots: u64) -> u64 {
    slots - slots.div_ceil(20)
}

/// The fewest slots that are made for `n` keys.
pub fn slots(n: u64) -> u64 {
    n.saturating_add(n.div_ceil(19))
}

/// Bits of `slots` slots.
pub fn bits(slots: f64, remainder: u32) -> f64 {
    slots * (f64::from(remainder) + METADATA_BITS)
}

/// Slots and bits of a remainder of the smallest filter whose rate with `n` keys is at most `rate`; none when there is no such
/// size.
///
/// Remainders have whole bits, so the rate at full load falls in steps of two; between them a few more slots may be cheaper
/// than a bit for each.
pub fn size(n: u64, goal: f64) -> Option<(u64, u32)> {
    if n == 0 {
        return Some((0, 1));
    }
    let least = slots(n);
    let mut best: Option<(u64, u32)> = None;
    for remainder in 1..=MAX_REMAINDER {
        let fits = |slots: u64| slots <= MAX_SLOTS.min(MAX_FINGERPRINTS >> remainder);
        // With twice the slots one bit more would do.
        let (mut low, mut high) = (least, least.saturating_mul(2));
        if goal.is_nan() || !fits(low) || rate(n, high, remainder) > goal {
            continue;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if rate(n, middle, remainder) <= goal { high = middle } else { low = middle + 1 }
        }
        let smaller = |(slots, r): (u64, u32)| bits(low as f64, remainder) < bits(slots as f64, r);
        if fits(low) && best.is_none_or(smaller) {
            best = Some((low, remainder));
        }
    }
    best
}

/// Slots and bits of a remainder of the filter with the lowest rate that spends at most `room` bits on `n` keys, `spare` more
/// slots included; none when they are too few.
pub fn size_within(n: u64, spare: u64, room: f64) -> Option<(u64, u32)> {
    // One bit more halves the rate; that many slots fewer never double it.
    (1..=MAX_REMAINDER).rev().find_map(|remainder| {
        let most = MAX_SLOTS.min(MAX_FINGERPRINTS >> remainder);
        let fitting = ((room / bits(1.0, remainder)) as u64).saturating_sub(spare).min(most);
        (n > 0 && fitting >= slots(n)).then_some((fitting, remainder))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn close(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within * expected, "{found}, expected {expected}");
    }

    #[test]
    fn rates_by_hand() {
        assert_eq!((rate(0, 10, 3), rate(10, 0, 3)), (0.0, 0.0));
        close(rate(1, 1, 1), 0.5, 1e-12);
        close(rate(2, 1, 1), 0.75, 1e-12);
        close(rate(3, 4, 2), 1.0 - (15.0f64 / 16.0).powi(3), 1e-12);
        close(rate(1, 1 << 30, 32), 0.5f64.powi(62), 1e-12);
        close(rate(950, 1000, 8), 1.0 - (1.0f64 - 1.0 / 256_000.0).powi(950), 1e-9);
        assert_eq!(rate(u64::MAX, 1 << 30, 1), 1.0);
    }

    #[test]
    fn doubling_the_slots_for_a_bit_changes_nothing() {
        for n in [1, 10, 12_345] {
            close(rate(n, 20_000, 9), rate(n, 40_000, 8), 1e-12);
        }
    }

    #[test]
    fn capacities_are_those_of_the_slots() {
        for n in 0..100_000 {
            let m = slots(n);
            assert!(capacity(m) >= n && (m == 0 || capacity(m - 1) < n), "{n} keys, {m} slots");
        }
        assert_eq!((slots(1), slots(19), slots(20), capacity(1), capacity(0)), (2, 20, 22, 0, 0));
        assert_eq!(slots(u64::MAX), u64::MAX);
    }

    #[test]
    fn sizes_are_the_smallest() {
        for n in [1u64, 2, 19, 100, 12_345, 1_000_000] {
            for goal in [0.7, 0.5, 0.3, 0.01, 0.0039, 0.001, 1e-6, 1e-9] {
                let (m, r) = size(n, goal).unwrap();
                assert!(rate(n, m, r) <= goal && capacity(m) >= n);
                for other in 1..=32 {
                    for more in [1.0, 1.01, 1.1, 1.3, 1.6, 2.0] {
                        let m2 = (slots(n) as f64 * more).ceil() as u64;
                        let reached = rate(n, m2, other) <= goal;
                        assert!(!reached || bits(m2 as f64, other) >= bits(m as f64, r), "{n}, {goal}: {other}, {m2}");
                    }
                }
            }
        }
        // A rate of .95 / 256 costs (8 + 2.125) / .95 bits per key.
        let (m, r) = size(1_000_000, 0.95 / 256.0).unwrap();
        assert_eq!((m, r), (slots(1_000_000), 8));
        close(bits(m as f64, r) / 1e6, 10.125 / 0.95, 0.001);
    }

    #[test]
    fn there_are_no_sizes_for_nonsense() {
        for bad in [0.0, -1.0, f64::NAN, 1e-15] {
            assert_eq!(size(10, bad), None, "{bad}");
        }
        assert_eq!(size(0, 0.1), Some((0, 1)));
        assert_eq!(size(u64::MAX, 0.5), None);
        assert_eq!(size(1 << 39, 1e-12), None);
        for bad in [0.0, -3.0, 1.0, f64::NAN] {
            assert_eq!(size_within(10, 0, bad), None, "{bad}");
        }
        assert_eq!(size_within(0, 0, 100.0), None);
    }

    #[test]
    fn a_budget_is_used() {
        for n in [100u64, 1000, 100_000] {
            for per_key in [4.0, 7.5, 10.0, 20.0, 34.0] {
                let room = n as f64 * per_key;
                let (m, r) = size_within(n, 2, room).unwrap();
                assert!(bits((m + 2) as f64, r) <= room && bits((m + 3) as f64, r) > room);
                // No other remainder does better.
                for other in 1..=32 {
                    let m2 = (room / bits(1.0, other)) as u64 - 2;
                    assert!(capacity(m2) < n || rate(n, m2, other) >= rate(n, m, r), "{n}, {per_key}: {other}");
                }
            }
        }
    }
}
