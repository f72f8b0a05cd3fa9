//! a load, a budget -> the learned filters of figure 3: what they do, and how fast they are queried.
//!
//! The model sees the bytes of a key: its name where it has one, otherwise the eight bytes of its number, which tell nothing.

use std::borrow::Cow;

use tamis_bench::measure::{median_nanos, progress};

use super::built::Row;
use super::guarded::{Cost, Guarded};
use super::load::Load;
use crate::families::built::{Answers, Family, Known};

/// The learned filters of the paper: Bloom filters behind a model, and before and behind it.
pub(super) const FAMILIES: [Family; 2] = [Family::Learned, Family::Sandwiched];

/// Members, negatives by their weights, and values that are neither: what times are measured with.
pub(super) type Lists<'a> = [&'a [u64]; 3];

/// A learned filter, measured: its row, nanoseconds per query of each list, and the cost with the file behind it.
pub(super) fn measure(
    load: &Load,
    file: &Guarded,
    family: Family,
    bits: f64,
    lists: Lists<'_>,
    rounds: usize,
) -> Result<(Row, [f64; 3], Cost), String> {
    let n = load.keys.len().max(1);
    progress(format_args!("{n} keys, {} of {} negatives told: {}, {bits} bits", load.given, load.total, family.name()));
    let members: Vec<Cow<'_, [u8]>> = load.keys.iter().map(|&key| load.text(key)).collect();
    let members: Vec<&[u8]> = members.iter().map(|key| &key[..]).collect();
    // All keys are in memory for training: of numbers the heaviest, as many as keys.
    let most = if load.names.is_empty() { n } else { load.given };
    let log: Vec<(Cow<'_, [u8]>, f64)> =
        load.expected().take(most).map(|(value, weight)| (load.text(value), weight)).collect();
    let log: Vec<(&[u8], f64)> = log.iter().map(|(name, weight)| (&name[..], *weight)).collect();
    let known = Known { members: &members, log: &log, bytes: (bits * n as f64 / 8.0) as u64, seed: 0 };
    let made = match known.build(family, None, 0)? {
        Some(made) => made,
        None => {
            let none = Cost { nanos: f64::NAN, reads: f64::NAN };
            let failed = Some("no filter is so small".into());
            return Ok((Row { failed, ..Row::empty(family.name(), bits) }, [f64::NAN; 3], none));
        }
    };
    let Answers::Learned(filter) = &made.filter else { return Err("a learned filter was to be built".into()) };
    let passing = load.ask_by(load.given, &mut |values, answers| {
        values.iter().zip(answers).for_each(|(&value, answer)| *answer = filter.contains(load.text(value)));
        Ok(())
    })?;
    let [known_rate, unknown_rate] = passing.rates();
    let row = Row {
        bits: made.filter.bytes() as f64 * 8.0 / n as f64,
        steps: format!("model of {} bytes", made.model),
        known: load.given,
        efpr: passing.fpr(),
        efpr_of_this_file: passing.of_this_file(),
        known_rate,
        unknown_rate,
        known_passing: passing.known_passing(),
        lost: members.iter().filter(|key| !filter.contains(key)).count(),
        build: made.build.as_secs_f64(),
        ..Row::empty(family.name(), bits)
    };
    let texts = |list: &[u64]| list.iter().map(|&value| load.text(value).into_owned()).collect::<Vec<_>>();
    let texts = lists.map(texts);
    let time = |list: &Vec<Vec<u8>>| {
        let count = || list.iter().filter(|key| filter.contains(key)).count();
        median_nanos(rounds, list.len(), count).unwrap_or(f64::NAN)
    };
    let times = texts.each_ref().map(time);
    let cost = file.cost(lists[1], rounds, |at| filter.contains(&texts[1][at])).map_err(|e| e.to_string())?;
    progress("");
    Ok((row, times, cost))
}
