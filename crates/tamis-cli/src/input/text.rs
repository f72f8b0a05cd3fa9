//! bytes of a text -> UTF-8, with lines that end with LF or CRLF.
//!
//! The readers above cut at LF and count. So an error waits here until all that stands before it was read, and their count is its line.

use std::collections::VecDeque;
use std::io::{self, Read};

use memchr::memchr2;

/// Bytes that are read at a time, so that they are still in a cache near the processor when they are looked at again.
const CACHED: usize = 1 << 16;

/// Bytes of UTF-16 decoded at a time.
const BUFFER: usize = 1 << 16;

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// A text where a CR without LF may end a line, as on old Macs, and a NUL byte may be an error.
///
/// Both are looked for at once, in the buffer of the caller: a text that has neither costs one search of it.
pub(super) struct Text<R> {
    reader: R,
    /// Whether CR ends a line.
    cr: bool,
    /// What is wrong with a NUL byte, if it is wrong.
    nul: Option<&'static str>,
    /// The last byte was a CR, and what it is depends on the next.
    held: bool,
    /// The next byte is NUL.
    at_nul: bool,
    /// For a caller that asks for a single byte.
    small: VecDeque<u8>,
}

impl<R: Read> Text<R> {
    pub(super) fn new(reader: R, cr: bool, nul: Option<&'static str>) -> Text<R> {
        Text { reader, cr, nul, held: false, at_nul: false, small: VecDeque::new() }
    }
}

impl<R: Read> Read for Text<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.len() < 2 && self.small.is_empty() {
            let mut small = [0; 16];
            let read = self.read(&mut small)?;
            self.small.extend(&small[..read]);
        }
        if !self.small.is_empty() || buffer.len() < 2 {
            return self.small.read(buffer);
        }
        let marks = match (self.cr, self.nul) {
            (true, Some(_)) => [b'\r', 0],
            (true, None) => [b'\r'; 2],
            (false, _) => [0; 2],
        };
        loop {
            if let Some(message) = self.nul.filter(|_| self.at_nul) {
                return Err(invalid(message));
            }
            let begin = usize::from(self.held);
            buffer[..begin].fill(b'\r');
            let most = buffer.len().min(CACHED);
            let read = self.reader.read(&mut buffer[begin..most])?;
            if read == 0 {
                self.held = false;
                buffer[..begin].fill(b'\n');
                return Ok(begin);
            }
            let end = begin + read;
            self.held = self.cr && buffer[end - 1] == b'\r';
            // A byte follows every CR before this.
            let (mut at, mut given) = (0, end - usize::from(self.held));
            // Where every line ends with CRLF, a look at each would take longer than a look at all.
            if memchr2(marks[0], marks[1], &buffer[..given]).is_none() || is_clean(&buffer[..end]) {
                at = given;
            }
            while let Some(i) = memchr2(marks[0], marks[1], &buffer[at..given]).map(|i| at + i) {
                match buffer[i] {
                    0 if self.nul.is_some() => {
                        (self.at_nul, self.held, given) = (true, false, i);
                        break;
                    }
                    b'\r' if buffer[i + 1] != b'\n' => buffer[i] = b'\n',
                    _ => {}
                }
                at = i + 1;
            }
            if given > 0 {
                return Ok(given);
            }
        }
    }
}

/// Whether no byte is NUL, and LF follows every CR but the last.
fn is_clean(bytes: &[u8]) -> bool {
    let wrong = |byte: u8, next: u8| u8::from(byte == 0) | (u8::from(byte == b'\r') & u8::from(next != b'\n'));
    let Some((last, before)) = bytes.split_last() else { return true };
    // Without a branch, so that the compiler takes many at a time.
    *last != 0 && before.iter().zip(&bytes[1..]).fold(0, |all, (&byte, &next)| all | wrong(byte, next)) == 0
}

/// UTF-16 as UTF-8.
pub(super) struct Utf16<R> {
    reader: R,
    /// Whether the high byte comes first.
    big: bool,
    /// Bytes that are not decoded yet.
    raw: Vec<u8>,
    text: String,
    /// So much of the text was given.
    given: usize,
    /// What is wrong behind the text.
    wrong: Option<&'static str>,
    ended: bool,
}

impl<R: Read> Utf16<R> {
    /// Without its mark.
    pub(super) fn new(reader: R, big: bool) -> Utf16<R> {
        Utf16 { reader, big, raw: vec![], text: String::new(), given: 0, wrong: None, ended: false }
    }

