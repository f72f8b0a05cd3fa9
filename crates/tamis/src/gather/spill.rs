//! sorted runs -> one temporary file, and back by ranges of digests.
//!
//! ```text
//!   file   | run 0: index, records | run 1: index, records | ...
//!   index  | position of the first record of cell 0 | of cell 1 | ... | number of records |     8 bytes each
//!   cell   all digests with the same top 12 bits
//! ```
//!
//! A range of digests is read from every run with two look-ups in its index and one contiguous read, and the pieces are sorted
//! again: the radix sort of [`super::sort`] is faster than a merge with a heap of hundreds of runs. The indexes stay in the file,
//! so memory holds 16 bytes per run and 8 per cell: a thousand million keys in 64 MiB are 400 runs, and a shard 400 pieces of 40 KB.
//!
//! The file has no name, so an interrupt or a crash leaves nothing behind. Readers share it: positions are explicit.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Workspace;
use super::record::{Record, words};
use super::span::Span;
use crate::error::BuildError;
use crate::format::bytes_of;
use crate::hash::Digest;
use crate::parallel::{Stop, check};

/// Bytes that a reader or the writer moves at once; a multiple of every record size.
pub(super) const BLOCK: usize = 1 << 16;

/// The runs of one input.
#[derive(Debug)]
pub(super) struct Spill {
    file: File,
    /// Bytes in use; a failed write leaves it as it was.
    len: u64,
    runs: Vec<Run>,
    /// Records per cell, all runs together.
    cells: Box<[u64]>,
    workspace: Arc<Workspace>,
}

#[derive(Debug)]
struct Run {
    start: u64,
    records: u64,
}

impl Spill {
    pub(super) fn new(workspace: Arc<Workspace>) -> Result<Spill, BuildError> {
        #[cfg(feature = "spill")]
        let file = tempfile::tempfile_in(workspace.dir()).map_err(|e| workspace.explain(e))?;
        // A constant answer: what follows is compiled for every set of features, and the optimiser drops it.
        #[cfg(not(feature = "spill"))]
        let file = Err(BuildError::MemoryLimit { bytes: workspace.memory })?;
        let cells = vec![0; workspace.cells()].into();
        Ok(Spill { file, len: 0, runs: Vec::new(), cells, workspace })
    }

    /// Writes sorted records as one run. The disk limit is checked before the first byte.
    pub(super) fn write<R: Record>(&mut self, records: &[R], stop: Stop<'_>) -> Result<(), BuildError> {
        let bits = self.workspace.cell_bits;
        let mut counts = vec![0u64; self.cells.len()];
        records.iter().for_each(|r| counts[r.digest().shard(bits)] += 1);

        let size = 8 * (counts.len() as u64 + 1) + R::SIZE as u64 * records.len() as u64;
        self.workspace.take_disk(size)?;
        let end = self.len + size;
        if let Err(error) = self.write_at(self.len, &counts, records, stop) {
            self.workspace.used.fetch_sub(size, Ordering::Relaxed);
            return Err(error);
        }
        self.runs.push(Run { start: self.len, records: records.len() as u64 });
        self.cells.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        self.len = end;
        Ok(())
    }

    fn write_at<R: Record>(&self, at: u64, counts: &[u64], records: &[R], stop: Stop<'_>) -> Result<(), BuildError> {
        let mut index = vec![0];
        let mut position = 0;
        for count in counts {
            position += count;
            index.push(position);
        }
        let index = bytes_of(&index);
        write_all_at(&self.file, &index, at).map_err(|e| self.workspace.explain(e))?;
        let mut at = at + index.len() as u64;
        let mut block = vec![0; BLOCK];
        for records in records.chunks(BLOCK / R::SIZE) {
            check(stop)?;
            let bytes = &mut block[..records.len() * R::SIZE];
            bytes.chunks_exact_mut(R::SIZE).zip(records).for_each(|(out, record)| record.write(out));
            write_all_at(&self.file, bytes, at).map_err(|e| self.workspace.explain(e))?;
            at += bytes.len() as u64;
        }
        Ok(())
    }

    /// How many records of all runs lie in these cells, duplicates between runs included.
    pub(super) fn records(&self, cells: Range<usize>) -> u64 {
        self.cells[cells].iter().sum()
    }

    /// The records of a span, run after run.
    pub(super) fn read<R: Record>(&self, span: &Span, stop: Stop<'_>) -> Result<Vec<R>, BuildError> {
        let pieces = self.runs.iter().map(|run| self.piece::<R>(run, span)).collect::<Result<Vec<_>, _>>()?;
        let mut records = Vec::new();
        let count = pieces.iter().map(|piece| piece.end - piece.start).sum::<u64>();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        records.try_reserve_exact(count).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        for (run, piece) in self.runs.iter().zip(pieces) {
            self.each_block(run, piece, stop, &mut |block: &[R]| {
                records.extend_from_slice(block);
                Ok(())
            })?;
        }
        Ok(records)
    }

