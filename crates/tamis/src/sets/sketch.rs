//! sorted pairs + a shape -> a segment that is a sketch: a filter in front, heavy keys aside, all others in the table.

use super::csc_bloom::CscBloom;
use super::csc_cuckoo::CscCuckoo;
use super::pairs::each_key;
use super::segment::{Body, Content, EXISTENCE_SALT, Numbers, Segment, Sketch, with_body};
use super::side::Side;
use super::tune::{self, SetSizes, Shape};
use super::words::Words;
use crate::error::{BuildError, Error};
use crate::gather::Keys;
use crate::hash::Digest;
use crate::hash::attempts::number;
use crate::leaves::Geometry;
use crate::leaves::bloom::{SplitBlock, split, zeros};
use crate::parallel::Stop;

/// Keys that go into the filter at a time.
const EXISTENCE_BATCH: usize = 1024;
/// How often a cuckoo table may turn out too small.
const MAX_ATTEMPTS: u32 = 12;

impl Sketch {
    /// An empty one for so many sets and keys.
    pub(super) fn empty(shape: &Shape, counting: bool, sets: u32, keys: u64) -> Result<Sketch, BuildError> {
        let body = match shape.body {
            tune::Body::Bloom { words, hashes, repetitions, partitions } => {
                Body::Bloom(CscBloom::new(words, hashes, repetitions, partitions, counting)?)
            }
            tune::Body::Cuckoo { buckets, bits, repetitions, partitions } => {
                Body::Cuckoo(CscCuckoo::new(buckets, bits, repetitions, partitions, counting)?)
            }
        };
        let existence = match shape.existence.filter(|&rate| rate < 1.0) {
            None => None,
            Some(rate) => {
                let filter = SplitBlock::new(&split::Params::for_rate(keys.max(1), rate)?, 0, EXISTENCE_SALT)?;
                Some((filter, empty(filter.payload_len())?))
            }
        };
        let words = empty(with_body!(&body, body => body.payload_len()))?;
        let groups = with_body!(&body, body => body.repeats).groups(sets, u64::MAX);
        Ok(Sketch { body, groups, existence, heavy: Side::default(), extra: Side::default(), words })
    }

    /// Puts a pair into the table, or next to it where that is full; false if it is listed there already.
    pub(super) fn add(&mut self, key: Digest, set: u32, times: u8) -> bool {
        let Sketch { body, groups, words, extra, .. } = self;
        let full = match body {
            Body::Bloom(body) => {
                body.add(words.change(), groups, key, set, times);
                false
            }
            Body::Cuckoo(body) => body.add(words.change(), groups, key, set, times).is_err(),
        };
        !full || list(extra, key, set)
    }

    /// Makes keys known to the filter in front.
    pub(super) fn insert_existence(&mut self, keys: &[Digest]) {
        if let Some((filter, payload)) = &mut self.existence {
            filter.insert_many(payload.change(), keys);
        }
    }
}

/// Adds a set to the list of a key; false if it is there already.
pub(super) fn list(side: &mut Side, key: Digest, set: u32) -> bool {
    let ids = side.open().entry(key).or_default();
    let found = ids.binary_search(&set);
    if let Err(at) = found {
        ids.insert(at, set);
    }
    found.is_err()
}

fn empty(len: u64) -> Result<Words, BuildError> {
    let mut bytes = vec![];
    zeros(&mut bytes, len)?;
    Ok(Words::Own(bytes))
}

/// Builds the segment. A cuckoo table in which more than a few pairs find no place gets salts that follow from all pairs, for keys may
/// have been chosen for those that everybody knows; if that does not help it is made larger.
pub(super) fn build(
    pairs: &Keys,
    sizes: &SetSizes,
    mut shape: Shape,
    capacity: u64,
    counting: bool,
    stop: Stop<'_>,
) -> Result<Segment, Error> {
    let few = 8 + sizes.keys() / 1000;
    let (mut attempts, mut salt) = (0, 0);
    loop {
        let segment = fill(pairs, sizes, &shape, salt, capacity, counting, stop)?;
        attempts += 1;
        match (&segment.content, &mut shape.body) {
            (Content::Sketch(sketch), tune::Body::Cuckoo { buckets, .. })
                if sketch.extra.len() as u64 > few && attempts <= MAX_ATTEMPTS =>
            {
                match salt {
                    0 => salt = number(pairs.set_hash(stop)?, 1) as u32,
                    _ => *buckets += (*buckets / 25).max(1),
                }
            }
            _ => return Ok(segment),
        }
    }
}

fn fill(
    pairs: &Keys,
    sizes: &SetSizes,
    shape: &Shape,
    salt: u32,
    capacity: u64,
    counting: bool,
    stop: Stop<'_>,
) -> Result<Segment, Error> {
    let keys = sizes.keys();
    // A table that will grow holds as many more keys as pairs.
    let expected = (keys as f64 * (capacity as f64 / sizes.pairs().max(1) as f64).max(1.0)) as u64;
    let mut sketch = Sketch::empty(shape, counting, sizes.sets, expected)?;
    if let Body::Cuckoo(body) = &mut sketch.body {
        body.number = salt;
    }
    let mut queue = Queue::default();
    let mut names = Vec::with_capacity(EXISTENCE_BATCH);
    let most = shape.heavy.map_or(usize::MAX, |most| most as usize);
    each_key(pairs, stop, &mut |key, sets, times| {
        if sketch.existence.is_some() {
            names.push(key);
            if names.len() == EXISTENCE_BATCH {
                sketch.insert_existence(&names);
                names.clear();
            }
        }
        if sets.len() > most {
            sketch.heavy.open().insert(key, sets.to_vec());
        } else if counting {
            for (&set, &times) in sets.iter().zip(times) {
                sketch.add(key, set, times.min(u64::from(u8::MAX)) as u8);
            }
        } else {
            queue.push(&mut sketch, key, sets);
        }
        Ok(())
    })?;
    queue.flush(&mut sketch);
    sketch.insert_existence(&names);
    if let Some((filter, _)) = &mut sketch.existence {
        *filter = filter.holding(keys);
    }
    let numbers = Numbers::Same(sizes.sets);
    Ok(Segment { keys, pairs: sizes.pairs(), capacity, numbers, content: Content::Sketch(sketch) })
}

/// Keys that wait for the cache lines of their pairs.
#[derive(Default)]
struct Queue {
    keys: Vec<(Digest, usize)>,
    sets: Vec<u32>,
}

const QUEUE_KEYS: usize = 16;

impl Queue {
    fn push(&mut self, sketch: &mut Sketch, key: Digest, sets: &[u32]) {
        if self.keys.len() == QUEUE_KEYS {
            self.flush(sketch);
        }
        self.sets.extend_from_slice(sets);
        self.keys.push((key, self.sets.len()));
        with_body!(&sketch.body, body => body.prefetch_list(&sketch.words, &sketch.groups, key, sets));
    }

    fn flush(&mut self, sketch: &mut Sketch) {
        let mut start = 0;
        for &(key, end) in &self.keys {
            let sets = &self.sets[start..end];
            start = end;
            let Sketch { body, groups, words, .. } = &mut *sketch;
            let full = match body {
                Body::Bloom(body) => {
                    body.insert_list(words.change(), groups, key, sets);
                    false
                }
                Body::Cuckoo(body) => body.insert_list(words.change(), groups, key, sets).is_err(),
            };
            // As many as fit, and the others aside.
            if full {
                for &set in sets {
                    sketch.add(key, set, 1);
                }
            }
        }
        self.keys.clear();
        self.sets.clear();
    }
}
