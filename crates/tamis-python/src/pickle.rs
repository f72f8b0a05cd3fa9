//! what was pickled, a file of any form -> an object of its class.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tamis::{Error, FileInfo, FormatError};

use crate::changing::{Bloom, Cuckoo, Quotient};
use crate::digests::Digests;
use crate::error::Failure;
use crate::file::PICKLE;
use crate::filter::Filter;
use crate::map::{Map, Sequence};
use crate::sets::Sets;

/// An object of the class that was pickled.
#[pyfunction]
pub(crate) fn _unpickle<'py>(
    py: Python<'py>,
    version: u32,
    form: &str,
    bytes: &Bound<'py, PyBytes>,
    text: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if version != PICKLE {
        let error = FormatError::Unsupported { what: "pickle", number: version.into() };
        return Err(Failure::from(error).into());
    }
    let data = bytes.as_any();
    match form {
        "filter" => Ok(Bound::new(py, Filter::from_bytes(data, true, None, text)?)?.into_any()),
        "map" => Ok(Bound::new(py, Map::from_bytes(data, true, None, text)?)?.into_any()),
        "sequence" => Ok(Bound::new(py, Sequence::from_bytes(data, true, None, text)?)?.into_any()),
        "sets" => Ok(Bound::new(py, Sets::from_bytes(data, true, None, text)?)?.into_any()),
        "bloom" => Ok(Bound::new(py, Bloom::from_bytes(data)?)?.into_any()),
        "cuckoo" => Ok(Bound::new(py, Cuckoo::from_bytes(data)?)?.into_any()),
        "quotient" => Ok(Bound::new(py, Quotient::from_bytes(data)?)?.into_any()),
        "digests" => Ok(Bound::new(py, Digests::unpickled(bytes.as_bytes())?)?.into_any()),
        _ => Err(Failure::Input(format!("pickle {form:?}: unknown; expected a class of tamis")).into()),
    }
}

/// What a file says that it holds.
fn form(path: &Path) -> Result<&'static str, Failure> {
    let at = |error| Failure::Tamis(Error::Io { path: Some(path.into()), error });
    // Of a mapped file the header alone is read.
    let how = crate::file::How { mmap: true, verify: false, secret: None };
    match <tamis::Filter as crate::file::Opened>::from_file(path, how) {
        Ok(_) => Ok("filter"),
        Err(Error::Format { error: FormatError::Form { found, .. }, .. }) => Ok(found),
        Err(Error::Format { error: FormatError::Secret { .. }, .. }) => {
            Ok(FileInfo::of(&std::fs::read(path).map_err(at)?)?.form)
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens a file as what it says it is.
#[pyfunction]
#[pyo3(signature = (path, mmap, verify, secret, text))]
pub(crate) fn _open<'py>(
    py: Python<'py>,
    path: PathBuf,
    mmap: bool,
    verify: bool,
    secret: Option<&Bound<'py, PyAny>>,
    text: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if path.is_dir() {
        return Ok(Bound::new(py, crate::sliced::open(py, path, mmap, verify, secret.is_some())?)?.into_any());
    }
    let found = py.detach(|| form(&path))?;
    match found {
        "filter" | "partitioned filter" => {
            Ok(Bound::new(py, Filter::open(py, path, mmap, verify, secret, text)?)?.into_any())
        }
        "map" => Ok(Bound::new(py, Map::open(py, path, mmap, verify, secret, text)?)?.into_any()),
        "sequence" => Ok(Bound::new(py, Sequence::open(py, path, mmap, verify, secret, text)?)?.into_any()),
        "set index" => Ok(Bound::new(py, Sets::open(py, path, mmap, verify, secret, text)?)?.into_any()),
        found => {
            let error = FormatError::Form { found, expected: "filter, map, sequence or set index" };
            Err(Failure::Tamis(Error::Format { path: Some(path), error }).into())
        }
    }
}
