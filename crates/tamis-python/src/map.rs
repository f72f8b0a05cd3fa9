//! columns of keys and values -> `Map` and `Sequence`: built, opened, queried.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyString};
use tamis::maps::{Collector, MapBuilder, Value};
use tamis::{Key, KeyType, QueryError};

use crate::answers::{nulls, validity};
use crate::chunk::{Int, Item, Take};
use crate::column::{Column, Cursor};
use crate::error::Failure;
use crate::file::{How, Opened, PICKLE, file_class};
use crate::filter::{Shown, not_a_key};
use crate::memory::reserve;
use crate::objects::{One, one};
use crate::options::{self, Given};

file_class! {
    /// A value for every key: a number, text or bytes. The keys are not stored, so a map cannot be iterated.
    ///
    /// A key that the map was not built with has no value, but for a share `fpr` of such keys: 1/256 by default. An unchecked map has a
    /// value for any key.
    ///
    /// >>> import tamis
    /// >>> teams = tamis.map(["ann", "bob", "eve"], ["red", "blue", "red"], fpr=1e-5)
    /// >>> teams["eve"], teams.get("bob"), "tom" in teams
    /// ('red', 'blue', False)
    /// >>> teams.get_many(["bob", "ann"]).to_pylist()
    /// ['blue', 'red']
    Map of "map", mapping {
        /// Returns the value of a key, or `default` if it has none. An unchecked map returns some value for any key.
        #[pyo3(signature = (key, default=None))]
        fn get<'py>(&self, key: &Bound<'py, PyAny>, default: Option<Bound<'py, PyAny>>) -> PyResult<Option<Bound<'py, PyAny>>> {
            match self.value(key)? {
                Some(value) => Ok(Some(python(key.py(), value, self.text)?)),
                None => Ok(default),
            }
        }

        /// Whether the map has a value for a key: every member, and the share `fpr` of other keys.
        fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
            Ok(self.value(key)?.is_some())
        }

        fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
            let missing = || pyo3::exceptions::PyKeyError::new_err(key.clone().unbind());
            self.get(key, None)?.ok_or_else(missing)
        }

        /// Returns the value of each key of a column, as a column of Arrow, or a list where there is no pyarrow.
        fn get_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
            let mut column = Column::new(keys)?;
            let found = keys.py().detach(|| {
                let mut found = Found::new(&self.inner, column.len)?;
                loop {
                    let at = column.row;
                    let Some(chunk) = column.next()? else { return Ok(found) };
                    let mut missing = vec![];
                    nulls(&chunk, at, &mut missing)?;
                    if missing.is_empty() {
                        chunk.each(at, &mut found)?;
                    } else {
                        found.one_by_one(&chunk)?;
                    }
                }
            }).map_err(|failure: Failure| PyErr::from(failure))?;
            Ok(found.into_python(keys, self.text)?)
        }

        fn __len__(&self) -> usize {
            self.inner.len() as usize
        }

        fn __repr__(&self) -> String {
            let Map { inner, .. } = self;
            let values = match inner.distinct() {
                Some(values) => format!(" values={values},"),
                None => String::new(),
            };
            format!(
                "Map(keys={},{values} fpr={:.3}, key_type='{}', value_type='{}', nbytes={})",
                inner.len(), Shown(inner.fpr()), inner.key_type(), inner.value_type(), inner.as_bytes().len()
            )
        }

        /// Share of unlisted keys that get a value.
        #[getter]
        fn fpr(&self) -> f64 {
            self.inner.fpr()
        }

        /// What keys are: "bytes" (also text), "integer", "digest" or "fields".
        #[getter]
        fn key_type(&self) -> String {
            self.inner.key_type().to_string()
        }

        /// What values are: "bytes" (also text) or "integer".
        #[getter]
        fn value_type(&self) -> String {
            self.inner.value_type().to_string()
        }
    }
}

