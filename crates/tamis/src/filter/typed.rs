//! a filter + the type of its keys -> answers that cannot fail: the key type is checked once.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

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
/// let queries: Vec<String> = vec!["ann".into(), "eve".into()];
/// assert!(queries.iter().any(|query| names.contains(query)));
/// assert!(filter.typed::<u64>().is_err());
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct Typed<K: ?Sized, F = Filter> {
    filter: F,
    of: PhantomData<fn(&K)>,
}

/// A value that a [`Typed`] filter of `K` can be queried with.
///
/// A filter of `str` takes text of every type, one of `[u8]` bytes of every type and text: whatever implements [`AsRef`]. A filter of
/// another type takes that type, owned, borrowed or behind a pointer.
///
/// ```
/// use std::borrow::Cow;
/// let filter = tamis::build(["ann"]).finish()?;
/// let (text, bytes) = (filter.typed::<str>()?, filter.typed::<[u8]>()?);
/// assert!(text.contains(&String::from("ann")) && text.contains(&"ann") && text.contains(&Cow::from("ann")));
/// assert!(bytes.contains(&b"ann".to_vec()) && bytes.contains(b"ann") && bytes.contains("ann"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a filter typed as `{K}` cannot be queried with `{Self}`",
    label = "expected `{K}`, owned or borrowed",
    note = "`typed::<str>()` takes text of every type, `typed::<[u8]>()` bytes of every type; an integer has the type that `typed` names"
)]
pub trait AsKey<K: ?Sized> {
    /// Returns the key.
    fn as_key(&self) -> &K;
}

impl<Q: AsRef<str> + ?Sized> AsKey<str> for Q {
    #[inline(always)]
    fn as_key(&self) -> &str {
        self.as_ref()
    }
}

impl<Q: AsRef<[u8]> + ?Sized> AsKey<[u8]> for Q {
    #[inline(always)]
    fn as_key(&self) -> &[u8] {
        self.as_ref()
    }
}

impl<K: Key> AsKey<K> for K {
    #[inline(always)]
    fn as_key(&self) -> &K {
        self
    }
}

macro_rules! behind_pointer {
    ($($pointer:ty),*) => { $(
        impl<K: Key> AsKey<K> for $pointer {
            #[inline(always)]
            fn as_key(&self) -> &K {
                self
            }
        }
    )* };
}
behind_pointer!(&K, &&K, &mut K, Box<K>, &Box<K>, Rc<K>, &Rc<K>, Arc<K>, &Arc<K>);

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
    pub fn contains(&self, key: impl AsKey<K>) -> bool {
        self.filter.borrow().contains_checked(key.as_key())
    }

    /// Returns [`contains`](Self::contains) of many keys at once, several times faster than one by one where the filter is larger
    /// than the caches.
    ///
    /// ```
    /// let filter = tamis::build(0..1000u64).finish()?.into_typed::<u64>()?;
    /// assert_eq!(filter.contains_many(&[5, 999])[..], [true, true]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_many<Q: AsKey<K>>(&self, keys: &[Q]) -> Vec<bool> {
        let mut answers = vec![false; keys.len()];
        self.filter.borrow().fill_answers(keys, Q::as_key, &mut answers);
        answers
    }

    /// Returns the filter.
    pub fn filter(&self) -> &Filter {
        self.filter.borrow()
    }
}
