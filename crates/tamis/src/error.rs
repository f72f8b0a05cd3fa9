//! what went wrong -> one line: the subject, what is wrong, what was expected, what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::hash::{KeyType, Mismatch};

mod build;

pub use build::{BuildError, Difference, Lack, ShapeError, ValueError};

/// Why bytes cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The first bytes are not those of a tamis file.
    Magic,
    /// A number that this release does not know, of a newer version of the format or of a structure, hash, key type or form that came later.
    Unsupported {
        /// What is numbered.
        what: &'static str,
        /// The number.
        number: u64,
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
    /// A patch that does not belong behind the file, or not there.
    Patch {
        /// What it is for, and what was expected.
        reason: String,
    },
    /// The secret of the file's hash is kept beside the file, and was not given, or is another one.
    Secret {
        /// Whether one was given.
        given: bool,
    },
    /// A secret was given for a file that has its hash inside.
    NoSecret,
    /// The last bytes are not the end of a tamis file.
    Closing,
    /// The file keeps no digests, which changes need.
    ReadOnly,
}

impl FormatError {
    /// A field with an impossible value.
    pub(crate) fn invalid(reason: impl Into<String>) -> FormatError {
        FormatError::Invalid { reason: reason.into() }
    }

    /// A number of something that is not known.
    pub(crate) fn unsupported(what: &'static str, number: impl Into<u64>) -> FormatError {
        FormatError::Unsupported { what, number: number.into() }
    }

    /// What every such file keeps; the error says what this one has instead.
    pub(crate) fn check<S: Into<String>>(holds: bool, reason: impl FnOnce() -> S) -> Result<(), FormatError> {
        if holds { Ok(()) } else { Err(FormatError::invalid(reason())) }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::ReadOnly => f.write_str(
                "read-only: the file keeps no digests of its keys; expected a filter that was built to change",
            ),
            FormatError::Magic => {
                f.write_str("not a tamis file: wrong first eight bytes; expected a file that tamis wrote")
            }
            FormatError::Unsupported { what, number } => {
                write!(f, "{what} {number} is not supported by this release; upgrade tamis")
            }
            FormatError::Truncated { what, needed, found } => {
                write!(
                    f,
                    "truncated or damaged: {what} needs {needed} bytes, found {found}; copy or build the file again"
                )
            }
            FormatError::Invalid { reason } => write!(f, "invalid file: {reason}"),
            FormatError::Patch { reason } => write!(f, "patch: {reason}"),
            FormatError::Secret { given: false } => {
                f.write_str("the secret is not in the file; expected to be given it")
            }
            FormatError::Secret { given: true } => {
                f.write_str("wrong secret; expected the one that the file was built with")
            }
            FormatError::NoSecret => {
                f.write_str("a secret was given; expected none, as the file holds all of its hash")
            }
            FormatError::Closing => f.write_str("wrong last four bytes; expected the end of a file that tamis wrote"),
            FormatError::Form { found, expected } => {
                let article = |what: &str| if what.starts_with('a') { "an" } else { "a" };
                write!(f, "the file holds {} {found}; expected {} {expected}", article(found), article(expected))
            }
            FormatError::Checksum { part } => {
                write!(f, "damaged: the checksum of the {part} does not match; copy or build the file again")
            }
        }
    }
}

/// Why a query has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryError {
    /// The key is of the wrong key type.
    KeyType(Mismatch),
    /// The slice for the answers is not as long as that of the keys.
    Length {
        /// Number of keys.
        keys: usize,
        /// Length of the slice for the answers.
        answers: usize,
    },
    /// A query without a partition for a partitioned filter, or one with a partition for another.
    Partition {
        /// Whether the filter is partitioned.
        partitioned: bool,
    },
    /// The values of the map are bytes and the caller expects numbers, or the other way round.
    Values {
        /// What the values are: [`KeyType::Bytes`] or [`KeyType::Integer`].
        found: KeyType,
    },
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::KeyType(mismatch) => mismatch.fmt(f),
            QueryError::Length { keys, answers } => {
                write!(f, "answers: a slice of {answers} for {keys} keys; expected as many")
            }
            QueryError::Partition { partitioned: true } => {
                f.write_str("the filter is partitioned; expected a partition with the key")
            }
            QueryError::Partition { partitioned: false } => {
                f.write_str("the filter is not partitioned; expected a key without a partition")
            }
            QueryError::Values { found: KeyType::Bytes } => {
                f.write_str("the values of the map are bytes; expected numbers")
            }
            QueryError::Values { found: KeyType::Integer | KeyType::Digest | KeyType::Fields } => {
                f.write_str("the values of the map are numbers; expected bytes")
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
    /// The filter is full.
    Full {
        /// Keys it holds.
        keys: u64,
        /// Keys that fit.
        capacity: u64,
    },
    /// Two filters cannot become one.
    Unlike {
        /// What they do not share.
        what: &'static str,
    },
    /// The key to exclude is a member.
    Member,
    /// The key to insert is excluded.
    Excluded,
    /// The key to remove is no member.
    Absent,
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
                write!(f, "capacity {capacity}: full with {keys} keys; build a larger filter")
            }
            ChangeError::Unlike { what } => write!(f, "merge: the filters differ in {what}; expected the same"),
            ChangeError::Member => f.write_str("exclude: the key is a member; remove it first"),
            ChangeError::Excluded => f.write_str("insert: the key is excluded; allow it first"),
            ChangeError::Absent => f.write_str("remove: the key is no member; expected one that was inserted"),
            ChangeError::Unsupported { what } => f.write_str(what),
        }
    }
}

