//! a filter file, members and excluded keys -> whether the first match and the second do not.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};
use tamis::{OnConflict, Patched};

use super::patch::delisted_line;
use super::queried::Queried;
use super::{check_partitions, count, grouped, key_bytes, print, print_json, query_error, short, shown};
use crate::Outcome;
use crate::args::{self, EmptyArgs, InputArgs, named};
use crate::failure::{self, Conflict};
use crate::input::{self, Options, Places, Source, files, total_bytes};
use crate::json::{self, Form};
use crate::progress::Bar;
use crate::secret::SecretArgs;

/// Check a filter file: its checksum and, with --keys and --exclude, its answers
///
/// With --patch the answers are those of the filter and its patches, and their checksums are checked too.
///
/// The exit code is 0 if every member matches and no excluded key does, 1 otherwise (the first five wrong answers are printed),
/// 3 if the file is damaged, 4 if a key is listed as a member and as excluded.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Filter file, or a folder of slices with their manifest; - is standard input
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    /// Files of members, which must match, or directories of them: every word up to the next option; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    keys: Vec<PathBuf>,
    /// Files of excluded keys, which must not match, in the same way
    #[arg(short = 'x', long, value_name = "FILE", num_args = 1..)]
    exclude: Vec<PathBuf>,
    /// Patch file of FILTER, made by tamis diff; may be repeated, in order
    #[arg(long, value_name = "PATCH", num_args = 1, action = clap::ArgAction::Append)]
    patch: Vec<PathBuf>,
    /// What a key in both lists is: error (the exit code is 4), keep (a member) or drop (excluded), as with build
    #[arg(long, value_name = "WHAT", default_value = "error", requires_all = ["keys", "exclude"], value_parser = named(OnConflict::ALL), hide_possible_values = true)]
    on_conflict: OnConflict,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    empty: EmptyArgs,
    #[command(flatten)]
    secret: SecretArgs,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Wrong answers that are shown.
const EXAMPLES: usize = 5;

/// Wrong keys that are kept, to be looked for in the other list. More are only counted.
const MAX_WRONG: usize = 1 << 20;

/// A key, and its partition.
type Named = (Vec<u8>, Option<Vec<u8>>);

/// A list of keys that were queried.
#[derive(Default)]
struct Checked {
    checked: u64,
    /// Answers that are not the expected one.
    wrong: u64,
    /// Their keys: how often each is listed, and the number of the first in the list.
    keys: HashMap<Named, (u64, u64)>,
    places: Places,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let lists = [files::lists(&args.keys)?, files::lists(&args.exclude)?];
    let file = Source::from(args.filter.clone());
    input::check_stdin_once(lists.iter().flatten().chain([&file]))?;
    let options = args.empty.apply(args.input.options(lists.iter().flatten())?);
    let filter = Queried::open(&args.filter, args.secret.how(false)?)?;
    let options = args::typed(&shown(&args.filter), filter.key_type(), options)?;
    if lists.iter().any(|list| !list.is_empty()) {
        check_partitions(
            &args.filter,
            filter.is_partitioned(),
            args.input.is_partitioned(),
            "--partition-column NAME",
        )?;
    }
    let filter = filter.with_patches(&args.filter, &args.patch, false)?;
    // A key of both lists is wrong in one of them. The list that gives way is read first, and its wrong keys are looked for in the
    // other; where none gives way, in both directions.
    let mut checker = Checker { args: &args, filter: &filter, options: &options, conflicts: vec![] };
    let (mut members, mut excluded) = (Checked::default(), Checked::default());
    match args.on_conflict {
        OnConflict::Drop => {
            checker.check(&lists[0], true, &mut members, &mut Checked::default())?;
            checker.check(&lists[1], false, &mut excluded, &mut members)?;
        }
        _ => {
            checker.check(&lists[1], false, &mut excluded, &mut Checked::default())?;
            checker.check(&lists[0], true, &mut members, &mut excluded)?;
            if args.on_conflict == OnConflict::Error
                && !members.keys.is_empty()
                && lists[1].iter().all(Source::is_regular)
            {
                checker.check(&lists[1], false, &mut Checked::default(), &mut members)?;
            }
        }
    }
    let conflicts = checker.conflicts.len() as u64;
    if args.on_conflict == OnConflict::Error && conflicts > 0 {
        return Err(failure::conflicts(conflicts, "", &checker.conflicts));
    }
    let delisted = filter.plain().map_or(0..=0, Patched::delisted);
    let examples: Vec<(String, Value)> = members.examples(false).into_iter().chain(excluded.examples(true)).collect();
    if args.json {
        print_json(
            Form::Filter,
            json!({
                "checksum": true,
                "checked": members.checked,
                "false_negatives": members.wrong,
                "excluded_checked": excluded.checked,
                "false_positives": excluded.wrong,
                "conflicts": conflicts,
                "delisted_min": delisted.start(),
                "delisted_max": delisted.end(),
                "examples": examples.into_iter().map(|(_, fields)| fields).collect::<Vec<_>>(),
            }),
        )?;
    } else {
        let mut out = "checksum    right\n".to_string();
        if !args.keys.is_empty() {
            let (checked, wrong) = (grouped(members.checked), count(members.wrong, "false negative"));
            out += &format!("keys        {checked} checked, {wrong}\n");
        }
        if !args.exclude.is_empty() {
            let (checked, wrong) = (grouped(excluded.checked), count(excluded.wrong, "false positive"));
            out += &format!("excluded    {checked} checked, {wrong}\n");
        }
        if conflicts > 0 {
            let what = if args.on_conflict == OnConflict::Keep { "kept as members" } else { "excluded" };
            out += &format!("conflicts   {}, {what}\n", count(conflicts, "key"));
        }
        out += &delisted_line(&delisted, "");
        out.extend(examples.into_iter().map(|(line, _)| line));
        print(&out)?;
    }
    Ok(if members.wrong + excluded.wrong == 0 { Outcome::Yes } else { Outcome::No })
}

