//! members and excluded keys that change -> a first layer that takes keys, and an exact bit for what passes it.
//!
//! ```text
//!   key ──▶ first layer ──no──▶ no            Bloom, cuckoo or quotient: it takes keys
//!               │yes
//!               ▼
//!           exact bit ──▶ yes or no           members 1, excluded keys that pass 0
//! ```
//!
//! [Chained] section 4.3.1 has this as the filter that changes: excluding a key needs a 0 only if the key passes. What the paper leaves out
//! is the excluded key that does *not* pass: a member that is inserted later may open the way for it, and it would match
//! half of the time. With a Bloom filter of rate 1/16 and all exclusions made when half of the keys are in, 2.75 % of them are
//! forgotten. So those wait, found by what keeps them out, a *gate* ([`Change::closed_gates`]): a bit that is still 0, or a
//! fingerprint with its place. An insertion looks at what waits for the gates that it opens: a key whose last gate
//! opens gets its 0, any other goes on to its next gate.
//!
//! * *Order.* The member's 1, the 0 of everything that is about to pass, then the first layer. So a reader at any moment finds every member
//!   and no excluded key. A cuckoo filter finds the whole chain of kicks before it moves a fingerprint; if there is none, the bits are
//!   taken back, and nothing has changed.
//! * *A first layer that is built* from all members ([`fixed`]) never admits another key: nothing waits, and what it rejects is not kept.
//! * *Removing is not excluding.* A removed key is unlisted: it may match. If the first layer removes keys, excluded keys that passed
//!   because of it give their bit back; otherwise the exact bit would grow with every turnover.
//! * *What is kept.* Digests of all members and excluded keys, with their links: 26 bytes for each key in the exact bit, 28 to 33 for each that
//!   waits. No query reads them. A file keeps 16 bytes for each, in a unit of its own ([`file`]); without it a file is read-only.
//!
//! [`Change::closed_gates`]: crate::leaves::change::Change::closed_gates

use self::change::{Known, Shown};
use self::fixed::Fixed;
use self::waiting::Waiting;
use super::access::Alone;
use super::bloom::Bloom;
use super::core::Core;
use super::cuckoo::Cuckoo;
use super::othello::{Bits, salts};
use super::quotient::Quotient;
use crate::debug::brief_debug;
use crate::error::{BuildError, ChangeError, Error, QueryError};
use crate::filter::query::Filter;
use crate::hash::{Digest, Hasher, Key, KeyType};
use crate::leaves::change::Layer;

pub(crate) mod change;
mod file;
mod fixed;
mod waiting;

/// Filter whose members and excluded keys change: it matches every member, no excluded key, and unlisted keys at a rate.
///
/// It is made [over](Self::over) an empty [`Bloom`], [`Cuckoo`] or [`Quotient`] filter, its first layer. Members can be removed over any
/// of them; only with the last two does the first layer get its room back. If only the excluded keys change, a built filter of the
/// members is smaller: [`over_built`](Self::over_built).
///
/// ```
/// use tamis::{Chained, Cuckoo, Filter};
/// let mut blocked = Chained::over(Cuckoo::with_capacity(1000).fpr(0.01).build::<str>()?)?;
/// blocked.insert("ads.example")?;
/// blocked.exclude("news.example")?; // from now on it never matches
/// blocked.insert("spam.example")?;
/// assert!(blocked.contains("spam.example")? && !blocked.contains("news.example")?);
/// assert!(blocked.exclude("ads.example").is_err()); // a member
///
/// let bytes = blocked.snapshot()?; // a filter file, and the digests that changes need
/// assert!(Filter::open(bytes.clone())?.contains("ads.example")?);
/// let mut blocked = Chained::restore(bytes)?;
/// blocked.remove("ads.example")?;
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// Its file keeps 16 bytes for each member and each excluded key after the tables; queries do not read them.
///
/// If others choose keys, give the first layer a secret: see [`Hasher::random_secret`](crate::Hasher::random_secret). Without one, chosen
/// keys cannot make it err, but they slow it down: many exclusions that wait for one bit are all looked at by the insertion that sets it.
#[derive(Clone)]
pub struct Chained(pub(super) Core<Table>);

