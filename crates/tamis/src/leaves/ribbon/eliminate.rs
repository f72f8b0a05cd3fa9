//! keys of one strip -> solved rows, thresholds, bumped keys: Gaussian elimination by octets.
//!
//! Buckets go left to right, the keys of a bucket right to left, so that sorted keys are read where they lie. The rows of an octet are
//! kept as their sums ([`Octet`]): an equation passes an octet by two look-ups, however many rows the octet has.
//!
//! ```text
//!   head  (8 coefficients in octet o)    -> what is left of them: nothing, go on to octet o + 1;
//!   tail  (value | octets o + 1 .. )        or something: its lowest bit is a new pivot, and the sums take in the new row
//! ```
//!
//! Starts are multiples of eight, and an equation only ever meets rows that start at or before its octet. So it never reaches
//! further than the band of a key that starts here: a head and a tail of fixed size hold it always.
//!
//! What a bucket cannot take shows at its left end, where its neighbour has already spilled over. There an equation is left without
//! coefficients: it and the keys further left are bumped, up to the next threshold that can be recorded. Keys that went in below
//! that threshold are taken back: adding a row is an exclusive or of some entries, and doing it again undoes it.
//!
//! A look-up waits for the one before. [`Lockstep`] therefore advances two strips in turn.

use std::ops::Range;

use super::{Shape, Thresholds};
use crate::arch::octet::{Octet, Word, transpose};
use crate::arch::{Isa, Kernel};
use crate::hash::reduce;

/// The bits of a tail.
pub(super) trait Tail: Copy + Send + Sync + 'static {
    type Word: Word;
    /// Bits of the value, which come first.
    const VALUE: u32;
    /// Octets of coefficients behind them: those of a band but the first.
    const OCTETS: usize;
    /// Words of eight columns.
    const GROUPS: usize = Self::VALUE as usize / 8;

    /// Back substitution.
    #[inline(always)]
    fn solve<I: Isa>(octets: &[[Self::Word; 8]], out: &mut [u64])
    where
        Self: Sized,
    {
        solve::<Self>(octets, out);
    }

    /// The tail of a band.
    fn new(band: u64, far: impl Fn() -> u64, value: u32) -> Self::Word;

    #[inline(always)]
    fn value(tail: Self::Word) -> u32 {
        tail.low() & (u32::MAX >> (32 - Self::VALUE))
    }

    /// The head and the tail as the next octet sees them.
    #[inline(always)]
    fn advance(tail: Self::Word) -> (u8, Self::Word) {
        let coefficients = tail >> Self::VALUE;
        (coefficients.low() as u8, (coefficients >> 8) << Self::VALUE ^ Self::Word::from(Self::value(tail)))
    }

    #[inline(always)]
    fn has_coefficients(tail: Self::Word) -> bool {
        tail >> Self::VALUE != Self::Word::default()
    }
}

/// Bands of 64, values of up to eight bits.
#[derive(Clone, Copy)]
pub(super) struct Narrow;
impl Tail for Narrow {
    type Word = u64;
    const VALUE: u32 = 8;
    const OCTETS: usize = 7;
    #[inline(always)]
    fn new(band: u64, _: impl Fn() -> u64, value: u32) -> u64 {
        band & !255 | u64::from(value & 255)
    }

    #[inline(always)]
    fn solve<I: Isa>(octets: &[[u64; 8]], out: &mut [u64]) {
        I::solve(octets, out);
    }
}

/// Bands of 64, values of up to 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Broad;
impl Tail for Broad {
    type Word = u128;
    const VALUE: u32 = 32;
    const OCTETS: usize = 7;
    #[inline(always)]
    fn new(band: u64, _: impl Fn() -> u64, value: u32) -> u128 {
        u128::from(band >> 8) << 32 | u128::from(value)
    }
}

/// Bands of 128, values of up to eight bits.
#[derive(Clone, Copy)]
pub(super) struct Wide;
impl Tail for Wide {
    type Word = u128;
    const VALUE: u32 = 8;
    const OCTETS: usize = 15;
    #[inline(always)]
    fn new(band: u64, far: impl Fn() -> u64, value: u32) -> u128 {
        u128::from(far()) << 64 | u128::from(band & !255) | u128::from(value & 255)
    }

