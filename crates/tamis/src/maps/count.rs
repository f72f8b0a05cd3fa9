//! values as they come -> numbers for them; sorted pairs -> how many keys, and how often each value occurs.

use std::collections::HashMap;

use super::table::MOST;
use super::value::Value;
use crate::error::BuildError;
use crate::hash::Domain;
use crate::math::portable::log2;
use crate::shard::{Paired, Sorted, Stop, walk};

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
    pub(super) fn number(&mut self, value: Value<'_>) -> Result<u64, BuildError> {
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
                None if list.len() as u64 >= MOST => {
                    Err(BuildError::Value { reason: format!("more than {MOST} different values that are no numbers") })
                }
                None => {
                    numbers.insert(bytes.into(), list.len() as u64);
                    list.push(bytes.into());
                    Ok(list.len() as u64 - 1)
                }
            },
            _ => Err(BuildError::Value {
                reason: "some values are numbers and some are bytes; a map holds one kind".into(),
            }),
        }
    }

    /// The value with a number.
    pub(super) fn value(&self, number: u64) -> Value<'_> {
        match self {
            Values::Bytes { list, .. } => Value::Bytes(list.get(number as usize).map_or(&[], |bytes| bytes)),
            _ => Value::Number(number),
        }
    }

    pub(super) fn domain(&self) -> Domain {
        match self {
            Values::Bytes { .. } => Domain::Bytes,
            _ => Domain::U64,
        }
    }
}

/// What the pairs add up to.
#[derive(Debug)]
pub(super) struct Census {
    pub(super) keys: u64,
    /// Values in ascending order with their counts, unless there are too many.
    pub(super) counts: Option<Vec<(u64, u64)>>,
    /// The least and the greatest value.
    pub(super) least: u64,
    pub(super) most: u64,
}

/// A conflict is reported with at most this many examples.
const EXAMPLES: usize = 8;

impl Census {
    pub(super) fn new(pairs: &Sorted<Paired>, values: &Values, stop: Stop<'_>) -> Result<Census, BuildError> {
        let mut tally = Tally::default();
        let (mut keys, mut least, mut most) = (0, u64::MAX, 0);
        let (mut torn, mut first) = (0u64, vec![]);
        walk(pairs, None, stop, |pairs| {
            keys += pairs.len() as u64;
            for pair in pairs {
                least = least.min(pair.value);
                most = most.max(pair.value);
                tally.add(pair.value);
                if pair.rival != Paired::NONE {
                    torn += 1;
                    first.push((pair.ordinal, pair.rival));
                    if first.len() >= 1024 {
                        trim(&mut first);
                    }
                }
            }
            Ok::<(), BuildError>(())
        })?;
        if torn > 0 {
            trim(&mut first);
            return Err(BuildError::TwoValues { count: torn, first });
        }
        let mut counts = tally.finish();
        if let Some(counts) = &mut counts {
            counts.sort_by(|a, b| values.value(a.0).cmp(&values.value(b.0)));
        }
        Ok(Census { keys, counts, least: least.min(most), most })
    }

    /// What the values say about themselves, in bits, all keys together.
    pub(super) fn entropy(&self) -> Option<f64> {
        let each = |&(_, count): &(u64, u64)| count as f64 * log2(self.keys as f64 / count as f64);
        self.counts.as_ref().map(|counts| counts.iter().map(each).sum())
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
const SMALL: u64 = 1 << 22;

impl Tally {
    fn add(&mut self, value: u64) {
        if self.distinct > MOST {
            return;
        }
        let count = match value {
            ..SMALL => {
                if value as usize >= self.small.len() {
                    self.small.resize((value as usize + 1).next_power_of_two(), 0);
                }
                &mut self.small[value as usize]
            }
            _ => self.large.entry(value).or_insert(0),
        };
        self.distinct += (*count == 0) as u64;
        *count += 1;
    }

    fn finish(self) -> Option<Vec<(u64, u64)>> {
        if self.distinct > MOST {
            return None;
        }
        let small = (0..).zip(self.small).filter(|&(_, count)| count > 0);
        Some(small.chain(self.large).collect())
    }
}
