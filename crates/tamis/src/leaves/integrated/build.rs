//! keys and negatives -> the words of both stages: what fits where.
//!
//! ```text
//!   stage one     solved for the keys
//!   F             the negatives that match it: the only ones that are kept in memory
//!   share         the elements are counted by weight, and the largest share that the table has room for is taken
//!   stage two     one system per bit, for the keys and the elements of F that have it
//!   rest          a table of one bit for those who have none
//! ```

use std::cell::Cell;

use bytes::Bytes;

use super::rule::{Rule, WHOLE, coin, weight};
use super::{Integrated, IntegratedVariant, MAX_FIRST, Params, rest_salt};
use crate::error::BuildError;
use crate::hash::attempts::{ATTEMPTS, SetHash, numbers};
use crate::hash::{Digest, Salt};
use crate::leaves::design::Listed;
use crate::leaves::fuse::{self, Fuse};
use crate::leaves::{Design, Geometry, Part, ShardedLeaf, Sides, Values, Work};
use crate::math::chance::too_many;
use crate::math::portable::exp2;

impl Params {
    /// The payload in bits for this many keys and negatives, as expected: how many negatives pass stage one is chance.
    pub(crate) fn payload_bits(&self, keys: u64, negatives: u64) -> f64 {
        let (s, f) = (keys, (negatives as f64 * exp2(-f64::from(self.first))).round() as u64);
        let columns = self.parts.columns();
        let both = (u16::from(self.first) + columns as u16) * 256;
        let bits = |n, width| fuse::payload_bits(n, &fuse::Params { arity: self.arity, width }) as f64;
        match self.parts {
            _ if s == 0 => 0.0,
            IntegratedVariant::One => bits(room_for_all(s, f), both),
            IntegratedVariant::Two | IntegratedVariant::Hybrid | IntegratedVariant::General => {
                bits(s, both) + bits((s + f).saturating_sub(s * u64::from(columns)), 256)
            }
        }
    }

    /// The share of unlisted keys that match, or a little more: what General makes of room that is left depends on the
    /// data.
    pub(crate) fn fpr(&self) -> f64 {
        Rule::new(self.first.into(), self.parts, 0).fpr()
    }
}

impl Design for Params {
    type Leaf = Integrated;

    fn bits(&self, listed: u64, others: u64) -> f64 {
        self.payload_bits(listed, others)
    }

    fn rate_at(&self, _: u64) -> f64 {
        self.fpr()
    }

    fn lines(&self) -> [f64; 2] {
        [self.arity.probes(); 2]
    }

    /// It finds out itself which negatives matter, and may have to do so again.
    fn build(&self, sides: &mut Sides<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<Integrated, BuildError> {
        let (keys, negatives) = sides.streamed();
        build(keys, negatives, self, work.salt, out)
    }
}

/// A table for all s + f elements is made before F is known: for what is expected, and two standard deviations.
fn room_for_all(s: u64, f: u64) -> u64 {
    s + f + (4.0 * f as f64).sqrt().ceil() as u64
}

/// Builds an integrated filter on distinct, sorted keys and on negatives that are none of them, and appends its payload
/// to `out`; on an error `out` is as before.
pub(crate) fn build(
    keys: &[Digest],
    negatives: &dyn Listed,
    params: &Params,
    salt: Salt,
    out: &mut Vec<u8>,
) -> Result<Integrated, BuildError> {
    let first = u32::from(params.first);
    if !(1..=MAX_FIRST).contains(&first) {
        return Err(BuildError::Width { structure: "integrated", given: first.into(), most: MAX_FIRST });
    }
    if keys.is_empty() {
        return Ok(Integrated::empty());
    }
    let start = out.len();
    let built = both_stages(keys, negatives, params, salt, out);
    match &built {
        Ok(built) => debug_assert_eq!(built.payload_len(), (out.len() - start) as u64),
        Err(_) => out.truncate(start),
    }
    built
}

/// Attempts at which more negatives than chance brings may not match stage one.
const PATIENCE: u32 = 4;

/// Keys queried at once while F is gathered.
const ROUND: usize = 1024;

/// The negatives that match stage one, sorted, and how many negatives there are.
fn survivors(
    negatives: &dyn Listed,
    mut ask: impl FnMut(&[Digest], &mut [bool]),
) -> Result<(Vec<Digest>, u64), BuildError> {
    let (mut found, mut count) = (vec![], 0);
    let mut matched = [false; ROUND];
    negatives.each(&mut |part, _| {
        count += part.len() as u64;
        for asked in part.chunks(ROUND) {
            let matched = &mut matched[..asked.len()];
            ask(asked, matched);
            found.extend(asked.iter().zip(&*matched).filter(|(_, matched)| **matched).map(|(&key, _)| key));
        }
        Ok(())
    })?;
    found.sort_unstable();
    Ok((found, count))
}

/// Both sides of stage two, each with its hash.
struct Elements<'a, H> {
    keys: &'a [Digest],
    survivors: &'a [Digest],
    hash: H,
}

