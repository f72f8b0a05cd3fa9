//! a stream of records -> `Sorted`: records by ranges of digests, in memory or in runs on disk.
//!
//! Records gather in one vector. A full vector is sorted and merged; if that frees half of it, which it does when keys repeat,
//! gathering goes on. Otherwise it becomes a run in a temporary file ([`super::spill`]).
//!
//! Memory: nine sixteenths of an intake's share hold records. The vector grows by a half, so that little of it is empty, and while it
//! moves, old and new space are alive together: 15/16 of the share. The rest is for one block of writing and an index.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::Workspace;
use super::record::Record;
use super::sort::{ascend, sort_distinct};
use super::span::{Side, Span};
use super::spill::Spill;
use crate::arch::arena::huge_pages;
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::hash::Digest;
use crate::parallel::Stop;

/// Takes in the records of one side, keys or negatives.
pub struct Intake<R> {
    buffer: Vec<R>,
    room: usize,
    /// Records taken in so far.
    count: u64,
    spill: Option<Spill>,
    memory: u64,
    workspace: Arc<Workspace>,
}

brief_debug!(Intake<R>, it => records: it.count);

impl<R: Record> Intake<R> {
    /// An intake that may use `memory` bytes: the workspace's memory, or a part of it if there are several intakes.
    pub fn new(workspace: &Arc<Workspace>, memory: u64) -> Intake<R> {
        Intake {
            buffer: Vec::new(),
            room: room::<R>(memory),
            count: 0,
            spill: None,
            memory,
            workspace: workspace.clone(),
        }
    }

    /// Takes in one record. Now and then this sorts and writes all that have gathered.
    #[inline]
    pub fn push(&mut self, record: R, stop: Stop<'_>) -> Result<(), BuildError> {
        if self.buffer.len() == self.buffer.capacity() {
            self.make_room(stop)?;
        }
        self.buffer.push(record);
        self.count += 1;
        Ok(())
    }

    /// From now on this intake may use `memory` bytes only.
    pub fn share(&mut self, memory: u64, stop: Stop<'_>) -> Result<(), BuildError> {
        self.memory = memory;
        self.room = room::<R>(memory);
        if self.buffer.capacity() > self.room {
            sort_distinct(&mut self.buffer, self.workspace.threads, stop)?;
            if self.buffer.len() > self.room {
                self.spill(stop)?;
            }
            self.buffer.shrink_to(self.room);
        }
        Ok(())
    }

    /// Drops records that `keep`, called for the digests of a part of them at a time, says no to; those on disk stay.
    pub(super) fn retain(&mut self, keep: &mut dyn FnMut(&[Digest], &mut [bool])) {
        let mut kept = 0;
        let (mut digests, mut answers) = ([Digest::default(); PART], [false; PART]);
        for start in (0..self.buffer.len()).step_by(PART) {
            let end = self.buffer.len().min(start + PART);
            let answers = &mut answers[..end - start];
            digests.iter_mut().zip(&self.buffer[start..end]).for_each(|(digest, record)| *digest = record.digest());
            keep(&digests[..end - start], answers);
            for (at, yes) in (start..end).zip(answers) {
                self.buffer[kept] = self.buffer[at];
                kept += *yes as usize;
            }
        }
        self.buffer.truncate(kept);
    }

    /// Hands on all records, in some order, repeated or not.
    fn scan(&self, stop: Stop<'_>, mut part: impl FnMut(&[R]) -> Result<(), BuildError>) -> Result<(), BuildError> {
        self.spill.as_ref().map_or(Ok(()), |spill| spill.scan(stop, &mut part))?;
        self.buffer.chunks(PART).try_for_each(part)
    }

