//! a vector, a static array, a map of a file -> bytes to be opened, and the methods of every type that is opened from them.

use bytes::Bytes;

use crate::error::FormatError;

/// Bytes to be opened: a `Vec<u8>`, a `Box<[u8]>`, an `Arc<[u8]>`, a [`Bytes`], a `&'static [u8]` or what `include_bytes!` returns.
///
/// None of them is copied. A path is none of them: `read` opens a file.
///
/// ```compile_fail
/// tamis::Bloom::restore("seen.tamis");
/// ```
///
/// ```
/// use std::sync::Arc;
/// let shared: Arc<[u8]> = tamis::build(["ann", "bob"]).finish()?.as_bytes().into();
/// let filter = tamis::Filter::open(shared.clone())?;
/// assert_eq!(filter.as_bytes().as_ptr(), shared.as_ptr());
/// # Ok::<(), tamis::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the bytes of a file",
    label = "expected bytes that it keeps: `Vec<u8>`, `Box<[u8]>`, `Arc<[u8]>`, `Bytes` or `&'static [u8]`",
    note = "`read(path)` opens a file; bytes that are borrowed for a time are copied: `bytes.to_vec()`"
)]
pub trait Source {
    /// Returns the bytes.
    fn into_bytes(self) -> Bytes;
}

macro_rules! sources {
    ($($type:ty: $from:expr;)*) => {$(
        impl Source for $type {
            fn into_bytes(self) -> Bytes {
                $from(self)
            }
        }
    )*};
}

sources! {
    Bytes: std::convert::identity;
    Vec<u8>: Bytes::from;
    Box<[u8]>: Bytes::from;
    std::sync::Arc<[u8]>: Bytes::from_owner;
    &'static [u8]: Bytes::from_static;
}

impl<const N: usize> Source for &'static [u8; N] {
    fn into_bytes(self) -> Bytes {
        Bytes::from_static(self)
    }
}

/// What a tamis file says of itself, whatever it holds: nothing of it is opened, and no secret is needed.
///
/// ```
/// let filter = tamis::build(["ann"]).metadata("a list of names").finish()?;
/// let info = tamis::FileInfo::of(filter.as_bytes())?;
/// assert_eq!((info.form, info.metadata, info.secret_beside), ("filter", b"a list of names".to_vec(), false));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FileInfo {
    /// What it holds: `filter` (with its patches too), `patch`, `slice of a filter`, `manifest of slices`, `learned filter`, `map`,
    /// `sequence`, `set index` or `adaptive filter`.
    pub form: &'static str,
    /// The version of the format.
    pub version: u16,
    /// The identity: see [`Filter::identity`](crate::Filter::identity).
    pub identity: [u8; 16],
    /// The caller's note: see [`Filter::metadata`](crate::Filter::metadata).
    pub metadata: Vec<u8>,
    /// Whether a later release may not read it: see [`Filter::may_change`](crate::Filter::may_change).
    pub may_change: bool,
    /// Whether the secret of its hash is not in it, and must be given to open it.
    pub secret_beside: bool,
    /// Whether the secret of its hash is in it.
    pub secret_inside: bool,
}

impl FileInfo {
    /// Reads header and directory of the bytes of a file.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if they are damaged, or of a version or form that this release cannot read.
    pub fn of(bytes: &[u8]) -> Result<FileInfo, FormatError> {
        super::info(bytes)
    }

    /// Returns [`of`](Self::of) for bytes whose payload is as its checksums say.
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of), and [`FormatError::Checksum`] if the payload was changed.
    pub fn verified(bytes: &[u8]) -> Result<FileInfo, FormatError> {
        super::verify(bytes)?;
        FileInfo::of(bytes)
    }
}

