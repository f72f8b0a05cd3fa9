//! rows of a column side by side in memory -> keys, values or weights, without an object for each.

use tamis::{Digest, Hasher, Key, KeyType};

use crate::error::Failure;
use crate::memory::Lent;

/// An integer of -2^63 to 2^64 - 1: bits, and whether they are those of a negative `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Int {
    pub(crate) bits: u64,
    pub(crate) negative: bool,
}

impl From<i64> for Int {
    fn from(number: i64) -> Int {
        Int { bits: number as u64, negative: number < 0 }
    }
}

impl From<u64> for Int {
    fn from(bits: u64) -> Int {
        Int { bits, negative: false }
    }
}

impl Key for Int {
    const KEY_TYPE: KeyType = KeyType::Integer;

    fn digest(&self, hasher: &Hasher) -> Digest {
        if self.negative { hasher.integer(self.bits as i64) } else { hasher.integer(self.bits) }
    }
}

/// One row.
pub(crate) enum Item<'a> {
    Null,
    Integer(Int),
    Float(f64),
    Bytes(&'a [u8]),
}

/// Takes the keys of a column, many at a time; `at` is the row of the first.
pub(crate) trait Take {
    fn take<K: Key>(&mut self, at: usize, keys: &[K]) -> Result<(), Failure>;
}

pub(crate) enum Data {
    Null,
    I8(Lent<i8>),
    U8(Lent<u8>),
    I16(Lent<i16>),
    U16(Lent<u16>),
    I32(Lent<i32>),
    U32(Lent<u32>),
    I64(Lent<i64>),
    U64(Lent<u64>),
    /// Python's integers, some negative and some above 2^63.
    Integers(Vec<Int>),
    F32(Lent<f32>),
    F64(Lent<f64>),
    /// Row `i` is the bytes between two offsets.
    Bytes32(Lent<i32>, Lent<u8>),
    Bytes64(Lent<i64>, Lent<u8>),
    /// A length, and 12 bytes or a prefix, a buffer and an offset, in each of them.
    Views(Lent<u128>, Vec<Lent<u8>>),
    /// Of one width; NumPy pads with zeros, which are no part of a key.
    Fixed {
        bytes: Lent<u8>,
        width: usize,
        padded: bool,
    },
    /// Positions in a second chunk.
    Dictionary(Box<Chunk>, Box<Chunk>),
}

/// Rows of a column.
pub(crate) struct Chunk {
    pub(crate) len: usize,
    /// Which rows are there; all if there are none of these bits.
    pub(crate) valid: Option<Valid>,
    pub(crate) data: Data,
}

/// A bit for each row, the first row after so many others.
pub(crate) struct Valid {
    pub(crate) bits: Lent<u8>,
    pub(crate) from: usize,
}

impl Valid {
    pub(crate) fn of(len: usize, has: impl Fn(usize) -> bool) -> Valid {
        let mut bits = vec![0; len.div_ceil(8)];
        (0..len).filter(|&row| has(row)).for_each(|row| bits[row / 8] |= 1 << (row % 8));
        Valid { bits: Lent::Own(bits), from: 0 }
    }

    #[inline(always)]
    pub(crate) fn has(&self, row: usize) -> bool {
        let at = self.from + row;
        self.bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    }
}

/// Rows that are handed on together.
const BLOCK: usize = 1024;

fn damaged() -> Failure {
    Failure::Input("column: offsets out of range; expected a valid Arrow array".into())
}

/// The bytes of a row between two offsets.
#[inline(always)]
fn between<'a, O: Copy + TryInto<usize>>(offsets: &[O], data: &'a [u8], row: usize) -> Option<&'a [u8]> {
    let &[start, end] = offsets.get(row..row + 2)? else { return None };
    data.get(start.try_into().ok()?..end.try_into().ok()?)
}

/// The bytes of a view: up to 12 are in it.
#[inline(always)]
fn viewed<'a>(views: &'a [u128], buffers: &'a [Lent<u8>], row: usize) -> Option<&'a [u8]> {
    let view = views.get(row)?;
    let len = *view as u32 as usize;
    if len <= 12 {
        return inline(view).get(..len);
    }
    let start = (view >> 96) as usize;
    buffers.get((view >> 64) as u32 as usize)?.get(start..start.checked_add(len)?)
}

