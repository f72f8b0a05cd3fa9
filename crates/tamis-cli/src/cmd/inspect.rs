//! a tamis file of any form -> what is in it.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tamis::{FileInfo, Filter};

use super::{
    approx, as_file, bits_per_key, bound, fpr_line, grouped, groups, hash_line, is_estimate, layer_lines, layers,
    learn, map, open_file, overhead, partition_lines, partitions, patch, print, put_hash, sets, shown, size_line,
    slice,
};
use crate::Outcome;
use crate::input;
use crate::json::{self, Form};
use crate::mapped::{self, Any, VerifyArgs};
use crate::secret::SecretArgs;

/// Show what is in a tamis file: a filter, a learned filter, a patch, a map, a sequence, a set index, an adaptive filter or slices
///
/// Prints keys, hash, size, layers and their sizes. A map is a tree: every node is a line, indented below the node above it.
/// Of an adaptive filter only the size is shown.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// File of any form, or a folder of slices with their manifest; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// List the sets of a set index: number, name, keys
    #[arg(long)]
    names: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    verify: VerifyArgs,
    #[command(flatten)]
    secret: SecretArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let how = args.secret.how(args.verify.no_verify)?;
    let any = open_file(&args.file, "tamis", |path| mapped::any(path, how))?;
    let form = any.form();
    if args.names && form != Form::Sets {
        bail!("--names: {} is no set index; expected one", shown(&args.file));
    }
    // The fields, and the lines below the first.
    let (mut fields, lines) = match &any {
        Any::Filter(filter) => (fields(filter), lines(filter)),
        Any::Map(map) => map::inspect::report(map),
        Any::Sequence(sequence) => map::inspect::sequence(sequence),
        Any::Sets(index) => sets::inspect::report(index, args.names),
        Any::Patch(found) => (patch::patch_fields(found), patch::patch_lines(found)),
        Any::Learned(filter) => (learn::fields(filter), learn::lines(filter)),
        Any::Slice(bytes, info) => (slice::fields(info, bytes.len()), slice::lines(info, bytes.len())),
        Any::Sliced(slices) => (slice::folder_fields(slices), slice::folder_lines(slices)),
        Any::Adaptive(bytes) => (json!({ "bytes": bytes.len() }), size_line(bytes.len() as u64, 0, None)),
    };
    let info = FileInfo::of(any.bytes())?;
    let identity = patch::hex(info.identity);
    match args.json {
        true => {
            let is_secret = fields.get("hash").is_some_and(|hash| hash == "siphash-2-4-128");
            let place = if info.secret_beside { "outside" } else { "inside" };
            fields["version"] = info.version.into();
            fields["identity"] = identity.into();
            fields["may_change"] = info.may_change.into();
            fields["metadata"] = Value::Null;
            if !info.metadata.is_empty() {
                json::put(&mut fields, "metadata", &info.metadata);
            }
            fields["secret"] = is_secret.then_some(place).into();
            json::put_file(&mut fields, as_file(&args.file));
            super::print_json(form, fields)?;
        }
        false => {
            let mut out = format!("file        {}: {form}, format version {}\n", shown(&args.file), info.version);
            out += &format!("identity    {identity}\n");
            if info.may_change {
                out += "may change  a later release may not read this file\n";
            }
            if !info.metadata.is_empty() {
                // A note of anyone's must not reach the terminal as commands.
                let text = str::from_utf8(&info.metadata).ok().filter(|text| !text.contains(char::is_control));
                let text = text.map_or_else(|| input::quote(&info.metadata), str::to_string);
                out += &format!("metadata    {text}\n");
            }
            if info.secret_beside {
                out += "secret      not in the file\n";
            }
            print(&(out + &lines))?;
        }
    }
    Ok(Outcome::Yes)
}

pub(super) fn fields(filter: &Filter) -> Value {
    let kept = filter.kept_bytes();
    let bytes = filter.as_bytes().len() as u64 - kept;
    let (bits, bound) = (bits_per_key(bytes, filter.len()), bound(filter));
    let mut fields = json!({
        "keys": filter.len(),
        "excluded": filter.excluded_len(),
        "excluded_estimated": is_estimate(filter),
        "key_type": filter.key_type().to_string(),
        "bytes": filter.as_bytes().len(),
        "kept_bytes": kept,
        "bits_per_key": bits,
        "bound_bits_per_key": bound,
        "overhead": overhead(bits, bound),
        "fpr": filter.fpr(),
        "shards": filter.shards(),
        "partitions": partitions(filter),
        "groups": groups(filter),
        "layers": layers(filter.layers()),
    });
    if !filter.patches().is_empty() {
        fields["chain"] = filter.patches().iter().map(patch::patch_fields).collect();
    }
    put_hash(&mut fields, filter.hasher());
    fields
}

pub(super) fn lines(filter: &Filter) -> String {
    let mut out = format!("keys        {} ({})\n", grouped(filter.len()), filter.key_type());
    if filter.excluded_len() > 0 {
        out += &format!("excluded    {}\n", approx(filter.excluded_len(), is_estimate(filter)));
    }
    out += &hash_line(filter.hasher());
    let kept = filter.kept_bytes();
    out += &size_line(filter.as_bytes().len() as u64 - kept, filter.len(), bound(filter));
    if kept > 0 {
        out += &format!("kept        {} bytes more of digests, for changes; queries do not read them\n", grouped(kept));
    }
    out += &fpr_line(filter.fpr());
    out += &format!("shards      {}\n", grouped(filter.shards()));
    out += &partition_lines(filter);
    out += &layer_lines(filter.layers());
    for patch in filter.patches() {
        let (number, changed) = (patch.number(), super::count(patch.len(), "key"));
        out += &format!("patch {number:<5} {changed} changed, {} bytes\n", grouped(patch.as_bytes().len() as u64));
    }
    out + &patch::delisted_line(&filter.delisted(), "")
}