    /// Hands on the digests of all records, in some order, repeated or not.
    pub(super) fn scan_digests(
        &self,
        stop: Stop<'_>,
        part: &mut dyn FnMut(&[Digest]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let mut digests = [Digest::default(); PART];
        self.scan(stop, |records| {
            records.chunks(PART).try_for_each(|records| {
                digests.iter_mut().zip(records).for_each(|(digest, record)| *digest = record.digest());
                part(&digests[..records.len()])
            })
        })
    }

    /// An intake of other records that may use the same memory.
    pub(super) fn empty<T: Record>(&self) -> Intake<T> {
        Intake::new(&self.workspace, self.memory)
    }

    /// The same records of other digests.
    pub(crate) fn mapped(mut self, map: impl Fn(Digest) -> Digest, stop: Stop<'_>) -> Result<Intake<R>, BuildError> {
        if self.spill.is_some() {
            // All of it on disk first: two buffers would take twice the memory.
            sort_distinct(&mut self.buffer, self.workspace.threads, stop)?;
            self.spill(stop)?;
            self.buffer = vec![];
        }
        let mut mapped = Intake { count: self.count, spill: None, ..Intake::new(&self.workspace, self.memory) };
        std::mem::swap(&mut mapped.buffer, &mut self.buffer);
        mapped.buffer.iter_mut().for_each(|record| *record = record.with(map(record.digest())));
        if let Some(spill) = &self.spill {
            spill.scan(stop, |records: &[R]| {
                records.iter().try_for_each(|record| mapped.push(record.with(map(record.digest())), stop))
            })?;
        }
        mapped.count = self.count;
        Ok(mapped)
    }

    /// Takes in many records.
    pub fn push_slice(&mut self, mut records: &[R], stop: Stop<'_>) -> Result<(), BuildError> {
        while !records.is_empty() {
            if self.buffer.len() == self.buffer.capacity() {
                self.make_room(stop)?;
            }
            let fit = records.len().min(self.buffer.capacity() - self.buffer.len());
            let (now, later) = records.split_at(fit);
            self.buffer.extend_from_slice(now);
            self.count += fit as u64;
            records = later;
        }
        Ok(())
    }

    /// How many records came in, which is also the ordinal of the next.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Ends the intake.
    pub fn finish(mut self, stop: Stop<'_>) -> Result<Sorted<R>, BuildError> {
        sort_distinct(&mut self.buffer, self.workspace.threads, stop)?;
        Sorted::of_runs(self.spill, self.buffer, self.count, self.memory, self.workspace, stop)
    }

    /// Makes room for so many records that will come, or for those that fit.
    pub(crate) fn expect(&mut self, records: u64) {
        let records = usize::try_from(records).unwrap_or(usize::MAX).min(self.room);
        if self.buffer.capacity() < records {
            // Where this much is not to be had, the buffer grows as records come.
            let _ = self.reserve(records);
        }
    }

    fn reserve(&mut self, records: usize) -> Result<(), std::collections::TryReserveError> {
        self.buffer.try_reserve_exact(records - self.buffer.len())?;
        huge_pages(self.buffer.spare_capacity_mut());
        Ok(())
    }

    /// Leaves the buffer with space for one record at least.
    #[cold]
    fn make_room(&mut self, stop: Stop<'_>) -> Result<(), BuildError> {
        let have = self.buffer.capacity();
        if have < self.room {
            let want = have.saturating_add(have / 2).clamp(MIN_ROOM, self.room);
            // Where the system has no more memory to give, the disk has to do.
            match self.reserve(want) {
                Ok(()) => return Ok(()),
                Err(_) if have == 0 => return Err(io::Error::from(io::ErrorKind::OutOfMemory).into()),
                Err(_) => {}
            }
        }
        sort_distinct(&mut self.buffer, self.workspace.threads, stop)?;
        if self.buffer.len() > have / 2 { self.spill(stop) } else { Ok(()) }
    }

    fn spill(&mut self, stop: Stop<'_>) -> Result<(), BuildError> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::new(self.workspace.clone())?),
        };
        spill.write(&self.buffer, stop)?;
        self.buffer.clear();
        Ok(())
    }
}

/// The most records that fit in so many bytes, with what a growing buffer takes.
fn room<R: Record>(memory: u64) -> usize {
    usize::try_from(memory / 16 * 9 / R::SIZE as u64).unwrap_or(usize::MAX).max(MIN_ROOM)
}

/// Records that [`Intake::retain`] reads at a time.
const PART: usize = 256;
/// The smallest buffer, in records.
const MIN_ROOM: usize = 16;

/// All records of one side, ready to be read by ranges of digests.
pub struct Sorted<R> {
    store: Store<R>,
    count: u64,
    memory: u64,
    workspace: Arc<Workspace>,
}

brief_debug!(Sorted<R>, it => records: it.count);

#[derive(Debug)]
enum Store<R> {
    /// Sorted and distinct.
    Memory(Vec<R>),
    /// The same, and of other intakes too.
    Shared(Arc<Vec<R>>),
    /// Runs, each sorted and distinct.
    Disk(Spill),
}

impl<R: Record> Sorted<R> {
    /// Runs on disk, if there are any, and the last run, which is still in memory, of so many records that came in.
    pub(super) fn of_runs(
        spill: Option<Spill>,
        mut last: Vec<R>,
        count: u64,
        memory: u64,
        workspace: Arc<Workspace>,
        stop: Stop<'_>,
    ) -> Result<Sorted<R>, BuildError> {
        let store = match spill {
            None => {
                last.shrink_to_fit();
                Store::Memory(last)
            }
            Some(mut spill) => {
                spill.write(&last, stop)?;
                Store::Disk(spill)
            }
        };
        Ok(Sorted { store, count, memory, workspace })
    }

    /// An intake for some of them.
    pub(super) fn intake(&self) -> Intake<R> {
        Intake::new(&self.workspace, self.memory)
    }

    /// All of them; none are left.
    pub(super) fn take(&mut self) -> Sorted<R> {
        let Sorted { store, count, memory, workspace } = self;
        let store = std::mem::replace(store, Store::Memory(vec![]));
        Sorted { store, count: std::mem::take(count), memory: *memory, workspace: workspace.clone() }
    }

