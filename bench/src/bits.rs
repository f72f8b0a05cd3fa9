//! numbers -> an array of bits.

/// Bits that are set one by one and read 64 at a time.
pub struct Bits(Vec<u64>);

impl Bits {
    /// So many zeros, and a word of zeros after them, which unaligned reads may touch.
    pub fn zeros(n: usize) -> Bits {
        Bits(vec![0; n.div_ceil(64) + 1])
    }

    /// Makes bit `i` one.
    #[inline(always)]
    pub fn set(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    /// The 64 bits from bit `i` on.
    #[inline(always)]
    pub fn word_at(&self, i: usize) -> u64 {
        // Two shifts, because a shift by 64 is not defined.
        self.0[i / 64] >> (i % 64) | self.0[i / 64 + 1] << 1 << (63 - i % 64)
    }

    /// Replaces the `width` bits from bit `i` on, at most 64, by those of `value`.
    pub fn replace(&mut self, i: usize, width: u32, value: u64) {
        let mask = u128::from(u64::MAX >> (64 - width)) << (i % 64);
        let value = u128::from(value) << (i % 64);
        let both = u128::from(self.0[i / 64]) | u128::from(self.0[i / 64 + 1]) << 64;
        let both = both & !mask | value;
        self.0[i / 64] = both as u64;
        self.0[i / 64 + 1] = (both >> 64) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_written_across_words() {
        let mut bits = Bits::zeros(300);
        let ones = [0, 63, 64, 130, 299];
        ones.into_iter().for_each(|i| bits.set(i));
        for i in 0..=236 {
            let expected =
                ones.iter().filter(|&&one| (i..i + 64).contains(&one)).fold(0, |word, one| word | 1 << (one - i));
            assert_eq!(bits.word_at(i), expected, "{i}");
        }
        bits.replace(60, 12, 0xabc);
        assert_eq!((bits.word_at(60) & 0xfff, bits.word_at(0) & 1, bits.word_at(130) & 1), (0xabc, 1, 1));
        bits.replace(128, 64, 7);
        assert_eq!(bits.word_at(128), 7);
    }
}
