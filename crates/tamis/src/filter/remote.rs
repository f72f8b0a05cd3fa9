//! the last bytes of a file, and ranges of it that the caller reads -> answers: filters in a store that is far away.
//!
//! ```text
//!   open(tail, len) ──▶ Remote ──needs(digests)──▶ ranges ──the caller reads──▶ supply(range, bytes) ──▶ answer(digest)
//! ```
//!
//! A [`Remote`] does no input or output, so that it serves blocking and asynchronous callers alike; [`Fetch`] is the loop for those who
//! block. One read of the file's end opens it. A query needs one shard, with all its layers: one read, of at most 64 KB where the filter
//! was built with [`shard_bytes`](crate::Options::shard_bytes). Every shard is checked against its sums before it answers, so that a
//! short read, a wrong range or a file that was replaced is an error and not a wrong answer.

use std::io;
use std::ops::Range;

use bytes::Bytes;

use super::open::decode_steps;
use super::steps::{Step, Steps};
use crate::debug::brief_debug;
use crate::error::{Error, FormatError, QueryError};
use crate::format::{Budget, Form, Header, Kept, Source, Tail, has_sums, unit_len};
use crate::hash::{Digest, Hasher, Key, KeyType};

/// Filter whose bytes are in a store: it says which ranges of the file it needs, and answers from those it was supplied with.
///
/// ```
/// let filter = tamis::build(0..200_000).shard_bytes(65_536).finish()?;
/// let file = filter.as_bytes(); // in a store
/// let tail = &file[file.len() - 65_536..];
/// let mut remote = tamis::Remote::open(tail.to_vec(), file.len() as u64)?;
/// let digest = remote.hasher().integer(7);
/// for range in remote.needs(&[digest]) {
///     let bytes = file[range.start as usize..range.end as usize].to_vec(); // one read of the store
///     remote.supply(range, bytes)?;
/// }
/// assert_eq!(remote.answer(digest), Some(true));
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct Remote {
    header: Header,
    identity: [u8; 16],
    /// All shards, without payloads.
    steps: Vec<Step>,
    shards: Vec<Shard>,
    sums: Box<[u8]>,
    /// Shards that were supplied, those of the latest query last.
    cached: Vec<u32>,
    cached_bytes: u64,
    cache: u64,
}

brief_debug!(Remote, it => keys: it.header.keys, shards: it.shards.len(), cached: it.cached.len(), hasher: it.header.hasher);

/// Where a shard lies, where its sums are, and its layers once it was supplied.
struct Shard {
    start: u64,
    len: u64,
    sums: Range<usize>,
    steps: Option<Box<Steps>>,
}

impl Remote {
    /// The bytes of cache unless [`with_cache`](Self::with_cache) says otherwise.
    pub const DEFAULT_CACHE: u64 = 64 << 20;

    /// Opens a filter from the last bytes of its file, and the length of the whole file.
    ///
    /// A megabyte is enough for a filter of 10^9 members in shards of 64 KB.
    ///
    /// # Errors
    ///
    /// [`FormatError::Truncated`] with the length that is needed if `tail` is too short, otherwise as [`Filter::open`](crate::Filter::open).
    /// Partitioned filters, maps and set indexes cannot be opened in this way.
    pub fn open(tail: impl Into<Source>, len: u64) -> Result<Remote, FormatError> {
        Remote::opened(tail.into().0, len, None)
    }

    /// Opens a filter whose secret is kept beside its file: see [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`FormatError::Secret`] if the secret is not the one that the file was built with.
    pub fn open_with_secret(tail: impl Into<Source>, len: u64, secret: [u64; 2]) -> Result<Remote, FormatError> {
        Remote::opened(tail.into().0, len, Some(secret))
    }

