//! a payload + a key -> the payload with the key in it, or without it: leaves that change after they were built.

use super::Query;
use crate::hash::Digest;

/// No room for another key; nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full {
    /// Keys it holds.
    pub(crate) keys: u64,
    /// Keys it was made for.
    pub(crate) capacity: u64,
}

/// A leaf that takes keys.
pub(crate) trait Insert: Query {
    /// Adds a key. If there is no room nothing is changed.
    fn insert(&mut self, payload: &mut [u8], key: Digest) -> Result<(), Full>;
}

/// A leaf that gives keys back.
pub(crate) trait Remove: Insert {
    /// Takes out one copy of a key; false, and nothing is changed, if there is none.
    fn remove(&mut self, payload: &mut [u8], key: Digest) -> bool;
}
