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
use crate::format::{Budget, FRONT, Form, Header, Kept, Source, Tail, has_sums, places_in, unit, unit_len};
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
    /// Shards that were supplied, in no order.
    cached: Vec<u32>,
    cached_bytes: u64,
    cache: u64,
    /// How often `needs` was called.
    clock: u64,
}

brief_debug!(Remote, it => keys: it.header.keys, shards: it.shards.len(), cached: it.cached.len(), hasher: it.header.hasher);

/// Where a shard lies, where its sums are, and its layers once it was supplied.
struct Shard {
    /// Ascending, also where shards are empty.
    start: u64,
    len: u64,
    /// Where its sums end. They start where those of the shard before end.
    sums: u32,
    /// When it was needed last.
    used: u64,
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
    /// [`FormatError::Truncated`] with the length that is needed if `tail` is too short, [`FormatError::Closing`] if it is not the end of a
    /// file, otherwise as [`Filter::open`](crate::Filter::open). Partitioned filters, filters with patches and files of other forms cannot be
    /// opened in this way.
    pub fn open(tail: impl Source, len: u64) -> Result<Remote, FormatError> {
        Remote::opened(&tail.into_bytes(), len, None)
    }

    /// Opens a filter whose secret is kept beside its file: see [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`FormatError::Secret`] if the secret is not the one that the file was built with.
    pub fn open_with_secret(tail: impl Source, len: u64, secret: [u64; 2]) -> Result<Remote, FormatError> {
        Remote::opened(&tail.into_bytes(), len, Some(secret))
    }

