//! names of sets and segments -> the sets of a key: what an opened index and a changing one share.
//!
//! ```text
//!   directory:  k-mer length, 0 if keys are none | sets | per set: name, mark, pairs | segments
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use super::coalesce::Scratch;
use super::frozen::BATCH;
use super::key::truncate_digest;
use super::segment::{Segment, distinct};
use crate::error::{FormatError, ValueError};
#[cfg(feature = "build")]
use crate::format::{Form, Writer, put_varint};
use crate::format::{Header, Places, Reader};
use crate::hash::{Digest, Hasher, Key, KeyType, Mismatch};

/// The most sets of an index.
pub(crate) const MAX_SETS: u32 = 1 << 24;
/// The longest name of a set, in bytes.
pub(crate) const MAX_NAME: usize = 1 << 12;
pub(crate) const MAX_SEGMENTS: usize = 1 << 12;
/// The longest k-mer.
pub(crate) const MAX_KMER: u32 = 31;

/// Checks that a set may have this name: 1 to 4096 bytes without commas, tabs, ends of lines and NUL.
///
/// # Errors
///
/// [`ValueError`] that says what is wrong with the name.
///
/// ```
/// assert!(tamis::sets::check_name("red").is_ok());
/// assert!(tamis::sets::check_name("red,blue").is_err());
/// ```
pub fn check_name(name: &str) -> Result<(), ValueError> {
    match name.len() {
        0 => Err(ValueError::NoName),
        bytes if bytes > MAX_NAME => Err(ValueError::LongName { bytes, most: MAX_NAME }),
        _ if name.contains([',', '\t', '\n', '\r', '\0']) => Err(ValueError::Separator { name: name.into() }),
        _ => Ok(()),
    }
}

/// Everything of an index but the bytes it came from.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) hasher: Hasher,
    pub(crate) key_type: KeyType,
    /// Keys are k-mers of this length; 0 if they are something else.
    pub(crate) kmer: u32,
    pub(crate) names: Vec<SetEntry>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) removed: u32,
    /// Whether the secret of the hash is kept outside the file.
    /// The caller's note.
    pub(crate) metadata: Arc<[u8]>,
}

#[derive(Clone, Debug)]
pub(crate) struct SetEntry {
    pub(crate) name: Box<str>,
    pub(crate) removed: bool,
    /// Distinct keys, as far as segments know.
    pub(crate) pairs: u64,
}

/// What queries use again and again: that of a sketch; the lists of one segment, and where each ends; those of all segments.
type FindScratch = (Scratch, Vec<u32>, Vec<usize>, Vec<Vec<u32>>);

/// The numbers of all sets that are not removed.
pub(crate) fn by_name(names: &[SetEntry]) -> HashMap<Box<str>, u32> {
    let alive = (0..).zip(names).filter(|(_, entry)| !entry.removed);
    alive.map(|(id, entry)| (entry.name.clone(), id)).collect()
}

