//! a key's running number -> its file and line, for messages, at no more than about two bytes per key.
//!
//! Nearly always the next key is on the next line, so only the exceptions are stored: with `i` the key's number in its
//! file, `line - i` stays the same until a blank line, a null or a record of several lines makes it jump.
//!
//! ```text
//!   line   1  2  3  4  5  6  7          jumps, as varints (keys since the last jump, lines skipped):
//!   text   a  b     c        d          (2, 1) (1, 2)
//!   i      0  1     2        3
//! ```
//!
//! A lookup walks the jumps of one file; it happens a handful of times, in an error message.

use std::fmt;

use anyhow::{Error, anyhow};

use super::source::Source;

/// What a file is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Of text.
    Line,
    /// Between NUL bytes.
    Record,
    /// Of a parquet file.
    Row,
    /// Of the command line.
    Argument,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Line => "line",
            Unit::Record => "record",
            Unit::Row => "row",
            Unit::Argument => "argument",
        })
    }
}

/// Where a key stands. Written as `keys.txt line 17`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place<'a> {
    /// The number of the input, from 0.
    pub(crate) file: usize,
    /// The input itself.
    pub(crate) source: &'a Source,
    /// What `line` counts.
    pub(crate) unit: Unit,
    /// From 1; where the record begins if it has several lines.
    pub(crate) line: u64,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.source, self.unit, self.line)
    }
}

/// The places of all keys of one reading.
#[derive(Default, Debug)]
pub(crate) struct Places {
    files: Vec<Lines>,
    keys: u64,
}

#[derive(Debug)]
struct Lines {
    source: Source,
    unit: Unit,
    /// The number of its first key.
    first: u64,
    jumps: Vec<u8>,
    /// The key, counted in this file, at which the last jump happened.
    jumped: u64,
    /// `line - i` of the last key.
    shift: u64,
}

impl Places {
    /// The place of the key with this number, counted from 0 over all inputs.
    pub(crate) fn locate(&self, ordinal: u64) -> Option<Place<'_>> {
        if ordinal >= self.keys {
            return None;
        }
        // A file without keys shares its `first` with the next one: the last of them has the key.
        let file = self.files.partition_point(|lines| lines.first <= ordinal).checked_sub(1)?;
        let lines = &self.files[file];
        Some(Place { file, source: &lines.source, unit: lines.unit, line: lines.line(ordinal - lines.first) })
    }

    /// What is wrong with that key.
    pub(crate) fn error(&self, ordinal: u64, message: &str) -> Error {
        match self.locate(ordinal) {
            Some(place) => anyhow!("{}: {} {}: {message}", place.source, place.unit, place.line),
            None => anyhow!("{message}"),
        }
    }

    /// From here on keys belong to this file.
    pub(super) fn begin(&mut self, source: Source, unit: Unit) {
        self.files.push(Lines { source, unit, first: self.keys, jumps: Vec::new(), jumped: 0, shift: 1 });
    }

    /// The next key is on this line of the last file begun, below the line of the key before it. Returns its number.
    #[inline]
    pub(super) fn push(&mut self, line: u64) -> u64 {
        let ordinal = self.keys;
        self.keys += 1;
        if let Some(lines) = self.files.last_mut() {
            let i = ordinal - lines.first;
            if line != i + lines.shift {
                lines.jump(i, line);
            }
        }
        ordinal
    }

    /// The last file begun, its unit and its number.
    pub(super) fn current(&self) -> (&Source, Unit, usize) {
        self.files
            .last()
            .map_or((&Source::Stdin, Unit::Line, 0), |lines| (&lines.source, lines.unit, self.files.len() - 1))
    }
}

impl Lines {
    #[cold]
    fn jump(&mut self, i: u64, line: u64) {
        let by = line.saturating_sub(i + self.shift);
        write_varint(&mut self.jumps, i - self.jumped);
        write_varint(&mut self.jumps, by);
        self.jumped = i;
        self.shift += by;
    }

    fn line(&self, i: u64) -> u64 {
        let (mut jumps, mut at, mut line) = (&self.jumps[..], 0, i + 1);
        while let (Some(keys), Some(by)) = (read_varint(&mut jumps), read_varint(&mut jumps)) {
            at += keys;
            if at > i {
                break;
            }
            line += by;
        }
        line
    }
}

/// Seven bits per byte, the lowest first; the top bit says that more follow.
fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let n = bytes.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let (varint, rest) = bytes.split_at(n);
    *bytes = rest;
    Some(varint.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip() {
        let values: Vec<u64> = (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit]).chain([u64::MAX]).collect();
        let mut bytes = Vec::new();
        values.iter().for_each(|&value| write_varint(&mut bytes, value));
        let mut rest = &bytes[..];
        let back: Vec<u64> = std::iter::from_fn(|| read_varint(&mut rest)).collect();
        assert_eq!(back, values);
    }

    /// Against a plain list of all places: every pattern of gaps from a small generator, empty files among the others.
    #[test]
    fn every_key_is_found_again() {
        let mut state = 1u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for round in 0..200 {
            let (mut places, mut all) = (Places::default(), Vec::new());
            for file in 0..random(5) {
                places.begin(Source::File(format!("f{file}").into()), Unit::Line);
                let mut line = 0;
                for _ in 0..random(40) {
                    line += 1 + if random(3) == 0 { random(1 << (round % 20)) } else { 0 };
                    assert_eq!(places.push(line), all.len() as u64);
                    all.push((file as usize, line));
                }
            }
            for (ordinal, &(file, line)) in all.iter().enumerate() {
                let place = places.locate(ordinal as u64).map(|p| (p.file, p.line));
                assert_eq!(place, Some((file, line)));
            }
            assert_eq!(places.locate(all.len() as u64), None);
        }
    }

    #[test]
    fn regular_files_cost_nothing_and_the_worst_two_bytes_a_key() {
        let (mut regular, mut worst) = (Places::default(), Places::default());
        regular.begin(Source::File("r".into()), Unit::Line);
        worst.begin(Source::File("w".into()), Unit::Line);
        for i in 0..1000 {
            regular.push(1 + i);
            worst.push(2 + 2 * i);
        }
        assert_eq!(regular.files[0].jumps.len(), 0);
        assert_eq!(worst.files[0].jumps.len(), 2000);
        assert_eq!(worst.locate(999).map(|p| p.to_string()), Some("w line 2000".into()));
    }
}
