//! a redb file -> the dictionary behind an adaptive filter, and the filter's reverse map.
//!
//! ```text
//!   values   key    -> value        the dictionary
//!   order    digest -> key          the keys in the order in which they get a new hash function
//!   names    name   -> digests      the reverse map; a multimap
//!   filter   ()     -> snapshot     the filter, as it was when all the rest was written
//! ```
//!
//! **Transactions.** One is open from the first access on, and everything is read and written through it. [`Store::commit`] puts the snapshot of the
//! filter into the same transaction: so whatever was committed last, tables and filter belong together. [`Store::abort`]
//! throws the tables back to that moment, and the caller takes up the filter from the snapshot that is there, as it does after a crash.
//! Nothing else has to be thought of: an error anywhere, even between two tables, ends in `abort`. The price is a snapshot
//! per commit; who commits often makes it worth while by putting more into each.

use std::path::Path;

use redb::{
    Database, Error, MultimapTableDefinition, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};
use tamis::adaptive::{Dictionary, ReverseMap};
use tamis::{Digest, Hasher, Key};

const VALUES: TableDefinition<'_, &str, u64> = TableDefinition::new("values");
const ORDER: TableDefinition<'_, (u64, u64), &str> = TableDefinition::new("order");
const NAMES: MultimapTableDefinition<'_, u64, (u64, u64)> = MultimapTableDefinition::new("names");
const FILTER: TableDefinition<'_, (), &[u8]> = TableDefinition::new("filter");

/// The database, and the transaction that is open.
pub(crate) struct Store {
    database: Database,
    batch: Option<WriteTransaction>,
    hasher: Hasher,
    /// Rows that were looked up.
    pub(crate) reads: u64,
    /// Rows that were written.
    pub(crate) writes: u64,
}

fn row(key: Digest) -> (u64, u64) {
    ((key.to_bits() >> 64) as u64, key.to_bits() as u64)
}

fn digest((hi, lo): (u64, u64)) -> Digest {
    Digest::from_bits(u128::from(hi) << 64 | u128::from(lo))
}

impl Store {
    /// Opens or creates a file. `hasher` is the filter's.
    pub(crate) fn open(file: &Path, hasher: Hasher) -> Result<Store, Error> {
        Ok(Store { database: Database::create(file)?, batch: None, hasher, reads: 0, writes: 0 })
    }

    /// The filter that was committed last, as a snapshot; none in a new file. It has the secret of the digests in the tables.
    pub(crate) fn snapshot(file: &Path) -> Result<Option<Vec<u8>>, Error> {
        let database = Database::create(file)?;
        let snapshot = match database.begin_read()?.open_table(FILTER) {
            Ok(table) => table.get(())?.map(|bytes| bytes.value().to_vec()),
            Err(redb::TableError::TableDoesNotExist(_)) => None,
            Err(e) => return Err(e.into()),
        };
        Ok(snapshot)
    }

    /// Makes all changes since the last commit last, and the filter with them.
    pub(crate) fn commit(&mut self, snapshot: &[u8]) -> Result<(), Error> {
        self.batch()?.open_table(FILTER)?.insert((), snapshot)?;
        match self.batch.take() {
            Some(batch) => Ok(batch.commit()?),
            None => Ok(()),
        }
    }

    /// Undoes all changes since the last commit; returns the filter that was committed with what is left.
    pub(crate) fn abort(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if let Some(batch) = self.batch.take() {
            batch.abort()?;
        }
        Ok(self.batch()?.open_table(FILTER)?.get(())?.map(|bytes| bytes.value().to_vec()))
    }

    fn batch(&mut self) -> Result<&WriteTransaction, Error> {
        let batch = match self.batch.take() {
            Some(batch) => batch,
            None => self.database.begin_write()?,
        };
        Ok(self.batch.insert(batch))
    }
}

impl ReverseMap for Store {
    type Error = Error;

    fn file(&mut self, key: Digest, name: u64) -> Result<(), Error> {
        self.writes += 1;
        let batch = self.batch()?;
        // The text follows with the value. The order must know the key at once: it may be its turn before that.
        batch.open_table(ORDER)?.insert(row(key), "")?;
        batch.open_multimap_table(NAMES)?.insert(name, row(key))?;
        Ok(())
    }

    fn unfile(&mut self, key: Digest, name: u64) -> Result<bool, Error> {
        self.writes += 1;
        let batch = self.batch()?;
        let filed = batch.open_multimap_table(NAMES)?.remove(name, row(key))?;
        if filed {
            batch.open_table(ORDER)?.remove(row(key))?;
        }
        Ok(filed)
    }

    fn refile(&mut self, key: Digest, from: u64, to: u64) -> Result<bool, Error> {
        self.writes += 1;
        let mut names = self.batch()?.open_multimap_table(NAMES)?;
        let filed = names.remove(from, row(key))?;
        if filed {
            names.insert(to, row(key))?;
        }
        Ok(filed)
    }

    fn filed(&mut self, name: u64, found: &mut Vec<Digest>) -> Result<(), Error> {
        self.reads += 1;
        let names = self.batch()?.open_multimap_table(NAMES)?;
        for key in redb::ReadableMultimapTable::get(&names, name)? {
            found.push(digest(key?.value()));
        }
        Ok(())
    }

    fn next(&mut self, after: Option<Digest>) -> Result<Option<Digest>, Error> {
        self.reads += 1;
        let order = self.batch()?.open_table(ORDER)?;
        let mut keys = order.range(after.map_or((0, 0), row)..)?;
        // The range begins with the key itself, if it is still there.
        loop {
            match keys.next().transpose()? {
                Some((key, _)) if Some(digest(key.value())) == after => continue,
                Some((key, _)) => return Ok(Some(digest(key.value()))),
                None => return Ok(None),
            }
        }
    }
}

impl Dictionary<str> for Store {
    type Value = u64;

    fn get(&mut self, key: &str) -> Result<Option<u64>, Error> {
        self.reads += 1;
        Ok(self.batch()?.open_table(VALUES)?.get(key)?.map(|value| value.value()))
    }

    fn insert(&mut self, key: &str, value: u64) -> Result<Option<u64>, Error> {
        self.writes += 1;
        let digest = key.digest(&self.hasher);
        let batch = self.batch()?;
        let old = batch.open_table(VALUES)?.insert(key, value)?.map(|value| value.value());
        if old.is_none() {
            batch.open_table(ORDER)?.insert(row(digest), key)?;
        }
        Ok(old)
    }

    fn remove(&mut self, key: &str) -> Result<Option<u64>, Error> {
        self.writes += 1;
        Ok(self.batch()?.open_table(VALUES)?.remove(key)?.map(|value| value.value()))
    }
}
