//! keys and negatives that carry labels -> how many of each a label has; then the records themselves, in order.
//!
//! How labels are grouped depends on how many distinct keys and negatives each has, so both sides are read once to be
//! counted, and once more to be handed on.

use std::sync::atomic::{AtomicU64, Ordering};

use super::intake::Sorted;
use super::record::{Labelled, Record};
use super::span::{self, Side};
use super::{OnConflict, Stats, count_sides, subtract};
use crate::error::BuildError;
use crate::parallel::{Stop, check};

/// Distinct keys and negatives of every label, by the label's number.
pub(crate) struct Tally {
    pub(crate) stats: Stats,
    pub(crate) keys: Vec<u64>,
    pub(crate) negatives: Vec<u64>,
}

impl Tally {
    /// Reads both sides once and resolves conflicts, which are equal keys under equal labels.
    pub(crate) fn new(
        keys: &Sorted<Labelled>,
        negatives: &Sorted<Labelled>,
        labels: usize,
        on_conflict: OnConflict,
        stop: Stop<'_>,
    ) -> Result<Tally, BuildError> {
        let counters = || (0..labels).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let counts = [counters(), counters()];
        let count = |side: usize, record: &Labelled| {
            // Every label of a record has a number below `labels`; the disk may be damaged.
            if let Some(count) = counts[side].get(record.label as usize) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        let sides = count_sides(keys, Some(negatives), stop, |keys, negatives| {
            let mut rest = negatives.iter().peekable();
            for key in keys {
                while let Some(negative) = rest.next_if(|negative| negative.order() < key.order()) {
                    count(1, negative);
                }
                match rest.next_if(|negative| negative.order() == key.order()) {
                    Some(negative) if on_conflict == OnConflict::Drop => count(1, negative),
                    _ => count(0, key),
                }
            }
            rest.for_each(|negative| count(1, negative));
        })?;
        let stats = sides.stats(keys.count(), negatives.count(), on_conflict)?;
        let [keys, negatives] = counts.map(|counts| counts.into_iter().map(AtomicU64::into_inner).collect());
        Ok(Tally { stats, keys, negatives })
    }
}

/// Hands on all records, sorted and distinct, a range at a time, without those that `other` has too.
pub(crate) fn walk<R: Record, E: From<BuildError>>(
    records: &Sorted<R>,
    other: Option<&Sorted<R>>,
    stop: Stop<'_>,
    part: &mut dyn FnMut(&[R]) -> Result<(), E>,
) -> Result<(), E> {
    let (spans, _) = span::all(records, other.map(|other| other as &dyn Side), 1, stop)?;
    for span in spans {
        check(stop)?;
        let mut found = records.span(&span, stop)?;
        if let Some(other) = other {
            subtract(&mut found, &other.span(&span, stop)?);
        }
        part(&found)?;
    }
    Ok(())
}
