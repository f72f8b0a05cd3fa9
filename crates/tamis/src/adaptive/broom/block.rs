//! a block of words + a quotient, a remainder and more bits -> slots of one to many bits: the bin of the broom filter.
//!
//! \[Broom\] section 4.2 has bins of remainders, metadata that tell their quotients, and adaptivity bits stored apart. Here all of a
//! bin lies in one block of words that slots and adaptivity bits share, so a bin with few keys has room for many repairs:
//!
//! ```text
//!   | keys t | bits e | yard | quotients K + t | lengths t + e | adaptivity bits e | free .. | remainders t * r |
//! ```
//!
//! * *quotients*: for every quotient a one for each of its keys, and a zero. The keys of a quotient are a run of slots.
//! * *lengths*: for every slot a one for each of its adaptivity bits, and a zero.
//! * *remainders*: from the end backwards, slot 0 last, so that free bits are in one piece.
//! * *yard*: whether keys of this block may be in the back yard.
//!
//! A query counts zeros in the quotients to find its run, which is a key long on average, and compares remainders; only for an equal
//! one, a *hard collision*, does it look at lengths and adaptivity bits. The answer is yes only if those are a prefix of the query's: a
//! *full collision*. With 256 bytes the counters and quotients fill the first cache line, and a query for an unlisted key touches one more.
//!
//! The constants are ours: bins of some 160 keys and not of (log n) / r, one yard for all blocks and not one overflow group for each log^6 n
//! bins. Lemma 17's claim, that the overflow is never full, is measured instead (`tamis-bench adaptive --simulate`).

use super::super::bits;
use crate::arch::Isa;

/// The most adaptivity bits of one slot; a key that needs more goes to the yard.
pub(super) const MAX_TAIL: u32 = 40;

/// How to read a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Words of a block.
    pub(super) words: usize,
    /// Quotients of a block.
    pub(super) quotients: u32,
    /// Bits of a remainder.
    pub(super) remainder: u32,
    /// Bits of each of the two counters.
    pub(super) counter: u32,
    /// Words that the quotients can reach into.
    scan: usize,
    /// A one at the low end of every lane of a word; a lane is as wide as a remainder.
    ones: u64,
    lanes: usize,
}

/// What a key looks like inside a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Print {
    pub(super) quotient: u32,
    pub(super) remainder: u64,
    /// Bits that follow the remainder; those of a tail are their low bits.
    pub(super) more: u64,
}

/// What a block says about a print.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Look {
    /// The slot that is a full collision.
    pub(super) hit: Option<usize>,
    /// Bits that the print's tail must have so that no tail of a hard collision is a prefix of it, or the other way round.
    pub(super) need: u32,
    /// Where the run of the print's quotient ends.
    pub(super) end: u32,
}

/// The adaptivity bits of a slot.
#[derive(Clone, Copy)]
struct Tail {
    /// Where its length starts.
    length: usize,
    /// Where its bits start.
    bits: usize,
    len: u32,
}

impl Shape {
    pub(super) fn new(words: usize, quotients: u32, remainder: u32, counter: u32) -> Shape {
        let lanes = 64 / remainder;
        let ones = (0..lanes).fold(0, |ones, lane| ones | 1 << (lane * remainder));
        let mut shape = Shape { words, quotients, remainder, counter, scan: 1, ones, lanes: lanes as usize };
        let fixed = shape.start() + quotients as usize;
        let most = (64 * words).saturating_sub(fixed) / (remainder as usize + 2);
        shape.scan = ((fixed + most) / 64 + 1).min(words);
        shape
    }

    #[inline(always)]
    fn start(&self) -> usize {
        2 * self.counter as usize + 1
    }

    /// Keys and adaptivity bits.
    #[inline(always)]
    pub(super) fn counts(&self, block: &[u64]) -> (usize, usize) {
        let both = block[0];
        ((both & bits::low(self.counter)) as usize, (both >> self.counter & bits::low(self.counter)) as usize)
    }

    fn set_counts(&self, block: &mut [u64], keys: usize, tails: usize) {
        bits::put(block, 0, 2 * self.counter, keys as u64 | (tails as u64) << self.counter);
    }

    /// Whether keys of this block may be in the yard.
    #[inline(always)]
    pub(super) fn spilled(&self, block: &[u64]) -> bool {
        block[0] >> (2 * self.counter) & 1 == 1
    }

    pub(super) fn set_spilled(self, block: &mut [u64], yes: bool) {
        bits::put(block, 2 * self.counter as usize, 1, u64::from(yes));
    }

    /// The end of everything but the remainders.
    #[inline(always)]
    fn end(&self, keys: usize, tails: usize) -> usize {
        self.start() + self.quotients as usize + 2 * keys + 2 * tails
    }

    /// Whether so many keys with so many adaptivity bits fit into a block.
    pub(super) fn fits(&self, keys: usize, tails: usize) -> bool {
        let most = 1 << self.counter;
        keys < most && tails < most && self.end(keys, tails) + keys * self.remainder as usize <= 64 * self.words
    }

