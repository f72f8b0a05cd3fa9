//! a broom filter <-> a file.
//!
//! ```text
//!   fields:    rate f64 | keys moved for each false positive | grows 0 or 1 | steps due | keys moved | frontier
//!              | number of tables 1 or 2 | per table: blocks, words, load, quotients, remainder, counter, room of the yard
//!   payloads:  per table: blocks, yard, tombstones
//! ```
//!
//! All fields but the first are varints. Everything is checked when a file is taken up, so that no query and no change has to.

use bytes::Bytes;

use super::super::file::{self, Kind, bytes_of, put_varints, words_of};
use super::super::frontier::Frontier;
use super::super::verbs::Kept;
use super::super::words::Backyard;
use super::Broom;
use super::table::{Table, tombstone_capacity};
use super::tombstones::Tombstones;
use crate::error::{BuildError, FormatError};
use crate::format::Reader;
use crate::hash::{Digest, Hasher, KeyType};
use crate::math::broom::{MAX_KEYS, MAX_REMAINDER, Plan};

impl Kept for Broom {
    fn hash(&self) -> (&Hasher, KeyType) {
        (&self.frontier.hasher, self.frontier.key_type)
    }

    #[inline]
    fn contains_digest(&self, key: Digest) -> bool {
        self.ask.call(self, key)
    }

    fn encoded(&self) -> Result<Vec<u8>, BuildError> {
        let mut fields = self.rate.to_le_bytes().to_vec();
        let (moves, due) = (self.moves_per_adapt.into(), self.frontier.pending_moves.into());
        put_varints(&mut fields, [moves, self.grows.into(), due, self.moved]);
        self.frontier.encode(&mut fields);
        let tables: Vec<&Table> = [Some(&self.table), self.next.as_ref()].into_iter().flatten().collect();
        put_varints(&mut fields, [tables.len() as u64]);
        let mut payloads = vec![];
        for table in tables {
            let Plan { blocks, words, load, quotients, remainder, counter, yard } = table.plan;
            let block = [words, load, quotients, remainder, counter].map(u64::from);
            put_varints(&mut fields, [blocks].into_iter().chain(block).chain([yard]));
            payloads.extend([bytes_of(&table.words), bytes_of(table.yard.as_words()), table.tombstones.encode()]);
        }
        file::write(Kind::Broom, &self.frontier.hasher, self.frontier.key_type, self.len, &fields, &payloads)
    }

    fn decoded(bytes: Bytes, secret: Option<[u64; 2]>) -> Result<Broom, FormatError> {
        let file = file::read(bytes, secret, Kind::Broom)?;
        let mut from = file.fields();
        let rate = file::rate(&mut from)?;
        let moves_per_adapt = from.within("keys moved for each false positive", 1..=64)? as u32;
        let grows = from.within("whether it grows", 0..=1)? == 1;
        let pending_moves = from.within("steps due", 0..=u32::MAX.into())? as u32;
        let len = file.header.keys;
        let moved = from.within("keys moved", 0..=len)?;
        let mut frontier = Frontier::decode(&mut from, &file.header)?;
        frontier.pending_moves = pending_moves;
        let tables = from.within("number of tables", 1..=2)? as usize;
        let (payloads, rest) = file.payloads.as_chunks();
        let found = file.payloads.len();
        FormatError::check(payloads.len() == tables && rest.is_empty(), || {
            format!("directory: {found} payloads of {tables} tables")
        })?;
        let made = payloads.iter().map(|payloads| table(&mut from, payloads)).collect::<Result<Vec<_>, _>>()?;
        from.end()?;
        let keys: u64 = made.iter().map(Table::len).sum();
        FormatError::check(keys == len, || format!("header: {len} keys, and {keys} in the tables"))?;
        let mut made = made.into_iter();
        let Some(table) = made.next() else { return Err(FormatError::invalid("directory: no tables")) };
        let empty = Broom::of(rate, moves_per_adapt, grows, frontier, table);
        Ok(Broom { next: made.next(), len, moved, ..empty })
    }
}

fn table(from: &mut Reader<'_>, [words, yard, tombstones]: &[Bytes; 3]) -> Result<Table, FormatError> {
    let plan = Plan {
        blocks: from.within("number of blocks", 1..=MAX_KEYS)?,
        words: from.within("words of a block", 1..=1024)? as u32,
        load: from.within("keys of a block", 1..=1 << 16)? as u32,
        quotients: from.within("quotients of a block", 1..=1 << 16)? as u32,
        remainder: from.within("bits of a remainder", 1..=MAX_REMAINDER.into())? as u32,
        counter: from.within("bits of a counter", 1..=16)? as u32,
        yard: from.within("room of the back yard", 0..=MAX_KEYS)?,
    };
    let (found, expected) = (words.len() as u64, plan.blocks * u64::from(plan.words) * 8);
    FormatError::check(found == expected, || format!("blocks: {found} bytes, expected {expected}"))?;
    // Counters and quotients must fit into a block, whatever is in it; and no block is meant for more keys than it has room for.
    let bits = 64 * plan.words;
    let fits = 2 * plan.counter + 1 + plan.quotients <= bits && plan.load <= bits / (plan.remainder + 2);
    FormatError::check(fits, || "directory: more quotients or keys than a block has bits")?;
    let tombstones = Tombstones::decode(tombstones, tombstone_capacity(&plan))?;
    let yard = Backyard::from_words(words_of(yard)?, plan.yard as usize)?;
    let table = Table::with(plan, words_of(words)?, yard, tombstones);
    FormatError::check(table.valid(), || "blocks: a block contradicts itself")?;
    Ok(table)
}
