//! a fingerprint -> the keys behind it: what an adaptive filter needs of the store of its keys (\[Broom\] section 2, "Finding colliders").

use super::AdaptError;
use crate::hash::Digest;

/// Store of the keys of a filter, under names and in order.
///
/// The filter files every member under one name, a number that it computes from the key's fingerprint. Several keys may have one
/// name, so this is an unordered multimap. It is also an ordered set of keys. A key is its [`Digest`] by the filter's keyed hash,
/// [`hasher`](super::AdaptiveFilter::hasher): a store that holds the keys themselves can compute it. [`Memory`](super::Memory) is such
/// a map.
///
/// Every method is one access, all or nothing: a method that fails has changed nothing. The filter changes only after its map has
/// returned. It checks what the map returns against its fingerprints; what does not fit is [`AdaptError::Inconsistent`], and nothing
/// changes. Two things it cannot check: that a key with the fingerprint in question is a member, and that [`next`](Self::next) leaves
/// out no key. A key that is left out is lost.
pub trait ReverseMap {
    /// Error of this map.
    type Error;

    /// Files a new key under a name.
    ///
    /// # Errors
    ///
    /// Those of the map, as for all methods.
    fn file(&mut self, key: Digest, name: u64) -> Result<(), Self::Error>;

    /// Removes a key that is filed under this name. Returns `false`, and changes nothing, if it is not.
    ///
    /// # Errors
    ///
    /// Those of the map.
    fn unfile(&mut self, key: Digest, name: u64) -> Result<bool, Self::Error>;

    /// Files a key under another name. Returns `false`, and changes nothing, if it is not filed under the first.
    ///
    /// # Errors
    ///
    /// Those of the map.
    fn refile(&mut self, key: Digest, from: u64, to: u64) -> Result<bool, Self::Error>;

    /// Appends all keys under a name to `found`, in any order.
    ///
    /// # Errors
    ///
    /// Those of the map.
    fn filed(&mut self, name: u64, found: &mut Vec<Digest>) -> Result<(), Self::Error>;

    /// Returns the least key after this one, or the least of all.
    ///
    /// # Errors
    ///
    /// Those of the map.
    fn next(&mut self, after: Option<Digest>) -> Result<Option<Digest>, Self::Error>;
}

/// The methods of a map that hands every call on to another, and may count them.
macro_rules! hand_on {
    ($self:ident => $map:expr $(, $reads:ident, $writes:ident)?) => {
        fn file(&mut $self, key: Digest, name: u64) -> Result<(), Self::Error> {
            $($self.$writes += 1;)?
            $map.file(key, name)
        }

        fn unfile(&mut $self, key: Digest, name: u64) -> Result<bool, Self::Error> {
            $($self.$writes += 1;)?
            $map.unfile(key, name)
        }

        fn refile(&mut $self, key: Digest, from: u64, to: u64) -> Result<bool, Self::Error> {
            $($self.$writes += 1;)?
            $map.refile(key, from, to)
        }

        fn filed(&mut $self, name: u64, found: &mut Vec<Digest>) -> Result<(), Self::Error> {
            $($self.$reads += 1;)?
            $map.filed(name, found)
        }

        fn next(&mut $self, after: Option<Digest>) -> Result<Option<Digest>, Self::Error> {
            $($self.$reads += 1;)?
            $map.next(after)
        }
    };
}
pub(super) use hand_on;

impl<M: ReverseMap + ?Sized> ReverseMap for &mut M {
    type Error = M::Error;
    hand_on!(self => (**self));
}

/// What a map must answer for.
pub(super) type Asked<T, M> = Result<T, AdaptError<<M as ReverseMap>::Error>>;

/// The keys under a name, sorted and distinct.
pub(super) fn filed<M: ReverseMap>(map: &mut M, name: u64) -> Asked<Vec<Digest>, M> {
    let mut keys = vec![];
    map.filed(name, &mut keys).map_err(AdaptError::Store)?;
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

/// The error is `otherwise` if this does not hold.
pub(super) fn ensure<E>(holds: bool, otherwise: E) -> Result<(), E> {
    if holds { Ok(()) } else { Err(otherwise) }
}

/// What a map did, which must not be nothing: then the error is `otherwise`.
pub(super) fn done<E>(did: Result<bool, E>, otherwise: AdaptError<E>) -> Result<(), AdaptError<E>> {
    ensure(did.map_err(AdaptError::Store)?, otherwise)
}

/// The key after this one, which must be a later one.
pub(super) fn next_key<M: ReverseMap>(map: &mut M, after: Option<Digest>) -> Asked<Option<Digest>, M> {
    let next = map.next(after).map_err(AdaptError::Store)?;
    if next.is_some() && next <= after { Err(AdaptError::order()) } else { Ok(next) }
}

/// The one key that has a fingerprint; the error is that the map has none or several under this name.
pub(super) fn only<T, E>(mut owners: impl Iterator<Item = T>, name: u64) -> Result<T, AdaptError<E>> {
    match (owners.next(), owners.next()) {
        (Some(owner), None) => Ok(owner),
        (None, _) => Err(AdaptError::unfiled(name)),
        (Some(_), Some(_)) => Err(AdaptError::ambiguous(name)),
    }
}

/// A map that counts its reads and writes.
pub(super) struct Metered<'a, M> {
    pub(super) map: &'a mut M,
    pub(super) reads: u32,
    pub(super) writes: u32,
}

impl<M: ReverseMap> ReverseMap for Metered<'_, M> {
    type Error = M::Error;
    hand_on!(self => self.map, reads, writes);
}