/// The 12 bytes of a view after its length.
#[allow(unsafe_code)]
fn inline(view: &u128) -> &[u8] {
    // SAFETY: the 16 bytes of the number, whose lifetime is that of the reference.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(view).cast::<u8>(), 16) };
    &bytes[4..]
}

#[inline(always)]
fn fixed(bytes: &[u8], width: usize, padded: bool, row: usize) -> Option<&[u8]> {
    let key = bytes.get(row * width..(row + 1) * width)?;
    let len = if padded { key.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1) } else { width };
    key.get(..len)
}

impl Chunk {
    pub(crate) fn new(data: Data, len: usize) -> Chunk {
        Chunk { len, valid: None, data }
    }

    /// Whether a row has no key.
    #[inline]
    pub(crate) fn is_null(&self, row: usize) -> bool {
        match (&self.valid, &self.data) {
            (Some(valid), _) if !valid.has(row) => true,
            (_, Data::Null) => true,
            (_, Data::Dictionary(indices, values)) => {
                indices.position(row).is_some_and(|at| at < values.len && values.is_null(at))
            }
            _ => false,
        }
    }

    /// Whether some row may have no key.
    pub(crate) fn may_have_nulls(&self) -> bool {
        match &self.data {
            Data::Null => self.len > 0,
            Data::Dictionary(_, values) => self.valid.is_some() || values.may_have_nulls(),
            _ => self.valid.is_some(),
        }
    }

    /// The first row without a key.
    pub(crate) fn first_null(&self) -> Option<usize> {
        if self.may_have_nulls() { (0..self.len).find(|&row| self.is_null(row)) } else { None }
    }

    /// The key type; none of floats and of nothing.
    pub(crate) fn key_type(&self) -> Option<KeyType> {
        match &self.data {
            Data::Null | Data::F32(_) | Data::F64(_) => None,
            Data::Bytes32(..) | Data::Bytes64(..) | Data::Views(..) | Data::Fixed { .. } => Some(KeyType::Bytes),
            Data::Dictionary(_, values) => values.key_type(),
            _ => Some(KeyType::Integer),
        }
    }

    /// The position that a row of a dictionary names.
    fn position(&self, row: usize) -> Option<usize> {
        match self.get(row).ok()? {
            Item::Integer(Int { bits, negative: false }) => bits.try_into().ok(),
            _ => None,
        }
    }

