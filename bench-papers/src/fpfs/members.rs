//! figure 12 of \[FPFS\] -> the time of a member, beside the plain filter of the same structure.
//!
//! The paper measures on xor tables. On fuse tables the same constructions stand side by side here: a plain filter, two
//! filters (TF), and the integrated filters (IF), whose both stages are read from the same places.

use tamis_bench::listed::Sample;
use tamis_bench::table::Table;

use super::Group;
use crate::ours::FREE_SET;
use crate::xor::free_set::Design;

/// What the figure shows of a construction, as a number of times the plain filter: at most so much, by the text of section 4.
#[derive(Clone, Copy, PartialEq)]
enum Paper {
    Plain,
    /// "approximately 2x".
    Two,
    /// "below 1.2x that of the original filter in all cases".
    Integrated,
}

impl Paper {
    fn of(name: &str) -> Paper {
        match () {
            () if name.contains("TF") => Paper::Two,
            () if name.contains("IF") => Paper::Integrated,
            () => Paper::Plain,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Paper::Plain => "1",
            Paper::Two => "about 2",
            Paper::Integrated => "below 1.2",
        }
    }
}

/// Plain, TF, IF with c = 1 and with c = 2, on xor tables as in the paper and on fuse tables.
const MAKES: [[&str; 4]; 2] = [
    [Design::Plain.name(), Design::Two.name(), Design::One.name(), Design::Pair.name()],
    [FREE_SET[0].0, FREE_SET[1].0, FREE_SET[2].0, FREE_SET[3].0],
];

pub(super) fn table(groups: &[Group], n: usize) -> Table {
    // A row of the figure: its group, the plain filter's name, its own.
    let makes = groups.iter().flat_map(|group| MAKES.iter().map(move |names| (group, names)));
    let rows: Vec<(&Group, &str, &str)> =
        makes.flat_map(|(group, names)| names.map(|name| (group, names[0], name))).collect();
    let of = |group: &Group, name: &str, field: fn(&Sample) -> Option<f64>| {
        group.rows.iter().find(|row| row.name == name)?.median(field)
    };
    let times = |(group, plain, name): (&Group, &str, &str), field: fn(&Sample) -> Option<f64>| {
        Some(of(group, name, field)? / of(group, plain, field)?)
    };
    let below = |row: (&Group, &str, &str)| match Paper::of(row.2) {
        Paper::Integrated => times(row, |s| Some(s.members)).map(|times| times < 1.2),
        _ => None,
    };
    let reached: Vec<bool> = rows.iter().filter_map(|&row| below(row)).collect();
    let (within, integrated) = (reached.iter().filter(|&&below| below).count(), reached.len());
    Table::of(rows)
        .text("r, size of T, structure", |(group, _, name)| format!("{}, {}, {name}", group.r, group.negatives))
        .number("ns", 1, |(group, _, name)| of(group, name, |s| Some(s.members)))
        .number("×", 2, |row| times(row, |s| Some(s.members)))
        .text("the paper ×", |(.., name)| Paper::of(name).text())
        .text("below 1.2", |row| below(row).map_or("", |below| if below { "yes" } else { "no" }))
        .number("ns in a batch", 1, |(group, _, name)| of(group, name, |s| s.members_batch))
        .number("×", 2, |row| times(row, |s| s.members_batch))
        .table(
            format!("Figure 12: a member of {n} keys."),
            format!(
                "×: times the plain filter of the same structure, of r bits. The paper prints no numbers in the \
                 figure; its text says about 2 for TF, below 1.2 for IF in all cases, and no clear dependence on r or \
                 T. Here {within} of {integrated} rows of IF are below 1.2. On fuse tables those of c = 2 have cells \
                 of r + 1 bits, which at 8 and 16 are no whole bytes as those of the plain filter are, and a mask that \
                 depends on the key; a plain filter of 9 bits takes half as long again as one of 8 (`--bits 8,9`)."
            ),
        )
}
