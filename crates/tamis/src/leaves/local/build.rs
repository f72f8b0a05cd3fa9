//! digests to match, digests never to match -> octets, thresholds and a rest that tell them apart.
//!
//! Strips are independent, so each is a job: its steered columns one after the other; then, when it is known how many negatives are
//! left in all, its exact columns. What these bump is gathered for the rest.
//! Keys and negatives are sorted by row once, because all columns have the same.

use super::exact::{self, Equation};
use super::size::{FULL, Params, REST_PARAMS};
use super::{BUCKET, Local, MASKS, MAX_EXACT, MAX_ROWS, MAX_STEERED, REST, Size, TAIL, WHOLE, bump, coin, pad};
use crate::arch::Level;
use crate::arch::columns::{head, octets_per_word};
use crate::error::BuildError;
use crate::format::bytes_of;
use crate::hash::attempts::{SetHash, number};
use crate::hash::{Digest, Salt, fold};
use crate::leaves::steered::beam::{Strip, scaled, search, surplus, window};
use crate::leaves::strips::{Strips, WINDOW, build_all, eliminate, ends, sort_by_place};
use crate::leaves::{Values, Work, ribbon};
use crate::math::chance::{too_many, uneven};
use crate::parallel::{Stop, check, run};

/// Builds the leaf on `keys` and on `negatives` that are none of them, and appends its payload to `out`; on an error `out` is
/// as before. Both are sorted.
pub(in crate::leaves) fn build_on(
    level: Level,
    keys: &[Digest],
    negatives: &[Digest],
    params: &Params,
    work: &Work<'_>,
    out: &mut Vec<u8>,
) -> Result<Local, BuildError> {
    let Work { salt, skip, threads, stop } = *work;
    let (steered, exact) = (u64::from(params.columns), u64::from(params.exact));
    let size = params.size(keys.len() as u64);
    if steered > MAX_STEERED
        || !(1..=MAX_EXACT).contains(&exact)
        || steered + exact < 2
        || size.rows.saturating_mul(size.strips) > MAX_ROWS
    {
        let (keys, given) = (keys.len(), format!("{params:?}"));
        return Err(BuildError::Parameters { structure: "local filter", keys, given });
    }
    if keys.is_empty() {
        return Ok(Local::empty(salt));
    }
    let local = |number| Local::new(Strips::new(skip, number, salt), size, WHOLE, 0, salt, None);
    let build = Build { local: local(0), keys, negatives, level, beam: params.beam, threads, stop, strict: true };
    if let Some(steered) = build.steer()? {
        return build.finish(steered, salt, out);
    }
    // Under a number of their own they cannot have been chosen: it is the last attempt.
    let mut set = SetHash::new();
    set.add(keys);
    set.add(negatives);
    let local = local(number(set.finish(), 1) as u32);
    let placed = |digests: &[Digest]| {
        let mut digests = digests.to_vec();
        sort_by_place(&mut digests, &|digest| local.strip(digest));
        digests
    };
    let (keys, negatives) = (placed(keys), placed(negatives));
    let build = Build { local, keys: &keys, negatives: &negatives, strict: false, ..build };
    let steered = build.steer()?.unwrap_or_default();
    build.finish(steered, salt, out)
}

/// One attempt: keys and negatives lie strip by strip.
struct Build<'a> {
    local: Local,
    keys: &'a [Digest],
    negatives: &'a [Digest],
    level: Level,
    beam: u16,
    threads: usize,
    stop: Stop<'a>,
    /// Whether crowds matter.
    strict: bool,
}

