//! how queries are spread, a budget -> the layers of a stack that learns, and each of them as a table.

use crate::error::{BuildError, Lack};
use crate::hash::{Digest, Salt};
use crate::leaves::bloom::{Classic, classic};
use crate::leaves::change::{Layer, Owned};
use crate::leaves::cuckoo::{self, Cuckoo};
use crate::leaves::quotient::{self, OwnedQuotient, Quotient};
use crate::math::quotient as quotients;
use crate::math::shape::Shape;
use crate::math::stack::{self, Limits, Size, quick, watched};
use crate::plan::recipes::stacked::{shortened, size};
use crate::plan::{Base, GUARD};

/// Entries for which a layer that is open is made at least.
const MIN_OPEN_ENTRIES: u64 = 8;
/// Bits of the smallest layer, and bits per entry of the largest: more make no filter better.
const MIN_LAYER_BITS: f64 = 64.0;
const MAX_BITS_PER_ENTRY: f64 = 64.0;
/// More queries than there will be.
const MAX_QUERIES: u64 = 1 << 44;

/// The goal of the caller; the part of it that stays.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct StackGoal {
    pub(super) base: Base,
    /// Bits per key.
    pub(super) bits: f64,
    /// Negative queries to expect in all, if the stack must be finished soon.
    pub(super) lifetime: Option<u64>,
}

/// The layers to build, and how long the first of them must take.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Plan {
    /// The rates of the layers, an odd number.
    pub(super) alphas: Vec<f64>,
    /// Negatives that are seen before the third layer.
    pub(super) known: f64,
    /// Negative queries until then.
    pub(super) queries: u64,
}

impl StackGoal {
    pub(super) fn size(&self) -> Size {
        size(self.base)
    }

    pub(super) fn check(&self) -> Result<(), BuildError> {
        match (self.base, self.bits) {
            (Base::Ribbon | Base::Fuse | Base::Fuse4, _) => {
                Err(BuildError::Unfit { kind: self.base.alone().name(), lacks: Lack::Learning })
            }
            (_, given) if !(1.0..=1024.0).contains(&given) => {
                Err(BuildError::Range { option: "bits_per_key", given, least: 1.0, most: 1024.0 })
            }
            _ => Ok(()),
        }
    }

    /// The layers for so many keys and such queries.
    pub(super) fn plan(&self, keys: u64, shape: &Shape) -> Plan {
        let size = self.size();
        let whole = self.base != Base::Bloom;
        let alone = size.alpha(self.bits).min(0.5);
        let found = match self.lifetime {
            Some(lifetime) => quick(size, whole, keys, shape, self.bits, lifetime).map(|found| Plan {
                alphas: found.alphas.to_vec(),
                known: found.known,
                queries: found.queries,
            }),
            None => {
                let limits = Limits { most_efpb: Some(GUARD * alone), ..Limits::bits(self.bits) };
                let found = match whole {
                    true => stack::integer(size, keys, shape, &limits),
                    false => stack::fixed(size, keys, shape, &limits),
                };
                found.map(|found| shortened(found, shape)).map(|found| Plan {
                    known: found.known as f64,
                    queries: watched(shape, found.known as f64, MAX_QUERIES),
                    alphas: found.alphas,
                })
            }
        };
        found.filter(|plan| plan.alphas.len() > 1).unwrap_or(Plan { alphas: vec![alone], known: 0.0, queries: 0 })
    }

    /// An empty layer for the negatives that get as far as layer `index`.
    pub(super) fn open(&self, plan: &Plan, keys: u64, index: usize, salt: Salt) -> Result<Box<dyn Layer>, BuildError> {
        let entries = plan.entries(keys).get(index).copied().unwrap_or(0.0);
        let capacity = (entries.ceil() as u64).max(MIN_OPEN_ENTRIES);
        let rate = plan.alphas.get(index).copied().unwrap_or(0.5).min(0.5);
        Ok(match self.base {
            Base::Cuckoo => Box::new(Owned::zeros(Cuckoo::empty(capacity, rate, true, salt, 0)?)?),
            Base::Quotient => {
                let size = quotients::size(capacity, rate).ok_or_else(|| no_size(capacity, rate))?;
                Box::new(OwnedQuotient::empty(size, salt)?)
            }
            // `check` has rejected those that are no Bloom filter.
            Base::Bloom | Base::Ribbon | Base::Fuse | Base::Fuse4 => {
                Box::new(Owned::zeros(Classic::new(&classic::Params::for_rate(capacity, rate)?, 0, salt)?)?)
            }
        })
    }

    /// A layer on sorted distinct keys that takes about `room` bits: the lowest rate there is for them.
    pub(super) fn closed(&self, keys: &[Digest], room: f64, salt: Salt) -> Result<Box<dyn Layer>, BuildError> {
        let n = keys.len() as u64;
        let room = room.min(MAX_BITS_PER_ENTRY * n as f64).max(MIN_LAYER_BITS);
        let mut payload = vec![];
        Ok(match self.base {
            Base::Cuckoo => {
                let params = match cuckoo::Params::for_room(n, 1, room, true) {
                    Ok(params) => params,
                    Err(_) => cuckoo::Params::for_rate(n, 0.5, true)?,
                };
                Box::new(Owned { geometry: Cuckoo::build(keys, &params, salt, &mut payload)?, payload })
            }
            Base::Quotient => {
                let spare = quotient::Params::spare(n, 1);
                let size = quotients::size_within(n, spare, room).or_else(|| quotients::size(n, 0.5));
                let params = quotient::Params::new(n, size.ok_or_else(|| no_size(n, 0.5))?, true);
                let geometry = match n {
                    0 => Quotient::new((0, 1), salt)?,
                    _ => Quotient::build(keys, &params, salt, &mut payload)?,
                };
                Box::new(Owned { geometry, payload })
            }
            Base::Bloom | Base::Ribbon | Base::Fuse | Base::Fuse4 => {
                let params = classic::Params::for_bits_per_key(n.max(1), room / n.max(1) as f64)?;
                Box::new(Owned { geometry: Classic::build(keys, &params, salt, &mut payload)?, payload })
            }
        })
    }
}

fn no_size(keys: u64, rate: f64) -> BuildError {
    BuildError::NoSize { structure: "quotient filter", keys, rate }
}

impl Plan {
    /// Entries that are expected in each layer.
    fn entries(&self, keys: u64) -> Vec<f64> {
        let mut sides = [keys as f64, self.known];
        let mut entries = vec![];
        for alpha in &self.alphas {
            entries.push(sides[0]);
            sides = [sides[1] * alpha, sides[0]];
        }
        entries
    }

    /// Bits that the layers from this one on are expected to take.
    pub(super) fn bits_from(&self, layer: usize, size: Size, keys: u64) -> f64 {
        let layers = self.entries(keys).into_iter().zip(&self.alphas).skip(layer);
        // No layer is made for a rate above a half, and one without entries takes nothing.
        layers.map(|(entries, &alpha)| if entries > 0.0 { entries * size.bits(alpha.min(0.5)) } else { 0.0 }).sum()
    }
}

/// Whether half of the bits of a table are set.
pub(super) fn half_set(table: &[u8]) -> bool {
    let (words, rest) = table.as_chunks::<8>();
    let ones = words.iter().map(|word| u64::from_le_bytes(*word).count_ones() as u64).sum::<u64>()
        + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
    ones * 2 >= table.len() as u64 * 8
}
