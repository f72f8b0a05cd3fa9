//! files and standard input -> keys: every format and every compression ends in the same call of a closure.
//!
//! ```text
//!   source ──▶ decode ──▶ lines ─────┐
//!   path, -    gzip       delimited ─┼──▶ Sink ──▶ visit(key, ordinal)
//!              zstd       jsonl ─────┤     │
//!              xz         parquet ───┘     └──▶ Places: ordinal -> file and line
//! ```
//!
//! * **Compression is recognised by content**, whatever the file is called, and only one buffer of it is in memory.
//! * **The format is the file's extension** (`.csv`, `.tsv`, `.jsonl` or `.ndjson`, `.parquet`, also under `.gz`, `.zst`,
//!   `.xz`), or [`Options::format`]; everything else, standard input too, is text with one key per line.
//! * **A key is bytes or an integer.** Text is bytes, "17" included. Integers are the numbers of a jsonl column and the
//!   integer columns of parquet files. One call yields one kind; the first key of the other kind is an error.
//! * **Empty is not a key.** Blank lines, empty fields, nulls are skipped and counted in [`Counts::blank`].
//!
//! Which column is read:
//!
//! | file    | `--column NAME`                     | none                                          | `--column '#2'`          |
//! |---------|-------------------------------------|-----------------------------------------------|--------------------------|
//! | csv tsv | the first row is the header         | one column only; **every** row is a key       | the second; no header    |
//! | jsonl   | that field of each object           | one field, the same in each, or bare values   | (a name like any other)  |
//! | parquet | that column                         | one column only                               | (a name like any other)  |
//! | text    | an error, unless it is called `.txt`| the whole line                                | an error                 |
//!
//! A csv file without a header must not lose its first key to a guess, for a lost key is a wrong answer later, while a
//! header that is taken for a key costs a few bits: hence every row counts until a column is named. Quotes have
//! a meaning in csv and none in tsv, as in the IANA description of it: logs are full of lone quotes, and one of them
//! would swallow the rest of the file. A `.txt` file is text whatever the column, so that a table of keys can be
//! built against a plain list of exclusions; for any other name the column would be silently ignored.
//!
//! With a second column, of partitions, every key is given with the partition of its row. A partition is text; a number is its decimal
//! digits, and a null is the empty partition.
//!
//! Expected queries ([`expect`]) are keys with counts, and what a map is made of ([`pairs`]) are keys with values: their column
//! takes the place of the partitions, and a text line has them behind a tab. Keys of many sets ([`sets`]) are such pairs too, or the keys of
//! one file for every set, or the k-mers of sequences ([`kmers`]).
//!
//! Errors name the file, the line (record, row) and what was expected; the closure's own errors pass unchanged.

mod decode;
mod delimited;
pub(crate) mod expect;
pub(crate) mod files;
mod jsonl;
pub(crate) mod kmers;
mod lines;
pub(crate) mod pairs;
#[cfg(feature = "parquet")]
mod parquet;
mod place;
pub(crate) mod sets;
mod sink;
mod sniff;
mod source;
mod text;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::str::FromStr;

use anyhow::{Result, bail};
use tamis::{Digest, Hasher};

pub(crate) use place::{Place, Places, Unit};
pub(crate) use source::{Identity, Source, total_bytes};

pub(crate) use sink::quote;

use sink::Sink;

/// An integer from -2^63 to 2^64 - 1, as keys are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Number(i128);

impl Number {
    /// The range, in words.
    pub(crate) const RANGE: &str = "-2^63 to 2^64 - 1";
}

impl From<u64> for Number {
    fn from(number: u64) -> Number {
        Number(number.into())
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Number {
        Number(number.into())
    }
}

/// An integer that is not negative.
impl TryFrom<Number> for u64 {
    type Error = std::num::TryFromIntError;

    fn try_from(number: Number) -> Result<u64, Self::Error> {
        number.0.try_into()
    }
}

impl FromStr for Number {
    type Err = ();

