//! a capacity or a goal, and a few options -> an empty adaptive filter.

use std::fmt::Debug;

use super::Adapt;
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::filter::options::{check_capacity, set};
use crate::hash::{Hasher, Key, KeyType};

/// Builder of an adaptive filter: see `with_capacity`, `with_fpr` and `with_bits_per_key` of the filters.
///
/// ```
/// use tamis::adaptive::{Adapt, AdaptiveFilter, Broom, Memory};
/// let mut filter = Broom::with_capacity(1000).fpr(0.001).growing().build::<str>()?;
/// let mut map = Memory::new();
/// filter.insert("ann", &mut map)?;
/// assert!(filter.contains("ann")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is made before `build`"]
#[allow(private_bounds)] // Only the filters of this module are built.
pub struct AdaptiveBuilder<F: Built> {
    pub(super) secret: Option<Hasher>,
    pub(super) secret_beside: bool,
    pub(super) options: F::Options,
}

brief_debug!(AdaptiveBuilder<F: Built>, it => options: it.options);

impl<F: Built> Clone for AdaptiveBuilder<F> {
    fn clone(&self) -> AdaptiveBuilder<F> {
        AdaptiveBuilder {
            secret: self.secret.clone(),
            secret_beside: self.secret_beside,
            options: self.options.clone(),
        }
    }
}

/// A filter that is built, and its own options.
pub(crate) trait Built {
    type Options: Clone + Debug;
}

/// A filter that is made empty, for a number of keys.
pub(crate) trait Empty: Adapt + Built<Options = Sizing<Self::More>> {
    /// What it alone has.
    type More: Clone + Debug;

    fn empty(sizing: &Sizing<Self::More>, key_type: KeyType, hasher: Hasher) -> Result<Self, BuildError>;
}

/// How large a filter is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizing<O> {
    pub(crate) capacity: u64,
    pub(crate) fpr: f64,
    pub(crate) more: O,
}

/// The rate that a caller did not set.
const DEFAULT_FPR: f64 = 0.01;

#[allow(private_bounds)]
impl<F: Built> AdaptiveBuilder<F> {
    set! {
        /// Sets the secret of the hash. By default the operating system draws one.
        secret(secret: [u64; 2]) => secret = Some(Hasher::secret(secret));

        /// Keeps the secret out of snapshots: see [`AdaptiveFilter::restore_with_secret`](super::AdaptiveFilter::restore_with_secret).
        secret_beside() => secret_beside = true;
    }
}

#[allow(private_bounds)]
impl<F: Built> AdaptiveBuilder<F> {
    /// The hash of a filter: with the secret that was given, or one that the operating system draws.
    pub(super) fn hasher(&self) -> std::io::Result<Hasher> {
        Ok(Hasher::secret_or_random(self.secret.clone())?.with_secret_beside(self.secret_beside))
    }
}

#[allow(private_bounds)]
impl<F: Empty> AdaptiveBuilder<F> {
    pub(super) fn new(capacity: u64, more: F::More) -> AdaptiveBuilder<F> {
        AdaptiveBuilder { secret: None, secret_beside: false, options: Sizing { capacity, fpr: DEFAULT_FPR, more } }
    }

    set! {
        /// Sets the false positive rate that the filter keeps for any sequence of queries. The default is 0.01.
        fpr(p: f64) => options.fpr = p;
    }

    /// Makes the empty filter, for keys of type `K`: `u64`, `str`, `[u8]`, ..
    ///
    /// # Errors
    ///
    /// [`BuildError::Range`] if an option is out of range or the capacity above 2^32, another [`BuildError`] if no table has this capacity and rate, if there is
    /// no memory for it, or if the operating system gives no secret.
    pub fn build<K: Key + ?Sized>(self) -> Result<F, BuildError> {
        check_fpr(self.options.fpr)?;
        check_capacity(self.options.capacity, 0)?;
        F::empty(&self.options, K::KEY_TYPE, self.hasher()?)
    }
}

pub(super) fn check_fpr(given: f64) -> Result<(), BuildError> {
    match given > 0.0 && given < 1.0 {
        true => Ok(()),
        false => Err(BuildError::Range { option: "fpr", given, least: 0.0, most: 1.0 }),
    }
}

/// Fails if a number of an option is out of its range.
pub(super) fn check_range(
    option: &'static str,
    given: impl Into<f64>,
    range: std::ops::RangeInclusive<f64>,
) -> Result<(), BuildError> {
    let (given, (least, most)) = (given.into(), range.into_inner());
    match (least..=most).contains(&given) {
        true => Ok(()),
        false => Err(BuildError::Range { option, given, least, most }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::adaptive::{AdaptiveQuotient, Broom, LargeBroom};

    /// The same bound for all: a larger table would be lent by the system, and the process killed when it fills.
    #[test]
    fn capacities_out_of_range_are_errors() {
        for capacity in [(1 << 32) + 1, 1 << 41, u64::MAX] {
            let errors = [
                Broom::with_capacity(capacity).build::<u64>().unwrap_err(),
                LargeBroom::with_capacity(capacity).build::<u64>().unwrap_err(),
                AdaptiveQuotient::with_capacity(capacity).build::<u64>().unwrap_err(),
            ];
            let end = ": out of range; expected 0 to 4294967296";
            assert!(errors.iter().map(ToString::to_string).all(|e| e.starts_with("capacity ") && e.ends_with(end)));
        }
    }
}
