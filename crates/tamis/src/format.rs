//! payloads and their directory <-> bytes: the header, the directory, the checksums, and the reader under every codec.
//!
//! ```text
//!   header, 48 bytes | payloads, shard by shard | directory | footer, 24 bytes
//! ```
//!
//! A file is written front to back in one pass: what is known only at the end stands at the end. The footer's last four
//! bytes close the file, so a cut is seen at once; one checksum covers header, directory and footer and is checked by every
//! open; the other covers the payloads and is checked by `verify`. Payloads have no offsets in the directory: their lengths follow
//! from their geometries, and `place` says where each one starts. So parts cannot overlap, whatever a file claims.
//!
//! docs/format.md draws the bytes.

use std::cell::Cell;
use std::path::Path;

use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::debug::brief_debug;
use crate::error::{Error, FormatError};
use crate::hash::{HashKind, Hasher, KeyType};

/// The newest version of the format; all versions so far.
pub(crate) const VERSION: u16 = 1;

/// The first byte is not text, the last two break when line ends are translated.
const MAGIC: [u8; 8] = *b"\x89tamis\r\n";
const CLOSING: [u8; 4] = *b"sieV";
const HEADER: usize = 48;
const FOOTER: usize = 24;
/// More shards than any builder makes (2^32 keys have 4,096).
pub(crate) const MAX_SHARD_BITS: u32 = 24;

/// Opening a file takes at most `FREE_BYTES` bytes of memory, and `MEMORY_PER_BYTE` more for each of its bytes. docs/format.md promises 64 KiB: the
/// other 4 KiB are for error messages and what else is not worth counting.
const FREE_BYTES: u64 = 60 << 10;
const MEMORY_PER_BYTE: u64 = 64;

/// The memory that opening a file may still take.
///
/// A few bytes of a directory can speak of millions of parts. So every decoder draws on the budget before it allocates, and there is one
/// budget for the whole file: the files inside a frozen segment draw on that of the index. What is freed again is not given back. It pays
/// for time too where bytes can be worth any amount of it: a decision of the coder under a map's values counts as a byte.
pub(crate) struct Budget(Cell<u64>);

impl Budget {
    /// For a file of these bytes.
    pub(crate) fn of(file: &[u8]) -> Budget {
        Budget(Cell::new(FREE_BYTES.saturating_add(MEMORY_PER_BYTE.saturating_mul(file.len() as u64))))
    }

    /// Takes so many bytes out of it.
    pub(crate) fn draw(&self, bytes: u64) -> Result<(), FormatError> {
        let none =
            || FormatError::invalid("opening takes more memory than 64 KiB and 64 bytes for each byte of the file");
        self.0.set(self.0.get().checked_sub(bytes).ok_or_else(none)?);
        Ok(())
    }
}

/// What the header says.
///
/// ```text
///    0  89 t a m i s 0d 0a                             magic
///    8  version u16 | hash u8 | key_type u8 | shard bits u8 | form u8 | 0 0
///   16  seed u64, 0 or the secret key, 2 x u64
///   32  keys u64 | negatives u64
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) hasher: Hasher,
    pub(crate) key_type: KeyType,
    /// log2 of the number of shards; 0 in a partitioned file, whose groups have their own.
    pub(crate) shard_bits: u32,
    pub(crate) form: Form,
    /// Distinct keys.
    pub(crate) keys: u64,
    /// Distinct keys that were excluded and that the filter is right about, expected queries aside; an estimate if they are very
    /// many. For the reader's information. Of a map: how many distinct values there are.
    pub(crate) negatives: u64,
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A list of steps.
    Filter = 0,
    /// A list of steps per group of partitions.
    Partitioned = 1,
    /// A tree that leads keys to values.
    Map = 2,
    /// The same for positions.
    Sequence = 3,
    /// Segments that lead keys to lists of sets.
    Sets = 4,
    /// An adaptive filter.
    Adaptive = 5,
}

impl Form {
    fn decode(byte: u8) -> Result<Form, FormatError> {
        match byte {
            0 => Ok(Form::Filter),
            1 => Ok(Form::Partitioned),
            2 => Ok(Form::Map),
            3 => Ok(Form::Sequence),
            4 => Ok(Form::Sets),
            5 => Ok(Form::Adaptive),
            _ => Err(FormatError::unsupported("form", byte)),
        }
    }

