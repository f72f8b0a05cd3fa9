//! keys that leave and keys that come, three times as many as there are -> which predictors stay right.

use std::error::Error;

use serde::Serialize;
use tamis::Othello;
use tamis::internals::table::Cascade;
use tamis::table::{Predictor, TableBuilder};
use tamis_bench::stream::Stream;
use tamis_bench::table::Table;

use super::super::Options;
use super::emoma::Emoma;
use super::predict::{OneBloom, Plain, Predict, digest, formula_bits, lambda};
use super::{LOAD, draw, filled, percent, wrong};

/// Turnovers after which predictions are checked.
const MARKS: [f64; 6] = [0.0, 0.25, 0.5, 1.0, 2.0, 3.0];

const CHECKS: usize = 20;

/// A predictor through three turnovers.
#[derive(Default, Serialize)]
pub(super) struct Churned {
    name: String,
    load: f64,
    /// Keys that are predicted wrongly, in percent, at the marks and at the worst moment.
    wrong: Vec<f64>,
    worst: f64,
    /// How often the predictor was built again, and how many keys were read for it, per change.
    resets: Option<u64>,
    reread: Option<f64>,
    mbit: f64,
    /// Keys in first buckets over keys in second ones, at the end.
    lambda: Option<f64>,
    stash: Option<usize>,
    /// Whether it may not be wrong.
    exact: bool,
}

/// A table with a predictor: what all of them can do.
trait Live {
    fn replace(&mut self, old: u64, new: u64) -> Result<(), Box<dyn Error>>;
    /// A get, from which predictors may learn.
    fn get(&mut self, key: u64) -> Result<(), Box<dyn Error>>;
    fn wrong(&self, keys: &[u64]) -> usize;
    fn bits(&self) -> f64;
}

/// The paper's table and a predictor that learns from moves and gets, without resets.
struct Walk<P> {
    pair: super::pair::Pair,
    predict: P,
}

impl<P: Predict> Live for Walk<P> {
    fn replace(&mut self, old: u64, new: u64) -> Result<(), Box<dyn Error>> {
        self.pair.remove(old);
        self.predict.forget(old)?;
        let mut moves = Vec::new();
        if !self.pair.insert(new, |key, second| moves.push((key, second))) {
            return Err("a walk did not end; try another --seed".into());
        }
        Ok(moves.into_iter().try_for_each(|(key, second)| self.predict.train(key, second))?)
    }

    fn get(&mut self, key: u64) -> Result<(), Box<dyn Error>> {
        let second = self.pair.is_second(key);
        if self.predict.is_second(key) != second {
            self.predict.train(key, second)?;
        }
        Ok(())
    }

    fn wrong(&self, keys: &[u64]) -> usize {
        wrong(&self.pair, keys, &self.predict)
    }

    fn bits(&self) -> f64 {
        self.predict.bits()
    }
}

/// As before, but moves teach it nothing: the paper trains by gets.
struct ByGets<P>(Walk<P>);

impl<P: Predict> Live for ByGets<P> {
    fn replace(&mut self, old: u64, new: u64) -> Result<(), Box<dyn Error>> {
        self.0.pair.remove(old);
        match self.0.pair.insert(new, |_, _| ()) {
            true => Ok(()),
            false => Err("a walk did not end; try another --seed".into()),
        }
    }

    fn get(&mut self, key: u64) -> Result<(), Box<dyn Error>> {
        self.0.get(key)
    }

    fn wrong(&self, keys: &[u64]) -> usize {
        self.0.wrong(keys)
    }

    fn bits(&self) -> f64 {
        self.0.bits()
    }
}

impl Live for tamis::table::Table<u64, ()> {
    fn replace(&mut self, old: u64, new: u64) -> Result<(), Box<dyn Error>> {
        self.remove(&old)?;
        self.insert(new, ())?;
        Ok(())
    }

    fn get(&mut self, key: u64) -> Result<(), Box<dyn Error>> {
        self.get_and_learn(&key)?;
        Ok(())
    }

    fn wrong(&self, keys: &[u64]) -> usize {
        let before = self.stats().wrong;
        let lost = keys.iter().filter(|key| !matches!(tamis::table::Table::get(self, *key), Ok(Some(())))).count();
        // A key that is lost counts as all of them.
        (self.stats().wrong - before) as usize + lost * keys.len()
    }

    fn bits(&self) -> f64 {
        self.stats().predictor_bits as f64
    }
}

impl Live for Emoma {
    fn replace(&mut self, old: u64, new: u64) -> Result<(), Box<dyn Error>> {
        self.remove(old);
        self.insert(new);
        self.retry();
        Ok(())
    }

    fn get(&mut self, _key: u64) -> Result<(), Box<dyn Error>> {
        Ok(())
    }

    fn wrong(&self, keys: &[u64]) -> usize {
        Emoma::wrong(self, keys)
    }

    fn bits(&self) -> f64 {
        Emoma::bits(self) as f64
    }
}

