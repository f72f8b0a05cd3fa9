//! a label + a key's digest -> the list of steps that answers: filters whose keys belong to partitions.
//!
//! Every key carries a label: the issuer of a certificate, a country, a table. A label's own number of negatives per key
//! says how many bits its keys need, so labels of about the same number share a *group*, and each group is a list of
//! steps of its own:
//!
//! ```text
//!   label ──hash──▶ fingerprint ──table──▶ group ──▶ steps ──▶ yes / no
//!     └─────────────────┐                              ▲
//!   key ────hash──▶ digest, mixed with the label's ────┘
//! ```
//!
//! The key's digest is mixed with the label's, so that one key under two labels is two things, and may be a member under one
//! and excluded under the other. The table has a few bytes per label. A label that it does not know has no keys: the
//! answer is no. A fingerprint is long enough that an unknown label is taken for a known one less than once in 2^32.
//!
//! Why not a filter per label: the fixed cost of a file, a hundred bytes, is more than most labels' keys take. Why not one
//! filter for all: it would spend on every key what the average label needs, which is too much for some and
//! leaves many survivors of others.

use bytes::Bytes;

use crate::error::FormatError;
use crate::filter::steps::{self, Steps};
use crate::format::Reader;
use crate::hash::MAX_NUMBER;
#[cfg(feature = "build")]
use crate::hash::attempts::{SetHash, numbers};
use crate::hash::{Digest, Hasher, Salt, scramble};

/// A label, hashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    digest: Digest,
    a: u64,
    b: u64,
}

impl Label {
    pub(crate) fn new(hasher: &Hasher, label: &[u8]) -> Label {
        Label::of(hasher.bytes(label))
    }

    /// The label with this digest.
    pub(crate) fn of(digest: Digest) -> Label {
        // Scrambled: a key that is equal to its label must not cancel it out.
        Label { digest, a: scramble(digest.hi), b: scramble(digest.lo) }
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// The digest of a key that carries this label: another bijection for every label.
    #[inline(always)]
    pub(crate) fn mix(&self, key: Digest) -> Digest {
        Digest { hi: key.hi ^ self.a, lo: key.lo.wrapping_add(self.b) }
    }

    /// `width` bytes that stand for the label in the table.
    pub(crate) fn fingerprint(&self, number: u64, width: usize) -> u64 {
        self.digest.salted(SALT.child(number)) >> (64 - 8 * width)
    }
}

/// Of the fingerprints; no step has this number.
const SALT: Salt = Salt::new(1 << 32);
/// More groups than a byte can name do not pay.
pub(crate) const MAX_GROUPS: usize = 255;

/// Bytes of a fingerprint: an unknown label is one of `labels` known ones with a probability of at most 2^-32.
pub(crate) fn fingerprint_width(labels: u64) -> usize {
    let log = 64 - labels.saturating_sub(1).leading_zeros() as usize;
    (32 + log).div_ceil(8).min(8)
}

/// Labels of about as many negatives per key, and the filter of their keys.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) steps: Steps,
    pub(crate) shard_bits: u32,
    /// Distinct keys and negatives, each with its label.
    pub(crate) keys: u64,
    pub(crate) negatives: u64,
}

/// Everything that a partitioned file has besides its payloads.
#[derive(Debug)]
pub(crate) struct Partitions {
    pub(crate) groups: Vec<Group>,
    pub(crate) table: Table,
    /// The sum of the labels' bounds, in bits.
    pub(crate) bound: u64,
}

impl Partitions {
    /// The group of a label; none if no key carries it.
    #[inline]
    pub(crate) fn group(&self, label: &Label) -> Option<&Group> {
        // Number 0 is no group: a label with nothing but negatives.
        self.groups.get((self.table.find(label)? as usize).wrapping_sub(1))
    }

    /// The share of unlisted keys that pass under a key's label, on average over the keys.
    pub(crate) fn fpr(&self) -> f64 {
        let keys: f64 = self.groups.iter().map(|group| group.keys as f64).sum();
        let passing: f64 = self.groups.iter().map(|group| group.keys as f64 * steps::rate(&group.steps)).sum();
        // Sums of rounded numbers may exceed it.
        if keys > 0.0 { (passing / keys).min(1.0) } else { 0.0 }
    }
}

/// The known labels: sorted fingerprints, each with the number of its group, read where they lie in the file.
#[derive(Debug)]
pub(crate) struct Table {
    entries: Bytes,
    width: usize,
    number: u64,
}

