//! a filter + the type of its keys -> answers that cannot fail: the key type is checked once.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use super::query::Filter;
use crate::error::QueryError;
use crate::hash::Key;

/// A [`Filter`], or a reference to one, whose key type was checked: [`contains`](Typed::contains) returns a `bool`.
///
/// It is `Send` and `Sync` whatever the key type is.
///
/// ```
/// let filter = tamis::build(["ann", "bob"]).finish()?;
/// let names = filter.typed::<str>()?;
/// assert!(names.contains("ann") && names.contains(String::from("bob")));
/// assert!(filter.typed::<u64>().is_err());
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct Typed<K: ?Sized, F = Filter> {
    filter: F,
    of: PhantomData<fn(&K)>,
}

impl<K: ?Sized, F: Clone> Clone for Typed<K, F> {
    fn clone(&self) -> Self {
        Typed { filter: self.filter.clone(), of: PhantomData }
    }
}

impl<K: ?Sized, F: fmt::Debug> fmt::Debug for Typed<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(f)
    }
}

impl Filter {
    /// Checks the key type once.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if keys of type `K` are not this filter's, [`QueryError::Partition`] if it is partitioned.
    pub fn typed<K: Key + ?Sized>(&self) -> Result<Typed<K, &Filter>, QueryError> {
        self.check::<K>()?;
        Ok(Typed { filter: self, of: PhantomData })
    }

    /// Checks the key type once and takes the filter over.
    ///
    /// # Errors
    ///
    /// As [`typed`](Self::typed).
    pub fn into_typed<K: Key + ?Sized>(self) -> Result<Typed<K>, QueryError> {
        self.check::<K>()?;
        Ok(Typed { filter: self, of: PhantomData })
    }
}

impl<K: Key + ?Sized, F: Borrow<Filter>> Typed<K, F> {
    /// Returns `true` for every member and for a share [`fpr`](Filter::fpr) of unlisted keys.
    #[inline]
    pub fn contains(&self, key: impl Borrow<K>) -> bool {
        self.filter.borrow().contains_checked(key.borrow())
    }

    /// Returns [`contains`](Self::contains) of many keys at once, several times faster than one by one where the filter is larger
    /// than the caches.
    ///
    /// ```
    /// let filter = tamis::build(0..1000u64).finish()?.into_typed::<u64>()?;
    /// assert_eq!(filter.contains_many(&[5, 999])[..], [true, true]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_many<Q: Borrow<K>>(&self, keys: &[Q]) -> Vec<bool> {
        let mut answers = vec![false; keys.len()];
        self.filter.borrow().fill_answers(keys, Borrow::borrow, &mut answers);
        answers
    }

    /// Returns the filter.
    pub fn filter(&self) -> &Filter {
        self.filter.borrow()
    }
}