impl<H: Fn(Digest) -> u64 + Copy> Elements<'_, H> {
    /// All elements: the digest, its hash, whether it is a key.
    fn all(&self) -> impl Iterator<Item = (Digest, u64, bool)> + Clone {
        let hash = self.hash;
        let keys = self.keys.iter().map(move |&key| (key, hash(key), true));
        keys.chain(self.survivors.iter().map(move |&key| (key, hash(key), false)))
    }

    /// The rows of one column: keys that check it, and elements of F that it rejects; with all fingerprint bits, right
    /// for the ones and wrong for the others.
    fn rows(
        &self,
        rule: Rule,
        column: u32,
        fingerprint: impl Fn(u64) -> u32 + Copy,
    ) -> impl Iterator<Item = (u64, u32)> + Clone {
        self.all().filter_map(move |(_, h, key)| {
            let mask = if key { rule.mask(h) } else { rule.mask(h) & rule.pick(h) };
            (mask & 1 << (rule.first + column) != 0).then(|| (h, if key { fingerprint(h) } else { !fingerprint(h) }))
        })
    }
}

/// How many elements each column would have, by weight.
struct Loads {
    /// Elements that are there whatever the share.
    always: [usize; 2],
    /// Elements that are there if the share exceeds their weight.
    below: [Vec<u32>; 2],
}

impl Loads {
    /// Counts (hash, whether it is a key).
    fn new(parts: IntegratedVariant, elements: impl Iterator<Item = (u64, bool)>) -> Loads {
        let mut loads = Loads { always: [0; 2], below: [(); 2].map(|()| vec![0; WHOLE as usize]) };
        let rule = Rule::new(1, parts, WHOLE);
        for (h, key) in elements {
            let picked = (rule.pick(h) != 2) as usize;
            let weight = weight(h) as usize;
            match parts {
                IntegratedVariant::General => {
                    loads.always[picked] += 1;
                    loads.below[1 - picked][weight] += key as u32;
                }
                IntegratedVariant::One | IntegratedVariant::Two | IntegratedVariant::Hybrid => {
                    loads.below[picked][weight] += 1
                }
            }
        }
        loads
    }

    /// The largest share with which no column has more than `room` elements; nothing if there is none.
    fn share(&self, room: usize) -> Option<u32> {
        let mut loads = self.always;
        for weight in 0..=WHOLE {
            if loads.iter().any(|&load| load > room) {
                return weight.checked_sub(1);
            }
            for (load, below) in loads.iter_mut().zip(&self.below) {
                *load += below.get(weight as usize).copied().unwrap_or(0) as usize;
            }
        }
        Some(WHOLE)
    }
}

/// The rule that fills columns with room for so many elements. General needs room for all elements once; without it, it
/// is Two.
fn rule(
    first: u32,
    parts: IntegratedVariant,
    room: usize,
    elements: impl Iterator<Item = (u64, bool)> + Clone,
) -> Rule {
    if parts == IntegratedVariant::One {
        return Rule::new(first, parts, WHOLE);
    }
    match Loads::new(parts, elements.clone()).share(room) {
        Some(share) => Rule::new(first, parts, share),
        None => Rule::new(
            first,
            IntegratedVariant::Two,
            Loads::new(IntegratedVariant::Two, elements).share(room).unwrap_or(0),
        ),
    }
}

/// The keys of the rest, sorted, and what they read there.
fn rest_of(elements: impl Iterator<Item = (Digest, u64, bool)>) -> (Vec<Digest>, Vec<u32>) {
    let mut rest: Vec<(Digest, u32)> = elements.map(|(key, h, is_key)| (key, coin(h) ^ !is_key as u32)).collect();
    rest.sort_unstable();
    rest.into_iter().unzip()
}

/// Stage one alone, while F is gathered.
struct StageOne {
    fuse: Fuse,
    low: u32,
}

