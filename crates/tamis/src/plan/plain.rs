//! a goal for one filter on the keys -> its leaf, and how wide.

use super::budget::{allowed, budget, file_bits, per_key, too_few};
use super::request::{MAX_WIDTH, MIN_WIDTH};
use super::{Base, Effort, Goal, Kind, Plan, Request, Step, Structure};
use crate::error::{BuildError, Lack};
use crate::gather::{SHARD_KEYS, shard_bits};
use crate::leaves::bloom::{classic, split};
use crate::leaves::{Role, cuckoo, fuse, quotient, ribbon};
use crate::math::quotient as quotients;

impl Base {
    /// A leaf of a given width; `nested` if narrower ones on the same keys must be its first bits.
    pub(crate) fn leaf(self, request: &Request, width: u16, nested: bool) -> Result<Structure, BuildError> {
        let tight = request.effort == Effort::Smallest;
        Ok(match self {
            Base::Ribbon => ribbon::Params { width, tight, nested }.into(),
            Base::Fuse => fuse::Params { arity: fuse::Arity::Three, width }.into(),
            Base::Fuse4 => fuse::Params { arity: fuse::Arity::Four, width }.into(),
            Base::Bloom | Base::Cuckoo | Base::Quotient => {
                return Err(BuildError::Unfit { kind: self.alone().name(), lacks: Lack::ExactBit });
            }
        })
    }

    /// A filter of one leaf.
    pub(crate) fn alone(self) -> Kind {
        match self {
            Base::Ribbon => Kind::Ribbon,
            Base::Fuse => Kind::Fuse,
            Base::Fuse4 => Kind::Fuse4,
            Base::Bloom => Kind::ClassicBloom,
            Base::Cuckoo => Kind::Cuckoo,
            Base::Quotient => Kind::Quotient,
        }
    }

    /// One exact bit.
    pub(crate) fn exact(self, request: &Request) -> Result<Structure, BuildError> {
        if self == Base::Bloom { Base::Ribbon.leaf(request, 256, false) } else { self.leaf(request, 256, false) }
    }

    /// A leaf for `n` keys with this rate for unlisted keys, or less.
    pub(crate) fn with_rate(self, request: &Request, n: u64, rate: f64) -> Result<Structure, BuildError> {
        match self {
            Base::Bloom => {
                let n = request.in_small_shard(n);
                let classic::Params { bits, hashes } = classic::Params::for_rate(n, rate)?;
                return Ok(classic::PerKey { bits_per_key: per_key(bits, n, Goal::Fpr(rate))?, hashes }.into());
            }
            Base::Cuckoo => return Ok(Structure::Cuckoo(cuckoo::Params::for_rate(n, rate, true)?)),
            Base::Quotient => {
                let request = Request { keys: n, goal: Goal::Fpr(rate), ..*request };
                return Ok(Structure::Quotient(quotient_params(&request)?));
            }
            Base::Ribbon | Base::Fuse | Base::Fuse4 => {}
        }
        let wanted = Request { goal: Goal::Fpr(rate), ..*request };
        let width = wanted.least_width(|width| Ok(self.leaf(request, width, true)?.rate_at(1) <= rate))?;
        self.leaf(request, width, true)
    }

    /// Cells of a key, where both stages are in one word.
    pub(crate) fn arity(self) -> Result<fuse::Arity, BuildError> {
        match self {
            Base::Fuse => Ok(fuse::Arity::Three),
            Base::Fuse4 => Ok(fuse::Arity::Four),
            Base::Ribbon | Base::Bloom | Base::Cuckoo | Base::Quotient => {
                Err(BuildError::Unfit { kind: self.alone().name(), lacks: Lack::FuseTable })
            }
        }
    }
}

/// One filter on the keys; a ribbon where the kind is more than a leaf.
pub(super) fn plain(kind: Kind, request: &Request) -> Result<Plan, BuildError> {
    let request = &Request { kind, ..*request };
    let structure = kind.leaf(request).unwrap_or_else(|| ribbon(request))?;
    Ok(Plan::new(vec![Step { role: Role::Positive, structure }]))
}

pub(super) fn ribbon(request: &Request) -> Result<Structure, BuildError> {
    let tight = request.effort == Effort::Smallest;
    fit_width(request, |width| ribbon::Params { width, tight, nested: false }.into())
}

pub(super) fn fuse3(request: &Request) -> Result<Structure, BuildError> {
    fit_width(request, |width| fuse::Params { arity: fuse::Arity::Three, width }.into())
}

