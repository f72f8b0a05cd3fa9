//! digests -> the rows of a ribbon, level by level.

use std::ops::Range;

use super::eliminate::{Item, Lane, Lockstep, ROWS, Rhs, Rows, Solve, Valued};
use super::{BIT, Level, MAX_WIDTH, NARROW, Ribbon, SHAPES, STANDARD, WIDE, Width, fingerprint};
use crate::arch::{self, Level as Cpu};
use crate::error::BuildError;
use crate::hash::attempts::{ATTEMPTS, SetHash, numbers};
use crate::hash::{Digest, Salt};
use crate::leaves::design::lines_of;
use crate::leaves::{Design, Geometry, Sides, Values, Work};
use crate::math::portable::exp2;
use crate::parallel::each;

/// What kind of ribbon to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    /// Bits per value times 256; a fraction only with fingerprints.
    pub(crate) width: u16,
    /// Whether bands have 128 coefficients instead of 64: smaller, slower to build and to ask.
    pub(crate) wide: bool,
    /// Whether a filter of one bit must be the first column of wider ones on the same keys. Two bits and more always are.
    pub(crate) nested: bool,
}

/// Sets up to this size become a standard ribbon, in one level.
const SMALL: usize = 10_000;
/// What a bumped ribbon's levels leave over becomes a standard level once it is this small.
const LAST: usize = 3_000;
/// A standard level tries this many hashes before it gets more rows.
const TRIES: u32 = 6;
/// A level bumps a few percent of its keys. Of keys that crowd in a few places it bumps more, and each of them takes its bits on
/// another level again: one in so many, and other hashes are tried.
const BUMPED: usize = 8;
/// More levels than this mean that hashes are equal.
const LEVELS: usize = 12;

impl Params {
    pub(super) fn width(&self) -> Width {
        Width { whole: self.width as u32 / 256, part: self.width as u32 % 256 }
    }

    /// The shape of the first level for more than a few keys.
    fn shape(&self) -> usize {
        match self.wide {
            _ if self.width == 256 && !self.nested => BIT,
            true => WIDE,
            false => NARROW,
        }
    }

    /// Whether keys are bumped for their equation alone, whatever its value. A dependent equation agrees with the others by
    /// chance, and the wider the values the more rarely; not to make use of it costs nothing from two bits on, and makes a
    /// narrow filter the first columns of a wide one on the same keys: what passes the wide one passes the narrow one.
    fn strict(&self, values: Values<'_>) -> bool {
        matches!(values, Values::Fingerprints) && self.shape() != BIT
    }

    /// Rows of a first level of `n` keys: fewer than keys where it is overloaded.
    fn rows(&self, n: u64) -> u64 {
        n * 1000 / if self.shape() == NARROW { 1040 } else { 1020 }
    }

    /// Buckets of a level of `n` keys.
    fn buckets(&self, n: u64) -> u64 {
        let shape = &SHAPES[self.shape()];
        let rows = self.rows(n);
        // Half of the pad rows get used.
        let pads = rows.div_ceil(shape.bucket << shape.strip) * shape.pad / 2;
        (rows.saturating_sub(pads) + shape.bucket / 2).div_euclid(shape.bucket).max(1)
    }

    /// The payload in bits for `n` keys, or a little more: what is bumped is not known before building. The two constants
    /// cover what was seen with 10,001 to 1,400,000 keys and every width; half a percent too much is the rule, 2 % the most.
    fn payload_bits(&self, n: u64) -> f64 {
        let width = self.width as f64 / 256.0;
        match n {
            0 => 0.0,
            1..=10_000 => {
                let level = Level::new(STANDARD, 0, 1, self.starts(n, 0), self.width(), 0);
                level.end() as f64 * 8.0
            }
            _ => {
                let bucket = SHAPES[self.shape()].bucket as f64;
                (n as f64 * 1.003 + (bucket * 0.625).max(336.0)) * width + n as f64 * 2.2 / bucket
            }
        }
    }

    /// Starts of a standard level of `n` keys at the given attempt; 0 for a level of 64 rows.
    fn starts(&self, n: u64, attempt: u32) -> u64 {
        // 1.2 % and four rows of slack, and more after every few failures.
        let relaxed = (attempt / TRIES) as u64;
        let rows = n + 4 + n * (12 + 10 * relaxed) / 1000 + 8 * relaxed;
        // Whole blocks, because they are stored whole.
        match rows.div_ceil(64) {
            ..=1 => 0,
            blocks => blocks * 64 - SHAPES[STANDARD].pad,
        }
    }
}

