//! keys inserted and removed, false positives reported -> a filter of extendible fingerprints: the broom filter ([Broom] sections 3 and 4.2).
//!
//! Every key has a fingerprint, a prefix of its hash: a *quotient* that says where it lies, a *remainder* of `log2 1/eps` bits, and
//! as many *adaptivity bits* as it has earned. Three rules hold at all times:
//!
//! 1. a query is answered with yes if and only if some fingerprint is a prefix of its hash (Invariant 3);
//! 2. no fingerprint is a prefix of another (Invariant 4), so exactly one key can be to blame for a false positive, and of all keys
//!    under a name its digest tells which: the reverse map needs no order of its own;
//! 3. a fingerprint never gets shorter while its hash function lives.
//!
//! A false positive x of the key y makes the fingerprint of y longer, until it is no prefix of x's hash any more: two bits on average. A key that is
//! put in and meets a fingerprint that is a prefix of its hash makes both longer. Since bits only ever come, all keys move to a new hash
//! function bit by bit, `moved` of them for each false positive (see `frontier.rs`); both functions share one table, and rule 2 spans both.
//!
//! The paper's constants are for very large n, these for any: see [`math::broom`](crate::math::broom).
//!
//! **Growing** uses the frontier too: the next hash function then leads to a table twice as large. The keys come from the reverse map,
//! so the rate stays what it was.

use super::builder::{AdaptiveBuilder, Built, Empty, Sizing, check_range};
use super::frontier::{Frontier, Side};
use super::{Adapt, AdaptiveFilter};
use crate::arch::{Answer, Isa, Level, QueryFn};
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::filter::options::set;
use crate::hash::{Digest, Hasher, KeyType};
use crate::math::broom::{MAX_KEYS, MAX_REMAINDER, plan};

mod block;
mod change;
mod snapshot;
mod table;
mod tombstones;

use table::{Spot, Table, hash};

/// Adaptive filter that keeps its false positive rate for any sequence of queries: 13.2 bits per key at a rate of 1/256.
///
/// With `capacity` keys it is full, unless it is [growing](AdaptiveBuilder::growing).
///
/// ```
/// use tamis::adaptive::{Adapt, AdaptiveFilter, Broom, Memory, Remove};
/// let mut filter = Broom::with_capacity(1000).build::<u64>()?;
/// let mut map = Memory::new(); // or a database that has the keys anyway
/// for key in 0..1000u64 {
///     filter.insert(key, &mut map)?;
/// }
/// let false_positive = (1000..).find(|&key| filter.contains(key) == Ok(true)).unwrap();
/// filter.adapt(false_positive, &mut map)?;
/// assert!(!filter.contains(false_positive)?);
/// filter.remove(7u64, &mut map)?;
/// let again = Broom::restore(filter.snapshot()?)?;
/// assert!(again.contains(8u64)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Broom {
    rate: f64,
    moves_per_adapt: u32,
    grows: bool,
    frontier: Frontier,
    /// The table of the old hash function, and of the new one unless it has its own.
    table: Table,
    /// The table of the new hash function while the filter grows.
    next: Option<Table>,
    len: u64,
    /// Keys of the set that the new hash function holds.
    moved: u64,
    ask: QueryFn<Broom>,
}

brief_debug!(Broom, it => keys: it.len, capacity: it.capacity(), rate: it.rate, bytes: it.memory_bytes());

/// What a filter is made of, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Blocks.
    pub blocks: u64,
    /// Adaptivity bits in all blocks.
    pub adaptivity_bits: u64,
    /// The most adaptivity bits of one block.
    pub widest_block: u64,
    /// Keys in the back yard.
    pub in_yard: u64,
    /// Keys that the back yard takes.
    pub yard_room: u64,
    /// Removed keys that have tombstones.
    pub tombstones: u64,
    /// Tombstones that fit.
    pub tombstone_room: u64,
}

/// The size of a block: larger ones take fewer bits, smaller ones fewer instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Block {
    /// 128 bytes.
    Small,
    /// 256 bytes.
    Medium,
    /// 512 bytes.
    Large,
}

