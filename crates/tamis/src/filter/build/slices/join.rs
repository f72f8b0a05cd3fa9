//! the slices of one plan, in any order -> the bytes that one process builds, or a manifest beside them.
//!
//! A slice is read twice: its directory, of which all are in memory together, and its shards, which are copied as they are. So joining
//! takes as much memory as the directory of the result, about one percent of it, and one block.

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::plan::Plan;
use super::wrong;
use crate::error::{BuildError, Error, FormatError};
use crate::file::{to_file, to_memory};
use crate::filter::query::Filter;
use crate::filter::sliced::{MANIFEST, Manifest, SliceTail, file_name};
use crate::format::{self, Budget, FRONT, Form, Header, Source, Tail, Writer};

/// Bytes of a file's end that are read first.
const TAIL: u64 = 1 << 16;

/// Where a slice is.
enum Place {
    Memory(Bytes),
    File(PathBuf),
}

/// A slice, its directory read.
pub(super) struct Piece {
    place: Place,
    /// Length of the slice.
    len: u64,
    identity: [u8; 16],
    slice: u32,
    slices: u32,
    shard_bits: u32,
    /// Numbers of keys and excluded keys, sum of cells.
    sums: [u64; 3],
    left: u64,
    plan: String,
    kinds: Vec<u8>,
    geometries: Vec<Vec<u8>>,
    /// Where each shard starts, its length, its sums.
    units: Vec<(u64, u64, Vec<u8>)>,
}

impl Piece {
    pub(super) fn of_bytes(bytes: Bytes) -> Result<Piece, Error> {
        Piece::of_tail(format::tail(&bytes)?, bytes.len() as u64, Place::Memory(bytes.clone()))
    }

    pub(super) fn of_file(path: &Path) -> Result<Piece, Error> {
        let read = || {
            let mut file = File::open(path)?;
            let len = file.metadata()?.len();
            let mut want = TAIL;
            loop {
                let mut end = vec![];
                file.seek(SeekFrom::Start(len.saturating_sub(want)))?;
                Read::by_ref(&mut file).take(want).read_to_end(&mut end)?;
                match Tail::of(&end) {
                    Err(FormatError::Truncated { needed, .. }) if want < len && needed > want => want = needed.min(len),
                    tail => return Piece::of_tail(tail?, len, Place::File(path.to_path_buf())),
                }
            }
        };
        read().map_err(|error: Error| error.at(path))
    }

    fn of_tail(tail: Tail<'_>, len: u64, place: Place) -> Result<Piece, Error> {
        let budget = Budget::of_length(len);
        let slice = SliceTail::decode(tail, len, &budget)?;
        Ok(Piece {
            place,
            len,
            identity: slice.identity,
            slice: slice.head.slice,
            slices: 1 << slice.head.slice_bits,
            shard_bits: slice.header.shard_bits,
            sums: slice.sums(),
            left: slice.head.left,
            plan: slice.head.plan.to_string(),
            kinds: slice.kinds.to_vec(),
            geometries: slice.geometries.iter().map(|bytes| bytes.to_vec()).collect(),
            units: slice.units.iter().map(|&(start, len, sums)| (start, len, sums.to_vec())).collect(),
        })
    }

    /// Copies its shards.
    fn copy(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        for (step, geometries) in self.geometries.iter().enumerate() {
            writer.extend(step, geometries);
        }
        match &self.place {
            Place::Memory(bytes) => self.copy_from(&mut Cursor::new(bytes), writer),
            Place::File(path) => {
                let copied =
                    File::open(path).map_err(Error::from).and_then(|mut file| self.copy_from(&mut file, writer));
                copied.map_err(|error| error.at(path))
            }
        }
    }

    fn copy_from(&self, from: &mut (impl Read + Seek), writer: &mut Writer<'_>) -> Result<(), Error> {
        let mut end = FRONT as u64;
        from.seek(SeekFrom::Start(end))?;
        for (start, len, sums) in &self.units {
            let mut gap = vec![];
            from.by_ref().take(start - end).read_to_end(&mut gap)?;
            if gap.iter().any(|&byte| byte != 0) {
                return Err(FormatError::Checksum { part: "payload" }.into());
            }
            writer.splice(*len, sums, from)?;
            end = start + len;
        }
        Ok(())
    }
}

