//! two words -> the same at one place in memory, which is wiped when the last hash that has them is dropped.
//!
//! A value that is moved leaves its bytes behind, where no destructor finds them. So hashes hold a pointer to their secret, and moves and clones copy
//! the pointer. What no type can wipe is listed in SECURITY.md: words in registers and on the stack while keys are hashed, and files that hold the secret.

use std::sync::atomic::{Ordering, compiler_fence};

#[derive(PartialEq, Eq)]
pub(super) struct Secret([u64; 2]);

impl Secret {
    pub(super) fn new(words: [u64; 2]) -> Secret {
        Secret(words)
    }

    #[inline]
    pub(super) fn words(&self) -> [u64; 2] {
        self.0
    }
}

impl Drop for Secret {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        for word in &mut self.0 {
            // The compiler removes an ordinary write to memory that is freed next.
            // SAFETY: a reference is valid and aligned.
            unsafe { std::ptr::write_volatile(word, 0) };
        }
        compiler_fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::*;

    #[test]
    #[allow(unsafe_code)]
    fn what_is_dropped_is_zeros() {
        let mut place = MaybeUninit::new(Secret::new([0x5ec2_e7a1, u64::MAX]));
        // SAFETY: the place has a value, and is dropped once.
        unsafe { place.assume_init_drop() };
        // SAFETY: dropping has left two words, and any words are valid.
        let words = unsafe { place.as_ptr().cast::<[u64; 2]>().read() };
        assert_eq!(words, [0, 0]);
    }
}
