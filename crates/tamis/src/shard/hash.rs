//! sorted keys -> a number that follows from all of them, and from nothing else.
//!
//! It is a hash of the hashes of cells, ranges of digests with the same top bits: cells can be hashed side by side, and by whoever
//! holds only some of them.

use super::intake::Sorted;
use super::record::Record;
use super::span::Span;
use super::workers::{Stop, run};
use super::{Keys, spans};
use crate::error::BuildError;
use crate::hash::Digest;
use crate::leaves::attempts::SetHash;

impl Keys {
    /// A hash of the set of keys.
    pub(super) fn set_hash(&self, stop: Stop<'_>) -> Result<u64, BuildError> {
        match self {
            Keys::Plain(keys) => hash(keys, stop),
            Keys::Tagged(keys) => hash(keys, stop),
        }
    }
}

fn hash<R: Record>(keys: &Sorted<R>, stop: Stop<'_>) -> Result<u64, BuildError> {
    let bits = keys.workspace().cell_bits;
    let (spans, threads) = spans::<R, R>(keys, None, keys.workspace().threads, stop)?;
    // Parts of one cell are hashed together.
    let jobs: Vec<&[Span]> = spans.chunk_by(|a, b| a.cells.start == b.cells.start).collect();
    let hashed = run(jobs, threads, |spans| {
        let mut hashes: Vec<Digest> = vec![];
        let mut current = None;
        let mut set = SetHash::new();
        for span in spans {
            let records = keys.span(span, stop)?;
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
