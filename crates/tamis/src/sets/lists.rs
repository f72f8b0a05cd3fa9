//! lists of ids <-> bits: binary interpolative coding, and many lists side by side.
//!
//! A list of ascending ids below `sets` is its length and then its middle id, in as many bits as the ids left and right of it leave
//! open, then both halves in the same way (Moffat and Stuiver, 2000). Runs of neighbours cost next to nothing, a list of all sets
//! costs its length.
//!
//! A [`Lists`] holds many of them. Where each begins is not written: lists stand in blocks of sixteen, a block knows where it starts and how
//! long its shortest list is, and begins with how much longer the others are. Ordering lists by length costs a bit or two.
//!
//! ```text
//!   headers, all of the same width         blocks
//!   start | shortest | width of extras     16 extras | list | list | ..
//! ```

use bytes::Bytes;

use super::bits::{BitReader, BitWriter};
use crate::error::FormatError;
use crate::format::{Reader, put_varint};

const BLOCK_LISTS: u64 = 16;
/// Bits that say how wide a block's extras are.
const WIDTH_BITS: u32 = 5;
/// No list is longer, in bits; and no table.
const MAX_BITS: u64 = 1 << 46;

pub(crate) fn put(out: &mut BitWriter, ids: &[u32], sets: u32) {
    out.put_gamma(ids.len() as u32 + 1);
    if let Some(last) = sets.checked_sub(1) {
        put_middle(out, ids, 0, last);
    }
}

/// The middle of ids that lie in `low..=high`, and both halves.
fn put_middle(out: &mut BitWriter, ids: &[u32], low: u32, high: u32) {
    let (left, right) = (ids.len() / 2, ids.len().saturating_sub(ids.len() / 2 + 1));
    let Some(&id) = ids.get(left) else { return };
    let (first, last) = (low + left as u32, high - right as u32);
    let (bits, short) = split(last - first + 1);
    let value = u64::from(id - first);
    match value < short {
        true => out.put(value, bits),
        false => {
            // The first bits must look large: the last one comes after them.
            let value = value + short;
            out.put(value >> 1, bits);
            out.put(value & 1, 1);
        }
    }
    if left > 0 {
        put_middle(out, &ids[..left], low, id - 1);
    }
    if right > 0 {
        put_middle(out, &ids[left + 1..], id + 1, high);
    }
}

/// One of `choices` numbers: its bits, and how many of the numbers, the first ones, take no bit more.
#[inline(always)]
fn split(choices: u32) -> (u32, u64) {
    let bits = choices.ilog2();
    (bits, (2 << bits) - u64::from(choices))
}

/// Appends the list at a place to `ids`; false, and nothing is done, if it has more than `most` ids. Whatever the bits are, ids ascend and lie
/// below `sets`.
#[inline]
fn take(from: &mut BitReader<'_>, sets: u32, most: usize, ids: &mut Vec<u32>) -> bool {
    let len = (from.take_gamma() - 1).min(sets) as usize;
    if len == 0 || len > most {
        return len == 0;
    }
    let start = ids.len();
    ids.resize(start + len, 0);
    take_middle(from, &mut ids[start..], 0, sets - 1);
    true
}

