//! the public API -> the law book: one binary, one module per question.
//!
//! ```text
//!   laws      what every structure keeps, by one macro        golden    files of format version 1, byte by byte
//!   oracle    odd keys and odd sets, against a HashSet        corrupt   changed, cut and foreign bytes
//!   unlisted  random configurations: measured rates of unlisted keys against rate() and goals
//!   rates     measured against promised rates; budgets        limits    threads, memory, disk, files, cancelling
//!   ladder    up to ten million keys; only with TAMIS_SLOW  negatives the laws of filters that know their negatives
//!   partitions keys that carry labels                        patches   answers that change from day to day
//!   expect    queries to expect, and what happens on them   goals     goals are kept by every file, equal inputs make equal bytes
//!   learned   a model chooses the filter: promises, files, and what it saves
//!   maps      keys that have values: all of the above, for maps and sequences
//!   sets      keys that are in many sets: all of the above, for indexes
//!   adaptive  filters that repair themselves, and the maps behind them
//!   deletions adaptive filters when removed keys are queried
//!   chosen    keys that somebody chose: no bytes more, no rate higher
//!   debug     what `{:?}` shows of types that have a secret
//!   adaptive_database  adaptive filters before a real database: failures, aborts, new starts
//!   serde     values in JSON and in binary formats, and what is rejected
//!   questions golden files and their answers as text      page      examples and numbers of docs/format.md
//!   slices    parts that are built apart, and joined             stack    all of it on a small stack
//!   programs  ten programs as users write them                first_mistakes  what one writes on the first day
//!   memory    what opening takes, watched in the allocator   mapped    files as memory maps
//! ```
#![cfg(all(feature = "build", feature = "mmap"))]
#![allow(clippy::unwrap_used, clippy::panic)]

use tamis::{Effort, Filter, Kind};

/// Gives a macro every kind that knows only keys, each once more for another effort where that changes what is built.
macro_rules! shapes {
    ($to:ident) => {
        $to! {
            auto: Kind::Auto, Effort::Balanced;
            auto_fast: Kind::Auto, Effort::Fast;
            ribbon: Kind::Ribbon, Effort::Balanced;
            ribbon_smallest: Kind::Ribbon, Effort::Smallest;
            fuse: Kind::Fuse, Effort::Balanced;
            fuse4: Kind::Fuse4, Effort::Balanced;
            bloom: Kind::Bloom, Effort::Balanced;
            classic_bloom: Kind::ClassicBloom, Effort::Balanced;
            cuckoo: Kind::Cuckoo, Effort::Balanced;
            cuckoo_smallest: Kind::Cuckoo, Effort::Smallest;
            quotient: Kind::Quotient, Effort::Balanced;
        }
    };
}

mod adaptive;
mod adaptive_database;
mod chosen;
mod corrupt;
mod debug;
mod deletions;
mod expect;
mod first_mistakes;
mod goals;
mod golden;
mod ladder;
mod laws;
mod learned;
mod limits;
mod mapped;
mod maps;
mod memory;
mod negatives;
mod oracle;
mod page;
mod partitions;
mod patches;
mod programs;
mod questions;
mod rates;
mod remote;
mod repair;
mod serde;
mod sets;
mod shares;
mod slices;
mod stack;
mod steered;
mod unlisted;

/// Distinct integers without a pattern; other `seed`s give others, except for chance.
fn integers(n: u64, seed: u64) -> impl Iterator<Item = u64> + Clone {
    (0..n).map(move |i| mix(seed << 40 | i))
}

/// A bijection that scatters (the finaliser of MurmurHash3).
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// A filter on the integers of seed 1.
fn filter(n: u64, kind: Kind, fpr: f64) -> Filter {
    tamis::build(integers(n, 1)).kind(kind).fpr(fpr).threads(1).finish().unwrap()
}

/// The names, kinds and efforts of `shapes`.
macro_rules! table {
    ($($name:ident: $kind:expr, $effort:expr;)*) => {
        const SHAPES: &[(&str, Kind, Effort)] = &[$((stringify!($name), $kind, $effort)),*];
    };
}
shapes!(table);

/// Whether a kind makes use of excluded keys; [`Kind::Auto`] does if there are any.
fn excludes(kind: Kind) -> bool {
    use Kind::{Cascade, Chained, Integrated, Naive, Steered};
    matches!(kind, Steered | Chained(_) | Cascade(_) | Integrated(..) | Naive(_))
}

/// Whether a kind needs nothing but keys.
fn is_plain(kind: Kind) -> bool {
    !excludes(kind) && !matches!(kind, Kind::Stacked(_))
}

/// A new kind that is neither in `shapes` nor in `excludes` fails here.
#[test]
fn the_shapes_cover_every_kind() {
    for &(name, kind) in Kind::ALL.iter().filter(|(_, kind)| is_plain(*kind)) {
        assert!(SHAPES.iter().any(|shape| shape.1 == kind), "{name}");
    }
}

/// Answers of `contains_many` for any number of keys.
fn ask_many<K: tamis::Key>(filter: &Filter, keys: &[K]) -> Vec<bool> {
    let mut answers = vec![false; keys.len()];
    filter.contains_into(keys, &mut answers).unwrap();
    answers
}
