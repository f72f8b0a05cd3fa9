//! `Filter`, `Map`, `Sequence`, `Sets` -> serde's data model and back: the bytes of the file, as base64 in formats that people read.
//!
//! What comes in is opened and verified, as `open` does it. Serde has no place for a secret: a value whose secret is kept outside is written as
//! any other, and reading it is an error that says so; take its bytes and `open_with_secret`.
//! One visitor takes both forms: serde holds a flattened or untagged
//! value in a buffer of its own, which calls itself human-readable whatever the format was.

use std::fmt;

use base64::display::Base64Display;
use base64::engine::{Engine, general_purpose::STANDARD};
use serde_core::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::error::FormatError;

/// Opens a `T` from either form of its bytes.
struct Visitor<T> {
    name: &'static str,
    open: fn(Vec<u8>) -> Result<T, FormatError>,
}

impl<T> de::Visitor<'_> for Visitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of a tamis {}, or their base64", self.name)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        match STANDARD.decode(text) {
            Ok(bytes) => self.visit_byte_buf(bytes),
            Err(error) => Err(E::custom(format_args!("{}: not base64: {error}", self.name))),
        }
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<T, E> {
        self.visit_byte_buf(bytes.to_vec())
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<T, E> {
        (self.open)(bytes).map_err(|error| E::custom(format_args!("{}: {error}", self.name)))
    }
}

macro_rules! impl_serde {
    ($($type:ty, $name:literal;)+) => {$(
        /// Writes the bytes, or base64 of them (standard alphabet, padded) where the format is human-readable.
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match to.is_human_readable() {
                    true => to.collect_str(&Base64Display::new(self.as_bytes(), &STANDARD)),
                    false => to.serialize_bytes(self.as_bytes()),
                }
            }
        }

        /// Opens and verifies the bytes. The error has the message of the [`FormatError`](crate::FormatError). Bytes whose secret is kept outside are
        /// an error: store [`as_bytes`](Self::as_bytes) of such a value, and read it by [`open_with_secret`](Self::open_with_secret).
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let visitor = Visitor { name: $name, open: |bytes| <$type>::open(bytes) };
                match from.is_human_readable() {
                    true => from.deserialize_str(visitor),
                    false => from.deserialize_byte_buf(visitor),
                }
            }
        }
    )+};
}

impl_serde! { crate::filter::query::Filter, "filter"; }
#[cfg(feature = "maps")]
impl_serde! { crate::maps::Map, "map"; crate::maps::Sequence, "sequence"; }
#[cfg(feature = "sets")]
impl_serde! { crate::sets::Sets, "set index"; }
