//! unpacked bytes -> text, or an error that says what they are instead.
//!
//! An archive, a program, the page of a failed download: all of them have lines, and a filter of garbage looks like any other filter.
//! So the first bytes of every input are looked at, whatever it is called and wherever it comes from. What is no text is refused by
//! name, unless `--format text` was given.
//!
//! A list must not be refused for one strange key. So `{`, `<` or `PAR1` alone prove nothing: a signature has a byte that is in no text, or
//! is longer than such a key; and JSON must be JSON as far as it can be seen.

use std::io::{self, Cursor, Read};

use memchr::{memchr, memchr2};
use serde::de::IgnoredAny;

use super::Format;
use super::decode::{self, Packing, begins};
use super::source::Raw;
use super::text::{Text, Utf16};

/// So much is looked at, if there is so much.
const HEAD: usize = 1 << 14;

/// A header of a tar archive.
const TAR: usize = 512;

/// U+FEFF in UTF-8, which editors put in front of text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// What an input is read as.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// None for sequences.
    pub(super) format: Option<Format>,
    /// The user said that it is text.
    pub(super) forced: bool,
    /// Records of `-0`, which are given byte for byte.
    pub(super) records: bool,
}

impl Reading {
    fn expected(self) -> &'static str {
        match self.format {
            None => "sequences",
            Some(Format::Csv | Format::Tsv) => "lines of a table",
            Some(Format::Jsonl) => "lines of JSON",
            Some(Format::Text | Format::Parquet) => "lines of text",
        }
    }
}

/// What helps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Advice {
    Nothing,
    Unpack,
    Swapped,
    Convert,
    Use(&'static str),
}

/// What the first bytes say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Plain,
    /// UTF-8 behind a mark.
    Marked,
    /// UTF-16 behind a mark, and whether the high byte comes first.
    Utf16(bool),
    Other(&'static str, Advice),
}

/// First bytes of what is no text.
const SIGNATURES: [(&[u8], &str, Advice); 29] = [
    (b"\x89tamis\r\n", "a tamis filter", Advice::Swapped),
    (b"BZh91AY&SY", "bzip2 data", Advice::Unpack),
    (b"PK\x03\x04", "a zip archive", Advice::Unpack),
    (b"PK\x05\x06", "a zip archive", Advice::Unpack),
    (b"\x04\x22\x4d\x18", "lz4 data", Advice::Unpack),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", Advice::Unpack),
    (b"Rar!\x1a\x07", "a rar archive", Advice::Unpack),
    (b"\x1f\x9d", "data of compress", Advice::Unpack),
    (b"!<arch>\n", "an ar archive", Advice::Unpack),
    (b"\x7fELF", "an ELF program", Advice::Nothing),
    (b"\xfe\xed\xfa\xce", "a Mach-O program", Advice::Nothing),
    (b"\xfe\xed\xfa\xcf", "a Mach-O program", Advice::Nothing),
    (b"\xce\xfa\xed\xfe", "a Mach-O program", Advice::Nothing),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program", Advice::Nothing),
    (b"\xca\xfe\xba\xbe", "a Mach-O program or a Java class", Advice::Nothing),
    (b"\xbe\xba\xfe\xca", "a Mach-O program", Advice::Nothing),
    (b"\xca\xfe\xba\xbf", "a Mach-O program", Advice::Nothing),
    (b"\xbf\xba\xfe\xca", "a Mach-O program", Advice::Nothing),
    (b"\0asm", "a WebAssembly module", Advice::Nothing),
    (b"%PDF-", "a PDF document", Advice::Nothing),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture", Advice::Nothing),
    (b"\xff\xd8\xff", "a JPEG picture", Advice::Nothing),
    (b"SQLite format 3\0", "an SQLite database", Advice::Nothing),
    // The version in the header of the first page, or in that of a file without pages.
    (b"PAR1\x15", "a Parquet file", Advice::Use("--format parquet")),
    (b"ARROW1\0\0", "an Arrow file", Advice::Nothing),
    (b"Obj\x01", "an Avro file", Advice::Nothing),
    (b"\0\0\xfe\xff", "UTF-32 text", Advice::Convert),
    (b"\xff\xfe\0\0", "UTF-32 text", Advice::Convert),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", Advice::Nothing),
];

