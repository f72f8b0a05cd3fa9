//! a key that the word has no bit for -> its bit: the small table behind.
//!
//! A one-bit function of the same kind as the table in front. A key reads its coin, an element of F the other side, and
//! a stranger either with probability 1/2, because coins are random.

use crate::arch::Isa;
use crate::error::FormatError;
use crate::hash::{Digest, Salt};
use crate::leaves::fuse::Fuse;
use crate::leaves::ribbon::Ribbon;
use crate::leaves::{Geometry, Retrieve};

/// The number below the leaf's salt that is the rest's: the table's own attempts are smaller.
const NUMBER: u64 = 1 << 32;

/// Where elements without a bit in the word have theirs.
#[derive(Clone, Debug)]
pub(super) enum Rest {
    Fuse(Fuse),
    Ribbon(Ribbon),
}

impl Rest {
    pub(super) fn salt(salt: Salt) -> Salt {
        salt.child(NUMBER)
    }

    /// Whether the bit of a key is its coin.
    #[inline(never)]
    pub(super) fn says(&self, payload: &[u8], key: Digest, coin: u32) -> bool {
        match self {
            Rest::Fuse(fuse) => fuse.get(payload, key) == coin,
            Rest::Ribbon(ribbon) => ribbon.get(payload, key) == coin,
        }
    }

    /// The same, compiled for an instruction set.
    #[inline(always)]
    pub(super) fn says_on<I: Isa>(&self, payload: &[u8], key: Digest, coin: u32) -> bool {
        match self {
            Rest::Ribbon(ribbon) => {
                ribbon.bit_is::<I>(payload, key, coin).unwrap_or_else(|| self.says(payload, key, coin))
            }
            Rest::Fuse(_) => self.says(payload, key, coin),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Rest::Fuse(fuse) => fuse.encode(out),
            Rest::Ribbon(ribbon) => ribbon.encode(out),
        }
    }

    pub(super) fn payload_len(&self) -> u64 {
        match self {
            Rest::Fuse(fuse) => fuse.payload_len(),
            Rest::Ribbon(ribbon) => ribbon.payload_len(),
        }
    }
}

/// A table that may be a rest.
pub(super) fn one_bit<T: Bits>(table: T) -> Result<T, FormatError> {
    match (table.bits(), table.payload_len()) {
        // Without elements it has any width.
        (256, _) | (_, 0) => Ok(table),
        (width, _) => Err(FormatError::invalid(format!("integrated filter: a rest of {width}/256 bits, expected one"))),
    }
}

/// Tables that know how many 256ths of a bit a value has.
pub(super) trait Bits: Geometry {
    fn bits(&self) -> u16;
}
impl Bits for Fuse {
    fn bits(&self) -> u16 {
        self.width()
    }
}
impl Bits for Ribbon {
    fn bits(&self) -> u16 {
        self.width()
    }
}
