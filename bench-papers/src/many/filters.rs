//! places -> Bloom filters of one size in one array.

use super::PROBES;

/// Bloom filters of one size, one after the other.
pub(super) struct Filters {
    words: Vec<u64>,
    /// Words of a filter, and its bits.
    stride: usize,
    pub(super) m: usize,
}

impl Filters {
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
    pub(super) fn all(&self, places: &[usize; PROBES], each: impl FnMut(usize)) {
        self.first(self.len(), places, each);
    }

    /// The same for the first so many filters.
    #[inline(always)]
    pub(super) fn first(&self, filters: usize, places: &[usize; PROBES], mut each: impl FnMut(usize)) {
        for (filter, words) in self.words.chunks_exact(self.stride).take(filters).enumerate() {
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
