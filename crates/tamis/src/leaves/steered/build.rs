//! digests to match, digests to refuse -> one steered column, and those of the second that pass it.

use std::borrow::Cow;

use super::beam::{Strip, scaled, search, surplus};
use super::survivors::share;
use super::{LEAST, MAX_ROWS, Steered, TAIL, WHOLE, passes};
use crate::arch::Level;
use crate::error::BuildError;
use crate::format::bytes_of;
use crate::hash::Digest;
use crate::hash::attempts::{SetHash, number};
use crate::leaves::design::{RejectSide, lines_of};
use crate::leaves::strips::{Strips, WINDOW, build_all, eliminate, ends, sort_by_place};
use crate::leaves::{Design, Sides, Work};
use crate::math::chance::{too_many, uneven};
use crate::parallel::Stop;

/// Rows of a strip, about: with fewer, the rows at its end that start no band cost more; with more, fewer threads share the
/// work and it leaves the second cache.
const STRIP: u64 = 1 << 16;

/// What the planner chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Params {
    /// Rows beyond one per key, in 1024ths.
    pub(crate) slack: u16,
    /// States of the search: `BALANCED` or `SMALLEST`.
    pub(crate) beam: u16,
    /// How many 256ths of the keys the column knows, 1 to 256.
    pub(crate) share: u16,
}

impl Params {
    /// A column for all keys.
    pub(crate) fn new(slack: u16, beam: u16) -> Params {
        Params { slack, beam, share: WHOLE }
    }

    /// Strips, and rows of each, for `n` keys.
    fn size(&self, n: u64) -> (u64, u64) {
        if n == 0 {
            return (0, LEAST);
        }
        let known = (n * u64::from(self.share)).div_ceil(WHOLE.into());
        let rows = known + (known * u64::from(self.slack)).div_ceil(1024);
        let strips = ((rows + STRIP / 2) / STRIP).max(1);
        (strips, rows.div_ceil(strips).next_multiple_of(8).max(LEAST))
    }

    /// How many others should be left over. Where some weigh more than others nobody knows.
    fn left(&self, keys: usize, others: &RejectSide<'_>) -> f64 {
        let count = others.digests.len() as f64;
        if others.weights.is_empty() { count * self.passing(count / keys as f64, keys as u64) } else { f64::INFINITY }
    }
}

impl Design for Params {
    type Leaf = Steered;

    const MARGIN: f64 = 1.004;

    fn bits(&self, listed: u64, _: u64) -> f64 {
        let (strips, rows) = self.size(listed);
        (strips * rows) as f64
    }

    fn rate_at(&self, _: u64) -> f64 {
        1.0 - f64::from(self.share) / 512.0
    }

    fn passing(&self, mu: f64, _: u64) -> f64 {
        let known = f64::from(self.share) / f64::from(WHOLE);
        1.0 - known * (1.0 - share(mu, self.slack.into(), self.beam))
    }

    fn lines(&self) -> [f64; 2] {
        [lines_of(9.0); 2]
    }

    fn build(&self, sides: &mut Sides<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<Steered, BuildError> {
        sides.steered(|keys, others| build_on(Level::detect(), keys, others, self, work, out))
    }
}

/// Builds a column on `keys`, appends its payload to `out` and leaves in `others` those that pass. Both are sorted.
pub(in crate::leaves) fn build_on(
    level: Level,
    keys: &[Digest],
    others: &mut RejectSide<'_>,
    params: &Params,
    work: &Work<'_>,
    out: &mut Vec<u8>,
) -> Result<Steered, BuildError> {
    let Work { salt, skip, threads, stop } = *work;
    let (strips, rows) = params.size(keys.len() as u64);
    if !(1..=WHOLE).contains(&params.share) || rows.saturating_mul(strips) > MAX_ROWS {
        let (keys, given) = (keys.len(), format!("{params:?}"));
        return Err(BuildError::Parameters { structure: "steered column", keys, given });
    }
    let column = |number| Steered::new(Strips::new(skip, number, salt), strips, rows, params.share, 0, salt);
    if keys.is_empty() {
        *others = RejectSide::default();
        return Ok(column(0));
    }
    let left = Some(params.left(keys.len(), others));
    let mut build = Build { column: column(0), keys, level, params, threads, stop, left };
    if let Some(column) = build.run(others, out)? {
        return Ok(column);
    }
    // Under a number of their own nobody can have chosen them: it is the last attempt.
    others.arrange(&|_| 0);
    let mut set = SetHash::new();
    set.add(keys);
    set.add(&others.digests);
    let hashed = column(number(set.finish(), 1) as u32);
    let mut placed = keys.to_vec();
    sort_by_place(&mut placed, &|key| hashed.strip(key));
    others.arrange(&|digest| hashed.strip(digest));
    build = Build { column: hashed, keys: &placed, left: None, ..build };
    let built = build.run(others, out)?.unwrap_or(hashed);
    others.arrange(&|_| 0);
    Ok(built)
}

impl RejectSide<'_> {
    /// Sorts them by their places, weights and all.
    fn arrange(&mut self, place: &dyn Fn(Digest) -> u64) {
        let RejectSide { digests, weights } = self;
        if weights.is_empty() {
            return sort_by_place(digests.to_mut(), place);
        }
        let mut both: Vec<(Digest, u32)> = digests.iter().copied().zip(weights.iter().copied()).collect();
        both.sort_unstable_by_key(|&(digest, _)| (place(digest), digest));
        let (sorted, sorted_weights) = both.into_iter().unzip();
        (*digests, *weights) = (Cow::Owned(sorted), sorted_weights);
    }
}

