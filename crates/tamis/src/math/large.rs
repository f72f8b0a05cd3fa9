//! keys and a rate -> bins, bits and a back yard: the formulas of the broom filter of large remainders (\[Broom\] section 4.3).
//!
//! ```text
//!   bins   64 slots; a slot is a signature, one of 65535 values, and the rest of the remainder
//!   yard   the keys that found no slot, and those that false positives have driven out of theirs
//! ```
//!
//! **Who finds no slot.** Keys come and go, and a key that was put into the yard stays there when a slot becomes free. So a bin is a
//! telephone exchange of 64 lines: calls that find all of them busy are lost, with the probability of Erlang's formula
//! ([`blocked`]). A key whose signature is taken is turned away as well
//! ([`collision`]; Lemma 18).
//!
//! **Who is driven out.** Every false positive drives one key into the yard, and pays for [`STEPS`] steps of the frontier, which
//! moves one key each to the next hash function, and so out of the yard. Removing such a key leaves its grave behind, and pays for
//! as many steps again. At most `N / 32` keys and graves are then in the yard, where an epoch has `N` steps (`docs/math.md`). The yard has
//! room for them beyond its share of keys without a slot ([`Shape::yard_keys`]): it never fills, for any queries and however long.

/// Slots of a bin.
pub const SLOTS: u64 = 64;
/// Values that a signature can have; one more says that a slot is free.
pub const SIGNATURES: u64 = 65_535;
/// Keys that are moved to the next hash function for every false positive, and for every grave.
pub const STEPS: u32 = 64;
/// Bits of a hash in the yard.
pub const YARD_BITS: u32 = 61;
/// The most keys.
pub const MAX_KEYS: u64 = 1 << 32;
/// The most bits of the rest of a remainder.
pub const MAX_REST: u32 = 40;

/// The share of keys that find all slots of their bin taken, where keys come and go and bins have this load in keys (Erlang's B).
///
/// ```
/// use tamis::internals::math::large::blocked;
/// assert!((blocked(52.0) - 0.0144).abs() < 0.0001);
/// ```
pub fn blocked(load: f64) -> f64 {
    (1..=SLOTS).fold(1.0, |b, line| load * b / (line as f64 + load * b))
}

/// The share of keys whose signature is taken by another key of the bin.
pub fn collision(load: f64) -> f64 {
    load * (1.0 - blocked(load)) / SIGNATURES as f64
}

/// How much the number of keys without a slot scatters: its variance by its mean, in a bin of this load (Riordan's formula).
pub fn scatter(load: f64) -> f64 {
    let lost = load * blocked(load);
    1.0 - lost + load / (SLOTS as f64 + 1.0 - load + lost)
}

/// The sizes of a filter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shape {
    /// Bins of [`SLOTS`] slots.
    pub bins: u64,
    /// Bits of a remainder beyond the signature.
    pub rest: u32,
    /// Keys and graves that the yard may hold.
    pub yard_keys: u64,
    /// Slots of the yard.
    pub yard_slots: u64,
}

impl Shape {
    /// Bits of memory.
    pub fn bits(&self) -> u64 {
        self.bins * SLOTS * (16 + u64::from(self.rest)) + 64 * self.yard_slots
    }

    /// The rate of `n` keys, of which some share is in the yard. An unlisted key is compared with the keys of one bin, and with all of the yard.
    pub fn fpr(&self, n: u64) -> f64 {
        let front = n as f64 / (self.bins as f64 * SIGNATURES as f64 * (1u64 << self.rest.min(63)) as f64);
        front + self.yard_keys as f64 / (1u64 << YARD_BITS) as f64
    }
}

/// The smallest filter in which `n` keys have at most this rate; none if the hashes in the yard are too short for it.
///
/// ```
/// use tamis::internals::math::large::shape;
/// let shape = shape(100_000, 1.0 / 65536.0).unwrap();
/// assert_eq!((shape.rest, shape.bits() / 100_000), (6, 30));
/// assert!(shape.fpr(100_000) <= 1.0 / 65536.0);
/// ```
pub fn shape(n: u64, goal: f64) -> Option<Shape> {
    if n > MAX_KEYS || goal.is_nan() {
        return None;
    }
    let n = n.max(1);
    // Loads from a half to one, in steps of a quarter of a key.
    (128..=256).filter_map(|quarters| with_bins(n, (n * 4).div_ceil(quarters), goal)).min_by_key(Shape::bits)
}

