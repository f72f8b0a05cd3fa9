//! how many keys are in how many sets -> sizes, hashes, repetitions: what a table of many sets should look like.
//!
//! A [`SetSizes`] says how many keys are in one set, in two, and so on. From it alone `math::csc` predicts how many false sets a
//! [`Shape`] will report, for unlisted keys and for keys that are there ([`predict`]), and [`tune`] searches the shapes for the smallest that
//! keeps two promises, or for the best in a given space.
//!
//! What the search finds, mostly. At the right number of hashes, bits do not depend on repetitions: \[CSC\] gains from three of them
//! because it keeps to three hashes. One table has the shortest query for some hundred sets, and no false sets by shared partitions;
//! repetitions shorten the rows of many thousand sets. An existence filter in front costs `1.44 log2(1/e)` bits per *key* and makes
//! unlisted keys rarer for all its pairs. A key in very many sets is cheaper as an exact list.
//!
//! ```
//! use tamis::internals::tune::{SetSizes, Options, Sketch, TuneGoal, tune};
//!
//! // A million keys in 256 sets: most in one, some in many.
//! let sizes = SetSizes { sets: 256, multiplicities: vec![(1, 600_000), (3, 300_000), (40, 100_000)] };
//! let found = tune(Sketch::Bloom, &sizes, TuneGoal::Targets { false_sets: 0.01, member_false_sets: 0.1 }, &Options::default())?;
//! assert!(found.false_sets <= 0.01 && found.member_false_sets <= 0.1);
//! # Ok::<(), tamis::BuildError>(())
//! ```

mod layout;
mod search;

use crate::error::BuildError;
use crate::math::bloom::{BLOCK_BITS, split_block_blocks};
use crate::math::csc::{Rows, bloom_column, log2_choose, misses, zeros};
use crate::math::cuckoo;

/// What a body is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sketch {
    /// Rows of bits, one per hash.
    Bloom,
    /// Runs of buckets of fingerprints; pairs can be taken out.
    Cuckoo,
}

/// How many keys are in how many sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetSizes {
    /// The number of sets.
    pub sets: u32,
    /// (v, how many keys are in exactly v sets), v from 1 on and ascending.
    pub multiplicities: Vec<(u32, u64)>,
}

impl SetSizes {
    /// The number of different keys.
    pub fn keys(&self) -> u64 {
        self.multiplicities.iter().fold(0, |sum, &(_, keys)| sum.saturating_add(keys))
    }

    /// The number of pairs (key, set).
    ///
    /// ```
    /// let sizes = tamis::internals::tune::SetSizes { sets: 9, multiplicities: vec![(1, 10), (9, 2)] };
    /// assert_eq!((sizes.keys(), sizes.pairs()), (12, 28));
    /// ```
    pub fn pairs(&self) -> u64 {
        self.multiplicities.iter().fold(0, |sum, &(v, keys)| sum.saturating_add(keys.saturating_mul(u64::from(v))))
    }

    fn check(&self) -> Result<(), BuildError> {
        let mut last = 0;
        for &(v, _) in &self.multiplicities {
            if v <= last || v > self.sets {
                return Err(BuildError::Census { sets: self.sets, multiplicity: v, last });
            }
            last = v;
        }
        Ok(())
    }

    fn groups(&self) -> Vec<Group> {
        self.multiplicities.iter().map(|&(v, keys)| Group { v: f64::from(v), keys: keys as f64 }).collect()
    }
}

/// Table that holds the pairs of a sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// Rows of bits.
    Bloom {
        /// Words of 64 bits in each repetition, 1 to 2^40; at least as many as a row has.
        words: u64,
        /// Hashes in each repetition, 1 to 32.
        hashes: u32,
        /// Tables, 1 to 8.
        repetitions: u32,
        /// Columns of a table; 0 where there is one table, which has a column for each set.
        partitions: u32,
    },
    /// Runs of buckets.
    Cuckoo {
        /// Buckets of four slots in each repetition, 1 to 2^40.
        buckets: u64,
        /// Bits of a slot, 4 to 32.
        bits: u32,
        /// Tables, 1 to 8.
        repetitions: u32,
        /// Columns of a table; 0 where there is one table, which has a column for each set.
        partitions: u32,
    },
}

