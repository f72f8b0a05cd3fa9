//! a payload + a quotient -> its run: blocks, ranks and selects.
//!
//! ```text
//!   block   remainders, 64 * r bits | occupied u64 | ends u64 | offset u8          17 + 8 r bytes
//! ```
//!
//! Bit j of `occupied`: quotient 64 b + j has a run. Bit j of `ends`: slot 64 b + j is the last of a run. Runs lie in the
//! order of their quotients, each at its quotient's slot or, where that is taken, right after the run before. So the i-th
//! occupied quotient owns the i-th end, and `offset`, the number of slots that runs of earlier blocks take from this one on,
//! makes the count start in the block. An offset of 255 says "255 or more" and is found by counting from an earlier block.
//!
//! Every function takes any bytes: what is not there reads as zero, and no loop goes on past the last slot.

use crate::arch::{Isa, prefetch};

/// Slots of a block.
pub(super) const BLOCK: usize = 64;
/// Bytes of a block that are not remainders.
pub(super) const META: usize = 17;
/// An offset that does not fit its byte.
pub(super) const MANY: u8 = 255;

/// How the bytes of a payload are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Table {
    /// Bits of a remainder, 1 to 32.
    pub(super) remainder: u32,
    pub(super) blocks: usize,
}

/// Bits of remainders that can be read at once from any bit of a byte.
const LANES: u32 = 57;

/// A one at the lowest bit of every remainder of `remainder` bits that fits in [`LANES`] bits.
pub(super) fn lanes(remainder: u32) -> u64 {
    (0..LANES / remainder).fold(0, |ones, i| ones | 1 << (i * remainder))
}

/// The words of a block.
#[derive(Clone, Copy)]
pub(super) struct Meta {
    pub(super) occupied: u64,
    pub(super) ends: u64,
    pub(super) offset: u8,
}

/// The little-endian word at `at`; zero where there are no eight bytes.
#[inline(always)]
pub(super) fn word(payload: &[u8], at: usize) -> u64 {
    payload.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |&bytes| u64::from_le_bytes(bytes))
}

/// The bits of a word below `bits`, which is at most 63.
#[inline(always)]
pub(super) fn low(bits: usize) -> u64 {
    (1 << bits) - 1
}

impl Table {
    /// Bytes of a block.
    #[inline(always)]
    pub(super) fn size(self) -> usize {
        8 * self.remainder as usize + META
    }

    /// Number of slots.
    #[inline(always)]
    pub(super) fn slots(self) -> usize {
        self.blocks.saturating_mul(BLOCK)
    }

    /// Where the words of a block start.
    #[inline(always)]
    pub(super) fn words_at(self, block: usize) -> usize {
        block.wrapping_mul(self.size()).wrapping_add(8 * self.remainder as usize)
    }

    #[inline(always)]
    pub(super) fn meta(self, payload: &[u8], block: usize) -> Meta {
        let none = Meta { occupied: 0, ends: 0, offset: 0 };
        let Some(bytes) = payload.get(self.words_at(block)..).and_then(|rest| rest.first_chunk::<META>()) else {
            return none;
        };
        // No run comes from before the first block, whatever its byte says.
        let offset = if block == 0 { 0 } else { bytes[16] };
        Meta { occupied: word(bytes, 0), ends: word(bytes, 8), offset }
    }

    #[inline(always)]
    pub(super) fn occupied(self, payload: &[u8], block: usize) -> u64 {
        word(payload, self.words_at(block))
    }

    #[inline(always)]
    pub(super) fn ends(self, payload: &[u8], block: usize) -> u64 {
        word(payload, self.words_at(block).wrapping_add(8))
    }

    /// Whether a slot is the last of a run.
    #[inline(always)]
    pub(super) fn is_end(self, payload: &[u8], slot: usize) -> bool {
        self.ends(payload, slot / BLOCK) >> (slot % BLOCK) & 1 == 1
    }

    /// Byte and bit at which the remainder of a slot starts. It ends before the block does: eight bytes can be read.
    #[inline(always)]
    pub(super) fn place(self, slot: usize) -> (usize, u32) {
        let bit = (slot % BLOCK) * self.remainder as usize;
        ((slot / BLOCK).wrapping_mul(self.size()).wrapping_add(bit / 8), (bit % 8) as u32)
    }

    /// The ones of a remainder.
    #[inline(always)]
    pub(super) fn mask(self) -> u64 {
        (1 << self.remainder) - 1
    }

