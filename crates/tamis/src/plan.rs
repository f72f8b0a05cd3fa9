//! counts + a goal -> the list of steps to build, as plain integers.
//!
//! With nothing known but the keys there is one step, `P`, and the question is only which leaf, and how wide. The
//! default is the ribbon: as small as filters get.

use crate::error::BuildError;
use crate::format::Encoded;
use crate::hash::{Digest, Salt};
use crate::leaves::bloom::{classic, split};
use crate::leaves::{Geometry, Values, fuse, ribbon};
use crate::shard::{SHARD_KEYS, Stats, shard_bits};
use crate::steps::{BLOOM, FUSE, RIBBON, Role, SPLIT_BLOCK};

/// What a filter shall reach for strangers: keys that nobody listed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// At most this share of them is let through; the filter is as small as that allows.
    Rate(f64),
    /// At most this many bits per key, file and all; as few strangers as that allows.
    BitsPerKey(f64),
}

/// Which structure to use.
///
/// | kind | bits per key at 1/256 | good for |
/// |---|---|---|
/// | [`Ribbon`](Kind::Ribbon) | 8.03 | the smallest; the default |
/// | [`Homogeneous`](Kind::Homogeneous) | 8.88 | construction that cannot fail and needs no second try |
/// | [`Fuse`](Kind::Fuse) | 9.05 | the fastest answers of the static ones |
/// | [`Fuse4`](Kind::Fuse4) | 8.62 | between the two |
/// | [`Bloom`](Kind::Bloom) | 12.9 | the fastest to build and to ask; one cache line; keys can be added |
/// | [`ClassicBloom`](Kind::ClassicBloom) | 11.5 | keys can be added |
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Kind {
    /// The planner chooses.
    #[default]
    Auto,
    /// Bumped ribbon; a standard ribbon for small sets.
    Ribbon,
    /// Homogeneous ribbon.
    Homogeneous,
    /// 3-wise binary fuse filter.
    Fuse,
    /// 4-wise binary fuse filter.
    Fuse4,
    /// Split-block Bloom filter.
    Bloom,
    /// The Bloom filter of 1970.
    ClassicBloom,
}

impl Kind {
    /// Every kind with its name on the command line.
    pub const ALL: [(&'static str, Kind); 7] = [
        ("auto", Kind::Auto),
        ("ribbon", Kind::Ribbon),
        ("homogeneous", Kind::Homogeneous),
        ("fuse", Kind::Fuse),
        ("fuse4", Kind::Fuse4),
        ("bloom", Kind::Bloom),
        ("classic-bloom", Kind::ClassicBloom),
    ];
}

/// How hard to look for a smaller filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// The quickest to build and to ask: a fuse filter where the choice is free.
    Fast,
    /// A ribbon with bands of 64 bits.
    #[default]
    Balanced,
    /// A ribbon with bands of 128 bits: a few tenths of a percent smaller, twice as slow to build.
    Smallest,
}

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
}

/// What will be built.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    pub(crate) steps: Vec<(Role, Structure)>,
}

impl Plan {
    /// About how many bytes the file will have; rather a little more than less.
    pub(crate) fn bytes(&self, n: u64) -> u64 {
        let bits: f64 = self.steps.iter().map(|(_, structure)| structure.bits(n)).sum();
        ((bits * 1.01 + file_bits(n, bits / n.max(1) as f64)) / 8.0) as u64 + 4096
    }
}

/// Rows per 1024 keys of a homogeneous ribbon with bands of 64: [HomRibbon] adds (4 + width / 4) / 64; one 64th more
/// keeps narrow widths within a few percent of 2^-width. A lower rate bears fewer strangers whose equation says nothing new.
fn homogeneous_rows(width: u16) -> u16 {
    1104 + width / 64
}

/// Everything of a file that is not payload: header, footer, and for every shard an entry in the directory and, before a
/// large payload, a gap.
fn file_bits(n: u64, bits_per_key: f64) -> f64 {
    let shards = (1u64 << shard_bits(n, SHARD_KEYS)) as f64;
    let large = n as f64 * bits_per_key.max(32.0) >= (8 << 16) as f64;
    8.0 * (68.0 + shards * if large { 88.0 } else { 24.0 })
}

