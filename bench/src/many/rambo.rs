//! sets -> RAMBO: r partitions of the sets into b groups, a Bloom filter of the same size for every group.
//!
//! A query asks all b filters of every partition, takes the union of the groups that answer yes, and intersects the
//! unions. The intersection is done the quick way: the sets of the shortest union are looked up in the others. A group
//! without a set gets no filter, and the memory is divided among the rest, as in the paper.

use super::bits::Bits;
use super::{Built, Index, Load, PROBES, digest, place, places, salts};
use crate::stream::scramble;

/// One partition.
struct Repetition {
    /// A filter for every group that has a set.
    filters: Vec<Bits>,
    /// The sets of these groups.
    members: Vec<Vec<u32>>,
    /// The group of every set.
    group: Vec<u32>,
    salts: [tamis::Salt; PROBES],
}

/// All of them.
pub(crate) struct Rambo {
    repetitions: Vec<Repetition>,
    m: usize,
}

impl Rambo {
    /// `r` partitions into `b` groups, in `bits` together.
    pub(crate) fn build(load: &Load, bits: u64, b: usize, r: usize) -> Built {
        Ok(Box::new(Rambo::filters(load, bits, b, r)))
    }

    /// The same, with its filters to be seen.
    pub(crate) fn filters(load: &Load, bits: u64, b: usize, r: usize) -> Rambo {
        let mut repetitions: Vec<Repetition> = (0..r).map(|t| partition(load.sets, b, t)).collect();
        let filters: usize = repetitions.iter().map(|repetition| repetition.members.len()).sum();
        let m = (bits as usize / filters.max(1)).max(1);
        for repetition in &mut repetitions {
            repetition.filters = repetition.members.iter().map(|_| Bits::zeros(m)).collect();
            for (key, sets) in load.entries() {
                let places = places(digest(key), &repetition.salts, m);
                for &set in sets {
                    let group = repetition.group[set as usize] as usize;
                    places.into_iter().for_each(|place| repetition.filters[group].set(place));
                }
            }
        }
        Rambo { repetitions, m }
    }

    /// The share of ones of every filter.
    pub(crate) fn loads(&self) -> Vec<f64> {
        let filters = self.repetitions.iter().flat_map(|repetition| &repetition.filters);
        filters.map(|filter| super::bigsi::share(filter, self.m)).collect()
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
    Repetition { filters: Vec::new(), members, group, salts: salts(repetition) }
}

/// The groups of one partition that say yes: as a list, and as a set to look up in.
struct Yes {
    list: Vec<u32>,
    bits: Bits,
}

impl Index for Rambo {
    fn bits(&self) -> u64 {
        self.repetitions.iter().map(|repetition| (repetition.filters.len() * self.m) as u64).sum()
    }

    fn find(&self, key: u64, sets: &mut Vec<u32>) {
        let digest = digest(key);
        sets.clear();
        let mut answers = Vec::with_capacity(self.repetitions.len());
        for repetition in &self.repetitions {
            let places = places(digest, &repetition.salts, self.m);
            let mut yes = Yes { list: Vec::new(), bits: Bits::zeros(repetition.filters.len()) };
            for (group, filter) in repetition.filters.iter().enumerate() {
                if places.iter().all(|&place| filter.get(place)) {
                    yes.list.push(group as u32);
                    yes.bits.set(group);
                }
            }
            if yes.list.is_empty() {
                return;
            }
            answers.push(yes);
        }
        let Some(least) = (0..answers.len()).min_by_key(|&t| answers[t].list.len()) else { return };
        for &group in &answers[least].list {
            sets.extend_from_slice(&self.repetitions[least].members[group as usize]);
        }
        for (t, (repetition, yes)) in self.repetitions.iter().zip(&answers).enumerate() {
            if t != least {
                sets.retain(|&set| yes.bits.get(repetition.group[set as usize] as usize));
            }
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
