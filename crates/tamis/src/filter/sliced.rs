//! slices and a manifest -> one filter: for files too large to be joined.
//!
//! ```text
//!   folder/  manifest.tamis         identities and lengths of the slices, the head of the whole filter
//!            slice-00000.tamis      some of the shards: a unit each, as in a whole file
//!            slice-00001.tamis  ..
//! ```
//!
//! All slices are mapped side by side into one range of memory, each from a page on. Shards keep their distance from a multiple
//! of 64, so layers are laid out in the range as in a file, and queries are those of a file. Elsewhere than on Linux the slices are
//! read into memory. The manifest names slices by their identities: a slice that was built again from other keys is an error.

use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::open::{decode_each_step, decode_steps};
use super::query::{Filter, LayerInfo};
use super::steps::Step;
use crate::arch::arena;
use crate::debug::brief_debug;
use crate::error::{Error, FormatError, QueryError};
use crate::format::{self, Budget, FRONT, Form, Header, Reader, Tail, places_in, put_varint, unit, unit_len};
use crate::hash::{Digest, Hasher, Key, KeyType};

/// The name of the manifest in the folder of the slices.
pub const MANIFEST: &str = "manifest.tamis";

/// More slices than there are cells of digests.
pub(crate) const MAX_SLICE_BITS: u32 = 12;

/// Returns the name of a slice in the folder of a manifest: `slice-00017.tamis`.
pub fn file_name(slice: u32) -> String {
    format!("slice-{slice:05}.tamis")
}

/// What the contents of a slice begin with; a list of layers, of its shards, follows.
///
/// ```text
///   log2 of the number of slices, number of the slice     varints
///   sum of its cells u64
///   excluded keys that pass the first layer               varint
///   the plan: its length, varint, and its text
/// ```
pub(crate) struct SliceHead<'a> {
    pub(crate) slice: u32,
    pub(crate) slice_bits: u32,
    pub(crate) check: u64,
    pub(crate) left: u64,
    pub(crate) plan: &'a str,
}

impl<'a> SliceHead<'a> {
    #[cfg(feature = "build")]
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![];
        put_varint(&mut out, self.slice_bits.into());
        put_varint(&mut out, self.slice.into());
        out.extend_from_slice(&self.check.to_le_bytes());
        put_varint(&mut out, self.left);
        put_varint(&mut out, self.plan.len() as u64);
        out.extend_from_slice(self.plan.as_bytes());
        out
    }

    fn decode(from: &mut Reader<'a>) -> Result<SliceHead<'a>, FormatError> {
        let slice_bits = from.within("log2 of the slices", 0..=u64::from(MAX_SLICE_BITS))? as u32;
        let slice = from.within("slice", 0..=(1 << slice_bits) - 1)? as u32;
        let check = u64::from_le_bytes(from.array()?);
        let left = from.varint()?;
        let len = from.varint()?;
        let plan = std::str::from_utf8(from.take(len)?).map_err(|_| FormatError::invalid("plan: no text"))?;
        Ok(SliceHead { slice, slice_bits, check, left, plan })
    }
}

/// The directory of a slice, checked.
pub(crate) struct SliceTail<'a> {
    pub(crate) header: Header,
    pub(crate) head: SliceHead<'a>,
    pub(crate) identity: [u8; 16],
    /// The list of layers: how many and which, and the geometries of each.
    pub(crate) kinds: &'a [u8],
    pub(crate) geometries: Vec<&'a [u8]>,
    /// Where each shard starts, its length, its sums; none for one without bytes.
    pub(crate) units: Vec<(u64, u64, &'a [u8])>,
}

