//! names, four kinds of queries -> false positive rates of families of filters of equal bytes: should you learn, stack or adapt?
//!
//! The question is that of \[Train\], "How to Train Your Filter: Should You Learn, Stack or Adapt?". Names, logs and queries are described in
//! `families/load.rs`, filters in `families/built.rs`.
//!
//! * All filters have the same bytes, model included; of adaptive filters the memory that they take, without the reverse map, which is the
//!   database's. Where a family has no goal in bytes the lowest rate that fits is searched.
//! * Beside every row stands a plain ribbon of as many bytes as that row has, on the same queries.
//! * Rates of filters that do not change are sums over all names, weighted by the law: no luck of the draw. Those of adaptive filters, and all
//!   rates under attack, are counted over `--queries` queries, which are all negative.
//! * The planner is told the kind of workload: the share of queries that its log tells nothing of. It builds filters that do not change.

use std::collections::HashMap;
use std::error::Error;

use clap::{Args, ValueEnum as _};
use serde::Serialize;
use tamis_bench::args::is_named;
use tamis_bench::machine::Machine;
use tamis_bench::measure::{self, cpu, nanos_each, progress};
use tamis_bench::stream::Stream;
use tamis_bench::table::{self, Table};

use self::built::{Answers, Family, Known, Made};
use self::load::{Law, Workload};
use crate::data;

pub(crate) mod built;
mod load;

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Most members.
    #[arg(long, default_value_t = 20_000)]
    n: usize,
    /// Most negatives per member.
    #[arg(long, default_value_t = 5)]
    negatives_per_key: usize,
    /// Bits per member that filters may take.
    #[arg(long, value_delimiter = ',', default_values_t = [8.0, 12.0])]
    bits: Vec<f64>,
    /// Queries in the log, per negative.
    #[arg(long, default_value_t = 1.0)]
    log: f64,
    /// Queries per workload.
    #[arg(long, default_value_t = 200_000)]
    queries: usize,
    /// Number of seeds of hashes, secrets, logs and queries.
    #[arg(long, default_value_t = 10)]
    seeds: u64,
    /// Kinds of queries.
    #[arg(long, value_enum, value_delimiter = ',', hide_default_value = true)]
    #[arg(default_values_t = Workload::value_variants().to_vec())]
    workloads: Vec<Workload>,
    /// Only families whose name contains one of these.
    #[arg(long, value_delimiter = ',', value_name = "SUBSTR,...")]
    only: Vec<String>,
}

/// A family on a workload, over all seeds.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    /// Mean bytes of the filter, and of the model in it.
    bytes: f64,
    model: f64,
    /// Share of the negative queries that match: mean and standard deviation, and of a plain ribbon of as many bytes.
    rate: f64,
    spread: f64,
    ribbon: f64,
    /// Median nanoseconds of a query; of adaptive filters with what they change.
    query: f64,
    /// Median seconds of a build, of one thread.
    build: f64,
    /// Members that did not match, and other errors.
    wrong: Vec<String>,
}

#[derive(Serialize)]
struct Group {
    workload: Workload,
    bits: f64,
    rows: Vec<Row>,
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    source: &'static str,
    members: usize,
    negatives: usize,
    groups: Vec<Group>,
}

struct Sample {
    bytes: f64,
    model: f64,
    rate: f64,
    ribbon: f64,
    query: f64,
    build: f64,
}

/// None where the bytes are too few for a filter of the family.
type Outcome = Result<Option<Sample>, String>;

struct Round<'a> {
    options: &'a Options,
    members: Vec<&'a [u8]>,
    negatives: &'a [Vec<u8>],
    forged: Vec<Vec<u8>>,
    seed: u64,
}

