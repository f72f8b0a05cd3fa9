//! a filter file, lists of today -> a patch file; a filter and patches -> one file.

use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};

use anyhow::{Error, Result, bail};
use serde_json::{Value, json};
use tamis::{BuildError, Diff, Filter, FormatError, Key, OnConflict, Patch, Patched};

use super::output::Output;
use super::{
    approx, at, check_partitions, count, fpr_line, grouped, open, open_file, percent, query_error, shown, three_digits,
};
use crate::Outcome;
use crate::args::{self, EmptyArgs, InputArgs, LimitArgs, ReportArgs, named};
use crate::failure;
use crate::input::{self, KeyRef, Source, files, total_bytes};
use crate::interrupt::Interrupt;
use crate::json::Form;
use crate::mapped::{self, How};
use crate::progress::Bar;
use crate::secret::SecretArgs;

/// Make a patch: the difference between a filter file and the lists of today
///
/// The patch holds the listed keys that the filter, with the patches before it, answers wrongly. Query the filter with
/// --patch, or make one file with tamis patch. Both lists are given as a whole, as for build. Members of OLD that are in
/// neither list go on matching, unless --old-keys names them.
///
/// Prints the number of changed answers, the size of the patch with its lower bound, the fpr with all patches, and how many
/// earlier members are in neither list and still match.
#[derive(clap::Args, Debug)]
pub(crate) struct DiffArgs {
    /// Filter file
    #[arg(value_name = "OLD")]
    filter: PathBuf,
    /// Patch file between OLD and this patch, in order; may be repeated
    #[arg(long, value_name = "FILE")]
    patch: Vec<PathBuf>,
    /// Files of the members of today, or directories of them: every word up to the next option; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    keys: Vec<PathBuf>,
    /// Files of the excluded keys of today, in the same way
    #[arg(short = 'x', long, value_name = "FILE", num_args = 1..)]
    exclude: Vec<PathBuf>,
    /// Files of the members that OLD was made of, with its patches, in the same way: those that are no members today are turned
    /// off
    #[arg(long, value_name = "FILE", num_args = 1..)]
    old_keys: Vec<PathBuf>,
    /// What to do with a key that is in both lists: error (the exit code is 4), keep (it is a member) or drop (it is excluded)
    #[arg(long, value_name = "WHAT", default_value = "error", requires_all = ["keys", "exclude"], value_parser = named(OnConflict::ALL), hide_possible_values = true)]
    on_conflict: OnConflict,
    /// Share of unlisted keys that the patch may flip [default: any, for an exact filter; else a hundredth of its fpr]
    #[arg(long, value_name = "P", value_parser = share, allow_negative_numbers = true)]
    fpr: Option<f64>,
    /// Advise to build the filter again above this fpr [default: twice the fpr of OLD]
    #[arg(long, value_name = "P", value_parser = share, allow_negative_numbers = true)]
    max_fpr: Option<f64>,
    /// Patch file, replaced only when the new one is complete; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    empty: EmptyArgs,
    #[command(flatten)]
    secret: SecretArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Make one filter file of a filter and its patches
///
/// The file answers as the filter with --patch does. No lists are needed.
#[derive(clap::Args, Debug)]
pub(crate) struct PatchArgs {
    /// Filter file
    #[arg(value_name = "OLD")]
    filter: PathBuf,
    /// Patch files, in the order in which they were made
    #[arg(value_name = "PATCH", required = true)]
    patches: Vec<PathBuf>,
    /// Filter file, replaced only when the new one is complete; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    secret: SecretArgs,
    #[command(flatten)]
    report: ReportArgs,
}

fn share(text: &str) -> Result<f64, String> {
    args::share(text, |p| p > 0.0 && p < 1.0, "a share above 0 and below 1, like 0.01, 1% or 1/256")
}

/// Opens patches behind a filter; errors name the patch.
pub(super) fn with_patches(mut patched: Patched, paths: &[PathBuf], no_verify: bool) -> Result<Patched> {
    // The secret is the filter's.
    let how = How { no_verify, secret: None };
    for path in paths {
        let patch = open_file(path, "patch", |path| mapped::patch(path, how))?;
        patched = patched.with_patches([patch]).map_err(|error| match error {
            FormatError::Patch { reason } => anyhow::anyhow!("{}: {reason}", shown(path)),
            error => at(Error::new(tamis::Error::from(error)), &shown(path)),
        })?;
    }
    Ok(patched)
}

pub(crate) fn diff(args: DiffArgs) -> Result<Outcome> {
    args.report.apply();
    if args.keys.is_empty() && args.exclude.is_empty() {
        bail!("--keys, --exclude: no lists; expected the members and the excluded keys of today");
    }
    let lists = [files::lists(&args.keys)?, files::lists(&args.exclude)?, files::lists(&args.old_keys)?];
    let file = Source::from(args.filter.clone());
    input::check_stdin_once(lists.iter().flatten().chain([&file]))?;
    args.limits.check()?;
    let output = Output::new("-o", &args.output, lists.iter().flatten(), "patch")?;
    let output = output.spare(
        "-o",
        args.patch.iter().chain([&args.filter]).map(PathBuf::as_path),
        "the filter or a patch of it",
    )?;
    let output = output.spare("-o", args.secret.path(), "the secret")?;
    let options = args.empty.apply(args.input.options(lists.iter().flatten())?).within(args.limits.memory);
    let filter = open(&args.filter, args.secret.how(false)?)?;
    let key_type = (!filter.is_empty()).then(|| filter.key_type());
    let options = args::typed(&shown(&args.filter), key_type, options)?;
    check_partitions(&args.filter, filter.is_partitioned(), args.input.is_partitioned(), "--partition-column NAME")?;
    let old = with_patches(filter.with_patches([])?, &args.patch, false)?;
    let interrupt = Interrupt::install()?;
    let build = args.limits.common(&interrupt).on_conflict(args.on_conflict);
    let build = args.fpr.into_iter().fold(build, |build, p| build.fpr(p));
    let mut diff = old.diff_with(build).map_err(|error| match error {
        BuildError::Patch { reason } => anyhow::anyhow!("{}: {reason}", shown(&args.filter)),
        error => Error::new(error),
    })?;
    for (list, role) in lists.iter().zip([Role::Member, Role::Excluded, Role::Old]) {
        let bar = Bar::bytes(if role == Role::Excluded { "excluding" } else { "reading" }, total_bytes(list));
        input::for_each(list, &options, &mut |bytes| bar.set_position(bytes), &mut |key, partition, _| {
            match push(&mut diff, key, partition.map(|partition| partition.text), role) {
                Err(tamis::Error::Query(error)) => Err(query_error(&args.filter, error)),
                other => Ok(other?),
            }?;
            Ok(ControlFlow::Continue(()))
        })?;
    }
    interrupt.build()?;
    let finish = |diff: Diff<'_>| Ok((diff.finish()?, ()));
    let open = |path: &Path| mapped::patch(path, How::written(None));
    let built = output.build(diff, finish, |diff, path| diff.finish_to(path), open, Patch::as_bytes);
    let (_, patch) = built.map_err(|error| explain(error, &output))?;
    let Some(patch) = patch else { return Ok(Outcome::Yes) };
    let today = old.with_patches([patch.clone()])?;
    let most = args.max_fpr.unwrap_or(2.0 * filter.fpr());
    let text = || {
        let mut out = format!(
            "changed     {}, {} unchanged\n",
            count(patch.len(), "key"),
            approx(patch.unchanged(), patch.unchanged() >= 1 << 14)
        );
        out += &format!("file        {output}: patch {}\n", patch.number());
        out += &format!("size        {} bytes", grouped(patch.as_bytes().len() as u64));
        let bound = patch.lower_bound() / 8.0;
        if bound > 0.0 {
            out += &format!("; lower bound {}", grouped(bound.ceil() as u64));
        }
        out += &format!("\nflips       {} of unlisted keys\n", percent(patch.fpr()));
        out += &fpr_line(today.fpr());
        out += &delisted_line(&patch.delisted(), "; see --old-keys");
        if today.fpr() > most {
            let than = three_digits(100.0 * most);
            out += &format!("advice      build the filter again: the fpr with all patches is above {than} %\n");
        }
        out
    };
    let fields = || {
        let mut fields = patch_fields(&patch);
        fields["fpr_with_patches"] = today.fpr().into();
        fields["max_fpr"] = most.into();
        fields["rebuild"] = (today.fpr() > most).into();
        fields
    };
    output.report(args.report, Form::Patch, text, fields)?;
    Ok(Outcome::Yes)
}

/// What the keys of a list are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Member,
    Excluded,
    Old,
}

