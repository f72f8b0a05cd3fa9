//! capacity and rate -> blocks, quotients, remainders and a back yard: the sizes of the broom filter.
//!
//! A block is shared by all that its keys need (\[Broom\] section 4.2, and `adaptive/broom/block.rs`). What does not fit goes to the back
//! yard, a word and a quarter for each key. Few keys in a block waste bits, many spill: [`plan`] tries every load and takes the cheapest.
//! `docs/math.md` has the bits that repairs add in a permanent attack.

use super::portable::exp2;

/// Bits of an entry of the back yard, at its load.
const BACKYARD_ENTRY_BITS: f64 = 80.0;
/// How much of the rate is used: what collisions of keys and the yard add is far below the rest.
const USED_RATE_SHARE: f64 = 0.97;
/// The longest remainder, in bits.
pub const MAX_REMAINDER: u32 = 24;
/// The most keys of a filter: names are below 2^64, and hashes have 58 bits.
pub const MAX_KEYS: u64 = 1 << 32;

/// The sizes of a broom filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Blocks.
    pub blocks: u64,
    /// Words of a block.
    pub words: u32,
    /// Keys of a block, on average, when the filter is full.
    pub load: u32,
    /// Quotients of a block.
    pub quotients: u32,
    /// Bits of a remainder.
    pub remainder: u32,
    /// Bits of a counter of a block.
    pub counter: u32,
    /// Entries that the back yard has room for.
    pub yard: u64,
}

impl Plan {
    /// Bits of blocks and back yard for each of `keys` keys.
    pub fn bits_per_key(&self, keys: u64) -> f64 {
        (self.blocks as f64 * 64.0 * f64::from(self.words) + BACKYARD_ENTRY_BITS * self.yard as f64) / keys as f64
    }

    /// The share of unlisted keys that pass when the filter is full.
    pub fn fpr(&self) -> f64 {
        f64::from(self.load) / f64::from(self.quotients) * exp2(-f64::from(self.remainder))
    }
}

/// The sizes for `capacity` keys, blocks of `words` words and `moved` keys that are moved for each false positive; none if there are none.
///
/// ```
/// let plan = tamis::internals::math::broom::plan(1_000_000, 1.0 / 256.0, 32, 4).unwrap();
/// assert_eq!((plan.remainder, plan.load), (8, 161));
/// assert!(plan.fpr() <= 1.0 / 256.0 && plan.bits_per_key(1_000_000) < 13.3);
/// ```
pub fn plan(capacity: u64, rate: f64, words: u32, moved: u32) -> Option<Plan> {
    if !(rate > 0.0 && rate < 1.0) || capacity > MAX_KEYS || words == 0 || moved == 0 {
        return None;
    }
    // The remainder takes the whole bits of the rate, the number of quotients the rest.
    let remainder =
        (1..=MAX_REMAINDER).find(|&r| exp2(-f64::from(r)) < rate * USED_RATE_SHARE * std::f64::consts::SQRT_2)?;
    let ratio = exp2(-f64::from(remainder)) / (rate * USED_RATE_SHARE);
    let most = (64 * words / (remainder + 3)).max(1);
    let plans = (1..=most).filter_map(|load| sized(capacity.max(1), words, load, remainder, ratio, moved));
    plans.min_by(|one, two| one.bits_per_key(capacity.max(1)).total_cmp(&two.bits_per_key(capacity.max(1))))
}

fn sized(capacity: u64, words: u32, load: u32, remainder: u32, ratio: f64, moved: u32) -> Option<Plan> {
    let quotients = (f64::from(load) * ratio).ceil() as u32;
    let bits = 64 * words;
    let counter = (bits.checked_sub(quotients)? / (remainder + 2)).max(1).ilog2() + 1;
    let blocks = capacity.div_ceil(u64::from(load));
    let fixed = 2 * counter + 1 + quotients;
    let tails = 1.0 / f64::from(moved) + 4.0 * exp2(-f64::from(remainder)) / ratio;
    let (mean, square) = spilled(bits, fixed, load, remainder, tails);
    // A sixth more: a key comes home only when one of its block's leaves.
    let mean = 7.0 / 6.0 * blocks as f64 * mean;
    let yard = (mean + 6.0 * (blocks as f64 * square).sqrt()).ceil() as u64 + 8;
    Some(Plan { blocks, words, load, quotients, remainder, counter, yard })
}

