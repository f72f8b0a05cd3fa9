//! a payload + a fingerprint -> the payload with one slot more, or one fewer.
//!
//! A new remainder goes to its place in its run; what lies there and after it, up to the first free slot, moves up by one.
//! Taking one out is the reverse, down to the first slot that is at home or free. A block is as many words as a remainder has
//! bits, so that moving its slots is a shift of words.

use super::table::{BLOCK, MANY, META, Meta, Table, low, word};
use crate::arch::{Isa, prefetch};

/// Writes the word at `at`, where there are eight bytes.
#[inline(always)]
fn put_word(payload: &mut [u8], at: usize, word: u64) {
    if let Some(bytes) = payload.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<8>()) {
        *bytes = word.to_le_bytes();
    }
}

/// What became of an insertion. Only the first has changed anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Put {
    /// It is there; so many blocks were read or written beyond its own.
    Done(usize),
    /// No slot from its place on is free.
    Full,
    /// As many copies as are allowed are there.
    Many,
}

impl Table {
    #[inline(always)]
    pub(super) fn set_occupied(self, payload: &mut [u8], quotient: usize, yes: bool) {
        let at = self.words_at(quotient / BLOCK);
        let bit = 1 << (quotient % BLOCK);
        let word = word(payload, at);
        put_word(payload, at, if yes { word | bit } else { word & !bit });
    }

    #[inline(always)]
    fn set_ends(self, payload: &mut [u8], block: usize, ends: u64) {
        put_word(payload, self.words_at(block).wrapping_add(8), ends);
    }

    #[inline(always)]
    pub(super) fn set_end(self, payload: &mut [u8], slot: usize, yes: bool) {
        let ends = self.ends(payload, slot / BLOCK);
        let bit = 1 << (slot % BLOCK);
        self.set_ends(payload, slot / BLOCK, if yes { ends | bit } else { ends & !bit });
    }

    #[inline(always)]
    pub(super) fn set_offset(self, payload: &mut [u8], block: usize, offset: usize) {
        if let Some(byte) = payload.get_mut(self.words_at(block).wrapping_add(META - 1)) {
            *byte = offset.min(MANY.into()) as u8;
        }
    }

    #[inline(always)]
    pub(super) fn set_remainder(self, payload: &mut [u8], slot: usize, remainder: u64) {
        let (byte, bit) = self.place(slot);
        let word = word(payload, byte) & !(self.mask() << bit);
        put_word(payload, byte, word | remainder << bit);
    }

    /// Moves slots `from..to` of a block up by one, ends too; slot `from` keeps its remainder and is no end.
    #[inline(always)]
    fn move_up(self, payload: &mut [u8], block: usize, from: usize, to: usize) {
        let ends = self.ends(payload, block);
        let moved = (u64::MAX >> (BLOCK - 1 - to)) & !low(from);
        self.set_ends(payload, block, (ends & !moved) | (ends << 1 & moved & !(1 << from)));
        self.move_remainders_up(payload, block, from, to);
    }

    #[inline(always)]
    fn move_remainders_up(self, payload: &mut [u8], block: usize, from: usize, to: usize) {
        let r = self.remainder as usize;
        // The bits that change: from the second of these slots to the end of the last.
        let (start, end) = ((from + 1) * r, (to + 1) * r);
        let Some(words) = payload.get_mut(block.wrapping_mul(self.size())..).and_then(|rest| rest.get_mut(..8 * r))
        else {
            return;
        };
        let (words, _) = words.as_chunks_mut::<8>();
        let (lowest, highest) = (start / 64, (end - 1) / 64);
        let mut mask = u64::MAX >> (63 - (end - 1) % 64);
        let mut here = words.get(highest).map_or(0, |&word| u64::from_le_bytes(word));
        for i in (lowest..=highest).rev() {
            let below = i.checked_sub(1).and_then(|i| words.get(i)).map_or(0, |&word| u64::from_le_bytes(word));
            if i == lowest {
                mask &= !low(start % 64);
            }
            if let Some(word) = words.get_mut(i) {
                *word = ((here & !mask) | ((here << r | below >> (64 - r)) & mask)).to_le_bytes();
            }
            (here, mask) = (below, u64::MAX);
        }
    }

