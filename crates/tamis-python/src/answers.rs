//! answers in memory -> what Python gets: arrays of NumPy, of Arrow, or lists. `tamis._columns` has the other half.

use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::chunk::{Chunk, Data, Take};
use crate::column::{Column, Form};
use crate::error::Failure;
use crate::memory::reserve;

/// Yes or no for each row.
#[derive(Default)]
pub(crate) struct Answers {
    yes: Vec<bool>,
    /// Rows without a key.
    nulls: Vec<usize>,
}

/// Bits of yes and no, the first row lowest.
fn packed(answers: &[bool]) -> Vec<u8> {
    let byte = |eight: &[bool]| eight.iter().enumerate().fold(0, |byte, (i, &yes)| byte | u8::from(yes) << i);
    answers.chunks(8).map(byte).collect()
}

/// A bit for each row that is there.
pub(crate) fn validity(len: usize, nulls: &[usize]) -> Vec<u8> {
    let mut bits = vec![u8::MAX; len.div_ceil(8)];
    for row in nulls {
        if let Some(byte) = bits.get_mut(row / 8) {
            *byte &= !(1 << (row % 8));
        }
    }
    bits
}

/// Rows of a chunk without a key.
pub(crate) fn nulls(chunk: &Chunk, at: usize, nulls: &mut Vec<usize>) -> Result<(), Failure> {
    if chunk.may_have_nulls() {
        // A column of nothing has no memory, however long it is.
        reserve(nulls, if matches!(chunk.data, Data::Null) { chunk.len } else { 0 })?;
        nulls.extend((0..chunk.len).filter(|&row| chunk.is_null(row)).map(|row| at + row));
    }
    Ok(())
}

/// Answers the keys of a column, without Python.
pub(crate) trait Answer: Sync {
    /// Answers as many keys.
    fn answer<K: tamis::Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Failure>;

    fn column(&self, column: &mut Column) -> Result<Answers, Failure> {
        let mut answers = Answers::default();
        reserve(&mut answers.yes, column.len.unwrap_or(0))?;
        loop {
            let at = column.row;
            let Some(chunk) = column.next()? else { return Ok(answers) };
            reserve(&mut answers.yes, chunk.len)?;
            let before = answers.nulls.len();
            nulls(&chunk, at, &mut answers.nulls)?;
            answers.yes.resize(at + chunk.len, false);
            // Without a single key there is no key type to be right or wrong.
            if chunk.key_type().is_some() || !chunk.may_have_nulls() {
                chunk.each(at, &mut Query { by: self, answers: &mut answers.yes })?;
            }
            answers.nulls[before..].iter().for_each(|&row| answers.yes[row] = false);
        }
    }
}

struct Query<'a, A: ?Sized> {
    by: &'a A,
    answers: &'a mut [bool],
}

impl<A: Answer + ?Sized> Take for Query<'_, A> {
    fn take<K: tamis::Key>(&mut self, at: usize, keys: &[K]) -> Result<(), Failure> {
        self.by.answer(keys, &mut self.answers[at..at + keys.len()])
    }
}

impl Answers {
    pub(crate) fn of(yes: Vec<bool>) -> Answers {
        Answers { yes, nulls: vec![] }
    }

    /// The answers in the form of the column that was queried.
    pub(crate) fn into_python<'py>(self, column: &Bound<'py, PyAny>, form: Form) -> Result<Bound<'py, PyAny>, Failure> {
        let py = column.py();
        let columns = py.import("tamis._columns")?;
        let len = self.yes.len();
        match form {
            Form::NumPy => {
                let yes = py.detach(|| self.yes.iter().map(|&yes| u8::from(yes)).collect::<Vec<u8>>());
                Ok(columns.call_method1("numpy_booleans", (PyByteArray::new(py, &yes),))?)
            }
            Form::Arrow => {
                let (bits, valid) =
                    py.detach(|| (packed(&self.yes), (!self.nulls.is_empty()).then(|| validity(len, &self.nulls))));
                let valid = valid.map(|valid| PyByteArray::new(py, &valid));
                Ok(columns.call_method1("arrow_booleans", (column, len, PyByteArray::new(py, &bits), valid))?)
            }
        }
    }
}

/// Queries a column with Python's lock released.
pub(crate) fn many<'py>(by: &impl Answer, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let mut column = Column::new(keys)?;
    let answers = keys.py().detach(|| by.column(&mut column))?;
    Ok(answers.into_python(keys, column.form)?)
}
