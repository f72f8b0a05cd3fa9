//! a filter file -> what is in it, layer by layer.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use super::{
    approx, bits_per_key, bound, fpr_line, grouped, groups, is_estimate, layers, open, overhead, partition_lines,
    partitions, print, print_json, size,
};
use crate::Outcome;
use crate::mapped::VerifyArgs;

/// Show what is in a filter file: keys, hash, layers and sizes.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The filter file
    #[arg(value_name = "FILE")]
    filter: PathBuf,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    verify: VerifyArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let filter = open(&args.filter, args.verify)?;
    let hasher = filter.hasher();
    // The secret of a keyed filter stays in the file.
    let seed = (!hasher.is_secret()).then(|| hasher.words()[0]);
    let bytes = filter.as_bytes().len() as u64;
    let (bits, bound) = (bits_per_key(bytes, filter.len()), bound(&filter));
    if args.json {
        print_json(&json!({
            "file": args.filter.display().to_string(),
            "version": filter.version(),
            "keys": filter.len(),
            "excluded": filter.excluded_len(),
            "key_type": filter.key_type().to_string(),
            "hash": if hasher.is_secret() { "siphash-2-4-128" } else { "xxh3-128" },
            "seed": seed,
            "bytes": bytes,
            "bits_per_key": bits,
            "bound_bits_per_key": bound,
            "overhead": overhead(bits, bound),
            "fpr": filter.fpr(),
            "shards": filter.shards(),
            "partitions": partitions(&filter),
            "groups": groups(&filter),
            "layers": layers(&filter),
        }))?;
        return Ok(Outcome::Yes);
    }
    let mut out = String::new();
    let _ = writeln!(out, "file        {}, format version {}", args.filter.display(), filter.version());
    let _ = writeln!(out, "keys        {} ({})", grouped(filter.len()), filter.key_type());
    if filter.excluded_len() > 0 {
        let _ = writeln!(out, "excluded    {}", approx(filter.excluded_len(), is_estimate(&filter)));
    }
    let _ = match seed {
        Some(seed) => writeln!(out, "hash        XXH3-128, seed {seed}"),
        None => writeln!(out, "hash        SipHash-2-4-128, secret key"),
    };
    let _ = writeln!(out, "size        {}", size(bytes, filter.len(), bound));
    out += &fpr_line(filter.fpr());
    let _ = writeln!(out, "shards      {}", filter.shards());
    out += &partition_lines(&filter);
    for (i, layer) in filter.layers().enumerate() {
        let role = format!("{:?}", layer.role).to_lowercase();
        let size = grouped(layer.bytes);
        let group = layer.group.map(|group| format!("group {group}, ")).unwrap_or_default();
        let _ = writeln!(out, "layer {i:<5} {group}{role}: {}, {}, {size} bytes", layer.structure, layer.details);
    }
    print(&out)?;
    Ok(Outcome::Yes)
}
