//! keys as they come -> keys sorted, of one of two kinds of records: what filters and sets gather.

use std::sync::Arc;

use super::span::Side;
use super::{Intake, SideCounts, Sorted, Tagged, Workspace, count_sides, crowd};
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::hash::Digest;
use crate::parallel::Stop;

/// The keys, with or without their places in the input.
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

impl Keys {
    pub(super) fn side(&self) -> &dyn Side {
        with_records!(Keys, self, keys => keys)
    }

    /// How many records came in, repeated ones included.
    pub(crate) fn count(&self) -> u64 {
        with_records!(Keys, self, keys => keys.count())
    }

    /// Reads both sides once.
    pub(super) fn count_sides(
        &self,
        negatives: Option<&Sorted<Tagged>>,
        stop: Stop<'_>,
    ) -> Result<SideCounts, BuildError> {
        with_records!(Keys, self, keys => count_sides(keys, negatives, stop, |_, _| {}))
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
