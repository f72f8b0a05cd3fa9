//! one shard + a plan -> one part per step, each built on what the steps before it left undecided.
//!
//! ```text
//!            undecided keys      undecided negatives
//!   Refuse   built on these      those that pass are left
//!   Admit    those that pass     built on these
//!            are left
//!   Decide   built on these      and on these, with the wrong fingerprint
//! ```
//!
//! Until the first step has refused most of them, negatives are read in parts and not kept.

use std::borrow::Cow;

use crate::error::BuildError;
use crate::format::{Encoded, Reader};
use crate::hash::{Digest, Salt};
use crate::leaves::{Geometry, Values, integrated};
use crate::plan::{Plan, Step, Structure};
use crate::query::Filter;
use crate::shard::{Shards, Stop, Tagged};
use crate::steps::{Leaf, ROUND, Role};

/// Builds one shard; `first` has the leaf of the first step, if that is there already.
pub(super) fn build_shard(
    shards: &Shards,
    plan: &Plan,
    first: Option<&Filter>,
    shard: usize,
    stop: Stop<'_>,
) -> Result<Vec<Encoded>, BuildError> {
    let all = shards.keys(shard, stop)?;
    let listed = Listed { shards, shard, keys: &all, stop };
    let mut keys = Cow::Borrowed(&all[..]);
    let mut negatives: Option<Vec<Digest>> = None;
    let mut parts = Vec::with_capacity(plan.steps.len());
    for (number, &Step { role, structure }) in plan.steps.iter().enumerate() {
        if stop() {
            return Err(BuildError::Cancelled);
        }
        let salt = Salt::new(number as u64);
        let last = number + 1 == plan.steps.len();
        let part = match role {
            Role::Refuse => {
                let made = first.filter(|_| number == 0).and_then(|filter| filter.part(shard));
                let part = match made {
                    Some(part) => part,
                    None => structure.build(&keys, Values::Fingerprints, salt)?,
                };
                if !last {
                    let probe = Probe::new(&structure, &part, salt)?;
                    negatives = Some(match &negatives {
                        None => listed.passing(&probe)?,
                        Some(left) => probe.passing(left),
                    });
                }
                part
            }
            Role::Admit => {
                let left = listed.take(&mut negatives)?;
                let part = structure.build(left, Values::Fingerprints, salt)?;
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
                        None => integrated::build(&keys, &listed, &params, salt, &mut payload)?,
                        Some(left) => integrated::build(&keys, &&left[..], &params, salt, &mut payload)?,
                    };
                    let mut geometry = vec![];
                    leaf.encode(&mut geometry);
                    Encoded { geometry, payload: payload.into() }
                }
                _ => {
                    let left = listed.take(&mut negatives)?;
                    let both = [&keys[..], left].concat();
                    let mut wanted = vec![true; both.len()];
                    wanted[keys.len()..].fill(false);
                    structure.build(&both, Values::Signed(&wanted), salt)?
                }
            },
        };
        parts.push(part);
    }
    Ok(parts)
}

/// The negatives of a shard, wherever they are.
struct Listed<'a> {
    shards: &'a Shards,
    shard: usize,
    keys: &'a [Digest],
    stop: Stop<'a>,
}

impl Listed<'_> {
    /// Those that pass.
    fn passing(&self, probe: &Probe) -> Result<Vec<Digest>, BuildError> {
        let mut passing = vec![];
        integrated::Negatives::each(self, &mut |part| {
            probe.pass(part, &mut passing);
            Ok(())
        })?;
        Ok(passing)
    }

    /// All of them, unless fewer are left already.
    fn take<'a>(&self, left: &'a mut Option<Vec<Digest>>) -> Result<&'a [Digest], BuildError> {
        if left.is_none() {
            let mut all = vec![];
            integrated::Negatives::each(self, &mut |part| {
                all.extend_from_slice(part);
                Ok(())
            })?;
            *left = Some(all);
        }
        Ok(left.as_deref().unwrap_or(&[]))
    }
}

impl integrated::Negatives for Listed<'_> {
    fn each(&self, part: &mut dyn FnMut(&[Digest]) -> Result<(), BuildError>) -> Result<(), BuildError> {
        let mut digests = Vec::with_capacity(PIECE);
        self.shards.negatives(self.shard, self.keys, self.stop, |records: &[Tagged]| {
            for records in records.chunks(PIECE) {
                digests.clear();
                digests.extend(records.iter().map(|record| record.digest));
                part(&digests)?;
            }
            Ok(())
        })
    }
}

/// Digests that are handed on at a time: they stay in the first cache.
const PIECE: usize = 8 * ROUND;

/// A part that was just built, to be asked.
struct Probe {
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

    /// Appends those of `keys` that pass.
    fn pass(&self, keys: &[Digest], passing: &mut Vec<Digest>) {
        let mut answers = [false; ROUND];
        for keys in keys.chunks(ROUND) {
            let answers = &mut answers[..keys.len()];
            self.leaf.contains_many(&self.payload, keys, answers);
            passing.extend(keys.iter().zip(answers).filter(|(_, yes)| **yes).map(|(key, _)| *key));
        }
    }

    fn passing(&self, keys: &[Digest]) -> Vec<Digest> {
        let mut passing = vec![];
        self.pass(keys, &mut passing);
        passing
    }
}
