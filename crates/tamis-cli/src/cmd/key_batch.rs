//! keys one by one -> keys together: what is queried in one call.

use crate::input::{KeyRef, Number};

/// Keys in one call.
const MAX_KEYS: usize = 1 << 13;
/// Their bytes in one call, about.
const MAX_BYTES: usize = 1 << 22;

/// Byte keys behind each other, and where each ends; or integers.
#[derive(Default)]
pub(crate) struct KeyBatch {
    text: Vec<u8>,
    ends: Vec<usize>,
    pub(crate) numbers: Vec<Number>,
}

impl KeyBatch {
    /// Takes a key; true if the batch is full.
    pub(crate) fn push(&mut self, key: KeyRef<'_>) -> bool {
        match key {
            KeyRef::Bytes(bytes) => {
                self.text.extend_from_slice(bytes);
                self.ends.push(self.text.len());
            }
            KeyRef::Integer(number) => self.numbers.push(number),
        }
        self.len() >= MAX_KEYS || self.text.len() >= MAX_BYTES
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len() + self.numbers.len()
    }

    /// The byte keys.
    pub(crate) fn bytes(&self) -> Vec<&[u8]> {
        let mut start = 0;
        self.ends.iter().map(|&end| &self.text[std::mem::replace(&mut start, end)..end]).collect()
    }

    /// All keys as they are printed, in the order of the answers.
    pub(crate) fn names(&self) -> Vec<std::borrow::Cow<'_, [u8]>> {
        let numbers = self.numbers.iter().map(|number| number.to_string().into_bytes().into());
        self.bytes().into_iter().map(Into::into).chain(numbers).collect()
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.numbers.clear();
    }
}
