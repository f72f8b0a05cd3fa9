//! columns -> `Filter`: built, opened, queried.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use tamis::{Collector, Key, KeyType, Options, Sealed};

use crate::answers::{Answer, many};
use crate::chunk::{Item, Take};
use crate::column::{Column, Cursor};
use crate::digests::Digests;
use crate::error::Failure;
use crate::file::{How, Opened, PICKLE, file_class};
use crate::objects::{One, one};
use crate::options::{self, Given, Watch};

file_class! {
    /// A membership filter: it matches every member, no excluded key, and other keys at the rate `fpr`.
    ///
    /// It never changes, and threads may share it. `key in filter` queries one key, `contains_many` a column.
    ///
    /// >>> import tamis
    /// >>> blocked = tamis.build(["ads.example", "spam.example"], exclude=["news.example"])
    /// >>> "ads.example" in blocked, "news.example" in blocked
    /// (True, False)
    /// >>> blocked
    /// Filter(keys=2, excluded=1, fpr=0.00781, key_type='bytes', nbytes=147)
    Filter of "filter" {
        fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
            // Plain text is most of what comes, and one comparison tells it.
            if let Ok(text) = key.cast_exact::<PyString>()
                && let Ok(text) = text.to_str()
                && let Ok(answer) = self.inner.contains(text)
            {
                return Ok(answer);
            }
            Ok(contains(&self.inner, key, None)?)
        }

        /// Returns whether a key matches. Of a partitioned filter it needs the name of a partition.
        ///
        /// >>> import tamis
        /// >>> tamis.build([1, 2, 3]).contains(2)
        /// True
        #[pyo3(signature = (key, *, partition=None))]
        fn contains(&self, key: &Bound<'_, PyAny>, partition: Option<&str>) -> PyResult<bool> {
            Ok(contains(&self.inner, key, partition)?)
        }

        /// Returns whether each key of a column matches: an array of NumPy, or of Arrow for a column of Arrow, Polars or DuckDB.
        ///
        /// A missing key is missing in an answer of Arrow, and false in one of NumPy.
        ///
        /// >>> import numpy, tamis
        /// >>> tamis.build(numpy.arange(1000)).contains_many([5, 500])
        /// array([ True,  True])
        #[pyo3(signature = (keys, *, partition=None))]
        fn contains_many<'py>(&self, keys: &Bound<'py, PyAny>, partition: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
            if let Ok(digests) = keys.cast::<Digests>() {
                if partition.is_some() {
                    return Err(Failure::Input("partition: given with digests; expected a column of keys".into()).into());
                }
                let answers = digests.get().in_filter(keys.py(), &self.inner)?;
                return Ok(answers.into_python(keys, crate::column::Form::NumPy)?);
            }
            many(&InFilter { filter: &self.inner, partition }, keys)
        }

        fn __len__(&self) -> usize {
            self.inner.len() as usize
        }

        fn __repr__(&self) -> String {
            let Filter { inner, .. } = self;
            let excluded = match inner.excluded_len() {
                0 => String::new(),
                excluded => format!(" excluded={excluded},"),
            };
            format!(
                "Filter(keys={},{excluded} fpr={:.3}, key_type='{}', nbytes={})",
                inner.len(), Shown(inner.fpr()), inner.key_type(), inner.as_bytes().len()
            )
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

        /// What keys are: "bytes" (also text), "integer", "digest" or "fields".
        #[getter]
        fn key_type(&self) -> String {
            self.inner.key_type().to_string()
        }

        /// Least number of bits that any filter of these promises has, on average.
        #[getter]
        fn lower_bound(&self) -> f64 {
            self.inner.lower_bound()
        }

        /// Number of partitions, 0 if the filter is not partitioned.
        #[getter]
        fn partitions(&self) -> u64 {
            self.inner.partitions()
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

        /// Returns the digest of a key, a number of 128 bits.
        fn digest(&self, key: &Bound<'_, PyAny>) -> PyResult<u128> {
            Ok(crate::digests::digest(self.inner.hasher(), key)?.to_bits())
        }
    }
}

/// A number with three digits.
pub(crate) struct Shown(pub(crate) f64);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shown(number) = *self;
        let digits = f.precision().unwrap_or(3);
        if number > 0.0 && number < 1e-4 {
            return write!(f, "{number:.*e}", digits - 1);
        }
        let places = if number == 0.0 { 0.0 } else { digits as f64 - 1.0 - number.abs().log10().floor() };
        let text = format!("{number:.*}", places.clamp(0.0, 15.0) as usize);
        f.write_str(if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
    }
}

#[inline]
fn contains(filter: &tamis::Filter, key: &Bound<'_, PyAny>, partition: Option<&str>) -> Result<bool, Failure> {
    let by = InFilter { filter, partition };
    match one(key)? {
        One::Bytes(key) => by.one(key),
        One::Integer(key) => by.one(key),
        One::Copied(key) => by.one(&key[..]),
        One::Null | One::Float(_) => Err(not_a_key(key)),
    }
}

