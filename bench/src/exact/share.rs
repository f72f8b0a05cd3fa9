//! keys, negatives, the share of them that may pass -> bits over the bound f(eps, lambda), and the share that does pass.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use tamis::bounds;

use super::{Options, Report};
use crate::listed::Row;
use crate::ours;
use crate::stream::Stream;
use crate::table::{Table, rows_of};

/// Negatives per key, and the share of them that may pass.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Wanted {
    lambda: f64,
    share: f64,
}

impl Wanted {
    const fn new(lambda: f64, share: f64) -> Wanted {
        Wanted { lambda, share }
    }

    pub(super) fn lambda(&self) -> f64 {
        self.lambda
    }
}

/// The default.
pub(super) const DEFAULT: [Wanted; 7] = [
    Wanted::new(10.0, 0.03),
    Wanted::new(10.0, 0.01),
    Wanted::new(30.0, 0.1),
    Wanted::new(30.0, 0.01),
    Wanted::new(100.0, 0.01),
    Wanted::new(100.0, 0.001),
    Wanted::new(1000.0, 0.001),
];

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.lambda, self.share)
    }
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        let numbers = text.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        match numbers {
            Some((lambda, share)) if share > 0.0 && share < 1.0 => Ok(Wanted::new(lambda, share)),
            _ => Err("wants negatives per key and a share between 0 and 1, as in 10:0.03".into()),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Group {
    wanted: Wanted,
    keys: usize,
    negatives: usize,
    bound: f64,
    pub(super) rows: Vec<Row>,
}

pub(super) fn run(options: &Options, stream: &mut Stream) -> Vec<Group> {
    let group = |&wanted: &Wanted| {
        let (keys, negatives) = options.sizes(wanted.lambda);
        let rows = options.rows(wanted.lambda, &ours::listed::share(wanted.share), stream);
        let bound = bounds::f(wanted.share, negatives as f64 / keys as f64);
        Group { wanted, keys, negatives, bound, rows }
    };
    options.shares.iter().map(group).collect()
}

pub(super) fn table(groups: &[Group], report: &Report<'_>) -> Table {
    let elements = |group: &Group| (group.keys + group.negatives) as f64;
    Table::of(rows_of(groups, |group| &group.rows))
        .text("lambda, structure", |(group, row)| format!("{}, {}", group.wanted.lambda, row.name))
        .text("keys", |(group, _)| group.keys)
        .text("may pass %", |(group, _)| group.wanted.share * 100.0)
        .number("pass %", 4, |(group, row)| row.passed.map(|passed| passed * 100.0 / group.negatives as f64))
        .number("bits/key", 3, |(group, row)| row.median(|s| s.bits / group.keys as f64))
        .number("bound", 3, |(group, _)| group.bound)
        .number("over", 3, |(group, row)| row.median(|s| s.bits / group.keys as f64 / group.bound))
        .number("build", 1, |(group, row)| row.median(|s| s.build * 1e6 / elements(group)))
        .number("build, 2 threads", 1, |(group, row)| row.median(|s| Some(s.build_twice? * 1e6 / elements(group))))
        .number("member", 1, |(_, row)| row.median(|s| s.members))
        .number("negative", 1, |(_, row)| row.median(|s| s.negatives))
        .number("member batch", 1, |(_, row)| row.median(|s| s.members_batch))
        .number("negative batch", 1, |(_, row)| row.median(|s| s.negatives_batch))
        .number("peak bits/element", 0, |(group, row)| row.median(|s| s.peak / elements(group)))
        .text("wrong", |(_, row)| row.wrong.describe())
        .table(
            format!("A share of the negatives may pass, {}", report.setting()),
            "over: bits over the bound f(share, lambda). pass: the share of the listed negatives that pass; more than \
             may pass is wrong, except for the filter that is told nothing. Times and memory as in the table of exact \
             membership.",
        )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn pairs_are_read_as_they_are_written() {
        for wanted in DEFAULT {
            assert_eq!(wanted.to_string().parse(), Ok(wanted));
        }
        for bad in ["", "10", "10:", "10:0", "10:1", "10:x", "10:0.1:2", "10:NaN"] {
            assert!(bad.parse::<Wanted>().is_err(), "{bad}");
        }
    }
}
