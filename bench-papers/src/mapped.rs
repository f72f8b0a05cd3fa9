//! a way to build a map from keys to values -> sizes, times and wrong values.
//!
//! The counterpart of [`tamis_bench::candidate`] for maps. Every key is read back after every build, in a loop and in a batch,
//! before anything is timed; a map with a wrong value is not timed at all. In a round all maps are built first and then
//! read in turns, so that a slow moment of the machine meets all of them.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::error::Error;
use std::hint::black_box;
use std::rc::Rc;

use serde::Serialize;
use tamis_bench::measure::{self, Median as _, progress, turns};
use tamis_bench::measured;
use tamis_bench::stream::Stream;

/// Distinct keys and the value of each.
pub(crate) struct Pairs {
    pub(crate) keys: Vec<u64>,
    pub(crate) values: Vec<u64>,
}

impl Pairs {
    /// Empirical entropy of the values, in bits per key.
    pub(crate) fn entropy(&self) -> f64 {
        let mut counts: HashMap<u64, usize> = HashMap::new();
        for &value in &self.values {
            *counts.entry(value).or_default() += 1;
        }
        // In order, so that the sum does not depend on the table's.
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable();
        let n = self.values.len() as f64;
        counts.into_iter().map(|count| count as f64).map(|count| count / n * (n / count).log2()).sum()
    }
}

pub(crate) type Outcome = Result<Built, Box<dyn Error>>;
type FilterBuilder = Box<dyn Fn(&Pairs, usize) -> Outcome>;

pub(crate) struct Mapped {
    pub(crate) name: String,
    threads: bool,
    build: FilterBuilder,
}

impl Mapped {
    /// A structure whose `build` uses one thread.
    pub(crate) fn new(name: impl Into<String>, build: impl Fn(&Pairs) -> Outcome + 'static) -> Mapped {
        Mapped { name: name.into(), threads: false, build: Box::new(move |pairs, _| build(pairs)) }
    }

    /// A structure whose `build` uses the number of threads it is given.
    pub(crate) fn threaded(name: impl Into<String>, build: impl Fn(&Pairs, usize) -> Outcome + 'static) -> Mapped {
        Mapped { name: name.into(), threads: true, build: Box::new(build) }
    }
}

type Read = Box<dyn Fn(&[u64], &mut [u64])>;
type ReadAll = Box<dyn Fn(&mut [u64])>;

pub(crate) struct Built {
    /// Bytes of the whole structure; what is needed to turn codes into values is included.
    bytes: usize,
    one_by_one: Option<Read>,
    batch: Option<Read>,
    in_order: Option<ReadAll>,
}

impl Built {
    /// A map and how to ask it for one key.
    pub(crate) fn new<M: 'static>(bytes: usize, map: M, get: impl Fn(&M, u64) -> u64 + 'static) -> Built {
        let read = move |keys: &[u64], out: &mut [u64]| {
            for (out, &key) in out.iter_mut().zip(keys) {
                *out = get(&map, key);
            }
        };
        Built { bytes, one_by_one: Some(Box::new(read)), batch: None, in_order: None }
    }

    /// A map that can also be asked for many keys in one call.
    pub(crate) fn with_batch<M: 'static>(
        bytes: usize,
        map: M,
        get: impl Fn(&M, u64) -> u64 + 'static,
        batch: impl Fn(&M, &[u64], &mut [u64]) + 'static,
    ) -> Built {
        let map = Rc::new(map);
        let shared = Rc::clone(&map);
        let mut built = Built::new(bytes, map, move |map, key| get(map, key));
        built.batch = Some(Box::new(move |keys, out| batch(&shared, keys, out)));
        built
    }

    /// Values that can be read from the first to the last and no other way.
    pub(crate) fn in_order(bytes: usize, read_all: impl Fn(&mut [u64]) + 'static) -> Built {
        Built { bytes, one_by_one: None, batch: None, in_order: Some(Box::new(read_all)) }
    }

    /// A map that can also be read from the first value to the last.
    pub(crate) fn and_in_order(mut self, read_all: impl Fn(&mut [u64]) + 'static) -> Built {
        self.in_order = Some(Box::new(read_all));
        self
    }

    fn wrong(&self, pairs: &Pairs) -> usize {
        let mut out = vec![0; pairs.keys.len()];
        let mut wrong = 0;
        for read in [&self.one_by_one, &self.batch].into_iter().flatten() {
            // What was there before is wrong for every key: a call that does nothing must not pass.
            out.iter_mut().zip(&pairs.values).for_each(|(out, value)| *out = !value);
            read(&pairs.keys, &mut out);
            wrong += out.iter().zip(&pairs.values).filter(|(out, value)| out != value).count();
        }
        if let Some(read_all) = &self.in_order {
            out.iter_mut().zip(&pairs.values).for_each(|(out, value)| *out = !value);
            read_all(&mut out);
            wrong += out.iter().zip(&pairs.values).filter(|(out, value)| out != value).count();
        }
        wrong
    }
}

