//! shards + a plan -> written parts: several workers, one writer, bounded memory.
//!
//! Workers run ahead of the writer by a few shards and no more, so memory stays bounded however large the filter is.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, PoisonError};

use super::shard::build_shard;
use super::{Options, Progress};
use crate::error::{BuildError, Error};
use crate::format::{Encoded, Writer};
use crate::plan::Plan;
use crate::query::Filter;
use crate::shard::Shards;

/// Who is to do which job next, and what is ready to be written.
struct Queue<T> {
    next: usize,
    written: usize,
    ready: BTreeMap<usize, Result<T, BuildError>>,
    over: bool,
}

/// Builds all shards on several threads and writes them in order.
pub(super) fn build_shards<W: Write>(
    shards: &Shards,
    plan: &Plan,
    first: Option<&Filter>,
    options: &Options,
    writer: &mut Writer<W>,
) -> Result<(), Error> {
    let count = shards.count();
    let cancelled = || options.cancel.load(Ordering::Relaxed);
    let tell = |done: usize| {
        if let Some(tell) = &options.progress {
            tell(Progress::Built { shards: done as u64, total: count as u64 });
        }
    };
    // Fewer shards than threads: what can be done on several threads inside a shard is.
    let inside = (options.threads / count.max(1)).max(1);
    let work = |shard: usize| build_shard(shards, plan, first, shard, inside, &cancelled);
    in_order(count, options.threads, work, |shard, parts: Vec<Encoded>| {
        writer.shard(&parts)?;
        tell(shard + 1);
        Ok(())
    })
}

/// Does jobs on several threads and hands their results to `write` in order.
pub(crate) fn in_order<T: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T, BuildError> + Sync,
    mut write: impl FnMut(usize, T) -> Result<(), Error>,
) -> Result<(), Error> {
    let threads = threads.min(count);
    if threads <= 1 {
        return (0..count).try_for_each(|job| write(job, work(job)?));
    }
    // Workers may be this many jobs ahead of the writer: enough not to wait for each other, few enough for memory.
    let ahead = threads + 1;
    let queue = Mutex::new(Queue { next: 0, written: 0, ready: BTreeMap::new(), over: false });
    let changed = Condvar::new();
    // Nothing panics while it holds the lock, so a poisoned one is still sound.
    let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let worker = || {
        loop {
            let mut state = lock();
            while !state.over && state.next < count && state.next >= state.written + ahead {
                state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.over || state.next >= count {
                return;
            }
            let job = state.next;
            state.next += 1;
            drop(state);
            // Should a worker panic all the same, the writer must not wait for ever: it hears of an error.
            let done = catch_unwind(AssertUnwindSafe(|| work(job)));
            let lost = || BuildError::Io(io::Error::other("a worker panicked"));
            lock().ready.insert(job, done.unwrap_or_else(|_| Err(lost())));
            changed.notify_all();
        }
    };
    /// Sends the workers home however the writer ends: a callback that panics must not leave the scope waiting for them.
    struct Over<F: Fn()>(F);
    impl<F: Fn()> Drop for Over<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    std::thread::scope(|scope| {
        let _over = Over(|| {
            lock().over = true;
            changed.notify_all();
        });
        // A thread that the system refuses to start is done without; the first must start, or nobody would work.
        std::thread::Builder::new().spawn_scoped(scope, worker)?;
        for _ in 1..threads {
            if std::thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        for job in 0..count {
            let mut state = lock();
            let done = loop {
                match state.ready.remove(&job) {
                    Some(done) => break done,
                    None => state = changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(state);
            write(job, done?)?;
            lock().written += 1;
            changed.notify_all();
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::format::{Form, Header};
    use crate::hash::{Digest, Domain};
    use crate::plan::plan;
    use crate::shard::{Keys, OnConflict, Sorted};
    use std::sync::Arc;

    /// A callback may panic while workers wait for the writer: the panic goes on, and nobody waits for ever.
    #[test]
    fn a_callback_that_panics_ends_the_build() {
        let (send, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let told = Arc::new(|_| std::panic::resume_unwind(Box::new("told")));
            let options = Options { threads: 2, progress: Some(told), ..Options::default() };
            let digests: Vec<Digest> = (0..2000).map(|i| options.hasher.integer(i)).collect();
            let sorted = Sorted::shared(digests.into(), &options.workspace(), &|| false).unwrap();
            let mut shards = Shards::new(Keys::Plain(sorted), None, OnConflict::Error, &|| false).unwrap();
            shards.bits = 6;
            let plan = plan(&options.request(2000, 0)).unwrap();
            let header = Header {
                hasher: options.hasher,
                domain: Domain::U64,
                shard_bits: 6,
                form: Form::Filter,
                keys: 2000,
                negatives: 0,
            };
            let mut writer = Writer::new(Vec::new(), &header, vec![]).unwrap();
            let built = catch_unwind(AssertUnwindSafe(|| build_shards(&shards, &plan, None, &options, &mut writer)));
            send.send(built.is_err()).unwrap();
        });
        assert_eq!(heard.recv_timeout(std::time::Duration::from_secs(60)), Ok(true));
    }
}