impl Table {
    /// Reads and checks a table, which is the last part of a directory.
    ///
    /// ```text
    ///   labels                       varint, 0 to 2^32 - 1
    ///   number                       varint, 0 to 2^32 - 1: which child of the salt makes the fingerprints
    /// ```
    ///
    /// The payload of the length that is asked for has the entries: fingerprint, 4 to 8 bytes; group u8, 0 for none.
    pub(crate) fn decode(
        from: &mut Reader<'_>,
        groups: usize,
        payload: impl FnOnce(u64) -> Result<Bytes, FormatError>,
    ) -> Result<Table, FormatError> {
        let labels = from.within("number of labels", 0..=u32::MAX as u64)?;
        let number = from.within("salt of the labels", 0..=MAX_NUMBER)?;
        let width = fingerprint_width(labels);
        let table = Table { entries: payload(labels * (width as u64 + 1))?, width, number };
        let mut last = None;
        for i in 0..table.len() {
            let (fingerprint, group) = table.entry(i);
            if last.is_some_and(|last| last >= fingerprint) {
                return Err(FormatError::invalid("directory: the labels are not in order"));
            }
            if group as usize > groups {
                let reason = format!("directory: the group of a label is {group}, expected 0 to {groups}");
                return Err(FormatError::invalid(reason));
            }
            last = Some(fingerprint);
        }
        Ok(table)
    }

    /// How many labels there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() / (self.width + 1)
    }

    /// Fingerprint and group of the label at this place.
    #[inline]
    fn entry(&self, i: usize) -> (u64, u8) {
        let at = i * (self.width + 1);
        match self.entries.get(at..at + self.width + 1) {
            Some([fingerprint @ .., group]) => {
                let mut word = [0; 8];
                word[..self.width].copy_from_slice(fingerprint);
                (u64::from_le_bytes(word), *group)
            }
            _ => (0, 0),
        }
    }

    /// The number of a label's group, if the label is known.
    #[inline]
    pub(crate) fn find(&self, label: &Label) -> Option<u8> {
        let wanted = label.fingerprint(self.number, self.width);
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entry(middle) {
                (found, group) if found == wanted => return Some(group),
                (found, _) if found < wanted => low = middle + 1,
                _ => high = middle,
            }
        }
        None
    }

    /// How many labels each group has; those without a group come first.
    pub(crate) fn sizes(&self, groups: usize) -> Vec<u64> {
        let mut sizes = vec![0; groups + 1];
        for i in 0..self.len() {
            // Checked when the file was opened.
            if let Some(size) = sizes.get_mut(self.entry(i).1 as usize) {
                *size += 1;
            }
        }
        sizes
    }
}

/// Labels, in the order of their digests, and their groups -> the entries of a table, and what the directory says of it; none if two of
/// them are equal.
#[cfg(feature = "build")]
pub(crate) fn encode_table(
    labels: impl ExactSizeIterator<Item = (Label, u8)> + Clone,
    out: &mut Vec<u8>,
) -> Option<Vec<u8>> {
    let width = fingerprint_width(labels.len() as u64);
    let set = || {
        let mut hash = SetHash::new();
        labels.clone().for_each(|(label, _)| hash.add(&[label.digest]));
        hash.finish()
    };
    for (_, number) in numbers(labels.len(), set) {
        let entry = |(label, group): (Label, u8)| (label.fingerprint(number, width), group.into());
        let mut entries: Vec<(u64, u64)> = labels.clone().map(entry).collect();
        entries.sort_unstable();
        if entries.is_sorted_by(|a, b| a.0 < b.0) {
            crate::format::put_varint(out, labels.len() as u64);
            crate::format::put_varint(out, number);
            let mut payload = Vec::with_capacity(entries.len() * (width + 1));
            for (fingerprint, group) in entries {
                payload.extend_from_slice(&fingerprint.to_le_bytes()[..width]);
                payload.push(group as u8);
            }
            return Some(payload);
        }
    }
    None
}

