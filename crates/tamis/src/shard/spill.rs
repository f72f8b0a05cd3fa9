//! sorted runs -> one temporary file, and back by ranges of digests.
//!
//! ```text
//!   file   | run 0: index, records | run 1: index, records | ...
//!   index  | position of the first record of cell 0 | of cell 1 | ... | number of records |     8 bytes each
//!   cell   all digests with the same top 12 bits
//! ```
//!
//! A range of digests is read from every run with two look-ups in its index and one contiguous read, and the pieces are sorted
//! again: the radix sort of [`super::sort`] is faster than a merge with a heap of hundreds of runs, and shorter. The indexes stay
//! in the file, so memory holds 16 bytes per run and 8 per cell, however many runs there are: a thousand million
//! keys in 64 MiB are 400 runs, and a shard of them 400 pieces of 40 KB.
//!
//! The file has no name: it is unlinked when it is created (or opened to be deleted on close), so an interrupt or a crash
//! leaves nothing behind. It is written and read at explicit positions, so readers share it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Workspace;
use super::record::{Record, words};
use super::workers::{Stop, check};
use crate::error::BuildError;

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
    /// Where its index begins.
    start: u64,
    records: u64,
}

impl Spill {
    /// Creates the temporary file.
    pub(super) fn new(workspace: Arc<Workspace>) -> Result<Spill, BuildError> {
        let file = tempfile::tempfile_in(&workspace.dir).map_err(|e| workspace.explain(e))?;
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
        let mut position = 0;
        let index = std::iter::once(0).chain(counts.iter().map(|count| {
            position += count;
            position
        }));
        let index: Vec<u8> = index.flat_map(u64::to_le_bytes).collect();
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

    /// The records of these cells that `keep` accepts, run after run. Allocates for [`Spill::records`] of them.
    pub(super) fn read<R: Record>(
        &self,
        cells: Range<usize>,
        keep: impl Fn(&R) -> bool,
        stop: Stop<'_>,
    ) -> Result<Vec<R>, BuildError> {
        let mut records = Vec::new();
        let count = usize::try_from(self.records(cells.clone())).unwrap_or(usize::MAX);
        records.try_reserve_exact(count).map_err(|_| BuildError::Io(io::ErrorKind::OutOfMemory.into()))?;
        let mut block = vec![0; BLOCK];
        // Whole records.
        let whole = (BLOCK / R::SIZE * R::SIZE) as u64;
        for run in &self.runs {
            check(stop)?;
            let piece = self.position(run, cells.start)?..self.position(run, cells.end)?;
            let origin = run.start + 8 * (self.cells.len() as u64 + 1);
            let mut at = origin + piece.start * R::SIZE as u64;
            let end = origin + piece.end * R::SIZE as u64;
            while at < end {
                let bytes = &mut block[..(end - at).min(whole) as usize];
                read_exact_at(&self.file, bytes, at).map_err(|e| self.workspace.explain(e))?;
                records.extend(bytes.chunks_exact(R::SIZE).map(R::read).filter(&keep));
                at += bytes.len() as u64;
                check(stop)?;
            }
        }
        Ok(records)
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
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    #[cfg(unix)]
    use std::os::unix::fs::FileExt;
    #[cfg(unix)]
    let read = |bytes: &mut [u8], at| file.read_at(bytes, at);
    #[cfg(windows)]
    let read = |bytes: &mut [u8], at| std::os::windows::fs::FileExt::seek_read(file, bytes, at);
    #[cfg(not(any(unix, windows)))]
    let read = |_: &mut [u8], _| io::Result::<usize>::Err(io::ErrorKind::Unsupported.into());
    while !bytes.is_empty() {
        match read(bytes, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                bytes = &mut bytes[n..];
                at += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Writes at a position, as often as it takes to write all.
fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    #[cfg(unix)]
    use std::os::unix::fs::FileExt;
    #[cfg(unix)]
    let write = |bytes: &[u8], at| file.write_at(bytes, at);
    #[cfg(windows)]
    let write = |bytes: &[u8], at| std::os::windows::fs::FileExt::seek_write(file, bytes, at);
    #[cfg(not(any(unix, windows)))]
    let write = |_: &[u8], _| io::Result::<usize>::Err(io::ErrorKind::Unsupported.into());
    while !bytes.is_empty() {
        match write(bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                at += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
