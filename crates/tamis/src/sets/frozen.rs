//! keys that stay -> a filter, a map from key to colour, and the colours' lists: the static index.
//!
//! Keys of real data share their lists: the 600,000 sites of the country data have 51,000 different ones, and the k-mers of ten genomes
//! 400. A *colour* is a distinct list. The index is three parts, each of which tamis has anyway:
//!
//! ```text
//!   key ──▶ filter, a ribbon ──no──▶ no sets
//!             │ yes
//!             ▼
//!           map, compressed ──▶ colour ──▶ lists ──▶ sets
//! ```
//!
//! A present key gets its own list, exactly. An absent one gets nothing, but for the share that the filter lets through: it gets the list of some colour.
//! Filter and map are whole files inside the file, queried by digest.

use super::key::Hashed;
use super::lists::Lists;
use super::segment::Numbers;
use crate::error::FormatError;
use crate::filter::query::Filter;
use crate::format::{Form, Places, Reader, put_varint};
use crate::hash::{Digest, KeyType};
use crate::maps::Map;

#[derive(Debug)]
pub(crate) struct Frozen {
    /// None if every absent key may get a list.
    pub(crate) filter: Option<Filter>,
    pub(crate) map: Map,
    pub(crate) lists: Lists,
}

/// The lists of the first colours, which most keys have, as numbers of the file.
///
/// They are read when a segment is opened: a few thousand numbers, for which most queries need not decode anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedLists {
    ends: Vec<u32>,
    ids: Vec<u32>,
}

/// The most colours and the most numbers that are kept.
const MAX_CACHED: (u64, u64) = (1 << 12, 1 << 14);

impl CachedLists {
    /// The most colours and numbers of some lists. No more than the lists pay for: a few bits can stand for all sets, and many lists for none.
    fn limits(lists: &Lists) -> (u64, u64) {
        let bytes = lists.payload_len();
        (lists.count.min(MAX_CACHED.0).min(64 + 2 * bytes), MAX_CACHED.1.min(64 + 16 * bytes))
    }

    pub(super) fn new(frozen: &Frozen, numbers: &Numbers) -> CachedLists {
        let (colours, most) = CachedLists::limits(&frozen.lists);
        let (mut ends, mut ids) = (Vec::with_capacity(colours as usize), Vec::with_capacity(most as usize));
        for colour in 0..colours {
            let start = ids.len();
            if !frozen.lists.read(colour, most as usize - start, &mut ids) {
                break;
            }
            let kept = numbers.translate(&mut ids[start..]);
            ids.truncate(start + kept);
            ends.push(ids.len() as u32);
        }
        ids.shrink_to_fit();
        CachedLists { ends, ids }
    }

    #[inline]
    fn list(&self, colour: u64) -> Option<&[u32]> {
        let at = usize::try_from(colour).ok()?;
        let end = *self.ends.get(at)?;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        self.ids.get(start as usize..end as usize)
    }
}

/// Keys that are queried together.
pub(super) const BATCH: usize = crate::filter::steps::ROUND;

impl Frozen {
    /// Appends the list of a key, as numbers of the file.
    pub(super) fn find(&self, key: Digest, cached: &CachedLists, numbers: &Numbers, ids: &mut Vec<u32>) {
        // Both hold digests as bytes: `decode` made sure that they cannot reject one.
        if self.filter.as_ref().is_none_or(|filter| filter.contains(Hashed(key)) == Ok(true))
            && let Ok(Some(colour)) = self.map.get_u64(Hashed(key))
        {
            self.list(colour, cached, numbers, ids);
        }
    }

    #[inline]
    fn list(&self, colour: u64, cached: &CachedLists, numbers: &Numbers, ids: &mut Vec<u32>) {
        match cached.list(colour) {
            Some(list) => ids.extend_from_slice(list),
            None => self.read(colour, numbers, ids),
        }
    }

    fn read(&self, colour: u64, numbers: &Numbers, ids: &mut Vec<u32>) {
        let start = ids.len();
        self.lists.read(colour, usize::MAX, ids);
        let kept = numbers.translate(&mut ids[start..]);
        ids.truncate(start + kept);
    }

    /// Appends the lists of at most [`BATCH`] keys, one after the other; `ends` says where each of them ends.
    pub(super) fn find_many(
        &self,
        keys: &[Digest],
        cached: &CachedLists,
        numbers: &Numbers,
        ids: &mut Vec<u32>,
        ends: &mut Vec<usize>,
    ) {
        let (mut yes, mut colours) = ([true; BATCH], [None; BATCH]);
        let yes = &mut yes[..keys.len()];
        let mut passed = [Hashed(Digest::default()); BATCH];
        passed.iter_mut().zip(keys).for_each(|(to, &key)| *to = Hashed(key));
        if let Some(filter) = &self.filter {
            let _ = filter.contains_into(&passed[..keys.len()], yes); // cannot fail: see above
        }
        let mut count = 0;
        for at in 0..keys.len() {
            passed[count] = passed[at];
            count += yes[at] as usize;
        }
        let _ = self.map.get_many_u64(&passed[..count], &mut colours[..count]);
        let mut next = colours[..count].iter();
        for &yes in &*yes {
            if let Some(colour) = if yes { next.next().copied().flatten() } else { None } {
                self.list(colour, cached, numbers, ids);
            }
            ends.push(ids.len());
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.filter.as_ref().map_or(0, |filter| filter.as_bytes().len() as u64));
        put_varint(out, self.map.as_bytes().len() as u64);
        self.lists.encode(out);
    }

    pub(super) fn decode(from: &mut Reader<'_>, sets: u32, places: &mut Places<'_>) -> Result<Frozen, FormatError> {
        let (filter, map) = (from.varint()?, from.varint()?);
        let mut lists = Lists::decode(from, sets)?;
        let filter = match filter {
            0 => None,
            len => Some(Filter::within(places.take(len)?, None, places.budget)?),
        };
        let map = Map::within(places.take(map)?, Form::Map, None, places.budget)?;
        lists.payload = places.take(lists.payload_len())?;
        let (colours, numbers) = CachedLists::limits(&lists);
        // Itself, and the first lists.
        from.draw(size_of::<Frozen>() as u64 + 16 + 4 * (colours + numbers))?;
        let plain = |filter: &Filter| !filter.is_partitioned() && filter.key_type() == KeyType::Bytes;
        let numbers = map.key_type() == KeyType::Bytes && (map.value_type() == KeyType::Integer || map.is_empty());
        if !filter.as_ref().is_none_or(plain) || !numbers {
            return Err(FormatError::invalid("directory: a frozen segment has a plain filter and a map to numbers"));
        }
        Ok(Frozen { filter, map, lists })
    }

    /// What goes into the file, in this order.
    pub(super) fn payloads(&self) -> [&[u8]; 3] {
        let filter = self.filter.as_ref().map_or(&[][..], Filter::as_bytes);
        [filter, self.map.as_bytes(), &self.lists.payload]
    }
}
