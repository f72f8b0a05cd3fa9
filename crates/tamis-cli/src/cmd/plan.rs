//! keys, excluded keys, a workload -> every structure in a table, and the one that would be built.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::json;
use tamis::{Candidate, Comparison, Prediction, Role};

use super::any_builder::no_partitions;
use super::build_args::BuildArgs;
use super::output::Output;
use super::{grouped, percent, print, print_json, role};
use crate::Outcome;
use crate::args::ReportArgs;
use crate::interrupt::Interrupt;
use crate::json::Form;
use crate::usage;

mod html;

/// Compare structures for these keys; builds nothing
///
/// Takes the options of `build`. Prints for every structure its layers, the bits per key and the bytes of the file, the distance
/// to the lower bound, the fpr, and about how many cache lines a query reads. A star marks the one that `build` would choose.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    build: BuildArgs,
    /// Draw the comparison as a page for a browser, with pictures; - is standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    if args.build.input.is_partitioned() {
        return Err(no_partitions());
    }
    let sources = args.build.sources()?;
    let page = args.html.as_ref().map(|path| Output::new("--html", path, sources.all(), "page")).transpose()?;
    let interrupt = Interrupt::install()?;
    // Nothing is built, so no secret is written.
    let secret = args.build.secret_file()?;
    let read = secret.as_ref().map(|secret| secret.path.as_path());
    let page = page.map(|page| page.spare("--html", read, "the secret")).transpose()?;
    let (keys, inputs) = args.build.gather(&sources, secret.as_ref(), &interrupt)?;
    interrupt.build()?;
    let plan = keys.plan().map_err(|error| args.build.explain(&sources, &inputs, error, None))?;
    let Some(page) = page else {
        match args.json {
            true => print_json(Form::Filter, as_fields(&plan))?,
            false => print(&as_text(&plan))?,
        }
        return Ok(Outcome::Yes);
    };
    let Some(chosen) = plan.chosen().filter(|_| plan.keys > 0) else {
        bail!("--html: no keys to plan for; expected at least one");
    };
    page.write(html::page(&plan, chosen, &args.build.goal(), sources.by_purpose()).as_bytes())?;
    page.report(ReportArgs { json: args.json, quiet: false }, Form::Filter, || as_text(&plan), || as_fields(&plan))?;
    Ok(Outcome::Yes)
}

fn as_fields(plan: &Comparison) -> serde_json::Value {
    let candidate = |candidate: &Candidate| {
        let forecast = candidate.prediction.as_ref();
        json!({
            "kind": candidate.name,
            "chosen": candidate.chosen,
            "roles": forecast.ok().map(|f| f.layers.iter().map(|layer| role(layer.role)).collect::<Vec<_>>()),
            "covered": forecast.ok().map(|f| f.covered),
            "bytes": forecast.ok().map(|f| f.bytes),
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

/// The columns, each with what it means.
const COLUMNS: [(&str, &str); 8] = [
    ("kind", "name for --kind; * marks what build chooses"),
    (
        "layers",
        "in the order of queries: P stores members and rejects the rest, N stores known negatives and matches the rest, E decides",
    ),
    ("bits/key", "bits of the whole file, divided by the number of keys"),
    ("bytes", "size of the whole file"),
    ("over bound", "distance to the smallest size that is possible for the same rates"),
    ("workload fpr", "share of the negative queries of the workload that match"),
    ("fpr", "share of unlisted keys that match"),
    ("lines", "cache lines that a query for a key outside the set reads, about"),
];

/// The cells of a design, in the order of the columns.
fn cells(candidate: &Candidate, forecast: &Prediction) -> [String; 8] {
    let letter = |role: Role| match role {
        Role::Positive => "P",
        Role::Negative => "N",
        _ => "E",
    };
    let over = match forecast.bound > 0.0 {
        true => format!("{:.1} %", 100.0 * (forecast.bits_per_key / forecast.bound - 1.0)),
        false => "-".to_string(),
    };
    [
        candidate.name.to_string(),
        forecast.layers.iter().map(|layer| letter(layer.role)).collect::<Vec<_>>().join(" "),
        format!("{:.3}", forecast.bits_per_key),
        grouped(forecast.bytes),
        over,
        forecast.workload_fpr.map_or("-".to_string(), percent),
        percent(forecast.fpr),
        format!("{:.1}", forecast.lines),
    ]
}

/// Designs that can be built, each with its cells, and the columns that say something.
fn table(plan: &Comparison) -> (Vec<(&Candidate, [String; 8])>, Vec<usize>) {
    let row = |c: &'_ Candidate| Some(cells(c, c.prediction.as_ref().ok()?));
    let rows: Vec<_> = plan.candidates.iter().filter_map(|c| Some((c, row(c)?))).collect();
    let columns = (0..COLUMNS.len()).filter(|&column| rows.iter().any(|(_, row)| row[column] != "-")).collect();
    (rows, columns)
}

/// Designs that cannot be built: each reason once, with the kinds it holds for.
fn impossible(plan: &Comparison) -> Vec<(String, Vec<&'static str>)> {
    let mut reasons: Vec<(String, Vec<&str>)> = vec![];
    for candidate in &plan.candidates {
        let Err(reason) = &candidate.prediction else { continue };
        // What is possible instead is in the table.
        let reason = usage::in_options(reason.split("; expected").next().unwrap_or(reason));
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, kinds)) => kinds.push(candidate.name),
            None => reasons.push((reason, vec![candidate.name])),
        }
    }
    reasons
}

fn as_text(plan: &Comparison) -> String {
    let (rows, columns) = table(plan);
    let mut out = String::new();
    let mut line = |star: &str, cell: &dyn Fn(usize) -> String| {
        let _ = write!(out, "{star:<3}");
        for &column in &columns {
            let lengths = rows.iter().map(|(_, row)| row[column].len());
            let width = lengths.chain([COLUMNS[column].0.len()]).max().unwrap_or(0);
            // Words to the left, numbers to the right.
            let _ = match column < 2 {
                true => write!(out, "{:<width$}  ", cell(column)),
                false => write!(out, "{:>width$}  ", cell(column)),
            };
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    };
    line("", &|column| COLUMNS[column].0.to_string());
    for (candidate, row) in &rows {
        line(if candidate.chosen { "*" } else { "" }, &|column| row[column].clone());
    }
    out.push('\n');
    for (name, meaning) in columns.iter().map(|&column| COLUMNS[column]) {
        let _ = writeln!(out, "{name:<13} {meaning}");
    }
    out.push('\n');
    for reason in &plan.reasons {
        let _ = writeln!(out, "{}", usage::in_options(reason));
    }
    let refused = impossible(plan);
    if !refused.is_empty() {
        let all = refused.iter().map(|(reason, kinds)| format!("{} ({reason})", kinds.join(", ")));
        let _ = writeln!(out, "not possible: {}", all.collect::<Vec<_>>().join("; "));
    }
    out
}
