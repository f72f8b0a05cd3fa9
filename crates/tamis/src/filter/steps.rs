//! a list of steps + a digest -> yes or no: the evaluator of every filter.
//!
//! A filter is a list of steps, and every step asks one leaf:
//!
//! ```text
//!   Refuse   leaf on the keys         "no" ends with no               P
//!   Admit    leaf on the negatives    "no" ends with yes              N
//!   Decide   leaf on both             its answer is the answer        E
//!   (end)                             yes                             A
//! ```
//!
//! Bloom, fuse and ribbon filters are `P`; longer lists are made by the recipes. A leaf that decides is a filter like the
//! others, of one bit as a rule, that holds the negatives which got this far with the wrong fingerprint
//! (`Values::Signed`): it never errs on a key it was built on, and lets half of the strangers through.
//!
//! One evaluator serves all lists, alone and in batches: each step answers for the keys that are still undecided, and the
//! survivors are moved together before the next, so that every step prefetches a full batch.

use std::marker::PhantomData;

use bytes::Bytes;

use crate::arch::{Answer, Ask, Fetch, Isa, Level};
use crate::error::FormatError;
use crate::format::{Reader, decode_column};
use crate::hash::{Digest, Salt};
use crate::leaves::bloom::{Classic, SplitBlock};
use crate::leaves::cuckoo::Cuckoo;
use crate::leaves::fuse::Fuse;
use crate::leaves::integrated::Integrated;
use crate::leaves::local::Local;
use crate::leaves::quotient::Quotient;
use crate::leaves::ribbon::Ribbon;
use crate::leaves::steered::Steered;
use crate::leaves::{Column, Find, Finish, Geometry, Whole};

/// What an answer of the step's leaf means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A leaf on the keys: its "no" is a no.
    Refuse,
    /// A leaf on known negatives: its "no" is a yes.
    Admit,
    /// A leaf on the keys and on the negatives that got this far: its answer is the answer.
    Decide,
}

impl Role {
    pub(crate) fn encode(self) -> u8 {
        match self {
            Role::Refuse => 0,
            Role::Admit => 1,
            Role::Decide => 2,
        }
    }

    pub(crate) fn decode(byte: u8) -> Result<Role, FormatError> {
        match byte {
            0 => Ok(Role::Refuse),
            1 => Ok(Role::Admit),
            2 => Ok(Role::Decide),
            _ => Err(FormatError::invalid(format!("directory: the role of a step is {byte}, expected 0 to 2"))),
        }
    }
}

/// One step of a filter.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) role: Role,
    pub(crate) leaf: Leaf,
}

macro_rules! with_column {
    ($leaf:expr, $column:ident => $body:expr) => {
        match $leaf {
            Leaf::SplitBlock($column) => $body,
            Leaf::Bloom($column) => $body,
            Leaf::Fuse($column) => $body,
            Leaf::Ribbon($column) => $body,
            Leaf::Integrated($column) => $body,
            Leaf::Steered($column) => $body,
            Leaf::Local($column) => $body,
            Leaf::Cuckoo($column) => $body,
            Leaf::Quotient($column) => $body,
        }
    };
}

/// A list of steps. The first one lies in it, so that the most common query has no pointer to follow to get there.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    first: Option<Step>,
    rest: Box<[Next]>,
}

/// A step after the first, and the fastest way to ask it for one key.
#[derive(Debug, Clone)]
struct Next {
    step: Step,
    ask: Ask<Step>,
}

/// Bytes of memory for each step after the first.
pub(crate) const NEXT: u64 = size_of::<Next>() as u64;

impl Steps {
    pub(crate) fn new(steps: Vec<Step>) -> Steps {
        let mut steps = steps.into_iter();
        let first = steps.next();
        let next =
            |step: Step| Next { ask: with_column!(&step.leaf, column => column.ask::<Step, Own, Later>()), step };
        Steps { first, rest: steps.map(next).collect() }
    }

