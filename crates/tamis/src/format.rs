//! payloads and their directory <-> bytes: the front, the directory in sections, the sums, and the reader under every codec.
//!
//! ```text
//!   front, 16 bytes | payloads, shard by shard | directory: numbered sections | footer, 32 bytes
//! ```
//!
//! A file is written front to back in one pass: what is known only at the end stands at the end. So one read of a file's last bytes
//! opens it, also in a store that is far away. The footer's last four bytes close the file, so a cut is seen at once. The footer
//! has the *identity* of the file, a hash of directory and flags, which every open checks. One section holds sums of the payloads,
//! which `verify` checks. Payloads have no offsets in the directory: their lengths follow from their geometries, and [`unit`] says
//! where each one starts. So parts cannot overlap, whatever a file claims.
//!
//! # Room to grow
//!
//! A section with an odd number must be known, one with an even number may be skipped; so may the flags of the second kind. A
//! reader that meets an unknown number of the first kind says that it is not supported. What comes later is a new number and no new
//! version.
//!
//! docs/format.md draws the bytes.

mod reader;
mod source;
#[cfg(feature = "build")]
mod write;

use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

#[cfg(feature = "build")]
pub(crate) use reader::bytes_of;
pub(crate) use reader::{Budget, Reader, put_varint};
pub use source::{FileInfo, Source};
pub(crate) use source::{equal_by_bytes, from_bytes};
#[cfg(feature = "build")]
pub(crate) use write::{Encoded, Writer};

use crate::error::{Error, FormatError};
use crate::hash::{HashKind, Hasher, KeyType};

/// The newest version of the format; all versions so far.
pub(crate) const VERSION: u16 = 1;

/// The first byte is not text, the last two break when line ends are translated.
const MAGIC: [u8; 8] = *b"\x89tamis\r\n";
const CLOSING: [u8; 4] = *b"sieV";
pub(crate) const FRONT: usize = 16;
const FOOTER: usize = 32;
/// More shards than any builder makes (2^32 keys have 4,096).
pub(crate) const MAX_SHARD_BITS: u32 = 24;
/// A longer payload has a sum for each so many bytes of it, and starts on a cache line.
pub(crate) const BLOCK: u64 = 1 << 16;
/// The longest note of a caller.
pub(crate) const MAX_METADATA: usize = 1 << 16;

/// Sections of a directory. Reserved: 4, the program that wrote the file; 8, a log of changes.
mod section {
    pub(super) const HEAD: u64 = 1;
    pub(super) const SUMS: u64 = 2;
    pub(super) const CONTENTS: u64 = 3;
    pub(super) const PREPARATION: u64 = 5;
    pub(super) const METADATA: u64 = 6;
    pub(super) const SCORER: u64 = 7;
    pub(super) const KEPT: u64 = 10;
}

/// The number of the hash whose secret is in the file.
const SECRET_INSIDE: u8 = 1;
/// The number of the hash whose secret is not in the file.
const SECRET_BESIDE: u8 = 4;
/// The hash of a patch: that of its base.
const BASE_HASH: u8 = 5;
/// What the contents of form 6 begin with, if the first payload is the base and the others are its patches.
pub(crate) const CHAIN: u8 = 2;

/// A list of steps begins with their number in so many bits, and above them the number that their salts follow from.
pub(crate) const STEPS_BITS: u32 = 7;

/// A flag that readers may ignore: a later release may not read this file.
const MAY_CHANGE: u32 = 1;

/// How many digests of members and of excluded keys a file keeps for changes: its last unit, which no query reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) members: u64,
    pub(crate) excluded: u64,
}

impl Kept {
    /// Two varints.
    fn decode(section: &[u8]) -> Result<Kept, FormatError> {
        let mut from = Reader::new(section, "kept digests");
        let most = 0..=1 << 40;
        let kept = Kept {
            members: from.within("number of members", most.clone())?,
            excluded: from.within("number of excluded keys", most)?,
        };
        from.end()?;
        Ok(kept)
    }

    /// Bytes of the unit.
    pub(crate) fn len(self) -> u64 {
        16 * (self.members + self.excluded)
    }
}

