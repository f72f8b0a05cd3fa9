//! a few options -> a level without runs.

use super::{Level, Reader};
use crate::error::BuildError;
use crate::filter::options::{check_foreign, set};
use crate::hash::{Hasher, Key};
use crate::parallel::available;

/// Builder of a [`Level`].
///
/// ```
/// use tamis::{Hasher, lsm::LevelBuilder};
/// let mut level = LevelBuilder::new().fpr(0.001).hasher(Hasher::seeded(7)).build::<str>()?;
/// let run = level.push_run(["ann", "bob"])?;
/// assert_eq!(level.find("ann")?, Some(run));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is made before `build`"]
pub struct LevelBuilder {
    fpr: f64,
    hasher: Hasher,
    all_versions: bool,
    threads: usize,
}

impl Default for LevelBuilder {
    fn default() -> LevelBuilder {
        LevelBuilder { fpr: 0.01, hasher: Hasher::seeded(0), all_versions: false, threads: available() }
    }
}

impl LevelBuilder {
    /// Starts with the default options.
    pub fn new() -> LevelBuilder {
        LevelBuilder::default()
    }

    set! {
        /// Sets the share of absent keys that one run's filter matches, above 0 and below 0.5. The default is 0.01.
        ///
        /// Keys of the level cost no additional reads at any rate. With `n` runs, a share of `1 - (1 - p)^n` of the absent keys costs one read. A higher rate
        /// makes ribbons smaller, and exact bits larger: keys of later runs that pass the ribbon are listed there.
        fpr(p: f64) => fpr = p;

        /// Sets the hash: a seed, a secret, or [`Hasher::foreign`] for keys of type [`Digest`](crate::Digest). The default is
        /// `Hasher::seeded(0)`. Two keys with the same digest are one key to a level, and one of them may not be found. If others choose keys, they can find
        /// such a pair, unless the hash has a secret.
        hasher(hasher: Hasher) => hasher = hasher;

        /// Finds all versions of a key, from the oldest on, and not only the newest one: for stores with snapshots, or values that are merged.
        ///
        /// A search then reads all runs that hold the key, and at most one more: see [`Reader::search`].
        all_versions() => all_versions = true;

        /// Sets the number of threads that add a run, 1 to 1024; all processors by default.
        threads(threads: usize) => threads = threads;
    }

    /// Makes the level, for keys of type `K`: `u64`, `str`, `[u8]`, ..
    ///
    /// # Errors
    ///
    /// [`BuildError::Range`] if the rate or the number of threads is out of range, [`BuildError::NoEffect`] if the hash is foreign and keys are no digests.
    pub fn build<K: Key + ?Sized>(self) -> Result<Level, BuildError> {
        let LevelBuilder { fpr, hasher, all_versions, threads } = self;
        if !(fpr > 0.0 && fpr < 0.5) {
            return Err(BuildError::Range { option: "fpr", given: fpr, least: 0.0, most: 0.5 });
        }
        if !(1..=1024).contains(&threads) {
            return Err(BuildError::Range { option: "threads", given: threads as f64, least: 1.0, most: 1024.0 });
        }
        check_foreign(&hasher, K::KEY_TYPE)?;
        let shown = Reader { hasher, key_type: K::KEY_TYPE, all_versions, runs: vec![] };
        Ok(Level { shown, graphs: vec![], fpr, threads, next: 0 })
    }
}