    fn from_str(text: &str) -> Result<Number, ()> {
        let number: i128 = text.parse().map_err(drop)?;
        let fits = (i64::MIN.into()..=u64::MAX.into()).contains(&number);
        if fits { Ok(Number(number)) } else { Err(()) }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl tamis::Key for Number {
    const KEY_TYPE: tamis::KeyType = tamis::KeyType::Integer;

    fn digest(&self, hasher: &Hasher) -> Digest {
        match u64::try_from(self.0) {
            Ok(number) => hasher.integer(number),
            Err(_) => hasher.integer(self.0 as i64),
        }
    }
}

/// One key, valid during the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyRef<'a> {
    /// A line, a text or a binary value.
    Bytes(&'a [u8]),
    /// An integer.
    Integer(Number),
}

/// How keys are written in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// One key per line.
    Text,
    /// Comma-separated fields, quoted where needed.
    Csv,
    /// Tab-separated fields, never quoted.
    Tsv,
    /// One JSON value per line.
    Jsonl,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// Every format with its name.
    pub(crate) const ALL: &[(&str, Format)] = &[
        ("text", Format::Text),
        ("csv", Format::Csv),
        ("tsv", Format::Tsv),
        ("jsonl", Format::Jsonl),
        ("parquet", Format::Parquet),
    ];
}

/// What is read and how text is cleaned up.
#[derive(Clone, Default, Debug)]
pub(crate) struct Options {
    /// The column of tables.
    pub(crate) column: Option<String>,
    /// The second column; with it `column` is set.
    pub(crate) second_column: Option<String>,
    /// White space at both ends of a text key is dropped (Unicode's; only ASCII's in bytes that are not UTF-8).
    pub(crate) trim: bool,
    /// Text keys are lower-cased (by Unicode's rules; only A-Z in bytes that are not UTF-8).
    pub(crate) lowercase: bool,
    /// Text keys are decimal numbers.
    pub(crate) integers: bool,
    /// Keys of text files end with a NUL byte, and newlines are part of them. Tables do not care.
    pub(crate) null_separated: bool,
    /// For every input, instead of what its name says.
    pub(crate) format: Option<Format>,
    /// What the second column holds.
    pub(crate) second_holds: SecondColumn,
    /// Whether rows are given as they are written.
    pub(crate) rows: bool,
    /// Memory for what a table holds at a time, if it is not the default.
    pub(crate) memory: Option<u64>,
    /// Whether it is an error if the inputs together have no key.
    pub(crate) not_empty: bool,
}

/// What the second column holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum SecondColumn {
    /// The partition of a key.
    #[default]
    Partition,
    /// Its weight: the inputs are expected queries, and text lines may have one.
    Count,
    /// Its value: the inputs are pairs, and text lines must have one.
    Value,
    /// The sets that hold it, behind commas: text lines must have one or more.
    Sets,
    /// The number of its input, from 0.
    File,
}

/// The second value of one key, valid during the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SecondValue<'a> {
    /// As text; a number is its decimal digits.
    pub(crate) text: &'a [u8],
    /// The number, where the format tells numbers from text.
    pub(crate) number: Option<u64>,
}

impl Options {
    /// The same within --memory.
    pub(crate) fn within(self, memory: u64) -> Options {
        Options { memory: Some(memory), ..self }
    }

    /// Memory for what a table holds at a time.
    #[cfg(feature = "parquet")]
    fn memory(&self) -> u64 {
        self.memory.unwrap_or(2 << 30)
    }

    /// What the user calls the column of keys.
    fn column_option(&self) -> &'static str {
        match self.second_holds {
            SecondColumn::Partition | SecondColumn::Sets | SecondColumn::File | SecondColumn::Value => "--column",
            SecondColumn::Count => "--workload-column",
        }
    }

    /// What the second column holds, and what the user calls it.
    fn second_column_words(&self) -> (&'static str, &'static str) {
        match self.second_holds {
            SecondColumn::Partition | SecondColumn::File => ("partition", "--partition-column"),
            SecondColumn::Count => ("weight", "--weight-column"),
            SecondColumn::Value => ("value", "--value-column"),
            SecondColumn::Sets => ("set", "--set-column"),
        }
    }
}

