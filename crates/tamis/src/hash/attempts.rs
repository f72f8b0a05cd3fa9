//! the digests that a leaf reads -> the numbers of the salts that it tries, one after the other.
//!
//! Without a secret all hashes are public, and anyone who supplies keys can choose them so that a given salt does not tell them
//! apart. A list of 64 salts that is known in advance is stopped by 64 pairs of keys. So only the first salt is known in advance.
//! The others come from a hash of the whole set: every key that is added, taken out or exchanged changes all of them, and
//! anyone who aims at one has to find keys that are bad for the very salt that these keys lead to.
//!
//! ```text
//!   attempt 0      number 0                                      ordinary keys: no cost at all
//!   attempt i      SipHash-1-3 of i, keyed with the set's hash   SipHash-1-3 with a fixed key over the sorted digests
//! ```
//!
//! A number is what the file holds, 32 bits; the second of few keys only 14, because every byte counts there, and they are too few to
//! be bad for most of these. Bad keys for one number take a moment to find, but they would have to be found for a good
//! share of 2^32 numbers, and in each of 64 attempts. The hash must not be linear: digests of integers are, and with a sum one key
//! more leads to any number one likes. What is hashed is sorted and distinct, so that numbers depend on the set and on nothing else.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use siphasher::sip::SipHasher13;

use super::{Digest, MAX_NUMBER};

/// Salts that are tried. One or two are the rule, and no keys are known for which a third would be needed.
pub(crate) const ATTEMPTS: u32 = 64;

/// Fewer keys have a second number of 14 bits, which are two bytes in a file.
const MIN_LONG_NUMBER_KEYS: usize = 10_000;
const SHORT_NUMBER_MASK: u64 = (1 << 14) - 1;

/// Any words will do; these are digits of pi.
const KEY: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

/// A hash of a set of digests, which come sorted.
pub(crate) struct SetHash(SipHasher13);

impl SetHash {
    pub(crate) fn new() -> SetHash {
        SetHash(SipHasher13::new_with_keys(KEY[0], KEY[1]))
    }

    pub(crate) fn add(&mut self, digests: &[Digest]) {
        for digest in digests {
            self.0.write(&digest.hi.to_le_bytes());
            self.0.write(&digest.lo.to_le_bytes());
        }
    }

    pub(crate) fn finish(self) -> u64 {
        self.0.finish()
    }

    pub(crate) fn of(digests: &[Digest]) -> u64 {
        let mut hash = SetHash::new();
        hash.add(digests);
        hash.finish()
    }
}

/// The number that a set with this hash has for `attempt`, which is not the first; never 0.
pub(crate) fn number(set: u64, attempt: u32) -> u64 {
    let mut sip = SipHasher13::new_with_keys(set, KEY[1]);
    sip.write(&attempt.to_le_bytes());
    (sip.finish() & MAX_NUMBER).max(1)
}

/// The attempts of so many keys and their numbers. The set is hashed when the first attempt has failed.
pub(crate) fn numbers(keys: usize, hash: impl Fn() -> u64) -> impl Iterator<Item = (u32, u64)> {
    let mut set = None;
    (0..ATTEMPTS).map(move |attempt| {
        let mut number = || number(*set.get_or_insert_with(&hash), attempt);
        match attempt {
            0 => (0, 0),
            1 if keys < MIN_LONG_NUMBER_KEYS => (1, (number() & SHORT_NUMBER_MASK).max(1)),
            _ => (attempt, number()),
        }
    })
}

/// Bits that no one can foresee. The standard library has them from the operating system, once for each thread, and scrambles them
/// with SipHash-1-3: what is seen of them tells nothing about others.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(KEY)
}

/// A number for keys that come one by one, so that nothing is known of their set; never 0.
pub(crate) fn random_number() -> u32 {
    ((random() & MAX_NUMBER) as u32).max(1)
}

/// Which attempt a set's number belongs to.
#[cfg(test)]
pub(crate) fn attempt_of(wanted: u64, set: &[Digest]) -> u32 {
    numbers(set.len(), || SetHash::of(set))
        .find(|&(_, number)| number == wanted)
        .map_or(ATTEMPTS, |(attempt, _)| attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(n: u64) -> Vec<Digest> {
        (0..n).map(|i| Digest { hi: i, lo: !i }).collect()
    }

    #[test]
    fn the_first_number_is_known_and_needs_no_hash() {
        let hashed = std::cell::Cell::new(false);
        let mut numbers = numbers(1, || u64::from(hashed.replace(true)));
        assert_eq!((numbers.next(), hashed.get()), (Some((0, 0)), false));
        assert!(numbers.next().is_some() && hashed.get());
    }

    #[test]
    fn every_digest_changes_all_other_numbers() {
        let of = |digests: &[Digest]| -> Vec<u64> {
            numbers(MIN_LONG_NUMBER_KEYS, || SetHash::of(digests)).map(|(_, number)| number).collect()
        };
        let all = digests(100);
        let mut seen: Vec<u64> = of(&all);
        assert_eq!(seen.len(), 64);
        for i in 0..100 {
            let mut others = all.clone();
            others[i].lo ^= 1 << (i % 64);
            seen.extend(&of(&others)[1..]);
            others.remove(i);
            seen.extend(&of(&others)[1..]);
        }
        assert!(seen[1..].iter().all(|&number| (1..=MAX_NUMBER).contains(&number)));
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        // Two of 12,664 numbers of 32 bits are equal with a probability of 2 %.
        assert!(seen.len() + 1 >= count, "{} of {count}", seen.len());
    }

    /// They are in files, and must never change.
    #[test]
    fn numbers_are_fixed_for_ever() {
        let sets = [5_503_375_390_470_806_016, 18_274_957_445_492_587_312, 17_848_334_941_521_594_124];
        assert_eq!([0, 1, 2].map(|n| SetHash::of(&digests(n))), sets);
        assert_eq!([number(0, 1), number(1, 1), number(1, 2)], [1_044_839_858, 756_705_246, 1_751_058_676]);
    }
}
