//! Theorem 4.3 of \[Chained\] -> what a cascade takes by its number of layers, built and by its formula.
//!
//! The theorem is for filters alone, more and more of them. Here the last layer is an exact bit (the remark after the theorem), which is
//! smaller than the filters that it stands for, so that the sizes climb to the theorem's number as layers are added.

use std::f64::consts::{FRAC_1_SQRT_2, LOG2_E};

use serde::Serialize;
use tamis::bounds::f;
use tamis::{Base, Kind, Papers};
use tamis_bench::measure::progress;
use tamis_bench::ours::listed::matches;
use tamis_bench::stream::Stream;
use tamis_bench::table::Table as Printed;

use super::Options;
use crate::bounds::{cascade, cascade_layers};

/// Layers of a cascade; the last is what a file may have.
const LAYERS: [u32; 7] = [2, 3, 5, 9, 17, 33, 64];
/// The paper's one half; and the largest for which a filter of one bit lets enough pass, delta^2 = 1/2.
const DELTAS: [f64; 2] = [0.5, FRAC_1_SQRT_2];

#[derive(Debug, Serialize)]
pub(crate) struct Row {
    name: &'static str,
    delta: f64,
    pub(crate) layers: u32,
    pub(crate) bits: f64,
    /// The sum of its layers, of filters that take what the name says.
    pub(crate) formula: f64,
    /// The same without end, and with delta near 1.
    limits: [f64; 2],
    /// Listed keys with a wrong answer.
    wrong: usize,
}

impl Row {
    pub(crate) fn is_clean(&self) -> bool {
        self.wrong == 0
    }
}

pub(crate) fn run(options: &Options, stream: &mut Stream) -> Result<Vec<Row>, tamis::Error> {
    let lambda = options.lambdas.iter().copied().max().unwrap_or(16);
    let (keys, negatives) = (stream.take(options.n), stream.take(options.n * lambda as usize));
    let mut rows = vec![];
    for (name, base, per_bit) in [("ribbon", Base::Ribbon, 1.0), ("Bloom, C' = 1.44", Base::Bloom, LOG2_E)] {
        for delta in DELTAS {
            for layers in LAYERS {
                progress(format_args!("{name}, delta {delta:.3}, {layers} layers"));
                let papers = Papers::default().delta(delta).layers(layers);
                let build = tamis::build(&keys).exclude(&negatives).exact().kind(Kind::Cascade(base));
                let filter = build.papers(papers).finish()?;
                let stages = cascade_layers(f64::from(lambda), delta, layers);
                rows.push(Row {
                    name,
                    delta,
                    layers,
                    bits: filter.as_bytes().len() as f64 * 8.0 / options.n as f64,
                    formula: per_bit * stages.first + stages.second,
                    limits: [delta, 1.0].map(|delta| per_bit * cascade(f64::from(lambda), delta)),
                    wrong: options.n - matches(&filter, &keys)? + matches(&filter, &negatives)?,
                });
            }
        }
    }
    progress("");
    Ok(rows)
}

pub(crate) fn table(rows: &[Row], options: &Options) -> Printed {
    let lambda = f64::from(options.lambdas.iter().copied().max().unwrap_or(16));
    Printed::of(rows)
        .text("filters, delta, layers", |row| format!("{}, {:.3}, {}", row.name, row.delta, row.layers))
        .number("bits/key", 3, |row| row.bits)
        .number("by its layers", 3, |row| row.formula)
        .text("+ %", |row| format!("{:+.1}", (row.bits / row.formula - 1.0) * 100.0))
        .numbers(["without end", "delta near 1"], 3, |row| row.limits)
        .text("wrong", |row| if row.is_clean() { String::new() } else { row.wrong.to_string() })
        .table(
            format!("Theorem 4.3: cascades at lambda = {lambda}, {} keys, by their number of layers.", options.n),
            format!(
                "The last layer is an exact bit, smaller than the filters that it stands for: sizes climb to the \
                 theorem's. Without end: C' (log2 lambda + (1 + delta) / (1 - delta) log2(1 / delta)); delta near 1: \
                 C' (log2 lambda + 2.885). The paper prints C' log2(4 e lambda) for the latter, C' {:.3} here, which \
                 its proof contradicts. A layer has a bit per key or more, so that delta above 0.71 gains nothing. The \
                 bound is {:.3}.",
                (4.0 * std::f64::consts::E * lambda).log2(),
                f(0.0, lambda)
            ),
        )
}
