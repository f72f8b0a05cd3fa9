//! two sides in runs -> spans of digests that fit in memory: some cells together, one cell, or a part of one.
//!
//! Runs are read by cells, ranges of digests with the same top bits. Random digests fill cells evenly, and a few of them fit in any
//! limit. Chosen digests may all lie in one. Such a cell is cut where its own records say: every so many of each run
//! are looked at, and after as many as fit comes a border. Runs are sorted, so that a part of a cell is still one piece of each.

use std::ops::Range;

use super::{Record, SHARD_KEYS, Workspace, spill};
use crate::error::BuildError;
use crate::hash::Digest;
use crate::parallel::Stop;

/// Bytes of a span at least, however low the limit.
const MIN_SPAN_BYTES: u64 = 1 << 10;
/// More than a shard at a time gains nothing: fresh memory costs more than a few more reads.
const MAX_SPAN_BYTES: u64 = SHARD_KEYS * Digest::SIZE as u64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The cells that it lies in.
    pub(super) cells: Range<usize>,
    /// The first digest, where it is not that of the first cell.
    pub(super) from: Option<Digest>,
    /// The digest behind the last, where it is not that of the next cell.
    pub(super) until: Option<Digest>,
}

impl Span {
    pub(super) fn cells(cells: Range<usize>) -> Span {
        Span { cells, from: None, until: None }
    }

    /// Whether a digest lies below the range, if it lies in its cells.
    #[inline(always)]
    pub(super) fn is_before(&self, digest: Digest) -> bool {
        self.from.is_some_and(|from| digest < from)
    }

    /// Whether a digest does not lie above the range, if it lies in its cells.
    #[inline(always)]
    pub(super) fn is_not_after(&self, digest: Digest) -> bool {
        self.until.is_none_or(|until| digest < until)
    }
}

/// One side, whatever its records are.
pub(super) trait Side: Sync {
    fn workspace(&self) -> &Workspace;

    /// How many records have `index` as their top `bits` bits, at most; exact for what is in memory.
    fn at_most(&self, bits: u32, index: usize) -> u64;

    /// Hands on the digests of a span, some at a time.
    fn digests(&self, span: &Span, stop: Stop<'_>, part: &mut dyn FnMut(&[Digest])) -> Result<(), BuildError>;

    /// Memory that reading may use: none for what is there already.
    fn memory(&self) -> u64;

    /// Bytes that reading these cells takes at most.
    fn cost(&self, cells: Range<usize>) -> u64;

    /// Some digests of a cell on disk, each with the bytes of records that it stands for: see [`spill::Spill::samples`].
    fn samples(&self, cell: usize, room: u64, stop: Stop<'_>) -> Result<Vec<(Digest, u64)>, BuildError>;
}

/// Cuts a span in parts that take at most `room` bytes to read, or little more, and have at most `longest` cells.
pub(super) fn cut(
    keys: &dyn Side,
    negatives: Option<&dyn Side>,
    span: &Span,
    room: u64,
    longest: usize,
    stop: Stop<'_>,
) -> Result<Vec<Span>, BuildError> {
    let cost = |cell: usize| keys.cost(cell..cell + 1) + negatives.map_or(0, |n| n.cost(cell..cell + 1));
    let mut parts = vec![];
    let (mut start, mut sum) = (span.cells.start, 0);
    for cell in span.cells.clone() {
        let next = cost(cell);
        if cell > start && (cell - start >= longest || sum + next > room) {
            parts.push(Span::cells(start..cell));
            (start, sum) = (cell, 0);
        }
        sum += next;
        if next > room {
            let mut samples = keys.samples(cell, room, stop)?;
            if let Some(negatives) = negatives {
                samples.extend(negatives.samples(cell, room, stop)?);
            }
            parts.extend(pieces(cell, samples, room));
            (start, sum) = (cell + 1, 0);
        }
    }
    if start < span.cells.end {
        parts.push(Span::cells(start..span.cells.end));
    }
    // Parts of a cell that the span has only a part of.
    parts.retain(|part| {
        part.until.is_none_or(|until| !span.is_before(until)) && part.from.is_none_or(|from| span.is_not_after(from))
    });
    if let Some(first) = parts.first_mut() {
        first.from = first.from.max(span.from);
    }
    if let Some(last) = parts.last_mut() {
        last.until = last.until.into_iter().chain(span.until).min();
    }
    Ok(parts)
}

/// One cell in parts of about `room` bytes, by some of its digests, each of which stands for so many bytes.
fn pieces(cell: usize, mut samples: Vec<(Digest, u64)>, room: u64) -> Vec<Span> {
    samples.sort_unstable();
    let (mut from, mut sum) = (None, 0);
    let mut parts = vec![];
    for (digest, bytes) in samples {
        // The low half of the low word is not looked at: pairs of one key, which agree in all but these bits, stay together.
        let border = Some(Digest { lo: digest.lo & !u64::from(u32::MAX), ..digest });
        if sum > room * 3 / 4 && border > from {
            parts.push(Span { cells: cell..cell + 1, from, until: border });
            (from, sum) = (border, 0);
        }
        sum += bytes;
    }
    parts.push(Span { cells: cell..cell + 1, from, until: None });
    parts
}

/// All digests in spans that fit in what the sides may use, and how many threads may read one each.
pub(super) fn all(
    keys: &dyn Side,
    negatives: Option<&dyn Side>,
    threads: usize,
    stop: Stop<'_>,
) -> Result<(Vec<Span>, usize), BuildError> {
    let cells = keys.workspace().cells();
    let cost = |cell: usize| keys.cost(cell..cell + 1) + negatives.map_or(0, |n| n.cost(cell..cell + 1));
    let memory = keys.memory() + negatives.map_or(0, |n| n.memory());
    let block = spill::BLOCK as u64;
    let threads = match (0..cells).map(cost).max().unwrap_or(0) {
        0 => threads,
        largest => (memory / (largest + block)).clamp(1, threads as u64) as usize,
    };
    let room = (memory / threads as u64).saturating_sub(block).clamp(MIN_SPAN_BYTES, MAX_SPAN_BYTES);
    // As many cells at a time as fit, and not so many that a thread goes without.
    let longest = cells.div_ceil(8 * threads);
    Ok((cut(keys, negatives, &Span::cells(0..cells), room, longest, stop)?, threads))
}
