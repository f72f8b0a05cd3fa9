//! a hash + a table -> digests of keys, and a file: what all filters that change have in common.

use std::io::Write;

use bytes::Bytes;

use crate::error::{BuildError, FormatError};
use crate::filter::open::open_alone;
use crate::filter::steps::Step;
use crate::format::{self, Budget, Encoded, Form, Header, Writer};
use crate::hash::{Digest, Hasher, Key, KeyType, Mismatch, Salt};
use crate::leaves::{Leaf, Role};

/// The salt of the only step of a file, unless it was built with another.
pub(super) const SALT: Salt = Salt::new(0);

/// What a filter around one layer, which is its only field, says of it.
macro_rules! of_layer {
    ($filter:ty) => {
        impl $filter {
            /// Returns `true` for every member and for a share [`fpr`](Self::fpr) of unlisted keys.
            ///
            /// # Errors
            ///
            /// [`QueryError::KeyType`] if the key type is not the filter's.
            #[inline]
            pub fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
                Ok(self.0.table.contains(self.0.digest(key)?))
            }

            /// Returns the number of keys. A key that was inserted twice counts twice.
            pub fn len(&self) -> u64 {
                self.0.table.keys()
            }

            /// Returns `true` if there are no keys.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns the share of unlisted keys that match now, by the number of keys.
            pub fn fpr(&self) -> f64 {
                self.0.table.fpr()
            }

            fn write(&self, out: &mut dyn std::io::Write) -> Result<(), BuildError> {
                self.0.write(out, self.0.table.tag(), self.len(), &self.0.table.encoded())
            }
        }
    };
}

/// A filter that changes as a file, and the ways back; `write` and `restored` are its own, and the field has its hash.
macro_rules! is_file {
    ($filter:ty, $($hasher:tt).+: $of:literal, $errors:literal) => {
        impl $filter {
            /// Returns the filter as a file, which [`Filter::open`](crate::Filter::open) and [`restore`](Self::restore) read.
            ///
            /// # Errors
            ///
            /// [`BuildError::NoMemory`](crate::BuildError::NoMemory) or another [`BuildError`](crate::BuildError) if there is no
            /// memory for the file.
            pub fn snapshot(&self) -> Result<Vec<u8>, crate::error::BuildError> {
                let mut file = vec![];
                self.write(&mut file)?;
                Ok(file)
            }

            /// Writes the [`snapshot`](Self::snapshot) to a file, which appears, or replaces an older one, when it is complete and
            /// not before: [`read`](Self::read) restores it. Only its owner may read a file that holds a secret.
            ///
            /// # Errors
            ///
            /// As [`snapshot`](Self::snapshot), and if the file cannot be written.
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), crate::error::Error> {
                crate::file::to_file(path.as_ref(), self.$($hasher).+.is_written(), |out| Ok(self.write(out)?))
            }

            /// Reads a file and restores its filter: see [`restore`](Self::restore).
            ///
            /// # Errors
            ///
            /// As [`restore`](Self::restore), and if the file cannot be read.
            pub fn read(path: impl AsRef<std::path::Path>) -> Result<Self, crate::error::Error> {
                let path = path.as_ref();
                crate::format::open_file(path, crate::arch::arena::read(path), Self::restore)
            }

            /// Reads a file whose secret is not in it: see [`restore_with_secret`](Self::restore_with_secret).
            ///
            /// # Errors
            ///
            /// As [`restore_with_secret`](Self::restore_with_secret), and if the file cannot be read.
            pub fn read_with_secret(
                path: impl AsRef<std::path::Path>,
                secret: [u64; 2],
            ) -> Result<Self, crate::error::Error> {
                let path = path.as_ref();
                let restore = |bytes| Self::restore_with_secret(bytes, secret);
                crate::format::open_file(path, crate::arch::arena::read(path), restore)
            }

            #[doc = concat!("Returns the filter of a snapshot", $of, " All of it is checked.")]
            ///
            /// # Errors
            ///
            #[doc = $errors]
            pub fn restore(bytes: impl crate::format::Source) -> Result<Self, FormatError> {
                Self::restored(bytes.into_bytes(), None)
            }

            /// Returns the filter of a file whose secret is not in it. Its snapshots do not hold the secret either.
            ///
            /// # Errors
            ///
            /// As [`restore`](Self::restore), and [`FormatError::Secret`] if the secret is not the one that the file was written with.
            pub fn restore_with_secret(bytes: impl crate::format::Source, secret: [u64; 2]) -> Result<Self, FormatError> {
                Self::restored(bytes.into_bytes(), Some(secret))
            }
        }
    };
}
pub(super) use {is_file, of_layer};

/// A table, and how its keys are hashed.
#[derive(Clone)]
pub(super) struct Core<T> {
    pub(super) hasher: Hasher,
    pub(super) key_type: KeyType,
    /// What the salt follows from: see [`Header::salts`].
    pub(super) salts: u64,
    pub(super) table: T,
}

impl<T> Core<T> {
    #[inline]
    pub(super) fn digest<K: Key>(&self, key: K) -> Result<Digest, Mismatch> {
        self.key_type.digest(key, &self.hasher)
    }

    /// A filter file of one shard and one step.
    pub(super) fn write(&self, out: &mut dyn Write, tag: u8, keys: u64, parts: &[Encoded]) -> Result<(), BuildError> {
        let header =
            Header { salts: self.salts, keys, ..Header::new(Form::Filter, self.hasher.clone(), self.key_type) };
        let mut writer = Writer::new(out, &header, vec![[Role::Positive.encode(), tag]])?;
        writer.shard(parts)?;
        writer.finish()?;
        Ok(())
    }

    /// Reads a filter file of one shard; returns the number of keys in its header too, or none if `find` finds no table in its only step.
    ///
    /// `name` is that of the structure, and checking its table takes `memory` bytes for each byte of the file.
    pub(super) fn read(
        bytes: Bytes,
        secret: Option<[u64; 2]>,
        name: &str,
        memory: u64,
        find: impl FnOnce(&Leaf) -> Option<T>,
    ) -> Result<Option<(Core<T>, u64)>, FormatError> {
        format::verify(&bytes)?;
        let budget = Budget::of(&bytes);
        let contents = open_alone(&bytes, secret, &budget)?;
        budget.draw(memory * bytes.len() as u64)?;
        let Header { hasher, key_type, salts, keys, shard_bits, .. } = contents.header;
        FormatError::check(shard_bits == 0, || format!("a {name} in several shards cannot be taken up"))?;
        let [Step { role: Role::Positive, leaf, .. }] = &contents.steps[..] else { return Ok(None) };
        let Some(table) = find(leaf) else { return Ok(None) };
        // Without keys a built filter has no table, and a key that is put nowhere is not found again.
        FormatError::check(leaf.payload_len(0) > 0, || format!("a {name} without a table takes no keys"))?;
        Ok(Some((Core { hasher, key_type, salts, table }, keys)))
    }
}