fn push(diff: &mut Diff<'_>, key: KeyRef<'_>, partition: Option<&[u8]>, role: Role) -> Result<(), tamis::Error> {
    fn of<K: Key>(diff: &mut Diff<'_>, key: K, partition: Option<&[u8]>, role: Role) -> Result<(), tamis::Error> {
        match (partition, role) {
            (None, Role::Member) => diff.push(key),
            (None, Role::Excluded) => diff.exclude(key),
            (None, Role::Old) => diff.push_old(key),
            (Some(name), Role::Member) => diff.push_in(name, key),
            (Some(name), Role::Excluded) => diff.exclude_in(name, key),
            (Some(name), Role::Old) => diff.push_old_in(name, key),
        }
    }
    match key {
        KeyRef::Bytes(key) => of(diff, key, partition, role),
        KeyRef::Integer(key) => of(diff, key, partition, role),
    }
}

/// The line about earlier members that still match, if there may be any.
pub(super) fn delisted_line(delisted: &RangeInclusive<u64>, advice: &str) -> String {
    let (least, most) = (*delisted.start(), *delisted.end());
    let who = match most {
        0 => return String::new(),
        _ if least == most => count(least, "earlier member"),
        _ => format!("{} to {} earlier members", grouped(least), approx(most, true)),
    };
    let verb = if most == 1 { "matches" } else { "match" };
    format!("delisted    {who} in neither list still {verb}{advice}\n")
}

