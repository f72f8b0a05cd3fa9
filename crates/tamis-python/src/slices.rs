//! digests in parts -> slices of one filter: the rounds of `tamis::slices`, in bytes and text that engines carry.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use tamis::slices::{Gather, KeyRange, Plan, Round, Sketch, Survey};
use tamis::{Digest, Error, Key, KeyType, Options};

use crate::chunk::Take;
use crate::column::Column;
use crate::error::Failure;
use crate::filter::Filter;
use crate::options::{self, Given};

/// Bytes of a digest.
const WIDTH: u64 = 16;

struct Split<'a> {
    hasher: &'a tamis::Hasher,
    bits: u32,
    parts: Vec<Vec<u8>>,
}

impl Take for Split<'_> {
    fn take<K: Key>(&mut self, _: usize, keys: &[K]) -> Result<(), Failure> {
        for key in keys {
            let digest = key.digest(self.hasher).to_bits();
            let part = digest.checked_shr(128 - self.bits).unwrap_or(0) as usize;
            if let Some(part) = self.parts.get_mut(part) {
                part.extend_from_slice(&digest.to_le_bytes());
            }
        }
        Ok(())
    }
}

/// The digests of a column by their part, and the key type, which is empty without keys. Missing keys are an error.
#[pyfunction]
pub(crate) fn _split<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    parts: u32,
    options: &Bound<'py, PyDict>,
) -> PyResult<(Vec<Bound<'py, PyBytes>>, String)> {
    let hasher = crate::digests::hasher(options)?;
    let bits = KeyRange::new(0, parts).map_err(Failure::from)?.count().trailing_zeros();
    let mut column = Column::new(keys)?;
    let (split, key_type) = py.detach(|| {
        let key_type = column.key_type()?;
        let mut split = Split { hasher: &hasher, bits, parts: vec![vec![]; parts as usize] };
        column.each(&mut split)?;
        let key_type = key_type.filter(|_| column.row > 0).map_or(String::new(), |key_type| key_type.to_string());
        Ok::<_, Failure>((split.parts, key_type))
    })?;
    Ok((split.iter().map(|part| PyBytes::new(py, part)).collect(), key_type))
}

/// Digests of a part, 16 bytes for each: in memory, or in a file, from an offset on, so many bytes.
#[derive(FromPyObject)]
pub(crate) enum Piece {
    Held(PyBackedBytes),
    File(PathBuf, u64, u64),
}

impl Piece {
    fn len(&self) -> u64 {
        match self {
            Piece::Held(bytes) => bytes.len() as u64,
            Piece::File(_, _, len) => *len,
        }
    }

    fn read(&self) -> Result<Box<dyn Read + '_>, Error> {
        match self {
            Piece::Held(bytes) => Ok(Box::new(&bytes[..])),
            Piece::File(path, start, len) => {
                let open = || {
                    let mut file = File::open(path)?;
                    file.seek(SeekFrom::Start(*start))?;
                    Ok(file)
                };
                let file = open().map_err(|error| Error::Io { path: Some(path.clone()), error })?;
                Ok(Box::new(BufReader::with_capacity(1 << 16, file).take(*len)))
            }
        }
    }

    fn each(&self, push: &mut dyn FnMut(Digest) -> Result<(), Error>) -> Result<(), Error> {
        let (mut from, mut bytes) = (self.read()?, [0; WIDTH as usize]);
        for _ in 0..self.len() / WIDTH {
            from.read_exact(&mut bytes).map_err(|error| match self {
                Piece::File(path, ..) => Error::Io { path: Some(path.clone()), error },
                Piece::Held(_) => error.into(),
            })?;
            push(Digest::from_bits(u128::from_le_bytes(bytes)))?;
        }
        Ok(())
    }
}

