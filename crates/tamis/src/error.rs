//! what went wrong -> one line that says what was found and what was expected.

use std::fmt;
use std::io;

use crate::hash::Domain;

/// Why a filter could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// Keys that are wanted and excluded at the same time.
    Conflict {
        /// How many distinct keys are on both sides.
        count: u64,
        /// The first few, as (position among the keys, position among the negatives), both from 0.
        first: Vec<(u64, u64)>,
    },
    /// No seed gave a solvable system. Distinct digests make this practically impossible; equal ones make it certain.
    Unsolvable {
        /// The structure that gave up.
        structure: &'static str,
        /// The number of keys it was given.
        keys: usize,
        /// How many seeds were tried.
        attempts: u32,
    },
    /// An exact filter, or one that may match a share of the excluded keys, without any excluded key: it would match every key.
    NothingExcluded,
    /// The goal lies outside what the structure can do.
    Unreachable {
        /// What was asked for, what is possible.
        reason: String,
    },
    /// Keys of a map that come with two different values.
    TwoValues {
        /// How many distinct keys.
        count: u64,
        /// The first few, as the positions of two of their pairs in the input, both from 0.
        first: Vec<(u64, u64)>,
    },
    /// A value that the alphabet or the width of a map does not have.
    Value {
        /// The value, and what was declared.
        reason: String,
    },
    /// The keys come from both domains.
    MixedDomains,
    /// The temporary files would grow past the limit the caller set.
    DiskLimit {
        /// The limit in bytes.
        limit: u64,
    },
    /// The progress callback asked to stop.
    Cancelled,
    /// Reading keys back or writing temporary or result files failed.
    Io(io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Conflict { count, first } => {
                write!(f, "{count} {} both wanted and excluded", if *count == 1 { "key is" } else { "keys are" })?;
                for (i, (key, negative)) in first.iter().enumerate() {
                    let lead = if i == 0 { ": " } else { ", " };
                    write!(f, "{lead}key {key} = negative {negative}")?;
                }
                f.write_str("; if they differ, their digests were made equal, which a secret key prevents")
            }
            BuildError::Unsolvable { structure, keys, attempts } => {
                write!(f, "{structure}: no solution for {keys} keys after {attempts} seeds; are two of them equal?")
            }
            BuildError::TwoValues { count, first } => {
                write!(f, "{count} {} two values", if *count == 1 { "key has" } else { "keys have" })?;
                for (i, (one, other)) in first.iter().enumerate() {
                    write!(f, "{}pairs {one} and {other}", if i == 0 { ": " } else { ", " })?;
                }
                Ok(())
            }
            BuildError::NothingExcluded => f.write_str(
                "exact: no key is excluded, so every key would match; expected excluded keys, or a rate or bits per key as the goal",
            ),
            BuildError::Unreachable { reason } | BuildError::Value { reason } => f.write_str(reason),
            BuildError::MixedDomains => {
                f.write_str("some keys are integers and some are bytes; a filter holds one kind")
            }
            BuildError::DiskLimit { limit } => {
                write!(f, "temporary files would exceed the disk limit of {limit} bytes")
            }
            BuildError::Cancelled => f.write_str("cancelled"),
            BuildError::Io(e) => e.fmt(f),
        }
    }
}

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

/// Why a query was refused instead of answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryError {
    /// The key is of a domain the filter was not built from: "no" would be a guess.
    Domain {
        /// The filter's domain.
        filter: Domain,
        /// The query's domain.
        query: Domain,
    },
    /// The room for answers is not as long as the list of keys.
    Length {
        /// Number of keys.
        keys: usize,
        /// Room for answers.
        answers: usize,
    },
    /// A filter whose keys carry labels was asked without one, or one without labels was asked with one.
    Partition {
        /// Whether the filter's keys carry labels.
        partitioned: bool,
    },
    /// A filter that keys are added to has no place for another. Nothing was changed.
    Full {
        /// Keys it holds.
        keys: u64,
        /// Keys it was made for.
        capacity: u64,
    },
    /// The filter cannot do this.
    Unsupported {
        /// What it cannot.
        what: &'static str,
    },
    /// Two filters cannot become one.
    Unlike {
        /// What they do not share.
        what: &'static str,
    },
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::Domain { filter, query } => {
                write!(f, "the filter holds {filter} keys and was asked for a {query} key")
            }
            QueryError::Length { keys, answers } => {
                write!(f, "{keys} keys need room for as many answers, not {answers}")
            }
            QueryError::Partition { partitioned: true } => {
                f.write_str("the filter is partitioned: a key is asked for under a label")
            }
            QueryError::Partition { partitioned: false } => {
                f.write_str("the filter is not partitioned: a key is asked for without a label")
            }
            QueryError::Full { keys, capacity } => {
                write!(f, "the filter is full: it holds {keys} keys and was made for {capacity}")
            }
            QueryError::Unsupported { what } => f.write_str(what),
            QueryError::Unlike { what } => write!(f, "the filters cannot be merged: they differ in {what}"),
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
    /// While reading or writing files.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Build(e) => e.fmt(f),
            Error::Format(e) => e.fmt(f),
            Error::Query(e) => e.fmt(f),
            Error::Io(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // It speaks for its cause already.
        if let BuildError::Io(e) = self { e.source() } else { None }
    }
}
impl std::error::Error for FormatError {}
impl std::error::Error for QueryError {}
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Each speaks for its cause already: a chain that named both would say everything twice.
            Error::Build(e) => e.source(),
            Error::Format(e) => e.source(),
            Error::Query(e) => e.source(),
            Error::Io(e) => e.source(),
        }
    }
}

impl From<BuildError> for Error {
    fn from(e: BuildError) -> Error {
        Error::Build(e)
    }
}
impl From<FormatError> for Error {
    fn from(e: FormatError) -> Error {
        Error::Format(e)
    }
}
impl From<QueryError> for Error {
    fn from(e: QueryError) -> Error {
        Error::Query(e)
    }
}
impl From<io::Error> for Error {
    fn from(e: io::Error) -> Error {
        Error::Io(e)
    }
}
impl From<io::Error> for BuildError {
    fn from(e: io::Error) -> BuildError {
        BuildError::Io(e)
    }
}
