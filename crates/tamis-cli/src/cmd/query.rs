//! a filter and keys -> the keys that match.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use super::key_batch::KeyBatch;
use super::prompt::{Answer, answer_all};
use super::queried::Queried;
use super::{check_partitions, print, print_json, query_error, shown, to_stdout};
use crate::Outcome;
use crate::args::{self, InputArgs, QueriedKeys};
use crate::failure::{Kind, failure};
use crate::input::{At, KeyRef, Options, SecondValue, Source};
use crate::json::{self, Form};
use crate::mapped::VerifyArgs;
use crate::progress;
use crate::screen::{self, Stdout};
use crate::secret::SecretArgs;

/// Print the keys that match a filter, like grep -F -x -f
///
/// Every member matches, no excluded key, and unlisted keys at the filter's fpr. The exit code is 0 if a key was printed or
/// counted, 1 if none was.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Filter file, or a folder of slices with their manifest; - is standard input
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    #[command(flatten)]
    keys: QueriedKeys,
    /// Patch file of FILTER, made by tamis diff; may be repeated, in order
    #[arg(long, value_name = "PATCH", num_args = 1, action = clap::ArgAction::Append)]
    patch: Vec<PathBuf>,
    /// Print the keys that do not match
    #[arg(short = 'v', long = "invert")]
    invert: bool,
    /// Print only the number of keys
    #[arg(short, long)]
    count: bool,
    /// Print nothing and stop at the first match: the exit code is the answer
    #[arg(short, long, conflicts_with_all = ["count", "tsv", "json", "rows", "line_number"])]
    quiet: bool,
    /// Print the line number before each key, and the file if there are several
    #[arg(short = 'n', long, conflicts_with_all = ["count", "tsv", "json", "key"])]
    line_number: bool,
    /// Print the whole line or row of each key, unchanged
    #[arg(long, conflicts_with_all = ["count", "tsv", "json", "key"])]
    rows: bool,
    /// Print every key, a tab, and 1 if it matches or 0
    #[arg(long, conflicts_with_all = ["invert", "count"])]
    tsv: bool,
    /// Print a JSON object for every key; with -c, one with the counts
    #[arg(long, conflicts_with_all = ["invert", "tsv"])]
    json: bool,
    /// Partition to query, of a partitioned filter
    #[arg(long, value_name = "NAME", conflicts_with = "partition_column")]
    partition: Option<String>,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    verify: VerifyArgs,
    #[command(flatten)]
    secret: SecretArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    if args.quiet {
        progress::silence();
    }
    let sources = args.keys.sources(&args.filter)?;
    let options = Options { rows: args.rows, ..args.input.options(&sources)? };
    let filter = Queried::open(&args.filter, args.secret.how(args.verify.no_verify)?)?;
    let options = args::typed(&shown(&args.filter), filter.key_type(), options)?;
    let partitioned = args.partition.is_some() || args.input.is_partitioned();
    check_partitions(
        &args.filter,
        filter.is_partitioned(),
        partitioned,
        "--partition NAME or --partition-column NAME",
    )?;
    let filter = filter.with_patches(&args.filter, &args.patch, args.verify.no_verify)?;
    if let (Some(filter), Some(name)) = (filter.plain(), &args.partition)
        && filter.has_partition(name) == Ok(false)
    {
        let message = format!(
            "{}: no partition {name:?}; expected one of its {}",
            shown(&args.filter),
            super::count(filter.partitions(), "partition")
        );
        return Err(failure(Kind::Partition, message));
    }
    let mut query = BatchQuery::new(&filter, &args, &sources);
    let counts = answer_all(&sources, &options, args.count || args.quiet, &mut query)?;
    let (matches, selected) = (query.matches, query.selected());
    match (args.count, args.json) {
        (true, true) => {
            print_json(Form::Filter, json!({ "keys": counts.keys, "matches": matches, "blank": counts.blank }))?;
        }
        (true, false) => print(&format!("{selected}\n"))?,
        _ => {}
    }
    Ok(if selected > 0 { Outcome::Yes } else { Outcome::No })
}