/// An error of the library in terms of files.
fn explain(error: Error, output: &Output) -> Error {
    match error.downcast_ref() {
        Some(tamis::Error::Build(BuildError::Conflict { count: keys, .. })) => failure::conflicts(*keys, "", &[]),
        Some(tamis::Error::Build(_)) => error,
        _ => at(error, &output.to_string()),
    }
}

/// An identity as text.
pub(super) fn hex(identity: [u8; 16]) -> String {
    identity.map(|byte| format!("{byte:02x}")).concat()
}

/// What a report says about a patch.
pub(super) fn patch_fields(patch: &Patch) -> Value {
    json!({
        "changed": patch.len(),
        "unchanged": patch.unchanged(),
        "members": patch.members(),
        "delisted_min": patch.delisted().start(),
        "delisted_max": patch.delisted().end(),
        "number": patch.number(),
        "base": hex(patch.base()),
        "before": hex(patch.before()),
        "identity": hex(patch.identity()),
        "key_type": patch.key_type().to_string(),
        "bytes": patch.as_bytes().len(),
        "bound_bytes": patch.lower_bound() / 8.0,
        "fpr": patch.fpr(),
    })
}

/// The same as lines.
pub(super) fn patch_lines(patch: &Patch) -> String {
    let unchanged = approx(patch.unchanged(), patch.unchanged() >= 1 << 14);
    let mut out = format!("changed     {} ({}), {unchanged} unchanged\n", grouped(patch.len()), patch.key_type());
    out += &format!("base        {}\n", hex(patch.base()));
    out += &format!("before      {}\n", hex(patch.before()));
    out += &format!("number      {} of its chain\n", patch.number());
    out += &format!("size        {} bytes\n", grouped(patch.as_bytes().len() as u64));
    out += &format!("flips       {} of unlisted keys\n", percent(patch.fpr()));
    out + &delisted_line(&patch.delisted(), "")
}

pub(crate) fn patch(args: PatchArgs) -> Result<Outcome> {
    args.report.apply();
    let sources: Vec<Source> = args.patches.iter().chain([&args.filter]).cloned().map(Source::from).collect();
    input::check_stdin_once(sources.iter())?;
    // OLD may be replaced: it is read to its end from where it was.
    let output = Output::new("-o", &args.output, [].iter(), "filter")?;
    let output = output.spare("-o", args.patches.iter().map(PathBuf::as_path), "a patch")?;
    let output = output.spare("-o", args.secret.path(), "the secret")?;
    let filter = open(&args.filter, args.secret.how(false)?)?;
    let patched = with_patches(filter.with_patches([])?, &args.patches, false)?;
    let finish = |patched: &Patched| Ok((patched.finish()?, ()));
    let secret = args.secret.how(true)?.secret;
    let open = |path: &Path| mapped::filter(path, How::written(secret));
    let built = output.build(&patched, finish, |patched, path| patched.save(path), open, Filter::as_bytes);
    let (_, built) = built.map_err(|error| at(error, &output.to_string()))?;
    let bytes = built.map(|filter| filter.as_bytes().len() as u64);
    let patches = patched.patches().len() as u64;
    let text = || {
        let mut out =
            format!("file        {output}: a filter with {}\n", count(patches, "patch").replace("patchs", "patches"));
        out += &bytes.map(|bytes| format!("size        {} bytes\n", grouped(bytes))).unwrap_or_default();
        out += &fpr_line(patched.fpr());
        out + &delisted_line(&patched.delisted(), "")
    };
    let fields = || {
        let delisted = patched.delisted();
        json!({
            "patches": patches,
            "bytes": bytes,
            "fpr": patched.fpr(),
            "delisted_min": delisted.start(),
            "delisted_max": delisted.end(),
        })
    };
    output.report(args.report, Form::Filter, text, fields)?;
    Ok(Outcome::Yes)
}
