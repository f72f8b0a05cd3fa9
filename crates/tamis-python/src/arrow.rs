//! `__arrow_c_array__`, `__arrow_c_stream__` -> chunks: the C data interface of Arrow, read in place.
//!
//! The structures are those of <https://arrow.apache.org/docs/format/CDataInterface.html>. A producer promises that its pointers
//! are right; offsets within its buffers are checked all the same, row by row.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::chunk::{Chunk, Data, Valid};
use crate::error::Failure;
use crate::memory::{Lent, Owner};

#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct RawStream {
    get_schema: Option<unsafe extern "C" fn(*mut RawStream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut RawStream, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut RawStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut RawStream)>,
    private_data: *mut c_void,
}

macro_rules! released {
    ($($type:ty),*) => {$(
        impl Drop for $type {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: it was not released yet, and this is its only owner. It may be called in any thread.
                    unsafe { release(self) };
                }
            }
        }

        // SAFETY: what a producer hands over is moved between threads and read by several; it is written by none.
        unsafe impl Send for $type {}
        // SAFETY: as above.
        unsafe impl Sync for $type {}
    )*};
}
released!(Schema, Array, RawStream);

/// Moves a structure out of its capsule, which then releases nothing. `take` says whether there was one.
fn take<T>(capsule: &Bound<'_, PyAny>, name: &CStr, take: impl Fn(&mut T) -> bool) -> Result<T, Failure> {
    let wrong = |found: &str| Failure::Input(format!("column: {found}; expected a capsule named {name:?}"));
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| wrong("an Arrow method that returned no capsule"))?;
    let start = capsule.pointer_checked(Some(name)).map_err(|_| wrong("a capsule of another name"))?.cast::<T>();
    // SAFETY: a capsule of this name holds this structure, by the rules of the interface, and nothing else reads it while Python's
    // lock is held. The copy is the only owner once `take` has removed `release`.
    unsafe {
        let moved = start.as_ptr().read();
        if take(&mut *start.as_ptr()) {
            return Ok(moved);
        }
    }
    Err(Failure::Input("column: an Arrow capsule that was read before; expected a new one".into()))
}

fn take_schema(capsule: &Bound<'_, PyAny>) -> Result<Schema, Failure> {
    take::<Schema>(capsule, c"arrow_schema", |schema| schema.release.take().is_some())
}

/// The column of an object with `__arrow_c_array__`.
pub(crate) fn array(object: &Bound<'_, PyAny>) -> Result<Chunk, Failure> {
    let pair = object.call_method0("__arrow_c_array__")?;
    let Ok((schema, array)) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
        return Err(Failure::Input("column: __arrow_c_array__ returned no pair; expected two capsules".into()));
    };
    let schema = take_schema(&schema)?;
    let array = take::<Array>(&array, c"arrow_array", |array| array.release.take().is_some())?;
    column(&schema, array)
}

/// The columns of an object with `__arrow_c_stream__`, one after the other.
pub(crate) struct Stream {
    schema: Schema,
    raw: RawStream,
}

impl Stream {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Result<Stream, Failure> {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        let mut raw = take::<RawStream>(&capsule, c"arrow_array_stream", |stream| stream.release.take().is_some())?;
        let mut schema = none_schema();
        let get = raw.get_schema.ok_or_else(broken)?;
        // SAFETY: the stream is not released, and the schema is written before it is read.
        let status = unsafe { get(&mut raw, &mut schema) };
        raw.check(status)?;
        if schema.release.is_none() {
            return Err(broken());
        }
        // What a column may not be is said before the first rows are computed.
        column(&schema, none_array())?;
        Ok(Stream { schema, raw })
    }

    /// The next rows; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        let get = self.raw.get_next.ok_or_else(broken)?;
        let mut array = none_array();
        // SAFETY: the stream is not released, and the array is written before it is read.
        let status = unsafe { get(&mut self.raw, &mut array) };
        self.raw.check(status)?;
        if array.release.is_none() { Ok(None) } else { column(&self.schema, array).map(Some) }
    }
}

impl RawStream {
    fn check(&mut self, status: c_int) -> Result<(), Failure> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the stream is not released, and the text lives until its next call.
        let text = unsafe {
            let text = self.get_last_error.map_or(std::ptr::null(), |get| get(self));
            if text.is_null() { "no reason given".into() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
        };
        Err(Failure::Input(format!("column: its stream failed: {text}")))
    }
}