impl<'a> SliceTail<'a> {
    /// Reads the end of a slice of so many bytes.
    pub(crate) fn decode(tail: Tail<'a>, len: u64, budget: &'a Budget) -> Result<SliceTail<'a>, FormatError> {
        let header = tail.header(None)?;
        if header.form != Form::Slice {
            return Err(FormatError::Form { found: header.form.name(), expected: Form::Slice.name() });
        }
        let mut from = tail.contents(budget);
        let head = SliceHead::decode(&mut from)?;
        let bits = header.shard_bits.checked_sub(head.slice_bits);
        let bits = bits.ok_or_else(|| FormatError::invalid("slice: more slices than shards"))?;
        let list = from.take(from.len())?;
        let (mut from, mut ends) = (Reader::budgeted(list, "directory", budget), vec![]);
        // Salts do not change geometries.
        let steps = decode_each_step(&mut from, bits, 0, &mut |left| ends.push(list.len() - left as usize))?;
        from.end()?;
        let kinds = ends.first().and_then(|&end| list.get(..end)).unwrap_or_default();
        let geometries = ends.windows(2).filter_map(|ends| list.get(ends[0]..ends[1])).collect();
        let (mut sums, mut end, several) = (tail.sums()?, FRONT as u64, header.shard_bits > 0);
        let mut units = vec![];
        for shard in 0..1usize << bits {
            let len = unit_len(steps.iter().map(|step| step.leaf.payload_len(shard))).unwrap_or(u64::MAX);
            if len == 0 || steps.is_empty() {
                continue;
            }
            let start = unit(end, len, several);
            match sums.next()? {
                Some(found) if (found.0, found.1) == (start, len) => units.push(found),
                _ => return Err(FormatError::invalid(format!("slice: the sums have no shard of {len} bytes"))),
            }
            end = start + len;
        }
        let end = sums.end(&tail, end)?;
        let fits = end.is_some() && end == len.checked_sub(tail.len() as u64);
        FormatError::check(fits, || "slice: bytes that are of no shard")?;
        Ok(SliceTail { header, head, identity: tail.identity, kinds, geometries, units })
    }

    /// The part of the sum over all keys, of the excluded keys, and of the cells.
    #[cfg(feature = "build")]
    pub(crate) fn sums(&self) -> [u64; 3] {
        [self.header.keys, self.header.negatives, self.head.check]
    }
}

/// What a slice says of itself.
///
/// ```
/// # use tamis::slices::{KeyRange, Plan, SliceInfo, Survey};
/// # let options = tamis::Options::default();
/// # let plan = Plan::new(&options, tamis::KeyType::Bytes, Survey::new(&options, KeyRange::ALL, [], [])?, 1)?;
/// let info = SliceInfo::open(&plan.slice(0, [], [])?)?;
/// assert_eq!((info.slice, info.slices, info.keys), (0, 1, 0));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct SliceInfo {
    /// Its number, from 0 on.
    pub slice: u32,
    /// How many slices the filter has.
    pub slices: u32,
    /// Distinct members of the slice.
    pub keys: u64,
    /// Distinct excluded keys of the slice.
    pub excluded: u64,
    /// Shards of the slice.
    pub shards: u64,
    /// The key type.
    pub key_type: KeyType,
    /// The hash function.
    pub hasher: Hasher,
}

impl SliceInfo {
    /// Reads the directory of a slice and compares its checksums.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the bytes are damaged, or no slice.
    pub fn open(bytes: &[u8]) -> Result<SliceInfo, FormatError> {
        format::verify(bytes)?;
        SliceInfo::open_unverified(bytes)
    }

    /// The same without the checksums of its shards.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), except for damaged shards.
    pub fn open_unverified(bytes: &[u8]) -> Result<SliceInfo, FormatError> {
        let budget = Budget::of(bytes);
        let SliceTail { header, head, .. } = SliceTail::decode(format::tail(bytes)?, bytes.len() as u64, &budget)?;
        Ok(SliceInfo {
            slice: head.slice,
            slices: 1 << head.slice_bits,
            keys: header.keys,
            excluded: header.negatives,
            shards: 1 << (header.shard_bits - head.slice_bits),
            key_type: header.key_type,
            hasher: header.hasher,
        })
    }
}

