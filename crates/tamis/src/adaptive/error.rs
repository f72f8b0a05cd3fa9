//! what went wrong with an adaptive filter -> one line; whatever it is, no key was lost.

use std::fmt;

use crate::error::ChangeError;

/// Why an adaptive filter did not do what it was asked to. No key is lost, and none is in it that was not; steps may have been made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdaptError<E> {
    /// A key of the wrong key type, or no room for another.
    Change(ChangeError),
    /// A repair was asked for a key that is in the set: "yes" was the right answer.
    Present,
    /// A key that is not in the set cannot be removed.
    Absent,
    /// The reverse map failed.
    Map(E),
    /// The reverse map does not know the key behind a fingerprint.
    Unfiled {
        /// The name under which it must be filed.
        name: u64,
    },
    /// The reverse map has two keys with one fingerprint, which the filter never allows; one of them is not in the set.
    Ambiguous {
        /// The name under which both are filed.
        name: u64,
    },
    /// The reverse map gave a next key that does not come after the last one, or that the filter does not hold.
    Order,
}

impl<E: fmt::Display> fmt::Display for AdaptError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdaptError::Change(e) => e.fmt(f),
            AdaptError::Present => f.write_str("the key is in the set: there is nothing to repair"),
            AdaptError::Absent => f.write_str("the key is not in the set and cannot be removed"),
            AdaptError::Map(e) => write!(f, "reverse map: {e}"),
            AdaptError::Unfiled { name } => {
                write!(f, "reverse map: no key of the set is filed under {name:#x}, expected one")
            }
            AdaptError::Ambiguous { name } => {
                write!(f, "reverse map: two keys under {name:#x} have the same fingerprint, expected one")
            }
            AdaptError::Order => f.write_str("reverse map: the next key is not one of the set after the last"),
        }
    }
}

impl<E: std::error::Error> std::error::Error for AdaptError<E> {}

impl<E, C: Into<ChangeError>> From<C> for AdaptError<E> {
    fn from(cause: C) -> AdaptError<E> {
        AdaptError::Change(cause.into())
    }
}
