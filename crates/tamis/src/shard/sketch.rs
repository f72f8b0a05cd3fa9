//! digests, repeated or not -> about how many distinct ones, in 128 KiB: the k smallest of them.
//!
//! The k-th smallest of `t` random numbers in [0, 1) lies near k / t, so its place tells t ([KMV]). What is kept depends on the
//! set alone, not on order, repetition or limits, so a plan made from the estimate is the same however the negatives came. The
//! estimate never falls while digests are added: the k-th smallest only gets smaller. Up to k distinct digests the number is
//! exact; beyond, one standard deviation is 1 / sqrt(k - 2), 0.8 %.

use crate::hash::Digest;

/// How many are kept.
const K: usize = 1 << 14;

/// Counts distinct digests.
#[derive(Debug)]
pub(crate) struct Sketch {
    /// The smallest, and what came since they were last sorted.
    low: Vec<u64>,
    /// Only numbers up to this can matter: all of them, as long as none was let go.
    limit: u64,
}

impl Sketch {
    /// Up to this many are counted, more are estimated.
    pub(crate) const EXACT: u64 = K as u64;

    pub(crate) fn new() -> Sketch {
        Sketch { low: vec![], limit: u64::MAX }
    }

    /// Takes in a digest.
    #[inline(always)]
    pub(crate) fn add(&mut self, digest: Digest) {
        // The other half chooses the shard: this one is as random in every shard.
        if digest.lo <= self.limit {
            self.keep(digest.lo);
        }
    }

    fn keep(&mut self, low: u64) {
        self.low.push(low);
        if self.low.len() >= 2 * K {
            self.settle();
        }
    }

    fn settle(&mut self) {
        self.low.sort_unstable();
        self.low.dedup();
        if self.low.len() > K {
            self.low.truncate(K);
            self.limit = self.low[K - 1];
        }
    }

    /// About how many distinct digests there were.
    pub(crate) fn distinct(&mut self) -> u64 {
        self.settle();
        match self.limit {
            u64::MAX => self.low.len() as u64,
            last => {
                let estimate = (K - 1) as f64 * (u64::MAX as f64 / last.max(1) as f64);
                (estimate as u64).max(K as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::scramble;

    fn digest(i: u64) -> Digest {
        Digest { hi: i, lo: scramble(i) }
    }

    #[test]
    fn few_are_counted_and_many_estimated() {
        for n in [0, 1, 2, 1000, K as u64 - 1, K as u64, 20_000, 100_000, 3_000_000] {
            let mut sketch = Sketch::new();
            (0..n).for_each(|i| sketch.add(digest(i)));
            let found = sketch.distinct();
            if n <= K as u64 {
                assert_eq!(found, n);
            }
            assert!((found as f64 / n.max(1) as f64 - 1.0).abs() < 0.04 || n == 0, "{found} of {n}");
        }
    }

    /// Also where chance would have it otherwise, and at the end of the range.
    #[test]
    fn up_to_k_the_number_is_exact() {
        for seed in 0..20 {
            let mut sketch = Sketch::new();
            (0..K as u64).for_each(|i| sketch.add(digest(seed << 32 | i)));
            assert_eq!(sketch.distinct(), K as u64);
        }
        let mut sketch = Sketch::new();
        sketch.add(Digest { hi: 0, lo: u64::MAX });
        assert_eq!(sketch.distinct(), 1);
    }

    /// Order and repetition leave no trace, and more never look like fewer.
    #[test]
    fn only_the_set_matters() {
        let (mut once, mut often) = (Sketch::new(), Sketch::new());
        (0..200_000).for_each(|i| once.add(digest(i)));
        let mut before = 0;
        for i in (0..200_000).rev() {
            often.add(digest(i));
            often.add(digest(i | 1));
            if i % 1000 == 0 {
                assert!(often.distinct() >= before);
                before = often.distinct();
            }
        }
        assert_eq!(once.distinct(), often.distinct());
        assert!(often.low.capacity() <= 4 * K);
    }
}
