//! a layer that changes + a key -> the key in it, or out of it, or whether it is there.

use crate::error::FormatError;
use crate::format::{Encoded, Reader};
use crate::hash::{Digest, Salt};
use crate::leaves::bloom::{Classic, SplitBlock};
use crate::leaves::change::{Full, Insert, Remove};
use crate::leaves::cuckoo::Cuckoo;
use crate::leaves::quotient::Quotient;
use crate::leaves::{Entry, Geometry, Query};

/// One layer, of one shard.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) table: Table,
    pub(crate) payload: Vec<u8>,
}

/// How to read it.
#[derive(Clone, Debug)]
pub(crate) enum Table {
    SplitBlock(SplitBlock),
    Classic(Classic),
    Cuckoo(Cuckoo),
    Quotient(Quotient),
}

/// Runs `$body` with the geometry of a table.
macro_rules! with_table {
    ($table:expr, $geometry:ident => $body:expr) => {
        match $table {
            Table::SplitBlock($geometry) => $body,
            Table::Classic($geometry) => $body,
            Table::Cuckoo($geometry) => $body,
            Table::Quotient($geometry) => $body,
        }
    };
}

impl Part {
    pub(crate) fn contains(&self, key: Digest) -> bool {
        with_table!(&self.table, table => table.contains(&self.payload, key))
    }

    pub(crate) fn insert(&mut self, key: Digest) -> Result<(), Full> {
        // A layer that nobody reached when the stack was built has no table: a key put there would not be found again.
        if self.payload.is_empty() {
            return Err(Full { keys: 0, capacity: 0 });
        }
        with_table!(&mut self.table, table => Insert::insert(table, &mut self.payload, key))
    }

    /// None if this kind of table cannot.
    pub(crate) fn remove(&mut self, key: Digest) -> Option<bool> {
        match &mut self.table {
            Table::Cuckoo(table) => Some(table.remove(&mut self.payload, key)),
            Table::Quotient(table) => Some(table.remove(&mut self.payload, key)),
            Table::SplitBlock(_) | Table::Classic(_) => None,
        }
    }

    pub(crate) fn encoded(&self) -> Encoded {
        let mut geometry = vec![];
        with_table!(&self.table, table => table.encode(&mut geometry));
        Encoded { geometry, payload: self.payload.clone().into() }
    }

    /// The share of strangers that it knows, as it is filled now.
    pub(crate) fn rate(&self) -> f64 {
        // A table without room refuses all.
        if self.payload.is_empty() { 0.0 } else { with_table!(&self.table, table => table.rate()) }
    }

    /// Reads a geometry; the payload comes later, and must be so many bytes long.
    pub(crate) fn decode(tag: u8, from: &mut Reader<'_>, salt: Salt) -> Result<(Table, u64), FormatError> {
        let table = match tag {
            SplitBlock::TAG => Table::SplitBlock(SplitBlock::decode(from, salt)?),
            Classic::TAG => Table::Classic(Classic::decode(from, salt)?),
            Cuckoo::TAG => Table::Cuckoo(Cuckoo::decode(from, salt)?),
            Quotient::TAG => Table::Quotient(Quotient::decode(from, salt)?),
            _ => return Err(FormatError::invalid(format!("directory: a layer that changes has tag {tag}"))),
        };
        let len = with_table!(&table, table => table.payload_len());
        Ok((table, len))
    }
}
