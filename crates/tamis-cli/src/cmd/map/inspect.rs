//! a map file -> what is in it, node by node.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use super::super::{bits_per_key, grouped, overhead, print, print_json};
use super::{ValueBits, fpr_line, kind, layers, open, values, words};
use crate::Outcome;
use crate::mapped::VerifyArgs;

/// Show what is in a map file: keys, values, the tree of structures and sizes.
///
/// Every node of the tree is a line, or several if it has several structures, further to the right than the node above it.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The map file
    #[arg(value_name = "FILE")]
    map: PathBuf,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    verify: VerifyArgs,
}

/// Nodes further down are shown as if they were here.
const MAX_INDENT: usize = 24;

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let map = open(&args.map, args.verify)?;
    let hasher = map.hasher();
    // The secret of a keyed map stays in the file.
    let seed = (!hasher.is_secret()).then(|| hasher.words()[0]);
    let bytes = map.as_bytes().len() as u64;
    let bits = bits_per_key(bytes, map.len());
    let value_bits = ValueBits::new(map.len(), map.entropy().map(|bits| bits as f64), map.fpr());
    if args.json {
        print_json(&json!({
            "file": args.map.display().to_string(),
            "version": tamis::internals::VERSION,
            "keys": map.len(),
            "values": map.distinct(),
            "key_type": words(map.key_type()),
            "value_type": words(map.value_type()),
            "hash": if hasher.is_secret() { "siphash-2-4-128" } else { "xxh3-128" },
            "seed": seed,
            "kind": kind(&map),
            "bytes": bytes,
            "bits_per_key": bits,
            "entropy_per_key": value_bits.entropy,
            "bound_bits_per_key": value_bits.lower_bound(),
            "overhead": overhead(bits, value_bits.lower_bound()),
            "fpr": map.fpr(),
            "shards": map.shards(),
            "table_bytes": map.table_bytes(),
            "layers": layers(&map),
        }))?;
        return Ok(Outcome::Yes);
    }
    let mut out = String::new();
    let _ = writeln!(out, "file        {}, format version {}", args.map.display(), tamis::internals::VERSION);
    let _ = writeln!(out, "keys        {} ({})", grouped(map.len()), words(map.key_type()));
    out += &values(map.distinct(), map.value_type());
    let _ = match seed {
        Some(seed) => writeln!(out, "hash        XXH3-128, seed {seed}"),
        None => writeln!(out, "hash        SipHash-2-4-128, secret key"),
    };
    out += &value_bits.size(bytes, map.len());
    out += &fpr_line(map.fpr());
    let _ = writeln!(out, "shards      {}", map.shards());
    let mut payload = 0;
    for layer in map.layers() {
        let name = layer.node.map_or("front".to_string(), |node| format!("node {node}"));
        // A deep tree, as no builder makes it, shall not fill the screen with blanks.
        let (inset, size) = ("  ".repeat(layer.depth.min(MAX_INDENT)), grouped(layer.bytes));
        let what = format!("{}: {}, {}", layer.purpose, layer.structure, layer.details);
        let _ = writeln!(out, "{name:<11} {inset}{what}, {size} bytes");
        payload += layer.bytes;
    }
    let _ = writeln!(out, "table       {} bytes of values", grouped(map.table_bytes()));
    let rest = bytes.saturating_sub(payload).saturating_sub(map.table_bytes());
    let _ = writeln!(out, "rest        {} bytes: header, directory, footer", grouped(rest));
    print(&out)?;
    Ok(Outcome::Yes)
}
