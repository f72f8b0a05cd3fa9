//! keys and where they are -> a guess: the paper's predictor with Bloom layers alone, those of tamis, one Bloom filter.

use std::f64::consts::LN_2;

use tamis::internals::table::Cascade;
use tamis::{Bloom, Digest, Error, Hasher, Key, Othello};

/// Says which of its two buckets a key is in.
pub(super) trait Predict {
    fn is_second(&self, key: u64) -> bool;
    fn train(&mut self, key: u64, second: bool) -> Result<(), Error>;
    fn forget(&mut self, _key: u64) -> Result<(), Error> {
        Ok(())
    }
    fn bits(&self) -> f64;
}

/// lambda of Theorem 5.2 at a load.
pub(super) fn lambda(load: f64) -> f64 {
    1.0 / (2.0 * load / (1.0 - (-2.0 * load).exp()) - 1.0)
}

/// The bound of the remark after Theorem 4.3, for a table of so many buckets: C' n log2 16 lambda bits.
pub(super) fn formula_bits(buckets: usize, load: f64) -> f64 {
    let lambda = lambda(load);
    load * buckets as f64 / (lambda + 1.0) / LN_2 * (16.0 * lambda).log2()
}

pub(super) fn digest(key: u64) -> Digest {
    key.digest(&Hasher::seeded(0))
}

/// A Bloom filter, and how many keys it is made for, with how many hash functions: `keys hashes / ln 2` bits.
struct Layer {
    bloom: Bloom,
    bits: f64,
}

impl Layer {
    fn new(keys: f64, hashes: i32, seed: u64) -> Result<Layer, Error> {
        let builder = Bloom::with_capacity(keys.ceil().max(1.0) as u64).fpr(0.5f64.powi(hashes));
        let bloom = builder.hasher(Hasher::seeded(seed)).classic().build::<u64>()?;
        Ok(Layer { bloom, bits: (keys * f64::from(hashes) / LN_2).max(64.0) })
    }

    fn has(&self, key: u64) -> bool {
        self.bloom.contains(key).unwrap_or_default()
    }
}

/// The cascade of the paper: Bloom layers only.
pub(super) struct Plain(Vec<Layer>);

impl Plain {
    /// For so many keys of the second table and lambda times as many of the first, delta = 1/2.
    pub(super) fn new(second: f64, lambda: f64) -> Result<Plain, Error> {
        let hashes = (2.0 * lambda).log2().ceil().max(1.0) as i32;
        let first = Layer::new(second, hashes, 100);
        let others = (1..18).map(|i| Layer::new(second * 0.5f64.powi(i), 2, 100 + i as u64));
        Ok(Plain([first].into_iter().chain(others).collect::<Result<_, _>>()?))
    }

    fn ends_at(&self, key: u64) -> usize {
        self.0.iter().position(|layer| !layer.has(key)).unwrap_or(self.0.len())
    }
}

impl Predict for Plain {
    fn is_second(&self, key: u64) -> bool {
        self.ends_at(key) % 2 == 1
    }

    fn train(&mut self, key: u64, second: bool) -> Result<(), Error> {
        loop {
            let at = self.ends_at(key);
            match self.0.get_mut(at) {
                Some(layer) if (at % 2 == 1) != second => layer.bloom.insert(key)?,
                // Right, or out of layers.
                _ => return Ok(()),
            }
        }
    }

    fn bits(&self) -> f64 {
        self.0.iter().map(|layer| layer.bits).sum()
    }
}

impl Predict for Cascade {
    fn is_second(&self, key: u64) -> bool {
        self.second(digest(key))
    }

    fn train(&mut self, key: u64, second: bool) -> Result<(), Error> {
        Ok(Cascade::train(self, digest(key), second)?)
    }

    fn bits(&self) -> f64 {
        Cascade::bits(self) as f64
    }
}

impl Predict for Othello {
    fn is_second(&self, key: u64) -> bool {
        self.get(key).unwrap_or_default()
    }

    fn train(&mut self, key: u64, second: bool) -> Result<(), Error> {
        self.set(key, second).map(drop)
    }

    fn forget(&mut self, key: u64) -> Result<(), Error> {
        self.remove(key)?;
        Ok(())
    }

    fn bits(&self) -> f64 {
        self.table_bits() as f64
    }
}

pub(super) struct OneBloom(Layer);

impl OneBloom {
    pub(super) fn new(seconds: usize, bits: f64) -> Result<OneBloom, Error> {
        let hashes = (bits / seconds.max(1) as f64 * LN_2).round().clamp(1.0, 30.0);
        Ok(OneBloom(Layer::new(bits * LN_2 / hashes, hashes as i32, 500)?))
    }
}

impl Predict for OneBloom {
    fn is_second(&self, key: u64) -> bool {
        self.0.has(key)
    }

    fn train(&mut self, key: u64, second: bool) -> Result<(), Error> {
        if second {
            self.0.bloom.insert(key)?;
        }
        Ok(())
    }

    fn bits(&self) -> f64 {
        self.0.bits
    }
}
