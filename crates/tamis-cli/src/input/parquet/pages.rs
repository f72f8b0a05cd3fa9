//! the pages of a column -> what they take, looked at before one of them is unpacked.
//!
//! A page says how long it is unpacked, and a dictionary how many values it has. The crate takes memory for what they say, and a few
//! bytes may say any number. So the headers are read here first, without the crate: structs of Thrift's compact protocol, of which a few
//! integers matter.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use ::parquet::basic::Compression;
use ::parquet::data_type::ByteArray;
use ::parquet::file::metadata::ColumnChunkMetaData;
use flate2::read::MultiGzDecoder;

use crate::cmd::grouped;

/// Bytes that one byte of gzip unpacks to, at most.
const GZIP: u64 = 1032;

/// The number of DELTA_BYTE_ARRAY among the encodings.
const DELTA_BYTE_ARRAY: i64 = 7;

/// How many rows may be decoded at a time, at most `rows`; an error says what is wrong with the column.
pub(super) fn check(file: &File, chunk: &ColumnChunkMetaData, memory: u64, rows: usize) -> Result<usize, String> {
    let damaged = |error: io::Error| format!("the file is damaged: a page has no header ({error})");
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    let (mut at, length) = chunk.byte_range();
    let end = at.saturating_add(length);
    if end > size {
        return Err(format!("the file is damaged: a column ends at byte {end}, and the file at {size}"));
    }
    let too_large = |bytes: u64, what: &str| {
        let (bytes, memory) = (grouped(bytes), grouped(memory));
        Err(format!("a page unpacks to {bytes} bytes{what}; expected at most {memory}; use a larger --memory"))
    };
    let mut rows = rows as u64;
    while at < end {
        let mut from = Counted { reader: BufReader::with_capacity(256, file), read: 0 };
        from.reader.seek(SeekFrom::Start(at)).map_err(damaged)?;
        let page = Page::read(&mut from).map_err(damaged)?;
        let begin = at + from.read;
        let (Ok(unpacked), Ok(packed)) = (u64::try_from(page.unpacked), u64::try_from(page.packed)) else {
            return Err("the file is damaged: a page has a negative size".into());
        };
        if packed > end.saturating_sub(begin) {
            return Err("the file is damaged: a page is longer than its column".into());
        }
        if unpacked > memory {
            return too_large(unpacked, "");
        }
        // Each value is a byte at least, and has a place of its own in memory.
        let values = u64::try_from(page.dictionary).unwrap_or(u64::MAX);
        if values > unpacked {
            return Err("the file is damaged: a dictionary has more values than bytes".into());
        }
        let places = values.saturating_mul(size_of::<ByteArray>() as u64);
        if unpacked.saturating_add(places) > memory {
            return too_large(unpacked.saturating_add(places), " with its dictionary");
        }
        // The crate unpacks gzip to its end, whatever the header says.
        if matches!(chunk.compression(), Compression::GZIP(_)) && packed.saturating_mul(GZIP) > memory {
            from.reader.seek(SeekFrom::Start(begin)).map_err(damaged)?;
            let mut unpacked = MultiGzDecoder::new(from.reader.take(packed)).take(memory.saturating_add(1));
            // What is wrong with the data is found when they are read.
            let found = io::copy(&mut unpacked, &mut io::sink()).unwrap_or(0);
            if found > memory {
                return too_large(found, " or more");
            }
        }
        // Each value may repeat all of the one before, in memory of its own.
        if page.encoding == DELTA_BYTE_ARRAY {
            rows = rows.min(memory / 2 / unpacked.max(1)).max(1);
        }
        at = begin + packed;
    }
    Ok(rows as usize)
}

struct Counted<R> {
    reader: R,
    read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.read += read as u64;
        Ok(read)
    }
}

/// What matters of a header.
#[derive(Default)]
struct Page {
    unpacked: i64,
    packed: i64,
    /// Values of a dictionary.
    dictionary: i64,
    /// The encoding of values.
    encoding: i64,
}

impl Page {
    fn read(from: &mut impl Read) -> io::Result<Page> {
        let mut page = Page::default();
        read_struct(from, 0, 0, &mut |outer, field, value| match (outer, field) {
            (0, 2) => page.unpacked = value,
            (0, 3) => page.packed = value,
            (5, 2) | (8, 4) => page.encoding = value,
            (7, 1) => page.dictionary = value,
            _ => {}
        })?;
        Ok(page)
    }
}

/// Structs in structs, of which a header has three.
const DEPTH: u32 = 8;

/// Reads a struct, which is that field of another one, and gives its integers.
fn read_struct(from: &mut impl Read, outer: i16, depth: u32, give: &mut dyn FnMut(i16, i16, i64)) -> io::Result<()> {
    let mut field = 0i16;
    loop {
        let head = byte(from)?;
        if head == 0 {
            return Ok(());
        }
        field = match head >> 4 {
            0 => signed(varint(from)?) as i16,
            delta => field.wrapping_add(delta.into()),
        };
        match head & 15 {
            // Truth values of fields are their type.
            1 | 2 => {}
            4..=6 => give(outer, field, signed(varint(from)?)),
            12 if depth < DEPTH => read_struct(from, field, depth + 1, give)?,
            kind => skip(from, kind, depth)?,
        }
    }
}

/// Reads a value of this type.
fn skip(from: &mut impl Read, kind: u8, depth: u32) -> io::Result<()> {
    let bytes = match kind {
        1..=3 => 1,
        4..=6 => return varint(from).map(drop),
        7 => 8,
        8 => varint(from)?,
        9 | 10 if depth < DEPTH => {
            let head = byte(from)?;
            let length = if head >> 4 == 15 { varint(from)? } else { u64::from(head >> 4) };
            return (0..length).try_for_each(|_| skip(from, head & 15, depth + 1));
        }
        12 if depth < DEPTH => return read_struct(from, 0, depth + 1, &mut |_, _, _| {}),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    match io::copy(&mut from.take(bytes), &mut io::sink())? == bytes {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn byte(from: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn varint(from: &mut impl Read) -> io::Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let next = byte(from)?;
        value |= u64::from(next & 0x7f) << shift;
        if next & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Zigzag: the sign is the lowest bit.
fn signed(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
