//! digests in parts -> slices of one filter: the rounds of `tamis::slices`, in bytes and text that engines carry.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use tamis::slices::{KeyRange, Plan, Round, Sketch, Survey};
use tamis::{Digest, Key, KeyType, Options};

use crate::chunk::Take;
use crate::column::Column;
use crate::error::Failure;
use crate::filter::Filter;
use crate::options::{self, Given};

/// Bytes of a digest.
const WIDTH: usize = 16;

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

/// The digests in some pieces.
fn digests(pieces: &[PyBackedBytes]) -> Result<impl Iterator<Item = Digest>, Failure> {
    if pieces.iter().any(|piece| !piece.len().is_multiple_of(WIDTH)) {
        return Err(Failure::Input("digests: cut in two; expected 16 bytes for each".into()));
    }
    let all = pieces.iter().flat_map(|piece| piece.as_chunks::<WIDTH>().0);
    Ok(all.map(|bytes| Digest::from_bits(u128::from_le_bytes(*bytes))))
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
    members: Vec<PyBackedBytes>,
    excluded: Vec<PyBackedBytes>,
) -> PyResult<Bound<'py, PyBytes>> {
    let options = filter_options(options)?;
    let survey = py.detach(|| {
        let survey = Survey::new(&options, KeyRange::new(part, parts)?, digests(&members)?, digests(&excluded)?)?;
        Ok::<_, Failure>(survey.to_bytes())
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
    excluded: Vec<PyBackedBytes>,
) -> PyResult<Bound<'py, PyBytes>> {
    let plan = plan(text)?;
    let sketch = py.detach(|| {
        let sketch = plan.sketch(KeyRange::new(part, parts)?, digests(&excluded)?)?;
        Ok::<_, Failure>(sketch.to_bytes())
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
    members: Vec<PyBackedBytes>,
    excluded: Vec<PyBackedBytes>,
) -> PyResult<Bound<'py, PyBytes>> {
    let plan = plan(text)?;
    let bytes = py.detach(|| Ok::<_, Failure>(plan.slice(number, digests(&members)?, digests(&excluded)?)?))?;
    Ok(PyBytes::new(py, &bytes))
}

/// The next plan, if excluded keys were chosen to pass the first layer; mostly none.
#[pyfunction]
pub(crate) fn _refine(py: Python<'_>, text: &str, slices: Vec<PyBackedBytes>) -> PyResult<Option<String>> {
    let plan = plan(text)?;
    let slices: Vec<Vec<u8>> = slices.iter().map(|slice| slice.to_vec()).collect();
    Ok(py.detach(|| Ok::<_, Failure>(plan.refine(slices)?.map(|plan| plan.to_string())))?)
}

/// Joins all slices of one plan, in any order.
#[pyfunction]
pub(crate) fn _join(py: Python<'_>, slices: Vec<PyBackedBytes>) -> PyResult<Filter> {
    let slices: Vec<Vec<u8>> = slices.iter().map(|slice| slice.to_vec()).collect();
    let inner = py.detach(|| Ok::<_, Failure>(tamis::slices::join(slices)?))?;
    Ok(Filter { inner, text: true })
}
