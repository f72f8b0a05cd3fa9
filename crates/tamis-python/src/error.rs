//! what went wrong in Rust or in Python -> an exception of the tree under `tamis.Error`.

use std::io::ErrorKind;

use pyo3::prelude::*;
use tamis::{BuildError, ChangeError, Error, FormatError, QueryError};

/// Why a call failed. It is made without Python and raised with it.
#[derive(Debug)]
pub(crate) enum Failure {
    Tamis(Error),
    /// A key that is none.
    Input(String),
    /// A key of another key type.
    KeyType(String),
    Python(PyErr),
}

macro_rules! from {
    ($($cause:ty),*) => {$(
        impl From<$cause> for Failure {
            fn from(cause: $cause) -> Failure {
                Failure::Tamis(cause.into())
            }
        }
    )*};
}
from!(Error, BuildError, ChangeError, FormatError, QueryError, std::io::Error);

impl From<PyErr> for Failure {
    fn from(cause: PyErr) -> Failure {
        Failure::Python(cause)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        let (class, text) = match failure {
            Failure::Python(error) => return error,
            Failure::Input(text) => ("InputError", text),
            Failure::KeyType(text) => ("KeyTypeError", text),
            Failure::Tamis(error) => match &error {
                Error::Io { path, error } => {
                    let path = path.as_ref().map(|path| path.display().to_string());
                    return file_error(error, path);
                }
                Error::Build(BuildError::MixedKeyTypes)
                | Error::Query(QueryError::KeyType(_))
                | Error::Change(ChangeError::KeyType(_)) => ("KeyTypeError", error.to_string()),
                Error::Build(_) => ("BuildError", error.to_string()),
                Error::Format { .. } => ("FormatError", error.to_string()),
                Error::Query(_) => ("QueryError", error.to_string()),
                Error::Change(_) => ("ChangeError", error.to_string()),
                _ => ("Error", error.to_string()),
            },
        };
        Python::attach(|py| exception(py, class, (text,)))
    }
}

fn file_error(error: &std::io::Error, path: Option<String>) -> PyErr {
    let class = if error.kind() == ErrorKind::NotFound { "MissingFileError" } else { "FileError" };
    Python::attach(|py| exception(py, class, (error.raw_os_error(), error.to_string(), path)))
}

/// The exceptions are classes of Python: they derive from several of its own.
fn exception<'py>(py: Python<'py>, class: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let made = py.import("tamis._errors").and_then(|errors| errors.getattr(class)?.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}