/// Keys of a block that do not fit: their mean and mean square. `tails` are the adaptivity bits of a key, from repairs and from other keys.
fn spilled(bits: u32, fixed: u32, load: u32, remainder: u32, tails: f64) -> (f64, f64) {
    let load = f64::from(load);
    // Bits of a key: its slot, and its share of the adaptivity bits, each of which is two. They come in lots of two, of second moment six.
    let key = f64::from(remainder) + 2.0 + 2.0 * tails;
    let deviation = (load * key * key + 4.0 * 3.0 * load * tails).sqrt();
    let z = (f64::from(bits) - f64::from(fixed) - load * key) / deviation;
    let (density, tail) = normal(z);
    let mean = deviation * (density - z * tail).max(0.0) / key;
    (mean, deviation * deviation * ((1.0 + z * z) * tail - z * density).max(0.0) / (key * key))
}

/// Density of the normal law at `z`, and what lies beyond.
fn normal(z: f64) -> (f64, f64) {
    let density = |x: f64| exp2(-x * x / 2.0 * std::f64::consts::LOG2_E) / (2.0 * std::f64::consts::PI).sqrt();
    if z < -8.0 {
        return (density(z), 1.0);
    }
    // Simpson's rule over nine deviations.
    const PARTS: u32 = 200;
    let step = 9.0 / f64::from(PARTS);
    let weight = |i: u32| if i == 0 || i == PARTS { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
    let tail = (0..=PARTS).map(|i| weight(i) * density(z + f64::from(i) * step)).sum::<f64>() * step / 3.0;
    (density(z), tail.min(1.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;
    use crate::hash::scramble;

    #[test]
    fn the_normal_law() {
        for (z, tail) in [(0.0, 0.5), (1.0, 0.158_655), (-1.5, 0.933_193), (3.0, 0.001_349_9), (-20.0, 1.0)] {
            assert!((normal(z).1 - tail).abs() < 1e-6, "{z}: {}", normal(z).1);
        }
    }

    /// Keys and bits of false positives thrown into blocks.
    #[test]
    fn what_spills_is_what_is_thrown() {
        let (words, moved) = (32u32, 4u32);
        for load in [150u32, 160, 170] {
            let plan = sized(1_000_000, words, load, 8, 1.03, moved);
            let Some(plan) = plan else { unreachable!() };
            let fixed = 2 * plan.counter + 1 + plan.quotients;
            let (mean, _) = spilled(64 * words, fixed, load, 8, 1.0 / f64::from(moved));
            const BLOCKS: usize = 20_000;
            let (mut keys, mut tails) = (vec![0u32; BLOCKS], vec![0u32; BLOCKS]);
            let mut state = u64::from(load);
            let mut random = || {
                state = scramble(state);
                state
            };
            for _ in 0..BLOCKS * load as usize {
                keys[random() as usize % BLOCKS] += 1;
            }
            for _ in 0..BLOCKS * load as usize / 2 / moved as usize {
                tails[random() as usize % BLOCKS] += random().trailing_zeros() + 1;
            }
            let excess = |(&t, &e): (&u32, &u32)| {
                let used = f64::from(fixed + 10 * t + 2 * e);
                ((used - f64::from(64 * words)) / 10.5).max(0.0)
            };
            let found = keys.iter().zip(&tails).map(excess).sum::<f64>() / BLOCKS as f64;
            assert!((found / mean - 1.0).abs() < 0.15, "{load}: {found}, expected {mean}");
        }
    }

    #[test]
    fn plans_for_every_rate_and_size() {
        for capacity in [0, 1, 2, 100, 12_345, 1 << 32] {
            for words in [8, 16, 32, 64] {
                for rate in [0.9, 0.5, 0.1, 1.0 / 256.0, 0.001, 1e-6] {
                    let Some(plan) = plan(capacity, rate, words, 4) else { panic!("{capacity} {words} {rate}") };
                    assert!(plan.fpr() <= rate && plan.fpr() > 0.4 * rate, "{plan:?}: {}", plan.fpr());
                    assert!(plan.blocks * u64::from(plan.load) >= capacity);
                }
            }
        }
        let none = [plan(1, 0.0, 32, 4), plan(1, 1.0, 32, 4), plan(1, f64::NAN, 32, 4), plan(1, 1e-9, 32, 4)];
        assert_eq!(none, [None; 4]);
        assert_eq!([plan(1, 0.1, 0, 4), plan(1, 0.1, 32, 0), plan(u64::MAX, 0.1, 32, 4)], [None; 3]);
        // The larger the block, the fewer bits.
        let bits =
            [8, 16, 32, 64].map(|words| plan(1_000_000, 1.0 / 256.0, words, 4).map(|p| p.bits_per_key(1_000_000)));
        assert!(bits.windows(2).all(|pair| pair[0] > pair[1]), "{bits:?}");
    }
}