/// What the head of a directory says.
///
/// ```text
///   form u8 | hash u8 | key type u8 | shard bits u8
///   hash 0: seed varint      1: secret 2 x u64      2: seed varint, number u64      3: number, number of the mix or 0: varints
///   4: check value u64; the secret is not in the file      5: of a patch, that of its base: number of the mix or 0, varint
///   keys varint | negatives varint
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) hasher: Hasher,
    pub(crate) key_type: KeyType,
    /// log2 of the number of shards; 0 in a partitioned file, whose groups have their own.
    pub(crate) shard_bits: u32,
    pub(crate) form: Form,
    /// The number that the salts of the layers follow from, where another was needed than 0: in the list of steps. A partitioned file has none.
    pub(crate) salts: u64,
    /// Distinct keys.
    pub(crate) keys: u64,
    /// Distinct keys that were excluded and that the filter is right about, expected queries aside; an estimate if they are very
    /// many. For the reader's information. Of a map: how many distinct values there are.
    pub(crate) negatives: u64,
    /// Whether a later release may not read it.
    pub(crate) may_change: bool,
}

/// What a file holds. Reserved: 9, rules for host names.
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
    /// Keys whose answer another file has wrong; or a file and its patches.
    Patch = 6,
    /// Some of the shards of a filter, built elsewhere.
    Slice = 7,
    /// The names of the slices that are one filter together.
    Manifest = 8,
    /// A scorer, and a filter for each class of scores.
    Learned = 10,
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
            6 => Ok(Form::Patch),
            7 => Ok(Form::Slice),
            8 => Ok(Form::Manifest),
            10 => Ok(Form::Learned),
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
            Form::Patch => "patch",
            Form::Slice => "slice of a filter",
            Form::Manifest => "manifest of slices",
            Form::Learned => "learned filter",
        }
    }
}

/// What a file has instead of its secret: a wrong secret does not make it.
fn secret_check(hasher: &Hasher) -> u64 {
    hasher.bytes(b"the secret of a tamis file").hi
}

impl Header {
    /// Of an empty set in one shard.
    #[cfg(feature = "build")]
    pub(crate) fn new(form: Form, hasher: Hasher, key_type: KeyType) -> Header {
        let may_change = form == Form::Adaptive;
        Header { hasher, key_type, shard_bits: 0, form, salts: 0, keys: 0, negatives: 0, may_change }
    }