/// Builds a ribbon on distinct keys and appends its payload to `out`.
pub(crate) fn build(
    keys: &[Digest],
    values: Values<'_>,
    params: &Params,
    salt: Salt,
    threads: usize,
    out: &mut Vec<u8>,
) -> Result<Ribbon, BuildError> {
    let (cpu, width) = (Cpu::detect(), params.width());
    let columns = width.whole + (width.part > 0) as u32;
    let given = !matches!(values, Values::Fingerprints);
    if width.whole == 0 || columns > MAX_WIDTH || (width.part > 0 && given) {
        let given = f64::from(params.width) / 256.0;
        return Err(BuildError::Width { structure: "ribbon", given, most: MAX_WIDTH });
    }
    let start = out.len();
    // Of a filter's keys alone: a narrow one must have the columns of a wide one.
    for (attempt, number) in numbers(keys.len(), || SetHash::of(keys)) {
        let salted = salt.child(number);
        let strict = params.strict(values);
        let mut builder = Builder { cpu, threads, params, width, columns, strict, out, start, levels: vec![] };
        let hash = |i: usize| keys[i].salted(salted);
        let solved = match values {
            Values::Fingerprints => builder.keys(keys.len(), attempt, hash),
            Values::Given(_) | Values::Signed(_) => builder.keys(keys.len(), attempt, |i| {
                let hash = hash(i);
                let value = match values {
                    Values::Given(values) => values.get(i).copied().unwrap_or(0),
                    Values::Signed(wanted) => fingerprint(hash) ^ !wanted.get(i).is_none_or(|&yes| yes) as u32,
                    Values::Fingerprints => fingerprint(hash),
                };
                Valued { hash, value }
            }),
        };
        if solved {
            let mut levels = builder.levels.into_iter();
            let first = levels.next();
            let ribbon = Ribbon::new(salt, number as u32, width, first, levels.collect());
            debug_assert_eq!(ribbon.payload_len(), (out.len() - start) as u64);
            return Ok(ribbon);
        }
        out.truncate(start);
    }
    Err(BuildError::Unsolvable { structure: "ribbon", keys: keys.len(), attempts: ATTEMPTS })
}

struct Builder<'a> {
    cpu: Cpu,
    threads: usize,
    params: &'a Params,
    width: Width,
    columns: u32,
    /// See [`Params::strict`].
    strict: bool,
    out: &'a mut Vec<u8>,
    /// Where the payload starts in `out`.
    start: usize,
    levels: Vec<Level>,
}

/// Keys of a level, strip by strip.
struct Scattered<T> {
    level: Level,
    keys: Vec<T>,
    /// Where every strip ends.
    ends: Vec<usize>,
}

/// Sorts the keys of a level by their strips. Twice over the keys, because hashing is cheaper than memory.
fn scatter<T: Item>(level: Level, n: usize, key: impl Fn(usize) -> T) -> Scattered<T> {
    let shape = level.shape();
    let strip = |key: T| (level.bucket_of(key.hash()).0 >> shape.strip) as usize;
    let mut ends = vec![0usize; level.buckets.div_ceil(1 << shape.strip) as usize + 1];
    for i in 0..n {
        ends[strip(key(i))] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        sum += std::mem::replace(end, sum);
    }
    let mut keys = vec![T::default(); n];
    for i in 0..n {
        let key = key(i);
        let at = &mut ends[strip(key)];
        keys[*at] = key;
        *at += 1;
    }
    Scattered { level, keys, ends }
}

