//! \[Chained\] section 5.5, learned filters -> bytes by the share of the data that the model is trained on: figure 13.
//!
//! Members and excluded keys are those of [`data::host_names`], as many of each.

use std::error::Error;

use serde::Serialize;
use tamis::bounds::f;
use tamis::learned::{Built, LearnBuilder, Scorer as _};
use tamis::{Base, Kind};
use tamis_bench::measure::{cpu, nanos_each};
use tamis_bench::table::Table;

use super::Options;
use crate::data;

/// The rate of all rows but the strict ones, as in the paper.
const RATE: f64 = 0.01;
/// Shares of the keys that the model is trained on.
const SHARES: [f64; 6] = [0.0, 0.1, 0.25, 0.5, 0.75, 1.0];

#[derive(Default, Serialize)]
pub(super) struct Row {
    /// None for filters without a model.
    share: Option<f64>,
    name: &'static str,
    members: usize,
    excluded: usize,
    /// Of the whole file, and of the model in it.
    bytes: u64,
    model_bytes: u64,
    classes: usize,
    rate: f64,
    rejected: usize,
    /// Processor time, in seconds; of a learned filter with training, and with the plain filter that it is compared with.
    build: f64,
    /// Processor time of a score, of a score of 20 bytes, of a query, and of a query among many, in nanoseconds.
    score: f64,
    score_20: f64,
    query: f64,
    batch: f64,
}

struct Data {
    members: Vec<Vec<u8>>,
    excluded: Vec<Vec<u8>>,
}

