//! what a table did -> how many buckets its gets read, and how often its predictor was wrong.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a table has done so far, and what its predictor takes: see [`Table::stats`](super::Table::stats).
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Gets. Counts of gets are too low where several threads get at the same time.
    pub gets: u64,
    /// Buckets that gets have read.
    pub bucket_reads: u64,
    /// Gets of keys that were not in the bucket read first.
    pub wrong: u64,
    /// Entries that were moved to their other bucket.
    pub moves: u64,
    /// How often the predictor was built from the whole table, because it was wrong too often or too small.
    pub resets: u64,
    /// How often the table was moved to other buckets: to more of them, or after a failed insertion.
    pub rebuilds: u64,
    /// Keys in the first bucket of their two.
    pub first: u64,
    /// Keys in the second bucket of their two.
    pub second: u64,
    /// Whether the predictor is the cascade, and not an exact bit for every key.
    pub is_cascade: bool,
    /// Bits of memory that predictions read.
    pub predictor_bits: u64,
    /// Bytes of memory that only changes of the predictor read.
    pub side_bytes: u64,
}

impl Stats {
    /// Returns the buckets read per get, or 0 before the first get.
    pub fn reads_per_get(&self) -> f64 {
        if self.gets == 0 { 0.0 } else { self.bucket_reads as f64 / self.gets as f64 }
    }
}

/// 1 in the fixed-point numbers of `recent`.
const ONE: u64 = 1 << 32;

/// Counts. Those of gets change through a shared reference. Gets at the same time may lose one, which is cheaper than a locked addition.
#[derive(Default)]
pub(super) struct Counters {
    gets: AtomicU64,
    reads: AtomicU64,
    wrong: AtomicU64,
    /// The share of wrong predictions among the last lookups of keys that are there.
    recent: AtomicU64,
    pub(super) moves: u64,
    pub(super) resets: u64,
    pub(super) rebuilds: u64,
}

impl Counters {
    /// A get that has read so many buckets.
    #[inline]
    pub(super) fn get(&self, reads: u64, wrong: bool) {
        let add = |counter: &AtomicU64, more| counter.store(counter.load(Relaxed) + more, Relaxed);
        add(&self.gets, 1);
        add(&self.reads, reads);
        add(&self.wrong, u64::from(wrong));
    }

    /// A lookup of a key that is there; one of `window` lookups that the share is of.
    #[inline]
    pub(super) fn look(&self, wrong: bool, window: u64) {
        let recent = self.recent.load(Relaxed);
        let next = if wrong { recent + (ONE.saturating_sub(recent)) / window } else { recent - recent / window };
        self.recent.store(next, Relaxed);
    }

    /// The share of wrong predictions among the last lookups, in thousandths.
    pub(super) fn recent_per_mille(&self) -> u64 {
        self.recent.load(Relaxed) * 1000 / ONE
    }

    /// Forgets the last lookups: another predictor begins.
    pub(super) fn begin(&mut self) {
        *self.recent.get_mut() = 0;
    }

    /// The counts, for the rest of the statistics.
    pub(super) fn stats(&self) -> Stats {
        Stats {
            gets: self.gets.load(Relaxed),
            bucket_reads: self.reads.load(Relaxed),
            wrong: self.wrong.load(Relaxed),
            moves: self.moves,
            resets: self.resets,
            rebuilds: self.rebuilds,
            first: 0,
            second: 0,
            is_cascade: false,
            predictor_bits: 0,
            side_bytes: 0,
        }
    }
}