/// What readers see, and what only changes need.
#[derive(Clone)]
pub(crate) struct Table {
    pub(super) shown: Shown,
    pub(super) known: Known,
}

brief_debug!(Chained, it => keys: it.len(), excluded: it.excluded_len(), table_bits: it.table_bits(), hasher: it.0.hasher);

/// A filter that can be a first layer: [`Bloom`], [`Cuckoo`], [`Quotient`].
#[allow(private_bounds)] // No other filter can be one.
pub trait First: IntoLayer {}

impl<F: IntoLayer> First for F {}

trait IntoLayer {
    fn into_layer(self) -> Result<Core<Box<dyn Layer>>, BuildError>;
}

impl IntoLayer for Bloom {
    fn into_layer(self) -> Result<Core<Box<dyn Layer>>, BuildError> {
        Ok(self.0)
    }
}

impl IntoLayer for Cuckoo {
    fn into_layer(self) -> Result<Core<Box<dyn Layer>>, BuildError> {
        Ok(self.0.map(|table| Box::new(table) as Box<dyn Layer>))
    }
}

impl IntoLayer for Quotient {
    fn into_layer(self) -> Result<Core<Box<dyn Layer>>, BuildError> {
        let whole = self.core.table.whole()?;
        Ok(self.core.map(|_| Box::new(whole) as Box<dyn Layer>))
    }
}

impl Chained {
    /// Makes a filter without members over an empty first layer, whose capacity, rate and hash it has.
    ///
    /// Half of the unlisted keys that the first layer matches match the whole.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Unsupported`] if the first layer holds keys, [`Error::Build`] if there is no memory.
    pub fn over(first: impl First) -> Result<Chained, Error> {
        let core = first.into_layer()?;
        if core.table.keys() > 0 {
            let what = "over: the first layer holds keys, whose digests are not known; expected an empty filter";
            return Err(ChangeError::Unsupported { what }.into());
        }
        Ok(Chained::with(core, vec![], vec![])?)
    }

    /// Makes a filter whose members never change over a built filter of them, which stays as it is. Keys can be excluded at any time.
    ///
    /// It takes a [`Filter`] of one layer, a ribbon or a fuse filter: fewer bits than any that takes keys. What it rejects never matches, so
    /// only excluded keys that pass it are kept and counted.
    ///
    /// ```
    /// use tamis::{Chained, ChangeError, Error};
    /// let members = ["ads.example", "spam.example"];
    /// let first = tamis::build(members).fpr(0.1).finish()?;
    /// let mut blocked = Chained::over_built(&first, members)?;
    /// blocked.exclude("news.example")?; // from now on it never matches
    /// assert!(blocked.contains("ads.example")? && !blocked.contains("news.example")?);
    /// assert!(matches!(blocked.insert("new.example"), Err(Error::Change(ChangeError::Unsupported { .. }))));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ChangeError::Unsupported`] if the filter has other layers, or was built from other keys, [`ChangeError::KeyType`] if the key type is
    /// not the filter's, [`Error::Build`] if there is no memory.
    pub fn over_built<K: Key>(first: &Filter, members: impl IntoIterator<Item = K>) -> Result<Chained, Error> {
        let digest = |key| first.key_type().digest(key, first.hasher());
        let members = members.into_iter().map(digest).collect::<Result<_, _>>().map_err(ChangeError::KeyType)?;
        Chained::over_built_digests(first, members)
    }