#[cfg(all(test, feature = "build"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn labels(n: u64) -> Vec<(Label, u8)> {
        let hasher = Hasher::seeded(1);
        (0..n).map(|i| (Label::new(&hasher, &i.to_le_bytes()), (i % 4) as u8)).collect()
    }

    /// A table from its bytes in the directory, and its entries after them.
    fn decode(bytes: &[u8], groups: usize) -> Result<Table, FormatError> {
        let mut from = Reader::new(bytes, "directory");
        let mut rest = Reader::new(bytes, "payload");
        rest.varint()?;
        rest.varint()?;
        Table::decode(&mut from, groups, |len| Ok(Bytes::copy_from_slice(rest.take(len)?)))
    }

    fn encoded(labels: impl ExactSizeIterator<Item = (Label, u8)> + Clone) -> Option<Vec<u8>> {
        let mut bytes = vec![];
        let entries = encode_table(labels, &mut bytes)?;
        bytes.extend_from_slice(&entries);
        Some(bytes)
    }

    #[test]
    fn widths_grow_with_the_number_of_labels() {
        let widths = [0, 1, 2, 256, 257, 65_536, 65_537, 1 << 24, u32::MAX as u64].map(fingerprint_width);
        assert_eq!(widths, [4, 4, 5, 5, 6, 6, 7, 7, 8]);
    }

    #[test]
    fn every_label_is_found_and_no_other() {
        for n in [0, 1, 2, 3, 255, 256, 257, 5000] {
            let known = labels(n);
            let bytes = encoded(known.iter().copied()).unwrap();
            let table = decode(&bytes, 3).unwrap();
            assert!(known.iter().all(|(label, group)| table.find(label) == Some(*group)), "{n}");
            assert_eq!((table.len() as u64, table.sizes(3).iter().sum::<u64>()), (n, n));
            let strangers = labels(n + 20_000).split_off(n as usize);
            assert!(strangers.iter().all(|(label, _)| table.find(label).is_none()), "{n}");
        }
    }

    /// Two labels that meet under the first salt are distinguished under another; equal ones never are.
    #[test]
    fn fingerprints_that_meet_get_another_salt() {
        let hasher = Hasher::seeded(0);
        // The birthdays of four bytes: among 150,000 labels about two pairs meet.
        let mut all: Vec<(u64, u64)> =
            (0..150_000).map(|i: u64| (Label::new(&hasher, &i.to_le_bytes()).fingerprint(0, 4), i)).collect();
        all.sort_unstable();
        let pair = all.windows(2).find(|pair| pair[0].0 == pair[1].0).unwrap();
        let pair: Vec<Label> = pair.iter().map(|(_, i)| Label::new(&hasher, &i.to_le_bytes())).collect();
        assert_eq!(pair[0].fingerprint(0, 4), pair[1].fingerprint(0, 4));
        assert_ne!(pair[0].fingerprint(1, 4), pair[1].fingerprint(1, 4));
        assert!(encoded([(pair[0], 1), (pair[0], 1)].into_iter()).is_none());
    }

    #[test]
    fn tables_that_no_writer_makes_are_rejected() {
        let bytes = encoded(labels(3).into_iter()).unwrap();
        assert!(decode(&bytes, 2).is_ok());
        assert!(decode(&bytes, 1).unwrap_err().to_string().contains("the group of a label is 2, expected 0 to 1"));
        for cut in 0..bytes.len() {
            assert!(matches!(decode(&bytes[..cut], 2), Err(FormatError::Truncated { .. })), "{cut}");
        }
        let mut swapped = bytes.clone();
        swapped.copy_within(2..8, 8);
        assert!(decode(&swapped, 2).unwrap_err().to_string().contains("not in order"));
        // Four thousand million labels in ten bytes.
        let mut many = vec![];
        crate::format::put_varint(&mut many, u32::MAX as u64);
        many.extend([0; 5]);
        assert!(matches!(decode(&many, 2), Err(FormatError::Truncated { .. })));
    }

    #[test]
    fn one_key_under_two_labels_is_two() {
        let hasher = Hasher::seeded(0);
        let key = hasher.bytes(b"a");
        let [a, b] = [b"a", b"b"].map(|label| Label::new(&hasher, label));
        assert_ne!(a.mix(key), b.mix(key));
        // A key that equals the name of its partition is not special.
        let own = |i: u64| Label::new(&hasher, &i.to_le_bytes()).mix(hasher.bytes(&i.to_le_bytes()));
        let mut tops: Vec<usize> = (0..1000).map(|i| own(i).shard(20)).collect();
        tops.sort_unstable();
        tops.dedup();
        assert!(tops.len() > 990, "{}", tops.len());
    }
}
