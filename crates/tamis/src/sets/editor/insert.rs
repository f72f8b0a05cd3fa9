//! pairs, one or many -> the last segment that has room for them, or a new one.
//!
//! Pairs of one call are inserted in their order, and the bytes are those of one call for each pair. What many gain: the cache lines
//! of a batch are fetched at once, and a segment is looked for once for all of them.

use super::{Editor, MAX_BATCH};
use crate::error::{BuildError, ChangeError, Error, ValueError};
use crate::hash::{Digest, Key};
use crate::sets::build::{FALSE_SETS, MEMBER_FALSE_SETS, planned};
use crate::sets::segment::{Body, Content, NO_SET, Numbers, Segment, Sketch, with_body};
use crate::sets::sketch::list;
use crate::sets::tune::{self, SetSizes, TuneGoal};

/// The fewest pairs that a new segment is made for.
const MIN_SEGMENT_PAIRS: u64 = 1 << 12;

impl Editor {
    /// Inserts a key into a set. The first key of an empty index sets its key type.
    ///
    /// A cuckoo sketch stores a copy for every insertion, since it cannot tell a pair that it has from one with an equal fingerprint. A
    /// sketch with counts counts the pair once more.
    ///
    /// # Errors
    ///
    /// [`Error::Change`] if the key type is not the index's, [`Error::Build`] if no set has this id or a new segment cannot be made.
    pub fn insert<K: Key>(&mut self, key: K, set: u32) -> Result<(), Error> {
        self.insert_many(&[(key, set)])
    }

