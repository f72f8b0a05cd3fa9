//! a map or a sequence -> what is in it, node by node.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tamis::maps::LayerInfo;
use tamis::{Map, Sequence};

use super::super::{bits_per_key, grouped, hash_line, overhead, put_hash};
use super::{ValueBits, fpr_line, kind, layers, values, words};

/// Nodes further down are shown as if they were here: no builder makes a deeper tree.
const MAX_INDENT: usize = 24;

/// The fields and the lines of a map.
pub(in super::super) fn report(map: &Map) -> (Value, String) {
    let bytes = map.as_bytes().len() as u64;
    let bits = bits_per_key(bytes, map.len());
    let value_bits = ValueBits::new(map.len(), map.entropy().map(|bits| bits as f64), map.fpr());
    let mut fields = json!({
        "keys": map.len(),
        "values": map.distinct(),
        "key_type": words(map.key_type()),
        "value_type": words(map.value_type()),
        "kind": kind(map),
        "bytes": bytes,
        "bits_per_key": bits,
        "entropy_per_key": value_bits.entropy,
        "bound_bits_per_key": value_bits.lower_bound(),
        "overhead": overhead(bits, value_bits.lower_bound()),
        "fpr": map.fpr(),
        "shards": map.shards(),
        "table_bytes": map.table_bytes(),
        "layers": layers(map.layers()),
    });
    put_hash(&mut fields, map.hasher());
    let mut out = format!("keys        {} ({})\n", grouped(map.len()), words(map.key_type()));
    out += &values(map.distinct(), map.value_type());
    out += &hash_line(map.hasher());
    out += &value_bits.size(bytes, map.len());
    out += &fpr_line(map.fpr());
    out += &format!("shards      {}\n", grouped(map.shards()));
    let payload = nodes(&mut out, map.layers());
    let _ = writeln!(out, "table       {} bytes of values", grouped(map.table_bytes()));
    let rest = bytes.saturating_sub(payload).saturating_sub(map.table_bytes());
    let _ = writeln!(out, "rest        {} bytes: header, directory, footer", grouped(rest));
    (fields, out)
}

/// The fields and the lines of a sequence, whose keys are positions.
pub(in super::super) fn sequence(sequence: &Sequence) -> (Value, String) {
    let map = sequence.as_map();
    let bytes = sequence.as_bytes().len() as u64;
    let bits = bits_per_key(bytes, sequence.len());
    let value_bits = ValueBits::new(sequence.len(), map.entropy().map(|bits| bits as f64), 1.0);
    let fields = json!({
        "keys": sequence.len(),
        "values": map.distinct(),
        "value_type": words(map.value_type()),
        "bytes": bytes,
        "bits_per_key": bits,
        "entropy_per_key": value_bits.entropy,
        "bound_bits_per_key": value_bits.lower_bound(),
        "overhead": overhead(bits, value_bits.lower_bound()),
        "layers": layers(map.layers()),
    });
    let mut out = format!("keys        {} (positions)\n", grouped(sequence.len()));
    out += &values(map.distinct(), map.value_type());
    out += &value_bits.size(bytes, sequence.len());
    nodes(&mut out, map.layers());
    (fields, out)
}

/// Writes a line for every structure; returns their bytes.
fn nodes(out: &mut String, layers: impl Iterator<Item = LayerInfo>) -> u64 {
    let mut payload = 0;
    for layer in layers {
        let name = layer.node.map_or("front".to_string(), |node| format!("node {node}"));
        let (indent, size) = ("  ".repeat(layer.depth.min(MAX_INDENT)), grouped(layer.bytes));
        let what = format!("{}: {}, {}", layer.purpose, layer.structure, layer.details);
        let _ = writeln!(out, "{name:<11} {indent}{what}, {size} bytes");
        payload += layer.bytes;
    }
    payload
}
