//! an index and names of its sets -> the index without them.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::json;
use tamis::sets::Editor;

use super::super::{grouped, output::Output};
use super::lock::Lock;
use super::{changed, count, open, save, size};
use crate::Outcome;
use crate::args::ReportArgs;
use crate::interrupt::Interrupt;
use crate::json::Form;
use crate::secret::SecretArgs;

/// Remove sets from an index
///
/// The sets are marked and never reported again; the file stays as large until it is built from its keys. An unknown name is an
/// error, and nothing is changed.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Index file, replaced only when the new one is complete
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    /// Names of sets
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// File for the new index; the old one stays as it is; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    secret: SecretArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Unknown names that are shown.
const SHOWN: usize = 20;

pub(crate) fn run(mut args: Args) -> Result<Outcome> {
    let _lock = Lock::new(args.output.as_ref().unwrap_or(&args.index), [&args.index])?;
    let how = args.secret.how(true)?;
    let index = open(&args.index, how)?;
    args.names.sort();
    args.names.dedup();
    let unknown: Vec<&str> = args.names.iter().map(String::as_str).filter(|name| index.id(name).is_none()).collect();
    if !unknown.is_empty() {
        let mut list = unknown.iter().take(SHOWN).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        if unknown.len() > SHOWN {
            list += &format!(" and {} more", unknown.len() - SHOWN);
        }
        bail!("{}: no set {list}; expected names of its sets; nothing was changed", args.index.display());
    }
    let output: Output = changed(&args.index, args.output.as_ref(), &[], &args.secret)?;
    let interrupt = Interrupt::install()?;
    let mut editor = Editor::new(&index).with_context(|| args.index.display().to_string())?;
    for name in &args.names {
        editor.remove_set(name).map_err(tamis::Error::from)?;
    }
    interrupt.build()?;
    let after = save(&output, &editor, how.secret)?;
    let bytes = after.as_bytes().len() as u64;
    let text = || {
        let (removed, left) = (count(args.names.len() as u64, "set"), grouped(after.sets().into()));
        let size = size(bytes, after.pairs(), after.keys());
        format!("removed     {removed}, {left} left\nfile        {output}\n{size}")
    };
    output.report(
        args.report,
        Form::Sets,
        text,
        || json!({ "removed": args.names.len(), "sets": after.sets(), "bytes": bytes }),
    )?;
    Ok(Outcome::Yes)
}