/// Replaces keys for three turnovers, with a get after each change.
fn churn(name: &str, live: &mut impl Live, mut keys: Vec<u64>, stream: &mut Stream) -> Result<Churned, Box<dyn Error>> {
    let many = keys.len();
    let mut row = Churned {
        name: name.into(),
        load: LOAD,
        wrong: vec![percent(live.wrong(&keys), many)],
        mbit: live.bits() / 1e6,
        ..Churned::default()
    };
    for step in 1..=3 * many {
        let at = stream.below(many);
        let new = stream.draw().max(1);
        live.replace(std::mem::replace(&mut keys[at], new), new)?;
        let other = keys[stream.below(many)];
        live.get(other)?;
        let is_mark = MARKS.iter().any(|mark| (mark * many as f64) as usize == step);
        if is_mark || step % (many / CHECKS).max(1) == 0 {
            let wrong = percent(live.wrong(&keys), many);
            row.worst = row.worst.max(wrong);
            row.mbit = row.mbit.max(live.bits() / 1e6);
            if is_mark {
                row.wrong.push(wrong);
            }
        }
    }
    Ok(row)
}

fn ours(predictor: Predictor, keys: &[u64], buckets: usize, stream: &mut Stream) -> Result<Churned, Box<dyn Error>> {
    let capacity = buckets as u64 * 45 / 100;
    let mut table = TableBuilder::with_capacity(capacity).slots(1).predictor(predictor).build::<u64, ()>()?;
    for &key in keys {
        table.insert(key, ())?;
    }
    table.settle()?;
    let before = table.stats();
    let is_cascade = predictor == Predictor::Cascade;
    let name = if is_cascade { "tamis table, cascade, resets" } else { "tamis table, exact bit" };
    let row = churn(name, &mut table, keys.to_vec(), stream)?;
    let stats = table.stats();
    let resets = stats.resets - before.resets;
    Ok(Churned {
        resets: Some(resets),
        reread: Some(resets as f64 / 3.0),
        lambda: Some(stats.first as f64 / stats.second as f64),
        exact: !is_cascade,
        ..row
    })
}

pub(super) fn run(stream: &mut Stream, buckets: usize) -> Result<Vec<Churned>, Box<dyn Error>> {
    let keys = draw(stream, buckets, LOAD);
    let pair = filled(&keys, buckets)?;
    let items: Vec<_> = keys.iter().map(|&key| (digest(key), pair.is_second(key))).collect();
    let mut exact = Othello::new::<u64>()?;
    keys.iter().try_for_each(|&key| exact.set(key, pair.is_second(key)).map(drop))?;
    let mut plain = Plain::new(pair.seconds() as f64, lambda(LOAD))?;
    for _ in 0..super::ROUNDS {
        keys.iter().try_for_each(|&key| plain.train(key, pair.is_second(key)))?;
    }
    let mut bloom = OneBloom::new(pair.seconds(), formula_bits(buckets, LOAD))?;
    pair.keys(true).try_for_each(|key| bloom.train(key, true))?;

    let mut walk = Walk { pair: pair.clone(), predict: exact };
    let mut rows =
        vec![Churned { exact: true, ..churn("exact bit, the paper's walk", &mut walk, keys.clone(), stream)? }];
    let seconds = walk.pair.seconds();
    rows[0].lambda = Some((keys.len() - seconds) as f64 / seconds as f64);
    let mut by_gets = ByGets(Walk { pair: pair.clone(), predict: plain });
    rows.push(churn("Bloom layers, by gets, no resets", &mut by_gets, keys.clone(), stream)?);
    let mut walk = Walk { pair: pair.clone(), predict: Cascade::build(&items)? };
    rows.push(churn("tamis cascade, moves and gets, no resets", &mut walk, keys.clone(), stream)?);
    let mut walk = Walk { pair, predict: bloom };
    rows.push(churn("Bloom filter of the second table", &mut walk, keys.clone(), stream)?);
    rows.push(ours(Predictor::Exact, &keys, buckets, stream)?);
    rows.push(ours(Predictor::Cascade, &keys, buckets, stream)?);
    for load in [LOAD, 0.8] {
        let keys = draw(stream, buckets, load);
        let mut emoma = Emoma::new(buckets / 4, 4, 8, 2);
        keys.iter().for_each(|&key| emoma.insert(key));
        let row = churn("EMOMA, buckets of 4, 8 counters each", &mut emoma, keys, stream)?;
        rows.push(Churned { load, stash: Some(emoma.stash.len()), exact: true, ..row });
    }
    Ok(rows)
}

impl Churned {
    pub(super) fn is_clean(&self) -> bool {
        !self.exact || self.worst == 0.0
    }
}

pub(super) fn table(rows: &[Churned], options: &Options) -> Table {
    Table::of(rows)
        .text("predictor", |row| &row.name)
        .number("load", 2, |row| row.load)
        .numbers(MARKS.map(|mark| mark.to_string()), 3, |row| row.wrong.iter().copied())
        .number("worst", 3, |row| row.worst)
        .number("resets", 0, |row| row.resets.map(|resets| resets as f64))
        .number("read again", 1, |row| row.reread)
        .number("Mbit", 4, |row| row.mbit)
        .number("lambda", 3, |row| row.lambda)
        .number("stash", 0, |row| row.stash.map(|keys| keys as f64))
        .table(
            format!(
                "Churn, not in the paper: keys predicted wrongly, %, after so many turnovers; {} slots, a key leaves, \
                 another comes, one get.",
                options.n
            ),
            "Read again: keys that resets read, per change. Mbit: the most. Lambda: at the end; Theorem 5.2 has 2.209 \
             without removals.",
        )
}
