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
use super::{open, query_error};
use crate::Outcome;
use crate::args::{self, TextArgs};
use crate::input::{KeyRef, SecondValue};
use crate::mapped::VerifyArgs;
use crate::screen::{self, Stdout};

/// Print the values of keys: key, tab, value.
///
/// Keys that are seen to be absent are left out; without --fingerprint at the build few are, and an absent key gets any value. Exit code
/// 0 if a key has a value, 1 if none has one, 2 on an error.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The map file
    #[arg(value_name = "FILE")]
    map: PathBuf,
    /// Files of keys; - or none is standard input
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Print absent keys too, with an empty value
    #[arg(long)]
    all: bool,
    /// Print only how many keys have a value
    #[arg(short, long, conflicts_with = "all")]
    count: bool,
    /// Print a JSON object for every key, absent ones too, or with -c one of the counts
    #[arg(long, conflicts_with = "all")]
    json: bool,
    /// The column of keys of .csv, .tsv, .jsonl and .parquet inputs; '#2' is the second of a csv or tsv without a header
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    verify: VerifyArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let map = open(&args.map, args.verify)?;
    let sources = args::sources(&args.inputs);
    let mut query = BatchQuery::new(&map, &args);
    let options = args.text.options(args.column.as_ref(), None);
    let counts = answer_all(&sources, &options, args.count, &mut query)?;
    let found = query.found;
    match (args.count, args.json) {
        (true, true) => print_json(&json!({ "keys": counts.keys, "found": found, "blank": counts.blank }))?,
        (true, false) => print(&format!("{found}\n"))?,
        _ => {}
    }
    Ok(if found > 0 { Outcome::Yes } else { Outcome::No })
}

/// Gathers keys, asks for them together, and prints what was asked for.
struct BatchQuery<'a> {
    map: &'a Map,
    args: &'a Args,
    out: Stdout,
    keys: KeyBatch,
    found: u64,
}

impl Answer for BatchQuery<'_> {
    fn push(&mut self, key: KeyRef<'_>, _: Option<SecondValue<'_>>) -> Result<()> {
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
        BatchQuery { map, args, out, keys: KeyBatch::default(), found: 0 }
    }

    fn query_batch(&mut self) -> Result<()> {
        let bytes = self.keys.bytes();
        let asked = match bytes.is_empty() {
            _ if self.keys.len() == 0 => return Ok(()),
            false => self.map.get_many(&bytes),
            true => self.map.get_many(&self.keys.numbers),
        };
        let values = asked.map_err(|error| query_error(&self.args.map, error))?;
        self.found += values.iter().flatten().count() as u64;
        if !self.args.count {
            for (key, value) in self.keys.names().iter().zip(values) {
                to_stdout(write_answer(&mut self.out, self.args, key, value))?;
            }
        }
        self.keys.clear();
        Ok(())
    }
}

/// Prints one key and its value as the options want it.
fn write_answer(out: &mut impl Write, args: &Args, key: &[u8], value: Option<Value<'_>>) -> io::Result<()> {
    if args.json {
        let value = value.map(|value| value.to_string());
        return writeln!(out, "{}", json!({ "key": String::from_utf8_lossy(key), "value": value }));
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