/// The methods that all types have which are opened from bytes; `bytes` is the field that holds them.
macro_rules! from_bytes {
    ($($field:ident).+) => {
        /// Opens bytes in memory and verifies them. They are not copied: see [`Source`](crate::Source).
        ///
        /// # Errors
        ///
        /// [`FormatError`](crate::FormatError) if the bytes are damaged, of another form, or of a version that this release cannot
        /// read.
        ///
        /// # Complexity
        ///
        /// Reads every byte once, for the checksum. [`open_unverified`](Self::open_unverified) reads header and directory only.
        pub fn open(bytes: impl $crate::format::Source) -> Result<Self, $crate::error::FormatError> {
            let bytes = bytes.into_bytes();
            $crate::format::verify(&bytes)?;
            Self::opened(bytes, None)
        }

        /// Opens and verifies bytes whose secret is not among them: see [`Options::secret_beside`](crate::Options::secret_beside).
        ///
        /// # Errors
        ///
        /// As [`open`](Self::open), and [`FormatError::Secret`](crate::FormatError::Secret) if the secret is not the one that the
        /// file was built with.
        pub fn open_with_secret(
            bytes: impl $crate::format::Source,
            secret: [u64; 2],
        ) -> Result<Self, $crate::error::FormatError> {
            let bytes = bytes.into_bytes();
            $crate::format::verify(&bytes)?;
            Self::opened(bytes, Some(secret))
        }

        /// Maps a file into memory and opens it unverified: nothing is read but what queries touch.
        ///
        /// # Safety
        ///
        /// No process may change or truncate the file while the value or a clone of it lives. Replacing the file by renaming another
        /// one over it, as `finish_to` does, is safe: the map keeps the old one.
        ///
        /// # Errors
        ///
        /// [`Error`](crate::Error) if the file cannot be read, or as for [`open`](Self::open), except for a damaged payload.
        #[cfg(feature = "mmap")]
        #[allow(unsafe_code)]
        pub unsafe fn mmap(path: impl AsRef<std::path::Path>) -> Result<Self, $crate::error::Error> {
            // SAFETY: the caller's promise is the one that is asked for.
            let bytes = unsafe { $crate::arch::arena::map(path.as_ref()) };
            $crate::format::open_file(path.as_ref(), bytes, Self::open_unverified)
        }

        /// Maps a file whose secret is not in it: see [`mmap`](Self::mmap) and [`open_with_secret`](Self::open_with_secret).
        ///
        /// # Safety
        ///
        /// As [`mmap`](Self::mmap).
        ///
        /// # Errors
        ///
        /// As [`mmap`](Self::mmap), and [`FormatError::Secret`](crate::FormatError::Secret) for another secret.
        #[cfg(feature = "mmap")]
        #[allow(unsafe_code)]
        pub unsafe fn mmap_with_secret(
            path: impl AsRef<std::path::Path>,
            secret: [u64; 2],
        ) -> Result<Self, $crate::error::Error> {
            // SAFETY: the caller's promise is the one that is asked for.
            let bytes = unsafe { $crate::arch::arena::map(path.as_ref()) };
            $crate::format::open_file(path.as_ref(), bytes, |bytes| Self::opened(bytes, Some(secret)))
        }

        /// Reads a whole file into memory, in huge pages where the system has them, and verifies it.
        ///
        /// # Errors
        ///
        /// As [`read_unverified`](Self::read_unverified), and if the payload is damaged.
        pub fn read(path: impl AsRef<std::path::Path>) -> Result<Self, $crate::error::Error> {
            let bytes = $crate::arch::arena::read(path.as_ref());
            $crate::format::open_file(path.as_ref(), bytes, Self::open)
        }

        /// Reads and verifies a file whose secret is not in it: see [`open_with_secret`](Self::open_with_secret).
        ///
        /// # Errors
        ///
        /// As [`read`](Self::read), and [`FormatError::Secret`](crate::FormatError::Secret) for another secret.
        pub fn read_with_secret(
            path: impl AsRef<std::path::Path>,
            secret: [u64; 2],
        ) -> Result<Self, $crate::error::Error> {
            let bytes = $crate::arch::arena::read(path.as_ref());
            $crate::format::open_file(path.as_ref(), bytes, |bytes| Self::open_with_secret(bytes, secret))
        }

        /// Reads a whole file into memory and checks header and directory only.
        ///
        /// # Errors
        ///
        /// [`Error`](crate::Error) if the file cannot be read, or if header or directory are damaged.
        pub fn read_unverified(path: impl AsRef<std::path::Path>) -> Result<Self, $crate::error::Error> {
            let bytes = $crate::arch::arena::read(path.as_ref());
            $crate::format::open_file(path.as_ref(), bytes, Self::open_unverified)
        }

        /// Returns the version of the format that the file was written in.
        pub fn version(&self) -> u16 {
            $crate::format::version(&self.$($field).+)
        }

        /// Returns the identity of the file, a hash of its directory, sums and flags: equal ones are the same file.
        ///
        /// It tells files apart that were made without intent to deceive: anyone can make two files with one identity.
        pub fn identity(&self) -> [u8; 16] {
            $crate::format::identity(&self.$($field).+)
        }

        /// Returns what [`Options::metadata`](crate::Options::metadata) put into the file; empty without it.
        pub fn metadata(&self) -> &[u8] {
            $crate::format::metadata(&self.$($field).+)
        }

        /// Returns true if a later release may not read the file, as its structure may still change.
        pub fn may_change(&self) -> bool {
            $crate::format::may_change(&self.$($field).+)
        }

        /// Reads the whole payload and compares its checksums.
        ///
        /// # Errors
        ///
        /// [`FormatError::Checksum`](crate::FormatError::Checksum) if the payload was changed.
        pub fn verify(&self) -> Result<(), $crate::error::FormatError> {
            $crate::format::verify(&self.$($field).+)
        }

        /// Writes the bytes to a file, which appears, or replaces an older one, when it is complete and not before:
        /// [`read`](Self::read) opens it. Only its owner may read a file that holds a secret.
        ///
        /// # Errors
        ///
        /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
        #[cfg(feature = "build")]
        pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), $crate::error::Error> {
            $crate::format::save(self.as_bytes(), path.as_ref())
        }

        /// Returns the bytes, to be stored and opened again.
        pub fn as_bytes(&self) -> &[u8] {
            &self.$($field).+
        }

        /// Returns the bytes without copying them.
        pub fn into_bytes(self) -> bytes::Bytes {
            self.$($field).+
        }
    };
}

/// What types that are bytes have in common: equal ones have equal bytes.
macro_rules! equal_by_bytes {
    ($type:ty) => {
        impl AsRef<[u8]> for $type {
            fn as_ref(&self) -> &[u8] {
                self.as_bytes()
            }
        }

        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.as_bytes() == other.as_bytes()
            }
        }

        impl Eq for $type {}
    };
}
pub(crate) use {equal_by_bytes, from_bytes};