    /// Inserts many pairs, as [`insert`](Editor::insert) does one by one: several times faster where the index is larger than the caches.
    ///
    /// # Errors
    ///
    /// Those of [`insert`](Editor::insert). If no set has one of the ids, no pair is inserted.
    ///
    /// ```
    /// use tamis::sets::{Editor, Kind};
    /// let index = tamis::sets([(1u64, "red"), (2, "blue")]).kind(Kind::Bloom).capacity(100).finish()?;
    /// let mut editor = Editor::new(&index)?;
    /// editor.insert_many(&[(7u64, 0), (8, 1), (7, 1)])?;
    /// assert_eq!((editor.find(7u64)?, editor.find(8u64)?), (vec![0, 1], vec![1]));
    /// assert!(editor.insert_many(&[(9u64, 0), (9, 2)]).is_err());
    /// assert!(editor.find(9u64)?.is_empty());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_many<K: Key>(&mut self, pairs: &[(K, u32)]) -> Result<(), Error> {
        if self.index.segments.is_empty() && !pairs.is_empty() {
            self.index.key_type = K::KEY_TYPE;
        }
        self.index.check::<K>().map_err(ChangeError::from)?;
        pairs.iter().try_for_each(|&(_, set)| self.known(set))?;
        if let [(key, set)] = pairs {
            return self.put(self.index.digest_of(key), *set);
        }
        let mut batch = Vec::with_capacity(pairs.len().min(MAX_BATCH));
        for part in pairs.chunks(MAX_BATCH) {
            batch.clear();
            batch.extend(part.iter().map(|(key, set)| (self.index.digest_of(key), *set)));
            self.put_many(&mut batch)?;
        }
        Ok(())
    }

    pub(super) fn put(&mut self, key: Digest, set: u32) -> Result<(), Error> {
        let heavy = |segment: &Segment| matches!(&segment.content, Content::Sketch(sketch) if sketch.heavy.has(key));
        let at = match self.index.segments.iter().position(heavy) {
            Some(at) => at,
            None => self.target()?,
        };
        let local = self.local(at, set);
        self.index.segments[at].insert(key, local);
        Ok(())
    }

    /// The same for many pairs, whose sets become those of their segments.
    fn put_many(&mut self, mut pairs: &mut [(Digest, u32)]) -> Result<(), Error> {
        let heavy = |segment: &Segment| match &segment.content {
            Content::Sketch(sketch) if !sketch.heavy.is_empty() => pairs.iter().any(|pair| sketch.heavy.has(pair.0)),
            Content::Sketch(_) | Content::Frozen(..) => false,
        };
        if self.index.segments.iter().any(heavy) {
            return pairs.iter().try_for_each(|&(key, set)| self.put(key, set));
        }
        while !pairs.is_empty() {
            let at = self.target()?;
            let free = self.index.segments[at].free().min(pairs.len() as u64);
            let (now, later) = pairs.split_at_mut(free as usize);
            now.iter_mut().for_each(|(_, set)| *set = self.local(at, *set));
            self.index.segments[at].insert_many(now);
            pairs = later;
        }
        Ok(())
    }

    pub(super) fn known(&self, set: u32) -> Result<(), BuildError> {
        match self.index.names.get(set as usize).is_some_and(|entry| !entry.removed) {
            true => Ok(()),
            false => Err(ValueError::NoSetNumber { set }.into()),
        }
    }

    /// The number of a set in a segment, new there or not, for a pair that it gets.
    #[inline]
    fn local(&mut self, at: usize, set: u32) -> u32 {
        if let Some(entry) = self.index.names.get_mut(set as usize) {
            entry.pairs = entry.pairs.saturating_add(1);
        }
        let numbers = &mut self.index.segments[at].numbers;
        let Some((_, known)) = self.open.as_mut().filter(|(open, _)| *open == at) else { return numbers.add(set) };
        match known.get(set as usize) {
            Some(&local) if local != NO_SET => local,
            _ => {
                let local = numbers.add(set);
                remember(known, set, local);
                local
            }
        }
    }

    fn target(&mut self) -> Result<usize, BuildError> {
        let takes = |segment: &Segment| segment.free() > 0;
        if let Some((at, _)) = &self.open
            && self.index.segments.get(*at).is_some_and(takes)
        {
            return Ok(*at);
        }
        let at = match self.index.segments.iter().rposition(takes) {
            Some(at) => at,
            None => {
                let segment = self.fresh()?;
                self.push(segment)?;
                self.index.segments.len() - 1
            }
        };
        let mut known = vec![];
        let sets = self.index.segments[at].numbers.iter().zip(0..);
        sets.filter(|&(set, _)| set != NO_SET).for_each(|(set, local)| remember(&mut known, set, local));
        self.open = Some((at, known));
        Ok(at)
    }

    /// An empty sketch like the last one, for a quarter of the pairs that there are.
    fn fresh(&self) -> Result<Segment, BuildError> {
        let kind = self.index.segments.iter().rev().find_map(|segment| match &segment.content {
            Content::Sketch(Sketch { body: Body::Cuckoo(_), .. }) => Some(tune::Sketch::Cuckoo),
            Content::Sketch(_) => Some(tune::Sketch::Bloom),
            Content::Frozen(..) => None,
        });
        let (keys, pairs) = (self.index.keys(), self.index.pairs());
        let each = (pairs / keys.max(1)).clamp(1, u64::from(u32::MAX)) as u32;
        let sets = (self.index.names.len() as u32).max(64);
        let sizes = SetSizes { sets, multiplicities: vec![(each.min(sets.max(1)), keys.max(1))] };
        let capacity = self.index.growth().max(MIN_SEGMENT_PAIRS);
        let sizes = planned(&sizes, capacity);
        let goal = TuneGoal::Targets { false_sets: FALSE_SETS, member_false_sets: MEMBER_FALSE_SETS };
        // Rows that grow with the sets: see `Settings::tuned`.
        let options = tune::Options { heavy: Some(u32::MAX), repetitions: 1, ..tune::Options::default() };
        let tuned = tune::tune(kind.unwrap_or(tune::Sketch::Bloom), &sizes, goal, &options)?;
        let sketch = Sketch::empty(&tuned.shape, false, 0, sizes.keys())?;
        Ok(Segment { keys: 0, pairs: 0, capacity, numbers: Numbers::Same(0), content: Content::Sketch(sketch) })
    }
}