fn with_bins(n: u64, bins: u64, goal: f64) -> Option<Shape> {
    let load = n as f64 / bins as f64;
    let turned_away = n as f64 * (blocked(load) + collision(load));
    // Six sigma, and something for the few of a small filter.
    let margin = 6.0 * (turned_away * scatter(load).max(1.0)).sqrt() + 16.0;
    let driven_out = 2 * n.div_ceil(u64::from(STEPS));
    let yard_keys = (turned_away + margin) as u64 + driven_out;
    // Four fifths full at most.
    let yard_slots = yard_keys + yard_keys / 4 + 1;
    (0..=MAX_REST).map(|rest| Shape { bins, rest, yard_keys, yard_slots }).find(|shape| shape.fpr(n) <= goal)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::hash::scramble;

    /// Throws keys into bins; returns the share without a slot after `rounds` in which each key is taken out and thrown again.
    fn throw(keys: usize, bins: usize, signatures: u64, rounds: usize) -> (f64, f64) {
        let mut state = 7;
        let mut random = move |below: u64| {
            state = scramble(state);
            ((u128::from(state) * u128::from(below)) >> 64) as u64
        };
        let mut table: Vec<Vec<u64>> = vec![vec![]; bins];
        let mut places: Vec<Option<(usize, u64)>> = vec![None; keys];
        let (mut outside, mut square, mut looks) = (0.0, 0.0, 0.0);
        for round in 0..=rounds {
            for place in &mut places {
                if let Some((bin, signature)) = place.take() {
                    table[bin].retain(|&s| s != signature);
                }
                let (bin, signature) = (random(bins as u64) as usize, random(signatures));
                if table[bin].len() < SLOTS as usize && !table[bin].contains(&signature) {
                    table[bin].push(signature);
                    *place = Some((bin, signature));
                }
            }
            if round * 4 >= rounds {
                let share = places.iter().filter(|place| place.is_none()).count() as f64 / keys as f64;
                (outside, square, looks) = (outside + share, square + share * share, looks + 1.0);
            }
        }
        (outside / looks, (square / looks - (outside / looks) * (outside / looks)).max(0.0).sqrt())
    }

    #[test]
    fn keys_without_a_slot_are_as_many_as_the_formulas_say() {
        for load in [44.0, 52.0, 58.0, 62.0] {
            let bins = 2000;
            let keys = (load * bins as f64) as usize;
            // Keys that come and go, and signatures that never collide. The number of keys is fixed here, which takes a little from the load that Poisson has.
            let (share, _) = throw(keys, bins, u64::MAX, 12);
            let expected = blocked(load);
            assert!(
                (share / expected - 1.0).abs() < 0.06 + 3.0 * (scatter(load) / (expected * keys as f64)).sqrt(),
                "{load}: {share}, expected {expected}"
            );
        }
        // Signatures of 8 bits collide often enough to be counted.
        let (share, _) = throw(40_000, 2000, 256, 12);
        let expected = 20.0 / 256.0;
        // Keys in the yard collide with no key: n (1 - share) do.
        assert!((share / (1.0 - share) / expected - 1.0).abs() < 0.03, "{share}, expected {expected}");
    }

    /// The margin of the yard, against what keys that come and go do in many rounds.
    #[test]
    fn keys_without_a_slot_do_not_use_up_the_margin() {
        for (n, rate) in [(100, 1e-5), (3000, 1e-5), (100_000, 1e-5), (20_000, 1e-9)] {
            let shape = shape(n, rate).unwrap();
            let (mean, sigma) = throw(n as usize, shape.bins as usize, SIGNATURES, 40);
            let room = (shape.yard_keys - 2 * n.div_ceil(64)) as f64;
            let share = room / n as f64;
            assert!(mean + 5.0 * sigma < share, "{n}: mean {mean}, sigma {sigma}, room {share}");
            // And it is not more than that takes, where many keys make it predictable.
            assert!(n < 10_000 || share < 1.6 * mean, "{n}: mean {mean}, room {share}");
        }
    }

    #[test]
    fn shapes_reach_their_rates() {
        for n in [0, 1, 2, 63, 64, 65, 1000, 100_000, 10_000_000] {
            for bits in [14, 16, 24, 32, 40] {
                let goal = 1.0 / (1u64 << bits) as f64;
                let shape = shape(n, goal).unwrap();
                assert!(shape.fpr(n) <= goal, "{n}, 2^-{bits}: {shape:?}");
                assert!(shape.yard_keys < shape.yard_slots && n <= shape.bins * SLOTS, "{n}, 2^-{bits}: {shape:?}");
                // Each bit of the rate costs at most a slot's bit, and slots are at least three quarters full.
                let least = n as f64 * (f64::from(bits) + 1.44);
                assert!(
                    n < 10_000 || (shape.bits() as f64) < least * 1.35 + 12.0 * n as f64,
                    "{n}, 2^-{bits}: {shape:?}"
                );
            }
        }
        assert_eq!(shape(MAX_KEYS + 1, 0.1), None);
        assert_eq!(shape(1000, 1e-30), None);
        assert_eq!(shape(1000, f64::NAN), None);
        assert_eq!(shape(1000, 0.0), None);
    }
}
