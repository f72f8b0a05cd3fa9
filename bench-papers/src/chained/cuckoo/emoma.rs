//! keys -> buckets of several slots, and counters that say which: EMOMA, the rival of the cuckoo predictor.
//!
//! Every bucket of the first table has a block of four-bit counters. A key of the second table is counted in the block of its *first* bucket, and
//! a key whose counters are all above zero is read in the second table: so it must be there. Keys that this drags along, or that find no place, are kept in
//! a stash. The insertion is simpler than that of its authors (Pontarelli, Reviriego, Mitzenmacher 2018), so the size of the stash is ours.

use tamis_bench::stream::{Stream, scramble};

use super::pair::bucket;

const MAX_STEPS: usize = 1000;

pub(super) struct Emoma {
    tables: [Vec<Vec<u64>>; 2],
    slots: usize,
    block: usize,
    hashes: u32,
    counters: Vec<u8>,
    pub(super) stash: Vec<u64>,
    random: Stream,
}

impl Emoma {
    pub(super) fn new(buckets: usize, slots: usize, block: usize, hashes: u32) -> Emoma {
        let tables = [vec![Vec::new(); buckets / 2], vec![Vec::new(); buckets / 2]];
        let counters = vec![0; buckets / 2 * block];
        Emoma { tables, slots, block, hashes, counters, stash: Vec::new(), random: Stream::new(77) }
    }

    pub(super) fn bits(&self) -> usize {
        4 * self.counters.len()
    }

    pub(super) fn bucket(&self, key: u64, second: bool) -> usize {
        bucket(key, second, self.tables[0].len())
    }

    pub(super) fn held(&self, second: bool, bucket: usize) -> &[u64] {
        &self.tables[usize::from(second)][bucket]
    }

    /// The counters of a key; one may come twice and is counted twice.
    fn spots(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        let (start, block, hash) = (self.bucket(key, false) * self.block, self.block as u64, scramble(!key));
        (0..self.hashes).map(move |i| start + ((((hash >> (16 * i)) & 0xffff) * block) >> 16) as usize)
    }

    /// The prediction, which is never wrong for a key that is not in the stash.
    pub(super) fn is_second(&self, key: u64) -> bool {
        self.spots(key).all(|spot| self.counters[spot] > 0)
    }

    fn count(&mut self, key: u64) {
        self.spots(key).for_each(|spot| self.counters[spot] += 1);
    }

    fn uncount(&mut self, key: u64) {
        self.spots(key).for_each(|spot| self.counters[spot] -= 1);
    }

    fn pick(&mut self, from: &[u64]) -> Option<u64> {
        from.get((self.random.draw() % from.len().max(1) as u64) as usize).copied()
    }

    /// Tries to place a key of the stash again.
    pub(super) fn retry(&mut self) {
        let at = self.random.draw() as usize % self.stash.len().max(1);
        if at < self.stash.len() {
            let key = self.stash.swap_remove(at);
            self.insert(key);
        }
    }

    pub(super) fn insert(&mut self, key: u64) {
        let mut open = vec![key];
        let mut steps = 0;
        while let Some(key) = open.pop() {
            steps += 1;
            let first = self.bucket(key, false);
            if steps > MAX_STEPS {
                self.stash.push(key);
            } else if self.is_second(key) {
                self.put_second(key, &mut open);
            } else if self.tables[0][first].len() < self.slots {
                self.tables[0][first].push(key);
            } else {
                let out = self.cheapest(first, key);
                self.tables[0][first].retain(|&other| other != out);
                if out != key {
                    self.tables[0][first].push(key);
                }
                self.put_second(out, &mut open);
            }
        }
    }

    /// Of a full bucket and one more key, the one that drags the fewest others into the second table.
    fn cheapest(&mut self, first: usize, key: u64) -> u64 {
        let mut pool = self.tables[0][first].clone();
        pool.push(key);
        self.random.shuffle(&mut pool);
        let cost = |emoma: &mut Emoma, out: u64| {
            emoma.count(out);
            let dragged = pool.iter().filter(|&&other| other != out && emoma.is_second(other)).count();
            emoma.uncount(out);
            2 * dragged + usize::from(emoma.tables[1][emoma.bucket(out, true)].len() == emoma.slots)
        };
        pool.iter().map(|&out| (cost(self, out), out)).min_by_key(|(cost, _)| *cost).map_or(key, |(_, out)| out)
    }

    fn put_second(&mut self, key: u64, open: &mut Vec<u64>) {
        let at = self.bucket(key, true);
        if self.tables[1][at].len() == self.slots {
            // Only a key that would be read in the first table may go there.
            let mut free = self.tables[1][at].clone();
            free.retain(|&other| {
                self.uncount(other);
                let free = !self.is_second(other);
                self.count(other);
                free
            });
            let Some(out) = self.pick(&free) else {
                self.stash.push(key);
                return;
            };
            self.tables[1][at].retain(|&other| other != out);
            self.uncount(out);
            open.push(out);
        }
        self.tables[1][at].push(key);
        self.count(key);
        let first = self.bucket(key, false);
        let (dragged, stay): (Vec<u64>, Vec<u64>) =
            std::mem::take(&mut self.tables[0][first]).into_iter().partition(|&other| self.is_second(other));
        self.tables[0][first] = stay;
        open.extend(dragged);
    }

    pub(super) fn remove(&mut self, key: u64) {
        if let Some(at) = self.stash.iter().position(|&other| other == key) {
            self.stash.swap_remove(at);
            return;
        }
        let second = self.is_second(key);
        let at = self.bucket(key, second);
        self.tables[usize::from(second)][at].retain(|&other| other != key);
        if second {
            self.uncount(key);
        }
    }

    /// Keys that are not where the prediction is, without the stash.
    pub(super) fn wrong(&self, keys: &[u64]) -> usize {
        let there = |key: u64| {
            let second = self.is_second(key);
            self.held(second, self.bucket(key, second)).contains(&key)
        };
        keys.iter().filter(|&&key| !there(key)).count() - self.stash.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Through insertions and removals every key is where it is predicted, or in the stash.
    #[test]
    fn predictions_are_never_wrong() {
        let mut keys = Stream::new(3).take(3600);
        let mut emoma = Emoma::new(1000, 4, 8, 2);
        keys.iter().for_each(|&key| emoma.insert(key));
        assert!(emoma.wrong(&keys) == 0 && !emoma.stash.is_empty() && emoma.stash.len() < 360);
        for key in Stream::new(4).take(2000) {
            let at = (key % 3600) as usize;
            emoma.remove(keys[at]);
            keys[at] = key;
            emoma.insert(key);
        }
        assert_eq!(emoma.wrong(&keys), 0);
        keys.iter().for_each(|&key| emoma.remove(key));
        assert!(emoma.stash.is_empty() && emoma.counters.iter().all(|&counter| counter == 0));
    }
}
