//! hashes -> blocks, and a yard for what does not fit: the two places of a key ([Broom] section 4.2, "Each y has its fingerprint stored
//! in one of only two bins").

use super::super::words::{Backyard, Home, Ordered};
use super::block::{Look, Print, Shape};
use super::tombstones::Tombstones;
use crate::arch::{Base, Isa, Kernel, Level, dispatch, prefetch};
use crate::hash::{Digest, Salt, fold};
use crate::math::broom::Plan;

/// Blocks and their yard.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) plan: Plan,
    pub(super) shape: Shape,
    pub(super) words: Vec<u64>,
    pub(super) yard: Backyard,
    /// What is remembered of deleted keys.
    pub(super) tombstones: Tombstones,
    /// Words of remainders before those of a quotient, on average, for each quotient; times 2^16.
    slope: u64,
    level: Level,
}

/// Keys of a filter for each tombstone that there is room for.
const KEYS_PER_TOMBSTONE: u64 = 40;

/// Deleted keys that a table of this size remembers.
pub(super) fn tombstone_capacity(plan: &Plan) -> usize {
    (plan.blocks * u64::from(plan.load) / KEYS_PER_TOMBSTONE) as usize + 16
}

/// Where a hash belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    /// 58 bits of the hash, from which all else follows: an entry of the yard can go back to its block.
    pub(super) hash: u64,
    pub(super) block: usize,
    pub(super) print: Print,
}

/// The bits of a key under a salt that a table knows it by.
#[inline(always)]
pub(super) fn hash(key: Digest, salt: Salt) -> u64 {
    key.salted(salt) & Ordered::FIND
}

struct LookKernel<'a>(&'a Table, &'a Spot);
struct Push<'a>(&'a mut Table, &'a Spot, u32, Option<u32>);
struct Pull<'a>(&'a mut Table, &'a Spot, usize);

impl Kernel for LookKernel<'_> {
    type Output = Look;
    #[inline(always)]
    fn run<I: Isa>(self) -> Look {
        let block = self.0.block(self.1.block);
        self.0.fetch(block, self.1);
        self.0.shape.look::<I>(block, &self.1.print)
    }
}

impl Kernel for Push<'_> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        self.0.shape.push::<I>(self.0.block_mut(self.1.block), &self.1.print, self.2, self.3);
    }
}

impl Kernel for Pull<'_> {
    type Output = u32;
    #[inline(always)]
    fn run<I: Isa>(self) -> u32 {
        self.0.shape.pull::<I>(self.0.block_mut(self.1.block), self.1.print.quotient, self.2)
    }
}

impl Table {
    pub(super) fn new(plan: Plan) -> Table {
        let words = vec![0; plan.blocks as usize * plan.words as usize];
        Table::with(plan, words, Backyard::empty(plan.yard as usize), Tombstones::new(tombstone_capacity(&plan)))
    }

    pub(super) fn with(plan: Plan, words: Vec<u64>, yard: Backyard, tombstones: Tombstones) -> Table {
        let Plan { words: size, quotients, remainder, counter, .. } = plan;
        let shape = Shape::new(size as usize, quotients, remainder, counter);
        let slope = ((u64::from(plan.load) * u64::from(remainder)) << 16) / (64 * u64::from(quotients));
        Table { plan, shape, words, yard, tombstones, slope, level: Level::detect() }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.plan.blocks * u64::from(self.plan.load)
    }

    pub(super) fn bytes(&self) -> usize {
        8 * self.words.len() + self.yard.bytes() + self.tombstones.bytes()
    }

    #[inline(always)]
    pub(super) fn spot(&self, hash: u64) -> Spot {
        let block = hash as u128 * self.plan.blocks as u128;
        let quotient = block as u64 as u128 * self.shape.quotients as u128;
        let print = Print {
            quotient: (quotient >> 64) as u32,
            remainder: quotient as u64 >> (64 - self.shape.remainder),
            more: fold(hash ^ 0x8ebc_6af0_9c88_c6e3, hash.rotate_left(32) ^ 0x5899_65cc_7537_4cc3),
        };
        Spot { hash, block: (block >> 64) as usize, print }
    }

    /// The name under which a key of this spot is filed: its fingerprint without adaptivity bits.
    pub(super) fn name(&self, spot: &Spot) -> u64 {
        let Print { quotient, remainder, .. } = spot.print;
        (spot.block as u64 * u64::from(self.shape.quotients) + u64::from(quotient)) << self.shape.remainder | remainder
    }

    #[inline(always)]
    pub(super) fn block(&self, at: usize) -> &[u64] {
        let size = self.shape.words;
        &self.words[at * size..][..size]
    }

    fn block_mut(&mut self, at: usize) -> &mut [u64] {
        let size = self.shape.words;
        &mut self.words[at * size..][..size]
    }

    /// Where a remainder will be, more or less, comes from memory at the same time as the quotients.
    #[inline(always)]
    fn fetch(&self, block: &[u64], spot: &Spot) {
        let back = ((u64::from(spot.print.quotient) * self.slope) >> 16) as usize;
        prefetch(block, (self.shape.words - 1).saturating_sub(back));
    }

    #[inline(always)]
    pub(super) fn has<I: Isa>(&self, hash: u64) -> bool {
        let spot = self.spot(hash);
        let block = self.block(spot.block);
        self.fetch(block, &spot);
        self.shape.has::<I>(block, &spot.print) || (self.shape.spilled(block) && self.yard.has(hash))
    }

    #[inline]
    pub(super) fn look(&self, spot: &Spot) -> Look {
        dispatch(self.level, LookKernel(self, spot))
    }

