//! a hash + a table -> digests of keys, and a file: what all filters that change have in common.

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

            /// Returns the share of unlisted keys that match now.
            pub fn fpr(&self) -> f64 {
                self.0.table.fpr()
            }

            /// Returns the filter as a file, which [`Filter::open`](crate::Filter::open) and `restore` read.
            ///
            /// # Errors
            ///
            /// [`BuildError::NoMemory`] or another [`BuildError`] if there is no memory for the file.
            pub fn snapshot(&self) -> Result<Vec<u8>, BuildError> {
                self.0.write(self.0.table.tag(), self.len(), &self.0.table.encoded())
            }
        }
    };
}

/// The ways to restore a filter; `restored` is its own.
macro_rules! restores {
    ($filter:ty: $of:literal, $errors:literal) => {
        impl $filter {
            #[doc = concat!("Returns the filter of a snapshot", $of, " All of it is checked.")]
            ///
            /// # Errors
            ///
            #[doc = $errors]
            pub fn restore(bytes: impl Into<Bytes>) -> Result<Self, FormatError> {
                Self::restored(bytes.into(), None)
            }

            /// Returns the filter of a file whose secret is not in it. Its snapshots do not hold the secret either.
            ///
            /// # Errors
            ///
            /// As [`restore`](Self::restore), and [`FormatError::Secret`] if the secret is not the one that the file was written with.
            pub fn restore_with_secret(bytes: impl Into<Bytes>, secret: [u64; 2]) -> Result<Self, FormatError> {
                Self::restored(bytes.into(), Some(secret))
            }
        }
    };
}
pub(super) use {of_layer, restores};

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
    pub(super) fn write(&self, tag: u8, keys: u64, parts: &[Encoded]) -> Result<Vec<u8>, BuildError> {
        let header =
            Header { salts: self.salts, keys, ..Header::new(Form::Filter, self.hasher.clone(), self.key_type) };
        let mut file = vec![];
        let mut writer = Writer::new(&mut file, &header, vec![[Role::Positive.encode(), tag]])?;
        writer.shard(parts)?;
        writer.finish()?;
        Ok(file)
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
