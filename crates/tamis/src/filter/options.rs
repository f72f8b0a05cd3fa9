//! what every build may use -> one set of options, and the methods that set them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::BuildError;
use crate::format::{Form, Header, MAX_METADATA};
use crate::gather::{Limits, SHARD_KEYS, Workspace};
use crate::hash::{Hasher, KeyType};
use crate::plan::Effort;

/// Progress of a build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// Keys read so far.
    Read {
        /// How many, duplicates included.
        keys: u64,
        /// Of how many, where the builder got an iterator that knows.
        total: Option<u64>,
    },
    /// Excluded keys read so far.
    Excluded {
        /// How many, duplicates included.
        keys: u64,
        /// Of how many, where the builder got an iterator that knows.
        total: Option<u64>,
    },
    /// Shards built and written so far. A filter that misses the goal of its workload is built again, from the first shard.
    Built {
        /// How many.
        shards: u64,
        /// Of how many.
        total: u64,
    },
}

/// Options that filters, maps, sequences and set indexes share.
#[derive(Clone)]
pub(crate) struct Common<'a> {
    pub(crate) hasher: Hasher,
    pub(crate) effort: Effort,
    pub(crate) limits: Limits,
    pub(crate) threads: usize,
    pub(crate) progress: Option<Arc<dyn Fn(Progress) + Send + Sync + 'a>>,
    pub(crate) cancel: Arc<AtomicBool>,
    /// Whether the secret of the hash is kept outside the file.
    pub(crate) secret_beside: bool,
    /// The caller's note in the file.
    pub(crate) metadata: Arc<[u8]>,
    /// The most keys of a shard.
    pub(crate) shard_keys: u64,
    /// The name of an option that was set and has no effect on this build.
    pub(crate) unused: Option<&'static str>,
}

impl fmt::Debug for Common<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Common { hasher, effort, limits, threads, .. } = self;
        write!(f, "{effort:?}, {hasher:?}, {limits:?}, {threads} threads")
    }
}

impl Default for Common<'_> {
    fn default() -> Self {
        Common {
            hasher: Hasher::seeded(0),
            effort: Effort::Balanced,
            limits: Limits::default(),
            threads: crate::parallel::available(),
            progress: None,
            cancel: Arc::default(),
            secret_beside: false,
            metadata: Arc::default(),
            shard_keys: SHARD_KEYS,
            unused: None,
        }
    }
}

/// Methods of a builder that set one option each.
macro_rules! set {
    ($($(#[$doc:meta])* $name:ident($($value:ident: $type:ty)?) => $($field:ident).+ = $to:expr;)+) => {$(
        $(#[$doc])*
        pub fn $name(mut self $(, $value: $type)?) -> Self {
            self.$($field).+ = $to;
            self
        }
    )+};
}

/// The method of a builder, of lifetime `'a`, that has a [`Common`] at this place.
macro_rules! common {
    ($($common:ident).+) => {
        /// Sets the options that all builds share. Options that only filters have are errors when the build starts.
        pub fn options(mut self, options: crate::filter::build::Options<'a>) -> Self {
            self.$($common).+ = options.into_common();
            self
        }
    };
}
pub(crate) use {common, set};

/// The most keys, or pairs, that an empty table is made for. Where memory is lent before it is there, a larger table would not fail: the
/// system would end the process when the table fills.
const MAX_CAPACITY: u64 = 1 << 32;

/// Rejects a capacity that no table is made for; tables of more keys than that, which are there, may have their number.
pub(crate) fn check_capacity(given: u64, keys: u64) -> Result<(), BuildError> {
    match given <= MAX_CAPACITY.max(keys) {
        true => Ok(()),
        false => {
            Err(BuildError::Range { option: "capacity", given: given as f64, least: 0.0, most: MAX_CAPACITY as f64 })
        }
    }
}

/// Rejects a secret that is kept outside where there is none.
pub(crate) fn check_secret_beside(beside: bool, hasher: &Hasher) -> Result<(), BuildError> {
    match beside && !hasher.is_secret() {
        true => Err(BuildError::NoEffect { option: "secret_beside", needs: "a secret" }),
        false => Ok(()),
    }
}

/// Rejects keys that a foreign hash cannot have hashed.
pub(crate) fn check_foreign(hasher: &Hasher, key_type: KeyType) -> Result<(), BuildError> {
    match hasher.is_foreign() && key_type != KeyType::Digest {
        true => Err(BuildError::NoEffect { option: "hasher", needs: "keys of type Digest with Hasher::foreign" }),
        false => Ok(()),
    }
}

/// How often the progress callback is called while keys come in.
pub(crate) const PROGRESS_INTERVAL: u64 = 1 << 16;

/// The share of the memory limit that is the workspace of intake and census. The rest is room for a part of what comes on top: shards
/// under construction, up to 60 MB per thread for members alone.
const SORT_MEMORY_SHARE: (u64, u64) = (5, 8);

impl Common<'_> {
    /// The secret that a file of these options needs to be opened.
    pub(crate) fn needed_secret(&self) -> Option<[u64; 2]> {
        self.secret_beside.then(|| self.hasher.words())
    }

    /// Whether a file of these options has a secret in it.
    pub(crate) fn writes_secret(&self) -> bool {
        self.hasher.is_secret() && !self.secret_beside
    }

    /// The header of an empty set of this form.
    pub(crate) fn header(&self, form: Form, hasher: Hasher, key_type: KeyType) -> Result<Header, BuildError> {
        check_foreign(&hasher, key_type)?;
        Ok(Header::new(form, hasher.with_secret_beside(self.secret_beside), key_type))
    }

    pub(crate) fn workspace(&self) -> Arc<Workspace> {
        let memory = self.limits.memory / SORT_MEMORY_SHARE.1 * SORT_MEMORY_SHARE.0;
        Workspace::sharded(&Limits { memory, ..self.limits.clone() }, self.threads, self.shard_keys)
    }

    /// Rejects options without effect, and a number of threads that no build has.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        if let Some(option) = self.unused {
            return Err(BuildError::NoEffect { option, needs: "a filter" });
        }
        check_secret_beside(self.secret_beside, &self.hasher)?;
        if self.metadata.len() > MAX_METADATA {
            let (given, most) = (self.metadata.len() as f64, MAX_METADATA as f64);
            return Err(BuildError::Range { option: "metadata", given, least: 0.0, most });
        }
        const MAX_THREADS: usize = 1024;
        match self.threads {
            1..=MAX_THREADS => Ok(()),
            given => {
                Err(BuildError::Range { option: "threads", given: given as f64, least: 1.0, most: MAX_THREADS as f64 })
            }
        }
    }

    /// Whether the caller wants the build to stop.
    pub(crate) fn stop(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Fails if the caller wants the build to stop.
    pub(crate) fn check_cancel(&self) -> Result<(), BuildError> {
        if self.stop() { Err(BuildError::Cancelled) } else { Ok(()) }
    }

    /// Calls the progress callback.
    pub(crate) fn report(&self, progress: Progress) {
        if let Some(callback) = &self.progress {
            callback(progress);
        }
    }

    /// Calls the progress callback if enough keys came since the last call.
    #[inline]
    pub(crate) fn report_progress(&self, count: u64, progress: Progress) -> Result<(), BuildError> {
        if count.is_multiple_of(PROGRESS_INTERVAL) {
            self.check_cancel()?;
            self.report(progress);
        }
        Ok(())
    }
}
