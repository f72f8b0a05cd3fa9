//! an index -> one that changes: pairs come and go, sets are added and removed, indexes are merged; and its snapshot as a file.
//!
//! Segments stay in the file's bytes until one of them is changed. New pairs go into the last sketch that has room for them; where there is none a new
//! segment begins, a quarter as large as all others together, so that an index that keeps growing has few of them. A frozen segment never changes.

use std::collections::HashMap;
use std::path::Path;

use super::build::{Collector, add_set};
use super::coalesce::Scratch;
use super::index::{Index, MAX_SEGMENTS, SetEntry, by_name};
use super::query::Sets;
use super::segment::{Body, Content, NO_SET, Numbers, Segment, Sketch};
use crate::debug::brief_debug;
use crate::error::{BuildError, ChangeError, Difference, Error, FormatError, QueryError, ValueError};
use crate::filter::build::to_file;
use crate::hash::{Digest, Hasher, Key, KeyType};

mod insert;

/// An index that is being changed: pairs are inserted and removed, sets added and removed, indexes merged.
///
/// ```
/// use tamis::sets::{Editor, Kind};
/// let index = tamis::sets([("ann", "red"), ("bob", "red")]).kind(Kind::Cuckoo).capacity(100).finish()?;
/// let mut editor = Editor::new(&index)?;
/// let blue = editor.add_set("blue")?;
/// editor.insert("ann", blue)?;
/// editor.remove("bob", 0)?;
/// let index = tamis::Sets::open(editor.snapshot()?)?;
/// assert_eq!(index.find("ann")?, [0, 1]);
/// assert!(index.find("bob")?.is_empty());
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct Editor {
    index: Index,
    by_name: HashMap<Box<str>, u32>,
    /// The segment that takes new pairs, and the number there of every set of the file.
    open: Option<(usize, Vec<u32>)>,
}

/// Pairs that are inserted at a time.
const MAX_BATCH: usize = 64;

brief_debug!(Editor, it => sets: it.index.names.len(), segments: it.index.segments.len(), hasher: it.index.hasher);

impl Editor {
    /// Starts to change an index, which is verified first: a snapshot has a new checksum, which would hide damage. Tables are copied
    /// when they are changed.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the index is damaged.
    pub fn new(sets: &Sets) -> Result<Editor, FormatError> {
        sets.verify()?;
        let index = Index::clone(&sets.index);
        for segment in &index.segments {
            if let Content::Sketch(Sketch { heavy, extra, .. }) = &segment.content {
                heavy.check()?;
                extra.check()?;
            }
        }
        let by_name = by_name(&index.names);
        Ok(Editor { index, by_name, open: None })
    }

    /// Returns the id of the set with this name, a new one unless there is such a set.
    ///
    /// # Errors
    ///
    /// [`BuildError::Value`] if no set may have this name, [`BuildError::TooMany`] above 2^24 sets.
    pub fn add_set(&mut self, name: &str) -> Result<u32, BuildError> {
        add_set(&mut self.index.names, &mut self.by_name, name)
    }

    /// Returns the id of the set with this name.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// Marks a set as removed: queries do not name it any more. Its id is not used again, and its pairs keep their space unless they are
    /// [removed](Editor::remove) before.
    ///
    /// # Errors
    ///
    /// [`BuildError::Value`] if no set has this name.
    pub fn remove_set(&mut self, name: &str) -> Result<(), BuildError> {
        let Some(id) = self.by_name.remove(name) else {
            return Err(ValueError::NoSet { name: name.into() }.into());
        };
        self.index.names[id as usize].removed = true;
        self.index.removed += 1;
        Ok(())
    }

    fn push(&mut self, segment: Segment) -> Result<(), BuildError> {
        if self.index.segments.len() >= MAX_SEGMENTS {
            return Err(TOO_MANY);
        }
        self.index.segments.push(segment);
        Ok(())
    }

