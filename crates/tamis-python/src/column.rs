//! a list, an iterator, a column of NumPy, Arrow, pandas, Polars or DuckDB -> chunks of keys.
//!
//! Columns lend their memory and are read in place, while Python runs on. Only where rows are Python objects are they visited one by
//! one, 8,192 at a time.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyIterator, PyString};
use tamis::KeyType;

use crate::arrow::{self, Stream};
use crate::chunk::{Chunk, Item, Take};
use crate::error::Failure;
use crate::numpy::{self, Text};
use crate::objects;

/// What answers to the rows of a column are returned as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Arrow,
    NumPy,
}

enum Source {
    Chunk(Option<Chunk>),
    Stream(Box<Stream>),
    Text(Text),
    /// Rows that are objects, and the key type of those that were read.
    Objects(Py<PyIterator>, Option<KeyType>),
}

/// Keys, values or weights.
pub(crate) struct Column {
    source: Source,
    pub(crate) form: Form,
    /// How many rows there are, if that is known.
    pub(crate) len: Option<usize>,
    /// Rows that were read.
    pub(crate) row: usize,
    /// The first one, if it was looked at before it was needed.
    first: Option<Chunk>,
    /// What it has, for errors.
    what: &'static str,
}

impl Column {
    /// A column of keys.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Result<Column, Failure> {
        Column::of(object, "keys")
    }

    pub(crate) fn of(object: &Bound<'_, PyAny>, what: &'static str) -> Result<Column, Failure> {
        if object.is_instance_of::<PyString>()
            || object.is_instance_of::<PyBytes>()
            || object.is_instance_of::<PyByteArray>()
        {
            let name = object.get_type().name()?;
            return Err(Failure::Input(format!("{what}: one {name}; expected a column or a list")));
        }
        let column = |source, form, len| Ok(Column { source, form, len, row: 0, first: None, what });
        let module = object.get_type().module().map_or_else(|_| String::new(), |module| module.to_string());
        let object = &match is_pandas(&module) {
            true => unwrapped(object)?,
            false => object.clone(),
        };
        if object.hasattr("__arrow_c_array__")? {
            let chunk = arrow::array(object)?;
            let len = chunk.len;
            return column(Source::Chunk(Some(chunk)), form(&module), Some(len));
        }
        if object.hasattr("__arrow_c_stream__")? {
            let len = object.len().ok();
            return column(Source::Stream(Box::new(Stream::new(object)?)), form(&module), len);
        }
        if object.hasattr("__array_interface__")? {
            match numpy::rows(object)? {
                numpy::Rows::Chunk(chunk) => {
                    let len = chunk.len;
                    return column(Source::Chunk(Some(chunk)), Form::NumPy, Some(len));
                }
                numpy::Rows::Text(text) => {
                    let len = text.rows();
                    return column(Source::Text(text), Form::NumPy, Some(len));
                }
                numpy::Rows::Objects => {}
            }
        }
        let len = object.len().ok();
        let objects = object.try_iter().map_err(|_| {
            let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
            Failure::Input(format!("{what}: a {name}; expected a column or a list"))
        })?;
        column(Source::Objects(objects.unbind(), None), Form::NumPy, len)
    }

    /// The next rows; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        let chunk = match self.first.take() {
            Some(first) => Some(first),
            None => self.pull()?,
        };
        self.row += chunk.as_ref().map_or(0, |chunk| chunk.len);
        Ok(chunk)
    }

    fn pull(&mut self) -> Result<Option<Chunk>, Failure> {
        match &mut self.source {
            Source::Chunk(chunk) => Ok(chunk.take()),
            Source::Stream(stream) => stream.next(),
            Source::Text(text) => text.next(),
            Source::Objects(objects, key_type) => Python::attach(|py| {
                py.check_signals()?;
                objects::next(objects.bind(py), self.row, self.what, key_type)
            }),
        }
    }

    /// The key type of the first rows.
    pub(crate) fn key_type(&mut self) -> Result<Option<KeyType>, Failure> {
        while self.first.is_none() {
            match self.pull()? {
                // An empty chunk says as much as one with rows if there are none.
                Some(chunk) if chunk.len > 0 || chunk.key_type().is_some() => self.first = Some(chunk),
                Some(_) => {}
                None => return Ok(None),
            }
        }
        Ok(self.first.as_ref().and_then(Chunk::key_type))
    }

    /// Hands on all keys. A row without a key is an error.
    pub(crate) fn each(&mut self, take: &mut impl Take) -> Result<(), Failure> {
        let what = self.what;
        loop {
            let at = self.row;
            let Some(chunk) = self.next()? else { return Ok(()) };
            if let Some(row) = chunk.first_null() {
                let row = at + row;
                return Err(Failure::Input(format!(
                    "{what} row {row}: missing; expected a key; drop missing rows first"
                )));
            }
            chunk.each(at, take)?;
        }
    }

    /// All rows at once.
    pub(crate) fn collect(object: &Bound<'_, PyAny>, what: &'static str) -> Result<Vec<Chunk>, Failure> {
        let mut column = Column::of(object, what)?;
        if let Source::Objects(objects, _) = &column.source {
            return Ok(vec![objects::all(objects.bind(object.py()), what)?]);
        }
        // What computes a stream may need Python in threads of its own.
        object.py().detach(|| {
            let mut chunks = vec![];
            while let Some(chunk) = column.next()? {
                chunks.push(chunk);
            }
            Ok(chunks)
        })
    }
}