    /// Records that are in memory already: taken as they are if they ascend, else sorted, where they are if nothing else holds them.
    pub fn shared(records: Arc<Vec<R>>, workspace: &Arc<Workspace>, stop: Stop<'_>) -> Result<Sorted<R>, BuildError> {
        if !ascend(&records) {
            let mut intake = Intake::new(workspace, workspace.memory);
            match Arc::try_unwrap(records) {
                Ok(records) => (intake.count, intake.buffer) = (records.len() as u64, records),
                Err(shared) => intake.push_slice(&shared, stop)?,
            }
            return intake.finish(stop);
        }
        let count = records.len() as u64;
        Ok(Sorted { store: Store::Shared(records), count, memory: workspace.memory, workspace: workspace.clone() })
    }

    /// How many records came in, repeated ones included.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The same records of other digests.
    pub(crate) fn mapped(self, map: impl Fn(Digest) -> Digest, stop: Stop<'_>) -> Result<Sorted<R>, BuildError> {
        let Sorted { store, count, memory, workspace } = self;
        let mut intake = Intake { count, ..Intake::new(&workspace, memory) };
        match store {
            Store::Memory(records) => intake.buffer = records,
            Store::Shared(records) => intake.buffer = records.to_vec(),
            Store::Disk(spill) => intake.spill = Some(spill),
        }
        intake.mapped(map, stop)?.finish(stop)
    }

    /// The digests alone, in the same place, if they stayed in memory.
    pub(super) fn into_digests(self) -> Result<Sorted<Digest>, Sorted<R>> {
        let Sorted { store: Store::Memory(records), count, memory, workspace } = self else { return Err(self) };
        let mut digests: Vec<Digest> = records.into_iter().map(|record| record.digest()).collect();
        digests.shrink_to_fit();
        Ok(Sorted { store: Store::Memory(digests), count, memory, workspace })
    }

    /// All records, if they stayed in memory.
    pub(super) fn into_memory(self) -> Option<Vec<R>> {
        match self.store {
            Store::Memory(records) => Some(records),
            Store::Shared(records) => Some(Arc::unwrap_or_clone(records)),
            Store::Disk(_) => None,
        }
    }

    /// All records, if they stayed in memory.
    pub fn in_memory(&self) -> Option<&[R]> {
        self.records().ok()
    }

    fn records(&self) -> Result<&[R], &Spill> {
        match &self.store {
            Store::Memory(records) => Ok(records),
            Store::Shared(records) => Ok(records),
            Store::Disk(spill) => Err(spill),
        }
    }

    /// The sorted, distinct records whose top `bits` bits are `index`; a slice of what is in memory, or read from disk.
    pub fn range(&self, bits: u32, index: usize, stop: Stop<'_>) -> Result<Cow<'_, [R]>, BuildError> {
        self.span(&self.workspace.cover(bits, index), stop)
    }

    /// The same, where it is a slice.
    pub(super) fn slice(&self, bits: u32, index: usize) -> Option<&[R]> {
        self.in_memory().map(|records| self.within(records, &self.workspace.cover(bits, index)))
    }

    /// The records of a span, of all.
    fn within<'a>(&self, records: &'a [R], span: &Span) -> &'a [R] {
        let (bits, Range { start, end }) = (self.workspace.cell_bits, span.cells.clone());
        let before = |r: &R| r.digest().shard(bits) < start || span.is_before(r.digest());
        let records = &records[records.partition_point(before)..];
        let inside = |r: &R| r.digest().shard(bits) < end && span.is_not_after(r.digest());
        &records[..records.partition_point(inside)]
    }

    pub(super) fn span(&self, span: &Span, stop: Stop<'_>) -> Result<Cow<'_, [R]>, BuildError> {
        match self.records() {
            Ok(records) => Ok(Cow::Borrowed(self.within(records, span))),
            Err(spill) => {
                let mut records = spill.read(span, stop)?;
                // Ranges are loaded on several threads already.
                sort_distinct(&mut records, 1, stop)?;
                Ok(Cow::Owned(records))
            }
        }
    }
}

impl<R: Record> Side for Sorted<R> {
    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    fn at_most(&self, bits: u32, index: usize) -> u64 {
        match self.records() {
            Ok(records) => {
                let below = |end: usize| records.partition_point(|r| r.digest().shard(bits) < end);
                (below(index + 1) - below(index)) as u64
            }
            Err(spill) => spill.records(self.workspace.cover(bits, index).cells),
        }
    }

    fn digests(&self, span: &Span, stop: Stop<'_>, part: &mut dyn FnMut(&[Digest])) -> Result<(), BuildError> {
        let mut digests = [Digest::default(); 256];
        for records in self.span(span, stop)?.chunks(digests.len()) {
            digests.iter_mut().zip(records).for_each(|(digest, record)| *digest = record.digest());
            part(&digests[..records.len()]);
        }
        Ok(())
    }

    fn memory(&self) -> u64 {
        if self.in_memory().is_some() { 0 } else { self.memory }
    }

    fn samples(&self, cell: usize, room: u64, stop: Stop<'_>) -> Result<Vec<(Digest, u64)>, BuildError> {
        self.records().map_or_else(|spill| spill.samples::<R>(cell, room, stop), |_| Ok(vec![]))
    }

    fn cost(&self, cells: Range<usize>) -> u64 {
        self.records().map_or_else(|spill| spill.records(cells) * R::SIZE as u64, |_| 0)
    }
}