    #[inline(always)]
    pub(super) fn remainder_at(self, payload: &[u8], slot: usize) -> u64 {
        let (byte, bit) = self.place(slot);
        (word(payload, byte) >> bit) & self.mask()
    }

    /// The `rank`-th end, counted from 0, at slot `from` or after it.
    #[inline(always)]
    pub(super) fn select<I: Isa>(self, payload: &[u8], from: usize, rank: usize) -> Option<usize> {
        let (mut block, mut rank) = (from / BLOCK, rank);
        let mut ends = self.ends(payload, block) & !low(from % BLOCK);
        while block < self.blocks {
            let count = ends.count_ones() as usize;
            if rank < count {
                return Some(block * BLOCK + I::select(ends, rank as u32) as usize);
            }
            rank -= count;
            block += 1;
            ends = self.ends(payload, block);
        }
        None
    }

    /// The first slot that runs of earlier blocks leave to the block.
    #[inline(always)]
    pub(super) fn start<I: Isa>(self, payload: &[u8], block: usize, offset: u8) -> usize {
        match offset {
            MANY => self.walk_back::<I>(payload, block).1,
            _ => block * BLOCK + usize::from(offset),
        }
    }

    /// The last block before this one that knows its start, and [`start`](Self::start) by counting from there.
    #[cold]
    #[inline(never)]
    pub(super) fn walk_back<I: Isa>(self, payload: &[u8], block: usize) -> (usize, usize) {
        let mut known = block.saturating_sub(1);
        let mut runs = self.occupied(payload, known).count_ones() as usize;
        while known > 0 && self.meta(payload, known).offset == MANY {
            known -= 1;
            runs += self.occupied(payload, known).count_ones() as usize;
        }
        let from = known * BLOCK + usize::from(self.meta(payload, known).offset);
        (known, self.after::<I>(payload, from, runs).max(block * BLOCK))
    }

    /// The slot after the next `runs` runs that end at `from` or later; the number of slots if there are not so many.
    #[inline(always)]
    pub(super) fn after<I: Isa>(self, payload: &[u8], from: usize, runs: usize) -> usize {
        match runs.checked_sub(1) {
            None => from,
            Some(rank) => self.select::<I>(payload, from, rank).map_or(self.slots(), |end| end + 1),
        }
    }

    /// The last slot of the run of a quotient; none if it has no run.
    #[inline(always)]
    pub(super) fn last<I: Isa>(self, payload: &[u8], quotient: usize) -> Option<usize> {
        let block = quotient / BLOCK;
        let Meta { occupied, ends, offset } = self.meta(payload, block);
        if occupied >> (quotient % BLOCK) & 1 == 0 {
            return None;
        }
        let rank = (occupied & low(quotient % BLOCK)).count_ones();
        // Nearly all runs end in the block they belong to.
        let place = I::select(ends & u64::MAX.checked_shl(offset.into()).unwrap_or(0), rank);
        if place < 64 {
            return Some(block * BLOCK + place as usize);
        }
        self.select::<I>(payload, self.start::<I>(payload, block, offset), rank as usize)
    }

    /// Whether a quotient's run has a remainder.
    ///
    /// Which of a few slots a run starts and ends at cannot be predicted: in the common case, a short run that ends in its own
    /// block, nothing branches on it. `ones` is that of [`lanes`].
    #[inline(always)]
    pub(super) fn has<I: Isa>(self, payload: &[u8], quotient: usize, remainder: u64, ones: u64) -> bool {
        let (block, home) = (quotient / BLOCK, quotient % BLOCK);
        // The remainders may lie in another cache line than the words: the two come together.
        prefetch(payload, self.place(quotient).0);
        let Meta { occupied, ends, offset } = self.meta(payload, block);
        let offset = u32::from(offset);
        let ends = if offset < 64 { ends & (u64::MAX << offset) } else { 0 };
        let taken = occupied >> home & 1 == 1;
        let last = I::select(ends, (occupied & low(home)).count_ones());
        if last > 63 {
            return taken && self.search::<I>(payload, quotient, remainder);
        }
        // After the end before this one, and neither before home nor in what earlier blocks took.
        let after = 64 - (ends & low(last as usize)).leading_zeros();
        let first = after.max(offset).max(home as u32);
        let bits = (last + 1).wrapping_sub(first).wrapping_mul(self.remainder);
        if taken && bits > LANES {
            return self.search::<I>(payload, quotient, remainder);
        }
        let (byte, bit) = self.place(block * BLOCK + first as usize);
        // Zero where the remainders agree; what is not of the run never agrees.
        let differ = ((word(payload, byte) >> bit) ^ remainder.wrapping_mul(ones)) | (u64::MAX << (bits & 63));
        let zero = differ.wrapping_sub(ones) & !differ & (ones << (self.remainder - 1));
        taken & (zero != 0)
    }