    /// Moves slots `from + 1..=to` of a block down by one, ends too; slot `to` is zero then, and no end.
    #[inline(always)]
    fn move_down(self, payload: &mut [u8], block: usize, from: usize, to: usize) {
        let ends = self.ends(payload, block);
        let moved = (u64::MAX >> (BLOCK - 1 - to)) & !low(from);
        self.set_ends(payload, block, (ends & !moved) | (ends >> 1 & moved & !(1 << to)));
        let r = self.remainder as usize;
        let (start, end) = (from * r, to * r);
        let at = block.wrapping_mul(self.size());
        for i in start / 64..end.div_ceil(64) {
            let here = word(payload, at.wrapping_add(8 * i));
            let above = word(payload, at.wrapping_add(8 * i + 8));
            let mut mask = u64::MAX;
            if i == start / 64 {
                mask &= !low(start % 64);
            }
            if i == end / 64 {
                mask &= low(end % 64);
            }
            let shifted = here >> r | above << (64 - r);
            put_word(payload, at.wrapping_add(8 * i), (here & !mask) | (shifted & mask));
        }
        self.set_remainder(payload, block * BLOCK + to, 0);
    }

    /// Adds a fingerprint. Of one whose run leaves its block no more than `copies` are allowed.
    #[inline(always)]
    pub(super) fn insert<I: Isa>(self, payload: &mut [u8], place: (usize, u64), copies: usize) -> Put {
        match self.insert_near::<I>(payload, place.0, place.1) {
            true => Put::Done(0),
            false => self.insert_far::<I>(payload, place, copies),
        }
    }

    /// [`insert`](Self::insert) where all that moves lies in the quotient's block; false, and nothing is changed, elsewhere.
    #[inline(always)]
    fn insert_near<I: Isa>(self, payload: &mut [u8], quotient: usize, remainder: u64) -> bool {
        let (block, home) = (quotient / BLOCK, (quotient % BLOCK) as u32);
        prefetch(payload, self.place(quotient).0);
        let Meta { occupied, ends: all, offset } = self.meta(payload, block);
        let offset = u32::from(offset);
        if offset > 63 || block >= self.blocks {
            return false;
        }
        let ends = all & (u64::MAX << offset);
        let before = (occupied & low(home as usize)).count_ones();
        // The slot after the first `runs` runs of the block; 65 if one of them ends elsewhere.
        let after = |runs: u32| if runs == 0 { offset } else { I::select(ends, runs - 1) + 1 };
        let taken = occupied >> home & 1 == 1;
        let mut slot = after(before).max(home);
        let end = if taken { after(before + 1) } else { slot };
        let mut free = end;
        if taken || slot > home {
            loop {
                if free > 63 {
                    return false;
                }
                let next = after((occupied & (u64::MAX >> (63 - free))).count_ones());
                if next <= free {
                    break;
                }
                free = next;
            }
        }
        let at = block * BLOCK;
        while slot < end && self.remainder_at(payload, at + slot as usize) <= remainder {
            slot += 1;
        }
        if slot < free {
            self.move_remainders_up(payload, block, slot as usize, free as usize);
        }
        self.set_remainder(payload, at + slot as usize, remainder);
        let moved = (u64::MAX >> (63 - free)) & (u64::MAX << slot);
        let mut all = (all & !moved) | (all << 1 & moved & !(1 << slot));
        if slot == end {
            // It is the last of its run: what was the last before is no more.
            all = (all & !(u64::from(taken) << slot >> 1)) | 1 << slot;
        }
        let words = self.words_at(block);
        put_word(payload, words, occupied | 1 << home);
        put_word(payload, words.wrapping_add(8), all);
        true
    }

