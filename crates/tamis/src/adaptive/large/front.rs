//! bins of signatures, the rest of each remainder next to them -> who holds a slot (\[Broom\] section 4.3, the front yard).
//!
//! A bin is two cache lines of 64 signatures, compared all at once. The signature of a key is unique in its bin, so there is at most
//! one slot whose rest is worth a look.

use super::super::bits;
use crate::error::FormatError;
use crate::math::large::{SIGNATURES, SLOTS as SLOTS_OF_A_BIN};

pub(super) const SLOTS: usize = SLOTS_OF_A_BIN as usize;
/// Words that looking at a bin and one rest touches.
pub(super) const WORDS: u32 = SLOTS as u32 / 4 + 2;

/// Signatures; 0 is a free slot.
#[repr(align(128))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bin([u16; SLOTS]);

/// What the front yard knows of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Print {
    pub(super) bin: usize,
    /// Never 0.
    pub(super) signature: u16,
    pub(super) rest: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Front {
    bins: Vec<Bin>,
    /// Bits of a rest.
    pub(super) width: u32,
    rests: Vec<u64>,
    pub(super) keys: u64,
}

impl Front {
    /// Empty bins; none if there is no memory for so many.
    pub(super) fn new(bins: u64, width: u32) -> Option<Front> {
        let count = usize::try_from(bins).ok()?;
        let words = usize::try_from(words(bins, width)?).ok()?;
        let mut front = Front { bins: vec![], width, rests: vec![], keys: 0 };
        front.bins.try_reserve_exact(count).ok()?;
        front.rests.try_reserve_exact(words).ok()?;
        front.bins.resize(count, Bin([0; SLOTS]));
        front.rests.resize(words, 0);
        Some(front)
    }

    pub(super) fn bins(&self) -> u64 {
        self.bins.len() as u64
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.bins.as_slice()) + size_of_val(self.rests.as_slice())
    }

    /// Bin and signature of a hash.
    #[inline(always)]
    pub(super) fn place(&self, hash: u64) -> (usize, u16) {
        let product = u128::from(hash) * self.bins.len() as u128;
        let signature = (u128::from(product as u64) * u128::from(SIGNATURES)) >> 64;
        ((product >> 64) as usize, signature as u16 + 1)
    }

    /// The rest of a remainder, from a hash of its own.
    #[inline(always)]
    pub(super) fn rest_of(&self, hash: u64) -> u64 {
        // Two shifts, because the width may be 0.
        (hash >> 1) >> (63 - self.width)
    }

    /// The slot of a signature in its bin.
    #[inline(always)]
    pub(super) fn find(&self, bin: usize, signature: u16) -> Option<usize> {
        // All are compared, without a branch between them: that is what processors do in one go. At most one is equal.
        let slots = self.bins[bin].0.iter().zip(1..);
        let at = slots.fold(0u16, |found, (&slot, at)| found | if slot == signature { at } else { 0 });
        (at > 0).then(|| bin * SLOTS + usize::from(at) - 1)
    }

    /// A free slot, counted from the first of its bin.
    pub(super) fn free_slot(&self, bin: usize) -> Option<usize> {
        self.bins[bin].0.iter().position(|&slot| slot == 0)
    }

    pub(super) fn holder(&self, print: &Print) -> Option<usize> {
        self.find(print.bin, print.signature).filter(|&slot| self.rest(slot) == print.rest)
    }

    #[inline(always)]
    pub(super) fn rest(&self, slot: usize) -> u64 {
        let (word, shift) = self.place_of(slot);
        bits::get(&self.rests[word..], shift, self.width)
    }

    fn set_rest(&mut self, slot: usize, rest: u64) {
        let (word, shift) = self.place_of(slot);
        bits::put(&mut self.rests[word..], shift, self.width, rest);
    }

    #[inline(always)]
    fn place_of(&self, slot: usize) -> (usize, usize) {
        let bit = slot as u64 * u64::from(self.width);
        ((bit / 64) as usize, (bit % 64) as usize)
    }

    /// Puts a print into a free slot of its bin, if there is one.
    pub(super) fn put(&mut self, print: Print) {
        let Some(at) = self.free_slot(print.bin) else { return };
        self.bins[print.bin].0[at] = print.signature;
        self.set_rest(print.bin * SLOTS + at, print.rest);
        self.keys += 1;
    }

    pub(super) fn free(&mut self, slot: usize) {
        self.bins[slot / SLOTS].0[slot % SLOTS] = 0;
        self.set_rest(slot, 0);
        self.keys -= 1;
    }

    /// Signatures as bytes, and the words of the rests.
    pub(super) fn payloads(&self) -> (Vec<u8>, &[u64]) {
        let mut signatures = Vec::with_capacity(self.bins.len() * SLOTS * 2);
        for bin in &self.bins {
            signatures.extend_from_slice(bin.0.map(u16::to_le_bytes).as_flattened());
        }
        (signatures, &self.rests)
    }

    /// Bins from signatures and rests; the error says what no filter writes.
    pub(super) fn from_payloads(bins: u64, width: u32, bytes: &[u8], rests: Vec<u64>) -> Result<Front, FormatError> {
        let (found, expected) = (bytes.len() as u64, SLOTS as u64 * 2 * bins);
        let reason = || format!("signatures: {found} bytes, expected {expected} for {bins} bins");
        FormatError::check(found == expected, reason)?;
        let found = rests.len() as u64;
        let reason = || format!("rests: {found} words, not those of {bins} bins of {width} bits");
        FormatError::check(words(bins, width) == Some(found), reason)?;
        let (pairs, _) = bytes.as_chunks::<2>();
        let (slots, _) = pairs.as_chunks::<SLOTS>();
        let bins = slots.iter().map(|slots| Bin(slots.map(u16::from_le_bytes))).collect();
        let mut front = Front { bins, width, rests, keys: 0 };
        for (number, bin) in front.bins.iter().enumerate() {
            let mut taken: Vec<u16> = bin.0.iter().copied().filter(|&slot| slot != 0).collect();
            front.keys += taken.len() as u64;
            taken.sort_unstable();
            let distinct = taken.windows(2).all(|pair| pair[0] != pair[1]);
            FormatError::check(distinct, || format!("bin {number}: a signature twice, expected distinct ones"))?;
            let clean = (0..SLOTS).all(|at| bin.0[at] != 0 || front.rest(number * SLOTS + at) == 0);
            FormatError::check(clean, || format!("bin {number}: the rest of a free slot is not 0"))?;
        }
        // One bit past the last rest, all that is there must be 0.
        let (word, shift) = front.place_of(front.bins.len() * SLOTS);
        let clean = front.rests[word] >> shift == 0 && front.rests[word + 1..].iter().all(|&word| word == 0);
        FormatError::check(clean, || "rests: bits after the last one are not 0")?;
        Ok(front)
    }
}

/// Words of the rests: one more than they fill, so that two neighbours can always be read.
fn words(bins: u64, width: u32) -> Option<u64> {
    Some(bins.checked_mul(SLOTS_OF_A_BIN)?.checked_mul(u64::from(width))?.div_ceil(64).max(1) + 1)
}
