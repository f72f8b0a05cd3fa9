//! values of any format -> keys: clean-up, blanks, numbering, places and progress, in one place for all formats.

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;

use anyhow::{Error, Result, anyhow, bail};

use super::place::{Places, Unit};
use super::source::{Meter, Source};
use super::{At, Counts, KeyRef, Number, Options, SecondColumn, SecondValue, Visit};

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyType {
    Text,
    Integer,
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyType::Text => "text",
            KeyType::Integer => "integers",
        })
    }
}

/// Where the readers of all formats put what they find.
pub(super) struct Sink<'a> {
    options: &'a Options,
    counts: Counts,
    places: Places,
    key_type: Option<KeyType>,
    /// Holds a key that had to be changed.
    scratch: Vec<u8>,
    /// The second value of the next key, if there is a column of them.
    label: Option<Vec<u8>>,
    /// The same as a number, if it is one.
    number: Option<u64>,
    /// There is no second value, not even an empty one.
    null: bool,
    /// The row of the next key as it is written, if it is to be shown.
    row: Vec<u8>,
    meter: Rc<Meter>,
    reported: u64,
    progress: &'a mut dyn FnMut(u64),
    visit: &'a mut Visit<'a>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(options: &'a Options, progress: &'a mut dyn FnMut(u64), visit: &'a mut Visit<'a>) -> Sink<'a> {
        Sink {
            options,
            counts: Counts::default(),
            places: Places::default(),
            key_type: None,
            scratch: Vec::new(),
            label: (options.second_column.is_some() || options.second_holds != SecondColumn::Partition).then(Vec::new),
            number: None,
            null: false,
            row: Vec::new(),
            meter: Rc::default(),
            reported: 0,
            progress,
            visit,
        }
    }

    pub(super) fn options(&self) -> &'a Options {
        self.options
    }

    pub(super) fn meter(&self) -> Rc<Meter> {
        Rc::clone(&self.meter)
    }

    /// What follows comes from this file. A query counts once until something else is said.
    pub(super) fn begin(&mut self, source: Source, unit: Unit) {
        self.places.begin(source, unit);
        match self.options.second_holds {
            SecondColumn::Count => self.second(b"1"),
            SecondColumn::File => self.number = Some(self.places.current().2 as u64),
            _ => {}
        }
    }

    /// The second value of what comes next.
    #[inline]
    pub(super) fn second(&mut self, text: &[u8]) {
        if let Some(label) = &mut self.label
            && self.options.second_holds != SecondColumn::File
        {
            label.clear();
            label.extend_from_slice(text);
            (self.number, self.null) = (None, false);
        }
    }

    /// The second value of what comes next is a number.
    pub(super) fn second_number(&mut self, number: u64) {
        self.second(number.to_string().as_bytes());
        self.number = Some(number);
    }

    /// What comes next has no second value: the empty one for partitions, and nothing that a map or a set could hold.
    pub(super) fn no_second(&mut self) {
        self.second(b"");
        self.null = matches!(self.options.second_holds, SecondColumn::Value | SecondColumn::Sets);
    }

    /// The row of what comes next, as it is written.
    #[inline]
    pub(super) fn row(&mut self, row: &[u8]) {
        if self.options.rows {
            self.row.clear();
            self.row.extend_from_slice(row);
        }
    }

    /// A text value on this line. Empty ones, also those that are empty after trimming, are no keys.
    #[inline]
    pub(super) fn text(&mut self, line: u64, text: &[u8]) -> Result<ControlFlow<()>> {
        let mut key = text;
        if self.options.trim {
            key = trim(key);
        }
        if key.is_empty() {
            self.blank(1);
            return Ok(ControlFlow::Continue(()));
        }
        if self.options.integers {
            let number = str::from_utf8(key).ok().and_then(|key| key.parse().ok());
            let wrong = || self.error_at(line, format!("{} is not an integer; expected {}", quote(key), Number::RANGE));
            return self.integer(line, number.ok_or_else(wrong)?);
        }
        let ordinal = self.count_key(line, KeyType::Text)?;
        if self.options.lowercase {
            lowercase(key, &mut self.scratch);
            key = &self.scratch;
        }
        self.counts.key_bytes += key.len() as u64;
        let label = self.label.as_deref().map(|text| SecondValue { text, number: self.number });
        (self.visit)(KeyRef::Bytes(key), label, At { ordinal, file: self.places.current().2, line, row: &self.row })
    }

    /// A number on this line.
    #[inline]
    pub(super) fn integer(&mut self, line: u64, value: Number) -> Result<ControlFlow<()>> {
        let ordinal = self.count_key(line, KeyType::Integer)?;
        self.counts.key_bytes += 8;
        let label = self.label.as_deref().map(|text| SecondValue { text, number: self.number });
        (self.visit)(KeyRef::Integer(value), label, At { ordinal, file: self.places.current().2, line, row: &self.row })
    }

    /// Lines or values that hold no key.
    #[inline]
    pub(super) fn blank(&mut self, n: u64) {
        self.counts.blank += n;
        self.report();
    }

    /// An error at a line of the current file.
    pub(super) fn error_at(&self, line: u64, message: impl fmt::Display) -> Error {
        let (name, unit, _) = self.places.current();
        anyhow!("{name}: {unit} {line}: {message}")
    }

    /// An error of the current file as a whole.
    pub(super) fn error(&self, message: impl fmt::Display) -> Error {
        anyhow!("{}: {message}", self.places.current().0)
    }

    pub(super) fn finish(mut self) -> (Counts, Places) {
        self.report();
        self.counts.read_bytes = self.meter.bytes.get();
        (self.counts, self.places)
    }

    #[inline]
    fn count_key(&mut self, line: u64, key_type: KeyType) -> Result<u64> {
        if self.key_type != Some(key_type) {
            self.check_key_type(line, key_type)?;
        }
        if self.null {
            let column = self.options.second_column.as_deref().unwrap_or_default();
            let (what, _) = self.options.second_column_words();
            let message = format!("the key has no {what}; expected text or an integer in the column {column:?}");
            bail!(self.error_at(line, message));
        }
        self.report();
        self.counts.keys += 1;
        Ok(self.places.push(line))
    }

    /// The first key decides what the others must be.
    #[cold]
    fn check_key_type(&mut self, line: u64, key_type: KeyType) -> Result<()> {
        if let Some(expected) = self.key_type {
            let first = self.places.locate(0).map_or(String::new(), |place| format!(" (the first at {place})"));
            bail!(self.error_at(line, format_args!("found {key_type}; expected {expected} as before{first}")));
        }
        self.key_type = Some(key_type);
        Ok(())
    }

    #[inline]
    fn report(&mut self) {
        let bytes = self.meter.bytes.get();
        if bytes != self.reported {
            self.reported = bytes;
            (self.progress)(bytes);
        }
    }
}