    /// All steps in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Step> {
        self.first.iter().chain(self.rest.iter().map(|next| &next.step))
    }

    /// The leaf of a list whose answer is that of its only leaf.
    #[inline(always)]
    fn only(&self) -> Option<&Leaf> {
        match (&self.first, &self.rest[..]) {
            (Some(Step { role: Role::Refuse, leaf }), []) | (Some(Step { role: Role::Decide, leaf }), _) => Some(leaf),
            _ => None,
        }
    }

    /// The fastest way to ask for one key.
    pub(crate) fn ask(&self) -> Ask<Steps> {
        match (self.only(), &self.first) {
            (Some(leaf), _) => with_column!(leaf, column => column.ask::<Steps, First, Whole>()),
            (None, Some(Step { role: Role::Refuse, leaf })) => {
                with_column!(leaf, column => column.ask::<Steps, First, WithRest>())
            }
            _ => Ask::new::<StepByStep>(Level::detect()),
        }
    }

    /// The fastest way to ask for one key of which nothing is known: all steps are asked, without waiting for the first. Where
    /// any answer is as likely as the other, a step more costs less than a branch that nobody can foresee.
    pub(crate) fn ask_at_once(&self) -> Ask<Steps> {
        let steered = |step: &Step| matches!(step, Step { role: Role::Refuse | Role::Admit, leaf: Leaf::Steered(_) });
        match self.rest.split_last() {
            Some((Next { step: Step { role: Role::Decide, leaf: Leaf::Ribbon(last) }, .. }, others))
                if others.iter().map(|next| &next.step).chain(&self.first).all(steered) && last.is_bit() =>
            {
                match last.parts().len() {
                    1 => Ask::new::<AtOnce<true>>(Level::detect()),
                    _ => Ask::new::<AtOnce<false>>(Level::detect()),
                }
            }
            _ => self.ask(),
        }
    }

    /// The answer of the steps after the first.
    #[inline(never)]
    fn rest(&self, key: Digest) -> bool {
        for Next { step, ask } in &self.rest {
            let yes = ask.call(step, key);
            match step.role {
                Role::Refuse if !yes => return false,
                Role::Admit if !yes => return true,
                Role::Decide => return yes,
                _ => {}
            }
        }
        true
    }
}

/// The leaves there are. The tags are in files and are never reused.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "there is one per step, and a query shall have no pointer to follow")]
pub(crate) enum Leaf {
    SplitBlock(Column<SplitBlock>),
    Bloom(Column<Classic>),
    Fuse(Column<Fuse>),
    Ribbon(Column<Ribbon>),
    Integrated(Column<Integrated>),
    Steered(Column<Steered>),
    Local(Column<Local>),
    Cuckoo(Column<Cuckoo>),
    Quotient(Column<Quotient>),
}

pub(crate) const SPLIT_BLOCK: u8 = 1;
pub(crate) const BLOOM: u8 = 2;
pub(crate) const FUSE: u8 = 3;
pub(crate) const RIBBON: u8 = 4;
pub(crate) const INTEGRATED: u8 = 5;
pub(crate) const STEERED: u8 = 6;
pub(crate) const LOCAL: u8 = 7;
pub(crate) const CUCKOO: u8 = 8;
pub(crate) const QUOTIENT: u8 = 9;

impl Leaf {
    pub(crate) fn decode(tag: u8, from: &mut Reader<'_>, bits: u32, salt: Salt) -> Result<Leaf, FormatError> {
        Ok(match tag {
            SPLIT_BLOCK => Leaf::SplitBlock(decode_column(from, bits, salt)?),
            BLOOM => Leaf::Bloom(decode_column(from, bits, salt)?),
            FUSE => Leaf::Fuse(decode_column(from, bits, salt)?),
            RIBBON => Leaf::Ribbon(decode_column(from, bits, salt)?),
            INTEGRATED => Leaf::Integrated(decode_column(from, bits, salt)?),
            STEERED => Leaf::Steered(decode_column(from, bits, salt)?),
            LOCAL => Leaf::Local(decode_column(from, bits, salt)?),
            CUCKOO => Leaf::Cuckoo(decode_column(from, bits, salt)?),
            QUOTIENT => Leaf::Quotient(decode_column(from, bits, salt)?),
            _ => return Err(FormatError::invalid(format!("directory: unknown structure {tag}; upgrade tamis"))),
        })
    }

