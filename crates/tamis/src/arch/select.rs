//! a word + a rank -> where that one of the word is: the inner step of the quotient filter.

/// The place of the `rank`-th one of `word`, counted from 0; 64 or more if there are not so many. The portable twin of [`pdep`].
#[inline(always)]
pub(super) fn scalar(word: u64, rank: u32) -> u32 {
    if rank >= word.count_ones() {
        return 64;
    }
    let (mut word, mut rank, mut place) = (word, rank, 0);
    for half in [32, 16, 8, 4, 2, 1] {
        let low = (word & ((1 << half) - 1)).count_ones();
        // The one sought lies in the upper half if the lower one has too few.
        let up = u32::from(low <= rank);
        rank -= low * up;
        word >>= half * up;
        place += half * up;
    }
    place
}

/// [`scalar`] in two instructions: put a one at the rank-th one, and count the zeros below it.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "bmi1,bmi2")]
pub(super) fn pdep(word: u64, rank: u32) -> u32 {
    if rank > 63 {
        return 64;
    }
    std::arch::x86_64::_pdep_u64(1 << rank, word).trailing_zeros()
}

#[cfg(test)]
mod tests {
    use crate::arch::{Isa, Kernel, Level, dispatch};

    struct Select(u64, u32);

    impl Kernel for Select {
        type Output = u32;
        #[inline(always)]
        fn run<I: Isa>(self) -> u32 {
            I::select(self.0, self.1)
        }
    }

    #[test]
    fn every_level_finds_every_one() {
        let words = [0, 1, 1 << 63, u64::MAX, 0x8000_0000_0000_0001, 0x5555_5555_5555_5555, 0x0123_4567_89ab_cdef];
        for word in words {
            let places: Vec<u32> = (0..64).filter(|i| word >> i & 1 == 1).collect();
            for level in Level::available() {
                for rank in 0..70 {
                    let expected = places.get(rank as usize).copied().unwrap_or(64);
                    assert_eq!(dispatch(level, Select(word, rank)), expected, "{word:x}, {rank}, {level:?}");
                }
            }
        }
    }
}
