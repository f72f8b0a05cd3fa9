//! shards + a plan -> written parts: one per shard and step, each built on what the steps before it left undecided.
//!
//! Workers run ahead of the writer by a few shards and no more, so memory stays bounded however large the filter is.
//!
//! ```text
//!            undecided keys      undecided negatives
//!   Refuse   built on these      those that pass are left
//!   Admit    those that pass     built on these
//!            are left
//!   Decide   built on these      and on these, with the wrong fingerprint
//! ```
//!
//! A steered column is built on one side and looks at the other, which it leaves shorter. Until the first step has refused
//! most of them, negatives are read in parts and not kept.

use std::borrow::Cow;
use std::io::Write;
use std::sync::atomic::Ordering;

use super::{Options, Progress};
use crate::error::{BuildError, Error};
use crate::filter::query::Filter;
use crate::filter::steps::{Leaf, ROUND, Role};
use crate::format::{Encoded, Reader, Writer};
use crate::gather::{Shards, Tagged};
use crate::hash::{Digest, Salt};
use crate::leaves::steered::{self, Others};
use crate::leaves::{Geometry, Values, integrated, local};
use crate::parallel::{Stop, in_order};
use crate::plan::recipes::steered::Weigher;
use crate::plan::{Plan, Step, Structure};

/// Builds all shards on several threads and writes them in order.
pub(super) fn build_shards<W: Write>(
    shards: &Shards,
    plan: &Plan,
    first: Option<&Filter>,
    options: &Options,
    writer: &mut Writer<W>,
) -> Result<(), Error> {
    let count = shards.count();
    let cancelled = || options.cancel.load(Ordering::Relaxed);
    let tell = |done: usize| {
        if let Some(tell) = &options.progress {
            tell(Progress::Built { shards: done as u64, total: count as u64 });
        }
    };
    // Fewer shards than threads: what can be done on several threads inside a shard is.
    let inside = (options.threads / count.max(1)).max(1);
    let work = |shard: usize| build_shard(shards, plan, first, shard, inside, &cancelled);
    in_order(count, options.threads, work, |shard, parts: Vec<Encoded>| {
        writer.shard(&parts)?;
        tell(shard + 1);
        Ok(())
    })
}

/// Builds one shard on `threads` threads; `first` has the leaf of the first step, if that is there already.
pub(super) fn build_shard(
    shards: &Shards,
    plan: &Plan,
    first: Option<&Filter>,
    shard: usize,
    threads: usize,
    stop: Stop<'_>,
) -> Result<Vec<Encoded>, BuildError> {
    let keys = shards.keys(shard, stop)?;
    let weigher = Weigher::new(plan, &shards.stats);
    let negatives = Listed { shards, shard, keys: &keys, stop, weigher };
    let first = first.and_then(|filter| filter.part(shard));
    Work { skip: shards.bits, salt: 0, threads, stop }.steps(plan, &keys, &negatives, first)
}

/// How the steps of a shard are built.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    /// Top bits in which all digests agree.
    pub(crate) skip: u32,
    /// The number of the first step's salt.
    pub(crate) salt: u64,
    pub(crate) threads: usize,
    pub(crate) stop: Stop<'a>,
}

/// Whoever takes digests, and their weights if these matter.
type Taker<'a> = dyn FnMut(&[Digest], &[u32]) -> Result<(), BuildError> + 'a;

/// The negatives of a shard, wherever they are.
pub(crate) trait Negatives: integrated::Negatives {
    /// All of them in order, piece by piece, with their weights if these matter.
    fn weighed(&self, part: &mut Taker<'_>) -> Result<(), BuildError>;

    /// Those that pass.
    fn passing(&self, probe: &Probe) -> Result<Others, BuildError> {
        let mut passing = Others::default();
        self.weighed(&mut |digests, weights| {
            probe.pass(digests, weights, &mut passing);
            Ok(())
        })?;
        Ok(passing)
    }

    /// All of them, unless fewer are left already.
    fn take<'a>(&self, left: &'a mut Option<Others>) -> Result<&'a mut Others, BuildError> {
        if left.is_none() {
            let mut all = Others::default();
            self.weighed(&mut |digests, weights| {
                all.digests.extend_from_slice(digests);
                all.weights.extend_from_slice(weights);
                Ok(())
            })?;
            *left = Some(all);
        }
        Ok(left.get_or_insert_default())
    }
}

