//! the library -> indexes of many sets, as something to measure.

use std::error::Error;

use tamis::Sets;
use tamis::internals::tune::{Body, Shape};
use tamis::sets::{self, Collector, Editor, Kind, Report, SetsBuilder};

use crate::many::{Built, Index, Load};

/// How full a cuckoo table is planned to be.
const FILL: f64 = 0.95;

/// An index and what its tables take: the names of sets, which rivals do not keep, are left out.
pub(crate) struct Ours {
    pub(crate) sets: Sets,
    tables: u64,
}

impl Ours {
    fn new(sets: Sets) -> Ours {
        let tables = sets.segments().flat_map(|segment| segment.parts).map(|(_, bytes)| 8 * bytes).sum();
        Ours { sets, tables }
    }

    /// What its parts take, in bits for each of `n` things.
    pub(crate) fn parts(&self, n: usize) -> String {
        let parts = self.sets.segments().flat_map(|segment| segment.parts);
        let each = |(name, bytes): (&str, u64)| format!("{name} {:.2}", 8.0 * bytes as f64 / n as f64);
        parts.map(each).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn file_bits(&self) -> u64 {
        8 * self.sets.as_bytes().len() as u64
    }
}

impl Index for Ours {
    fn bits(&self) -> u64 {
        self.tables
    }

    fn find(&self, key: u64, sets: &mut Vec<u32>) {
        if self.sets.find_into(key, sets).is_err() {
            // Nothing was found: the pairs of this key will be counted as lost.
            sets.clear();
        }
    }

    fn find_many(&self, keys: &[u64], each: &mut dyn FnMut(&[u32])) {
        let _ = self.sets.find_many(keys, |_, ids| each(ids));
    }
}

/// Declares the sets of a load, which get their own numbers, and pushes all its pairs.
fn push(load: &Load, build: SetsBuilder<'static, ()>) -> Result<Collector<'static>, Box<dyn Error>> {
    let mut collector = named(load, build)?;
    for (key, sets) in load.entries() {
        for &set in sets {
            collector.push(key, set)?;
        }
    }
    Ok(collector)
}

fn named(load: &Load, build: SetsBuilder<'static, ()>) -> Result<Collector<'static>, Box<dyn Error>> {
    let mut collector = build.start();
    for set in 0..load.sets {
        collector.set(&set.to_string())?;
    }
    Ok(collector)
}

/// Builds an index of a load, and says how it came out.
pub(crate) fn build(load: &Load, build: SetsBuilder<'static, ()>) -> Result<(Ours, Report), Box<dyn Error>> {
    let (sets, report) = push(load, build)?.finish_with_report()?;
    Ok((Ours::new(sets), report))
}

fn boxed(load: &Load, how: SetsBuilder<'static, ()>) -> Built {
    Ok(Box::new(build(load, how)?.0))
}

/// Rows of bits in a table of `bits`: `hashes` for each of `repetitions`, with so many partitions.
pub(crate) fn bloom_shape(bits: u64, hashes: u32, repetitions: u32, partitions: usize) -> Shape {
    let words = (bits / 64 / u64::from(repetitions)).max(1);
    let partitions = if repetitions < 2 { 0 } else { partitions.max(1) as u32 };
    Shape { body: Body::Bloom { words, hashes, repetitions, partitions }, existence: None, heavy: None }
}

/// CSC-BF by hand, with nothing in front and nothing aside: the paper's.
pub(crate) fn bloom(load: &Load, bits: u64, hashes: u32, repetitions: u32, partitions: usize) -> Built {
    boxed(load, sets::stream().kind(Kind::Bloom).shape(bloom_shape(bits, hashes, repetitions, partitions)))
}

/// Buckets for all pairs, and the bits that a slot may have.
fn slots(load: &Load, bits: u64, repetitions: u32) -> (u64, u64) {
    let buckets = (load.pairs() as f64 / 4.0 / FILL) as u64 + 1;
    (buckets, bits / (4 * buckets * u64::from(repetitions)))
}

/// Whether the narrowest slots fit.
pub(crate) fn cuckoo_fits(load: &Load, bits: u64, repetitions: u32) -> bool {
    slots(load, bits, repetitions).1 >= 4
}

/// The widest fingerprint that fits `bits`, and its bits.
pub(crate) fn cuckoo_shape(load: &Load, bits: u64, repetitions: u32, partitions: usize) -> Shape {
    let (buckets, width) = slots(load, bits, repetitions);
    let width = width.clamp(4, 32) as u32;
    let partitions = if repetitions < 2 { 0 } else { partitions.max(1) as u32 };
    Shape { body: Body::Cuckoo { buckets, bits: width, repetitions, partitions }, existence: None, heavy: None }
}

/// The same with twice as many buckets: what an insertion takes before pairs must move.
pub(crate) fn half_full(shape: Shape) -> Shape {
    let body = match shape.body {
        Body::Cuckoo { buckets, bits, repetitions, partitions } => {
            Body::Cuckoo { buckets: 2 * buckets, bits, repetitions, partitions }
        }
        body @ Body::Bloom { .. } => body,
    };
    Shape { body, ..shape }
}

pub(crate) fn cuckoo(load: &Load, bits: u64, repetitions: u32, partitions: usize) -> Built {
    boxed(load, sets::stream().kind(Kind::Cuckoo).shape(cuckoo_shape(load, bits, repetitions, partitions)))
}

/// What the library chooses in this space.
pub(crate) fn tuned(load: &Load, bits: u64) -> Built {
    let per_pair = bits as f64 / load.pairs().max(1) as f64;
    boxed(load, sets::stream().kind(Kind::Bloom).bits_per_pair(per_pair))
}

/// Lists by colour, with so many false sets for an absent key.
pub(crate) fn frozen(load: &Load, absent: f64) -> Built {
    boxed(load, sets::stream().kind(Kind::Frozen).false_sets(absent))
}

/// An empty table of this shape that all pairs of the load are then inserted into, one by one.
pub(crate) fn insert_all(load: &Load, shape: Shape) -> Result<Inserted<'_>, Box<dyn Error>> {
    let mut empty = named(load, sets::stream().shape(shape).capacity(load.pairs() as u64))?;
    // A key of an empty index has no key type yet: the first pair gives it one.
    if let Some((key, sets)) = load.entries().next() {
        sets.first().map_or(Ok(()), |&set| empty.push(key, set))?;
    }
    Ok(Inserted { editor: Editor::new(&empty.finish()?)?, load })
}

pub(crate) struct Inserted<'a> {
    editor: Editor,
    load: &'a Load,
}

impl Inserted<'_> {
    /// Inserts everything, one pair after the other.
    pub(crate) fn alone(&mut self) -> Result<(), tamis::Error> {
        for (key, sets) in self.load.entries() {
            for &set in sets {
                self.editor.insert(key, set)?;
            }
        }
        Ok(())
    }

    /// Inserts everything, so many pairs in a call.
    pub(crate) fn in_batches(&mut self, batch: usize) -> Result<(), tamis::Error> {
        let mut pairs = Vec::with_capacity(batch);
        for (key, sets) in self.load.entries() {
            for &set in sets {
                pairs.push((key, set));
                if pairs.len() == batch {
                    self.editor.insert_many(&pairs)?;
                    pairs.clear();
                }
            }
        }
        self.editor.insert_many(&pairs)
    }
}