/// A key for a message: printable, and not all of a megabyte.
pub(crate) fn quote(key: &[u8]) -> String {
    const SHOWN: usize = 60;
    match key.get(..SHOWN) {
        Some(head) => format!("\"{}...\"", head.escape_ascii()),
        None => format!("\"{}\"", key.escape_ascii()),
    }
}

pub(super) fn trim(key: &[u8]) -> &[u8] {
    match str::from_utf8(key) {
        Ok(text) => text.trim().as_bytes(),
        Err(_) => key.trim_ascii(),
    }
}

fn lowercase(key: &[u8], out: &mut Vec<u8>) {
    out.clear();
    match str::from_utf8(key) {
        Ok(text) if !text.is_ascii() => out.extend_from_slice(text.to_lowercase().as_bytes()),
        _ => {
            out.extend_from_slice(key);
            out.make_ascii_lowercase();
        }
    }
}

/// The names of columns for a message: quoted, and not all of a thousand.
pub(super) fn list_columns<'n>(names: impl ExactSizeIterator<Item = Cow<'n, str>>) -> String {
    const SHOWN: usize = 20;
    let total = names.len();
    let mut list = names.take(SHOWN).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    if total > SHOWN {
        list.push_str(&format!(" and {} more", total - SHOWN));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trimming_is_unicode_for_text_and_ascii_for_bytes() {
        assert_eq!(trim(" \t\u{a0}\u{2003}a b\u{3000}\r".as_bytes()), b"a b");
        assert_eq!(trim(b" \xff \t"), b"\xff");
        assert_eq!(trim(" \u{a0}".as_bytes()), b"");
    }

    #[test]
    fn lower_case_is_unicode_for_text_and_ascii_for_bytes() {
        let lower = |key: &[u8]| {
            let mut out = b"left over".to_vec();
            lowercase(key, &mut out);
            out
        };
        assert_eq!(lower(b"ABC.Example"), b"abc.example");
        assert_eq!(lower("ÉCOLE ΟΔΟΣ".as_bytes()), "école οδος".as_bytes());
        assert_eq!(lower(b"A\xc9Z"), b"a\xc9z");
    }

    #[test]
    fn quotes_are_printable_and_short() {
        assert_eq!(quote(b"1x\n\xff"), r#""1x\n\xff""#);
        assert_eq!(quote(&[b'7'; 1000]), format!("\"{}...\"", "7".repeat(60)));
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..30).map(|i| format!("c{i}")).collect();
        let list = list_columns(names.iter().map(|name| name.as_str().into()));
        assert!(list.starts_with("\"c0\", \"c1\"") && list.ends_with("\"c19\" and 10 more"), "{list}");
    }
}
