//! a list of steps + a digest -> yes or no: the evaluator of every filter.
//!
//! A filter is a list of steps, and every step asks one leaf:
//!
//! ```text
//!   Refuse   leaf on the keys         "no" ends with no          P
//!   Admit    leaf on the negatives    "no" ends with yes         N
//!   Decide   one exact bit            the bit is the answer      E
//!   (end)                             yes                        A
//! ```
//!
//! Bloom, fuse and ribbon filters are `P`; longer lists are made by the recipes. One evaluator serves them all, alone and in
//! batches: each step answers for the keys that are still undecided, and the survivors are moved together before the next,
//! so that every step prefetches a full batch.

use bytes::Bytes;

use crate::arch::{Answer, Ask, Isa, Level};
use crate::error::FormatError;
use crate::format::{Reader, decode_column};
use crate::hash::{Digest, Salt};
use crate::leaves::bloom::{Classic, SplitBlock};
use crate::leaves::fuse::Fuse;
use crate::leaves::ribbon::Ribbon;
use crate::leaves::{Column, Find, Geometry, Retrieve};

/// What an answer of the step's leaf means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A leaf on the keys: its "no" is a no.
    Refuse,
    /// A leaf on known negatives: its "no" is a yes.
    Admit,
    /// One exact bit, which is the answer.
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
        }
    };
}

/// A list of steps. The first one lies in it, so that the most common query has no pointer to follow to get there.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    first: Option<Step>,
    rest: Box<[Step]>,
}

impl Steps {
    pub(crate) fn new(steps: Vec<Step>) -> Steps {
        let mut steps = steps.into_iter();
        Steps { first: steps.next(), rest: steps.collect() }
    }

    /// All steps in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Step> {
        self.first.iter().chain(&self.rest)
    }

    /// The leaf of a list of one refusing step.
    #[inline(always)]
    fn only(&self) -> Option<&Leaf> {
        match (&self.first, &self.rest[..]) {
            (Some(Step { role: Role::Refuse, leaf }), []) => Some(leaf),
            _ => None,
        }
    }

    /// The fastest way to ask for one key.
    pub(crate) fn ask(&self) -> Ask<Steps> {
        match self.only() {
            Some(leaf) => with_column!(leaf, column => column.ask::<Steps, First>()),
            None => Ask::new::<StepByStep>(Level::detect()),
        }
    }
}

/// The leaves there are. The tags are in files and are never reused.
#[derive(Debug, Clone)]
pub(crate) enum Leaf {
    SplitBlock(Column<SplitBlock>),
    Bloom(Column<Classic>),
    Fuse(Column<Fuse>),
    Ribbon(Column<Ribbon>),
}

pub(crate) const SPLIT_BLOCK: u8 = 1;
pub(crate) const BLOOM: u8 = 2;
pub(crate) const FUSE: u8 = 3;
pub(crate) const RIBBON: u8 = 4;

impl Leaf {
    pub(crate) fn decode(tag: u8, from: &mut Reader<'_>, bits: u32, salt: Salt) -> Result<Leaf, FormatError> {
        Ok(match tag {
            SPLIT_BLOCK => Leaf::SplitBlock(decode_column(from, bits, salt)?),
            BLOOM => Leaf::Bloom(decode_column(from, bits, salt)?),
            FUSE => Leaf::Fuse(decode_column(from, bits, salt)?),
            RIBBON => Leaf::Ribbon(decode_column(from, bits, salt)?),
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
        }
    }

    /// Whether the leaf can hold an exact bit.
    pub(crate) fn decides(&self) -> bool {
        matches!(self, Leaf::Fuse(_) | Leaf::Ribbon(_))
    }

    /// The parameters of the first shard, in words; the others differ in size alone.
    pub(crate) fn details(&self) -> String {
        with_column!(self, column => column.parts().first().map(|part| part.geometry.details()).unwrap_or_default())
    }

    /// The share of strangers the leaf says yes to, on average over the shards.
    pub(crate) fn rate(&self) -> f64 {
        with_column!(self, column => {
            let rates = column.parts().iter().map(|part| part.geometry.rate());
            rates.sum::<f64>() / column.parts().len().max(1) as f64
        })
    }

    /// Length of one shard's payload.
    pub(crate) fn payload_len(&self, shard: usize) -> u64 {
        with_column!(self, column => column.parts().get(shard).map_or(0, |part| part.geometry.payload_len()))
    }

    /// Says where one shard's payload lies.
    pub(crate) fn set_place(&mut self, shard: usize, start: usize, payload: Bytes) {
        with_column!(self, column => column.set_place(shard, start, payload))
    }

    fn contains(&self, key: Digest) -> bool {
        with_column!(self, column => column.contains(key))
    }

    fn contains_many(&self, file: &[u8], keys: &[Digest], out: &mut [bool]) {
        with_column!(self, column => column.contains_many(file, keys, out))
    }

    #[inline]
    fn bit(&self, key: Digest) -> bool {
        fn value<G: Retrieve>(column: &Column<G>, key: Digest) -> u32 {
            let part = column.part(key);
            part.geometry.get(&part.payload, key)
        }
        let value = match self {
            Leaf::Fuse(column) => value(column, key),
            Leaf::Ribbon(column) => value(column, key),
            Leaf::SplitBlock(_) | Leaf::Bloom(_) => 0, // refused when the file was opened
        };
        value & 1 == 1
    }
}

/// Finds the column of the first step.
struct First;

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
    )* };
}
find_first!(SplitBlock of SplitBlock, Bloom of Classic, Fuse of Fuse, Ribbon of Ribbon);

/// Asks one step after the other.
struct StepByStep;

impl Answer<Steps> for StepByStep {
    #[inline(always)]
    fn answer<I: Isa>(steps: &Steps, key: Digest) -> bool {
        for Step { role, leaf } in steps.iter() {
            match role {
                Role::Refuse if !leaf.contains(key) => return false,
                Role::Admit if !leaf.contains(key) => return true,
                Role::Decide => return leaf.bit(key),
                _ => {}
            }
        }
        true
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
        if *role == Role::Decide {
            for (&key, &place) in open[..count].iter().zip(&places) {
                out[place as usize] = leaf.bit(key);
            }
            return;
        }
        leaf.contains_many(file, &open[..count], &mut answers[..count]);
        let mut kept = 0;
        for i in 0..count {
            let place = places[i];
            if *role == Role::Refuse {
                out[place as usize] = answers[i];
            }
            (open[kept], places[kept]) = (open[i], place);
            kept += answers[i] as usize;
        }
        count = kept;
    }
}

/// The share of strangers that a list of steps lets through, if its leaves err independently.
pub(crate) fn rate(steps: &Steps) -> f64 {
    let (mut undecided, mut admitted) = (1.0, 0.0);
    for Step { role, leaf } in steps.iter() {
        let passed = undecided * leaf.rate();
        match role {
            Role::Refuse => undecided = passed,
            Role::Admit => {
                admitted += undecided - passed;
                undecided = passed;
            }
            // A bit that nobody chose is a coin.
            Role::Decide => return (admitted + undecided / 2.0).min(1.0),
        }
    }
    (admitted + undecided).min(1.0) // sums of rounded numbers may exceed it
}

#[cfg(all(test, feature = "build"))]
mod tests;
