//! digests -> the rows of a ribbon, level by level.

use std::ops::Range;

use super::eliminate::{Broad, Lane, Lockstep, Narrow, Solve, Source, Tail, Task, Wide, partition};
use super::{
    Level, MAX_WIDTH, NARROW, NESTED, Ribbon, SHAPES, SMALL, SMALL_WIDE, Shape, Thresholds, WIDE, Width, fingerprint,
    place,
};
use crate::arch::{self, Level as Cpu};
use crate::error::BuildError;
use crate::hash::attempts::{ATTEMPTS, SetHash, numbers};
use crate::hash::{Digest, Salt, reduce};
use crate::leaves::design::lines_of;
use crate::leaves::{Design, Geometry, Sides, Values, Work};
use crate::parallel::each;

/// What kind of ribbon to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    /// Bits per value times 256; a fraction only with fingerprints.
    pub(crate) width: u16,
    /// Whether more keys are bumped, so that fewer rows stay free: smaller, slower to build and to query.
    pub(crate) tight: bool,
    /// Whether a narrow filter must be the first columns of wider ones on the same keys.
    pub(crate) nested: bool,
}

/// Sets up to this size become a standard ribbon, in one level; up to a half or a quarter of it where every bit counts.
const MAX_STANDARD: usize = 20_000;
/// What a bumped ribbon's levels leave over becomes a standard level once it is this small.
const LAST: usize = 1_200;
/// Fewer keys have bands of 64: a standard level is at least as long as a band.
const MIN_WIDE: usize = 200;
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

    /// Whether bands have 128 coefficients: where a byte of threshold for 256 rows, a 32nd of a bit per key, would be too much.
    fn wide(&self) -> bool {
        self.width().columns() <= 4 && !self.nested
    }

    /// The shape of a level of `n` keys, which is standard up to so many.
    fn shape(&self, n: usize, standard: usize) -> usize {
        let less = if self.wide() {
            2
        } else if self.tight {
            4
        } else {
            1
        };
        match (self.wide(), n <= standard / less) {
            (true, true) if n >= MIN_WIDE => SMALL_WIDE,
            (_, true) => SMALL,
            (true, false) => WIDE,
            (false, false) if self.nested => NESTED,
            (false, false) => NARROW,
        }
    }

    /// Whether keys are bumped for their equation alone, whatever its value. A dependent equation agrees with the others by
    /// chance, and the wider the values the more rarely; not to make use of it costs nothing from two bits on, and makes a
    /// narrow filter the first columns of a wide one on the same keys: what passes the wide one passes the narrow one.
    fn strict(&self, values: Values<'_>) -> bool {
        matches!(values, Values::Fingerprints) && !self.wide()
    }

    /// Rows where bands of `n` keys start, at a given attempt.
    fn rows(&self, shape: usize, n: u64, attempt: u32) -> u64 {
        let Shape { band, bucket, thresholds } = &SHAPES[shape];
        if *thresholds != Thresholds::None {
            // Fewer rows than keys.
            let load = match shape {
                NARROW if self.tight => 1045,
                NESTED => 1030,
                _ => 1020,
            };
            let rows = n * 1000 / load;
            let buckets = (rows + (1 << bucket) / 2) >> bucket;
            return buckets.max(1) << bucket;
        }
        let slack = if shape == SMALL { n / 14 + 4 } else { n / 64 + 8 };
        let octets = (n + slack).div_ceil(8);
        let octets = octets + u64::from(attempt / TRIES) * (1 + octets / 48);
        8 * octets.saturating_sub(band - 1).max(1)
    }

    /// The payload in bits for `n` keys, or a little more: what is bumped is not known before building.
    fn payload_bits(&self, n: u64) -> f64 {
        if n == 0 {
            return 0.0;
        }
        let shape = self.shape(n.min(usize::MAX as u64) as usize, MAX_STANDARD);
        let rows = self.rows(shape, n, 0);
        let bits = Level::new(shape, 0, rows, self.width(), 0).end() as f64 * 8.0;
        // Rows that stay free, the fewest keys that are bumped, and what a key takes on the next level.
        let (free, fewest, again) = match SHAPES[shape].thresholds {
            Thresholds::None => return bits,
            Thresholds::Bytes => (0.0045, 0.004, 1.075),
            Thresholds::Steps(_) if shape == NESTED => (0.007, 0.01, 1.03),
            Thresholds::Steps(_) => (0.004, 0.004, 1.02),
        };
        let bumped = (n as f64 - (1.0 - free) * rows as f64).max(fewest * n as f64) + 40.0;
        bits + (bumped * again + 8.0 * SHAPES[shape].band as f64) * f64::from(self.width) / 256.0
    }
}