impl Round<'_> {
    /// The share of the queries that match, and nanoseconds for each.
    fn measure(&self, filter: &mut Answers, workload: Workload, law: &Law) -> Result<(f64, f64), String> {
        let mut members = self.members.clone();
        let mut stream = Stream::new(self.seed ^ 0x9e37);
        if workload == Workload::Adversarial {
            let ask = |name: &[u8]| filter.query(name, &mut members);
            let (matched, time) = cpu(|| load::attack(&self.forged, &mut stream, ask));
            return Ok((matched? as f64 / self.forged.len() as f64, nanos_each(time, self.forged.len())));
        }
        let queries = law.queries(workload, self.options.queries, &mut stream);
        let ask = |sum: usize, &name: &u32| {
            let matches = filter.query(&self.negatives[name as usize], &mut members)?;
            Ok::<_, String>(sum + usize::from(matches))
        };
        let (matched, time) = cpu(|| queries.iter().try_fold(0, ask));
        let mut rate = matched? as f64 / queries.len() as f64;
        if matches!(filter, Answers::Static(_) | Answers::Learned(_)) {
            let shares = law.shares(workload);
            let matching = self.negatives.iter().zip(&shares).filter(|(name, _)| filter.contains(name));
            rate = matching.map(|(_, share)| share).sum();
        }
        Ok((rate, nanos_each(time, queries.len())))
    }

    fn lost(&self, filter: &Answers) -> usize {
        self.members.iter().filter(|key| !filter.contains(key)).count()
    }

    /// All families of one budget, on all workloads whose log is this one.
    fn run(&self, bits: f64, exponent: f64, mut found: impl FnMut(Workload, Family, Outcome)) {
        let law = Law::new(exponent, self.negatives.len());
        let queries = (self.options.log * self.negatives.len() as f64) as usize;
        let counts = law.log(queries, &mut Stream::new(self.seed));
        let log: Vec<(&[u8], f64)> = self
            .negatives
            .iter()
            .zip(&counts)
            .filter(|(_, count)| **count > 0)
            .map(|(name, &count)| (&name[..], f64::from(count)))
            .collect();
        let missed = counts.iter().filter(|&&count| count == 1).count() as f64 / queries.max(1) as f64;
        let known = |bytes: u64| Known { members: &self.members, log: &log, bytes, seed: self.seed };
        let budget = known((bits * self.members.len() as f64 / 8.0) as u64);
        let workloads: Vec<Workload> =
            self.options.workloads.iter().copied().filter(|workload| workload.exponent() == exponent).collect();
        let mut ribbons = HashMap::new();
        for family in self.options.families() {
            let mut shared: Option<Made> = None;
            for &workload in &workloads {
                progress(format_args!("seed {}, {bits} bits, {}: {}", self.seed, workload.name(), family.name()));
                let unlisted = workload.unlisted_share(missed);
                let mut one = || -> Outcome {
                    if shared.is_none() || family.depends_on_queries() {
                        shared = budget.build(family, unlisted, self.options.queries)?;
                    }
                    let Some(made) = shared.as_mut() else { return Ok(None) };
                    let (rate, query) = self.measure(&mut made.filter, workload, &law)?;
                    let lost = self.lost(&made.filter);
                    if lost > 0 {
                        return Err(format!("{lost} members rejected"));
                    }
                    let bytes = made.filter.bytes();
                    let ribbon = match ribbons.get(&(bytes, workload)) {
                        Some(&rate) => rate,
                        None => {
                            let ribbon = known(bytes).build(Family::Ribbon, None, 0)?;
                            let rate = self.measure(&mut ribbon.ok_or("no ribbon")?.filter, workload, &law)?.0;
                            ribbons.insert((bytes, workload), rate);
                            rate
                        }
                    };
                    let (model, build) = (made.model as f64, made.build.as_secs_f64());
                    Ok(Some(Sample { bytes: bytes as f64, model, rate, ribbon, query, build }))
                };
                found(workload, family, one());
            }
        }
        progress("");
    }
}

impl Options {
    fn families(&self) -> impl Iterator<Item = Family> {
        Family::all().filter(|family| is_named(&self.only, family.name()))
    }
}

pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    if options.n == 0 || options.negatives_per_key == 0 || options.queries < 10 || options.seeds == 0 {
        return Err("--n, --negatives-per-key and --seeds must be at least 1, --queries at least 10".into());
    }
    if !(0.0..=100.0).contains(&options.log) || options.bits.iter().any(|bits| !(2.0..=64.0).contains(bits)) {
        return Err("--log must be from 0 to 100, --bits from 2 to 64".into());
    }
    let data::Names { source, members, negatives } = data::host_names(options.n, options.negatives_per_key)?;
    let mut all: Vec<(f64, Workload, Family, Outcome)> = vec![];
    for seed in 1..=options.seeds {
        let forged = load::forged(&members, options.queries, &mut Stream::new(!seed));
        let members = members.iter().map(|name| &name[..]).collect();
        let round = Round { options, members, negatives: &negatives, forged, seed };
        for &bits in &options.bits {
            for exponent in [0.0, 1.0] {
                round.run(bits, exponent, |workload, family, sample| all.push((bits, workload, family, sample)));
            }
        }
    }
    let mut groups = vec![];
    for &workload in &options.workloads {
        for &bits in &options.bits {
            let of =
                |family| all.iter().filter(move |it| (it.0, it.1, it.2) == (bits, workload, family)).map(|it| &it.3);
            let rows = options.families().map(|family| Row::of(family, of(family))).collect();
            groups.push(Group { workload, bits, rows });
        }
    }
    let (members, negatives) = (members.len(), negatives.len());
    Ok(Report { machine: Machine::read(), options, source, members, negatives, groups })
}

impl Row {
    fn of<'a>(family: Family, all: impl Iterator<Item = &'a Outcome>) -> Row {
        let (mut samples, mut wrong) = (vec![], vec![]);
        for sample in all {
            match sample {
                Ok(sample) => samples.extend(sample),
                Err(e) => wrong.push(e.clone()),
            }
        }
        let n = samples.len() as f64;
        let mean = |field: fn(&Sample) -> f64| samples.iter().map(|sample| field(sample)).sum::<f64>() / n;
        let median =
            |field: fn(&Sample) -> f64| measure::median(samples.iter().map(|sample| field(sample))).unwrap_or(f64::NAN);
        let rate = mean(|sample| sample.rate);
        let variance = samples.iter().map(|sample| (sample.rate - rate).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        wrong.sort();
        wrong.dedup();
        Row {
            name: family.name(),
            bytes: mean(|sample| sample.bytes),
            model: mean(|sample| sample.model),
            rate,
            spread: if samples.is_empty() { f64::NAN } else { variance.sqrt() },
            ribbon: mean(|sample| sample.ribbon),
            query: median(|sample| sample.query),
            build: median(|sample| sample.build),
            wrong,
        }
    }
}

impl Group {
    /// The planner's rate over that of the best filter that is neither learned nor adaptive.
    fn over_best(&self) -> Option<f64> {
        let is_static = |row: &&Row| Family::all().any(|family| family.is_static() && family.name() == row.name);
        let best = self.rows.iter().filter(is_static).map(|row| row.rate).min_by(f64::total_cmp)?;
        let planner = self.rows.iter().find(|row| row.name == Family::Planner.name())?;
        Some(planner.rate / best)
    }

    fn over_budget(&self, row: &Row, members: usize) -> bool {
        // A page of memory is more than a thousandth of a small filter.
        row.bytes > self.bits * members as f64 / 8.0 * 1.001 + 64.0
    }
}

/// A share in percent, with three digits.
fn percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent.is_nan() => "-".into(),
        0.0 => "0".into(),
        percent if percent < 0.001 => format!("{percent:.1e}"),
        percent => format!("{percent:.*}", (2 - percent.log10().floor() as i32).max(0) as usize),
    }
}