/// Contents of a manifest.
///
/// ```text
///   log2 of the number of slices         varint
///   of each: identity 16, length of the file varint
///   the plan: its length, varint, and its text
/// ```
pub(crate) struct Manifest<'a> {
    pub(crate) slices: Vec<([u8; 16], u64)>,
    pub(crate) plan: &'a str,
}

impl<'a> Manifest<'a> {
    #[cfg(feature = "build")]
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![];
        put_varint(&mut out, self.slices.len().trailing_zeros().into());
        for (identity, len) in &self.slices {
            out.extend_from_slice(identity);
            put_varint(&mut out, *len);
        }
        put_varint(&mut out, self.plan.len() as u64);
        out.extend_from_slice(self.plan.as_bytes());
        out
    }

    fn decode(from: &mut Reader<'a>) -> Result<Manifest<'a>, FormatError> {
        let bits = from.within("log2 of the slices", 0..=u64::from(MAX_SLICE_BITS))?;
        let mut slices = vec![];
        for _ in 0..1u32 << bits {
            slices.push((from.array()?, from.within("length of a slice", 0..=1 << 62)?));
        }
        let len = from.varint()?;
        let plan = std::str::from_utf8(from.take(len)?).map_err(|_| FormatError::invalid("plan: no text"))?;
        from.end()?;
        Ok(Manifest { slices, plan })
    }
}

/// Filter whose shards are in the slices of a folder: see [`write_manifest`](crate::slices::write_manifest).
///
/// It answers as the joined file does.
#[derive(Clone)]
pub struct Sliced {
    filter: Filter,
    folder: PathBuf,
    manifest: Bytes,
    /// Where each slice lies.
    slices: Vec<Range<usize>>,
}

brief_debug!(Sliced, it => keys: it.len(), slices: it.slices.len());

impl Sliced {
    /// Reads the slices of a folder into memory and verifies them.
    ///
    /// # Errors
    ///
    /// [`Error`] if a file is missing, damaged, or not the one that the manifest names.
    pub fn read(folder: impl AsRef<Path>) -> Result<Sliced, Error> {
        let sliced = Sliced::open(folder.as_ref(), arena::read_all)?;
        sliced.verify()?;
        Ok(sliced)
    }

    /// Maps the slices of a folder into memory, side by side, and opens them unverified. Elsewhere than on Linux they are read.
    ///
    /// # Safety
    ///
    /// No process may change or truncate a slice while the value or a clone of it lives. Replacing it by renaming another file over
    /// it is safe.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), except for damaged payloads.
    #[cfg(feature = "mmap")]
    #[allow(unsafe_code)]
    pub unsafe fn mmap(folder: impl AsRef<Path>) -> Result<Sliced, Error> {
        // SAFETY: the caller's promise is the one that is asked for.
        Sliced::open(folder.as_ref(), |paths| unsafe { arena::map_all(paths) })
    }

    fn open(
        folder: &Path,
        load: impl FnOnce(&[PathBuf]) -> std::io::Result<(Bytes, Vec<Range<usize>>)>,
    ) -> Result<Sliced, Error> {
        let path = folder.join(MANIFEST);
        let read = arena::read(&path);
        format::open_file(&path, read, |manifest| {
            let (header, slices) = Sliced::read_manifest(&manifest)?;
            Ok((manifest.clone(), header, slices))
        })
        .and_then(|(manifest, header, named)| {
            let paths: Vec<PathBuf> = (0..named.len()).map(|slice| folder.join(file_name(slice as u32))).collect();
            for (path, &(_, len)) in paths.iter().zip(&named) {
                let found = std::fs::metadata(path).map_err(Error::from).map_err(|error| error.at(path))?.len();
                if found != len {
                    let reason = format!("slice: {found} bytes where the manifest has {len}; expected the same file");
                    return Err(Error::from(FormatError::invalid(reason)).at(path));
                }
                // One that may not be read is named here: later all are read together.
                std::fs::File::open(path).map_err(Error::from).map_err(|error| error.at(path))?;
            }
            let (bytes, slices) = load(&paths).map_err(Error::from).map_err(|error| error.at(folder))?;
            let filter = Sliced::assemble(header, &named, &bytes, &slices, &paths)?;
            Ok(Sliced { filter, folder: folder.to_path_buf(), manifest, slices })
        })
    }

