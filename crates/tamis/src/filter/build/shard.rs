//! shards + a plan -> written parts: one per shard and step, each built on what the steps before it left undecided.
//!
//! Workers run ahead of the writer by a few shards and no more, so memory stays bounded however large the filter is. What a step
//! gets and what it leaves is the business of `leaves/design.rs`.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Common, Progress};
use crate::error::{BuildError, Error};
use crate::filter::open::first_salt;
use crate::filter::query::Filter;
use crate::format::{Encoded, Reader, Writer};
use crate::gather::{Part, Shards};
use crate::hash::{Digest, Salt};
use crate::leaves::design::{DigestSink, Listed};
use crate::leaves::{Leaf, Role, Sides, Work};
use crate::parallel::{Stop, check, in_order};
use crate::plan::recipes::steered::WeightScale;
use crate::plan::{Plan, Step};

/// Builds all shards on several threads and writes them in order; `left` counts the negatives that pass the first step.
pub(super) fn build_shards(
    shards: &Shards,
    plan: &Plan,
    first: Option<&Filter>,
    left: Option<&AtomicU64>,
    common: &Common<'_>,
    writer: &mut Writer<'_>,
) -> Result<(), Error> {
    // Fewer shards than threads: what can be done on several threads inside a shard is.
    let inside = (common.threads / shards.count().max(1)).max(1);
    let build = |shard: usize| build_shard(shards, plan, first, shard, inside, left, &|| common.stop());
    write_shards(0..shards.count(), build, common, writer)
}

/// Builds some of the shards; returns how many negatives pass the first step.
pub(super) fn build_slice(
    shards: &Shards,
    plan: &Plan,
    slice: Range<usize>,
    common: &Common<'_>,
    writer: &mut Writer<'_>,
) -> Result<u64, Error> {
    let (inside, left) = ((common.threads / slice.len().max(1)).max(1), AtomicU64::new(0));
    let build = |shard: usize| build_shard(shards, plan, None, shard, inside, Some(&left), &|| common.stop());
    write_shards(slice, build, common, writer)?;
    Ok(left.into_inner())
}

