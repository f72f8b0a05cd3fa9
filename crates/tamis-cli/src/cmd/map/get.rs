//! a map and keys -> the values of the keys.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;
use tamis::Map;
use tamis::maps::Value;

use super::super::key_batch::KeyBatch;
use super::super::prompt::{Answer, answer_all};
use super::super::{print, print_json, to_stdout};
use super::{open, query_error, typed};
use crate::Outcome;
use crate::args::{QueriedKeys, TextArgs};
use crate::input::{At, KeyRef, SecondValue};
use crate::json::{self, Form};
use crate::mapped::VerifyArgs;
use crate::screen::{self, Stdout};
use crate::secret::SecretArgs;

/// Print the values of keys: key, tab, value
///
/// Keys without a value are left out: unlisted ones, but for a share fpr of them. A map that was built with --unchecked has a
/// value for any key. The exit code is 0 if a key has a value, 1 if none has.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Map file; - is standard input
    #[arg(value_name = "MAP")]
    map: PathBuf,
    #[command(flatten)]
    keys: QueriedKeys,
    /// Print keys without a value too, with an empty value
    #[arg(long)]
    all: bool,
    /// Print only the number of keys that have a value
    #[arg(short, long, conflicts_with = "all")]
    count: bool,
    /// Print a JSON object for every key; with -c, one with the counts
    #[arg(long, conflicts_with = "all")]
    json: bool,
    /// Column of keys in .csv, .tsv, .jsonl and .parquet inputs; '#2' is the second of a csv or tsv without a header
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    verify: VerifyArgs,
    #[command(flatten)]
    secret: SecretArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let sources = args.keys.sources(&args.map)?;
    let options = args.text.options(args.column.as_ref(), None, &sources)?;
    let map = open(&args.map, args.secret.how(args.verify.no_verify)?)?;
    let options = typed(&args.map, &map, options)?;
    let mut query = BatchQuery::new(&map, &args);
    let counts = answer_all(&sources, &options, args.count, &mut query)?;
    let matches = query.matches;
    match (args.count, args.json) {
        (true, true) => {
            print_json(Form::Map, json!({ "keys": counts.keys, "matches": matches, "blank": counts.blank }))?
        }
        (true, false) => print(&format!("{matches}\n"))?,
        _ => {}
    }
    Ok(if matches > 0 { Outcome::Yes } else { Outcome::No })
}

/// Gathers keys, queries them together, and prints their values.
struct BatchQuery<'a> {
    map: &'a Map,
    args: &'a Args,
    out: Stdout,
    keys: KeyBatch,
    matches: u64,
}

impl Answer for BatchQuery<'_> {
    fn push(&mut self, key: KeyRef<'_>, _: Option<SecondValue<'_>>, _: At<'_>) -> Result<()> {
        if self.keys.push(key) { self.query_batch() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        self.query_batch()?;
        to_stdout(self.out.flush())
    }
}

impl<'a> BatchQuery<'a> {
    fn new(map: &'a Map, args: &'a Args) -> BatchQuery<'a> {
        let out = screen::stdout();
        BatchQuery { map, args, out, keys: KeyBatch::default(), matches: 0 }
    }

    fn query_batch(&mut self) -> Result<()> {
        let bytes = self.keys.bytes();
        let queried = match bytes.is_empty() {
            _ if self.keys.len() == 0 => return Ok(()),
            false => self.map.get_many(&bytes),
            true => self.map.get_many(&self.keys.numbers),
        };
        let values = queried.map_err(|error| query_error(&self.args.map, error))?;
        self.matches += values.iter().flatten().count() as u64;
        if !self.args.count {
            for (key, value) in self.keys.names().iter().zip(values) {
                to_stdout(write_answer(&mut self.out, self.args, key, value))?;
            }
        }
        self.keys.clear();
        Ok(())
    }
}

/// Prints one key and its value as the options say.
fn write_answer(out: &mut impl Write, args: &Args, key: &[u8], value: Option<Value<'_>>) -> io::Result<()> {
    if args.json {
        let mut fields = json!({ "value": null });
        json::put(&mut fields, "key", key);
        match value {
            None => {}
            Some(Value::Bytes(bytes)) => json::put(&mut fields, "value", bytes),
            Some(number) => fields["value"] = number.to_string().into(),
        }
        return writeln!(out, "{}", json::object(Some(Form::Map), fields));
    }
    if value.is_none() && !args.all {
        return Ok(());
    }
    out.write_all(key)?;
    out.write_all(b"\t")?;
    match value {
        Some(Value::Bytes(bytes)) => out.write_all(bytes)?,
        Some(number) => write!(out, "{number}")?,
        None => {}
    }
    out.write_all(&[args.text.separator()])
}