    /// The structure's name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Leaf::SplitBlock(_) => "split-block Bloom",
            Leaf::Bloom(_) => "classic Bloom",
            Leaf::Fuse(_) => "binary fuse",
            Leaf::Ribbon(_) => "ribbon",
            Leaf::Integrated(_) => "integrated",
            Leaf::Steered(_) => "steered ribbon",
            Leaf::Local(_) => "local",
            Leaf::Cuckoo(_) => "cuckoo",
            Leaf::Quotient(_) => "quotient",
        }
    }

    /// The parameters of the largest shard, in words; the others differ in size alone.
    pub(crate) fn details(&self) -> String {
        with_column!(self, column => {
            let largest = column.parts().iter().max_by_key(|part| part.geometry.payload_len());
            largest.map(|part| part.geometry.details()).unwrap_or_default()
        })
    }

    /// The share of strangers the leaf says yes to, on average over the shards.
    pub(crate) fn rate(&self) -> f64 {
        with_column!(self, column => {
            let rates = column.parts().iter().map(|part| part.geometry.rate());
            rates.sum::<f64>() / column.parts().len().max(1) as f64
        })
    }

    /// The same of the very tables that it has, where what is in them decides and is soon read.
    fn counted_rate(&self) -> f64 {
        fn mean<G: Geometry>(column: &Column<G>, rate: impl Fn(&G, &[u8]) -> f64) -> f64 {
            let rates = column.parts().iter().map(|part| rate(&part.geometry, &part.payload));
            rates.sum::<f64>() / column.parts().len().max(1) as f64
        }
        match self {
            Leaf::Bloom(column) => mean(column, Classic::counted_rate),
            _ => self.rate(),
        }
    }

    /// Length of one shard's payload.
    pub(crate) fn payload_len(&self, shard: usize) -> u64 {
        with_column!(self, column => column.parts().get(shard).map_or(0, |part| part.geometry.payload_len()))
    }

    /// One shard, as it was built.
    #[cfg(feature = "build")]
    pub(crate) fn part(&self, shard: usize) -> Option<crate::format::Encoded> {
        with_column!(self, column => column.parts().get(shard).map(|part| {
            let mut geometry = vec![];
            part.geometry.encode(&mut geometry);
            crate::format::Encoded { geometry, payload: part.payload.clone() }
        }))
    }

    /// Says where one shard's payload lies.
    pub(crate) fn set_place(&mut self, shard: usize, start: usize, payload: Bytes) {
        with_column!(self, column => column.set_place(shard, start, payload))
    }

    fn contains(&self, key: Digest) -> bool {
        with_column!(self, column => column.contains(key))
    }

    /// The fastest way to read the value of one key, if it holds values.
    pub(crate) fn fetch(&self) -> Option<Fetch<Leaf>> {
        match self {
            Leaf::Fuse(column) => Some(column.fetch::<Leaf, Own>()),
            Leaf::Ribbon(column) => Some(column.fetch::<Leaf, Own>()),
            _ => None,
        }
    }

    /// The values of many keys, if it holds values.
    pub(crate) fn get_many(&self, file: &[u8], keys: &[Digest], out: &mut [u32]) {
        match self {
            Leaf::Fuse(column) => column.get_many(file, keys, out),
            Leaf::Ribbon(column) => column.get_many(file, keys, out),
            _ => out.fill(0),
        }
    }

    pub(crate) fn contains_many(&self, file: &[u8], keys: &[Digest], out: &mut [bool]) {
        with_column!(self, column => column.contains_many(file, keys, out))
    }
}

/// Finds the column of the first step.
struct First;
/// Finds the column of a step, or of a leaf.
struct Own;

macro_rules! find_first {
    ($($variant:ident of $geometry:ty),*) => { $(
        impl Find<Steps, $geometry> for First {
            #[inline(always)]
            fn find(steps: &Steps) -> Option<&Column<$geometry>> {
                match &steps.first {
                    Some(Step { leaf: Leaf::$variant(column), .. }) => Some(column),
                    _ => None,
                }
            }
        }
        impl Find<Step, $geometry> for Own {
            #[inline(always)]
            fn find(step: &Step) -> Option<&Column<$geometry>> {
                Own::find(&step.leaf)
            }
        }
        impl Find<Leaf, $geometry> for Own {
            #[inline(always)]
            fn find(leaf: &Leaf) -> Option<&Column<$geometry>> {
                match leaf {
                    Leaf::$variant(column) => Some(column),
                    _ => None,
                }
            }
        }
    )* };
}
find_first!(
    SplitBlock of SplitBlock,
    Bloom of Classic,
    Fuse of Fuse,
    Ribbon of Ribbon,
    Integrated of Integrated,
    Steered of Steered,
    Local of Local,
    Cuckoo of Cuckoo,
    Quotient of Quotient
);

/// A column that refuses, inlined; then the other steps.
struct WithRest;

impl Finish<Steps> for WithRest {
    const QUICK: bool = true;

    fn finish<A: Answer<Steps>>(level: Level) -> Ask<Steps> {
        struct Then<A>(PhantomData<A>);
        impl<A: Answer<Steps>> Answer<Steps> for Then<A> {
            #[inline(always)]
            fn answer<I: Isa>(steps: &Steps, key: Digest) -> bool {
                A::answer::<I>(steps, key) && steps.rest(key)
            }
        }
        Ask::new::<Then<A>>(level)
    }
}

/// A column after the first: fewer keys come this far.
struct Later;

impl Finish<Step> for Later {
    const QUICK: bool = false;

    fn finish<A: Answer<Step>>(level: Level) -> Ask<Step> {
        Ask::new::<A>(level)
    }
}

/// Steered columns and one bit that decides, all of them asked; whether there is one shard.
struct AtOnce<const SINGLE: bool>;

