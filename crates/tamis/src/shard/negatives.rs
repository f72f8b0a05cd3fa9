//! the negatives of a shard -> parts of a bounded size: a shard has few keys and may have any number of negatives.
//!
//! What is in memory is cut into slices. What is on disk is read by ranges of digests, finer ones the more records there
//! are, down to a cell, the unit in which runs are read.

use super::intake::Sorted;
use super::record::Record;
use super::workers::{Stop, check};
use crate::error::BuildError;

/// Records of one part, about: 8 MiB of tagged ones.
pub(super) const PART: u64 = 1 << 18;

/// How many more top bits tell the parts of a shard apart.
fn finer<R: Record>(records: &Sorted<R>, bits: u32, shard: usize) -> u32 {
    let all = records.at_most(bits, shard);
    let wanted = (all / records.workspace().part).checked_ilog2().map_or(0, |log| log + 1);
    wanted.min(records.workspace().cell_bits.saturating_sub(bits))
}

/// Calls `part` with the records of one shard, in order.
pub(super) fn each<R: Record>(
    records: &Sorted<R>,
    bits: u32,
    shard: usize,
    stop: Stop<'_>,
    mut part: impl FnMut(&[R]) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let more = match records.in_memory() {
        Some(_) => 0,
        None => finer(records, bits, shard),
    };
    for index in shard << more..(shard + 1) << more {
        for piece in records.range(bits + more, index, stop)?.chunks(records.workspace().part as usize) {
            check(stop)?;
            part(piece)?;
        }
    }
    Ok(())
}

/// The most records that [`each`] holds at once, for what is on disk or is copied.
pub(super) fn largest<R: Record>(records: &Sorted<R>, bits: u32, shard: usize) -> u64 {
    match records.in_memory() {
        Some(_) => records.at_most(bits, shard).min(records.workspace().part),
        None => {
            let more = finer(records, bits, shard);
            let parts = shard << more..(shard + 1) << more;
            // Next to what was read, a part of it without conflicts.
            parts.map(|index| records.at_most(bits + more, index)).max().unwrap_or(0) + records.workspace().part
        }
    }
}