impl Index {
    pub(crate) fn keys(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.keys))
    }

    pub(crate) fn pairs(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.pairs))
    }

    /// Pairs that a new segment is made for: a quarter of those that there are, so that an index that keeps growing has few segments. A file
    /// can claim any number of pairs, so no more than two for each of its bytes.
    pub(crate) fn growth(&self) -> u64 {
        (self.pairs() / 4).min(2 * self.approx_bytes())
    }

    pub(crate) fn check<K: Key>(&self) -> Result<(), Mismatch> {
        self.key_type.check(K::KEY_TYPE)
    }

    pub(crate) fn digest_of<K: Key>(&self, key: &K) -> Digest {
        truncate_digest(key.digest(&self.hasher))
    }

    /// Writes the sets of a key into `ids`, ascending.
    pub(crate) fn find(&self, key: Digest, ids: &mut Vec<u32>) {
        let mut scratch = Scratch::default();
        ids.clear();
        for segment in &self.segments {
            segment.find(key, &mut scratch, ids);
        }
        self.merge_segments(ids);
    }

    /// The sets of a key, with how often it is in each.
    pub(crate) fn frequencies(&self, key: Digest) -> Vec<(u32, u8)> {
        let mut scratch = Scratch::default();
        let mut sums = std::collections::BTreeMap::<u32, u8>::new();
        for segment in &self.segments {
            segment.frequencies(key, &mut scratch, |id, times| {
                if self.alive(id) {
                    let sum = sums.entry(id).or_insert(0);
                    *sum = sum.saturating_add(times);
                }
            });
        }
        sums.into_iter().collect()
    }

    /// What several segments said, put together, without removed sets.
    fn merge_segments(&self, ids: &mut Vec<u32>) {
        if self.segments.len() > 1 {
            ids.sort_unstable();
            distinct(ids, 0);
        }
        if self.removed > 0 {
            ids.retain(|&id| self.alive(id));
        }
    }

    fn alive(&self, id: u32) -> bool {
        self.names.get(id as usize).is_some_and(|entry| !entry.removed)
    }

    /// Tells the sets of every key, in order.
    pub(crate) fn find_many<K: Key>(&self, keys: &[K], mut found: impl FnMut(usize, &[u32])) {
        let mut scratch = FindScratch::default();
        let mut names = [Digest::default(); BATCH];
        for (round, keys) in keys.chunks(BATCH).enumerate() {
            names.iter_mut().zip(keys).for_each(|(to, key)| *to = self.digest_of(key));
            self.find_some(&names[..keys.len()], &mut scratch, &mut |at, ids| found(round * BATCH + at, ids));
        }
    }

    /// The same for at most [`BATCH`] names.
    fn find_some(&self, names: &[Digest], scratch: &mut FindScratch, found: &mut dyn FnMut(usize, &[u32])) {
        let (scratch, ids, ends, lists) = scratch;
        let alone = self.segments.len() == 1 && self.removed == 0;
        lists.resize_with(names.len(), Vec::new);
        lists.iter_mut().for_each(Vec::clear);
        for segment in &self.segments {
            segment.find_many(names, scratch, ids, ends);
            let mut start = 0;
            for (at, (list, &end)) in lists.iter_mut().zip(&*ends).enumerate() {
                match alone {
                    true => found(at, &ids[start..end]),
                    false => list.extend_from_slice(&ids[start..end]),
                }
                start = end;
            }
        }
        for (at, list) in lists.iter_mut().enumerate().filter(|_| !alone) {
            self.merge_segments(list);
            found(at, list);
        }
    }

    pub(crate) fn decode(
        header: &Header,
        metadata: &[u8],
        mut from: Reader<'_>,
        mut places: Places<'_>,
    ) -> Result<Index, FormatError> {
        let kmer = from.within("length of k-mers", 0..=u64::from(MAX_KMER))? as u32;
        let count = from.within("number of sets", 0..=u64::from(MAX_SETS))?;
        let listed = from.varint()?;
        let listed = places.take(listed)?;
        let mut list = Reader::budgeted(&listed, "names", places.budget);
        // A set takes three bytes at least.
        if count > list.len() / 3 {
            return Err(FormatError::invalid(format!("names: too short for {count} sets")));
        }
        let mut names: Vec<SetEntry> = from.room(count)?;
        for _ in 0..count {
            let len = list.varint()?;
            let name = str::from_utf8(list.take(len)?)
                .map_err(|_| FormatError::invalid("names: the name of a set is not text"))?;
            check_name(name).map_err(|reason| FormatError::invalid(format!("names: {reason}")))?;
            list.draw(len)?;
            let removed = list.within("mark of a set", 0..=1)? == 1;
            names.push(SetEntry { name: name.into(), removed, pairs: list.varint()? });
        }
        list.end()?;
        let mut sorted: Vec<&str> = from.room(count)?;
        sorted.extend(names.iter().filter(|entry| !entry.removed).map(|entry| &*entry.name));
        sorted.sort_unstable();
        if let Some(two) = sorted.windows(2).find(|two| two[0] == two[1]) {
            return Err(FormatError::invalid(format!("names: two sets are named {:?}", two[0])));
        }
        let count = from.within("number of segments", 0..=MAX_SEGMENTS as u64)?;
        let sets = names.len() as u32;
        let mut segments = from.room(count)?;
        for _ in 0..count {
            segments.push(Segment::decode(&mut from, sets, &mut places)?);
        }
        from.end()?;
        places.check()?;
        let removed = names.iter().filter(|entry| entry.removed).count() as u32;
        from.draw(metadata.len() as u64)?;
        let Header { hasher, key_type, .. } = header.clone();
        let metadata = metadata.into();
        Ok(Index { hasher, key_type, kmer, names, segments, removed, metadata })
    }

    #[cfg(feature = "build")]
    pub(crate) fn write(&self, out: &mut dyn std::io::Write) -> std::io::Result<u64> {
        let header = Header {
            keys: self.keys(),
            negatives: self.pairs(),
            ..Header::new(Form::Sets, self.hasher.clone(), self.key_type)
        };
        let mut writer = Writer::new(out, &header, vec![])?.with_metadata(&self.metadata);
        let mut names = vec![];
        for SetEntry { name, removed, pairs } in &self.names {
            put_varint(&mut names, name.len() as u64);
            names.extend_from_slice(name.as_bytes());
            names.push(*removed as u8);
            put_varint(&mut names, *pairs);
        }
        writer.payload(&names)?;
        let mut directory = vec![];
        for number in [u64::from(self.kmer), self.names.len() as u64, names.len() as u64] {
            put_varint(&mut directory, number);
        }
        put_varint(&mut directory, self.segments.len() as u64);
        for segment in &self.segments {
            segment.encode(&mut directory);
            segment.payloads(|payload| writer.payload(payload))?;
        }
        writer.close(directory)
    }

    /// Whether its file has a secret in it.
    #[cfg(feature = "build")]
    pub(crate) fn holds_secret(&self) -> bool {
        self.hasher.is_written()
    }

    pub(crate) fn approx_bytes(&self) -> u64 {
        let mut sum = 4096 + self.names.len() as u64 * 32;
        for segment in &self.segments {
            sum += (segment.bits() / 8.0) as u64 + 512;
        }
        sum
    }
}