/// One attempt at a column: keys and others lie strip by strip.
#[derive(Clone, Copy)]
struct Build<'a> {
    column: Steered,
    keys: &'a [Digest],
    level: Level,
    params: &'a Params,
    threads: usize,
    stop: Stop<'a>,
    /// How many others should be left; far more, or crowds, and there is no column. Nothing for the last attempt.
    left: Option<f64>,
}

impl Build<'_> {
    /// The column, and in `others` those that pass; nothing, and `others` as they were, if they do not lie as chance has it.
    fn run(&self, others: &mut RejectSide<'_>, out: &mut Vec<u8>) -> Result<Option<Steered>, BuildError> {
        let Build { mut column, keys, level, params, threads, stop, left: expected_left } = *self;
        let (strips, rows) = (column.strips, column.rows);
        let RejectSide { digests, weights } = &*others;
        let total = digests.len();
        let mut jobs = Vec::with_capacity(strips as usize);
        let strip_of = |digest| column.strip(digest);
        let (key_ends, other_ends) = (ends(keys, strips, &strip_of), ends(digests, strips, &strip_of));
        let (mut start, mut taken) = (0, 0);
        let expected = |count: usize, share: f64| count as f64 * share / f64::from(WHOLE);
        let share = f64::from(params.share) / strips as f64;
        let mut crowded = false;
        for ((strip, &end), &other_end) in (0..).zip(&key_ends).zip(&other_ends) {
            let (keys_here, others) = (&keys[start..end], &digests[taken..other_end]);
            crowded |= too_many(keys_here.len(), expected(keys.len(), share));
            crowded |= too_many(others.len(), expected(total, share));
            jobs.push(Job { strip, keys: keys_here, others, weights: weights.get(taken..other_end).unwrap_or(&[]) });
            (start, taken) = (end, other_end);
        }
        let unknown = total - taken;
        crowded |= too_many(unknown, expected(total, f64::from(WHOLE - params.share)));
        let strict = expected_left.is_some();
        if crowded && strict {
            return Ok(None);
        }
        let done = build_all(jobs, threads, stop, |job| job.build(level, &column, params.beam, strict))?;
        let Some(done) = done else { return Ok(None) };
        out.reserve(strips as usize * (rows / 8) as usize);
        let (length, starts, mut zeros) = (out.len(), rows - TAIL, 0);
        let mut passes = Vec::with_capacity(total);
        for (bits, passing) in done {
            zeros += surplus(std::slice::from_ref(&bits), starts as usize);
            out.extend_from_slice(&bytes_of(&bits)[..(rows / 8) as usize]);
            passes.extend_from_slice(&passing);
        }
        // Those that the column does not know pass.
        passes.resize(total, true);
        let kept = passes.iter().filter(|passes| **passes).count();
        if expected_left.is_some_and(|left| too_many(kept, left)) {
            out.truncate(length);
            return Ok(None);
        }
        others.keep(&passes);
        column.surplus = scaled(zeros, 1, strips * starts);
        Ok(Some(column))
    }
}

/// One strip: its keys, and its others.
struct Job<'a> {
    strip: u64,
    keys: &'a [Digest],
    others: &'a [Digest],
    weights: &'a [u32],
}

impl Job<'_> {
    /// The rows, 64 to a word, and which of the others pass. Nothing, where crowds matter, if there are any.
    fn build(self, level: Level, column: &Steered, beam: u16, strict: bool) -> Option<(Vec<u64>, Vec<bool>)> {
        let Job { strip, keys, others, weights } = self;
        let rows = column.rows as usize;
        let mut loads = vec![0u32; (rows - TAIL as usize).div_ceil(WINDOW)];
        let equations = keys.iter().map(|&key| {
            let (row, band) = column.equation(key);
            loads[row as usize / WINDOW] += 1;
            (row, cut(row, band))
        });
        let pivots = eliminate(rows, equations);

        // Bands sorted by row: how many start at each, then where; hashing twice is cheaper than keeping rows.
        let mut starts = vec![0u32; rows + 2];
        for &other in others {
            starts[column.equation(other).0 as usize + 2] += 1;
        }
        let windows = || starts[2..][..rows - TAIL as usize].chunks(WINDOW).map(|window| window.iter().sum());
        if strict && (uneven(&loads) || uneven(&windows().collect::<Vec<u32>>())) {
            return None;
        }
        for row in 2..rows + 2 {
            starts[row] += starts[row - 1];
        }
        let mut bands = vec![0u64; others.len()];
        let mut weighed = vec![0u32; weights.len()];
        for (i, &other) in others.iter().enumerate() {
            let (row, band) = column.equation(other);
            let at = &mut starts[row as usize + 1];
            bands[*at as usize] = cut(row, band);
            if let Some(&weight) = weights.get(i) {
                weighed[*at as usize] = weight;
            }
            *at += 1;
        }
        let filler = column.salt.filler(strip);
        let strip = Strip { pivots: &pivots, starts: &starts[..=rows], bands: &bands, weights: &weighed, filler };
        let bits = search(level, beam, strip);
        let bytes = bytes_of(&bits);
        let bytes = &bytes[..rows / 8];
        let passes = others.iter().map(|&other| {
            let (row, band) = column.equation(other);
            passes(bytes, ((row / 8) as usize, band << (row % 8)))
        });
        let passing = passes.collect();
        Some((bits, passing))
    }
}

/// What is left of a band that ends with the eighth byte.
#[inline(always)]
fn cut(row: u64, band: u64) -> u64 {
    band << (row % 8) >> (row % 8)
}

const _: () = assert!(LEAST > TAIL);
