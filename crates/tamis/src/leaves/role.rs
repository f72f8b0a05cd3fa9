//! a leaf's answer -> the filter's answer, or the next step: the role of a leaf in a list of steps.

use crate::error::FormatError;

/// What an answer of the step's leaf means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A leaf on the keys: its "no" is a no.
    Refuse,
    /// A leaf on known negatives: its "no" is a yes.
    Admit,
    /// A leaf on the keys and on the negatives that got this far: its answer is the answer.
    Decide,
}

impl Role {
    /// The answer of the filter, if the leaf's answer ends the query.
    #[inline(always)]
    pub(crate) fn ends(self, yes: bool) -> Option<bool> {
        match self {
            Role::Refuse => (!yes).then_some(false),
            Role::Admit => (!yes).then_some(true),
            Role::Decide => Some(yes),
        }
    }

    pub(crate) fn encode(self) -> u8 {
        match self {
            Role::Refuse => 0,
            Role::Admit => 1,
            Role::Decide => 2,
        }
    }

    pub(crate) fn decode(byte: u8) -> Result<Role, FormatError> {
        match byte {
            0 => Ok(Role::Refuse),
            1 => Ok(Role::Admit),
            2 => Ok(Role::Decide),
            _ => Err(FormatError::invalid(format!("directory: the role of a step is {byte}, expected 0 to 2"))),
        }
    }
}
