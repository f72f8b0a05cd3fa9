//! an index, and more keys or sets -> the index with them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;
use tamis::multiset::{self, Editor, Kind};
use tamis::{BuildError, Key, Sets};

use super::super::{grouped, output::Output};
use super::build::Intake;
use super::{Members, blank, changed, count, failed, open, refused, save, sequences, sequences_json, size, with};
use crate::Outcome;
use crate::args::Room;
use crate::input::sets::{Member, Read, Taken};
use crate::input::{KeyRef, total_bytes};
use crate::interrupt::Interrupt;
use crate::progress::Bar;

/// Add sets to an index, or keys to the sets it has.
///
/// Inputs are those of `tamis sets build`: a set that the index knows gets more keys, any other is new. Pairs go into the room that was left for
/// them (--room of the build); what finds none becomes a segment of its own, of the same kind, and a query asks all segments. A key that the
/// index finds in a set already is left as it is, and with its count, if it has one; what is new counts once.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The index file, replaced only when the new one is complete
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    #[command(flatten)]
    members: Members,
    /// Write the new index here, and leave the old one as it is; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    room: Room,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let index = open(&args.index)?;
    let (inputs, how) = args.members.find(index.kmer(), false)?;
    args.room.check()?;
    let output = changed(&args.index, args.output.as_ref(), inputs.sources())?;
    let interrupt = Interrupt::install()?;
    let build = with(like(&index), &args.room).cancel(interrupt.flag()).progress(Bar::told());
    let mut adder = Adder::new(&args, &index, Intake::new(build.start()))?;
    for name in inputs.names() {
        adder.editor.add_set(name).map_err(tamis::Error::from)?;
    }
    let bar = Bar::bytes("reading", total_bytes(inputs.sources()));
    let read = inputs.for_each(&how, &mut |bytes| bar.at(bytes), &mut |member| adder.push(member))?;
    drop(bar);
    interrupt.build()?;
    let Adder { mut editor, intake, known, mut added, rest, .. } = adder;
    if rest > 0 {
        let (more, report) = intake.pairs.finish_with_report()?;
        // What came twice is known only now.
        added -= report.duplicates;
        editor.merge(&more)?;
    }
    interrupt.check()?;
    let after = save(&output, &editor)?;
    let done = Done { added, known, new: after.sets().saturating_sub(index.sets()) };
    let text = match args.json {
        true => format!("{}\n", as_json(&output, &read, &done, &after)),
        false => as_text(&output, &read, &done, &after),
    };
    output.report(&text)?;
    Ok(Outcome::Yes)
}

/// A new segment: of the kind of the last one, with about as few false sets.
fn like(index: &Sets) -> multiset::Build<()> {
    let build = multiset::stream().like(index);
    let Some(last) = index.segments().last() else { return build };
    let kind = Kind::ALL.iter().find(|(name, _)| *name == last.kind).map_or(Kind::Auto, |&(_, kind)| kind);
    // A table that is not full yet does better than it was planned for, and one that is overfull worse.
    let sets = |sets: f64, usual: f64| if sets > 0.0 { sets.clamp(0.01 * usual, 10.0 * usual) } else { usual };
    let build = build.kind(kind).absent(sets(last.absent, 0.01)).present(sets(last.present, 0.1));
    // With room for what comes next: an index that keeps growing has few segments.
    match kind {
        Kind::Bloom | Kind::Cuckoo => build.room(index.pairs() / 4),
        _ => build,
    }
}

struct Adder<'a> {
    args: &'a Args,
    editor: Editor,
    /// Without keys an index takes keys of any kind.
    empty: bool,
    /// What finds no room.
    intake: Intake,
    rest: u64,
    last: Option<(String, u32)>,
    added: u64,
    known: u64,
}

impl<'a> Adder<'a> {
    fn new(args: &'a Args, index: &Sets, intake: Intake) -> Result<Adder<'a>> {
        let empty = index.segments().next().is_none();
        let editor = Editor::new(index).with_context(|| args.index.display().to_string())?;
        Ok(Adder { args, editor, empty, intake, rest: 0, last: None, added: 0, known: 0 })
    }

    fn push(&mut self, member: Member<'_>) -> Taken {
        let id = match &self.last {
            Some((name, id)) if name == member.set => *id,
            _ => match self.editor.add_set(member.set) {
                Err(BuildError::Value { reason }) => return Ok(Err(reason)),
                id => {
                    let id = id.map_err(tamis::Error::from)?;
                    self.last = Some((member.set.to_string(), id));
                    id
                }
            },
        };
        if !self.empty {
            let done = match member.key {
                KeyRef::Bytes(bytes) => self.put(bytes, id)?,
                KeyRef::U64(number) => self.put(number, id)?,
            };
            if done {
                return Ok(Ok(()));
            }
        }
        self.added += 1;
        self.rest += 1;
        self.intake.push(member)
    }

    /// Puts a key into a set that holds it, or where there is room; false if there is none.
    fn put<K: Key + Copy>(&mut self, key: K, id: u32) -> Result<bool> {
        let path = &self.args.index;
        if self.editor.find(key).map_err(|error| refused(path, error))?.binary_search(&id).is_ok() {
            self.known += 1;
            return Ok(true);
        }
        if !self.editor.has_room(1) {
            return Ok(false);
        }
        self.editor.insert(key, id).map_err(|error| failed(path, error))?;
        self.added += 1;
        Ok(true)
    }
}

/// What became of the pairs.
struct Done {
    added: u64,
    known: u64,
    new: u32,
}

fn as_json(output: &Output, read: &Read, done: &Done, after: &Sets) -> serde_json::Value {
    json!({
        "file": output.to_string(),
        "new_sets": done.new,
        "sets": after.sets(),
        "added": done.added,
        "known": done.known,
        "blank": read.counts.blank,
        "sequences": sequences_json(read.sequences.as_ref()),
        "keys": after.keys(),
        "pairs": after.pairs(),
        "segments": after.segments().count(),
        "bytes": after.as_bytes().len(),
    })
}

fn as_text(output: &Output, read: &Read, done: &Done, after: &Sets) -> String {
    let mut out = format!("sets        {} new, {} in all\n", grouped(done.new.into()), grouped(after.sets().into()));
    out += &sequences(read.sequences.as_ref(), after.kmer());
    let (added, known, blank) = (count(done.added, "pair"), grouped(done.known), blank(&read.counts));
    out += &format!("added       {added}, {known} known before{blank}\n");
    out += &format!("segments    {}\nfile        {output}\n", after.segments().count());
    out + &size(after.as_bytes().len() as u64, after.pairs(), after.keys())
}
