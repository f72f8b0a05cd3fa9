//! deleted keys with long fingerprints -> the length each must have again.
//!
//! Without them, removing and inserting the key y behind a false positive x would undo what adapting did: y would come back with a
//! short fingerprint, and x would match again. \[Broom\] section 4.2 deletes like that, and 98 of 100 replays match then.
//!
//! An entry is 24 bits of a hash, the hash function's number modulo 4 and the length, in one of two buckets of a cache line each.
//! Two keys with the same bits share the longer length: a fingerprint that is too long costs a bit and no truth. Entries of a
//! hash function that is gone are swept away, a few with every step of the frontier.

use super::super::file::{bytes_of, words_of};
use crate::error::FormatError;
use crate::hash::scramble;

#[derive(Clone, Debug)]
pub(super) struct Tombstones {
    cells: Vec<u32>,
    pub(super) len: usize,
    pub(super) room: usize,
    /// Where sweeping goes on.
    broom: usize,
}

const MAX_SWEPT_CELLS: u64 = 256;
/// Cells of a bucket.
const BUCKET: usize = 16;
/// Low bits of a cell: one more than the length.
const LENGTH: u32 = 63;
/// The number of the hash function, above the length.
const NUMBER: u32 = 6;
/// Bits of the hash, above the number.
const TAG: u32 = 8;

impl Tombstones {
    /// Room for this many entries, which takes no memory before the first of them.
    pub(super) fn new(room: usize) -> Tombstones {
        Tombstones { cells: vec![], len: 0, room, broom: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        4 * self.cells.len()
    }

    /// The two buckets of a hash, by their first cells, and its bits under a hash function.
    fn split(&self, hash: u64, number: u64) -> ([usize; 2], u32) {
        let buckets = (self.cells.len() / BUCKET) as u128;
        let first = hash as u128 * buckets;
        let second = scramble(hash) as u128 * buckets;
        let tag = (first as u64 >> 40) as u32;
        let starts = [first, second].map(|product| (product >> 64) as usize * BUCKET);
        (starts, tag << TAG | ((number & 3) as u32) << NUMBER)
    }

    fn find(&self, hash: u64, number: u64) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let (starts, bits) = self.split(hash, number);
        let cells = starts.into_iter().flat_map(|start| start..start + BUCKET);
        let mut cells = cells.filter(|&at| self.cells[at] != 0);
        cells.find(|&at| self.cells[at] & !LENGTH == bits)
    }

    /// Remembers the length of a deleted key's fingerprint. Without room it is not remembered.
    pub(super) fn insert(&mut self, hash: u64, number: u64, length: u32) {
        if self.cells.is_empty() {
            self.cells = vec![0; size(self.room)];
        }
        let (starts, bits) = self.split(hash, number);
        let cell = bits | (length.min(LENGTH - 1) + 1);
        if let Some(at) = self.find(hash, number) {
            self.cells[at] = self.cells[at].max(cell);
            return;
        }
        // The emptier bucket: so neither is full before nearly all are.
        let free = |start: usize| self.cells[start..start + BUCKET].iter().filter(|&&cell| cell == 0).count();
        let start = if free(starts[0]) >= free(starts[1]) { starts[0] } else { starts[1] };
        let at = (start..start + BUCKET).find(|&at| self.cells[at] == 0);
        if let Some(at) = at.filter(|_| self.len < self.room) {
            self.cells[at] = cell;
            self.len += 1;
        }
    }

    /// The length that a key must have again; 0 if there is no tombstone.
    pub(super) fn length(&self, hash: u64, number: u64) -> u32 {
        self.find(hash, number).map_or(0, |at| (self.cells[at] & LENGTH) - 1)
    }

    /// The key is back.
    pub(super) fn remove(&mut self, hash: u64, number: u64) {
        if let Some(at) = self.find(hash, number) {
            self.cells[at] = 0;
            self.len -= 1;
        }
    }

