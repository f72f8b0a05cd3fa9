//! columns -> `Digests`: 16 bytes for each key, for programs that hash a key once.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tamis::{Digest, Hasher, Key, KeyType};

use crate::answers::Answers;
use crate::chunk::Take;
use crate::column::Column;
use crate::error::Failure;
use crate::filter::not_a_key;
use crate::objects::{One, one};

/// Digests of the keys of a column: 16 bytes each, in the order of the keys.
///
/// Filters are built from them and queried with them, as with the keys.
///
/// >>> import tamis
/// >>> digests = tamis.digests(["ann", "bob"])
/// >>> filter = tamis.build(digests)
/// >>> filter == tamis.build(["ann", "bob"]), "ann" in filter
/// (True, True)
#[pyclass(frozen, module = "tamis")]
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
}

impl Digests {
    /// Answers of a filter that hashes keys as these were hashed.
    pub(crate) fn in_filter(&self, py: Python<'_>, filter: &tamis::Filter) -> Result<Answers, Failure> {
        if self.hasher != *filter.hasher() {
            return Err(Failure::Input("digests: of another hasher; expected that of the filter".into()));
        }
        if self.key_type != filter.key_type() {
            let (found, expected) = (self.key_type, filter.key_type());
            return Err(Failure::KeyType(format!("digests: of key type {found}; expected {expected}")));
        }
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
    let mut hashed = Hashed { hasher: &hasher, digests: Vec::with_capacity(column.len.unwrap_or(0).min(1 << 32)) };
    column.each("keys", &mut hashed)?;
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