file_class! {
    /// Symbols in order, in about their entropy: numbers, text or bytes at positions.
    ///
    /// >>> import tamis
    /// >>> word = tamis.sequence(list("mississippi"))
    /// >>> word[4], word[-1], len(word)
    /// ('i', 'i', 11)
    Sequence of "sequence" {
        fn __getitem__<'py>(&self, py: Python<'py>, position: i64) -> PyResult<Bound<'py, PyAny>> {
            let from = if position < 0 { self.inner.len() as i64 } else { 0 };
            let at = u64::try_from(position.saturating_add(from)).unwrap_or(u64::MAX);
            match self.inner.get(at) {
                Some(value) => Ok(python(py, value, self.text)?),
                None => Err(pyo3::exceptions::PyIndexError::new_err("position out of range")),
            }
        }

        /// Returns the symbols at a column of positions, as a column of Arrow, or a list where there is no pyarrow.
        fn get_many<'py>(&self, positions: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
            let mut column = Column::of(positions, "positions")?;
            let found = positions.py().detach(|| {
                let mut found = Found::new(self.inner.as_map(), column.len)?;
                while let Some(chunk) = column.next()? {
                    for row in 0..chunk.len {
                        match chunk.get(row)? {
                            Item::Integer(Int { bits, negative: false }) => found.push(self.inner.get(bits)),
                            Item::Null | Item::Integer(_) => found.push(None),
                            Item::Bytes(_) | Item::Float(_) => {
                                return Err(Failure::KeyType("positions: no integers; expected integers".into()));
                            }
                        }
                    }
                }
                Ok(found)
            })?;
            Ok(found.into_python(positions, self.text)?)
        }

        fn __len__(&self) -> usize {
            self.inner.len() as usize
        }

        fn __repr__(&self) -> String {
            let map = self.inner.as_map();
            format!("Sequence(symbols={}, value_type='{}', nbytes={})", map.len(), map.value_type(), self.inner.as_bytes().len())
        }
    }
}

impl Map {
    fn value(&self, key: &Bound<'_, PyAny>) -> Result<Option<Value<'_>>, Failure> {
        Ok(match one(key)? {
            One::Bytes(key) => self.inner.get(key)?,
            One::Integer(key) => self.inner.get(key)?,
            One::Copied(ref key) => self.inner.get(&key[..])?,
            One::Null | One::Float(_) => return Err(not_a_key(key)),
        })
    }
}

/// A value as a Python object.
fn python<'py>(py: Python<'py>, value: Value<'_>, text: bool) -> Result<Bound<'py, PyAny>, Failure> {
    match value {
        Value::Number(number) => Ok(number.into_pyobject(py).map_err(PyErr::from)?.into_any()),
        Value::Bytes(bytes) if text => Ok(PyString::new(py, str::from_utf8(bytes).map_err(|_| no_text())?).into_any()),
        Value::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
        _ => Err(no_text()),
    }
}

fn no_text() -> Failure {
    Failure::Input("value: not UTF-8; expected text; open the file with text=False for bytes".into())
}

/// Values of many keys, as Arrow has them.
struct Found<'a> {
    map: &'a tamis::Map,
    numeric: bool,
    numbers: Vec<u64>,
    bytes: Vec<u8>,
    offsets: Vec<i64>,
    missing: Vec<usize>,
    len: usize,
}

impl<'a> Found<'a> {
    fn new(map: &'a tamis::Map, len: Option<usize>) -> Result<Found<'a>, Failure> {
        let numeric = map.value_type() == KeyType::Integer;
        let mut numbers = vec![];
        reserve(&mut numbers, if numeric { len.unwrap_or(0) } else { 0 })?;
        Ok(Found { map, numeric, numbers, bytes: vec![], offsets: vec![0], missing: vec![], len: 0 })
    }

    fn push(&mut self, value: Option<Value<'_>>) {
        let number = match value {
            Some(Value::Number(number)) => number,
            Some(Value::Bytes(bytes)) => {
                self.bytes.extend_from_slice(bytes);
                0
            }
            _ => {
                self.missing.push(self.len);
                0
            }
        };
        match self.numeric {
            true => self.numbers.push(number),
            false => self.offsets.push(self.bytes.len() as i64),
        }
        self.len += 1;
    }

    /// For rows of which some have no key.
    fn one_by_one(&mut self, chunk: &crate::chunk::Chunk) -> Result<(), Failure> {
        for row in 0..chunk.len {
            let value = match chunk.get(row)? {
                Item::Null => None,
                Item::Integer(key) => self.map.get(key)?,
                Item::Bytes(key) => self.map.get(key)?,
                Item::Float(_) => return Err(crate::chunk::no_key("floating-point numbers")),
            };
            self.push(value);
        }
        Ok(())
    }

    fn into_python<'py>(self, keys: &Bound<'py, PyAny>, text: bool) -> Result<Bound<'py, PyAny>, Failure> {
        let py = keys.py();
        if text && !self.numeric {
            // Every value is text if all of them are, and no border is within a character.
            let all = str::from_utf8(&self.bytes).map_err(|_| no_text())?;
            if !self.offsets.iter().all(|&at| all.is_char_boundary(at as usize)) {
                return Err(no_text());
            }
        }
        let valid = (!self.missing.is_empty()).then(|| PyByteArray::new(py, &validity(self.len, &self.missing)));
        let columns = py.import("tamis._columns")?;
        match self.numeric {
            true => {
                let numbers: Vec<u8> =
                    py.detach(|| self.numbers.iter().flat_map(|number| number.to_ne_bytes()).collect());
                Ok(columns.call_method1("numbers", (keys, self.len, PyByteArray::new(py, &numbers), valid))?)
            }
            false => {
                let offsets: Vec<u8> = py.detach(|| self.offsets.iter().flat_map(|at| at.to_ne_bytes()).collect());
                let (offsets, bytes) = (PyByteArray::new(py, &offsets), PyByteArray::new(py, &self.bytes));
                Ok(columns.call_method1("texts", (keys, self.len, offsets, bytes, valid, text))?)
            }
        }
    }
}

