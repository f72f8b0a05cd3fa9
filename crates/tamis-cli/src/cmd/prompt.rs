//! standard input -> keys, each answered before the next is waited for.

use std::io::{self, Read};

use anyhow::{Error, Result};

/// Standard input that has every key answered before it waits for the next: a person types, a log grows.
pub(super) struct Prompt<A> {
    answer: A,
    stdin: io::StdinLock<'static>,
    /// Why there is nothing more to read.
    pub(super) failed: Option<Error>,
}

impl<A: FnMut() -> Result<()>> Prompt<A> {
    pub(super) fn new(answer: A) -> Prompt<A> {
        Prompt { answer, stdin: io::stdin().lock(), failed: None }
    }
}

impl<A: FnMut() -> Result<()>> Read for Prompt<A> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.answer)() {
            Ok(()) => self.stdin.read(buffer),
            Err(error) => {
                self.failed = Some(error);
                Ok(0)
            }
        }
    }
}
