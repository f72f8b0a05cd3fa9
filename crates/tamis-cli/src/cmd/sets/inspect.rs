//! a set index -> what is in it, segment by segment.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tamis::Sets;

use super::super::{bits_per_key, grouped, hash_line, put_hash};
use super::{count, false_sets_line, segments, size};

/// The fields and the lines of an index, with the names of its sets with `names`.
pub(in super::super) fn report(index: &Sets, names: bool) -> (Value, String) {
    let bytes = index.as_bytes().len() as u64;
    let (false_sets, member_false_sets) = index.false_sets();
    let list = names.then(|| {
        let set = |(id, name)| json!({ "id": id, "set": name, "keys": index.size(id) });
        index.names().map(set).collect::<Vec<_>>()
    });
    let mut fields = json!({
        "sets": index.sets(),
        "keys": index.keys(),
        "pairs": index.pairs(),
        "key_type": index.key_type().to_string(),
        "kmer": index.kmer(),
        "bytes": bytes,
        "bits_per_pair": bits_per_key(bytes, index.pairs()),
        "bits_per_key": bits_per_key(bytes, index.keys()),
        "false_sets": false_sets,
        "member_false_sets": member_false_sets,
        "segments": segments(index),
        "names": list,
    });
    put_hash(&mut fields, index.hasher());
    (fields, lines(index, bytes, names))
}

fn lines(index: &Sets, bytes: u64, names: bool) -> String {
    let what = index.kmer().map_or(index.key_type().to_string(), |k| format!("{k}-mers"));
    let mut out = format!("sets        {}\n", grouped(index.sets().into()));
    let _ = writeln!(out, "keys        {} ({what})", grouped(index.keys()));
    let _ = writeln!(out, "pairs       {}", grouped(index.pairs()));
    out += &hash_line(index.hasher());
    out += &size(bytes, index.pairs(), index.keys());
    let (false_sets, member_false_sets) = index.false_sets();
    out += &false_sets_line(false_sets, member_false_sets);
    let mut payload = 0;
    for (i, segment) in index.segments().enumerate() {
        let capacity = match segment.capacity.saturating_sub(segment.pairs) {
            0 => String::new(),
            free => format!(", capacity for {} more", grouped(free)),
        };
        let (sets, pairs) = (count(segment.sets.into(), "set"), count(segment.pairs, "pair"));
        let _ = writeln!(out, "segment {i:<3} {}: {}, {sets}, {pairs}{capacity}", segment.kind, segment.details);
        for (part, bytes) in &segment.parts {
            let _ = writeln!(out, "              {part}: {} bytes", grouped(*bytes));
            payload += bytes;
        }
    }
    let _ = writeln!(out, "rest        {} bytes: header, names, footer", grouped(bytes.saturating_sub(payload)));
    if names {
        for (id, name) in index.names() {
            let _ = writeln!(out, "set {id:<7} {name}: {}", count(index.size(id), "key"));
        }
    }
    out
}