    /// Removes a key from a set; returns `false` if the index does not name the pair.
    ///
    /// Only pairs that were inserted may be removed: a cuckoo sketch stores fingerprints, and would remove another pair with an equal one.
    ///
    /// # Errors
    ///
    /// [`Error::Change`] if the key type is not the index's, if the pair is in a frozen index or a Bloom sketch without counts, or if several
    /// segments name it. [`Error::Build`] if no set has this id.
    pub fn remove<K: Key>(&mut self, key: K, set: u32) -> Result<bool, Error> {
        self.index.check::<K>().map_err(ChangeError::from)?;
        self.known(set)?;
        let key = self.index.digest_of(&key);
        let (mut scratch, mut ids) = (Scratch::default(), vec![]);
        let mut holding = vec![];
        for (at, segment) in self.index.segments.iter().enumerate() {
            ids.clear();
            segment.find(key, &mut scratch, &mut ids);
            if ids.binary_search(&set).is_ok() {
                if !segment.gives_back(key) {
                    let what = "remove: the sketch cannot remove pairs; expected a cuckoo sketch or one with counts; use remove_set for a whole set";
                    return Err(ChangeError::Unsupported { what }.into());
                }
                holding.push(at);
            }
        }
        let removed = match holding[..] {
            [] => false,
            [at] => self.index.segments[at].remove(key, set),
            // One of them may name it by mistake, and to take it out there would take out another's.
            _ => {
                let what = "remove: several segments match this pair; expected one; build the index again";
                return Err(ChangeError::Unsupported { what }.into());
            }
        };
        if removed {
            let entry = &mut self.index.names[set as usize];
            entry.pairs = entry.pairs.saturating_sub(1);
        }
        Ok(removed)
    }

