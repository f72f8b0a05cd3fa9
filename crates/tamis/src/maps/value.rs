//! a number, text or bytes -> the value of a key.

use std::borrow::Cow;

/// Value of a key: a number, or bytes that are stored in the map.
///
/// ```
/// use tamis::maps::Value;
/// let map = tamis::map([("ann", 3u64)]).finish()?;
/// assert_eq!(map.get("ann")?.and_then(|value| value.as_u64()), Some(3));
/// assert_eq!(map.get("ann")?, Some(3.into()));
/// assert_eq!(Value::from("red").to_string(), "red");
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Value<'a> {
    /// An unsigned integer.
    Number(u64),
    /// Text or other bytes.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Returns the number; `None` if the value is bytes.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::Number(number) => Some(number),
            Value::Bytes(_) => None,
        }
    }

    /// Returns the bytes; `None` if the value is a number.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match *self {
            Value::Number(_) => None,
            Value::Bytes(bytes) => Some(bytes),
        }
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::Number(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Bytes(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Value::Bytes(bytes)
    }
}

/// As they are written in Rust: `Number(3)`, `Bytes(b"red")`.
impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Number(number) => write!(f, "Number({number})"),
            Value::Bytes(bytes) => write!(f, "Bytes(b\"{}\")", bytes.escape_ascii()),
        }
    }
}

/// Text as it is, other bytes as an escaped string, numbers in decimal.
impl std::fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => f.write_str(text),
                Err(_) => bytes.escape_ascii().fmt(f),
            },
        }
    }
}

/// Type whose values can be those of keys: unsigned integers, `bool`, text and bytes, owned or borrowed.
///
/// ```
/// use tamis::maps::{ToValue, Value};
/// assert_eq!(7u8.to_value(), Value::Number(7));
/// assert_eq!("seven".to_value(), Value::Bytes(b"seven"));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no value of a map",
    label = "expected an unsigned integer, a `bool`, text or bytes",
    note = "a literal such as `1` is an `i32` unless it says `1u64`; for a number below zero or a float use its bits"
)]
pub trait ToValue {
    /// Returns the value.
    fn to_value(&self) -> Value<'_>;
}

macro_rules! number {
    ($($type:ty),*) => { $(
        impl ToValue for $type {
            #[inline]
            fn to_value(&self) -> Value<'_> {
                Value::Number(*self as u64)
            }
        }
    )* };
}
number!(bool, u8, u16, u32, u64, usize);

macro_rules! bytes {
    ($($type:ty),*) => { $(
        impl ToValue for $type {
            #[inline]
            fn to_value(&self) -> Value<'_> {
                Value::Bytes(self.as_ref())
            }
        }
    )* };
}
bytes!(str, String, [u8], Vec<u8>);

impl<const N: usize> ToValue for [u8; N] {
    fn to_value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl ToValue for Value<'_> {
    fn to_value(&self) -> Value<'_> {
        *self
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    #[inline]
    fn to_value(&self) -> Value<'_> {
        (**self).to_value()
    }
}

impl<T: ToValue + ToOwned + ?Sized> ToValue for Cow<'_, T> {
    fn to_value(&self) -> Value<'_> {
        self.as_ref().to_value()
    }
}