impl<'a> Build<'a> {
    /// The steered columns of every strip; nothing if keys or negatives do not lie as chance has it.
    fn steer(&self) -> Result<Option<Vec<Steered<'a>>>, BuildError> {
        let Build { ref local, keys, negatives, level, beam, threads, stop, strict } = *self;
        let strip_of = |digest| local.strip(digest);
        let many = |count: usize, all: usize| strict && too_many(count, all as f64 / local.strips as f64);
        let (key_ends, negative_ends) = (ends(keys, local.strips, &strip_of), ends(negatives, local.strips, &strip_of));
        let (mut start, mut negative_start) = (0, 0);
        let mut jobs = Vec::with_capacity(local.strips as usize);
        for ((strip, &end), &negative_end) in (0..).zip(&key_ends).zip(&negative_ends) {
            let (here, refused) = (&keys[start..end], &negatives[negative_start..negative_end]);
            if many(here.len(), keys.len()) || many(refused.len(), negatives.len()) {
                return Ok(None);
            }
            jobs.push(Job { strip, keys: here, negatives: refused });
            (start, negative_start) = (end, negative_end);
        }
        build_all(jobs, threads, stop, |job| job.steer(local, level, beam, strict))
    }

    /// The exact columns and the rest.
    fn finish(self, steered: Vec<Steered<'a>>, salt: Salt, out: &mut Vec<u8>) -> Result<Local, BuildError> {
        let Build { mut local, threads, stop, .. } = self;
        let Local { strips, rows, .. } = local;
        let size = Size { steered: local.steered, exact: local.exact, strips, rows };
        let zeros = steered.iter().map(|strip| strip.surplus).sum();
        local.surplus = scaled(zeros, size.steered, size.strips * (size.rows - TAIL));
        // As many elements as the exact columns have room for.
        let elements: usize = steered.iter().map(|strip| strip.keys.len() + strip.survivors.len()).sum();
        let room = size.strips * size.rows * u64::from(size.exact) * FULL.0 / FULL.1;
        local.share = (u64::from(WHOLE) * room / elements.max(1) as u64).min(WHOLE.into()) as u32;
        let done = run(steered, threads, |strip| {
            check(stop)?;
            Ok(strip.decide(&local))
        })?;
        let start = out.len();
        let mut rest = vec![];
        for built in &done {
            out.extend_from_slice(&built.octets);
            rest.extend_from_slice(&built.bumped);
        }
        out.resize(out.len() + pad(local.columns()) as usize, 0);
        let mut steps = vec![];
        done.iter().for_each(|built| steps.extend_from_slice(&built.steps));
        out.extend(steps.chunks(4).map(|four| four.iter().rev().fold(0, |byte, step| byte << 2 | step)));
        debug_assert_eq!(local.rest_at, (out.len() - start) as u64);
        rest.sort_unstable();
        let (bumped, values): (Vec<Digest>, Vec<u32>) = rest.into_iter().unzip();
        let built = ribbon::build(
            &bumped,
            Values::Given(&values),
            &REST_PARAMS,
            salt.child(REST),
            local.places.skip(),
            threads,
            out,
        );
        let rest = built.inspect_err(|_| out.truncate(start))?;
        Ok(Local::new(local.places, size, local.share, local.surplus, salt, Some(rest)))
    }
}

/// One strip to build.
struct Job<'a> {
    strip: u64,
    keys: &'a [Digest],
    negatives: &'a [Digest],
}

/// A strip whose steered columns are there.
struct Steered<'a> {
    job: Job<'a>,
    octets: Vec<u8>,
    keys: Vec<Element>,
    survivors: Vec<Element>,
    surplus: i64,
}

/// A strip that is built.
struct Built {
    octets: Vec<u8>,
    /// A step for each bucket and exact column.
    steps: Vec<u8>,
    /// Who has the exact bit in the rest, and which it is.
    bumped: Vec<(Digest, u32)>,
}

/// An element of a strip: its hash, and the number of its digest.
#[derive(Clone, Copy, Default)]
struct Element {
    h: u64,
    number: u32,
}

impl<'a> Job<'a> {
    /// The steered columns, each against the negatives that pass those before.
    /// Nothing, where crowds matter, if there are any.
    fn steer(self, local: &Local, level: Level, beam: u16, strict: bool) -> Option<Steered<'a>> {
        let rows = local.rows as usize;
        let (keys, loads) = by_row(local, self.keys);
        let (mut survivors, others) = by_row(local, self.negatives);
        if strict && (uneven(&loads) || uneven(&others)) {
            return None;
        }
        let mut octets = vec![0; rows / 8 * local.columns()];
        let mut columns = Vec::with_capacity(local.steered as usize);
        for column in 0..local.steered as usize {
            let pivots = eliminate(rows, keys.iter().map(|key| local.equation(column, key.h)));
            let mut starts = vec![0u32; rows + 1];
            let bands: Vec<u64> = survivors
                .iter()
                .map(|other| {
                    let (row, band) = local.equation(column, other.h);
                    starts[row as usize + 1] += 1;
                    band
                })
                .collect();
            for row in 0..rows {
                starts[row + 1] += starts[row];
            }
            let filler = local.salt.filler(self.strip * MAX_STEERED + column as u64);
            let strip = Strip { pivots: &pivots, starts: &starts, bands: &bands, weights: &[], filler };
            let words = search(level, beam, strip);
            let mut bands = bands.iter();
            survivors.retain(|other| {
                let (row, band) = (local.row(other.h) as usize, bands.next().copied().unwrap_or(0));
                (window(&words, row) & band).count_ones() & 1 == 0
            });
            put(&mut octets, local.columns(), column, &words);
            columns.push(words);
        }
        let surplus = surplus(&columns, rows - TAIL as usize);
        Some(Steered { job: self, octets, keys, survivors, surplus })
    }
}

