//! bytes of a file, or bytes of one's own -> a table that can be read, and changed once it is one's own.

use std::ops::Deref;

use bytes::Bytes;

/// A payload: in the file it was opened from until the first change.
#[derive(Clone, Debug)]
pub(crate) enum Words {
    Shared(Bytes),
    Own(Vec<u8>),
}

impl Words {
    /// To be changed: copied the first time.
    pub(crate) fn change(&mut self) -> &mut [u8] {
        if let Words::Shared(bytes) = self {
            *self = Words::Own(bytes.to_vec());
        }
        match self {
            Words::Own(bytes) => bytes,
            Words::Shared(_) => &mut [],
        }
    }
}

impl Deref for Words {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            Words::Shared(bytes) => bytes,
            Words::Own(bytes) => bytes,
        }
    }
}