    fn opened(bytes: &[u8], len: u64, secret: Option<[u64; 2]>) -> Result<Remote, FormatError> {
        let tail = Tail::of(bytes)?;
        let header = tail.header(secret)?;
        if header.form != Form::Filter {
            let found = if header.form == Form::Partitioned {
                "partitioned filter"
            } else if tail.has_patches() {
                "filter with patches"
            } else {
                header.form.name()
            };
            return Err(FormatError::Form { found, expected: "filter without partitions" });
        }
        let budget = Budget::of(bytes);
        let mut from = tail.contents(&budget);
        let steps = decode_steps(&mut from, header.shard_bits, 0)?;
        from.end()?;
        let (mut shards, mut all) = (from.room::<Shard>(1 << header.shard_bits)?, vec![]);
        let mut sums = tail.sums()?;
        let wrong = || FormatError::invalid("directory: its shards are not those of its sums");
        let mut end = FRONT as u64;
        for shard in 0..1usize << header.shard_bits {
            let len = unit_len(steps.iter().map(|step| step.leaf.payload_len(shard))).ok_or_else(wrong)?;
            let mut start = end;
            if len > 0 {
                let Some((place, found, sums)) = sums.next()? else { return Err(wrong()) };
                // Where the whole file has it, so that both have the same answers.
                if found != len || place != unit(end, len, header.shard_bits > 0) {
                    return Err(wrong());
                }
                (start, end) = (place, place + len);
                all.extend_from_slice(sums);
            }
            // A directory has less than 2^32 bytes, and sums are a part of it.
            shards.push(Shard { start, len, sums: all.len() as u32, used: 0, steps: None });
        }
        // Digests that are kept for changes are the last unit, and no query needs them.
        let kept = tail.kept().map_or(0, Kept::len);
        if kept > 0 {
            match sums.next()? {
                Some((place, found, _)) if found == kept && place == unit(end, kept, false) => end = place + kept,
                _ => return Err(wrong()),
            }
        }
        // Others belong to sections that were skipped.
        let end = sums.end(&tail, end)?.ok_or_else(wrong)?;
        let expected = end.saturating_add(tail.len() as u64);
        if expected != len {
            return Err(FormatError::invalid(format!("the file has {len} bytes; expected {expected}")));
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
            clock: 0,
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

    /// A digest as the filter has it: one of the caller's may be mixed.
    fn own(&self, digest: Digest) -> Digest {
        match self.header.key_type {
            KeyType::Digest => digest.digest(&self.header.hasher),
            KeyType::Bytes | KeyType::Integer | KeyType::Fields => digest,
        }
    }

    fn shard(&self, digest: Digest) -> usize {
        digest.shard(self.header.shard_bits)
    }

    /// Returns the ranges of the file that answers for these digests need, ascending; neighbours are one range. Nothing is needed that was
    /// supplied before and is still held. Shards that are not needed are let go where the cache is full, the least recently needed first.
    ///
    /// Digests are those of [`Filter::contains_digest`](crate::Filter::contains_digest).
    pub fn needs(&mut self, digests: &[Digest]) -> Vec<Range<u64>> {
        let shards = digests.iter().map(|&digest| self.shard(self.own(digest))).collect();
        self.needs_of(shards)
    }

    /// The same for shards.
    fn needs_of(&mut self, mut wanted: Vec<usize>) -> Vec<Range<u64>> {
        wanted.sort_unstable();
        wanted.dedup();
        self.clock += 1;
        let (mut incoming, mut ranges) = (0u64, Vec::<Range<u64>>::new());
        for number in wanted {
            let shard = &mut self.shards[number];
            shard.used = self.clock;
            let &mut Shard { start, len, .. } = shard;
            if len == 0 || shard.steps.is_some() {
                continue;
            }
            incoming += len;
            match ranges.last_mut() {
                // Only the zeros before a multiple of 64 lie between.
                Some(last) if last.end.next_multiple_of(64) == start || last.end == start => last.end = start + len,
                _ => ranges.push(start..start + len),
            }
        }
        if self.cached_bytes.saturating_add(incoming) > self.cache {
            self.make_room(incoming);
        }
        ranges
    }

    /// Lets go of shards that are not needed now until so many bytes fit, or none is left.
    fn make_room(&mut self, incoming: u64) {
        let (shards, clock) = (&mut self.shards, self.clock);
        self.cached.sort_unstable_by_key(|&shard| shards[shard as usize].used);
        let left = &mut self.cached_bytes;
        self.cached.retain(|&number| {
            let shard = &mut shards[number as usize];
            let stays = shard.used == clock || left.saturating_add(incoming) <= self.cache;
            if !stays {
                shard.steps = None;
                *left -= shard.len;
            }
            stays
        });
    }

    /// Takes the bytes of a range of the file, and keeps the shards that lie in it as a whole, at least until [`needs`](Self::needs) is called
    /// again. Supplying a range again changes nothing.
    ///
    /// # Errors
    ///
    /// [`FormatError::Truncated`] if there are more or fewer bytes than the range has, [`FormatError::Checksum`] if a shard is not the one
    /// that the file had when it was opened. Nothing of the range is kept then.
    pub fn supply(&mut self, range: Range<u64>, bytes: impl Source) -> Result<(), FormatError> {
        let bytes = bytes.into_bytes();
        let (needed, found) = (range.end.saturating_sub(range.start), bytes.len() as u64);
        if needed != found {
            return Err(FormatError::Truncated { what: "the range", needed, found });
        }
        let first = self.shards.partition_point(|shard| shard.start < range.start);
        let mut taken = vec![];
        for (number, shard) in self.shards.iter().enumerate().skip(first) {
            if shard.start + shard.len > range.end {
                break;
            }
            if shard.len == 0 || shard.steps.is_some() {
                continue;
            }
            let at = (shard.start - range.start) as usize;
            let unit = bytes.slice(at..at + shard.len as usize);
            let sums = number.checked_sub(1).map_or(0, |before| self.shards[before].sums) as usize;
            if !has_sums(&unit, &self.sums[sums..shard.sums as usize]) {
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
        let (mut place, mut steps) = (places_in(), Vec::with_capacity(self.steps.len()));
        for step in &self.steps {
            let range = place(step.leaf.payload_len(shard));
            if let Some(mut leaf) = step.leaf.alone(shard) {
                leaf.set_place(0, range.start, unit.slice(range));
                steps.push(Step::new(step.role, leaf));
            }
        }
        Steps::new(steps, unit)
    }

    /// Returns the answer for a digest, as [`Filter::contains_digest`](crate::Filter::contains_digest) does; nothing if its shard was not
    /// supplied, or was let go since.
    pub fn answer(&self, digest: Digest) -> Option<bool> {
        self.answer_own(self.own(digest))
    }

    /// The same for a digest as the filter has it.
    fn answer_own(&self, digest: Digest) -> Option<bool> {
        let number = self.shard(digest);
        let shard = &self.shards[number];
        match &shard.steps {
            Some(steps) => Some(steps.contains(digest)),
            // A shard without payload has answers all the same.
            None if shard.len == 0 => Some(self.steps_of(number, &Bytes::new()).contains(digest)),
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
const TAIL: u64 = 1_000_000;

impl<F: FnMut(Range<u64>) -> io::Result<Bytes>> Fetch<F> {
    /// Opens a file of this length, by one read of its last megabyte; by two if its directory is longer.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if `fetch` fails, and as [`Remote::open`].
    pub fn open(len: u64, fetch: F) -> Result<Fetch<F>, Error> {
        Fetch::opened(len, None, fetch)
    }

    /// Opens a file whose secret is kept beside it: see [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`FormatError::Secret`] if the secret is not the one that the file was built with.
    pub fn open_with_secret(len: u64, secret: [u64; 2], fetch: F) -> Result<Fetch<F>, Error> {
        Fetch::opened(len, Some(secret), fetch)
    }

    fn opened(len: u64, secret: Option<[u64; 2]>, mut fetch: F) -> Result<Fetch<F>, Error> {
        let mut tail = |bytes: u64| Ok::<_, Error>(fetch(len.saturating_sub(bytes)..len)?);
        let remote = match Remote::opened(&tail(TAIL)?, len, secret) {
            Err(FormatError::Truncated { what: "the directory", needed, .. }) if needed > TAIL && needed <= len => {
                Remote::opened(&tail(needed)?, len, secret)?
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
        self.contains_own(&self.remote.hasher().digests(keys))
    }

    /// Returns the answers for digests, as [`Filter::contains_digest`](crate::Filter::contains_digest) does.
    ///
    /// # Errors
    ///
    /// As [`contains`](Self::contains), the key type aside.
    pub fn contains_digests(&mut self, digests: &[Digest]) -> Result<Vec<bool>, Error> {
        let own: Vec<Digest> = digests.iter().map(|&digest| self.remote.own(digest)).collect();
        self.contains_own(&own)
    }

    /// The same for digests as the filter has them.
    fn contains_own(&mut self, digests: &[Digest]) -> Result<Vec<bool>, Error> {
        // In the order of the file, so that no more is held than the cache may hold, and one shard.
        let mut order: Vec<usize> = (0..digests.len()).collect();
        order.sort_unstable_by_key(|&at| digests[at]);
        let mut answers = vec![false; digests.len()];
        let mut rest = &order[..];
        while !rest.is_empty() {
            let (some, later) = rest.split_at(self.round(digests, rest));
            let shards = some.iter().map(|&at| self.remote.shard(digests[at])).collect();
            for range in self.remote.needs_of(shards) {
                let bytes = (self.fetch)(range.clone())?;
                self.remote.supply(range, bytes)?;
            }
            for &at in some {
                let missing = || FormatError::invalid("a shard was not supplied");
                answers[at] = self.remote.answer_own(digests[at]).ok_or_else(missing)?;
            }
            rest = later;
        }
        Ok(answers)
    }

    /// How many of these digests, which ascend, have shards that fit the cache together; all of the first shard at least.
    fn round(&self, digests: &[Digest], order: &[usize]) -> usize {
        let (mut bytes, mut last) = (0u64, None);
        let fits = |&at: &usize| {
            let shard = self.remote.shard(digests[at]);
            let (is_first, is_new) = (last.is_none(), last != Some(shard));
            if is_new {
                bytes = bytes.saturating_add(self.remote.shards[shard].len);
                last = Some(shard);
            }
            // A shard that is larger than the cache is read alone.
            !is_new || is_first || bytes <= self.remote.cache
        };
        order.iter().copied().take_while(fits).count()
    }
}