    fn opened(bytes: Bytes, len: u64, secret: Option<[u64; 2]>) -> Result<Remote, FormatError> {
        let tail = Tail::of(&bytes)?;
        let header = tail.header(secret)?;
        if header.form != Form::Filter {
            let found = if header.form == Form::Partitioned { "partitioned filter" } else { header.form.name() };
            return Err(FormatError::Form { found, expected: "filter without partitions" });
        }
        let budget = Budget::of(&bytes);
        let mut from = tail.contents(&budget);
        let steps = decode_steps(&mut from, header.shard_bits, 0)?;
        from.end()?;
        let (mut shards, mut all) = (from.room(1 << header.shard_bits)?, vec![]);
        let mut sums = tail.sums()?;
        let wrong = || FormatError::invalid("directory: its shards are not those of its sums");
        for shard in 0..1usize << header.shard_bits {
            let len = unit_len(steps.iter().map(|step| step.leaf.payload_len(shard))).ok_or_else(wrong)?;
            let start = all.len();
            let (place, sums) = match len {
                0 => (0, &[][..]),
                _ => match sums.next()? {
                    Some((place, found, sums)) if found == len => (place, sums),
                    _ => return Err(wrong()),
                },
            };
            all.extend_from_slice(sums);
            shards.push(Shard { start: place, len, sums: start..all.len(), steps: None });
        }
        // Digests that are kept for changes are the last unit, and no query needs them.
        let kept = match tail.kept().map_or(0, Kept::len) {
            0 => None,
            len => Some(sums.next()?.filter(|unit| unit.1 == len).ok_or_else(wrong)?),
        };
        let end = shards.iter().rev().find(|shard| shard.len > 0).map_or(16, |shard| shard.start + shard.len);
        let end = kept.map_or(end, |(start, len, _)| start + len);
        if sums.next()?.is_some() || end.checked_add(tail.len() as u64) != Some(len) {
            return Err(FormatError::invalid(format!(
                "the file has {len} bytes; expected {}",
                end.saturating_add(tail.len() as u64)
            )));
        }
        Ok(Remote {
            header,
            identity: tail.identity,
            steps,
            shards,
            sums: all.into(),
            cached: vec![],
            cached_bytes: 0,
            cache: Self::DEFAULT_CACHE,
        })
    }

    /// Keeps at most so many bytes of shards between queries.
    pub fn with_cache(mut self, bytes: u64) -> Remote {
        self.cache = bytes;
        self
    }

    /// Returns the number of members.
    pub fn len(&self) -> u64 {
        self.header.keys
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.header.keys == 0
    }

    /// Returns the key type.
    pub fn key_type(&self) -> KeyType {
        self.header.key_type
    }

    /// Returns the hash function, which makes the digests of [`needs`](Self::needs) and [`answer`](Self::answer).
    pub fn hasher(&self) -> &Hasher {
        &self.header.hasher
    }

    /// Returns the identity of the file: see [`Filter::identity`](crate::Filter::identity).
    pub fn identity(&self) -> [u8; 16] {
        self.identity
    }

    /// Returns the bytes of the shards that it holds.
    pub fn cached_bytes(&self) -> u64 {
        self.cached_bytes
    }

    fn shard(&self, digest: Digest) -> usize {
        digest.shard(self.header.shard_bits)
    }