    /// Looks at the next `count` cells and empties those of hash functions other than `number` and the one after it.
    pub(super) fn sweep(&mut self, count: usize, number: u64) {
        for _ in 0..count.min(self.cells.len()) {
            self.broom = (self.broom + 1) % self.cells.len();
            let cell = &mut self.cells[self.broom];
            let age = (*cell >> NUMBER).wrapping_sub(number as u32) & 3;
            if *cell != 0 && age > 1 {
                *cell = 0;
                self.len -= 1;
            }
        }
    }

    /// Cells to sweep with a step, so that all are swept twice while `keys` keys move; or as many as a step may.
    pub(super) fn share(&self, keys: u64) -> usize {
        (2 * self.cells.len() as u64).div_ceil(keys.max(1)).min(MAX_SWEPT_CELLS) as usize
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let words: Vec<u64> = self.cells.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32).collect();
        bytes_of(&words)
    }

    /// Room for `room` entries with these cells, or without any.
    pub(super) fn decode(bytes: &[u8], room: usize) -> Result<Tombstones, FormatError> {
        let (found, expected) = (bytes.len(), 4 * size(room));
        let reason = || format!("tombstones: {found} bytes, expected {expected} or none");
        FormatError::check(found == 0 || found == expected, reason)?;
        let cells: Vec<u32> =
            words_of(bytes)?.into_iter().flat_map(|word| [word as u32, (word >> 32) as u32]).collect();
        let len = cells.iter().filter(|&&cell| cell != 0).count();
        let fits = len <= room && cells.iter().all(|&cell| cell == 0 || cell & LENGTH != 0);
        FormatError::check(fits, || "tombstones: an entry without a length, or too many entries")?;
        Ok(Tombstones { cells, len, room, broom: 0 })
    }
}

/// Cells for this much room: four of five are used at most.
fn size(room: usize) -> usize {
    (room + room / 4 + 1).next_multiple_of(BUCKET)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn a_length_is_remembered_until_its_function_is_gone() {
        let mut tombstones = Tombstones::new(20_000);
        assert_eq!((tombstones.length(5, 0), tombstones.bytes()), (0, 0));
        let mut known = HashMap::new();
        for i in 0..20_000u64 {
            let (hash, number, length) = (scramble(i), 6 + i % 2, 1 + i as u32 % 60);
            tombstones.insert(hash, number, length);
            known.insert((hash, number), length);
        }
        assert_eq!(tombstones.len, known.len());
        for (&(hash, number), &length) in &known {
            assert_eq!(tombstones.length(hash, number), length);
            assert_eq!(tombstones.length(hash, number + 1), 0);
        }
        // Full: one more is not remembered, and one more length of a known one is.
        tombstones.insert(scramble(1 << 40), 6, 3);
        assert_eq!((tombstones.length(scramble(1 << 40), 6), tombstones.len), (0, 20_000));
        tombstones.insert(scramble(0), 6, 61);
        assert_eq!(tombstones.length(scramble(0), 6), 61);
        tombstones.remove(scramble(0), 6);
        assert_eq!(tombstones.length(scramble(0), 6), 0);
        let again = Tombstones::decode(&tombstones.encode(), 20_000).unwrap();
        assert_eq!((again.len, again.length(scramble(1), 7)), (tombstones.len, 2));
        // Function 6 is gone: 7 and 8 are live.
        for _ in 0..100_000 {
            tombstones.sweep(tombstones.share(100_000), 7);
        }
        assert_eq!(tombstones.len, 10_000);
        assert_eq!((tombstones.length(scramble(2), 6), tombstones.length(scramble(1), 7)), (0, 2));
    }

    #[test]
    fn damaged_cells_are_rejected() {
        let mut tombstones = Tombstones::new(10);
        tombstones.insert(1 << 50, 1, 4);
        let bytes = tombstones.encode();
        assert!(Tombstones::decode(&bytes, 10).is_ok() && Tombstones::decode(&[], 10).is_ok());
        assert!(Tombstones::decode(&bytes[8..], 10).is_err() && Tombstones::decode(&bytes, 0).is_err());
        let mut changed = bytes.clone();
        changed[..8].copy_from_slice(&0x40u64.to_le_bytes());
        assert!(Tombstones::decode(&changed, 10).is_err());
        changed.fill(0xff);
        assert!(Tombstones::decode(&changed, 10).is_err());
    }
}