    /// The same for members by their digests, which the filter's [`hasher`](Filter::hasher) made: see [`over_built`](Self::over_built).
    ///
    /// # Errors
    ///
    /// As [`over_built`](Self::over_built), the key type aside.
    pub fn over_built_digests(first: &Filter, mut members: Vec<Digest>) -> Result<Chained, Error> {
        let unsupported = |what| Error::from(ChangeError::Unsupported { what });
        let fixed = Fixed::new(first).ok_or_else(|| {
            unsupported("over_built: other layers; expected a filter of one layer, a ribbon or a fuse filter")
        })?;
        members.sort_unstable();
        members.dedup();
        if members.len() as u64 != first.len() || !members.iter().all(|&key| fixed.contains(key)) {
            return Err(unsupported("over_built: not the keys of the filter; expected all that it was built from"));
        }
        let (hasher, key_type, salts) = (first.hasher().clone(), first.key_type(), first.salts());
        Ok(Chained::with(Core { hasher, key_type, salts, table: Box::new(fixed) }, members, vec![])?)
    }

    /// Over a first layer that holds these members, all distinct, and excluded keys.
    fn with(core: Core<Box<dyn Layer>>, members: Vec<Digest>, excluded: Vec<Digest>) -> Result<Chained, BuildError> {
        let mut random = salts(&core.hasher);
        let first = &core.table;
        let expected = || first.capacity().unwrap_or(8 * first.payload().len() as u64 / 10).max(excluded.len() as u64);
        let mut waiting = Waiting::new(if first.takes_keys() { expected() } else { 0 }, [random.next(), random.next()]);
        let mut items: Vec<(Digest, bool)> = members.iter().map(|&key| (key, true)).collect();
        for &key in &excluded {
            let closed = first.closed_gate(key, &[]);
            if closed.is_none() {
                items.push((key, false));
            }
            if let Some(gate) = closed.or_else(|| first.gate(key)) {
                waiting.add(gate, key);
            }
        }
        let Bits { cells, graphs } = Bits::build(items, random)?;
        let mut known = Known::new(graphs, waiting);
        (known.members, known.excluded) = (members.len() as u64, excluded.len() as u64);
        Ok(Chained(core.map(|first| Table { shown: Shown { first, cells }, known })))
    }

