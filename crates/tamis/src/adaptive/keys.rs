//! the keys of a set, whenever they are wanted again -> their digests: what a filter asks for that builds parts of itself anew.

use std::convert::Infallible;
use std::fmt;

use crate::error::{BuildError, ChangeError};
use crate::hash::{Digest, Domain, Hasher, Key, Mismatch, Salt};

/// The store of the keys of a filter.
///
/// All of them, each once, in any order, and every time the same ones: a filter compares their number and a sum over their digests
/// with those of the keys it was made of. If they are others it stays as it was, and so it does after an error.
///
/// ```
/// use tamis::adaptive::Keys;
/// use tamis::{Digest, Domain, Hasher, Key};
///
/// /// A file of names, a line each.
/// struct Names(std::path::PathBuf);
///
/// impl Keys for Names {
///     type Error = std::io::Error;
///
///     fn domain(&self) -> Domain {
///         Domain::Bytes
///     }
///
///     fn each(&mut self, hasher: &Hasher, take: &mut dyn FnMut(Digest)) -> std::io::Result<()> {
///         std::fs::read_to_string(&self.0)?.lines().for_each(|name| take(name.digest(hasher)));
///         Ok(())
///     }
/// }
/// assert!(Names("/no/such/file".into()).each(&Hasher::keyed([1, 2]), &mut |_| ()).is_err());
/// ```
pub trait Keys {
    /// What goes wrong when they are read.
    type Error;

    /// The domain of the keys.
    fn domain(&self) -> Domain;

    /// Hands over the digest of every key.
    fn each(&mut self, hasher: &Hasher, take: &mut dyn FnMut(Digest)) -> Result<(), Self::Error>;
}

impl<K: Key> Keys for &[K] {
    type Error = Infallible;

    fn domain(&self) -> Domain {
        K::DOMAIN
    }

    fn each(&mut self, hasher: &Hasher, take: &mut dyn FnMut(Digest)) -> Result<(), Infallible> {
        self.iter().for_each(|key| take(key.digest(hasher)));
        Ok(())
    }
}

impl<K: Key> Keys for Vec<K> {
    type Error = Infallible;

    fn domain(&self) -> Domain {
        K::DOMAIN
    }

    fn each(&mut self, hasher: &Hasher, take: &mut dyn FnMut(Digest)) -> Result<(), Infallible> {
        self.as_slice().each(hasher, take)
    }
}

/// Why a filter did not build a part of itself. It answers as before, and no key is lost; the next false positive tries again.
#[derive(Debug)]
#[non_exhaustive]
pub enum LearnError<E> {
    /// A key of the wrong domain, or no room for another.
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

/// How many keys there are, and which: a sum that depends on no order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct KeySetChecksum {
    pub(super) keys: u64,
    pub(super) sum: u64,
}

impl KeySetChecksum {
    fn add(&mut self, key: Digest) {
        const SALT: Salt = Salt::new(0x6365_6e73_7573);
        self.keys += 1;
        self.sum = self.sum.wrapping_add(key.salted(SALT));
    }
}

/// The keys that are wanted, sorted and distinct, and the checksum of all.
pub(super) fn gather<M: Keys>(
    keys: &mut M,
    domain: Domain,
    hasher: &Hasher,
    wanted: impl Fn(Digest) -> bool,
) -> Result<(Vec<Digest>, KeySetChecksum), LearnError<M::Error>> {
    domain.check(keys.domain())?;
    let mut checksum = KeySetChecksum::default();
    let mut gathered = vec![];
    let mut take = |key: Digest| {
        checksum.add(key);
        if wanted(key) {
            gathered.push(key);
        }
    };
    keys.each(hasher, &mut take).map_err(LearnError::Keys)?;
    gathered.sort_unstable();
    gathered.dedup();
    Ok((gathered, checksum))
}

/// The same of keys that were seen before.
pub(super) fn gather_again<M: Keys>(
    keys: &mut M,
    domain: Domain,
    hasher: &Hasher,
    checksum: KeySetChecksum,
    wanted: impl Fn(Digest) -> bool,
) -> Result<Vec<Digest>, LearnError<M::Error>> {
    let (gathered, found) = gather(keys, domain, hasher, wanted)?;
    match found == checksum {
        true => Ok(gathered),
        false => Err(LearnError::Changed { found: found.keys, expected: checksum.keys }),
    }
}
