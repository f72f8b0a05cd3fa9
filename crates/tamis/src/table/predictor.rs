//! where every key is -> which bucket a get reads first: an exact bit for every key, or a cascade.

use super::cascade::{Cascade, cascade_bits, exact_bits};
use crate::dynamic::othello::{Bits, forest::Stream};
use crate::error::BuildError;
use crate::hash::Digest;

/// How a table knows which of a key's two buckets to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Predictor {
    /// An exact bit while keys change. [`Table::settle`](super::Table::settle) takes the cascade if it is a fifth smaller, and a table that changes
    /// after that takes the exact bit again.
    #[default]
    Auto,
    /// An exact bit for every key, 2.24 to 2.46 bits: a get reads one bucket, of absent keys too.
    Exact,
    /// The `& ~` cascade: smaller where few keys are in their second bucket. A get of an absent key reads both buckets. It is built again whenever
    /// 1 % of the last lookups were wrong, and then all buckets are read.
    Cascade,
}

impl Predictor {
    /// What suits a finished table with so many keys in either bucket; a cascade must be worth its reads for absent keys.
    pub(super) fn takes_cascade(self, first: u64, second: u64, finished: bool) -> bool {
        match self {
            Predictor::Exact => false,
            Predictor::Cascade => true,
            Predictor::Auto => finished && 5 * cascade_bits(first, second) <= 4 * exact_bits(first + second),
        }
    }
}

/// A predictor in use.
pub(super) enum Trained {
    Exact(Bits),
    Cascade(Cascade),
}

impl Trained {
    /// A predictor of distinct digests; `true` is the second bucket.
    pub(super) fn build(items: &[(Digest, bool)], cascade: bool) -> Result<Trained, BuildError> {
        match cascade {
            true => Cascade::build(items).map(Trained::Cascade),
            false => Bits::build(items.iter().copied(), Stream::random()).map(Trained::Exact),
        }
    }

    #[inline]
    pub(super) fn second(&self, key: Digest) -> bool {
        match self {
            Trained::Exact(bits) => bits.get(key),
            Trained::Cascade(cascade) => cascade.second(key),
        }
    }

    /// A key was put into a bucket.
    pub(super) fn put(&mut self, key: Digest, second: bool) -> Result<(), BuildError> {
        match self {
            Trained::Exact(bits) => bits.set(key, second).map(drop),
            Trained::Cascade(cascade) => cascade.train(key, second),
        }
    }

    /// A key was removed.
    pub(super) fn remove(&mut self, key: Digest) {
        match self {
            Trained::Exact(bits) => drop(bits.remove(key)),
            Trained::Cascade(cascade) => cascade.remove(key),
        }
    }

    /// Whether it is right for every key of the table.
    #[inline]
    pub(super) fn is_exact(&self) -> bool {
        matches!(self, Trained::Exact(_))
    }

    /// Bits that predictions read, and bytes that only changes read.
    pub(super) fn size(&self) -> (u64, u64) {
        match self {
            Trained::Exact(bits) => (bits.cells.bits(), bits.graphs.bytes()),
            Trained::Cascade(cascade) => (cascade.bits(), cascade.side_bytes()),
        }
    }
}