fn none_schema() -> Schema {
    let null = std::ptr::null_mut();
    Schema {
        format: c"n".as_ptr(),
        name: std::ptr::null(),
        metadata: std::ptr::null(),
        flags: 0,
        n_children: 0,
        children: std::ptr::null_mut(),
        dictionary: std::ptr::null_mut(),
        release: None,
        private_data: null,
    }
}

fn none_array() -> Array {
    Array {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: std::ptr::null_mut(),
        children: std::ptr::null_mut(),
        dictionary: std::ptr::null_mut(),
        release: None,
        private_data: std::ptr::null_mut(),
    }
}

fn broken() -> Failure {
    Failure::Input("column: an Arrow structure without a part that it must have; expected a valid one".into())
}

/// A column, or a table of one column.
fn column(schema: &Schema, array: Array) -> Result<Chunk, Failure> {
    let array = Arc::new(array);
    let owner: Owner = array.clone();
    let whole = Rows { array: &array, offset: size(array.offset)?, len: size(array.length)?, owner: &owner };
    if schema.format()? != b"+s" {
        return whole.chunk(schema);
    }
    if schema.n_children != 1 {
        let columns = schema.n_children;
        return Err(Failure::Input(format!("column: a table of {columns} columns; expected one column")));
    }
    let child = schema.child()?;
    if array.release.is_none() {
        return whole.chunk(child);
    }
    if array.n_children != 1 || array.children.is_null() {
        return Err(broken());
    }
    // SAFETY: there is one child, and it lives as long as its parent.
    let child_array = unsafe { (*array.children).as_ref() }.ok_or_else(broken)?;
    let rows = whole.offset.checked_add(whole.len).ok_or_else(broken)?;
    if child_array.release.is_none() || size(child_array.length)? < rows {
        return Err(broken());
    }
    let offset = size(child_array.offset)?.checked_add(whole.offset).ok_or_else(broken)?;
    let mut chunk = Rows { array: child_array, offset, len: whole.len, owner: &owner }.chunk(child)?;
    if let Some(parent) = whole.valid()? {
        // A row that is missing has whatever key its column has.
        chunk.valid = Some(match &chunk.valid {
            None => parent,
            Some(own) => Valid::of(whole.len, |row| parent.has(row) && own.has(row)),
        });
    }
    Ok(chunk)
}

impl Schema {
    fn format(&self) -> Result<&[u8], Failure> {
        if self.format.is_null() {
            return Err(broken());
        }
        // SAFETY: it is a text that ends with a zero, and lives as long as the schema.
        Ok(unsafe { CStr::from_ptr(self.format) }.to_bytes())
    }

    fn child(&self) -> Result<&Schema, Failure> {
        if self.children.is_null() {
            return Err(broken());
        }
        // SAFETY: there is at least one child, which lives as long as its parent.
        unsafe { (*self.children).as_ref() }.ok_or_else(broken)
    }
}

fn size(number: i64) -> Result<usize, Failure> {
    usize::try_from(number).map_err(|_| broken())
}

/// Some rows of an array.
struct Rows<'a> {
    array: &'a Array,
    offset: usize,
    len: usize,
    owner: &'a Owner,
}