    /// In words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Filter | Form::Partitioned => "filter",
            Form::Map => "map",
            Form::Sequence => "sequence",
            Form::Sets => "set index",
            Form::Adaptive => "adaptive filter",
        }
    }
}

impl Header {
    fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..8].copy_from_slice(&MAGIC);
        out[8..10].copy_from_slice(&VERSION.to_le_bytes());
        out[10] = match self.hasher.kind() {
            HashKind::Seeded => 0,
            HashKind::Secret => 1,
            HashKind::Mixed => 2,
            HashKind::Foreign => 3,
        };
        out[11] = match self.key_type {
            KeyType::Bytes => 0,
            KeyType::Integer => 1,
            KeyType::Digest => 2,
            KeyType::Fields => 3,
        };
        out[12] = self.shard_bits as u8;
        out[13] = self.form as u8;
        let [a, b] = self.hasher.words();
        out[16..24].copy_from_slice(&a.to_le_bytes());
        out[24..32].copy_from_slice(&b.to_le_bytes());
        out[32..40].copy_from_slice(&self.keys.to_le_bytes());
        out[40..48].copy_from_slice(&self.negatives.to_le_bytes());
        out
    }

    /// Checks the mark and the version; the fields are read once the checksum is known to hold.
    fn check(bytes: &[u8]) -> Result<&[u8; HEADER], FormatError> {
        let head = &bytes[..bytes.len().min(MAGIC.len())];
        if head != &MAGIC[..head.len()] || head.is_empty() {
            return Err(FormatError::Magic);
        }
        let found = bytes.len() as u64;
        let needed = (HEADER + FOOTER) as u64;
        let Some(header) = bytes.first_chunk::<HEADER>().filter(|_| found >= needed) else {
            return Err(FormatError::Truncated { what: "the header", needed, found });
        };
        let version = u16::from_le_bytes([header[8], header[9]]);
        match version {
            VERSION => Ok(header),
            0 => Err(FormatError::invalid("version is 0, expected 1")),
            number => Err(FormatError::Unsupported { what: "format version", number: number.into() }),
        }
    }

    fn decode(header: &[u8; HEADER]) -> Result<Header, FormatError> {
        let mut from = Reader::new(&header[10..], "header");
        let [hash, key_type, shard_bits, form, zeros @ ..] = from.array::<6>()?;
        let (a, b) = (u64::from_le_bytes(from.array()?), u64::from_le_bytes(from.array()?));
        let (keys, negatives) = (u64::from_le_bytes(from.array()?), u64::from_le_bytes(from.array()?));
        let hasher = match (hash, b) {
            (0, 0) => Hasher::seeded(a),
            (1, _) => Hasher::secret([a, b]),
            (2, _) => Hasher::seeded(a).mixed(b),
            (3, 0) => Hasher::foreign(a),
            (3, _) => Hasher::foreign(a).mixed(b),
            (0, _) => return Err(FormatError::invalid("header: a seed has 64 bits, the other 64 must be zero")),
            (number, _) => return Err(FormatError::unsupported("hash", number)),
        };
        let key_type = match key_type {
            0 => KeyType::Bytes,
            1 => KeyType::Integer,
            2 => KeyType::Digest,
            3 => KeyType::Fields,
            number => return Err(FormatError::unsupported("key type", number)),
        };
        if hash == 3 && key_type != KeyType::Digest {
            return Err(FormatError::invalid(format!("header: hash is 3 for {key_type} keys, expected digests")));
        }
        if zeros != [0; 2] {
            return Err(FormatError::unsupported("header flags", u16::from_le_bytes(zeros)));
        }
        FormatError::check(shard_bits as u32 <= MAX_SHARD_BITS, || format!("header: 2^{shard_bits} shards"))?;
        let form = Form::decode(form)?;
        if matches!(form, Form::Partitioned | Form::Sets | Form::Adaptive) && shard_bits != 0 {
            let what = if form == Form::Partitioned { "partitioned file" } else { form.name() };
            return Err(FormatError::invalid(format!("header: shards of a {what}, expected none")));
        }
        Ok(Header { hasher, key_type, shard_bits: shard_bits as u32, form, keys, negatives })
    }
}

/// Where a payload of `len` bytes starts, when everything before it ends at `end`: large ones on a cache line.
pub(crate) fn place(end: u64, len: u64) -> u64 {
    if len < 1 << 16 { end } else { end.next_multiple_of(64) }
}

