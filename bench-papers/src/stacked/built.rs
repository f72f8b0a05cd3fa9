//! a load, a kind, a budget -> a filter, what it does, and how fast it is asked.

use serde::Serialize;
use tamis::{Base, Effort, Filter, Kind, Limits, Role, Sealed};
use tamis_bench::measure::{self, progress};
use tamis_bench::ours::listed::matches;

use super::load::Load;

#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Whether it is told what to expect.
    pub(super) told: bool,
}

pub(super) const PLAIN: Wanted = Wanted { name: "Bloom", kind: Kind::ClassicBloom, told: false };
pub(super) const RIBBON: Wanted = Wanted { name: "ribbon", kind: Kind::Ribbon, told: false };
pub(super) const STACKED: Wanted = Wanted { name: "stacked Bloom", kind: Kind::Stacked(Base::Bloom), told: true };
pub(super) const PLANNER: Wanted = Wanted { name: "planner", kind: Kind::Auto, told: true };

/// Memory that a build may use: counting 5 * 10^7 expected queries takes half of it.
const MEMORY: u64 = 6 << 30;

/// What a build gave: no filter where the budget is too small for it.
pub(super) struct Built {
    pub(super) filter: Option<Filter>,
    pub(super) row: Row,
}

/// A filter, measured; no number is one where it could not be built.
#[derive(Clone, Serialize)]
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Bits per key that it might take, and that its file takes.
    pub(super) budget: f64,
    pub(super) bits: f64,
    pub(super) steps: String,
    /// How many of the negatives it was told of it knows.
    pub(super) known: usize,
    /// The share of all negative queries that pass, as planned, as it is, and with the luck of the heaviest.
    pub(super) predicted: f64,
    pub(super) efpr: f64,
    pub(super) efpr_of_this_file: f64,
    /// The share of values that pass of those it knows, and of the others: EFPB.
    pub(super) known_rate: f64,
    pub(super) unknown_rate: f64,
    pub(super) predicted_unknown: f64,
    pub(super) known_passing: usize,
    /// Whether none of those may pass.
    pub(super) exact: bool,
    pub(super) lost: usize,
    /// Processor time of all threads in seconds: hashing, counting, planning, building, asking for all it was told of.
    pub(super) build: f64,
    pub(super) failed: Option<String>,
}

impl Row {
    /// Of nothing that was measured.
    pub(super) fn empty(name: &'static str, budget: f64) -> Row {
        let none = f64::NAN;
        Row {
            name,
            budget,
            bits: none,
            steps: "-".into(),
            known: 0,
            predicted: none,
            efpr: none,
            efpr_of_this_file: none,
            known_rate: none,
            unknown_rate: none,
            predicted_unknown: none,
            known_passing: 0,
            exact: false,
            lost: 0,
            build: none,
            failed: None,
        }
    }

    pub(super) fn wrong(&self) -> String {
        let mut wrong: Vec<String> = self.failed.iter().cloned().collect();
        if self.lost > 0 {
            wrong.push(format!("{} keys lost", self.lost));
        }
        if self.exact && self.known_passing > 0 {
            wrong.push(format!("{} excluded pass", self.known_passing));
        }
        // A file may round to bytes.
        if self.bits > self.budget * 1.0001 {
            wrong.push("over the budget".into());
        }
        wrong.join(", ")
    }
}

pub(super) fn all_wrong<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    rows.map(Row::wrong).collect::<Vec<_>>().join(" ").trim().to_string()
}

/// Structures in the order they are asked, a run of the same one as a count.
fn steps(filter: &Filter) -> String {
    let letter = |role: Role| match role {
        Role::Positive => 'P',
        Role::Negative => 'N',
        _ => 'E',
    };
    let letters: String = filter.layers().map(|layer| letter(layer.role)).collect();
    let mut structures: Vec<&str> = filter.layers().map(|layer| layer.structure).collect();
    structures.dedup();
    format!("{letters} ({})", structures.join(", "))
}