/// An object that is no key, where a key was expected.
pub(crate) fn not_a_key(key: &Bound<'_, PyAny>) -> Failure {
    Failure::KeyType(format!("key {key}: expected str, bytes or int"))
}

struct InFilter<'a> {
    filter: &'a tamis::Filter,
    partition: Option<&'a str>,
}

impl InFilter<'_> {
    #[inline]
    fn one<K: Key>(&self, key: K) -> Result<bool, Failure> {
        match self.partition {
            None => Ok(self.filter.contains(key)?),
            Some(partition) => Ok(self.filter.contains_in(partition, key)?),
        }
    }
}

impl Answer for InFilter<'_> {
    fn answer<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Failure> {
        match self.partition {
            None => self.filter.contains_into(keys, answers)?,
            Some(partition) => answers.copy_from_slice(&self.filter.contains_many_in(partition, keys)?),
        }
        Ok(())
    }
}

struct Members<'a, 'b>(&'a mut Collector<'b>);

impl Take for Members<'_, '_> {
    fn take<K: Key>(&mut self, _: usize, keys: &[K]) -> Result<(), Failure> {
        keys.iter().try_for_each(|key| Ok(self.0.push(key)?))
    }
}

struct Excluded<'a, 'b>(&'a mut Sealed<'b>);

impl Take for Excluded<'_, '_> {
    fn take<K: Key>(&mut self, _: usize, keys: &[K]) -> Result<(), Failure> {
        keys.iter().try_for_each(|key| Ok(self.0.exclude(key)?))
    }
}

struct Weighed<'a, 'b> {
    sealed: &'a mut Sealed<'b>,
    weights: &'a mut Cursor,
}

impl Take for Weighed<'_, '_> {
    fn take<K: Key>(&mut self, at: usize, keys: &[K]) -> Result<(), Failure> {
        for (row, key) in (at..).zip(keys) {
            let weight = match self.weights.next()? {
                Some(Item::Float(weight)) => weight,
                Some(Item::Integer(weight)) if weight.negative => weight.bits as i64 as f64,
                Some(Item::Integer(weight)) => weight.bits as f64,
                _ => return Err(Failure::Input(format!("workload row {row}: no weight; expected a number"))),
            };
            self.sealed.push_query(key, weight)?;
        }
        Ok(())
    }
}

/// Expected queries and their weights.
struct Workload {
    keys: Column,
    weights: Cursor,
}

/// What a filter is built from.
enum Keys {
    Column(Box<Column>),
    Digests(Arc<Vec<tamis::Digest>>, KeyType),
}

struct Request {
    keys: Keys,
    exclude: Vec<Column>,
    excluded_digests: Option<Arc<Vec<tamis::Digest>>>,
    workload: Option<Workload>,
    options: Options<'static>,
    watch: Arc<Watch>,
}

impl Request {
    fn new(
        keys: &Bound<'_, PyAny>,
        exclude: Option<&Bound<'_, PyAny>>,
        workload: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        given: Given<'_>,
    ) -> Result<Request, Failure> {
        let hashed = keys.cast::<Digests>().ok().map(|digests| digests.get());
        if hashed.is_some() {
            for name in ["seed", "secret"] {
                if given.has(name)? {
                    let text = format!("{name}: given with digests, which have theirs; expected it for tamis.digests");
                    return Err(Failure::Input(text));
                }
            }
            if workload.is_some() {
                return Err(Failure::Input("workload: given with digests; expected a column of keys".into()));
            }
        }
        let (mut options, watch) = options::filter(&given)?;
        given.end()?;
        let excluded = exclude.and_then(|exclude| exclude.cast::<Digests>().ok()).map(|digests| digests.get());
        let (mut columns, mut excluded_digests) = (vec![], None);
        let keys = match (hashed, exclude, excluded) {
            (None, _, Some(_)) => {
                return Err(Failure::Input("exclude: digests, and members are keys; expected keys".into()));
            }
            (Some(_), Some(_), None) => {
                return Err(Failure::Input("exclude: keys, and members are digests; expected digests".into()));
            }
            (None, ..) => {
                columns.extend(exclude.map(|exclude| Column::of(exclude, "exclude")).transpose()?);
                Keys::Column(Box::new(Column::new(keys)?))
            }
            (Some(hashed), _, excluded) => {
                if let Some(excluded) = excluded {
                    excluded.check("exclude", &hashed.hasher, hashed.key_type)?;
                    excluded_digests = Some(excluded.digests.clone());
                }
                options = options.hasher(hashed.hasher.clone());
                Keys::Digests(hashed.digests.clone(), hashed.key_type)
            }
        };
        let workload = match workload {
            Some((keys, weights)) => {
                Some(Workload { keys: Column::of(&keys, "workload")?, weights: Cursor::new(&weights, "weights")? })
            }
            None => None,
        };
        Ok(Request { keys, exclude: columns, excluded_digests, workload, options, watch })
    }