/// What was read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counts {
    /// Keys given to the closure.
    pub(crate) keys: u64,
    /// Blank lines, empty values, nulls.
    pub(crate) blank: u64,
    /// The sum of the keys' lengths; an integer counts 8.
    pub(crate) key_bytes: u64,
    /// Bytes of the inputs, compressed as they are.
    pub(crate) read_bytes: u64,
}

/// Where a key is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct At<'a> {
    /// Its running number over all inputs, from 0.
    pub(crate) ordinal: u64,
    /// The number of its input, from 0.
    pub(crate) file: usize,
    /// Its line, record or row, from 1.
    pub(crate) line: u64,
    /// All of that as it is written, without its end; empty unless [`Options::rows`].
    pub(crate) row: &'a [u8],
}

/// What receives the keys, each with its second value if there is a column of them; `Break` ends the reading.
pub(crate) type Visit<'a> = dyn FnMut(KeyRef<'_>, Option<SecondValue<'_>>, At<'_>) -> Result<ControlFlow<()>> + 'a;

/// Gives every key of `inputs` to `visit`, in order. `progress` hears the running sum of bytes read, to be compared with
/// [`total_bytes`]; it is called about once per buffer of 64 KiB or more.
pub(crate) fn for_each(
    inputs: &[Source],
    options: &Options,
    progress: &mut dyn FnMut(u64),
    visit: &mut Visit<'_>,
) -> Result<(Counts, Places)> {
    read_all(inputs, options, &mut io::stdin().lock(), progress, visit)
}

/// What became of a key: the inner error is what is wrong with it, and is reported with its place.
pub(crate) type Visited = Result<Result<(), String>>;

/// [`read_all`] for a visitor that may reject a key: the first one that it rejects ends the reading with an error.
fn read_checked(
    inputs: &[Source],
    options: &Options,
    stdin: &mut dyn Read,
    progress: &mut dyn FnMut(u64),
    visit: &mut dyn FnMut(KeyRef<'_>, Option<SecondValue<'_>>, u64) -> Visited,
) -> Result<(Counts, Places)> {
    // Only the places know the line, and they come when the reading has ended.
    let mut wrong: Option<(u64, String)> = None;
    let (counts, places) = read_all(inputs, options, stdin, progress, &mut |key, second, at| {
        Ok(match visit(key, second, at.ordinal)? {
            Ok(()) => ControlFlow::Continue(()),
            Err(message) => {
                wrong = Some((at.ordinal, message));
                ControlFlow::Break(())
            }
        })
    })?;
    match wrong {
        Some((ordinal, message)) => Err(places.error(ordinal, &message)),
        None => Ok((counts, places)),
    }
}

/// The same interface without the reader.
#[cfg(not(feature = "parquet"))]
mod parquet {
    use super::{ControlFlow, Result, Sink, Source, bail};

    pub(super) fn read(_: &Source, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        bail!(sink.error("this tamis was built without parquet; expected text, csv, tsv or jsonl"))
    }
}

/// Standard input can be read only once, whatever it is for.
pub(crate) fn check_stdin_once<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Result<()> {
    match sources.into_iter().filter(|source| matches!(source, Source::Stdin)).count() {
        0 | 1 => Ok(()),
        _ => bail!("-: standard input is given twice; expected it once"),
    }
}

