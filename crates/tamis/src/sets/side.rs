//! a few keys with their lists of sets, exactly: the side table of a sketch.
//!
//! Keys in very many sets cost a sketch more than their names do, and pairs that a cuckoo table has no room for must go somewhere. Both are listed
//! here: 96 bits of each key, ascending, and its list. Keys are found by interpolation, as their names are random numbers.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::lists::Lists;
use crate::error::FormatError;
use crate::format::{Places, Reader, put_varint};
use crate::hash::Digest;

const DIGEST_BYTES: usize = 12;

/// Keys and lists: as they are in a file, and unpacked at the first change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    packed: Packed,
    open: Option<BTreeMap<Digest, Vec<u32>>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Packed {
    names: Bytes,
    lists: Lists,
}

impl Packed {
    fn name(&self, at: usize) -> Digest {
        let bytes = self.names.as_chunks::<DIGEST_BYTES>().0.get(at).copied().unwrap_or([0xff; DIGEST_BYTES]);
        let [a, b, c, d, e, f, g, h, low @ ..] = bytes;
        Digest { hi: u64::from_le_bytes([a, b, c, d, e, f, g, h]), lo: u64::from(u32::from_le_bytes(low)) << 32 }
    }

    fn len(&self) -> usize {
        self.names.len() / DIGEST_BYTES
    }

    fn list(&self, at: usize) -> Vec<u32> {
        let mut ids = vec![];
        self.lists.read(at as u64, usize::MAX, &mut ids);
        ids
    }

    /// The place of a key. Damaged names are not sorted: then it may not be found, and the search ends all the same.
    fn position(&self, key: Digest) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        // A guess within some steps of the place, and then halves.
        let guess = ((key.hi as u128 * high as u128) >> 64) as usize;
        let reach = 2 + high.isqrt();
        if guess >= reach && self.name(guess - reach) < key {
            low = guess - reach;
        }
        if guess + reach < high && key <= self.name(guess + reach) {
            high = guess + reach;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name(middle) < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        (low < self.len() && self.name(low) == key).then_some(low)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.len() as u64);
        if self.len() > 0 {
            self.lists.encode(out);
        }
    }

    /// What goes into the file, in this order.
    pub(crate) fn payloads(&self) -> [&[u8]; 2] {
        [&self.names, &self.lists.payload]
    }
}

impl Side {
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.open.as_ref().map_or(self.packed.len(), BTreeMap::len)
    }

    /// Appends the list of a key; false if it is not here.
    #[inline]
    pub(crate) fn find(&self, key: Digest, ids: &mut Vec<u32>) -> bool {
        match &self.open {
            None => match self.packed.position(key) {
                Some(at) => self.packed.lists.read(at as u64, usize::MAX, ids),
                None => false,
            },
            Some(open) => open.get(&key).inspect(|list| ids.extend_from_slice(list)).is_some(),
        }
    }

    pub(crate) fn has(&self, key: Digest) -> bool {
        match &self.open {
            None => self.packed.position(key).is_some(),
            Some(open) => open.contains_key(&key),
        }
    }

    /// An error if the keys of a file are not in order: equal ones would become one, and some would not be found again.
    pub(super) fn check(&self) -> Result<(), FormatError> {
        let packed = &self.packed;
        let ascending = (1..packed.len()).all(|at| packed.name(at - 1) < packed.name(at));
        FormatError::check(ascending, || "payload: the keys of a side table are not in order")
    }

    /// To be changed: unpacked the first time.
    pub(crate) fn open(&mut self) -> &mut BTreeMap<Digest, Vec<u32>> {
        let packed = &self.packed;
        self.open.get_or_insert_with(|| {
            let mut open = BTreeMap::new();
            for at in 0..packed.len() {
                open.insert(packed.name(at), packed.list(at));
            }
            open
        })
    }

    /// As it is written, for so many sets: lists depend on their number, and some may have been added.
    pub(crate) fn pack(&self, sets: u32) -> Packed {
        let Some(open) = &self.open else {
            return match self.packed.lists.sets == sets || self.is_empty() {
                true => self.packed.clone(),
                false => self.clone().opened().pack(sets),
            };
        };
        let mut names = Vec::with_capacity(open.len() * DIGEST_BYTES);
        for key in open.keys() {
            names.extend_from_slice(&key.hi.to_le_bytes());
            names.extend_from_slice(&((key.lo >> 32) as u32).to_le_bytes());
        }
        Packed { names: names.into(), lists: Lists::of(open.values().map(|list| &list[..]), sets) }
    }

    fn opened(mut self) -> Side {
        self.open();
        self
    }

    /// Bytes that it takes in a file; what was changed since it was opened is not counted.
    pub(crate) fn bytes(&self) -> u64 {
        self.packed.names.len() as u64 + self.packed.lists.payload_len()
    }

    /// Reads what [`Packed::encode`] wrote, without payloads.
    pub(crate) fn decode(from: &mut Reader<'_>, sets: u32) -> Result<Side, FormatError> {
        let count = from.within("keys of a side table", 0..=1 << 40)?;
        if count == 0 {
            return Ok(Side::default());
        }
        let lists = Lists::decode(from, sets)?;
        if lists.count != count {
            let found = lists.count;
            return Err(FormatError::invalid(format!("directory: {count} keys with {found} lists in a side table")));
        }
        Ok(Side { packed: Packed { names: Bytes::new(), lists }, open: None })
    }

    /// Gives the payloads their places.
    pub(crate) fn lay_out(&mut self, places: &mut Places<'_>) -> Result<(), FormatError> {
        let Packed { names, lists } = &mut self.packed;
        if lists.count > 0 {
            *names = places.take(lists.count * DIGEST_BYTES as u64)?;
            lists.payload = places.take(lists.payload_len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::scramble;

    fn key(i: u64) -> Digest {
        Digest { hi: scramble(i), lo: scramble(i + 7) & !0xffff_ffff }
    }

    #[test]
    fn packed_and_open_say_the_same() {
        for count in [0u64, 1, 2, 3, 10, 1000, 20_000] {
            let list = |i: u64| -> Vec<u32> {
                (0..300).filter(|&id| scramble(i * 300 + id).is_multiple_of(3)).map(|id| id as u32).collect()
            };
            let open = Side { open: Some((0..count).map(|i| (key(i), list(i))).collect()), ..Side::default() };
            let packed = Side { packed: open.pack(300), open: None };
            assert_eq!((packed.len(), packed.is_empty()), (count as usize, count == 0));
            for side in [&open, &packed, &packed.clone().opened()] {
                for i in 0..count {
                    let mut ids = vec![];
                    assert!(side.find(key(i), &mut ids));
                    assert_eq!(ids, list(i));
                }
                assert!((count..count + 1000).all(|i| !side.find(key(i), &mut vec![])));
            }
        }
    }

    #[test]
    fn names_in_disorder_end_the_search() {
        let open = Side { open: Some((0..1000).map(|i| (key(i), vec![1])).collect()), ..Side::default() };
        let mut packed = open.pack(2);
        assert!(Side { packed: packed.clone(), open: None }.check().is_ok());
        let mut names = packed.names.to_vec();
        names.chunks_mut(24).for_each(|two| two.reverse());
        packed.names = names.into();
        let side = Side { packed, open: None };
        assert!(side.check().is_err());
        (0..2000).for_each(|i| assert!(side.find(key(i), &mut vec![]) || i < 2000));
    }
}
