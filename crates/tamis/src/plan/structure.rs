//! one leaf to build -> its size, its rate, its bytes.

use bytes::Bytes;

use crate::error::BuildError;
use crate::filter::steps::{BLOOM, CUCKOO, FUSE, INTEGRATED, LOCAL, QUOTIENT, RIBBON, SPLIT_BLOCK, STEERED};
use crate::format::Encoded;
use crate::gather::{SHARD_KEYS, shard_bits};
use crate::hash::{Digest, Salt};
use crate::leaves::bloom::{classic, split};
use crate::leaves::{Geometry, Values, cuckoo, fuse, integrated, local, quotient, ribbon, steered};
use crate::math::bloom::{classic_rate, split_block_rate};

/// One leaf to build, the same for every shard.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Structure {
    /// Bits per key times 256.
    SplitBlock {
        bits_per_key: u32,
    },
    /// Bits per key times 256.
    Bloom {
        bits_per_key: u32,
        hashes: u8,
    },
    Fuse(fuse::Params),
    Ribbon(ribbon::Params),
    /// Built from keys and negatives.
    Integrated(integrated::Params),
    /// Built from one side, to refuse the other.
    Steered(steered::Params),
    /// Built from keys and negatives.
    Local(local::Params),
    Cuckoo(cuckoo::Params),
    Quotient(quotient::Params),
}

impl Structure {
    /// The tag in a directory.
    pub(crate) fn tag(&self) -> u8 {
        match self {
            Structure::SplitBlock { .. } => SPLIT_BLOCK,
            Structure::Bloom { .. } => BLOOM,
            Structure::Fuse(_) => FUSE,
            Structure::Ribbon(_) => RIBBON,
            Structure::Integrated(_) => INTEGRATED,
            Structure::Steered(_) => STEERED,
            Structure::Local(_) => LOCAL,
            Structure::Cuckoo(_) => CUCKOO,
            Structure::Quotient(_) => QUOTIENT,
        }
    }

    /// Expected payload bits for `n` keys; of an integrated leaf, without negatives.
    pub(crate) fn bits(&self, n: u64) -> f64 {
        match self {
            Structure::SplitBlock { bits_per_key } | Structure::Bloom { bits_per_key, .. } => {
                n as f64 * *bits_per_key as f64 / 256.0
            }
            Structure::Fuse(params) => fuse::payload_bits(n, params) as f64,
            Structure::Ribbon(params) => params.bits(n),
            Structure::Integrated(params) => params.bits(n, 0),
            Structure::Steered(params) => params.bits(n),
            Structure::Local(params) => params.bits(n),
            Structure::Cuckoo(params) => params.payload_bits(n),
            Structure::Quotient(params) => params.bits(n, 1 << shard_bits(n, SHARD_KEYS)),
        }
    }

    /// The rate for strangers of the structures whose rate does not depend on their load; 1 for the others.
    pub(crate) fn rate(&self) -> f64 {
        match self {
            Structure::Fuse(params) => fuse::rate(params.width),
            Structure::Ribbon(params) => params.rate(),
            Structure::Integrated(params) => params.rate(),
            Structure::Steered(params) => params.rate(),
            Structure::Local(params) => params.rate(),
            Structure::SplitBlock { .. } | Structure::Bloom { .. } | Structure::Cuckoo(_) | Structure::Quotient(_) => {
                1.0
            }
        }
    }

    /// The rate for strangers with `n` keys.
    pub(crate) fn rate_at(&self, n: u64) -> f64 {
        match *self {
            _ if n == 0 => 0.0,
            Structure::SplitBlock { bits_per_key } => split_block_rate(n, blocks(n, bits_per_key)),
            Structure::Bloom { bits_per_key, hashes } => classic_rate(n, table(n, bits_per_key), hashes.into()),
            Structure::Cuckoo(params) => params.rate(n),
            Structure::Quotient(params) => params.rate(n),
            _ => self.rate(),
        }
    }

    /// The same with room for a share of keys more, if it takes keys after it was built.
    pub(crate) fn with_room(self, spare: f64) -> Option<Structure> {
        let more = |size: u32| (f64::from(size) * (1.0 + spare)).ceil().min(u32::MAX.into()) as u32;
        Some(match self {
            Structure::SplitBlock { bits_per_key } => Structure::SplitBlock { bits_per_key: more(bits_per_key) },
            Structure::Bloom { bits_per_key, hashes } => Structure::Bloom { bits_per_key: more(bits_per_key), hashes },
            Structure::Cuckoo(params) => Structure::Cuckoo(cuckoo::Params { places: more(params.places), ..params }),
            Structure::Quotient(params) => {
                Structure::Quotient(quotient::Params { per_key: more(params.per_key), ..params })
            }
            _ => return None,
        })
    }

    /// How many bits of a key are compared, rounded down, if a filter of fewer whole bits on the same keys refuses nothing that
    /// this one lets through.
    pub(crate) fn nested(&self) -> Option<Structure> {
        match *self {
            Structure::Fuse(params) => Some(Structure::Fuse(fuse::Params { width: params.width & !255, ..params })),
            Structure::Ribbon(params) if params.nested => {
                Some(Structure::Ribbon(ribbon::Params { width: params.width & !255, ..params }))
            }
            _ => None,
        }
    }

    /// Builds the leaf of one shard, on several threads if it can.
    pub(crate) fn build(
        &self,
        keys: &[Digest],
        values: Values<'_>,
        salt: Salt,
        threads: usize,
    ) -> Result<Encoded, BuildError> {
        let n = keys.len() as u64;
        let mut payload = vec![];
        let mut geometry = vec![];
        match *self {
            Structure::SplitBlock { bits_per_key } => {
                let params = split::Params { blocks: blocks(n, bits_per_key) };
                split::SplitBlock::build(keys, &params, salt, &mut payload)?.encode(&mut geometry);
            }
            Structure::Bloom { bits_per_key, hashes } => {
                let params = classic::Params { bits: table(n, bits_per_key), hashes };
                classic::Classic::build(keys, &params, salt, &mut payload)?.encode(&mut geometry);
            }
            Structure::Fuse(params) => fuse::build(keys, values, &params, salt, &mut payload)?.encode(&mut geometry),
            Structure::Ribbon(params) => {
                ribbon::build(keys, values, &params, salt, threads, &mut payload)?.encode(&mut geometry)
            }
            Structure::Integrated(params) => {
                integrated::build(keys, &&[][..], &params, salt, &mut payload)?.encode(&mut geometry)
            }
            Structure::Cuckoo(params) => {
                cuckoo::Cuckoo::build(keys, &params, salt, &mut payload)?.encode(&mut geometry)
            }
            Structure::Quotient(params) => {
                quotient::Quotient::build(keys, &params, salt, &mut payload)?.encode(&mut geometry)
            }
            Structure::Steered(_) => {
                let reason = "a steered column is built from both sides".into();
                return Err(BuildError::Unreachable { reason });
            }
            Structure::Local(_) => {
                let reason = "a local filter is built from both sides".into();
                return Err(BuildError::Unreachable { reason });
            }
        }
        Ok(Encoded { geometry, payload: Bytes::from(payload) })
    }
}

/// Blocks of a split-block filter.
fn blocks(n: u64, bits_per_key: u32) -> u64 {
    (n * bits_per_key as u64).div_ceil(256 * 256)
}

/// Bits of a classic filter.
fn table(n: u64, bits_per_key: u32) -> u64 {
    (n * bits_per_key as u64).div_ceil(256)
}
