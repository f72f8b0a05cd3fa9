//! a key -> the sets of one segment that hold it: a sketch or a frozen index, and the numbers its sets have elsewhere.
//!
//! A segment counts its sets from 0. Which sets of the file they are is a list, or nothing where the numbers are the same. So a merge
//! puts segments side by side without touching their tables. Two sketches of one shape could be laid over each other, but then every row has the ones
//! of both, and false sets grow with a power of them; those of two segments add up.

use std::sync::Arc;

use super::coalesce::{Scratch, SketchQuery};
use super::csc_bloom::CscBloom;
use super::csc_cuckoo::CscCuckoo;
use super::frozen::{CachedLists, Frozen};
use super::groups::Groups;
use super::side::Side;
use super::words::Words;
use crate::error::FormatError;
use crate::format::{Places, Reader, put_varint};
use crate::hash::{Digest, Salt};
use crate::leaves::bloom::SplitBlock;
use crate::leaves::{Geometry, Query};

/// A part of an index that answers for itself.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Distinct keys; an upper bound once keys were added one by one.
    pub(crate) keys: u64,
    pub(crate) pairs: u64,
    /// Pairs that it was planned for: all there are, of one that does not grow.
    pub(crate) capacity: u64,
    pub(crate) numbers: Numbers,
    pub(crate) content: Content,
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there are few segments, and a pointer less to follow
pub(crate) enum Content {
    Sketch(Sketch),
    Frozen(Arc<Frozen>, CachedLists),
}

impl Content {
    pub(crate) fn frozen(frozen: Arc<Frozen>, numbers: &Numbers) -> Content {
        let cached = CachedLists::new(&frozen, numbers);
        Content::Frozen(frozen, cached)
    }
}

/// Which sets of the file a segment's sets are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// The first so many.
    Same(u32),
    /// These; [`NO_SET`] for one that was removed before a merge.
    Listed { sets: Vec<u32>, ascending: bool },
}

pub(crate) const NO_SET: u32 = u32::MAX;

impl Numbers {
    pub(crate) fn listed(sets: Vec<u32>) -> Numbers {
        if sets.iter().zip(0..).all(|(&set, at)| set == at) {
            return Numbers::Same(sets.len() as u32);
        }
        let ascending = sets.is_sorted() && !sets.contains(&NO_SET);
        Numbers::Listed { sets, ascending }
    }

    pub(crate) fn len(&self) -> u32 {
        match self {
            Numbers::Same(count) => *count,
            Numbers::Listed { sets, .. } => sets.len() as u32,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (same, listed) = match self {
            Numbers::Same(count) => (*count, &[][..]),
            Numbers::Listed { sets, .. } => (0, &sets[..]),
        };
        (0..same).chain(listed.iter().copied())
    }

    /// The number that a set of the file has here.
    pub(crate) fn local(&self, set: u32) -> Option<u32> {
        match self {
            Numbers::Same(count) => (set < *count).then_some(set),
            Numbers::Listed { sets, .. } => sets.iter().position(|&known| known == set).map(|at| at as u32),
        }
    }

    /// Turns numbers of the segment from `start` on into those of the file, ascending; returns where they end.
    #[inline]
    pub(super) fn translate(&self, ids: &mut [u32]) -> usize {
        let Numbers::Listed { sets, ascending } = self else { return ids.len() };
        for id in &mut *ids {
            *id = sets.get(*id as usize).copied().unwrap_or(NO_SET);
        }
        if *ascending {
            return ids.len();
        }
        ids.sort_unstable();
        // Removed ones are the last.
        ids.partition_point(|&id| id != NO_SET)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.len()));
        match self {
            Numbers::Same(_) => out.push(0),
            Numbers::Listed { sets, .. } => {
                out.push(1);
                sets.iter().for_each(|set| put_varint(out, u64::from(set.wrapping_add(1))));
            }
        }
    }

    fn decode(from: &mut Reader<'_>, sets: u32) -> Result<Numbers, FormatError> {
        let count = from.within("sets of a segment", 0..=u64::from(u32::MAX) - 1)?;
        match from.u8()? {
            0 if count <= u64::from(sets) => Ok(Numbers::Same(count as u32)),
            1 if count <= from.len() => {
                let mut listed = from.room(count)?;
                for _ in 0..count {
                    listed.push((from.within("number of a set", 0..=u64::from(sets))? as u32).wrapping_sub(1));
                }
                from.draw(4 * count)?;
                let mut sorted = listed.clone();
                sorted.sort_unstable();
                if sorted.windows(2).any(|two| two[0] == two[1] && two[0] != NO_SET) {
                    return Err(FormatError::invalid("directory: a segment has a set twice"));
                }
                Ok(Numbers::listed(listed))
            }
            0 | 1 => Err(FormatError::invalid(format!("directory: a segment of {count} sets does not fit {sets}"))),
            way => Err(FormatError::unsupported("list of a segment's sets", way)),
        }
    }
}