impl Body {
    fn rows(&self, sets: u32) -> Rows {
        match *self {
            Body::Bloom { repetitions, partitions, .. } | Body::Cuckoo { repetitions, partitions, .. } => {
                Rows { sets, repetitions, partitions }
            }
        }
    }

    /// Bits that a counter adds to a cell: it takes the place of a bit, and stands next to a fingerprint.
    fn counter(&self) -> f64 {
        match self {
            Body::Bloom { .. } => COUNTER_BITS - 1.0,
            Body::Cuckoo { .. } => COUNTER_BITS,
        }
    }

    /// Bits of all repetitions, and how many cells or slots they are that can count.
    fn size(&self) -> (f64, f64) {
        match *self {
            Body::Bloom { words, repetitions, .. } => {
                let bits = words as f64 * 64.0 * f64::from(repetitions.max(1));
                (bits, bits)
            }
            Body::Cuckoo { buckets, bits, repetitions, .. } => {
                let slots = buckets as f64 * cuckoo::SLOTS as f64 * f64::from(repetitions.max(1));
                (slots * f64::from(bits), slots)
            }
        }
    }

    /// Cache lines of a query. Rows begin anywhere in a line.
    fn lines(&self, sets: u32) -> f64 {
        let columns = f64::from(self.rows(sets).columns());
        let run = |bits: f64, table: f64| (1.0 + (bits - 64.0).max(0.0) / 512.0).min((table / 512.0).ceil().max(1.0));
        match *self {
            Body::Bloom { words, hashes, repetitions, .. } => {
                let row = (columns / 64.0).ceil().max(1.0) * 64.0;
                f64::from(repetitions.max(1)) * f64::from(hashes) * run(row, words as f64 * 64.0)
            }
            Body::Cuckoo { buckets, bits, repetitions, .. } => {
                let bucket = cuckoo::SLOTS as f64 * f64::from(bits);
                f64::from(repetitions.max(1)) * 2.0 * run(columns * bucket, buckets as f64 * bucket)
            }
        }
    }
}

/// Parameters of a sketch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// The table of pairs.
    pub body: Body,
    /// False positive rate of the filter on all keys that is queried first, if there is one.
    pub existence: Option<f64>,
    /// Keys in more sets than this are listed exactly, outside the table.
    pub heavy: Option<u32>,
}

/// A shape and what is expected of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuned {
    /// The shape.
    pub shape: Shape,
    /// Bits of all parts.
    pub bits: f64,
    /// Expected false sets for a key that is in no set.
    pub false_sets: f64,
    /// Expected false sets for a key that is in some, averaged over all keys.
    pub member_false_sets: f64,
    /// Cache lines that a query reads for a key that the existence filter lets through, that filter included.
    pub lines: f64,
}

/// What a shape must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TuneGoal {
    /// The fewest bits with at most so many false sets.
    Targets {
        /// For a key that is in no set.
        false_sets: f64,
        /// For a key that is in some, on average.
        member_false_sets: f64,
    },
    /// The fewest false sets in so many bits per pair (key, set): for keys that are there first, then for unlisted keys. The space is at
    /// least 512 bits.
    BitsPerPair(f64),
}

/// What a search may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// An existence filter: yes, no, or where it pays. In a given space it is made where unlisted keys would else get more false sets than with the paper's settings.
    pub existence: Option<bool>,
    /// Keys in more sets than this go to the side table; without a limit the search finds one. `Some(u32::MAX)`: none go.
    pub heavy: Option<u32>,
    /// A byte for a count in the place of every bit of a Bloom table, next to every slot of a cuckoo table.
    pub counting: bool,
    /// The most repetitions, 1 to 4.
    pub repetitions: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { existence: None, heavy: None, counting: false, repetitions: 4 }
    }
}

const COUNTER_BITS: f64 = 8.0;
/// Bits of a heavy key in the side table: 96 of its digest, and where its list is; its list is rounded up, too.
const HEAVY_KEY_BITS: f64 = 112.0 + 8.0;

/// Keys of one multiplicity, or of a few that are put together under their mean.
#[derive(Debug, Clone, Copy)]
struct Group {
    v: f64,
    keys: f64,
}

