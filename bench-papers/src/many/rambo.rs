//! sets -> RAMBO: r partitions of the sets into b groups, a Bloom filter of the same size for every group.
//!
//! A query asks all b filters of every partition, takes the union of the groups that answer yes, and intersects the
//! unions. The intersection is done the quick way: the sets of the shortest union are looked up in the others. A group
//! without a set gets no filter, and the memory is divided among the rest, as in the paper.

use tamis_bench::stream::{place, scramble};

use super::filters::Filters;
use super::{Built, Index, Load, PROBES, digest, places, push_ones, salts};

struct Repetition {
    /// A filter for every group that has a set.
    filters: Filters,
    /// The sets of these groups.
    members: Vec<Vec<u32>>,
    group: Vec<u32>,
    salts: [tamis::internals::Salt; PROBES],
}

pub(crate) struct Rambo(Vec<Repetition>);

impl Rambo {
    /// `r` partitions into `b` groups, in `bits` together.
    pub(crate) fn build(load: &Load, bits: u64, b: usize, r: usize) -> Built {
        Ok(Box::new(Rambo::filters(load, bits, b, r)))
    }

    /// The same, not boxed.
    pub(crate) fn filters(load: &Load, bits: u64, b: usize, r: usize) -> Rambo {
        let mut repetitions: Vec<Repetition> = (0..r).map(|t| partition(load.sets, b, t)).collect();
        let filters: usize = repetitions.iter().map(|repetition| repetition.members.len()).sum();
        let m = (bits as usize / filters.max(1)).max(1);
        for repetition in &mut repetitions {
            repetition.filters = Filters::empty(repetition.members.len(), m);
            for (key, sets) in load.entries() {
                let places = places(digest(key), &repetition.salts, m);
                for &set in sets {
                    repetition.filters.insert(repetition.group[set as usize] as usize, places);
                }
            }
        }
        Rambo(repetitions)
    }

    pub(crate) fn loads(&self) -> Vec<f64> {
        self.0.iter().flat_map(|repetition| repetition.filters.loads()).collect()
    }
}

/// Groups the sets by a hash, and numbers the groups that have one.
fn partition(sets: usize, b: usize, repetition: usize) -> Repetition {
    let hash = |set: usize| place(scramble(set as u64 ^ scramble(repetition as u64 + 1)), b);
    let mut number = vec![u32::MAX; b];
    let mut members: Vec<Vec<u32>> = Vec::new();
    let group = |set: usize| {
        let number = &mut number[hash(set)];
        if *number == u32::MAX {
            *number = members.len() as u32;
            members.push(Vec::new());
        }
        members[*number as usize].push(set as u32);
        *number
    };
    let group = (0..sets).map(group).collect();
    Repetition { filters: Filters::empty(0, 1), members, group, salts: salts(repetition) }
}

impl Index for Rambo {
    fn bits(&self) -> u64 {
        self.0.iter().map(|repetition| (repetition.filters.len() * repetition.filters.m) as u64).sum()
    }

    fn find(&self, key: u64, sets: &mut Vec<u32>) {
        let digest = digest(key);
        sets.clear();
        // The groups of every partition that say yes, a bit for each.
        let width = self.0.iter().map(|repetition| repetition.members.len().div_ceil(64)).max().unwrap_or(0);
        let mut yes = vec![0u64; width * self.0.len()];
        let (mut least, mut fewest) = (0, usize::MAX);
        for (t, (repetition, yes)) in self.0.iter().zip(yes.chunks_mut(width.max(1))).enumerate() {
            let mut count = 0;
            repetition.filters.all(&places(digest, &repetition.salts, repetition.filters.m), |group| {
                yes[group / 64] |= 1 << (group % 64);
                count += 1;
            });
            if count == 0 {
                return;
            }
            if count < fewest {
                (least, fewest) = (t, count);
            }
        }
        let mut groups = Vec::with_capacity(fewest);
        for (i, &word) in yes[least * width..(least + 1) * width].iter().enumerate() {
            push_ones(word, 64 * i, &mut groups);
        }
        for group in groups {
            sets.extend_from_slice(&self.0[least].members[group as usize]);
        }
        for (t, repetition) in self.0.iter().enumerate().filter(|&(t, _)| t != least) {
            let yes = &yes[t * width..(t + 1) * width];
            sets.retain(|&set| {
                let group = repetition.group[set as usize];
                yes[group as usize / 64] >> (group % 64) & 1 != 0
            });
        }
        sets.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_in_one_group_of_every_partition() {
        for (sets, b) in [(1, 1), (10, 4), (200, 20), (7, 100)] {
            let partitions = [0, 1].map(|t| partition(sets, b, t));
            for p in &partitions {
                assert!(p.members.iter().all(|members| !members.is_empty()));
                let mut all: Vec<u32> = p.members.concat();
                all.sort_unstable();
                assert_eq!(all, (0..sets as u32).collect::<Vec<_>>());
                assert!((0..sets).all(|set| p.members[p.group[set] as usize].contains(&(set as u32))));
            }
            assert!(sets < 10 || partitions[0].group != partitions[1].group);
        }
    }
}
