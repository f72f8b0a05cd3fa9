//! a way to build a filter from keys and negatives -> sizes, times and wrong answers.
//!
//! The counterpart of [`crate::candidate`] for filters that are told what they must reject. Every listed key is queried
//! after every build: a key that is rejected or a negative that passes is a failure, not a rate.

use std::borrow::Borrow;
use std::error::Error;
use std::hint::black_box;
use std::rc::Rc;

use serde::Serialize;

use crate::args::Timing;
use crate::candidate::Built;
use crate::measure::{self, Median as _, least_nanos, progress, turns};
use crate::stream::Stream;

/// What a build gives: something to ask, and its size.
pub struct Made {
    /// Answers.
    pub built: Built,
    /// Bits of the whole structure.
    pub bits: usize,
    /// Extra bits a of \[FPFS\], where the structure has them.
    pub extra: Option<u32>,
}

impl Made {
    /// A structure of so many bits.
    pub fn new(built: Built, bits: usize) -> Made {
        Made { built, bits, extra: None }
    }
}

type Outcome = Result<Made, Box<dyn Error>>;
type Ready<'a> = Box<dyn Fn(usize) -> Outcome + 'a>;
/// Does what is not timed; the result builds.
type Prepare = Box<dyn for<'a> Fn(&'a [u64], &'a [u64]) -> Ready<'a>>;

/// A structure that takes part.
pub struct Listed {
    /// The row's name.
    pub name: String,
    /// The share of the negatives that may pass; more is a failure.
    allowed: f64,
    /// With more keys and negatives than this it takes no part.
    most: usize,
    /// Whether the build is timed on two threads too.
    twice: bool,
    prepare: Prepare,
}

impl Listed {
    fn of(name: impl Into<String>, prepare: impl for<'a> Fn(&'a [u64], &'a [u64]) -> Ready<'a> + 'static) -> Listed {
        Listed { name: name.into(), allowed: 0.0, most: usize::MAX, twice: false, prepare: Box::new(prepare) }
    }

    /// A structure whose `build` is given distinct keys and distinct negatives.
    pub fn new(name: impl Into<String>, build: impl Fn(&[u64], &[u64]) -> Outcome + 'static) -> Listed {
        Listed::threaded(name, move |keys, negatives, _| build(keys, negatives))
    }

    /// A structure whose `build` is also given a number of threads.
    pub fn threaded(name: impl Into<String>, build: impl Fn(&[u64], &[u64], usize) -> Outcome + 'static) -> Listed {
        let build = Rc::new(build);
        Listed::of(name, move |keys, negatives| {
            let build = Rc::clone(&build);
            Box::new(move |threads| build(keys, negatives, threads))
        })
    }

    /// A structure that starts from something made of the lists beforehand; making it is not timed.
    pub fn prepared<P: 'static>(
        name: impl Into<String>,
        prepare: impl Fn(&[u64], &[u64]) -> P + 'static,
        build: impl Fn(&P, usize) -> Outcome + Clone + 'static,
    ) -> Listed {
        Listed::of(name, move |keys, negatives| {
            let (prepared, build) = (prepare(keys, negatives), build.clone());
            Box::new(move |threads| build(&prepared, threads))
        })
    }

    /// A structure that knows no negatives and may let some pass.
    pub fn plain(self) -> Listed {
        self.allowing(1.0)
    }

    /// A structure that may let this share of the negatives pass.
    pub fn allowing(mut self, share: f64) -> Listed {
        self.allowed = share;
        self
    }

    /// Builds are timed on two threads too.
    pub fn twice(mut self) -> Listed {
        self.twice = true;
        self
    }

    /// Takes no part with more keys and negatives than this.
    pub fn at_most(mut self, elements: usize) -> Listed {
        self.most = elements;
        self
    }

    /// Whether the structure takes part with so many keys and negatives.
    pub fn takes(&self, elements: usize) -> bool {
        elements <= self.most
    }
}

crate::measured! {
    /// What one structure showed in one round. Query times in nanoseconds.
    pub struct Sample {
        /// Of the whole structure.
        pub bits: f64,
        /// Bits in use at the worst moment of the build, the structure included, the lists not.
        pub peak: f64,
        /// Milliseconds of processor time, one thread.
        pub build: f64,
        /// Milliseconds of wall time, two threads.
        pub build_twice: Option<f64>,
        /// A key of the set.
        pub members: f64,
        /// A listed negative.
        pub negatives: f64,
        /// A key on neither list.
        pub strangers: f64,
        /// Members and negatives as they come in the two lists together.
        pub mixed: f64,
        /// Members in one call, where there is such a call.
        pub members_batch: Option<f64>,
        /// Negatives in one call.
        pub negatives_batch: Option<f64>,
    }
}

