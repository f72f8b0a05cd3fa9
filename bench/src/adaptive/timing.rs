//! filters at several loads -> bits per item and nanoseconds, idle and after an epoch of attack.
//!
//! Filters take turns on the same fresh keys, round by round; a row is the median over rounds, a ratio the median of the rounds' ratios to the plain
//! quotient filter at the same load. One filter of a kind is filled and measured as it is; a second one is attacked at every load before it is.
//!
//! A reverse map is no part of a filter, and how fast it is depends on whose it is. Its calls in a batch of operations are written down and
//! made again to a copy of the map, alone: the time of that is the part in brackets.

use std::error::Error;
use std::hint::black_box;

use serde::Serialize;

use super::Options;
use crate::adversary::subject::{Subject, Work};
use crate::adversary::{self, Expected};
use crate::args::Timing;
use crate::machine::Machine;
use crate::measure::{self, Median as _, least_nanos, nanos_each, progress, turns};
use crate::stream::{Stream, scramble};
use crate::table::{Table, number};

const REFERENCE: &str = "plain quotient";
/// The most times the reference's that a query and an insertion may take.
const TARGETS: [f64; 2] = [1.5, 2.0];
/// The share of its slots that a quotient filter fills.
const FULL: f64 = 0.95;
/// Strangers asked for at a time during an attack, and reports that are timed together.
const PART: usize = 4096;
const REPORTS: usize = 1000;

type Built = Result<Box<dyn Subject>, Box<dyn Error>>;

struct Contestant {
    name: &'static str,
    expected: Expected,
    /// Whether its number of slots is a power of two.
    powers: bool,
    /// For so many keys, with this secret.
    build: fn(u64, [u64; 2]) -> Built,
}

fn contestants(named: impl Fn(&str) -> bool) -> Vec<Contestant> {
    let ours = adversary::entries().into_iter().filter(|entry| entry.name == REFERENCE || named(entry.name));
    let ours = ours.filter(|entry| entry.name != "plain Bloom");
    let mut all: Vec<Contestant> = ours
        .map(|entry| Contestant {
            name: entry.name,
            expected: entry.expected,
            powers: entry.name == REFERENCE,
            build: entry.build,
        })
        .collect();
    #[cfg(feature = "peers")]
    if named("qfilter") {
        let build = |keys, _| Ok(Box::new(adversary::subject::qfilter(keys, adversary::RATE)?) as Box<dyn Subject>);
        all.push(Contestant { name: "qfilter", expected: Expected::Fails, powers: true, build });
    }
    all.sort_by_key(|contestant| contestant.name != REFERENCE);
    all
}

impl Contestant {
    /// How many keys fill it at load 1.
    fn places(&self, keys: u64) -> u64 {
        match self.powers {
            // The power of two that is nearest.
            true => (2f64).powf((keys as f64 / FULL).log2().round()) as u64,
            false => keys,
        }
    }

    fn empty(&self, keys: u64, secret: [u64; 2]) -> Built {
        let places = self.places(keys);
        (self.build)(if self.powers { (places as f64 * FULL) as u64 } else { places }, secret)
    }
}

crate::measured! {
    /// What one filter showed at one load, in one round. Nanoseconds; in brackets, in the table, what the map alone takes.
    struct Sample {
        bits: f64,
        present: f64,
        absent: f64,
        insert: f64,
        insert_map: Option<f64>,
        /// None: keys cannot be removed.
        delete: Option<f64>,
        delete_map: Option<f64>,
        attacked: Option<Attacked>,
    }
}

crate::measured! {
    struct Attacked {
        bits: f64,
        present: f64,
        absent: f64,
        repair: f64,
        repair_map: Option<f64>,
    }
}

#[derive(Serialize)]
struct Row {
    filter: &'static str,
    load: f64,
    items: u64,
    median: Sample,
    /// Times the reference's of the same round: present, absent, insertion without the map, present and absent after an attack.
    ratio: [Option<f64>; 5],
    lost: u64,
}

