//! the negatives of a shard -> parts of a bounded size: a shard has few keys and may have any number of negatives.
//!
//! What is in memory is cut into slices. What is on disk is read by spans of digests that hold about as many records.

use super::intake::Sorted;
use super::record::Record;
use super::span::{self, Side};
use crate::error::BuildError;
use crate::parallel::{Stop, check};

/// Records of one part, about: 8 MiB of tagged ones.
pub(super) const PART: u64 = 1 << 18;

/// Calls `part` with the records of one shard, in order.
pub(super) fn each<R: Record>(
    records: &Sorted<R>,
    bits: u32,
    shard: usize,
    stop: Stop<'_>,
    mut part: impl FnMut(&[R]) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let size = records.workspace().part;
    let whole = records.workspace().cover(bits, shard);
    let spans = match records.in_memory() {
        Some(_) => vec![whole],
        None => span::cut(records, None, &whole, size * R::SIZE as u64, usize::MAX, stop)?,
    };
    for span in spans {
        for piece in records.span(&span, stop)?.chunks(size as usize) {
            check(stop)?;
            part(piece)?;
        }
    }
    Ok(())
}

/// The bytes that [`each`] holds at once, at most, of what is on disk or is copied.
pub(super) fn largest<R: Record>(records: &Sorted<R>, bits: u32, shard: usize) -> u64 {
    let (all, part) = (records.at_most(bits, shard), records.workspace().part);
    let most = match records.in_memory() {
        Some(_) => all.min(part),
        // Next to what was read, a part of it without conflicts.
        None => all.min(part * 5 / 4) + all.min(part),
    };
    R::SIZE as u64 * most
}
