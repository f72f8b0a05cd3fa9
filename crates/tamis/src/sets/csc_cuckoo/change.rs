//! tables + a pair -> the tables with that pair, or without it, or as they were.
//!
//! A fingerprint goes into the emptier of its two buckets. If both are full, a breadth-first search looks for a chain of fingerprints
//! that can each move to their other bucket, the last one to a free slot. Nothing is moved before every repetition has found its chain,
//! so a pair without a place changes no byte. The first chain found is a shortest one: no bucket is in it twice.

use super::{BITS, CscCuckoo, Lanes, MAX_BUCKETS, Run};
use crate::arch::prefetch;
use crate::error::BuildError;
use crate::hash::Digest;
use crate::sets::groups::{Groups, MAX_REPETITIONS, Repeats};

/// Buckets that a search looks at.
const MAX_SEARCHED_BUCKETS: usize = 500;
/// Slots of a chain. With four ways out of a bucket 500 buckets are five steps.
const MAX_CHAIN: usize = 8;

/// No place for another pair; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// What adding a pair does to one table.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// What the new slot has.
    value: u64,
    /// The pair is there and is counted.
    present: bool,
    /// Slots: the new value goes to the first, what was there to the second, and so on; the last is free.
    chain: [u64; MAX_CHAIN],
    len: usize,
}

/// A bucket on the way to a free slot.
struct Node {
    bucket: u64,
    /// The node from which it was reached, and the slot there that would move here; where the search began, its own number.
    from: usize,
    slot: u64,
    depth: usize,
}

impl CscCuckoo {
    /// Tables of this shape; empty ones are `payload_len` zeros.
    pub(crate) fn new(
        buckets: u64,
        bits: u32,
        repetitions: u32,
        partitions: u32,
        counting: bool,
    ) -> Result<CscCuckoo, BuildError> {
        BuildError::check_size("CSC-Cuckoo", "buckets", buckets, 1..=MAX_BUCKETS)?;
        let (least, most) = BITS.into_inner();
        BuildError::check_size("CSC-Cuckoo", "slots", bits.into(), least.into()..=most.into())?;
        let repeats = Repeats::new("CSC-Cuckoo", repetitions, partitions)?;
        Ok(CscCuckoo { buckets, bits, repeats, counting, number: 0 })
    }

    /// Adds a key to some sets, or to none of them if one has no place. What was added before that is taken out again: a count that
    /// was saturated by it stays so.
    pub(crate) fn insert_list(
        &self,
        payload: &mut [u8],
        groups: &Groups,
        key: Digest,
        sets: &[u32],
    ) -> Result<(), Full> {
        let runs = self.runs(key);
        for (i, &set) in sets.iter().enumerate() {
            if let Err(full) = self.put(payload, groups, &runs, set, 1) {
                for &set in &sets[..i] {
                    self.remove(payload, groups, key, set);
                }
                return Err(full);
            }
        }
        Ok(())
    }

    /// Prefetches the cache lines where [`CscCuckoo::insert_list`] will look first.
    pub(crate) fn prefetch_list(&self, payload: &[u8], groups: &Groups, key: Digest, sets: &[u32]) {
        for (t, &run) in (0..self.repeats.repetitions).zip(&self.runs(key)) {
            for (bucket, _) in sets.iter().flat_map(|&set| self.pair(run, groups.offset(t, set))) {
                prefetch(payload, self.place(t, 4 * bucket).0);
            }
        }
    }

    /// Adds a pair so many times; without counts once, however often it is there already.
    pub(crate) fn add(
        &self,
        payload: &mut [u8],
        groups: &Groups,
        key: Digest,
        set: u32,
        times: u8,
    ) -> Result<(), Full> {
        self.put(payload, groups, &self.runs(key), set, times)
    }

    /// Takes a pair out once; false, and nothing is changed, if it is not there. A count that is saturated stays: it is not known
    /// how often to lower it.
    pub(crate) fn remove(&self, payload: &mut [u8], groups: &Groups, key: Digest, set: u32) -> bool {
        let mut slots = [0; MAX_REPETITIONS as usize];
        let mut found = 0;
        for ((t, table), to) in (0..).zip(self.parts(payload).0).zip(&mut slots) {
            let Some(slot) = self.slot(t, table, groups, key, set) else { return false };
            *to = slot;
            found += 1;
        }
        if found != self.repeats.repetitions {
            return false;
        }
        for (t, &slot) in (0..self.repeats.repetitions).zip(&slots) {
            if self.counting {
                let count = self.count(payload, t, slot);
                let left = if count == u8::MAX { count } else { count.saturating_sub(1) };
                self.set_count(payload, t, slot, left);
                if left > 0 {
                    continue;
                }
            }
            self.write(payload, t, slot, 0);
        }
        true
    }

    fn runs(&self, key: Digest) -> [Run; MAX_REPETITIONS as usize] {
        let mut runs = [Run::default(); MAX_REPETITIONS as usize];
        (0..self.repeats.repetitions).zip(&mut runs).for_each(|(t, run)| *run = self.run(t, key));
        runs
    }

    fn put(&self, payload: &mut [u8], groups: &Groups, runs: &[Run], set: u32, times: u8) -> Result<(), Full> {
        if times == 0 {
            return Ok(());
        }
        let none = Plan { value: 0, present: false, chain: [0; MAX_CHAIN], len: 0 };
        let mut plans = [none; MAX_REPETITIONS as usize];
        let mut planned = 0;
        for (((t, table), plan), &run) in (0..).zip(self.parts(payload).0).zip(&mut plans).zip(runs) {
            *plan = self.plan(table, run, groups.offset(t, set)).ok_or(Full)?;
            planned += 1;
        }
        if planned != self.repeats.repetitions {
            return Err(Full);
        }
        for (t, plan) in (0..self.repeats.repetitions).zip(&plans) {
            self.apply(payload, t, plan, times);
        }
        Ok(())
    }