    /// Merges another index into this one: its segments are added, and sets of one name become one set.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if the other index is damaged, [`Error::Build`] if hash, key type or k-mers differ or a segment is in both.
    ///
    /// ```
    /// let one = tamis::sets([("ann", "red")]).finish()?;
    /// let two = tamis::sets([("ann", "blue"), ("bob", "red")]).finish()?;
    /// let mut both = tamis::sets::Editor::new(&one)?;
    /// both.merge(&two)?;
    /// assert_eq!(both.find("ann")?, [0, 1]);
    /// let other = tamis::Options::default().seed(7).sets([("eve", "red")]).finish()?;
    /// assert_eq!(both.merge(&other).unwrap_err().to_string(), "merge: seeds 0 and 7; expected the same");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn merge(&mut self, other: &Sets) -> Result<(), Error> {
        other.verify()?;
        let theirs = &other.index;
        let unlike = unlike(&self.index, (&theirs.hasher, Some(theirs.key_type), theirs.kmer));
        if let Some(difference) = unlike.filter(|_| !theirs.segments.is_empty()).or_else(|| self.common(theirs)) {
            return Err(BuildError::CannotMerge { difference }.into());
        }
        self.attach(theirs)
    }

    /// Whether a segment of another index is here already: its pairs would count twice, and could not be taken out any more.
    fn common(&self, theirs: &Index) -> Option<Difference> {
        // A set that is not here has a number that no set has.
        let here = |entry: &SetEntry| self.id(&entry.name).unwrap_or(NO_SET - 1);
        let numbers: Vec<u32> =
            theirs.names.iter().map(|entry| if entry.removed { NO_SET } else { here(entry) }).collect();
        let number = |set: u32| numbers.get(set as usize).copied().unwrap_or(NO_SET);
        let same = |ours: &Segment, theirs: &Segment| {
            ours.is_like(theirs) && ours.numbers.iter().eq(theirs.numbers.iter().map(number))
        };
        let both = theirs.segments.iter().any(|theirs| self.index.segments.iter().any(|ours| same(ours, theirs)));
        both.then_some(Difference::Common)
    }

    /// Puts the segments of another index next to those that are here.
    fn attach(&mut self, theirs: &Index) -> Result<(), Error> {
        if self.index.segments.len() + theirs.segments.len() > MAX_SEGMENTS {
            return Err(TOO_MANY.into());
        }
        if self.index.segments.is_empty() {
            (self.index.hasher, self.index.key_type) = (theirs.hasher.clone(), theirs.key_type);
            self.index.kmer = theirs.kmer;
        }
        // A secret that one of them keeps outside its file is kept outside that of both.
        if theirs.hasher.is_beside() && !theirs.segments.is_empty() {
            self.index.hasher = theirs.hasher.clone();
        }
        let mut numbers = vec![];
        for entry in &theirs.names {
            if entry.removed {
                numbers.push(NO_SET);
                continue;
            }
            let id = self.add_set(&entry.name)?;
            let ours = &mut self.index.names[id as usize];
            ours.pairs = ours.pairs.saturating_add(entry.pairs);
            numbers.push(id);
        }
        for segment in &theirs.segments {
            let sets = segment.numbers.iter().map(|set| numbers.get(set as usize).copied().unwrap_or(NO_SET));
            let numbers = Numbers::listed(sets.collect());
            let content = match &segment.content {
                Content::Frozen(frozen, _) => Content::frozen(frozen.clone(), &numbers),
                content => content.clone(),
            };
            self.push(Segment { numbers, content, ..*segment })?;
        }
        Ok(())
    }

    /// Adds the pairs of a collector and their sets. A pair that was pushed twice is added once.
    ///
    /// A pair that a frozen segment or a Bloom sketch names already is not added. All others are inserted where there is capacity, as by
    /// [`insert`](Editor::insert). The rest becomes a new segment, by the options of the collector.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] if hash, key type or k-mers differ (see [`SetsBuilder::like`](super::SetsBuilder::like)), and those of
    /// [`Collector::finish`].
    ///
    /// ```
    /// use tamis::sets::{Editor, Kind, stream};
    /// let index = tamis::sets([("ann", "red"), ("bob", "red")]).kind(Kind::Cuckoo).capacity(100).finish()?;
    /// let mut pairs = stream().like(&index).start();
    /// let blue = pairs.set("blue")?;
    /// pairs.push("ann", blue)?;
    /// pairs.push("ann", blue)?;
    /// let mut editor = Editor::new(&index)?;
    /// let added = editor.add(pairs)?;
    /// assert_eq!((added.pairs, added.duplicates), (1, 1));
    /// assert_eq!(editor.find("ann")?, [0, 1]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn add(&mut self, mut pairs: Collector<'_>) -> Result<Added, Error> {
        pairs.number_by_name()?;
        let (names, common) = pairs.common();
        if let Some(difference) = unlike(&self.index, common) {
            return Err(BuildError::CannotAdd { difference }.into());
        }
        let mut numbers = vec![];
        for entry in names {
            numbers.push(if entry.removed { NO_SET } else { self.add_set(&entry.name)? });
        }
        let (mut added, mut scratch) = (Added::default(), Scratch::default());
        added.duplicates = pairs.offer(|key, set| {
            let set = numbers.get(set as usize).copied().unwrap_or(NO_SET);
            if set == NO_SET || self.index.segments.iter().any(|segment| segment.keeps(key, set, &mut scratch)) {
                added.known += 1;
                return Ok(true);
            }
            added.pairs += 1;
            let room = self.index.segments.iter().any(|segment| segment.free() > 0);
            if room {
                self.put(key, set)?;
            }
            Ok(room)
        })?;
        if !pairs.is_empty() {
            self.attach(&pairs.into_index()?.0)?;
        }
        Ok(added)
    }

    /// Returns the ids of the sets of a key: see [`Sets::find`].
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the index's.
    pub fn find<K: Key>(&self, key: K) -> Result<Vec<u32>, QueryError> {
        self.index.check::<K>()?;
        let mut ids = vec![];
        self.index.find(self.index.digest_of(&key), &mut ids);
        Ok(ids)
    }

    /// Returns the index as bytes for [`Sets::open`].
    ///
    /// # Errors
    ///
    /// [`BuildError::Io`] if memory cannot be written, which does not happen.
    pub fn snapshot(&self) -> Result<Vec<u8>, BuildError> {
        let mut file = vec![];
        self.index.write(&mut file)?;
        Ok(file)
    }

    /// Writes the index to a file and returns its length. The file appears, or replaces an older one, when it is complete and not before.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<u64, Error> {
        to_file(path.as_ref(), self.index.holds_secret(), |out| Ok(self.index.write(out)?))
    }
}

/// What [`Editor::add`] did with pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Added {
    /// Number of pairs that were added.
    pub pairs: u64,
    /// Number of pairs that the index named already and kept as they were.
    pub known: u64,
    /// Number of pairs that repeat another one of the collector.
    pub duplicates: u64,
}

