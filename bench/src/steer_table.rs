//! nothing -> the table of survivors that plans of steered columns are made from, as Rust source.
//!
//! One filter of one steered column for every number of others per key and every slack; counted are those that pass it.

use std::error::Error;
use std::fmt::Write;

use clap::Args;
use tamis::{Effort, Kind};

use crate::ours::listed::matches;

/// Slacks, in 1024ths: those of `crates/tamis/src/leaves/steered/survivors.rs`.
const SLACKS: [u16; 14] = [32, 48, 64, 80, 96, 128, 160, 208, 256, 320, 416, 512, 640, 800];
/// Others per key: 2^(i/2).
const LINES: std::ops::RangeInclusive<i32> = -6..=10;
/// Lines up to this one are measured on four times the keys.
const FEW: i32 = -4;

#[derive(Args)]
pub(crate) struct Options {
    /// Keys per column: at least four strips, so that plans do not depend on chance.
    #[arg(long, default_value_t = 250_000)]
    n: u64,
    /// Only every STEP-th line, for a quick look.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    step: u16,
    /// Beam widths of the searches.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 512, 2048])]
    states: Vec<u16>,
}

/// All tables, as they stand in the source.
pub(crate) fn run(options: &Options) -> Result<String, Box<dyn Error>> {
    let mut source = String::new();
    let beams = [(64, Effort::Fast), (512, Effort::Balanced), (2048, Effort::Smallest)];
    for (states, effort) in beams.into_iter().filter(|(states, _)| options.states.contains(states)) {
        let name = format!("SHARE_{states}");
        writeln!(source, "#[rustfmt::skip]")?;
        writeln!(source, "pub(super) const {name}: [[u32; SLACKS.len()]; LINES] = [")?;
        for line in LINES.step_by(options.step.into()) {
            // Of few others next to none pass, and chance would show.
            let n = if line <= FEW { 4 * options.n } else { options.n };
            let others = (n as f64 * 2f64.powf(f64::from(line) / 2.0)).round() as u64;
            eprintln!("{name}: {:.3} others per key", others as f64 / n as f64);
            let (mut shares, mut least) = (vec![], u64::MAX);
            for slack in SLACKS {
                // More slack leaves fewer, whatever chance says of the last few.
                least = share(n, others, slack, effort)?.min(least - 1);
                shares.push(least.to_string());
            }
            writeln!(source, "    [{}],", shares.join(", "))?;
        }
        writeln!(source, "];\n")?;
    }
    Ok(source)
}

/// How many 100,000ths of the others pass.
fn share(n: u64, others: u64, slack: u16, effort: Effort) -> Result<u64, tamis::Error> {
    let build = tamis::build(0..n).exclude(n..n + others).kind(Kind::Steered).effort(effort);
    let papers = tamis::Papers::default().steered_columns(&[f64::from(slack) / 1024.0]);
    let filter = build.papers(papers).excluded_fpr(0.5).finish()?;
    let asked: Vec<u64> = (n..n + others).collect();
    let passing = matches(&filter, &asked)? as f64;
    Ok((passing * 1e5 / others.max(1) as f64).round() as u64)
}
