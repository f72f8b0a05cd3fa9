//! elementary filters -> figure 4: each alone and stacked; and what stacking costs a query.

use serde::Serialize;
use tamis::{Base, Kind};
use tamis_bench::stream::Stream;
use tamis_bench::table::Table;

use super::Options;
use super::built::{Built, Row, Wanted, build, rate, times, times_less};
use super::load::Load;

/// An elementary filter alone, and a stack of them.
type Family = [Wanted; 2];

const fn family(alone: &'static str, kind: Kind, stacked: &'static str, base: Base) -> Family {
    [Wanted { name: alone, kind, told: false }, Wanted { name: stacked, kind: Kind::Stacked(base), told: true }]
}

/// Those of the paper's figure 4, and those of this library.
const FAMILIES: [Family; 5] = [
    family("Bloom", Kind::ClassicBloom, "stacked Bloom", Base::Bloom),
    family("cuckoo", Kind::Cuckoo, "stacked cuckoo", Base::Cuckoo),
    family("quotient", Kind::Quotient, "stacked quotient", Base::Quotient),
    family("fuse", Kind::Fuse, "stacked fuse", Base::Fuse),
    family("ribbon", Kind::Ribbon, "stacked ribbon", Base::Ribbon),
];

/// Budgets and exponents of figure 4.
const POINTS: [(f64, f64); 6] = [(10.0, 0.5), (10.0, 0.75), (10.0, 1.0), (10.0, 1.25), (8.0, 0.75), (12.0, 0.75)];

/// A budget, an exponent and a family, alone and stacked.
#[derive(Serialize)]
pub(super) struct Pair {
    eta: f64,
    rows: [Row; 2],
    /// Nanoseconds per query for a member and for a stranger, of each; in the experiment on speed.
    times: Option<[[f64; 2]; 2]>,
}

pub(super) fn figure4(options: &Options) -> Result<Vec<Pair>, String> {
    let total = options.negatives();
    let mut pairs = Vec::new();
    for (bits, eta) in POINTS {
        let load = Load::random(options.n, total, total / 2, eta, options.timing.seed);
        for [alone, stacked] in FAMILIES {
            let rows = [build(&load, alone, bits)?.row, build(&load, stacked, bits)?.row];
            pairs.push(Pair { eta, rows, times: None });
        }
    }
    Ok(pairs)
}

/// Query times at ten bits per key.
pub(super) fn speed(options: &Options) -> Result<Vec<Pair>, String> {
    let (total, eta) = (options.negatives(), super::ETA);
    let load = Load::random(options.n, total, total / 2, eta, options.timing.seed);
    let members = Stream::new(options.timing.seed).sample(&load.keys, options.timing.queries);
    let strangers = load.strangers(options.timing.queries);
    let mut built = Vec::new();
    for wanted in FAMILIES.into_iter().flatten() {
        built.push(build(&load, wanted, super::BITS)?);
    }
    // Medians of few rounds are easily upset by neighbours.
    let times = times(&built, &[&members, &strangers], 3 * options.timing.rounds);
    let pair = |(built, times): (&[Built], &[Vec<f64>])| Pair {
        eta,
        rows: [built[0].row.clone(), built[1].row.clone()],
        times: Some([[times[0][0], times[0][1]], [times[1][0], times[1][1]]]),
    };
    Ok(built.chunks(2).zip(times.chunks(2)).map(pair).collect())
}

impl Pair {
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }
}

pub(super) fn figure4_table(pairs: &[Pair], options: &Options) -> Table {
    Table::of(pairs.iter().map(|pair| (pair, &pair.rows[0], &pair.rows[1])))
        .text("budget, eta, filter", |(pair, alone, _)| format!("{}, {}, {}", alone.budget, pair.eta, alone.name))
        .number("bits/key", 3, |(_, alone, _)| alone.bits)
        .text("EFPR", |(_, alone, _)| rate(alone.efpr))
        .text("stacked", |(.., stacked)| &stacked.steps)
        .number("bits/key", 3, |(.., stacked)| stacked.bits)
        .text("EFPR", |(.., stacked)| rate(stacked.efpr))
        .text("× less", |(_, alone, stacked)| times_less(alone.efpr, stacked.efpr))
        .text("predicted", |(.., stacked)| rate(stacked.predicted))
        .text("EFPB", |(.., stacked)| rate(stacked.unknown_rate))
        .text("known", |(.., stacked)| stacked.known)
        .text("wrong", |(_, alone, stacked)| [alone.wrong(), stacked.wrong()].join(" "))
        .table(
            format!(
                "Figure 4: filters alone and stacked; {} keys, {} random negatives, the heavier half told.",
                options.n,
                options.negatives()
            ),
            "The paper: all kinds of filters gain alike, the more the more skewed the queries are.",
        )
}

pub(super) fn speed_table(pairs: &[Pair], options: &Options) -> Table {
    /// Of members or strangers: the times of both filters, and their ratio.
    fn side(times: Option<[[f64; 2]; 2]>, side: usize) -> [String; 3] {
        let [alone, stacked] = times.unwrap_or_default().map(|times| times[side]);
        [format!("{alone:.1}"), format!("{stacked:.1}"), format!("{:.2}", stacked / alone)]
    }
    Table::of(pairs)
        .text("filter", |pair| pair.rows[0].name)
        .text("stacked", |pair| &pair.rows[1].steps)
        .texts(["member ns", "stacked", "×"], |pair| side(pair.times, 0))
        .texts(["stranger ns", "stacked", "×"], |pair| side(pair.times, 1))
        .table(
            format!("Queries of a stack beside one layer, 10 bits per key, {} keys, Zipf {}.", options.n, super::ETA),
            "ns per query in a loop of single ones, medians, in turns. The paper: strangers cost the same, members 1.5 \
             times (1-2 times in all). The goal here: at most 1.15 and 2.",
        )
}
