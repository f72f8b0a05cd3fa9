//! pairs of a key and a set -> sorted pairs, and what is to be known of them before anything is planned.

use std::sync::Arc;

use super::key;
use super::tune::SetSizes;
use crate::error::BuildError;
use crate::gather::{Intake, Record, Sorted, Tagged, Workspace, walk};
use crate::hash::Digest;
use crate::parallel::Stop;

/// Pairs as they come: with or without how often each of them does.
#[derive(Debug)]
pub(super) enum Gather {
    Plain(Intake<Digest>),
    Counted(Intake<Tagged>),
}

impl Gather {
    pub(super) fn new(workspace: &Arc<Workspace>, counted: bool) -> Gather {
        // The other half is for what is built of them.
        let memory = workspace.memory / 2;
        match counted {
            false => Gather::Plain(Intake::new(workspace, memory)),
            true => Gather::Counted(Intake::new(workspace, memory)),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, name: Digest, set: u32, times: u64, stop: Stop<'_>) -> Result<(), BuildError> {
        let digest = key::pair(name, set);
        match self {
            Gather::Plain(intake) => intake.push(digest, stop),
            Gather::Counted(intake) => intake.push(Tagged { digest, weight: times, ordinal: 0 }, stop),
        }
    }

    /// Pairs so far.
    pub(super) fn count(&self) -> u64 {
        match self {
            Gather::Plain(intake) => intake.count(),
            Gather::Counted(intake) => intake.count(),
        }
    }
}

/// Hands on every key with its pairs, which are sorted by set.
pub(super) fn each_key<R: Record, E: From<BuildError>>(
    pairs: &Sorted<R>,
    stop: Stop<'_>,
    mut found: impl FnMut(Digest, &[R]) -> Result<(), E>,
) -> Result<(), E> {
    // A range of digests ends between two keys: it is chosen by their first bits.
    walk(pairs, None, stop, &mut |pairs| {
        for pairs in pairs.chunk_by(|a, b| key::parts(a.digest()).0 == key::parts(b.digest()).0) {
            if let Some(first) = pairs.first() {
                found(key::parts(first.digest()).0, pairs)?;
            }
        }
        Ok(())
    })
}

/// The sets of some pairs.
pub(super) fn sets_of<R: Record>(pairs: &[R], sets: &mut Vec<u32>) {
    sets.clear();
    sets.extend(pairs.iter().map(|pair| key::parts(pair.digest()).1));
}

/// How many keys are in how many sets, and how large the sets are.
pub(super) fn count_set_sizes<R: Record>(
    pairs: &Sorted<R>,
    sizes: &mut [u64],
    stop: Stop<'_>,
) -> Result<SetSizes, BuildError> {
    let mut by_multiplicity = vec![0u64; sizes.len() + 1];
    each_key(pairs, stop, |_, pairs| {
        by_multiplicity[pairs.len()] += 1;
        for pair in pairs {
            sizes[key::parts(pair.digest()).1 as usize] += 1;
        }
        Ok::<(), BuildError>(())
    })?;
    let multiplicities = (0..).zip(by_multiplicity).filter(|&(_, keys)| keys > 0).collect();
    Ok(SetSizes { sets: sizes.len() as u32, multiplicities })
}
