//! keys and excluded keys -> a learned filter, and a report of what its model saves.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Value, json};
use tamis::learned::{Built, Class, LearnReport, Learned};

use super::build_args::{BuildArgs, Sources};
use super::output::Output;
use super::{approx, bits_per_key, count, fpr_line, grouped, hash_line, inspect, percent, put_hash, size_line};
use crate::Outcome;
use crate::args::ReportArgs;
use crate::interrupt::Interrupt;
use crate::json::Form;
use crate::secret::SecretFile;

/// Excluded keys of a class are counted, and above this number estimated.
const COUNTED: u64 = 16_384;

fn is_estimate(filter: &Learned) -> bool {
    filter.classes().any(|class| class.excluded > COUNTED)
}

/// Reads all keys, trains, builds and reports.
pub(super) fn build(
    args: &BuildArgs,
    sources: &Sources,
    output: &Output,
    secret: Option<&SecretFile>,
    interrupt: &Interrupt,
    accept: Option<f64>,
    how: ReportArgs,
) -> Result<Outcome> {
    let (options, [members, excluded], inputs) = args.keys_in_memory(sources, secret, interrupt)?;
    interrupt.build()?;
    let builder = options.learn(&members, &excluded);
    let builder = if let Some(rate) = accept { builder.accept(rate) } else { builder };
    let explained = |error: anyhow::Error| args.explain(sources, &inputs, error, Some(&output.to_string()));
    let (built, report) = builder.finish().map_err(|error| explained(error.into()))?;
    match output {
        Output::File(path) => built.save(path).map_err(|error| explained(error.into()))?,
        Output::Stdout | Output::Device(_) => output.write(built.as_bytes())?,
    }
    let form = if matches!(built, Built::Learned(_)) { Form::Learned } else { Form::Filter };
    output.report(how, form, || built_lines(&built, &report, output), || built_fields(&built, &report))?;
    Ok(Outcome::Yes)
}

/// What the model saved, in words.
fn saved(report: &LearnReport) -> String {
    let (learned, plain) = (grouped(report.bytes), grouped(report.plain_bytes));
    let model = grouped(report.model_bytes);
    let share = percent((report.bytes as f64 / report.plain_bytes.max(1) as f64 - 1.0).abs());
    match report.bytes < report.plain_bytes {
        true => format!("{learned} bytes with a model of {model}, {share} less than {plain} without"),
        false => format!("the model does not pay: {learned} bytes with it, {plain} without"),
    }
}

fn built_lines(built: &Built, report: &LearnReport, output: &Output) -> String {
    let mut out = match built {
        Built::Learned(filter) => lines(filter),
        Built::Plain(filter) => inspect::lines(filter),
    };
    let _ = writeln!(out, "learned     {}", saved(report));
    let _ = writeln!(out, "matched     {}", count(report.excluded_matches, "excluded key"));
    out + &format!("file        {output}\n")
}

fn built_fields(built: &Built, report: &LearnReport) -> Value {
    let mut fields = match built {
        Built::Learned(filter) => fields(filter),
        Built::Plain(filter) => inspect::fields(filter),
    };
    fields["learned"] = json!({
        "examples": report.examples,
        "model_bytes": report.model_bytes,
        "bytes": report.bytes,
        "plain_bytes": report.plain_bytes,
        "excluded_matches": report.excluded_matches,
    });
    fields
}

pub(super) fn fields(filter: &Learned) -> Value {
    let bytes = filter.as_bytes().len() as u64;
    let class = |class: Class| json!({ "from": class.from, "keys": class.members, "excluded": class.excluded, "bytes": class.bytes, "fpr": class.fpr });
    let mut fields = json!({
        "keys": filter.len(),
        "excluded": filter.excluded_len(),
        "excluded_estimated": is_estimate(filter),
        "key_type": "bytes",
        "bytes": bytes,
        "bits_per_key": bits_per_key(bytes, filter.len()),
        "model_bytes": filter.model_len(),
        "front": filter.front().map(inspect::fields),
        "classes": filter.classes().map(class).collect::<Vec<_>>(),
        "fpr": filter.fpr(),
    });
    put_hash(&mut fields, filter.hasher());
    fields
}

pub(super) fn lines(filter: &Learned) -> String {
    let mut out = format!("keys        {} (bytes)\n", grouped(filter.len()));
    out += &format!("excluded    {}\n", approx(filter.excluded_len(), is_estimate(filter)));
    out += &hash_line(filter.hasher());
    out += &size_line(filter.as_bytes().len() as u64, filter.len(), None);
    let classes = match filter.classes().len() {
        1 => "1 class".to_string(),
        classes => format!("{classes} classes"),
    };
    out += &format!("model       {} bytes, {}\n", grouped(filter.model_len()), classes);
    if let Some(front) = filter.front() {
        out += &format!("front       {} bytes, fpr {}\n", grouped(front.as_bytes().len() as u64), percent(front.fpr()));
    }
    let ends: Vec<Option<i32>> = filter.classes().map(|class| class.from).chain([None]).collect();
    for (number, class) in filter.classes().enumerate() {
        let scores = match (class.from, ends.get(number + 1).copied().flatten()) {
            (None, None) => "all scores".to_string(),
            (None, Some(end)) => format!("scores below {end}"),
            (Some(from), None) => format!("scores from {from}"),
            (Some(from), Some(end)) => format!("scores from {from} below {end}"),
        };
        let what = match class.bytes {
            0 => "every key matches".to_string(),
            bytes => format!(
                "{}, {} excluded, {} bytes",
                count(class.members, "key"),
                grouped(class.excluded),
                grouped(bytes)
            ),
        };
        out += &format!("class {number:<5} {scores}: {what}\n");
    }
    out + &fpr_line(filter.fpr())
}
