//! a capacity and a few options -> an empty filter that changes.

use std::marker::PhantomData;

use super::bloom::Bloom;
use super::cuckoo::Cuckoo;
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::filter::options::{check_capacity, check_foreign, check_secret_beside, set};
use crate::hash::{Hasher, Key, KeyType};

/// Builder of a [`Bloom`](crate::Bloom), [`Cuckoo`](crate::Cuckoo) or [`Quotient`](crate::Quotient) filter: see their
/// `with_capacity`.
///
/// ```
/// use tamis::{Cuckoo, Hasher};
/// let mut online = Cuckoo::with_capacity(1000).fpr(0.001).hasher(Hasher::seeded(7)).build::<str>()?;
/// online.insert("ann")?;
/// assert!(online.contains("ann")?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[must_use = "nothing is made before `build`"]
pub struct DynamicBuilder<F> {
    options: Options,
    of: PhantomData<fn() -> F>,
}

brief_debug!(DynamicBuilder<F>, it => options: it.options);

impl<F> Clone for DynamicBuilder<F> {
    fn clone(&self) -> DynamicBuilder<F> {
        DynamicBuilder { options: self.options.clone(), of: PhantomData }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) capacity: u64,
    pub(super) fpr: f64,
    pub(super) hasher: Hasher,
    /// Whether snapshots do not hold the secret.
    pub(super) secret_beside: bool,
    /// The other form of the structure: a classic Bloom filter, semi-sorted buckets.
    pub(super) other_form: bool,
}

/// An empty filter from options that were checked.
pub(super) trait Empty: Sized {
    fn empty(options: &Options, key_type: KeyType) -> Result<Self, BuildError>;
}

impl<F> DynamicBuilder<F> {
    pub(super) fn new(capacity: u64) -> DynamicBuilder<F> {
        let options =
            Options { capacity, fpr: 0.01, hasher: Hasher::seeded(0), secret_beside: false, other_form: false };
        DynamicBuilder { options, of: PhantomData }
    }

    set! {
        /// Sets the share of unlisted keys that match once the filter holds its capacity, above 0 and below 1. The default is 0.01.
        fpr(p: f64) => options.fpr = p;

        /// Sets the hash: a seed, a secret, or [`Hasher::foreign`] for keys of type [`Digest`](crate::Digest). The default is
        /// `Hasher::seeded(0)`.
        hasher(hasher: Hasher) => options.hasher = hasher;

        /// Keeps the secret of the hash out of snapshots, which `restore_with_secret` and `open_with_secret` then read.
        ///
        /// ```
        /// use tamis::{Bloom, Filter, Hasher};
        /// let mut seen = Bloom::with_capacity(10).hasher(Hasher::secret([1, 2])).secret_beside().build::<str>()?;
        /// seen.insert("ann")?;
        /// assert!(Bloom::restore(seen.snapshot()?).is_err() && Filter::open(seen.snapshot()?).is_err());
        /// assert!(Bloom::restore_with_secret(seen.snapshot()?, [1, 2])?.contains("ann")?);
        /// # Ok::<(), tamis::Error>(())
        /// ```
        secret_beside() => options.secret_beside = true;
    }
}

#[allow(private_bounds)] // Only the three filters are built.
impl<F: Empty> DynamicBuilder<F> {
    /// Makes the empty filter, for keys of type `K`: `u64`, `str`, `[u8]`, ..
    ///
    /// # Errors
    ///
    /// [`BuildError::Range`] if the rate is out of range or the capacity above 2^32, [`BuildError::NoEffect`] if the hash is foreign and keys are no digests, or `secret_beside` is set without a secret,
    /// another [`BuildError`] if no table has this capacity and rate, or there is no memory for it.
    pub fn build<K: Key + ?Sized>(mut self) -> Result<F, BuildError> {
        let Options { capacity, fpr: given, ref hasher, secret_beside, .. } = self.options;
        check_capacity(capacity, 0)?;
        if !(given > 0.0 && given < 1.0) {
            return Err(BuildError::Range { option: "fpr", given, least: 0.0, most: 1.0 });
        }
        check_foreign(hasher, K::KEY_TYPE)?;
        check_secret_beside(secret_beside, hasher)?;
        self.options.hasher = self.options.hasher.with_secret_beside(secret_beside);
        F::empty(&self.options, K::KEY_TYPE)
    }
}

