//! text, bytes, integers, several fields -> keys: what can be hashed, and how.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
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

/// A key that filters, maps and set indexes store or are queried with: text, bytes, integers and addresses, owned or borrowed.
///
/// Text is its UTF-8 bytes. All integers of at most 64 bits are of one key type: a filter of `u64` keys can be queried with an `i32`.
///
/// ```
/// use tamis::{Hasher, Key};
/// let hasher = Hasher::seeded(0);
/// assert_eq!("abc".digest(&hasher), b"abc".digest(&hasher));
/// assert_eq!(5i32.digest(&hasher), 5u64.digest(&hasher));
/// assert_ne!(1.digest(&hasher), "1".digest(&hasher));
/// ```
///
/// An address is its bytes in network order, four or sixteen, and a `u128`, such as a UUID, its sixteen bytes, the highest first. So
/// `IpAddr::V4` is the key that `Ipv4Addr` is, and an IPv4 address that is written as IPv6 (`::ffff:192.0.2.1`) is another. None
/// of them is the key of its text, nor a `u128` that of an integer of another type.
///
/// ```
/// use std::net::{IpAddr, Ipv4Addr};
/// let listed: Vec<IpAddr> = vec!["192.0.2.1".parse()?, "2001:db8::1".parse()?];
/// let blocked = tamis::build(listed).finish()?;
/// assert!(blocked.contains(Ipv4Addr::new(192, 0, 2, 1))? && blocked.contains([192u8, 0, 2, 1])?);
/// assert!(blocked.contains(0x2001_0db8_0000_0000_0000_0000_0000_0001u128)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
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
    label = "expected text, bytes, an integer, an IP address or a type that implements `tamis::Key`",
    note = "for a `char` or a path use its text, for a `bool` or an enum an integer, for a float its bits, for an `i128` its bytes, for \
            several fields `Hasher::fields`, for a `Result` what is in it"
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

macro_rules! key_of_fixed_width {
    ($($type:ty: $bytes:expr),*) => { $(
        impl Key for $type {
            const KEY_TYPE: KeyType = KeyType::Bytes;
            #[inline]
            fn digest(&self, hasher: &Hasher) -> Digest {
                hasher.bytes(&$bytes(self))
            }
        }
    )* };
}
// The highest byte first, on every platform: 128 bits of an address are its key.
key_of_fixed_width!(u128: |key: &u128| key.swap_bytes().to_le_bytes(), Ipv4Addr: Ipv4Addr::octets, Ipv6Addr: Ipv6Addr::octets);

impl Key for IpAddr {
    const KEY_TYPE: KeyType = KeyType::Bytes;
    #[inline]
    fn digest(&self, hasher: &Hasher) -> Digest {
        match self {
            IpAddr::V4(address) => address.digest(hasher),
            IpAddr::V6(address) => address.digest(hasher),
        }
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