/// Gathers keys, queries them together, and prints those that were selected.
struct BatchQuery<'a> {
    filter: &'a Queried,
    args: &'a Args,
    sources: &'a [Source],
    out: Stdout,
    keys: KeyBatch,
    /// Partitions, and how many keys in a row are queried in each.
    runs: Vec<(Vec<u8>, usize)>,
    /// What is printed of each key, with --rows.
    rows: KeyBatch,
    /// The file and the line of each key, with -n.
    lines: Vec<(usize, u64)>,
    answers: Vec<bool>,
    answered: u64,
    matches: u64,
}

impl Answer for BatchQuery<'_> {
    fn push(&mut self, key: KeyRef<'_>, second: Option<SecondValue<'_>>, at: At<'_>) -> Result<()> {
        let partition = second.map(|second| second.text).or(self.args.partition.as_deref().map(str::as_bytes));
        match (partition, self.runs.last_mut()) {
            (None, _) => {}
            (Some(name), Some((last, count))) if last == name => *count += 1,
            (Some(name), _) => self.runs.push((name.to_vec(), 1)),
        }
        if self.args.line_number {
            self.lines.push((at.file, at.line));
        }
        let full = self.args.rows && self.rows.push(KeyRef::Bytes(at.row));
        if self.keys.push(key) || full { self.query_batch() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        self.query_batch()?;
        to_stdout(self.out.flush())
    }

    fn is_done(&self) -> bool {
        self.args.quiet && self.selected() > 0
    }
}

impl<'a> BatchQuery<'a> {
    fn new(filter: &'a Queried, args: &'a Args, sources: &'a [Source]) -> BatchQuery<'a> {
        let (out, keys, rows) = (screen::stdout(), KeyBatch::default(), KeyBatch::default());
        let (runs, lines, answers) = (vec![], vec![], vec![]);
        BatchQuery { filter, args, sources, out, keys, runs, rows, lines, answers, answered: 0, matches: 0 }
    }

    /// How many keys were printed or counted.
    fn selected(&self) -> u64 {
        if self.args.invert { self.answered - self.matches } else { self.matches }
    }

    fn query_batch(&mut self) -> Result<()> {
        if self.keys.len() == 0 {
            return Ok(());
        }
        let keys = self.keys.bytes();
        self.answers.clear();
        self.answers.resize(self.keys.len(), false);
        let queried = self.filter.contains_into(&self.runs, &keys, &self.keys.numbers, &mut self.answers);
        queried.map_err(|error| query_error(&self.args.filter, error))?;
        self.answered += self.answers.len() as u64;
        self.matches += self.answers.iter().filter(|&&matched| matched).count() as u64;
        if !(self.args.count || self.args.quiet) {
            to_stdout(self.write_batch())?;
        }
        self.keys.clear();
        self.rows.clear();
        self.runs.clear();
        self.lines.clear();
        Ok(())
    }

    /// Prints keys as the options say.
    fn write_batch(&mut self) -> io::Result<()> {
        let (args, out) = (self.args, &mut self.out);
        let end = [args.input.separator()];
        let names = if args.rows { self.rows.names() } else { self.keys.names() };
        let partitions = self.runs.iter().flat_map(|(name, count)| std::iter::repeat_n(Some(&name[..]), *count));
        let mut partitions = partitions.chain(std::iter::repeat(None));
        for (i, (key, &matched)) in names.iter().zip(&self.answers).enumerate() {
            let partition = partitions.next().flatten();
            if args.json {
                let mut answer = json!({ "match": matched, "partition": null });
                json::put(&mut answer, "key", key);
                partition.iter().for_each(|name| json::put(&mut answer, "partition", name));
                writeln!(out, "{}", json::object(Some(Form::Filter), answer))?;
            } else if args.tsv {
                out.write_all(key)?;
                out.write_all(&[b'\t', b'0' + matched as u8])?;
                out.write_all(&end)?;
            } else if matched != args.invert {
                if let Some(&(file, line)) = self.lines.get(i) {
                    match self.sources {
                        [_] => write!(out, "{line}:")?,
                        all => write!(out, "{}:{line}:", all[file])?,
                    }
                }
                out.write_all(key)?;
                out.write_all(&end)?;
            }
        }
        Ok(())
    }
}
