//! seed -> random 64-bit keys, all different.
//!
//! SplitMix64 scrambles a counter by a bijection, so one stream does not repeat itself before 2^64 numbers: keys and
//! strangers drawn from the same stream need no comparison to be known disjoint.

/// An endless stream of distinct numbers.
#[derive(Clone)]
pub struct Stream(u64);

impl Stream {
    /// The stream with this seed.
    pub fn new(seed: u64) -> Stream {
        // Seeds 1, 2, 3 must not be the same stream shifted by a few places.
        Stream(scramble(seed))
    }

    /// The next number.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scramble(self.0)
    }

    /// The next `n` numbers.
    pub fn take(&mut self, n: usize) -> Vec<u64> {
        (0..n).map(|_| self.draw()).collect()
    }

    /// A number below `n`.
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        place(self.draw(), n)
    }

    /// A number from 0 on and below 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// `n` members of `keys`, drawn with repetition.
    pub fn sample(&mut self, keys: &[u64], n: usize) -> Vec<u64> {
        (0..n).map(|_| keys[self.below(keys.len())]).collect()
    }

    /// Puts `list` into random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            list.swap(end, self.below(end + 1));
        }
    }
}

/// A place below `n` from 64 random bits.
#[inline(always)]
pub fn place(hash: u64, n: usize) -> usize {
    ((u128::from(hash) * n as u128) >> 64) as usize
}

/// The finaliser of SplitMix64, a bijection.
#[inline]
pub fn scramble(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_are_distinct_and_samples_are_members() {
        let mut stream = Stream::new(1);
        let numbers = stream.take(100_000);
        let distinct: HashSet<u64> = numbers.iter().copied().collect();
        assert_eq!(distinct.len(), numbers.len());
        let sample = stream.sample(&numbers, 50_000);
        assert!(sample.iter().all(|k| distinct.contains(k)));
        // 50,000 draws from 100,000 hit 39,347 different ones on average, sigma about 100.
        let hit = sample.iter().collect::<HashSet<_>>().len();
        assert!((38_700..40_000).contains(&hit), "{hit}");
        let mut shuffled = numbers.clone();
        stream.shuffle(&mut shuffled);
        assert_ne!(shuffled, numbers);
        shuffled.sort_unstable();
        let mut sorted = numbers;
        sorted.sort_unstable();
        assert_eq!(shuffled, sorted);
        assert!(Stream::new(2).take(1000).iter().all(|k| !distinct.contains(k)));
    }
}