/// Header and directory of a file, checked as far as their checksum goes, and the places for its payloads.
pub(crate) fn parts<'a>(bytes: &'a Bytes, budget: &'a Budget) -> Result<(Header, Reader<'a>, Places<'a>), FormatError> {
    let header = Header::check(bytes)?;
    let (directory, _) = directory(bytes)?;
    let header = Header::decode(header)?;
    let from = Reader::budgeted(directory, "directory", budget);
    let places = Places { end: HEADER as u64, last: (bytes.len() - FOOTER - directory.len()) as u64, bytes, budget };
    Ok((header, from, places))
}

/// Gives payloads their places, one after the other.
pub(crate) struct Places<'a> {
    /// Where the next one may start.
    end: u64,
    /// Where the last one must end.
    last: u64,
    pub(crate) bytes: &'a Bytes,
    /// That of the file, for files inside it.
    pub(crate) budget: &'a Budget,
}

impl Places<'_> {
    /// The next payload, of so many bytes.
    pub(crate) fn take(&mut self, len: u64) -> Result<Bytes, FormatError> {
        Ok(self.next(len)?.1)
    }

    /// Where it starts, too.
    pub(crate) fn next(&mut self, len: u64) -> Result<(usize, Bytes), FormatError> {
        let start = place(self.end, len);
        let Some(next) = start.checked_add(len).filter(|&next| next <= self.last) else {
            let found = self.last - self.end;
            return Err(FormatError::Truncated { what: "the payload", needed: len, found });
        };
        self.end = next;
        Ok((start as usize, self.bytes.slice(start as usize..next as usize)))
    }

    /// Nothing may be left over.
    pub(crate) fn check(&self) -> Result<(), FormatError> {
        match self.last - self.end {
            0 => Ok(()),
            gap => Err(FormatError::invalid(format!("{gap} bytes between payload and directory"))),
        }
    }
}

/// The directory's bytes and the payload's checksum, the closing mark and the checksum of all but the payload checked.
fn directory(bytes: &[u8]) -> Result<(&[u8], u64), FormatError> {
    let found = bytes.len() as u64;
    let truncated = FormatError::Truncated { what: "the footer", needed: found + 1, found };
    let Some((front, footer)) = bytes.split_last_chunk::<FOOTER>().filter(|(front, _)| front.len() >= HEADER) else {
        return Err(truncated);
    };
    let mut from = Reader::new(footer, "footer");
    let payload_sum = u64::from_le_bytes(from.array()?);
    let len = u32::from_le_bytes(from.array()?) as usize;
    let sum = u64::from_le_bytes(from.array()?);
    if from.array()? != CLOSING {
        return Err(truncated);
    }
    let Some(start) = front.len().checked_sub(len).filter(|&start| start >= HEADER) else {
        return Err(FormatError::Checksum { part: "header and directory" });
    };
    if sum != meta_sum(&bytes[..HEADER], &bytes[start..front.len() + 12]) {
        return Err(FormatError::Checksum { part: "header and directory" });
    }
    Ok((&front[start..], payload_sum))
}

/// The checksum of the header, and of the directory with the two fields that follow it.
fn meta_sum(header: &[u8], directory: &[u8]) -> u64 {
    let mut sum = Xxh3::new();
    sum.update(header);
    sum.update(directory);
    sum.digest()
}

/// Bytes to be opened: a `Vec<u8>`, a `Box<[u8]>`, an `Arc<[u8]>`, a [`Bytes`], a `&'static [u8]` or what `include_bytes!` returns.
///
/// None of them is copied.
///
/// ```
/// use std::sync::Arc;
/// let shared: Arc<[u8]> = tamis::build(["ann", "bob"]).finish()?.as_bytes().into();
/// let filter = tamis::Filter::open(shared.clone())?;
/// assert_eq!(filter.as_bytes().as_ptr(), shared.as_ptr());
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct Source(pub(crate) Bytes);

brief_debug!(Source, it => bytes: it.0.len());

macro_rules! sources {
    ($($type:ty: $from:expr;)*) => {$(
        impl From<$type> for Source {
            fn from(bytes: $type) -> Source {
                Source($from(bytes))
            }
        }
    )*};
}

sources! {
    Bytes: Bytes::from;
    Vec<u8>: Bytes::from;
    Box<[u8]>: Bytes::from;
    std::sync::Arc<[u8]>: Bytes::from_owner;
    &'static [u8]: Bytes::from_static;
}

