//! an index and keys, or sequences -> the sets that hold them.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tamis::{Key, QueryError, Sets};

use super::super::key_batch::KeyBatch;
use super::super::prompt::{Answer, answer_all};
use super::super::{print, print_json, shown, to_stdout};
use super::tally::{Naming, Tally};
use super::{QueryArgs, open, query_error};
use crate::Outcome;
use crate::args::{self, QueriedKeys};
use crate::input::kmers::{self, Event};
use crate::input::{self, At, KeyRef, SecondValue, Source, total_bytes};
use crate::json::{self, Form};
use crate::mapped::VerifyArgs;
use crate::progress::Bar;
use crate::screen::{self, Stdout};
use crate::secret::SecretArgs;

/// Print the sets of keys: key, tab, sets with commas between them
///
/// An index of k-mers is queried with FASTA or FASTQ files. Every record is a line: id, tab, and SET:MATCHES/TOTAL for the sets
/// that match at least a share --threshold of its k-mers.
///
/// Every set of a key is printed, and false sets at the index's rate. The exit code is 0 if a key (a sequence) has a set, 1 if
/// none has.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Index file; - is standard input
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    #[command(flatten)]
    keys: QueriedKeys,
    /// Print only keys, or sequences, that have a set
    #[arg(long)]
    matches: bool,
    /// Print the numbers of sets instead of their names
    #[arg(long, conflicts_with = "json")]
    ids: bool,
    /// Print how often each key is in a set, SET:COUNT, of an index built with --counts; of sequences, all sets that match a k-mer
    #[arg(long)]
    counts: bool,
    /// Share of the k-mers of a sequence that a set must match, 0 to 1 [default: 0.8]
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "counts", allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// Print only the sets of any of the keys, one per line
    #[arg(long, conflicts_with_all = ["matches", "counts", "threshold"])]
    union: bool,
    /// Print only the sets of all of the keys, one per line
    #[arg(long, conflicts_with_all = ["matches", "counts", "threshold", "union"])]
    intersection: bool,
    /// Print only how many of the keys are in each set: set, tab, number
    #[arg(long, conflicts_with_all = ["matches", "counts", "threshold", "union", "intersection"])]
    tally: bool,
    /// Print a JSON object for every key or sequence; with --union, --intersection and --tally, one for all
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    input: QueryArgs,
    #[command(flatten)]
    verify: VerifyArgs,
    #[command(flatten)]
    secret: SecretArgs,
}

/// Each sequencing error changes k k-mers: most k-mers of a member still match after a few.
const THRESHOLD: f64 = 0.8;

fn share(text: &str) -> Result<f64, String> {
    args::share(text, |share| (0.0..=1.0).contains(&share), "a share from 0 to 1, like 0.8 or 80%")
}

impl Args {
    /// One answer for all keys.
    fn together(&self) -> bool {
        self.union || self.intersection || self.tally
    }
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let sources = args.keys.sources(&args.index)?;
    let index = open(&args.index, args.secret.how(args.verify.no_verify)?)?;
    let options = args.input.options(&args.index, &index, &sources)?;
    let mut all = Tally::new(&index);
    let found = match index.kmer() {
        Some(_) if matches!(sources[..], [Source::Keys(_)]) => {
            bail!("--key: the keys of {} are k-mers; expected FASTA or FASTQ files", shown(&args.index))
        }
        Some(k) => query_sequences(&args, &index, k, &sources, &mut all)?,
        None if args.threshold.is_some() => {
            bail!("--threshold: the keys of {} are no k-mers; expected an index of k-mers", shown(&args.index))
        }
        None if args.counts && !index.has_counts() => {
            bail!("--counts: {} has no counts; expected an index built with --counts", shown(&args.index))
        }
        None => query_keys(&args, &index, &sources, &options, &mut all)?,
    };
    let found = if args.together() { report(&args, &index, &mut all)? } else { found };
    Ok(if found { Outcome::Yes } else { Outcome::No })
}

/// Prints what is true of all keys together.
fn report(args: &Args, index: &Sets, all: &mut Tally) -> Result<bool> {
    let naming = Naming { index, numbers: args.ids };
    // Without keys there are no sets.
    let sets = all.at_least(if args.intersection { 1.0 } else { 0.0 });
    let found = !sets.is_empty();
    if args.json {
        let list = list(&sets, |&(set, count)| naming.json(set, Some(("matches", count))));
        print_json(Form::Sets, json!({ "keys": all.keys, "matches": all.found, "set_list": list }))?;
        return Ok(found);
    }
    let mut out = vec![];
    for (set, count) in sets {
        naming.write(&mut out, set)?;
        match args.tally {
            true => writeln!(out, "\t{count}")?,
            false => out.push(b'\n'),
        }
    }
    print(&String::from_utf8_lossy(&out))?;
    Ok(found)
}

fn query_keys(
    args: &Args,
    index: &Sets,
    sources: &[Source],
    options: &input::Options,
    all: &mut Tally,
) -> Result<bool> {
    let mut query = BatchQuery { out: Printer::new(args, index), keys: KeyBatch::default(), all };
    answer_all(sources, options, args.together(), &mut query)?;
    Ok(query.out.found)
}

/// Gathers keys, queries them together, and prints their sets.
struct BatchQuery<'a> {
    out: Printer<'a>,
    keys: KeyBatch,
    all: &'a mut Tally,
}

impl Answer for BatchQuery<'_> {
    fn push(&mut self, key: KeyRef<'_>, _: Option<SecondValue<'_>>, _: At<'_>) -> Result<()> {
        if self.keys.push(key) { self.query_batch() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        self.query_batch()?;
        self.out.flush()
    }
}

