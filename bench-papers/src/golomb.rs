//! keys -> sorted hashes, coded by their gaps: the Golomb-coded set of Bitcoin's block filters (BIP 158).
//!
//! n keys become n numbers below n m; sorted, their gaps are about m and geometric, and a gap is stored as its quotient
//! by 2^p in unary and its remainder in p bits. An unlisted key hits one of the numbers with probability 1/m. The set is
//! small but slow to query: codes must be read from the start. (BIP 158 hashes with SipHash and the block's hash; sizes do not
//! depend on it.)

use std::collections::HashSet;

use tamis_bench::stream::scramble;

pub(crate) struct Golomb {
    bits: Vec<bool>,
    n: u64,
    p: u32,
    m: u64,
    seed: u64,
}

impl Golomb {
    /// The parameters of BIP 158.
    pub(crate) fn bip158(keys: &[u64], seed: u64) -> Golomb {
        Golomb::build(keys, 19, 784_931, seed)
    }

    /// Codes `keys` with gaps of `m` on average and remainders of `p` bits.
    pub(crate) fn build(keys: &[u64], p: u32, m: u64, seed: u64) -> Golomb {
        let mut set = Golomb { bits: Vec::new(), n: keys.len() as u64, p, m, seed: scramble(seed) };
        let mut numbers: Vec<u64> = keys.iter().map(|&key| set.number(key)).collect();
        numbers.sort_unstable();
        let mut last = 0;
        for number in numbers {
            let gap = number - last;
            last = number;
            set.bits.extend((0..gap >> p).map(|_| true).chain([false]));
            set.bits.extend((0..p).rev().map(|bit| gap >> bit & 1 == 1));
        }
        set
    }

    /// The number of a key, below n m.
    pub(crate) fn number(&self, key: u64) -> u64 {
        ((u128::from(scramble(key ^ self.seed)) * u128::from(self.n * self.m)) >> 64) as u64
    }

    /// Reads the codes: all numbers of the set.
    pub(crate) fn numbers(&self) -> HashSet<u64> {
        let mut bits = self.bits.iter();
        let mut last = 0;
        let mut numbers = HashSet::with_capacity(self.n as usize);
        for _ in 0..self.n {
            let quotient = bits.by_ref().take_while(|&&bit| bit).count() as u64;
            let remainder = bits.by_ref().take(self.p as usize).fold(0, |sum, &bit| sum << 1 | u64::from(bit));
            last += (quotient << self.p) + remainder;
            numbers.insert(last);
        }
        numbers
    }

    pub(crate) fn bits(&self) -> usize {
        self.bits.len()
    }

    /// The share of strangers that are taken for members.
    pub(crate) fn fpr(&self) -> f64 {
        1.0 / self.m as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_bench::stream::Stream;

    #[test]
    fn codes_are_read_back() {
        for n in [0, 1, 2, 100, 2500] {
            let mut stream = Stream::new(4);
            let keys = stream.take(n);
            let set = Golomb::build(&keys, 8, 300, 1);
            let numbers = set.numbers();
            assert!(keys.iter().all(|&key| numbers.contains(&set.number(key))));
            let hits = stream.take(300_000).iter().filter(|&&key| numbers.contains(&set.number(key))).count();
            // 1000 expected, sigma 32, less the few collisions of the keys themselves.
            assert!(n < 100 || (820..1180).contains(&hits), "{n} keys: {hits}");
        }
    }

    /// BIP 158 is about 1.44 + log2(784931) bits for each key: 21.1.
    #[test]
    fn bip158_takes_21_bits() {
        let bits = Golomb::bip158(&Stream::new(1).take(2500), 0).bits() as f64 / 2500.0;
        assert!((20.9..21.3).contains(&bits), "{bits}");
    }
}
