//! values as they come -> numbers for them; sorted pairs -> how many keys, and how often each value occurs.

use std::collections::HashMap;

use super::table::MAX_VALUES;
use super::value::Value;
use crate::error::{BuildError, ValueError};
use crate::gather::{Paired, Sorted, walk};
use crate::hash::KeyType;
use crate::math::portable::log2;
use crate::parallel::{Stop, each};

/// The values of a map so far: numbers stand for themselves, bytes are numbered in the order of appearance.
#[derive(Debug, Default)]
pub(super) enum Values {
    #[default]
    None,
    Numbers,
    Bytes {
        numbers: HashMap<Box<[u8]>, u64>,
        list: Vec<Box<[u8]>>,
    },
}

impl Values {
    /// The number that stands for a value.
    pub(super) fn number(&mut self, value: Value<'_>) -> Result<u64, ValueError> {
        if let Values::None = self {
            *self = match value {
                Value::Number(_) => Values::Numbers,
                Value::Bytes(_) => Values::Bytes { numbers: HashMap::new(), list: vec![] },
            };
        }
        match (self, value) {
            (Values::Numbers, Value::Number(number)) => Ok(number),
            (Values::Bytes { numbers, list }, Value::Bytes(bytes)) => match numbers.get(bytes) {
                Some(&number) => Ok(number),
                None if list.len() as u64 >= MAX_VALUES => Err(ValueError::TooMany { most: MAX_VALUES }),
                None => {
                    numbers.insert(bytes.into(), list.len() as u64);
                    list.push(bytes.into());
                    Ok(list.len() as u64 - 1)
                }
            },
            (Values::None | Values::Numbers | Values::Bytes { .. }, _) => Err(ValueError::Mixed),
        }
    }

    pub(super) fn value(&self, number: u64) -> Value<'_> {
        match self {
            Values::Bytes { list, .. } => Value::Bytes(list.get(number as usize).map_or(&[], |bytes| bytes)),
            Values::None | Values::Numbers => Value::Number(number),
        }
    }

    pub(super) fn key_type(&self) -> KeyType {
        match self {
            Values::Bytes { .. } => KeyType::Bytes,
            Values::None | Values::Numbers => KeyType::Integer,
        }
    }
}

#[derive(Debug)]
pub(super) struct ValueCounts {
    pub(super) keys: u64,
    /// Values in ascending order with their counts, unless there are too many.
    pub(super) counts: Option<Vec<(u64, u64)>>,
    pub(super) least: u64,
    pub(super) most: u64,
}

/// A conflict is reported with at most this many examples.
const EXAMPLES: usize = 8;

impl ValueCounts {
    pub(super) fn new(
        pairs: &Sorted<Paired>,
        values: &Values,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<ValueCounts, BuildError> {
        let mut sum = Sum::default();
        match pairs.in_memory() {
            Some(all) => {
                // Each has a table of its own.
                let threads = threads.clamp(1, 8);
                let part = all.len().div_ceil(threads).max(1);
                let sums = each(all.chunks(part).collect(), threads, |pairs| {
                    let mut sum = Sum::default();
                    sum.add(pairs);
                    sum
                });
                sums.into_iter().for_each(|part| sum.merge(part));
            }
            None => walk(pairs, None, stop, &mut |pairs| {
                sum.add(pairs);
                Ok::<(), BuildError>(())
            })?,
        }
        let Sum { keys, least, most, conflicting_keys, mut first, tally } = sum;
        if conflicting_keys > 0 {
            trim(&mut first);
            return Err(BuildError::TwoValues { count: conflicting_keys, first });
        }
        let mut counts = tally.finish();
        if let Some(counts) = &mut counts {
            counts.sort_by(|a, b| values.value(a.0).cmp(&values.value(b.0)));
        }
        Ok(ValueCounts { keys, counts, least: least.min(most), most })
    }

    /// What the values say about themselves, in bits, all keys together.
    pub(super) fn entropy(&self) -> Option<f64> {
        let each = |&(_, count): &(u64, u64)| count as f64 * log2(self.keys as f64 / count as f64);
        self.counts.as_ref().map(|counts| counts.iter().map(each).sum())
    }
}

/// What some pairs add up to.
#[derive(Debug)]
struct Sum {
    keys: u64,
    least: u64,
    most: u64,
    /// Keys with two values, and the first of them.
    conflicting_keys: u64,
    first: Vec<(u64, u64)>,
    tally: Tally,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum { keys: 0, least: u64::MAX, most: 0, conflicting_keys: 0, first: vec![], tally: Tally::default() }
    }
}

impl Sum {
    fn add(&mut self, pairs: &[Paired]) {
        self.keys += pairs.len() as u64;
        for pair in pairs {
            self.least = self.least.min(pair.value);
            self.most = self.most.max(pair.value);
            self.tally.add(pair.value, 1);
            if pair.rival != Paired::NONE {
                self.conflicting_keys += 1;
                self.first.push((pair.ordinal, pair.rival));
                if self.first.len() >= 1024 {
                    trim(&mut self.first);
                }
            }
        }
    }

    fn merge(&mut self, other: Sum) {
        self.keys += other.keys;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.conflicting_keys += other.conflicting_keys;
        self.first.extend(other.first);
        match other.tally.finish() {
            Some(counts) => counts.into_iter().for_each(|(value, count)| self.tally.add(value, count)),
            None => self.tally.distinct = MAX_VALUES + 1,
        }
    }
}

fn trim(first: &mut Vec<(u64, u64)>) {
    first.sort_unstable();
    first.truncate(EXAMPLES);
}

/// Counts of values: small ones in a table, others in a map, until they are too many.
#[derive(Debug, Default)]
struct Tally {
    small: Vec<u64>,
    large: HashMap<u64, u64>,
    distinct: u64,
}

/// Values below are counted by their place.
const DENSE_VALUES: u64 = 1 << 22;

impl Tally {
    fn add(&mut self, value: u64, times: u64) {
        if self.distinct > MAX_VALUES {
            return;
        }
        let count = match value {
            ..DENSE_VALUES => {
                if value as usize >= self.small.len() {
                    self.small.resize((value as usize + 1).next_power_of_two(), 0);
                }
                &mut self.small[value as usize]
            }
            _ => self.large.entry(value).or_insert(0),
        };
        self.distinct += (*count == 0) as u64;
        *count += times;
    }

    fn finish(self) -> Option<Vec<(u64, u64)>> {
        if self.distinct > MAX_VALUES {
            return None;
        }
        let small = (0..).zip(self.small).filter(|&(_, count)| count > 0);
        Some(small.chain(self.large).collect())
    }
}