    /// The head of the whole filter, and the slices that a manifest names.
    #[allow(clippy::type_complexity)]
    fn read_manifest(bytes: &Bytes) -> Result<(Header, Vec<([u8; 16], u64)>), FormatError> {
        format::verify(bytes)?;
        let budget = Budget::of(bytes);
        let (header, mut contents, places) = format::parts(bytes, None, &budget)?;
        if header.form != Form::Manifest {
            return Err(FormatError::Form { found: header.form.name(), expected: Form::Manifest.name() });
        }
        let manifest = Manifest::decode(&mut contents)?;
        places.check()?;
        let slices = manifest.slices.len();
        FormatError::check(slices <= 1 << header.shard_bits, || {
            format!("manifest: {slices} slices, more than shards")
        })?;
        Ok((header, manifest.slices))
    }

    /// One list of layers from those of all slices.
    fn assemble(
        header: Header,
        named: &[([u8; 16], u64)],
        bytes: &Bytes,
        slices: &[Range<usize>],
        paths: &[PathBuf],
    ) -> Result<Filter, Error> {
        let mut list: Vec<Vec<u8>> = vec![];
        // The starts of all shards that have bytes.
        let mut starts = vec![];
        for (number, ((range, path), (identity, _))) in slices.iter().zip(paths).zip(named).enumerate() {
            let mut read = || {
                let file = bytes.get(range.clone()).unwrap_or_default();
                // A slice's own: what its layers take is given back before all of them are read together.
                let budget = Budget::of(file);
                let slice = SliceTail::decode(format::tail(file)?, file.len() as u64, &budget)?;
                let same = slice.identity == *identity
                    && (slice.head.slice, 1 << slice.head.slice_bits) == (number as u32, slices.len())
                    && slice.header.shard_bits == header.shard_bits;
                FormatError::check(same, || "slice: not the one that the manifest names; expected the same file")?;
                let layers = std::iter::once(slice.kinds).chain(slice.geometries.iter().copied());
                match list.is_empty() {
                    true => list = layers.map(<[u8]>::to_vec).collect(),
                    false => {
                        let same = list.first().is_some_and(|kinds| kinds == slice.kinds);
                        FormatError::check(same, || "slice: other layers than the first; expected the same")?;
                        list.iter_mut().zip(layers).skip(1).for_each(|(all, more)| all.extend_from_slice(more));
                    }
                }
                starts.extend(slice.units.iter().map(|unit| range.start + unit.0 as usize));
                Ok(())
            };
            read().map_err(|error: FormatError| Error::from(error).at(path))?;
        }
        let (list, budget) = (list.concat(), Budget::of(bytes));
        let mut steps = decode_steps(&mut Reader::budgeted(&list, "directory", &budget), header.shard_bits, 0)?;
        place(&mut steps, header.shard_bits, starts, bytes)?;
        Ok(Filter::of_steps(bytes.clone(), header, steps))
    }

    /// Returns `true` for every member, `false` for every excluded key: see [`Filter::contains`].
    ///
    /// # Errors
    ///
    /// As [`Filter::contains`].
    #[inline]
    pub fn contains<K: Key>(&self, key: K) -> Result<bool, QueryError> {
        self.filter.contains(key)
    }

    /// Returns [`contains`](Self::contains) of many keys, several times faster than one by one.
    ///
    /// # Errors
    ///
    /// As [`Filter::contains`].
    pub fn contains_many<K: Key>(&self, keys: &[K]) -> Result<Vec<bool>, QueryError> {
        self.filter.contains_many(keys)
    }

