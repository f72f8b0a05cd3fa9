//! csv or tsv -> one column, record by record.
//!
//! The grammar is that of the `csv-core` crate, which runs over any piece of input and stores what it finds at given places.
//! The crate above it, `csv`, would not do here: it skips blank lines silently and takes the line before them for the
//! record's, accepts a quote that is never closed (the rest of the file becomes one key) and has no limit on its length.
//!
//! A record ends with LF, CRLF or CR. All records must have as many fields as the first.

use std::io::{self, Read};
use std::ops::ControlFlow;

use anyhow::{Result, bail};
use csv_core::{ReadRecordResult, ReaderBuilder};
use memchr::memchr_iter;

use super::lines::LIMIT;
use super::sink::{Sink, list_columns};

/// Read from the source at a time.
const BUFFER: usize = 1 << 18;

/// The most fields of a record: where each ends is held in memory, and empty ones have no bytes to count.
const FIELDS: usize = 1 << 20;

/// How fields are separated.
#[derive(Clone, Copy)]
pub(super) struct Dialect {
    delimiter: u8,
    quoting: bool,
}

pub(super) const CSV: Dialect = Dialect { delimiter: b',', quoting: true };
pub(super) const TSV: Dialect = Dialect { delimiter: b'\t', quoting: false };

/// The chosen field of every record.
pub(super) fn read(reader: Box<dyn Read + '_>, dialect: Dialect, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
    let mut rows = Rows::new(reader, dialect, BUFFER, LIMIT);
    rows.written = sink.options().rows.then(Vec::new);
    let mut column: Option<Column> = None;
    loop {
        let more = rows.next();
        sink.blank(std::mem::take(&mut rows.blank));
        if !more.map_err(|e| sink.error_at(rows.row_line, e))? {
            break;
        }
        let found = match &column {
            Some(column) => column,
            None => {
                let found = choose(&rows, sink)?;
                let found = column.insert(found);
                if found.header {
                    continue;
                }
                found
            }
        };
        if rows.width() != found.width {
            let message = format!("{}; expected {} as in the first row", fields(rows.width()), found.width);
            bail!(sink.error_at(rows.row_line, message));
        }
        sink.row(rows.row());
        if let Some(label) = found.label {
            sink.second(rows.field(label));
        }
        if sink.text(rows.row_line, rows.field(found.index))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    if let (None, Some(name)) = (&column, &sink.options().column) {
        bail!(sink.error(format_args!("is empty; expected a header with the column {name:?}")));
    }
    Ok(ControlFlow::Continue(()))
}

fn fields(n: usize) -> String {
    format!("{n} field{}", if n == 1 { "" } else { "s" })
}

/// Which field of each record is the key, and which its second value.
struct Column {
    index: usize,
    label: Option<usize>,
    width: usize,
    /// Whether the first row holds names.
    header: bool,
}

/// Finds the column in the first row.
fn choose(first: &Rows<'_>, sink: &Sink<'_>) -> Result<Column> {
    let width = first.width();
    let Some(name) = &sink.options().column else {
        if width > 1 {
            let names = list_columns((0..width).map(|i| String::from_utf8_lossy(first.field(i))));
            let option = sink.options().column_option();
            let message = format!(
                "has {width} columns ({names}); expected one; choose with {option} NAME, or {option} '#N' if there is no header"
            );
            bail!(sink.error(message));
        }
        return Ok(Column { index: 0, label: None, width, header: false });
    };
    let (index, header) = find(name, first, sink)?;
    let label = match &sink.options().second_column {
        Some(name) => Some(find(name, first, sink)?),
        None => None,
    };
    if label.is_some_and(|(_, named)| named != header) {
        bail!(sink.error("one column by its name and one by its number; expected both by name or both by number"));
    }
    Ok(Column { index, label: label.map(|(index, _)| index), width, header })
}

/// The column of this name or number in the first row, and whether that row holds names.
fn find(name: &str, first: &Rows<'_>, sink: &Sink<'_>) -> Result<(usize, bool)> {
    let width = first.width();
    if let Some(number) = name.strip_prefix('#').and_then(|digits| digits.parse::<usize>().ok()) {
        if number == 0 || number > width {
            bail!(sink.error(format_args!("no column {name}; expected #1 to #{width}")));
        }
        return Ok((number - 1, false));
    }
    let mut matches = (0..width).filter(|&i| first.field(i) == name.as_bytes());
    match (matches.next(), matches.next()) {
        (Some(index), None) => Ok((index, true)),
        (Some(_), Some(_)) => {
            bail!(sink.error(format_args!("more than one column {name:?}; expected one, or its number like '#1'")))
        }
        (None, _) => {
            let names = list_columns((0..width).map(|i| String::from_utf8_lossy(first.field(i))));
            bail!(sink.error(format_args!("no column {name:?}; expected one of {names}")))
        }
    }
}

/// A file cut into records and those into fields.
struct Rows<'a> {
    reader: Box<dyn Read + 'a>,
    core: csv_core::Reader,
    limit: usize,
    input: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    /// The fields of the current record, one behind the other, unquoted.
    text: Vec<u8>,
    ends: Vec<usize>,
    width: usize,
    /// The current record as it is written, if it is to be shown.
    written: Option<Vec<u8>>,
    /// Where the current record begins.
    row_line: u64,
    /// Where the next byte is.
    line: u64,
    /// The last byte was a CR that ended a record; an LF that follows belongs to it.
    after_cr: bool,
    /// Blank lines that were not counted yet.
    blank: u64,
}

