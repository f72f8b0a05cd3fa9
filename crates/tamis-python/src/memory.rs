//! a pointer and its owner -> a slice: memory that another library lends.
#![allow(unsafe_code)]

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;

use pyo3::exceptions::PyMemoryError;

use crate::error::Failure;

/// Keeps lent memory alive.
pub(crate) type Owner = Arc<dyn Any + Send + Sync>;

/// Numbers in memory of our own or of another library's.
pub(crate) enum Lent<T> {
    Own(Vec<T>),
    Other { start: *const T, len: usize, _owner: Owner },
}

// SAFETY: the memory is read only, and its owner may be dropped in any thread.
unsafe impl<T: Send + Sync> Send for Lent<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Lent<T> {}

impl<T: Copy> Lent<T> {
    /// # Safety
    ///
    /// `len` values after the first `from` at `start` can be read, at any alignment, and stay unchanged while `owner` lives. They are
    /// numbers, of which every pattern of bits is one. `start` may be null if `len` is 0.
    ///
    /// More values than memory can have are an error, and read by none.
    pub(crate) unsafe fn new(start: *const T, from: usize, len: usize, owner: &Owner) -> Result<Lent<T>, Failure> {
        let bytes = from.checked_add(len).and_then(|values| values.checked_mul(size_of::<T>()));
        if !bytes.is_some_and(|bytes| bytes <= isize::MAX as usize && start.addr().checked_add(bytes).is_some()) {
            let text = format!("column: {len} values from number {from} on; expected as many as memory can have");
            return Err(Failure::Input(text));
        }
        if len == 0 {
            return Ok(Lent::Own(vec![]));
        }
        if start.is_null() {
            return Err(Failure::Input(format!("column: {len} values and no memory; expected their address")));
        }
        let start = start.wrapping_add(from);
        if start.is_aligned() {
            return Ok(Lent::Other { start, len, _owner: owner.clone() });
        }
        // SAFETY: by the caller's promise each can be read.
        Ok(Lent::Own((0..len).map(|i| unsafe { start.add(i).read_unaligned() }).collect()))
    }
}

impl<T> Deref for Lent<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Lent::Own(values) => values,
            // SAFETY: the promise of `new`; it is aligned and not null.
            Lent::Other { start, len, .. } => unsafe { std::slice::from_raw_parts(*start, *len) },
        }
    }
}

/// Makes room for more values: a column may be longer than memory.
pub(crate) fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<(), Failure> {
    let full = |_| PyMemoryError::new_err(format!("no memory for {more} rows"));
    values.try_reserve(more).map_err(|error| Failure::Python(full(error)))
}