    #[cfg(feature = "build")]
    fn encode(&self) -> Vec<u8> {
        let kind = self.hasher.kind();
        let hash = match kind {
            HashKind::Seeded | HashKind::Mixed if self.form == Form::Patch => BASE_HASH,
            HashKind::Seeded => 0,
            HashKind::Secret if self.hasher.is_beside() => SECRET_BESIDE,
            HashKind::Secret => SECRET_INSIDE,
            HashKind::Mixed => 2,
            HashKind::Foreign => 3,
        };
        let key_type = match self.key_type {
            KeyType::Bytes => 0,
            KeyType::Integer => 1,
            KeyType::Digest => 2,
            KeyType::Fields => 3,
        };
        let mut out = vec![self.form as u8, hash, key_type, self.shard_bits as u8];
        let [a, b] = self.hasher.words();
        match kind {
            HashKind::Seeded | HashKind::Mixed if self.form == Form::Patch => put_varint(&mut out, b),
            HashKind::Seeded => put_varint(&mut out, a),
            HashKind::Secret if self.hasher.is_beside() => {
                out.extend_from_slice(&secret_check(&self.hasher).to_le_bytes());
            }
            HashKind::Secret => [a, b].iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes())),
            HashKind::Mixed => {
                put_varint(&mut out, a);
                out.extend_from_slice(&b.to_le_bytes());
            }
            HashKind::Foreign => [a, b].iter().for_each(|&word| put_varint(&mut out, word)),
        }
        put_varint(&mut out, self.keys);
        put_varint(&mut out, self.negatives);
        out
    }

    /// What the words of a hash take in a head. Counted, not written: a secret must not lie in one more place.
    #[cfg(feature = "build")]
    pub(crate) fn hash_bytes(hasher: &Hasher) -> u32 {
        let number = |word: u64| (u64::BITS - (word | 1).leading_zeros()).div_ceil(7);
        let [a, b] = hasher.words();
        match hasher.kind() {
            HashKind::Seeded => number(a),
            HashKind::Secret if hasher.is_beside() => 8,
            HashKind::Secret => 16,
            HashKind::Mixed => number(a) + 8,
            HashKind::Foreign => number(a) + number(b),
        }
    }

    /// Reads a head; `secret` is what the caller knows.
    fn decode(head: &[u8], flags: u32, secret: Option<[u64; 2]>) -> Result<Header, FormatError> {
        let mut from = Reader::new(head, "header");
        let [form, hash, key_type, shard_bits] = from.array()?;
        let form = Form::decode(form)?;
        // Before the hash: a file that is not supported says so to callers without its secret.
        let key_type = match key_type {
            0 => KeyType::Bytes,
            1 => KeyType::Integer,
            2 => KeyType::Digest,
            3 => KeyType::Fields,
            number => return Err(FormatError::unsupported("key type", number)),
        };
        let word = |from: &mut Reader<'_>| Ok::<_, FormatError>(u64::from_le_bytes(from.array()?));
        let hasher = match hash {
            0 => Hasher::seeded(from.varint()?),
            SECRET_INSIDE => Hasher::secret([word(&mut from)?, word(&mut from)?]),
            2 => Hasher::seeded(from.varint()?).mixed(word(&mut from)?),
            3 => match (from.varint()?, from.varint()?) {
                (number, 0) => Hasher::foreign(number),
                (number, mix) => Hasher::foreign(number).mixed(mix),
            },
            SECRET_BESIDE => {
                let check = word(&mut from)?;
                let hasher = Hasher::secret(secret.ok_or(FormatError::Secret { given: false })?);
                if secret_check(&hasher) != check {
                    return Err(FormatError::Secret { given: true });
                }
                hasher.with_secret_beside(true)
            }
            BASE_HASH if form == Form::Patch => match from.varint()? {
                0 => Hasher::seeded(0),
                mix => Hasher::seeded(0).mixed(mix),
            },
            number => return Err(FormatError::unsupported("hash", number)),
        };
        if form == Form::Patch && hash != BASE_HASH {
            return Err(FormatError::invalid(format!("header: hash is {hash}, expected 5 for a patch")));
        }
        if secret.is_some() && hash != SECRET_BESIDE && hash != BASE_HASH {
            return Err(FormatError::NoSecret);
        }
        if hash == 3 && key_type != KeyType::Digest {
            return Err(FormatError::invalid(format!("header: hash is 3 for {key_type} keys, expected digests")));
        }
        FormatError::check(shard_bits as u32 <= MAX_SHARD_BITS, || format!("header: 2^{shard_bits} shards"))?;
        if matches!(form, Form::Partitioned | Form::Sets | Form::Adaptive | Form::Learned) && shard_bits != 0 {
            let what = if form == Form::Partitioned { "partitioned file" } else { form.name() };
            return Err(FormatError::invalid(format!("header: shards of a {what}, expected none")));
        }
        let (keys, negatives) = (from.varint()?, from.varint()?);
        from.end()?;
        let may_change = flags & MAY_CHANGE != 0;
        Ok(Header { hasher, key_type, shard_bits: shard_bits.into(), form, salts: 0, keys, negatives, may_change })
    }
}

/// The end of a file, its hash checked: directory and footer.
#[derive(Clone, Copy)]
pub(crate) struct Tail<'a> {
    head: &'a [u8],
    contents: &'a [u8],
    sums: Option<&'a [u8]>,
    pub(crate) metadata: &'a [u8],
    scorer: Option<&'a [u8]>,
    kept: Option<Kept>,
    /// Whether there are sections that this reader does not know and may skip; the last units may be theirs.
    pub(crate) skips: bool,
    flags: u32,
    pub(crate) identity: [u8; 16],
    /// Bytes of directory and footer.
    len: usize,
    /// The version and the flags, as the front repeats them.
    marks: [u8; 8],
}

