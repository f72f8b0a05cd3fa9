//! sorted records -> whether they crowd in one shard, and a number that follows from all of them: what spreads them again.
//!
//! The number is a hash of the hashes of cells, ranges of digests with the same top bits: cells can be hashed side by side, and by whoever
//! holds only some of them.

use super::intake::Sorted;
use super::record::Record;
use super::span::Span;
use super::{spans, walk};
use crate::error::BuildError;
use crate::hash::Digest;
use crate::hash::attempts::SetHash;
use crate::math::chance::too_many;
use crate::parallel::{Stop, run};

impl<R: Record> Sorted<R> {
    /// Whether one of 2^bits shards has so many distinct records that it is not chance.
    pub(crate) fn is_crowded(&self, bits: u32, stop: Stop<'_>) -> Result<bool, BuildError> {
        let most = self.workspace().shard_keys as f64;
        // What is on disk may be there several times; only then must it be counted.
        let may_be = |shard: usize| too_many(self.at_most(bits, shard) as usize, most);
        if bits == 0 || !(0..1 << bits).any(may_be) {
            return Ok(false);
        }
        let mut loads = vec![0; 1 << bits];
        walk(self, None, stop, &mut |records| {
            records.iter().for_each(|record| loads[record.digest().shard(bits)] += 1);
            Ok::<(), BuildError>(())
        })?;
        Ok(loads.into_iter().any(|load| too_many(load, most)))
    }

    /// A hash of the set of digests.
    pub(crate) fn set_hash(&self, stop: Stop<'_>) -> Result<u64, BuildError> {
        let bits = self.workspace().cell_bits;
        let (spans, threads) = spans(self, None, self.workspace().threads, stop)?;
        // Parts of one cell are hashed together.
        let jobs: Vec<&[Span]> = spans.chunk_by(|a, b| a.cells.start == b.cells.start).collect();
        let hashed = run(jobs, threads, |spans| {
            let (mut hashes, mut current, mut set) = (vec![], None, SetHash::new());
            for span in spans {
                let records = self.span(span, stop)?;
                for cell in records.chunk_by(|a, b| a.digest().shard(bits) == b.digest().shard(bits)) {
                    let number = cell.first().map(|record| record.digest().shard(bits) as u64);
                    if let Some(last) = std::mem::replace(&mut current, number).filter(|&last| Some(last) != number) {
                        hashes.push(Digest { hi: last, lo: std::mem::replace(&mut set, SetHash::new()).finish() });
                    }
                    cell.iter().for_each(|record| set.add(&[record.digest()]));
                }
            }
            hashes.extend(current.map(|last| Digest { hi: last, lo: set.finish() }));
            Ok(hashes)
        })?;
        Ok(SetHash::of(&hashed.concat()))
    }
}