impl table::Report for Report<'_> {
    /// Whether no member was rejected, and nothing was larger than it may be.
    fn is_clean(&self) -> bool {
        let clean =
            |group: &Group| group.rows.iter().all(|row| row.wrong.is_empty() && !group.over_budget(row, self.members));
        self.groups.iter().all(clean)
    }

    fn tables(&self) -> Vec<Table> {
        let bits = |bytes: f64| 8.0 * bytes / self.members as f64;
        let finite = |number: f64| Some(number).filter(|number| number.is_finite());
        let wrong = |group: &Group, row: &Row| {
            let over = group.over_budget(row, self.members).then(|| "over the budget".to_string());
            row.wrong.iter().cloned().chain(over).collect::<Vec<_>>().join(", ")
        };
        let table = |&workload: &Workload| {
            let groups: Vec<&Group> = self.groups.iter().filter(|group| group.workload == workload).collect();
            let over =
                groups.iter().filter_map(|group| Some(format!("{:.2} at {} bits", group.over_best()?, group.bits)));
            let over = over.collect::<Vec<_>>().join(", ");
            let over =
                if over.is_empty() { over } else { format!("Planner over the best of ribbon and stacks: {over}.") };
            Table::of(groups.iter().flat_map(|&group| group.rows.iter().map(move |row| (group, row))))
                .text("bits, family", |(group, row)| format!("{}, {}", group.bits, row.name))
                .number("bits/key", 2, |(_, row)| finite(bits(row.bytes)))
                .number("model", 2, |(_, row)| Some(bits(row.model)).filter(|bits| *bits > 0.0))
                .text("fpr %", |(_, row)| percent(row.rate))
                .text("±", |(_, row)| percent(row.spread))
                .text("ribbon %", |(_, row)| percent(row.ribbon))
                .number("of ribbon", 2, |(_, row)| finite(row.rate / row.ribbon))
                .number("query ns", 0, |(_, row)| finite(row.query))
                .number("build s", 2, |(_, row)| finite(row.build))
                .text("wrong", |(group, row)| wrong(group, row))
                .table(format!("Queries: {}.", workload.name()), over)
        };
        let mut tables: Vec<Table> = self.options.workloads.iter().map(table).collect();
        if let Some(first) = tables.first_mut() {
            first.head = format!(
                "Families of filters: {}, {} members, {} negatives, {} seeds. {}.\n\n{}",
                self.source, self.members, self.negatives, self.options.seeds, self.machine, first.head
            );
        }
        if let Some(last) = tables.last_mut() {
            last.note += " Fpr: share of the negative queries that match, mean and standard deviation over the seeds. \
                          Ribbon: a plain one of as many bytes as the row, on the same queries. Model: bits per key of \
                          it, in the bits before. Query: of adaptive filters with what they change. Build: with \
                          training; processor time of one thread. No numbers: no filter of the family is so small.";
        }
        tables
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::table::Report as _;

    fn small() -> Options {
        Options {
            n: 4000,
            negatives_per_key: 5,
            bits: vec![12.0],
            log: 1.0,
            queries: 40_000,
            seeds: 2,
            workloads: Workload::value_variants().to_vec(),
            only: vec![],
        }
    }

    /// By the lists of the repository, or real data where there is some.
    #[test]
    fn every_family_keeps_its_promise_on_every_workload() {
        let options = small();
        let report = run(&options).unwrap();
        let tables = report.tables();
        let printed: String = tables.iter().map(ToString::to_string).collect();
        assert!(report.is_clean(), "{printed}");
        assert_eq!((tables.len(), report.groups.len()), (4, 4));
        let rate = |workload, family: Family| {
            let group = report.groups.iter().find(|group| group.workload == workload).unwrap();
            group.rows.iter().find(|row| row.name == family.name()).unwrap().rate
        };
        for group in &report.groups {
            assert_eq!(group.rows.len(), Family::all().count());
            let ribbon = &group.rows[0];
            // The ribbon next to the ribbon has as many bytes, or a few less: of the names that match a few more.
            assert!(ribbon.name == "ribbon" && (0.5..2.0).contains(&(ribbon.rate / ribbon.ribbon)), "{printed}");
        }
        for workload in [Workload::Static, Workload::Skewed] {
            let group = report.groups.iter().find(|group| group.workload == workload).unwrap();
            assert!(group.over_best().unwrap() < 1.1, "{printed}");
        }
        // Static filters lose to an adversary, who repeats what matched; a broom keeps its rate.
        for family in [Family::Ribbon, Family::Stacked, Family::Planner, Family::Learned, Family::Strict] {
            assert!(rate(Workload::Adversarial, family) > 0.2, "{family:?}: {printed}");
        }
        // Here that is at most 2^-3.
        assert!(rate(Workload::Adversarial, Family::Broom) < 0.125, "{printed}");
    }

    #[test]
    fn bad_options_are_errors() {
        let wrong: [fn(&mut Options); 6] = [
            |options| options.n = 0,
            |options| options.seeds = 0,
            |options| options.queries = 9,
            |options| options.negatives_per_key = 0,
            |options| options.bits.push(1.0),
            |options| options.log = -1.0,
        ];
        for change in wrong {
            let mut options = small();
            change(&mut options);
            assert!(run(&options).is_err());
        }
    }

    #[test]
    fn shares_have_three_digits() {
        assert_eq!([0.5, 0.0312, 0.00312, 0.0000456].map(percent), ["50.0", "3.12", "0.312", "0.00456"]);
        assert_eq!([0.0, f64::NAN].map(percent), ["0", "-"]);
    }
}