fn side_bits(groups: &[Group], sets: u32, heavy: Option<u32>) -> f64 {
    let Some(limit) = heavy else { return 0.0 };
    let heavy = groups.iter().filter(|g| g.v > f64::from(limit));
    heavy.map(|g| g.keys * (HEAVY_KEY_BITS + log2_choose(f64::from(sets), g.v))).sum()
}

fn existence_bits(keys: f64, rate: f64) -> f64 {
    split_block_blocks(keys as u64, rate).map_or(f64::INFINITY, |blocks| blocks as f64 * BLOCK_BITS as f64)
}

/// A body that holds its pairs: what columns it reports.
struct Filled<'a> {
    body: &'a Body,
    rows: Rows,
    /// The share of zeros, or of fingerprints that meet none.
    free: f64,
    limit: f64,
}

impl<'a> Filled<'a> {
    fn new(body: &'a Body, sets: u32, heavy: Option<u32>, groups: &[Group]) -> Filled<'a> {
        let rows = body.rows(sets);
        let limit = heavy.map_or(f64::INFINITY, f64::from);
        let light = groups.iter().filter(|g| g.v <= limit).map(|g| (rows.offsets(g.v), g.keys));
        let free = match *body {
            Body::Bloom { words, hashes, .. } => zeros(words as f64 * 64.0, hashes, light),
            Body::Cuckoo { buckets, bits, .. } => misses(buckets as f64, bits, light),
        };
        Filled { body, rows, free, limit }
    }

    /// Expected false sets for a key of `v` sets that reaches the body.
    fn false_sets(&self, v: f64) -> f64 {
        if v > self.limit {
            return 0.0;
        }
        let d = self.rows.offsets(v);
        let column = match *self.body {
            Body::Bloom { words, hashes, .. } => bloom_column(words as f64 * 64.0, hashes, self.free, d),
            Body::Cuckoo { .. } => 1.0 - self.free,
        };
        self.rows.false_sets(v, column)
    }

    fn present(&self, groups: &[Group]) -> f64 {
        let (sum, keys) =
            groups.iter().fold((0.0, 0.0), |(sum, keys), g| (sum + g.keys * self.false_sets(g.v), keys + g.keys));
        if keys > 0.0 { sum / keys } else { 0.0 }
    }
}

/// What a shape will do with keys of these sizes. Counters are not in its bits: see [`counters`].
///
/// ```
/// use tamis::internals::tune::{Body, SetSizes, Shape, predict};
///
/// let sizes = SetSizes { sets: 100, multiplicities: vec![(1, 50_000), (5, 10_000)] };
/// let body = Body::Bloom { words: 20_000, hashes: 8, repetitions: 1, partitions: 0 };
/// let expected = predict(&sizes, &Shape { body, existence: None, heavy: None });
/// assert!(expected.false_sets > 0.1 && expected.false_sets < 0.3);
/// assert!(expected.member_false_sets < expected.false_sets); // a set that holds the key cannot be false
/// ```
pub fn predict(sizes: &SetSizes, shape: &Shape) -> Tuned {
    expect(&sizes.groups(), sizes.sets, shape)
}

fn expect(groups: &[Group], sets: u32, shape: &Shape) -> Tuned {
    let keys: f64 = groups.iter().map(|g| g.keys).sum();
    let filled = Filled::new(&shape.body, sets, shape.heavy, groups);
    let side = side_bits(groups, sets, shape.heavy);
    let mut bits = shape.body.size().0 + side;
    let mut false_sets = filled.false_sets(0.0);
    let mut lines = shape.body.lines(sets);
    if let Some(rate) = shape.existence {
        bits += existence_bits(keys, rate);
        false_sets *= rate.clamp(0.0, 1.0);
        lines += 1.0;
    }
    if side > 0.0 {
        lines += 1.0;
    }
    Tuned { shape: *shape, bits, false_sets, member_false_sets: filled.present(groups), lines }
}

/// The expected false sets for a key that is in `v` sets.
///
/// ```
/// use tamis::internals::tune::{Body, SetSizes, Shape, present_at};
///
/// // Two sets of one partition cannot be told apart: with few partitions a key of many sets seems to be in all of them.
/// let sizes = SetSizes { sets: 1000, multiplicities: vec![(1, 10_000), (100, 100)] };
/// let body = Body::Bloom { words: 20_000, hashes: 3, repetitions: 3, partitions: 100 };
/// let shape = Shape { body, existence: None, heavy: None };
/// assert!(present_at(&sizes, &shape, 1) < 0.1);
/// assert!(present_at(&sizes, &shape, 100) > 200.0);
/// ```
pub fn present_at(sizes: &SetSizes, shape: &Shape, v: u32) -> f64 {
    Filled::new(&shape.body, sizes.sets, shape.heavy, &sizes.groups()).false_sets(f64::from(v))
}

/// The bits that counters add: a byte in the place of each bit of a Bloom table, next to each slot of a cuckoo table.
pub fn counters(shape: &Shape) -> f64 {
    shape.body.size().1 * shape.body.counter()
}

/// The paper's settings (\[CSC\], section 6.3) in so many bits per pair: three hashes, three repetitions, a partition for every ten
/// sets; for fewer than 20 sets one table.
///
/// ```
/// use tamis::internals::tune::{Body, SetSizes, paper};
///
/// let sizes = SetSizes { sets: 500, multiplicities: vec![(1, 30_000)] };
/// let body = Body::Bloom { words: 2_500, hashes: 3, repetitions: 3, partitions: 50 };
/// assert_eq!(paper(&sizes, 16.0).body, body);
/// ```
pub fn paper(sizes: &SetSizes, bits_per_pair: f64) -> Shape {
    let (repetitions, partitions) = if sizes.sets < 20 { (1, 0) } else { (3, sizes.sets / 10) };
    let columns = if repetitions == 1 { sizes.sets } else { partitions };
    let words = bits_per_pair * sizes.pairs() as f64 / 64.0 / f64::from(repetitions);
    // A negative number, or none at all, becomes 0 here.
    let words = (words as u64).clamp(row_words(columns), search::MAX_WORDS);
    Shape { body: Body::Bloom { words, hashes: 3, repetitions, partitions }, existence: None, heavy: None }
}

fn row_words(columns: u32) -> u64 {
    u64::from(columns.div_ceil(64)).max(1)
}

/// The shape that fulfils a goal best. Of shapes within three percent of the fewest bits, or five of the fewest false sets, it is the
/// one with the cheapest query.
///
/// ```
/// use tamis::internals::tune::{SetSizes, Options, Sketch, TuneGoal, paper, predict, tune};
///
/// let sizes = SetSizes { sets: 2456, multiplicities: vec![(1, 200_000), (4, 300_000), (9, 200_000)] };
/// let ours = tune(Sketch::Bloom, &sizes, TuneGoal::BitsPerPair(16.0), &Options::default())?;
/// let theirs = predict(&sizes, &paper(&sizes, 16.0));
/// assert!(ours.bits <= theirs.bits * 1.0001);
/// assert!(ours.false_sets <= theirs.false_sets && ours.member_false_sets <= theirs.member_false_sets);
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # Errors
///
/// [`BuildError::Census`] for sizes that contradict themselves, [`BuildError::NotPositive`] and [`BuildError::MoreThanSets`] for targets that
/// are not positive or above the number of sets, [`BuildError::BitsPerPair`] for a space in which not one row fits, and
/// [`BuildError::FalseSets`] for a table that would have more than 2^48 bits.
pub fn tune(kind: Sketch, sizes: &SetSizes, goal: TuneGoal, options: &Options) -> Result<Tuned, BuildError> {
    sizes.check()?;
    let positive = |target, given: f64| match given > 0.0 && given.is_finite() {
        true => Ok(()),
        false => Err(BuildError::NotPositive { target, given }),
    };
    match goal {
        TuneGoal::Targets { false_sets, member_false_sets } => {
            for (target, given) in [("false_sets", false_sets), ("member_false_sets", member_false_sets)] {
                positive(target, given)?;
                if sizes.sets > 0 && given > f64::from(sizes.sets) {
                    return Err(BuildError::MoreThanSets { target, given, sets: sizes.sets });
                }
            }
        }
        TuneGoal::BitsPerPair(bits) => positive("bits_per_pair", bits)?,
    }
    search::search(kind, sizes, goal, options)
}

#[cfg(test)]
mod tests;