#[derive(Serialize)]
pub(super) struct Timings {
    rows: Vec<Row>,
    errors: Vec<String>,
    missed: Vec<String>,
}

pub(super) fn run(options: &Options, named: impl Fn(&str) -> bool) -> Result<Timings, Box<dyn Error>> {
    let contestants = contestants(named);
    let mut errors = vec![];
    // By contestant, round and load.
    let mut samples: Vec<Vec<Vec<Sample>>> = contestants.iter().map(|_| vec![]).collect();
    let mut lost = vec![0; contestants.len()];
    let Timing { rounds, seed, .. } = options.timing;
    for round in 0..rounds.max(1) {
        for at in turns(contestants.len(), round) {
            let contestant = &contestants[at];
            progress(format_args!("round {} of {rounds}: {}", round + 1, contestant.name));
            match measure_one(options, contestant, scramble(seed).wrapping_add(round as u64)) {
                Ok((found, missing)) => {
                    samples[at].push(found);
                    lost[at] += missing;
                }
                Err(e) => {
                    errors.push(format!("{}: {e}", contestant.name));
                    samples[at].push(vec![]);
                }
            }
        }
    }
    progress("");
    let reference = contestants.iter().position(|contestant| contestant.name == REFERENCE).unwrap_or(0);
    let mut rows = vec![];
    for (at, contestant) in contestants.iter().enumerate() {
        for (l, &load) in options.loads.iter().enumerate() {
            let mine = || samples[at].iter().filter_map(|round| round.get(l));
            let pairs =
                || samples[at].iter().zip(&samples[reference]).filter_map(|(a, b)| Some((a.get(l)?, b.get(l)?)));
            let ratio = |of: &dyn Fn(&Sample) -> Option<f64>, to: &dyn Fn(&Sample) -> f64| {
                measure::median(pairs().filter_map(|(a, b)| Some(of(a)? / to(b))))
            };
            let Some(median) = Sample::median(mine()) else { continue };
            rows.push(Row {
                filter: contestant.name,
                load,
                items: (load * contestant.places(options.keys) as f64) as u64,
                median,
                ratio: [
                    ratio(&|s| Some(s.present), &|s| s.present),
                    ratio(&|s| Some(s.absent), &|s| s.absent),
                    ratio(&|s| Some(s.insert - s.insert_map.unwrap_or(0.0)), &|s| s.insert),
                    ratio(&|s| Some(s.attacked.as_ref()?.present), &|s| s.present),
                    ratio(&|s| Some(s.attacked.as_ref()?.absent), &|s| s.absent),
                ],
                lost: lost[at],
            });
        }
    }
    let missed = missed(&rows, &contestants);
    Ok(Timings { rows, errors, missed })
}

/// Where a filter that promises to hold is slower than it should be.
fn missed(rows: &[Row], contestants: &[Contestant]) -> Vec<String> {
    let ours = |row: &&Row| contestants.iter().any(|c| c.name == row.filter && c.expected == Expected::Holds);
    let mut missed = vec![];
    for row in rows.iter().filter(ours) {
        let names = ["present", "absent", "insert", "present, attacked", "absent, attacked"];
        for (i, name) in names.into_iter().enumerate() {
            let target = TARGETS[usize::from(i == 2)];
            if let Some(ratio) = row.ratio[i].filter(|&ratio| ratio > target) {
                missed.push(format!("{} at {}: {name} {ratio:.2} > {target}", row.filter, row.load));
            }
        }
    }
    missed
}

struct Filled {
    subject: Box<dyn Subject>,
    members: Vec<u64>,
    stream: Stream,
}

impl Filled {
    fn insert(&mut self, count: usize) -> Result<f64, String> {
        let keys: Vec<u64> = (0..count).map(|_| self.stream.draw() | 1).collect();
        let (done, time) = measure::cpu(|| self.subject.work_all(Work::Insert, black_box(&keys)));
        done?;
        self.members.extend(keys);
        Ok(nanos_each(time, count))
    }