/// Takes in keys and what to expect.
fn taken(load: &Load, Wanted { kind, told, .. }: Wanted, bits: f64) -> Result<Sealed<'static>, tamis::Error> {
    let limits = Limits::default().memory(MEMORY);
    // Buckets of cuckoo filters in a stack are semi-sorted, and so shall they be alone.
    let effort = if kind == Kind::Cuckoo { Effort::Smallest } else { Effort::Balanced };
    let mut build = tamis::stream().kind(kind).effort(effort).bits_per_key(bits).limits(limits);
    if told {
        build = build.with_workload().unlisted_share(load.unseen());
    }
    let mut keys = build.start();
    load.keys.iter().try_for_each(|&key| keys.push(key))?;
    let mut sealed = keys.seal()?;
    if told {
        load.expected().try_for_each(|(value, weight)| sealed.push_query(value, weight))?;
    }
    Ok(sealed)
}

/// Seconds of processor time, all threads, that a filter takes to build: hashing, counting, planning, and no question
/// asked. No number where it cannot be built.
pub(super) fn seconds(load: &Load, wanted: Wanted, bits: f64) -> f64 {
    let (made, time) = measure::cpu(|| taken(load, wanted, bits).and_then(Sealed::finish));
    if made.is_ok() { time.as_secs_f64() } else { f64::NAN }
}

/// Builds a filter of at most `bits` per key, and asks it for every key and every negative.
pub(super) fn build(load: &Load, wanted: Wanted, bits: f64) -> Result<Built, String> {
    let name = wanted.name;
    progress(format_args!(
        "{} keys, {} of {} negatives told: {name}, {bits} bits",
        load.keys.len(),
        load.given,
        load.total
    ));
    let (made, time) = measure::cpu(|| taken(load, wanted, bits).and_then(Sealed::finish_with_report));
    let (filter, report) = match made {
        Ok(made) => made,
        Err(e) => {
            return Ok(Built { filter: None, row: Row { failed: Some(e.to_string()), ..Row::empty(name, bits) } });
        }
    };
    let outcome = report.workload;
    let known = outcome.as_ref().map_or(0, |outcome| outcome.covered as usize);
    let passing = load.ask(&filter, known)?;
    let [known_rate, unknown_rate] = passing.rates();
    let row = Row {
        name,
        budget: bits,
        bits: filter.as_bytes().len() as f64 * 8.0 / load.keys.len().max(1) as f64,
        steps: steps(&filter),
        known,
        predicted: outcome.as_ref().map_or(filter.fpr(), |outcome| outcome.predicted.workload_fpr),
        predicted_unknown: outcome.as_ref().map_or(filter.fpr(), |outcome| outcome.predicted.fpr),
        lost: load.keys.len() - matches(&filter, &load.keys).map_err(|e| e.to_string())?,
        efpr: passing.fpr(),
        efpr_of_this_file: passing.of_this_file(),
        known_rate,
        unknown_rate,
        known_passing: passing.known_passing(),
        exact: filter.layers().last().is_some_and(|layer| layer.role == Role::Exact),
        build: time.as_secs_f64(),
        failed: None,
    };
    progress("");
    Ok(Built { filter: Some(filter), row })
}

/// Nanoseconds per query in a loop of single ones, for every filter and every list: medians, in turns.
pub(super) fn times(built: &[Built], lists: &[&[u64]], rounds: usize) -> Vec<Vec<f64>> {
    let mut samples = vec![vec![Vec::new(); lists.len()]; built.len()];
    for _ in 0..rounds.max(1) {
        for (built, samples) in built.iter().zip(&mut samples) {
            let Some(filter) = &built.filter else { continue };
            for (list, samples) in lists.iter().zip(samples) {
                let count = || list.iter().filter(|&&key| filter.contains(key).unwrap_or(false)).count();
                let (found, time) = measure::cpu(count);
                std::hint::black_box(found);
                samples.push(measure::nanos_each(time, list.len().max(1)));
            }
        }
    }
    let median = |samples: Vec<f64>| measure::median(samples).unwrap_or(f64::NAN);
    samples.into_iter().map(|samples| samples.into_iter().map(median).collect()).collect()
}

/// A rate as a table shows it.
pub(super) fn rate(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        value if value.is_nan() => "-".into(),
        value => format!("{value:.2e}"),
    }
}

/// A quotient with as many digits as mean something.
pub(super) fn times_less(plain: f64, this: f64) -> String {
    match plain / this {
        ratio if !ratio.is_finite() => "-".into(),
        ratio if ratio >= 100.0 => format!("{ratio:.0}"),
        ratio if ratio >= 10.0 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.2}"),
    }
}
