//! sorted pairs of a key and a set -> the sets of each key, and what is to be known of them before anything is planned.

use super::key;
use super::tune::SetSizes;
use crate::error::Error;
use crate::gather::{Keys, Record, Sorted, walk};
use crate::hash::Digest;
use crate::parallel::Stop;

/// Takes a key, its sets in ascending order, and how often it is in each.
pub(super) type KeySink<'a> = dyn FnMut(Digest, &[u32], &[u64]) -> Result<(), Error> + 'a;

/// Hands on every key with its sets.
pub(super) fn each_key(pairs: &Keys, stop: Stop<'_>, found: &mut KeySink<'_>) -> Result<(), Error> {
    match pairs {
        Keys::Plain(pairs) => each_key_of(pairs, stop, found),
        Keys::Tagged(pairs) => each_key_of(pairs, stop, found),
    }
}

fn each_key_of<R: Record>(pairs: &Sorted<R>, stop: Stop<'_>, found: &mut KeySink<'_>) -> Result<(), Error> {
    let (mut sets, mut times) = (vec![], vec![]);
    // A range of digests ends between two keys: it is chosen by their first bits.
    walk(pairs, None, stop, &mut |pairs| {
        for pairs in pairs.chunk_by(|a, b| key::parts(a.digest()).0 == key::parts(b.digest()).0) {
            sets.clear();
            sets.extend(pairs.iter().map(|pair| key::parts(pair.digest()).1));
            times.clear();
            times.extend(pairs.iter().map(R::weight));
            found(key::parts(pairs[0].digest()).0, &sets, &times)?;
        }
        Ok(())
    })
}

/// How many keys are in how many sets, and how large the sets are.
pub(super) fn count_set_sizes(pairs: &Keys, sizes: &mut [u64], stop: Stop<'_>) -> Result<SetSizes, Error> {
    let mut by_multiplicity = vec![0u64; sizes.len() + 1];
    each_key(pairs, stop, &mut |_, sets, _| {
        by_multiplicity[sets.len()] += 1;
        sets.iter().for_each(|&set| sizes[set as usize] += 1);
        Ok(())
    })?;
    let multiplicities = (0..).zip(by_multiplicity).filter(|&(_, keys)| keys > 0).collect();
    Ok(SetSizes { sets: sizes.len() as u32, multiplicities })
}
