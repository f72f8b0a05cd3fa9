//! filters, an adversary who watches their answers -> which of them keep their fpr.
//!
//! A filter's rate is promised for strangers. An adaptive filter promises it for every query, whatever was asked before and whatever was
//! answered ([Broom] section 2). This experiment is the adversary: it finds false positives, reports them as the owner of a filter would, and
//! tries to find more of them than eps of its queries.
//!
//! ```text
//!   filters   x   trials   ──▶   claims: measured <= limit
//!   broom         fresh          worst window of 100,000 queries, any n queries, all
//!   plain ...     replay, ...    no key lost, no error: in every trial
//! ```
//!
//! Every pair has a filter of its own, filled to its capacity; nothing is timed, so pairs run side by side. Plain filters take part because they must
//! fail: a trial that they pass proves nothing. Another filter is a line in [`entries`].

use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{fmt, thread};

use clap::{Args, ValueEnum as _};
use serde::Serialize;
use tamis::adaptive::{
    AdaptiveBloom, AdaptiveBuilder, AdaptiveChained, AdaptiveQuotient, AdaptiveStacked, Broom, CuckooCascade,
    LargeBroom, QuotientCascade, Remove, Schedule,
};
use tamis::internals::math::large;

use self::attack::Attack;
use self::claim::Claim;
use self::learning::Learning;
use self::subject::{Adaptive, Subject};
use self::trials::Trial;
use crate::adaptive::cuckoo::AdaptiveCuckoo;
use crate::args::is_named;
use crate::machine::Machine;
use crate::measure::progress;
use crate::stream::scramble;
use crate::table::{self, Report as _, Table};

mod attack;
pub(crate) mod claim;
mod learning;
mod log;
pub(crate) mod subject;
#[cfg(test)]
mod tests;
mod trials;

/// The rate that filters are asked for.
pub(crate) const RATE: f64 = 1.0 / 256.0;

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Number of keys.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(100..))]
    keys: u32,
    /// Only filters whose name contains one of these.
    #[arg(long, value_delimiter = ',', value_name = "SUBSTR,...")]
    filters: Vec<String>,
    /// Only these trials.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TRIAL,...")]
    tests: Vec<Trial>,
    /// Most queries of a trial, also of the mixed one, which would take 10 n/eps.
    #[arg(long, default_value_t = 100_000_000)]
    queries: u64,
    /// Queries per window.
    #[arg(long, default_value_t = 100_000)]
    window: u64,
    /// Trials that run at the same time.
    #[arg(long, default_value_t = thread::available_parallelism().map_or(1, usize::from))]
    threads: usize,
    /// Seed of keys, queries and secrets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Expected {
    /// It holds in all trials.
    Holds,
    /// It fails where false positives are replayed.
    Fails,
    /// It is shown for comparison.
    Shown,
}

type Built = Result<Box<dyn Subject>, Box<dyn Error>>;

#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) expected: Expected,
    /// Keys that it moves for every false positive, at most.
    pub(crate) steps: f64,
    /// For so many keys, at [`RATE`] or the rate of its name, with this secret.
    pub(crate) build: fn(u64, [u64; 2]) -> Built,
}

/// An adaptive filter of the library with its reverse map, as something to attack.
pub(crate) fn adaptive<F: Remove + 'static>(filter: F) -> Built {
    Ok(Box::new(Adaptive::new(filter)))
}

fn broom(keys: u64, secret: [u64; 2]) -> AdaptiveBuilder<Broom> {
    Broom::with_capacity(keys).fpr(RATE).secret(secret)
}

fn cascade(keys: u64, secret: [u64; 2]) -> AdaptiveBuilder<QuotientCascade> {
    QuotientCascade::with_capacity(keys).fpr(RATE).secret(secret)
}

/// A broom filter of large remainders at 2^-bits. Its rates begin at 2^-10; a key that moves may meet a whole fingerprint, and pays again.
fn large_broom(bits: u32, keys: u64, secret: [u64; 2]) -> Built {
    adaptive(LargeBroom::with_capacity(keys).fpr(1.0 / f64::from(1 << bits)).secret(secret).build::<u64>()?)
}

fn large_steps(bits: u32) -> f64 {
    f64::from(large::STEPS) * (1.0 + f64::from(large::STEPS) / f64::from(1 << bits))
}

/// Filters that are attacked but not timed: one of a lower rate, which takes many queries, and those that need all keys at the start.
fn attacked_only() -> Vec<Entry> {
    let entry = |name, build| Entry { name, expected: Expected::Shown, steps: 0.0, build };
    vec![
        Entry {
            expected: Expected::Holds,
            steps: large_steps(14),
            ..entry("large broom 2^-14", |n, key| large_broom(14, n, key))
        },
        entry("adaptive stacked", |n, key| Ok(Box::new(Learning::<AdaptiveStacked>::new(n, key)))),
        entry("adaptive chained", |n, key| Ok(Box::new(Learning::<AdaptiveChained>::new(n, key)))),
    ]
}

