//! skews and budgets -> the planner's choice beside the stacked Bloom filter.

use serde::Serialize;
use tamis_bench::table::Table;

use super::built::{PLANNER, Row, STACKED, build, rate, times_less};
use super::load::Load;
use super::{BITS, ETAS, Options};

/// One skew and one budget.
#[derive(Serialize)]
pub(super) struct Pair {
    eta: f64,
    stacked: Row,
    planner: Row,
    /// How many times fewer were hoped for.
    goal: Option<f64>,
}

/// What was hoped for at ten bits, by the formulas with a little less.
const GOALS: [f64; 4] = [20.0, 27.0, 36.0, 48.0];

/// Builds both at every skew and budget.
pub(super) fn run(options: &Options) -> Result<Vec<Pair>, String> {
    let total = options.negatives();
    let mut pairs = Vec::new();
    for (eta, goal) in ETAS.into_iter().zip(GOALS) {
        let load = Load::random(options.n, total, total / 2, eta, options.seed);
        for &bits in &options.budgets {
            let [stacked, planner] = [build(&load, STACKED, bits)?.row, build(&load, PLANNER, bits)?.row];
            pairs.push(Pair { eta, stacked, planner, goal: (bits == BITS).then_some(goal) });
        }
    }
    Ok(pairs)
}

impl Pair {
    /// Both filters.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        [&self.stacked, &self.planner].into_iter()
    }
}

/// The pairs as Markdown.
pub(super) fn table(pairs: &[Pair], options: &Options) -> Table {
    let cells = |pair: &Pair| {
        let Pair { eta, stacked, planner, goal } = pair;
        vec![
            format!("{}, {eta}", planner.budget),
            rate(stacked.predicted),
            rate(stacked.efpr),
            rate(stacked.unknown_rate),
            planner.steps.clone(),
            format!("{:.3}", planner.bits),
            rate(planner.predicted),
            rate(planner.efpr),
            rate(planner.unknown_rate),
            times_less(stacked.efpr, planner.efpr),
            goal.map_or("-".into(), |goal| format!("{goal}")),
            format!("{} of {}", planner.known_passing, planner.known),
            [stacked.wrong(), planner.wrong()].join(" ").trim().to_string(),
        ]
    };
    let columns = [
        "budget, eta",
        "stacked Bloom predicted",
        "EFPR",
        "EFPB",
        "planner's choice",
        "bits/key",
        "predicted",
        "EFPR",
        "EFPB",
        "× less",
        "goal",
        "excluded passing",
        "wrong",
    ];
    Table {
        head: format!(
            "Planner beside stacked Bloom filters: {} keys, {} random negatives, the heavier half told.",
            options.n,
            options.negatives()
        ),
        columns: columns.map(String::from).to_vec(),
        rows: pairs.iter().map(cells).collect(),
        note:
            "Predicted: what the plan said. EFPB: the share that passes of values it does not know. Excluded passing: \
               of the negatives that the planner's filter knows; none may."
                .into(),
    }
}