/// Chooses the steps for these counts.
pub(crate) fn plan(stats: &Stats, goal: Goal, kind: Kind, effort: Effort) -> Result<Plan, BuildError> {
    check(goal)?;
    let kind = match (kind, effort) {
        (Kind::Auto, Effort::Fast) => Kind::Fuse,
        (Kind::Auto, _) => Kind::Ribbon,
        (kind, _) => kind,
    };
    let n = stats.keys;
    // Without keys there is nothing to spend bits on.
    let goal = if n == 0 { Goal::Rate(0.5) } else { goal };
    let fuse = |arity| move |width| Structure::Fuse(fuse::Params { arity, width });
    let wide = effort == Effort::Smallest;
    let structure = match kind {
        Kind::Auto | Kind::Ribbon => {
            widest(n, goal, |width| Structure::Ribbon(ribbon::Params { width, wide, homogeneous: None }))?
        }
        Kind::Homogeneous => {
            let params = |width| ribbon::Params { width, wide: false, homogeneous: Some(homogeneous_rows(width)) };
            widest(n, goal, |width| Structure::Ribbon(params(width)))?
        }
        Kind::Fuse => widest(n, goal, fuse(fuse::Arity::Three))?,
        Kind::Fuse4 => widest(n, goal, fuse(fuse::Arity::Four))?,
        Kind::Bloom => {
            let params = match goal {
                Goal::Rate(rate) => split::Params::for_rate(n, rate)?,
                Goal::BitsPerKey(bits) => split::Params::for_bits_per_key(n, budget(n, bits, 256)?)?,
            };
            Structure::SplitBlock { bits_per_key: per_key(params.blocks * 256, n, goal)? }
        }
        Kind::ClassicBloom => {
            let params = match goal {
                Goal::Rate(rate) => classic::Params::for_rate(n, rate)?,
                Goal::BitsPerKey(bits) => classic::Params::for_bits_per_key(n, budget(n, bits, 64)?)?,
            };
            Structure::Bloom { bits_per_key: per_key(params.bits, n, goal)?, hashes: params.hashes }
        }
    };
    Ok(Plan { steps: vec![(Role::Refuse, structure)] })
}

fn check(goal: Goal) -> Result<(), BuildError> {
    let reason = match goal {
        Goal::Rate(rate) if !(rate > 0.0 && rate < 1.0) => {
            format!("the rate for strangers must lie between 0 and 1, not {rate}")
        }
        Goal::BitsPerKey(bits) if !(bits > 0.0 && bits <= 4096.0) => {
            format!("the bits per key must lie between 0 and 4096, not {bits}")
        }
        _ => return Ok(()),
    };
    Err(BuildError::Unreachable { reason })
}

/// What is left of a budget of bits per key for a table whose size in each shard is rounded up to a multiple of `unit` bits.
fn budget(n: u64, bits: f64, unit: u64) -> Result<f64, BuildError> {
    let round = (unit << shard_bits(n, SHARD_KEYS)) as f64;
    let least = file_bits(n, bits) + 2.0 * round;
    let left = bits * n as f64 - file_bits(n, bits) - round;
    if left < round { Err(too_few(n, bits, least)) } else { Ok(left / n as f64) }
}

/// A budget below the `least` bits that a file of `n` keys takes.
fn too_few(n: u64, bits: f64, least: f64) -> BuildError {
    let least = (100.0 * least / n as f64).ceil() / 100.0;
    let reason = format!("{bits} bits per key are too few for {n} keys; the smallest that works is {least:.2}");
    BuildError::Unreachable { reason }
}

/// Bits per key in 256ths, rounded to the safe side of the goal.
fn per_key(bits: u64, n: u64, goal: Goal) -> Result<u32, BuildError> {
    let exact = bits as f64 * 256.0 / n.max(1) as f64;
    let rounded = if matches!(goal, Goal::Rate(_)) { exact.ceil() } else { exact.floor() };
    if rounded > u32::MAX as f64 {
        let reason =
            format!("Bloom filter: a rate this low needs {:.0} bits per key, at most 2^24 are possible", exact / 256.0);
        return Err(BuildError::Unreachable { reason });
    }
    Ok(rounded.max(1.0) as u32)
}

