//! a pointer and its owner -> a slice: memory that another library lends.
#![allow(unsafe_code)]

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;

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
    /// `len` values from `start` on can be read, at any alignment, and stay unchanged while `owner` lives. They are numbers, of which
    /// every pattern of bits is one. `start` may be null if `len` is 0.
    pub(crate) unsafe fn new(start: *const T, len: usize, owner: &Owner) -> Lent<T> {
        if len == 0 || start.is_null() {
            Lent::Own(vec![])
        } else if start.is_aligned() {
            Lent::Other { start, len, _owner: owner.clone() }
        } else {
            // SAFETY: by the caller's promise each can be read.
            Lent::Own((0..len).map(|i| unsafe { start.add(i).read_unaligned() }).collect())
        }
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