/// The text of an input: unpacked, UTF-8, lines that end with LF or CRLF. Errors are about the input as a whole; those in its middle come
/// when it is read.
pub(super) fn open<'a>(raw: Raw<'a>, reading: Reading) -> io::Result<Box<dyn Read + 'a>> {
    let (packing, mut reader) = decode::decode(raw)?;
    let (mut head, mut failed) = (Vec::new(), None);
    let found = loop {
        let read = read_some(&mut *reader, &mut head);
        let whole = !matches!(read, Ok(1..)) || head.len() >= HEAD;
        failed = read.err().or(failed);
        if let Some(found) = look(&head, whole, packing.is_some(), reading) {
            break found;
        }
    };
    if let Found::Other(what, advice) = found {
        return Err(io::Error::new(io::ErrorKind::Unsupported, refusal(what, packing, advice, reading)));
    }
    match found {
        Found::Marked => drop(head.drain(..MARK.len())),
        Found::Utf16(_) => drop(head.drain(..2)),
        Found::Plain | Found::Other(..) => {}
    }
    let whole: Box<dyn Read + 'a> = match failed {
        None => Box::new(Cursor::new(head).chain(reader)),
        // What was read before the error is given before it, so that its line is known.
        Some(error) => Box::new(Cursor::new(head).chain(Failed(Some(error)))),
    };
    let text: Box<dyn Read + 'a> = match found {
        Found::Utf16(big) => Box::new(Utf16::new(whole, big)),
        _ => whole,
    };
    let nul = match reading.format {
        _ if reading.forced => None,
        Some(Format::Text) => {
            Some("a NUL byte; expected text; use -0 if NUL bytes end the keys, or --format text to keep them")
        }
        _ => Some("a NUL byte; expected text"),
    };
    Ok(match reading.format {
        // JSON has no NUL bytes, and CR is a blank in it.
        Some(Format::Jsonl) => text,
        _ if reading.records => text,
        // A CR in quotes is part of its field.
        Some(Format::Csv | Format::Tsv) => Box::new(Text::new(text, false, nul)),
        _ => Box::new(Text::new(text, true, nul)),
    })
}

fn refusal(what: &str, packing: Option<Packing>, advice: Advice, reading: Reading) -> String {
    let inside = packing.map(|packing| format!(" inside {}", packing.name())).unwrap_or_default();
    let (what, expected) = (format!("is {what}{inside}"), reading.expected());
    let help = match advice {
        Advice::Swapped => return format!("{what}; swapped?"),
        Advice::Nothing => None,
        Advice::Unpack => Some("unpack it first"),
        Advice::Convert => Some("convert it to UTF-8"),
        Advice::Use(option) => Some(option),
    };
    let force = (reading.format == Some(Format::Text)).then_some("--format text to read it as lines");
    let help: Vec<&str> = help.into_iter().chain(force).collect();
    match help.is_empty() {
        true => format!("{what}; expected {expected}"),
        false => format!("{what}; expected {expected}; {}", help.join(", or ")),
    }
}