    /// Members and strangers.
    fn queries(&mut self, count: usize) -> [f64; 2] {
        let members = self.stream.sample(&self.members, count);
        let strangers: Vec<u64> = (0..count).map(|_| self.stream.draw() & !1).collect();
        [members, strangers].map(|keys| least_nanos(2, count, || self.subject.count(black_box(&keys))))
    }

    fn bits_per_item(&self) -> f64 {
        self.subject.bits() as f64 / self.members.len().max(1) as f64
    }

    fn lost(&self) -> u64 {
        (self.members.len() - self.subject.count(&self.members)) as u64
    }
}

/// The samples of all loads, and the keys that were lost.
fn measure_one(options: &Options, contestant: &Contestant, seed: u64) -> Result<(Vec<Sample>, u64), Box<dyn Error>> {
    let fresh = |tag: u64| -> Result<Filled, Box<dyn Error>> {
        let subject = contestant.empty(options.keys, [scramble(seed ^ tag), tag])?;
        Ok(Filled { subject, members: vec![], stream: Stream::new(seed) })
    };
    let places = contestant.places(options.keys) as f64;
    let mut samples = vec![];
    let mut filled = fresh(1)?;
    for load in &options.loads {
        let items = (load * places) as usize;
        let batch = (items / 50).max(1);
        filled.insert(items.saturating_sub(filled.members.len() + 2 * batch))?;
        let logged: Vec<u64> = (0..batch).map(|_| filled.stream.draw() | 1).collect();
        let insert_map = filled.subject.map_alone(Work::Insert, &logged)?;
        filled.members.extend(logged);
        let insert = filled.insert(items.saturating_sub(filled.members.len()).max(1))?;
        let [present, absent] = filled.queries(options.timing.queries);
        // Keys are random, so any run of them is a random sample. What goes comes back.
        let (gone, logged) = (filled.members[..batch].to_vec(), filled.members[batch..2 * batch].to_vec());
        let each = |time| nanos_each(time, batch);
        let (mut delete, mut delete_map) = (None, None);
        if filled.subject.deletes() {
            let (done, time) = measure::cpu(|| filled.subject.work_all(Work::Delete, black_box(&gone)));
            done?;
            delete = Some(each(time));
            delete_map = filled.subject.map_alone(Work::Delete, &logged)?;
            filled.subject.work_all(Work::Insert, &gone)?;
            filled.subject.work_all(Work::Insert, &logged)?;
        }
        samples.push(Sample {
            bits: filled.bits_per_item(),
            present,
            absent,
            insert,
            insert_map: insert_map.map(each),
            delete,
            delete_map: delete_map.map(each),
            attacked: None,
        });
    }
    let mut lost = filled.lost();
    drop(filled);
    if contestant.expected != Expected::Fails {
        let mut filled = fresh(2)?;
        for (load, sample) in options.loads.iter().zip(&mut samples) {
            let items = (load * places) as usize;
            filled.insert(items.saturating_sub(filled.members.len()))?;
            sample.attacked = Some(attack(&mut filled, options.timing.queries)?);
        }
        lost += filled.lost();
    }
    Ok((samples, lost))
}