/// In memory, and all worth the same.
impl Negatives for &[Digest] {
    fn weighed(&self, part: &mut Taker<'_>) -> Result<(), BuildError> {
        part(self, &[])
    }
}

impl Work<'_> {
    /// One part per step of a plan; `first` is the first of them, if it is there already. Keys and negatives are sorted and
    /// distinct.
    pub(crate) fn steps<N: Negatives>(
        &self,
        plan: &Plan,
        keys: &[Digest],
        listed: &N,
        mut first: Option<Encoded>,
    ) -> Result<Vec<Encoded>, BuildError> {
        let Work { skip, threads, stop, .. } = *self;
        let mut keys = Cow::Borrowed(keys);
        let mut negatives: Option<Others> = None;
        let mut parts = Vec::with_capacity(plan.steps.len());
        for (number, &Step { role, structure }) in plan.steps.iter().enumerate() {
            if stop() {
                return Err(BuildError::Cancelled);
            }
            let salt = Salt::new(self.salt + number as u64);
            let last = number + 1 == plan.steps.len();
            let part = match role {
                Role::Refuse | Role::Admit if matches!(structure, Structure::Steered(_)) => {
                    let Structure::Steered(params) = structure else { continue };
                    let left = listed.take(&mut negatives)?;
                    let mut payload = vec![];
                    let out = &mut payload;
                    let leaf = if role == Role::Refuse {
                        let leaf = steered::build(&keys, left, &params, skip, salt, threads, stop, out)?;
                        left.digests.shrink_to_fit(); // most of them are gone, and the next step has needs of its own
                        leaf
                    } else {
                        let mut side = Others { digests: keys.into_owned(), weights: vec![] };
                        let leaf = steered::build(&left.digests, &mut side, &params, skip, salt, threads, stop, out)?;
                        keys = Cow::Owned(side.digests);
                        leaf
                    };
                    let mut geometry = vec![];
                    leaf.encode(&mut geometry);
                    Encoded { geometry, payload: payload.into() }
                }
                Role::Refuse => {
                    let part = match first.take().filter(|_| number == 0) {
                        Some(part) => part,
                        None => structure.build(&keys, Values::Fingerprints, salt, threads)?,
                    };
                    if !last {
                        let probe = Probe::new(&structure, &part, salt)?;
                        negatives = Some(match &negatives {
                            None => listed.passing(&probe)?,
                            Some(left) => probe.others(left),
                        });
                    }
                    part
                }
                Role::Admit => {
                    let left = listed.take(&mut negatives)?;
                    let part = structure.build(&left.digests, Values::Fingerprints, salt, threads)?;
                    if !last {
                        keys = Cow::Owned(Probe::new(&structure, &part, salt)?.passing(&keys));
                    }
                    part
                }
                Role::Decide => match structure {
                    // It finds out itself which negatives matter, and may have to do so again.
                    Structure::Integrated(params) => {
                        let mut payload = vec![];
                        let leaf = match &negatives {
                            None => integrated::build(&keys, listed, &params, salt, &mut payload)?,
                            Some(left) => integrated::build(&keys, &&left.digests[..], &params, salt, &mut payload)?,
                        };
                        let mut geometry = vec![];
                        leaf.encode(&mut geometry);
                        Encoded { geometry, payload: payload.into() }
                    }
                    Structure::Local(params) => {
                        let left = listed.take(&mut negatives)?;
                        let mut payload = vec![];
                        let out = &mut payload;
                        let leaf = local::build(&keys, &left.digests, &params, skip, salt, threads, stop, out)?;
                        let mut geometry = vec![];
                        leaf.encode(&mut geometry);
                        Encoded { geometry, payload: payload.into() }
                    }
                    _ => {
                        let left = listed.take(&mut negatives)?;
                        let both = [&keys[..], &left.digests].concat();
                        let mut wanted = vec![true; both.len()];
                        wanted[keys.len()..].fill(false);
                        structure.build(&both, Values::Signed(&wanted), salt, threads)?
                    }
                },
            };
            parts.push(part);
        }
        Ok(parts)
    }
}

/// The negatives of one of several shards.
struct Listed<'a> {
    shards: &'a Shards,
    shard: usize,
    keys: &'a [Digest],
    stop: Stop<'a>,
    /// Where weights matter.
    weigher: Option<Weigher>,
}

