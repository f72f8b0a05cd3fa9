//! header, payloads and geometries -> a file, written front to back.

use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

use super::{
    BLOCK, CLOSING, FRONT, Header, Kept, MAGIC, MAY_CHANGE, STEPS_BITS, VERSION, is_aligned, place, put_varint,
    section, unit, unit_len,
};
use crate::error::{Error, FormatError};

/// Writes a file front to back.
pub(crate) struct Writer<'a> {
    out: &'a mut dyn std::io::Write,
    header: Header,
    /// Bytes written.
    at: u64,
    sums: Vec<u8>,
    /// Whether shards are some of several.
    several: bool,
    /// Step by step, the geometries of the shards so far.
    geometries: Vec<Vec<u8>>,
    kinds: Vec<[u8; 2]>,
    metadata: &'a [u8],
    scorer: Vec<u8>,
    kept: Vec<u8>,
}

/// One shard's part of one step, ready to be written.
pub(crate) struct Encoded {
    pub(crate) geometry: Vec<u8>,
    pub(crate) payload: Bytes,
}

impl<'a> Writer<'a> {
    /// Starts a file with these steps, each the byte of a role and the tag of a leaf.
    pub(crate) fn new(
        out: &'a mut dyn std::io::Write,
        header: &Header,
        kinds: Vec<[u8; 2]>,
    ) -> std::io::Result<Writer<'a>> {
        out.write_all(&MAGIC)?;
        out.write_all(&marks(header))?;
        let geometries = vec![vec![]; kinds.len()];
        let several = header.shard_bits > 0;
        let (at, sums) = (FRONT as u64, Vec::with_capacity(32));
        Ok(Writer {
            out,
            header: header.clone(),
            at,
            sums,
            several,
            geometries,
            kinds,
            metadata: &[],
            scorer: vec![],
            kept: vec![],
        })
    }

    /// The same, with a caller's note.
    pub(crate) fn with_metadata(self, metadata: &'a [u8]) -> Writer<'a> {
        Writer { metadata, ..self }
    }

    /// The same, with the section of a scorer, whose bytes are the first payload.
    pub(crate) fn with_scorer(self, scorer: Vec<u8>) -> Writer<'a> {
        Writer { scorer, ..self }
    }

    /// Appends a shard: one part per step. Shards come in order.
    pub(crate) fn shard(&mut self, parts: &[Encoded]) -> std::io::Result<()> {
        let parts = &parts[..parts.len().min(self.geometries.len())];
        for (geometries, part) in self.geometries.iter_mut().zip(parts) {
            geometries.extend_from_slice(&part.geometry);
        }
        self.unit(self.several, parts.iter().map(|part| &part.payload[..]))
    }

    /// Appends a payload that is a unit by itself.
    pub(crate) fn payload(&mut self, payload: &[u8]) -> std::io::Result<()> {
        self.unit(false, std::iter::once(payload))
    }

    /// Appends digests that are kept for changes, after everything else.
    pub(crate) fn keep(&mut self, kept: Kept, digests: &[u8]) -> std::io::Result<()> {
        put_varint(&mut self.kept, kept.members);
        put_varint(&mut self.kept, kept.excluded);
        self.payload(digests)
    }

    /// Appends parts that are moved together, and their sums.
    fn unit<'b>(&mut self, several: bool, parts: impl Iterator<Item = &'b [u8]> + Clone) -> std::io::Result<()> {
        let lens = parts.clone().map(|part| part.len() as u64);
        let Some(len) = unit_len(lens).filter(|&len| len > 0) else { return Ok(()) };
        let gap = unit(self.at, len, several) - self.at;
        self.out.write_all(&[0; 64][..gap as usize])?;
        put_varint(&mut self.sums, 2 * len + u64::from(is_aligned(len, several)));
        if let (Some(part), 1) = (parts.clone().next(), parts.clone().count()) {
            self.out.write_all(part)?;
            part.chunks(BLOCK as usize).for_each(|block| self.sums.extend_from_slice(&xxh3_64(block).to_le_bytes()));
            self.at += gap + len;
            return Ok(());
        }
        let mut blocks = Blocks { sums: &mut self.sums, open: None };
        let mut end = 0u64;
        for part in parts {
            let gap = place(end, part.len() as u64) - end;
            for bytes in [&[0; 64][..gap as usize], part] {
                self.out.write_all(bytes)?;
                blocks.add(bytes);
                end += bytes.len() as u64;
            }
        }
        blocks.end();
        self.at += gap + len;
        Ok(())
    }

    /// Appends a shard of another file as it is, from where its bytes begin; they are compared with its sums.
    pub(crate) fn splice(&mut self, len: u64, sums: &[u8], from: &mut dyn std::io::Read) -> Result<(), Error> {
        let gap = unit(self.at, len, self.several) - self.at;
        self.out.write_all(&[0; 64][..gap as usize])?;
        put_varint(&mut self.sums, 2 * len + u64::from(is_aligned(len, self.several)));
        let mut block = vec![0; BLOCK.min(len) as usize];
        let mut left = len;
        for sum in sums.chunks(8) {
            let block = &mut block[..left.min(BLOCK) as usize];
            from.read_exact(block)?;
            if xxh3_64(block).to_le_bytes() != *sum {
                return Err(FormatError::Checksum { part: "payload" }.into());
            }
            self.out.write_all(block)?;
            left -= block.len() as u64;
        }
        self.sums.extend_from_slice(sums);
        self.at += gap + len;
        Ok(())
    }

    /// Appends geometries of one step, of shards that are spliced in.
    pub(crate) fn extend(&mut self, step: usize, geometries: &[u8]) {
        if let Some(all) = self.geometries.get_mut(step) {
            all.extend_from_slice(geometries);
        }
    }

    /// Starts another list of steps, of so many shards: a partitioned file has one for every group.
    pub(crate) fn start(&mut self, kinds: Vec<[u8; 2]>, shard_bits: u32) {
        self.geometries = vec![vec![]; kinds.len()];
        self.kinds = kinds;
        self.several = shard_bits > 0;
    }

    /// The list of steps so far, as a directory holds it.
    pub(crate) fn list(&self) -> Vec<u8> {
        let mut list = Vec::with_capacity(64);
        put_varint(&mut list, self.kinds.len() as u64 | self.header.salts << STEPS_BITS);
        list.extend_from_slice(self.kinds.as_flattened());
        for geometries in &self.geometries {
            list.extend_from_slice(geometries);
        }
        list
    }

    /// The geometries of every step so far.
    pub(crate) fn geometries(&self) -> &[Vec<u8>] {
        &self.geometries
    }

    /// Writes directory and footer; returns the file's length.
    pub(crate) fn finish(self) -> std::io::Result<u64> {
        let contents = self.list();
        self.close(contents)
    }

    /// The same with contents that were put together elsewhere.
    pub(crate) fn close(self, contents: Vec<u8>) -> std::io::Result<u64> {
        let head = self.header.encode();
        let sections: [(u64, &[u8]); 6] = [
            (section::HEAD, &head),
            (section::SUMS, &self.sums),
            (section::CONTENTS, &contents),
            (section::METADATA, self.metadata),
            (section::SCORER, &self.scorer),
            (section::KEPT, &self.kept),
        ];
        let mut tail = Vec::with_capacity(head.len() + self.sums.len() + contents.len() + self.metadata.len() + 80);
        for (number, bytes) in sections {
            if number < section::METADATA || !bytes.is_empty() {
                put_varint(&mut tail, number);
                put_varint(&mut tail, bytes.len() as u64);
                tail.extend_from_slice(bytes);
            }
        }
        let len = u32::try_from(tail.len()).map_err(|_| std::io::Error::other("the directory exceeds 4 GiB"))?;
        tail.extend_from_slice(&len.to_le_bytes());
        tail.extend_from_slice(&marks(&self.header));
        let identity = xxh3_128(&tail);
        tail.extend_from_slice(&identity.to_le_bytes());
        tail.extend_from_slice(&CLOSING);
        self.out.write_all(&tail)?;
        Ok(self.at + tail.len() as u64)
    }
}

