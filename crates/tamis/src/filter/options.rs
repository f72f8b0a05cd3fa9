//! what every build may use -> one set of options, and the methods that set them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::BuildError;
use crate::gather::{Limits, Workspace};
use crate::hash::Hasher;
use crate::plan::Effort;

/// How far a build has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// Keys taken in so far.
    Read {
        /// How many, duplicates included.
        keys: u64,
    },
    /// Keys to exclude, taken in so far.
    Excluded {
        /// How many, duplicates included.
        keys: u64,
    },
    /// Shards built and written so far.
    Built {
        /// How many.
        shards: u64,
        /// Of how many.
        total: u64,
    },
}

/// The options that filters, maps, sequences and set indexes share, for a program that builds several of them.
///
/// ```
/// use tamis::Common;
/// let common = Common::default().seed(7).threads(2);
/// let filter = tamis::build(["ann", "bob"]).common(common.clone()).finish()?;
/// let map = tamis::map([("ann", 3u64), ("bob", 5)]).common(common).finish()?;
/// assert!(filter.contains("ann")? && map.get_u64("ann")? == Some(3));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Common {
    pub(crate) hasher: Hasher,
    pub(crate) effort: Effort,
    pub(crate) limits: Limits,
    pub(crate) threads: usize,
    pub(crate) progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    pub(crate) cancel: Arc<AtomicBool>,
}

impl fmt::Debug for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Common { hasher, effort, limits, threads, .. } = self;
        write!(f, "{effort:?}, {hasher:?}, {limits:?}, {threads} threads")
    }
}

impl Default for Common {
    fn default() -> Common {
        Common {
            hasher: Hasher::seeded(0),
            effort: Effort::Balanced,
            limits: Limits::default(),
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            progress: None,
            cancel: Arc::default(),
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

/// The methods that set the fields of [`Common`], for a type that has one at this place, or is one.
macro_rules! setters {
    ($($common:ident).*) => {
        crate::filter::options::set! {
            /// Sets the seed of the hash; equal input, options and seeds give equal bytes. The default is 0.
            seed(seed: u64) => $($common.)*hasher = crate::hash::Hasher::seeded(seed);

            /// Hashes with this secret key instead, where others may choose queries or keys. The key is stored in the file, so that the
            /// file must stay private.
            ///
            /// Without a secret everybody can compute which keys match, and whoever supplies keys can make different ones with equal
            /// digests, which then count as one key. Chosen keys cannot stop a build or make it much larger. A query takes 2.0 to 2.2
            /// times as long with a secret for names, about 3 times for integers.
            secret(secret: [u64; 2]) => $($common.)*hasher = crate::hash::Hasher::secret(secret);

            /// Sets how hard to look for a smaller file.
            effort(effort: crate::plan::Effort) => $($common.)*effort = effort;

            /// Limits memory and disk, and says where temporary files go.
            ///
            /// Some things are held in memory on top of them: distinct values of a map that are text or bytes, the table of a sketch, and the
            /// distinct set lists of a frozen index.
            limits(limits: crate::gather::Limits) => $($common.)*limits = limits;

            /// Sets how many threads to use, at most 1024; all of them by default. The bytes are equal for any number.
            threads(threads: usize) => $($common.)*threads = threads.clamp(1, 1024);

            /// Calls `callback` about every 65,536 keys and after every shard.
            progress(callback: impl Fn(crate::filter::options::Progress) + Send + Sync + 'static) =>
                $($common.)*progress = Some(std::sync::Arc::new(callback));

            /// Stops the build with [`BuildError::Cancelled`](crate::BuildError::Cancelled) soon after this flag becomes true.
            cancel(flag: std::sync::Arc<std::sync::atomic::AtomicBool>) => $($common.)*cancel = flag;
        }
    };
}

/// The methods of a builder that has a [`Common`] at this place.
macro_rules! common {
    ($($common:ident).+) => {
        /// Sets all options that filters, maps, sequences and set indexes share.
        pub fn common(mut self, common: crate::filter::options::Common) -> Self {
            self.$($common).+ = common;
            self
        }

        crate::filter::options::setters!($($common).+);
    };
}

pub(crate) use {common, set, setters};

impl Common {
    setters!();
}

/// How often the progress callback is called while keys come in.
pub(crate) const PROGRESS_INTERVAL: u64 = 1 << 16;

/// The share of the memory limit that is the workspace of intake and census. The rest is room for what comes on top: shards
/// under construction, about 60 MB per thread.
const SORT_MEMORY_SHARE: (u64, u64) = (5, 8);

impl Common {
    pub(crate) fn workspace(&self) -> Arc<Workspace> {
        let memory = self.limits.memory / SORT_MEMORY_SHARE.1 * SORT_MEMORY_SHARE.0;
        Workspace::new(&Limits { memory, ..self.limits.clone() }, self.threads)
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
    pub(crate) fn report_progress(&self, count: u64, progress: Progress) -> Result<(), BuildError> {
        if count.is_multiple_of(PROGRESS_INTERVAL) {
            self.check_cancel()?;
            self.report(progress);
        }
        Ok(())
    }
}