/// What keeps an index apart from others of this hash, these keys and k-mers.
fn unlike(ours: &Index, (hasher, key_type, kmer): (&Hasher, Option<KeyType>, u32)) -> Option<Difference> {
    if ours.segments.is_empty() {
        return None;
    }
    if ours.kmer != kmer {
        return Some(Difference::Kmers { ours: ours.kmer, theirs: kmer });
    }
    if let Some(theirs) = key_type.filter(|&key_type| key_type != ours.key_type) {
        return Some(Difference::KeyTypes { ours: ours.key_type, theirs });
    }
    if ours.hasher == *hasher {
        return None;
    }
    Some(match (ours.hasher.is_secret(), hasher.is_secret()) {
        (false, false) => Difference::Seeds { ours: ours.hasher.words()[0], theirs: hasher.words()[0] },
        (true, true) => Difference::Secrets,
        _ => Difference::OneSecret,
    })
}

const TOO_MANY: BuildError = BuildError::TooMany { what: "segments", most: MAX_SEGMENTS as u64 };

impl Numbers {
    /// The number of a set of the file, which is new here unless it was there.
    fn add(&mut self, set: u32) -> u32 {
        if let Some(local) = self.local(set) {
            return local;
        }
        let local = self.len();
        match self {
            Numbers::Same(count) if *count == set => *count += 1,
            Numbers::Same(count) => *self = Numbers::listed((0..*count).chain([set]).collect()),
            Numbers::Listed { sets, ascending } => {
                *ascending &= sets.last().is_none_or(|&last| last < set);
                sets.push(set);
            }
        }
        local
    }
}

impl Sketch {
    /// Whether pairs can be taken out of the table.
    fn gives_back(&self) -> bool {
        match &self.body {
            Body::Cuckoo(_) => true,
            Body::Bloom(body) => body.counting,
        }
    }
}

impl Segment {
    /// Whether a pair is found here, and will be whatever else is taken out: in tables that give nothing back, or listed exactly.
    fn keeps(&self, key: Digest, set: u32, scratch: &mut Scratch) -> bool {
        let mut ids = vec![];
        match &self.content {
            Content::Sketch(sketch) if sketch.gives_back() => {
                (sketch.heavy.find(key, &mut ids) || sketch.extra.find(key, &mut ids))
                    && self.numbers.local(set).is_some_and(|local| ids.binary_search(&local).is_ok())
            }
            Content::Sketch(_) | Content::Frozen(..) => {
                self.find(key, scratch, &mut ids);
                ids.binary_search(&set).is_ok()
            }
        }
    }

    /// Whether two segments have the same pairs in the same tables, but for the names of the sets.
    fn is_like(&self, other: &Segment) -> bool {
        (self.keys, self.pairs, self.capacity) == (other.keys, other.pairs, other.capacity)
            && match (&self.content, &other.content) {
                (Content::Frozen(one, _), Content::Frozen(two, _)) => one.payloads() == two.payloads(),
                (Content::Sketch(one), Content::Sketch(two)) => {
                    let sets = self.numbers.len().max(other.numbers.len());
                    let sides = |sketch: &Sketch| [&sketch.heavy, &sketch.extra].map(|side| side.pack(sets));
                    one.body == two.body
                        && one.words[..] == two.words[..]
                        && sides(one).iter().zip(&sides(two)).all(|(one, two)| one.payloads() == two.payloads())
                }
                _ => false,
            }
    }

    /// Whether a pair of this key can be taken out.
    fn gives_back(&self, key: Digest) -> bool {
        match &self.content {
            Content::Frozen(..) => false,
            Content::Sketch(sketch) => sketch.gives_back() || sketch.heavy.has(key),
        }
    }

    fn remove(&mut self, key: Digest, set: u32) -> bool {
        let (Some(local), Content::Sketch(sketch)) = (self.numbers.local(set), &mut self.content) else { return false };
        let Sketch { body, groups, heavy, extra, words, .. } = sketch;
        let mut ids = vec![];
        let side = [heavy, extra].into_iter().find(|side| side.find(key, &mut ids));
        let removed = match (side, ids.binary_search(&local)) {
            (Some(side), Ok(at)) => {
                ids.remove(at);
                match ids.is_empty() {
                    true => drop(side.open().remove(&key)),
                    false => drop(side.open().insert(key, ids)),
                }
                true
            }
            _ => match body {
                Body::Cuckoo(body) => body.remove(words.change(), groups, key, local),
                Body::Bloom(body) => body.remove(words.change(), groups, key, local),
            },
        };
        self.pairs = self.pairs.saturating_sub(u64::from(removed));
        removed
    }
}
