//! columns -> `Digests`: 16 bytes for each key, for programs that hash a key once.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tamis::{Digest, Hasher, Key, KeyType};

use crate::answers::Answers;
use crate::chunk::Take;
use crate::column::Column;
use crate::error::Failure;
use crate::file::{PICKLE, Reduced};
use crate::filter::not_a_key;
use crate::memory::reserve;
use crate::objects::{One, one};

/// Digests of the keys of a column: 16 bytes each, in the order of the keys.
///
/// Filters are built from them and queried with them, as with the keys. They never change. Equal ones are of equal keys in one
/// order, of one seed or secret. A pickle of them holds their secret if they have one, as the file of a filter does.
///
/// >>> import tamis
/// >>> digests = tamis.digests(["ann", "bob"])
/// >>> filter = tamis.build(digests)
/// >>> filter == tamis.build(["ann", "bob"]), "ann" in filter
/// (True, True)
#[pyclass(frozen, module = "tamis", weakref)]
pub(crate) struct Digests {
    pub(crate) digests: Arc<Vec<Digest>>,
    pub(crate) hasher: Hasher,
    pub(crate) key_type: KeyType,
}

#[pymethods]
impl Digests {
    fn __len__(&self) -> usize {
        self.digests.len()
    }

    fn __repr__(&self) -> String {
        format!("Digests(keys={}, key_type='{}')", self.digests.len(), self.key_type)
    }

    /// Returns 16 bytes for each key, the low half first.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes: Vec<u8> =
            py.detach(|| self.digests.iter().flat_map(|digest| digest.to_bits().to_le_bytes()).collect());
        PyBytes::new(py, &bytes)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Digests>().is_ok_and(|other| {
            let other = other.get();
            (&self.hasher, self.key_type) == (&other.hasher, other.key_type) && self.digests == other.digests
        })
    }

    fn __hash__(&self) -> u64 {
        let mut state = DefaultHasher::new();
        (self.len(), self.digests.first(), self.digests.last()).hash(&mut state);
        state.finish()
    }

    fn __copy__(this: PyRef<'_, Self>) -> Py<Self> {
        this.into()
    }

    fn __deepcopy__<'py>(this: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> Py<Self> {
        this.into()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let bytes = PyBytes::new(py, &py.detach(|| self.pickled()));
        Ok((py.import("tamis._tamis")?.getattr("_unpickle")?, (PICKLE, "digests", bytes, false)))
    }
}

/// What is pickled before the digests: kind of hash, key type, seed or secret.
const HEAD: usize = 18;

impl Digests {
    fn len(&self) -> usize {
        self.digests.len()
    }

    fn pickled(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + 16 * self.len());
        bytes.extend([u8::from(self.hasher.is_secret()), u8::from(self.key_type == KeyType::Integer)]);
        bytes.extend(self.hasher.words().iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(self.digests.iter().flat_map(|digest| digest.to_bits().to_le_bytes()));
        bytes
    }

    pub(crate) fn unpickled(bytes: &[u8]) -> Result<Digests, Failure> {
        let damaged = || Failure::Input("pickle of digests: damaged; expected 18 bytes and 16 for each key".into());
        let (head, digests) = bytes.split_at_checked(HEAD).ok_or_else(damaged)?;
        let (&[first, second], []) = head[2..].as_chunks::<8>() else { return Err(damaged()) };
        let words = [first, second].map(u64::from_le_bytes);
        let hasher = match head[0] {
            0 => Hasher::seeded(words[0]),
            1 => Hasher::secret(words),
            _ => return Err(damaged()),
        };
        let key_type = match head[1] {
            0 => KeyType::Bytes,
            1 => KeyType::Integer,
            _ => return Err(damaged()),
        };
        let (digests, []) = digests.as_chunks::<16>() else { return Err(damaged()) };
        let digests = digests.iter().map(|digest| Digest::from_bits(u128::from_le_bytes(*digest))).collect();
        Ok(Digests { digests: Arc::new(digests), hasher, key_type })
    }

    /// An error unless these are digests of a hasher and a key type.
    pub(crate) fn check(&self, what: &str, hasher: &Hasher, key_type: KeyType) -> Result<(), Failure> {
        if self.hasher != *hasher {
            return Err(Failure::Input(format!("{what}: of another hasher; expected digests of one seed or secret")));
        }
        if self.key_type != key_type {
            let found = self.key_type;
            return Err(Failure::KeyType(format!("{what}: of key type {found}; expected {key_type}")));
        }
        Ok(())
    }

    /// Answers of a filter that hashes keys as these were hashed.
    pub(crate) fn in_filter(&self, py: Python<'_>, filter: &tamis::Filter) -> Result<Answers, Failure> {
        self.check("digests", filter.hasher(), filter.key_type())?;
        py.detach(|| Ok(Answers::of(filter.contains_many_digests(&self.digests)?)))
    }
}

struct Hashed<'a> {
    hasher: &'a Hasher,
    digests: Vec<Digest>,
}

impl Take for Hashed<'_> {
    fn take<K: Key>(&mut self, _: usize, keys: &[K]) -> Result<(), Failure> {
        self.digests.extend(keys.iter().map(|key| key.digest(self.hasher)));
        Ok(())
    }
}

/// Hashes a column.
#[pyfunction]
pub(crate) fn _digests(py: Python<'_>, keys: &Bound<'_, PyAny>, options: &Bound<'_, PyDict>) -> PyResult<Digests> {
    let hasher = hasher(options)?;
    let mut column = Column::new(keys)?;
    Ok(py.detach(|| of_column(&mut column, hasher))?)
}

pub(crate) fn of_column(column: &mut Column, hasher: Hasher) -> Result<Digests, Failure> {
    let key_type = column.key_type()?.unwrap_or(KeyType::Bytes);
    let mut hashed = Hashed { hasher: &hasher, digests: vec![] };
    reserve(&mut hashed.digests, column.len.unwrap_or(0))?;
    column.each(&mut hashed)?;
    let digests = Arc::new(hashed.digests);
    Ok(Digests { digests, hasher, key_type })
}

/// The hash of the options `seed` and `secret`.
pub(crate) fn hasher(options: &Bound<'_, PyDict>) -> Result<Hasher, Failure> {
    let given = crate::options::Given::new(options)?;
    let hasher = match (given.take::<u64>("seed")?, given.take::<Bound<'_, PyAny>>("secret")?) {
        (seed, None) => Hasher::seeded(seed.unwrap_or(0)),
        (None, Some(secret)) => Hasher::secret(crate::options::secret(&secret)?),
        (Some(_), Some(_)) => {
            return Err(Failure::Input("seed: given with secret; expected one of them".into()));
        }
    };
    given.end()?;
    Ok(hasher)
}

/// The digest of one key.
pub(crate) fn digest(hasher: &Hasher, key: &Bound<'_, PyAny>) -> Result<Digest, Failure> {
    match one(key)? {
        One::Bytes(key) => Ok(key.digest(hasher)),
        One::Integer(key) => Ok(key.digest(hasher)),
        One::Copied(key) => Ok(key.digest(hasher)),
        One::Null | One::Float(_) => Err(not_a_key(key)),
    }
}