    /// One row.
    pub(crate) fn get(&self, row: usize) -> Result<Item<'_>, Failure> {
        if row >= self.len {
            return Err(damaged());
        }
        if self.valid.as_ref().is_some_and(|valid| !valid.has(row)) {
            return Ok(Item::Null);
        }
        let item = match &self.data {
            Data::Null => Some(Item::Null),
            Data::I8(numbers) => numbers.get(row).map(|&n| Item::Integer(i64::from(n).into())),
            Data::U8(numbers) => numbers.get(row).map(|&n| Item::Integer(u64::from(n).into())),
            Data::I16(numbers) => numbers.get(row).map(|&n| Item::Integer(i64::from(n).into())),
            Data::U16(numbers) => numbers.get(row).map(|&n| Item::Integer(u64::from(n).into())),
            Data::I32(numbers) => numbers.get(row).map(|&n| Item::Integer(i64::from(n).into())),
            Data::U32(numbers) => numbers.get(row).map(|&n| Item::Integer(u64::from(n).into())),
            Data::I64(numbers) => numbers.get(row).map(|&n| Item::Integer(n.into())),
            Data::U64(numbers) => numbers.get(row).map(|&n| Item::Integer(n.into())),
            Data::Integers(numbers) => numbers.get(row).map(|&n| Item::Integer(n)),
            Data::F32(numbers) => numbers.get(row).map(|&n| Item::Float(n.into())),
            Data::F64(numbers) => numbers.get(row).map(|&n| Item::Float(n)),
            Data::Bytes32(offsets, data) => between(offsets, data, row).map(Item::Bytes),
            Data::Bytes64(offsets, data) => between(offsets, data, row).map(Item::Bytes),
            Data::Views(views, buffers) => viewed(views, buffers, row).map(Item::Bytes),
            Data::Fixed { bytes, width, padded } => fixed(bytes, *width, *padded, row).map(Item::Bytes),
            Data::Dictionary(indices, values) => {
                return values.get(indices.position(row).ok_or_else(damaged)?);
            }
        };
        item.ok_or_else(damaged)
    }

    /// Hands all keys to `take`; the first is that of row `at`. A row without a key has some key.
    pub(crate) fn each(&self, at: usize, take: &mut impl Take) -> Result<(), Failure> {
        match &self.data {
            Data::U64(keys) => take.take(at, keys),
            Data::I64(keys) => take.take(at, keys),
            Data::Integers(keys) => take.take(at, keys),
            Data::I8(keys) => widened(keys, at, take, |&key| i64::from(key)),
            Data::U8(keys) => widened(keys, at, take, |&key| u64::from(key)),
            Data::I16(keys) => widened(keys, at, take, |&key| i64::from(key)),
            Data::U16(keys) => widened(keys, at, take, |&key| u64::from(key)),
            Data::I32(keys) => widened(keys, at, take, |&key| i64::from(key)),
            Data::U32(keys) => widened(keys, at, take, |&key| u64::from(key)),
            Data::Bytes32(offsets, data) => self.texts(at, take, |row| between(offsets, data, row)),
            Data::Bytes64(offsets, data) => self.texts(at, take, |row| between(offsets, data, row)),
            Data::Views(views, buffers) => self.texts(at, take, |row| viewed(views, buffers, row)),
            Data::Fixed { bytes, width, padded } => self.texts(at, take, |row| fixed(bytes, *width, *padded, row)),
            Data::Dictionary(indices, values) if values.key_type() == Some(KeyType::Bytes) => {
                self.texts(at, take, |row| match values.get(indices.position(row)?).ok()? {
                    Item::Bytes(key) => Some(key),
                    _ => None,
                })
            }
            Data::Dictionary(_, values) if values.key_type() == Some(KeyType::Integer) => self.integers(at, take),
            // Nothing but missing keys, which callers look for before.
            Data::Null if self.len == 0 => Ok(()),
            Data::Null => Err(damaged()),
            Data::Dictionary(_, values) if matches!(values.data, Data::Null) => match self.len {
                0 => Ok(()),
                _ => Err(damaged()),
            },
            Data::F32(_) | Data::F64(_) | Data::Dictionary(..) => Err(no_key("floating-point numbers")),
        }
    }

    fn texts<'a>(
        &'a self,
        at: usize,
        take: &mut impl Take,
        text: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Result<(), Failure> {
        let nulls = self.may_have_nulls();
        let mut keys: Vec<&[u8]> = Vec::with_capacity(BLOCK.min(self.len));
        for start in (0..self.len).step_by(BLOCK) {
            keys.clear();
            for row in start..self.len.min(start + BLOCK) {
                match text(row) {
                    Some(key) => keys.push(key),
                    None if nulls && self.is_null(row) => keys.push(&[]),
                    None => return Err(damaged()),
                }
            }
            take.take(at + start, &keys)?;
        }
        Ok(())
    }

    fn integers(&self, at: usize, take: &mut impl Take) -> Result<(), Failure> {
        let mut keys: Vec<Int> = Vec::with_capacity(BLOCK.min(self.len));
        for start in (0..self.len).step_by(BLOCK) {
            keys.clear();
            for row in start..self.len.min(start + BLOCK) {
                match self.get(row)? {
                    Item::Integer(key) => keys.push(key),
                    _ => keys.push(0u64.into()),
                }
            }
            take.take(at + start, &keys)?;
        }
        Ok(())
    }
}

pub(crate) fn no_key(what: &str) -> Failure {
    Failure::KeyType(format!("keys: {what}; expected text, bytes or integers"))
}

fn widened<S, K: Key>(keys: &[S], at: usize, take: &mut impl Take, wide: impl Fn(&S) -> K) -> Result<(), Failure> {
    let mut block = Vec::with_capacity(BLOCK.min(keys.len()));
    for (start, keys) in (at..).step_by(BLOCK).zip(keys.chunks(BLOCK)) {
        block.clear();
        block.extend(keys.iter().map(&wide));
        take.take(start, &block)?;
    }
    Ok(())
}
