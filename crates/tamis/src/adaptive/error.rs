//! what went wrong with an adaptive filter -> one line; whatever it is, no key was lost.

use std::fmt;

use crate::error::{BuildError, ChangeError};
use crate::hash::Mismatch;

/// Why an adaptive filter did not change. No key is lost or added; keys may have been moved to the next hash function.
///
/// `E` is the error of the [`ReverseMap`](super::ReverseMap), [`Dictionary`](super::Dictionary) or [`Keys`](super::Keys).
///
/// ```
/// use tamis::adaptive::{Adapt, AdaptError, Broom, Memory};
/// let mut filter = Broom::with_capacity(1000).build::<str>()?;
/// let mut map = Memory::new();
/// filter.insert("ann", &mut map)?;
/// assert!(matches!(filter.adapt("ann", &mut map), Err(AdaptError::Member)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum AdaptError<E> {
    /// The key type is wrong, or the filter is full.
    Change(ChangeError),
    /// The key to adapt to is a member: the match is right.
    Member,
    /// The key to remove is not a member.
    NotMember,
    /// The reverse map, the dictionary or the store of the keys failed.
    Store(E),
    /// The reverse map or the store of the keys contradicts the filter.
    Inconsistent(Inconsistency),
    /// A part of the filter could not be built.
    Build(BuildError),
}

/// How a reverse map or a store of keys contradicts its filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inconsistency(Contradiction);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contradiction {
    /// No key with a fingerprint is filed under this name.
    Unfiled { name: u64 },
    /// Two keys with one fingerprint are, which the filter never allows; one of them is no member.
    Ambiguous { name: u64 },
    /// The next key does not come after the last one, or is no member.
    Order,
    /// The keys are not those that the filter was made of.
    Keys { found: u64, expected: u64 },
}

impl<E> AdaptError<E> {
    pub(super) fn unfiled(name: u64) -> AdaptError<E> {
        AdaptError::Inconsistent(Inconsistency(Contradiction::Unfiled { name }))
    }

    pub(super) fn ambiguous(name: u64) -> AdaptError<E> {
        AdaptError::Inconsistent(Inconsistency(Contradiction::Ambiguous { name }))
    }

    pub(super) fn order() -> AdaptError<E> {
        AdaptError::Inconsistent(Inconsistency(Contradiction::Order))
    }

    pub(super) fn other_keys(found: u64, expected: u64) -> AdaptError<E> {
        AdaptError::Inconsistent(Inconsistency(Contradiction::Keys { found, expected }))
    }
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Contradiction::Unfiled { name } => {
                write!(f, "reverse map: no member with the fingerprint is filed under {name:#x}; expected one")
            }
            Contradiction::Ambiguous { name } => {
                write!(f, "reverse map: two keys under {name:#x} have the same fingerprint; expected one")
            }
            Contradiction::Order => f.write_str(
                "reverse map: `next` returned a key that is out of order or not a member; expected the least member after \
                 the given digest",
            ),
            Contradiction::Keys { found, expected } if found == expected => {
                write!(f, "keys: {found} keys, but not those that the filter was made of; expected the same keys")
            }
            Contradiction::Keys { found, expected } => {
                write!(f, "keys: {found} keys; expected the {expected} that the filter was made of")
            }
        }
    }
}

impl<E: fmt::Display> fmt::Display for AdaptError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdaptError::Change(e) => e.fmt(f),
            AdaptError::Member => {
                f.write_str("key: a member, so its match is right; expected a key that is not a member")
            }
            AdaptError::NotMember => f.write_str("key: not a member; expected a member"),
            AdaptError::Store(e) => write!(f, "store of the keys: {e}"),
            AdaptError::Inconsistent(e) => e.fmt(f),
            AdaptError::Build(e) => e.fmt(f),
        }
    }
}

// Each speaks for its cause already.
impl<E: std::error::Error> std::error::Error for AdaptError<E> {}

/// Makes an error the cause of a larger one: `?` does the rest.
macro_rules! from {
    ($($cause:ty => $variant:ident,)*) => {$(
        impl<E> From<$cause> for AdaptError<E> {
            fn from(cause: $cause) -> AdaptError<E> {
                AdaptError::$variant(cause.into())
            }
        }
    )*};
}

from! {
    ChangeError => Change,
    Mismatch => Change,
    BuildError => Build,
}

/// Tests compare what went wrong.
#[cfg(test)]
impl<E: fmt::Debug> PartialEq for AdaptError<E> {
    fn eq(&self, other: &AdaptError<E>) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}