impl<'a> Tail<'a> {
    /// Reads the end of a file from bytes that end with it.
    pub(crate) fn of(bytes: &'a [u8]) -> Result<Tail<'a>, FormatError> {
        let found = bytes.len() as u64;
        let Some((before, footer)) = bytes.split_last_chunk::<FOOTER>() else {
            return Err(FormatError::Truncated { what: "the footer", needed: FOOTER as u64, found });
        };
        let mut from = Reader::new(footer, "footer");
        let len = u32::from_le_bytes(from.array()?);
        let marks = from.array::<8>()?;
        let identity = from.array::<16>()?;
        if from.array()? != CLOSING {
            return Err(FormatError::Closing);
        }
        check_version([marks[0], marks[1]])?;
        let Some(start) = before.len().checked_sub(len as usize) else {
            let needed = u64::from(len) + FOOTER as u64;
            return Err(FormatError::Truncated { what: "the directory", needed, found });
        };
        if xxh3_128(&bytes[start..before.len() + 12]).to_le_bytes() != identity {
            return Err(FormatError::Checksum { part: "header and directory" });
        }
        let must = u16::from_le_bytes([marks[2], marks[3]]);
        if must != 0 {
            return Err(FormatError::unsupported("flags", must));
        }
        let flags = u32::from_le_bytes([marks[4], marks[5], marks[6], marks[7]]);
        let mut tail = Tail {
            head: &[],
            contents: &[],
            sums: None,
            metadata: &[],
            scorer: None,
            kept: None,
            skips: false,
            flags,
            identity,
            len: bytes.len() - start,
            marks,
        };
        tail.sections(&before[start..])?;
        Ok(tail)
    }

    /// Finds the sections of a directory.
    fn sections(&mut self, directory: &'a [u8]) -> Result<(), FormatError> {
        let mut from = Reader::new(directory, "directory");
        let (mut last, mut missing) = (0, 2);
        while !from.is_empty() {
            let (number, len) = (from.varint()?, from.varint()?);
            let section = from.take(len)?;
            if number <= last {
                return Err(FormatError::invalid(format!("directory: section {number} after section {last}")));
            }
            last = number;
            match number {
                section::HEAD => (self.head, missing) = (section, missing - 1),
                section::SUMS => self.sums = Some(section),
                section::CONTENTS => (self.contents, missing) = (section, missing - 1),
                section::METADATA => self.metadata = section,
                section::SCORER => self.scorer = Some(section),
                section::KEPT => self.kept = Some(Kept::decode(section)?),
                section::PREPARATION => {
                    let how = Reader::new(section, "preparation of keys").varint()?;
                    return Err(FormatError::unsupported("preparation of keys", how));
                }
                number if number % 2 == 1 => return Err(FormatError::unsupported("section", number)),
                _ => self.skips = true,
            }
        }
        FormatError::check(missing == 0, || "directory: header or contents are missing")
    }

    /// The head, for a caller who knows this secret.
    pub(crate) fn header(&self, secret: Option<[u64; 2]>) -> Result<Header, FormatError> {
        let header = Header::decode(self.head, self.flags, secret)?;
        match (self.scorer, header.form == Form::Learned) {
            // No other form chooses between filters.
            (Some(_), false) => Err(FormatError::unsupported("section", section::SCORER)),
            (None, true) => Err(FormatError::invalid("directory: no scorer in a learned filter")),
            (Some(_), true) | (None, false) => Ok(header),
        }
    }

    /// The contents, as their form reads them.
    pub(crate) fn contents(&self, budget: &'a Budget) -> Reader<'a> {
        Reader::budgeted(self.contents, "directory", budget)
    }

    /// Whether it is the end of a base and its patches.
    pub(crate) fn has_patches(&self) -> bool {
        (self.head.first(), self.contents.first()) == (Some(&(Form::Patch as u8)), Some(&CHAIN))
    }

    /// What is kept for changes.
    pub(crate) fn kept(&self) -> Option<Kept> {
        self.kept
    }

    /// Directory and footer, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The sums of the payloads.
    pub(crate) fn sums(&self) -> Result<Sums<'a>, FormatError> {
        let none = || FormatError::invalid("directory: no sums of the payload, which cannot be verified");
        Ok(Sums { from: Reader::new(self.sums.ok_or_else(none)?, "sums"), end: FRONT as u64 })
    }
}

/// Rejects another version than that of this release.
fn check_version(version: [u8; 2]) -> Result<(), FormatError> {
    match u16::from_le_bytes(version) {
        VERSION => Ok(()),
        0 => Err(FormatError::invalid("version is 0, expected 1")),
        number => Err(FormatError::unsupported("format version", number)),
    }
}

/// The end of a whole file, and its front checked.
pub(crate) fn tail(bytes: &[u8]) -> Result<Tail<'_>, FormatError> {
    let head = &bytes[..bytes.len().min(MAGIC.len())];
    if head != &MAGIC[..head.len()] || head.is_empty() {
        return Err(FormatError::Magic);
    }
    let found = bytes.len() as u64;
    let needed = (FRONT + FOOTER) as u64;
    let Some(front) = bytes.first_chunk::<FRONT>().filter(|_| found >= needed) else {
        return Err(FormatError::Truncated { what: "the header", needed, found });
    };
    check_version([front[8], front[9]])?;
    let damaged = FormatError::Checksum { part: "header and directory" };
    match Tail::of(&bytes[FRONT..]) {
        Ok(tail) if tail.marks == front[8..] => Ok(tail),
        // The whole file is here: nothing is missing that a longer tail would have.
        Ok(_) | Err(FormatError::Truncated { what: "the directory", .. }) => Err(damaged),
        Err(FormatError::Closing) => Err(FormatError::Truncated { what: "the footer", needed: found + 1, found }),
        Err(error) => Err(error),
    }
}

