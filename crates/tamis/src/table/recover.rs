//! a store that a table has filled -> the table: entries counted, copies of moved entries removed, the predictor built.
//!
//! A chain of kicks copies an entry before its slot is overwritten. So a table that is dropped in between leaves an entry twice, in its two
//! buckets, and the copies are equal: before an entry changes or goes, its copies do ([`Table::fill_holes`]). Which of them stays does not matter.

use std::collections::HashSet;

use super::shape::Place;
use super::store::Store;
use super::{Error, Table};
use crate::error::FormatError;
use crate::hash::{Digest, Key};

impl<K: Key + Eq + Clone, V: Clone, S: Store<K, V>> Table<K, V, S> {
    /// Empties slots whose entry was copied elsewhere.
    pub(super) fn fill_holes(&mut self) -> Result<(), Error> {
        while let Some(&Place { bucket, slot }) = self.holes.last() {
            self.store.write(bucket, slot, None)?;
            self.holes.pop();
        }
        Ok(())
    }

    /// Counts what is in the store, and builds the predictor.
    pub(super) fn recover(&mut self) -> Result<(), Error> {
        // Digests in the first table whose second bucket is not read yet would be all of them: those of the second table are few.
        let mut seen: HashSet<Digest> = HashSet::new();
        for bucket in (0..self.shape.buckets()).rev() {
            let second = self.shape.is_second(bucket);
            let (slots, mut copies, mut keys) = (self.store.read(bucket)?, vec![], 0);
            for (slot, (key, _)) in self.entries(bucket, &slots) {
                let digest = key.digest(&self.hasher);
                if self.shape.bucket(digest, second) != bucket {
                    let reason = format!(
                        "table: a key in bucket {bucket} belongs elsewhere; expected the layout and the hash of the table that filled the store"
                    );
                    return Err(FormatError::invalid(reason).into());
                }
                let new = if second { seen.insert(digest) } else { !seen.contains(&digest) };
                if new { keys += 1 } else { copies.push(Place { bucket, slot }) }
            }
            drop(slots);
            self.keys[usize::from(second)] += keys;
            self.holes.append(&mut copies);
        }
        self.fill_holes()?;
        let [first, second] = self.keys;
        self.train(self.choice.takes_cascade(first, second, false))
    }
}
