//! a digest -> the side of the frontier it lies on, and that side's hash function (\[Broom\] section 3.1, "Changing hash functions").
//!
//! Repairs make fingerprints longer, and nothing ever makes them shorter but a new hash function. So the keys are moved to a new one,
//! a few for every false positive, in the order of their digests: keys up to the frontier have moved, those after it have not, and the same
//! comparison tells which function a *query* uses. When all have moved the new function becomes the old one, and another is
//! drawn: an *epoch* is over.
//!
//! The paper walks through the keys in their own order. Digests are a keyed hash of them: no caller can choose keys that lie close before the
//! frontier, or see where it is, and a store that is sorted by digest has that order for nothing.

use super::file::{digest, put_digest};
use crate::error::FormatError;
use crate::format::{Header, Reader, put_varint};
use crate::hash::{Digest, Hasher, KeyType, Salt};

/// Which of the two hash functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The one that keys are moved from.
    Old,
    /// The one that they are moved to.
    New,
}

/// How keys are hashed, and how far they have moved.
#[derive(Clone, Debug)]
pub struct Frontier {
    pub(crate) hasher: Hasher,
    pub(crate) key_type: KeyType,
    /// Moves that are still to be made.
    pub(crate) pending_moves: u32,
    /// How often all keys have moved.
    pub(crate) epoch: u64,
    /// The last key that has moved.
    pub(crate) last: Option<Digest>,
    salts: [Salt; 2],
}

impl Frontier {
    /// Epoch 0, and no key moved.
    pub(crate) fn new(hasher: Hasher, key_type: KeyType) -> Frontier {
        Frontier { salts: salts(&hasher, 0), hasher, key_type, pending_moves: 0, epoch: 0, last: None }
    }

    pub(crate) fn add_moves(&mut self, moves: u32) {
        self.pending_moves = self.pending_moves.saturating_add(moves);
    }

    /// One of the pending moves is made.
    pub(crate) fn made_move(&mut self) {
        self.pending_moves = self.pending_moves.saturating_sub(1);
    }

    /// The side of a key, of the set or not.
    #[inline(always)]
    pub(crate) fn side(&self, key: Digest) -> Side {
        if self.last.is_some_and(|last| key <= last) { Side::New } else { Side::Old }
    }

    #[inline(always)]
    pub(crate) fn salt(&self, side: Side) -> Salt {
        self.salts[side as usize]
    }

    /// The number of a side's hash function.
    pub(crate) fn number(&self, side: Side) -> u64 {
        self.epoch + side as u64
    }

    /// A pending move is made: this key has moved, and all before it had.
    pub(crate) fn pass(&mut self, key: Digest) {
        self.last = Some(key);
        self.made_move();
    }

    /// All have moved: the new function is the old one now.
    pub(crate) fn turn(&mut self) {
        self.epoch += 1;
        self.last = None;
        self.salts = salts(&self.hasher, self.epoch);
    }

    /// Epoch (varint), whether a key has moved (byte), its digest (16 bytes).
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.epoch);
        out.push(u8::from(self.last.is_some()));
        if let Some(key) = self.last {
            put_digest(out, key);
        }
    }

    /// No moves are pending: where a file says how many, differs.
    pub(crate) fn decode(from: &mut Reader<'_>, header: &Header) -> Result<Frontier, FormatError> {
        let Header { hasher, key_type, .. } = header.clone();
        let epoch = from.within("epoch", 0..=u64::MAX >> 1)?;
        let last = match from.within("whether a key has moved", 0..=1)? {
            0 => None,
            _ => Some(digest(from)?),
        };
        Ok(Frontier { salts: salts(&hasher, epoch), hasher, key_type, pending_moves: 0, epoch, last })
    }
}

/// The hash functions of an epoch, the old and the new.
fn salts(hasher: &Hasher, epoch: u64) -> [Salt; 2] {
    [Salt::secret(hasher, epoch), Salt::secret(hasher, epoch + 1)]
}
