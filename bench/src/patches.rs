//! lists that change from day to day -> patches: their sizes next to the bound and to other practice, and what queries pay for them.
//!
//! On every day a share of the members is excluded, and as many excluded keys become members. A patch is compared with:
//!
//! ```text
//!   bound     c f(0, u / c) bits for c changed answers and u listed keys that did not change
//!   list      the changed entries, 8 bytes for each: what CRLite ships between two filters, with its entries cut to digests
//!   filter    a filter of the changed entries, with a rate so low that it matches one other listed key at most
//!   rebuilt   the file of today
//! ```
//!
//! Every listed key is queried after every day: a wrong answer is a failure.

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tamis::{Filter, Patch, Patched};

use crate::machine::Machine;
use crate::measure::{cpu, nanos_each};
use crate::stream::Stream;
use crate::table::{self, Table};

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Members.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1000..))]
    n: u32,
    /// Excluded keys for each member.
    #[arg(long, value_delimiter = ',', default_values_t = [1.0, 3.0, 8.0, 16.0, 100.0])]
    lambda: Vec<f64>,
    /// Answers that change, as shares of the members.
    #[arg(long, value_delimiter = ',', default_values_t = [0.001, 0.01, 0.05])]
    change: Vec<f64>,
    /// Excluded keys for each member in the tables of days and of queries.
    #[arg(long, default_value_t = 8.0)]
    days_lambda: f64,
    /// Days after which sizes are summed.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 5, 30])]
    days: Vec<u32>,
    /// Members in the table of queries; 0 for none.
    #[arg(long, default_value_t = 1_000_000)]
    query_n: u32,
    /// Answers that each patch changes in the table of queries.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100, 10])]
    flips: Vec<u32>,
    /// Repetitions of a timing; the least counts.
    #[arg(long, default_value_t = 15)]
    repetitions: u32,
    /// Seed of the keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Serialize)]
struct Size {
    lambda: f64,
    changed: u64,
    bytes: usize,
    bound: f64,
    list: u64,
    filter: usize,
    rebuilt: usize,
    fpr: f64,
    wrong: usize,
}

#[derive(Serialize)]
struct Days {
    change: f64,
    days: u32,
    bytes: usize,
    bound: f64,
    list: u64,
    filter: usize,
    rebuilt: usize,
    /// Of unlisted keys: computed and measured.
    fpr: f64,
    measured: f64,
    wrong: usize,
}

#[derive(Serialize)]
struct Queries {
    flips: u32,
    patches: usize,
    bytes: usize,
    /// Nanoseconds of processor time per key: one by one, and in batches.
    one: f64,
    many: f64,
    /// The same as multiples of the base.
    one_ratio: f64,
    many_ratio: f64,
    /// Microseconds to open the patches behind the base.
    open: f64,
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    sizes: Vec<Size>,
    days: Vec<Days>,
    queries: Vec<Queries>,
}

pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    let mut sizes = vec![];
    for &lambda in &options.lambda {
        for &change in &options.change {
            let mut lists = Lists::new(options.seed, options.n, lambda);
            let base = lists.build()?;
            let changed = lists.change((f64::from(options.n) * change).round() as usize);
            let (patch, wrong) = lists.patch(&base.with_patches([])?)?;
            sizes.push(Size {
                lambda,
                changed: patch.len(),
                bytes: patch.as_bytes().len(),
                bound: patch.lower_bound() / 8.0,
                list: 8 * patch.len(),
                filter: lists.filter(&changed)?,
                rebuilt: lists.build()?.as_bytes().len(),
                fpr: patch.fpr(),
                wrong,
            });
        }
    }
    let mut days = vec![];
    for &change in &options.change {
        days.extend(chain(options, change)?);
    }
    let queries = if options.query_n > 0 { queries(options)? } else { vec![] };
    Ok(Report { machine: Machine::read(), options, sizes, days, queries })
}

/// Members first, then excluded keys.
struct Lists {
    keys: Vec<u64>,
    members: usize,
    stream: Stream,
}

impl Lists {
    fn new(seed: u64, members: u32, lambda: f64) -> Lists {
        let mut stream = Stream::new(seed);
        let members = members as usize;
        Lists { keys: stream.take(members + (members as f64 * lambda) as usize), members, stream }
    }