    #[inline(always)]
    fn remainder(&self, block: &[u64], slot: usize) -> u64 {
        bits::get(block, 64 * self.words - (slot + 1) * self.remainder as usize, self.remainder)
    }

    /// Where the ones of a quotient start.
    #[inline(always)]
    fn run<I: Isa>(&self, block: &[u64], quotient: u32) -> usize {
        let Some(rank) = quotient.checked_sub(1) else { return self.start() };
        bits::select_zero::<I>(block, self.start(), rank, self.scan - 1) + 1
    }

    /// Where the length of a slot starts, and its bits; for the slot behind the last, where both would.
    #[inline(always)]
    fn tail_start<I: Isa>(&self, block: &[u64], slot: usize) -> (usize, usize) {
        let (keys, tails) = self.counts(block);
        let lengths = self.start() + self.quotients as usize + keys;
        let length = match slot.checked_sub(1) {
            None => lengths,
            Some(before) => {
                let last = (lengths + keys + tails - 1) / 64;
                bits::select_zero::<I>(block, lengths, before as u32, last) + 1
            }
        };
        // As many ones come before this length as bits before its own.
        (length, lengths + keys + tails + (length - lengths - slot))
    }

    #[inline(always)]
    fn tail<I: Isa>(&self, block: &[u64], slot: usize) -> Tail {
        let (length, bits) = self.tail_start::<I>(block, slot);
        Tail { length, bits, len: (bits::next_zero(block, length) - length) as u32 }
    }

    #[inline(always)]
    pub(super) fn look<I: Isa>(&self, block: &[u64], print: &Print) -> Look {
        let run = self.run::<I>(block, print.quotient);
        let len = bits::next_zero(block, run) - run;
        let first = run - self.start() - print.quotient as usize;
        let mut look = Look { hit: None, need: 0, end: (run + len) as u32 };
        if !self.may_have(block, first, len, print.remainder) {
            return look;
        }
        for slot in first..first + len {
            if self.remainder(block, slot) == print.remainder {
                let tail = self.tail::<I>(block, slot);
                let common = (bits::get(block, tail.bits, tail.len) ^ print.more).trailing_zeros();
                if common >= tail.len {
                    look.hit = Some(slot);
                } else {
                    look.need = look.need.max(common + 1);
                }
            }
        }
        look
    }

    /// Whether a block has a full collision with a print.
    #[inline(always)]
    pub(super) fn has<I: Isa>(&self, block: &[u64], print: &Print) -> bool {
        let run = self.run::<I>(block, print.quotient);
        let len = bits::next_zero(block, run) - run;
        let first = run - self.start() - print.quotient as usize;
        self.may_have(block, first, len, print.remainder) && self.collides::<I>(block, first, len, print)
    }

    /// Whether one of the remainders of a run may be this one; false is certain. A word of them is compared at once, whatever the
    /// length of the run: how long runs are cannot be guessed.
    #[inline(always)]
    fn may_have(&self, block: &[u64], first: usize, len: usize, remainder: u64) -> bool {
        let lanes = self.lanes;
        let width = lanes as u32 * self.remainder;
        // Slot `first` is the highest lane.
        let at = (64 * self.words).checked_sub(first * self.remainder as usize + width as usize);
        // In lanes of one bit a borrow hides the next zero.
        let Some(at) = at.filter(|_| len <= lanes && self.remainder > 1) else { return true };
        let differ = bits::get(block, at, width) ^ (self.ones * remainder);
        // A lane that is zero borrows from its highest bit; others may only because a lower one did.
        let zero = differ.wrapping_sub(self.ones) & !differ & self.ones << (self.remainder - 1);
        let unused = width - len as u32 * self.remainder;
        zero & !bits::low(unused) != 0
    }

    /// Whether a slot of a run is a full collision with a print.
    #[inline(always)]
    fn collides<I: Isa>(&self, block: &[u64], first: usize, len: usize, print: &Print) -> bool {
        let plain = self.counts(block).1 == 0;
        (first..first + len).any(|slot| {
            self.remainder(block, slot) == print.remainder && (plain || self.agrees::<I>(block, slot, print.more))
        })
    }

    /// Whether the tail of a slot is a prefix of these bits.
    #[inline(always)]
    pub(super) fn agrees<I: Isa>(&self, block: &[u64], slot: usize, more: u64) -> bool {
        let tail = self.tail::<I>(block, slot);
        (bits::get(block, tail.bits, tail.len) ^ more) & bits::low(tail.len) == 0
    }

    /// Whether there is room for another key with a tail of this length.
    pub(super) fn takes(&self, block: &[u64], tail: u32) -> bool {
        let (keys, tails) = self.counts(block);
        tail <= MAX_TAIL && self.fits(keys + 1, tails + tail as usize)
    }