impl<const SINGLE: bool> AtOnce<SINGLE> {
    /// The answer from a steered column on, if it is `yes` behind it.
    #[inline(always)]
    fn before(step: &Step, key: Digest, yes: bool) -> bool {
        let Leaf::Steered(column) = &step.leaf else { return yes };
        let passes = column.part_of::<SINGLE>(key).passes(key);
        passes & yes | !passes & (step.role == Role::Admit)
    }
}

impl<const SINGLE: bool> Answer<Steps> for AtOnce<SINGLE> {
    #[inline(always)]
    fn answer<I: Isa>(steps: &Steps, key: Digest) -> bool {
        let Some((Next { step: Step { leaf: Leaf::Ribbon(last), .. }, .. }, others)) = steps.rest.split_last() else {
            return StepByStep::answer::<I>(steps, key);
        };
        let mut yes = last.part_of::<SINGLE>(key).bit::<I>(key);
        for Next { step, .. } in others.iter().rev() {
            yes = Self::before(step, key, yes);
        }
        match &steps.first {
            Some(step) => Self::before(step, key, yes),
            None => yes,
        }
    }
}

/// A list that begins with an admitting step, or is empty.
struct StepByStep;

impl Answer<Steps> for StepByStep {
    #[inline(always)]
    fn answer<I: Isa>(steps: &Steps, key: Digest) -> bool {
        match &steps.first {
            None => true,
            Some(Step { role: Role::Admit, leaf }) => !leaf.contains(key) || steps.rest(key),
            Some(Step { leaf, .. }) => leaf.contains(key) && steps.rest(key),
        }
    }
}

/// Keys per round: the survivors of one step are a full batch for the next.
pub(crate) const ROUND: usize = 256;

/// The answers of a list of steps for at most [`ROUND`] keys.
pub(crate) fn contains_many(steps: &Steps, file: &[u8], keys: &[Digest], out: &mut [bool]) {
    if let Some(leaf) = steps.only() {
        return leaf.contains_many(file, keys, out);
    }
    // The undecided keys and where their answers go; the rest is decided.
    let mut open = [Digest::default(); ROUND];
    let mut places = [0u16; ROUND];
    let mut answers = [false; ROUND];
    let mut count = keys.len().min(out.len()).min(ROUND);
    open[..count].copy_from_slice(&keys[..count]);
    for (i, place) in places.iter_mut().enumerate() {
        *place = i as u16;
    }
    out[..count].fill(true);
    for Step { role, leaf } in steps.iter() {
        leaf.contains_many(file, &open[..count], &mut answers[..count]);
        // Members come in crowds: where all pass there is nothing to move.
        if *role != Role::Decide && answers[..count].iter().fold(true, |all, yes| all & yes) {
            continue;
        }
        let mut kept = 0;
        for i in 0..count {
            let place = places[i];
            if *role != Role::Admit {
                out[place as usize] = answers[i];
            }
            (open[kept], places[kept]) = (open[i], place);
            kept += answers[i] as usize;
        }
        if *role == Role::Decide {
            return;
        }
        count = kept;
    }
}

/// The same for keys of which nothing is known. Of two steps the second is asked for all of them: about half would be left, and to move
/// those together costs as much.
pub(crate) fn contains_many_at_once(steps: &Steps, file: &[u8], keys: &[Digest], out: &mut [bool]) {
    match (&steps.first, &steps.rest[..]) {
        (Some(Step { role: Role::Refuse, leaf }), [Next { step: Step { role: Role::Decide, leaf: last }, .. }]) => {
            let mut passes = [false; ROUND];
            let passes = &mut passes[..keys.len().min(ROUND)];
            leaf.contains_many(file, keys, passes);
            last.contains_many(file, keys, out);
            out.iter_mut().zip(passes).for_each(|(out, passes)| *out &= *passes);
        }
        _ => contains_many(steps, file, keys, out),
    }
}

/// The share of unlisted keys that match a list of steps, if its leaves err independently. A first leaf on the keys has as many of
/// them as was planned for, and its rate is the expected one; others may hold a key or two, and are counted.
pub(crate) fn rate(steps: &Steps) -> f64 {
    let (mut undecided, mut admitted) = (1.0, 0.0);
    for (number, Step { role, leaf }) in steps.iter().enumerate() {
        let planned = number == 0 && *role == Role::Refuse;
        let passed = undecided * if planned { leaf.rate() } else { leaf.counted_rate() };
        match role {
            Role::Refuse => undecided = passed,
            Role::Admit => {
                admitted += undecided - passed;
                undecided = passed;
            }
            Role::Decide => return (admitted + passed).min(1.0),
        }
    }
    (admitted + undecided).min(1.0) // sums of rounded numbers may exceed it
}

#[cfg(all(test, feature = "build"))]
mod tests;