impl BatchQuery<'_> {
    fn query_batch(&mut self) -> Result<()> {
        let bytes = self.keys.bytes();
        let queried = match bytes.is_empty() {
            _ if self.keys.len() == 0 => return Ok(()),
            false => query_many(&mut self.out, self.all, &bytes, &self.keys),
            true => query_many(&mut self.out, self.all, &self.keys.numbers, &self.keys),
        };
        queried?;
        self.keys.clear();
        Ok(())
    }
}

fn query_many<K: Key>(out: &mut Printer<'_>, all: &mut Tally, keys: &[K], gathered: &KeyBatch) -> Result<()> {
    let (args, index) = (out.args, out.naming.index);
    let refuse = |error: QueryError| query_error(&args.index, error);
    if args.together() {
        return index.find_many(keys, |_, ids| all.add(ids)).map_err(refuse);
    }
    let names = gathered.names();
    if args.counts {
        for (key, name) in keys.iter().zip(&names) {
            let sets = index.frequencies(key).map_err(refuse)?;
            out.counted(name, &sets)?;
        }
        return Ok(());
    }
    let mut written = Ok(());
    index
        .find_many(keys, |at, ids| {
            if written.is_ok() {
                written = out.key(&names[at], ids);
            }
        })
        .map_err(refuse)?;
    written
}

fn query_sequences(args: &Args, index: &Sets, k: u32, sources: &[Source], all: &mut Tally) -> Result<bool> {
    let bar = args.together().then(|| Bar::bytes("querying", total_bytes(sources)));
    let threshold = if args.counts { 0.0 } else { args.threshold.unwrap_or(THRESHOLD) };
    let mut out = Printer::new(args, index);
    let mut name: Vec<u8> = vec![];
    let read = kmers::for_each(
        sources,
        k,
        &mut |bytes| bar.iter().for_each(|bar| bar.set_position(bytes)),
        &mut |_, event| {
            match event {
                Event::Record(id) => {
                    name.clear();
                    name.extend_from_slice(id);
                }
                Event::Kmers(keys) => {
                    index.find_many(keys, |_, ids| all.add(ids)).map_err(|error| query_error(&args.index, error))?;
                }
                Event::End if args.together() => {}
                Event::End => {
                    out.sequence(&name, all, threshold)?;
                    all.clear();
                }
            }
            Ok(())
        },
    );
    let finished = out.flush();
    read?;
    finished?;
    Ok(out.found)
}

/// Answers one by one, as the options say.
struct Printer<'a> {
    args: &'a Args,
    naming: Naming<'a>,
    out: Stdout,
    /// Something had a set.
    found: bool,
}

impl<'a> Printer<'a> {
    fn new(args: &'a Args, index: &'a Sets) -> Printer<'a> {
        let out = screen::stdout();
        Printer { args, naming: Naming { index, numbers: args.ids }, out, found: false }
    }

    fn flush(&mut self) -> Result<()> {
        to_stdout(self.out.flush())
    }

    /// A key and its sets.
    fn key(&mut self, key: &[u8], sets: &[u32]) -> Result<()> {
        let naming = self.naming;
        let fields = || fields("key", key, list(sets, |&set| naming.json(set, None)));
        self.line(key, sets, fields, |out, &set| naming.write(out, set))
    }

    /// A key, its sets, and how often it is in them.
    fn counted(&mut self, key: &[u8], sets: &[(u32, u8)]) -> Result<()> {
        let naming = self.naming;
        let field = |&(set, count): &(u32, u8)| naming.json(set, Some(("count", count.into())));
        let fields = || fields("key", key, list(sets, field));
        self.line(key, sets, fields, |out, &(set, count)| {
            naming.write(out, set)?;
            write!(out, ":{count}")
        })
    }

    /// A sequence and the sets that hold enough of it.
    fn sequence(&mut self, name: &[u8], tally: &mut Tally, threshold: f64) -> Result<()> {
        let (naming, sets) = (self.naming, tally.at_least(threshold));
        let (total, found) = (tally.keys, tally.found);
        let field = |&(set, count): &(u32, u64)| naming.json(set, Some(("matches", count)));
        let fields = || {
            let mut fields = fields("sequence", name, list(&sets, field));
            (fields["kmers"], fields["matches"]) = (total.into(), found.into());
            fields
        };
        self.line(name, &sets, fields, |out, &(set, count)| {
            naming.write(out, set)?;
            write!(out, ":{count}/{total}")
        })
    }

    fn line<T>(
        &mut self,
        name: &[u8],
        sets: &[T],
        fields: impl FnOnce() -> Value,
        write: impl Fn(&mut Stdout, &T) -> io::Result<()>,
    ) -> Result<()> {
        self.found |= !sets.is_empty();
        if sets.is_empty() && self.args.matches {
            return Ok(());
        }
        let (out, end) = (&mut self.out, self.args.input.text.separator());
        let line = || {
            if self.args.json {
                return writeln!(out, "{}", json::object(Some(Form::Sets), fields()));
            }
            out.write_all(name)?;
            for (i, set) in sets.iter().enumerate() {
                out.write_all(if i == 0 { b"\t" } else { b"," })?;
                write(out, set)?;
            }
            out.write_all(if sets.is_empty() { b"\t" } else { b"" })?;
            out.write_all(&[end])
        };
        to_stdout(line())
    }
}

/// The fields of one answer.
fn fields(what: &str, name: &[u8], sets: Vec<Value>) -> Value {
    let mut fields = json!({ "set_list": sets });
    json::put(&mut fields, what, name);
    fields
}

fn list<T>(items: &[T], value: impl Fn(&T) -> Value) -> Vec<Value> {
    items.iter().map(value).collect()
}
