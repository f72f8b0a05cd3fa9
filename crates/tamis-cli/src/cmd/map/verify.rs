//! a map file and the pairs it should hold -> whether it does.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value as Json, json};
use tamis::maps::Value;

use super::super::{grouped, key_bytes, print, print_json, short};
use super::{PairArgs, open, query_error, typed};
use crate::Outcome;
use crate::input::pairs::{self, Typing};
use crate::input::{self, KeyRef, Source, files, total_bytes};
use crate::json::{self, Form};
use crate::progress::Bar;
use crate::secret::SecretArgs;

/// Check a map file: its checksum and, with --pairs, that every key has its value
///
/// The exit code is 0 if all values are right, 1 if one is wrong (the first five are printed), 3 if the file is damaged.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Map file; - is standard input
    #[arg(value_name = "MAP")]
    map: PathBuf,
    /// Files of keys and values, or directories of them: every word up to the next option; - is standard input
    #[arg(long, value_name = "KEYS-VALUES", num_args = 1..)]
    pairs: Vec<PathBuf>,
    #[command(flatten)]
    input: PairArgs,
    #[command(flatten)]
    secret: SecretArgs,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Wrong values that are shown.
const EXAMPLES: usize = 5;

/// A pair that the map does not hold.
struct Wrong {
    ordinal: u64,
    key: Vec<u8>,
    expected: Vec<u8>,
    value: Option<Vec<u8>>,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let sources = files::lists(&args.pairs)?;
    input::check_stdin_once(sources.iter().chain([&Source::from(args.map.clone())]))?;
    let map = open(&args.map, args.secret.how(false)?)?;
    let options = typed(&args.map, &map, args.input.options())?;
    let (mut checked, mut wrong, mut examples) = (0, 0u64, vec![]);
    if !sources.is_empty() {
        let bar = Bar::bytes("checking", total_bytes(&sources));
        let mut first: Vec<Wrong> = vec![];
        let check = &mut |key: KeyRef<'_>, expected: Value<'_>, ordinal| {
            let found = match key {
                KeyRef::Bytes(bytes) => map.get(bytes),
                KeyRef::Integer(number) => map.get(number),
            };
            let found = found.map_err(|error| query_error(&args.map, error))?;
            let expected = expected.as_bytes().unwrap_or_default();
            if !found.is_some_and(|found| equal(found, expected)) {
                wrong += 1;
                if first.len() < EXAMPLES {
                    let value = found.map(|found| match found {
                        Value::Bytes(bytes) => bytes.to_vec(),
                        number => number.to_string().into_bytes(),
                    });
                    first.push(Wrong { ordinal, key: key_bytes(key), expected: expected.to_vec(), value });
                }
            }
            Ok(Ok(()))
        };
        // Values as they are written: the map has their type.
        let progress = &mut |bytes| bar.set_position(bytes);
        let (counts, places) = pairs::for_each(&sources, &options, Typing::Text, progress, check)?;
        checked = counts.keys;
        let example = |wrong: Wrong| -> Option<(String, Json)> {
            let Wrong { ordinal, key, expected, value } = wrong;
            let place = places.locate(ordinal)?;
            let has = value.as_ref().map_or("no value".to_string(), |value| format!("{:?}", short(value)));
            let line = format!("wrong       {place}: {} has {has}, expected {:?}\n", short(&key), short(&expected));
            let mut fields = json!({ "value": null });
            json::put(&mut fields, "key", &key);
            json::put(&mut fields, "expected", &expected);
            value.iter().for_each(|value| json::put(&mut fields, "value", value));
            json::put_place(&mut fields, Some(place));
            Some((line, fields))
        };
        examples = first.into_iter().filter_map(example).collect();
    }
    if args.json {
        let examples: Vec<Json> = examples.into_iter().map(|(_, fields)| fields).collect();
        print_json(Form::Map, json!({ "checksum": true, "checked": checked, "wrong": wrong, "examples": examples }))?;
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
fn equal(found: Value<'_>, expected: &[u8]) -> bool {
    match found {
        Value::Bytes(bytes) => bytes == expected,
        number => str::from_utf8(expected).is_ok_and(|text| text.parse().ok() == number.as_u64()),
    }
}
