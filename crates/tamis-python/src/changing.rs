//! keys, one at a time or a column -> `Bloom`, `Cuckoo`, `Quotient`: filters that change.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tamis::{Key, KeyType};

use crate::answers::{Answer, many};
use crate::chunk::Take;
use crate::column::Column;
use crate::error::Failure;
use crate::file::{PICKLE, bytes_of, pickled};
use crate::filter::{Shown, not_a_key};
use crate::objects::{One, one};

/// A thread that holds the lock needs nothing of Python until it releases it, so that no two threads wait for each other.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
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
        keys.chunks(4096).try_for_each(|keys| (self.1)(&mut write(self.0), &keys))
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
                let filter = read(self.0);
                for (key, answer) in keys.iter().zip(answers) {
                    *answer = filter.contains(key)?;
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
                Ok(with_key!(key, key => write(&self.0).insert(key))?)
            }

            /// Inserts the keys of a column.
            fn insert_many(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
                let mut column = Column::new(keys)?;
                let insert: fn(&mut tamis::$class, &dyn Insertable) -> Result<(), Failure> = |filter, keys| keys.$insert(filter);
                Ok(keys.py().detach(|| column.each("keys", &mut Insert(&self.0, insert)))?)
            }

            fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                Ok(with_key!(key, key => read(&self.0).contains(key))?)
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

            /// Writes the snapshot whole or not at all.
            fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
                Ok(py.detach(|| crate::file::save(&path, &read(&self.0).snapshot()?))?)
            }

            /// Share of unlisted keys that match now.
            #[getter]
            fn fpr(&self) -> f64 {
                read(&self.0).fpr()
            }

            fn __len__(&self) -> usize {
                read(&self.0).len() as usize
            }

            fn __repr__(&self) -> String {
                let filter = read(&self.0);
                format!("{}(keys={}, fpr={:.3})", stringify!($class), filter.len(), Shown(filter.fpr()))
            }

            fn __copy__(&self) -> $class {
                $class(RwLock::new(read(&self.0).clone()))
            }

            fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> $class {
                self.__copy__()
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (u32, &'static str, Bound<'py, PyBytes>, bool))> {
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
        Ok(with_key!(key, key => write(&self.0).remove(key))?)
    }

    /// Number of keys that it was made for.
    #[getter]
    fn capacity(&self) -> u64 {
        read(&self.0).capacity()
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
        Ok(with_key!(key, key => write(&self.0).remove(key))?)
    }

    /// Returns how often a key was inserted: never too few, and rarely too many.
    fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(with_key!(key, key => read(&self.0).count(key))?)
    }

    /// Inserts all keys of another filter of the same hash.
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Quotient>) -> PyResult<()> {
        // A copy, for a filter may be merged with itself.
        let other = read(&other.get().0).clone();
        Ok(py.detach(|| write(&self.0).merge(&other)).map_err(Failure::from)?)
    }

    /// Number of keys that fit.
    #[getter]
    fn capacity(&self) -> u64 {
        read(&self.0).capacity()
    }
}
