//! the number of a set -> the partition it belongs to, in every repetition, and back.
//!
//! With one repetition every set has a place of its own in a row: its number. With several, the sets share fewer places, and each
//! repetition deals them out in another way ([CSC] section 4.2): sets that meet in one repetition part in the next.
//!
//! ```text
//!   repetition 0    partition 0: {3, 8}    partition 1: {0, 5, 6}    partition 2: {1, 2, 4, 7}
//!   repetition 1    partition 0: {0, 1, 8} partition 1: {2, 3}       partition 2: {4, 5, 6, 7}
//! ```
//!
//! Nothing of this is stored in a file: a partition is a hash of the set's number and the repetition.

use std::fmt;

#[cfg(feature = "build")]
use crate::error::BuildError;
use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::scramble;

pub(crate) const MAX_REPETITIONS: u32 = 8;
/// The most partitions; the members of all of them are tabled in memory.
pub(crate) const MAX_PARTITIONS: u32 = 1 << 20;

/// New sets that are put in their places one by one; more of them and the tables are made again.
const MAX_INSERTED_SETS: u32 = 16;

/// How many tables a sketch has, and how many partitions each of them: one table has none, and a place for every set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Repeats {
    pub(crate) repetitions: u32,
    pub(crate) partitions: u32,
}

impl Repeats {
    #[cfg(feature = "build")]
    pub(crate) fn new(structure: &'static str, repetitions: u32, partitions: u32) -> Result<Repeats, BuildError> {
        BuildError::check_size(structure, "repetitions", repetitions.into(), 1..=MAX_REPETITIONS.into())?;
        let (least, most) = if repetitions == 1 { (0, 0) } else { (1, MAX_PARTITIONS) };
        match (least..=most).contains(&partitions) {
            true => Ok(Repeats { repetitions, partitions }),
            false => Err(BuildError::Partitions { structure, partitions, repetitions, least, most }),
        }
    }

    /// Directory: both numbers (varints).
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        put_varint(out, self.repetitions.into());
        put_varint(out, self.partitions.into());
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Result<Repeats, FormatError> {
        let repetitions = from.within("repetitions", 1..=MAX_REPETITIONS.into())? as u32;
        let allowed = if repetitions == 1 { 0..=0 } else { 1..=MAX_PARTITIONS.into() };
        Ok(Repeats { repetitions, partitions: from.within("partitions", allowed)? as u32 })
    }

    /// Places in a row for so many sets.
    pub(crate) fn width(self, sets: u32) -> u32 {
        if self.partitions == 0 { sets } else { self.partitions }
    }

    /// The partitions of so many sets, tabled if that takes no more than `max_bytes`.
    pub(crate) fn groups(self, sets: u32, max_bytes: u64) -> Groups {
        match self.table_bytes(sets) <= max_bytes {
            true => Groups::new(self.repetitions, self.partitions, sets),
            false => Groups::hashed(self.repetitions, self.partitions, sets),
        }
    }

