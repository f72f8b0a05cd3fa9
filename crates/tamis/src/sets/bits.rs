//! small numbers <-> a row of bits: what lists of sets are written in.
//!
//! Bits fill bytes from the low end. A reader never fails: behind the last byte everything is zero, so damaged bytes give some number.

#[derive(Clone, Debug, Default)]
pub(crate) struct BitWriter {
    pub(super) bytes: Vec<u8>,
    /// Bits written; the last byte may have room.
    pub(super) len: u64,
}

impl BitWriter {
    /// Appends the low `count` bits of `value`; at most 56.
    #[inline]
    pub(crate) fn put(&mut self, value: u64, count: u32) {
        debug_assert!(count <= 56 && value >> count == 0);
        let (at, shift) = ((self.len / 8) as usize, (self.len % 8) as u32);
        let end = ((self.len + u64::from(count)).div_ceil(8)) as usize;
        self.bytes.resize(end.max(self.bytes.len()), 0);
        for (byte, more) in self.bytes[at..end].iter_mut().zip((value << shift).to_le_bytes()) {
            *byte |= more;
        }
        self.len += u64::from(count);
    }

    /// A number from 1 on: as many zeros as it has bits after the first, a one, and those bits.
    pub(crate) fn put_gamma(&mut self, value: u32) {
        debug_assert!(value > 0);
        let more = value.ilog2();
        self.put(1 << more, more + 1);
        self.put(u64::from(value) - (1 << more), more);
    }

    /// Appends `len` bits that start at bit `at` of `bytes`.
    pub(crate) fn copy(&mut self, bytes: &[u8], at: u64, len: u64) {
        let mut from = BitReader::new(bytes, at);
        let mut left = len;
        while left > 0 {
            let now = left.min(48) as u32;
            self.put(from.take(now), now);
            left -= u64::from(now);
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: u64) -> BitReader<'a> {
        BitReader { bytes, at }
    }

    /// The next 57 bits or more, without moving on.
    #[inline(always)]
    fn peek(&self) -> u64 {
        let at = usize::try_from(self.at / 8).unwrap_or(usize::MAX);
        let shift = self.at % 8;
        match self.bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(word) => u64::from_le_bytes(*word) >> shift,
            None => self.peek_end(at) >> shift,
        }
    }

    #[cold]
    fn peek_end(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(self.bytes.get(at..).unwrap_or(&[])) {
            *to = *from;
        }
        u64::from_le_bytes(word)
    }

    /// The next `count` bits; at most 56.
    #[inline(always)]
    pub(crate) fn take(&mut self, count: u32) -> u64 {
        let value = self.peek() & ((1 << count) - 1);
        self.at = self.at.saturating_add(u64::from(count));
        value
    }

    /// What [`BitWriter::put_gamma`] wrote; any number where it wrote nothing.
    #[inline]
    pub(crate) fn take_gamma(&mut self) -> u32 {
        let more = self.peek().trailing_zeros().min(31);
        self.at = self.at.saturating_add(u64::from(more) + 1);
        (1 << more) + self.take(more) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_taken() {
        let mut out = BitWriter::default();
        let values: Vec<(u64, u32)> =
            (0..500u64).map(|i| (i * 0x9e37_79b9 % (1 << (i % 57)), (i % 57) as u32)).collect();
        values.iter().for_each(|&(value, count)| out.put(value, count));
        let gammas = [1, 2, 3, 4, 7, 8, 1000, u32::MAX / 2, u32::MAX];
        gammas.iter().for_each(|&value| out.put_gamma(value));
        let mut copied = BitWriter::default();
        copied.put(5, 3);
        copied.copy(&out.bytes, 0, out.len);
        assert_eq!(copied.len, out.len + 3);
        for (bytes, at) in [(&out.bytes, 0), (&copied.bytes, 3)] {
            let mut from = BitReader::new(bytes, at);
            for &(value, count) in &values {
                assert_eq!(from.take(count), value);
            }
            for value in gammas {
                assert_eq!(from.take_gamma(), value);
            }
        }
    }

    #[test]
    fn behind_the_end_everything_is_zero() {
        let mut from = BitReader::new(&[0xff], 4);
        assert_eq!(from.take(8), 15);
        assert_eq!((from.take(56), from.take_gamma()), (0, 1 << 31));
        assert_eq!(BitReader::new(&[1], u64::MAX).take(3), 0);
    }
}