    /// Hands on all records, run after run.
    pub(super) fn scan<R: Record>(
        &self,
        stop: Stop<'_>,
        mut part: impl FnMut(&[R]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        self.runs.iter().try_for_each(|run| self.each_block(run, 0..run.records, stop, &mut part))
    }

    /// Some digests of a cell, in order within each run, each with the bytes of records from it to the next: at most a quarter of
    /// `room` for all runs together.
    pub(super) fn samples<R: Record>(
        &self,
        cell: usize,
        room: u64,
        stop: Stop<'_>,
    ) -> Result<Vec<(Digest, u64)>, BuildError> {
        let every = (room / R::SIZE as u64 / 4 / self.runs.len().max(1) as u64).max(1);
        let mut samples = Vec::new();
        for run in &self.runs {
            check(stop)?;
            let piece = self.piece::<R>(run, &Span::cells(cell..cell + 1))?;
            for at in piece.clone().step_by(every as usize) {
                samples.push((self.digest_at::<R>(run, at)?, (piece.end - at).min(every) * R::SIZE as u64));
            }
        }
        Ok(samples)
    }

    /// Where a span's records lie in a run.
    fn piece<R: Record>(&self, run: &Run, span: &Span) -> Result<Range<u64>, BuildError> {
        let mut piece = self.position(run, span.cells.start)?..self.position(run, span.cells.end)?;
        if span.from.is_some() {
            piece.start = self.search::<R>(run, piece.clone(), |digest| span.is_before(digest))?;
        }
        if span.until.is_some() {
            piece.end = self.search::<R>(run, piece.clone(), |digest| span.is_not_after(digest))?;
        }
        Ok(piece)
    }

    /// The first record of a piece, which is sorted, for which `below` is not true.
    fn search<R: Record>(
        &self,
        run: &Run,
        piece: Range<u64>,
        below: impl Fn(Digest) -> bool,
    ) -> Result<u64, BuildError> {
        let (mut low, mut high) = (piece.start, piece.end);
        while low < high {
            let middle = low + (high - low) / 2;
            match below(self.digest_at::<R>(run, middle)?) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }

    fn digest_at<R: Record>(&self, run: &Run, position: u64) -> Result<Digest, BuildError> {
        // Every record begins with its digest.
        let mut bytes = [0; 16];
        let at = self.origin(run) + position * R::SIZE as u64;
        read_exact_at(&self.file, &mut bytes, at).map_err(|e| self.workspace.explain(e))?;
        Ok(Digest::read(&bytes))
    }

    fn origin(&self, run: &Run) -> u64 {
        run.start + 8 * (self.cells.len() as u64 + 1)
    }

    /// Reads a piece of a run, some records at a time.
    fn each_block<R: Record>(
        &self,
        run: &Run,
        piece: Range<u64>,
        stop: Stop<'_>,
        part: &mut dyn FnMut(&[R]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let mut block = vec![0; BLOCK];
        // Whole records.
        let whole = (BLOCK / R::SIZE * R::SIZE) as u64;
        let mut records = Vec::with_capacity(BLOCK / R::SIZE);
        let mut at = self.origin(run) + piece.start * R::SIZE as u64;
        let end = self.origin(run) + piece.end * R::SIZE as u64;
        while at < end {
            check(stop)?;
            let bytes = &mut block[..(end - at).min(whole) as usize];
            read_exact_at(&self.file, bytes, at).map_err(|e| self.workspace.explain(e))?;
            records.clear();
            records.extend(bytes.chunks_exact(R::SIZE).map(R::read));
            part(&records)?;
            at += bytes.len() as u64;
        }
        Ok(())
    }

    /// The position in the run of the first record of this cell or of a later one.
    fn position(&self, run: &Run, cell: usize) -> Result<u64, BuildError> {
        let mut bytes = [0; 8];
        read_exact_at(&self.file, &mut bytes, run.start + 8 * cell as u64).map_err(|e| self.workspace.explain(e))?;
        // Only damage to the disk could make it larger; it must not become an endless read.
        let [position] = words(&bytes);
        Ok(position.min(run.records))
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        self.workspace.used.fetch_sub(self.len, Ordering::Relaxed);
    }
}

/// Reads at a position, as often as it takes to fill `bytes`.
#[cfg_attr(not(any(unix, windows)), allow(unused_variables))]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    #[cfg(unix)]
    use std::os::unix::fs::FileExt;
    #[cfg(unix)]
    let read = |bytes: &mut [u8], at| file.read_at(bytes, at);
    #[cfg(windows)]
    let read = |bytes: &mut [u8], at| std::os::windows::fs::FileExt::seek_read(file, bytes, at);
    #[cfg(not(any(unix, windows)))]
    let read = |_: &mut [u8], _| io::Result::<usize>::Err(io::ErrorKind::Unsupported.into());
    whole(bytes.len(), io::ErrorKind::UnexpectedEof, &mut |done| read(&mut bytes[done..], at + done as u64))
}

/// Writes at a position, as often as it takes to write all.
#[cfg_attr(not(any(unix, windows)), allow(unused_variables))]
fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    #[cfg(unix)]
    use std::os::unix::fs::FileExt;
    #[cfg(unix)]
    let write = |bytes: &[u8], at| file.write_at(bytes, at);
    #[cfg(windows)]
    let write = |bytes: &[u8], at| std::os::windows::fs::FileExt::seek_write(file, bytes, at);
    #[cfg(not(any(unix, windows)))]
    let write = |_: &[u8], _| io::Result::<usize>::Err(io::ErrorKind::Unsupported.into());
    whole(bytes.len(), io::ErrorKind::WriteZero, &mut |done| write(&bytes[done..], at + done as u64))
}

/// Calls `step` with the bytes that are done until these are all; `end` is the error of a step that does none.
fn whole(len: usize, end: io::ErrorKind, step: &mut dyn FnMut(usize) -> io::Result<usize>) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        match step(done) {
            Ok(0) => return Err(end.into()),
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