    /// [`insert`](Self::insert) anywhere.
    #[inline(never)]
    fn insert_far<I: Isa>(self, payload: &mut [u8], (quotient, remainder): (usize, u64), copies: usize) -> Put {
        let (block, home) = (quotient / BLOCK, quotient % BLOCK);
        let meta = self.meta(payload, block);
        let occupied = meta.occupied >> home & 1 == 1;
        let before = (meta.occupied & low(home)).count_ones() as usize;
        let (known, start) = match meta.offset {
            MANY => self.walk_back::<I>(payload, block),
            offset => (block, block * BLOCK + usize::from(offset)),
        };
        let mut slot = self.after::<I>(payload, start, before).max(quotient);
        // Where it belongs: after the last that is not larger. `tail` if it becomes the end of its run.
        let mut after = slot;
        let mut tail = true;
        if occupied {
            let Some(end) = self.select::<I>(payload, slot, 0) else { return Put::Full };
            after = end + 1;
            let run = slot;
            let mut larger = after;
            while slot < larger {
                let middle = slot + (larger - slot) / 2;
                match self.remainder_at(payload, middle) <= remainder {
                    true => slot = middle + 1,
                    false => larger = middle,
                }
            }
            if slot - run >= copies && self.remainder_at(payload, slot - copies) == remainder {
                return Put::Many;
            }
            tail = slot > end;
        }
        let Some(free) = self.free::<I>(payload, after).filter(|&free| free >= slot) else { return Put::Full };
        let (first, last) = (slot / BLOCK, free / BLOCK);
        for block in (first..=last).rev() {
            let from = if block == first { slot % BLOCK } else { 0 };
            let to = if block == last { free % BLOCK } else { BLOCK - 1 };
            self.move_up(payload, block, from, to);
            // What falls out of the block below comes in.
            if block > first {
                let below = block * BLOCK - 1;
                let (moved, end) = (self.remainder_at(payload, below), self.is_end(payload, below));
                self.set_remainder(payload, block * BLOCK, moved);
                self.set_end(payload, block * BLOCK, end);
            }
        }
        self.set_remainder(payload, slot, remainder);
        if tail {
            self.set_end(payload, slot, true);
            match occupied {
                true if slot > 0 => self.set_end(payload, slot - 1, false),
                true => {}
                false => self.set_occupied(payload, quotient, true),
            }
        }
        for block in quotient / BLOCK + 1..=last {
            let offset = self.meta(payload, block).offset;
            self.set_offset(payload, block, usize::from(offset) + 1);
        }
        Put::Done(last.saturating_sub(known))
    }

    /// Takes out one copy of a fingerprint; false, and nothing is changed, if there is none.
    #[inline(always)]
    pub(super) fn remove<I: Isa>(self, payload: &mut [u8], quotient: usize, remainder: u64) -> bool {
        let Some(end) = self.last::<I>(payload, quotient) else { return false };
        let Some(slot) = self.seek(payload, quotient, end, remainder) else { return false };
        let alone = slot <= quotient || self.is_end(payload, slot - 1);
        let last = self.movable::<I>(payload, slot).max(slot);
        for block in slot / BLOCK..=last / BLOCK {
            let from = if block == slot / BLOCK { slot % BLOCK } else { 0 };
            let to = if block == last / BLOCK { last % BLOCK } else { BLOCK - 1 };
            // What is lowest in this block goes to the one below.
            if block > slot / BLOCK {
                let (moved, ends) = (self.remainder_at(payload, block * BLOCK), self.is_end(payload, block * BLOCK));
                self.set_remainder(payload, block * BLOCK - 1, moved);
                self.set_end(payload, block * BLOCK - 1, ends);
            }
            self.move_down(payload, block, from, to);
        }
        match () {
            () if slot < end => {}
            () if alone => self.set_occupied(payload, quotient, false),
            () => self.set_end(payload, slot - 1, true),
        }
        let first = quotient / BLOCK;
        let mut start = self.start::<I>(payload, first, self.meta(payload, first).offset);
        for block in first + 1..=last / BLOCK {
            let runs = self.occupied(payload, block - 1).count_ones() as usize;
            start = self.after::<I>(payload, start, runs).max(block * BLOCK);
            self.set_offset(payload, block, start - block * BLOCK);
        }
        true
    }
}