    /// Writes [`contains`](Self::contains) of many keys into `answers`, which is as long as `keys`.
    ///
    /// # Errors
    ///
    /// As [`Filter::contains_into`].
    pub fn contains_into<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), QueryError> {
        self.filter.contains_into(keys, answers)
    }

    /// Returns [`contains`](Self::contains) for a digest: see [`Filter::contains_digest`].
    ///
    /// # Errors
    ///
    /// As [`Filter::contains_digest`].
    #[inline]
    pub fn contains_digest(&self, digest: Digest) -> Result<bool, QueryError> {
        self.filter.contains_digest(digest)
    }

    /// Returns [`contains_digest`](Self::contains_digest) of many digests.
    ///
    /// # Errors
    ///
    /// As [`Filter::contains_digest`].
    pub fn contains_many_digests(&self, digests: &[Digest]) -> Result<Vec<bool>, QueryError> {
        self.filter.contains_many_digests(digests)
    }

    /// Reads all slices and compares their checksums.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] with the slice that was changed.
    pub fn verify(&self) -> Result<(), Error> {
        for (number, slice) in self.slices.iter().enumerate() {
            let path = self.folder.join(file_name(number as u32));
            let bytes = self.filter.as_bytes().get(slice.clone()).unwrap_or_default();
            format::verify(bytes).map_err(|error| Error::from(error).at(&path))?;
        }
        Ok(())
    }

    /// Returns the number of members.
    pub fn len(&self) -> u64 {
        self.filter.len()
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.filter.is_empty()
    }

    /// Returns the number of excluded keys: see [`Filter::excluded_len`].
    pub fn excluded_len(&self) -> u64 {
        self.filter.excluded_len()
    }

    /// Returns the number of slices.
    pub fn slices(&self) -> usize {
        self.slices.len()
    }

    /// Returns the number of shards of all slices.
    pub fn shards(&self) -> u64 {
        self.filter.shards()
    }

    /// Returns the expected share of unlisted keys that match.
    pub fn fpr(&self) -> f64 {
        self.filter.fpr()
    }

    /// Returns the least number of bits of any filter with the same promises: see [`Filter::lower_bound`].
    pub fn lower_bound(&self) -> f64 {
        self.filter.lower_bound()
    }

    /// Returns the number of bytes of all slices and the manifest.
    pub fn bytes(&self) -> u64 {
        self.slices.iter().map(|slice| slice.len() as u64).sum::<u64>() + self.manifest.len() as u64
    }

    /// Returns the bytes of the manifest, whose [`FileInfo`](crate::FileInfo) has identity and version.
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// Returns the folder that was opened.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the layers in query order.
    pub fn layers(&self) -> impl Iterator<Item = LayerInfo> + '_ {
        self.filter.layers()
    }

    /// Returns the key type.
    pub fn key_type(&self) -> KeyType {
        self.filter.key_type()
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &Hasher {
        self.filter.hasher()
    }

    /// Returns the caller's note: see [`Filter::metadata`].
    pub fn metadata(&self) -> &[u8] {
        format::metadata(&self.manifest)
    }
}

/// Gives every part its place; `starts` has those of shards with bytes.
fn place(steps: &mut [Step], bits: u32, starts: Vec<usize>, bytes: &Bytes) -> Result<(), FormatError> {
    let lost = || FormatError::invalid("slice: its shards are not as the layers say");
    let mut starts = starts.into_iter();
    for shard in 0..1usize << bits {
        let len = |step: &Step| step.leaf.payload_len(shard);
        let unit = unit_len(steps.iter().map(len)).ok_or_else(lost)?;
        let start = if unit > 0 { starts.next().ok_or_else(lost)? } else { 0 };
        FormatError::check(unit <= (bytes.len() - start) as u64, || "slice: a shard is longer than its slice")?;
        let mut place = places_in();
        for step in steps.iter_mut() {
            let part = place(len(step));
            let (from, to) = (start + part.start, start + part.end);
            step.leaf.set_place(shard, from, bytes.slice(from..to));
        }
    }
    FormatError::check(starts.next().is_none(), || "slice: more shards than the layers have")
}