/// The sums of a file, unit by unit in the order of the file.
///
/// ```text
///   per unit that is not empty: 2 * length + 1 if it starts at a multiple of 64, varint; XXH3-64 of every 64 KB of it, u64
/// ```
///
/// A unit is what is built and moved as a whole: a shard with all its layers, a table. Gaps before units are zeros.
pub(crate) struct Sums<'a> {
    from: Reader<'a>,
    /// Where the unit before ends.
    end: u64,
}

/// Where a unit starts, its length, its sums.
type Unit<'a> = (u64, u64, &'a [u8]);

impl<'a> Sums<'a> {
    /// The next unit.
    pub(crate) fn next(&mut self) -> Result<Option<Unit<'a>>, FormatError> {
        if self.from.is_empty() {
            return Ok(None);
        }
        let code = self.from.varint()?;
        let (len, is_aligned) = (code >> 1, code & 1 == 1);
        FormatError::check(len > 0, || "directory: sums of a unit without bytes")?;
        let start = if is_aligned { self.end.next_multiple_of(64) } else { self.end };
        let sums = self.from.take(8 * len.div_ceil(BLOCK))?;
        self.end = start.checked_add(len).filter(|&end| end < 1 << 63).ok_or_else(|| too_long(len))?;
        Ok(Some((start, len, sums)))
    }

    /// Where the units of sections end that `tail` skips, if units that its form knows end at `end`; nothing if others are left.
    pub(crate) fn end(mut self, tail: &Tail<'_>, mut end: u64) -> Result<Option<u64>, FormatError> {
        while let Some((start, len, _)) = self.next()? {
            if !tail.skips {
                return Ok(None);
            }
            end = start + len;
        }
        Ok(Some(end))
    }
}

fn too_long(len: u64) -> FormatError {
    FormatError::invalid(format!("directory: a payload of {len} bytes"))
}

/// Whether these bytes have these sums.
pub(crate) fn has_sums(unit: &[u8], sums: &[u8]) -> bool {
    unit.chunks(BLOCK as usize).map(|block| xxh3_64(block).to_le_bytes()).eq(sums.chunks(8))
}

/// Where a part of `len` bytes starts in its unit, when the parts before it end at `end`: large ones on a cache line.
fn place(end: u64, len: u64) -> u64 {
    if len < BLOCK { end } else { end.next_multiple_of(64) }
}

/// The length of a unit of these parts, if it is one.
pub(crate) fn unit_len(mut parts: impl Iterator<Item = u64>) -> Option<u64> {
    let limit = |end: &u64| *end < 1 << 62;
    parts.try_fold(0u64, |end, len| place(end, len).checked_add(len).filter(limit))
}

