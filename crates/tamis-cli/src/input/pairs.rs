//! keys with values -> pairs: what a map is made of.
//!
//! ```text
//!   key<TAB>value             text, .tsv too: the first tab ends the key, the rest of the line is the value
//!   csv tsv jsonl parquet     --column and --value-column
//! ```
//!
//! A value is text or a number. Integers of jsonl and parquet are numbers and everything else is text, unless [`Typing`] says
//! otherwise. The clean-up of keys leaves values alone; an empty value is a value, and a null is none and an error.

use std::io::{self, Read};
use std::ops::ControlFlow;

use anyhow::{Result, bail};
use memchr::memchr;
use tamis::maps::Value;

use super::lines::Lines;
use super::sink::{Sink, quote, trim};
use super::{Counts, Format, KeyRef, Options, Places, SecondColumn, Source, Visited, format_of, read_checked};

/// What values are taken for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Typing {
    /// Integers of tables are numbers, all others text.
    #[default]
    Auto,
    /// Numbers; text is their digits.
    Numbers,
    /// Text; a number is its digits.
    Text,
}

impl Typing {
    /// Every typing with its name.
    pub(crate) const ALL: &[(&str, Typing)] =
        &[("auto", Typing::Auto), ("numbers", Typing::Numbers), ("text", Typing::Text)];

    /// The value that a text stands for.
    pub(crate) fn read(self, text: &[u8]) -> Result<Value<'_>, String> {
        if self != Typing::Numbers {
            return Ok(Value::Bytes(text));
        }
        let number = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        let number =
            number.ok_or_else(|| format!("the value {} is not an integer; expected 0 to 2^64 - 1", quote(text)))?;
        Ok(Value::Number(number))
    }
}

/// What receives the pairs. What it says against one is reported with the place of the pair.
pub(crate) type Visit<'a> = dyn FnMut(KeyRef<'_>, Value<'_>, u64) -> Visited + 'a;

/// Gives every pair of `inputs` to `visit`, in order, with its running number; progress is that of [`super::for_each`].
pub(crate) fn for_each(
    inputs: &[Source],
    options: &Options,
    typing: Typing,
    progress: &mut dyn FnMut(u64),
    visit: &mut Visit<'_>,
) -> Result<(Counts, Places)> {
    let options = Options { second_holds: SecondColumn::Value, ..options.clone() };
    for input in inputs {
        if options.column.is_none() && format_of(input, &options) != Format::Text {
            input.check()?;
            bail!("{input}: a table; expected --column NAME and --value-column NAME");
        }
    }
    let mut numbers: Option<bool> = None;
    read_checked(inputs, &options, &mut io::stdin().lock(), progress, &mut |key, value, ordinal| {
        let Some(label) = value else { return Ok(Ok(())) };
        let value = match label.number {
            Some(number) if typing != Typing::Text => Ok(Value::Number(number)),
            _ => typing.read(label.text),
        };
        match value.and_then(|value| one_kind(&mut numbers, value)) {
            Ok(value) => visit(key, value, ordinal),
            Err(message) => Ok(Err(message)),
        }
    })
}

/// The first value decides what the others must be.
fn one_kind<'v>(numbers: &mut Option<bool>, value: Value<'v>) -> Result<Value<'v>, String> {
    let number = value.as_u64().is_some();
    let [found, before] = match number {
        _ if *numbers.get_or_insert(number) == number => return Ok(value),
        true => ["a number", "text"],
        false => ["text", "numbers"],
    };
    Err(format!("the value is {found}, but those before are {before}; expected one kind, or --values text"))
}

/// Every line is a key, a tab and a value, or the sets of the key.
pub(super) fn read(reader: Box<dyn Read + '_>, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
    let options = sink.options();
    let expected = if options.second_holds == SecondColumn::Sets { "key<TAB>set[,set...]" } else { "key<TAB>value" };
    let mut lines = Lines::new(reader, if options.null_separated { 0 } else { b'\n' });
    while let Some((at, line)) = lines.next().map_err(|(line, e)| sink.error_at(line, e))? {
        let line = if options.null_separated { line } else { line.strip_suffix(b"\r").unwrap_or(line) };
        if line.is_empty() || (options.trim && trim(line).is_empty()) {
            sink.blank(1);
            continue;
        }
        let Some(tab) = memchr(b'\t', line) else {
            bail!(sink.error_at(at, format_args!("{} has no tab; expected {expected}", quote(line))));
        };
        let key = &line[..tab];
        if key.is_empty() || (options.trim && trim(key).is_empty()) {
            bail!(sink.error_at(at, format_args!("the key is empty; expected {expected}")));
        }
        sink.second(&line[tab + 1..]);
        if sink.text(at, key)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
