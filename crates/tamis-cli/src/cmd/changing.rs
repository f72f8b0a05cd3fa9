//! a filter that changes, and keys to add, exclude or remove -> the filter with that change.
//!
//! The file is read, changed in memory, and replaced when the new one is complete. A key that cannot be changed ends the command, and
//! nothing is changed.

use std::fs;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Error, Result, anyhow, bail};
use serde_json::json;
use tamis::{
    Bloom, Chained, ChangeError, Cuckoo, Digest, Filter, FormatError, Hasher, KeyType, Kind, QueryError, Quotient,
};

use super::output::Output;
use super::sets::lock::Lock;
use super::{at, count, explain, grouped, inspect, key_bytes, open_file};
use crate::Outcome;
use crate::args::{self, EmptyArgs, KeyLists, ReportArgs, TextArgs};
use crate::failure::{self, failure};
use crate::input::{self, Counts, KeyRef, Source, total_bytes};
use crate::interrupt::Interrupt;
use crate::json::Form;
use crate::mapped::{self, How};
use crate::progress::Bar;
use crate::secret::{SecretArgs, SecretFile};

/// Add members to a filter built with --changing
///
/// Keys that are members stay members. An excluded key is a conflict, and nothing is changed: remove it with --excluded first.
/// A first layer that is full is an error: build it with a larger --capacity. Over ribbon, fuse or fuse4 members do not change.
///
/// A file that is changed in place is locked: another command that changes it waits.
#[derive(clap::Args, Debug)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    change: ChangeArgs,
}

/// Exclude keys from a filter built with --changing
///
/// The keys never match from then on, whatever is added later. A member is a conflict, and nothing is changed. Over ribbon, fuse or fuse4
/// only keys that matched the first layer count as new: it rejects all others for good.
#[derive(clap::Args, Debug)]
pub(crate) struct ExcludeArgs {
    #[command(flatten)]
    change: ChangeArgs,
}

/// Remove members from a filter built with --changing
///
/// A removed key is unlisted: it may match. To make sure that it does not, exclude it. A key that is no member is an error, and
/// nothing is changed.
#[derive(clap::Args, Debug)]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// Remove keys from the excluded keys instead; they are unlisted then
    #[arg(long)]
    excluded: bool,
}

/// A filter and the keys of a change.
#[derive(clap::Args, Debug)]
struct ChangeArgs {
    /// Filter file, replaced only when the new one is complete
    #[arg(value_name = "FILTER")]
    file: PathBuf,
    #[command(flatten)]
    keys: KeyLists,
    /// File for the new filter; the old one stays as it is; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Column of keys in .csv, .tsv, .jsonl and .parquet inputs; '#2' is the second of a csv or tsv without a header
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    empty: EmptyArgs,
    #[command(flatten)]
    secret: SecretArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// What is done with keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verb {
    Add,
    Exclude,
    Remove,
    Allow,
}

pub(crate) fn add(args: AddArgs) -> Result<Outcome> {
    run(&args.change, Verb::Add)
}

pub(crate) fn exclude(args: ExcludeArgs) -> Result<Outcome> {
    run(&args.change, Verb::Exclude)
}

pub(crate) fn remove(args: RemoveArgs) -> Result<Outcome> {
    run(&args.change, if args.excluded { Verb::Allow } else { Verb::Remove })
}