/// Adds the digests in pieces of both sides.
fn filled(mut gather: Gather, members: &[Piece], excluded: &[Piece]) -> Result<Gather, Failure> {
    if members.iter().chain(excluded).any(|piece| !piece.len().is_multiple_of(WIDTH)) {
        return Err(Failure::Input("digests: cut in two; expected 16 bytes for each".into()));
    }
    members.iter().try_for_each(|piece| piece.each(&mut |digest| gather.push(digest)))?;
    excluded.iter().try_for_each(|piece| piece.each(&mut |digest| gather.exclude(digest)))?;
    Ok(gather)
}

/// A plan, with the limits of the task that reads it.
fn limited(text: &str, limits: &Bound<'_, PyDict>) -> Result<Plan, Failure> {
    let given = Given::new(limits)?;
    let (threads, found) = (given.take("threads")?, options::limits(&given)?);
    given.end()?;
    let plan = plan(text)?.limits(found);
    Ok(if let Some(threads) = threads { plan.threads(threads) } else { plan })
}

fn filter_options(options: &Bound<'_, PyDict>) -> Result<Options<'static>, Failure> {
    let given = Given::new(options)?;
    let (options, _) = options::filter(&given)?;
    given.end()?;
    Ok(options)
}

fn plan(text: &str) -> Result<Plan, Failure> {
    Ok(text.parse()?)
}

/// Counts the keys of one part, for the plan.
#[pyfunction]
pub(crate) fn _survey<'py>(
    py: Python<'py>,
    options: &Bound<'py, PyDict>,
    part: u32,
    parts: u32,
    members: Vec<Piece>,
    excluded: Vec<Piece>,
) -> PyResult<Bound<'py, PyBytes>> {
    let options = filter_options(options)?;
    let survey = py.detach(|| {
        let gather = Gather::new(&options, KeyRange::new(part, parts)?)?;
        Ok::<_, Failure>(filled(gather, &members, &excluded)?.survey()?.to_bytes())
    })?;
    Ok(PyBytes::new(py, &survey))
}

/// Joins surveys of parts, in any order.
#[pyfunction]
pub(crate) fn _merge<'py>(py: Python<'py>, surveys: Vec<PyBackedBytes>) -> PyResult<Bound<'py, PyBytes>> {
    let merged = py.detach(|| {
        let mut surveys = surveys.iter().map(|survey| Ok(Survey::from_bytes(survey)?));
        let first = surveys.next().ok_or_else(|| Failure::Input("surveys: none; expected one of each part".into()))?;
        let merged =
            surveys.try_fold(first?, |all, survey: Result<Survey, Failure>| Ok::<_, Failure>(all.merge(survey?)?))?;
        Ok::<_, Failure>(merged.to_bytes())
    })?;
    Ok(PyBytes::new(py, &merged))
}

/// Plans at most so many slices, as text.
#[pyfunction]
pub(crate) fn _plan_slices(
    py: Python<'_>,
    options: &Bound<'_, PyDict>,
    key_type: &str,
    survey: PyBackedBytes,
    slices: u32,
) -> PyResult<String> {
    let options = filter_options(options)?;
    let key_type = if key_type == "integer" { KeyType::Integer } else { KeyType::Bytes };
    Ok(py.detach(|| {
        let survey = Survey::from_bytes(&survey)?;
        Ok::<_, Failure>(Plan::new(&options, key_type, survey, slices)?.to_string())
    })?)
}

/// Whether a plan needs sketches, and how many slices it has.
#[pyfunction]
pub(crate) fn _rounds(text: &str) -> PyResult<(bool, u32)> {
    let plan = plan(text)?;
    Ok((plan.round() == Round::Sketch, plan.slices()))
}

/// Counts the excluded keys of one part more closely.
#[pyfunction]
pub(crate) fn _sketch<'py>(
    py: Python<'py>,
    text: &str,
    part: u32,
    parts: u32,
    excluded: Vec<Piece>,
    limits: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyBytes>> {
    let plan = limited(text, limits)?;
    let sketch = py.detach(|| {
        let gather = plan.gather_range(KeyRange::new(part, parts)?);
        Ok::<_, Failure>(filled(gather, &[], &excluded)?.sketch(&plan)?.to_bytes())
    })?;
    Ok(PyBytes::new(py, &sketch))
}