    /// Returns the ranges of the file that answers for these digests need, ascending; neighbours are one range. Nothing is needed that was
    /// supplied before and is still held. Shards that are not needed are let go where the cache is full.
    pub fn needs(&mut self, digests: &[Digest]) -> Vec<Range<u64>> {
        let mut wanted: Vec<usize> = digests.iter().map(|&digest| self.shard(digest)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let is_wanted = |shard: &u32| wanted.binary_search(&(*shard as usize)).is_ok();
        let missing = wanted.iter().filter(|&&shard| self.shards[shard].steps.is_none());
        let incoming: u64 = missing.clone().map(|&shard| self.shards[shard].len).sum();
        let mut ranges: Vec<Range<u64>> = vec![];
        for &shard in missing {
            let Shard { start, len, .. } = self.shards[shard];
            match ranges.last_mut() {
                _ if len == 0 => {}
                // Only the zeros before a multiple of 64 lie between.
                Some(last) if last.end.next_multiple_of(64) == start || last.end == start => last.end = start + len,
                _ => ranges.push(start..start + len),
            }
        }
        // The oldest that are not wanted go first.
        let (kept, others): (Vec<u32>, Vec<u32>) = std::mem::take(&mut self.cached).into_iter().partition(is_wanted);
        for shard in others {
            let held = &mut self.shards[shard as usize];
            if self.cached_bytes + incoming > self.cache {
                held.steps = None;
                self.cached_bytes -= held.len;
            } else {
                self.cached.push(shard);
            }
        }
        self.cached.extend(kept);
        ranges
    }

    /// Takes the bytes of a range of the file, and keeps the shards that lie in it as a whole. Supplying a range again changes nothing.
    ///
    /// # Errors
    ///
    /// [`FormatError::Truncated`] if there are more or fewer bytes than the range has, [`FormatError::Checksum`] if a shard is not the one
    /// that the file had when it was opened. Nothing of the range is kept then.
    pub fn supply(&mut self, range: Range<u64>, bytes: impl Into<Source>) -> Result<(), FormatError> {
        let bytes = bytes.into().0;
        let (needed, found) = (range.end.saturating_sub(range.start), bytes.len() as u64);
        if needed != found {
            return Err(FormatError::Truncated { what: "the range", needed, found });
        }
        let first = self.shards.partition_point(|shard| shard.len == 0 || shard.start < range.start);
        let inside =
            |shard: &Shard| shard.len > 0 && shard.start >= range.start && shard.start + shard.len <= range.end;
        let mut taken = vec![];
        for (number, shard) in self.shards.iter().enumerate().skip(first) {
            if shard.len > 0 && shard.start >= range.end {
                break;
            }
            if !inside(shard) || shard.steps.is_some() {
                continue;
            }
            let at = (shard.start - range.start) as usize;
            let unit = bytes.slice(at..at + shard.len as usize);
            if !has_sums(&unit, &self.sums[shard.sums.clone()]) {
                return Err(FormatError::Checksum { part: "range, or the file was replaced" });
            }
            taken.push((number, unit));
        }
        for (number, unit) in taken {
            // The bytes of a shard alone, so that letting it go frees them.
            let unit = if unit.len() < bytes.len() { Bytes::copy_from_slice(&unit) } else { unit };
            self.cached_bytes += unit.len() as u64;
            self.cached.push(number as u32);
            let steps = self.steps_of(number, &unit);
            self.shards[number].steps = Some(Box::new(steps));
        }
        Ok(())
    }

    /// The layers of one shard, over its bytes.
    fn steps_of(&self, shard: usize, unit: &Bytes) -> Steps {
        let lens = self.steps.iter().map(|step| step.leaf.payload_len(shard));
        let mut steps: Vec<Step> = vec![];
        for (step, range) in self.steps.iter().zip(crate::format::places_in(lens)) {
            if let Some(mut leaf) = step.leaf.alone(shard) {
                leaf.set_place(0, range.start, unit.slice(range));
                steps.push(Step::new(step.role, leaf));
            }
        }
        Steps::new(steps, unit)
    }

    /// Returns the answer for a digest; nothing if its shard was not supplied, or was let go since.
    pub fn answer(&self, digest: Digest) -> Option<bool> {
        let shard = &self.shards[self.shard(digest)];
        match &shard.steps {
            Some(steps) => Some(steps.contains(digest)),
            // A shard without payload has answers all the same.
            None if shard.len == 0 => Some(self.steps_of(self.shard(digest), &Bytes::new()).contains(digest)),
            None => None,
        }
    }
}

/// A [`Remote`] and the function that reads ranges of its file: for callers that block.
///
/// ```
/// use std::io::{Read, Seek, SeekFrom};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("filter.tamis");
/// tamis::build(["ann", "bob"]).finish_to(&path)?;
/// let mut file = std::fs::File::open(&path)?;
/// let len = file.metadata()?.len();
/// let mut filter = tamis::Fetch::open(len, move |range| {
///     let mut bytes = vec![0; (range.end - range.start) as usize];
///     file.seek(SeekFrom::Start(range.start))?;
///     file.read_exact(&mut bytes)?;
///     Ok(bytes.into())
/// })?;
/// assert!(filter.contains("ann")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fetch<F> {
    remote: Remote,
    fetch: F,
}

