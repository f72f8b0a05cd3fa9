//! bytes of a directory -> numbers, each checked, on a budget of memory for the whole file.

use std::cell::Cell;

use crate::error::FormatError;

/// Opening a file takes at most `FREE_BYTES` bytes of memory, and `MEMORY_PER_BYTE` more for each of its bytes. docs/format.md promises 64 KiB: the
/// other 4 KiB are for error messages and what else is not worth counting.
const FREE_BYTES: u64 = 60 << 10;
const MEMORY_PER_BYTE: u64 = 64;

/// The memory that opening a file may still take.
///
/// A few bytes of a directory can speak of millions of parts. So every decoder draws on the budget before it allocates, and there is one
/// budget for the whole file: the files inside a frozen segment draw on that of the index. What is freed again is not given back. It pays
/// for time too where bytes can be worth any amount of it: a decision of the coder under a map's values counts as a byte.
pub(crate) struct Budget(Cell<u64>);

impl Budget {
    /// For a file of these bytes.
    pub(crate) fn of(file: &[u8]) -> Budget {
        Budget::of_length(file.len() as u64)
    }

    /// For a file of so many bytes.
    pub(crate) fn of_length(len: u64) -> Budget {
        Budget(Cell::new(FREE_BYTES.saturating_add(MEMORY_PER_BYTE.saturating_mul(len))))
    }

    /// Takes so many bytes out of it.
    pub(crate) fn draw(&self, bytes: u64) -> Result<(), FormatError> {
        let none =
            || FormatError::invalid("opening takes more memory than 64 KiB and 64 bytes for each byte of the file");
        self.0.set(self.0.get().checked_sub(bytes).ok_or_else(none)?);
        Ok(())
    }
}

/// Words as bytes.
#[cfg(feature = "build")]
pub(crate) fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().map(|word| word.to_le_bytes()).collect::<Vec<_>>().into_flattened()
}

/// Appends `value` in groups of seven bits, low group first: small numbers take one byte.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a directory. Every method checks that its bytes are there.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    what: &'static str,
    budget: Option<&'a Budget>,
}

impl<'a> Reader<'a> {
    /// For bytes that are this library's own, or that speak of nothing that takes memory.
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Reader<'a> {
        Reader { bytes, what, budget: None }
    }

    /// For bytes of a file with this budget.
    pub(crate) fn budgeted(bytes: &'a [u8], what: &'static str, budget: &'a Budget) -> Reader<'a> {
        Reader { bytes, what, budget: Some(budget) }
    }

    /// See [`Budget::draw`].
    pub(crate) fn draw(&self, bytes: u64) -> Result<(), FormatError> {
        self.budget.map_or(Ok(()), |budget| budget.draw(bytes))
    }

    /// A vector with room for so many, which is never to grow.
    pub(crate) fn room<T>(&self, count: u64) -> Result<Vec<T>, FormatError> {
        self.draw(count.saturating_mul(size_of::<T>() as u64))?;
        // A long file may be allowed more than a machine of 32 bits can have.
        let none = || FormatError::invalid("no memory for what its directory speaks of");
        let mut room = vec![];
        room.try_reserve_exact(usize::try_from(count).map_err(|_| none())?).map_err(|_| none())?;
        Ok(room)
    }

    /// What may still be drawn.
    pub(crate) fn left(&self) -> u64 {
        self.budget.map_or(u64::MAX, |budget| budget.0.get())
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<N>() else {
            let found = self.bytes.len() as u64;
            return Err(FormatError::Truncated { what: self.what, needed: N as u64, found });
        };
        self.bytes = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// A number written by [`put_varint`], in its shortest form.
    pub(crate) fn varint(&mut self) -> Result<u64, FormatError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let group = (byte & 0x7f) as u64;
            if (group << shift) >> shift != group || (byte == 0 && shift > 0) {
                break;
            }
            value |= group << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(FormatError::invalid(format!("{}: a number is too long", self.what)))
    }

    /// A number that must lie in `range`.
    pub(crate) fn within(&mut self, name: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, FormatError> {
        let value = self.varint()?;
        if range.contains(&value) {
            return Ok(value);
        }
        let (low, high) = range.into_inner();
        Err(FormatError::invalid(format!("{}: {name} is {value}, expected {low} to {high}", self.what)))
    }

    /// The next `len` bytes, where they are.
    pub(crate) fn take(&mut self, len: u64) -> Result<&'a [u8], FormatError> {
        let found = self.len();
        let split = usize::try_from(len).ok().and_then(|len| self.bytes.split_at_checked(len));
        let Some((head, rest)) = split else {
            return Err(FormatError::Truncated { what: self.what, needed: len, found });
        };
        self.bytes = rest;
        Ok(head)
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Nothing may follow.
    pub(crate) fn end(&self) -> Result<(), FormatError> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(FormatError::invalid(format!("{}: bytes after its end", self.what))),
        }
    }
}