impl Rows<'_> {
    /// A buffer; null where there are no rows.
    fn buffer(&self, number: usize) -> Result<*const c_void, Failure> {
        if self.array.release.is_none() && self.len == 0 {
            return Ok(std::ptr::null());
        }
        if number >= size(self.array.n_buffers)? || self.array.buffers.is_null() {
            return if self.len == 0 { Ok(std::ptr::null()) } else { Err(broken()) };
        }
        // SAFETY: there are so many.
        Ok(unsafe { *self.array.buffers.add(number) })
    }

    /// `len` values of a buffer from a position on.
    fn lent<T: Copy>(&self, number: usize, from: usize, len: usize) -> Result<Lent<T>, Failure> {
        let start = self.buffer(number)?.cast::<T>();
        if start.is_null() {
            return if len == 0 || self.len == 0 { Ok(Lent::Own(vec![])) } else { Err(broken()) };
        }
        // SAFETY: the buffer holds a value for each row up to the last, by the rules of the interface.
        unsafe { Lent::new(start, from, len, self.owner) }
    }

    /// Which rows are there; none if all are.
    fn valid(&self) -> Result<Option<Valid>, Failure> {
        if self.len == 0 || self.array.null_count == 0 || self.buffer(0)?.is_null() {
            return Ok(None);
        }
        let bits = self.offset.checked_add(self.len).ok_or_else(broken)?;
        Ok(Some(Valid { bits: self.lent(0, 0, bits.div_ceil(8))?, from: self.offset }))
    }

    /// A value for each row.
    fn values<T: Copy>(&self) -> Result<Lent<T>, Failure> {
        self.lent(1, self.offset, self.len)
    }

    fn offsets<T: Copy + TryInto<usize>>(&self) -> Result<(Lent<T>, Lent<u8>), Failure> {
        let offsets: Lent<T> = self.lent(1, self.offset, if self.len == 0 { 0 } else { self.len + 1 })?;
        let end = offsets.last().map_or(Ok(0), |&end| end.try_into()).map_err(|_| broken())?;
        let bytes = if end == 0 { Lent::Own(vec![]) } else { self.lent(2, 0, end)? };
        Ok((offsets, bytes))
    }

    fn views(&self) -> Result<Data, Failure> {
        let views = self.values()?;
        let count = size(self.array.n_buffers)?.saturating_sub(3);
        if self.len == 0 {
            return Ok(Data::Views(views, vec![]));
        }
        let sizes: Lent<i64> = if count == 0 { Lent::Own(vec![]) } else { self.lent(count + 2, 0, count)? };
        let buffers = sizes.iter().enumerate().map(|(i, &len)| self.lent(i + 2, 0, size(len)?));
        Ok(Data::Views(views, buffers.collect::<Result<_, _>>()?))
    }

    fn chunk(&self, schema: &Schema) -> Result<Chunk, Failure> {
        let format = schema.format()?;
        let data = match format {
            b"n" => Data::Null,
            b"c" => Data::I8(self.values()?),
            b"C" => Data::U8(self.values()?),
            b"s" => Data::I16(self.values()?),
            b"S" => Data::U16(self.values()?),
            b"i" => Data::I32(self.values()?),
            b"I" => Data::U32(self.values()?),
            b"l" => Data::I64(self.values()?),
            b"L" => Data::U64(self.values()?),
            b"f" => Data::F32(self.values()?),
            b"g" => Data::F64(self.values()?),
            b"u" | b"z" => self.offsets().map(|(offsets, bytes)| Data::Bytes32(offsets, bytes))?,
            b"U" | b"Z" => self.offsets().map(|(offsets, bytes)| Data::Bytes64(offsets, bytes))?,
            b"vu" | b"vz" => self.views()?,
            [b'w', b':', width @ ..] => {
                let width = str::from_utf8(width).ok().and_then(|width| width.parse::<usize>().ok());
                let width = width.ok_or_else(broken)?;
                let end = self.len.checked_mul(width).ok_or_else(broken)?;
                let from = self.offset.checked_mul(width).ok_or_else(broken)?;
                Data::Fixed { bytes: self.lent(1, from, end)?, width, padded: false }
            }
            other => {
                let format = String::from_utf8_lossy(other);
                return Err(Failure::KeyType(format!(
                    "column: Arrow type {format:?}; expected strings, binary, integers or dictionaries of them"
                )));
            }
        };
        let valid = if matches!(data, Data::Null) { None } else { self.valid()? };
        if schema.dictionary.is_null() {
            return Ok(Chunk { len: self.len, valid, data });
        }
        // SAFETY: both live as long as their parents.
        let (values, named) = unsafe { (self.array.dictionary.as_ref(), schema.dictionary.as_ref()) };
        let named = named.ok_or_else(broken)?;
        if !named.dictionary.is_null() {
            return Err(Failure::KeyType("column: a dictionary of dictionaries; expected one of strings".into()));
        }
        let values = match values {
            Some(array) if array.release.is_none() => return Err(broken()),
            Some(array) => {
                let (offset, len) = (size(array.offset)?, size(array.length)?);
                Rows { array, offset, len, owner: self.owner }.chunk(named)?
            }
            None if self.len == 0 => {
                Rows { array: &none_array(), offset: 0, len: 0, owner: self.owner }.chunk(named)?
            }
            None => return Err(broken()),
        };
        let indices = Chunk { len: self.len, valid: None, data };
        Ok(Chunk { len: self.len, valid, data: Data::Dictionary(Box::new(indices), Box::new(values)) })
    }
}