    #[inline(always)]
    fn solve<I: Isa>(octets: &[[u128; 8]], out: &mut [u64]) {
        I::solve_wide(octets, out);
    }
}

/// The keys of a level, in the order of their places.
pub(super) trait Source: Copy + Send + Sync {
    fn len(self) -> usize;
    /// What chooses the row.
    fn place(self, i: usize) -> u64;
    /// The coefficients, and the value under `mask`.
    fn equation(self, i: usize, mask: u32) -> (u64, u32);
}

/// What is the same for all strips of a level.
#[derive(Clone, Copy)]
pub(super) struct Task {
    pub(super) shape: &'static Shape,
    /// Rows of the level where bands start.
    pub(super) rows: u64,
    /// The bits of a value.
    pub(super) mask: u32,
    /// Whether a dependent equation is refused even where it agrees with the others.
    pub(super) strict: bool,
}

/// A row that was added: its octet in the window, its pivot, and the entries it was added to. No entries: it was not.
#[derive(Clone, Copy, Default)]
struct Added {
    entries: u32,
    octet: u16,
    pivot: u16,
}

/// One strip on its way.
pub(super) struct Lane<T: Tail> {
    /// The octets of the bucket in progress and those it spills into.
    window: Vec<Octet<T::Word>>,
    /// Finished octets: the tails of their rows, zero for a free row. Coefficients inside an octet are left only where rows are free, and
    /// free rows are zero.
    pub(super) octets: Vec<[T::Word; 8]>,
    /// One threshold per bucket, as it is recorded.
    pub(super) thresholds: Vec<u8>,
    /// The keys that are passed on, by their number.
    pub(super) bumped: Vec<u32>,
    /// Whether a bucket could not do without its last keys.
    pub(super) failed: bool,
    /// How the keys of the bucket went in, counted from its first one; empty where none is taken back.
    log: Vec<Added>,
    /// First row of the bucket in progress, and first row behind the strip.
    bucket: u64,
    end: u64,
    /// Octets at the window's front that belong to the strip before.
    alien: usize,
    /// The keys of the bucket are `from..to`; those from `at` on are done.
    from: usize,
    at: usize,
    to: usize,
    last: usize,
}

/// An equation that has no coefficient before `octet` of the window.
#[derive(Clone, Copy, Default)]
struct Equation<W> {
    head: u8,
    tail: W,
    octet: usize,
}

impl<T: Tail> Lane<T> {
    pub(super) fn new() -> Lane<T> {
        Lane {
            window: vec![],
            octets: vec![],
            thresholds: vec![],
            bumped: vec![],
            failed: false,
            log: vec![],
            bucket: 0,
            end: 0,
            alien: 0,
            from: 0,
            at: 0,
            to: 0,
            last: 0,
        }
    }

    /// Takes on the strip of some rows, whose keys have these numbers.
    pub(super) fn load<S: Source>(&mut self, task: &Task, source: S, rows: Range<u64>, keys: Range<usize>) {
        let octets = (rows.end - rows.start).min(1 << task.shape.bucket) as usize / 8 + T::OCTETS;
        self.window.clear();
        self.window.resize(octets, Octet::empty());
        self.octets.clear();
        self.octets.reserve((rows.end - rows.start) as usize / 8 + T::OCTETS);
        self.thresholds.clear();
        self.bumped.clear();
        self.failed = false;
        (self.bucket, self.end, self.alien) = (rows.start, rows.end, 0);
        (self.to, self.last) = (keys.start, keys.end);
        self.enter(task, source);
        if rows.start > 0 {
            // The strip before spills into these rows: keys that start there are bumped, and those below the next threshold.
            self.alien = T::OCTETS;
            let recorded = threshold_above(task.shape, 8 * T::OCTETS as u64 - 1);
            let below =
                |i: usize| recorded.is_some_and(|(least, _)| reduce(source.place(i), task.rows) < rows.start + least);
            let first = self.from + partition(self.to - self.from, |i| below(self.from + i));
            self.bumped.extend(self.from as u32..first as u32);
            self.from = first;
            self.record(recorded.map(|(_, code)| code));
        }
    }

