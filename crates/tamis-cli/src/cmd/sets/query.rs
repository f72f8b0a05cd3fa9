//! an index and keys, or sequences -> the sets that hold them.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tamis::{Key, QueryError, Sets};

use super::super::key_batch::KeyBatch;
use super::super::prompt::{Answer, answer_all};
use super::super::{print, print_json, to_stdout};
use super::tally::{Naming, Tally};
use super::{QueryArgs, open, query_error};
use crate::Outcome;
use crate::args;
use crate::input::kmers::{self, Event};
use crate::input::{self, KeyRef, SecondValue, Source, total_bytes};
use crate::mapped::VerifyArgs;
use crate::progress::Bar;
use crate::screen::{self, Stdout};

/// Print the sets that hold keys: key, tab, sets with commas between them.
///
/// An index of k-mers is asked for sequences: FASTA or FASTQ files, of which every record is a line, id, tab, and SET:FOUND/TOTAL for the sets that
/// hold at least so many of its k-mers as --threshold says.
///
/// No set that holds a key is left out, and a few may be named that do not. Exit code 0 if a key (a sequence) has a set, 1 if none has one, 2 on an
/// error.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The index file
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    /// Files of keys, or of sequences; - or none is standard input
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Print only keys, or sequences, that have a set
    #[arg(long)]
    found: bool,
    /// Print the numbers of sets instead of their names
    #[arg(long)]
    ids: bool,
    /// Keys: how often each is in a set, SET:COUNT, of an index built with --counts. Sequences: all sets that hold a k-mer, without a threshold
    #[arg(long)]
    counts: bool,
    /// Sequences: the share of k-mers that a set must hold, 0 to 1; 0.8 unless given
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "counts", allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// Print only the sets that hold any of all keys, one per line
    #[arg(long, conflicts_with_all = ["found", "counts", "threshold"])]
    union: bool,
    /// Print only the sets that hold every one of all keys, one per line
    #[arg(long, conflicts_with_all = ["found", "counts", "threshold", "union"])]
    intersection: bool,
    /// Print only how many of all keys each set holds: set, tab, number
    #[arg(long, conflicts_with_all = ["found", "counts", "threshold", "union", "intersection"])]
    tally: bool,
    /// Print a JSON object for every key or sequence, or with --union, --intersection and --tally one for all
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    input: QueryArgs,
    #[command(flatten)]
    verify: VerifyArgs,
}

/// Sequencing errors take k k-mers each: most of a sequence that is there is found in spite of a few.
const THRESHOLD: f64 = 0.8;

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0 to 1, like 0.8".to_string())
}

impl Args {
    /// One answer for all keys.
    fn together(&self) -> bool {
        self.union || self.intersection || self.tally
    }
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let index = open(&args.index, args.verify)?;
    let sources = args::sources(&args.inputs);
    let options = args.input.options(index.kmer(), &sources)?;
    let mut all = Tally::new(&index);
    let found = match index.kmer() {
        Some(k) => query_sequences(&args, &index, k, &sources, &mut all)?,
        None if args.threshold.is_some() => {
            bail!("{}: --threshold is for sequences, and the keys of the index are no k-mers", args.index.display())
        }
        None => query_keys(&args, &index, &sources, &options, &mut all)?,
    };
    let found = if args.together() { report(&args, &index, &mut all)? } else { found };
    Ok(if found { Outcome::Yes } else { Outcome::No })
}

/// What is said of all keys together.
fn report(args: &Args, index: &Sets, all: &mut Tally) -> Result<bool> {
    let naming = Naming { index, numbers: args.ids };
    // Where no key was asked for, no set holds one.
    let sets = all.at_least(if args.intersection { 1.0 } else { 0.0 });
    let found = !sets.is_empty();
    if args.json {
        let list: Vec<Value> = match args.tally {
            true => sets.iter().map(|&(set, count)| json!({ "set": naming.json(set), "found": count })).collect(),
            false => sets.iter().map(|&(set, _)| naming.json(set)).collect(),
        };
        print_json(&json!({ "keys": all.keys, "found": all.found, "sets": list }))?;
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

/// Gathers keys, asks for them together, and prints their sets.
struct BatchQuery<'a> {
    out: Printer<'a>,
    keys: KeyBatch,
    all: &'a mut Tally,
}

impl Answer for BatchQuery<'_> {
    fn push(&mut self, key: KeyRef<'_>, _: Option<SecondValue<'_>>) -> Result<()> {
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
        let asked = match bytes.is_empty() {
            _ if self.keys.len() == 0 => return Ok(()),
            false => query_many(&mut self.out, self.all, &bytes, &self.keys),
            true => query_many(&mut self.out, self.all, &self.keys.numbers, &self.keys),
        };
        asked?;
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
    let bar = args.together().then(|| Bar::bytes("asking", total_bytes(sources)));
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

/// Answers one by one, as the options want them.
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
        let fields = || json!({ "key": String::from_utf8_lossy(key), "sets": list(sets, |&set| naming.json(set)) });
        self.line(key, sets, fields, |out, &set| naming.write(out, set))
    }

    /// A key, its sets, and how often it is in them.
    fn counted(&mut self, key: &[u8], sets: &[(u32, u8)]) -> Result<()> {
        let naming = self.naming;
        let field = |&(set, count): &(u32, u8)| json!({ "set": naming.json(set), "count": count });
        let fields = || json!({ "key": String::from_utf8_lossy(key), "sets": list(sets, field) });
        self.line(key, sets, fields, |out, &(set, count)| {
            naming.write(out, set)?;
            write!(out, ":{count}")
        })
    }

    /// A sequence and the sets that hold enough of it.
    fn sequence(&mut self, name: &[u8], tally: &mut Tally, threshold: f64) -> Result<()> {
        let (naming, sets) = (self.naming, tally.at_least(threshold));
        let (total, found) = (tally.keys, tally.found);
        let field = |&(set, count): &(u32, u64)| json!({ "set": naming.json(set), "found": count });
        let fields = || {
            json!({
                "id": String::from_utf8_lossy(name), "kmers": total, "found": found, "sets": list(&sets, field),
            })
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
        if sets.is_empty() && self.args.found {
            return Ok(());
        }
        let (out, end) = (&mut self.out, self.args.input.text.separator());
        let line = || {
            if self.args.json {
                return writeln!(out, "{}", fields());
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

fn list<T>(items: &[T], value: impl Fn(&T) -> Value) -> Vec<Value> {
    items.iter().map(value).collect()
}