/// All slices of one plan, in order, and what passed the first layer of them.
fn complete(mut pieces: Vec<Piece>) -> Result<(Plan, Vec<Piece>, u64), Error> {
    pieces.sort_by_key(|piece| piece.slice);
    let Some(first) = pieces.first() else { return Err(wrong("join", "no slices; expected all slices of a plan")) };
    let plan: Plan = first.plan.parse()?;
    let (count, bits, kinds) = (plan.slices(), plan.header(Form::Slice)?.shard_bits, plan.kinds()?);
    for (number, piece) in (0..).zip(&pieces) {
        if piece.plan != first.plan {
            return Err(wrong("join", "slices of different plans; expected one plan, goal and seed for all of them"));
        }
        if (piece.slices, piece.shard_bits) != (count, bits) || !piece.kinds.ends_with(kinds.as_flattened()) {
            return Err(FormatError::invalid(format!("slice {}: it is not as its plan says", piece.slice)).into());
        }
        if piece.slice < number {
            return Err(wrong("join", format!("slice {} of {count} is there twice; expected each once", piece.slice)));
        }
        if piece.slice > number {
            return Err(wrong("join", format!("slice {number} of {count} is missing; expected each once")));
        }
    }
    if pieces.len() as u64 != u64::from(count) {
        let missing = pieces.len();
        return Err(wrong("join", format!("slice {missing} of {count} is missing; expected each once")));
    }
    let mut sums = [0u64; 3];
    for piece in &pieces {
        sums.iter_mut().zip(piece.sums).for_each(|(sum, more)| *sum = sum.wrapping_add(more));
    }
    let names = ["keys", "excluded keys", "keys"];
    if let Some(((found, expected), what)) =
        sums.iter().zip(plan.sums()).zip(names).find(|((found, expected), _)| *found != expected)
    {
        let reason = match *found == sums[2] {
            false => format!("{found} {what} where {expected} were surveyed; expected the same digests in both rounds"),
            true => "other keys than were surveyed; expected the same digests in both rounds".to_string(),
        };
        return Err(wrong("join", reason));
    }
    let left = pieces.iter().fold(0, |sum: u64, piece| sum.saturating_add(piece.left));
    Ok((plan, pieces, left))
}

/// The next plan, where these slices ask for one.
pub(super) fn refined(plan: &Plan, pieces: Vec<Piece>) -> Result<Option<Plan>, Error> {
    let (of_slices, _, left) = complete(pieces)?;
    if of_slices.to_string() != plan.to_string() {
        return Err(wrong("refine", "the slices are of another plan; expected this one"));
    }
    plan.again(left)
}

/// The slices of a plan that needs no other.
fn ready(pieces: Vec<Piece>) -> Result<(Plan, Vec<Piece>), Error> {
    let (plan, pieces, left) = complete(pieces)?;
    match plan.again(left)? {
        Some(_) => Err(BuildError::PlanAgain { passed: left }.into()),
        None => Ok((plan, pieces)),
    }
}

fn write(plan: &Plan, pieces: &[Piece], out: &mut dyn std::io::Write) -> Result<u64, Error> {
    let header = plan.header(Form::Filter)?;
    let mut writer = Writer::new(out, &header, plan.kinds()?)?.with_metadata(plan.metadata());
    pieces.iter().try_for_each(|piece| piece.copy(&mut writer))?;
    Ok(writer.finish()?)
}

/// Joins all slices of a plan, in any order, to the filter that one process builds from the same digests.
///
/// # Errors
///
/// [`BuildError::Slices`] if a slice is missing, there twice, of another plan, or of other keys than were surveyed;
/// [`BuildError::PlanAgain`] if excluded keys were chosen to pass the first layer ([`Plan::refine`]); [`Error::Format`] if a slice is
/// damaged.
pub fn join<S: Source>(slices: impl IntoIterator<Item = S>) -> Result<Filter, Error> {
    let pieces = slices.into_iter().map(|slice| Piece::of_bytes(slice.into_bytes())).collect::<Result<Vec<_>, _>>()?;
    let (plan, pieces) = ready(pieces)?;
    let (bytes, _) = to_memory(|out| write(&plan, &pieces, out))?;
    Ok(Filter::opened(bytes, None)?)
}

/// Joins the files of all slices of a plan to a file, which is there whole or not at all. Memory is needed for directories alone.
///
/// # Errors
///
/// As [`join`], and [`Error::Io`] if a file cannot be read or written.
pub fn join_to<P: AsRef<Path>>(path: impl AsRef<Path>, slices: impl IntoIterator<Item = P>) -> Result<u64, Error> {
    let pieces = slices.into_iter().map(|slice| Piece::of_file(slice.as_ref())).collect::<Result<Vec<_>, _>>()?;
    let (plan, pieces) = ready(pieces)?;
    to_file(path.as_ref(), plan.writes_secret(), |out| write(&plan, &pieces, out))
}

/// Writes the manifest of a folder that has all slices of a plan, under the names of [`file_name`]: [`Sliced`](super::Sliced) opens it.
///
/// # Errors
///
/// As [`join_to`].
pub fn write_manifest(folder: impl AsRef<Path>) -> Result<(), Error> {
    let folder = folder.as_ref();
    let first = Piece::of_file(&folder.join(file_name(0)))?;
    let others = (1..first.slices).map(|slice| Piece::of_file(&folder.join(file_name(slice))));
    let pieces = std::iter::once(Ok(first)).chain(others).collect::<Result<Vec<_>, _>>()?;
    let (plan, pieces) = ready(pieces)?;
    let header: Header = plan.header(Form::Manifest)?;
    let slices = pieces.iter().map(|piece| (piece.identity, piece.len)).collect();
    let contents = Manifest { slices, plan: &plan.to_string() }.encode();
    to_file(&folder.join(MANIFEST), plan.writes_secret(), |out| {
        let writer = Writer::new(out, &header, vec![])?.with_metadata(plan.metadata());
        Ok(writer.close(contents)?)
    })?;
    Ok(())
}
