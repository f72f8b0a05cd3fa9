//! several indexes -> one with the sets of all.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use serde_json::json;
use tamis::sets::Editor;

use super::super::{grouped, output::Output};
use super::lock::Lock;
use super::{false_sets_line, open, save, size};
use crate::Outcome;
use crate::interrupt::Interrupt;
use crate::mapped::VerifyArgs;

/// Merge indexes into one.
///
/// Their segments are put side by side, and sets of one name become one set. They must be hashed alike (the same --seed), of the same
/// kind of keys and of k-mers of the same length, and none may come twice. The false sets of all of them add up.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Index files, two or more
    #[arg(value_name = "INDEX", required = true, num_args = 2..)]
    indexes: Vec<PathBuf>,
    /// The index of all, replaced only when the new one is complete; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let _lock = Lock::new(&args.output, &args.indexes)?;
    let indexes =
        args.indexes.iter().map(|path| open(path, VerifyArgs { no_verify: true })).collect::<Result<Vec<_>>>()?;
    let output = Output::new(&args.output, std::iter::empty(), "index")?;
    let interrupt = Interrupt::install()?;
    let mut all: Option<Editor> = None;
    // An index without keys goes with any other, so the first that has some is what the others are held against.
    let mut first = None;
    for (path, index) in args.indexes.iter().zip(&indexes) {
        match &mut all {
            None => all = Some(Editor::new(index).with_context(|| path.display().to_string())?),
            Some(all) => all.merge(index).map_err(|error| {
                let other = first.unwrap_or(path);
                anyhow!("{} and {}: {error}", other.display(), path.display())
            })?,
        }
        if first.is_none() && index.segments().next().is_some() {
            first = Some(path);
        }
    }
    let all = all.ok_or_else(|| anyhow!("no index, expected two or more"))?;
    interrupt.build()?;
    let after = save(&output, &all)?;
    let bytes = after.as_bytes().len() as u64;
    let (false_sets, member_false_sets) = after.false_sets();
    let text = match args.json {
        true => {
            let report = json!({
                "file": output.to_string(),
                "indexes": indexes.len(),
                "sets": after.sets(),
                "keys": after.keys(),
                "pairs": after.pairs(),
                "segments": after.segments().count(),
                "bytes": bytes,
                "false_sets": false_sets,
                "member_false_sets": member_false_sets,
            });
            format!("{report}\n")
        }
        false => format!(
            "sets        {}\nsegments    {}\nfile        {output}\n{}{}",
            grouped(after.sets().into()),
            after.segments().count(),
            size(bytes, after.pairs(), after.keys()),
            false_sets_line(false_sets, member_false_sets)
        ),
    };
    output.report(&text)?;
    Ok(Outcome::Yes)
}
