//! keys, one at a time or a column -> `Bloom`, `Cuckoo`, `Quotient`: filters that change.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;
use pyo3::sync::RwLockExt as _;
use pyo3::types::{PyBytes, PyDict};
use tamis::{Key, KeyType};

use crate::answers::{Answer, many};
use crate::chunk::Take;
use crate::column::Column;
use crate::error::Failure;
use crate::file::{PICKLE, Reduced, bytes_of, pickled};
use crate::filter::{Shown, not_a_key};
use crate::objects::{One, one};

/// Keys that are inserted or queried with one lock, so that other threads have their turn.
const BLOCK: usize = 4096;

/// A thread that holds the lock needs nothing of Python until it releases it, so that no two threads wait for each other. One that
/// holds Python's lock waits with `attached_read` or `attached_write`.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// [`read`] with Python's lock, which others have meanwhile.
fn attached_read<'a, T>(py: Python<'_>, lock: &'a RwLock<T>) -> RwLockReadGuard<'a, T> {
    lock.read_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

/// [`write`] with Python's lock, which others have meanwhile.
fn attached_write<'a, T>(py: Python<'_>, lock: &'a RwLock<T>) -> RwLockWriteGuard<'a, T> {
    lock.write_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

/// Hands one key, whatever its type, to an expression.
macro_rules! with_key {
    ($object:expr, $key:ident => $call:expr) => {
        match one($object)? {
            One::Bytes($key) => $call,
            One::Integer($key) => $call,
            One::Copied(ref key) => {
                let $key = &key[..];
                $call
            }
            One::Null | One::Float(_) => return Err(not_a_key($object).into()),
        }
        .map_err(Failure::from)
    };
}

fn key_type(name: &str) -> Result<KeyType, Failure> {
    match name {
        "bytes" => Ok(KeyType::Bytes),
        "integer" => Ok(KeyType::Integer),
        _ => Err(Failure::Input(format!("key_type {name:?}: unknown; expected 'bytes' (also text) or 'integer'"))),
    }
}

/// Inserts the keys of a column; locked for a block of them at a time.
struct Insert<'a, T>(&'a RwLock<T>, fn(&mut T, &dyn Insertable) -> Result<(), Failure>);

/// Keys of any type, to be inserted into any filter.
trait Insertable {
    fn bloom(&self, filter: &mut tamis::Bloom) -> Result<(), Failure>;
    fn cuckoo(&self, filter: &mut tamis::Cuckoo) -> Result<(), Failure>;
    fn quotient(&self, filter: &mut tamis::Quotient) -> Result<(), Failure>;
}

impl<K: Key> Insertable for &[K] {
    fn bloom(&self, filter: &mut tamis::Bloom) -> Result<(), Failure> {
        self.iter().try_for_each(|key| Ok(filter.insert(key)?))
    }

    fn cuckoo(&self, filter: &mut tamis::Cuckoo) -> Result<(), Failure> {
        self.iter().try_for_each(|key| Ok(filter.insert(key)?))
    }

    fn quotient(&self, filter: &mut tamis::Quotient) -> Result<(), Failure> {
        self.iter().try_for_each(|key| Ok(filter.insert_growing(key)?))
    }
}

impl<T> Take for Insert<'_, T> {
    fn take<K: Key>(&mut self, _: usize, keys: &[K]) -> Result<(), Failure> {
        keys.chunks(BLOCK).try_for_each(|keys| (self.1)(&mut write(self.0), &keys))
    }
}

struct Contains<'a, T>(&'a RwLock<T>);