    fn record(&mut self, code: Option<u8>) {
        match (code, self.thresholds.last_mut()) {
            (Some(code), Some(threshold)) => *threshold = code,
            _ => self.failed = true,
        }
    }

    /// Finds the keys of the bucket that starts at `self.bucket`.
    fn enter<S: Source>(&mut self, task: &Task, source: S) {
        let end = (self.bucket + (1 << task.shape.bucket)).min(self.end);
        self.from = self.to;
        let below = |i: usize| reduce(source.place(i), task.rows) < end;
        // Twice as many keys as rows are more than a bucket has, unless they crowd.
        let near = self.from + (2 << task.shape.bucket);
        let near = if near < self.last && !below(near) { near } else { self.last };
        self.to = self.from + partition(near - self.from, |i| below(self.from + i));
        self.at = self.to;
        if task.shape.thresholds != Thresholds::None && self.log.len() < self.to - self.from {
            self.log.resize(self.to - self.from, Added::default());
        }
        self.thresholds.push(0);
    }

    /// Leaves a bucket: its rows are finished.
    #[inline(never)]
    fn next_bucket<S: Source>(&mut self, task: &Task, source: S) -> bool {
        let rows = (self.end - self.bucket).min(1 << task.shape.bucket);
        let (octets, last) = (rows as usize / 8, self.bucket + rows >= self.end);
        let finished = if last { octets + T::OCTETS } else { octets };
        for octet in &self.window[std::mem::take(&mut self.alien)..finished] {
            let row = |pivot| octet.tails[Octet::<T::Word>::entry_of(pivot)];
            self.octets.push([row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)]);
        }
        if last {
            return false;
        }
        self.window.copy_within(octets..octets + T::OCTETS, 0);
        self.window[T::OCTETS..octets + T::OCTETS].iter_mut().for_each(Octet::clear);
        self.bucket += rows;
        self.enter(task, source);
        true
    }

    /// Turns to the equation of the next key; false when the strip is done.
    #[inline(always)]
    fn next<S: Source>(&mut self, e: &mut Equation<T::Word>, task: &Task, source: S) -> bool {
        while self.at == self.from {
            if self.failed || !self.next_bucket(task, source) {
                return false;
            }
        }
        self.at -= 1;
        let (band, value) = source.equation(self.at, task.mask);
        let row = reduce(source.place(self.at), task.rows) - self.bucket;
        let tail = T::new(band, || super::far(band), value);
        *e = Equation { head: band as u8, tail, octet: row as usize / 8 };
        true
    }

    /// Takes the equation through one octet; false when the strip is done.
    #[inline(always)]
    fn step<I: Isa, S: Source>(&mut self, e: &mut Equation<T::Word>, task: &Task, source: S) -> bool {
        // An equation ends in the octets that its bucket spills into.
        let Some(octet) = self.window.get_mut(e.octet) else {
            self.failed = true;
            return false;
        };
        let (head, tail) = octet.reduce(e.head, e.tail);
        if head == 0 {
            if T::has_coefficients(tail) {
                (e.head, e.tail) = T::advance(tail);
                e.octet += 1;
                return true;
            }
            self.settle(T::value(tail) != 0, task, source);
        } else {
            let pivot = head.trailing_zeros();
            let entries = I::add_row(octet, head, tail);
            if let Some(added) = self.log.get_mut(self.at - self.from) {
                *added = Added { entries, octet: e.octet as u16, pivot: pivot as u16 };
            }
        }
        self.next(e, task, source)
    }

    /// No coefficient is left: the equation contradicts the others, or says nothing new.
    #[inline(never)]
    fn settle<S: Source>(&mut self, contradiction: bool, task: &Task, source: S) {
        if let Some(added) = self.log.get_mut(self.at - self.from) {
            added.entries = 0;
        }
        if contradiction || task.strict {
            self.bump(task, source);
        }
    }

    /// Bumps the key in hand, and all keys of the bucket below the next threshold.
    fn bump<S: Source>(&mut self, task: &Task, source: S) {
        let offset = |i: usize| reduce(source.place(i), task.rows) - self.bucket;
        let Some((threshold, code)) = threshold_above(task.shape, offset(self.at)) else {
            self.failed = true;
            self.at = self.from;
            return;
        };
        let mut end = self.at + 1;
        while end < self.to && offset(end) < threshold {
            let Added { entries, octet, pivot } = self.log[end - self.from];
            if entries != 0 {
                self.window[octet as usize].remove(pivot.into(), entries);
            }
            end += 1;
        }
        self.bumped.extend(self.from as u32..end as u32);
        self.record(Some(code));
        self.at = self.from;
    }
}

