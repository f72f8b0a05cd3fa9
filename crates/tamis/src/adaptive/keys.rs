//! the keys of a set, whenever they are wanted again -> their digests: what a filter asks for that builds parts of itself anew.

use std::convert::Infallible;
use std::fmt;

use crate::error::{BuildError, ChangeError};
use crate::hash::{Digest, Hasher, Key, KeyType, Mismatch, Salt};

/// The store of the keys of a filter.
///
/// All of them, each once, in any order, and every time the same ones: a filter compares their number and a sum over their digests
/// with those of the keys it was made of. If they are others it stays as it was, and so it does after an error.
///
/// ```
/// use tamis::adaptive::Keys;
/// use tamis::{Digest, KeyType, Hasher, Key};
///
/// /// A file of names, a line each.
/// struct Names(std::path::PathBuf);
///
/// impl Keys for Names {
///     type Error = std::io::Error;
///
///     fn key_type(&self) -> KeyType {
///         KeyType::Bytes
///     }
///
///     fn each(&mut self, hasher: &Hasher, take: &mut dyn FnMut(Digest)) -> std::io::Result<()> {
///         std::fs::read_to_string(&self.0)?.lines().for_each(|name| take(name.digest(hasher)));
///         Ok(())
///     }
/// }
/// assert!(Names("/no/such/file".into()).each(&Hasher::secret([1, 2]), &mut |_| ()).is_err());
/// ```
pub trait Keys {
    /// What goes wrong when they are read.
    type Error;

    /// The key type of the keys.
    fn key_type(&self) -> KeyType;

    /// Hands over the digest of every key.
    fn each(&mut self, hasher: &Hasher, take: &mut dyn FnMut(Digest)) -> Result<(), Self::Error>;
}

impl<K: Key> Keys for &[K] {
    type Error = Infallible;

    fn key_type(&self) -> KeyType {
        K::KEY_TYPE
    }

    fn each(&mut self, hasher: &Hasher, take: &mut dyn FnMut(Digest)) -> Result<(), Infallible> {
        self.iter().for_each(|key| take(key.digest(hasher)));
        Ok(())
    }
}

impl<K: Key> Keys for Vec<K> {
    type Error = Infallible;

    fn key_type(&self) -> KeyType {
        K::KEY_TYPE
    }

    fn each(&mut self, hasher: &Hasher, take: &mut dyn FnMut(Digest)) -> Result<(), Infallible> {
        self.as_slice().each(hasher, take)
    }
}

/// Why a filter did not build a part of itself. It answers as before, and no key is lost; the next false positive tries again.
#[derive(Debug)]
#[non_exhaustive]
pub enum LearnError<E> {
    /// A key of the wrong key type, or no room for another.
    Change(ChangeError),
    /// The keys could not be read.
    Keys(E),
    /// The keys are not those that the filter was made of.
    Changed {
        /// How many came.
        found: u64,
        /// How many there were.
        expected: u64,
    },
    /// A part could not be built.
    Build(BuildError),
}

impl<E: fmt::Display> fmt::Display for LearnError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LearnError::Change(e) => e.fmt(f),
            LearnError::Keys(e) => write!(f, "keys: {e}"),
            LearnError::Changed { found, expected } if found == expected => {
                write!(f, "keys: as many as the filter was made of, {found}, but not the same")
            }
            LearnError::Changed { found, expected } => {
                write!(f, "keys: {found} came, expected the {expected} that the filter was made of")
            }
            LearnError::Build(e) => e.fmt(f),
        }
    }
}

impl<E: std::error::Error> std::error::Error for LearnError<E> {}

impl<E> From<Mismatch> for LearnError<E> {
    fn from(cause: Mismatch) -> LearnError<E> {
        LearnError::Change(cause.into())
    }
}

impl<E> From<BuildError> for LearnError<E> {
    fn from(cause: BuildError) -> LearnError<E> {
        LearnError::Build(cause)
    }
}

type Learned<T, M> = Result<T, LearnError<<M as Keys>::Error>>;

/// The keys that a filter was made of, known by their number and a sum that depends on no order, and how they are hashed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeySet {
    pub(crate) hasher: Hasher,
    pub(crate) key_type: KeyType,
    pub(crate) keys: u64,
    pub(crate) sum: u64,
}

impl KeySet {
    /// Reads the keys for the first time; returns them sorted and distinct too. Without a secret the operating system draws one.
    pub(super) fn new<M: Keys>(secret: Option<[u64; 2]>, keys: &mut M) -> Learned<(KeySet, Vec<Digest>), M> {
        let hasher = Hasher::secret_or_random(secret).map_err(BuildError::from)?;
        KeySet { hasher, key_type: keys.key_type(), keys: 0, sum: 0 }.gather(keys, |_| true)
    }

    /// Reads the keys again; returns those that are wanted, sorted and distinct. The error may be that they are others.
    pub(super) fn read<M: Keys>(&self, keys: &mut M, wanted: impl Fn(Digest) -> bool) -> Learned<Vec<Digest>, M> {
        let (found, gathered) = self.gather(keys, wanted)?;
        match (found.keys, found.sum) == (self.keys, self.sum) {
            true => Ok(gathered),
            false => Err(LearnError::Changed { found: found.keys, expected: self.keys }),
        }
    }

    fn gather<M: Keys>(&self, keys: &mut M, wanted: impl Fn(Digest) -> bool) -> Learned<(KeySet, Vec<Digest>), M> {
        const SALT: Salt = Salt::new(0x6365_6e73_7573);
        self.key_type.check(keys.key_type())?;
        let mut found = KeySet { keys: 0, sum: 0, ..*self };
        let mut gathered = vec![];
        let mut take = |key: Digest| {
            found.keys += 1;
            found.sum = found.sum.wrapping_add(key.salted(SALT));
            if wanted(key) {
                gathered.push(key);
            }
        };
        keys.each(&self.hasher, &mut take).map_err(LearnError::Keys)?;
        gathered.sort_unstable();
        gathered.dedup();
        Ok((found, gathered))
    }
}
