//! a broom filter of large remainders <-> its file.
//!
//! ```text
//!   fields:   capacity (varint) | rate (8 bytes, IEEE 754) | bins (varint) | bits of a rest (varint) |
//!             words that the yard may hold (varint) | place of the broom (varint) | keys on the old side (varint) |
//!             steps that are due (varint) | frontier
//!   payloads: signatures, 64 of 2 bytes per bin | rests, packed | words of the yard
//! ```

use bytes::Bytes;

use super::front::Front;
use super::yard::Backyard;
use super::{AdaptiveFilter, LargeBroom, hashes};
use crate::adaptive::file::{self, Kind, bytes_of, put_varints, words_of};
use crate::adaptive::frontier::Frontier;
use crate::adaptive::verbs::Kept;
use crate::error::{BuildError, FormatError};
use crate::hash::{Digest, Hasher, KeyType};
use crate::math::large::{MAX_KEYS, MAX_REST};

impl Kept for LargeBroom {
    fn hash(&self) -> (&Hasher, KeyType) {
        (&self.frontier.hasher, self.frontier.key_type)
    }

    #[inline]
    fn contains_digest(&self, key: Digest) -> bool {
        let hashes = &self.hashes[self.frontier.side(key) as usize];
        let (bin, signature) = self.front.place(key.salted(hashes.place));
        if let Some(slot) = self.front.find(bin, signature)
            && self.front.rest(slot) == self.front.rest_of(key.salted(hashes.rest))
        {
            return true;
        }
        self.yard.find(key.salted(hashes.yard)).is_some()
    }

    fn encoded(&self) -> Result<Vec<u8>, BuildError> {
        let (signatures, rests) = self.front.payloads();
        let mut fields = vec![];
        put_varints(&mut fields, [self.capacity]);
        fields.extend_from_slice(&self.rate.to_le_bytes());
        let (width, due) = (self.front.width.into(), self.frontier.pending_moves.into());
        let (limit, broom) = (self.yard.limit, self.yard.broom as u64);
        put_varints(&mut fields, [self.front.bins(), width, limit, broom, self.old, due]);
        self.frontier.encode(&mut fields);
        let payloads = [signatures, bytes_of(rests), bytes_of(&self.yard.words)];
        file::write(Kind::LargeBroom, &self.frontier.hasher, self.frontier.key_type, self.len(), &fields, &payloads)
    }

    fn decoded(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<LargeBroom, FormatError> {
        let read = file::read(bytes, secret, Kind::LargeBroom)?;
        let [signatures, rests, words] = read.all()?;
        let mut from = read.fields();
        let capacity = from.within("capacity", 0..=MAX_KEYS)?;
        let rate = file::rate(&mut from)?;
        let bins = from.within("bins", 1..=MAX_KEYS)?;
        let width = from.within("bits of a rest", 0..=u64::from(MAX_REST))? as u32;
        let limit = from.varint()?;
        let broom = from.varint()?;
        let old = from.varint()?;
        let pending_moves = from.within("steps that are due", 0..=u64::from(u32::MAX))? as u32;
        let mut frontier = Frontier::decode(&mut from, &read.header)?;
        frontier.pending_moves = pending_moves;
        from.end()?;
        let front = Front::from_payloads(bins, width, signatures, words_of(rests)?)?;
        let yard = Backyard::from_parts(limit, broom, words_of(words)?)?;
        let (keys, found) = (read.header.keys, front.keys + yard.keys);
        let reason = || format!("header: {keys} keys; the filter holds {found} and was made for {capacity}");
        FormatError::check(found == keys && keys <= capacity, reason)?;
        // Before the first key has moved all are on the old side.
        let fits = old == keys || (frontier.last.is_some() && old < keys);
        FormatError::check(fits, || format!("directory: {old} of {keys} keys are on the old side"))?;
        let hashes = hashes(&frontier);
        Ok(LargeBroom { capacity, rate, frontier, hashes, front, yard, old })
    }
}
