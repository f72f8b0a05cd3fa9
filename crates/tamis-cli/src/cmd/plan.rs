//! keys, excluded keys, a workload -> every structure in a table, and the one that would be built.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::json;
use tamis::{Candidate, Comparison, Prediction};

use super::build_args::BuildArgs;
use super::{percent, print, print_json};
use crate::Outcome;
use crate::interrupt::Interrupt;

/// Compare structures for these keys; builds nothing
///
/// Takes the options of `build`. Prints for every structure its layers (P positive, N negative, E exact), bits per key and their
/// distance to the lower bound, workload fpr, fpr, and about how many cache lines a query reads. A star marks the one that
/// `build` would choose.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    build: BuildArgs,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let sources = args.build.sources()?;
    let interrupt = Interrupt::install()?;
    let (keys, inputs) = args.build.gather(&sources, &interrupt)?;
    interrupt.build()?;
    let plan = keys.plan().map_err(|error| args.build.explain(&sources, &inputs, error, None))?;
    match args.json {
        true => print_json("filter", as_fields(&plan))?,
        false => print(&as_text(&plan))?,
    }
    Ok(Outcome::Yes)
}

fn as_fields(plan: &Comparison) -> serde_json::Value {
    let candidate = |candidate: &Candidate| {
        let forecast = candidate.prediction.as_ref();
        json!({
            "kind": candidate.name,
            "chosen": candidate.chosen,
            "roles": forecast.ok().map(|f| f.layers.split(' ').filter_map(role).collect::<Vec<_>>()),
            "covered": forecast.ok().map(|f| f.covered),
            "bits_per_key": forecast.ok().map(|f| f.bits_per_key),
            "bound_bits_per_key": forecast.ok().map(|f| f.bound),
            "workload_fpr": forecast.ok().and_then(|f| f.workload_fpr),
            "fpr": forecast.ok().map(|f| f.fpr),
            "lines": forecast.ok().map(|f| f.lines),
            "member_lines": forecast.ok().map(|f| f.member_lines),
            "reason": forecast.err(),
        })
    };
    json!({
        "candidates": plan.candidates.iter().map(candidate).collect::<Vec<_>>(),
        "kind": plan.chosen().map(|chosen| chosen.name),
        "reasons": plan.reasons,
    })
}

/// The role that a letter stands for.
fn role(letter: &str) -> Option<&'static str> {
    [("P", "positive"), ("N", "negative"), ("E", "exact")]
        .iter()
        .find(|(short, _)| *short == letter)
        .map(|&(_, role)| role)
}

const HEAD: [&str; 8] = ["", "kind", "layers", "bits/key", "over bound", "workload fpr", "fpr", "lines"];

fn as_text(plan: &Comparison) -> String {
    let row = |candidate: &Candidate, forecast: &Prediction| -> [String; 8] {
        let over = match forecast.bound > 0.0 {
            true => format!("{:.1} %", 100.0 * (forecast.bits_per_key / forecast.bound - 1.0)),
            false => "-".to_string(),
        };
        [
            if candidate.chosen { "*" } else { "" }.to_string(),
            candidate.name.to_string(),
            forecast.layers.clone(),
            format!("{:.3}", forecast.bits_per_key),
            over,
            forecast.workload_fpr.map_or("-".to_string(), percent),
            percent(forecast.fpr),
            format!("{:.1}", forecast.lines),
        ]
    };
    let rows: Vec<[String; 8]> =
        plan.candidates.iter().filter_map(|c| Some(row(c, c.prediction.as_ref().ok()?))).collect();
    let head = HEAD.map(str::to_string);
    let width = |column: usize| std::iter::once(&head).chain(&rows).map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut out = String::new();
    for row in std::iter::once(&head).chain(&rows) {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            // Words to the left, numbers to the right.
            let _ = if column < 3 { write!(out, "{cell:<width$}  ") } else { write!(out, "{cell:>width$}  ") };
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out.push('\n');
    for reason in &plan.reasons {
        let _ = writeln!(out, "{reason}");
    }
    let refused = |c: &Candidate| c.prediction.as_ref().err().map(|reason| format!("{}: {reason}", c.name));
    for line in plan.candidates.iter().filter_map(refused) {
        let _ = writeln!(out, "not {line}");
    }
    out
}
