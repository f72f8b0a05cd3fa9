//! the library -> maps from keys to values, as something to measure.
//!
//! Rows start from keys: hashing, sorting, looking for one key with two values and counting the values are in their
//! time. Maps are unchecked, as those of the paper and of other libraries.

use std::rc::Rc;

use tamis::maps::Kind;
use tamis::{Effort, Layout, Map};

use crate::mapped::{Built, Mapped, Outcome, Pairs};

/// Maps that take about the entropy.
pub(crate) fn compressed() -> Vec<Mapped> {
    let rows = [
        ("tamis map", Effort::Balanced, Layout::Compact),
        ("tamis map, smallest", Effort::Smallest, Layout::Compact),
        ("tamis map, local", Effort::Balanced, Layout::Local),
    ];
    let mapped = |(name, effort, layout)| {
        Mapped::threaded(name, move |pairs, threads| build(pairs, Kind::Compressed, effort, layout, threads))
    };
    rows.into_iter().map(mapped).collect()
}

/// The same with positions as keys.
pub(crate) fn sequence() -> Mapped {
    Mapped::threaded("tamis sequence", |pairs, threads| {
        let sequence = tamis::sequence(pairs.values.iter().copied())
            .kind(Kind::Compressed)
            .options(tamis::Options::default().threads(threads))
            .finish()?;
        let sequence = Rc::new(sequence);
        let in_order = Rc::clone(&sequence);
        // A missing value would be counted as a wrong one.
        let built = Built::with_batch(
            sequence.as_bytes().len(),
            sequence,
            |s, position| s.get(position).and_then(|value| value.as_u64()).unwrap_or(u64::MAX),
            |s, positions, out| {
                for (out, value) in out.iter_mut().zip(s.get_many(positions)) {
                    *out = value.and_then(|value| value.as_u64()).unwrap_or(u64::MAX);
                }
            },
        );
        Ok(built.and_in_order(move |out| {
            for (out, value) in out.iter_mut().zip(in_order.iter()) {
                *out = value.as_u64().unwrap_or(u64::MAX);
            }
        }))
    })
}

/// Functions of one width.
pub(crate) fn fixed() -> Vec<Mapped> {
    let rows = [
        ("tamis ribbon", Kind::Ribbon, Effort::Balanced),
        ("tamis ribbon, smallest", Kind::Ribbon, Effort::Smallest),
        ("tamis fuse", Kind::Fuse, Effort::Balanced),
    ];
    let mapped = |(name, kind, effort)| {
        Mapped::threaded(name, move |pairs, threads| build(pairs, kind, effort, Layout::Compact, threads))
    };
    rows.into_iter().map(mapped).collect()
}

/// Keys in one call: many, and not more than the first cache holds the values of.
const BATCH: usize = 1024;

fn build(pairs: &Pairs, kind: Kind, effort: Effort, layout: Layout, threads: usize) -> Outcome {
    let each = pairs.keys.iter().copied().zip(pairs.values.iter().copied());
    let options = tamis::Options::default().effort(effort).threads(threads);
    let map = options.map(each).kind(kind).layout(layout).unchecked().finish()?;
    Ok(Built::with_batch(
        map.as_bytes().len(),
        map,
        // A missing value would be counted as a wrong one.
        |map: &Map, key| map.get_u64(key).ok().flatten().unwrap_or(u64::MAX),
        |map, keys, out| {
            let mut values = [None; BATCH];
            for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
                let values = &mut values[..keys.len()];
                let _ = map.get_many_u64(keys, values);
                out.iter_mut().zip(values).for_each(|(out, value)| *out = value.unwrap_or(u64::MAX));
            }
        },
    ))
}
