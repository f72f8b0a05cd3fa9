//! a filter and keys -> the keys that are in it.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;
use tamis::{Filter, Key, QueryError};

use super::key_batch::KeyBatch;
use super::prompt::{Answer, answer_all};
use super::{check_labels, open, print, print_json, query_error, to_stdout};
use crate::Outcome;
use crate::args::{self, InputArgs};
use crate::input::{KeyRef, SecondValue};
use crate::mapped::VerifyArgs;
use crate::screen::{self, Stdout};

/// Print the keys that a filter lets through, like grep -F -x -f.
///
/// These are all keys of its set, and a few strangers. Exit code 0 if there was one (with -v: one that was not let
/// through), 1 if there was none, 2 on an error.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The filter file
    #[arg(value_name = "FILE")]
    filter: PathBuf,
    /// Files of keys; - or none is standard input
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Print the other keys instead: those that are surely not in the set
    #[arg(short = 'v', long = "invert")]
    invert: bool,
    /// Print only how many there are
    #[arg(short, long)]
    count: bool,
    /// Print every key, a tab, and 1 or 0
    #[arg(long, conflicts_with_all = ["invert", "count"])]
    tsv: bool,
    /// Print a JSON object for every key, or with -c one of the counts
    #[arg(long, conflicts_with_all = ["invert", "tsv"])]
    json: bool,
    /// Ask for all keys under this label of a partitioned filter; a label that it does not know has no keys
    #[arg(long, value_name = "LABEL", conflicts_with = "partition_column")]
    partition: Option<String>,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    verify: VerifyArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let filter = open(&args.filter, args.verify)?;
    let labelled = args.partition.is_some() || args.input.is_partitioned();
    check_labels(&args.filter, &filter, labelled, "--partition LABEL or --partition-column NAME")?;
    let sources = args::sources(&args.inputs);
    let mut query = BatchQuery::new(&filter, &args);
    let counts = answer_all(&sources, &args.input.options(), args.count, &mut query)?;
    let (found, selected) = (query.found, if args.invert { counts.keys - query.found } else { query.found });
    match (args.count, args.json) {
        (true, true) => print_json(&json!({ "keys": counts.keys, "found": found, "blank": counts.blank }))?,
        (true, false) => print(&format!("{selected}\n"))?,
        _ => {}
    }
    Ok(if selected > 0 { Outcome::Yes } else { Outcome::No })
}

/// Gathers keys, asks for them together, and prints what was asked for.
struct BatchQuery<'a> {
    filter: &'a Filter,
    args: &'a Args,
    out: Stdout,
    keys: KeyBatch,
    /// Labels, and how many keys in a row carry each.
    runs: Vec<(Vec<u8>, usize)>,
    answers: Vec<bool>,
    found: u64,
}

impl Answer for BatchQuery<'_> {
    fn push(&mut self, key: KeyRef<'_>, second: Option<SecondValue<'_>>) -> Result<()> {
        let label = second.map(|label| label.text).or(self.args.partition.as_deref().map(str::as_bytes));
        match (label, self.runs.last_mut()) {
            (None, _) => {}
            (Some(label), Some((last, count))) if last == label => *count += 1,
            (Some(label), _) => self.runs.push((label.to_vec(), 1)),
        }
        if self.keys.push(key) { self.query_batch() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        self.query_batch()?;
        to_stdout(self.out.flush())
    }
}

impl<'a> BatchQuery<'a> {
    fn new(filter: &'a Filter, args: &'a Args) -> BatchQuery<'a> {
        let out = screen::stdout();
        BatchQuery { filter, args, out, keys: KeyBatch::default(), runs: vec![], answers: vec![], found: 0 }
    }

    fn query_batch(&mut self) -> Result<()> {
        if self.keys.len() == 0 {
            return Ok(());
        }
        let keys = self.keys.bytes();
        self.answers.clear();
        self.answers.resize(self.keys.len(), false);
        let asked = match keys.is_empty() {
            // Nobody knows what an empty filter would have held.
            _ if self.filter.is_empty() => Ok(()),
            false => query_many(self.filter, &self.runs, &keys, &mut self.answers),
            true => query_many(self.filter, &self.runs, &self.keys.numbers, &mut self.answers),
        };
        asked.map_err(|error| query_error(&self.args.filter, error))?;
        self.found += self.answers.iter().filter(|&&found| found).count() as u64;
        if !self.args.count {
            let labels = self.runs.iter().flat_map(|(label, count)| std::iter::repeat_n(Some(&label[..]), *count));
            let labels = labels.chain(std::iter::repeat(None));
            for ((key, &found), label) in self.keys.names().iter().zip(&self.answers).zip(labels) {
                to_stdout(write_answer(&mut self.out, self.args, key, label, found))?;
            }
        }
        self.keys.clear();
        self.runs.clear();
        Ok(())
    }
}

/// Asks for keys together: without labels, or label by label.
fn query_many<K: Key>(
    filter: &Filter,
    runs: &[(Vec<u8>, usize)],
    mut keys: &[K],
    mut answers: &mut [bool],
) -> Result<(), QueryError> {
    if runs.is_empty() {
        return filter.contains_into(keys, answers);
    }
    for (label, count) in runs {
        let (now, later) = keys.split_at(*count);
        let (room, rest) = answers.split_at_mut(*count);
        room.copy_from_slice(&filter.contains_many_in(label, now)?);
        (keys, answers) = (later, rest);
    }
    Ok(())
}

/// Prints one key as the options want it.
fn write_answer(out: &mut impl Write, args: &Args, key: &[u8], label: Option<&[u8]>, found: bool) -> io::Result<()> {
    let end = args.input.separator();
    if args.json {
        let mut answer = json!({ "key": String::from_utf8_lossy(key), "found": found });
        if let Some(label) = label {
            answer["partition"] = String::from_utf8_lossy(label).into();
        }
        writeln!(out, "{answer}")
    } else if args.tsv {
        out.write_all(key)?;
        out.write_all(&[b'\t', b'0' + found as u8, end])
    } else if found != args.invert {
        out.write_all(key)?;
        out.write_all(&[end])
    } else {
        Ok(())
    }
}