/// The least threshold above an offset, and how it is recorded.
fn threshold_above(shape: &Shape, offset: u64) -> Option<(u64, u8)> {
    match shape.thresholds {
        Thresholds::None => None,
        Thresholds::Bytes => u8::try_from(offset + 1).ok().map(|code| (offset + 1, code)),
        Thresholds::Steps(steps) => (1..4).map(|code| (steps[code as usize], code)).find(|&(step, _)| step > offset),
    }
}

/// How many of the first `n` numbers satisfy a condition that the others do not.
pub(super) fn partition(n: usize, below: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, n);
    while from < to {
        let middle = from + (to - from) / 2;
        match below(middle) {
            true => from = middle + 1,
            false => to = middle,
        }
    }
    from
}

/// Eliminates one or two loaded strips.
pub(super) struct Lockstep<'a, T: Tail, S> {
    pub(super) lanes: &'a mut [Lane<T>],
    pub(super) source: S,
    pub(super) task: &'a Task,
}

impl<T: Tail, S: Source> Kernel for Lockstep<'_, T, S> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Lockstep { lanes, source, task } = self;
        let task = *task;
        // Local equations stay in registers.
        let (mut e, mut f) = (Equation::default(), Equation::default());
        match lanes {
            [a, b] => {
                let mut on = (a.next(&mut e, &task, source), b.next(&mut f, &task, source));
                while on.0 && on.1 {
                    on = (a.step::<I, S>(&mut e, &task, source), b.step::<I, S>(&mut f, &task, source));
                }
                while on.0 {
                    on.0 = a.step::<I, S>(&mut e, &task, source);
                }
                while on.1 {
                    on.1 = b.step::<I, S>(&mut f, &task, source);
                }
            }
            lanes => {
                for a in lanes {
                    let mut on = a.next(&mut e, &task, source);
                    while on {
                        on = a.step::<I, S>(&mut e, &task, source);
                    }
                }
            }
        }
    }
}

/// Solves the octets of a strip from the last to the first; `out` gets [`Tail::GROUPS`] words of eight columns for each.
pub(super) struct Solve<'a, T: Tail> {
    pub(super) octets: &'a [[T::Word; 8]],
    pub(super) out: &'a mut [u64],
}

impl<T: Tail> Kernel for Solve<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        T::solve::<I>(self.octets, self.out);
    }
}

/// Back substitution, for any band and value: see [`octet::solve`](crate::arch::octet).
fn solve<T: Tail>(octets: &[[T::Word; 8]], out: &mut [u64]) {
    let mut sums = [[[0u32; 16]; 2]; 16];
    for (o, (rows, out)) in octets.iter().zip(out.chunks_exact_mut(T::GROUPS)).enumerate().rev() {
        let mut solved = [0u32; 8];
        for (solved, &row) in solved.iter_mut().zip(rows) {
            *solved = T::value(row);
            let mut coefficients = row >> T::VALUE;
            for k in 1..=T::OCTETS {
                let byte = coefficients.low() as usize;
                let [low, high] = &sums[(o + k) % 16];
                *solved ^= low[byte & 15] ^ high[byte >> 4 & 15];
                coefficients = coefficients >> 8;
            }
        }
        for (half, sums) in sums[o % 16].iter_mut().enumerate() {
            for x in 1..16usize {
                sums[x] = sums[x & (x - 1)] ^ solved[4 * half + x.trailing_zeros() as usize];
            }
        }
        for (group, out) in out.iter_mut().enumerate() {
            let byte = |value: &u32| u64::from(value >> (8 * group) & 255);
            *out = transpose(solved.iter().rev().fold(0, |word, value| word << 8 | byte(value)));
        }
    }
}