/// A sketch with what stands before it and next to it.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    pub(crate) body: Body,
    pub(crate) groups: Groups,
    pub(crate) existence: Option<(SplitBlock, Words)>,
    /// Keys in very many sets, with all of them: they are not in the table.
    pub(crate) heavy: Side,
    /// Pairs that the table had no room for.
    pub(crate) extra: Side,
    pub(crate) words: Words,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    Bloom(CscBloom),
    Cuckoo(CscCuckoo),
}

/// Runs `$body` with the geometry.
macro_rules! with_body {
    ($of:expr, $geometry:ident => $body:expr) => {
        match $of {
            Body::Bloom($geometry) => $body,
            Body::Cuckoo($geometry) => $body,
        }
    };
}
pub(crate) use with_body;

/// What makes the existence filter's bits its own.
pub(crate) const EXISTENCE_SALT: Salt = Salt::new(0x5e75);

/// How many keys ahead rows are prefetched.
const PREFETCH_KEYS: usize = 6;

impl Sketch {
    /// Appends the sets of a key that passed the filter in front.
    #[inline]
    fn find_present(&self, key: Digest, scratch: &mut Scratch, ids: &mut Vec<u32>) {
        if !self.heavy.is_empty() && self.heavy.find(key, ids) {
            return;
        }
        let start = ids.len();
        let query = SketchQuery { payload: &self.words, groups: &self.groups, key, scratch, out: &mut *ids };
        with_body!(&self.body, body => body.find(query));
        if !self.extra.is_empty() && self.extra.find(key, ids) {
            ids[start..].sort_unstable();
            distinct(ids, start);
        }
    }

    pub(crate) fn exists(&self, key: Digest) -> bool {
        self.existence.as_ref().is_none_or(|(filter, payload)| filter.contains(payload, key))
    }

    fn find(&self, key: Digest, scratch: &mut Scratch, ids: &mut Vec<u32>) {
        if self.exists(key) {
            // All lines at once: the loops below wait for one after the other.
            with_body!(&self.body, body => body.prefetch(&self.words, key, self.groups.sets));
            self.find_present(key, scratch, ids);
        }
    }

    fn find_many(&self, keys: &[Digest], scratch: &mut Scratch, ids: &mut Vec<u32>, ends: &mut Vec<usize>) {
        let mut yes = [true; super::frozen::BATCH];
        let yes = &mut yes[..keys.len()];
        if let Some((filter, payload)) = &self.existence {
            filter.contains_many(payload, keys, yes);
        }
        let sets = self.groups.sets;
        let fetch = |at: usize| with_body!(&self.body, body => body.prefetch(&self.words, keys[at], sets));
        let mut ahead = (0..keys.len()).filter(|&at| yes[at]);
        ahead.by_ref().take(PREFETCH_KEYS).for_each(fetch);
        for (&key, &yes) in keys.iter().zip(&*yes) {
            if yes {
                ahead.next().into_iter().for_each(fetch);
                self.find_present(key, scratch, ids);
            }
            ends.push(ids.len());
        }
    }
}