/// What must not happen.
#[derive(Default, PartialEq, Serialize)]
pub struct Wrong {
    /// Keys the filter said no to, in a loop or in a batch.
    pub false_negatives: usize,
    /// Listed negatives it said yes to, where they are more than may pass.
    pub false_positives: usize,
    /// Builds that ended in an error.
    pub builds: Vec<String>,
}

impl Wrong {
    /// For the table's last column.
    pub fn describe(&self) -> String {
        let counts = [(self.false_negatives, "keys refused"), (self.false_positives, "negatives passed")];
        let parts = counts.iter().filter(|c| c.0 > 0).map(|(n, what)| format!("{n} {what}"));
        parts.chain(self.builds.iter().cloned()).collect::<Vec<_>>().join(", ")
    }
}

/// One structure's results over all rounds.
#[derive(Default, Serialize)]
pub struct Row {
    /// The structure's.
    pub name: String,
    /// See [`Made::extra`].
    pub extra: Option<u32>,
    /// Medians over the rounds; none if every build failed.
    pub median: Option<Sample>,
    /// The share of strangers that passed, over all rounds.
    pub rate: Option<f64>,
    /// Listed negatives that passed a filter that is not told about them, mean over the rounds.
    pub passed: Option<f64>,
    /// Over all rounds.
    pub wrong: Wrong,
    #[serde(skip)]
    samples: Vec<Sample>,
    #[serde(skip)]
    strangers: (usize, usize),
    #[serde(skip)]
    passed_sum: usize,
}

/// What every round draws.
struct Draw<'a> {
    keys: &'a [u64],
    negatives: &'a [u64],
    /// Strangers that are asked and counted.
    strangers: &'a [u64],
    queries: usize,
}

/// Repetitions of every query timing; the least counts.
const REPETITIONS: usize = 3;

impl Row {
    /// Whether every build gave a filter that is right.
    pub fn is_clean(&self) -> bool {
        self.wrong == Wrong::default()
    }

    /// A number of the median sample.
    pub fn median<N: Into<Option<f64>>>(&self, field: impl Fn(&Sample) -> N) -> Option<f64> {
        self.median.as_ref().and_then(|sample| field(sample).into())
    }

    /// Builds once, asks for everything that is listed, times queries.
    fn round(&mut self, listed: &Listed, draw: &Draw<'_>, stream: &mut Stream) {
        let ready = (listed.prepare)(draw.keys, draw.negatives);
        let build_twice = listed.twice.then(|| measure::wall(|| ready(2)).1.as_secs_f64() * 1e3);
        let ((made, time), memory) = measure::memory(|| measure::cpu(|| ready(1)));
        let made = match made {
            Ok(made) => made,
            Err(e) => return self.wrong.builds.push(e.to_string()),
        };
        self.extra = made.extra;
        let built = &made.built;
        let mut out = Vec::new();
        let mut passing = |keys: &[u64]| {
            let one_by_one = built.count(keys);
            if !built.has_batch() {
                return (one_by_one, one_by_one);
            }
            out.clear();
            out.resize(keys.len(), false);
            built.batch(keys, &mut out);
            (one_by_one, out.iter().filter(|&&yes| yes).count())
        };
        let (found, found_batch) = passing(draw.keys);
        self.wrong.false_negatives += draw.keys.len() - found.min(found_batch);
        let passed: usize = draw.negatives.chunks(1 << 20).map(&mut passing).map(|(a, b)| a.max(b)).sum();
        if passed as f64 > listed.allowed * draw.negatives.len() as f64 {
            self.wrong.false_positives += passed;
        }
        self.passed_sum += passed;
        self.strangers.0 += built.count(draw.strangers);
        self.strangers.1 += draw.strangers.len();

        let sample = |from: &[u64], stream: &mut Stream| match from {
            [] => Vec::new(),
            from => stream.sample(from, draw.queries),
        };
        let members = sample(draw.keys, stream);
        let negatives = sample(draw.negatives, stream);
        let strangers = &draw.strangers[..draw.queries.min(draw.strangers.len())];
        let share = (draw.keys.len() as u128 * draw.queries as u128
            / (draw.keys.len() + draw.negatives.len()).max(1) as u128) as usize;
        let mut mixed: Vec<u64> = members.iter().take(share).chain(negatives.iter().skip(share)).copied().collect();
        stream.shuffle(&mut mixed);
        let time_loop = |queries: &[u64]| least_nanos(REPETITIONS, queries.len(), || built.count(black_box(queries)));
        let mut out = vec![false; draw.queries];
        let mut time_batch = |queries: &[u64]| {
            let out = &mut out[..queries.len()];
            let once = || built.batch(black_box(queries), black_box(&mut *out));
            built.has_batch().then(|| least_nanos(REPETITIONS, queries.len(), once))
        };
        self.samples.push(Sample {
            bits: made.bits as f64,
            peak: memory.peak_with(made.bits / 8) as f64 * 8.0,
            build: time.as_secs_f64() * 1e3,
            build_twice,
            members: time_loop(&members),
            negatives: time_loop(&negatives),
            strangers: time_loop(strangers),
            mixed: time_loop(&mixed),
            members_batch: time_batch(&members),
            negatives_batch: time_batch(&negatives),
        });
    }

