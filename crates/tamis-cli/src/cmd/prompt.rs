//! standard input -> keys, each answered before the next is waited for.

use std::cell::RefCell;
use std::io::{self, Read};
use std::ops::ControlFlow;

use anyhow::{Error, Result};

use crate::input::{self, At, Counts, KeyRef, Options, SecondValue, Source, total_bytes};
use crate::progress::Bar;

/// What answers keys, in batches.
pub(super) trait Answer {
    /// Takes a key, with what its second column holds and where it is.
    fn push(&mut self, key: KeyRef<'_>, second: Option<SecondValue<'_>>, at: At<'_>) -> Result<()>;

    /// Answers all keys that were taken.
    fn finish(&mut self) -> Result<()>;

    /// Whether no more keys need to be read.
    fn is_done(&self) -> bool {
        false
    }
}

/// Has every key of these inputs answered. A bar would be torn apart by answers that are printed next to it.
pub(super) fn answer_all(
    sources: &[Source],
    options: &Options,
    show_bar: bool,
    answers: &mut dyn Answer,
) -> Result<Counts> {
    let bar = show_bar.then(|| Bar::bytes("querying", total_bytes(sources)));
    let mut progress = |bytes| bar.iter().for_each(|bar| bar.set_position(bytes));
    let answers = RefCell::new(answers);
    let mut stdin = Prompt::new(|| {
        let mut answers = answers.borrow_mut();
        answers.finish()?;
        Ok(answers.is_done())
    });
    let read = input::read_all(sources, options, &mut stdin, &mut progress, &mut |key, second, at| {
        let mut answers = answers.borrow_mut();
        answers.push(key, second, at)?;
        Ok(if answers.is_done() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    let failed = stdin.failed;
    // What was read before a bad line is still answered, and the bad line is what the user hears of.
    let finished = answers.into_inner().finish();
    failed.map_or(Ok(()), Err)?;
    let (counts, _) = read?;
    finished?;
    Ok(counts)
}

/// Standard input that has every key answered before it waits for the next: a person types, a log grows.
struct Prompt<A> {
    /// Answers what was read; true if that was enough.
    answer: A,
    stdin: io::StdinLock<'static>,
    /// Why there is nothing more to read.
    failed: Option<Error>,
}

impl<A: FnMut() -> Result<bool>> Prompt<A> {
    fn new(answer: A) -> Prompt<A> {
        Prompt { answer, stdin: io::stdin().lock(), failed: None }
    }
}

impl<A: FnMut() -> Result<bool>> Read for Prompt<A> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.answer)() {
            Ok(true) => Ok(0),
            Ok(false) => self.stdin.read(buffer),
            Err(error) => {
                self.failed = Some(error);
                Ok(0)
            }
        }
    }
}