    /// Whether the key of a slot, hit by a spot, can be the one of another spot: its fingerprint is a prefix of that one's hash.
    pub(super) fn owned(&self, hit: &Spot, slot: usize, by: &Spot) -> bool {
        let Print { quotient, remainder, more } = by.print;
        (hit.block, hit.print.quotient, hit.print.remainder) == (by.block, quotient, remainder)
            && self.shape.agrees::<Base>(self.block(hit.block), slot, more)
            && !self.yard.has(by.hash)
    }

    /// Whether [`put`](Self::put) will find room.
    #[inline]
    pub(super) fn takes(&self, spot: &Spot, tail: u32) -> bool {
        self.shape.takes(self.block(spot.block), tail) || self.yard.takes(spot.hash)
    }

    /// Adds a key with a tail of this length: to its block, where the end of its run may be known, or else to the yard. Returns the words
    /// it touched.
    #[inline]
    pub(super) fn put(&mut self, spot: &Spot, tail: u32, run_end: Option<u32>) -> u32 {
        if self.shape.takes(self.block(spot.block), tail) {
            dispatch(self.level, Push(self, spot, tail, run_end));
            return self.plan.words;
        }
        self.spill(spot, tail)
    }

    /// Adds a key to the yard.
    fn spill(&mut self, spot: &Spot, tail: u32) -> u32 {
        self.shape.set_spilled(self.block_mut(spot.block), true);
        1 + self.yard.insert(Ordered::pack(spot.hash, tail)).unwrap_or(0)
    }

    /// Takes a key out; returns the length of its tail, and the words it touched. A key that may be in the yard is looked for there
    /// first: the block may have a full collision with it that is another key's.
    pub(super) fn take(&mut self, spot: &Spot) -> (Option<u32>, u32) {
        let mut touched = self.plan.words;
        if self.shape.spilled(self.block(spot.block)) {
            touched += self.yard.reach(spot.hash);
            let found = self.yard.like(spot.hash).next();
            if let Some((at, word)) = found {
                self.yard.remove_at(at);
                return (Some(Ordered::length(word)), touched);
            }
        }
        let Some(slot) = self.look(spot).hit else { return (None, touched) };
        (Some(dispatch(self.level, Pull(self, spot, slot))), touched)
    }

    /// Whether [`lengthen`](Self::lengthen) will find room for the key in a slot.
    pub(super) fn lengthens(&self, spot: &Spot, slot: usize, tail: u32) -> bool {
        self.shape.lengthens::<Base>(self.block(spot.block), slot, tail) || self.yard.takes(spot.hash)
    }

    /// Whether a key finds room, and with it the longer tail of the one in `slot`: what each finds alone may be the same room.
    pub(super) fn takes_both(&self, spot: &Spot, tail: u32, its: &Spot, slot: usize, its_tail: u32) -> bool {
        let both = self.shape.takes_both::<Base>(self.block(spot.block), tail, slot, its_tail);
        both || (self.yard.takes(spot.hash) && self.yard.takes(its.hash))
    }

    /// Makes the fingerprint of a key in a block longer; without room for it the key goes to the yard.
    pub(super) fn lengthen(&mut self, spot: &Spot, tail: u32) -> u32 {
        let Some(slot) = self.look(spot).hit else { return self.plan.words };
        if self.shape.lengthen::<Base>(self.block_mut(spot.block), slot, spot.print.more, tail) {
            return self.plan.words;
        }
        let had = dispatch(self.level, Pull(self, spot, slot));
        self.plan.words + self.spill(spot, tail.max(had))
    }

    /// A block may have room again: one of its keys in the yard comes home, with the tail it has earned. Keys that never came home would fill the
    /// yard three times as high.
    pub(super) fn refill(&mut self, block: usize) -> u32 {
        if !self.shape.spilled(self.block(block)) {
            return 0;
        }
        // The hashes of a block are those that `spot` multiplies into it.
        let bound = |at: usize| ((at as u128) << 64).div_ceil(self.plan.blocks as u128);
        let (from, to) = (bound(block) as u64, (bound(block + 1) - 1).min(u64::MAX as u128) as u64);
        let (mut mine, mut home) = (0, None);
        for (at, word) in self.yard.between(from, to) {
            mine += 1;
            let spot = self.spot(word & Ordered::FIND);
            let look = self.look(&spot);
            let tail = look.need.max(Ordered::length(word));
            // Next to a key whose fingerprint is a prefix of its hash it must stay where it is.
            if look.hit.is_none() && self.shape.takes(self.block(block), tail) {
                home = Some((at, spot, tail));
                break;
            }
        }
        let touched = self.yard.reach(from & Ordered::FIND) + 2 * self.plan.words;
        match home {
            Some((at, spot, tail)) => {
                self.yard.remove_at(at);
                self.put(&spot, tail, None);
            }
            None if mine == 0 => self.shape.set_spilled(self.block_mut(block), false),
            None => {}
        }
        touched
    }

    /// Whether all is as it was left: blocks are blocks, and every key in the yard would be looked for there.
    pub(super) fn valid(&self) -> bool {
        let blocks = self.words.chunks(self.shape.words).all(|block| self.shape.valid(block));
        let looked_for =
            |(_, word): (usize, u64)| self.shape.spilled(self.block(self.spot(word & Ordered::FIND).block));
        blocks && self.yard.between(0, u64::MAX).all(looked_for)
    }

    pub(super) fn len(&self) -> u64 {
        let keys = |block: &[u64]| self.shape.counts(block).0 as u64;
        self.words.chunks(self.shape.words).map(keys).sum::<u64>() + self.yard.len() as u64
    }
}