    /// Reads all keys, and hands what they are to `finish`.
    fn run<T>(self, finish: impl FnOnce(Ready<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        let Request { keys, mut exclude, excluded_digests, workload, mut options, watch } = self;
        let run = || {
            let mut column = match keys {
                Keys::Digests(digests, key_type) => {
                    let mut builder = std::mem::take(&mut options).build_digests(digests, key_type);
                    if let Some(excluded) = excluded_digests {
                        builder = builder.exclude_digests(excluded);
                    }
                    return finish(Ready::Builder(Box::new(builder)));
                }
                Keys::Column(column) => column,
            };
            if !exclude.is_empty() {
                options = std::mem::take(&mut options).with_excluded();
            }
            if workload.is_some() {
                options = std::mem::take(&mut options).with_workload();
            }
            if let Some(key_type) = column.key_type()? {
                options = std::mem::take(&mut options).with_key_type(key_type);
            }
            let mut collector = std::mem::take(&mut options).start();
            collector.announce(column.len.map(|len| len as u64));
            column.each(&mut Members(&mut collector))?;
            let mut sealed = collector.seal()?;
            for column in &mut exclude {
                column.each(&mut Excluded(&mut sealed))?;
            }
            if let Some(Workload { mut keys, mut weights }) = workload {
                let len = weights.len();
                keys.each(&mut Weighed { sealed: &mut sealed, weights: &mut weights })?;
                if keys.row != len {
                    let keys = keys.row;
                    return Err(Failure::Input(format!("workload: {len} weights for {keys} keys; expected as many")));
                }
            }
            finish(Ready::Sealed(Box::new(sealed)))
        };
        let result = run();
        watch.result(result)
    }
}

/// A build whose keys are known.
enum Ready<'a> {
    Sealed(Box<Sealed<'a>>),
    Builder(Box<tamis::FilterBuilder<'a>>),
}

/// Builds a filter in memory, or into a file that is then mapped.
#[pyfunction]
#[pyo3(signature = (keys, exclude, workload, path, options))]
pub(crate) fn _build(
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    exclude: Option<&Bound<'_, PyAny>>,
    workload: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    path: Option<PathBuf>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Filter> {
    let given = Given::new(options)?;
    let request = Request::new(keys, exclude, workload, given)?;
    let Some(path) = path else {
        let inner = py.detach(|| {
            request.run(|ready| match ready {
                Ready::Sealed(sealed) => Ok(sealed.finish()?),
                Ready::Builder(builder) => Ok(builder.finish()?),
            })
        })?;
        return Ok(Filter { inner, text: true });
    };
    py.detach(|| {
        request.run(|ready| match ready {
            Ready::Sealed(sealed) => Ok(sealed.finish_to(&path)?),
            Ready::Builder(builder) => Ok(builder.finish_to(&path)?),
        })
    })?;
    Filter::written(py, path, options)
}

impl Filter {
    /// A file that this call wrote.
    fn written(py: Python<'_>, path: PathBuf, options: &Bound<'_, PyDict>) -> PyResult<Filter> {
        let outside = options.get_item("secret_beside")?.is_some_and(|kept| kept.is_truthy().unwrap_or(false));
        let secret = options.get_item("secret")?.filter(|_| outside);
        Filter::open(py, path, true, false, secret.as_ref(), true)
    }
}

/// Rows, reasons, the number of keys and of excluded keys.
type Planned<'py> = (Vec<Bound<'py, PyDict>>, Vec<String>, u64, u64);

/// Plans every design; builds nothing. Returns rows, reasons, and how many keys and excluded keys there are.
#[pyfunction]
#[pyo3(signature = (keys, exclude, workload, options))]
pub(crate) fn _plan<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    exclude: Option<&Bound<'py, PyAny>>,
    workload: Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Planned<'py>> {
    let request = Request::new(keys, exclude, workload, Given::new(options)?)?;
    let plan = py.detach(|| {
        request.run(|ready| match ready {
            Ready::Sealed(sealed) => Ok(sealed.plan()?),
            Ready::Builder(builder) => Ok(builder.plan()?),
        })
    })?;
    let mut rows = vec![];
    for candidate in &plan.candidates {
        let row = PyDict::new(py);
        row.set_item("name", candidate.name)?;
        row.set_item("chosen", candidate.chosen)?;
        match &candidate.prediction {
            Err(why) => row.set_item("why_not", why)?,
            Ok(found) => {
                row.set_item("nbytes", found.bytes)?;
                row.set_item("bits_per_key", found.bits_per_key)?;
                row.set_item("lower_bound", found.bound)?;
                row.set_item("fpr", found.fpr)?;
                row.set_item("excluded_fpr", found.excluded_fpr)?;
                row.set_item("workload_fpr", found.workload_fpr)?;
                row.set_item("layers", found.layers.iter().map(|layer| layer.structure).collect::<Vec<_>>())?;
            }
        }
        rows.push(row);
    }
    Ok((rows, plan.reasons, plan.keys, plan.excluded))
}
