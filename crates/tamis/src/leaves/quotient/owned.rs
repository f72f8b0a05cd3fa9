//! sorted places -> a table that owns its bytes, and back.

use super::table::BLOCK;
use super::{One, Quotient};
use crate::arch::{Answer, Isa, QueryFn};
use crate::error::{BuildError, FormatError};
use crate::hash::{Digest, Salt};
use crate::leaves::bloom::zeros;
use crate::leaves::change::Owned;
use crate::leaves::{Geometry, Part};

/// A quotient filter that owns its payload.
pub(crate) type OwnedQuotient = Owned<Quotient>;

impl Answer<OwnedQuotient> for One {
    #[inline(always)]
    fn answer<I: Isa>(held: &OwnedQuotient, key: Digest) -> bool {
        held.geometry.answer::<I>(&held.payload, key)
    }
}

impl OwnedQuotient {
    /// Without keys.
    pub(crate) fn empty(size: (u64, u32), salt: Salt) -> Result<OwnedQuotient, BuildError> {
        Owned::zeros(Quotient::new(size, salt)?)
    }

    /// With these places, sorted.
    pub(super) fn of(geometry: Quotient, sorted: &[u64]) -> Result<OwnedQuotient, BuildError> {
        let blocks = geometry.blocks.max(geometry.needed(sorted));
        let geometry = Quotient { blocks, keys: sorted.len() as u64, ..geometry };
        let mut owned = Owned::zeros(geometry)?;
        geometry.lay_out(sorted, &mut owned.payload);
        Ok(owned)
    }

    /// The fastest way to query one key.
    pub(crate) fn ask(&self) -> QueryFn<OwnedQuotient> {
        QueryFn::new::<One>(self.geometry.level)
    }

    /// All places, sorted.
    pub(crate) fn places(&self) -> Vec<u64> {
        let mut all = Vec::with_capacity(self.payload.len() / self.geometry.table().size() * BLOCK);
        let remainder = self.geometry.remainder;
        self.geometry.table().each(&self.payload, |quotient, low| all.push(quotient << remainder | low));
        all
    }

    /// Bytes of memory that checking a payload takes for each of its bytes: a list of places, and the payload written again.
    pub(crate) const CHECK: u64 = 24;

    /// A payload as a file has it, with room at its end; none if it is not what its places would be written as.
    pub(crate) fn checked(geometry: Quotient, payload: &[u8]) -> Result<Option<OwnedQuotient>, BuildError> {
        let mut held = OwnedQuotient { geometry, payload: payload.to_vec() };
        let all = held.places();
        let sane =
            all.is_sorted() && all.len() as u64 == geometry.keys && all.last().is_none_or(|&f| f < geometry.range());
        if !sane || geometry.needed(&all) > geometry.blocks {
            return Ok(None);
        }
        let again = OwnedQuotient::of(geometry, &all)?;
        if again.payload != held.payload {
            return Ok(None);
        }
        let room = Quotient::new((geometry.slots, geometry.remainder), geometry.salt)?;
        held.geometry.blocks = geometry.blocks.max(room.blocks);
        let more = held.geometry.payload_len() - geometry.payload_len();
        zeros(&mut held.payload, more)?;
        Ok(Some(held))
    }

    /// A part of a file, checked: what is changed must not contradict itself.
    pub(crate) fn read(part: &Part<Quotient>) -> Result<OwnedQuotient, FormatError> {
        let checked = OwnedQuotient::checked(part.geometry, &part.payload);
        let checked = checked.map_err(|error| FormatError::invalid(error.to_string()))?;
        checked.ok_or_else(|| FormatError::invalid("the slots of the quotient filter contradict one another"))
    }
}
