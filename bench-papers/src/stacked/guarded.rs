//! keys -> a file of their records on disk, which is read only where a filter says yes.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Error, Write};
use std::os::unix::fs::FileExt;

use tamis_bench::measure::{cpu, median, nanos_each};

/// Bytes of a record: the key, and what it stands for.
const RECORD: usize = 64;
const PAGE: usize = 4096;

/// Records in the order of their keys. The first key of every page is in memory, so a lookup reads one page.
pub(super) struct Guarded {
    file: File,
    fences: Vec<u64>,
    records: usize,
}

/// What a list of queries took.
pub(super) struct Cost {
    /// Processor time per query, of filter, search and the kernel's part of reading.
    pub(super) nanos: f64,
    pub(super) reads: f64,
}

impl Guarded {
    /// Writes the records of these keys to a temporary file.
    pub(super) fn new(keys: &[u64]) -> Result<Guarded, Error> {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        let mut out = BufWriter::new(tempfile::tempfile()?);
        for key in &keys {
            let mut record = [0; RECORD];
            record[..8].copy_from_slice(&key.to_le_bytes());
            record[8..16].copy_from_slice(&key.rotate_left(32).to_le_bytes());
            out.write_all(&record)?;
        }
        let file = out.into_inner()?;
        Ok(Guarded { file, fences: keys.iter().step_by(PAGE / RECORD).copied().collect(), records: keys.len() })
    }

    /// Looks for a key in the one page where it may be.
    pub(super) fn lookup(&self, key: u64) -> Result<bool, Error> {
        let page = self.fences.partition_point(|&first| first <= key);
        let Some(page) = page.checked_sub(1) else { return Ok(false) };
        let bytes = (self.records * RECORD - page * PAGE).min(PAGE);
        let mut buffer = [0; PAGE];
        self.file.read_exact_at(&mut buffer[..bytes], (page * PAGE) as u64)?;
        Ok(buffer[..bytes].chunks(RECORD).any(|record| record[..8] == key.to_le_bytes()))
    }

    /// Asks the filter, and the file where that says yes; the median of some rounds.
    pub(super) fn cost(&self, queries: &[u64], rounds: usize, passes: impl Fn(usize) -> bool) -> Result<Cost, Error> {
        let round = |_| {
            let asked = queries.iter().enumerate().filter(|(at, _)| passes(*at));
            let mut found = asked.map(|(_, &query)| self.lookup(query));
            let (reads, time) = cpu(|| found.try_fold(0, |reads, found| black_box(found).map(|_| reads + 1)));
            reads.map(|reads| (nanos_each(time, queries.len().max(1)), reads))
        };
        let rounds = (0..rounds.max(1)).map(round).collect::<Result<Vec<(f64, usize)>, _>>()?;
        let nanos = median(rounds.iter().map(|round| round.0)).unwrap_or(0.0);
        Ok(Cost { nanos, reads: rounds[0].1 as f64 / queries.len().max(1) as f64 })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tamis_bench::stream::Stream;

    #[test]
    fn finds_all_records_and_no_others() {
        let mut stream = Stream::new(3);
        let (keys, others) = (stream.take(1000), stream.take(1000));
        let file = Guarded::new(&keys).unwrap();
        assert!(keys.iter().all(|&key| file.lookup(key).unwrap()));
        assert!(others.iter().chain(&[0, u64::MAX]).all(|&key| !file.lookup(key).unwrap()));
        let filter = tamis::build(&keys).fpr(0.01).finish().unwrap();
        let reads = |list: &[u64]| file.cost(list, 1, |at| filter.contains(list[at]).unwrap()).unwrap().reads;
        assert_eq!(reads(&keys), 1.0);
        assert!(reads(&others) < 0.05);
    }
}
