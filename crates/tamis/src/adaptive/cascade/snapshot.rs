//! a cascade <-> a file.
//!
//! ```text
//!   fields:   capacity | rate f64 | schedule | steps | epoch, frontier | pending_moves | closing: 0, or 1 | digest | level
//!             generations: 1 or 2 | for each: keys | for each level: keys | stash
//!   payloads: for each generation: for each level: table | dead spots; words of the last level
//! ```
//!
//! Sizes follow from the first four fields, hashes from the secret in the header; no payload has another length than they say.

use bytes::Bytes;

use super::generation::{Generation, Sizes};
use super::options::{MAX_KEYS, STEPS, Shape};
use super::{Cascade, Level, Schedule};
use crate::adaptive::AdaptiveFilter;
use crate::adaptive::file;
use crate::adaptive::frontier::{Frontier, Side};
use crate::adaptive::verbs::Kept;
use crate::error::{BuildError, FormatError};
use crate::format::put_varint;
use crate::hash::{Digest, Hasher, KeyType};

impl<L: Level> Kept for Cascade<L> {
    fn hash(&self) -> (&Hasher, KeyType) {
        (&self.frontier.hasher, self.frontier.key_type)
    }

    #[inline]
    fn contains_digest(&self, key: Digest) -> bool {
        self.generation(self.side(key)).alive(key, 0).is_some()
    }

    fn encoded(&self) -> Result<Vec<u8>, BuildError> {
        let Shape { key_type, capacity, rate, schedule, steps } = self.shape;
        let (mut fields, mut payloads) = (vec![], vec![]);
        put_varint(&mut fields, capacity);
        fields.extend_from_slice(&rate.to_le_bytes());
        fields.push(schedule as u8);
        put_varint(&mut fields, steps.into());
        self.frontier.encode(&mut fields);
        put_varint(&mut fields, self.frontier.pending_moves.into());
        fields.push(u8::from(self.closing.is_some()));
        if let Some((key, level)) = self.closing {
            file::put_digest(&mut fields, key);
            put_varint(&mut fields, level as u64);
        }
        fields.push(1 + u8::from(self.next.is_some()));
        for generation in std::iter::once(&self.now).chain(self.next.as_deref()) {
            generation.encode(&mut fields, &mut payloads);
        }
        file::write(L::KIND, &self.frontier.hasher, key_type, self.len(), &fields, &payloads)
    }

    fn decoded(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Cascade<L>, FormatError> {
        let read = file::read(bytes, secret, L::KIND)?;
        let key_type = read.header.key_type;
        let mut from = read.fields();
        let capacity = from.within("capacity", 0..=MAX_KEYS)?;
        let rate = f64::from_le_bytes(from.array()?);
        let schedule = match from.within("schedule", 0..=1)? {
            0 => Schedule::Squaring,
            _ => Schedule::LogStar,
        };
        let steps = from.within("steps", u64::from(*STEPS.start())..=u64::from(*STEPS.end()))? as u32;
        let fail = |e: BuildError| FormatError::invalid(e.to_string());
        let shape = Shape { key_type, capacity, rate, schedule, steps }.check().map_err(fail)?;
        let sizes = Sizes::of::<L>(&shape);
        let mut frontier = Frontier::decode(&mut from, &read.header)?;
        frontier.pending_moves = from.within("steps due", 0..=u32::MAX.into())? as u32;
        let mut closing = None;
        if from.within("closing", 0..=1)? == 1 {
            let key = file::digest(&mut from)?;
            let level = from.within("closing level", 0..=sizes.tiers.len() as u64 - 1)?;
            closing = Some((key, level as usize));
        }
        let two = from.within("number of generations", 1..=2)? == 2;
        let fits = two || frontier.last.is_none();
        FormatError::check(fits, || "directory: keys moved, and no generation they moved to")?;
        let mut payloads = read.payloads.iter().map(|payload| &payload[..]);
        let mut load = |side| Generation::load(&sizes, frontier.salt(side), &mut from, &mut payloads, capacity);
        let now = load(Side::Old)?;
        let next = if two { Some(Box::new(load(Side::New)?)) } else { None };
        let cascade = Cascade { shape, sizes, frontier, now, next, closing };
        from.end()?;
        let fits = payloads.next().is_none() && cascade.len() == read.header.keys && cascade.len() <= capacity;
        FormatError::check(fits, || "directory: keys or payloads that no level has")?;
        Ok(cascade)
    }
}