    fn build(&self) -> Result<Filter, tamis::Error> {
        let (members, excluded) = self.keys.split_at(self.members);
        tamis::build(members).exclude(excluded).exact().finish()
    }

    /// Exchanges members and excluded keys; returns those whose answer changes.
    fn change(&mut self, answers: usize) -> Vec<u64> {
        let pairs = (answers / 2).max(1);
        let (members, excluded) = self.keys.split_at_mut(self.members);
        for i in 0..pairs {
            let mut pick = |from: usize, len: usize| from + (self.stream.draw() % (len - from) as u64) as usize;
            let (a, b) = (pick(i, members.len()), pick(i, excluded.len()));
            members.swap(i, a);
            excluded.swap(i, b);
            std::mem::swap(&mut members[i], &mut excluded[i]);
        }
        [&members[..pairs], &excluded[..pairs]].concat()
    }

    /// The patch of today, and how many listed keys are answered wrongly with it.
    fn patch(&self, base: &Patched) -> Result<(Patch, usize), tamis::Error> {
        let mut diff = base.diff()?;
        let (members, excluded) = self.keys.split_at(self.members);
        members.iter().try_for_each(|&key| diff.push(key))?;
        excluded.iter().try_for_each(|&key| diff.exclude(key))?;
        let patch = diff.finish()?;
        let today = base.with_patches([patch.clone()])?;
        let answers = today.contains_many(&self.keys)?;
        Ok((patch, answers.iter().enumerate().filter(|&(i, &answer)| answer != (i < self.members)).count()))
    }

    /// Bytes of a filter of these keys that matches one other listed key at most, on average.
    fn filter(&self, changed: &[u64]) -> Result<usize, tamis::Error> {
        Ok(tamis::build(changed).fpr(1.0 / self.keys.len() as f64).finish()?.as_bytes().len())
    }
}

fn chain(options: &Options, change: f64) -> Result<Vec<Days>, Box<dyn Error>> {
    let mut lists = Lists::new(options.seed + 1, options.n, options.days_lambda);
    let unlisted = Stream::new(options.seed ^ 0xabcd_ef01).take(1_000_000);
    let base = lists.build()?;
    let mut today = base.with_patches([])?;
    let (mut rows, mut sum) = (vec![], (0, 0.0, 0, 0, 0));
    for day in 1..=options.days.iter().copied().max().unwrap_or(0) {
        let changed = lists.change((f64::from(options.n) * change).round() as usize);
        let (patch, wrong) = lists.patch(&today)?;
        sum.0 += patch.as_bytes().len();
        sum.1 += patch.lower_bound() / 8.0;
        sum.2 += 8 * patch.len();
        sum.3 += lists.filter(&changed)?;
        sum.4 += wrong;
        today = today.with_patches([patch])?;
        if options.days.contains(&day) {
            let matches = today.contains_many(&unlisted)?.into_iter().filter(|&yes| yes).count();
            let (bytes, bound, list, filter, wrong) = sum;
            rows.push(Days {
                change,
                days: day,
                bytes,
                bound,
                list,
                filter,
                rebuilt: lists.build()?.as_bytes().len(),
                fpr: today.fpr(),
                measured: matches as f64 / unlisted.len() as f64,
                wrong,
            });
        }
    }
    Ok(rows)
}