fn run(args: &ChangeArgs, verb: Verb) -> Result<Outcome> {
    args.report.apply();
    let sources = args.keys.sources()?;
    input::check_stdin_once(sources.iter())?;
    let options = args.empty.apply(args.text.options(args.column.as_ref(), None, &sources)?);
    let to = args.output.as_ref().unwrap_or(&args.file);
    let _lock = Lock::new(to, [&args.file])?;
    let secret = args.secret.how(false)?.secret;
    let restored = open_file(&args.file, "filter", |path| {
        if mapped::is_folder(path) {
            return Err(FormatError::Form { found: mapped::MANIFEST_FORM, expected: "filter" }.into());
        }
        let bytes = fs::read(path)?;
        let restored = match secret {
            Some(secret) => Chained::restore_with_secret(bytes, secret),
            None => Chained::restore(bytes),
        };
        match restored {
            Err(FormatError::ReadOnly) => Ok(None),
            restored => Ok(Some(restored?)),
        }
    })?;
    let name = args.file.display();
    let mut filter = restored.ok_or_else(|| {
        anyhow!("{name}: read-only, it keeps no digests of its keys; expected a filter built with --changing")
    })?;
    if !filter.takes_keys() && matches!(verb, Verb::Add | Verb::Remove) {
        bail!(
            "{name}: its members do not change, as its first layer was built from them; expected a filter built with \
             --changing over bloom, classic-bloom, cuckoo or quotient"
        );
    }
    let options = args::typed(&name.to_string(), Some(filter.key_type()), options)?;
    let output = Output::new("-o", to, sources.iter(), "filter")?.spare("-o", args.secret.path(), "the secret")?;
    let interrupt = Interrupt::install()?;
    let counted = apply(&sources, &options, &mut filter, verb).map_err(|error| match error.downcast() {
        Ok(tamis::Error::Change(ChangeError::KeyType(mismatch))) => {
            explain(&args.file, QueryError::KeyType(mismatch), "the filter")
        }
        Ok(error) => Error::new(error).context(name.to_string()),
        Err(error) => error,
    })?;
    interrupt.build()?;
    save(&output, &filter, secret, args.report, &[counted])
}

/// What became of the keys that were read.
pub(super) struct Counted {
    what: &'static str,
    changed: u64,
    unchanged: u64,
    blank: u64,
}

impl Counted {
    /// Of keys that were read, so many are new.
    pub(super) fn new(what: &'static str, changed: u64, read: &Counts) -> Counted {
        Counted { what, changed, unchanged: read.keys - changed, blank: read.blank }
    }

    fn line(&self) -> String {
        let blank =
            if self.blank > 0 { format!(", {} skipped", count(self.blank, "blank line")) } else { String::new() };
        format!("{:<11} {}, {} as before{blank}\n", self.what, count(self.changed, "key"), grouped(self.unchanged))
    }
}