measured! {
    /// What one map showed in one round. Times in nanoseconds per key.
    pub(crate) struct Sample {
        pub(crate) bytes: f64,
        /// Processor time, one thread.
        pub(crate) build: f64,
        /// Wall time, two threads.
        pub(crate) build_twice: Option<f64>,
        /// Wall time of one thread over that of two.
        pub(crate) speedup: Option<f64>,
        /// Random keys, one call each.
        pub(crate) read: Option<f64>,
        /// Random keys, many in one call.
        pub(crate) batch: Option<f64>,
        /// All values in order.
        pub(crate) in_order: Option<f64>,
    }
}

/// One map's results over all rounds.
#[derive(Default, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Medians over the rounds; none if every build failed.
    pub(crate) median: Option<Sample>,
    /// Values that were wrong, over all rounds.
    pub(crate) wrong: usize,
    pub(crate) failed: Vec<String>,
    /// Every round; none where the build failed.
    pub(crate) rounds: Vec<Option<Sample>>,
}

impl Row {
    /// Whether every build gave a map that is right.
    pub(crate) fn is_clean(&self) -> bool {
        self.wrong == 0 && self.failed.is_empty()
    }

    pub(crate) fn describe(&self) -> String {
        let wrong = (self.wrong > 0).then(|| format!("{} values wrong", self.wrong));
        wrong.into_iter().chain(self.failed.iter().cloned()).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn median<N: Into<Option<f64>>>(&self, field: impl Fn(&Sample) -> N) -> Option<f64> {
        self.median.as_ref().and_then(|sample| field(sample).into())
    }

    /// Builds and reads every key back.
    fn build(&mut self, mapped: &Mapped, pairs: &Pairs) -> Option<(Built, Sample)> {
        let n = pairs.keys.len();
        let twice = mapped.threads.then(|| measure::wall(|| drop((mapped.build)(pairs, 2))).1);
        let ((built, time), wall) = measure::wall(|| measure::cpu(|| (mapped.build)(pairs, 1)));
        let built = match built {
            Ok(built) => built,
            Err(e) => {
                self.failed.push(e.to_string());
                return None;
            }
        };
        let wrong = built.wrong(pairs);
        self.wrong += wrong;
        let sample = Sample {
            bytes: built.bytes as f64,
            build: measure::nanos_each(time, n),
            build_twice: twice.map(|time| measure::nanos_each(time, n)),
            speedup: twice.map(|time| wall.as_secs_f64() / time.as_secs_f64()),
            read: None,
            batch: None,
            in_order: None,
        };
        (wrong == 0).then_some((built, sample))
    }
}

/// Repetitions of every timing of reads; the least counts.
const REPETITIONS: usize = 3;

/// Times the reads of one map of `n` keys once and keeps the least. `out` has room for all of them and for the queries.
fn time(built: &Built, sample: &mut Sample, n: usize, queries: &[u64], out: &mut [u64]) {
    let keep = |least: &mut Option<f64>, time: f64| *least = Some(least.map_or(time, |old| old.min(time)));
    let reads = [(&built.one_by_one, &mut sample.read), (&built.batch, &mut sample.batch)];
    for (read, least) in reads {
        if let Some(read) = read {
            let out = &mut out[..queries.len()];
            let time = measure::cpu(|| read(black_box(queries), black_box(out))).1;
            keep(least, measure::nanos_each(time, queries.len().max(1)));
        }
    }
    if let Some(read_all) = &built.in_order {
        let time = measure::cpu(|| read_all(black_box(&mut out[..n]))).1;
        keep(&mut sample.in_order, measure::nanos_each(time, n.max(1)));
    }
}

/// Runs all maps on fresh pairs every round: built one after the other, read in turns.
pub(crate) fn compare(
    all: &[impl Borrow<Mapped>],
    rounds: usize,
    stream: &mut Stream,
    mut draw: impl FnMut(&mut Stream) -> Pairs,
    queries: usize,
) -> Vec<Row> {
    let mut rows: Vec<Row> =
        all.iter().map(|mapped| Row { name: mapped.borrow().name.clone(), ..Row::default() }).collect();
    for round in 0..rounds {
        let pairs = draw(stream);
        let mut made: Vec<Option<(Built, Sample)>> = all.iter().map(|_| None).collect();
        for i in turns(all.len(), round) {
            let mapped = all[i].borrow();
            progress(format_args!("{} keys, round {}: {}", pairs.keys.len(), round + 1, mapped.name));
            made[i] = rows[i].build(mapped, &pairs);
        }
        progress(format_args!("{} keys, round {}: reading", pairs.keys.len(), round + 1));
        let asked = if pairs.keys.is_empty() { Vec::new() } else { stream.sample(&pairs.keys, queries) };
        let mut out = vec![0; pairs.keys.len().max(asked.len())];
        for _ in 0..REPETITIONS {
            for i in turns(all.len(), round) {
                if let Some((built, sample)) = &mut made[i] {
                    time(built, sample, pairs.keys.len(), &asked, &mut out);
                }
            }
        }
        for (row, made) in rows.iter_mut().zip(made) {
            row.rounds.push(made.map(|(_, sample)| sample));
        }
    }
    progress("");
    rows.iter_mut().for_each(|row| row.median = Sample::median(row.rounds.iter().flatten()));
    rows
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pairs(n: u64) -> Pairs {
        Pairs { keys: (0..n).map(|key| key * 3).collect(), values: (0..n).map(|i| i % 4).collect() }
    }

    #[test]
    fn entropy_of_few_and_many_values() {
        assert_eq!(pairs(1).entropy(), 0.0);
        assert!((pairs(400).entropy() - 2.0).abs() < 1e-12);
        let skewed = Pairs { keys: (0..4).collect(), values: vec![7, 7, 7, 9] };
        assert!((skewed.entropy() - 0.811_278).abs() < 1e-6);
    }

    #[test]
    fn wrong_values_are_counted_and_not_timed() {
        let table = |pairs: &Pairs| pairs.keys.iter().copied().zip(pairs.values.iter().copied()).collect();
        let get = |map: &HashMap<u64, u64>, key: u64| map[&key];
        let right = Mapped::threaded("right", move |pairs, _| {
            let batch = move |map: &_, keys: &[u64], out: &mut [u64]| {
                keys.iter().zip(out).for_each(|(&key, out)| *out = get(map, key));
            };
            Ok(Built::with_batch(8, table(pairs), get, batch))
        });
        let wrong = Mapped::new("wrong", move |pairs| {
            Ok(Built::new(8, table(pairs), move |map, key| get(map, key) + u64::from(key == 6)))
        });
        let idle = Mapped::new("idle batch", move |pairs| Ok(Built::with_batch(8, table(pairs), get, |_, _, _| {})));
        let order = Mapped::new("in order", move |pairs| {
            let values = pairs.values.clone();
            Ok(Built::new(8, table(pairs), get).and_in_order(move |out| out.copy_from_slice(&values)))
        });
        let broken = Mapped::new("broken", |_| Err("no luck".into()));
        let rows = compare(&[right, wrong, idle, order, broken], 2, &mut Stream::new(1), |_| pairs(100), 1000);
        let clean: Vec<bool> = rows.iter().map(Row::is_clean).collect();
        assert_eq!(clean, [true, false, false, true, false]);
        let first = rows[0].median.as_ref().unwrap();
        assert!(first.read.is_some() && first.batch.is_some() && first.speedup.is_some() && first.in_order.is_none());
        assert_eq!((rows[1].describe().as_str(), rows[1].median.is_none()), ("2 values wrong", true));
        assert_eq!(rows[2].wrong, 200);
        let last = rows[3].median.as_ref().unwrap();
        assert!(last.in_order.is_some() && last.read.is_some());
        assert_eq!(rows[4].describe(), "no luck, no luck");
    }
}
