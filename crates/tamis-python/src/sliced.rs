//! a folder of slices and their manifest -> `Sliced`: one filter that was never joined.
#![allow(unsafe_code)]

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use tamis::{FileInfo, FormatError, Key};

use crate::answers::{Answer, many};
use crate::error::Failure;
use crate::filter::{Shown, not_a_key};
use crate::objects::{One, one};

/// A filter whose slices are the files of a folder. It answers as the joined file does.
///
/// It never changes, and threads may share it. A pickle has the name of the folder, which the other process must see.
///
/// >>> import tamis, tempfile
/// >>> from tamis import slices
/// >>> members, _ = slices.split(["ann", "bob"], 1)
/// >>> plan = slices.plan({}, "bytes", slices.survey({}, 0, 1, members, []), 1)
/// >>> folder = tempfile.TemporaryDirectory()
/// >>> _ = slices.slice_to(folder.name + "/" + slices.file_name(0), plan, 0, members, [])
/// >>> slices.write_manifest(folder.name)
/// >>> names = tamis.open(folder.name, mmap=False)
/// >>> folder.cleanup()
/// >>> "ann" in names, names.slices
/// (True, 1)
#[pyclass(frozen, module = "tamis", weakref)]
pub(crate) struct Sliced {
    inner: tamis::slices::Sliced,
    folder: PathBuf,
}

struct InSlices<'a>(&'a tamis::slices::Sliced);

impl Answer for InSlices<'_> {
    fn answer<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Failure> {
        Ok(self.0.contains_into(keys, answers)?)
    }
}

impl Sliced {
    fn info(&self) -> PyResult<FileInfo> {
        Ok(FileInfo::of(self.inner.manifest()).map_err(Failure::from)?)
    }
}

#[pymethods]
impl Sliced {
    /// Opens a folder of slices with their manifest: see `tamis.open`.
    #[staticmethod]
    #[pyo3(signature = (folder, *, mmap=true, verify=true))]
    pub(crate) fn open(py: Python<'_>, folder: PathBuf, mmap: bool, verify: bool) -> PyResult<Sliced> {
        let open = || {
            if !mmap {
                return tamis::slices::Sliced::read(&folder);
            }
            // SAFETY: slices are replaced by renaming and never changed in place. The documentation of `tamis.open` says what becomes
            // of a process whose files another program cuts, as with everything that maps files.
            let inner = unsafe { tamis::slices::Sliced::mmap(&folder) }?;
            if verify {
                inner.verify()?;
            }
            Ok(inner)
        };
        let inner = py.detach(open).map_err(Failure::from)?;
        Ok(Sliced { inner, folder })
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(text) = key.cast_exact::<PyString>()
            && let Ok(text) = text.to_str()
            && let Ok(answer) = self.inner.contains(text)
        {
            return Ok(answer);
        }
        let answer = match one(key)? {
            One::Bytes(key) => self.inner.contains(key),
            One::Integer(key) => self.inner.contains(key),
            One::Copied(key) => self.inner.contains(&key[..]),
            One::Null | One::Float(_) => return Err(not_a_key(key).into()),
        };
        Ok(answer.map_err(Failure::from)?)
    }

    /// Returns whether a key matches.
    fn contains(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.__contains__(key)
    }

    /// Returns whether each key of a column matches: see `Filter.contains_many`.
    fn contains_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        many(&InSlices(&self.inner), keys)
    }

    fn __len__(&self) -> usize {
        self.inner.len() as usize
    }

    fn __repr__(&self) -> String {
        let (keys, slices, fpr) = (self.inner.len(), self.inner.slices(), Shown(self.inner.fpr()));
        format!("Sliced(keys={keys}, slices={slices}, fpr={fpr:.3}, key_type='{}')", self.inner.key_type())
    }

    /// Compares all slices with their checksums.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.inner.verify()).map_err(Failure::from)?)
    }

    /// The folder.
    #[getter]
    fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Number of slices.
    #[getter]
    fn slices(&self) -> usize {
        self.inner.slices()
    }

    /// Number of bytes of all slices and the manifest.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.inner.bytes()
    }

    /// Share of unlisted keys that match.
    #[getter]
    fn fpr(&self) -> f64 {
        self.inner.fpr()
    }

    /// Number of excluded keys; an estimate above 16,384.
    #[getter]
    fn excluded(&self) -> u64 {
        self.inner.excluded_len()
    }

    /// What keys are: see `Filter.key_type`.
    #[getter]
    fn key_type(&self) -> String {
        self.inner.key_type().to_string()
    }

    /// Layers in the order of queries, a dict for each.
    #[getter]
    fn layers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let layers = PyList::empty(py);
        for layer in self.inner.layers() {
            let fields = PyDict::new(py);
            fields.set_item("role", layer.role.to_string())?;
            fields.set_item("structure", layer.structure)?;
            fields.set_item("details", layer.details)?;
            fields.set_item("nbytes", layer.bytes)?;
            layers.append(fields)?;
        }
        Ok(layers)
    }

    /// A hash of the manifest, 32 hexadecimal digits: equal ones name the same slices.
    #[getter]
    fn identity(&self) -> PyResult<String> {
        Ok(self.info()?.identity.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The note that the plan put into the manifest.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.metadata())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Sliced>().is_ok_and(|other| self.inner.manifest() == other.get().inner.manifest())
    }

    fn __hash__(&self) -> PyResult<u64> {
        let identity = self.info()?.identity;
        Ok(u64::from_le_bytes(std::array::from_fn(|i| identity[i])))
    }

    // Every process maps the files: a pickle does not copy them, and does not read all of them to verify.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reopened<'py>> {
        Ok((py.import("tamis._tamis")?.getattr("_open")?, (self.folder.clone(), true, false, None, true)))
    }
}

/// `_open` and what it takes: the folder, whether it is mapped and verified, no secret, and whether values are text.
type Reopened<'py> = (Bound<'py, PyAny>, (PathBuf, bool, bool, Option<()>, bool));

/// Opens a folder, which has its secret inside and no values.
pub(crate) fn open(py: Python<'_>, folder: PathBuf, mmap: bool, verify: bool, secret: bool) -> PyResult<Sliced> {
    if secret {
        let error = FormatError::NoSecret;
        return Err(Failure::Tamis(tamis::Error::Format { path: Some(folder), error }).into());
    }
    Sliced::open(py, folder, mmap, verify)
}