macro_rules! changing {
    (
        $(#[$doc:meta])* $class:ident of $form:literal, $insert:ident, $($flag:ident)?; $($rest:tt)*
    ) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "tamis", weakref)]
        pub(crate) struct $class(RwLock<tamis::$class>);

        impl Answer for Contains<'_, tamis::$class> {
            fn answer<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Failure> {
                for (keys, answers) in keys.chunks(BLOCK).zip(answers.chunks_mut(BLOCK)) {
                    let filter = read(self.0);
                    for (key, answer) in keys.iter().zip(answers) {
                        *answer = filter.contains(key)?;
                    }
                }
                Ok(())
            }
        }

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (capacity, *, fpr=0.01, key_type="bytes", $($flag=false,)? **options))]
            fn new(capacity: u64, fpr: f64, key_type: &str, $($flag: bool,)? options: Option<&Bound<'_, PyDict>>) -> PyResult<$class> {
                let mut builder = tamis::$class::with_capacity(capacity).fpr(fpr);
                if let Some(options) = options {
                    builder = builder.hasher(crate::digests::hasher(options)?);
                }
                $(if $flag { builder = builder.$flag(); })?
                let made = match crate::changing::key_type(key_type)? {
                    KeyType::Integer => builder.build::<u64>(),
                    _ => builder.build::<str>(),
                };
                Ok($class(RwLock::new(made.map_err(Failure::from)?)))
            }

            /// Returns the filter of a snapshot, or of a file that is a single filter of this structure.
            #[staticmethod]
            pub(crate) fn from_bytes(data: &Bound<'_, PyAny>) -> PyResult<$class> {
                let bytes = bytes_of(data)?;
                Ok($class(RwLock::new(tamis::$class::restore(bytes).map_err(Failure::from)?)))
            }

            /// Inserts a key.
            fn insert(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
                Ok(with_key!(key, found => attached_write(key.py(), &self.0).insert(found))?)
            }

            /// Inserts the keys of a column.
            fn insert_many(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
                let mut column = Column::new(keys)?;
                let insert: fn(&mut tamis::$class, &dyn Insertable) -> Result<(), Failure> = |filter, keys| keys.$insert(filter);
                Ok(keys.py().detach(|| column.each(&mut Insert(&self.0, insert)))?)
            }

            fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                Ok(with_key!(key, found => attached_read(key.py(), &self.0).contains(found))?)
            }

            /// Returns whether a key matches.
            fn contains(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                self.__contains__(key)
            }

            /// Returns whether each key of a column matches: see `Filter.contains_many`.
            fn contains_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                many(&Contains(&self.0), keys)
            }

            /// Returns the filter as a file, which `Filter.from_bytes` and `from_bytes` read.
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                let bytes = py.detach(|| read(&self.0).snapshot()).map_err(Failure::from)?;
                Ok(PyBytes::new(py, &bytes))
            }

            fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                self.to_bytes(py)
            }

            /// Writes the snapshot whole or not at all. Only its owner may read one that holds a secret.
            fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
                Ok(py.detach(|| read(&self.0).save(&path)).map_err(Failure::from)?)
            }

            /// Share of unlisted keys that match now.
            #[getter]
            fn fpr(&self, py: Python<'_>) -> f64 {
                attached_read(py, &self.0).fpr()
            }

            fn __len__(&self, py: Python<'_>) -> usize {
                attached_read(py, &self.0).len() as usize
            }

            fn __repr__(&self, py: Python<'_>) -> String {
                let filter = attached_read(py, &self.0);
                format!("{}(keys={}, fpr={:.3})", stringify!($class), filter.len(), Shown(filter.fpr()))
            }

            fn __copy__(&self, py: Python<'_>) -> $class {
                $class(RwLock::new(py.detach(|| read(&self.0).clone())))
            }

            fn __deepcopy__(&self, memo: &Bound<'_, PyAny>) -> $class {
                self.__copy__(memo.py())
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
                let bytes = self.to_bytes(py)?;
                pickled(bytes.as_bytes())?;
                Ok((py.import("tamis._tamis")?.getattr("_unpickle")?, (PICKLE, $form, bytes, true)))
            }

            $($rest)*
        }
    };
}

changing! {
    /// A Bloom filter that keys are inserted into.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Bloom(1000, fpr=0.001)
    /// >>> seen.insert("ann")
    /// >>> "ann" in seen, len(seen)
    /// (True, 1)
    Bloom of "bloom", bloom, classic;
}

changing! {
    /// A cuckoo filter that keys are inserted into and removed from.
    ///
    /// >>> import tamis
    /// >>> online = tamis.Cuckoo(1000, key_type="integer")
    /// >>> online.insert_many([7, 8, 9])
    /// >>> online.remove(8), 8 in online, 9 in online
    /// (True, False, True)
    Cuckoo of "cuckoo", cuckoo, semi_sorted;

    /// Removes one copy of a key that was inserted. Returns false if the filter does not match it.
    fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(with_key!(key, found => attached_write(key.py(), &self.0).remove(found))?)
    }

    /// Number of keys that it was made for.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        attached_read(py, &self.0).capacity()
    }
}

changing! {
    /// A quotient filter: keys are inserted, counted and removed, and filters merged. `insert_many` makes it grow.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Quotient(1000)
    /// >>> seen.insert_many(["ann", "bob", "ann"])
    /// >>> seen.count("ann"), seen.count("eve")
    /// (2, 0)
    Quotient of "quotient", quotient, ;

    /// Removes one copy of a key that was inserted. Returns false if the filter does not match it.
    fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(with_key!(key, found => attached_write(key.py(), &self.0).remove(found))?)
    }

    /// Returns how often a key was inserted: never too few, and rarely too many.
    fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(with_key!(key, found => attached_read(key.py(), &self.0).count(found))?)
    }

    /// Inserts all keys of another filter of the same hash.
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Quotient>) -> PyResult<()> {
        // A copy, for a filter may be merged with itself.
        let other = &other.get().0;
        let merge = || {
            let other = read(other).clone();
            write(&self.0).merge(&other)
        };
        Ok(py.detach(merge).map_err(Failure::from)?)
    }

    /// Number of keys that fit.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        attached_read(py, &self.0).capacity()
    }
}
