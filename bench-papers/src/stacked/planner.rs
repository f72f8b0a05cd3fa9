//! skews and budgets -> the planner's choice beside the stacked Bloom filter and plain filters.

use serde::Serialize;
use tamis_bench::table::Table;

use super::built::{PLAIN, PLANNER, RIBBON, Row, STACKED, build, rate, times_less};
use super::load::Load;
use super::{BITS, ETAS, Options};

/// One skew and one budget.
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

/// Builds both at every skew and budget.
pub(super) fn run(options: &Options) -> Result<Vec<Pair>, String> {
    let total = options.negatives();
    let mut pairs = Vec::new();
    for &eta in &options.etas {
        let load = Load::random(options.n, total, total / 2, eta, options.seed);
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
    /// All filters.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        [&self.bloom, &self.ribbon, &self.stacked, &self.planner].into_iter()
    }
}

/// The pairs as Markdown.
pub(super) fn table(pairs: &[Pair], options: &Options) -> Table {
    let cells = |pair: &Pair| {
        let Pair { eta, bloom, ribbon, stacked, planner, goal } = pair;
        vec![
            format!("{}, {eta}", planner.budget),
            rate(bloom.efpr),
            rate(ribbon.efpr),
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
            pair.rows().map(Row::wrong).collect::<Vec<_>>().join(" ").trim().to_string(),
        ]
    };
    let columns = [
        "budget, eta",
        "Bloom EFPR",
        "ribbon EFPR",
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
