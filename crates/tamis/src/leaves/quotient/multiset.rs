//! fingerprints in and out -> a quotient table: for callers that compute their own fingerprints, and have a secret.
//!
//! These tables keep number 0 and all copies in their slots: what a snapshot holds is the payload, and no caller chooses what is put in.

use super::Quotient;
use super::build::{Add, Count, Delete};
use super::change::Put;
use super::owned::OwnedQuotient;
use super::table::Table;
use crate::arch::{Isa, Kernel, dispatch};
use crate::error::BuildError;
use crate::hash::{Digest, Salt};
use crate::leaves::Geometry;

/// Whether a fingerprint is there.
struct Has<'a>(&'a Quotient, &'a [u8], (usize, u64));

impl Kernel for Has<'_> {
    const V4: bool = false;
    type Output = bool;
    #[inline(always)]
    fn run<I: Isa>(self) -> bool {
        self.0.ask::<I>(self.1, self.2)
    }
}

impl OwnedQuotient {
    /// The fingerprint of a key.
    #[inline(always)]
    pub(crate) fn fingerprint(&self, key: Digest) -> u64 {
        self.geometry.fingerprint(key)
    }

    /// Bits of a remainder.
    pub(crate) fn remainder(&self) -> u32 {
        self.geometry.remainder
    }

    fn table(&self, fingerprint: u64) -> (Table, (usize, u64)) {
        (self.geometry.table(), self.geometry.split(fingerprint))
    }

    /// Whether a fingerprint, which is below the range, is there.
    #[inline]
    pub(crate) fn has(&self, fingerprint: u64) -> bool {
        let place = self.geometry.split(fingerprint);
        dispatch(self.geometry.level, Has(&self.geometry, &self.payload, place))
    }

    /// How often it is there.
    pub(crate) fn copies(&self, fingerprint: u64) -> u64 {
        let (table, place) = self.table(fingerprint);
        dispatch(self.geometry.level, Count(table, &self.payload, place))
    }

    /// Adds it; false, and nothing is changed, if there is no room.
    pub(crate) fn put(&mut self, fingerprint: u64) -> bool {
        let (table, place) = self.table(fingerprint);
        let room = self.geometry.keys < self.geometry.capacity();
        let add = Add(table, &mut self.payload, place, usize::MAX);
        let put = room && matches!(dispatch(self.geometry.level, add), Put::Done(_));
        self.geometry.keys += u64::from(put);
        put
    }

    /// Takes out one copy; false, and nothing is changed, if there is none.
    pub(crate) fn take(&mut self, fingerprint: u64) -> bool {
        let (table, place) = self.table(fingerprint);
        let taken = dispatch(self.geometry.level, Delete(table, &mut self.payload, place));
        self.geometry.keys = self.geometry.keys.saturating_sub(taken.into());
        taken
    }

    /// A payload that a table like [`OwnedQuotient::empty`]'s had; none if no table of this size ever has it.
    pub(crate) fn reopened(size: (u64, u32), salt: Salt, payload: &[u8]) -> Result<Option<OwnedQuotient>, BuildError> {
        let mut geometry = Quotient::new(size, salt)?;
        if payload.len() as u64 != geometry.payload_len() {
            return Ok(None);
        }
        let mut keys = 0;
        geometry.table().each(payload, |_, _| keys += 1);
        geometry.keys = keys;
        OwnedQuotient::checked(geometry, payload)
    }
}
