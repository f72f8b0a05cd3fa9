//! answers for keys -> how many keys every set holds, and what is said of it.

use std::io::{self, Write};

use serde_json::{Value, json};
use tamis::Sets;

/// How many keys of a query, or of one sequence, every set holds; only sets that hold one cost anything.
pub(super) struct Tally {
    pub(super) keys: u64,
    pub(super) found: u64,
    /// By the number of a set.
    counts: Vec<u64>,
    /// The sets that hold one.
    held: Vec<u32>,
}

impl Tally {
    pub(super) fn new(index: &Sets) -> Tally {
        let sets = index.names().last().map_or(0, |(id, _)| id as usize + 1);
        Tally { keys: 0, found: 0, counts: vec![0; sets], held: vec![] }
    }

    /// One key, which is in these sets.
    pub(super) fn add(&mut self, sets: &[u32]) {
        self.keys += 1;
        self.found += u64::from(!sets.is_empty());
        for &set in sets {
            if let Some(count) = self.counts.get_mut(set as usize) {
                if *count == 0 {
                    self.held.push(set);
                }
                *count += 1;
            }
        }
    }

    /// The sets that hold at least this share of the keys, and one of them, with how many.
    pub(super) fn at_least(&mut self, share: f64) -> Vec<(u32, u64)> {
        self.held.sort_unstable();
        // 0.1 of 30 is 3, and not a little more as the product of the two is.
        let least = share * self.keys as f64 * (1.0 - 1e-12);
        let all = self.held.iter().map(|&set| (set, self.counts[set as usize]));
        all.filter(|&(_, count)| count as f64 >= least).collect()
    }

    pub(super) fn clear(&mut self) {
        for set in self.held.drain(..) {
            self.counts[set as usize] = 0;
        }
        (self.keys, self.found) = (0, 0);
    }
}

/// How sets are written: by name, or by number.
#[derive(Clone, Copy)]
pub(super) struct Naming<'a> {
    pub(super) index: &'a Sets,
    pub(super) numbers: bool,
}

impl Naming<'_> {
    pub(super) fn write(self, out: &mut impl Write, set: u32) -> io::Result<()> {
        match self.index.name(set) {
            Some(name) if !self.numbers => out.write_all(name.as_bytes()),
            _ => write!(out, "{set}"),
        }
    }

    /// A set as JSON has it, with a number that belongs to it.
    pub(super) fn json(self, set: u32, number: Option<(&str, u64)>) -> Value {
        let mut fields = json!({ "set": self.index.name(set), "id": set });
        if let Some((name, number)) = number {
            fields[name] = number.into();
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn shares_are_whole_where_they_should_be() {
        let index = tamis::sets((0..30u64).map(|key| (key, if key < 3 { "few" } else { "many" }))).finish().unwrap();
        let mut tally = Tally::new(&index);
        for round in 0..2 {
            for key in 0..30 {
                tally.add(if key < 3 { &[0] } else { &[1] });
            }
            tally.add(&[]);
            tally.keys -= 1;
            assert_eq!((tally.keys, tally.found), (30, 30), "{round}");
            for tenths in 1..=9 {
                let least = f64::from(tenths) / 10.0;
                assert_eq!(tally.at_least(least).iter().any(|&(set, _)| set == 0), tenths == 1);
                assert!(tally.at_least(least).contains(&(1, 27)));
            }
            assert_eq!(tally.at_least(0.0), [(0, 3), (1, 27)]);
            assert_eq!(tally.at_least(0.91), []);
            tally.clear();
            assert_eq!(tally.at_least(0.0), []);
        }
    }
}