fn queries(options: &Options) -> Result<Vec<Queries>, Box<dyn Error>> {
    let mut rows = vec![];
    for &flips in &options.flips {
        let mut lists = Lists::new(options.seed + 2, options.query_n, options.days_lambda);
        let base = lists.build()?;
        // Half of the queries are for members.
        let mut asked = lists.stream.sample(&lists.keys[..lists.members], 1 << 17);
        asked.extend(lists.stream.sample(&lists.keys[lists.members..], 1 << 17));
        lists.stream.shuffle(&mut asked);
        let mut all = vec![base.with_patches([])?];
        let mut patches = vec![];
        for i in 0..5 {
            lists.change(flips as usize);
            patches.push(lists.patch(&all[i])?.0);
            all.push(base.with_patches(patches.clone())?);
        }
        // Taken in turns: a slow moment of the machine is one of all.
        let mut least = vec![[Duration::MAX; 3]; all.len()];
        for _ in 0..options.repetitions {
            for (i, (today, least)) in all.iter().zip(&mut least).enumerate().filter(|(i, _)| [0, 1, 5].contains(i)) {
                let one = || asked.iter().fold(0, |sum, &key| sum + u32::from(today.contains(key) == Ok(true)));
                let times = [
                    cpu(|| black_box(one())).1,
                    cpu(|| black_box(today.contains_many(&asked))).1,
                    cpu(|| {
                        let opened = patches[..i].iter().map(|patch| Patch::open(patch.as_bytes().to_vec()));
                        black_box(opened.collect::<Result<Vec<_>, _>>().map(|opened| base.with_patches(opened)))
                    })
                    .1,
                ];
                least.iter_mut().zip(times).for_each(|(least, time)| *least = time.min(*least));
            }
        }
        let [one, many] = [0, 1].map(|i| nanos_each(least[0][i], asked.len()));
        for count in [0, 1, 5] {
            let [a, b] = [0, 1].map(|i| nanos_each(least[count][i], asked.len()));
            rows.push(Queries {
                flips,
                patches: count,
                bytes: patches[..count].iter().map(|patch| patch.as_bytes().len()).sum(),
                one: a,
                many: b,
                one_ratio: a / one,
                many_ratio: b / many,
                open: least[count][2].as_nanos() as f64 / 1e3,
            });
        }
    }
    Ok(rows)
}

impl table::Report for Report<'_> {
    fn tables(&self) -> Vec<Table> {
        let Report { machine, options, .. } = self;
        let n = options.n;
        let sizes = Table::of(&self.sizes)
            .text("lambda", |s| s.lambda)
            .text("changed", |s| s.changed)
            .text("patch", |s| s.bytes)
            .number("bound", 0, |s| s.bound)
            .number("1.05 bound + 260", 0, |s| 1.05 * s.bound + 260.0)
            .text("list", |s| s.list)
            .text("filter", |s| s.filter)
            .text("rebuilt", |s| s.rebuilt)
            .number("q", 5, |s| s.fpr)
            .text("wrong", |s| s.wrong)
            .table(
                format!("Sizes of patches in bytes, {n} members. {machine}"),
                "Exact filters of random keys. list: 8 bytes for each changed entry. filter: a ribbon of them, fpr 1 / \
                 listed keys. q: unlisted keys that the patch flips.",
            );
        let days = Table::of(&self.days)
            .text("change a day", |d| format!("{} %", 100.0 * d.change))
            .text("days", |d| d.days)
            .text("patches", |d| d.bytes)
            .number("bound", 0, |d| d.bound)
            .text("lists", |d| d.list)
            .text("filters", |d| d.filter)
            .text("rebuilt", |d| d.rebuilt)
            .number("fpr", 4, |d| d.fpr)
            .number("measured", 4, |d| d.measured)
            .text("wrong", |d| d.wrong)
            .table(
                format!("Patches of several days, summed, {n} members, lambda {}", options.days_lambda),
                "fpr: unlisted keys that match, computed and measured on a million.",
            );
        let queries = Table::of(&self.queries)
            .text("flips each", |q| q.flips)
            .text("patches", |q| q.patches)
            .text("bytes", |q| q.bytes)
            .number("one", 1, |q| q.one)
            .number("of base", 2, |q| q.one_ratio)
            .number("batch", 1, |q| q.many)
            .number("of base", 2, |q| q.many_ratio)
            .number("open", 1, |q| q.open)
            .table(
                format!(
                    "Queries through patches, {} members, lambda {}: nanoseconds of processor time per key, \
                     microseconds to open",
                    options.query_n, options.days_lambda
                ),
                "Half of the queries are for members. The least of the repetitions, taken in turns.",
            );
        vec![sizes, days, queries]
    }

    fn is_clean(&self) -> bool {
        self.sizes.iter().all(|size| size.wrong == 0) && self.days.iter().all(|days| days.wrong == 0)
    }
}
