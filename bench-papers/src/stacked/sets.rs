//! three sets of data -> figure 3: rates, query times, and the throughput of a file behind the filter.

use std::error::Error;

use serde::Serialize;
use tamis_bench::stream::Stream;
use tamis_bench::table::Table;

use super::Options;
use super::built::{Built, PLAIN, PLANNER, Row, STACKED, build, rate, times, times_less};
use super::guarded::{Cost, Guarded};
use super::load::{Load, Weights};
use super::{ETA, firehose, learned};
use crate::data;

#[derive(Default, Serialize)]
pub(super) struct Set {
    name: String,
    keys: usize,
    negatives: usize,
    told: usize,
    /// The share of negative queries on those that are told.
    told_mass: f64,
    rows: Vec<Timed>,
    /// Why there is nothing here.
    skipped: Option<String>,
}

/// A filter, and its times in nanoseconds.
#[derive(Serialize)]
struct Timed {
    #[serde(flatten)]
    row: Row,
    members: f64,
    negatives: f64,
    strangers: f64,
    /// Filter and file together, per negative query, the file in the page cache; and pages it read per query.
    guarded: f64,
    reads: f64,
    /// Negative queries per second with the latency of a device on top: by arithmetic, no device is waited for.
    ssd: f64,
    hdd: f64,
}

/// Measures every set whose data is there.
pub(super) fn figure3(options: &Options) -> Result<Vec<Set>, Box<dyn Error>> {
    let total = options.negatives();
    let synthetic = Load::random(options.n, total, total / 2, ETA, options.timing.seed);
    let mut sets = vec![set(format!("Synthetic integers, Zipf {ETA}"), &synthetic, options)?];
    drop(synthetic);
    let name = "Phishing hosts against ranked domains".to_string();
    sets.push(match data::folder() {
        Some(dir) => {
            let (data::Sets { keys, negatives }, names) = data::ranked_urls(&dir)?;
            let given = negatives.len() / 2;
            let load = Load::listed(keys, negatives, Weights::zipf(1.0), Weights::zipf(1.0), given);
            set(name, &load.named(names), options)?
        }
        None => Set { name, skipped: Some("skipped: TAMIS_DATA names no folder with urls/".into()), ..Set::default() },
    });
    sets.push(set("Packets of a power-law stream".into(), &firehose::load(options.n, options.timing.seed), options)?);
    Ok(sets)
}

fn set(name: String, load: &Load, options: &Options) -> Result<Set, Box<dyn Error>> {
    let file = Guarded::new(&load.keys)?;
    let members = Stream::new(options.timing.seed).sample(&load.keys, options.timing.queries);
    let negatives = load.sample(options.timing.queries, options.timing.seed);
    let strangers = load.strangers(options.timing.queries);
    let mut rows = Vec::new();
    for &bits in &options.bits {
        let mut built = Vec::new();
        for wanted in [PLAIN, STACKED, PLANNER] {
            built.push(build(load, wanted, bits)?);
        }
        let times = times(&built, &[&members, &negatives, &strangers], options.timing.rounds);
        for (Built { filter, row }, times) in built.into_iter().zip(times) {
            let cost = match &filter {
                Some(filter) => {
                    file.cost(&negatives, options.timing.rounds, |at| filter.contains(negatives[at]).unwrap_or(true))?
                }
                None => Cost { nanos: f64::NAN, reads: f64::NAN },
            };
            rows.push(Timed::new(row, [times[0], times[1], times[2]], cost, options));
        }
        for family in learned::FAMILIES {
            let lists = [&members[..], &negatives, &strangers];
            let (row, times, cost) = learned::measure(load, &file, family, bits, lists, options.timing.rounds)?;
            rows.push(Timed::new(row, times, cost, options));
        }
    }
    Ok(Set {
        name,
        keys: load.keys.len(),
        negatives: load.total,
        told: load.given,
        told_mass: load.mass(load.given),
        rows,
        skipped: None,
    })
}

impl Timed {
    fn new(row: Row, [members, negatives, strangers]: [f64; 3], cost: Cost, options: &Options) -> Timed {
        let per_second = |latency_us: f64| 1e9 / (cost.nanos + row.efpr * latency_us * 1e3);
        let (ssd, hdd) = (per_second(options.ssd_us), per_second(options.hdd_us));
        Timed { members, negatives, strangers, guarded: cost.nanos, reads: cost.reads, ssd, hdd, row }
    }
}

impl Set {
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().map(|timed| &timed.row)
    }

    pub(super) fn table(&self, options: &Options) -> Table {
        let plain =
            |row: &Row| self.rows.iter().find(|other| other.row.budget == row.budget && other.row.name == PLAIN.name);
        let less = |row: &Row| plain(row).map_or("-".into(), |plain| times_less(plain.row.efpr, row.efpr));
        let faster = |timed: &Timed, of: fn(&Timed) -> f64| {
            let ratio = plain(&timed.row).map_or("-".into(), |plain| times_less(of(timed), of(plain)));
            format!("{:.1} ({ratio})", of(timed) / 1e3)
        };
        let size = match self.skipped {
            Some(_) => String::new(),
            None => format!(
                ": {} keys, {} negatives, the heavier {} told ({:.1} % of the queries)",
                self.keys,
                self.negatives,
                self.told,
                100.0 * self.told_mass
            ),
        };
        let note = || {
            format!(
                "Member, negative, stranger: ns per query in a loop, negatives drawn as they are expected. With file: \
                 a page of 4 KiB is read wherever the filter says yes, from the page cache. SSD, HDD: thousand \
                 negative queries per second, and times the Bloom filter. No device is read: these columns are \
                 arithmetic, with file + EFPR x {} or {} µs. Learned: a sum of weights, trained on what is told; of \
                 numbers on as many negatives as keys. The paper: EFPR 5-100 times less than a Bloom filter, members \
                 at 1.5 times its cost, negatives at the same, total cost 1.4-130 times lower. Its learned filters, a \
                 recurrent network: EFPR as stacked filters on URLs, as a Bloom filter or worse elsewhere, queries \
                 90-190 times slower; sandwiched ones 3-90 times.",
                options.ssd_us, options.hdd_us
            )
        };
        Table::of(self.rows.iter().map(|timed| (timed, &timed.row)))
            .text("budget, structure", |(_, row)| format!("{}, {}", row.budget, row.name))
            .text("steps", |(_, row)| &row.steps)
            .number("bits/key", 3, |(_, row)| row.bits)
            .text("EFPR", |(_, row)| rate(row.efpr))
            .text("× less", |(_, row)| less(row))
            .text("predicted", |(_, row)| rate(row.predicted))
            .text("EFPB", |(_, row)| rate(row.unknown_rate))
            .text("known passing", |(_, row)| format!("{} of {}", row.known_passing, row.known))
            .number("member", 1, |(timed, _)| timed.members)
            .number("negative", 1, |(timed, _)| timed.negatives)
            .number("stranger", 1, |(timed, _)| timed.strangers)
            .number("with file", 1, |(timed, _)| timed.guarded)
            .text("SSD k/s, computed (×)", |(timed, _)| faster(timed, |timed| timed.ssd))
            .text("HDD k/s, computed (×)", |(timed, _)| faster(timed, |timed| timed.hdd))
            .text("wrong", |(_, row)| row.wrong())
            .table(format!("Figure 3, {}{size}.", self.name), self.skipped.clone().unwrap_or_else(note))
    }
}