fn write_shards(
    shards: Range<usize>,
    build: impl Fn(usize) -> Result<Vec<Encoded>, BuildError> + Sync,
    common: &Common<'_>,
    writer: &mut Writer<'_>,
) -> Result<(), Error> {
    let (first, count) = (shards.start, shards.len());
    let work = |shard: usize| build(first + shard);
    in_order(count, common.threads, work, |shard, parts: Vec<Encoded>| {
        writer.shard(&parts)?;
        common.report(Progress::Built { shards: shard as u64 + 1, total: count as u64 });
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
    left: Option<&AtomicU64>,
    stop: Stop<'_>,
) -> Result<Vec<Encoded>, BuildError> {
    let keys = shards.keys(shard, stop)?;
    let weight_scale = WeightScale::new(plan, &shards.stats);
    let negatives = OfShard { shards, shard, keys: &keys, stop, weight_scale };
    let first = first.and_then(|filter| filter.part(shard));
    // Each shard may let pass by its share of the keys, so that all together keep what was promised of all negatives.
    let mean = weight_scale.map_or(1, WeightScale::mean) as f64;
    let part = keys.len() as f64 / shards.stats.keys.max(1) as f64;
    let allowed = plan.allowed * shards.stats.negatives as f64 * mean * part;
    let sides = Sides::new(&keys, &negatives).left(shards.take_negatives()).allowing(allowed);
    build_steps(
        plan,
        sides,
        first,
        first_salt(plan.salts),
        left,
        Work { salt: Salt::new(0), skip: shards.bits, threads, stop },
    )
}

/// One part per step of a plan, whose salts have numbers from `salt` on; `first` is the first of them, if it is there already, and `left`
/// counts the negatives that pass the first step.
pub(crate) fn build_steps(
    plan: &Plan,
    mut sides: Sides<'_>,
    mut first: Option<Encoded>,
    salt: u64,
    left: Option<&AtomicU64>,
    work: Work<'_>,
) -> Result<Vec<Encoded>, BuildError> {
    let mut parts = Vec::with_capacity(plan.steps.len());
    for (number, Step { role, structure }) in plan.steps.iter().enumerate() {
        check(work.stop)?;
        let work = Work { salt: Salt::new(salt + number as u64), ..work };
        let sides = sides.of(*role);
        if *role != Role::Positive {
            sides.leave_out(work.salt)?;
        }
        let part = match first.take() {
            Some(part) => part,
            None => structure.build(sides, &work)?,
        };
        let counts = left.filter(|_| number == 0 && *role == Role::Positive);
        if !sides.is_thinned() && (number + 1 < plan.steps.len() || counts.is_some()) {
            let mut from = Reader::new(&part.geometry, "part");
            let leaf = Leaf::decode(structure.tag(), &mut from, 0, work.salt);
            // What was encoded a moment ago can be decoded.
            let mut leaf = leaf.map_err(|e| BuildError::from(std::io::Error::other(e)))?;
            leaf.set_place(0, 0, part.payload.clone());
            sides.pass(&|keys, out| leaf.contains_many(&part.payload, keys, out))?;
        }
        if let Some((counts, left)) = counts.zip(sides.negatives_left()) {
            counts.fetch_add(left as u64, Ordering::Relaxed);
        }
        parts.push(part);
    }
    Ok(parts)
}

struct OfShard<'a> {
    shards: &'a Shards,
    shard: usize,
    keys: &'a [Digest],
    stop: Stop<'a>,
    /// Where weights matter.
    weight_scale: Option<WeightScale>,
}

/// Digests that are handed on at a time: they stay in the first cache.
const PIECE: usize = 2048;

impl Listed for OfShard<'_> {
    fn each(&self, part: &mut DigestSink<'_>) -> Result<(), BuildError> {
        let (mut digests, mut weights) = (vec![], vec![]);
        self.shards.negatives(self.shard, self.keys, self.stop, &mut |listed| {
            let records = match listed {
                Part::Plain(digests) => return part(digests, &[]),
                Part::Tagged(records) => records,
            };
            for records in records.chunks(PIECE) {
                digests.clear();
                digests.extend(records.iter().map(|record| record.digest));
                if let Some(weight_scale) = self.weight_scale {
                    weights.clear();
                    weights.extend(records.iter().map(|record| weight_scale.weigh(record.weight)));
                }
                part(&digests, &weights)?;
            }
            Ok(())
        })
    }

    fn in_memory(&self) -> Option<&[Digest]> {
        self.shards.negatives_in_memory(self.shard)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::filter::build::Options;
    use crate::format::{Form, Header};
    use crate::gather::{Keys, OnConflict, Sorted};
    use crate::hash::{Digest, KeyType};
    use crate::plan::plan;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    /// A callback may panic while workers wait for the writer: the panic goes on, and no worker waits for ever.
    #[test]
    fn a_callback_that_panics_ends_the_build() {
        let (send, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let told = Arc::new(|_| std::panic::resume_unwind(Box::new("told")));
            let common = Common { threads: 2, progress: Some(told), ..Common::default() };
            let digests: Vec<Digest> = (0..2000).map(|i| common.hasher.integer(i)).collect();
            let sorted = Sorted::shared(Arc::new(digests), &common.workspace(), &|| false).unwrap();
            let mut shards = Shards::new(Keys::Plain(sorted), None, OnConflict::Error, &|| false).unwrap();
            shards.bits = 6;
            let plan = plan(&Options::default().request(2000, 0)).unwrap();
            let header = Header::new(Form::Filter, common.hasher.clone(), KeyType::Integer);
            let header = Header { shard_bits: 6, keys: 2000, ..header };
            let mut file = vec![];
            let mut writer = Writer::new(&mut file, &header, vec![]).unwrap();
            let built =
                catch_unwind(AssertUnwindSafe(|| build_shards(&shards, &plan, None, None, &common, &mut writer)));
            send.send(built.is_err()).unwrap();
        });
        assert_eq!(heard.recv_timeout(std::time::Duration::from_secs(60)), Ok(true));
    }
}