pub(crate) fn entries() -> Vec<Entry> {
    use Expected::{Fails, Holds, Shown};
    let entry = |name, expected, steps, build| Entry { name, expected, steps, build };
    vec![
        entry("broom", Holds, 4.0, |n, key| adaptive(broom(n, key).build::<u64>()?)),
        entry("broom compact", Holds, 4.0, |n, key| adaptive(broom(n, key).compact().build::<u64>()?)),
        entry("large broom 2^-10", Holds, large_steps(10), |n, key| large_broom(10, n, key)),
        entry("adaptive quotient", Holds, 32.0, |n, key| {
            adaptive(AdaptiveQuotient::with_capacity(n).fpr(RATE).secret(key).build::<u64>()?)
        }),
        entry("quotient cascade", Holds, 32.0, |n, key| adaptive(cascade(n, key).build::<u64>()?)),
        entry("quotient cascade log*", Holds, 32.0, |n, key| {
            adaptive(cascade(n, key).schedule(Schedule::LogStar).build::<u64>()?)
        }),
        entry("cuckoo cascade", Holds, 32.0, |n, key| {
            adaptive(CuckooCascade::with_capacity(n).fpr(RATE).secret(key).build::<u64>()?)
        }),
        entry("adaptive Bloom", Holds, 32.0, |n, key| {
            let filter = AdaptiveBloom::with_capacity(n).fpr(RATE).secret(key).build::<u64>()?;
            Ok(Box::new(Adaptive::without_removal(filter)))
        }),
        entry("adaptive cuckoo 11 bit", Shown, 0.0, |n, key| Ok(Box::new(AdaptiveCuckoo::new(n, 11, key)))),
        entry("adaptive cuckoo 8 bit", Shown, 0.0, |n, key| Ok(Box::new(AdaptiveCuckoo::new(n, 8, key)))),
        entry("plain quotient", Fails, 0.0, |n, key| Ok(Box::new(subject::quotient(n, RATE, key)?))),
        entry("plain Bloom", Fails, 0.0, |n, key| Ok(Box::new(subject::bloom(n, RATE, key)?))),
    ]
}

#[derive(Serialize)]
struct Outcome {
    filter: &'static str,
    expected: Expected,
    trial: Trial,
    skipped: Option<String>,
    promised_rate: f64,
    queries: u64,
    false_positives: u64,
    /// False positives of every window, in the order of time.
    windows: Vec<u64>,
    epochs: u64,
    bits_per_item: f64,
    reads_per_false: f64,
    writes_per_false: f64,
    moved_per_false: f64,
    claims: Vec<Claim>,
    error: Option<String>,
}

impl Outcome {
    fn holds(&self) -> bool {
        self.claims.iter().all(Claim::holds)
    }

    /// Whether it is as it is expected to be. Plain filters are as good as others with strangers, and must fail with replays.
    fn is_expected(&self) -> bool {
        match (self.expected, self.trial) {
            _ if self.skipped.is_some() => true,
            (Expected::Holds, _) => self.holds(),
            (Expected::Fails, Trial::Fresh | Trial::Space | Trial::Reads) => self.holds(),
            (Expected::Fails, _) => !self.holds(),
            (Expected::Shown, _) => true,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    rate: f64,
    outcomes: Vec<Outcome>,
}

pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    let mut chosen = entries();
    chosen.extend(attacked_only());
    chosen.retain(|entry| is_named(&options.filters, entry.name));
    if chosen.is_empty() {
        return Err("no filter has such a name".into());
    }
    let outcomes = attack_all(options, &chosen)?;
    Ok(Report { machine: Machine::read(), options, rate: RATE, outcomes })
}

/// All pairs of a filter and a trial, side by side, in order in the end.
fn attack_all(options: &Options, entries: &[Entry]) -> Result<Vec<Outcome>, Box<dyn Error>> {
    let trials = if options.tests.is_empty() { Trial::value_variants() } else { &options.tests };
    let pairs: Vec<(Entry, Trial)> =
        entries.iter().flat_map(|&entry| trials.iter().map(move |&trial| (entry, trial))).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(&(entry, trial)) = pairs.get(at) else { break };
            progress(format_args!("{} of {}: {}, {}", at + 1, pairs.len(), entry.name, trial.name()));
            let outcome = attack_one(options, entry, trial).map_err(|e| format!("{}: {e}", entry.name));
            if let Ok(mut done) = done.lock() {
                done.push((at, outcome));
            }
        }
    };
    thread::scope(|scope| (0..options.threads.clamp(1, 256)).for_each(|_| drop(scope.spawn(work))));
    progress("");
    let mut done = done.into_inner().map_err(|_| "a trial broke off")?;
    done.sort_by_key(|pair| pair.0);
    done.into_iter().map(|pair| pair.1.map_err(Into::into)).collect()
}

