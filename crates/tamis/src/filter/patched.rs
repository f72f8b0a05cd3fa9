//! a filter and the patches behind it -> the answers of today.

use std::ops::RangeInclusive;

use super::chain::Chain;
use super::patch::{MAX_PATCHES, Patch};
use super::query::Filter;
use crate::debug::brief_debug;
use crate::error::{FormatError, QueryError};
use crate::hash::{Digest, Key, KeyType};

/// A [`Filter`] with [`Patch`]es: every listed key has the answer of a file that was built from the last lists.
///
/// A key is hashed once for the filter and all patches. Opening a patch copies nothing of the filter. [`finish`](Self::finish) makes one
/// file of all of them.
#[derive(Clone)]
pub struct Patched {
    filter: Filter,
}

brief_debug!(Patched, it => filter: it.filter, patches: it.patches().len());

impl Filter {
    /// Opens patches behind this filter, in the order in which they were made.
    ///
    /// ```
    /// let monday = tamis::build(["ann", "bob"]).exclude(["eve", "joe"]).exact().finish()?;
    /// let mut diff = monday.diff()?;
    /// ["ann", "bob", "eve"].iter().try_for_each(|key| diff.push(key))?;
    /// diff.exclude("joe")?;
    /// let tuesday = monday.with_patches([diff.finish()?])?;
    /// assert!(tuesday.contains("eve")? && !tuesday.contains("joe")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FormatError::Patch`] if a patch was made for another file, or is not the next of the chain, or if there are more than 128.
    pub fn with_patches(&self, patches: impl IntoIterator<Item = Patch>) -> Result<Patched, FormatError> {
        let mut chain = self.chain().cloned().unwrap_or_else(|| Chain::new(self.file().clone()));
        for patch in patches {
            chain.push(patch, self.key_type())?;
        }
        Ok(Patched { filter: self.clone().with_chain(Some(chain).filter(|chain| !chain.patches().is_empty())) })
    }

    /// Returns the patches in this file, in order: see [`Patched::finish`].
    pub fn patches(&self) -> &[Patch] {
        self.chain().map_or(&[], Chain::patches)
    }

    /// Returns how many keys match although the lists of the last patch have them in neither: see [`Patch::delisted`]. None without
    /// patches.
    pub fn delisted(&self) -> RangeInclusive<u64> {
        self.patches().last().map_or(0..=0, Patch::delisted)
    }
}

/// Methods that answer as those of the filter do.
macro_rules! forward {
    ($($(#[$doc:meta])* $name:ident $(<$($kind:ident),+>)? ($($value:ident: $type:ty),*) -> $out:ty;)+) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name $(<$($kind: Key),+>)? (&self, $($value: $type),*) -> $out {
            self.filter.$name($($value),*)
        }
    )+};
}

impl Patched {
    /// Returns `true` for every member of the last list and for a share [`fpr`](Self::fpr) of unlisted keys.
    ///
    /// # Errors
    ///
    /// As [`Filter::contains`].
    #[inline]
    pub fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        self.filter.contains_patched(key)
    }

    forward! {
        /// Returns [`contains`](Self::contains) of many keys.
        ///
        /// # Errors
        ///
        /// As [`Filter::contains`].
        contains_many<K>(keys: &[K]) -> Result<Vec<bool>, QueryError>;

        /// Writes [`contains`](Self::contains) of many keys into `answers`.
        ///
        /// # Errors
        ///
        /// As [`Filter::contains_into`].
        contains_into<K>(keys: &[K], answers: &mut [bool]) -> Result<(), QueryError>;

        /// Returns [`contains`](Self::contains) for a digest: see [`Filter::contains_digest`].
        ///
        /// # Errors
        ///
        /// As [`Filter::contains_digest`].
        contains_digest(digest: Digest) -> Result<bool, QueryError>;

        /// Returns [`contains`](Self::contains) for a key of a partition: see [`Filter::contains_in`].
        ///
        /// # Errors
        ///
        /// As [`Filter::contains_in`].
        contains_in<K>(partition: impl AsRef<[u8]>, key: K) -> Result<bool, QueryError>;

        /// Returns [`contains_in`](Self::contains_in) of many keys of one partition.
        ///
        /// # Errors
        ///
        /// As [`Filter::contains_in`].
        contains_many_in<K>(partition: impl AsRef<[u8]>, keys: &[K]) -> Result<Vec<bool>, QueryError>;

        /// Returns whether this partition was listed, in the filter or in a patch: see [`Filter::has_partition`].
        ///
        /// # Errors
        ///
        /// As [`Filter::has_partition`].
        has_partition(partition: impl AsRef<[u8]>) -> Result<bool, QueryError>;

        /// Returns whether the filter is partitioned.
        is_partitioned() -> bool;

        /// Returns the number of partitions: see [`Filter::partitions`].
        partitions() -> u64;

        /// Returns the patches, in order.
        patches() -> &[Patch];

        /// Returns how many keys match although the last lists have them in neither: see [`Patch::delisted`].
        delisted() -> RangeInclusive<u64>;

        /// Returns the key type.
        key_type() -> KeyType;

        /// Returns the false positive rate: `(1 - (1 - 2 p) (1 - 2 q)^k) / 2` for a filter of rate p and k patches of rate q.
        fpr() -> f64;

        /// Returns whether the filter has no members and its patches flip no answer.
        is_empty() -> bool;
    }

    /// Opens more patches behind these: see [`Filter::with_patches`].
    ///
    /// # Errors
    ///
    /// As [`Filter::with_patches`].
    pub fn with_patches(&self, patches: impl IntoIterator<Item = Patch>) -> Result<Patched, FormatError> {
        self.filter.with_patches(patches)
    }

    /// Returns how many patches may follow.
    pub fn remaining(&self) -> u64 {
        MAX_PATCHES.saturating_sub(self.patches().len() as u64)
    }

    /// The filter, whose bytes lack the patches.
    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }
}