/// An epoch of attack, and what the filter is like after it.
fn attack(filled: &mut Filled, queries: usize) -> Result<Attacked, Box<dyn Error>> {
    let (start, most) = (filled.subject.epoch(), filled.members.len() / 4);
    let (mut reported, mut nanos) = (0, 0.0);
    // A filter may be far better than its rate: then there are fewer false positives to report.
    let mut left = 2.0 * most as f64 / adversary::RATE;
    let mut found = vec![];
    while reported < most && left > 0.0 && filled.subject.epoch() == start {
        while found.len() < REPORTS && left > 0.0 {
            left -= PART as f64;
            for _ in 0..PART {
                let key = filled.stream.draw() & !1;
                found.extend(filled.subject.ask(key).then_some(key));
            }
        }
        let (done, time) = measure::cpu(|| filled.subject.work_all(Work::Report, black_box(&found)));
        done?;
        nanos += time.as_nanos() as f64;
        reported += found.len();
        found.clear();
    }
    for _ in 0..REPORTS * 2560 {
        if found.len() == REPORTS {
            break;
        }
        let key = filled.stream.draw() & !1;
        found.extend(filled.subject.ask(key).then_some(key));
    }
    let repair_map = filled.subject.map_alone(Work::Report, &found)?.map(|time| nanos_each(time, found.len().max(1)));
    let [present, absent] = filled.queries(queries);
    Ok(Attacked { bits: filled.bits_per_item(), present, absent, repair: nanos / reported.max(1) as f64, repair_map })
}

impl Timings {
    pub(super) fn is_clean(&self) -> bool {
        self.errors.is_empty() && self.rows.iter().all(|row| row.lost == 0)
    }

    pub(super) fn table(&self, options: &Options, machine: &Machine) -> Table {
        let targets = match self.missed.as_slice() {
            [] => "All targets are met".to_string(),
            missed => format!("Targets missed: {}", missed.join("; ")),
        };
        let errors = self.errors.iter().map(|e| format!(" ERROR: {e}.")).collect::<String>();
        let after = |row: &Row, field: fn(&Attacked) -> f64| row.median.attacked.as_ref().map(field);
        let with_map = |all: Option<f64>, map: Option<f64>| match (all, map) {
            (Some(all), Some(map)) => format!("{all:.0} ({map:.0})"),
            (all, _) => number(all, 0),
        };
        let mut table = Table::of(&self.rows)
            .text("filter", |row| row.filter)
            .number("load", 2, |row| row.load)
            .number("bits/item", 2, |row| row.median.bits)
            .number("present", 1, |row| row.median.present)
            .number("×", 2, |row| row.ratio[0])
            .number("absent", 1, |row| row.median.absent)
            .number("×", 2, |row| row.ratio[1])
            .text("insert", |row| with_map(Some(row.median.insert), row.median.insert_map))
            .number("×", 2, |row| row.ratio[2])
            .text("delete", |row| with_map(row.median.delete, row.median.delete_map))
            .number("bits, attacked", 2, |row| after(row, |a| a.bits))
            .number("present", 1, |row| after(row, |a| a.present))
            .number("×", 2, |row| row.ratio[3])
            .number("absent", 1, |row| after(row, |a| a.absent))
            .number("×", 2, |row| row.ratio[4])
            .text("repair", |row| {
                with_map(after(row, |a| a.repair), row.median.attacked.as_ref().and_then(|a| a.repair_map))
            })
            .text("lost", |row| row.lost)
            .table(
                format!(
                    "Filters for {} keys, eps = 2^-8, {} queries per timing, {} rounds, seed {}. {machine}.",
                    options.keys, options.timing.queries, options.timing.rounds, options.timing.seed
                ),
                format!(
                    "Times in ns of processor time per operation; in brackets, of these, what the reverse map in \
                     memory takes alone. attacked: after false positives were looked for and reported until all keys \
                     had a new hash function (or a quarter as many as there are keys). ×: times the plain quotient \
                     filter's at the same load and in the same round; insertions without the map. Targets: queries {} \
                     x, insertions {} x. bits/item: allocated by the filter; reverse maps are not counted for anybody. \
                     {targets}.{errors}",
                    TARGETS[0], TARGETS[1]
                ),
            );
        // The numbers of its authors, and one of a measurement elsewhere; another machine, so no times.
        for (load, bits) in [("idle", "11.7"), ("0.90", "12.48")] {
            let mut quoted = ["AdaptiveQF (C, 2025), quoted", load, bits].map(String::from).to_vec();
            quoted.resize(table.columns.len(), "-".into());
            table.rows.push(quoted);
        }
        table
    }
}
