//! what went wrong -> one line that says what was found and what was expected.

use std::fmt;
use std::io;

use crate::hash::{KeyType, Mismatch};

mod build;

pub use build::{BuildError, Difference, Lack, ShapeError, ValueError};

/// Why bytes are not a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The first bytes are not those of a tamis file.
    Magic,
    /// Written by a version of the format that this build does not know.
    Version {
        /// The file's version.
        found: u16,
        /// The newest version this build reads.
        supported: u16,
    },
    /// The bytes end too early.
    Truncated {
        /// What was being read.
        what: &'static str,
        /// How many bytes it needs.
        needed: u64,
        /// How many there are.
        found: u64,
    },
    /// A field holds a value no writer produces.
    Invalid {
        /// Which field, what it holds, what it may hold.
        reason: String,
    },
    /// The file is a tamis file, and holds something else.
    Form {
        /// What it holds.
        found: &'static str,
        /// What was expected.
        expected: &'static str,
    },
    /// The bytes were changed after they were written.
    Checksum {
        /// Which part: the header and directory, or the payload.
        part: &'static str,
    },
}

impl FormatError {
    /// A field with an impossible value.
    pub(crate) fn invalid(reason: impl Into<String>) -> FormatError {
        FormatError::Invalid { reason: reason.into() }
    }

    /// What every such file keeps; the error says what this one has instead.
    pub(crate) fn check<S: Into<String>>(holds: bool, reason: impl FnOnce() -> S) -> Result<(), FormatError> {
        if holds { Ok(()) } else { Err(FormatError::invalid(reason())) }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::Magic => f.write_str("not a tamis file (the first eight bytes are not its mark)"),
            FormatError::Version { found, supported } => {
                write!(f, "format version {found} is newer than this build reads (up to {supported}); upgrade tamis")
            }
            FormatError::Truncated { what, needed, found } => {
                write!(f, "cut short: {what} needs {needed} bytes, {found} are there")
            }
            FormatError::Invalid { reason } => write!(f, "invalid file: {reason}"),
            FormatError::Form { found, expected } => {
                let article = |what: &str| if what.starts_with('a') { "an" } else { "a" };
                write!(f, "the file holds {} {found}, expected {} {expected}", article(found), article(expected))
            }
            FormatError::Checksum { part } => write!(f, "damaged: the checksum of the {part} does not match"),
        }
    }
}

/// Why a query has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryError {
    /// The key is of the wrong key type.
    KeyType(Mismatch),
    /// The room for answers is not as long as the list of keys.
    Length {
        /// Number of keys.
        keys: usize,
        /// Room for answers.
        answers: usize,
    },
    /// A query without a label for a filter whose keys carry labels, or one with a label for a filter whose keys carry none.
    Partition {
        /// Whether the filter's keys carry labels.
        partitioned: bool,
    },
    /// The values of a map are of the other key type than the caller expects.
    Values {
        /// The values of the map.
        found: KeyType,
    },
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::KeyType(mismatch) => mismatch.fmt(f),
            QueryError::Length { keys, answers } => {
                write!(f, "{keys} keys need room for as many answers, not {answers}")
            }
            QueryError::Partition { partitioned: true } => {
                f.write_str("the filter is partitioned: a key is asked for under a label")
            }
            QueryError::Partition { partitioned: false } => {
                f.write_str("the filter is not partitioned: a key is asked for without a label")
            }
            QueryError::Values { found: KeyType::Bytes } => f.write_str("the values of this map are bytes"),
            QueryError::Values { found: KeyType::U64 | KeyType::Digest } => {
                f.write_str("the values of this map are numbers")
            }
        }
    }
}

