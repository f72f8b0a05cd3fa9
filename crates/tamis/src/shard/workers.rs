//! independent jobs -> their results in order: a queue emptied by scoped threads.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::BuildError;

/// Asked now and then from any thread; `true` ends the work with [`BuildError::Cancelled`].
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Fails when the caller wants to stop.
#[inline]
pub(crate) fn check(stop: Stop<'_>) -> Result<(), BuildError> {
    if stop() { Err(BuildError::Cancelled) } else { Ok(()) }
}

/// [`run`] for work that cannot fail.
pub(crate) fn each<J: Send, T: Send>(jobs: Vec<J>, threads: usize, work: impl Fn(J) -> T + Sync) -> Vec<T> {
    run(jobs, threads, |job| Ok(work(job))).unwrap_or_default()
}

/// Runs every job on at most `threads` threads, this one among them, and returns the results in the order of the jobs.
///
/// After an error no new job is started; of several errors the one of the earliest job is returned. A thread that the
/// system refuses to start is done without.
pub(crate) fn run<J: Send, T: Send>(
    jobs: Vec<J>,
    threads: usize,
    work: impl Fn(J) -> Result<T, BuildError> + Sync,
) -> Result<Vec<T>, BuildError> {
    let count = jobs.len();
    if threads <= 1 || count <= 1 {
        return jobs.into_iter().map(work).collect();
    }
    let failed = AtomicBool::new(false);
    let queue = Mutex::new(jobs.into_iter().enumerate());
    let worker = || {
        let mut done = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            // A poisoned queue means that another thread is unwinding: nothing is left to do.
            let Some((i, job)) = queue.lock().ok().and_then(|mut queue| queue.next()) else { break };
            let result = work(job);
            if result.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            done.push((i, result));
        }
        done
    };
    let mut done = std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, worker).ok();
        let others: Vec<_> = (1..threads.min(count)).filter_map(spawn).collect();
        let mut done = worker();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|&(i, _)| i);
    done.into_iter().map(|(_, result)| result).collect()
}