impl Negatives for Listed<'_> {
    fn weighed(&self, part: &mut Taker<'_>) -> Result<(), BuildError> {
        let (mut digests, mut weights) = (Vec::with_capacity(PIECE), vec![]);
        self.shards.negatives(self.shard, self.keys, self.stop, |records: &[Tagged]| {
            for records in records.chunks(PIECE) {
                digests.clear();
                digests.extend(records.iter().map(|record| record.digest));
                if let Some(weigher) = self.weigher {
                    weights.clear();
                    weights.extend(records.iter().map(|record| weigher.weigh(record.weight)));
                }
                part(&digests, &weights)?;
            }
            Ok(())
        })
    }
}

impl integrated::Negatives for Listed<'_> {
    fn each(&self, part: &mut dyn FnMut(&[Digest]) -> Result<(), BuildError>) -> Result<(), BuildError> {
        self.weighed(&mut |digests, _| part(digests))
    }
}

/// Digests that are handed on at a time: they stay in the first cache.
const PIECE: usize = 8 * ROUND;

/// A part that was just built, to be asked.
pub(crate) struct Probe {
    leaf: Leaf,
    payload: bytes::Bytes,
}

impl Probe {
    fn new(structure: &Structure, part: &Encoded, salt: Salt) -> Result<Probe, BuildError> {
        let mut from = Reader::new(&part.geometry, "part");
        let leaf = Leaf::decode(structure.tag(), &mut from, 0, salt);
        // What was encoded a moment ago can be decoded.
        let mut leaf = leaf.map_err(|e| BuildError::Io(std::io::Error::other(e)))?;
        leaf.set_place(0, 0, part.payload.clone());
        Ok(Probe { leaf, payload: part.payload.clone() })
    }

    /// Appends those of `keys` that pass, with their weights if they have any.
    fn pass(&self, keys: &[Digest], weights: &[u32], passing: &mut Others) {
        let mut answers = [false; ROUND];
        for (round, keys) in keys.chunks(ROUND).enumerate() {
            let answers = &mut answers[..keys.len()];
            self.leaf.contains_many(&self.payload, keys, answers);
            let passed = |yes: &bool| *yes;
            passing.digests.extend(keys.iter().zip(&*answers).filter(|(_, yes)| passed(yes)).map(|(key, _)| *key));
            let weights = weights.get(round * ROUND..).unwrap_or(&[]);
            passing.weights.extend(weights.iter().zip(&*answers).filter(|(_, yes)| passed(yes)).map(|(w, _)| *w));
        }
    }

    fn others(&self, left: &Others) -> Others {
        let mut passing = Others::default();
        self.pass(&left.digests, &left.weights, &mut passing);
        passing
    }

    fn passing(&self, keys: &[Digest]) -> Vec<Digest> {
        let mut passing = Others::default();
        self.pass(keys, &[], &mut passing);
        passing.digests
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::format::{Form, Header};
    use crate::gather::{Keys, OnConflict, Sorted};
    use crate::hash::{Digest, Domain};
    use crate::plan::plan;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    /// A callback may panic while workers wait for the writer: the panic goes on, and nobody waits for ever.
    #[test]
    fn a_callback_that_panics_ends_the_build() {
        let (send, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let told = Arc::new(|_| std::panic::resume_unwind(Box::new("told")));
            let options = Options { threads: 2, progress: Some(told), ..Options::default() };
            let digests: Vec<Digest> = (0..2000).map(|i| options.hasher.integer(i)).collect();
            let sorted = Sorted::shared(digests.into(), &options.workspace(), &|| false).unwrap();
            let mut shards = Shards::new(Keys::Plain(sorted), None, OnConflict::Error, &|| false).unwrap();
            shards.bits = 6;
            let plan = plan(&options.request(2000, 0)).unwrap();
            let header = Header {
                hasher: options.hasher,
                domain: Domain::U64,
                shard_bits: 6,
                form: Form::Filter,
                keys: 2000,
                negatives: 0,
            };
            let mut writer = Writer::new(Vec::new(), &header, vec![]).unwrap();
            let built = catch_unwind(AssertUnwindSafe(|| build_shards(&shards, &plan, None, &options, &mut writer)));
            send.send(built.is_err()).unwrap();
        });
        assert_eq!(heard.recv_timeout(std::time::Duration::from_secs(60)), Ok(true));
    }
}
