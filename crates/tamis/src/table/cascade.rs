//! keys of the second table against those of the first -> three Bloom filters and an exact bit: the `& ~` cascade.
//!
//! ```text
//!   layer 0   the keys of the second table        a key that is not in it: first
//!   layer 1   keys of the first that match it     a key that is not in it: second
//!   layer 2   keys of the second that match both  a key that is not in it: first
//!   exact     what is left, with its bit          2 % to 4 % of the keys
//! ```
//!
//! Built from a finished table it is right for every key. It also learns: a wrong prediction puts the key into the layer that answered, and
//! so on until the answer is right. Bits of Bloom filters are never taken back. So a table that changes fills its layers, and the cascade must be built
//! from the table again. A key that gets as far as the exact bit is listed there even if its bit is right: another key's change could flip it.
//!
//! Paper: \[Chained\] Algorithm 2 with the sizes of the remark after Theorem 4.3 (delta = 1/2), section 5.3. As printed the next positives are
//! the keys that a layer rejects. They must be those that it matches.

use std::f64::consts::LN_2;

use crate::dynamic::othello::{Bits, forest::Stream};
use crate::error::BuildError;
use crate::hash::{Digest, Salt};
use crate::leaves::Query;
use crate::leaves::bloom::{Classic, classic};
use crate::leaves::change::Owned;
use crate::math::portable::exp2;

/// Bloom filters before the exact bit.
const LAYERS: usize = 3;

/// Bits per key of an exact bit with its directory, for plans.
const EXACT: f64 = 2.37;

/// A predictor that learns.
#[derive(Clone)]
pub struct Cascade {
    layers: Vec<Owned<Classic>>,
    last: Bits,
    /// Keys it was sized for.
    keys: u64,
}

impl std::fmt::Debug for Cascade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cascade").field("bits", &self.bits()).finish_non_exhaustive()
    }
}

/// Bits and hash functions of a layer, for so many keys of either table.
fn layer(number: usize, first: u64, second: u64) -> (u64, u8) {
    let hashes = match number {
        // The least number that leaves half as many keys of the first table as there are of the second.
        0 => (1..24).find(|&hashes| second.max(1) << hashes >= 2 * first).unwrap_or(24),
        _ => 2,
    };
    // A filter of the half, a quarter .. of the keys; half of its bits are ones.
    let keys = second as f64 / (1u64 << number) as f64;
    (((keys * f64::from(hashes) / LN_2).ceil() as u64).max(64), hashes)
}

/// Bits that an exact bit for so many keys takes.
pub(super) fn exact_bits(keys: u64) -> u64 {
    (keys as f64 * EXACT) as u64
}

/// Bits that a cascade takes which is built for so many keys of either table.
pub(super) fn cascade_bits(first: u64, second: u64) -> u64 {
    let layers: u64 = (0..LAYERS).map(|number| layer(number, first, second).0).sum();
    let n = second.max(1) as f64;
    // `stored` keys in a layer for `room` keys: the share of unlisted keys that match.
    let rate = |stored: f64, room: f64| {
        let ones = 1.0 - exp2(-stored / room);
        ones * ones
    };
    let firsts = first as f64 * exp2(-f64::from(layer(0, first, second).1));
    let seconds = n * rate(firsts, n / 2.0);
    let left = firsts * rate(seconds, n / 4.0);
    layers + exact_bits((seconds + left) as u64)
}

impl Cascade {
    /// A cascade that predicts the first bucket for every key, sized for so many keys of either table.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is no memory.
    pub fn new(first: u64, second: u64) -> Result<Cascade, BuildError> {
        let mut random = Stream::random();
        let empty = |number| {
            let (bits, hashes) = layer(number, first, second);
            Owned::zeros(Classic::new(&classic::Params { bits, hashes }, 0, Salt::new(random.next()))?)
        };
        let layers = (0..LAYERS).map(empty).collect::<Result<_, BuildError>>()?;
        Ok(Cascade { layers, last: Bits::build([], Stream::random())?, keys: first + second })
    }

    /// A cascade that is right for all of these digests, which are distinct; `true` is the second table.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is no memory, or no exact bit.
    pub fn build(items: &[(Digest, bool)]) -> Result<Cascade, BuildError> {
        let (mut stored, mut others): (Vec<_>, Vec<_>) = items.iter().copied().partition(|(_, second)| *second);
        let mut cascade = Cascade::new(others.len() as u64, stored.len() as u64)?;
        for layer in &mut cascade.layers {
            // No key passes an empty layer, and those that come to it belong to the table that it names.
            if stored.is_empty() {
                return Ok(cascade);
            }
            for (key, _) in &stored {
                put(layer, *key);
            }
            others.retain(|(key, _)| layer.geometry.contains(&layer.payload, *key));
            std::mem::swap(&mut stored, &mut others);
        }
        // Keys of the last layer pass it, also when they are all that is left.
        cascade.last = Bits::build(stored.into_iter().chain(others), Stream::random())?;
        Ok(cascade)
    }

    /// The first layer that the key is not in.
    #[inline]
    fn ends_at(&self, key: Digest) -> usize {
        self.layers.iter().position(|layer| !layer.geometry.contains(&layer.payload, key)).unwrap_or(LAYERS)
    }

    /// Predicts whether a key is in its second bucket.
    #[inline]
    pub fn second(&self, key: Digest) -> bool {
        match self.ends_at(key) {
            LAYERS => self.last.get(key),
            layer => layer % 2 == 1,
        }
    }

    /// Learns where a key is.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the exact bit takes no more keys.
    pub fn train(&mut self, key: Digest, second: bool) -> Result<(), BuildError> {
        loop {
            let at = self.ends_at(key);
            match self.layers.get_mut(at) {
                None => return self.last.set(key, second).map(drop),
                Some(_) if (at % 2 == 1) == second => return Ok(()),
                Some(layer) => put(layer, key),
            }
        }
    }

    /// Takes a key out of the exact bit; the other layers keep it.
    pub(super) fn remove(&mut self, key: Digest) {
        self.last.remove(key);
    }

    /// Keys it was sized for.
    pub(super) fn keys(&self) -> u64 {
        self.keys
    }

    /// Bits that predictions read.
    pub fn bits(&self) -> u64 {
        self.layers.iter().map(|layer| 8 * layer.payload.len() as u64).sum::<u64>() + self.last.cells.bits()
    }

    /// Bytes that only changes read.
    pub(super) fn side_bytes(&self) -> u64 {
        self.last.graphs.bytes()
    }
}

/// Puts a key into a layer, which has a table and cannot be full.
fn put(layer: &mut Owned<Classic>, key: Digest) {
    layer.geometry.insert(&mut layer.payload, key);
}
