//! skews and budgets -> the planner's choice beside the stacked Bloom filter and plain filters.

use serde::Serialize;
use tamis_bench::table::Table;

use super::built::{PLAIN, PLANNER, RIBBON, Row, STACKED, all_wrong, build, rate, times_less};
use super::load::Load;
use super::{BITS, ETAS, Options};

#[derive(Serialize)]
pub(super) struct Pair {
    eta: f64,
    bloom: Row,
    ribbon: Row,
    stacked: Row,
    planner: Row,
    /// How many times fewer were hoped for.
    goal: Option<f64>,
}

/// What was hoped for at ten bits, by the formulas with a little less.
const GOALS: [f64; 4] = [20.0, 27.0, 36.0, 48.0];

pub(super) fn run(options: &Options) -> Result<Vec<Pair>, String> {
    let total = options.negatives();
    let mut pairs = Vec::new();
    for &eta in &options.etas {
        let load = Load::random(options.n, total, total / 2, eta, options.timing.seed);
        for &bits in &options.budgets {
            let row = |wanted| build(&load, wanted, bits).map(|built| built.row);
            let goal = ETAS.into_iter().zip(GOALS).find(|(of, _)| *of == eta && bits == BITS).map(|(_, goal)| goal);
            let [bloom, ribbon, stacked, planner] = [row(PLAIN)?, row(RIBBON)?, row(STACKED)?, row(PLANNER)?];
            pairs.push(Pair { eta, bloom, ribbon, stacked, planner, goal });
        }
    }
    Ok(pairs)
}

impl Pair {
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        [&self.bloom, &self.ribbon, &self.stacked, &self.planner].into_iter()
    }
}

pub(super) fn table(pairs: &[Pair], options: &Options) -> Table {
    Table::of(pairs)
        .text("budget, eta", |pair| format!("{}, {}", pair.planner.budget, pair.eta))
        .text("Bloom EFPR", |pair| rate(pair.bloom.efpr))
        .text("ribbon EFPR", |pair| rate(pair.ribbon.efpr))
        .text("stacked Bloom predicted", |pair| rate(pair.stacked.predicted))
        .text("EFPR", |pair| rate(pair.stacked.efpr))
        .text("EFPB", |pair| rate(pair.stacked.unknown_rate))
        .text("planner's choice", |pair| &pair.planner.steps)
        .number("bits/key", 3, |pair| pair.planner.bits)
        .text("predicted", |pair| rate(pair.planner.predicted))
        .text("EFPR", |pair| rate(pair.planner.efpr))
        .text("EFPB", |pair| rate(pair.planner.unknown_rate))
        .text("× less", |pair| times_less(pair.stacked.efpr, pair.planner.efpr))
        .number("goal", 0, |pair| pair.goal)
        .text("excluded passing", |pair| format!("{} of {}", pair.planner.known_passing, pair.planner.known))
        .text("wrong", |pair| all_wrong(pair.rows()))
        .table(
            format!(
                "Planner beside stacked Bloom filters: {} keys, {} random negatives, the heavier half told.",
                options.n,
                options.negatives()
            ),
            "Predicted: what the plan said. EFPB: the share that passes of values it does not know. Excluded passing: \
             of the negatives that the planner's filter knows; none may.",
        )
}