    /// Adds a print with a tail of this length, at the end of its run, which is known or not. There must be room.
    #[inline(always)]
    pub(super) fn push<I: Isa>(self, block: &mut [u64], print: &Print, tail: u32, run_end: Option<u32>) {
        let (keys, tails) = self.counts(block);
        let run_end = match run_end {
            Some(end) => end as usize,
            None => bits::next_zero(block, self.run::<I>(block, print.quotient)),
        };
        let slot = run_end - self.start() - print.quotient as usize;
        let (length, place) = self.tail_start::<I>(block, slot);
        let end = self.end(keys, tails);
        if tail == 0 {
            // Most keys have none: two single bits.
            bits::insert_pair(block, run_end, length, end);
        } else {
            // From behind: what is squeezed in first does not move.
            bits::insert(block, place, tail, print.more, end);
            bits::insert(block, length, tail + 1, bits::low(tail), end + tail as usize);
            bits::insert(block, run_end, 1, 1, end + 2 * tail as usize + 1);
        }
        let (r, total) = (self.remainder as usize, 64 * self.words);
        bits::move_down_to_end(block, total - keys * r, total - slot * r, self.remainder);
        bits::put(block, total - (slot + 1) * r, self.remainder, print.remainder);
        self.set_counts(block, keys + 1, tails + tail as usize);
    }

    /// Takes a slot of this quotient out; returns the length of its tail.
    #[inline(always)]
    pub(super) fn pull<I: Isa>(self, block: &mut [u64], quotient: u32, slot: usize) -> u32 {
        let (keys, tails) = self.counts(block);
        let tail = self.tail::<I>(block, slot);
        let mut end = self.end(keys, tails);
        bits::remove(block, tail.bits, tail.len, end);
        end -= tail.len as usize;
        bits::remove(block, tail.length, tail.len + 1, end);
        end -= tail.len as usize + 1;
        // Any one of the run's will do.
        bits::remove(block, self.start() + quotient as usize + slot, 1, end);
        let (r, total) = (self.remainder as usize, 64 * self.words);
        bits::move_up(block, total - keys * r, total - (slot + 1) * r, self.remainder);
        bits::put(block, total - keys * r, self.remainder, 0);
        self.set_counts(block, keys - 1, tails - tail.len as usize);
        tail.len
    }

    /// Whether there is room for a tail of this length in a slot.
    pub(super) fn lengthens<I: Isa>(&self, block: &[u64], slot: usize, len: u32) -> bool {
        let (keys, tails) = self.counts(block);
        let added = len.saturating_sub(self.tail::<I>(block, slot).len);
        len <= MAX_TAIL && self.fits(keys, tails + added as usize)
    }

    /// Whether there is room for a tail of this length in a slot, and for another key with its tail.
    pub(super) fn takes_both<I: Isa>(&self, block: &[u64], tail: u32, slot: usize, len: u32) -> bool {
        let (keys, tails) = self.counts(block);
        let added = len.saturating_sub(self.tail::<I>(block, slot).len);
        tail.max(len) <= MAX_TAIL && self.fits(keys + 1, tails + (added + tail) as usize)
    }

    /// Makes the tail of a slot `len` bits long, with the low bits of `more`; false, and nothing is changed, if there is no room.
    pub(super) fn lengthen<I: Isa>(self, block: &mut [u64], slot: usize, more: u64, len: u32) -> bool {
        if !self.lengthens::<I>(block, slot, len) {
            return false;
        }
        let (keys, tails) = self.counts(block);
        let tail = self.tail::<I>(block, slot);
        let added = len.saturating_sub(tail.len);
        let end = self.end(keys, tails);
        bits::insert(block, tail.bits + tail.len as usize, added, more >> tail.len, end);
        bits::insert(block, tail.length, added, bits::low(added), end + added as usize);
        self.set_counts(block, keys, tails + added as usize);
        true
    }

    /// Whether these words are a block: as many ones and zeros as its counters say, and zeros where nothing is.
    pub(super) fn valid(&self, block: &[u64]) -> bool {
        let (keys, tails) = self.counts(block);
        if !self.fits(keys, tails) {
            return false;
        }
        let lengths = self.start() + self.quotients as usize + keys;
        let bits_start = lengths + keys + tails;
        let free_end = 64 * self.words - keys * self.remainder as usize;
        bits::ones(block, self.start(), lengths) == keys
            && bits::get(block, lengths - 1, 1) == 0
            && bits::ones(block, lengths, bits_start) == tails
            && (keys == 0 || bits::get(block, bits_start - 1, 1) == 0)
            && (keys > 0 || tails == 0)
            && bits::ones(block, bits_start + tails, free_end) == 0
            && self.tails_fit(block, lengths, keys)
    }

    /// No tail is longer than a writer makes it.
    fn tails_fit(&self, block: &[u64], lengths: usize, keys: usize) -> bool {
        let mut at = lengths;
        for _ in 0..keys {
            let end = bits::next_zero(block, at);
            if end - at > MAX_TAIL as usize {
                return false;
            }
            at = end + 1;
        }
        true
    }
}