    /// Bytes that the tables of partitions take, and what is needed to make one of them.
    pub(crate) fn table_bytes(self, sets: u32) -> u64 {
        let starts = 4 * (u64::from(self.partitions) + 1);
        let table = size_of::<Table>() as u64 + 12 * u64::from(sets) + starts;
        if self.repetitions <= 1 { 0 } else { u64::from(self.repetitions) * table + starts }
    }
}

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.repetitions {
            1 => Ok(()),
            repetitions => write!(f, ", {repetitions} repetitions of {} partitions", self.partitions),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Groups {
    /// 0 if there is one repetition.
    partitions: u32,
    pub(crate) sets: u32,
    /// One for each repetition; none if there is one, or if tables would take more than they are worth.
    tables: Vec<Table>,
}

/// The members of the partitions of one repetition.
#[derive(Debug, Clone)]
struct Table {
    /// Where each partition's members start, and where the last one's end.
    starts: Vec<u32>,
    /// All sets, those of a partition side by side and ascending.
    members: Vec<u32>,
    /// The partition in the next repetition of every member, in the same order: what a candidate is tested with first.
    next: Vec<u32>,
    /// The partition of every set: looked up more quickly than hashed.
    places: Vec<u32>,
}

impl Groups {
    /// The partitions of `sets` sets; `partitions` has no meaning if there is one repetition.
    pub(crate) fn new(repetitions: u32, partitions: u32, sets: u32) -> Groups {
        let repetitions = repetitions.min(MAX_REPETITIONS);
        if repetitions <= 1 {
            return Groups { partitions: 0, sets, tables: vec![] };
        }
        let partitions = partitions.clamp(1, MAX_PARTITIONS);
        let tables = (0..repetitions).map(|t| Table::new([t, (t + 1) % repetitions], partitions, sets)).collect();
        Groups { partitions, sets, tables }
    }

    /// The same without tables: slower, and takes no memory. A small file may speak of many sets.
    pub(crate) fn hashed(repetitions: u32, partitions: u32, sets: u32) -> Groups {
        let partitions = if repetitions <= 1 { 0 } else { partitions.clamp(1, MAX_PARTITIONS) };
        Groups { partitions, sets, tables: vec![] }
    }

    /// Whether members are not known, only offsets.
    #[inline(always)]
    pub(crate) fn is_hashed(&self) -> bool {
        self.partitions > 0 && self.tables.is_empty()
    }

    /// Places in a row: one per set, or one per partition.
    pub(crate) fn width(&self) -> u32 {
        if self.partitions == 0 { self.sets } else { self.partitions }
    }

    /// Makes it `sets` sets in all; those that are there stay where they are.
    pub(crate) fn grow(&mut self, sets: u32) {
        let repetitions = self.tables.len() as u32;
        for (t, table) in (0..).zip(&mut self.tables) {
            let pair = [t, (t + 1) % repetitions];
            if sets.saturating_sub(self.sets) > MAX_INSERTED_SETS {
                *table = Table::new(pair, self.partitions, sets);
            } else {
                (self.sets..sets).for_each(|id| table.insert(pair.map(|t| partition(t, id, self.partitions)), id));
            }
        }
        self.sets = self.sets.max(sets);
    }

    /// The place of a set in the rows of repetition `t`.
    #[inline(always)]
    pub(crate) fn offset(&self, t: u32, id: u32) -> u32 {
        if self.partitions == 0 {
            return id;
        }
        match self.tables.get(t as usize).and_then(|table| table.places.get(id as usize)) {
            Some(&place) => place,
            None => partition(t, id, self.partitions),
        }
    }

    /// The sets of a partition, ascending, and the partition of each in the next repetition (the first follows the last); none if there is one
    /// repetition.
    #[inline(always)]
    pub(crate) fn members(&self, t: u32, partition: u32) -> (&[u32], &[u32]) {
        let Some(table) = self.tables.get(t as usize) else { return (&[], &[]) };
        let at = partition as usize;
        let (Some(&start), Some(&end)) = (table.starts.get(at), table.starts.get(at + 1)) else { return (&[], &[]) };
        let range = start as usize..end as usize;
        (table.members.get(range.clone()).unwrap_or(&[]), table.next.get(range).unwrap_or(&[]))
    }
}

#[inline(always)]
fn partition(t: u32, id: u32, partitions: u32) -> u32 {
    let hash = scramble(u64::from(t) << 32 | u64::from(id));
    (((hash >> 32) * u64::from(partitions)) >> 32) as u32
}

impl Table {
    /// Counts, then deals out.
    fn new([t, after]: [u32; 2], partitions: u32, sets: u32) -> Table {
        let mut starts = vec![0u32; partitions as usize + 1];
        let places: Vec<u32> = (0..sets).map(|id| partition(t, id, partitions)).collect();
        places.iter().for_each(|&place| starts[place as usize + 1] += 1);
        for p in 0..partitions as usize {
            starts[p + 1] += starts[p];
        }
        let mut members = vec![0; sets as usize];
        let mut free = starts.clone();
        for (id, &place) in (0..).zip(&places) {
            let free = &mut free[place as usize];
            members[*free as usize] = id;
            *free += 1;
        }
        let next = members.iter().map(|&id| partition(after, id, partitions)).collect();
        Table { starts, members, next, places }
    }

    /// Puts the newest set behind the others of its partition.
    fn insert(&mut self, [partition, after]: [u32; 2], id: u32) {
        let (_, later) = self.starts.split_at_mut(partition as usize + 1);
        self.members.insert(later[0] as usize, id);
        self.next.insert(later[0] as usize, after);
        self.places.push(partition);
        later.iter_mut().for_each(|start| *start += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_the_sets_with_that_offset() {
        for (repetitions, partitions, sets) in [(2, 1, 5), (2, 7, 0), (3, 10, 1000), (8, 300, 40)] {
            let groups = Groups::new(repetitions, partitions, sets);
            for t in 0..repetitions {
                let mut all: Vec<u32> = vec![];
                for p in 0..partitions {
                    let (members, next) = groups.members(t, p);
                    assert!(
                        members.iter().zip(next).all(|(&id, &place)| groups.offset((t + 1) % repetitions, id) == place)
                    );
                    assert_eq!(members.len(), next.len());
                    assert!(members.is_sorted() && members.iter().all(|&id| groups.offset(t, id) == p));
                    all.extend(members);
                }
                all.sort_unstable();
                assert!(all.into_iter().eq(0..sets));
                assert!(groups.members(t, partitions).0.is_empty());
            }
            assert_eq!(groups.width(), partitions);
        }
    }

    #[test]
    fn hashed_offsets_are_the_tabled_ones() {
        let (tabled, hashed) = (Groups::new(3, 40, 500), Groups::hashed(3, 40, 500));
        assert!(hashed.is_hashed() && !tabled.is_hashed() && !Groups::hashed(1, 0, 5).is_hashed());
        assert_eq!((hashed.width(), hashed.sets), (tabled.width(), tabled.sets));
        assert!((0..3).all(|t| (0..500).all(|id| hashed.offset(t, id) == tabled.offset(t, id))));
    }

    #[test]
    fn alone_a_set_is_its_own_place() {
        let groups = Groups::new(1, 0, 99);
        assert_eq!((groups.sets, groups.width(), groups.offset(0, 57)), (99, 99, 57));
    }

    /// One by one or at once: the same tables.
    #[test]
    fn growing_is_starting_larger() {
        for repetitions in [1, 2, 4] {
            for steps in [1, 5, 100] {
                let mut grown = Groups::new(repetitions, 13, 3);
                let mut sets = 3;
                while sets < 300 {
                    sets += steps;
                    grown.grow(sets);
                    assert_eq!(format!("{grown:?}"), format!("{:?}", Groups::new(repetitions, 13, sets)));
                }
                grown.grow(10);
                assert_eq!(grown.sets, sets, "it never shrinks");
            }
        }
    }

    /// Bodies in files were filled by these offsets.
    #[test]
    fn offsets_are_fixed_for_ever() {
        let groups = Groups::new(3, 245, 0);
        let offsets = [(0, 0), (1, 0), (2, 0), (0, 1), (2, 2455)].map(|(t, id)| groups.offset(t, id));
        assert_eq!(offsets, [216, 187, 221, 138, 46]);
    }

    /// Partitions are even, and two repetitions independent.
    #[test]
    fn partitions_are_even() {
        let groups = Groups::new(3, 100, 100_000);
        let mut together = 0;
        for t in 0..3 {
            for p in 0..100 {
                let size = groups.members(t, p).0.len();
                assert!((1000 - 190..1000 + 190).contains(&size), "{size}");
            }
            together += (0..100_000).filter(|&id| groups.offset(t, id) == groups.offset((t + 1) % 3, id)).count();
        }
        // 300,000 trials of 1/100: 3,000 +- 54.
        assert!((2700..3300).contains(&together), "{together}");
    }
}
