//! slot number -> its bits in a payload: cells of 1, 2 or 4 whole bytes, or packed to the bit.
//!
//! Packed cells are read with one unaligned little-endian load of eight bytes: a cell of at most 32 bits that starts at
//! any of the eight bits of its first byte ends within 39. The payload is padded so that the last load stays inside.
//!
//! Packed cells of up to nine bits, if all have the same, end within sixteen bits: a load of two bytes serves, and seldom
//! crosses a cache line, as one of eight bytes does every eighth time.
//!
//! A width need not be whole. With a *cut*, cells before it have r bits and the others r + 1, and the place of a cell is
//! still a formula without branches:
//!
//! ```text
//!     slot   0     1     2     3      4      5            offset = slot * r + max(slot - cut, 0)
//!          |  r  |  r  |  r  | r+1  | r+1  | r+1  |       cut = 3
//! ```

/// How the cells of one table lie in its payload.
pub(crate) trait Cells: Copy {
    /// Cells of `bits` bits before slot `cut`, of one bit more from there on.
    fn new(bits: u32, cut: u64) -> Self;

    /// Where a cell is in a file whose byte `start` is the payload's first: a number for `byte` and `load`.
    fn address(self, start: usize, slot: u64) -> u64;

    /// The first byte that `load` reads.
    fn byte(address: u64) -> usize;

    /// The bits of a cell by its address; what lies above its width is left over from its neighbours.
    fn load(file: &[u8], address: u64) -> Option<u32>;

    /// The bits of a cell by its slot, as above.
    fn read(self, payload: &[u8], slot: u64) -> Option<u32>;

    /// The bits that count in the cells of a key whose first slot is this one.
    fn mask(self, first: u64) -> u32;

    /// Puts bits into a cell where they are still zero. `value` is within the width; a slot past the end changes nothing.
    #[cfg(feature = "build")]
    fn fill(self, payload: &mut [u8], slot: u64, value: u32);

    /// The length in bytes of a payload of `slots` cells, at least one.
    fn payload_len(self, slots: u64) -> u64;
}

/// Cells of `N` whole bytes.
#[derive(Clone, Copy)]
pub(crate) struct Whole<const N: usize>;

impl<const N: usize> Cells for Whole<N> {
    #[inline(always)]
    fn new(_bits: u32, _cut: u64) -> Self {
        Whole
    }

    #[inline(always)]
    fn address(self, start: usize, slot: u64) -> u64 {
        start as u64 + slot * N as u64
    }

    #[inline(always)]
    fn byte(address: u64) -> usize {
        address as usize
    }

    #[inline(always)]
    fn load(file: &[u8], address: u64) -> Option<u32> {
        let mut word = [0; 4];
        word[..N].copy_from_slice(file.get(address as usize..)?.first_chunk::<N>()?);
        Some(u32::from_le_bytes(word))
    }

    #[inline(always)]
    fn read(self, payload: &[u8], slot: u64) -> Option<u32> {
        // Seen as an array of cells, the payload needs one comparison per read.
        let mut word = [0; 4];
        word[..N].copy_from_slice(payload.as_chunks::<N>().0.get(slot as usize)?);
        Some(u32::from_le_bytes(word))
    }

    #[inline(always)]
    fn mask(self, _first: u64) -> u32 {
        u32::MAX >> (32 - 8 * N)
    }

    #[cfg(feature = "build")]
    #[inline(always)]
    fn fill(self, payload: &mut [u8], slot: u64, value: u32) {
        if let Some(cell) = payload.as_chunks_mut::<N>().0.get_mut(slot as usize) {
            for (byte, new) in cell.iter_mut().zip(value.to_le_bytes()) {
                *byte |= new;
            }
        }
    }

    fn payload_len(self, slots: u64) -> u64 {
        slots * N as u64
    }
}

/// Cells of `bits` bits before slot `cut`, of `bits + 1` from there on; at most 32 in all. Cells that are `SHORT` have no cut and
/// nine bits at most.
#[derive(Clone, Copy)]
pub(crate) struct AnyWidth<const SHORT: bool> {
    bits: u32,
    /// Past the last slot when the width is whole.
    cut: u64,
}