impl DynamicBuilder<Bloom> {
    set! {
        /// Makes a classic Bloom filter instead of a split-block one: smaller and slower.
        ///
        /// ```
        /// use tamis::Bloom;
        /// let builder = Bloom::with_capacity(10_000).fpr(0.001);
        /// let (split, classic) = (builder.clone().build::<u64>()?, builder.classic().build::<u64>()?);
        /// assert!(classic.snapshot()?.len() < split.snapshot()?.len());
        /// # Ok::<(), tamis::Error>(())
        /// ```
        classic() => options.other_form = true;
    }
}

impl DynamicBuilder<Cuckoo> {
    set! {
        /// Makes semi-sorted buckets: one bit per key smaller, and slower.
        ///
        /// ```
        /// use tamis::Cuckoo;
        /// let builder = Cuckoo::with_capacity(10_000).fpr(0.001);
        /// let (plain, small) = (builder.clone().build::<u64>()?, builder.semi_sorted().build::<u64>()?);
        /// assert!(small.snapshot()?.len() + 10_000 / 8 <= plain.snapshot()?.len());
        /// # Ok::<(), tamis::Error>(())
        /// ```
        semi_sorted() => options.other_form = true;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::{Bloom, Cuckoo, Digest, Hasher, Quotient};

    #[test]
    fn rates_out_of_range_are_errors() {
        for rate in [0.0, 1.0, -1.0, f64::INFINITY, f64::NAN] {
            let errors = [
                Bloom::with_capacity(10).fpr(rate).build::<u64>().unwrap_err(),
                Bloom::with_capacity(10).fpr(rate).classic().build::<u64>().unwrap_err(),
                Cuckoo::with_capacity(10).fpr(rate).build::<u64>().unwrap_err(),
                Quotient::with_capacity(10).fpr(rate).build::<u64>().unwrap_err(),
            ];
            let sentence = format!("fpr {rate}: out of range; expected 0 to 1");
            assert!(errors.iter().all(|error| error.to_string().starts_with(&sentence)), "{errors:?}");
        }
    }

    /// None of them may depend on the system for it: where memory is lent freely, the process would be killed.
    #[test]
    fn capacities_out_of_range_are_errors() {
        for capacity in [(1 << 32) + 1, 1 << 41, u64::MAX] {
            let errors = [
                Bloom::with_capacity(capacity).build::<u64>().unwrap_err(),
                Bloom::with_capacity(capacity).classic().build::<u64>().unwrap_err(),
                Cuckoo::with_capacity(capacity).build::<u64>().unwrap_err(),
                Quotient::with_capacity(capacity).build::<u64>().unwrap_err(),
            ];
            let end = ": out of range; expected 0 to 4294967296";
            assert!(errors.iter().map(ToString::to_string).all(|e| e.starts_with("capacity ") && e.ends_with(end)));
        }
    }

    #[test]
    fn a_foreign_hash_is_for_digests() {
        let builder = Quotient::with_capacity(10).hasher(Hasher::foreign(1));
        let error = builder.clone().build::<str>().unwrap_err().to_string();
        assert_eq!(error, "hasher: no effect; expected keys of type Digest with Hasher::foreign");
        let mut filter = builder.build::<Digest>().unwrap();
        filter.insert(Digest::from_hash(7)).unwrap();
        assert!(filter.contains(Digest::from_hash(7)).unwrap() && filter.contains("seven").is_err());
    }
}
