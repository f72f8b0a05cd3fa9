//! text -> lines: one buffer that grows to the longest line, and `memchr`.
//!
//! A line ends with LF or CRLF (CR alone is one of them by now), a record of `-0` with NUL; the last one may lack its end. Any other byte
//! is part of the key, also what is not UTF-8.
//!
//! A list of another program, as a hosts file, has a key inside every line. Nothing is taken out of it: that would be a guess. But such lines are
//! counted, and a file of them is a warning.

use std::io::{self, Read};
use std::ops::ControlFlow;

use anyhow::Result;
use memchr::memchr;

use super::sink::Sink;
use crate::cmd::grouped;
use crate::failure;

/// Where the buffer begins: large enough to make system calls rare, small enough for the second-level cache.
const BUFFER: usize = 1 << 18;

/// The longest line, record of csv and JSON value: 16 MiB. A line is held in memory whole, whatever limits are set, and a few
/// compressed bytes may unfold to any length.
pub(super) const LIMIT: usize = 1 << 24;

/// Every line is a key.
pub(super) fn read(reader: Box<dyn Read + '_>, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
    let null_separated = sink.options().null_separated;
    let mut lines = Lines::new(reader, if null_separated { 0 } else { b'\n' });
    // Who says that it is text knows what is in it.
    let mut census = Census { counting: sink.options().format.is_none(), ..Census::default() };
    while let Some((number, line)) = lines.next().map_err(|(line, e)| sink.error_at(line, e))? {
        sink.row(line);
        let key = if null_separated { line } else { line.strip_suffix(b"\r").unwrap_or(line) };
        if census.counting {
            census.count(key);
        }
        if sink.text(number, key)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    if null_separated && lines.is_unseparated() {
        failure::warn(&sink.error("no NUL byte and several lines, which -0 reads as one key").to_string());
    }
    if let Some(found) = census.found() {
        failure::warn(&sink.error(found).to_string());
    }
    Ok(ControlFlow::Continue(()))
}

/// Lines that look like those of another program's list.
#[derive(Default)]
struct Census {
    /// Whether the next line is looked at: it is one of the first, or most of those were such lines.
    counting: bool,
    /// Lines that are not blank.
    lines: u64,
    hosts: u64,
    rules: u64,
    comments: u64,
}

impl Census {
    /// So many lines decide whether the others are looked at.
    const FIRST: u64 = 1000;

    /// Addresses that lead nowhere, as hosts files have them before names.
    const ADDRESSES: [&[u8]; 4] = [b"0.0.0.0", b"127.0.0.1", b"::1", b"::"];

    #[inline]
    fn count(&mut self, line: &[u8]) {
        // Most lines of most lists begin with a letter.
        match line.first() {
            None => return,
            Some(first) if first.is_ascii_alphabetic() => self.lines += 1,
            Some(_) => self.look_at(line.trim_ascii()),
        }
        self.counting = self.lines < Census::FIRST || self.is_other();
    }

    fn look_at(&mut self, line: &[u8]) {
        self.lines += u64::from(!line.is_empty());
        match line.first() {
            Some(b'0' | b'1' | b':') => {
                let address = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
                self.hosts += u64::from(address.len() < line.len() && Census::ADDRESSES.contains(&address));
            }
            Some(b'|' | b'@') => {
                let rule = line.strip_prefix(b"@@").unwrap_or(line);
                self.rules += u64::from(rule.starts_with(b"||") && rule.contains(&b'^'));
            }
            // A word behind the sign may be a key: a channel, a tag, a colour.
            Some(sign @ (b'#' | b'!')) => {
                let next = line.get(1);
                self.comments += u64::from(next.is_none_or(|next| next == sign || next.is_ascii_whitespace()));
            }
            _ => {}
        }
    }

    fn is_other(&self) -> bool {
        2 * (self.hosts + self.rules + self.comments) > self.lines
    }

    /// What the lines look like, if they were all looked at.
    fn found(&self) -> Option<String> {
        if !self.counting || !self.is_other() {
            return None;
        }
        let kinds = [
            (self.hosts, "a hosts file (0.0.0.0 name)"),
            (self.rules, "rules of an ad blocker (||name^)"),
            (self.comments, "comments (#, !)"),
        ];
        let mut kinds = kinds.into_iter().filter(|&(lines, _)| lines > 0);
        let (lines, what) = kinds.next()?;
        let others: String = kinds.map(|(lines, what)| format!(", {} like {what}", grouped(lines))).collect();
        let all = grouped(self.lines);
        Some(format!("{} of {all} lines look like {what}{others} and are read as keys as they stand", grouped(lines)))
    }
}

/// The number of the line that could not be read, and why.
type Failure = (u64, io::Error);

/// A text cut at a byte.
pub(super) struct Lines<'a> {
    reader: Box<dyn Read + 'a>,
    separator: u8,
    limit: usize,
    buffer: Vec<u8>,
    /// The current line begins here.
    start: usize,
    /// No separator between `start` and here.
    scanned: usize,
    /// The bytes read end here.
    end: usize,
    ended: bool,
    number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(reader: Box<dyn Read + 'a>, separator: u8) -> Lines<'a> {
        Lines::with_sizes(reader, separator, BUFFER, LIMIT)
    }

    fn with_sizes(reader: Box<dyn Read + 'a>, separator: u8, buffer: usize, limit: usize) -> Lines<'a> {
        let buffer = vec![0; buffer];
        Lines { reader, separator, limit, buffer, start: 0, scanned: 0, end: 0, ended: false, number: 0 }
    }

    /// The next line without its separator, and its number from 1.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8])>, Failure> {
        loop {
            if let Some(i) = memchr(self.separator, &self.buffer[self.scanned..self.end]) {
                let line = self.start..self.scanned + i;
                self.start = line.end + 1;
                self.scanned = self.start;
                self.number += 1;
                return Ok(Some((self.number, &self.buffer[line])));
            }
            self.scanned = self.end;
            if self.ended {
                if self.start == self.end {
                    return Ok(None);
                }
                let line = self.start..self.end;
                self.start = self.end;
                self.number += 1;
                return Ok(Some((self.number, &self.buffer[line])));
            }
            self.fill().map_err(|e| (self.number + 1, e))?;
        }
    }

    /// Whether all that was read is one line without a separator, and has other ends of lines in it.
    fn is_unseparated(&self) -> bool {
        let all = &self.buffer[..self.end];
        self.number == 1
            && all.split_last().is_some_and(|(&last, most)| last != self.separator && most.contains(&b'\n'))
    }

    /// Reads more behind the unfinished line, which moves to the front.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.scanned -= self.start;
        self.start = 0;
        if self.end > self.limit {
            let message = format!("too long; expected at most {} bytes for a line", self.limit);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        if self.end == self.buffer.len() {
            // One byte more than the limit: the separator of the longest line.
            self.buffer.resize((2 * self.end).min(self.limit + 1), 0);
        }
        match self.reader.read(&mut self.buffer[self.end..]) {
            Ok(0) => self.ended = true,
            Ok(n) => self.end += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Gives pieces of 1, 2, 3, ... bytes and an interruption now and then.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(5) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let n = buffer.len().min(self.1 % 7 + 1);
            self.0.read(&mut buffer[..n])
        }
    }

    fn cut(text: &[u8], separator: u8, buffer: usize) -> Vec<Vec<u8>> {
        let mut lines = Lines::with_sizes(Box::new(Pieces(text, 0)), separator, buffer, 1 << 20);
        let mut all = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            all.push(line.to_vec());
            assert_eq!(number, all.len() as u64);
        }
        all
    }

    /// All texts of up to seven bytes over {a, LF}, at buffers that make every line cross an edge.
    #[test]
    fn agrees_with_split() {
        for bits in 1u32..256 {
            let length = 31 - bits.leading_zeros();
            let text: Vec<u8> = (0..length).map(|i| if bits >> i & 1 == 1 { b'\n' } else { b'a' }).collect();
            let mut expected: Vec<Vec<u8>> = text.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
            // What follows the last separator is a line only if it has bytes.
            if expected.last().is_some_and(Vec::is_empty) {
                expected.pop();
            }
            for buffer in [1, 2, 3, 64] {
                assert_eq!(cut(&text, b'\n', buffer), expected, "{text:?} at {buffer}");
            }
        }
    }

    #[test]
    fn a_line_over_the_limit_is_an_error_with_its_number() {
        let text = [&b"a\n"[..], &vec![b'x'; 2000], b"\n"].concat();
        for limit in [2000, 2001, 5000] {
            let mut lines = Lines::with_sizes(Box::new(&text[..]), b'\n', 16, limit);
            lines.next().unwrap();
            assert_eq!(lines.next().unwrap().map(|(_, line)| line.len()), Some(2000));
        }
        for limit in [1000, 1999] {
            let mut lines = Lines::with_sizes(Box::new(&text[..]), b'\n', 16, limit);
            assert_eq!(lines.next().unwrap(), Some((1, &b"a"[..])));
            let (line, error) = lines.next().unwrap_err();
            assert_eq!(line, 2);
            assert!(error.to_string().contains(&limit.to_string()), "{error}");
        }
    }
}
