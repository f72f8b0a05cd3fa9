//! an index file and the sets it should hold -> whether it does.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value as Json, json};
use tamis::{QueryError, Sets};

use super::super::key_batch::KeyBatch;
use super::super::{grouped, print, print_json, short};
use super::{MemberArgs, open, query_error};
use crate::Outcome;
use crate::input::sets::Member;
use crate::input::{KeyRef, Visited, kmers, total_bytes};
use crate::mapped::VerifyArgs;
use crate::progress::Bar;

/// Check an index file: its checksum and, given the files it was built from, that every key is found in its sets.
///
/// Exit code 0 if all is well, 1 if a key is missing in a set (the first ones are shown), 2 if the file is damaged or on another error.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The index file
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    #[command(flatten)]
    members: MemberArgs,
    /// With --pairs: sets may have counts, set:COUNT, which are not looked at
    #[arg(long, requires = "pairs")]
    counts: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Missing pairs that are shown.
const EXAMPLES: usize = 5;

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let index = open(&args.index, VerifyArgs { no_verify: true })?;
    index.verify().with_context(|| args.index.display().to_string())?;
    let asked = args.members.pairs || !args.members.inputs.is_empty();
    let mut checker = Checker::new(&args, &index);
    let mut examples = vec![];
    if asked {
        let (inputs, read_options) = args.members.find(index.kmer(), args.counts)?;
        // A set that has no keys is there all the same.
        checker.lost = inputs.names().iter().filter(|name| index.id(name).is_none()).cloned().collect();
        let bar = Bar::bytes("checking", total_bytes(inputs.sources()));
        let read =
            inputs.for_each(&read_options, &mut |bytes| bar.set_position(bytes), &mut |member| checker.push(member))?;
        checker.query_batch()?;
        let example = |missing: &Missing| {
            let place = read.places.locate(missing.ordinal);
            let at = place.map(|place| format!("{place}: ")).unwrap_or_default();
            let line = format!("missing     {at}{} in {:?}\n", missing.key, missing.set);
            let fields = json!({
                "file": place.map(|place| place.name),
                "unit": place.map(|place| place.unit.to_string()),
                "position": place.map(|place| place.line),
                "key": missing.key,
                "set": missing.set,
            });
            (line, fields)
        };
        examples = checker.first.iter().map(example).collect();
    }
    let Checker { checked, missing, lost, .. } = checker;
    if args.json {
        let examples: Vec<Json> = examples.into_iter().map(|(_, fields)| fields).collect();
        print_json(&json!({
            "checksum": true, "checked": checked, "missing": missing, "missing_sets": lost, "examples": examples,
        }))?;
    } else {
        let mut out = "checksum    right\n".to_string();
        if asked {
            out += &format!("pairs       {} checked, {} missing\n", grouped(checked), grouped(missing));
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
    key: String,
    set: String,
}

/// Gathers pairs and asks for their keys together.
struct Checker<'a> {
    args: &'a Args,
    index: &'a Sets,
    keys: KeyBatch,
    /// The set of each key, and the number of its line.
    wanted: Vec<(u32, u64)>,
    /// The set of the last one: nearly always that of the next.
    last: Option<(String, Option<u32>)>,
    first: Vec<Missing>,
    checked: u64,
    missing: u64,
    lost: Vec<String>,
}

impl<'a> Checker<'a> {
    fn new(args: &'a Args, index: &'a Sets) -> Checker<'a> {
        let (keys, wanted, first, lost) = (KeyBatch::default(), vec![], vec![], vec![]);
        Checker { args, index, keys, wanted, last: None, first, checked: 0, missing: 0, lost }
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
                    KeyRef::Bytes(bytes) => short(bytes),
                    KeyRef::U64(number) => spelled(self.index, number),
                };
                self.miss(member.ordinal, key, member.set.to_string());
            }
            Some(id) => {
                self.wanted.push((id, member.ordinal));
                if self.keys.push(member.key) {
                    self.query_batch()?;
                }
            }
        }
        Ok(Ok(()))
    }

    fn query_batch(&mut self) -> Result<()> {
        let (bytes, mut missing) = (self.keys.bytes(), vec![]);
        let wanted = &self.wanted;
        let found = |at: usize, ids: &[u32]| {
            if ids.binary_search(&wanted[at].0).is_err() {
                missing.push(at);
            }
        };
        let asked: Result<(), QueryError> = match bytes.is_empty() {
            _ if self.keys.len() == 0 => Ok(()),
            false => self.index.find_many(&bytes, found),
            true => self.index.find_many(&self.keys.numbers, found),
        };
        asked.map_err(|error| query_error(&self.args.index, error))?;
        let example = |&at: &usize| {
            let key = bytes.get(at).map_or_else(|| spelled(self.index, self.keys.numbers[at]), |bytes| short(bytes));
            (wanted[at].1, key, self.index.name(wanted[at].0).unwrap_or_default().to_string())
        };
        let shown = EXAMPLES.saturating_sub(self.first.len());
        let examples: Vec<_> = missing.iter().take(shown).map(example).collect();
        self.missing += (missing.len() - examples.len()) as u64;
        examples.into_iter().for_each(|(ordinal, key, set)| self.miss(ordinal, key, set));
        self.keys.clear();
        self.wanted.clear();
        Ok(())
    }

    fn miss(&mut self, ordinal: u64, key: String, set: String) {
        self.missing += 1;
        if self.first.len() < EXAMPLES {
            self.first.push(Missing { ordinal, key, set });
        }
    }
}

/// A number as it is known: a k-mer by its letters.
fn spelled(index: &Sets, number: u64) -> String {
    index.kmer().map_or_else(|| number.to_string(), |k| kmers::spell(number, k))
}
