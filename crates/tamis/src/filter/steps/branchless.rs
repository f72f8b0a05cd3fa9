//! steered columns and one exact bit, a digest -> yes or no, in one call without a branch that depends on the key.
//!
//! A list `P .. P E`, also with `N` among the `P`, may know its answer after every step. Leaving there is not worth it: a branch that
//! cannot be predicted costs as much as three columns, and a call for each step costs half a column. So the numbers of all columns lie
//! side by side here. All columns are queried, and the first that a key does not pass is found in the bits of a word. The one branch is for
//! keys that pass every column and whose bit is on a later level of the ribbon.

use bytes::Bytes;

use super::{Step, Steps};
use crate::arch::lanes::{LANES, Lanes, Places};
use crate::arch::{Answer, Isa, Kernel, Level, QueryFn, dispatch, prefetch};
use crate::hash::Digest;
use crate::leaves::ribbon::{ExactBit, Ribbon, fingerprint};
use crate::leaves::steered::Steered;
use crate::leaves::{Entry, Leaf, Role};

/// The last steps of a list, as far as they are steered columns and one exact bit: all steps, or all but the first.
#[derive(Debug, Clone)]
pub(super) struct Branchless {
    file: Bytes,
    /// The only shard, or the first.
    first: Shard,
    /// All shards.
    shards: Box<[Shard]>,
    /// Top bits of a digest that choose the shard, and those that no place depends on.
    bits: u32,
    skip: u32,
    /// Bit `i`: the answer for a key that does not pass column `i`.
    admits: u32,
    columns: usize,
    level: Level,
    pub(super) ask: QueryFn<Steps>,
    /// The first of these steps: 0 or 1.
    pub(super) from: usize,
}

/// The numbers of one shard.
#[derive(Debug, Clone)]
struct Shard {
    lanes: Lanes,
    bit: ExactBit,
}

/// Bytes that a list of these roles and tags may take here.
pub(in crate::filter) fn memory(kinds: &[(Role, u8)], shards: u64) -> u64 {
    match kinds {
        [.., (_, before), (Role::Exact, Ribbon::TAG)] if *before == Steered::TAG => {
            size_of::<Branchless>() as u64 + shards * size_of::<Shard>() as u64
        }
        _ => 0,
    }
}

impl Branchless {
    pub(super) fn new(first: Option<&Step>, rest: &[Step], file: &Bytes) -> Option<Box<Branchless>> {
        let (Step { role: Role::Exact, leaf: Leaf::Ribbon(last), .. }, others) = rest.split_last()? else {
            return None;
        };
        let plain = first.is_some_and(|step| !matches!(step.leaf, Leaf::Steered(_)));
        let (mut columns, mut admits) = (vec![], 0);
        for step in first.into_iter().filter(|_| !plain).chain(others) {
            let Leaf::Steered(leaf) = &step.leaf else { return None };
            admits |= ((step.role == Role::Negative) as u32) << columns.len();
            columns.push(leaf);
            if step.role == Role::Exact || columns.len() == LANES {
                return None;
            }
        }
        let skip = last.parts().first()?.exact_bit()?.skip;
        let mut shards = Vec::with_capacity(last.parts().len());
        for (number, part) in last.parts().iter().enumerate() {
            let bit = part.exact_bit().filter(|bit| bit.skip == skip)?;
            let mut lanes = Lanes::default();
            lanes.set(0, bit.lane)?;
            for (i, column) in columns.iter().enumerate() {
                let (lane, _) = column.parts().get(number)?.lane().filter(|lane| lane.1 == skip)?;
                lanes.set(i + 1, lane)?;
            }
            shards.push(Shard { lanes, bit });
        }
        let bits = shards.len().trailing_zeros();
        let level = Level::detect();
        let ask = match columns.len() {
            0 => return None,
            1 => QueryFn::new::<Query<1>>(level),
            2 => QueryFn::new::<Query<2>>(level),
            3 => QueryFn::new::<Query<3>>(level),
            _ => QueryFn::new::<Query<4>>(level),
        };
        let (columns, file) = (columns.len(), file.clone());
        Some(Box::new(Branchless {
            file,
            first: shards.first()?.clone(),
            shards: shards.into(),
            bits,
            skip,
            admits,
            columns,
            level,
            ask,
            from: plain as usize,
        }))
    }

