//! sorted records -> whether they crowd in one shard, and a number that follows from all of them: what spreads them again.
//!
//! The number is a hash of the hashes of cells, ranges of digests with the same top bits: cells can be hashed side by side, and by any thread that
//! holds only some of them.

use super::intake::Sorted;
use super::record::Record;
use super::span::{self, Side, Span};
use crate::error::BuildError;
use crate::hash::Digest;
use crate::hash::attempts::SetHash;
use crate::math::chance::too_many;
use crate::parallel::{Stop, check, run};

impl<R: Record> Sorted<R> {
    /// Whether one of 2^bits shards has so many distinct records that it is not chance.
    pub(crate) fn is_crowded(&self, bits: u32, stop: Stop<'_>) -> Result<bool, BuildError> {
        is_crowded(self, bits, stop)
    }

    pub(crate) fn set_hash(&self, stop: Stop<'_>) -> Result<u64, BuildError> {
        set_hash(self, stop)
    }
}

pub(super) fn is_crowded(side: &dyn Side, bits: u32, stop: Stop<'_>) -> Result<bool, BuildError> {
    let most = side.workspace().shard_keys as f64;
    // What is on disk may be there several times; only then must it be counted.
    let may_be = |shard: usize| too_many(side.at_most(bits, shard) as usize, most);
    if bits == 0 || !(0..1 << bits).any(may_be) {
        return Ok(false);
    }
    let mut loads = vec![0; 1 << bits];
    for span in span::all(side, None, 1, stop)?.0 {
        check(stop)?;
        side.digests(&span, stop, &mut |digests| {
            digests.iter().for_each(|digest| loads[digest.shard(bits)] += 1);
        })?;
    }
    Ok(loads.into_iter().any(|load| too_many(load, most)))
}

/// A range of digests with the same top bits, and the distinct ones in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) number: u64,
    /// How many.
    pub(crate) keys: u64,
    /// The hash of them all.
    pub(crate) hash: u64,
}

/// A hash of the set of all digests, from its cells, which come in order.
pub(crate) fn hash_of(cells: &[Cell]) -> u64 {
    SetHash::of(&cells.iter().map(|cell| Digest { hi: cell.number, lo: cell.hash }).collect::<Vec<_>>())
}

pub(super) fn set_hash(side: &dyn Side, stop: Stop<'_>) -> Result<u64, BuildError> {
    Ok(hash_of(&cells(side, stop)?))
}

/// The cells that hold a digest, in order.
pub(super) fn cells(side: &dyn Side, stop: Stop<'_>) -> Result<Vec<Cell>, BuildError> {
    let bits = side.workspace().cell_bits;
    let (spans, threads) = span::all(side, None, side.workspace().threads, stop)?;
    // Parts of one cell are hashed together.
    let jobs: Vec<&[Span]> = spans.chunk_by(|a, b| a.cells.start == b.cells.start).collect();
    let hashed = run(jobs, threads, |spans| {
        let mut done = vec![];
        let mut current: Option<(u64, u64, SetHash)> = None;
        let close = |(number, keys, set): (u64, u64, SetHash)| Cell { number, keys, hash: set.finish() };
        let mut add = |digests: &[Digest]| {
            for cell in digests.chunk_by(|a, b| a.shard(bits) == b.shard(bits)) {
                let number = cell.first().map_or(0, |digest| digest.shard(bits) as u64);
                done.extend(current.take_if(|open| open.0 != number).map(close));
                let (_, keys, set) = current.get_or_insert_with(|| (number, 0, SetHash::new()));
                *keys += cell.len() as u64;
                set.add(cell);
            }
        };
        spans.iter().try_for_each(|span| side.digests(span, stop, &mut add))?;
        done.extend(current.map(close));
        Ok(done)
    })?;
    Ok(hashed.concat())
}