    /// Returns `true` for every member, `false` for every excluded key, and `true` for a share [`fpr`](Self::fpr) of unlisted keys.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the filter's.
    #[inline]
    pub fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        Ok(self.0.table.shown.contains(self.0.digest(key)?))
    }

    /// Inserts a key. Returns `false` if it is a member.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Excluded`] if the key is excluded, [`ChangeError::Full`] if the first layer has no room, [`ChangeError::Unsupported`] if
    /// it [takes none](Self::takes_keys), [`ChangeError::KeyType`] if the key type is not the filter's. Nothing changes.
    pub fn insert<K: Key>(&mut self, key: K) -> Result<bool, Error> {
        let key = self.digest(key)?;
        let Table { shown, known } = &mut self.0.table;
        known.insert(&mut Alone(shown), key)
    }

    /// Inserts many keys; faster than one by one. Returns how many were no members.
    ///
    /// Equal keys in any order make equal bytes of an empty filter, whatever is excluded later. Changes after them leave their order.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert), for any of the keys. Nothing changes.
    pub fn insert_many<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<u64, Error> {
        let digests = keys.into_iter().map(|key| self.digest(key)).collect::<Result<_, _>>()?;
        self.insert_digests(digests)
    }

    /// Inserts keys by their digests, which the filter's [`hasher`](Self::hasher) made: see [`insert_many`](Self::insert_many).
    ///
    /// # Errors
    ///
    /// As [`insert_many`](Self::insert_many), the key type aside. Nothing changes.
    pub fn insert_digests(&mut self, digests: Vec<Digest>) -> Result<u64, Error> {
        let Table { shown, known } = &mut self.0.table;
        known.insert_many(&mut Alone(shown), digests)
    }

    /// Excludes a key, for good. Returns `false` if it is excluded, or rejected for good by a first layer that [takes no
    /// keys](Self::takes_keys).
    ///
    /// # Errors
    ///
    /// [`ChangeError::Member`] if the key is a member, [`ChangeError::KeyType`] if the key type is not the filter's. Nothing changes.
    pub fn exclude<K: Key>(&mut self, key: K) -> Result<bool, Error> {
        let key = self.digest(key)?;
        let Table { shown, known } = &mut self.0.table;
        known.exclude(&mut Alone(shown), key)
    }

    /// Takes an exclusion back: the key is unlisted then. Returns `false` if it is not excluded.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Member`] if the key is a member, [`ChangeError::KeyType`] if the key type is not the filter's. Nothing changes.
    pub fn allow<K: Key>(&mut self, key: K) -> Result<bool, ChangeError> {
        let key = self.digest(key)?;
        let Table { shown, known } = &mut self.0.table;
        known.allow(&mut Alone(shown), key)
    }

    /// Removes a member: the key is unlisted then, and may match.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Absent`] if the key is no member, [`ChangeError::Unsupported`] if the members [never change](Self::takes_keys),
    /// [`ChangeError::KeyType`] if the key type is not the filter's. Nothing changes.
    pub fn remove<K: Key>(&mut self, key: K) -> Result<(), ChangeError> {
        let key = self.digest(key)?;
        let Table { shown, known } = &mut self.0.table;
        known.remove(&mut Alone(shown), key)
    }

    fn digest<K: Key>(&self, key: K) -> Result<Digest, ChangeError> {
        Ok(self.0.digest(key)?)
    }

    /// Returns the number of members.
    pub fn len(&self) -> u64 {
        self.0.table.known.members
    }

    /// Returns `true` if there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether members can be inserted and removed: not [over a built filter](Self::over_built).
    pub fn takes_keys(&self) -> bool {
        self.0.table.shown.first.takes_keys()
    }

    /// Returns the number of excluded keys; over a first layer that [takes no keys](Self::takes_keys), of those that pass it.
    pub fn excluded_len(&self) -> u64 {
        self.0.table.known.excluded
    }

    /// Returns the key type.
    pub fn key_type(&self) -> KeyType {
        self.0.key_type
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &Hasher {
        &self.0.hasher
    }

    /// Returns the share of unlisted keys that match now, by the number of members.
    pub fn fpr(&self) -> f64 {
        self.0.table.shown.first.fpr() / 2.0
    }

    /// Returns the share of unlisted keys that match, by what the first layer holds: see [`Bloom::fpr_now`].
    pub fn fpr_now(&self) -> f64 {
        self.0.table.shown.first.fpr_now() / 2.0
    }

    /// Returns the share of the first layer's room that is taken: of the bits of a [`Bloom`] filter, which takes keys past its capacity, or of
    /// the capacity of another.
    ///
    /// ```
    /// use tamis::{Bloom, Chained};
    /// let mut blocked = Chained::over(Bloom::with_capacity(1000).fpr(0.01).build::<u64>()?)?;
    /// (0..8000u64).try_for_each(|key| blocked.insert(key).map(drop))?;
    /// assert!(blocked.fill() > 0.9 && blocked.fpr_now() > 0.4);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn fill(&self) -> f64 {
        self.0.table.shown.first.fill()
    }

    /// Returns the bits that queries read: those of the first layer and of the exact bit.
    pub fn table_bits(&self) -> u64 {
        let Shown { first, cells } = &self.0.table.shown;
        8 * first.payload().len() as u64 + cells.bits()
    }

    /// Returns the bytes of memory that only changes read: digests and their links.
    pub fn side_bytes(&self) -> u64 {
        let Known { graphs, waiting, .. } = &self.0.table.known;
        graphs.bytes() + waiting.bytes()
    }
}

impl<T> Core<T> {
    fn map<U>(self, with: impl FnOnce(T) -> U) -> Core<U> {
        Core { hasher: self.hasher, key_type: self.key_type, salts: self.salts, table: with(self.table) }
    }
}

#[cfg(test)]
mod tests;