    fn plan(&self, table: &[u8], run: Run, offset: u32) -> Option<Plan> {
        let lanes = Lanes::new(self.bits);
        let pair = self.pair(run, offset);
        let plan = |present, slot, value| {
            let mut chain = [0; MAX_CHAIN];
            chain[0] = slot;
            Some(Plan { value, present, chain, len: 1 })
        };
        if self.counting {
            for (bucket, value) in pair {
                if let Some(slot) = lanes.find(table, bucket, value) {
                    return plan(true, slot, value);
                }
            }
        }
        let [first, second] = pair.map(|(bucket, _)| lanes.equal(lanes.read(table, bucket), 0).count_ones());
        let (bucket, value) = if second > first { pair[1] } else { pair[0] };
        match lanes.find(table, bucket, 0) {
            Some(slot) => plan(false, slot, value),
            None => self.search(table, &lanes, pair),
        }
    }

    /// A shortest chain from two full buckets to a free slot.
    #[cold]
    #[inline(never)]
    fn search(&self, table: &[u8], lanes: &Lanes, pair: [(u64, u64); 2]) -> Option<Plan> {
        let mut nodes = Vec::with_capacity(64);
        nodes.extend([0, 1].map(|from| Node { bucket: pair[from].0, from, slot: 0, depth: 1 }));
        let mut next = 0;
        while let Some(&Node { bucket, depth, .. }) = nodes.get(next)
            && nodes.len() < MAX_SEARCHED_BUCKETS
            && depth < MAX_CHAIN
        {
            let word = lanes.read(table, bucket);
            let four = [0, 1, 2, 3].map(|lane| (word >> (lane * self.bits)) as u64 & ((1 << self.bits) - 1));
            let others = four.map(|value| self.other(bucket, value));
            others.iter().for_each(|&other| prefetch(table, (other * u64::from(self.bits) / 2) as usize));
            for (lane, &other) in others.iter().enumerate() {
                // Equal fingerprints lead to the same place.
                if four[..lane].iter().any(|value| value >> 1 == four[lane] >> 1) {
                    continue;
                }
                let slot = 4 * bucket + lane as u64;
                nodes.push(Node { bucket: other, from: next, slot, depth: depth + 1 });
                if let Some(free) = lanes.find(table, other, 0) {
                    return Some(chain(&nodes, free, pair));
                }
            }
            next += 1;
        }
        None
    }

    /// From the free slot backwards: each takes what was in the one before.
    fn apply(&self, payload: &mut [u8], t: u32, plan: &Plan, times: u8) {
        let chain = &plan.chain[..plan.len];
        let [slot, ..] = plan.chain;
        if plan.present {
            let count = self.count(payload, t, slot).saturating_add(times);
            self.set_count(payload, t, slot, count);
            return;
        }
        for pair in chain.windows(2).rev() {
            let [from, to] = *pair else { continue };
            let (moved, count) = (self.read(payload, t, from), self.count(payload, t, from));
            // From a first bucket to a second, or back.
            self.write(payload, t, to, moved ^ 1);
            self.set_count(payload, t, to, count);
        }
        self.write(payload, t, slot, plan.value);
        self.set_count(payload, t, slot, times);
    }

    /// Where the word that holds a slot starts, and the slot in it.
    fn place(&self, t: u32, slot: u64) -> (usize, u32) {
        let bit = slot * u64::from(self.bits);
        ((u64::from(t) * self.table_len() + bit / 8) as usize, (bit % 8) as u32)
    }

    fn read(&self, payload: &[u8], t: u32, slot: u64) -> u64 {
        let (at, shift) = self.place(t, slot);
        let bytes = payload.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes)) >> shift & ((1 << self.bits) - 1)
    }

    fn write(&self, payload: &mut [u8], t: u32, slot: u64, value: u64) {
        let (at, shift) = self.place(t, slot);
        let Some(bytes) = payload.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) else { return };
        let others = u64::from_le_bytes(*bytes) & !(((1 << self.bits) - 1) << shift);
        *bytes = (others | value << shift).to_le_bytes();
    }

    fn count_at(&self, t: u32, slot: u64) -> usize {
        let (t, tables) = (u64::from(t), u64::from(self.repeats.repetitions));
        (tables * self.table_len() + t * self.slots() + slot) as usize
    }

    fn count(&self, payload: &[u8], t: u32, slot: u64) -> u8 {
        if self.counting { payload.get(self.count_at(t, slot)).copied().unwrap_or(0) } else { 0 }
    }

    fn set_count(&self, payload: &mut [u8], t: u32, slot: u64, count: u8) {
        if self.counting {
            payload.get_mut(self.count_at(t, slot)).into_iter().for_each(|to| *to = count);
        }
    }
}

/// The way to the last node, and the free slot there.
fn chain(nodes: &[Node], free: u64, pair: [(u64, u64); 2]) -> Plan {
    let mut slots = [free; MAX_CHAIN];
    let (mut len, mut at) = (1, nodes.len().saturating_sub(1));
    // The first two nodes are where the search began.
    while let Some(&Node { from, slot, .. }) = nodes.get(at)
        && at > 1
    {
        slots[len] = slot;
        len += 1;
        at = from;
    }
    slots[..len].reverse();
    Plan { value: pair[at & 1].1, present: false, chain: slots, len }
}
