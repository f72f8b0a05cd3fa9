//! what happens to filters -> counts: the policy's own, and those of the engine's recorder.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slatedb_common::metrics::{CounterFn, MetricsRecorder};

/// What a policy did so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Filters of tables that were written.
    pub built: u64,
    /// Their bytes.
    pub bytes_built: u64,
    /// Tables whose filter could not be built. They have one that matches everything.
    pub not_built: u64,
    /// Filters that were read.
    pub opened: u64,
    /// Filters that could not be read: cut, foreign, or of a newer format. They match everything.
    pub unreadable: u64,
}

#[derive(Default)]
pub(crate) struct Counter {
    total: AtomicU64,
    recorded: Option<Arc<dyn CounterFn>>,
}

impl Counter {
    fn recorded(recorder: &dyn MetricsRecorder, name: &str, description: &str) -> Counter {
        Counter { total: AtomicU64::new(0), recorded: Some(recorder.register_counter(name, description, &[])) }
    }

    pub(crate) fn add(&self, count: u64) {
        self.total.fetch_add(count, Ordering::Relaxed);
        if let Some(counter) = &self.recorded {
            counter.increment(count);
        }
    }

    fn get(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) built: Counter,
    pub(crate) bytes_built: Counter,
    pub(crate) not_built: Counter,
    pub(crate) opened: Counter,
    pub(crate) unreadable: Counter,
}

impl Counters {
    pub(crate) fn recorded(recorder: &dyn MetricsRecorder) -> Counters {
        let counter = |name, description| Counter::recorded(recorder, name, description);
        Counters {
            built: counter("tamis.filters_built", "filters of tables that were written"),
            bytes_built: counter("tamis.filter_bytes_built", "bytes of the filters that were built"),
            not_built: counter("tamis.filters_not_built", "tables that were written without a filter, after an error"),
            opened: counter("tamis.filters_opened", "filters that were read"),
            unreadable: counter("tamis.filters_unreadable", "filters that could not be read and match everything"),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            built: self.built.get(),
            bytes_built: self.bytes_built.get(),
            not_built: self.not_built.get(),
            opened: self.opened.get(),
            unreadable: self.unreadable.get(),
        }
    }
}