/// Reads keys and changes the filter, in memory.
pub(super) fn apply(sources: &[Source], options: &input::Options, filter: &mut Chained, verb: Verb) -> Result<Counted> {
    let bar = Bar::bytes("reading", total_bytes(sources));
    let (mut changed, mut wrong) = (0, None);
    let (read, places) = input::for_each(sources, options, &mut |bytes| bar.set_position(bytes), &mut |key, _, at| {
        match change(filter, key, verb) {
            Ok(new) => changed += u64::from(new),
            Err(tamis::Error::Change(error @ (ChangeError::Member | ChangeError::Excluded | ChangeError::Absent))) => {
                wrong = Some((at.ordinal, key_bytes(key), error));
                return Ok(ControlFlow::Break(()));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let Some((ordinal, key, error)) = wrong else {
        let what = match verb {
            Verb::Add => "added",
            Verb::Exclude => "excluded",
            Verb::Remove => "removed",
            Verb::Allow => "allowed",
        };
        return Ok(Counted::new(what, changed, &read));
    };
    let key = input::quote(&key);
    let (kind, what) = match error {
        ChangeError::Member if !filter.takes_keys() => (failure::Kind::Conflict, "a member; expected none"),
        ChangeError::Member => (failure::Kind::Conflict, "a member; expected none; remove it first"),
        ChangeError::Excluded => {
            (failure::Kind::Conflict, "excluded; expected none; use tamis remove --excluded first")
        }
        _ => (failure::Kind::Error, "no member; expected one"),
    };
    let message = places.error(ordinal, &format!("{key} is {what}; nothing was changed"));
    Err(failure(kind, message.to_string()))
}

fn change(filter: &mut Chained, key: KeyRef<'_>, verb: Verb) -> Result<bool, tamis::Error> {
    macro_rules! with {
        ($key:expr) => {
            match verb {
                Verb::Add => filter.insert($key),
                Verb::Exclude => filter.exclude($key),
                Verb::Remove => filter.remove($key).map(|()| true).map_err(Into::into),
                Verb::Allow => filter.allow($key).map_err(Into::into),
            }
        };
    }
    match key {
        KeyRef::Bytes(bytes) => with!(bytes),
        KeyRef::Integer(number) => with!(number),
    }
}

/// What a new filter is made with.
pub(super) struct New<'a> {
    pub(super) kind: Kind,
    /// Of the first layer.
    pub(super) fpr: f64,
    pub(super) hasher: Hasher,
    /// Where the secret of the hash is, if it is not in the file.
    pub(super) secret: Option<&'a SecretFile>,
    pub(super) integers: bool,
}

/// A filter of these members, over a first layer that is built from them and never changes.
pub(super) fn fixed(new: New<'_>, members: Vec<Digest>) -> Result<Chained> {
    let key_type = if new.integers { KeyType::Integer } else { KeyType::Bytes };
    let mut first = tamis::build_digests(members.clone(), new.hasher.clone(), key_type).kind(new.kind).fpr(new.fpr);
    if new.secret.is_some() {
        first = first.secret_beside();
    }
    let first = first.finish()?;
    // Keys that were chosen to lie in one shard got another hash.
    if *first.hasher() != new.hasher {
        bail!("--kind {}: the digests of the keys crowd; expected --secret with such keys", new.kind);
    }
    Ok(Chained::over_built_digests(&first, members)?)
}

/// A filter without members, over the first layer that `kind` names.
pub(super) fn empty(new: New<'_>, capacity: u64) -> Result<Chained> {
    let New { kind, fpr, hasher, secret, integers } = new;
    macro_rules! over {
        ($builder:expr) => {{
            let mut builder = $builder.fpr(fpr).hasher(hasher);
            if secret.is_some() {
                builder = builder.secret_beside();
            }
            match integers {
                true => Chained::over(builder.build::<u64>().map_err(tamis::Error::from)?),
                false => Chained::over(builder.build::<[u8]>().map_err(tamis::Error::from)?),
            }
        }};
    }
    let filter = match kind {
        Kind::Auto | Kind::Cuckoo => over!(Cuckoo::with_capacity(capacity)),
        Kind::Bloom => over!(Bloom::with_capacity(capacity)),
        Kind::ClassicBloom => over!(Bloom::with_capacity(capacity).classic()),
        Kind::Quotient => over!(Quotient::with_capacity(capacity)),
        kind => {
            return Err(anyhow!(
                "--kind {kind}: no first layer of a filter that changes; expected bloom, classic-bloom, cuckoo or quotient, or \
                 ribbon, fuse or fuse4 if the members stay"
            ));
        }
    };
    Ok(filter?)
}

/// Writes the filter, and reports what was changed and what is in it.
pub(super) fn save(
    output: &Output,
    filter: &Chained,
    secret: Option<[u64; 2]>,
    report: ReportArgs,
    counted: &[Counted],
) -> Result<Outcome> {
    let write = || -> Result<Filter> {
        if let Output::File(path) = output {
            filter.save(path)?;
            return Ok(mapped::filter(path, How::written(secret))?);
        }
        let bytes = filter.snapshot().map_err(tamis::Error::from)?;
        match output {
            Output::Device(path) => fs::OpenOptions::new().write(true).open(path)?.write_all(&bytes)?,
            Output::Stdout | Output::File(_) => {
                let mut out = io::stdout().lock();
                out.write_all(&bytes)?;
                out.flush()?;
            }
        }
        Ok(match secret {
            Some(secret) => Filter::open_with_secret(bytes, secret)?,
            None => Filter::open(bytes)?,
        })
    };
    let after = write().map_err(|error| at(error, &output.to_string()))?;
    let text = || {
        let changed: String = counted.iter().map(Counted::line).collect();
        format!("{changed}file        {output}\n{}", inspect::lines(&after))
    };
    let fields = || {
        let mut fields = inspect::fields(&after);
        for (name, of) in [
            ("changed", (|c| c.changed) as fn(&Counted) -> u64),
            ("unchanged", |c| c.unchanged),
            ("blank", |c| c.blank),
        ] {
            fields[name] = json!(counted.iter().map(of).sum::<u64>());
        }
        fields
    };
    output.report(report, Form::Filter, text, fields)?;
    Ok(Outcome::Yes)
}
