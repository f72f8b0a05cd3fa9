//! a map file and the pairs it should hold -> whether it does.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value as Json, json};
use tamis::maps::Value;

use super::super::{grouped, print, print_json, short};
use super::{PairArgs, open, query_error};
use crate::Outcome;
use crate::args;
use crate::input::pairs::{self, Typing};
use crate::input::{KeyRef, total_bytes};
use crate::mapped::VerifyArgs;
use crate::progress::Bar;

/// Check a map file: its checksum and, with --pairs, that every key has its value.
///
/// Exit code 0 if all is well, 1 if a value is wrong (the first ones are shown), 2 if the file is damaged or on another
/// error.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The map file
    #[arg(value_name = "FILE")]
    map: PathBuf,
    /// Files of keys and values; - is standard input
    #[arg(long, value_name = "KEYS-VALUES", num_args = 1..)]
    pairs: Vec<PathBuf>,
    #[command(flatten)]
    input: PairArgs,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Wrong values that are shown.
const EXAMPLES: usize = 5;

/// A pair that the map does not hold.
struct Wrong {
    ordinal: u64,
    key: String,
    wanted: String,
    found: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let map = open(&args.map, VerifyArgs { no_verify: true })?;
    map.verify().with_context(|| args.map.display().to_string())?;
    let (mut checked, mut wrong, mut examples) = (0, 0u64, vec![]);
    if !args.pairs.is_empty() {
        let sources = args::sources(&args.pairs);
        let bar = Bar::bytes("checking", total_bytes(&sources));
        let mut first: Vec<Wrong> = vec![];
        let check = &mut |key: KeyRef<'_>, wanted: Value<'_>, ordinal| {
            let found = match key {
                KeyRef::Bytes(bytes) => map.get(bytes),
                KeyRef::U64(number) => map.get(number),
            };
            let found = found.map_err(|error| query_error(&args.map, error))?;
            let wanted = wanted.as_bytes().unwrap_or_default();
            if !found.is_some_and(|found| equal(found, wanted)) {
                wrong += 1;
                if first.len() < EXAMPLES {
                    let key = match key {
                        KeyRef::Bytes(bytes) => short(bytes),
                        KeyRef::U64(number) => number.to_string(),
                    };
                    let found = found.map(|found| match found {
                        Value::Bytes(bytes) => short(bytes),
                        number => number.to_string(),
                    });
                    first.push(Wrong { ordinal, key, wanted: short(wanted), found });
                }
            }
            Ok(Ok(()))
        };
        // Values as they are written: what they are is for the map to say.
        let progress = &mut |bytes| bar.set_position(bytes);
        let (counts, places) = pairs::for_each(&sources, &args.input.options(), Typing::Text, progress, check)?;
        checked = counts.keys;
        let example = |wrong: Wrong| -> Option<(String, Json)> {
            let Wrong { ordinal, key, wanted, found } = wrong;
            let place = places.locate(ordinal)?;
            let has = found.as_ref().map_or("no value".to_string(), |found| format!("{found:?}"));
            let line = format!("wrong       {place}: {key} has {has}, expected {wanted:?}\n");
            let (unit, position) = (place.unit.to_string(), place.line);
            let fields = json!({
                "file": place.name, "unit": unit, "position": position, "key": key, "value": wanted, "found": found,
            });
            Some((line, fields))
        };
        examples = first.into_iter().filter_map(example).collect();
    }
    if args.json {
        let examples: Vec<Json> = examples.into_iter().map(|(_, fields)| fields).collect();
        print_json(&json!({ "checksum": true, "checked": checked, "wrong": wrong, "examples": examples }))?;
    } else {
        let mut out = "checksum    right\n".to_string();
        if !args.pairs.is_empty() {
            out += &format!("pairs       {} checked, {} wrong\n", grouped(checked), grouped(wrong));
        }
        out.extend(examples.into_iter().map(|(line, _)| line));
        print(&out)?;
    }
    Ok(if wrong == 0 { Outcome::Yes } else { Outcome::No })
}

/// Whether a value is the one that is written so.
fn equal(found: Value<'_>, wanted: &[u8]) -> bool {
    match found {
        Value::Bytes(bytes) => bytes == wanted,
        number => str::from_utf8(wanted).is_ok_and(|text| text.parse().ok() == number.as_u64()),
    }
}