/// Version and flags: those that a reader must know, and those that it may ignore.
fn marks(header: &Header) -> [u8; 8] {
    let [v0, v1] = VERSION.to_le_bytes();
    let [f0, f1, f2, f3] = (if header.may_change { MAY_CHANGE } else { 0 }).to_le_bytes();
    [v0, v1, 0, 0, f0, f1, f2, f3]
}

/// Sums every block of a unit.
struct Blocks<'a> {
    sums: &'a mut Vec<u8>,
    /// The block that is not full yet, and its length. Whole blocks of one part do without.
    open: Option<(Box<Xxh3>, u64)>,
}

impl Blocks<'_> {
    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let held = self.open.as_ref().map_or(0, |&(_, len)| len);
            let (block, rest) = bytes.split_at(bytes.len().min((BLOCK - held) as usize));
            bytes = rest;
            if held == 0 && block.len() as u64 == BLOCK {
                self.sums.extend_from_slice(&xxh3_64(block).to_le_bytes());
                continue;
            }
            let (sum, len) = self.open.get_or_insert_with(|| (Box::new(Xxh3::new()), 0));
            sum.update(block);
            *len += block.len() as u64;
            if *len == BLOCK {
                self.end();
            }
        }
    }

    /// Closes the block that is open.
    fn end(&mut self) {
        if let Some((sum, _)) = self.open.take() {
            self.sums.extend_from_slice(&sum.digest().to_le_bytes());
        }
    }
}