/// Where parts lie in a unit that is one: called with their lengths, one after the other.
pub(crate) fn places_in() -> impl FnMut(u64) -> Range<usize> {
    let mut end = 0;
    move |len| {
        let at = place(end, len);
        end = at + len;
        at as usize..end as usize
    }
}

/// Whether a unit starts on a cache line: one of several shards, and a long one.
pub(crate) fn is_aligned(len: u64, several: bool) -> bool {
    len > 0 && (several || len >= BLOCK)
}

/// Where a unit starts, when everything before it ends at `end`.
pub(crate) fn unit(end: u64, len: u64, several: bool) -> u64 {
    if is_aligned(len, several) { end.next_multiple_of(64) } else { end }
}

/// Header and directory of a file, checked as far as their hash goes, and the places for its payloads.
pub(crate) fn parts<'a>(
    bytes: &'a Bytes,
    secret: Option<[u64; 2]>,
    budget: &'a Budget,
) -> Result<(Header, Reader<'a>, Places<'a>), FormatError> {
    let tail = tail(bytes)?;
    let (end, last, kept) = (FRONT as u64, (bytes.len() - tail.len) as u64, tail.kept);
    let places = Places { end, last, kept, bytes, budget };
    Ok((tail.header(secret)?, tail.contents(budget), places))
}

/// Gives payloads their places, one after the other.
pub(crate) struct Places<'a> {
    /// Where the next one may start.
    end: u64,
    /// Where the last one must end.
    last: u64,
    /// What the last one is, if it is no payload.
    kept: Option<Kept>,
    pub(crate) bytes: &'a Bytes,
    /// That of the file, for files inside it.
    pub(crate) budget: &'a Budget,
}

impl Places<'_> {
    /// The next payload, of so many bytes.
    pub(crate) fn take(&mut self, len: u64) -> Result<Bytes, FormatError> {
        let start = self.unit(false, std::iter::once(len))?;
        Ok(self.bytes.slice(start..start + len as usize))
    }

    /// Where the next shard starts, of parts of these lengths, which [`places_in`] puts into it. `several` is whether it is one of several shards.
    pub(crate) fn unit(&mut self, several: bool, lens: impl Iterator<Item = u64>) -> Result<usize, FormatError> {
        let found = self.last - self.end;
        let truncated = |needed| FormatError::Truncated { what: "the payload", needed, found };
        let len = unit_len(lens).ok_or_else(|| truncated(u64::MAX))?;
        let start = unit(self.end, len, several);
        if start.checked_add(len).is_none_or(|end| end > self.last) {
            return Err(truncated(start - self.end + len));
        }
        self.end = start + len;
        Ok(start as usize)
    }

    /// What is kept for changes, after all payloads.
    pub(crate) fn kept(&mut self) -> Result<Option<(Kept, Bytes)>, FormatError> {
        self.kept.map(|kept| Ok((kept, self.take(kept.len())?))).transpose()
    }

    /// Nothing may be left over but units of sections that were skipped.
    pub(crate) fn check(&self) -> Result<(), FormatError> {
        match self.last - self.end {
            0 => Ok(()),
            _ if self.rest_is_skipped()? => Ok(()),
            gap => Err(FormatError::invalid(format!("{gap} bytes between payload and directory"))),
        }
    }

    /// Whether the directory has sections that this reader skips, and whole units are left.
    fn rest_is_skipped(&self) -> Result<bool, FormatError> {
        let tail = tail(self.bytes)?;
        if !tail.skips {
            return Ok(false);
        }
        let (mut sums, mut end) = (tail.sums()?, FRONT as u64);
        let mut is_unit = end == self.end;
        while let Some((start, len, _)) = sums.next()? {
            end = start + len;
            is_unit |= end == self.end;
        }
        Ok(is_unit && end == self.last)
    }
}

/// The version of a file that was opened.
pub(crate) fn version(bytes: &[u8]) -> u16 {
    match bytes {
        [_, _, _, _, _, _, _, _, low, high, ..] => u16::from_le_bytes([*low, *high]),
        _ => VERSION,
    }
}

