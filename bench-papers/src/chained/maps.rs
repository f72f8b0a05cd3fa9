//! maps that were measured -> tables: what figure 8 and the two tables after it have in common.

use serde::Serialize;
use tamis_bench::machine::Machine;
use tamis_bench::stream::Stream;
use tamis_bench::table::{Table, number};

use crate::mapped::{Mapped, Pairs, Row, Sample};

use super::Options;

/// All maps on pairs of one kind.
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
        let all: Vec<&Mapped> = all.iter().filter(|mapped| options.wants(&mapped.name)).collect();
        // With nothing to measure nothing is drawn.
        let rounds = if all.is_empty() { 0 } else { options.rounds };
        let rows = crate::mapped::compare(&all, rounds, stream, draw, options.queries);
        Group { of, keys, needed: first.unwrap_or(0.0), rows }
    }

    /// Bits per key of a row.
    pub(super) fn bits(&self, row: &Row) -> Option<f64> {
        row.median(|s| Some(s.bytes)).map(|bytes| bytes * 8.0 / self.keys as f64)
    }
}

/// A row for every map: its name, four cells that `cells` makes of its bits per key, then [`times`] and what was wrong.
pub(super) fn table(
    head: String,
    first: [&str; 5],
    groups: &[Group],
    cells: impl Fn(&Group, &Row, Option<f64>) -> [String; 4],
    note: String,
) -> Table {
    let row = |group: &Group, row: &Row| {
        let cells = cells(group, row, group.bits(row));
        let name = format!("{}, {}", group.of, row.name);
        [name].into_iter().chain(cells).chain(times(row)).chain([row.describe()]).collect()
    };
    Table {
        head,
        columns: first.into_iter().chain(TIMES).chain(["wrong"]).map(String::from).collect(),
        rows: groups.iter().flat_map(|group| group.rows.iter().map(|of| row(group, of)).collect::<Vec<_>>()).collect(),
        note,
    }
}

/// How the groups of an application are printed.
pub(super) type Print = fn(&[Group], &Options, &Machine) -> Table;

/// The names of [`times`].
const TIMES: [&str; 6] = ["read", "batch", "in order", "build", "build, 2 threads", "speedup"];

/// What every table ends with, but for the last column.
fn times(row: &Row) -> Vec<String> {
    type Field = fn(&Sample) -> Option<f64>;
    let fields: [(Field, usize); 6] = [
        (|s| s.read, 1),
        (|s| s.batch, 1),
        (|s| s.in_order, 1),
        (|s| Some(s.build), 1),
        (|s| s.build_twice, 1),
        (|s| s.speedup, 2),
    ];
    fields.into_iter().map(|(field, digits)| number(row.median(field), digits)).collect()
}

/// How to read [`times`].
pub(super) const NOTE: &str = "Times in ns per key, medians over the rounds: reads of random keys, one call each or many in a call, \
     and of all values in order; builds in processor time of one thread and wall time of two, and how many times less \
     wall time two threads take. Every value was read back before.";
