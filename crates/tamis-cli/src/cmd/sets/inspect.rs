//! an index file -> what is in it, segment by segment.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use super::super::{bits_per_key, grouped, print, print_json};
use super::{count, false_sets_line, open, size};
use crate::Outcome;
use crate::mapped::VerifyArgs;

/// Show what is in an index file: sets, keys, segments and their parts, sizes.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The index file
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    /// List the sets: number, name, keys
    #[arg(long)]
    names: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    verify: VerifyArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let index = open(&args.index, args.verify)?;
    let hasher = index.hasher();
    // The secret of a keyed index stays in the file.
    let seed = (!hasher.is_secret()).then(|| hasher.words()[0]);
    let bytes = index.as_bytes().len() as u64;
    let segments: Vec<_> = index.segments().collect();
    let (false_sets, member_false_sets) = index.false_sets();
    if args.json {
        let parts = |parts: &[(&str, u64)]| -> Vec<Value> {
            parts.iter().map(|(part, bytes)| json!({ "part": part, "bytes": bytes })).collect()
        };
        let list: Vec<Value> = segments
            .iter()
            .map(|segment| {
                json!({
                    "kind": segment.kind.to_string(),
                    "details": segment.details,
                    "sets": segment.sets,
                    "keys": segment.keys,
                    "pairs": segment.pairs,
                    "capacity": segment.capacity,
                    "parts": parts(&segment.parts),
                    "false_sets": segment.false_sets,
                    "member_false_sets": segment.member_false_sets,
                })
            })
            .collect();
        let names = args.names.then(|| {
            let set = |(id, name)| json!({ "id": id, "name": name, "keys": index.size(id) });
            index.names().map(set).collect::<Vec<_>>()
        });
        print_json(&json!({
            "file": args.index.display().to_string(),
            "version": tamis::internals::VERSION,
            "sets": index.sets(),
            "keys": index.keys(),
            "pairs": index.pairs(),
            "key_type": index.key_type().to_string(),
            "kmer": index.kmer(),
            "hash": if hasher.is_secret() { "siphash-2-4-128" } else { "xxh3-128" },
            "seed": seed,
            "bytes": bytes,
            "bits_per_pair": bits_per_key(bytes, index.pairs()),
            "bits_per_key": bits_per_key(bytes, index.keys()),
            "false_sets": false_sets,
            "member_false_sets": member_false_sets,
            "segments": list,
            "names": names,
        }))?;
        return Ok(Outcome::Yes);
    }
    let mut out = String::new();
    let _ = writeln!(out, "file        {}, format version {}", args.index.display(), tamis::internals::VERSION);
    let _ = writeln!(out, "sets        {}", grouped(index.sets().into()));
    let what = index.kmer().map_or(index.key_type().to_string(), |k| format!("{k}-mers"));
    let _ = writeln!(out, "keys        {} ({what})", grouped(index.keys()));
    let _ = writeln!(out, "pairs       {}", grouped(index.pairs()));
    let _ = match seed {
        Some(seed) => writeln!(out, "hash        XXH3-128, seed {seed}"),
        None => writeln!(out, "hash        SipHash-2-4-128, secret key"),
    };
    out += &size(bytes, index.pairs(), index.keys());
    out += &false_sets_line(false_sets, member_false_sets);
    let mut payload = 0;
    for (i, segment) in segments.iter().enumerate() {
        let room = match segment.capacity.saturating_sub(segment.pairs) {
            0 => String::new(),
            free => format!(", room for {} more", grouped(free)),
        };
        let (sets, pairs) = (count(segment.sets.into(), "set"), count(segment.pairs, "pair"));
        let _ = writeln!(out, "segment {i:<3} {}: {}, {sets}, {pairs}{room}", segment.kind, segment.details);
        for (part, bytes) in &segment.parts {
            let _ = writeln!(out, "              {part}: {} bytes", grouped(*bytes));
            payload += bytes;
        }
    }
    let _ = writeln!(out, "rest        {} bytes: header, names, footer", grouped(bytes.saturating_sub(payload)));
    if args.names {
        for (id, name) in index.names() {
            let _ = writeln!(out, "set {id:<7} {name}: {}", count(index.size(id), "key"));
        }
    }
    print(&out)?;
    Ok(Outcome::Yes)
}
