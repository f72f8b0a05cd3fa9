//! keys, complete; negatives, one after the other -> the few negatives that may be keys, with their places in the input.
//!
//! A conflict is shown with the place of the negative, and hardly any build has one. So negatives are kept as digests alone, half of
//! what a record with a place takes, and only those that a small Bloom filter of the keys matches are kept with their places as well:
//! one in a hundred, and every key.

use std::sync::Arc;

use super::intake::{Intake, Sorted};
use super::record::Tagged;
use super::span;
use super::{Keys, Workspace};
use crate::error::BuildError;
use crate::hash::Digest;
use crate::parallel::{Stop, check};

/// Keys of a word of the filter, at most.
const KEYS_PER_WORD: u64 = 4;
/// The filter takes at most this share of the memory, and records of suspects a share like it.
const MEMORY_SHARE: u64 = 32;

/// Keeps negatives that may be keys.
pub(crate) struct Suspects {
    /// Three bits of a word for every key.
    words: Vec<u64>,
    /// The word follows from the digest's bits from here on.
    shift: u32,
    intake: Intake<Tagged>,
}

impl Suspects {
    /// For these keys; nothing if they are more than a small filter can tell apart.
    pub(super) fn new(
        keys: &Keys,
        count: u64,
        workspace: &Arc<Workspace>,
        stop: Stop<'_>,
    ) -> Result<Option<Suspects>, BuildError> {
        let bits = count.div_ceil(KEYS_PER_WORD).max(2).next_power_of_two().trailing_zeros();
        if 8 << bits > workspace.memory / MEMORY_SHARE {
            return Ok(None);
        }
        let intake = Intake::new(workspace, workspace.memory / MEMORY_SHARE);
        let mut suspects = Suspects { words: vec![0; 1 << bits], shift: 64 - bits, intake };
        for span in span::all(keys.side(), None, 1, stop)?.0 {
            check(stop)?;
            keys.side().digests(&span, stop, &mut |digests| {
                for &digest in digests {
                    let (word, mask) = suspects.place(digest);
                    suspects.words[word] |= mask;
                }
            })?;
        }
        Ok(Some(suspects))
    }

    /// The word of a digest, and its bits there.
    #[inline(always)]
    fn place(&self, digest: Digest) -> (usize, u64) {
        let bit = |at: u32| 1u64 << (digest.lo >> at & 63);
        ((digest.hi >> self.shift) as usize, bit(58) | bit(52) | bit(46))
    }

    /// Looks at negatives, the first of which has this place in the input.
    pub(crate) fn look(&mut self, digests: &[Digest], first: u64, stop: Stop<'_>) -> Result<(), BuildError> {
        for (ordinal, &digest) in (first..).zip(digests) {
            let (word, mask) = self.place(digest);
            if self.words[word] & mask == mask {
                self.intake.push(Tagged { digest, weight: 1, ordinal }, stop)?;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self, stop: Stop<'_>) -> Result<Sorted<Tagged>, BuildError> {
        self.intake.finish(stop)
    }
}
