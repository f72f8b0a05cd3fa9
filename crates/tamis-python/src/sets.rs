//! columns of keys and names of sets -> `Sets`: which of many sets hold a key.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList};
use tamis::Key;
use tamis::sets::Collector;

use crate::answers::{nulls, validity};
use crate::chunk::{Item, Take};
use crate::column::{Column, Cursor};
use crate::error::Failure;
use crate::file::{How, Opened, PICKLE, file_class};
use crate::filter::not_a_key;
use crate::objects::{One, one};
use crate::options::{self, Given};

file_class! {
    /// An index of many sets: it names every set that holds a key, and now and then a false one.
    ///
    /// >>> import tamis
    /// >>> index = tamis.sets(["ann", "bob", "ann"], ["red", "red", "blue"])
    /// >>> index.find("ann")
    /// ['red', 'blue']
    /// >>> index.find_many(["bob", "ann"]).to_pylist()
    /// [['red'], ['red', 'blue']]
    Sets of "sets" {
        /// Returns the names of the sets that hold a key.
        fn find<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
            let ids = match one(key)? {
                One::Bytes(key) => self.inner.find(key),
                One::Integer(key) => self.inner.find(key),
                One::Copied(ref key) => self.inner.find(&key[..]),
                One::Null | One::Float(_) => return Err(not_a_key(key).into()),
            };
            let ids = ids.map_err(Failure::from)?;
            PyList::new(key.py(), ids.into_iter().filter_map(|id| self.inner.name(id)))
        }

        /// Returns the names of the sets that hold each key of a column: an array of lists of Arrow, or a list of lists where there
        /// is no pyarrow. A missing key has no list.
        fn find_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
            let mut column = Column::new(keys)?;
            let py = keys.py();
            let mut found = py.detach(|| {
                let mut found = Lists { sets: &self.inner, ids: vec![], ends: vec![0], missing: vec![] };
                loop {
                    let at = column.row;
                    let Some(chunk) = column.next()? else { return Ok(found) };
                    nulls(&chunk, at, &mut found.missing)?;
                    if chunk.key_type().is_some() || !chunk.may_have_nulls() {
                        chunk.each(at, &mut found)?;
                    } else {
                        found.ends.resize(at + chunk.len + 1, found.ids.len() as i64);
                    }
                }
            }).map_err(|failure: Failure| PyErr::from(failure))?;
            let missing = std::mem::take(&mut found.missing);
            let (ids, ends) = found.lists(&missing);
            let valid = (!missing.is_empty()).then(|| PyByteArray::new(py, &validity(ends.len() - 1, &missing)));
            let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_ne_bytes()).collect();
            let ends: Vec<u8> = ends.iter().flat_map(|end| end.to_ne_bytes()).collect();
            let names = self.names(py)?;
            let columns = py.import("tamis._columns")?;
            columns.call_method1("lists", (keys, PyByteArray::new(py, &ends), PyByteArray::new(py, &ids), valid, names))
        }

        /// Returns for each set how many keys of a column it holds: a dict from names to numbers.
        fn tally<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
            let mut column = Column::new(keys)?;
            let counts = keys.py().detach(|| {
                let mut tally = Counts { sets: &self.inner, counts: vec![] };
                column.each(&mut tally)?;
                Ok(tally.counts)
            }).map_err(|failure: Failure| PyErr::from(failure))?;
            let tally = PyDict::new(keys.py());
            for (id, name) in self.inner.names() {
                tally.set_item(name, counts.get(id as usize).copied().unwrap_or(0))?;
            }
            Ok(tally)
        }

        /// Names of the sets by their number; none of a removed set.
        #[getter]
        fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
            let end = self.inner.names().map(|(id, _)| id + 1).last().unwrap_or(0);
            PyList::new(py, (0..end).map(|id| self.inner.name(id)))
        }

        /// Number of pairs of a key and a set.
        #[getter]
        fn pairs(&self) -> u64 {
            self.inner.pairs()
        }

        /// What keys are: "bytes" (also text), "integer", "digest" or "fields".
        #[getter]
        fn key_type(&self) -> String {
            self.inner.key_type().to_string()
        }

        /// Predicted false sets of an unlisted key and of a member.
        #[getter]
        fn false_sets(&self) -> (f64, f64) {
            self.inner.false_sets()
        }

        /// Number of sets.
        fn __len__(&self) -> usize {
            self.inner.sets() as usize
        }

        fn __repr__(&self) -> String {
            let Sets { inner, .. } = self;
            format!(
                "Sets(sets={}, keys={}, pairs={}, key_type='{}', nbytes={})",
                inner.sets(), inner.keys(), inner.pairs(), inner.key_type(), inner.as_bytes().len()
            )
        }
    }
}

