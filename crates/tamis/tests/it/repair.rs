//! changed bytes -> the same with checksums that hold: lets tests reach the decoder behind them.
//!
//! ```text
//!   front, 16 bytes | payload | sections: 1 head, 2 sums, 3 contents, .. | length u32, version and flags, identity, "sieV"
//! ```

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

pub(crate) const FRONT: usize = 16;
pub(crate) const FOOTER: usize = 32;
/// Places of a head: form, hash, key type, log2 of the shards.
pub(crate) const FORM: usize = 0;
pub(crate) const HASH: usize = 1;
pub(crate) const KEY_TYPE: usize = 2;
pub(crate) const BITS: usize = 3;

/// A file in its parts; the rest follows from them.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) front: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    /// Section 1.
    pub(crate) head: Vec<u8>,
    /// Section 3.
    pub(crate) directory: Vec<u8>,
    /// Sections after these.
    pub(crate) more: Vec<(u64, Vec<u8>)>,
    /// Section 2, and the payload that it fits.
    sums: Option<(Vec<u8>, Vec<u8>)>,
}

fn varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the sum of every block of a unit.
fn put_sums(sums: &mut Vec<u8>, unit: &[u8]) {
    unit.chunks(1 << 16).for_each(|block| sums.extend_from_slice(&xxh3_64(block).to_le_bytes()));
}

impl Parts {
    /// Parts of a file of one shard that starts at its front.
    pub(crate) fn new(head: &[u8], payload: &[u8], directory: &[u8]) -> Parts {
        let front = [&b"\x89tamis\r\n"[..], &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
        let [head, payload, directory] = [head, payload, directory].map(<[u8]>::to_vec);
        Parts { front, payload, head, directory, more: vec![], sums: None }
    }

    /// Takes a sound file apart; nothing when the lengths are impossible.
    pub(crate) fn of(file: &[u8]) -> Option<Parts> {
        let end = file.len().checked_sub(FOOTER)?;
        let len = u32::from_le_bytes(file.get(end..end + 4)?.try_into().ok()?);
        let start = end.checked_sub(len as usize).filter(|&start| start >= FRONT)?;
        let mut parts = Parts::new(&[], &file[FRONT..start], &[]);
        parts.front = file[..FRONT].to_vec();
        let mut from = &file[start..end];
        while !from.is_empty() {
            let (number, len) = (varint(&mut from)?, varint(&mut from)?);
            let (section, rest) = from.split_at_checked(len as usize)?;
            from = rest;
            match number {
                1 => parts.head = section.to_vec(),
                2 => parts.sums = Some((section.to_vec(), parts.payload.clone())),
                3 => parts.directory = section.to_vec(),
                _ => parts.more.push((number, section.to_vec())),
            }
        }
        Some(parts)
    }

    /// Appends a unit, as the section of a later release has one.
    pub(crate) fn append_unit(&mut self, unit: &[u8]) {
        self.payload.extend_from_slice(unit);
        let (sums, payload) = self.sums.get_or_insert_default();
        put_varint(sums, 2 * unit.len() as u64);
        put_sums(sums, unit);
        payload.extend_from_slice(unit);
    }

    /// The sums of the payload: of the units that it had if they still fit it, otherwise of one.
    fn sums(&self) -> Vec<u8> {
        if let Some((sums, payload)) = &self.sums
            && payload.len() == self.payload.len()
        {
            return if *payload == self.payload { sums.clone() } else { self.sums_of_units(sums).unwrap_or_default() };
        }
        let mut sums = vec![];
        if !self.payload.is_empty() {
            put_varint(&mut sums, 2 * self.payload.len() as u64);
            put_sums(&mut sums, &self.payload);
        }
        sums
    }

    /// The same with other lengths in its sums: `edit` has the number of a unit and its length.
    pub(crate) fn with_sums(mut self, mut edit: impl FnMut(usize, &mut u64)) -> Parts {
        let (old, mut sums) = (self.sums(), vec![]);
        let (mut from, mut number) = (&old[..], 0);
        while let Some(code) = varint(&mut from) {
            let (mut len, blocks) = (code >> 1, (code >> 1).div_ceil(1 << 16) as usize);
            edit(number, &mut len);
            put_varint(&mut sums, len << 1 | code & 1);
            sums.extend_from_slice(&from[..8 * blocks]);
            (from, number) = (&from[8 * blocks..], number + 1);
        }
        self.sums = Some((sums, self.payload.clone()));
        self
    }

    /// The sums of the same units of another payload.
    fn sums_of_units(&self, mut old: &[u8]) -> Option<Vec<u8>> {
        let (mut sums, mut end) = (vec![], FRONT);
        while !old.is_empty() {
            let code = varint(&mut old)?;
            let len = (code >> 1) as usize;
            let start = if code % 2 == 1 { end.next_multiple_of(64) } else { end };
            old = old.get(8 * len.div_ceil(1 << 16)..)?;
            put_varint(&mut sums, code);
            put_sums(&mut sums, self.payload.get(start - FRONT..)?.get(..len)?);
            end = start + len;
        }
        Some(sums)
    }

    /// The file, sums and all.
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut tail = vec![];
        let sections = [(1, self.head.clone()), (2, self.sums()), (3, self.directory.clone())];
        for (number, bytes) in sections.iter().chain(&self.more) {
            put_varint(&mut tail, *number);
            put_varint(&mut tail, bytes.len() as u64);
            tail.extend_from_slice(bytes);
        }
        tail.extend_from_slice(&(tail.len() as u32).to_le_bytes());
        tail.extend_from_slice(&self.front[8..]);
        tail.extend_from_slice(&xxh3_128(&tail).to_le_bytes());
        tail.extend_from_slice(b"sieV");
        [&self.front[..], &self.payload, &tail].concat()
    }

    /// Gives the payload the length that the directory asks for, as far as the decoder's refusals tell: then the file opens
    /// and queries run on a geometry that no builder made.
    pub(crate) fn fit<T>(&mut self, longest: usize, open: impl Fn(Vec<u8>) -> Result<T, tamis::FormatError>) {
        for _ in 0..8 {
            match open(self.file()) {
                Err(tamis::FormatError::Truncated { what: "the payload", needed, found }) => {
                    let more = needed.saturating_sub(found).max(1) as usize;
                    if more > longest || self.payload.len() + more > longest {
                        return;
                    }
                    // Bytes with a pattern: thresholds and rows are then not all alike.
                    let from = self.payload.len();
                    self.payload.extend((from..from + more).map(|i| (i * 167) as u8));
                }
                Err(tamis::FormatError::Invalid { reason }) if reason.contains("between payload and directory") => {
                    let more = reason.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
                    self.payload.truncate(self.payload.len().saturating_sub(more));
                }
                _ => return,
            }
        }
    }
}
