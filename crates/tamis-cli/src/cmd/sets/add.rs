//! an index, and more keys or sets -> the index with them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;
use tamis::sets::{self, Added, Editor};
use tamis::{KeyType, Sets};

use super::super::{grouped, output::Output};
use super::build::Intake;
use super::lock::Lock;
use super::{MemberArgs, blank, changed, count, open, query_error, save, sequences, sequences_json, size};
use crate::Outcome;
use crate::args::LimitArgs;
use crate::input::sets::Read;
use crate::input::{KeyRef, total_bytes};
use crate::interrupt::Interrupt;
use crate::mapped::VerifyArgs;
use crate::progress::Bar;

/// Add sets to an index, or keys to the sets it has.
///
/// Inputs are those of `tamis sets build`: a set that the index knows gets more keys, any other is new. Pairs go into the room that was left for
/// them (--capacity of the build); what finds none becomes a segment of its own, of the same kind, and a query asks all segments. A pair that comes
/// twice is added once, and one that a frozen index or a Bloom sketch finds already is left as it is. A cuckoo sketch cannot tell a pair that it
/// has from one that looks like it: it keeps a copy of every pair that is added, and a sketch with counts counts it once more.
///
/// While an index is changed in place it is locked: another command that changes it waits.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The index file, replaced only when the new one is complete
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    #[command(flatten)]
    members: MemberArgs,
    /// Write the new index here, and leave the old one as it is; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let _lock = Lock::new(args.output.as_ref().unwrap_or(&args.index), [&args.index])?;
    let index = open(&args.index, VerifyArgs { no_verify: true })?;
    let (inputs, read_options) = args.members.find(index.kmer(), false)?;
    args.limits.check()?;
    let output = changed(&args.index, args.output.as_ref(), inputs.sources())?;
    let interrupt = Interrupt::install()?;
    let build = sets::stream().common(args.limits.common(&interrupt)).like(&index);
    let mut editor = Editor::new(&index).with_context(|| args.index.display().to_string())?;
    let mut intake = Intake::new(build.start());
    for name in inputs.names() {
        intake.pairs.set(name).map_err(tamis::Error::from)?;
    }
    let bar = Bar::bytes("reading", total_bytes(inputs.sources()));
    // Without keys an index takes keys of any kind.
    let key_type = index.segments().next().map(|_| index.key_type());
    let read = inputs.for_each(&read_options, &mut |bytes| bar.set_position(bytes), &mut |member| {
        let query = match member.key {
            KeyRef::Bytes(_) => KeyType::Bytes,
            KeyRef::U64(_) => KeyType::U64,
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
    let after = save(&output, &editor)?;
    let new = after.sets().saturating_sub(index.sets());
    let text = match args.json {
        true => format!("{}\n", as_json(&output, &read, &added, new, &after)),
        false => as_text(&output, &read, &added, new, &after),
    };
    output.report(&text)?;
    Ok(Outcome::Yes)
}

fn as_json(output: &Output, read: &Read, added: &Added, new: u32, after: &Sets) -> serde_json::Value {
    json!({
        "file": output.to_string(),
        "new_sets": new,
        "sets": after.sets(),
        "added": added.pairs,
        "known": added.known,
        "blank": read.counts.blank,
        "sequences": sequences_json(read.sequences.as_ref()),
        "keys": after.keys(),
        "pairs": after.pairs(),
        "segments": after.segments().count(),
        "bytes": after.as_bytes().len(),
    })
}

fn as_text(output: &Output, read: &Read, added: &Added, new: u32, after: &Sets) -> String {
    let mut out = format!("sets        {} new, {} in all\n", grouped(new.into()), grouped(after.sets().into()));
    out += &sequences(read.sequences.as_ref(), after.kmer());
    let (pairs, known, blank) = (count(added.pairs, "pair"), grouped(added.known), blank(&read.counts));
    out += &format!("added       {pairs}, {known} known before{blank}\n");
    out += &format!("segments    {}\nfile        {output}\n", after.segments().count());
    out + &size(after.as_bytes().len() as u64, after.pairs(), after.keys())
}