/// Why a filter was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeError {
    /// The key is of the wrong key type.
    KeyType(Mismatch),
    /// The filter has no room for another key.
    Full {
        /// Keys it holds.
        keys: u64,
        /// Keys it was made for.
        capacity: u64,
    },
    /// Two filters cannot become one.
    Unlike {
        /// What they do not share.
        what: &'static str,
    },
    /// The filter cannot do this.
    Unsupported {
        /// What it cannot.
        what: &'static str,
    },
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::KeyType(mismatch) => mismatch.fmt(f),
            ChangeError::Full { keys, capacity } => {
                write!(f, "the filter is full: it holds {keys} keys and was made for {capacity}")
            }
            ChangeError::Unlike { what } => write!(f, "the filters cannot be merged: they differ in {what}"),
            ChangeError::Unsupported { what } => f.write_str(what),
        }
    }
}

/// Anything that can go wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// While building.
    Build(BuildError),
    /// While opening.
    Format(FormatError),
    /// While asking.
    Query(QueryError),
    /// While inserting, removing or merging.
    Change(ChangeError),
    /// While reading or writing files.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Build(e) => e.fmt(f),
            Error::Format(e) => e.fmt(f),
            Error::Query(e) => e.fmt(f),
            Error::Change(e) => e.fmt(f),
            Error::Io(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for FormatError {}
impl std::error::Error for QueryError {}
impl std::error::Error for ChangeError {}
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Each speaks for its cause already: a chain that named both would say everything twice.
            Error::Build(e) => e.source(),
            Error::Format(e) => e.source(),
            Error::Query(e) => e.source(),
            Error::Change(e) => e.source(),
            Error::Io(e) => e.source(),
        }
    }
}

/// Makes an error the cause of a larger one: `?` does the rest.
macro_rules! from {
    ($($cause:ty => $error:ident::$variant:ident,)*) => {$(
        impl From<$cause> for $error {
            fn from(cause: $cause) -> $error {
                $error::$variant(cause)
            }
        }
    )*};
}

from! {
    BuildError => Error::Build,
    FormatError => Error::Format,
    QueryError => Error::Query,
    ChangeError => Error::Change,
    io::Error => Error::Io,
    io::Error => BuildError::Io,
    ShapeError => BuildError::Shape,
    ValueError => BuildError::Value,
    Mismatch => QueryError::KeyType,
    Mismatch => ChangeError::KeyType,
}

impl From<Mismatch> for BuildError {
    fn from(_: Mismatch) -> BuildError {
        BuildError::MixedKeyTypes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sentences_about_queries_and_changes() {
        let mismatch = KeyType::Bytes.check(KeyType::U64).unwrap_err();
        let key_type = "the filter holds bytes keys and was asked for a u64 key";
        for (error, sentence) in [
            (QueryError::from(mismatch), key_type),
            (QueryError::Length { keys: 3, answers: 2 }, "3 keys need room for as many answers, not 2"),
            (
                QueryError::Partition { partitioned: true },
                "the filter is partitioned: a key is asked for under a label",
            ),
            (
                QueryError::Partition { partitioned: false },
                "the filter is not partitioned: a key is asked for without a label",
            ),
            (QueryError::Values { found: KeyType::Bytes }, "the values of this map are bytes"),
            (QueryError::Values { found: KeyType::U64 }, "the values of this map are numbers"),
        ] {
            assert_eq!([error.to_string(), Error::from(error).to_string()], [sentence; 2]);
        }
        for (error, sentence) in [
            (ChangeError::from(mismatch), key_type),
            (ChangeError::Full { keys: 9, capacity: 8 }, "the filter is full: it holds 9 keys and was made for 8"),
            (ChangeError::Unlike { what: "their hash" }, "the filters cannot be merged: they differ in their hash"),
            (ChangeError::Unsupported { what: "Bloom filters give no keys back" }, "Bloom filters give no keys back"),
        ] {
            assert_eq!([error.to_string(), Error::from(error).to_string()], [sentence; 2]);
        }
        let mixed = "some keys are integers and some are bytes; a filter holds one kind";
        assert_eq!(BuildError::from(mismatch).to_string(), mixed);
        assert_eq!(KeyType::U64.check(KeyType::U64), Ok(()));
    }
}
