//! a filter file and the keys it should hold -> whether it does.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{grouped, open, print, print_json, refused};
use crate::Outcome;
use crate::args::{self, Reading};
use crate::input::{self, KeyRef, total_bytes};
use crate::progress::Bar;

/// Check a filter file: its checksum and, with --keys, that it holds every one of them.
///
/// Exit code 0 if all is well, 1 if a key is missing (the first ones are shown), 2 if the file is damaged or on another
/// error.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The filter file
    #[arg(value_name = "FILE")]
    filter: PathBuf,
    /// Files of keys that must be found; - is standard input
    #[arg(long, value_name = "KEYS", num_args = 1..)]
    keys: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Missing keys that are shown.
const EXAMPLES: usize = 5;

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let filter = open(&args.filter)?;
    filter.verify().with_context(|| args.filter.display().to_string())?;
    let (mut checked, mut missing) = (0, 0);
    // As a line, and as fields.
    let mut examples: Vec<(String, Value)> = vec![];
    if !args.keys.is_empty() {
        let sources = args::sources(&args.keys);
        let bar = Bar::bytes("checking", total_bytes(&sources));
        let mut ordinals = vec![];
        let progress = &mut |bytes| bar.at(bytes);
        let (counts, places) = input::for_each(&sources, &args.reading.options(), progress, &mut |key, ordinal| {
            let answer = match key {
                // Nobody knows what an empty filter would have held.
                _ if filter.is_empty() => Ok(false),
                KeyRef::Bytes(bytes) => filter.contains(bytes),
                KeyRef::U64(number) => filter.contains(number),
            };
            if !answer.map_err(|error| refused(&args.filter, error))? {
                missing += 1;
                if ordinals.len() < EXAMPLES {
                    let text = match key {
                        KeyRef::Bytes(bytes) => String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned(),
                        KeyRef::U64(number) => number.to_string(),
                    };
                    ordinals.push((ordinal, text));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        checked = counts.keys;
        let example = |(ordinal, key): (u64, String)| {
            let place = places.locate(ordinal)?;
            let (unit, position) = (place.unit.to_string(), place.line);
            let fields = json!({ "file": place.name, "unit": unit, "position": position, "key": key });
            Some((format!("missing     {place}: {key}\n"), fields))
        };
        examples = ordinals.into_iter().filter_map(example).collect();
    }
    if args.json {
        let examples: Vec<_> = examples.into_iter().map(|(_, fields)| fields).collect();
        print_json(&json!({ "checksum": true, "checked": checked, "missing": missing, "examples": examples }))?;
    } else {
        let mut out = "checksum    right\n".to_string();
        if !args.keys.is_empty() {
            out += &format!("keys        {} checked, {} missing\n", grouped(checked), grouped(missing));
        }
        out.extend(examples.into_iter().map(|(line, _)| line));
        print(&out)?;
    }
    Ok(if missing == 0 { Outcome::Yes } else { Outcome::No })
}
