//! yes or no, with what is known of its chances -> a fraction of a bit: the coder under a map's table of values.
//!
//! An arithmetic coder of single decisions. Every decision has a [`Chance`] that learns: it moves a little towards what it saw. The
//! interval `low ..= high` shrinks by every decision, and bytes on which both ends agree are written. No chance ever falls
//! below 1/66, so that a decision takes a fiftieth of a bit at least, and a reader knows how many decisions some bytes can
//! be worth.

use crate::error::FormatError;

/// How likely a yes is, in 4096ths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u16);

impl Default for Chance {
    fn default() -> Chance {
        Chance(2048)
    }
}

impl Chance {
    /// Chances move towards this many 4096ths, or so many less than all; they stop 31 before.
    const MIN_CHANCE: u16 = 32;

    fn learn(&mut self, yes: bool) {
        match yes {
            true => self.0 += (4096 - Chance::MIN_CHANCE).saturating_sub(self.0) >> 5,
            false => self.0 -= self.0.saturating_sub(Chance::MIN_CHANCE) >> 5,
        }
    }

    /// The last place of an interval that means yes.
    fn split(self, low: u32, high: u32) -> u32 {
        low + ((u64::from(high - low) * u64::from(self.0)) >> 12) as u32
    }
}

/// More decisions than this cannot come out of a byte.
pub(crate) const MAX_DECISIONS_PER_BYTE: u64 = 512;

/// Decisions on the way to a number below 2^64.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    zero: Chance,
    /// The tree of the lengths 1 to 64.
    length: [Chance; 64],
}

impl Default for Number {
    fn default() -> Number {
        Number { zero: Chance::default(), length: [Chance::default(); 64] }
    }
}

#[derive(Debug)]
pub(crate) struct Encoder {
    low: u32,
    high: u32,
    out: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder { low: 0, high: u32::MAX, out: vec![] }
    }

    pub(crate) fn put(&mut self, yes: bool, chance: &mut Chance) {
        self.narrow(yes, *chance);
        chance.learn(yes);
    }

    fn narrow(&mut self, yes: bool, chance: Chance) {
        let middle = chance.split(self.low, self.high);
        match yes {
            true => self.high = middle,
            false => self.low = middle + 1,
        }
        while (self.low ^ self.high) >> 24 == 0 {
            self.out.push((self.high >> 24) as u8);
            self.low <<= 8;
            self.high = self.high << 8 | 255;
        }
    }

    /// A number: how long it is, by chances, then its bits below the first as they are.
    pub(crate) fn number(&mut self, value: u64, model: &mut Number) {
        self.put(value == 0, &mut model.zero);
        if value == 0 {
            return;
        }
        let length = value.ilog2();
        let mut node = 1;
        for bit in (0..6).rev() {
            let yes = length >> bit & 1 == 1;
            self.put(yes, &mut model.length[node]);
            node = 2 * node + yes as usize;
        }
        for bit in (0..length).rev() {
            self.narrow(value >> bit & 1 == 1, Chance::default());
        }
    }

    /// The bytes; as few of the interval's as tell it from its neighbours.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.out.push((self.low >> 24) as u8 + 1);
        self.out
    }
}

/// Reads decisions. Behind the last byte come zeros, four of them; then the bytes are too few.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    low: u32,
    high: u32,
    window: u32,
    bytes: &'a [u8],
    borrowed: u32,
    empty: bool,
    /// Decisions that may still be read.
    pub(super) left: u64,
}

