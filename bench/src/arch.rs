//! safe calls -> the operating system: all unsafe code of the benchmarks but maps of files.
//!
//! The standard library does not report memory in use and its peak, processor time, and what a child process needed.
//!
//! Memory is counted where it is allocated, because resident memory depends on what the allocator kept from the candidate
//! before. Pages that are mapped, anonymous ones too, do not pass the allocator: [`crate::measure::Memory::peak_with`] adds
//! those of a filter of tamis.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn live() -> usize {
    LIVE.load(Relaxed)
}

/// The most bytes that were in use since the last [`reset_peak`].
pub(crate) fn peak() -> usize {
    PEAK.load(Relaxed)
}

/// Starts a new peak at what is in use now.
pub(crate) fn reset_peak() {
    PEAK.store(live(), Relaxed);
}

fn grow(bytes: usize) {
    let now = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(now, Relaxed);
}

fn shrink(bytes: usize) {
    LIVE.fetch_sub(bytes, Relaxed);
}

/// The system's allocator with a meter.
struct Counter;

#[global_allocator]
static COUNTER: Counter = Counter;

// SAFETY: every call is passed on to `System` unchanged; counting touches two atomics and allocates nothing.
unsafe impl GlobalAlloc for Counter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promises are those `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Large blocks are moved by remapping pages, so old and new do not exist side by side.
        if size >= layout.size() {
            grow(size - layout.size())
        } else {
            shrink(layout.size() - size)
        }
        // SAFETY: as in `alloc`.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Processor time of all threads of this process so far. Unlike wall time it does not run while others have the core.
pub(crate) fn cpu_time() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid place for the result. The clock exists on every Unix, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// What a child process needed.
pub(crate) struct Usage {
    pub(crate) status: ExitStatus,
    /// Processor time, user and system.
    pub(crate) cpu: Duration,
    /// Peak resident memory in bytes. Not below that of this process when the child was started: the kernel's reading
    /// begins before the child replaces the program.
    pub(crate) peak: u64,
}

/// Waits for a child and says what it needed.
pub(crate) fn wait(child: Child) -> io::Result<Usage> {
    let mut status = 0;
    // SAFETY: `rusage` is plain integers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live values; the child is ours and is taken by value, so nobody waits for it twice.
        let done = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) };
        if done >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    // Linux counts in kibibytes, Apple in bytes.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    Ok(Usage {
        status: ExitStatus::from_raw(status),
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak: usage.ru_maxrss as u64 * unit,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::measure;

    /// Other tests allocate at the same time; this much they do not.
    const BIG: usize = 256 << 20;
    const SLACK: usize = 32 << 20;

    #[test]
    fn the_allocator_counts_what_is_kept_and_what_was_needed() {
        let (kept, memory) = measure::memory(|| {
            drop(vec![0u8; 2 * BIG]);
            let mut v = Vec::<u8>::with_capacity(16);
            v.reserve_exact(BIG);
            v
        });
        assert!(memory.kept.abs_diff(BIG) < SLACK, "{memory:?}");
        assert!(memory.peak.abs_diff(2 * BIG) < SLACK, "{memory:?}");
        let before = live();
        drop(kept);
        assert!((before - live()).abs_diff(BIG) < SLACK);
    }

    #[test]
    fn a_child_is_waited_for_and_measured() {
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3";
        let child = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let usage = wait(child).unwrap();
        assert_eq!(usage.status.code(), Some(3));
        assert!(usage.cpu > Duration::ZERO && usage.peak > 100 << 10);
    }
}