/// Sorted distinct digests that are spread evenly: a key's place is its digest, its value its fingerprint.
#[derive(Clone, Copy)]
struct Plain<'a> {
    keys: &'a [Digest],
    salt: Salt,
    skip: u32,
}

impl Source for Plain<'_> {
    fn len(self) -> usize {
        self.keys.len()
    }
    #[inline(always)]
    fn place(self, i: usize) -> u64 {
        self.keys[i].hi << self.skip
    }
    #[inline(always)]
    fn equation(self, i: usize, mask: u32) -> (u64, u32) {
        let band = self.keys[i].salted(self.salt);
        (band, fingerprint(band) & mask)
    }
}

/// A key on its way from level to level.
#[derive(Clone, Copy, Default)]
struct Item {
    place: u64,
    band: u64,
    value: u32,
}

impl Source for &[Item] {
    fn len(self) -> usize {
        <[Item]>::len(self)
    }
    #[inline(always)]
    fn place(self, i: usize) -> u64 {
        self[i].place
    }
    #[inline(always)]
    fn equation(self, i: usize, mask: u32) -> (u64, u32) {
        (self[i].band, self[i].value & mask)
    }
}

/// Builds a ribbon on distinct keys, whose top `skip` bits agree, and appends its payload to `out`.
pub(crate) fn build(
    keys: &[Digest],
    values: Values<'_>,
    params: &Params,
    salt: Salt,
    skip: u32,
    threads: usize,
    out: &mut Vec<u8>,
) -> Result<Ribbon, BuildError> {
    let (cpu, width) = (Cpu::detect(), params.width());
    let given = !matches!(values, Values::Fingerprints);
    if width.whole == 0 || width.columns() > MAX_WIDTH || (width.part > 0 && given) {
        let given = f64::from(params.width) / 256.0;
        return Err(BuildError::Width { structure: "ribbon", given, most: MAX_WIDTH });
    }
    let start = out.len();
    // Of a filter's keys alone: a narrow one must have the columns of a wide one.
    for (attempt, number) in numbers(keys.len(), || SetHash::of(keys)) {
        let salted = salt.child(number);
        let strict = params.strict(values);
        let mut builder = Builder { cpu, threads, params, width, attempt, strict, out, start, levels: vec![] };
        let quick = number == 0 && !given && width.columns() <= 8 && !params.wide();
        let solved = if keys.is_empty() {
            true
        } else if quick && keys.is_sorted_by_key(|key| key.hi << skip) {
            builder.levels::<Narrow, _>(Plain { keys, salt: salted, skip })
        } else {
            let item = |(i, key): (usize, &Digest)| {
                let band = key.salted(salted);
                let place = if number == 0 { key.hi << skip } else { place(band) };
                let value = match values {
                    Values::Given(values) => values.get(i).copied().unwrap_or(0),
                    Values::Signed(wanted) => fingerprint(band) ^ !wanted.get(i).is_none_or(|&yes| yes) as u32,
                    Values::Fingerprints => fingerprint(band),
                };
                Item { place, band, value }
            };
            builder.items(keys.iter().enumerate().map(item).collect())
        };
        if solved {
            let mut levels = builder.levels.into_iter();
            let first = levels.next();
            let ribbon = Ribbon::new(salt, number as u32, skip, width, first, levels.collect());
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
    attempt: u32,
    /// See [`Params::strict`].
    strict: bool,
    out: &'a mut Vec<u8>,
    /// Where the payload starts in `out`.
    start: usize,
    levels: Vec<Level>,
}

/// Some strips of a level.
struct Solved {
    octets: Vec<u8>,
    /// One per bucket.
    thresholds: Vec<u8>,
    bumped: Vec<u32>,
    failed: bool,
}

impl Builder<'_> {
    /// All levels for items in any order. Runs that are sorted, as those of two sides of a shard, are only merged.
    fn items(&mut self, mut items: Vec<Item>) -> bool {
        items.sort_by_key(|item| item.place);
        match (self.params.wide(), self.width.columns()) {
            // A few keys have narrow bands, and most builds few keys.
            (true, _) if items.len() >= MIN_WIDE => self.levels::<Wide, _>(&items[..]),
            (_, ..=8) => self.levels::<Narrow, _>(&items[..]),
            _ => self.levels::<Broad, _>(&items[..]),
        }
    }

    /// All levels, the first of these keys.
    fn levels<T: Tail, S: Source>(&mut self, source: S) -> bool {
        let mut taken = source.len();
        let shape = self.params.shape(taken, MAX_STANDARD);
        if SHAPES[shape].thresholds == Thresholds::None {
            let level = self.level(shape, 0, self.params.rows(shape, taken as u64, self.attempt));
            return self.take::<T, S>(level, source).is_some();
        }
        let level = self.level(shape, 0, self.params.rows(shape, taken as u64, 0));
        let Some(mut bumped) = self.take::<T, S>(level, source) else { return false };
        while !bumped.is_empty() {
            if self.levels.len() > LEVELS || bumped.len() > taken / BUMPED + 200 {
                return false;
            }
            taken = bumped.len();
            let narrow = self.params.shape(taken, LAST);
            let shape = if T::OCTETS == 15 && narrow == SMALL { SMALL_WIDE } else { narrow };
            let standard = SHAPES[shape].thresholds == Thresholds::None;
            let next = (0..if standard { ATTEMPTS } else { 1 }).find_map(|attempt| {
                let level = self.level(shape, attempt, self.params.rows(shape, taken as u64, attempt));
                let mut items: Vec<Item> = bumped.clone();
                for item in &mut items {
                    item.band = level.rehash(item.band);
                    item.place = place(item.band);
                }
                items.sort_by_key(|item| item.place);
                self.take::<T, &[Item]>(level, &items)
            });
            let Some(next) = next else { return false };
            bumped = next;
        }
        true
    }

    /// A level placed behind what is written so far.
    fn level(&self, shape: usize, attempt: u32, rows: u64) -> Level {
        Level::new(shape, attempt, rows, self.width, (self.out.len() - self.start) as u64)
    }

    /// Writes one level; returns the keys it passes on, or nothing if it cannot be solved.
    fn take<T: Tail, S: Source>(&mut self, level: Level, source: S) -> Option<Vec<Item>> {
        let mask = u32::MAX >> (32 - self.width.columns());
        let task = Task { shape: level.shape(), rows: level.rows, mask, strict: self.strict };
        let strips = strips(&task, source);
        // In twos, which advance together; several threads take ranges of these pairs. What comes out is the same.
        let pairs = strips.len().div_ceil(2);
        let workers = self.threads.clamp(1, pairs.max(1));
        let ranges = (0..workers).map(|i| pairs * i / workers..pairs * (i + 1) / workers).collect();
        let solved = each(ranges, workers, |range: Range<usize>| {
            let strips = &strips[2 * range.start..strips.len().min(2 * range.end)];
            solve_strips::<T, S>(self.cpu, &level, &task, source, strips)
        });
        if solved.iter().any(|part| part.failed) {
            return None;
        }
        let mut codes = Vec::with_capacity((level.rows >> task.shape.bucket) as usize + 1);
        let mut bumped = vec![];
        for part in solved {
            self.out.extend_from_slice(&part.octets);
            codes.extend_from_slice(&part.thresholds);
            bumped.extend(part.bumped.iter().map(|&i| {
                let (band, value) = source.equation(i as usize, mask);
                Item { place: 0, band, value }
            }));
        }
        match task.shape.thresholds {
            Thresholds::None => {}
            Thresholds::Bytes => self.out.extend_from_slice(&codes),
            Thresholds::Steps(_) => {
                let byte = |codes: &[u8]| codes.iter().rev().fold(0, |byte, code| byte << 2 | code);
                self.out.extend(codes.chunks(4).map(byte));
            }
        }
        self.levels.push(level);
        Some(bumped)
    }
}

/// The strips of a level: their rows, and the numbers of their keys.
fn strips<S: Source>(task: &Task, source: S) -> Vec<(Range<u64>, Range<usize>)> {
    // A standard level is one strip: its keys cannot be bumped.
    let rows = match task.shape.thresholds {
        Thresholds::None => task.rows,
        // Their neighbours spill further.
        Thresholds::Steps(_) => 1 << 16,
        Thresholds::Bytes if task.rows < 1 << 18 => 1 << 14,
        Thresholds::Bytes => 1 << 15,
    };
    let (mut strips, mut first, mut from) = (vec![], 0, 0);
    while first < task.rows {
        let end = task.rows.min(first + rows);
        let to = from + partition(source.len() - from, |i| reduce(source.place(from + i), task.rows) < end);
        strips.push((first..end, from..to));
        (first, from) = (end, to);
    }
    strips
}

/// Solves consecutive strips, two at a time.
fn solve_strips<T: Tail, S: Source>(
    cpu: Cpu,
    level: &Level,
    task: &Task,
    source: S,
    strips: &[(Range<u64>, Range<usize>)],
) -> Solved {
    let mut lanes = [Lane::<T>::new(), Lane::new()];
    let mut words = vec![];
    let mut solved = Solved { octets: vec![], thresholds: vec![], bumped: vec![], failed: false };
    for pair in strips.chunks(2) {
        let lanes = &mut lanes[..pair.len()];
        for (lane, (rows, keys)) in lanes.iter_mut().zip(pair) {
            lane.load(task, source, rows.clone(), keys.clone());
        }
        arch::dispatch(cpu, Lockstep { lanes, source, task });
        for (lane, (rows, _)) in lanes.iter().zip(pair) {
            solved.failed |= lane.failed;
            if solved.failed {
                return solved;
            }
            // A strip begins where the one before has spilled to.
            let spill = |row: u64| if row == 0 { 0 } else { row / 8 + T::OCTETS as u64 };
            let first = spill(rows.start);
            words.resize(lane.octets.len() * T::GROUPS, 0);
            arch::dispatch(cpu, Solve::<T> { octets: &lane.octets, out: &mut words });
            solved.octets.reserve(level.octet_at(spill(rows.end)) - level.octet_at(first));
            if level.whole == 8 && level.cut == u64::MAX {
                solved.octets.extend(words.iter().flat_map(|word| word.to_le_bytes()));
                words.clear();
            }
            for (octet, words) in (first..).zip(words.chunks_exact(T::GROUPS)) {
                let columns = level.whole as usize + (octet >= level.cut) as usize;
                for (column, word) in (0..columns).step_by(8).zip(words) {
                    solved.octets.extend_from_slice(&word.to_le_bytes()[..8.min(columns - column)]);
                }
            }
            solved.thresholds.extend_from_slice(&lane.thresholds);
            solved.bumped.extend_from_slice(&lane.bumped);
        }
    }
    solved
}

impl Design for Params {
    type Leaf = Ribbon;

    fn bits(&self, listed: u64, others: u64) -> f64 {
        self.payload_bits(listed + others)
    }

    /// The probability that an unlisted key reads what a member reads.
    fn rate_at(&self, _: u64) -> f64 {
        let width = self.width();
        // The planner tries a dozen widths, also for a hundred keys: no power where a quotient is as exact.
        (1.0 - width.part as f64 / 512.0) / (1u64 << width.whole) as f64
    }

    /// The octets of a band, all columns side by side.
    fn lines(&self) -> [f64; 2] {
        let octets = if self.wide() { 16.0 } else { 8.0 };
        [lines_of(octets * f64::from(self.width().columns().max(1))); 2]
    }

    fn nested(self) -> Option<Params> {
        self.nested.then_some(Params { width: self.width & !255, ..self })
    }

    fn build(&self, sides: &mut Sides<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<Ribbon, BuildError> {
        sides.stored(|keys, values| build(keys, values, self, work.salt, work.skip, work.threads, out))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