/// Any error of the library.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A build failed.
    Build(BuildError),
    /// Bytes or a file cannot be opened.
    Format {
        /// The file, if it is one.
        path: Option<PathBuf>,
        /// Why.
        error: FormatError,
    },
    /// A query has no answer.
    Query(QueryError),
    /// A key was not inserted or removed, or two filters not merged.
    Change(ChangeError),
    /// Reading or writing failed.
    Io {
        /// The file, where it is known.
        path: Option<PathBuf>,
        /// Why.
        error: io::Error,
    },
}

impl Error {
    /// Names the file, unless one is named already.
    pub(crate) fn at(mut self, file: &Path) -> Error {
        if let Error::Format { path, .. } | Error::Io { path, .. } = &mut self {
            path.get_or_insert_with(|| file.to_path_buf());
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Error::Format { path: Some(path), .. } | Error::Io { path: Some(path), .. } = self {
            write!(f, "{}: ", path.display())?;
        }
        match self {
            Error::Build(e) => e.fmt(f),
            Error::Format { error, .. } => error.fmt(f),
            Error::Query(e) => e.fmt(f),
            Error::Change(e) => e.fmt(f),
            Error::Io { error, .. } => error.fmt(f),
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
            Error::Format { error, .. } => error.source(),
            Error::Query(e) => e.source(),
            Error::Change(e) => e.source(),
            Error::Io { error, .. } => error.source(),
        }
    }
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Error {
        Error::Format { path: None, error }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io { path: None, error }
    }
}

impl From<BuildError> for Error {
    /// What a build could not read or write is the same error as anywhere else.
    fn from(error: BuildError) -> Error {
        if let BuildError::Io { path, error } = error { Error::Io { path, error } } else { Error::Build(error) }
    }
}

impl From<io::Error> for BuildError {
    fn from(error: io::Error) -> BuildError {
        BuildError::Io { path: None, error }
    }
}

/// For functions that read keys and return `io::Result`.
impl From<BuildError> for io::Error {
    fn from(error: BuildError) -> io::Error {
        if let BuildError::Io { path: None, error } = error { error } else { io::Error::other(error) }
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
    QueryError => Error::Query,
    ChangeError => Error::Change,
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
        let mismatch = KeyType::Bytes.check(KeyType::Integer).unwrap_err();
        let key_type = "wrong key type integer; expected bytes";
        for (error, sentence) in [
            (QueryError::from(mismatch), key_type),
            (QueryError::Length { keys: 3, answers: 2 }, "answers: a slice of 2 for 3 keys; expected as many"),
            (
                QueryError::Partition { partitioned: true },
                "the filter is partitioned; expected a partition with the key",
            ),
            (
                QueryError::Partition { partitioned: false },
                "the filter is not partitioned; expected a key without a partition",
            ),
            (QueryError::Values { found: KeyType::Bytes }, "the values of the map are bytes; expected numbers"),
            (QueryError::Values { found: KeyType::Integer }, "the values of the map are numbers; expected bytes"),
        ] {
            assert_eq!([error.to_string(), Error::from(error).to_string()], [sentence; 2]);
        }
        for (error, sentence) in [
            (ChangeError::from(mismatch), key_type),
            (ChangeError::Full { keys: 9, capacity: 8 }, "capacity 8: full with 9 keys; build a larger filter"),
            (ChangeError::Unlike { what: "their hash" }, "merge: the filters differ in their hash; expected the same"),
            (ChangeError::Unsupported { what: "remove: a Bloom filter" }, "remove: a Bloom filter"),
        ] {
            assert_eq!([error.to_string(), Error::from(error).to_string()], [sentence; 2]);
        }
        let mixed = "keys: of two key types; expected one key type";
        assert_eq!(BuildError::from(mismatch).to_string(), mixed);
        assert_eq!(KeyType::Integer.check(KeyType::Integer), Ok(()));
    }
}