/// Numbers of sets, row after row.
struct Lists<'a> {
    sets: &'a tamis::Sets,
    ids: Vec<u32>,
    ends: Vec<i64>,
    missing: Vec<usize>,
}

impl Lists<'_> {
    /// The lists; those of rows without a key are empty.
    fn lists(self, missing: &[usize]) -> (Vec<u32>, Vec<i64>) {
        if missing.is_empty() {
            return (self.ids, self.ends);
        }
        let (mut ids, mut ends, mut missing) = (vec![], vec![0], missing.iter().peekable());
        for (row, pair) in self.ends.windows(2).enumerate() {
            if missing.next_if_eq(&&row).is_none() {
                ids.extend_from_slice(&self.ids[pair[0] as usize..pair[1] as usize]);
            }
            ends.push(ids.len() as i64);
        }
        (ids, ends)
    }
}

impl Take for Lists<'_> {
    fn take<K: Key>(&mut self, _: usize, keys: &[K]) -> Result<(), Failure> {
        self.sets.find_many(keys, |_, found| {
            self.ids.extend_from_slice(found);
            self.ends.push(self.ids.len() as i64);
        })?;
        Ok(())
    }
}

struct Counts<'a> {
    sets: &'a tamis::Sets,
    counts: Vec<u64>,
}

impl Take for Counts<'_> {
    fn take<K: Key>(&mut self, _: usize, keys: &[K]) -> Result<(), Failure> {
        let more = self.sets.tally(keys)?.counts;
        self.counts.resize(more.len(), 0);
        self.counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        Ok(())
    }
}

struct Pairs<'a, 'b> {
    collector: &'a mut Collector<'b>,
    names: &'a mut Cursor,
    /// The last name and its number: rows of one set often follow each other.
    last: (Vec<u8>, u32),
}

impl Take for Pairs<'_, '_> {
    fn take<K: Key>(&mut self, at: usize, keys: &[K]) -> Result<(), Failure> {
        for (row, key) in (at..).zip(keys) {
            let wrong = |what| Failure::Input(format!("names row {row}: {what}; expected the name of a set"));
            match self.names.next()? {
                Some(Item::Bytes(name)) => {
                    if self.last.0 != name || name.is_empty() {
                        let name = str::from_utf8(name).map_err(|_| wrong("not UTF-8"))?;
                        self.last = (name.into(), self.collector.set(name)?);
                    }
                    self.collector.push(key, self.last.1)?;
                }
                Some(Item::Null) => return Err(wrong("missing")),
                Some(_) => return Err(wrong("a number")),
                None => return Err(wrong("none, and there are more keys")),
            }
        }
        Ok(())
    }
}

/// Builds an index in memory, or into a file that is then mapped.
#[pyfunction]
#[pyo3(signature = (keys, names, path, options))]
pub(crate) fn _sets(
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    names: &Bound<'_, PyAny>,
    path: Option<PathBuf>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Sets> {
    let given = Given::new(options)?;
    let (common, watch) = options::common(&given)?;
    let mut builder = tamis::sets::stream();
    if let Some(kind) = given.named("kind")? {
        builder = builder.kind(kind);
    }
    macro_rules! set {
        ($($name:ident),*) => {$(
            if let Some(value) = given.take(stringify!($name))? {
                builder = builder.$name(value);
            }
        )*};
    }
    set!(false_sets, member_false_sets, bits_per_pair, counts, capacity);
    given.end()?;
    let (mut keys, mut names) = (Column::new(keys)?, Cursor::new(names, "names")?);
    let written = py.detach(|| {
        let run = || -> Result<Option<tamis::Sets>, Failure> {
            let mut collector = builder.options(common).start();
            keys.each(&mut Pairs { collector: &mut collector, names: &mut names, last: (vec![], 0) })?;
            if let (rows, true) = (keys.row, keys.row != names.len()) {
                return Err(Failure::Input(format!("names: {} for {rows} keys; expected as many", names.len())));
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
        (Some(inner), _) => Ok(Sets { inner, text: true }),
        (None, path) => Sets::open(py, path.unwrap_or_default(), true, false, None, true),
    }
}
