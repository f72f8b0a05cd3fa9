//! the keys of a set, each time they are read again -> their digests: what a filter needs that builds parts of itself later.

use std::convert::Infallible;

use super::AdaptError;
use crate::error::BuildError;
use crate::hash::{Digest, Hasher, Key, KeyType, Salt};

/// Store of the keys of an [`AdaptiveChained`](super::AdaptiveChained) or [`AdaptiveStacked`](super::AdaptiveStacked) filter, which
/// read them again now and then.
///
/// A store returns the same keys each time, each once, in any order. The filter compares their number and a sum over their digests:
/// with other keys, and after an error of the store, it stays as it was.
///
/// ```
/// use tamis::adaptive::{AdaptiveChained, AdaptiveFilter, Keys};
///
/// /// A file of names, a line each.
/// struct Names(std::path::PathBuf);
///
/// impl Keys for Names {
///     type Key = str;
///     type Error = std::io::Error;
///
///     fn for_each(&mut self, visit: &mut dyn FnMut(&str)) -> std::io::Result<()> {
///         std::fs::read_to_string(&self.0)?.lines().for_each(visit);
///         Ok(())
///     }
/// }
/// # let file = tempfile::NamedTempFile::new()?;
/// # std::fs::write(file.path(), "ann\nbob\n")?;
/// # let path = file.path().to_path_buf();
/// let filter = AdaptiveChained::with_fpr(0.01).build(&mut Names(path))?;
/// assert!(filter.contains("ann")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Keys {
    /// Type of the keys.
    type Key: Key + ?Sized;

    /// Error of reading them.
    type Error;

    /// Calls `visit` with every key.
    ///
    /// # Errors
    ///
    /// Those of the store.
    fn for_each(&mut self, visit: &mut dyn FnMut(&Self::Key)) -> Result<(), Self::Error>;
}

impl<K: Key> Keys for &[K] {
    type Key = K;
    type Error = Infallible;

    fn for_each(&mut self, visit: &mut dyn FnMut(&K)) -> Result<(), Infallible> {
        self.iter().for_each(visit);
        Ok(())
    }
}

impl<K: Key> Keys for Vec<K> {
    type Key = K;
    type Error = Infallible;

    fn for_each(&mut self, visit: &mut dyn FnMut(&K)) -> Result<(), Infallible> {
        self.as_slice().for_each(visit)
    }
}

type Learned<T, M> = Result<T, AdaptError<<M as Keys>::Error>>;

/// The keys that a filter was made of, known by their number and a sum that depends on no order, and how they are hashed.
#[derive(Clone, Debug)]
pub(crate) struct KeySet {
    pub(crate) hasher: Hasher,
    pub(crate) key_type: KeyType,
    pub(crate) keys: u64,
    pub(crate) sum: u64,
}

impl KeySet {
    /// Reads the keys for the first time; returns them sorted and distinct too.
    pub(super) fn new<M: Keys>(hasher: std::io::Result<Hasher>, keys: &mut M) -> Learned<(KeySet, Vec<Digest>), M> {
        let hasher = hasher.map_err(BuildError::from)?;
        KeySet { hasher, key_type: M::Key::KEY_TYPE, keys: 0, sum: 0 }.gather(keys, |_| true)
    }

    /// Reads the keys again; returns those that are wanted, sorted and distinct. The error may be that they are others.
    pub(super) fn read<M: Keys>(&self, keys: &mut M, wanted: impl Fn(Digest) -> bool) -> Learned<Vec<Digest>, M> {
        let (found, gathered) = self.gather(keys, wanted)?;
        match (found.keys, found.sum) == (self.keys, self.sum) {
            true => Ok(gathered),
            false => Err(AdaptError::other_keys(found.keys, self.keys)),
        }
    }

    fn gather<M: Keys>(&self, keys: &mut M, wanted: impl Fn(Digest) -> bool) -> Learned<(KeySet, Vec<Digest>), M> {
        const SALT: Salt = Salt::new(0x6365_6e73_7573);
        self.key_type.check(M::Key::KEY_TYPE)?;
        let mut found = KeySet { keys: 0, sum: 0, ..self.clone() };
        let mut gathered = vec![];
        let mut take = |key: Digest| {
            found.keys += 1;
            found.sum = found.sum.wrapping_add(key.salted(SALT));
            if wanted(key) {
                gathered.push(key);
            }
        };
        keys.for_each(&mut |key| take(key.digest(&self.hasher))).map_err(AdaptError::Store)?;
        gathered.sort_unstable();
        gathered.dedup();
        Ok((found, gathered))
    }
}
