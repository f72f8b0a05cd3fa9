//! several ribbons, a digest -> which of them may hold it: the first layers of patches, queried in one call.
//!
//! A chain of patches is many small filters, and nearly every key is in none of them. A call for each would cost more than its lookup. So
//! ribbons of one form lie side by side here. A key has the same coefficients in all of them, and what is left for each is a row, a
//! threshold and the parities. A key that matches, or that the first level passes on, sets a bit: the caller queries that ribbon alone.

use std::marker::PhantomData;

use super::kernel::{Bit, Broad, Columns, Lookup, Outcome};
use super::{Fast, Ribbon};
use crate::arch::rows::{Alike, ViewAlike};
use crate::arch::{self, Answer, Isa, Kernel, Level, QueryFn};
use crate::hash::Digest;
use crate::leaves::ShardedLeaf;

/// Ribbons of one shard each, 64 at most.
#[derive(Clone)]
pub(crate) struct Beside {
    ribbons: Alike,
    fast: Fast,
    cpu: Level,
    ask: QueryFn<Beside, u64>,
    many: fn(&Beside, &[Digest], &mut [u64]),
}

/// As many as a word has bits.
const MOST: usize = 64;

impl Beside {
    /// Bytes that each ribbon takes.
    pub(crate) const MEMORY: u64 = Alike::MEMORY;

    /// The first ribbon; nothing if no kernel reads it alone.
    pub(crate) fn new(leaf: &ShardedLeaf<Ribbon>) -> Option<Beside> {
        let &Ribbon { fast, cpu, .. } = &leaf.parts().first()?.geometry;
        macro_rules! run {
            ($kernel:ty) => {
                (
                    QueryFn::new::<All<$kernel>>(cpu),
                    (|beside, keys, out| {
                        arch::dispatch(beside.cpu, Many::<$kernel> { beside, keys, out, kernel: PhantomData });
                    }) as fn(&Beside, &[Digest], &mut [u64]),
                )
            };
        }
        let (ask, many) = with_kernel!(leaf.parts().first()?.geometry, return None, run);
        Some(Beside { ribbons: Alike::new(leaf.rows()?)?, fast, cpu, ask, many })
    }

    /// Appends a ribbon; no if there are 64, or if its form is another.
    pub(crate) fn push(&mut self, leaf: &ShardedLeaf<Ribbon>) -> bool {
        let same = leaf.parts().first().is_some_and(|part| part.geometry.fast == self.fast);
        same && self.ribbons.len() < MOST && leaf.rows().is_some_and(|rows| self.ribbons.push(rows))
    }

    /// Bit `i`: ribbon `i` may match, and had better be queried.
    #[inline(always)]
    pub(crate) fn open(&self, key: Digest) -> u64 {
        self.ask.call(self, key)
    }

    /// The same for many keys.
    pub(crate) fn open_many(&self, keys: &[Digest], out: &mut [u64]) {
        (self.many)(self, keys, out);
    }
}

/// Whether a key with these coefficients may be in ribbon `i`.
#[inline(always)]
fn may_match<K: Lookup, I: Isa>(ribbons: &ViewAlike<'_, K>, i: usize, hi: u64, band: u64) -> bool {
    // Not by closures: they would be compiled for any processor.
    if let Some(found) = ribbons.find(i, hi)
        && let Some((octets, stride)) = found.octets()
        && let Some(matches) = bool::at::<K, I>(octets, stride, band, band)
    {
        return matches | K::is_bumped(&found);
    }
    true
}

/// All ribbons for one key.
struct All<K>(PhantomData<K>);

impl<K: Lookup> Answer<Beside, u64> for All<K> {
    const V4: bool = K::V4;

    #[inline(always)]
    fn answer<I: Isa>(Beside { ribbons, .. }: &Beside, key: Digest) -> u64 {
        let Some(view) = ribbons.view::<K>() else { return u64::MAX };
        let (band, mut open) = (key.salted(ribbons.salt), 0);
        for i in 0..ribbons.len() {
            open |= u64::from(may_match::<K, I>(&view, i, key.hi, band)) << (i % MOST);
        }
        open
    }
}

/// Keys per round of a batch.
const BATCH: usize = 32;

/// All ribbons for many keys.
struct Many<'a, K> {
    beside: &'a Beside,
    keys: &'a [Digest],
    out: &'a mut [u64],
    kernel: PhantomData<K>,
}

impl<K: Lookup> Kernel for Many<'_, K> {
    const V4: bool = K::V4;
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Many { beside: Beside { ribbons, .. }, keys, out, .. } = self;
        let Some(view) = ribbons.view::<K>() else { return out.fill(u64::MAX) };
        let mut bands = [0; BATCH];
        for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            for ((band, key), out) in bands.iter_mut().zip(keys).zip(out.iter_mut()) {
                (*band, *out) = (key.salted(ribbons.salt), 0);
            }
            for i in 0..ribbons.len() {
                for ((key, &band), out) in keys.iter().zip(&bands).zip(out.iter_mut()) {
                    *out |= u64::from(may_match::<K, I>(&view, i, key.hi, band)) << (i % MOST);
                }
            }
        }
    }
}