/// Arrow for those that think in Arrow.
fn form(module: &str) -> Form {
    if is_pandas(module) { Form::NumPy } else { Form::Arrow }
}

fn is_pandas(module: &str) -> bool {
    module.split('.').next() == Some("pandas")
}

/// A column of pandas as what holds it.
fn unwrapped<'py>(object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Failure> {
    if object.hasattr("columns")? {
        return Ok(object.clone());
    }
    let array = if object.hasattr("array")? { object.getattr("array")? } else { object.clone() };
    let kind = array.get_type().name()?.to_string();
    // Plain arrays, and integers or text with a mask or in Arrow, which say what is missing.
    match &kind[..] {
        "NumpyExtensionArray" | "PandasArray" => Ok(array.call_method0("to_numpy")?),
        _ if array.hasattr("_pa_array")? => Ok(array.getattr("_pa_array")?),
        _ if array.hasattr("__arrow_array__")? => Ok(array.call_method0("__arrow_array__")?),
        _ => {
            // Categories are a dictionary of Arrow, unless they are of several types.
            if kind == "Categorical"
                && let Ok(dictionary) =
                    object.py().import("pyarrow").and_then(|arrow| arrow.call_method1("array", (&array,)))
            {
                return Ok(dictionary);
            }
            let options = PyDict::new(object.py());
            options.set_item("dtype", "object")?;
            Ok(array.call_method("to_numpy", (), Some(&options))?)
        }
    }
}

/// Chunks whose rows are numbered from the first on.
pub(crate) struct Cursor {
    chunks: Vec<Chunk>,
    chunk: usize,
    row: usize,
}

impl Cursor {
    pub(crate) fn new(object: &Bound<'_, PyAny>, what: &'static str) -> Result<Cursor, Failure> {
        Ok(Cursor { chunks: Column::collect(object, what)?, chunk: 0, row: 0 })
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len).sum()
    }

    /// The next row; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Item<'_>>, Failure> {
        while self.chunks.get(self.chunk).is_some_and(|chunk| self.row >= chunk.len) {
            (self.chunk, self.row) = (self.chunk + 1, 0);
        }
        let Some(chunk) = self.chunks.get(self.chunk) else { return Ok(None) };
        self.row += 1;
        chunk.get(self.row - 1).map(Some)
    }
}
