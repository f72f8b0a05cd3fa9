//! Python objects one after the other -> chunks: lists, sets, generators, arrays of objects.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyIterator, PyMemoryView, PyString};
use tamis::KeyType;

use crate::chunk::{Chunk, Data, Int, Valid};
use crate::error::Failure;
use crate::memory::Lent;

/// Objects that are read with one lock of Python.
const OBJECTS: usize = 8192;

/// One key.
pub(crate) enum One<'a> {
    Null,
    Integer(Int),
    Float(f64),
    Bytes(&'a [u8]),
    Copied(Vec<u8>),
}

/// Calls `use_key` with the key that an object is.
#[inline]
pub(crate) fn one<'a>(object: &'a Bound<'_, PyAny>) -> Result<One<'a>, Failure> {
    if let Ok(text) = object.cast::<PyString>() {
        return match text.to_str() {
            Ok(text) => Ok(One::Bytes(text.as_bytes())),
            Err(_) => Err(Failure::Input(format!(
                "key {}: a surrogate, which has no UTF-8; expected text, or bytes",
                text.repr().map_or_else(|_| "?".into(), |shown| shown.to_string())
            ))),
        };
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(One::Bytes(bytes.as_bytes()));
    }
    if object.is_exact_instance_of::<PyInt>() {
        return integer(object);
    }
    other(object)
}

fn integer<'a>(object: &Bound<'_, PyAny>) -> Result<One<'a>, Failure> {
    if let Ok(number) = object.extract::<i64>() {
        return Ok(One::Integer(number.into()));
    }
    match object.extract::<u64>() {
        Ok(number) => Ok(One::Integer(number.into())),
        Err(_) => Err(Failure::Input(format!("key {object}: out of range; expected -2^63 to 2^64 - 1"))),
    }
}

#[cold]
fn other<'a>(object: &Bound<'_, PyAny>) -> Result<One<'a>, Failure> {
    let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    if object.is_none() || name == "NAType" {
        return Ok(One::Null);
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(if number.value().is_nan() { One::Null } else { One::Float(number.value()) });
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(One::Copied(bytes.to_vec()));
    }
    if object.is_instance_of::<PyMemoryView>() {
        let bytes = object.call_method0("tobytes")?.cast_into::<PyBytes>().map_err(PyErr::from)?;
        return Ok(One::Copied(bytes.as_bytes().to_vec()));
    }
    let truth = object.is_instance_of::<PyBool>() || name == "bool" || name == "bool_";
    if !truth && object.hasattr("__index__")? {
        return integer(&object.call_method0("__index__")?);
    }
    Err(Failure::KeyType(format!("key {object}: a {name}; expected str, bytes or int")))
}

fn float(number: &Int) -> f64 {
    if number.negative { number.bits as i64 as f64 } else { number.bits as f64 }
}

/// Rows that come as objects. Of floats the key type is that of digests, which no object is.
#[derive(Default)]
struct Gathered {
    key_type: Option<KeyType>,
    bytes: Vec<u8>,
    offsets: Vec<i64>,
    integers: Vec<Int>,
    floats: Vec<f64>,
    valid: Vec<u8>,
    nulls: bool,
    len: usize,
    /// What the column has, for errors.
    what: &'static str,
}

impl Gathered {
    /// `key_type` is that of the rows before.
    fn new(what: &'static str, key_type: Option<KeyType>) -> Gathered {
        Gathered { what, key_type, offsets: vec![0], ..Gathered::default() }
    }

    fn push(&mut self, key: One<'_>, row: usize) -> Result<(), Failure> {
        // Weights may be whole and broken numbers in turn.
        let key = match (self.key_type, key) {
            (Some(KeyType::Digest), One::Integer(number)) => One::Float(float(&number)),
            (_, key) => key,
        };
        if self.key_type == Some(KeyType::Integer) && matches!(key, One::Float(_)) {
            self.floats = self.integers.drain(..).map(|number| float(&number)).collect();
            self.key_type = Some(KeyType::Digest);
        }
        if self.len.is_multiple_of(8) {
            self.valid.push(0);
        }
        let (found, there) = match &key {
            One::Null => (None, false),
            One::Integer(_) => (Some(KeyType::Integer), true),
            One::Float(_) => (Some(KeyType::Digest), true),
            One::Bytes(_) | One::Copied(_) => (Some(KeyType::Bytes), true),
        };
        if let Some(found) = found {
            let first = *self.key_type.get_or_insert(found);
            if first != found {
                let text = format!("{} row {row}: of another key type; expected {first}, as before", self.what);
                return Err(Failure::KeyType(text));
            }
        }
        if there {
            let last = self.len / 8;
            self.valid[last] |= 1 << (self.len % 8);
        }
        self.nulls |= !there;
        match key {
            One::Integer(number) => self.integers.push(number),
            One::Float(number) => self.floats.push(number),
            One::Bytes(bytes) => self.bytes.extend_from_slice(bytes),
            One::Copied(bytes) => self.bytes.extend_from_slice(&bytes),
            One::Null => {
                // A place in whatever the column is.
                if self.key_type == Some(KeyType::Integer) {
                    self.integers.push(0u64.into());
                } else if self.key_type == Some(KeyType::Digest) {
                    self.floats.push(0.0);
                }
            }
        }
        self.len += 1;
        self.offsets.push(self.bytes.len() as i64);
        Ok(())
    }

    fn chunk(mut self) -> Chunk {
        let len = self.len;
        // Missing keys may have come before the first key.
        match self.key_type {
            Some(KeyType::Integer) => {
                let before = len - self.integers.len();
                self.integers.splice(0..0, std::iter::repeat_n(Int::from(0u64), before));
            }
            Some(KeyType::Digest) => {
                let before = len - self.floats.len();
                self.floats.splice(0..0, std::iter::repeat_n(0.0, before));
            }
            _ => {}
        }
        let data = match self.key_type {
            None => Data::Null,
            Some(KeyType::Integer) => numbers(self.integers),
            Some(KeyType::Bytes) => Data::Bytes64(Lent::Own(self.offsets), Lent::Own(self.bytes)),
            Some(_) => Data::F64(Lent::Own(self.floats)),
        };
        let valid = self.nulls.then_some(Valid { bits: Lent::Own(self.valid), from: 0 });
        Chunk { len, valid, data }
    }
}

/// Integers in the narrowest form that has them all.
fn numbers(integers: Vec<Int>) -> Data {
    if integers.iter().all(|number| !number.negative) {
        Data::U64(Lent::Own(integers.iter().map(|number| number.bits).collect()))
    } else {
        Data::Integers(integers)
    }
}

/// The next objects of an iterator; none at the end. `row` is the number of the first; those before it had the key type.
pub(crate) fn next(
    objects: &Bound<'_, PyIterator>,
    row: usize,
    what: &'static str,
    key_type: &mut Option<KeyType>,
) -> Result<Option<Chunk>, Failure> {
    let mut gathered = Gathered::new(what, *key_type);
    for (object, row) in objects.into_iter().take(OBJECTS).zip(row..) {
        gathered.push(one(&object?)?, row)?;
    }
    *key_type = gathered.key_type;
    Ok((gathered.len > 0).then(|| gathered.chunk()))
}

/// All objects of an iterator as one chunk.
pub(crate) fn all(objects: &Bound<'_, PyIterator>, what: &'static str) -> Result<Chunk, Failure> {
    let mut gathered = Gathered::new(what, None);
    for (object, row) in objects.into_iter().zip(0..) {
        gathered.push(one(&object?)?, row)?;
    }
    Ok(gathered.chunk())
}
