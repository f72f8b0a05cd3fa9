//! independent jobs -> their results in order: the threads of the crate.
//!
//! Every loop over several threads is one of two functions over `dyn Fn(usize)`, compiled once: [`pool`] does jobs in any order,
//! [`ordered`] hands what is ready to one writer. What is generic over jobs and results is a thin layer of slots, one per job.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, scope};

use crate::error::{BuildError, Error};

/// Called now and then from any thread; `true` ends the work with [`BuildError::Cancelled`].
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Fails when the caller wants to stop.
#[inline]
pub(crate) fn check(stop: Stop<'_>) -> Result<(), BuildError> {
    if stop() { Err(BuildError::Cancelled) } else { Ok(()) }
}

/// What is in a slot. Nothing panics while it holds one of these locks, so a poisoned one is still sound.
fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// [`run`] for work that cannot fail.
pub(crate) fn each<J: Send, T: Send>(jobs: Vec<J>, threads: usize, work: impl Fn(J) -> T + Sync) -> Vec<T> {
    run(jobs, threads, |job| Ok(work(job))).unwrap_or_default()
}

/// The processors there are. Found once: to find out takes longer than to build a filter of a hundred keys.
pub(crate) fn available() -> usize {
    static AVAILABLE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *AVAILABLE.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Runs every job on at most `threads` threads, this one among them, and returns the results in the order of the jobs.
///
/// After an error no new job is started; of several errors the one of the earliest job is returned.
pub(crate) fn run<J: Send, T: Send>(
    jobs: Vec<J>,
    threads: usize,
    work: impl Fn(J) -> Result<T, BuildError> + Sync,
) -> Result<Vec<T>, BuildError> {
    let count = jobs.len();
    if threads.min(count) <= 1 {
        return jobs.into_iter().map(work).collect();
    }
    let queue = Mutex::new(jobs.into_iter().enumerate());
    run_all(count, threads, &|| {
        let (number, job) = lock(&queue).next()?;
        Some((number, work(job)))
    })
}

/// Calls `next`, which does one job and returns its number and its result, until there is none left.
fn run_all<T: Send>(
    count: usize,
    threads: usize,
    next: &(dyn Fn() -> Option<(usize, Result<T, BuildError>)> + Sync),
) -> Result<Vec<T>, BuildError> {
    let mut none = Vec::new();
    none.resize_with(count, || None);
    let done = Mutex::new(none);
    pool(count, threads, &|_| {
        let Some((number, result)) = next() else { return false };
        let goes_on = result.is_ok();
        lock(&done)[number] = Some(result);
        goes_on
    });
    let mut results = Vec::with_capacity(count);
    for result in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
        // Jobs are started in order, so all before a failed one have a result.
        let Some(result) = result else { break };
        results.push(result?);
    }
    Ok(results)
}

/// Does jobs on several threads and hands their results to `write` in order.
pub(crate) fn in_order<T: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T, BuildError> + Sync,
    mut write: impl FnMut(usize, T) -> Result<(), Error>,
) -> Result<(), Error> {
    if threads.min(count) <= 1 {
        return (0..count).try_for_each(|job| write(job, work(job)?));
    }
    let done: Vec<_> = (0..count).map(|_| Mutex::new(None)).collect();
    ordered(count, threads, &|job| *lock(&done[job]) = Some(work(job)), &mut |job| {
        let lost = || Err(io::Error::other("a worker panicked").into());
        let result = lock(&done[job]).take();
        write(job, result.unwrap_or_else(lost)?)
    })
}

/// Calls `work` with every number below `count`, each once and in order, on at most `threads` threads, this one among them, until
/// it says false. A thread that the system rejects to start is done without; a panic goes on in the caller.
fn pool(count: usize, threads: usize, work: &(dyn Fn(usize) -> bool + Sync)) {
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = || {
        while !over.load(Ordering::Relaxed) {
            let job = next.fetch_add(1, Ordering::Relaxed);
            // A panic must end the others, too.
            let goes_on = job < count && {
                let done = catch_unwind(AssertUnwindSafe(|| work(job)));
                done.unwrap_or_else(|panic| {
                    over.store(true, Ordering::Relaxed);
                    resume_unwind(panic)
                })
            };
            if !goes_on {
                over.store(true, Ordering::Relaxed);
            }
        }
    };
    scope(|scope| {
        let spawn = |_| Builder::new().spawn_scoped(scope, worker).ok();
        let others: Vec<_> = (1..threads.min(count)).filter_map(spawn).collect();
        worker();
        for other in others {
            other.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

/// Who is to do which job next, and which are ready to be written.
struct Queue {
    next: usize,
    written: usize,
    ready: Vec<bool>,
    over: bool,
}

/// Calls `work` for every job on several threads, and after it `write`, in order and on this thread. Should a worker panic, `write`
/// is called all the same: it must not wait for ever.
fn ordered(
    count: usize,
    threads: usize,
    work: &(dyn Fn(usize) + Sync),
    write: &mut dyn FnMut(usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let threads = threads.min(count);
    // Workers may be this many jobs ahead of the writer: enough not to wait for each other, few enough for memory.
    let ahead = threads + 1;
    let queue = Mutex::new(Queue { next: 0, written: 0, ready: vec![false; count], over: false });
    let changed = Condvar::new();
    let wait = |state| changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    let worker = || {
        loop {
            let mut state = lock(&queue);
            while !state.over && state.next < count && state.next >= state.written + ahead {
                state = wait(state);
            }
            if state.over || state.next >= count {
                return;
            }
            let job = state.next;
            state.next += 1;
            drop(state);
            // The writer finds nothing in the slot of a job that panicked, and says so.
            let _ = catch_unwind(AssertUnwindSafe(|| work(job)));
            lock(&queue).ready[job] = true;
            changed.notify_all();
        }
    };
    /// Sends the workers home however the writer ends: a callback that panics must not leave the scope waiting for them.
    struct StopWorkersOnDrop<'a>(&'a Mutex<Queue>, &'a Condvar);
    impl Drop for StopWorkersOnDrop<'_> {
        fn drop(&mut self) {
            lock(self.0).over = true;
            self.1.notify_all();
        }
    }
    scope(|scope| {
        let _over = StopWorkersOnDrop(&queue, &changed);
        // A thread that the system rejects to start is done without; the first must start, or no job would be done.
        Builder::new().spawn_scoped(scope, worker)?;
        for _ in 1..threads {
            if Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        for job in 0..count {
            let mut state = lock(&queue);
            while !state.ready[job] {
                state = wait(state);
            }
            drop(state);
            write(job)?;
            lock(&queue).written += 1;
            changed.notify_all();
        }
        Ok(())
    })
}
