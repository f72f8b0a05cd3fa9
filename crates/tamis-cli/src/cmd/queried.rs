//! a filter file, plain or learned, or a folder of slices -> answers for keys as they are read.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use tamis::learned::Learned;
use tamis::slices::Sliced;
use tamis::{Error, FormatError, Key, KeyType, Patched, QueryError};

use super::patch::with_patches;
use super::{open_file, shown};
use crate::input::KeyRef;
use crate::mapped::{self, How};

/// What is queried.
#[allow(clippy::large_enum_variant, reason = "there is one of them")]
pub(super) enum Queried {
    Plain(Patched),
    Learned(Learned),
    Sliced(Sliced),
}

impl Queried {
    pub(super) fn open(path: &Path, how: How) -> Result<Queried> {
        open_file(path, "filter", |path| match mapped::filter(path, how) {
            Err(Error::Format { error: FormatError::Form { found: "learned filter", .. }, .. }) => {
                mapped::learned(path, how).map(Queried::Learned)
            }
            Err(Error::Format { error: FormatError::Form { found: mapped::MANIFEST_FORM, .. }, .. })
                if path.as_os_str() != "-" =>
            {
                mapped::sliced(path, how).map(Queried::Sliced)
            }
            filter => Ok(Queried::Plain(filter?.with_patches([])?)),
        })
    }

    /// The same behind patches, in their order.
    pub(super) fn with_patches(self, path: &Path, patches: &[PathBuf], no_verify: bool) -> Result<Queried> {
        match self {
            Queried::Plain(filter) => Ok(Queried::Plain(with_patches(filter, patches, no_verify)?)),
            Queried::Learned(_) if !patches.is_empty() => {
                bail!("--patch: {} is a learned filter, which has no patches; expected a plain one", shown(path))
            }
            Queried::Sliced(_) if !patches.is_empty() => {
                bail!(
                    "--patch: {} is a folder of slices, which has no patches; expected a file; use tamis slice join",
                    shown(path)
                )
            }
            other => Ok(other),
        }
    }

    /// The plain filter, if it is one.
    pub(super) fn plain(&self) -> Option<&Patched> {
        match self {
            Queried::Plain(filter) => Some(filter),
            Queried::Learned(_) | Queried::Sliced(_) => None,
        }
    }

    /// The type of its keys; none without keys, which are of either type.
    pub(super) fn key_type(&self) -> Option<KeyType> {
        match self {
            Queried::Plain(filter) => (!filter.is_empty()).then(|| filter.key_type()),
            Queried::Sliced(filter) => (!filter.is_empty()).then(|| filter.key_type()),
            Queried::Learned(_) => Some(KeyType::Bytes),
        }
    }

    pub(super) fn is_partitioned(&self) -> bool {
        self.plain().is_some_and(Patched::is_partitioned)
    }

    /// The answer for one key, in this partition.
    pub(super) fn contains(&self, key: KeyRef<'_>, partition: Option<&[u8]>) -> Result<bool, QueryError> {
        match (self, key, partition) {
            // An empty filter has keys of either type.
            (Queried::Plain(filter), ..) if filter.is_empty() => Ok(false),
            (Queried::Plain(filter), KeyRef::Bytes(bytes), None) => filter.contains(bytes),
            (Queried::Plain(filter), KeyRef::Integer(number), None) => filter.contains(number),
            (Queried::Plain(filter), KeyRef::Bytes(bytes), Some(name)) => filter.contains_in(name, bytes),
            (Queried::Plain(filter), KeyRef::Integer(number), Some(name)) => filter.contains_in(name, number),
            (Queried::Sliced(filter), ..) if filter.is_empty() => Ok(false),
            (Queried::Sliced(filter), KeyRef::Bytes(bytes), _) => filter.contains(bytes),
            (Queried::Sliced(filter), KeyRef::Integer(number), _) => filter.contains(number),
            (Queried::Learned(filter), KeyRef::Bytes(bytes), _) => Ok(filter.contains(bytes)),
            (Queried::Learned(_), KeyRef::Integer(_), _) => Err(of_text()),
        }
    }

    /// The answers for many keys: all of bytes, or all integers if there are none of bytes. `runs` are partitions, and how many keys in a
    /// row are queried in each.
    pub(super) fn contains_into(
        &self,
        runs: &[(Vec<u8>, usize)],
        keys: &[&[u8]],
        numbers: &[impl Key],
        answers: &mut [bool],
    ) -> Result<(), QueryError> {
        match self {
            Queried::Plain(filter) if filter.is_empty() => Ok(()),
            Queried::Plain(filter) if keys.is_empty() => query_many(filter, runs, numbers, answers),
            Queried::Plain(filter) => query_many(filter, runs, keys, answers),
            Queried::Sliced(filter) if filter.is_empty() => Ok(()),
            Queried::Sliced(filter) if keys.is_empty() => filter.contains_into(numbers, answers),
            Queried::Sliced(filter) => filter.contains_into(keys, answers),
            Queried::Learned(_) if keys.is_empty() => Err(of_text()),
            Queried::Learned(filter) => filter.contains_into(keys, answers),
        }
    }
}

/// A learned filter scores text.
fn of_text() -> QueryError {
    QueryError::KeyType(tamis::Mismatch { filter: KeyType::Bytes, query: KeyType::Integer })
}

/// Queries keys together: without partitions, or partition by partition.
fn query_many<K: Key>(
    filter: &Patched,
    runs: &[(Vec<u8>, usize)],
    mut keys: &[K],
    mut answers: &mut [bool],
) -> Result<(), QueryError> {
    if runs.is_empty() {
        return filter.contains_into(keys, answers);
    }
    for (name, count) in runs {
        let (now, later) = keys.split_at(*count);
        let (room, rest) = answers.split_at_mut(*count);
        room.copy_from_slice(&filter.contains_many_in(name, now)?);
        (keys, answers) = (later, rest);
    }
    Ok(())
}
