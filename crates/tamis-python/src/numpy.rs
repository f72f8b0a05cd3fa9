//! `__array_interface__` -> chunks: arrays of NumPy and of everything that is like one, read in place.
#![allow(unsafe_code)]

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::chunk::{Chunk, Data, no_key};
use crate::error::Failure;
use crate::memory::{Lent, Owner};

/// What an array is read as.
pub(crate) enum Rows {
    Chunk(Chunk),
    Text(Text),
    /// One Python object per row.
    Objects,
}

/// Rows of UTF-32, padded with zeros, as NumPy has text.
pub(crate) struct Text {
    chars: Lent<u32>,
    width: usize,
    row: usize,
    rows: usize,
    swapped: bool,
}

/// Rows of text that are encoded at a time.
const TEXTS: usize = 8192;

/// The rows of an array of one dimension.
pub(crate) fn rows<'py>(array: &Bound<'py, PyAny>) -> Result<Rows, Failure> {
    if array.hasattr("mask")? {
        return Err(Failure::Input("column: a masked array; expected an array, see compressed()".into()));
    }
    let interface = array.getattr("__array_interface__")?.cast_into::<PyDict>().map_err(PyErr::from)?;
    let field = |name: &str| {
        let missing = || Failure::Input(format!("column: no {name} in __array_interface__; expected an array"));
        interface.get_item(name)?.ok_or_else(missing)
    };
    let shape = field("shape")?.cast_into::<PyTuple>().map_err(PyErr::from)?;
    if shape.len() != 1 {
        let dimensions = shape.len();
        return Err(Failure::Input(format!("column: an array of {dimensions} dimensions; expected one")));
    }
    let len: usize = shape.get_item(0)?.extract()?;
    let type_name: String = field("typestr")?.extract()?;
    let (order, kind, width) = (type_name.get(..1), type_name.get(1..2), type_name.get(2..));
    if type_name.starts_with("StringDType") || kind == Some("T") {
        return Ok(Rows::Objects);
    }
    let width: usize = width.and_then(|width| width.parse().ok()).unwrap_or(0);
    // The width of text is in characters.
    let stride_of_row = if kind == Some("U") { 4 * width } else { width };
    let swapped = order == Some(if cfg!(target_endian = "little") { ">" } else { "<" }) && width > 1;
    let strides: Option<Bound<'py, PyTuple>> = match interface.get_item("strides")? {
        Some(strides) if !strides.is_none() => Some(strides.cast_into().map_err(PyErr::from)?),
        _ => None,
    };
    let stride = strides.map(|strides| strides.get_item(0)?.extract::<isize>()).transpose()?;
    let contiguous = len < 2 || stride.is_none_or(|stride| stride == stride_of_row as isize);
    match kind {
        Some("i" | "u" | "f") if swapped => {
            // In the order of this machine, and so side by side.
            let native = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
            return rows(&array.call_method1("astype", (native,))?);
        }
        Some("i" | "u" | "f" | "S" | "U") if !contiguous => return rows(&array.call_method0("copy")?),
        Some("i" | "u" | "f" | "S" | "U") => {}
        Some("O") => return Ok(Rows::Objects),
        Some("b") => return Err(no_key("an array of booleans")),
        Some("M" | "m") => return Err(no_key("an array of times")),
        _ => return Err(no_key(&format!("an array of type {type_name}"))),
    }
    let data = field("data")?.cast_into::<PyTuple>().map_err(PyErr::from)?;
    let start = data.get_item(0)?.extract::<usize>()? as *const u8;
    let owner: Owner = Arc::new(array.clone().unbind());
    let size = |width| len.checked_mul(width).ok_or_else(|| no_key(&format!("{len} rows of {width} characters")));
    // SAFETY: the array has `len` rows of this width and type side by side from there on, and lives as long as its reference. A
    // program that changes it meanwhile gets other keys, as with every library that reads arrays while others run.
    let data = unsafe {
        match (kind.unwrap_or(""), width) {
            ("i", 1) => Data::I8(Lent::new(start.cast(), 0, len, &owner)?),
            ("u", 1) => Data::U8(Lent::new(start.cast(), 0, len, &owner)?),
            ("i", 2) => Data::I16(Lent::new(start.cast(), 0, len, &owner)?),
            ("u", 2) => Data::U16(Lent::new(start.cast(), 0, len, &owner)?),
            ("i", 4) => Data::I32(Lent::new(start.cast(), 0, len, &owner)?),
            ("u", 4) => Data::U32(Lent::new(start.cast(), 0, len, &owner)?),
            ("i", 8) => Data::I64(Lent::new(start.cast(), 0, len, &owner)?),
            ("u", 8) => Data::U64(Lent::new(start.cast(), 0, len, &owner)?),
            ("f", 4) => Data::F32(Lent::new(start.cast(), 0, len, &owner)?),
            ("f", 8) => Data::F64(Lent::new(start.cast(), 0, len, &owner)?),
            ("S", width) => Data::Fixed { bytes: Lent::new(start, 0, size(width)?, &owner)?, width, padded: true },
            ("U", width) => {
                let chars = Lent::new(start.cast(), 0, size(width)?, &owner)?;
                return Ok(Rows::Text(Text { chars, width, row: 0, rows: len, swapped }));
            }
            _ => return Err(no_key(&format!("an array of type {type_name}"))),
        }
    };
    Ok(Rows::Chunk(Chunk::new(data, len)))
}

impl Text {
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The next rows as UTF-8; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        let end = self.rows.min(self.row + TEXTS);
        if self.row >= end {
            return Ok(None);
        }
        let (mut bytes, mut offsets) = (vec![], vec![0i64]);
        for row in self.row..end {
            let chars = self.chars.get(row * self.width..(row + 1) * self.width).unwrap_or(&[]);
            let len = chars.iter().rposition(|&char| char != 0).map_or(0, |last| last + 1);
            for &char in &chars[..len] {
                let char = if self.swapped { char.swap_bytes() } else { char };
                let char = char::from_u32(char).ok_or_else(|| {
                    Failure::Input(format!("keys row {row}: character {char:#x} has no UTF-8; expected text"))
                })?;
                bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            }
            offsets.push(bytes.len() as i64);
        }
        let len = end - self.row;
        self.row = end;
        Ok(Some(Chunk::new(Data::Bytes64(Lent::Own(offsets), Lent::Own(bytes)), len)))
    }
}
