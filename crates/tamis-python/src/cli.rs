//! arguments -> exit code: the command line that the wheel brings along.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command `tamis` with these arguments, its name first, and returns the exit code.
#[pyfunction]
pub(crate) fn _command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| tamis_cli::run(arguments))
}
