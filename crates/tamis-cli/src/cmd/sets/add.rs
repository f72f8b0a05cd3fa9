//! an index, and more keys or sets -> the index with them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;
use tamis::sets::{self, Added, Editor};
use tamis::{KeyType, Sets};

use super::super::{grouped, output::Output};
use super::build::Intake;
use super::lock::Lock;
use super::{MemberArgs, blank, changed, count, open, query_error, save, segments, sequences, sequences_fields, size};
use crate::Outcome;
use crate::args::{LimitArgs, ReportArgs};
use crate::input::sets::Read;
use crate::input::{KeyRef, total_bytes};
use crate::interrupt::Interrupt;
use crate::progress::Bar;
use crate::secret::SecretArgs;

/// Add sets to an index, or keys to its sets
///
/// Takes the inputs of `tamis sets build`: an existing set gets more keys, any other is new. Pairs fill the --capacity of the
/// build; the rest becomes a new segment of the same kind, and a query reads all segments. A repeated pair is added once, and a
/// pair that a frozen index or a Bloom sketch matches already is skipped. A cuckoo sketch stores a copy of every added pair, and
/// a sketch with counts counts it once more.
///
/// An index that is changed in place is locked: another command that changes it waits.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Index file, replaced only when the new one is complete
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    #[command(flatten)]
    members: MemberArgs,
    /// File for the new index; the old one stays as it is; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    secret: SecretArgs,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    args.report.apply();
    let _lock = Lock::new(args.output.as_ref().unwrap_or(&args.index), [&args.index])?;
    let how = args.secret.how(true)?;
    let index = open(&args.index, how)?;
    let (inputs, read_options) = args.members.find(index.kmer(), false)?;
    args.limits.check()?;
    let output = changed(&args.index, args.output.as_ref(), inputs.sources())?;
    let interrupt = Interrupt::install()?;
    let build = args.members.numbered(sets::stream().options(args.limits.common(&interrupt))).like(&index);
    let mut editor = Editor::new(&index).with_context(|| args.index.display().to_string())?;
    let mut intake = Intake::new(build.start());
    for name in inputs.names() {
        intake.pairs.set(name).map_err(tamis::Error::from)?;
    }
    let bar = Bar::bytes("reading", total_bytes(inputs.sources()));
    // An index without keys takes keys of either type.
    let key_type = index.segments().next().map(|_| index.key_type());
    let read = inputs.for_each(&read_options, &mut |bytes| bar.set_position(bytes), &mut |member| {
        let query = match member.key {
            KeyRef::Bytes(_) => KeyType::Bytes,
            KeyRef::Integer(_) => KeyType::Integer,
        };
        if let Some(key_type) = key_type {
            key_type.check(query).map_err(|error| query_error(&args.index, error.into()))?;
        }
        intake.push(member)
    })?;
    drop(bar);
    interrupt.build()?;
    let added = editor.add(intake.pairs).with_context(|| args.index.display().to_string())?;
    interrupt.check()?;
    let after = save(&output, &editor, how.secret)?;
    let new = after.sets().saturating_sub(index.sets());
    let text = || as_text(&output, &read, &added, new, &after);
    output.report(args.report, "sets", text, || as_fields(&read, &added, new, &after))?;
    Ok(Outcome::Yes)
}

fn as_fields(read: &Read, added: &Added, new: u32, after: &Sets) -> serde_json::Value {
    json!({
        "new_sets": new,
        "sets": after.sets(),
        "added": added.pairs,
        "skipped": added.known,
        "blank": read.counts.blank,
        "sequences": sequences_fields(read.sequences.as_ref()),
        "keys": after.keys(),
        "pairs": after.pairs(),
        "segments": segments(after),
        "bytes": after.as_bytes().len(),
    })
}

fn as_text(output: &Output, read: &Read, added: &Added, new: u32, after: &Sets) -> String {
    let mut out = format!("sets        {} new, {} in all\n", grouped(new.into()), grouped(after.sets().into()));
    out += &sequences(read.sequences.as_ref(), after.kmer());
    let (pairs, known, blank) = (count(added.pairs, "pair"), grouped(added.known), blank(&read.counts));
    out += &format!("added       {pairs}, {known} skipped: they match already{blank}\n");
    out += &format!("segments    {}\nfile        {output}\n", after.segments().count());
    out + &size(after.as_bytes().len() as u64, after.pairs(), after.keys())
}
