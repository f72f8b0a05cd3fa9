//! keys -> one of two places each: the cuckoo table of the paper, two tables with buckets of one slot.

use tamis_bench::stream::{place, scramble};

const EMPTY: u64 = 0;

/// Two tables of as many buckets of one slot; keys are random numbers, none of them 0.
#[derive(Clone)]
pub(super) struct Pair {
    tables: [Vec<u64>; 2],
}

/// The bucket of a key in one of two tables with so many.
pub(super) fn bucket(key: u64, second: bool, buckets: usize) -> usize {
    let hash = scramble(key ^ if second { 0x9e37_79b9_7f4a_7c15 } else { 0x3c6e_f372_fe94_f82b });
    place(hash, buckets)
}

impl Pair {
    pub(super) fn new(buckets: usize) -> Pair {
        Pair { tables: [vec![EMPTY; buckets], vec![EMPTY; buckets]] }
    }

    fn at(&mut self, key: u64, second: bool) -> &mut u64 {
        let table = &mut self.tables[usize::from(second)];
        let at = bucket(key, second, table.len());
        &mut table[at]
    }

    pub(super) fn is_second(&self, key: u64) -> bool {
        self.tables[1][bucket(key, true, self.tables[1].len())] == key
    }

    /// The paper's insertion, first table first; `moved` learns every placement. A walk that does not end is undone.
    pub(super) fn insert(&mut self, key: u64, mut moved: impl FnMut(u64, bool)) -> bool {
        let (mut carried, mut second, mut log) = (key, false, Vec::new());
        for _ in 0..500 {
            let old = std::mem::replace(self.at(carried, second), carried);
            log.push((carried, second));
            if old == EMPTY {
                log.into_iter().for_each(|(key, second)| moved(key, second));
                return true;
            }
            (carried, second) = (old, !second);
        }
        for (key, second) in log.into_iter().rev() {
            *self.at(key, second) = carried;
            carried = key;
        }
        false
    }

    pub(super) fn remove(&mut self, key: u64) {
        let second = self.is_second(key);
        *self.at(key, second) = EMPTY;
    }

    pub(super) fn seconds(&self) -> usize {
        self.keys(true).count()
    }

    pub(super) fn keys(&self, second: bool) -> impl Iterator<Item = u64> + '_ {
        self.tables[usize::from(second)].iter().copied().filter(|&key| key != EMPTY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_bench::stream::Stream;

    #[test]
    fn a_walk_without_an_end_is_undone() {
        let mut pair = Pair::new(4);
        let keys = Stream::new(1).take(9);
        let mut held = Vec::new();
        for &key in &keys {
            if pair.insert(key, |_, _| ()) {
                held.push(key);
            }
            let mut found: Vec<u64> = pair.keys(false).chain(pair.keys(true)).collect();
            found.sort_unstable();
            let mut expected = held.clone();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
        assert!(held.len() < keys.len());
    }
}
