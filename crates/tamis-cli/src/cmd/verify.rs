//! a filter file, the keys it should hold and those it should not -> whether it does.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tamis::Filter;

use super::{check_labels, grouped, open, print, print_json, query_error, short};
use crate::Outcome;
use crate::args::{self, InputArgs};
use crate::input::{self, KeyRef, total_bytes};
use crate::mapped::VerifyArgs;
use crate::progress::Bar;

/// Check a filter file: its checksum and, with --keys and --exclude, that it says yes to the first and no to the second.
///
/// Exit code 0 if all is well, 1 if an answer is wrong (the first ones are shown), 2 if the file is damaged or on another
/// error.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The filter file
    #[arg(value_name = "FILE")]
    filter: PathBuf,
    /// Files of keys that must be found; - is standard input
    #[arg(long, value_name = "KEYS", num_args = 1..)]
    keys: Vec<PathBuf>,
    /// Files of keys that must not be found; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    exclude: Vec<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Wrong answers that are shown.
const EXAMPLES: usize = 5;

/// What came of asking for a list of keys.
#[derive(Default)]
struct Checked {
    checked: u64,
    wrong: u64,
    /// As a line, and as fields.
    examples: Vec<(String, Value)>,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let filter = open(&args.filter, VerifyArgs { no_verify: true })?;
    filter.verify().with_context(|| args.filter.display().to_string())?;
    if [&args.keys, &args.exclude].into_iter().flatten().filter(|path| path.as_os_str() == "-").count() > 1 {
        bail!("standard input (-) can be read only once");
    }
    if !(args.keys.is_empty() && args.exclude.is_empty()) {
        check_labels(&args.filter, &filter, args.input.is_partitioned(), "--partition-column NAME")?;
    }
    let keys = check_keys(&args, &filter, &args.keys, true)?;
    let excluded = check_keys(&args, &filter, &args.exclude, false)?;
    let wrong = keys.wrong + excluded.wrong;
    if args.json {
        let fields = |asked: Checked| asked.examples.into_iter().map(|(_, fields)| fields).collect::<Vec<_>>();
        let excluded = (!args.exclude.is_empty())
            .then(|| json!({ "checked": excluded.checked, "found": excluded.wrong, "examples": fields(excluded) }));
        print_json(&json!({
            "checksum": true,
            "checked": keys.checked,
            "missing": keys.wrong,
            "examples": fields(keys),
            "excluded": excluded,
        }))?;
    } else {
        let mut out = "checksum    right\n".to_string();
        if !args.keys.is_empty() {
            out += &format!("keys        {} checked, {} missing\n", grouped(keys.checked), grouped(keys.wrong));
        }
        if !args.exclude.is_empty() {
            out += &format!("excluded    {} checked, {} found\n", grouped(excluded.checked), grouped(excluded.wrong));
        }
        out.extend(keys.examples.into_iter().chain(excluded.examples).map(|(line, _)| line));
        print(&out)?;
    }
    Ok(if wrong == 0 { Outcome::Yes } else { Outcome::No })
}

/// Asks for every key of these files; `wanted` is the right answer.
fn check_keys(args: &Args, filter: &Filter, files: &[PathBuf], wanted: bool) -> Result<Checked> {
    if files.is_empty() {
        return Ok(Checked::default());
    }
    let sources = args::sources(files);
    let bar = Bar::bytes("checking", total_bytes(&sources));
    let mut wrong = 0;
    let mut first = vec![];
    let progress = &mut |bytes| bar.set_position(bytes);
    let (counts, places) = input::for_each(&sources, &args.input.options(), progress, &mut |key, label, ordinal| {
        let label = label.map(|label| label.text);
        let answer = match (key, label) {
            // Nobody knows what an empty filter would have held.
            _ if filter.is_empty() => Ok(false),
            (KeyRef::Bytes(bytes), None) => filter.contains(bytes),
            (KeyRef::U64(number), None) => filter.contains(number),
            (KeyRef::Bytes(bytes), Some(label)) => filter.contains_in(label, bytes),
            (KeyRef::U64(number), Some(label)) => filter.contains_in(label, number),
        };
        if answer.map_err(|error| query_error(&args.filter, error))? != wanted {
            wrong += 1;
            if first.len() < EXAMPLES {
                let text = match key {
                    KeyRef::Bytes(bytes) => short(bytes),
                    KeyRef::U64(number) => number.to_string(),
                };
                first.push((ordinal, text, label.map(short)));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let what = if wanted { "missing     " } else { "found       " };
    let example = |(ordinal, key, label): (u64, String, Option<String>)| {
        let place = places.locate(ordinal)?;
        let (unit, position) = (place.unit.to_string(), place.line);
        let fields = json!({ "file": place.name, "unit": unit, "position": position, "key": key, "partition": label });
        let under = label.map(|label| format!(" under {label:?}")).unwrap_or_default();
        Some((format!("{what}{place}: {key}{under}\n"), fields))
    };
    Ok(Checked { checked: counts.keys, wrong, examples: first.into_iter().filter_map(example).collect() })
}
