//! figure 12 of \[FPFS\] -> the time of a member, beside the plain filter of the same structure.
//!
//! The paper measures on xor tables. On fuse tables the same constructions stand side by side here: a plain filter, two
//! filters (TF), and the integrated filters (IF), whose both stages are read from the same places.

use tamis_bench::table::{Table, number};

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

/// The figure as Markdown.
pub(super) fn table(groups: &[Group], n: usize) -> Table {
    let (mut rows, mut integrated, mut within) = (vec![], 0, 0);
    for group in groups {
        for names in MAKES {
            let sample = |name: &str| group.rows.iter().find(|row| row.name == name)?.median.as_ref();
            let plain = sample(names[0]);
            for name in names {
                let times = |of: fn(&tamis_bench::listed::Sample) -> Option<f64>| {
                    Some(of(sample(name)?)? / plain.and_then(of)?)
                };
                let (one, many) = (times(|s| Some(s.members)), times(|s| s.members_batch));
                let paper = Paper::of(name);
                let reached = match (paper, one) {
                    (Paper::Integrated, Some(times)) => {
                        integrated += 1;
                        within += usize::from(times < 1.2);
                        if times < 1.2 { "yes" } else { "no" }
                    }
                    _ => "",
                };
                rows.push(vec![
                    format!("{}, {}, {name}", group.r, group.negatives),
                    number(sample(name).map(|s| s.members), 1),
                    number(one, 2),
                    paper.text().into(),
                    reached.into(),
                    number(sample(name).and_then(|s| s.members_batch), 1),
                    number(many, 2),
                ]);
            }
        }
    }
    let columns = ["r, size of T, structure", "ns", "×", "the paper ×", "below 1.2", "ns in a batch", "×"];
    Table {
        head: format!("Figure 12: a member of {n} keys."),
        columns: columns.map(String::from).to_vec(),
        rows,
        note: format!(
            "×: times the plain filter of the same structure, of r bits. The paper prints no numbers in the figure; its text says \
             about 2 for TF, below 1.2 for IF in all cases, and no clear dependence on r or T. Here {within} of \
             {integrated} rows of IF are below 1.2. On fuse tables those of c = 2 \
             have cells of r + 1 bits, which at 8 and 16 are no whole bytes as those of the plain filter are, and a mask that \
             depends on the key; a plain filter of 9 bits takes half as long again as one of 8 (`--bits 8,9`)."
        ),
    }
}
