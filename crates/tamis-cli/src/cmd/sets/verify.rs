//! an index file and the sets it should hold -> whether it does.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value as Json, json};
use tamis::{QueryError, Sets};

use super::super::key_batch::KeyBatch;
use super::super::{count, grouped, print, print_json, short};
use super::{MemberArgs, open, query_error, typed};
use crate::Outcome;
use crate::input::sets::Member;
use crate::input::{self, KeyRef, Number, Source, Visited, kmers, total_bytes};
use crate::json::{self, Form};
use crate::progress::Bar;
use crate::secret::SecretArgs;

/// Check an index file: its checksum and, given the files it was built from, that every key is in its sets
///
/// The exit code is 0 if all pairs match, 1 if one does not (the first five are printed), 3 if the file is damaged.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Index file; - is standard input
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    #[command(flatten)]
    members: MemberArgs,
    /// Read set:COUNT with --pairs, and ignore the counts
    #[arg(long, requires = "pairs")]
    counts: bool,
    #[command(flatten)]
    secret: SecretArgs,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Missing pairs that are shown.
const EXAMPLES: usize = 5;

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let index = open(&args.index, args.secret.how(false)?)?;
    let queried = args.members.pairs || !args.members.inputs.is_empty();
    let mut checker = Checker::new(&args, &index);
    let mut examples = vec![];
    if queried {
        let (inputs, mut read_options) = args.members.find(index.kmer(), args.counts)?;
        read_options.options = typed(&args.index, &index, read_options.options)?;
        input::check_stdin_once(inputs.sources().iter().chain([&Source::from(args.index.clone())]))?;
        // A set without keys is a set.
        checker.lost = inputs.names().iter().filter(|name| index.id(name).is_none()).cloned().collect();
        let bar = Bar::bytes("checking", total_bytes(inputs.sources()));
        let read =
            inputs.for_each(&read_options, &mut |bytes| bar.set_position(bytes), &mut |member| checker.push(member))?;
        checker.query_batch()?;
        let example = |missing: &Missing| {
            let place = read.places.locate(missing.ordinal);
            let at = place.map(|place| format!("{place}: ")).unwrap_or_default();
            let line = format!("rejected    {at}{} in {:?}\n", short(&missing.key), missing.set);
            let mut fields = json!({ "set": missing.set });
            json::put(&mut fields, "key", &missing.key);
            json::put_place(&mut fields, place);
            (line, fields)
        };
        examples = checker.first.iter().map(example).collect();
    }
    let Checker { checked, missing, lost, .. } = checker;
    if args.json {
        let examples: Vec<Json> = examples.into_iter().map(|(_, fields)| fields).collect();
        print_json(
            Form::Sets,
            json!({
                "checksum": true,
                "checked": checked,
                "false_negatives": missing,
                "missing_sets": lost,
                "examples": examples,
            }),
        )?;
    } else {
        let mut out = "checksum    right\n".to_string();
        if queried {
            out += &format!("pairs       {} checked, {}\n", grouped(checked), count(missing, "false negative"));
        }
        out.extend(lost.iter().take(EXAMPLES).map(|name| format!("missing     the set {name:?}\n")));
        out.extend(examples.into_iter().map(|(line, _)| line));
        print(&out)?;
    }
    Ok(if missing == 0 && lost.is_empty() { Outcome::Yes } else { Outcome::No })
}

/// A pair that the index does not find.
struct Missing {
    ordinal: u64,
    key: Vec<u8>,
    set: String,
}

/// Gathers pairs and queries their keys together.
struct Checker<'a> {
    args: &'a Args,
    index: &'a Sets,
    keys: KeyBatch,
    /// The set of each key, and the number of its line.
    expected: Vec<(u32, u64)>,
    /// The set of the last one: nearly always that of the next.
    last: Option<(String, Option<u32>)>,
    first: Vec<Missing>,
    checked: u64,
    missing: u64,
    lost: Vec<String>,
}

impl<'a> Checker<'a> {
    fn new(args: &'a Args, index: &'a Sets) -> Checker<'a> {
        let (keys, expected, first, lost) = (KeyBatch::default(), vec![], vec![], vec![]);
        Checker { args, index, keys, expected, last: None, first, checked: 0, missing: 0, lost }
    }

    fn push(&mut self, member: Member<'_>) -> Visited {
        let id = match &self.last {
            Some((name, id)) if name == member.set => *id,
            _ => {
                let id = self.index.id(member.set);
                self.last = Some((member.set.to_string(), id));
                id
            }
        };
        self.checked += 1;
        match id {
            None => {
                let key = match member.key {
                    KeyRef::Bytes(bytes) => bytes.to_vec(),
                    KeyRef::Integer(number) => spelled(self.index, number),
                };
                self.miss(member.ordinal, key, member.set.to_string());
            }
            Some(id) => {
                self.expected.push((id, member.ordinal));
                if self.keys.push(member.key) {
                    self.query_batch()?;
                }
            }
        }
        Ok(Ok(()))
    }

    fn query_batch(&mut self) -> Result<()> {
        let (bytes, mut missing) = (self.keys.bytes(), vec![]);
        let expected = &self.expected;
        let found = |at: usize, ids: &[u32]| {
            if ids.binary_search(&expected[at].0).is_err() {
                missing.push(at);
            }
        };
        let queried: Result<(), QueryError> = match bytes.is_empty() {
            _ if self.keys.len() == 0 => Ok(()),
            false => self.index.find_many(&bytes, found),
            true => self.index.find_many(&self.keys.numbers, found),
        };
        queried.map_err(|error| query_error(&self.args.index, error))?;
        let example = |&at: &usize| {
            let key = bytes.get(at).map_or_else(|| spelled(self.index, self.keys.numbers[at]), |bytes| bytes.to_vec());
            (expected[at].1, key, self.index.name(expected[at].0).unwrap_or_default().to_string())
        };
        let shown = EXAMPLES.saturating_sub(self.first.len());
        let examples: Vec<_> = missing.iter().take(shown).map(example).collect();
        self.missing += (missing.len() - examples.len()) as u64;
        examples.into_iter().for_each(|(ordinal, key, set)| self.miss(ordinal, key, set));
        self.keys.clear();
        self.expected.clear();
        Ok(())
    }

    fn miss(&mut self, ordinal: u64, key: Vec<u8>, set: String) {
        self.missing += 1;
        if self.first.len() < EXAMPLES {
            self.first.push(Missing { ordinal, key, set });
        }
    }
}

/// A number as it is known: a k-mer by its letters.
fn spelled(index: &Sets, number: Number) -> Vec<u8> {
    let kmer = index.kmer().zip(u64::try_from(number).ok());
    kmer.map_or_else(|| number.to_string(), |(k, bases)| kmers::spell(bases, k)).into_bytes()
}
