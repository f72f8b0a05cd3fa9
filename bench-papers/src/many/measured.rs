//! indexes and queries -> lost pairs, false sets, times.

use std::hint::black_box;
use std::ops::Range;

use tamis_bench::measure;

use super::{Index, Load};

/// What the answers to known queries are worth.
#[derive(Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) keys: u64,
    pub(crate) pairs: u64,
    /// Pairs that were not in the answer: must be 0.
    pub(crate) lost: u64,
    /// Sets in an answer that do not hold the key.
    pub(crate) false_sets: u64,
    /// Whether all answers were ascending and without repetition.
    pub(crate) ascending: bool,
}

impl Tally {
    const NONE: Tally = Tally { keys: 0, pairs: 0, lost: 0, false_sets: 0, ascending: true };

    fn add(&mut self, answer: &[u32], truth: &[u32]) {
        let held = truth.iter().filter(|set| answer.contains(set)).count() as u64;
        self.keys += 1;
        self.pairs += truth.len() as u64;
        self.lost += truth.len() as u64 - held;
        self.false_sets += answer.len() as u64 - held;
        self.ascending &= answer.is_sorted_by(|a, b| a < b);
    }

    /// False sets of a key, on average.
    pub(crate) fn false_each(&self) -> f64 {
        self.false_sets as f64 / self.keys.max(1) as f64
    }
}

/// Asks for every key of the load.
pub(crate) fn check(index: &dyn Index, load: &Load) -> Tally {
    check_range(index, load, 0..load.keys.len())
}

/// Asks for the keys with these numbers, in a batch.
pub(crate) fn check_range(index: &dyn Index, load: &Load, range: Range<usize>) -> Tally {
    let mut tally = Tally::NONE;
    let mut numbers = range.clone();
    index.find_many(&load.keys[range], &mut |answer| {
        if let Some(i) = numbers.next() {
            tally.add(answer, load.sets_of(i));
        }
    });
    tally
}

/// Keys of the range whose answer alone differs from that in a batch: must be none.
pub(crate) fn differ(index: &dyn Index, load: &Load, range: Range<usize>) -> u64 {
    let mut answer = Vec::new();
    let (mut differ, mut numbers) = (0, range.clone());
    index.find_many(&load.keys[range], &mut |batch| {
        if let Some(i) = numbers.next() {
            index.find(load.keys[i], &mut answer);
            differ += u64::from(answer != batch);
        }
    });
    differ
}

/// False sets of an absent key, on average.
pub(crate) fn absent(index: &dyn Index, keys: &[u64]) -> f64 {
    let mut sets = 0;
    index.find_many(keys, &mut |answer| sets += answer.len());
    sets as f64 / keys.len() as f64
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum How {
    Alone,
    Batch,
}

/// Nanoseconds for a query of each list of keys by each index: medians over the rounds, in each of which every index has
/// its turn.
pub(crate) fn times(indexes: &[&dyn Index], queries: &[&[u64]], how: How, rounds: usize) -> Vec<Vec<f64>> {
    let mut samples = vec![vec![Vec::with_capacity(rounds); queries.len()]; indexes.len()];
    let mut answer = Vec::new();
    // A first round warms up and is not counted.
    for round in 0..=rounds {
        for (q, keys) in queries.iter().enumerate() {
            for (i, index) in indexes.iter().enumerate() {
                let (sum, time) = measure::cpu(|| ask(*index, keys, how, &mut answer));
                black_box(sum);
                if round > 0 {
                    samples[i][q].push(measure::nanos_each(time, keys.len().max(1)));
                }
            }
        }
    }
    let medians = |of_index: Vec<Vec<f64>>| of_index.into_iter().map(|s| measure::median(s).unwrap_or(0.0)).collect();
    samples.into_iter().map(medians).collect()
}

/// All answers, folded to a number that no query may be left out of.
fn ask(index: &dyn Index, keys: &[u64], how: How, answer: &mut Vec<u32>) -> u64 {
    let fold = |sum: u64, answer: &[u32]| answer.iter().fold(sum, |sum, &set| sum.rotate_left(5) ^ u64::from(set));
    let mut sum = 0;
    match how {
        How::Batch => index.find_many(keys, &mut |answer| sum = fold(sum, answer)),
        How::Alone => {
            for &key in keys {
                index.find(key, answer);
                sum = fold(sum, answer);
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_bench::stream::Stream;

    /// Answers set 0 and the key's own number of sets, one too few from key 3 on.
    struct Wrong;
    impl Index for Wrong {
        fn bits(&self) -> u64 {
            0
        }
        fn find(&self, key: u64, sets: &mut Vec<u32>) {
            sets.clear();
            sets.extend(0..if key < 3 { key as u32 + 1 } else { 2 });
        }
    }

    #[test]
    fn lost_and_false_sets_are_counted() {
        let pairs = [(0, 1), (1, 0), (1, 1), (2, 2), (3, 1), (3, 3)];
        let load = Load::new("x", 4, vec![0, 1, 2, 3], pairs.into_iter(), Stream::new(1));
        let tally = check(&Wrong, &load);
        // Key 0: {0} for {1}; 1: right; 2: {0, 1, 2} for {2}; 3: {0, 1} for {1, 3}.
        assert_eq!((tally.keys, tally.pairs, tally.lost, tally.false_sets), (4, 6, 2, 4));
        assert_eq!(check_range(&Wrong, &load, 1..2).false_sets, 0);
        assert_eq!(absent(&Wrong, &[0, 1]), 1.5);
        assert_eq!(differ(&Wrong, &load, 0..4), 0);
        assert!(times(&[&Wrong], &[&[1, 2, 3]], How::Alone, 3)[0][0] > 0.0);
    }
}