/// Takes out repeated ids of the sorted rest of a vector.
pub(super) fn distinct(ids: &mut Vec<u32>, start: usize) {
    let mut kept = start;
    for at in start..ids.len() {
        if at == start || ids[at] != ids[at - 1] {
            ids[kept] = ids[at];
            kept += 1;
        }
    }
    ids.truncate(kept);
}

impl Segment {
    /// Whether it counts how often a pair was added.
    pub(crate) fn has_counts(&self) -> bool {
        match &self.content {
            Content::Sketch(sketch) => with_body!(&sketch.body, body => body.counting),
            Content::Frozen(..) => false,
        }
    }

    /// Appends the sets of a key, numbers of the file, ascending.
    pub(crate) fn find(&self, key: Digest, scratch: &mut Scratch, ids: &mut Vec<u32>) {
        let start = ids.len();
        match &self.content {
            Content::Sketch(sketch) => sketch.find(key, scratch, ids),
            Content::Frozen(frozen, cached) => return frozen.find(key, cached, &self.numbers, ids),
        }
        let kept = self.numbers.translate(&mut ids[start..]);
        ids.truncate(start + kept);
    }

    /// The same for some keys: the lists, and where each of them ends.
    pub(crate) fn find_many(&self, keys: &[Digest], scratch: &mut Scratch, ids: &mut Vec<u32>, ends: &mut Vec<usize>) {
        ids.clear();
        ends.clear();
        match &self.content {
            Content::Sketch(sketch) => sketch.find_many(keys, scratch, ids, ends),
            Content::Frozen(frozen, cached) => return frozen.find_many(keys, cached, &self.numbers, ids, ends),
        }
        if self.numbers == Numbers::Same(self.numbers.len()) {
            return;
        }
        let (mut start, mut kept) = (0, 0);
        for end in ends {
            let count = self.numbers.translate(&mut ids[start..*end]);
            ids.copy_within(start..start + count, kept);
            (start, kept) = (*end, kept + count);
            *end = kept;
        }
        ids.truncate(kept);
    }

    /// Tells the sets of a key, numbers of the file in any order, and how often it is in each: once where there are no counts.
    pub(crate) fn frequencies(&self, key: Digest, scratch: &mut Scratch, mut found: impl FnMut(u32, u8)) {
        let mut ids = vec![];
        let Content::Sketch(sketch) = &self.content else {
            self.find(key, scratch, &mut ids);
            return ids.into_iter().for_each(|set| found(set, 1));
        };
        sketch.find(key, scratch, &mut ids);
        for local in ids {
            let times = with_body!(&sketch.body, body => body.frequency(&sketch.words, &sketch.groups, key, local));
            let mut set = [local];
            if self.numbers.translate(&mut set) == 1 {
                found(set[0], times.max(1));
            }
        }
    }

