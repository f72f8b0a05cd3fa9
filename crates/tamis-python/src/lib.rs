//! columns of Python -> filters, maps and indexes of sets: the module `tamis._tamis` of the Python package.
//!
//! ```text
//!   column     list, iterator, NumPy, Arrow, pandas, Polars, DuckDB -> chunks of keys
//!   options    keyword arguments -> options of a build
//!   filter, digests, ..   classes, each with what builds it
//!   answers    booleans, values -> arrays of NumPy or Arrow
//!   error      errors -> exceptions
//! ```
//!
//! Python's lock is released while keys are hashed, filters built and queries answered. Unsafe code is where other libraries lend
//! memory: `memory`, `arrow`, `numpy`, `chunk` (the bytes of a view), `file` (memory maps, the buffer protocol) and `sliced` (maps).

mod answers;
mod arrow;
mod changing;
mod chunk;
mod cli;
mod column;
mod digests;
mod error;
mod file;
mod filter;
mod map;
mod memory;
mod ngrams;
mod numpy;
mod objects;
mod options;
mod pickle;
mod sets;
mod sliced;
mod slices;

/// See `tamis`.
#[pyo3::pymodule(gil_used = false)]
mod _tamis {
    #[pymodule_export]
    use crate::changing::{Bloom, Cuckoo, Quotient};
    #[pymodule_export]
    use crate::cli::_command;
    #[pymodule_export]
    use crate::digests::{_digests, Digests};
    #[pymodule_export]
    use crate::filter::{_build, _plan, Filter};
    #[pymodule_export]
    use crate::map::{_map, _sequence, Map, Sequence};
    #[pymodule_export]
    use crate::ngrams::_ngrams;
    #[pymodule_export]
    use crate::pickle::{_open, _unpickle};
    #[pymodule_export]
    use crate::sets::{_sets, Sets};
    #[pymodule_export]
    use crate::sliced::Sliced;
    #[pymodule_export]
    use crate::slices::{
        _join, _join_to, _merge, _plan_slices, _refine, _rounds, _sketch, _slice, _slice_to, _split, _survey,
        _with_sketch, _write_manifest,
    };
}