fn attack_one(options: &Options, entry: Entry, trial: Trial) -> Result<Outcome, Box<dyn Error>> {
    // Filters of one trial get the same keys and strangers, but other secrets.
    let seed = scramble(options.seed).wrapping_add(trial as u64);
    let tag = entry.name.bytes().fold(seed, |seed, byte| scramble(seed ^ u64::from(byte)));
    let subject = (entry.build)(u64::from(options.keys), [tag, scramble(tag)])?;
    let skipped = (trial.deletes() && !subject.deletes()).then(|| "does not delete".to_string());
    let keys = if skipped.is_some() { 0 } else { options.keys as usize };
    let mut attack = Attack::new(subject, keys, options.window, options.queries, seed);
    let mut claims = vec![];
    if skipped.is_none() {
        claims = trial.run(&mut attack, entry.steps);
        claims.extend(attack.always());
    }
    let per_false = |count: u64| count as f64 / attack.meter.wrong.max(1) as f64;
    Ok(Outcome {
        filter: entry.name,
        expected: entry.expected,
        trial,
        skipped,
        promised_rate: attack.subject.fpr(),
        queries: attack.meter.asked,
        false_positives: attack.meter.wrong,
        windows: std::mem::take(&mut attack.meter.windows),
        epochs: attack.epochs.max(attack.subject.epoch().unwrap_or(0)),
        bits_per_item: attack.bits_per_item(),
        reads_per_false: per_false(attack.reads),
        writes_per_false: per_false(attack.writes),
        moved_per_false: per_false(attack.moved),
        claims,
        error: attack.error(),
    })
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (&self.skipped, self.holds()) {
            (Some(_), _) => "-",
            (None, true) => "holds",
            (None, false) => "FAILS",
        })
    }
}

impl table::Report for Report<'_> {
    /// Whether filters that promise to hold did, and plain ones failed.
    fn is_clean(&self) -> bool {
        self.outcomes.iter().all(Outcome::is_expected)
    }

    fn tables(&self) -> Vec<Table> {
        vec![self.verdicts(), self.details()]
    }
}

impl Report<'_> {
    fn verdicts(&self) -> Table {
        let mut filters: Vec<&Outcome> = vec![];
        let mut trials: Vec<Trial> = vec![];
        for outcome in &self.outcomes {
            if filters.iter().all(|seen| seen.filter != outcome.filter) {
                filters.push(outcome);
            }
            if !trials.contains(&outcome.trial) {
                trials.push(outcome.trial);
            }
        }
        let cell = |filter: &str, trial: Trial| {
            let found = self.outcomes.iter().find(|outcome| outcome.filter == filter && outcome.trial == trial);
            found.map_or(String::new(), ToString::to_string)
        };
        let verdict = match self.is_clean() {
            true => "All filters are as expected.".to_string(),
            false => {
                let wrong = self.outcomes.iter().filter(|outcome| !outcome.is_expected());
                let list: Vec<String> = wrong.map(|o| format!("{} ({})", o.filter, o.trial.name())).collect();
                format!("NOT as expected: {}.", list.join(", "))
            }
        };
        Table::of(filters)
            .text("filter", |first| first.filter)
            .number("eps %", 3, |first| 100.0 * first.promised_rate)
            .texts(trials.iter().map(|trial| trial.name()), |first| {
                trials.iter().map(|&trial| cell(first.filter, trial)).collect::<Vec<_>>()
            })
            .table(
                format!(
                    "{} keys, at most {} queries a trial, windows of {}, seed {}. {}.",
                    self.options.keys, self.options.queries, self.options.window, self.options.seed, self.machine
                ),
                format!(
                    "eps: what the filter promises of every query. Plain filters must fail where false positives are \
                     asked for again; the rival promises nothing against an adversary and is shown. {verdict}"
                ),
            )
    }

    fn details(&self) -> Table {
        let claims = |o: &Outcome| {
            let claims = o.claims.iter().map(Claim::describe);
            claims.chain(o.error.clone()).chain(o.skipped.clone()).collect::<Vec<_>>().join("; ")
        };
        Table::of(&self.outcomes)
            .text("filter, trial", |o| format!("{}, {}", o.filter, o.trial.name()))
            .text("queries", |o| o.queries)
            .text("false", |o| o.false_positives)
            .number("/ eps", 3, |o| o.false_positives as f64 / o.queries.max(1) as f64 / o.promised_rate)
            .text("epochs", |o| o.epochs)
            .number("bits/item", 2, |o| Some(o.bits_per_item).filter(|_| o.skipped.is_none()))
            .number("reads/false", 3, |o| o.reads_per_false)
            .number("moved/false", 2, |o| o.moved_per_false)
            .text("claims", claims)
            .table(
                "What was measured, and what is allowed.",
                "A limit on a count of wrong answers is the quantile of the Poisson law of mean eps times the queries \
                 that chance alone exceeds with probability .00135 (three sigma, one side), divided by the number of \
                 windows where the worst of them is meant (Bonferroni). any n: wrong answers in any n queries in a \
                 row, at most eps n + 4 sqrt(eps n ln n). keys lost: of one asked for after every 64th query, and of \
                 all in the end. A query has no way to the reverse map; accesses on negatives are those of a report of \
                 a key that was refused.",
            )
    }
}
