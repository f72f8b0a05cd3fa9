//! keys or negatives as they come -> sorted, of one of two kinds of records: what filters and sets gather.

use std::sync::Arc;

use super::span::{self, Side};
use super::{Intake, SideCounts, Sorted, Tagged, Workspace, count_sides, crowd};
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::hash::Digest;
use crate::parallel::Stop;

/// The keys or the negatives, with or without weights and their places in the input.
pub enum Keys {
    /// 16 bytes each. A conflict with a negative is found and counted, but its examples need places.
    Plain(Sorted<Digest>),
    /// 32 bytes each.
    Tagged(Sorted<Tagged>),
}

brief_debug!(Keys, _it => );

/// Runs `$do` with the records, whichever they are.
macro_rules! with_records {
    ($of:ident, $value:expr, $records:ident => $do:expr) => {
        match $value {
            $of::Plain($records) => $do,
            $of::Tagged($records) => $do,
        }
    };
}
pub(super) use with_records;

impl Keys {
    pub(super) fn side(&self) -> &dyn Side {
        with_records!(Keys, self, keys => keys)
    }

    /// All of them; none are left.
    pub(super) fn take(&mut self) -> Keys {
        match self {
            Keys::Plain(keys) => Keys::Plain(keys.take()),
            Keys::Tagged(keys) => Keys::Tagged(keys.take()),
        }
    }

    /// How many records came in, repeated ones included.
    pub(crate) fn count(&self) -> u64 {
        with_records!(Keys, self, keys => keys.count())
    }

    /// Reads both sides once.
    pub(crate) fn count_sides(&self, negatives: Option<&Keys>, stop: Stop<'_>) -> Result<SideCounts, BuildError> {
        with_records!(Keys, self, keys => match negatives {
            None => count_sides::<_, Digest>(keys, None, stop, |_, _| {}),
            Some(Keys::Plain(negatives)) => count_sides(keys, Some(negatives), stop, |_, _| {}),
            Some(Keys::Tagged(negatives)) => count_sides(keys, Some(negatives), stop, |_, _| {}),
        })
    }

    /// The digests, where there is nothing else and they are in memory.
    pub(super) fn into_plain(self) -> Option<Vec<Digest>> {
        match self {
            Keys::Plain(keys) => keys.into_memory(),
            Keys::Tagged(_) => None,
        }
    }

    /// The digests alone, where they are; what is on disk stays as it is.
    pub(super) fn without_places(self) -> Keys {
        match self {
            Keys::Tagged(keys) => match keys.into_digests() {
                Ok(keys) => Keys::Plain(keys),
                Err(keys) => Keys::Tagged(keys),
            },
            plain => plain,
        }
    }

    /// The cells that hold a digest, in order.
    pub(crate) fn cells(&self, stop: Stop<'_>) -> Result<Vec<crowd::Cell>, BuildError> {
        crowd::cells(self.side(), stop)
    }

    /// Hands on all digests, sorted and distinct.
    pub(crate) fn digests(&self, stop: Stop<'_>, part: &mut dyn FnMut(&[Digest])) -> Result<(), BuildError> {
        let spans = span::all(self.side(), None, 1, stop)?.0;
        spans.iter().try_for_each(|span| self.side().digests(span, stop, part))
    }

    /// A hash of the set of digests.
    pub(crate) fn set_hash(&self, stop: Stop<'_>) -> Result<u64, BuildError> {
        crowd::set_hash(self.side(), stop)
    }
}

/// Takes in [`Keys`].
#[derive(Debug)]
pub(crate) enum KeyIntake {
    Plain(Intake<Digest>),
    Tagged(Intake<Tagged>),
}

impl KeyIntake {
    /// An intake that may use `memory` bytes.
    pub(crate) fn new(workspace: &Arc<Workspace>, memory: u64, tagged: bool) -> KeyIntake {
        match tagged {
            false => KeyIntake::Plain(Intake::new(workspace, memory)),
            true => KeyIntake::Tagged(Intake::new(workspace, memory)),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, record: Tagged, stop: Stop<'_>) -> Result<(), BuildError> {
        match self {
            KeyIntake::Plain(intake) => intake.push(record.digest, stop),
            KeyIntake::Tagged(intake) => intake.push(record, stop),
        }
    }

    /// Makes room for so many records that will come.
    pub(crate) fn expect(&mut self, records: u64) {
        with_records!(KeyIntake, self, intake => intake.expect(records));
    }

    /// How many records came in.
    pub(crate) fn count(&self) -> u64 {
        with_records!(KeyIntake, self, intake => intake.count())
    }

    /// Drops records that `keep`, called for some digests at a time, says no to; those on disk stay.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&[Digest], &mut [bool])) {
        with_records!(KeyIntake, self, intake => intake.retain(&mut keep))
    }

    /// Hands on the digests of all records, in some order, repeated or not.
    pub(crate) fn scan(
        &self,
        stop: Stop<'_>,
        mut part: impl FnMut(&[Digest]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        with_records!(KeyIntake, self, intake => intake.scan_digests(stop, &mut part))
    }

    /// The same records of other digests.
    pub(crate) fn mapped(self, map: impl Fn(Digest) -> Digest, stop: Stop<'_>) -> Result<KeyIntake, BuildError> {
        Ok(match self {
            KeyIntake::Plain(intake) => KeyIntake::Plain(intake.mapped(map, stop)?),
            KeyIntake::Tagged(intake) => KeyIntake::Tagged(intake.mapped(map, stop)?),
        })
    }

    /// The same records with a weight of one and no place, where they had none: others with weights may follow.
    pub(crate) fn with_weights(self, stop: Stop<'_>) -> Result<KeyIntake, BuildError> {
        let KeyIntake::Plain(plain) = self else { return Ok(self) };
        let mut intake = plain.empty();
        plain.scan_digests(stop, &mut |digests| {
            let tagged = |&digest| intake.push(Tagged { digest, weight: 1, ordinal: u64::MAX }, stop);
            digests.iter().try_for_each(tagged)
        })?;
        Ok(KeyIntake::Tagged(intake))
    }

    /// From now on this intake may use `memory` bytes only.
    pub(crate) fn share(&mut self, memory: u64, stop: Stop<'_>) -> Result<(), BuildError> {
        with_records!(KeyIntake, self, intake => intake.share(memory, stop))
    }

    pub(crate) fn finish(self, stop: Stop<'_>) -> Result<Keys, BuildError> {
        Ok(match self {
            KeyIntake::Plain(intake) => Keys::Plain(intake.finish(stop)?),
            KeyIntake::Tagged(intake) => Keys::Tagged(intake.finish(stop)?),
        })
    }
}