    fn decode(&mut self) -> io::Result<()> {
        let kept = self.raw.len();
        self.raw.resize(kept + BUFFER, 0);
        let read = self.reader.read(&mut self.raw[kept..]);
        self.raw.truncate(kept + read.as_ref().map_or(0, |&n| n));
        self.ended = read? == 0;
        let big = self.big;
        let unit = |pair: &[u8]| {
            let unit = u16::from_le_bytes([pair[0], pair[1]]);
            if big { unit.swap_bytes() } else { unit }
        };
        let mut end = self.raw.len() & !1;
        // The first half of a pair waits for the second.
        if !self.ended && end > 0 && (0xd800..0xdc00).contains(&unit(&self.raw[end - 2..end])) {
            end -= 2;
        }
        self.text.clear();
        self.given = 0;
        for c in char::decode_utf16(self.raw[..end].chunks_exact(2).map(unit)) {
            match c {
                Ok(c) => self.text.push(c),
                Err(_) => {
                    self.wrong = Some("half of a surrogate pair; expected UTF-16, as the file begins");
                    return Ok(());
                }
            }
        }
        self.raw.drain(..end);
        if self.ended && !self.raw.is_empty() {
            self.wrong = Some("ends in the middle of a character; expected UTF-16, as the file begins");
        }
        Ok(())
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() {
            match self.wrong {
                Some(message) => return Err(invalid(message)),
                None if self.ended => return Ok(0),
                None => self.decode()?,
            }
        }
        let read = (&self.text.as_bytes()[self.given..]).read(buffer)?;
        self.given += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Gives so many bytes at a time, and an interruption now and then.
    struct Pieces<'a>(&'a [u8], usize, bool);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.2 = !self.2;
            if self.2 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let most = buffer.len().min(self.1);
            self.0.read(&mut buffer[..most])
        }
    }

    /// What comes before an error, and the error.
    fn all(mut reader: impl Read, size: usize) -> (Vec<u8>, Option<String>) {
        let (mut out, mut buffer) = (vec![], vec![0; size]);
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return (out, None),
                Ok(read) => out.extend(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (out, Some(error.to_string())),
            }
        }
    }

    /// All texts of up to six bytes over {a, CR, LF, NUL}, in pieces of every size.
    #[test]
    fn agrees_with_a_byte_by_byte_reading() {
        for length in 0..=6u32 {
            for number in 0..4usize.pow(length) {
                let text: Vec<u8> = (0..length).map(|i| b"a\r\n\0"[number >> (2 * i) & 3]).collect();
                let ended = |text: &[u8]| {
                    let lone = |i: usize| text[i] == b'\r' && text.get(i + 1) != Some(&b'\n');
                    (0..text.len()).map(|i| if lone(i) { b'\n' } else { text[i] }).collect::<Vec<u8>>()
                };
                let nul = text.iter().position(|&byte| byte == 0);
                for (pieces, size) in [(1, 1), (1, 2), (2, 2), (3, 2), (2, 3), (7, 64)] {
                    let read = |cr, nul| all(Text::new(Pieces(&text, pieces, false), cr, nul), size);
                    assert_eq!(read(true, None), (ended(&text), None), "{text:?}");
                    assert_eq!(read(false, None), (text.clone(), None), "{text:?}");
                    let (wrong, before) = (nul.map(|_| "no".to_string()), &text[..nul.unwrap_or(text.len())]);
                    // A CR before a NUL byte has ended its line.
                    let expected = if before.ends_with(b"\r") && nul.is_some() {
                        [&ended(&before[..before.len() - 1])[..], b"\n"].concat()
                    } else {
                        ended(before)
                    };
                    assert_eq!(read(true, Some("no")), (expected, wrong.clone()), "{text:?}");
                    assert_eq!(read(false, Some("no")), (before.to_vec(), wrong), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn utf_16_is_decoded_in_pieces_of_any_size() {
        let text = "naïve\r\n\u{4f60}\u{1f980}\u{10ffff}\nend";
        for big in [false, true] {
            let bytes = |text: &str| -> Vec<u8> {
                let unit = |unit: u16| if big { unit.swap_bytes() } else { unit }.to_le_bytes();
                text.encode_utf16().flat_map(unit).collect()
            };
            let whole = bytes(text);
            for pieces in [1, 2, 3, 5, 7, 1000] {
                let read = |bytes: &[u8]| all(Utf16::new(Pieces(bytes, pieces, false), big), 4);
                assert_eq!(read(&whole), (text.as_bytes().to_vec(), None));
                let (before, error) = read(&whole[..whole.len() - 1]);
                assert_eq!(
                    (before.ends_with(b"\nen"), error.as_deref().map(|e| &e[..18])),
                    (true, Some("ends in the middle"))
                );
                for half in [0xd83e_u16, 0xdd80] {
                    let half = if big { half.swap_bytes() } else { half }.to_le_bytes();
                    let (before, error) = read(&[bytes("a\n"), half.to_vec(), bytes("b")].concat());
                    assert_eq!((&before[..], error.as_deref().map(|e| &e[..4])), (&b"a\n"[..], Some("half")));
                }
                assert_eq!(read(b""), (vec![], None));
            }
        }
    }
}
