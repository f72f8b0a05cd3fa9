//! numbers -> arrays of bits.

use super::PROBES;

/// Bits that are set one by one and read 64 at a time.
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// So many zeros, and a word of zeros after them, which unaligned reads may touch.
    pub(crate) fn zeros(n: usize) -> Bits {
        Bits(vec![0; n.div_ceil(64) + 1])
    }

    #[inline(always)]
    pub(super) fn set(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    /// The 64 bits from bit `i` on.
    #[inline(always)]
    pub(crate) fn word_at(&self, i: usize) -> u64 {
        // Two shifts, because a shift by 64 is not defined.
        self.0[i / 64] >> (i % 64) | self.0[i / 64 + 1] << 1 << (63 - i % 64)
    }

    /// Replaces the `width` bits from bit `i` on, at most 64, by those of `value`.
    pub(crate) fn replace(&mut self, i: usize, width: u32, value: u64) {
        let mask = u128::from(u64::MAX >> (64 - width)) << (i % 64);
        let value = u128::from(value) << (i % 64);
        let both = u128::from(self.0[i / 64]) | u128::from(self.0[i / 64 + 1]) << 64;
        let both = both & !mask | value;
        self.0[i / 64] = both as u64;
        self.0[i / 64 + 1] = (both >> 64) as u64;
    }
}

/// Bloom filters of one size, one after the other.
pub(super) struct Filters {
    words: Vec<u64>,
    /// Words of a filter, and its bits.
    stride: usize,
    pub(super) m: usize,
}

impl Filters {
    /// Empty ones.
    pub(super) fn empty(filters: usize, m: usize) -> Filters {
        let stride = m.div_ceil(64);
        Filters { words: vec![0; filters * stride], stride, m }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len() / self.stride
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, filter: usize, places: [usize; PROBES]) {
        for place in places {
            self.words[filter * self.stride + place / 64] |= 1 << (place % 64);
        }
    }

    #[inline(always)]
    pub(super) fn contains(&self, filter: usize, places: &[usize; PROBES]) -> bool {
        holds(&self.words[filter * self.stride..(filter + 1) * self.stride], places)
    }

    /// Calls `each` with the number of every filter that holds all places.
    #[inline(always)]
    pub(super) fn all(&self, places: &[usize; PROBES], mut each: impl FnMut(usize)) {
        for (filter, words) in self.words.chunks_exact(self.stride).enumerate() {
            if holds(words, places) {
                each(filter);
            }
        }
    }

    /// Adds the bits of one filter to an earlier one.
    pub(super) fn unite(&mut self, to: usize, from: usize) {
        let (before, after) = self.words.split_at_mut(from * self.stride);
        let to = &mut before[to * self.stride..(to + 1) * self.stride];
        to.iter_mut().zip(after).for_each(|(to, from)| *to |= *from);
    }

    /// The share of ones of every filter.
    pub(super) fn loads(&self) -> Vec<f64> {
        let ones = |words: &[u64]| words.iter().map(|word| f64::from(word.count_ones())).sum::<f64>();
        self.words.chunks_exact(self.stride).map(|words| ones(words) / self.m as f64).collect()
    }
}

#[inline(always)]
fn holds(words: &[u64], places: &[usize; PROBES]) -> bool {
    places.iter().all(|place| words[place / 64] >> (place % 64) & 1 != 0)
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

    #[test]
    fn filters_are_apart_until_they_are_united() {
        let mut filters = Filters::empty(3, 100);
        filters.insert(2, [0, 70, 99]);
        let found = |filters: &Filters| (0..3).map(|i| filters.contains(i, &[0, 70, 99])).collect::<Vec<_>>();
        assert_eq!(found(&filters), [false, false, true]);
        filters.unite(0, 2);
        assert_eq!(found(&filters), [true, false, true]);
        let mut all = Vec::new();
        filters.all(&[0, 70, 99], |i| all.push(i));
        assert_eq!((all, filters.loads(), filters.len()), (vec![0, 2], vec![0.03, 0.0, 0.03], 3));
    }
}