/// The identity of a file that was opened.
pub(crate) fn identity(bytes: &[u8]) -> [u8; 16] {
    bytes.split_last_chunk::<20>().and_then(|(_, end)| end.first_chunk()).copied().unwrap_or_default()
}

/// The caller's note in a file that was opened.
pub(crate) fn metadata(bytes: &[u8]) -> &[u8] {
    tail(bytes).map_or(&[], |tail| tail.metadata)
}

/// The section of the scorer in a learned filter; empty elsewhere.
pub(crate) fn scorer<'a>(bytes: &'a [u8], budget: &'a Budget) -> Result<Reader<'a>, FormatError> {
    Ok(Reader::budgeted(tail(bytes)?.scorer.unwrap_or_default(), "scorer", budget))
}

/// What a file that was opened keeps for changes.
pub(crate) fn kept(bytes: &[u8]) -> Option<Kept> {
    tail(bytes).ok()?.kept
}

/// Whether a later release may not read a file that was opened.
pub(crate) fn may_change(bytes: &[u8]) -> bool {
    tail(bytes).is_ok_and(|tail| tail.flags & MAY_CHANGE != 0)
}

/// The base in a file of a base and its patches.
fn base(bytes: &[u8]) -> Result<Option<&[u8]>, FormatError> {
    let tail = tail(bytes)?;
    if !tail.has_patches() {
        return Ok(None);
    }
    let mut from = Reader::new(tail.contents, "directory");
    let (_, _, len) = (from.u8()?, from.varint()?, from.varint()?);
    let mut payload = Reader::new(bytes, "the payload");
    payload.take(unit(FRONT as u64, len, false))?;
    payload.take(len).map(Some)
}

/// What a file says of itself.
fn info(bytes: &[u8]) -> Result<FileInfo, FormatError> {
    let Tail { head, metadata, flags, identity, .. } = tail(bytes)?;
    let [form, mut hash] = Reader::new(head, "header").array()?;
    let mut form = Form::decode(form)?;
    if let Some(base) = base(bytes)? {
        // What opens it is what opens the base.
        form = Form::Filter;
        [_, hash] = Reader::new(tail(base)?.head, "header").array()?;
    }
    Ok(FileInfo {
        form: form.name(),
        version: version(bytes),
        identity,
        metadata: metadata.to_vec(),
        may_change: flags & MAY_CHANGE != 0,
        secret_beside: hash == SECRET_BESIDE,
        secret_inside: hash == SECRET_INSIDE,
    })
}

/// Opens the bytes of a file; errors name it.
pub(crate) fn open_file<T>(
    path: &Path,
    bytes: std::io::Result<Bytes>,
    open: impl FnOnce(Bytes) -> Result<T, FormatError>,
) -> Result<T, Error> {
    bytes.map_err(Error::from).and_then(|bytes| Ok(open(bytes)?)).map_err(|error| error.at(path))
}

/// Writes the bytes of a file whole or not at all.
#[cfg(feature = "build")]
pub(crate) fn save(bytes: &[u8], path: &Path) -> Result<(), Error> {
    crate::file::to_file(path, FileInfo::of(bytes)?.secret_inside, |out| Ok(out.write_all(bytes)?))
}

/// Checks the payload's sums, and that there is nothing beside it.
pub(crate) fn verify(bytes: &[u8]) -> Result<(), FormatError> {
    let tail = tail(bytes)?;
    let payload = &bytes[..bytes.len() - tail.len];
    let damaged = FormatError::Checksum { part: "payload" };
    let mut sums = tail.sums()?;
    let mut end = FRONT;
    while let Some((start, len, sums)) = sums.next()? {
        // Compared as they are: a smaller word could hold another number.
        if start + len > payload.len() as u64 {
            return Err(damaged);
        }
        let (start, next) = (start as usize, (start + len) as usize);
        let unit = &payload[start..next];
        if payload[end..start].iter().any(|&byte| byte != 0) || !has_sums(unit, sums) {
            return Err(damaged);
        }
        end = next;
    }
    if end == payload.len() { Ok(()) } else { Err(damaged) }
}

#[cfg(all(test, feature = "build"))]
mod tests;
