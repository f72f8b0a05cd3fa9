//! text, bytes, integers, several fields -> keys: what can be hashed, and how.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use super::{Digest, Hasher, KeyType};
use crate::debug::brief_debug;

/// Hash of a key of several fields: see [`Hasher::fields`].
///
/// A field of bytes is written as 0, its length as 8 bytes and its bytes; an integer as 1 and 8 bytes or, below zero, as 2 and the 8
/// bytes of its complement. Numbers are little-endian. The digest is that of what was written.
#[must_use = "a digest comes from `finish`"]
pub struct Fields<'a> {
    pub(super) hasher: &'a Hasher,
    pub(super) bytes: Vec<u8>,
}

brief_debug!(Fields<'a>, it => bytes: it.bytes.len());

impl Fields<'_> {
    /// Adds a field of text or bytes.
    pub fn bytes(mut self, field: impl AsRef<[u8]>) -> Self {
        let field = field.as_ref();
        self.bytes.push(0);
        self.bytes.extend((field.len() as u64).to_le_bytes());
        self.bytes.extend(field);
        self
    }

    /// Adds an integer.
    pub fn integer(mut self, field: impl Integer) -> Self {
        let (tag, word) = match field.sign_and_magnitude() {
            Ok(word) => (1, word),
            Err(negative) => (2, !negative as u64),
        };
        self.bytes.push(tag);
        self.bytes.extend(word.to_le_bytes());
        self
    }

    /// Returns the digest of all fields.
    pub fn finish(self) -> Digest {
        self.hasher.bytes(&self.bytes)
    }
}

/// A key that filters, maps and set indexes store or are queried with: text, bytes and integers, owned or borrowed.
///
/// Text is its UTF-8 bytes. All integers are of one key type: a filter of `u64` keys can be queried with an `i32`.
///
/// ```
/// use tamis::{Hasher, Key};
/// let hasher = Hasher::seeded(0);
/// assert_eq!("abc".digest(&hasher), b"abc".digest(&hasher));
/// assert_eq!(5i32.digest(&hasher), 5u64.digest(&hasher));
/// assert_ne!(1.digest(&hasher), "1".digest(&hasher));
/// ```
///
/// A type of one's own has the digest of what makes it a key. One field is hashed by [`Hasher::bytes`] or its own [`digest`](Key::digest), several by
/// [`Hasher::fields`].
///
/// ```
/// use tamis::{Digest, Hasher, Key, KeyType};
///
/// struct Host(String);
///
/// impl Key for Host {
///     const KEY_TYPE: KeyType = KeyType::Bytes;
///     fn digest(&self, hasher: &Hasher) -> Digest {
///         hasher.bytes(self.0.to_ascii_lowercase().as_bytes())
///     }
/// }
///
/// let filter = tamis::build([Host("Ads.example".into())]).finish()?;
/// assert!(filter.contains("ads.example")?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key",
    label = "expected text, bytes, an integer of at most 64 bits or a type that implements `tamis::Key`",
    note = "for a `char` use its text, for a `bool` or an enum an integer, for a float its bits, for several fields `Hasher::fields`"
)]
pub trait Key {
    /// The key type of all keys of this type.
    const KEY_TYPE: KeyType;
    /// Returns the digest of this key.
    fn digest(&self, hasher: &Hasher) -> Digest;
    /// Returns the digest of this key where `hasher` is known to be [`Hasher::seeded`].
    #[doc(hidden)]
    #[inline(always)]
    fn seeded_digest(&self, hasher: &Hasher) -> Digest {
        self.digest(hasher)
    }
}

/// An integer of at most 64 bits.
pub trait Integer: Key + sealed::Sealed {
    /// The integer, or one below zero as an error.
    #[doc(hidden)]
    fn sign_and_magnitude(self) -> Result<u64, i64>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! integers {
    ($($unsigned:ident $signed:ident),*) => { $(
        impl sealed::Sealed for $unsigned {}
        impl sealed::Sealed for $signed {}

        impl Integer for $unsigned {
            fn sign_and_magnitude(self) -> Result<u64, i64> {
                Ok(self as u64)
            }
        }

        impl Integer for $signed {
            fn sign_and_magnitude(self) -> Result<u64, i64> {
                if self < 0 { Err(self as i64) } else { Ok(self as u64) }
            }
        }

        impl Key for $unsigned {
            const KEY_TYPE: KeyType = KeyType::Integer;
            #[inline(always)]
            fn digest(&self, hasher: &Hasher) -> Digest {
                hasher.u64(*self as u64)
            }
            #[inline(always)]
            fn seeded_digest(&self, hasher: &Hasher) -> Digest {
                hasher.seeded_integer(*self as u64)
            }
        }

        impl Key for $signed {
            const KEY_TYPE: KeyType = KeyType::Integer;
            #[inline]
            fn digest(&self, hasher: &Hasher) -> Digest {
                if *self < 0 { hasher.negative(*self as i64) } else { hasher.u64(*self as u64) }
            }
            #[inline]
            fn seeded_digest(&self, hasher: &Hasher) -> Digest {
                if *self < 0 { hasher.negative(*self as i64) } else { hasher.seeded_integer(*self as u64) }
            }
        }
    )* };
}
integers!(u8 i8, u16 i16, u32 i32, u64 i64, usize isize);

impl Key for Digest {
    const KEY_TYPE: KeyType = KeyType::Digest;
    #[inline]
    fn digest(&self, hasher: &Hasher) -> Digest {
        match hasher.is_secret() {
            true => hasher.sip(&self.to_bits().to_le_bytes()),
            false => hasher.mix(*self),
        }
    }
}

macro_rules! key_as_bytes {
    ($($type:ty),*) => { $(
        impl Key for $type {
            const KEY_TYPE: KeyType = KeyType::Bytes;
            #[inline]
            fn digest(&self, hasher: &Hasher) -> Digest {
                hasher.bytes(self.as_ref())
            }
        }
    )* };
}
key_as_bytes!(str, String, [u8], Vec<u8>, bytes::Bytes);

impl<const N: usize> Key for [u8; N] {
    const KEY_TYPE: KeyType = KeyType::Bytes;
    #[inline]
    fn digest(&self, hasher: &Hasher) -> Digest {
        hasher.bytes(self)
    }
}

impl<T: Key + ToOwned + ?Sized> Key for Cow<'_, T> {
    const KEY_TYPE: KeyType = T::KEY_TYPE;
    #[inline]
    fn digest(&self, hasher: &Hasher) -> Digest {
        self.as_ref().digest(hasher)
    }
}

macro_rules! key_behind_pointer {
    ($($pointer:ty),*) => { $(
        impl<T: Key + ?Sized> Key for $pointer {
            const KEY_TYPE: KeyType = T::KEY_TYPE;
            #[inline(always)]
            fn digest(&self, hasher: &Hasher) -> Digest {
                (**self).digest(hasher)
            }
            #[inline(always)]
            fn seeded_digest(&self, hasher: &Hasher) -> Digest {
                (**self).seeded_digest(hasher)
            }
        }
    )* };
}
key_behind_pointer!(&T, Box<T>, Rc<T>, Arc<T>);
