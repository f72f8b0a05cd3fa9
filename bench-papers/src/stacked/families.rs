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

/// Figure 4.
pub(super) fn figure4(options: &Options) -> Result<Vec<Pair>, String> {
    let total = options.negatives();
    let mut pairs = Vec::new();
    for (bits, eta) in POINTS {
        let load = Load::random(options.n, total, total / 2, eta, options.seed);
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
    let load = Load::random(options.n, total, total / 2, eta, options.seed);
    let members = Stream::new(options.seed).sample(&load.keys, options.queries);
    let strangers = load.strangers(options.queries);
    let mut built = Vec::new();
    for wanted in FAMILIES.into_iter().flatten() {
        built.push(build(&load, wanted, super::BITS)?);
    }
    // Medians of few rounds are easily upset by neighbours.
    let times = times(&built, &[&members, &strangers], 3 * options.rounds);
    let pair = |(built, times): (&[Built], &[Vec<f64>])| Pair {
        eta,
        rows: [built[0].row.clone(), built[1].row.clone()],
        times: Some([[times[0][0], times[0][1]], [times[1][0], times[1][1]]]),
    };
    Ok(built.chunks(2).zip(times.chunks(2)).map(pair).collect())
}

impl Pair {
    /// Both filters.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }
}

/// Figure 4 as Markdown.
pub(super) fn figure4_table(pairs: &[Pair], options: &Options) -> Table {
    let cells = |pair: &Pair| {
        let [alone, stacked] = &pair.rows;
        vec![
            format!("{}, {}, {}", alone.budget, pair.eta, alone.name),
            format!("{:.3}", alone.bits),
            rate(alone.efpr),
            stacked.steps.clone(),
            format!("{:.3}", stacked.bits),
            rate(stacked.efpr),
            times_less(alone.efpr, stacked.efpr),
            rate(stacked.predicted),
            rate(stacked.unknown_rate),
            stacked.known.to_string(),
            [alone.wrong(), stacked.wrong()].join(" "),
        ]
    };
    let columns = [
        "budget, eta, filter",
        "bits/key",
        "EFPR",
        "stacked",
        "bits/key",
        "EFPR",
        "× less",
        "predicted",
        "EFPB",
        "known",
        "wrong",
    ];
    Table {
        head: format!(
            "Figure 4: filters alone and stacked; {} keys, {} random negatives, the heavier half told.",
            options.n,
            options.negatives()
        ),
        columns: columns.map(String::from).to_vec(),
        rows: pairs.iter().map(cells).collect(),
        note: "The paper: all kinds of filters gain alike, the more the more skewed the queries are.".into(),
    }
}

/// Query times as Markdown.
pub(super) fn speed_table(pairs: &[Pair], options: &Options) -> Table {
    let cells = |pair: &Pair| {
        let [alone, stacked] = pair.times.unwrap_or_default();
        vec![
            pair.rows[0].name.to_string(),
            pair.rows[1].steps.clone(),
            format!("{:.1}", alone[0]),
            format!("{:.1}", stacked[0]),
            format!("{:.2}", stacked[0] / alone[0]),
            format!("{:.1}", alone[1]),
            format!("{:.1}", stacked[1]),
            format!("{:.2}", stacked[1] / alone[1]),
        ]
    };
    let columns = ["filter", "stacked", "member ns", "stacked", "×", "stranger ns", "stacked", "×"];
    Table {
        head: format!("Queries of a stack beside one layer, 10 bits per key, {} keys, Zipf {}.", options.n, super::ETA),
        columns: columns.map(String::from).to_vec(),
        rows: pairs.iter().map(cells).collect(),
        note: "ns per query in a loop of single ones, medians, in turns. The paper: strangers cost the same, members \
               1.5 times (1-2 times in all). The goal here: at most 1.15 and 2."
            .into(),
    }
}
