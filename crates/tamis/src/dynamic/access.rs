//! what readers see -> reading it, and changing it for a moment: directly, or behind a lock that many readers share.

use std::sync::{PoisonError, RwLock};

/// Access to what readers see. One writer at a time plans while readers go on, and keeps them out only while it makes a change.
pub(crate) trait Access<T> {
    /// Reads it.
    fn read<R>(&self, with: impl FnOnce(&T) -> R) -> R;
    /// Changes it: no reader sees the middle of it.
    fn change<R>(&mut self, with: impl FnOnce(&mut T) -> R) -> R;
}

/// What has no other readers.
pub(crate) struct Alone<'a, T>(pub(crate) &'a mut T);

impl<T> Access<T> for Alone<'_, T> {
    #[inline(always)]
    fn read<R>(&self, with: impl FnOnce(&T) -> R) -> R {
        with(self.0)
    }

    #[inline(always)]
    fn change<R>(&mut self, with: impl FnOnce(&mut T) -> R) -> R {
        with(self.0)
    }
}

/// What readers in other threads see too.
pub(crate) struct Locked<'a, T>(pub(crate) &'a RwLock<T>);

impl<T> Access<T> for Locked<'_, T> {
    fn read<R>(&self, with: impl FnOnce(&T) -> R) -> R {
        // A thread that panicked while it read has changed nothing, and no change panics.
        with(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<R>(&mut self, with: impl FnOnce(&mut T) -> R) -> R {
        with(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}
