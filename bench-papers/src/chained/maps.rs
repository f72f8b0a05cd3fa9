//! maps that were measured -> tables: what figure 8 and the two tables after it have in common.

use serde::Serialize;
use tamis_bench::args::is_named;
use tamis_bench::stream::Stream;
use tamis_bench::table::{Columns, Table, rows_of};

use crate::mapped::{Mapped, Pairs, Row};

use super::Options;

#[derive(Serialize)]
pub(super) struct Group {
    /// What the pairs of this group are: an omega, a number of keys, a width.
    pub(super) of: u64,
    pub(super) keys: usize,
    /// Bits per key that are needed: the entropy of the values, or their width.
    pub(super) needed: f64,
    pub(super) rows: Vec<Row>,
}

impl Group {
    /// Measures those of `all` that the options name. `needed` says what the first round's pairs need.
    pub(super) fn measure(
        options: &Options,
        (of, keys): (u64, usize),
        all: &[Mapped],
        stream: &mut Stream,
        mut draw: impl FnMut(&mut Stream) -> Pairs,
        needed: impl Fn(&Pairs) -> f64,
    ) -> Group {
        let mut first = None;
        let draw = |stream: &mut Stream| {
            let pairs = draw(stream);
            first.get_or_insert_with(|| needed(&pairs));
            pairs
        };
        let all: Vec<&Mapped> = all.iter().filter(|mapped| is_named(&options.only, &mapped.name)).collect();
        // With nothing to measure nothing is drawn.
        let rounds = if all.is_empty() { 0 } else { options.timing.rounds };
        let rows = crate::mapped::compare(&all, rounds, stream, draw, options.timing.queries);
        Group { of, keys, needed: first.unwrap_or(0.0), rows }
    }

    pub(super) fn bits(&self, row: &Row) -> Option<f64> {
        row.median(|s| s.bytes * 8.0 / self.keys as f64)
    }
}

/// The columns of an application are those that are its own, between the names of the maps and their times.
pub(super) type Maps<'a> = Columns<(&'a Group, &'a Row)>;

/// A row for every map, as yet with its name alone.
pub(super) fn named<'a>(groups: &'a [Group], of: &str) -> Maps<'a> {
    Table::of(rows_of(groups, |group| &group.rows))
        .text(format!("{of}, structure"), |(group, row)| format!("{}, {}", group.of, row.name))
}

/// Adds the times, and what was wrong.
pub(super) fn timed<'a>(maps: Maps<'a>) -> Maps<'a> {
    maps.number("read", 1, |(_, row)| row.median(|s| s.read))
        .number("batch", 1, |(_, row)| row.median(|s| s.batch))
        .number("in order", 1, |(_, row)| row.median(|s| s.in_order))
        .number("build", 1, |(_, row)| row.median(|s| s.build))
        .number("build, 2 threads", 1, |(_, row)| row.median(|s| s.build_twice))
        .number("speedup", 2, |(_, row)| row.median(|s| s.speedup))
        .text("wrong", |(_, row)| row.describe())
}

/// How to read [`timed`].
pub(super) const NOTE: &str = "Times in ns per key, medians over the rounds: reads of random keys, one call each or \
                               many in a call, and of all values in order; builds in processor time of one thread and \
                               wall time of two, and how many times less wall time two threads take. Every value was \
                               read back before.";