/// Notes the number that a set of the file has in the open segment.
fn remember(known: &mut Vec<u32>, set: u32, local: u32) {
    if known.len() <= set as usize {
        known.resize(set as usize + 1, NO_SET);
    }
    known[set as usize] = local;
}

impl Segment {
    /// How many more pairs it is planned for.
    pub(super) fn free(&self) -> u64 {
        let most = match &self.content {
            Content::Frozen(..) => return 0,
            // A pair that is only counted takes no slot: never more of them than a reader believes.
            Content::Sketch(Sketch { body: Body::Cuckoo(body), .. }) if body.counting => body.capacity(),
            Content::Sketch(_) => u64::MAX,
        };
        self.capacity.min(most).saturating_sub(self.pairs)
    }

    fn insert(&mut self, key: Digest, local: u32) {
        let Content::Sketch(sketch) = &mut self.content else { return };
        sketch.groups.grow(self.numbers.len());
        let heavy = sketch.heavy.has(key);
        if heavy {
            sketch.insert_existence(&[key]);
        } else if sketch.announce(key) {
            self.keys = self.keys.saturating_add(1);
        }
        let stored = if heavy { list(&mut sketch.heavy, key, local) } else { sketch.add(key, local, 1) };
        self.pairs = self.pairs.saturating_add(stored.into());
        sketch.count_keys(self.keys);
    }

    /// The same for pairs none of whose keys is listed as heavy.
    fn insert_many(&mut self, pairs: &[(Digest, u32)]) {
        let Content::Sketch(sketch) = &mut self.content else { return };
        sketch.groups.grow(self.numbers.len());
        let keys = sketch.announce_many(pairs);
        self.keys = self.keys.saturating_add(keys);
        self.pairs = self.pairs.saturating_add(sketch.add_many(pairs));
        sketch.count_keys(self.keys);
    }
}

impl Sketch {
    /// Makes a key known to the filter in front; false if it was there before.
    fn announce(&mut self, key: Digest) -> bool {
        let new = self.existence.is_none() || !self.exists(key);
        if new {
            self.insert_existence(&[key]);
        }
        new
    }

    /// The same for the keys of some pairs; returns how many were new.
    fn announce_many(&mut self, pairs: &[(Digest, u32)]) -> u64 {
        let Some((filter, payload)) = &self.existence else { return pairs.len() as u64 };
        let mut keys = [Digest::default(); MAX_BATCH];
        let mut there = [false; MAX_BATCH];
        keys.iter_mut().zip(pairs).for_each(|(to, &(key, _))| *to = key);
        let (keys, there) = (&keys[..pairs.len()], &mut there[..pairs.len()]);
        filter.contains_many(payload, keys, there);
        // A key may be new and come twice.
        keys.iter().zip(there).filter(|(key, there)| !**there && self.announce(**key)).count() as u64
    }

    /// Notes in the filter in front how many keys it has.
    fn count_keys(&mut self, keys: u64) {
        if let Some((filter, _)) = &mut self.existence {
            *filter = filter.holding(keys);
        }
    }

    /// Puts pairs into the table, or next to it where that is full; returns how many were not listed there already.
    fn add_many(&mut self, pairs: &[(Digest, u32)]) -> u64 {
        if let Body::Bloom(body) = &self.body {
            body.insert_pairs(self.words.change(), &self.groups, pairs);
            return pairs.len() as u64;
        }
        for &(key, set) in pairs {
            with_body!(&self.body, body => body.prefetch_list(&self.words, &self.groups, key, &[set]));
        }
        pairs.iter().filter(|&&(key, set)| self.add(key, set, 1)).count() as u64
    }
}

#[cfg(test)]
mod tests;