impl Data {
    fn learned<'a>(
        &'a self,
        name: &'static str,
        share: f64,
        options: tamis::Options<'a>,
        set: fn(LearnBuilder<'a>) -> LearnBuilder<'a>,
    ) -> Result<Row, Box<dyn Error>> {
        let builder = set(options.threads(1).learn(&self.members, &self.excluded)).training_share(share).keep_model();
        let (built, build) = cpu(|| builder.finish());
        let (Built::Learned(filter), report) = built? else { return Err("a model was to be kept".into()) };
        let contains = |key: &[u8]| filter.contains(key);
        let scores = |keys: &[&[u8]]| {
            let sum = || keys.iter().map(|key| filter.scorer().score(key)).fold(0, i32::wrapping_add);
            nanos_each(cpu(|| std::hint::black_box(sum())).1, keys.len().max(1))
        };
        let score = scores(&self.members.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let score_20 = scores(&self.members.iter().filter_map(|key| key.get(..20)).collect::<Vec<_>>());
        let mut answers = vec![false; self.members.len()];
        let (batched, batch) = cpu(|| filter.contains_into(&self.members, &mut answers));
        batched?;
        let row = Row {
            share: Some(share),
            bytes: report.bytes,
            model_bytes: report.model_bytes,
            classes: report.classes.len(),
            build: build.as_secs_f64(),
            score,
            score_20,
            batch: nanos_each(batch, answers.len()),
            ..self.measure(name, &contains)
        };
        Ok(row)
    }

    fn plain(&self, name: &'static str, options: tamis::Options<'_>) -> Result<Row, Box<dyn Error>> {
        let (members, excluded) = (self.members.clone(), self.excluded.clone());
        let (filter, build) = cpu(|| options.threads(1).build(members).exclude(excluded).finish());
        let filter = filter?;
        let (answers, batch) = cpu(|| filter.contains_many(&self.members));
        let batch = nanos_each(batch, answers?.len());
        let bytes = filter.as_bytes().len() as u64;
        let contains = |key: &[u8]| filter.contains(key) == Ok(true);
        Ok(Row { bytes, classes: 1, build: build.as_secs_f64(), batch, ..self.measure(name, &contains) })
    }

    fn measure(&self, name: &'static str, contains: &dyn Fn(&[u8]) -> bool) -> Row {
        let (found, time) = cpu(|| self.members.iter().filter(|key| contains(key)).count());
        let matched = self.excluded.iter().filter(|key| contains(key)).count();
        Row {
            name,
            members: self.members.len(),
            excluded: self.excluded.len(),
            rate: matched as f64 / self.excluded.len().max(1) as f64,
            rejected: self.members.len() - found,
            query: nanos_each(time, self.members.len()),
            ..Row::default()
        }
    }
}

pub(super) fn run(options: &Options) -> Result<Vec<Row>, Box<dyn Error>> {
    let data::Names { members, negatives: excluded, .. } = data::host_names(options.n, 1)?;
    let data = Data { members, excluded };
    let exact = |kind| tamis::Options::default().exact().kind(kind);
    let bloom = |rate: f64| tamis::Options::default().fpr(rate).kind(Kind::ClassicBloom);
    let mut rows = vec![
        data.plain("steered, rate .01", tamis::Options::default().excluded_fpr(RATE))?,
        data.plain("steered, exact", exact(Kind::Auto))?,
    ];
    for share in SHARES {
        rows.extend([
            data.learned("learned Bloom", share, bloom(RATE / 2.0), |it| it.accept(RATE / 2.0).classes(1))?,
            // The front filter stops half of what the model and the filter behind it would let through.
            data.learned("sandwiched Bloom", share, bloom(RATE), |it| it.accept(RATE).classes(1).sandwich(0.5))?,
            data.learned("learned Bloomier", share, exact(Kind::Naive(Base::Fuse)), |it| it.accept(RATE).classes(1))?,
            data.learned("learned chained", share, exact(Kind::Chained(Base::Ribbon)), |it| {
                it.accept(RATE).classes(1)
            })?,
            data.learned("learned steered", share, exact(Kind::Auto), |it| it.accept(RATE).classes(1))?,
            data.learned("partitioned steered", share, exact(Kind::Auto), |it| it.accept(RATE))?,
            data.learned("strict", share, exact(Kind::Auto), |it| it)?,
        ]);
    }
    Ok(rows)
}

impl Row {
    /// No member is rejected, and strict filters match no excluded key. Other rates are those of held-out keys: five standard deviations of
    /// an eighth of the keys, and of the keys.
    pub(super) fn is_clean(&self) -> bool {
        let spread = 5.0 * (RATE * 9.0 / self.excluded.max(1) as f64).sqrt();
        let most = if ["strict", "steered, exact"].contains(&self.name) { 0.0 } else { RATE + spread };
        self.rejected == 0 && self.rate <= most
    }
}

pub(super) fn table(rows: &[Row]) -> Table {
    let (members, excluded) = rows.first().map_or((0, 0), |row| (row.members, row.excluded));
    let bound = f(RATE, excluded as f64 / members.max(1) as f64);
    Table::of(rows)
        .text("trained on", |row| {
            row.share.map_or_else(|| "no model".into(), |share| format!("{:.0} %", 100.0 * share))
        })
        .text("filter", |row| row.name)
        .text("bytes", |row| row.bytes)
        .text("model", |row| row.model_bytes)
        .text("classes", |row| row.classes)
        .number("bits per key", 3, |row| 8.0 * row.bytes as f64 / row.members.max(1) as f64)
        .number("rate", 5, |row| row.rate)
        .text("rejected", |row| row.rejected)
        .number("build s", 2, |row| row.build)
        .number("score ns", 0, |row| row.score)
        .number("of 20 bytes", 0, |row| row.score_20)
        .number("query ns", 0, |row| row.query)
        .number("batch ns", 0, |row| row.batch)
        .table(
            format!(
                "Figure 13: {members} members and {excluded} excluded names, at a rate of {RATE}; n f({RATE}, lambda) \
                 is {bound:.3} bits per key."
            ),
            "Rate: excluded names that match. Strict filters match none. The model is in the bytes here. It cannot be \
             in the paper's, which are 96.2 % below n f: less than 300 bytes for 30,000 members and an RNN. Times are \
             the processor's, of one thread.",
        )
}
