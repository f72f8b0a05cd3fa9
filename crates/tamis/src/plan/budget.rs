//! a budget of bits per key -> what is left of it for tables, and what a file takes besides.

use super::{Goal, Request};
use crate::error::BuildError;
use crate::gather::{SHARD_KEYS, shard_bits};

/// Everything of a file that is not payload: front, head with the words of the hash, and footer; for every part an entry in the directory; sums for every 64 KB of a
/// shard; before shards and parts that start on cache lines, a gap. Numbers are varints, so they grow with the keys.
pub(super) fn file_bits(request: &Request, steps: usize, bits_per_key: f64) -> f64 {
    let n = request.keys;
    let digits = f64::from(n.max(1).ilog2() / 7 + 1);
    let shards = (1u64 << shard_bits(n, SHARD_KEYS)) as f64;
    let parts = steps as f64 * shards;
    let blocks = (n as f64 * bits_per_key / (8 << 16) as f64).floor();
    let large = blocks.min(parts);
    let aligned = if blocks == 0.0 { 0.0 } else { shards };
    let numbers =
        69.0 + f64::from(request.hash_bytes) + digits + (10.0 + 4.0 * digits) * parts + (8.0 + digits) * shards;
    8.0 * (numbers + 8.0 * blocks + 64.0 * (large + aligned))
}

/// All bits of a budget; a little more, lest 16.56 bits for each of 100 keys be rounded to less than 1656.
pub(super) fn allowed(n: u64, bits: f64) -> f64 {
    bits * n as f64 * (1.0 + 1e-12)
}

/// What is left of a budget of bits per key for a table whose size in each shard is rounded up to a multiple of `unit` bits.
pub(super) fn budget(request: &Request, bits: f64, unit: u64) -> Result<f64, BuildError> {
    let n = request.keys;
    let round = (unit << shard_bits(n, SHARD_KEYS)) as f64;
    let file = file_bits(request, 1, bits);
    let left = allowed(n, bits) - file - round;
    if left < round { Err(too_few(n, bits, file + 2.0 * round)) } else { Ok(left / n as f64) }
}

/// A budget below the `least` bits that a file of `n` keys takes.
pub(super) fn too_few(n: u64, bits: f64, least: f64) -> BuildError {
    BuildError::Budget { keys: n, given: bits, needed: (100.0 * least / n as f64).ceil() / 100.0 }
}

/// Bits per key in 256ths, rounded to the safe side of the goal.
pub(super) fn per_key(bits: u64, n: u64, goal: Goal) -> Result<u32, BuildError> {
    let exact = bits as f64 * 256.0 / n.max(1) as f64;
    let rounded = if matches!(goal, Goal::BitsPerKey(_)) { exact.floor() } else { exact.ceil() };
    if rounded > u32::MAX as f64 {
        return Err(BuildError::BitsPerKey { structure: "Bloom filter", needed: exact / 256.0 });
    }
    Ok(rounded.max(1.0) as u32)
}
