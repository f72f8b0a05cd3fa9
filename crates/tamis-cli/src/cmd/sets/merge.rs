//! several indexes -> one with the sets of all.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use serde_json::json;
use tamis::sets::Editor;

use super::super::{grouped, output::Output};
use super::lock::Lock;
use super::{false_sets_line, open, save, segments, size};
use crate::Outcome;
use crate::args::ReportArgs;
use crate::interrupt::Interrupt;
use crate::json::Form;
use crate::secret::SecretArgs;

/// Merge indexes into one
///
/// The new index has the segments of all, and sets of one name become one set. The indexes must have the same --seed, key type
/// and length of k-mers, and none may be given twice. Their false sets add up.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Index files, two or more
    #[arg(value_name = "INDEX", required = true, num_args = 2..)]
    indexes: Vec<PathBuf>,
    /// Merged index, replaced only when the new one is complete; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    secret: SecretArgs,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let _lock = Lock::new(&args.output, &args.indexes)?;
    let how = args.secret.how(true)?;
    let indexes = args.indexes.iter().map(|path| open(path, how)).collect::<Result<Vec<_>>>()?;
    let output = Output::new("-o", &args.output, std::iter::empty(), "index")?;
    let output = output.spare("-o", args.secret.path(), "the secret")?;
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
    let all = all.ok_or_else(|| anyhow!("INDEX: missing; expected two or more"))?;
    interrupt.build()?;
    let after = save(&output, &all, how.secret)?;
    let bytes = after.as_bytes().len() as u64;
    let (false_sets, member_false_sets) = after.false_sets();
    let text = || {
        let (sets, count) = (grouped(after.sets().into()), after.segments().count());
        format!("sets        {sets}\nsegments    {count}\nfile        {output}\n")
            + &size(bytes, after.pairs(), after.keys())
            + &false_sets_line(false_sets, member_false_sets)
    };
    output.report(args.report, Form::Sets, text, || {
        json!({
            "indexes": indexes.len(),
            "sets": after.sets(),
            "keys": after.keys(),
            "pairs": after.pairs(),
            "segments": segments(&after),
            "bytes": bytes,
            "false_sets": false_sets,
            "member_false_sets": member_false_sets,
        })
    })?;
    Ok(Outcome::Yes)
}