/// Cells of any width.
pub(crate) type Packed = AnyWidth<false>;

/// Cells of up to nine bits: as [`Packed`] without a cut, and read faster.
pub(crate) type Short = AnyWidth<true>;

impl<const SHORT: bool> AnyWidth<SHORT> {
    #[inline(always)]
    fn offset(self, slot: u64) -> u64 {
        slot * self.bits as u64 + if SHORT { 0 } else { slot.saturating_sub(self.cut) }
    }
}

impl<const SHORT: bool> Cells for AnyWidth<SHORT> {
    #[inline(always)]
    fn new(bits: u32, cut: u64) -> Self {
        AnyWidth { bits, cut }
    }

    #[inline(always)]
    fn address(self, start: usize, slot: u64) -> u64 {
        8 * start as u64 + self.offset(slot)
    }

    #[inline(always)]
    fn byte(address: u64) -> usize {
        (address >> 3) as usize
    }

    #[inline(always)]
    fn load(file: &[u8], address: u64) -> Option<u32> {
        // The compiler sees that `at + 8` cannot wrap in 64 bits: one comparison.
        let at = Self::byte(address);
        if SHORT {
            let window = file.get(at..at.wrapping_add(2))?.first_chunk()?;
            return Some(u32::from(u16::from_le_bytes(*window)) >> (address & 7));
        }
        let window = file.get(at..at.wrapping_add(8))?.first_chunk()?;
        Some((u64::from_le_bytes(*window) >> (address & 7)) as u32)
    }

    #[inline(always)]
    fn read(self, payload: &[u8], slot: u64) -> Option<u32> {
        Self::load(payload, self.offset(slot))
    }

    #[inline(always)]
    fn mask(self, first: u64) -> u32 {
        let bits = self.bits + (!SHORT && first >= self.cut) as u32;
        ((1u64 << bits) - 1) as u32
    }

    #[cfg(feature = "build")]
    #[inline(always)]
    fn fill(self, payload: &mut [u8], slot: u64, value: u32) {
        let offset = self.offset(slot);
        if let Some(window) = payload.get_mut(Self::byte(offset)..).and_then(|p| p.first_chunk_mut::<8>()) {
            *window = (u64::from_le_bytes(*window) | (value as u64) << (offset & 7)).to_le_bytes();
        }
    }

    fn payload_len(self, slots: u64) -> u64 {
        (self.offset(slots - 1) >> 3) + 8
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::hash::scramble;

    /// What goes in comes out, cell by cell, and the last load ends less than `spare` bytes before the payload ends.
    fn round_trip<C: Cells>(cells: C, slots: u64, spare: usize) {
        let len = cells.payload_len(slots) as usize;
        let mut payload = vec![0; len];
        let value = |slot| scramble(slot) as u32 & cells.mask(slot);
        for slot in 0..slots {
            cells.fill(&mut payload, slot, value(slot));
        }
        for slot in 0..slots {
            assert_eq!(cells.read(&payload, slot).unwrap() & cells.mask(slot), value(slot));
            let file = [&[0x77; 3], &payload[..]].concat();
            assert_eq!(C::load(&file, cells.address(3, slot)).unwrap() & cells.mask(slot), value(slot));
            assert!((3..file.len()).contains(&C::byte(cells.address(3, slot))));
        }
        assert!(cells.read(&payload[..len - spare], slots - 1).is_none());
        assert!(C::load(&payload, cells.address(len, 0)).is_none() && cells.read(&payload, 1 << 40).is_none());
    }

    #[test]
    fn cells_hold_what_they_are_given() {
        for slots in [1, 2, 3, 64, 1001] {
            round_trip(Whole::<1>, slots, 1);
            round_trip(Whole::<2>, slots, 1);
            round_trip(Whole::<4>, slots, 1);
            for bits in 1..=9 {
                round_trip(Short::new(bits, u64::MAX), slots, 7);
            }
            for bits in 1..=32 {
                round_trip(Packed::new(bits, u64::MAX), slots, 1);
                if bits < 32 {
                    round_trip(Packed::new(bits, slots / 3), slots, 1);
                    round_trip(Packed::new(bits, 0), slots, 1);
                }
            }
        }
    }
}