impl Take for Found<'_> {
    fn take<K: Key>(&mut self, _: usize, keys: &[K]) -> Result<(), Failure> {
        if !self.numeric {
            self.map.get_many(keys)?.into_iter().for_each(|value| self.push(value));
            return Ok(());
        }
        let mut values = [None; 1024];
        for keys in keys.chunks(values.len()) {
            let values = &mut values[..keys.len()];
            match self.map.get_many_u64(keys, values) {
                Err(QueryError::Values { .. }) => values.fill(None),
                other => other?,
            }
            for (row, value) in (self.len..).zip(values.iter()) {
                self.numbers.push(value.unwrap_or(0));
                if value.is_none() {
                    self.missing.push(row);
                }
            }
            self.len += keys.len();
        }
        Ok(())
    }
}

struct Pairs<'a, 'b> {
    collector: &'a mut Collector<'b>,
    values: &'a mut Cursor,
}

/// A row as the value of a key.
fn value(row: usize, item: Option<Item<'_>>) -> Result<Value<'_>, Failure> {
    let wrong =
        |what: &str| Err(Failure::Input(format!("values row {row}: {what}; expected text, bytes or 0 to 2^64 - 1")));
    match item {
        Some(Item::Bytes(bytes)) => Ok(Value::Bytes(bytes)),
        Some(Item::Integer(Int { bits, negative: false })) => Ok(Value::Number(bits)),
        Some(Item::Integer(_)) => wrong("below zero"),
        Some(Item::Float(_)) => wrong("a floating-point number"),
        Some(Item::Null) => wrong("missing"),
        None => wrong("none, and there are more keys"),
    }
}

impl Take for Pairs<'_, '_> {
    fn take<K: Key>(&mut self, at: usize, keys: &[K]) -> Result<(), Failure> {
        for (row, key) in (at..).zip(keys) {
            self.collector.push(key, value(row, self.values.next()?)?)?;
        }
        Ok(())
    }
}

struct Settings {
    kind: Option<tamis::maps::Kind>,
    layout: Option<tamis::Layout>,
    fpr: Option<f64>,
    unchecked: bool,
    width: Option<u32>,
    alphabet: Option<Cursor>,
}

impl Settings {
    fn new(given: &Given<'_>) -> Result<Settings, Failure> {
        let alphabet = given.take::<Bound<'_, PyAny>>("alphabet")?;
        Ok(Settings {
            kind: given.named("kind")?,
            layout: given.named("layout")?,
            fpr: given.take("fpr")?,
            unchecked: given.is("unchecked")?,
            width: given.take("width")?,
            alphabet: alphabet.map(|alphabet| Cursor::new(&alphabet, "alphabet")).transpose()?,
        })
    }

    fn apply<I>(self, mut builder: MapBuilder<'static, I>) -> Result<MapBuilder<'static, I>, Failure> {
        if let Some(kind) = self.kind {
            builder = builder.kind(kind);
        }
        if let Some(layout) = self.layout {
            builder = builder.layout(layout);
        }
        if self.unchecked && self.fpr.is_some() {
            return Err(Failure::Input("fpr: not possible with unchecked; expected one of the two".into()));
        }
        if self.unchecked {
            builder = builder.unchecked();
        }
        if let Some(p) = self.fpr {
            builder = builder.fpr(p);
        }
        if let Some(bits) = self.width {
            builder = builder.width(bits);
        }
        let Some(mut alphabet) = self.alphabet else { return Ok(builder) };
        let mut values: Vec<Owned> = vec![];
        while let Some(item) = alphabet.next()? {
            values.push(match value(values.len(), Some(item))? {
                Value::Bytes(bytes) => Owned::Bytes(bytes.to_vec()),
                Value::Number(number) => Owned::Number(number),
                _ => continue,
            });
        }
        Ok(builder.alphabet(values))
    }
}

/// A value of its own.
enum Owned {
    Number(u64),
    Bytes(Vec<u8>),
}

impl tamis::maps::ToValue for Owned {
    fn to_value(&self) -> Value<'_> {
        match self {
            Owned::Number(number) => Value::Number(*number),
            Owned::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}

/// Builds a map in memory, or into a file that is then mapped.
#[pyfunction]
#[pyo3(signature = (keys, values, path, text, options))]
pub(crate) fn _map(
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    path: Option<PathBuf>,
    text: bool,
    options: &Bound<'_, PyDict>,
) -> PyResult<Map> {
    let given = Given::new(options)?;
    let (common, watch) = options::common(&given)?;
    let settings = Settings::new(&given)?;
    given.end()?;
    let (mut keys, mut values) = (Column::new(keys)?, Cursor::new(values, "values")?);
    let written = py.detach(|| {
        let run = || -> Result<Option<tamis::Map>, Failure> {
            if keys.key_type()? == Some(KeyType::Integer) && keys.len == Some(0) && values.len() == 0 {
                // A map without keys has the key type of their column.
                let empty = settings.apply(common.map(std::iter::empty::<(u64, u64)>()))?;
                return match &path {
                    None => Ok(Some(empty.finish()?)),
                    Some(path) => Ok(empty.finish_to(path).map(|_| None)?),
                };
            }
            let mut collector = settings.apply(tamis::maps::stream().options(common))?.start();
            keys.each(&mut Pairs { collector: &mut collector, values: &mut values })?;
            if let (rows, true) = (keys.row, keys.row != values.len()) {
                return Err(Failure::Input(format!("values: {} for {rows} keys; expected as many", values.len())));
            }
            match &path {
                None => Ok(Some(collector.finish()?)),
                Some(path) => Ok(collector.finish_to(path).map(|_| None)?),
            }
        };
        let result = run();
        watch.result(result)
    })?;
    match (written, path) {
        (Some(inner), _) => Ok(Map { inner, text }),
        (None, path) => Map::open(py, path.unwrap_or_default(), true, false, None, text),
    }
}

/// Builds a sequence in memory.
#[pyfunction]
#[pyo3(signature = (symbols, text, options))]
pub(crate) fn _sequence(
    py: Python<'_>,
    symbols: &Bound<'_, PyAny>,
    text: bool,
    options: &Bound<'_, PyDict>,
) -> PyResult<Sequence> {
    let given = Given::new(options)?;
    let (common, watch) = options::common(&given)?;
    let (kind, width) = (given.named("kind")?.unwrap_or_default(), given.take::<u32>("width")?);
    given.end()?;
    let mut symbols = Cursor::new(symbols, "symbols")?;
    let inner = py.detach(|| {
        let run = || -> Result<tamis::Sequence, Failure> {
            let mut values: Vec<Owned> = Vec::with_capacity(symbols.len());
            while let Some(item) = symbols.next()? {
                values.push(match value(values.len(), Some(item))? {
                    Value::Number(number) => Owned::Number(number),
                    Value::Bytes(bytes) => Owned::Bytes(bytes.to_vec()),
                    _ => continue,
                });
            }
            let mut builder = common.sequence(values).kind(kind);
            if let Some(bits) = width {
                builder = builder.width(bits);
            }
            Ok(builder.finish()?)
        };
        let result = run();
        watch.result(result)
    })?;
    Ok(Sequence { inner, text })
}