/// The plan with the sketches of all parts.
#[pyfunction]
pub(crate) fn _with_sketch(py: Python<'_>, text: &str, sketches: Vec<PyBackedBytes>) -> PyResult<String> {
    let plan = plan(text)?;
    Ok(py.detach(|| {
        let mut sketches = sketches.iter().map(|sketch| Ok(Sketch::from_bytes(sketch)?));
        let first =
            sketches.next().ok_or_else(|| Failure::Input("sketches: none; expected one of each part".into()))?;
        let merged =
            sketches.try_fold(first?, |all, sketch: Result<Sketch, Failure>| Ok::<_, Failure>(all.merge(sketch?)?))?;
        Ok::<_, Failure>(plan.with_sketch(merged)?.to_string())
    })?)
}

/// Builds one slice.
#[pyfunction]
pub(crate) fn _slice<'py>(
    py: Python<'py>,
    text: &str,
    number: u32,
    members: Vec<Piece>,
    excluded: Vec<Piece>,
    limits: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyBytes>> {
    let plan = limited(text, limits)?;
    let build = || Ok::<_, Failure>(filled(plan.gather(number)?, &members, &excluded)?.slice(&plan)?);
    Ok(PyBytes::new(py, &py.detach(build)?))
}

/// Builds one slice into a file, and returns its length.
#[pyfunction]
pub(crate) fn _slice_to(
    py: Python<'_>,
    path: PathBuf,
    text: &str,
    number: u32,
    members: Vec<Piece>,
    excluded: Vec<Piece>,
    limits: &Bound<'_, PyDict>,
) -> PyResult<u64> {
    let plan = limited(text, limits)?;
    let build = || Ok::<_, Failure>(filled(plan.gather(number)?, &members, &excluded)?.slice_to(&plan, path)?.bytes);
    Ok(py.detach(build)?)
}

/// Slices that are all in memory, or all files.
#[derive(FromPyObject)]
pub(crate) enum Slices {
    Held(Vec<PyBackedBytes>),
    Files(Vec<PathBuf>),
}

/// The bytes of Python objects, which are not copied.
fn held(slices: Vec<PyBackedBytes>) -> impl Iterator<Item = bytes::Bytes> {
    slices.into_iter().map(bytes::Bytes::from_owner)
}

/// The next plan, if excluded keys were chosen to pass the first layer; mostly none.
#[pyfunction]
pub(crate) fn _refine(py: Python<'_>, text: &str, slices: Slices) -> PyResult<Option<String>> {
    let plan = plan(text)?;
    let next = py.detach(|| match slices {
        Slices::Held(slices) => plan.refine(held(slices)),
        Slices::Files(paths) => plan.refine_files(paths),
    });
    Ok(next.map_err(Failure::from)?.map(|plan| plan.to_string()))
}

/// Joins all slices of one plan, in any order.
#[pyfunction]
pub(crate) fn _join(py: Python<'_>, slices: Vec<PyBackedBytes>) -> PyResult<Filter> {
    let inner = py.detach(|| tamis::slices::join(held(slices))).map_err(Failure::from)?;
    Ok(Filter { inner, text: true })
}

/// Joins the files of all slices of one plan, in any order, to a file; returns its length.
#[pyfunction]
pub(crate) fn _join_to(py: Python<'_>, path: PathBuf, slices: Vec<PathBuf>) -> PyResult<u64> {
    Ok(py.detach(|| tamis::slices::join_to(path, slices)).map_err(Failure::from)?)
}

/// Writes the manifest of a folder of slices.
#[pyfunction]
pub(crate) fn _write_manifest(py: Python<'_>, folder: PathBuf) -> PyResult<()> {
    Ok(py.detach(|| tamis::slices::write_manifest(folder)).map_err(Failure::from)?)
}