impl<const N: usize> From<&'static [u8; N]> for Source {
    fn from(bytes: &'static [u8; N]) -> Source {
        Source(Bytes::from_static(bytes))
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
        pub fn open(bytes: impl Into<$crate::format::Source>) -> Result<Self, $crate::error::FormatError> {
            let opened = Self::open_unverified(bytes)?;
            opened.verify()?;
            Ok(opened)
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

        /// Reads a whole file into memory, in huge pages where the system has them, and verifies it.
        ///
        /// # Errors
        ///
        /// As [`read_unverified`](Self::read_unverified), and if the payload is damaged.
        pub fn read(path: impl AsRef<std::path::Path>) -> Result<Self, $crate::error::Error> {
            let bytes = $crate::arch::arena::read(path.as_ref());
            $crate::format::open_file(path.as_ref(), bytes, Self::open)
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

        /// Reads the whole payload and compares its checksum.
        ///
        /// # Errors
        ///
        /// [`FormatError::Checksum`](crate::FormatError::Checksum) if the payload was changed.
        pub fn verify(&self) -> Result<(), $crate::error::FormatError> {
            $crate::format::verify(&self.$($field).+)
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

/// The version of a file that was opened.
pub(crate) fn version(bytes: &[u8]) -> u16 {
    match bytes {
        [_, _, _, _, _, _, _, _, low, high, ..] => u16::from_le_bytes([*low, *high]),
        _ => VERSION,
    }
}

/// Opens the bytes of a file; errors name it.
pub(crate) fn open_file<T>(
    path: &Path,
    bytes: std::io::Result<Bytes>,
    open: impl FnOnce(Bytes) -> Result<T, FormatError>,
) -> Result<T, Error> {
    bytes.map_err(Error::from).and_then(|bytes| Ok(open(bytes)?)).map_err(|error| error.at(path))
}

/// Checks the payload's checksum.
pub(crate) fn verify(bytes: &[u8]) -> Result<(), FormatError> {
    let (directory, sum) = directory(bytes)?;
    let payload = &bytes[HEADER..bytes.len() - FOOTER - directory.len()];
    if xxh3_64(payload) == sum { Ok(()) } else { Err(FormatError::Checksum { part: "payload" }) }
}

/// Writes a file front to back.
#[cfg(feature = "build")]
pub(crate) struct Writer<'a> {
    out: &'a mut dyn std::io::Write,
    header: [u8; HEADER],
    /// Bytes written, and the running checksum of those after the header.
    at: u64,
    sum: Xxh3,
    /// Step by step, the geometries of the shards so far.
    geometries: Vec<Vec<u8>>,
    kinds: Vec<[u8; 2]>,
}

/// One shard's part of one step, ready to be written.
#[cfg(feature = "build")]
pub(crate) struct Encoded {
    pub(crate) geometry: Vec<u8>,
    pub(crate) payload: Bytes,
}

#[cfg(feature = "build")]
impl<'a> Writer<'a> {
    /// Starts a file with these steps, each the byte of a role and the tag of a leaf.
    pub(crate) fn new(
        out: &'a mut dyn std::io::Write,
        header: &Header,
        kinds: Vec<[u8; 2]>,
    ) -> std::io::Result<Writer<'a>> {
        let header = header.encode();
        out.write_all(&header)?;
        let geometries = vec![vec![]; kinds.len()];
        Ok(Writer { out, header, at: HEADER as u64, sum: Xxh3::new(), geometries, kinds })
    }

    /// Appends a shard: one part per step. Shards come in order.
    pub(crate) fn shard(&mut self, parts: &[Encoded]) -> std::io::Result<()> {
        for (at, part) in parts.iter().enumerate().take(self.geometries.len()) {
            self.payload(&part.payload)?;
            self.geometries[at].extend_from_slice(&part.geometry);
        }
        Ok(())
    }

    /// Appends a payload.
    pub(crate) fn payload(&mut self, payload: &[u8]) -> std::io::Result<()> {
        let gap = place(self.at, payload.len() as u64) - self.at;
        for bytes in [&[0; 64][..gap as usize], payload] {
            self.out.write_all(bytes)?;
            self.sum.update(bytes);
            self.at += bytes.len() as u64;
        }
        Ok(())
    }

    /// Starts another list of steps: a partitioned file has one for every group.
    pub(crate) fn start(&mut self, kinds: Vec<[u8; 2]>) {
        self.geometries = vec![vec![]; kinds.len()];
        self.kinds = kinds;
    }

    /// The list of steps so far, as a directory holds it.
    pub(crate) fn list(&self) -> Vec<u8> {
        let mut list = vec![];
        put_varint(&mut list, self.kinds.len() as u64);
        list.extend_from_slice(self.kinds.as_flattened());
        for geometries in &self.geometries {
            list.extend_from_slice(geometries);
        }
        list
    }

    /// The geometries of every step so far.
    pub(crate) fn geometries(&self) -> &[Vec<u8>] {
        &self.geometries
    }

    /// Writes directory and footer; returns the file's length.
    pub(crate) fn finish(self) -> std::io::Result<u64> {
        let directory = self.list();
        self.close(directory)
    }

    /// The same with a directory that was put together elsewhere.
    pub(crate) fn close(self, directory: Vec<u8>) -> std::io::Result<u64> {
        let mut tail = directory;
        let len = u32::try_from(tail.len()).map_err(|_| std::io::Error::other("the directory exceeds 4 GiB"))?;
        tail.extend_from_slice(&self.sum.digest().to_le_bytes());
        tail.extend_from_slice(&len.to_le_bytes());
        let sum = meta_sum(&self.header, &tail);
        tail.extend_from_slice(&sum.to_le_bytes());
        tail.extend_from_slice(&CLOSING);
        self.out.write_all(&tail)?;
        Ok(self.at + tail.len() as u64)
    }
}

/// Words as bytes.
#[cfg(feature = "build")]
pub(crate) fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().map(|word| word.to_le_bytes()).collect::<Vec<_>>().into_flattened()
}

/// Appends `value` in groups of seven bits, low group first: small numbers take one byte.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a directory. Every method checks that its bytes are there.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    what: &'static str,
    budget: Option<&'a Budget>,
}

