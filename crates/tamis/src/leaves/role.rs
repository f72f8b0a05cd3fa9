//! a leaf's answer -> the filter's answer, or the next step: the role of a leaf in a list of steps.

use crate::error::FormatError;
use crate::names::named;

/// What a layer stores, and so what its answer means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Role {
    /// Stores members: a miss means that the filter rejects the key.
    Positive,
    /// Stores known negatives: a miss means that the filter matches the key.
    Negative,
    /// Stores members and the negatives that reach it: its answer is final.
    Exact,
}

named!(Role: "positive" => Positive, "negative" => Negative, "exact" => Exact);

impl Role {
    /// The answer of the filter, if the leaf's answer ends the query.
    #[inline(always)]
    pub(crate) fn ends(self, yes: bool) -> Option<bool> {
        match self {
            Role::Positive => (!yes).then_some(false),
            Role::Negative => (!yes).then_some(true),
            Role::Exact => Some(yes),
        }
    }

    pub(crate) fn encode(self) -> u8 {
        match self {
            Role::Positive => 0,
            Role::Negative => 1,
            Role::Exact => 2,
        }
    }

    pub(crate) fn decode(byte: u8) -> Result<Role, FormatError> {
        match byte {
            0 => Ok(Role::Positive),
            1 => Ok(Role::Negative),
            2 => Ok(Role::Exact),
            _ => Err(FormatError::unsupported("role of a layer", byte)),
        }
    }
}