fn take_middle(from: &mut BitReader<'_>, ids: &mut [u32], low: u32, high: u32) {
    // All that fit: nothing was written for them.
    if high - low + 1 == ids.len() as u32 {
        ids.iter_mut().zip(low..).for_each(|(id, value)| *id = value);
        return;
    }
    let (left, right) = (ids.len() / 2, ids.len() - ids.len() / 2 - 1);
    let (first, last) = (low + left as u32, high - right as u32);
    let (bits, short) = split(last - first + 1);
    let mut value = from.take(bits);
    if value >= short {
        value = (value << 1 | from.take(1)) - short;
    }
    let id = first + value as u32;
    ids[left] = id;
    if left > 0 {
        take_middle(from, &mut ids[..left], low, id - 1);
    }
    if right > 0 {
        take_middle(from, &mut ids[left + 1..], id + 1, high);
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    pub(super) count: u64,
    /// Ids are below.
    pub(super) sets: u32,
    bits: u64,
    /// Bits that a shortest length takes.
    base: u32,
    pub(super) payload: Bytes,
}

impl Lists {
    /// Puts lists side by side that were written by [`put`] for so many sets: each the bytes, the first bit and the number of bits.
    pub(crate) fn new<'a>(lists: impl Iterator<Item = (&'a [u8], u64, u64)>, sets: u32) -> Lists {
        let (mut headers, mut blocks) = (vec![], BitWriter::default());
        let (mut count, mut longest) = (0, 0);
        let mut lists = lists.peekable();
        while lists.peek().is_some() {
            let block: Vec<_> = lists.by_ref().take(BLOCK_LISTS as usize).collect();
            let base = block.iter().map(|&(_, _, bits)| bits).min().unwrap_or(0);
            let extra = block.iter().map(|&(_, _, bits)| bits - base).max().unwrap_or(0);
            let width = u64::BITS - extra.leading_zeros();
            headers.push((blocks.len, base, width));
            longest = longest.max(base);
            count += block.len() as u64;
            for &(_, _, bits) in &block {
                blocks.put(bits - base, width);
            }
            for (bytes, at, bits) in block {
                blocks.copy(bytes, at, bits);
            }
        }
        let base = u64::BITS - longest.leading_zeros();
        let mut lists = Lists { count, sets, bits: blocks.len, base, payload: Bytes::new() };
        let mut front = BitWriter::default();
        for (start, shortest, width) in headers {
            front.put(start, lists.start_bits());
            front.put(shortest, base);
            front.put(u64::from(width), WIDTH_BITS);
        }
        let mut payload = front.bytes;
        debug_assert_eq!(payload.len() as u64, lists.front());
        payload.extend_from_slice(&blocks.bytes);
        lists.payload = payload.into();
        lists
    }

    /// The same from ids.
    pub(crate) fn of<'a>(lists: impl Iterator<Item = &'a [u32]>, sets: u32) -> Lists {
        let (mut all, mut ends) = (BitWriter::default(), vec![0]);
        for ids in lists {
            put(&mut all, ids, sets);
            ends.push(all.len);
        }
        Lists::new(ends.windows(2).map(|ends| (&all.bytes[..], ends[0], ends[1] - ends[0])), sets)
    }

    fn start_bits(&self) -> u32 {
        u64::BITS - self.bits.leading_zeros()
    }

    fn header_bits(&self) -> u32 {
        self.start_bits() + self.base + WIDTH_BITS
    }

    /// Bytes before the first block.
    fn front(&self) -> u64 {
        (self.count.div_ceil(BLOCK_LISTS) * u64::from(self.header_bits())).div_ceil(8)
    }

    pub(crate) fn payload_len(&self) -> u64 {
        self.front() + self.bits.div_ceil(8)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        [self.count, self.bits, u64::from(self.base)].into_iter().for_each(|number| put_varint(out, number));
    }

    /// Reads what `encode` wrote; the payload has yet to be set.
    pub(crate) fn decode(from: &mut Reader<'_>, sets: u32) -> Result<Lists, FormatError> {
        let count = from.within("number of lists", 0..=MAX_BITS)?;
        let bits = from.within("bits of lists", 0..=MAX_BITS)?;
        let base = from.within("bits of a list's length", 0..=46)? as u32;
        Ok(Lists { count, sets, bits, base, payload: Bytes::new() })
    }

    /// Appends list `number` to `ids`; nothing if there is no such list. False, and nothing is done, if it has more than `most` ids.
    #[inline]
    pub(crate) fn read(&self, number: u64, most: usize, ids: &mut Vec<u32>) -> bool {
        if number >= self.count {
            return true;
        }
        let mut header = BitReader::new(&self.payload, number / BLOCK_LISTS * u64::from(self.header_bits()));
        let start = header.take(self.start_bits());
        let base = header.take(self.base);
        let width = header.take(WIDTH_BITS);
        let at = self.front().saturating_mul(8).saturating_add(start);
        let mut extras = BitReader::new(&self.payload, at);
        let before = number % BLOCK_LISTS;
        let extra: u64 = (0..before).map(|_| extras.take(width as u32)).sum();
        let size = (self.count - number / BLOCK_LISTS * BLOCK_LISTS).min(BLOCK_LISTS);
        let at = at.saturating_add(size * width).saturating_add(before * base + extra);
        take(&mut BitReader::new(&self.payload, at), self.sets, most, ids)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::hash::scramble;

    fn some(sets: u32, share: u64, seed: u64) -> Vec<u32> {
        (0..sets).filter(|&id| scramble(seed << 32 | u64::from(id)) % 1000 < share).collect()
    }

    fn opened(lists: &Lists) -> Lists {
        let mut directory = vec![];
        lists.encode(&mut directory);
        let mut back = Lists::decode(&mut Reader::new(&directory, "test"), lists.sets).unwrap();
        assert_eq!(back.payload_len(), lists.payload.len() as u64);
        back.payload = lists.payload.clone();
        back
    }

    #[test]
    fn lists_come_back() {
        for sets in [0, 1, 2, 3, 10, 64, 223, 1000, 100_000] {
            for count in [0, 1, 2, 15, 16, 17, 100] {
                let share = |i: u64| [0, 1000, 5, 500, 990, 50][i as usize % 6];
                let lists: Vec<Vec<u32>> = (0..count).map(|i| some(sets, share(i), i)).collect();
                let packed = opened(&Lists::of(lists.iter().map(|list| &list[..]), sets));
                for (number, list) in lists.iter().enumerate() {
                    let mut ids = vec![7];
                    packed.read(number as u64, usize::MAX, &mut ids);
                    assert_eq!(&ids[1..], list, "{sets} sets, list {number} of {count}");
                }
                let mut none = vec![];
                packed.read(count, usize::MAX, &mut none);
                assert!(none.is_empty());
            }
        }
    }

    /// log2 of the ways to choose, within a bit per element for random lists; a full list is its length alone.
    #[test]
    fn lists_are_short() {
        let list = some(10_000, 50, 1);
        let mut out = BitWriter::default();
        put(&mut out, &list, 10_000);
        let n = 10_000f64;
        let share = list.len() as f64 / n;
        let bound = -n * (share * share.log2() + (1.0 - share) * (1.0 - share).log2());
        assert!((out.len as f64) < bound + 0.7 * list.len() as f64, "{} bits, bound {bound}", out.len);
        let mut out = BitWriter::default();
        put(&mut out, &some(10_000, 1000, 1), 10_000);
        assert_eq!(out.len, 27);
    }

    #[test]
    fn any_bytes_give_ascending_ids() {
        for seed in 0..2000u64 {
            let sets = (scramble(seed) % 300) as u32;
            let lists: Vec<Vec<u32>> = (0..20).map(|i| some(sets, scramble(i) % 1000, i + seed)).collect();
            let mut packed = Lists::of(lists.iter().map(|list| &list[..]), sets);
            let mut bytes = packed.payload.to_vec();
            for i in 0..1 + seed % 5 {
                let at = (scramble(seed * 7 + i) % bytes.len() as u64) as usize;
                bytes[at] = scramble(seed * 11 + i) as u8;
            }
            packed.payload = bytes.into();
            for number in 0..20 {
                let mut ids = vec![];
                packed.read(number, usize::MAX, &mut ids);
                assert!(ids.is_sorted_by(|a, b| a < b) && ids.iter().all(|&id| id < sets));
            }
        }
    }
}