impl Block {
    fn words(self) -> u32 {
        match self {
            Block::Small => 16,
            Block::Medium => 32,
            Block::Large => 64,
        }
    }
}

/// The options that only this filter has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct More {
    block: Block,
    moves: u32,
    grows: bool,
}

impl Built for Broom {
    type Options = Sizing<More>;
}

impl Empty for Broom {
    type More = More;

    fn empty(sizing: &Sizing<More>, key_type: KeyType, hasher: Hasher) -> Result<Broom, BuildError> {
        let Sizing { capacity, fpr, more: More { block, moves, grows } } = *sizing;
        check_range("moves_per_adapt", moves, 1.0..=64.0)?;
        let none = BuildError::BroomSize { keys: capacity, rate: fpr, remainder: MAX_REMAINDER, most: MAX_KEYS };
        let plan = plan(capacity, fpr, block.words(), moves).ok_or(none)?;
        Ok(Broom::of(fpr, moves, grows, Frontier::new(hasher, key_type), Table::new(plan)))
    }
}

impl AdaptiveBuilder<Broom> {
    set! {
        /// Makes blocks of 512 bytes instead of 256: about half a bit per key smaller, and a tenth slower.
        compact() => options.more.block = Block::Large;

        /// Doubles the capacity where the filter would be full. It begins at three quarters, and is done before it is full.
        growing() => options.more.grows = true;
    }

    #[cfg(feature = "internals")]
    set! {
        #[doc(hidden)]
        block(block: Block) => options.more.block = block;

        /// How many keys each false positive moves to the next hash function, 1 to 64: more of them cost reads of the reverse map and save
        /// adaptivity bits.
        #[doc(hidden)]
        moves_per_adapt(keys: u32) => options.more.moves = keys;
    }
}

#[derive(Debug)]
struct Asked;

impl Answer<Broom> for Asked {
    #[inline(always)]
    fn answer<I: Isa>(broom: &Broom, key: Digest) -> bool {
        let side = broom.frontier.side(key);
        broom.table(side).has::<I>(hash(key, broom.frontier.salt(side)))
    }
}

impl Broom {
    /// Starts a filter for `capacity` keys. Rates go down to 2^-24; see [`LargeBroom`](super::LargeBroom) for lower ones.
    pub fn with_capacity(capacity: u64) -> AdaptiveBuilder<Broom> {
        AdaptiveBuilder::new(capacity, More { block: Block::Medium, moves: 4, grows: false })
    }

    fn of(rate: f64, moves_per_adapt: u32, grows: bool, frontier: Frontier, table: Table) -> Broom {
        let ask = QueryFn::new::<Asked>(Level::detect());
        Broom { rate, moves_per_adapt, grows, frontier, table, next: None, len: 0, moved: 0, ask }
    }

    #[inline(always)]
    fn table(&self, side: Side) -> &Table {
        match &self.next {
            Some(next) if side == Side::New => next,
            _ => &self.table,
        }
    }

    fn table_mut(&mut self, side: Side) -> &mut Table {
        match &mut self.next {
            Some(next) if side == Side::New => next,
            _ => &mut self.table,
        }
    }

    /// Where a key belongs under the hash function of a side.
    fn spot(&self, key: Digest, side: Side) -> Spot {
        self.table(side).spot(hash(key, self.frontier.salt(side)))
    }

    /// What it is made of now. Walks through all blocks.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn statistics(&self) -> Statistics {
        let mut all = Statistics::default();
        for table in [Some(&self.table), self.next.as_ref()].into_iter().flatten() {
            all.blocks += table.plan.blocks;
            all.tombstones += table.tombstones.len as u64;
            all.tombstone_room += table.tombstones.room as u64;
            all.in_yard += table.yard.len() as u64;
            all.yard_room += table.yard.capacity() as u64;
            for block in table.words.chunks(table.shape.words) {
                let bits = table.shape.counts(block).1 as u64;
                all.adaptivity_bits += bits;
                all.widest_block = all.widest_block.max(bits);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;