    #[inline(always)]
    fn shard(&self, key: Digest) -> &Shard {
        match self.bits {
            0 => &self.first,
            bits => self.shards.get(key.shard(bits)).unwrap_or(&self.first),
        }
    }

    #[inline(always)]
    fn places<I: Isa, const N: usize>(&self, key: Digest) -> Places {
        I::places::<N>(&self.shard(key).lanes, key, key.hi << self.skip)
    }

    /// The answer, nothing for a key that passes every column and was bumped; and which columns it does not pass.
    #[inline(always)]
    fn answer<I: Isa, const N: usize>(&self, key: Digest, places: &Places) -> (Option<bool>, u32) {
        let odd = I::odd::<N>(&self.file, places);
        let fails = odd >> 1 & ((1 << N) - 1);
        if self.shard(key).bit.bumped(&self.file, places.octet, fails) {
            return (None, fails);
        }
        let bit = !(odd ^ fingerprint(places.band)) & 1;
        (Some((self.admits | bit << N) >> (fails | 1 << N).trailing_zeros() & 1 == 1), fails)
    }
}

/// `N` columns and the bit.
struct Query<const N: usize>;

impl<const N: usize> Answer<Steps> for Query<N> {
    const V4: bool = true;

    #[inline(always)]
    fn answer<I: Isa>(steps: &Steps, key: Digest) -> bool {
        let Some(branchless) = &steps.branchless else { return true };
        match branchless.answer::<I, N>(key, &branchless.places::<I, N>(key)).0 {
            Some(answer) => answer,
            None => steps.deep_bit(key),
        }
    }
}

/// Keys per round of a batch.
const BATCH: usize = 32;
/// Where the first column decides for more keys of a round, columns had better be queried one after the other.
const MANY_DECIDED: u32 = 12;

/// Many queries: all places first, prefetched, then all answers. Returns how many keys have theirs.
struct Many<'a, const N: usize> {
    steps: &'a Steps,
    branchless: &'a Branchless,
    keys: &'a [Digest],
    out: &'a mut [bool],
}

impl<const N: usize> Kernel for Many<'_, N> {
    type Output = usize;

    #[inline(always)]
    fn run<I: Isa>(self) -> usize {
        let Many { steps, branchless, keys, out } = self;
        let mut places = [Places::default(); BATCH];
        let mut done = 0;
        for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            for (places, &key) in places.iter_mut().zip(keys) {
                *places = branchless.places::<I, N>(key);
                places.at[..=N].iter().for_each(|&at| prefetch(&branchless.file, at as usize));
            }
            let mut decided = 0;
            for ((out, &key), places) in out.iter_mut().zip(keys).zip(&places) {
                let (answer, fails) = branchless.answer::<I, N>(key, places);
                decided += fails & 1;
                *out = match answer {
                    Some(answer) => answer,
                    None => steps.deep_bit(key),
                };
            }
            done += keys.len();
            // The first round speaks for all: where a mix is even, one of many would be exceptional.
            if done == BATCH && decided > MANY_DECIDED {
                break;
            }
        }
        done
    }
}

impl Steps {
    /// Answers for many keys whose answer is due from a step on, all steps at once. Returns for how many: those before the first that had
    /// better be asked step by step.
    pub(super) fn contains_many_at_once(&self, from: usize, keys: &[Digest], out: &mut [bool]) -> usize {
        let Some(branchless) = self.branchless.as_ref().filter(|branchless| branchless.from == from) else { return 0 };
        macro_rules! run {
            ($columns:literal) => {
                dispatch(branchless.level, Many::<$columns> { steps: self, branchless, keys, out })
            };
        }
        match branchless.columns {
            1 => run!(1),
            2 => run!(2),
            3 => run!(3),
            _ => run!(4),
        }
    }

    /// The answer for a key that only the exact bit at the end decides, and that the bit's first level passed on.
    #[inline(never)]
    fn deep_bit(&self, key: Digest) -> bool {
        match self.rest.last() {
            Some(Step { leaf: Leaf::Ribbon(last), .. }) => last.part(key).deep_bit(key),
            _ => true,
        }
    }
}