    fn finish(&mut self) {
        self.median = Sample::median(self.samples.iter());
        if self.median.is_some() {
            self.rate = (self.strangers.1 > 0).then(|| self.strangers.0 as f64 / self.strangers.1 as f64);
            self.passed = Some(self.passed_sum as f64 / self.samples.len() as f64);
        }
    }
}

/// Runs all structures, interleaved, on fresh keys every round.
pub fn compare(
    all: &[impl Borrow<Listed>],
    timing: &Timing,
    stream: &mut Stream,
    mut lists: impl FnMut(&mut Stream) -> (Vec<u64>, Vec<u64>),
    strangers: usize,
) -> Vec<Row> {
    let mut rows: Vec<Row> =
        all.iter().map(|listed| Row { name: listed.borrow().name.clone(), ..Row::default() }).collect();
    for round in 0..timing.rounds {
        let (keys, negatives) = lists(stream);
        let strangers = stream.take(strangers);
        let draw = Draw { keys: &keys, negatives: &negatives, strangers: &strangers, queries: timing.queries };
        for i in turns(all.len(), round) {
            let (listed, n) = (all[i].borrow(), negatives.len());
            progress(format_args!("{} keys, {n} negatives, round {}: {}", keys.len(), round + 1, listed.name));
            rows[i].round(listed, &draw, stream);
        }
    }
    progress("");
    rows.iter_mut().for_each(Row::finish);
    rows
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::HashSet;

    fn timing(rounds: usize) -> Timing {
        Timing { rounds, queries: 50, seed: 1 }
    }

    /// An exact set of keys that loses some and takes some negatives for keys.
    fn set(name: &str, lost: usize, added: usize) -> Listed {
        Listed::new(name, move |keys, negatives| {
            let set: HashSet<u64> = keys.iter().skip(lost).chain(negatives.iter().take(added)).copied().collect();
            Ok(Made::new(Built::new(set, |set, key| set.contains(&key)), 64 * keys.len()))
        })
    }

    #[test]
    fn wrong_answers_are_counted() {
        let broken = Listed::new("broken", |_, _| Err("no luck".into()));
        let all = [set("right", 0, 0), set("wrong", 3, 5), set("plain", 0, 7).plain(), broken];
        let rows = compare(&all, &timing(2), &mut Stream::new(1), |s| (s.take(100), s.take(200)), 1000);
        assert!(rows[0].is_clean() && !rows[1].is_clean());
        assert_eq!((rows[0].median.as_ref().unwrap().bits, rows[0].rate), (6400.0, Some(0.0)));
        assert_eq!(rows[1].wrong.describe(), "6 keys refused, 10 negatives passed");
        assert_eq!((rows[2].wrong.describe(), rows[2].passed), (String::new(), Some(7.0)));
        assert!(rows[3].median.is_none() && rows[3].wrong.describe() == "no luck, no luck");
    }

    /// A share may pass and not more; two threads are timed where they are asked for.
    #[test]
    fn shares_and_threads() {
        let all = [set("within", 0, 20).allowing(0.1).twice(), set("beyond", 0, 21).allowing(0.1)];
        let rows = compare(&all, &timing(1), &mut Stream::new(1), |s| (s.take(100), s.take(200)), 0);
        assert_eq!((rows[0].wrong.describe(), rows[0].passed), (String::new(), Some(20.0)));
        assert_eq!(rows[1].wrong.describe(), "21 negatives passed");
        let twice = |row: &Row| row.median.as_ref().unwrap().build_twice.is_some();
        assert!(twice(&rows[0]) && !twice(&rows[1]));
        let small = set("small", 0, 0).at_most(300);
        assert!(small.takes(300) && !small.takes(301));
    }

    #[test]
    fn empty_lists_are_measured() {
        let rows = compare(&[set("right", 0, 0)], &timing(1), &mut Stream::new(1), |_| (vec![], vec![]), 0);
        assert!(rows[0].is_clean() && rows[0].rate.is_none());
    }
}
