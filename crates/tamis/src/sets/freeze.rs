//! sorted pairs -> a segment that is frozen: colours are counted, numbered and written, keys are led to them.
//!
//! Pairs are read twice: to collect the distinct lists, and to tell the filter and the map their keys. Lists are told apart by 128 bits of hash and
//! kept in their written form, so that memory grows with what the file will hold.
//!
//! Two orders make the file small. Sets are numbered by size, the largest first, because interpolative coding likes ids that crowd together.
//! Colours are numbered by how many keys have them: the map's table of values is then a few runs; and colours of equal frequency by the length of
//! their lists, which [`Lists`] pays little for.

use std::collections::HashMap;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use super::bits::BitWriter;
use super::frozen::Frozen;
use super::key::Hashed;
use super::lists::{self, Lists};
use super::pairs::each_key;
use super::segment::{Content, Numbers, Segment};
use super::tune::SetSizes;
use crate::error::{BuildError, Error};
use crate::filter::build::stream;
use crate::filter::options::{Common, Progress};
use crate::gather::{Keys, Limits};
use crate::hash::Hasher;
use crate::maps::{self, table::heaviest_first};
use crate::plan::Kind;

/// Distinct lists, as they are met.
struct SetLists {
    /// How a set is numbered in lists.
    rank: Vec<u32>,
    by_hash: HashMap<u128, u32>,
    /// The colours of lists of one set, by that set.
    single: Vec<u32>,
    /// How many keys have each.
    counts: Vec<u64>,
    /// All lists, and where each ends.
    written: BitWriter,
    ends: Vec<u64>,
    ranked: Vec<u32>,
    bytes: Vec<u8>,
}

const NO_LIST: u32 = u32::MAX;

impl SetLists {
    fn new(rank: Vec<u32>) -> SetLists {
        let single = vec![NO_LIST; rank.len()];
        let (written, ends) = (BitWriter::default(), vec![0]);
        SetLists { rank, by_hash: HashMap::new(), single, counts: vec![], written, ends, ranked: vec![], bytes: vec![] }
    }

    /// The colour of a list, new or known.
    fn number(&mut self, sets: &[u32]) -> Result<u32, BuildError> {
        let slot = match sets {
            &[only] => &mut self.single[only as usize],
            _ => {
                self.bytes.clear();
                sets.iter().for_each(|set| self.bytes.extend_from_slice(&set.to_le_bytes()));
                self.by_hash.entry(xxh3_128(&self.bytes)).or_insert(NO_LIST)
            }
        };
        if *slot == NO_LIST {
            let many = BuildError::TooMany { what: "set lists", most: NO_LIST.into() };
            *slot = u32::try_from(self.counts.len()).ok().filter(|&number| number < NO_LIST).ok_or(many)?;
            let number = *slot;
            self.counts.push(0);
            self.ranked.clear();
            self.ranked.extend(sets.iter().map(|&set| self.rank[set as usize]));
            self.ranked.sort_unstable();
            lists::put(&mut self.written, &self.ranked, self.rank.len() as u32);
            self.ends.push(self.written.len);
            return Ok(number);
        }
        Ok(*slot)
    }

    /// The lists in their last order, and the number that each colour has there.
    fn finish(&self) -> (Lists, Vec<u32>) {
        let len = |colour: u32| self.ends[colour as usize + 1] - self.ends[colour as usize];
        let mut order: Vec<u32> = (0..self.counts.len() as u32).collect();
        order.sort_by_key(|&colour| (std::cmp::Reverse(self.counts[colour as usize]), len(colour), colour));
        let mut numbers = vec![0; order.len()];
        (0..).zip(&order).for_each(|(number, &colour)| numbers[colour as usize] = number);
        let lists = order.iter().map(|&colour| (&self.written.bytes[..], self.ends[colour as usize], len(colour)));
        (Lists::new(lists, self.rank.len() as u32), numbers)
    }
}

/// Builds the segment, and says how many colours it has; `rate` is the share of absent keys that get some list.
pub(super) fn build(
    pairs: &Keys,
    set_sizes: &SetSizes,
    sizes: &[u64],
    rate: f64,
    common: &Common<'_>,
) -> Result<(Segment, u64), Error> {
    let stop = || common.stop();
    let by_size = heaviest_first(&sizes[..set_sizes.sets as usize]);
    let mut rank = vec![0; by_size.len()];
    (0..).zip(&by_size).for_each(|(at, &set)| rank[set as usize] = at);
    let mut colours = SetLists::new(rank);
    each_key(pairs, &stop, &mut |_, sets, _| {
        let colour = colours.number(sets)?;
        colours.counts[colour as usize] += 1;
        Ok(())
    })?;
    let (lists, numbers) = colours.finish();
    // Half of the memory holds the pairs; the map's records are larger than the filter's.
    let share = |part: u64| {
        let limits = Limits { memory: common.limits.memory / 6 * part, ..common.limits.clone() };
        // Keys are hashed already, and the secret and the note are those of the whole file.
        let (hasher, metadata) = (Hasher::seeded(0), Arc::default());
        Common { limits, hasher, metadata, secret_beside: false, progress: None, ..common.clone() }
    };
    let options = |part: u64| stream().with_common(share(part));
    let mut filter = (rate < 1.0).then(|| options(1).kind(Kind::Ribbon).fpr(rate).start());
    let map = match common.progress.clone() {
        None => options(2),
        // The keys of the map were read before, so only its shards are reported.
        Some(callback) => options(2).progress(move |progress| {
            if matches!(progress, Progress::Built { .. }) {
                callback(progress);
            }
        }),
    };
    // The filter in front checks keys.
    let mut map = maps::stream().options(map).unchecked().start();
    each_key(pairs, &stop, &mut |key, sets, _| {
        let colour = numbers[colours.number(sets)? as usize];
        if let Some(filter) = &mut filter {
            filter.push(Hashed(key))?;
        }
        Ok(map.push(Hashed(key), u64::from(colour))?)
    })?;
    drop(colours);
    let filter = filter.map(|filter| filter.finish()).transpose()?;
    let frozen = Frozen { filter, map: map.finish()?, lists };
    let (keys, pairs) = (set_sizes.keys(), set_sizes.pairs());
    let count = frozen.lists.count;
    let numbers = Numbers::listed(by_size);
    let segment = Segment { keys, pairs, capacity: pairs, content: Content::frozen(frozen.into(), &numbers), numbers };
    Ok((segment, count))
}