    /// Directory: kind, keys, pairs, capacity, which sets, then what the kind needs.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(match &self.content {
            Content::Frozen(..) => FROZEN,
            Content::Sketch(Sketch { body: Body::Bloom(_), .. }) => BLOOM,
            Content::Sketch(Sketch { body: Body::Cuckoo(_), .. }) => CUCKOO,
        });
        [self.keys, self.pairs, self.capacity].into_iter().for_each(|number| put_varint(out, number));
        self.numbers.encode(out);
        match &self.content {
            Content::Frozen(frozen, _) => frozen.encode(out),
            Content::Sketch(sketch) => {
                out.push(sketch.existence.is_some() as u8);
                if let Some((filter, _)) = &sketch.existence {
                    filter.encode(out);
                }
                let sets = self.numbers.len();
                sketch.heavy.pack(sets).encode(out);
                sketch.extra.pack(sets).encode(out);
                with_body!(&sketch.body, body => body.encode(out));
            }
        }
    }

    pub(crate) fn bits(&self) -> f64 {
        let mut bytes = 0;
        let _ = self.payloads(|payload| {
            bytes += payload.len();
            Ok::<(), ()>(())
        });
        8.0 * bytes as f64
    }

    /// Hands on the payloads, in the order of the file.
    pub(crate) fn payloads<E>(&self, mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match &self.content {
            Content::Frozen(frozen, _) => frozen.payloads().into_iter().try_for_each(put),
            Content::Sketch(sketch) => {
                if let Some((_, payload)) = &sketch.existence {
                    put(payload)?;
                }
                let sets = self.numbers.len();
                for side in [&sketch.heavy, &sketch.extra] {
                    if !side.is_empty() {
                        side.pack(sets).payloads().into_iter().try_for_each(&mut put)?;
                    }
                }
                put(&sketch.words)
            }
        }
    }

    pub(crate) fn decode(from: &mut Reader<'_>, sets: u32, places: &mut Places<'_>) -> Result<Segment, FormatError> {
        let kind = from.u8()?;
        let [keys, pairs, capacity] = [from.varint()?, from.varint()?, from.varint()?];
        let numbers = Numbers::decode(from, sets)?;
        let local = numbers.len();
        let content = match kind {
            FROZEN => Content::frozen(Frozen::decode(from, local, places)?.into(), &numbers),
            BLOOM | CUCKOO => {
                let most = max_partitions(sets);
                let sketch = Sketch::decode(kind, from, local, most, places)?;
                let most = sketch.capacity(local);
                if pairs > most {
                    let reason = format!("directory: {pairs} pairs in a sketch that holds {most} at most");
                    return Err(FormatError::invalid(reason));
                }
                Content::Sketch(sketch)
            }
            other => return Err(FormatError::unsupported("kind of segment", other)),
        };
        Ok(Segment { keys, pairs, capacity, numbers, content })
    }
}

/// The most partitions of a file with so many sets: they are tabled in memory, and more would only cost.
pub(crate) fn max_partitions(sets: u32) -> u32 {
    sets.max(256)
}

const FROZEN: u8 = 0;
const BLOOM: u8 = 1;
const CUCKOO: u8 = 2;

impl Sketch {
    fn decode(
        kind: u8,
        from: &mut Reader<'_>,
        sets: u32,
        most: u32,
        places: &mut Places<'_>,
    ) -> Result<Sketch, FormatError> {
        let existence = match from.within("filters in front", 0..=1)? {
            0 => None,
            _ => Some(SplitBlock::decode(from, EXISTENCE_SALT)?),
        };
        // A filter without a table rejects everyone, also a key that is added later.
        if existence.is_some_and(|filter| filter.payload_len() == 0) {
            return Err(FormatError::invalid("directory: a filter in front without a table"));
        }
        let (mut heavy, mut extra) = (Side::decode(from, sets)?, Side::decode(from, sets)?);
        let body = match kind {
            BLOOM => Body::Bloom(CscBloom::decode(from)?),
            _ => Body::Cuckoo(CscCuckoo::decode(from)?),
        };
        let repeats = with_body!(&body, body => body.repeats);
        let partitions = repeats.partitions;
        if partitions > most {
            return Err(FormatError::invalid(format!("directory: {partitions} partitions, expected at most {most}")));
        }
        let existence = match existence {
            None => None,
            Some(filter) => Some((filter, Words::Shared(places.take(filter.payload_len())?))),
        };
        heavy.lay_out(places)?;
        extra.lay_out(places)?;
        let words = Words::Shared(places.take(with_body!(&body, body => body.payload_len()))?);
        // Tables of partitions are worth some times what the table itself takes, and no more: a small file may speak of many sets.
        let most = 4096 + 16 * words.len() as u64;
        let cost = repeats.table_bytes(sets);
        from.draw(if cost <= most { cost } else { 0 })?;
        let groups = repeats.groups(sets, most);
        Ok(Sketch { body, groups, existence, heavy, extra, words })
    }

    /// The most pairs of so many sets that can be in it: in the table, and listed next to it.
    pub(super) fn capacity(&self, sets: u32) -> u64 {
        let listed = (self.heavy.len() as u64 + self.extra.len() as u64).saturating_mul(sets.into());
        listed.saturating_add(with_body!(&self.body, body => body.capacity()))
    }
}