pub(super) fn fuse4(request: &Request) -> Result<Structure, BuildError> {
    fit_width(request, |width| fuse::Params { arity: fuse::Arity::Four, width }.into())
}

pub(super) fn split_block(request: &Request) -> Result<Structure, BuildError> {
    let Request { keys: n, goal, .. } = *request;
    let params = match goal {
        Goal::BitsPerKey(bits) => split::Params::for_bits_per_key(n, budget(request, bits, 256)?)?,
        Goal::Fpr(rate) => split::Params::for_rate(n, rate)?,
        Goal::Exact | Goal::ExcludedFpr(_) => split::Params::for_rate(n, 0.5)?,
    };
    Ok(split::PerKey { bits_per_key: per_key(params.blocks * 256, n, goal)? }.into())
}

pub(super) fn classic_bloom(request: &Request) -> Result<Structure, BuildError> {
    let Request { keys, goal, .. } = *request;
    let n = if let Goal::Fpr(_) = goal { request.in_small_shard(keys) } else { keys };
    let params = match goal {
        Goal::BitsPerKey(bits) => classic::Params::for_bits_per_key(n, budget(request, bits, 64)?)?,
        Goal::Fpr(rate) => classic::Params::for_rate(n, rate)?,
        Goal::Exact | Goal::ExcludedFpr(_) => classic::Params::for_rate(n, 0.5)?,
    };
    Ok(classic::PerKey { bits_per_key: per_key(params.bits, n, goal)?, hashes: params.hashes }.into())
}

pub(super) fn cuckoo(request: &Request) -> Result<Structure, BuildError> {
    let Request { keys: n, goal, effort, .. } = *request;
    let semi_sorted = effort == Effort::Smallest;
    let params = match goal {
        Goal::BitsPerKey(_) => {
            let shards = 1 << shard_bits(n, SHARD_KEYS);
            let params = cuckoo::Params::for_room(n, shards, request.room(1)?, semi_sorted);
            params.map_err(|least| request.too_few(1, least))?
        }
        Goal::Fpr(rate) => cuckoo::Params::for_rate(n, rate, semi_sorted)?,
        Goal::Exact | Goal::ExcludedFpr(_) => cuckoo::Params::for_rate(n, 0.5, semi_sorted)?,
    };
    Ok(params.into())
}

pub(super) fn quotient(request: &Request) -> Result<Structure, BuildError> {
    Ok(quotient_params(request)?.into())
}

/// Slots and remainders of a quotient filter.
fn quotient_params(request: &Request) -> Result<quotient::Params, BuildError> {
    let Request { keys: n, goal, .. } = *request;
    let with_rate = |rate: f64| {
        let none = BuildError::NoSize { structure: "quotient filter", keys: n, rate };
        Ok(quotient::Params::new(n, quotients::size(n, rate).ok_or(none)?, false))
    };
    match goal {
        Goal::Fpr(rate) => with_rate(rate),
        Goal::Exact | Goal::ExcludedFpr(_) => with_rate(0.5),
        Goal::BitsPerKey(per_key) => {
            let spare = quotient::Params::spare(n, 1 << shard_bits(n, SHARD_KEYS));
            let file = file_bits(request, 1, per_key);
            let size = quotients::size_within(n, spare, allowed(n, per_key) - file);
            let least = || too_few(n, per_key, file + quotients::bits((quotients::slots(n) + spare) as f64, 1));
            Ok(quotient::Params::new(n, size.ok_or_else(least)?, true))
        }
    }
}

/// The structure whose width meets the goal: rates fall and sizes grow with it.
fn fit_width(request: &Request, with: impl Fn(u16) -> Structure) -> Result<Structure, BuildError> {
    let n = request.keys;
    match request.goal {
        Goal::Exact | Goal::ExcludedFpr(_) => Ok(with(MIN_WIDTH)),
        Goal::Fpr(rate) => Ok(with(request.least_width(|width| Ok(with(width).rate_at(1) <= rate))?)),
        Goal::BitsPerKey(bits) => {
            let size = |width| with(width).bits(n, 0) + file_bits(request, 1, bits);
            match request.least_width(|width| Ok(size(width) > allowed(n, bits))) {
                Ok(MIN_WIDTH) => Err(too_few(n, bits, size(MIN_WIDTH))),
                Ok(width) => Ok(with(width - 1)),
                Err(_) => Ok(with(MAX_WIDTH)),
            }
        }
    }
}