/// [`for_each`] with any reader as standard input.
pub(crate) fn read_all(
    inputs: &[Source],
    options: &Options,
    stdin: &mut dyn Read,
    progress: &mut dyn FnMut(u64),
    visit: &mut Visit<'_>,
) -> Result<(Counts, Places)> {
    // All names are looked at before the first key is read: a typing error should not show after an hour.
    check_stdin_once(inputs)?;
    let (column, (what, option)) = (options.column_option(), options.second_column_words());
    if options.second_column.is_some() && options.second_column == options.column {
        bail!("{option}: the same column as {column}; expected one of keys and one of {what}s");
    }
    for input in inputs {
        input.check()?;
        let format = format_of(input, options);
        if format == Format::Text && options.second_column.is_some() {
            bail!(
                "{input}: text lines have no column of {what}s; expected a .csv, .tsv, .jsonl or .parquet file, or --format"
            );
        }
        if format == Format::Text && options.column.is_some() && !input.has_extension("txt") {
            bail!(
                "{input}: {column} does not apply to text lines; expected a .csv, .tsv, .jsonl or .parquet file, or --format"
            );
        }
        if format == Format::Parquet && options.rows {
            bail!("--rows: {input} has no lines to print; expected text, csv, tsv or jsonl");
        }
        if format == Format::Parquet && !input.is_regular() {
            bail!("{input}: parquet cannot be read from a pipe; expected a regular file");
        }
    }

    let mut sink = Sink::new(options, progress, visit);
    for input in inputs {
        let format = format_of(input, options);
        let unit = match format {
            _ if matches!(input, Source::Keys(_)) => Unit::Argument,
            Format::Parquet => Unit::Row,
            Format::Text if options.null_separated => Unit::Record,
            _ => Unit::Line,
        };
        sink.begin(input.clone(), unit);
        let flow = if let Source::Keys(keys) = input {
            read_arguments(keys, &mut sink)?
        } else if format == Format::Parquet {
            parquet::read(input, &mut sink)?
        } else {
            let raw = source::Raw::open(input, &mut *stdin, sink.meter())?;
            let reading = sniff::Reading {
                format: Some(format),
                forced: options.format == Some(Format::Text),
                records: unit == Unit::Record,
            };
            let reader = sniff::open(raw, reading).map_err(|e| sink.error(e))?;
            match format {
                Format::Csv => delimited::read(reader, delimited::CSV, &mut sink)?,
                Format::Tsv => delimited::read(reader, delimited::TSV, &mut sink)?,
                Format::Jsonl => jsonl::read(reader, &mut sink)?,
                Format::Text | Format::Parquet => match options.second_holds {
                    SecondColumn::Partition | SecondColumn::File => lines::read(reader, &mut sink)?,
                    SecondColumn::Count => expect::read(reader, &mut sink)?,
                    SecondColumn::Value | SecondColumn::Sets => pairs::read(reader, &mut sink)?,
                },
            }
        };
        if flow.is_break() {
            break;
        }
    }
    let (counts, places) = sink.finish();
    check_not_empty(inputs, options, counts.keys)?;
    Ok((counts, places))
}

/// An empty list is more often a failed download than meant.
pub(crate) fn check_not_empty(inputs: &[Source], options: &Options, keys: u64) -> Result<()> {
    if keys > 0 || inputs.is_empty() || !options.not_empty {
        return Ok(());
    }
    let names: Vec<String> = inputs.iter().take(3).map(Source::to_string).collect();
    let more = if inputs.len() > names.len() { ", .." } else { "" };
    bail!("{}{more}: no keys; expected one at least; use --allow-empty if that is meant", names.join(", "))
}

/// Every argument is a key.
fn read_arguments(keys: &[OsString], sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
    for (i, key) in keys.iter().enumerate() {
        if sink.text(1 + i as u64, key.as_encoded_bytes())?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The format of one input: what the options say, else what its name says.
pub(crate) fn format_of(input: &Source, options: &Options) -> Format {
    const NAMES: [(&str, Format); 5] = [
        ("csv", Format::Csv),
        ("tsv", Format::Tsv),
        ("jsonl", Format::Jsonl),
        ("ndjson", Format::Jsonl),
        ("parquet", Format::Parquet),
    ];
    let by_name = || NAMES.iter().find(|(extension, _)| input.has_extension(extension)).map(|&(_, format)| format);
    match options.format.or_else(by_name).unwrap_or(Format::Text) {
        // Lines of key, tab and something else are just what such a file is called.
        Format::Tsv
            if !matches!(options.second_holds, SecondColumn::Partition | SecondColumn::File)
                && options.column.is_none() =>
        {
            Format::Text
        }
        format => format,
    }
}

#[cfg(all(test, feature = "parquet", feature = "xz"))]
mod tests;