/// Reads what is there, up to [`HEAD`] bytes in all.
fn read_some(reader: &mut dyn Read, head: &mut Vec<u8>) -> io::Result<usize> {
    let begin = head.len();
    head.resize(HEAD.max(begin), 0);
    let read = loop {
        match reader.read(&mut head[begin..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read,
        }
    };
    head.truncate(begin + read.as_ref().map_or(0, |&n| n));
    read
}

/// An error that comes when the text before it was read.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// What begins with `head`; none if more of it must be seen. It is `whole` if no more can be.
fn look(head: &[u8], whole: bool, packed: bool, reading: Reading) -> Option<Found> {
    if !reading.forced {
        if let Some(packing) = Packing::of(head).filter(|_| packed) {
            let what = match packing {
                Packing::Gzip => "gzip data",
                Packing::Zstd => "zstd data",
                Packing::Xz => "xz data",
            };
            return Some(Found::Other(what, Advice::Unpack));
        }
        if let Some(&(_, what, advice)) = SIGNATURES.iter().find(|(signature, ..)| head.starts_with(signature)) {
            return Some(Found::Other(what, advice));
        }
        if !whole && SIGNATURES.iter().any(|(signature, ..)| begins(signature, head)) {
            return None;
        }
    }
    if reading.records {
        // NUL bytes are ordinary here, and no reason to wait for more.
        let tar = !reading.forced && is_tar(head);
        return Some(if tar { Found::Other("a tar archive", Advice::Unpack) } else { Found::Plain });
    }
    let text = head.strip_prefix(MARK).unwrap_or(head);
    let found = match head {
        [0xff, 0xfe, ..] => Found::Utf16(false),
        [0xfe, 0xff, ..] => Found::Utf16(true),
        _ if text.len() < head.len() => Found::Marked,
        _ if !whole && (begins(MARK, head) || matches!(head, [0xff | 0xfe])) => return None,
        _ => Found::Plain,
    };
    if reading.forced || matches!(found, Found::Utf16(_)) {
        return Some(found);
    }
    if memchr(0, text).is_some() {
        // An error in any case: there is time to see what it is.
        return whole.then(|| binary(text).map_or(found, |(what, advice)| Found::Other(what, advice)));
    }
    let text = text.trim_ascii_start();
    let other = match text.first() {
        Some(b'<') => is_markup(text, whole)?,
        Some(b'{' | b'[') if reading.format == Some(Format::Text) => is_json(text, whole, head.len() >= HEAD)?,
        None if !whole => return None,
        // NUL bytes of a tar archive come behind a name.
        _ if !whole && text.len() < TAR && memchr2(b'\n', b'\r', text).is_none() => return None,
        _ => None,
    };
    Some(other.map_or(found, |(what, advice)| Found::Other(what, advice)))
}

type Other = (&'static str, Advice);

/// What a file with NUL bytes is, if it can be told.
fn binary(head: &[u8]) -> Option<Other> {
    if is_tar(head) {
        return Some(("a tar archive", Advice::Unpack));
    }
    if let Some(&[a, b, c, d]) = head.get(60..64).filter(|_| head.starts_with(b"MZ"))
        && head.get(u32::from_le_bytes([a, b, c, d]) as usize..).is_some_and(|rest| rest.starts_with(b"PE\0\0"))
    {
        return Some(("a Windows program", Advice::Nothing));
    }
    // Which bytes of four are NUL: all, none, or some.
    let nul = |i: usize| head.iter().skip(i).step_by(4).filter(|&&byte| byte == 0).count();
    let counts = [nul(0), nul(1), nul(2), nul(3)];
    let (all, most) = (head.len() / 4, |count: usize| count > head.len() / 4);
    match counts.map(|count| {
        if count == 0 {
            0
        } else if count >= all {
            2
        } else {
            1
        }
    }) {
        [0, _, 2, 2] | [2, 2, _, 0] if all > 0 => Some(("UTF-32 text without a byte order mark", Advice::Convert)),
        [0, _, 0, _] if most(counts[1] + counts[3]) => Some(("UTF-16 text without a byte order mark", Advice::Convert)),
        [_, 0, _, 0] if most(counts[0] + counts[2]) => Some(("UTF-16 text without a byte order mark", Advice::Convert)),
        _ => None,
    }
}

/// Whether it begins with a header of tar, of any age: all have a sum, which takes its own field for blanks.
fn is_tar(head: &[u8]) -> bool {
    let Some(block) = head.get(..TAR) else { return false };
    let field = &block[148..156];
    let digits = field.split(|&byte| byte == 0).next().unwrap_or_default().trim_ascii();
    let said = str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 8).ok());
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    said == Some(sum(block) - sum(field) + 8 * u32::from(b' '))
}

/// Whether it is HTML or XML; none if more of it must be seen.
fn is_markup(mut text: &[u8], whole: bool) -> Option<Option<Other>> {
    while let Some(comment) = text.strip_prefix(b"<!--") {
        match memchr::memmem::find(comment, b"-->") {
            Some(end) => text = comment[end + 3..].trim_ascii_start(),
            None => return whole.then_some(None),
        }
    }
    for (tag, what) in
        [("<!doctype html", "an HTML document"), ("<html", "an HTML document"), ("<?xml", "an XML document")]
    {
        let seen = text.len().min(tag.len());
        if !text[..seen].eq_ignore_ascii_case(&tag.as_bytes()[..seen]) {
            continue;
        }
        match text.get(tag.len()) {
            Some(byte) if *byte == b'>' || byte.is_ascii_whitespace() => return Some(Some((what, Advice::Nothing))),
            None if !whole => return None,
            _ => {}
        }
    }
    Some(None)
}

/// Whether it is one value of JSON, or a line of it after the other; none if more of it must be seen. It may be `cut` where the head ends.
fn is_json(text: &[u8], whole: bool, cut: bool) -> Option<Option<Other>> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
    let mut count = 0u64;
    loop {
        let rest = text[values.byte_offset()..].trim_ascii_start();
        if !matches!(rest.first(), None | Some(b'{' | b'[')) {
            return Some(None);
        }
        match values.next() {
            Some(Ok(_)) => count += 1,
            None if !whole => return None,
            None => break,
            Some(Err(error)) if error.is_eof() => {
                if !whole {
                    return None;
                }
                // A file that ends too early, or a list that begins with a bracket.
                let quotes = memchr(b'"', rest).is_some_and(|first| memchr(b'"', &rest[first + 1..]).is_some());
                count += u64::from(cut || quotes);
                break;
            }
            Some(Err(_)) => return Some(None),
        }
    }
    Some(match count {
        0 => None,
        1 => Some(("a JSON document", Advice::Nothing)),
        _ => Some(("JSON, a value on each line", Advice::Use("--format jsonl"))),
    })
}
