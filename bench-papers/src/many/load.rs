//! keys and the sets that hold them: what an index is built from and what its answers are compared with.

use std::ops::Range;

use tamis_bench::stream::{Stream, scramble};

/// Distinct keys, each with the sets that hold it.
pub(crate) struct Load {
    pub(crate) name: String,
    pub(crate) sets: usize,
    pub(crate) keys: Vec<u64>,
    /// The sets of key i are `ids[starts[i]..starts[i + 1]]`, ascending.
    starts: Vec<u32>,
    ids: Vec<u32>,
    /// Keys that were added to be asked for, by the number of their sets.
    pub(crate) probes: Vec<Probe>,
    /// Where absent keys come from.
    strangers: Stream,
}

/// Added keys in so many sets each.
pub(crate) struct Probe {
    pub(crate) sets: usize,
    pub(crate) keys: Range<usize>,
}

impl Load {
    /// A load of pairs of a key's number and a set's, in any order, all different. `strangers` must not draw a key.
    pub(crate) fn new(
        name: impl Into<String>,
        sets: usize,
        keys: Vec<u64>,
        pairs: impl Iterator<Item = (u32, u32)> + Clone,
        strangers: Stream,
    ) -> Load {
        let mut starts = vec![0u32; keys.len() + 1];
        pairs.clone().for_each(|(key, _)| starts[key as usize + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut ids = vec![0; starts[keys.len()] as usize];
        for (key, set) in pairs {
            let next = &mut next[key as usize];
            ids[*next as usize] = set;
            *next += 1;
        }
        let mut load = Load { name: name.into(), sets, keys, starts, ids, probes: Vec::new(), strangers };
        for i in 0..load.keys.len() {
            let range = load.range(i);
            load.ids[range].sort_unstable();
        }
        load
    }

    /// A load whose lists are in order already.
    pub(crate) fn from_lists(
        name: impl Into<String>,
        sets: usize,
        (keys, starts, ids): (Vec<u64>, Vec<u32>, Vec<u32>),
        strangers: Stream,
    ) -> Load {
        Load { name: name.into(), sets, keys, starts, ids, probes: Vec::new(), strangers }
    }

    fn range(&self, key: usize) -> Range<usize> {
        self.starts[key] as usize..self.starts[key + 1] as usize
    }

    pub(crate) fn pairs(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn sets_of(&self, i: usize) -> &[u32] {
        &self.ids[self.range(i)]
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (u64, &[u32])> {
        self.keys.iter().enumerate().map(|(i, &key)| (key, self.sets_of(i)))
    }

    pub(crate) fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.sets];
        self.ids.iter().for_each(|&set| sizes[set as usize] += 1);
        sizes
    }

    /// The first `n` of an endless list of keys in no set.
    pub(crate) fn absent(&self, n: usize) -> Vec<u64> {
        self.strangers.clone().take(n)
    }

    /// `n` keys, drawn with repetition.
    pub(crate) fn present(&self, n: usize, seed: u64) -> Vec<u64> {
        Stream::new(seed).sample(&self.keys, n)
    }

    /// Adds `n` new keys in `v` random sets each, for every `v`: the queries of \[CSC\] 6.4.
    pub(crate) fn with_probes(mut self, n: usize, multiplicities: &[usize], seed: u64) -> Load {
        let mut dice = Stream::new(seed ^ 0x70_726f_6265);
        for &v in multiplicities.iter().filter(|&&v| v <= self.sets) {
            let first = self.keys.len();
            for _ in 0..n {
                self.keys.push(self.strangers.draw());
                let start = self.ids.len();
                while self.ids.len() < start + v {
                    let set = dice.below(self.sets) as u32;
                    if !self.ids[start..].contains(&set) {
                        self.ids.push(set);
                    }
                }
                self.ids[start..].sort_unstable();
                self.starts.push(self.ids.len() as u32);
            }
            self.probes.push(Probe { sets: v, keys: first..self.keys.len() });
        }
        self
    }

    /// The same pairs in the first so many sets: a pair of another set becomes one of another key. A table of all pairs, of whose
    /// rows only the first sets are read, is as full and as large.
    pub(crate) fn folded(&self, sets: usize) -> Load {
        let (mut keys, mut pairs) = (Vec::new(), Vec::with_capacity(self.pairs()));
        for (key, ids) in self.entries() {
            let mut last = None;
            for &id in ids {
                let (part, id) = (id / sets as u32, id % sets as u32);
                if last != Some(part) {
                    keys.push(key ^ scramble(part.into()) ^ scramble(0));
                    last = Some(part);
                }
                pairs.push((keys.len() as u32 - 1, id));
            }
        }
        Load::new(self.name.clone(), sets, keys, pairs.into_iter(), self.strangers.clone())
    }

    /// Name and size, for the head of a table.
    pub(crate) fn describe(&self) -> String {
        let mut sizes = self.sizes();
        sizes.sort_unstable();
        let probes: usize = self.probes.iter().map(|probe| probe.keys.len()).sum();
        let probes = if probes > 0 { format!(", {probes} of them added as queries") } else { String::new() };
        format!(
            "{}: {} sets of {} to {} keys (median {}), {} keys{probes}, {} pairs, {:.2} sets per key",
            self.name,
            self.sets,
            sizes.first().unwrap_or(&0),
            sizes.last().unwrap_or(&0),
            sizes.get(sizes.len() / 2).unwrap_or(&0),
            self.keys.len(),
            self.pairs(),
            self.pairs() as f64 / self.keys.len().max(1) as f64
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_in_any_order_become_lists() {
        let pairs = [(2, 1), (0, 3), (2, 0), (0, 1), (1, 2), (0, 0)];
        let load = Load::new("x", 4, vec![7, 8, 9], pairs.into_iter(), Stream::new(1));
        assert_eq!(load.entries().collect::<Vec<_>>(), [(7, &[0, 1, 3][..]), (8, &[2]), (9, &[0, 1])]);
        assert_eq!((load.pairs(), load.sizes()), (6, vec![2, 2, 1, 1]));
    }

    #[test]
    fn folded_pairs_are_as_many() {
        let load = Load::new("x", 7, vec![7, 8], [(0, 0), (0, 1), (0, 5), (0, 6), (1, 3)].into_iter(), Stream::new(1));
        let folded = load.folded(3);
        let lists: Vec<&[u32]> = folded.entries().map(|(_, sets)| sets).collect();
        assert_eq!((folded.sets, folded.pairs(), lists), (3, 5, vec![&[0, 1][..], &[2], &[0], &[0]]));
        assert_eq!(folded.keys[0], 7);
        assert!(load.folded(7).entries().eq(load.entries()));
    }

    #[test]
    fn probes_are_new_keys_in_so_many_sets() {
        let load =
            Load::new("x", 20, vec![7], [(0, 3)].into_iter(), Stream::new(1)).with_probes(50, &[1, 4, 20, 21], 1);
        assert_eq!(
            load.probes.iter().map(|p| (p.sets, p.keys.clone())).collect::<Vec<_>>(),
            [(1, 1..51), (4, 51..101), (20, 101..151)]
        );
        for probe in &load.probes {
            for key in probe.keys.clone() {
                let sets = load.sets_of(key);
                assert_eq!(sets.len(), probe.sets);
                assert!(sets.is_sorted_by(|a, b| a < b));
            }
        }
        let absent = load.absent(1000);
        assert!(load.keys.iter().all(|key| !absent.contains(key)));
    }
}
