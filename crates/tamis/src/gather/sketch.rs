//! digests, repeated or not -> about how many distinct ones, in 128 KiB: the k smallest of them.
//!
//! The k-th smallest of `t` random numbers in [0, 1) lies near k / t, so its place tells t ([KMV]). What is kept depends on the
//! set alone, not on order, repetition or limits, so a plan made from the estimate is the same however the negatives came. The
//! estimate never falls while digests are added: the k-th smallest only gets smaller. Up to k distinct digests the number is
//! exact; beyond, one standard deviation is 1 / sqrt(k - 2), 0.8 %.
//!
//! The numbers must be random for anyone who chose the digests: with those that anyone can compute, 16,500 small ones look like 10^15,
//! and a million large ones like 16,384. So they are salted, with a hash of all *keys*. It is computed when there are more than can be
//! counted.

use super::sort::sort_distinct;
use crate::error::BuildError;
use crate::hash::{Digest, Salt};

/// How many are kept.
const K: usize = 1 << 14;

#[derive(Debug, Default)]
pub(crate) struct Sketch {
    /// The digests themselves, while they are few.
    few: Vec<Digest>,
    many: Option<Many>,
}

/// Many digests.
#[derive(Debug)]
struct Many {
    salt: Salt,
    lows: Lows,
}

/// The smallest of many distinct numbers. Those of a set follow from those of its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lows {
    /// The smallest, one more than are looked at: it tells whether there are more. And what came since they were last sorted.
    low: Vec<u64>,
    /// Whether only numbers below the last one can matter.
    full: bool,
}

impl Sketch {
    /// Up to this many are counted, more are estimated.
    pub(crate) const EXACT: u64 = K as u64;
    /// More than there can be: products of this number and of what a plan multiplies it with stay below 2^64.
    pub(crate) const MAX_DISTINCT: u64 = 1 << 44;

    pub(crate) fn new() -> Sketch {
        Sketch::default()
    }

    /// Takes in digests; `set` is a hash of all keys.
    pub(crate) fn add(
        &mut self,
        digests: &[Digest],
        set: impl FnOnce() -> Result<u64, BuildError>,
    ) -> Result<(), BuildError> {
        match &mut self.many {
            Some(many) => digests.iter().for_each(|&digest| many.add(digest)),
            None => {
                self.few.extend_from_slice(digests);
                if self.few.len() >= 2 * K {
                    self.sort_few(set)?;
                }
            }
        }
        Ok(())
    }

    /// Counts few, and makes numbers of many.
    fn sort_few(&mut self, set: impl FnOnce() -> Result<u64, BuildError>) -> Result<(), BuildError> {
        sort_distinct(&mut self.few, 1, &|| false)?;
        if self.few.len() > K {
            let mut many = Many { salt: Salt::new(set()?), lows: Lows::default() };
            std::mem::take(&mut self.few).into_iter().for_each(|digest| many.add(digest));
            self.many = Some(many);
        }
        Ok(())
    }

    pub(crate) fn distinct(&mut self, set: impl FnOnce() -> Result<u64, BuildError>) -> Result<u64, BuildError> {
        self.sort_few(set)?;
        Ok(self.many.as_mut().map_or(self.few.len() as u64, |many| many.lows.distinct()))
    }
}

impl Many {
    #[inline(always)]
    fn add(&mut self, digest: Digest) {
        self.lows.add(digest.salted(self.salt));
    }
}

impl Lows {
    /// How many are held at most, once they are sorted.
    pub(crate) const MAX: usize = K + 1;

    /// Takes in a number.
    #[inline(always)]
    pub(crate) fn add(&mut self, number: u64) {
        if !self.full || self.low.get(K).is_none_or(|&last| number < last) {
            self.keep(number);
        }
    }

