//! tables + a pair -> the tables with that pair, or without it.

use super::{CscBloom, MAX_HASHES, MAX_WORDS};
use crate::arch::prefetch;
use crate::error::BuildError;
use crate::hash::Digest;
use crate::sets::groups::{Groups, MAX_REPETITIONS, Repeats};

/// Cells that are prefetched together: all of a pair that has the most hashes and repetitions.
const MAX_CELLS: usize = (MAX_HASHES * MAX_REPETITIONS) as usize;

impl CscBloom {
    /// Tables of this shape; empty ones are `payload_len` zeros.
    pub(crate) fn new(
        words: u64,
        hashes: u32,
        repetitions: u32,
        partitions: u32,
        counting: bool,
    ) -> Result<CscBloom, BuildError> {
        BuildError::check_size("CSC-Bloom", "words", words, 1..=MAX_WORDS)?;
        BuildError::check_size("CSC-Bloom", "hash functions", hashes.into(), 1..=MAX_HASHES.into())?;
        Ok(CscBloom { words, hashes, repeats: Repeats::new("CSC-Bloom", repetitions, partitions)?, counting })
    }

    /// Adds a key to some sets; a set that is named twice counts twice.
    pub(crate) fn insert_list(&self, payload: &mut [u8], groups: &Groups, key: Digest, sets: &[u32]) {
        self.each_table(payload, |t, table| {
            let mut anchors = [Default::default(); MAX_HASHES as usize];
            let anchors = &mut anchors[..self.hashes as usize];
            anchors.iter_mut().zip(self.anchors(t, key)).for_each(|(to, anchor)| *to = anchor);
            for &set in sets {
                let offset = groups.offset(t, set);
                for anchor in &*anchors {
                    self.raise(table, anchor.cell(offset, self.words), 1);
                }
            }
        });
    }

    /// Prefetches the cache lines that [`CscBloom::insert_list`] will change.
    pub(crate) fn prefetch_list(&self, payload: &[u8], groups: &Groups, key: Digest, sets: &[u32]) {
        for t in 0..self.repeats.repetitions {
            let start = (u64::from(t) * self.table_len()) as usize;
            for anchor in self.anchors(t, key) {
                for &set in sets {
                    let cell = anchor.cell(groups.offset(t, set), self.words) as usize;
                    prefetch(payload, start.wrapping_add(if self.counting { cell } else { cell / 8 }));
                }
            }
        }
    }

    /// Adds pairs, once each: the cache lines of some of them are fetched before the first is changed.
    pub(crate) fn insert_pairs(&self, payload: &mut [u8], groups: &Groups, pairs: &[(Digest, u32)]) {
        let each = (self.repeats.repetitions * self.hashes) as usize;
        let mut cells = [0; MAX_CELLS];
        for pairs in pairs.chunks((MAX_CELLS / each).max(1)) {
            let mut free = cells.iter_mut();
            for &(key, set) in pairs {
                for t in 0..self.repeats.repetitions {
                    let (start, offset) = (u64::from(t) * 64 * self.words, groups.offset(t, set));
                    for (anchor, to) in self.anchors(t, key).zip(&mut free) {
                        *to = start + anchor.cell(offset, self.words);
                        prefetch(payload, (if self.counting { *to } else { *to / 8 }) as usize);
                    }
                }
            }
            for &cell in &cells[..each * pairs.len()] {
                self.raise(payload, cell, 1);
            }
        }
    }

    pub(crate) fn add(&self, payload: &mut [u8], groups: &Groups, key: Digest, set: u32, times: u8) {
        if times == 0 {
            return;
        }
        self.each_table(payload, |t, table| {
            let offset = groups.offset(t, set);
            for anchor in self.anchors(t, key) {
                self.raise(table, anchor.cell(offset, self.words), times);
            }
        });
    }

    /// Takes a pair out once; false, and nothing is changed, if it is not there or nothing is counted. A count that is
    /// saturated stays: how often to lower it is not known.
    pub(crate) fn remove(&self, payload: &mut [u8], groups: &Groups, key: Digest, set: u32) -> bool {
        let complete = payload.len() as u64 >= self.payload_len();
        if !self.counting || !complete {
            return false;
        }
        // Lowered one by one, because two rows may share a cell; at a zero all steps are taken back.
        let mut lowered = 0;
        let mut absent = false;
        self.each_cell(payload, groups, key, set, |count| {
            absent |= *count == 0;
            if !absent {
                *count -= u8::from(*count != u8::MAX);
                lowered += 1;
            }
        });
        if absent {
            self.each_cell(payload, groups, key, set, |count| {
                if lowered > 0 {
                    *count += u8::from(*count != u8::MAX);
                    lowered -= 1;
                }
            });
        }
        !absent
    }

    /// The counts of a pair, always in the same order.
    fn each_cell(&self, payload: &mut [u8], groups: &Groups, key: Digest, set: u32, mut visit: impl FnMut(&mut u8)) {
        self.each_table(payload, |t, table| {
            let offset = groups.offset(t, set);
            for anchor in self.anchors(t, key) {
                table.get_mut(anchor.cell(offset, self.words) as usize).into_iter().for_each(&mut visit);
            }
        });
    }

    fn each_table(&self, payload: &mut [u8], mut visit: impl FnMut(u32, &mut [u8])) {
        let len = usize::try_from(self.table_len()).unwrap_or(usize::MAX);
        (0..self.repeats.repetitions).zip(payload.chunks_exact_mut(len)).for_each(|(t, table)| visit(t, table));
    }

    #[inline(always)]
    fn raise(&self, table: &mut [u8], cell: u64, times: u8) {
        let cell = cell as usize;
        match self.counting {
            true => table.get_mut(cell).into_iter().for_each(|count| *count = count.saturating_add(times)),
            false => table.get_mut(cell / 8).into_iter().for_each(|byte| *byte |= 1 << (cell % 8)),
        }
    }
}
