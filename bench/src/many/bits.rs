//! numbers -> an array of bits.

/// Bits that are set one by one and read one by one or 64 at a time.
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// So many zeros, and a word of zeros after them, which unaligned reads may touch.
    pub(super) fn zeros(n: usize) -> Bits {
        Bits(vec![0; n.div_ceil(64) + 1])
    }

    #[inline(always)]
    pub(super) fn set(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 != 0
    }

    /// The 64 bits from bit `i` on.
    #[inline(always)]
    pub(super) fn word_at(&self, i: usize) -> u64 {
        // Two shifts, because a shift by 64 is not defined.
        self.0[i / 64] >> (i % 64) | self.0[i / 64 + 1] << 1 << (63 - i % 64)
    }

    /// Replaces the `width` bits from bit `i` on, at most 64, by those of `value`.
    pub(super) fn replace(&mut self, i: usize, width: u32, value: u64) {
        let mask = u128::from(u64::MAX >> (64 - width)) << (i % 64);
        let value = u128::from(value) << (i % 64);
        let both = u128::from(self.0[i / 64]) | u128::from(self.0[i / 64 + 1]) << 64;
        let both = both & !mask | value;
        self.0[i / 64] = both as u64;
        self.0[i / 64 + 1] = (both >> 64) as u64;
    }

    /// The whole words.
    pub(super) fn words(&self) -> &[u64] {
        &self.0[..self.0.len() - 1]
    }

    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        let n = self.0.len() - 1;
        &mut self.0[..n]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_written_across_words() {
        let mut bits = Bits::zeros(300);
        for i in [0, 63, 64, 130, 299] {
            bits.set(i);
            assert!(bits.get(i));
        }
        for i in 0..236 {
            let expected = (0..64).fold(0, |word, j| word | u64::from(bits.get(i + j)) << j);
            assert_eq!(bits.word_at(i), expected, "{i}");
        }
        bits.replace(60, 12, 0xabc);
        assert_eq!((bits.word_at(60) & 0xfff, bits.get(0), bits.get(130)), (0xabc, true, true));
        bits.replace(128, 64, 7);
        assert_eq!(bits.word_at(128), 7);
    }
}