impl<F> std::fmt::Debug for Fetch<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fetch of {:?}", self.remote)
    }
}

/// What the first read takes of the end of a file.
const TAIL: u64 = 1 << 20;

impl<F: FnMut(Range<u64>) -> io::Result<Bytes>> Fetch<F> {
    /// Opens a file of this length, by one read of its last megabyte; by two if its directory is longer.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if `fetch` fails, and as [`Remote::open`].
    pub fn open(len: u64, mut fetch: F) -> Result<Fetch<F>, Error> {
        let mut tail = |bytes: u64| Ok::<_, Error>(fetch(len.saturating_sub(bytes)..len)?);
        let remote = match Remote::open(tail(TAIL)?, len) {
            Err(FormatError::Truncated { needed, .. }) if needed > TAIL && needed <= len => {
                Remote::open(tail(needed)?, len)?
            }
            opened => opened?,
        };
        Ok(Fetch { remote, fetch })
    }

    /// Continues with a filter that was opened.
    pub fn new(remote: Remote, fetch: F) -> Fetch<F> {
        Fetch { remote, fetch }
    }

    /// Returns the filter.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Returns [`Filter::contains`](crate::Filter::contains): one read, none where the shard is held.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] if the key type is not the filter's, [`Error::Io`] if `fetch` fails, [`Error::Format`] if it returns other bytes
    /// than the file had.
    pub fn contains<K: Key>(&mut self, key: K) -> Result<bool, Error> {
        Ok(self.contains_many(&[key])?[0])
    }

    /// Returns [`contains`](Self::contains) of many keys; reads of neighbouring shards are one.
    ///
    /// # Errors
    ///
    /// As [`contains`](Self::contains).
    pub fn contains_many<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
        self.remote.key_type().check(K::KEY_TYPE).map_err(QueryError::from)?;
        let digests: Vec<Digest> = keys.iter().map(|key| key.digest(self.remote.hasher())).collect();
        self.contains_digests(&digests)
    }

    /// Returns the answers for digests that the filter's hasher made.
    ///
    /// # Errors
    ///
    /// As [`contains`](Self::contains), the key type aside.
    pub fn contains_digests(&mut self, digests: &[Digest]) -> Result<Vec<bool>, Error> {
        // In the order of the file, so that no more is held than the cache may hold, and one shard.
        let mut order: Vec<usize> = (0..digests.len()).collect();
        order.sort_unstable_by_key(|&at| digests[at]);
        let mut answers = vec![false; digests.len()];
        let mut rest = &order[..];
        while !rest.is_empty() {
            let (some, later) = rest.split_at(self.round(digests, rest));
            let wanted: Vec<Digest> = some.iter().map(|&at| digests[at]).collect();
            for range in self.remote.needs(&wanted) {
                let bytes = (self.fetch)(range.clone())?;
                self.remote.supply(range, bytes)?;
            }
            for (&at, digest) in some.iter().zip(wanted) {
                let missing = || FormatError::invalid("a shard was not supplied");
                answers[at] = self.remote.answer(digest).ok_or_else(missing)?;
            }
            rest = later;
        }
        Ok(answers)
    }

    /// How many of these digests, which ascend, have shards that fit the cache together; one at least.
    fn round(&self, digests: &[Digest], order: &[usize]) -> usize {
        let (mut bytes, mut last) = (0, usize::MAX);
        let fits = |&at: &usize| {
            let shard = self.remote.shard(digests[at]);
            if shard != last {
                bytes += self.remote.shards[shard].len;
                last = shard;
            }
            bytes <= self.remote.cache
        };
        order.iter().copied().take_while(fits).count().max(1)
    }
}