impl<'a> Reader<'a> {
    /// For bytes that are this library's own, or that speak of nothing that takes memory.
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Reader<'a> {
        Reader { bytes, what, budget: None }
    }

    /// For bytes of a file with this budget.
    pub(crate) fn budgeted(bytes: &'a [u8], what: &'static str, budget: &'a Budget) -> Reader<'a> {
        Reader { bytes, what, budget: Some(budget) }
    }

    /// See [`Budget::draw`].
    pub(crate) fn draw(&self, bytes: u64) -> Result<(), FormatError> {
        self.budget.map_or(Ok(()), |budget| budget.draw(bytes))
    }

    /// A vector with room for so many, which is never to grow.
    pub(crate) fn room<T>(&self, count: u64) -> Result<Vec<T>, FormatError> {
        self.draw(count.saturating_mul(size_of::<T>() as u64))?;
        Ok(Vec::with_capacity(count as usize))
    }

    /// What may still be drawn.
    pub(crate) fn left(&self) -> u64 {
        self.budget.map_or(u64::MAX, |budget| budget.0.get())
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<N>() else {
            let found = self.bytes.len() as u64;
            return Err(FormatError::Truncated { what: self.what, needed: N as u64, found });
        };
        self.bytes = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// A number written by [`put_varint`], in its shortest form.
    pub(crate) fn varint(&mut self) -> Result<u64, FormatError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let group = (byte & 0x7f) as u64;
            if (group << shift) >> shift != group || (byte == 0 && shift > 0) {
                break;
            }
            value |= group << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(FormatError::invalid(format!("{}: a number is too long", self.what)))
    }

    /// A number that must lie in `range`.
    pub(crate) fn within(&mut self, name: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, FormatError> {
        let value = self.varint()?;
        if range.contains(&value) {
            return Ok(value);
        }
        let (low, high) = range.into_inner();
        Err(FormatError::invalid(format!("{}: {name} is {value}, expected {low} to {high}", self.what)))
    }

    /// The next `len` bytes, where they are.
    pub(crate) fn take(&mut self, len: u64) -> Result<&'a [u8], FormatError> {
        let found = self.len();
        let split = usize::try_from(len).ok().and_then(|len| self.bytes.split_at_checked(len));
        let Some((head, rest)) = split else {
            return Err(FormatError::Truncated { what: self.what, needed: len, found });
        };
        self.bytes = rest;
        Ok(head)
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Nothing may follow.
    pub(crate) fn end(&self) -> Result<(), FormatError> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(FormatError::invalid(format!("{}: bytes after its end", self.what))),
        }
    }
}