struct Checker<'a> {
    args: &'a Args,
    filter: &'a Queried,
    options: &'a Options,
    /// Keys of both lists.
    conflicts: Vec<Conflict>,
}

impl Checker<'_> {
    /// Queries every key of a list. A wrong key of the list before it that is in this one is a conflict, and not wrong.
    fn check(&mut self, sources: &[Source], expected: bool, list: &mut Checked, before: &mut Checked) -> Result<()> {
        if sources.is_empty() {
            return Ok(());
        }
        let bar = Bar::bytes("checking", total_bytes(sources));
        let progress = &mut |bytes| bar.set_position(bytes);
        let (filter, mut both) = (self.filter, vec![]);
        let (counts, places) = input::for_each(sources, self.options, progress, &mut |key, partition, at| {
            let partition = partition.map(|partition| partition.text);
            let answer = filter.contains(key, partition);
            let wrong = answer.map_err(|error| query_error(&self.args.filter, error))? != expected;
            if wrong || !before.keys.is_empty() {
                let named = (key_bytes(key), partition.map(<[u8]>::to_vec));
                if let Some((times, ordinal)) = before.keys.remove(&named) {
                    before.wrong -= times;
                    both.push((named.0.clone(), ordinal, at.ordinal));
                }
                if wrong {
                    list.wrong += 1;
                    if list.keys.len() < MAX_WRONG {
                        list.keys.entry(named).or_insert((0, at.ordinal)).0 += 1;
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for (key, one, other) in both {
            if let (Some(one), Some(other)) = (before.places.locate(one), places.locate(other)) {
                let (member, excluded) = if expected { (other, one) } else { (one, other) };
                self.conflicts.push(Conflict::new(Some(key), member, excluded));
            }
        }
        (list.checked, list.places) = (counts.keys, places);
        Ok(())
    }
}

impl Checked {
    /// The first wrong answers, as lines and as fields; `matched` is what the answers are.
    fn examples(&self, matched: bool) -> Vec<(String, Value)> {
        let mut first: Vec<(&Named, u64)> = self.keys.iter().map(|(named, &(_, ordinal))| (named, ordinal)).collect();
        first.sort_unstable_by_key(|&(_, ordinal)| ordinal);
        let label = if matched { "matched     " } else { "rejected    " };
        let example = |&((key, partition), ordinal): &(&Named, u64)| {
            let place = self.places.locate(ordinal)?;
            let mut fields = json!({ "match": matched, "partition": null });
            json::put(&mut fields, "key", key);
            partition.iter().for_each(|name| json::put(&mut fields, "partition", name));
            json::put_place(&mut fields, Some(place));
            let name = partition.as_ref().map(|name| format!(" in partition {:?}", short(name))).unwrap_or_default();
            Some((format!("{label}{place}: {}{name}\n", short(key)), fields))
        };
        first.iter().filter_map(example).take(EXAMPLES).collect()
    }
}