impl Decoder<'_> {
    /// Reads so many decisions at most.
    pub(crate) fn new(bytes: &[u8], most: u64) -> Decoder<'_> {
        let empty = bytes.is_empty();
        let mut decoder = Decoder { low: 0, high: u32::MAX, window: 0, bytes, borrowed: 0, empty, left: most };
        for _ in 0..4 {
            decoder.next();
        }
        decoder
    }

    fn next(&mut self) {
        self.borrowed += u32::from(self.bytes.is_empty());
        let (&byte, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
        self.bytes = rest;
        self.window = self.window << 8 | u32::from(byte);
    }

    pub(crate) fn get(&mut self, chance: &mut Chance) -> bool {
        let yes = self.narrow(*chance);
        chance.learn(yes);
        yes
    }

    fn narrow(&mut self, chance: Chance) -> bool {
        self.left = self.left.saturating_sub(1);
        let middle = chance.split(self.low, self.high);
        let yes = self.window <= middle;
        match yes {
            true => self.high = middle,
            false => self.low = middle + 1,
        }
        while (self.low ^ self.high) >> 24 == 0 {
            self.low <<= 8;
            self.high = self.high << 8 | 255;
            self.next();
        }
        yes
    }

    pub(crate) fn number(&mut self, model: &mut Number) -> u64 {
        if self.get(&mut model.zero) {
            return 0;
        }
        let mut node = 1;
        for _ in 0..6 {
            node = 2 * node + self.get(&mut model.length[node]) as usize;
        }
        let length = node - 64;
        (0..length).fold(1, |value, _| value << 1 | self.narrow(Chance::default()) as u64)
    }

    /// Whether the bytes were enough for what was read, and worth no more than they may be.
    pub(crate) fn check(&self) -> Result<(), FormatError> {
        match self.borrowed {
            _ if self.left == 0 => {
                Err(FormatError::invalid("directory: the table of values takes more time than its file is worth"))
            }
            ..=4 => Ok(()),
            _ => Err(FormatError::invalid("directory: the table of values is too short for its values")),
        }
    }

    /// Whether these were the bytes that an encoder makes: the last one stands for four, and of nothing there is none.
    pub(crate) fn finish(&self) -> Result<(), FormatError> {
        self.check()?;
        match self.borrowed {
            3 => Ok(()),
            4 if self.empty => Ok(()),
            4 => Err(FormatError::invalid("directory: the table of values is too short for its values")),
            _ => Err(FormatError::invalid("directory: bytes after the table of values")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let numbers: Vec<u64> = (0..20_000u64).map(|i| crate::hash::scramble(i) >> (i % 65).min(63)).collect();
        let decisions: Vec<bool> = (0..20_000u64).map(|i| crate::hash::scramble(!i).is_multiple_of(50)).collect();
        let (mut model, mut chance) = (Number::default(), Chance::default());
        let mut encoder = Encoder::new();
        for (&number, &yes) in numbers.iter().zip(&decisions) {
            encoder.number(number, &mut model);
            encoder.put(yes, &mut chance);
        }
        let bytes = encoder.finish();
        let (mut model, mut chance) = (Number::default(), Chance::default());
        let mut decoder = Decoder::new(&bytes, u64::MAX);
        for (&number, &yes) in numbers.iter().zip(&decisions) {
            assert_eq!((decoder.number(&mut model), decoder.get(&mut chance)), (number, yes));
        }
        decoder.finish().unwrap();
        // Fewer bytes are noticed while there is something to read.
        let (mut model, mut chance) = (Number::default(), Chance::default());
        let mut decoder = Decoder::new(&bytes[..bytes.len() / 2], u64::MAX);
        for _ in 0..20_000 {
            decoder.number(&mut model);
            decoder.get(&mut chance);
        }
        assert!(decoder.check().is_err());
    }

    /// A decision takes what its chance says it should, and never less than the bound.
    #[test]
    fn decisions_take_their_entropy() {
        for (one_in, most) in [(2u64, 1.03), (10, 0.50), (100, 0.10), (u64::MAX, 0.024)] {
            let (mut chance, mut encoder) = (Chance::default(), Encoder::new());
            let n = 100_000u64;
            (0..n).for_each(|i| encoder.put(crate::hash::scramble(i).is_multiple_of(one_in), &mut chance));
            let bytes = encoder.finish().len() as u64;
            assert!((bytes * 8) as f64 <= most * n as f64, "one in {one_in}: {bytes}");
            assert!(n <= bytes * MAX_DECISIONS_PER_BYTE, "one in {one_in}: {bytes}");
        }
    }
}
