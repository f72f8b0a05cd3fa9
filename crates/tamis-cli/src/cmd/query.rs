//! a filter and keys -> the keys that are in it.

use std::cell::RefCell;
use std::io::{self, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Error, Result};
use serde_json::json;
use tamis::Filter;

use super::{open, print, print_json, refused, to_stdout};
use crate::Outcome;
use crate::args::{self, Reading};
use crate::input::{self, KeyRef, total_bytes};
use crate::progress::Bar;

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
    #[command(flatten)]
    reading: Reading,
}

/// Keys asked for in one call.
const BATCH: usize = 1 << 13;

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let filter = open(&args.filter)?;
    let sources = args::sources(&args.inputs);
    // A bar would be torn apart by the keys printed beside it.
    let bar = args.count.then(|| Bar::bytes("asking", total_bytes(&sources)));
    let mut progress = |bytes| {
        if let Some(bar) = &bar {
            bar.at(bytes);
        }
    };
    let asker = RefCell::new(Asker::new(&filter, &args));
    let mut stdin = Prompt { asker: &asker, stdin: io::stdin().lock(), failed: None };
    let read = input::read_all(&sources, &args.reading.options(), &mut stdin, &mut progress, &mut |key, _| {
        asker.borrow_mut().push(key)?;
        Ok(ControlFlow::Continue(()))
    });
    let failed = stdin.failed;
    let mut asker = asker.into_inner();
    // What was read before a bad line is still answered, and the bad line is what the user hears of.
    let finished = asker.finish();
    failed.map_or(Ok(()), Err)?;
    let (counts, _) = read?;
    finished?;
    drop(bar);
    let (found, selected) = (asker.found, if args.invert { counts.keys - asker.found } else { asker.found });
    match (args.count, args.json) {
        (true, true) => print_json(&json!({ "keys": counts.keys, "found": found, "blank": counts.blank }))?,
        (true, false) => print(&format!("{selected}\n"))?,
        _ => {}
    }
    Ok(if selected > 0 { Outcome::Yes } else { Outcome::No })
}

/// Standard input that has every key answered before it waits for the next: a person types, a log grows.
struct Prompt<'a, 'b> {
    asker: &'a RefCell<Asker<'b>>,
    stdin: io::StdinLock<'static>,
    /// Why there is nothing more to read.
    failed: Option<Error>,
}

impl Read for Prompt<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.asker.borrow_mut().finish() {
            Ok(()) => self.stdin.read(buffer),
            Err(error) => {
                self.failed = Some(error);
                Ok(0)
            }
        }
    }
}

/// Gathers keys, asks for them together, and prints what was asked for.
struct Asker<'a> {
    filter: &'a Filter,
    args: &'a Args,
    out: BufWriter<io::StdoutLock<'static>>,
    /// Byte keys behind each other, and where each ends; or integers.
    text: Vec<u8>,
    ends: Vec<usize>,
    numbers: Vec<u64>,
    answers: Vec<bool>,
    found: u64,
}

impl<'a> Asker<'a> {
    fn new(filter: &'a Filter, args: &'a Args) -> Asker<'a> {
        let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        Asker { filter, args, out, text: vec![], ends: vec![], numbers: vec![], answers: vec![], found: 0 }
    }

    fn push(&mut self, key: KeyRef<'_>) -> Result<()> {
        match key {
            KeyRef::Bytes(bytes) => {
                self.text.extend_from_slice(bytes);
                self.ends.push(self.text.len());
            }
            KeyRef::U64(number) => self.numbers.push(number),
        }
        let full = self.ends.len() + self.numbers.len() >= BATCH || self.text.len() >= 1 << 22;
        if full { self.ask() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        self.ask()?;
        to_stdout(self.out.flush())
    }

    fn ask(&mut self) -> Result<()> {
        if self.ends.is_empty() && self.numbers.is_empty() {
            return Ok(());
        }
        let mut start = 0;
        let keys: Vec<&[u8]> =
            self.ends.iter().map(|&end| &self.text[std::mem::replace(&mut start, end)..end]).collect();
        self.answers.clear();
        self.answers.resize(keys.len() + self.numbers.len(), false);
        let asked = match keys.is_empty() {
            // Nobody knows what an empty filter would have held.
            _ if self.filter.is_empty() => Ok(()),
            false => self.filter.contains_many(&keys, &mut self.answers),
            true => self.filter.contains_many(&self.numbers, &mut self.answers),
        };
        asked.map_err(|error| refused(&self.args.filter, error))?;
        self.found += self.answers.iter().filter(|&&found| found).count() as u64;
        if !self.args.count {
            let numbers: Vec<String> = self.numbers.iter().map(u64::to_string).collect();
            let keys = keys.into_iter().chain(numbers.iter().map(|n| n.as_bytes()));
            for (key, &found) in keys.zip(&self.answers) {
                to_stdout(write_answer(&mut self.out, self.args, key, found))?;
            }
        }
        self.text.clear();
        self.ends.clear();
        self.numbers.clear();
        Ok(())
    }
}

/// Prints one key as the options want it.
fn write_answer(out: &mut impl Write, args: &Args, key: &[u8], found: bool) -> io::Result<()> {
    let end = args.reading.separator();
    if args.json {
        writeln!(out, "{}", json!({ "key": String::from_utf8_lossy(key), "found": found }))
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