/// The width, in 256ths of a bit, that meets the goal: rates fall and sizes grow with it.
fn widest(n: u64, goal: Goal, with: impl Fn(u16) -> Structure) -> Result<Structure, BuildError> {
    const NARROWEST: u16 = 256;
    const WIDEST: u16 = 32 * 256;
    let fits = |width: u16| match goal {
        Goal::Rate(rate) => with(width).rate() <= rate,
        Goal::BitsPerKey(bits) => with(width).bits(n) + file_bits(n, bits) > bits * n as f64,
    };
    // Both questions turn from no to yes once: the first width with a low rate, or the first that is too large.
    let (mut low, mut high) = (NARROWEST, WIDEST + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle + 1 }
    }
    match goal {
        Goal::Rate(rate) if low > WIDEST => Err(BuildError::Unreachable {
            reason: format!("a rate of {rate} needs more than 32 bits per key; the lowest is 2.4e-10"),
        }),
        Goal::Rate(_) => Ok(with(low)),
        Goal::BitsPerKey(bits) if low == NARROWEST => {
            Err(too_few(n, bits, with(NARROWEST).bits(n) + file_bits(n, bits)))
        }
        Goal::BitsPerKey(_) => Ok(with(low.min(WIDEST + 1) - 1)),
    }
}

impl Structure {
    /// The tag in a directory.
    pub(crate) fn tag(&self) -> u8 {
        match self {
            Structure::SplitBlock { .. } => SPLIT_BLOCK,
            Structure::Bloom { .. } => BLOOM,
            Structure::Fuse(_) => FUSE,
            Structure::Ribbon(_) => RIBBON,
        }
    }

    /// Expected payload bits for `n` keys.
    fn bits(&self, n: u64) -> f64 {
        match self {
            Structure::SplitBlock { bits_per_key } | Structure::Bloom { bits_per_key, .. } => {
                n as f64 * *bits_per_key as f64 / 256.0
            }
            Structure::Fuse(params) => fuse::payload_bits(n, params) as f64,
            Structure::Ribbon(params) => params.bits(n),
        }
    }

    /// The rate for strangers of the structures whose rate does not depend on their load.
    fn rate(&self) -> f64 {
        match self {
            Structure::Fuse(params) => fuse::rate(params.width),
            Structure::Ribbon(params) => params.rate(),
            Structure::SplitBlock { .. } | Structure::Bloom { .. } => 1.0,
        }
    }

    /// Builds the leaf of one shard.
    pub(crate) fn build(&self, keys: &[Digest], values: Values<'_>, salt: Salt) -> Result<Encoded, BuildError> {
        let n = keys.len() as u64;
        let mut payload = vec![];
        let mut geometry = vec![];
        match *self {
            Structure::SplitBlock { bits_per_key } => {
                let params = split::Params { blocks: (n * bits_per_key as u64).div_ceil(256 * 256) };
                split::SplitBlock::build(keys, &params, salt, &mut payload)?.encode(&mut geometry);
            }
            Structure::Bloom { bits_per_key, hashes } => {
                let params = classic::Params { bits: (n * bits_per_key as u64).div_ceil(256), hashes };
                classic::Classic::build(keys, &params, salt, &mut payload)?.encode(&mut geometry);
            }
            Structure::Fuse(params) => fuse::build(keys, values, &params, salt, &mut payload)?.encode(&mut geometry),
            Structure::Ribbon(params) => {
                ribbon::build(keys, values, &params, salt, &mut payload)?.encode(&mut geometry)
            }
        }
        Ok(Encoded { geometry, payload })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    /// A goal that no size reaches is an error, not a filter with another rate.
    #[test]
    fn a_bloom_filter_reaches_its_rate_or_is_refused() {
        for n in [1, 10, 1000] {
            let stats = Stats { keys: n, ..Stats::default() };
            let plan = |rate| plan(&stats, Goal::Rate(rate), Kind::ClassicBloom, Effort::Balanced);
            for rate in [1e-300, 5e-324] {
                assert!(matches!(plan(rate), Err(BuildError::Unreachable { .. })), "{rate}");
            }
            let Structure::Bloom { bits_per_key, hashes } = plan(1e-100).unwrap().steps[0].1 else { panic!() };
            let bits = (n * bits_per_key as u64).div_ceil(256);
            assert!(crate::math::bloom::classic_rate(n, bits, hashes.into()) <= 1e-100);
        }
    }
}