impl fuse::View for StageOne {
    type Of = StageOne;
    #[inline(always)]
    fn fuse(of: &StageOne) -> &Fuse {
        &of.fuse
    }
    #[inline(always)]
    fn mask(of: &StageOne, _: u64, _: u32) -> u32 {
        of.low
    }
}

/// How many there are.
fn count(negatives: &dyn Listed) -> Result<u64, BuildError> {
    let mut count = 0;
    negatives.each(&mut |part, _| {
        count += part.len() as u64;
        Ok(())
    })?;
    Ok(count)
}

/// A hash of both sides.
fn set_hash(keys: &[Digest], negatives: &dyn Listed) -> Result<u64, BuildError> {
    let mut hash = SetHash::new();
    hash.add(keys);
    negatives.each(&mut |part, _| {
        hash.add(part);
        Ok(())
    })?;
    Ok(hash.finish())
}

/// Both stages peel on one geometry, or the next seed is tried.
fn both_stages(
    keys: &[Digest],
    negatives: &dyn Listed,
    params: &Params,
    salt: Salt,
    out: &mut Vec<u8>,
) -> Result<Integrated, BuildError> {
    let (arity, first, columns) = (params.arity, u32::from(params.first), params.parts.columns());
    let width = (first + columns) as u16 * 256;
    let (s, start) = (keys.len() as u64, out.len());
    let mut room = match params.parts {
        IntegratedVariant::One => room_for_all(s, (count(negatives)? as f64 * exp2(-f64::from(first))) as u64),
        IntegratedVariant::Two | IntegratedVariant::Hybrid | IntegratedVariant::General => s,
    };
    let unsolvable = |attempts| BuildError::Unsolvable { structure: "integrated fuse", keys: keys.len(), attempts };
    let mut space = fuse::Space::default();
    let set = Cell::new(0);
    for (attempt, number) in numbers(keys.len(), || set.get()) {
        out.truncate(start);
        let (log, starts) = fuse::size(room, arity, attempt);
        let fuse = Fuse::new(&fuse::Params { arity, width }, log, starts, number, salt);
        let low = Rule::new(first, params.parts, 0).low();
        let rows = keys.iter().map(|&key| fuse.hash(key)).map(|h| (h, fuse::fingerprint(h)));
        if !fuse::solve_rows::<true>(&fuse, rows, low, &mut space, start, out) {
            // Equal digests fail with every salt; so say so at once.
            if attempt == 0 && keys.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(unsolvable(1));
            }
            set.set(set_hash(keys, negatives)?);
            continue;
        }
        let stage = Part { geometry: StageOne { fuse: fuse.clone(), low }, payload: Bytes::new(), start };
        let stage = ShardedLeaf::single(stage);
        let (survivors, listed) =
            survivors(negatives, |asked, matched| fuse.ask_single_in::<StageOne>(&stage, out, asked, matched))?;
        // Chosen to match stage one: the next number follows from them too. Only negatives that are keys match every time.
        if attempt < PATIENCE && too_many(survivors.len(), listed as f64 * exp2(-f64::from(first))) {
            set.set(set_hash(keys, negatives)?);
            continue;
        }
        let elements = Elements { keys, survivors: &survivors, hash: |key| fuse.hash(key) };
        let rule = rule(first, params.parts, room as usize, elements.all().map(|(_, h, key)| (h, key)));
        let solved = (0..columns).all(|column| {
            let rows = elements.rows(rule, column, fuse::fingerprint);
            fuse::solve_rows::<true>(&fuse, rows, 1 << (first + column), &mut space, start, out)
        });
        if !solved {
            if attempt <= PATIENCE && survivors.iter().any(|key| keys.binary_search(key).is_ok()) {
                return Err(unsolvable(1));
            }
            if params.parts == IntegratedVariant::One {
                room = room.max(room_for_all(s, survivors.len() as u64));
            }
            set.set(set_hash(keys, negatives)?);
            continue;
        }
        let open = elements.all().filter(|&(_, h, _)| rule.mask(h) & rule.pick(h) == 0);
        let (keys, values) = rest_of(open);
        let bit = fuse::Params { arity, width: 256 };
        let rest = fuse::build(&keys, Values::Given(&values), &bit, rest_salt(salt), out)?;
        return Ok(Integrated::new(rule, fuse, rest));
    }
    Err(unsolvable(ATTEMPTS))
}