    /// [`has`](Self::has) for any run.
    #[inline(never)]
    fn search<I: Isa>(self, payload: &[u8], quotient: usize, remainder: u64) -> bool {
        self.last::<I>(payload, quotient).is_some_and(|last| self.seek(payload, quotient, last, remainder).is_some())
    }

    /// The last slot with a remainder in the run of a quotient that ends at `last`. Runs ascend, so that the search can stop early.
    #[inline(always)]
    pub(super) fn seek(self, payload: &[u8], quotient: usize, last: usize, remainder: u64) -> Option<usize> {
        let mut slot = last;
        loop {
            let found = self.remainder_at(payload, slot);
            if found <= remainder {
                return (found == remainder).then_some(slot);
            }
            if slot <= quotient || self.is_end(payload, slot - 1) {
                return None;
            }
            slot -= 1;
            // A block that is all of one run, and whose first is larger too.
            let first = slot / BLOCK * BLOCK;
            if slot - first == BLOCK - 1
                && first >= quotient
                && self.ends(payload, slot / BLOCK) == 0
                && self.remainder_at(payload, first) > remainder
            {
                slot = first;
            }
        }
    }

    /// How often the run of a quotient has a remainder.
    pub(super) fn count<I: Isa>(self, payload: &[u8], quotient: usize, remainder: u64) -> u64 {
        let Some(last) = self.last::<I>(payload, quotient) else { return 0 };
        let mut count = 0;
        for slot in (quotient..=last).rev() {
            let found = self.remainder_at(payload, slot);
            count += u64::from(found == remainder);
            let ends = slot > quotient && self.is_end(payload, slot - 1);
            if found < remainder || ends {
                break;
            }
        }
        count
    }

    /// From `place` in `block` on, which the runs of all quotients up to there leave free or take: the first slot x with no run
    /// of a quotient up to x in slot `x + more` or after it.
    #[inline(always)]
    fn settle<I: Isa>(self, payload: &[u8], block: usize, place: u32, more: u32) -> Option<usize> {
        let mut place = place;
        // A step goes on by a slot at least, and a block is entered at most once.
        for block in block..self.blocks {
            let Meta { occupied, ends, offset } = self.meta(payload, block);
            let offset = u32::from(offset);
            let ends = if offset < 64 { ends & (u64::MAX << offset) } else { 0 };
            while place < 64 {
                let runs = (occupied & (u64::MAX >> (63 - place))).count_ones();
                let after = if runs == 0 { offset } else { I::select(ends, runs - 1) + 1 };
                if after <= place + more {
                    return Some(block * BLOCK + place as usize);
                }
                place = after - more;
            }
            // Quotients of the next block come after all that earlier blocks put there.
            let next = u32::from(self.meta(payload, block + 1).offset);
            if next < more {
                return Some(block * BLOCK + BLOCK - 1);
            }
            place = next - more;
        }
        None
    }

    /// The first free slot from `slot` on, which is not before what the quotients of its block up to it take.
    #[inline(always)]
    pub(super) fn free<I: Isa>(self, payload: &[u8], slot: usize) -> Option<usize> {
        self.settle::<I>(payload, slot / BLOCK, (slot % BLOCK) as u32, 0)
    }

    /// The last slot, from `slot` on, of those that move down when `slot` is taken out: what follows is free or at home.
    #[inline(always)]
    pub(super) fn movable<I: Isa>(self, payload: &[u8], slot: usize) -> usize {
        self.settle::<I>(payload, slot / BLOCK, (slot % BLOCK) as u32, 1).unwrap_or(self.slots().saturating_sub(1))
    }

    /// Calls `f` with quotient and remainder of everything that is stored, in ascending order.
    pub(super) fn each(self, payload: &[u8], mut f: impl FnMut(u64, u64)) {
        let mut slot = 0;
        for block in 0..self.blocks {
            let mut occupied = self.occupied(payload, block);
            while occupied != 0 {
                let quotient = block * BLOCK + occupied.trailing_zeros() as usize;
                occupied &= occupied - 1;
                slot = slot.max(quotient);
                while slot < self.slots() {
                    f(quotient as u64, self.remainder_at(payload, slot));
                    slot += 1;
                    if self.is_end(payload, slot - 1) {
                        break;
                    }
                }
            }
        }
    }
}