    fn keep(&mut self, number: u64) {
        self.low.push(number);
        if self.low.len() >= 2 * K {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.low.sort_unstable();
        self.low.dedup();
        self.low.truncate(Lows::MAX);
        self.full = self.low.len() == Lows::MAX;
    }

    /// The numbers, ascending.
    pub(crate) fn sorted(&mut self) -> &[u64] {
        self.sort();
        &self.low
    }

    /// About how many came in.
    pub(crate) fn distinct(&mut self) -> u64 {
        match self.sorted() {
            [low @ .., _] if low.len() == K => {
                let last = low.last().copied().unwrap_or_default();
                let estimate = (K - 1) as f64 * (u64::MAX as f64 / last.max(1) as f64);
                (estimate as u64).clamp(K as u64, Sketch::MAX_DISTINCT)
            }
            all => all.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::hash::scramble;

    fn digest(i: u64) -> Digest {
        Digest { hi: i, lo: scramble(i) }
    }

    fn count(digests: impl Iterator<Item = Digest>) -> u64 {
        let mut sketch = Sketch::new();
        digests.for_each(|digest| sketch.add(&[digest], || Ok(7)).unwrap());
        sketch.distinct(|| Ok(7)).unwrap()
    }

    #[test]
    fn few_are_counted_and_many_estimated() {
        for n in [0, 1, 2, 1000, K as u64 - 1, K as u64, K as u64 + 1, 20_000, 100_000, 3_000_000] {
            let found = count((0..n).map(digest));
            if n <= K as u64 {
                assert_eq!(found, n);
            }
            assert!((found as f64 / n.max(1) as f64 - 1.0).abs() < 0.04 || n == 0, "{found} of {n}");
        }
    }

    /// Also where chance would have it otherwise, and at the end of the range. The keys are not hashed for them.
    #[test]
    fn up_to_k_the_number_is_exact() {
        for seed in 0..20 {
            let unasked = || -> Result<u64, BuildError> { panic!("few need no salt") };
            let mut sketch = Sketch::new();
            for _ in 0..3 {
                let all: Vec<Digest> = (0..K as u64).map(|i| digest(seed << 32 | i)).collect();
                sketch.add(&all, unasked).unwrap();
            }
            assert_eq!(sketch.distinct(unasked).unwrap(), K as u64);
        }
        assert_eq!(count([Digest { hi: u64::MAX, lo: u64::MAX }].into_iter()), 1);
    }

    /// Whatever their halves are, small or large or all the same.
    #[test]
    fn no_choice_of_digests_looks_like_more_or_fewer() {
        type Choice = fn(u64) -> Digest;
        let chosen: [Choice; 6] = [
            |i| Digest { hi: scramble(i), lo: i },
            |i| Digest { hi: scramble(i), lo: !i },
            |i| Digest { hi: i, lo: 0 },
            |i| Digest { hi: 0, lo: i },
            |i| Digest { hi: i << 40, lo: i << 40 },
            |i| Digest { hi: !0, lo: i << 32 },
        ];
        for (choice, digest) in chosen.into_iter().enumerate() {
            let found = count((0..200_000).map(digest));
            assert!((found as f64 / 2e5 - 1.0).abs() < 0.04, "choice {choice}: {found}");
        }
    }

    /// Parts that do not share a digest give what all of them give.
    #[test]
    fn the_smallest_numbers_of_parts_are_those_of_the_whole() {
        for n in [0, 5, K as u64, K as u64 + 1, K as u64 + 2, 40_000, 300_000] {
            let whole = (n > K as u64).then(|| count((0..n).map(digest)));
            for parts in [1, 2, 64] {
                let mut all = Lows::default();
                for part in 0..parts {
                    let mut lows = Lows::default();
                    (part..n).step_by(parts as usize).for_each(|i| lows.add(digest(i).salted(Salt::new(7))));
                    assert!(lows.sorted().len() <= Lows::MAX);
                    lows.sorted().iter().for_each(|&number| all.add(number));
                }
                assert_eq!(all.distinct(), whole.unwrap_or(n), "{n} in {parts}");
            }
        }
    }

    /// Order and repetition leave no trace, and more never look like fewer.
    #[test]
    fn only_the_set_matters() {
        let once = count((0..200_000).map(digest));
        let (mut often, mut before) = (Sketch::new(), 0);
        for i in (0..200_000).rev() {
            often.add(&[digest(i), digest(i | 1)], || Ok(7)).unwrap();
            if i % 1000 == 0 {
                let now = often.distinct(|| Ok(7)).unwrap();
                assert!(now >= before);
                before = now;
            }
        }
        assert_eq!(once, before);
        assert!(often.many.unwrap().lows.low.capacity() <= 4 * K);
    }
}