impl<'a> Rows<'a> {
    fn new(reader: Box<dyn Read + 'a>, dialect: Dialect, buffer: usize, limit: usize) -> Rows<'a> {
        let core = ReaderBuilder::new().delimiter(dialect.delimiter).quoting(dialect.quoting).build();
        Rows {
            reader,
            core,
            limit,
            input: vec![0; buffer],
            start: 0,
            end: 0,
            ended: false,
            text: vec![0; 256],
            ends: vec![0; 16],
            width: 0,
            written: None,
            row_line: 1,
            line: 1,
            after_cr: false,
            blank: 0,
        }
    }

    fn width(&self) -> usize {
        self.width
    }

    fn field(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.text[start..self.ends[i]]
    }

    /// The current record as it is written, without its line end.
    fn row(&self) -> &[u8] {
        let row = self.written.as_deref().unwrap_or_default();
        let row = row.strip_suffix(b"\n").unwrap_or(row);
        row.strip_suffix(b"\r").unwrap_or(row)
    }

    /// Whether there is one more record. An error is about the record at `row_line`.
    fn next(&mut self) -> io::Result<bool> {
        let begun = self.skip_line_ends();
        self.row_line = self.line;
        if !begun? {
            return Ok(false);
        }
        self.written.iter_mut().for_each(Vec::clear);
        let (mut length, mut width) = (0, 0);
        loop {
            if self.start == self.end {
                self.fill()?;
            }
            // At the end a newline closes the last record. If it does not, a quote is open.
            let input = if self.start < self.end { &self.input[self.start..self.end] } else { b"\n" };
            let (result, taken, stored, closed) =
                self.core.read_record(input, &mut self.text[length..], &mut self.ends[width..]);
            if self.start < self.end {
                let taken = &input[..taken];
                self.written.iter_mut().for_each(|row| row.extend_from_slice(taken));
                self.line += memchr_iter(b'\n', taken).count() as u64;
                self.after_cr = taken.last() == Some(&b'\r');
            }
            let at_end = self.start == self.end;
            self.start += if at_end { 0 } else { taken };
            length += stored;
            width += closed;
            match result {
                ReadRecordResult::Record => {
                    self.width = width;
                    return Ok(true);
                }
                ReadRecordResult::InputEmpty if at_end => {
                    return Err(invalid("a quoted field does not end; expected a closing quote".into()));
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if length >= self.limit => {
                    return Err(invalid(format!(
                        "too long; expected at most {} bytes for a record; is a quote left open?",
                        self.limit
                    )));
                }
                ReadRecordResult::OutputFull => self.text.resize((2 * self.text.len()).min(self.limit), 0),
                ReadRecordResult::OutputEndsFull if width >= FIELDS => {
                    return Err(invalid(format!("too many fields; expected at most {FIELDS} in a record")));
                }
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::End => return Ok(false),
            }
        }
    }

    /// Steps over blank lines to the first byte of a record; false at the end.
    fn skip_line_ends(&mut self) -> io::Result<bool> {
        loop {
            if self.start == self.end {
                self.fill()?;
                if self.ended {
                    return Ok(false);
                }
            }
            let byte = self.input[self.start];
            if byte == b'\n' {
                self.line += 1;
                self.blank += u64::from(!self.after_cr);
                self.after_cr = false;
            } else {
                // A CR without an LF was a line end of its own.
                self.line += u64::from(self.after_cr);
                self.after_cr = byte == b'\r';
                if !self.after_cr {
                    return Ok(true);
                }
                self.blank += 1;
            }
            self.start += 1;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        (self.start, self.end) = (0, 0);
        while !self.ended && self.end == 0 {
            match self.reader.read(&mut self.input) {
                Ok(0) => self.ended = true,
                Ok(n) => self.end = n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    type Table = Vec<(u64, Vec<String>)>;

    fn table(text: &str, dialect: Dialect, buffer: usize) -> io::Result<(Table, u64)> {
        let mut rows = Rows::new(Box::new(text.as_bytes()), dialect, buffer, 1000);
        let mut table = Vec::new();
        while rows.next()? {
            let field = |i| String::from_utf8(rows.field(i).to_vec()).unwrap();
            table.push((rows.row_line, (0..rows.width()).map(field).collect()));
        }
        Ok((table, rows.blank))
    }

    #[track_caller]
    fn check(text: &str, dialect: Dialect, expected: &[(u64, &[&str])], blank: u64) {
        let expected: Table = expected.iter().map(|(n, r)| (*n, r.iter().map(|f| f.to_string()).collect())).collect();
        for buffer in [1, 2, 3, 5, 1000] {
            assert_eq!(table(text, dialect, buffer).unwrap(), (expected.clone(), blank), "{text:?} at {buffer}");
        }
    }

    #[test]
    fn records_fields_and_lines() {
        check("", CSV, &[], 0);
        check("a,b\nc,d", CSV, &[(1, &["a", "b"]), (2, &["c", "d"])], 0);
        check("a,b\r\nc,d\r\n", CSV, &[(1, &["a", "b"]), (2, &["c", "d"])], 0);
        check("a\rb\rc", CSV, &[(1, &["a"]), (2, &["b"]), (3, &["c"])], 0);
        check("\n\na\n\nb\n\n", CSV, &[(3, &["a"]), (5, &["b"])], 4);
        check("\r\na\r\n\r\n\r\nb\r\n", CSV, &[(2, &["a"]), (5, &["b"])], 3);
        check("\"x\ny\",1\nz,2\n", CSV, &[(1, &["x\ny", "1"]), (3, &["z", "2"])], 0);
        check("\"x\r\n\r\ny\"\r\nz\r\n", CSV, &[(1, &["x\r\n\r\ny"]), (4, &["z"])], 0);
        check("\"a \"\"q\"\", b\",\"\"\n", CSV, &[(1, &["a \"q\", b", ""])], 0);
        check("\"a\"", CSV, &[(1, &["a"])], 0);
        check(",\n", CSV, &[(1, &["", ""])], 0);
    }

    #[test]
    fn tsv_has_no_quotes() {
        check("\"a\t1\nb\t\"2\n", TSV, &[(1, &["\"a", "1"]), (2, &["b", "\"2"])], 0);
        check("a,b\tc\r\n", TSV, &[(1, &["a,b", "c"])], 0);
    }

    #[test]
    fn many_and_long_fields_grow_the_buffers() {
        let wide: Vec<String> = (0..200).map(|i| format!("f{i}")).collect();
        let (got, _) = table(&wide.join(","), CSV, 64).unwrap();
        assert_eq!(got, [(1, wide)]);
    }

    #[test]
    fn open_quotes_and_endless_records_are_errors() {
        for buffer in [1, 3, 4000] {
            let open = table("a\n\"b\nc\n", CSV, buffer).unwrap_err().to_string();
            assert_eq!(open, "a quoted field does not end; expected a closing quote");
            let long = table(&format!("\"{}\"", "x".repeat(2000)), CSV, buffer).unwrap_err().to_string();
            assert!(long.contains("1000 bytes"), "{long}");
        }
        let wide = table(&",".repeat(FIELDS + 1), CSV, 4000).unwrap_err().to_string();
        assert_eq!(wide, "too many fields; expected at most 1048576 in a record");
    }
}