impl Builder<'_> {
    /// All levels. Scattering is what differs from key to key; the rest is compiled for kinds of items, widths and bands.
    fn keys<T: Item>(&mut self, n: usize, attempt: u32, key: impl Fn(usize) -> T) -> bool {
        match n {
            0 => true,
            // The salt of the whole structure is what changes between attempts.
            1..=SMALL => self.standard(&(0..n).map(key).collect::<Vec<T>>(), attempt, 0),
            _ => {
                let level = self.level(self.params.shape(), 0, self.params.buckets(n as u64), 0);
                let bumped = self.bumping(&scatter(level, n, key));
                self.later(n, bumped)
            }
        }
    }

    /// The levels after the first.
    fn later(&mut self, mut taken: usize, mut bumped: Vec<Valued>) -> bool {
        while bumped.len() > LAST {
            if self.levels.len() > LEVELS || bumped.len() > taken / BUMPED {
                return false;
            }
            taken = bumped.len();
            let level = self.level(self.params.shape(), 0, self.params.buckets(taken as u64), 0);
            let key = |i: usize| Valued { hash: level.rehash(bumped[i].hash), ..bumped[i] };
            bumped = self.bumping(&scatter(level, taken, key));
        }
        bumped.is_empty()
            || (0..ATTEMPTS).any(|attempt| {
                let level = self.level(STANDARD, attempt, 1, 0);
                let rehashed = |&key: &Valued| Valued { hash: level.rehash(key.hash), ..key };
                self.standard(&bumped.iter().map(rehashed).collect::<Vec<Valued>>(), attempt, attempt)
            })
    }

    /// A level placed behind what is written so far.
    fn level(&self, shape: usize, attempt: u32, buckets: u64, bucket: u64) -> Level {
        Level::new(shape, attempt, buckets, bucket, self.width, (self.out.len() - self.start) as u64)
    }

    fn mask(&self) -> u32 {
        u32::MAX >> (32 - self.columns)
    }

    /// One level of one bucket that must take every key.
    fn standard<T: Item>(&mut self, keys: &[T], attempt: u32, rehash: u32) -> bool {
        let level = self.level(STANDARD, rehash, 1, self.params.starts(keys.len() as u64, attempt));
        match self.columns {
            ..=8 => self.take_all::<T, u8>(level, keys),
            _ => self.take_all::<T, u32>(level, keys),
        }
    }

    fn take_all<T: Item, V: Rhs>(&mut self, level: Level, keys: &[T]) -> bool {
        let rows = level.blocks as usize * 64;
        if rows > ROWS {
            return false;
        }
        let mut lane = Lane::<T, V>::new();
        lane.load(&level, 0, 1, rows, keys);
        let lanes = std::slice::from_mut(&mut lane);
        arch::dispatch(
            self.cpu,
            Lockstep::<T, V, true> { lanes, level: &level, mask: self.mask(), strict: self.strict },
        );
        if !lane.bumped.is_empty() {
            return false;
        }
        let blocks = self.solve::<V, true>(&level, &lane.rows, 0, level.blocks);
        self.out.extend_from_slice(&blocks);
        self.levels.push(level);
        true
    }

    /// One level of many buckets; returns the keys it passes on.
    fn bumping<T: Item>(&mut self, scattered: &Scattered<T>) -> Vec<Valued> {
        let solve = match (self.columns, scattered.level.shape().band) {
            (..=8, 64) => Builder::take_some::<T, u8, false>,
            (..=8, _) => Builder::take_some::<T, u8, true>,
            (_, 64) => Builder::take_some::<T, u32, false>,
            (_, _) => Builder::take_some::<T, u32, true>,
        };
        let level = scattered.level;
        let solved = self.in_groups(&level, &|groups, together| solve(self, scattered, groups, together));
        self.close(level, solved)
    }

    /// Strips in threes, which advance together, or in twos where threads would wait for one another; several threads take
    /// ranges of these groups. What comes out is the same.
    fn in_groups(&self, level: &Level, solve: &(dyn Fn(Range<usize>, usize) -> Solved + Sync)) -> Vec<Solved> {
        let strips = level.buckets.div_ceil(1 << level.shape().strip) as usize;
        let together = if self.threads > 1 && strips < 12 * self.threads { 2 } else { 3 };
        let groups = strips.div_ceil(together);
        let workers = self.threads.clamp(1, groups.max(1));
        let ranges = (0..workers).map(|i| groups * i / workers..groups * (i + 1) / workers).collect();
        each(ranges, workers, |range| solve(range, together))
    }

    /// A range of groups of strips.
    fn take_some<T: Item, V: Rhs, const WIDE: bool>(
        &self,
        scattered: &Scattered<T>,
        groups: Range<usize>,
        together: usize,
    ) -> Solved {
        let Scattered { level, keys, ends } = scattered;
        let (shape, buckets, mask) = (level.shape(), level.buckets, self.mask());
        let (bucket, per_strip) = (shape.bucket, 1u64 << shape.strip);
        let strips = buckets.div_ceil(per_strip) as usize;
        let mut lanes: Vec<Lane<T, V>> = (0..strips.min(together)).map(|_| Lane::new()).collect();
        let mut solved = Solved { blocks: vec![], steps: vec![], bumped: vec![] };
        for group in groups.map(|group| together * group) {
            let count = (strips - group).min(together);
            for (i, lane) in lanes.iter_mut().enumerate().take(count) {
                let strip = group + i;
                let first = strip as u64 * per_strip;
                let inside = (buckets - first).min(per_strip);
                let start = if strip == 0 { 0 } else { ends[strip - 1] };
                let rows = (inside * bucket + shape.pad) as usize;
                lane.load(level, first, inside as usize, rows, &keys[start..ends[strip]]);
            }
            let lanes = &mut lanes[..count];
            arch::dispatch(self.cpu, Lockstep::<T, V, WIDE> { lanes, level, mask, strict: self.strict });
            for (i, lane) in lanes.iter().enumerate() {
                let first = (group + i) as u64 * per_strip;
                let inside = (buckets - first).min(per_strip);
                let block = (first * bucket + (group + i) as u64 * shape.pad) / 64;
                let blocks = self.solve::<V, WIDE>(level, &lane.rows, block, (inside * bucket + shape.pad) / 64);
                solved.blocks.extend_from_slice(&blocks);
                solved.steps.extend_from_slice(&lane.steps);
                solved.bumped.extend(lane.bumped.iter().map(|key| key.rehashed(mask, key.hash())));
            }
        }
        solved
    }

    /// Writes a level of many buckets; returns the keys it passes on.
    fn close(&mut self, level: Level, solved: Vec<Solved>) -> Vec<Valued> {
        let mut bumped = vec![];
        let mut steps = vec![0u8; level.buckets.div_ceil(4) as usize];
        let mut bucket = 0;
        for mut part in solved {
            self.out.extend_from_slice(&part.blocks);
            bumped.append(&mut part.bumped);
            for step in part.steps {
                steps[bucket / 4] |= step << (2 * (bucket % 4));
                bucket += 1;
            }
        }
        self.out.extend_from_slice(&steps);
        self.levels.push(level);
        bumped
    }

    /// The blocks of eliminated rows, the first of which is `first`.
    fn solve<V: Rhs, const WIDE: bool>(&self, level: &Level, rows: &Rows<V>, first: u64, blocks: u64) -> Vec<u8> {
        let columns = self.columns as usize;
        let mut words = vec![0u64; blocks as usize * columns];
        let solve = Solve::<V, WIDE> { rows, blocks: blocks as usize, columns, words: &mut words };
        arch::dispatch(self.cpu, solve);
        let mut bytes = Vec::with_capacity(words.len() * 8);
        for (block, words) in (first..).zip(words.chunks_exact(columns)) {
            for word in &words[..self.width.columns(block >= level.cut) as usize] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        bytes
    }
}

/// Some strips of a level.
struct Solved {
    blocks: Vec<u8>,
    /// One per bucket.
    steps: Vec<u8>,
    bumped: Vec<Valued>,
}

impl Design for Params {
    type Leaf = Ribbon;

    fn bits(&self, listed: u64, others: u64) -> f64 {
        self.payload_bits(listed + others)
    }

    /// The probability that an unlisted key reads what a member reads.
    fn rate_at(&self, _: u64) -> f64 {
        let width = self.width();
        (1.0 - width.part as f64 / 512.0) * exp2(-f64::from(width.whole))
    }

    /// Two blocks of 64 rows, all columns of a block side by side; a single column is read as sixteen bytes.
    fn lines(&self) -> [f64; 2] {
        [lines_of(16.0 * f64::from(self.width.div_ceil(256).max(1))); 2]
    }

    fn nested(self) -> Option<Params> {
        self.nested.then_some(Params { width: self.width & !255, ..self })
    }

    fn build(&self, sides: &mut Sides<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<Ribbon, BuildError> {
        sides.stored(|keys, values| build(keys, values, self, work.salt, work.threads, out))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