impl Steered<'_> {
    /// The exact columns, and who is left to the rest.
    fn decide(self, local: &Local) -> Built {
        let Steered { job, mut octets, keys, survivors, .. } = self;
        // Hashes, by which rows grow; of equal ones keys are first. Then numbers.
        const SURVIVOR: u64 = 1 << 32;
        let mut all: Vec<(u64, u64)> = keys.iter().map(|key| (key.h, key.number.into())).collect();
        all.extend(survivors.iter().map(|other| (other.h, SURVIVOR | u64::from(other.number))));
        all.sort_unstable();
        let (mut solved, mut equations) = (vec![], vec![]);
        for pick in 0..local.exact {
            let column = (local.steered + pick) as usize;
            let has = |h: u64| local.pick(h) == pick && !local.outside(h);
            equations.clear();
            equations.extend(all.iter().filter(|&&(h, _)| has(h)).map(|&(h, number)| {
                let (row, band) = local.equation(column, h);
                Equation { row, band, value: (coin(h) == 1) == (number < SURVIVOR) }
            }));
            let exact::Solved { words, steps } = exact::solve(local.rows, &equations);
            put(&mut octets, local.columns(), column, &words);
            solved.push(steps);
        }
        let mut bumped = vec![];
        for &(h, number) in &all {
            let key = number < SURVIVOR;
            let row = local.row(h);
            let step = solved.get(local.pick(h) as usize).and_then(|steps| steps.get((row / BUCKET) as usize));
            if local.outside(h) || row % BUCKET < bump(step.copied().unwrap_or(0)) {
                let digest = if key { job.keys } else { job.negatives }[number as u32 as usize];
                bumped.push((digest, coin(h) as u32 ^ u32::from(!key)));
            }
        }
        let buckets = local.rows.div_ceil(BUCKET) as usize;
        let mut steps = Vec::with_capacity(buckets * solved.len());
        (0..buckets).for_each(|bucket| steps.extend(solved.iter().map(|steps| steps[bucket])));
        Built { octets, steps, bumped }
    }
}

/// Writes one column into the octets.
fn put(octets: &mut [u8], columns: usize, column: usize, words: &[u64]) {
    octets.iter_mut().skip(column).step_by(columns).zip(bytes_of(words)).for_each(|(to, byte)| *to = byte);
}

impl Local {
    /// First row in the strip, and the coefficients of one column from there on.
    fn equation(&self, column: usize, h: u64) -> (u64, u64) {
        let row = self.row(h);
        let (columns, taken) = (self.columns(), octets_per_word(self.columns()));
        let mut band = 0;
        for (k, &number) in MASKS.iter().take(8 / taken).enumerate() {
            let mut word = fold(h, number);
            if k == 0 {
                word = head(columns, word, row);
            }
            for i in 0..taken {
                let byte = word >> (8 * (i * columns + column)) & 0xff;
                band |= byte << (8 * (k * taken + i));
            }
        }
        (row, band >> (row % 8))
    }
}

/// The elements of a strip in the order of their rows, and how many start in every window.
fn by_row(local: &Local, digests: &[Digest]) -> (Vec<Element>, Vec<u32>) {
    let mut starts = vec![0u32; local.rows as usize + 1];
    for digest in digests {
        starts[local.row(digest.salted(local.salt)) as usize + 1] += 1;
    }
    let loads = starts[1..][..(local.rows - TAIL) as usize].chunks(WINDOW).map(|window| window.iter().sum()).collect();
    for row in 0..local.rows as usize {
        starts[row + 1] += starts[row];
    }
    let mut sorted = vec![Element::default(); digests.len()];
    for (number, digest) in digests.iter().enumerate() {
        let h = digest.salted(local.salt);
        let at = &mut starts[local.row(h) as usize];
        sorted[*at as usize] = Element { h, number: number as u32 };
        *at += 1;
    }
    (sorted, loads)
}
