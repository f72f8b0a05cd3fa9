//! bytes -> steps and partitions: what a filter is opened from, checked once.

use std::borrow::BorrowMut;
use std::ops::Range;

use bytes::Bytes;

use super::chain::{Chain, open_chain};
use super::partition::{Group, MAX_GROUPS, Partitions, Table};
use super::steps::{Step, Steps, branchless};
use crate::error::FormatError;
use crate::format::{Budget, Form, Header, Kept, MAX_SHARD_BITS, Places, Reader, STEPS_BITS, parts, places_in};
use crate::hash::{MAX_NUMBER, Salt};
use crate::leaves::{Leaf, Role};

/// The most steps of a list.
pub(crate) const MAX_STEPS: u64 = 64;

/// A whole file, taken apart.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) header: Header,
    /// None in a partitioned file.
    pub(crate) steps: Vec<Step>,
    pub(crate) partitions: Option<Partitions>,
    /// Digests that are kept for changes.
    pub(crate) kept: Option<(Kept, Bytes)>,
    /// The base and its patches, if the file has some.
    pub(crate) chain: Option<Chain>,
}

/// Reads and checks everything of a filter but the payloads.
pub(crate) fn open(bytes: &Bytes, secret: Option<[u64; 2]>, budget: &Budget) -> Result<Contents, FormatError> {
    let (header, from, places) = parts(bytes, secret, budget)?;
    if header.form == Form::Patch { open_chain(from, places, secret) } else { open_plain(header, from, places) }
}

/// The same without patches: for a file inside a file, and where keys are to be inserted.
pub(crate) fn open_alone(bytes: &Bytes, secret: Option<[u64; 2]>, budget: &Budget) -> Result<Contents, FormatError> {
    let (header, from, places) = parts(bytes, secret, budget)?;
    open_plain(header, from, places)
}

fn open_plain(mut header: Header, mut from: Reader<'_>, mut places: Places<'_>) -> Result<Contents, FormatError> {
    let (steps, partitions) = match header.form {
        Form::Filter => {
            header.salts = decode_count(&mut from.clone())?.1;
            (decode_steps(&mut from, header.shard_bits, 0)?, None)
        }
        Form::Partitioned => (vec![], Some(decode_partitions(&mut from, &mut places)?)),
        form @ (Form::Map
        | Form::Sequence
        | Form::Sets
        | Form::Adaptive
        | Form::Patch
        | Form::Slice
        | Form::Manifest
        | Form::Learned) => {
            return Err(FormatError::Form { found: form.name(), expected: Form::Filter.name() });
        }
    };
    from.end()?;
    let mut contents = Contents { header, steps, partitions, kept: None, chain: None };
    lay_out(&mut places, &mut contents.steps, contents.header.shard_bits)?;
    contents.kept = places.kept()?;
    places.check()?;
    Ok(contents)
}

/// The first of the salts of steps that follow from this number.
pub(crate) fn first_salt(salts: u64) -> u64 {
    salts * MAX_STEPS
}

/// Reads how many steps a list has, and the number that their salts follow from.
fn decode_count(from: &mut Reader<'_>) -> Result<(u64, u64), FormatError> {
    let word = from.varint()?;
    let (count, salts) = (word & ((1 << STEPS_BITS) - 1), word >> STEPS_BITS);
    let out_of_range = |what, found, most| format!("directory: {what} is {found}, expected 0 to {most}");
    FormatError::check(count <= MAX_STEPS, || out_of_range("number of steps", count, MAX_STEPS))?;
    FormatError::check(salts <= MAX_NUMBER, || out_of_range("number of the salts", salts, MAX_NUMBER))?;
    Ok((count, salts))
}

/// Reads one list of steps, whose salts have numbers from `first` on, and leaves the places of its payloads open.
pub(crate) fn decode_steps(from: &mut Reader<'_>, bits: u32, first: u64) -> Result<Vec<Step>, FormatError> {
    decode_each_step(from, bits, first, &mut |_| {})
}

/// The same; `end` is called after every step, with the bytes that are left.
pub(crate) fn decode_each_step(
    from: &mut Reader<'_>,
    bits: u32,
    first: u64,
    end: &mut dyn FnMut(u64),
) -> Result<Vec<Step>, FormatError> {
    let room = from.len();
    let (count, salts) = decode_count(from)?;
    let shards = 1u64 << bits;
    // Every geometry takes a byte at least.
    if count.max(1) * shards > room {
        return Err(FormatError::invalid(format!("directory: too short for {count} steps of {shards} shards")));
    }
    let mut kinds = from.room(count)?;
    for _ in 0..count {
        let role = Role::decode(from.u8()?)?;
        kinds.push((role, from.u8()?));
    }
    // Once as they are, and once in the list that is queried.
    from.draw(count * size_of::<Step>() as u64 + branchless::memory(&kinds, shards))?;
    let mut steps = from.room(count)?;
    end(from.len());
    for (number, &(role, tag)) in kinds.iter().enumerate() {
        let leaf = Leaf::decode(tag, from, bits, Salt::new(first + first_salt(salts) + number as u64))?;
        steps.push(Step::new(role, leaf));
        end(from.len());
    }
    Ok(steps)
}

/// Reads the directory of a partitioned file: the bound, the groups, the labels.
///
/// ```text
///   bound in bits u64
///   number of groups             varint, 0 to 255
///   per group: shard bits        varint, 0 to 24
///              keys, negatives   varints
///              its list of steps, as in an ordinary directory
///   the table of labels          see `partition::Table`; its entries are the last payload
/// ```
fn decode_partitions(from: &mut Reader<'_>, places: &mut Places<'_>) -> Result<Partitions, FormatError> {
    let bound = u64::from_le_bytes(from.array()?);
    let count = from.within("number of groups", 0..=MAX_GROUPS as u64)?;
    let mut groups = from.room(count)?;
    for _ in 0..count {
        let shard_bits = from.within("shard bits of a group", 0..=MAX_SHARD_BITS as u64)? as u32;
        let (keys, negatives) = (from.varint()?, from.varint()?);
        let mut steps = decode_steps(from, shard_bits, 0)?;
        lay_out(places, &mut steps, shard_bits)?;
        let steps = Steps::new(steps, places.bytes);
        groups.push(Group { steps, shard_bits, keys, negatives });
    }
    let table = Table::decode(from, groups.len(), |len| places.take(len))?;
    Ok(Partitions { groups, table, bound })
}

/// Gives every part of some steps its place, shard by shard.
pub(crate) fn lay_out<S: BorrowMut<Step>>(
    places: &mut Places<'_>,
    steps: &mut [S],
    bits: u32,
) -> Result<(), FormatError> {
    for shard in 0..1usize << bits {
        let len = |step: &S| step.borrow().leaf.payload_len(shard);
        let start = places.unit(bits > 0, steps.iter().map(len))?;
        let mut place = places_in();
        for step in steps.iter_mut() {
            let Range { start: from, end: to } = place(len(step));
            step.borrow_mut().leaf.set_place(shard, start + from, places.bytes.slice(start + from..start + to));
        }
    }
    Ok(())
}
