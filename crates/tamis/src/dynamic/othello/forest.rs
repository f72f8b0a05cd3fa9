//! items -> a salt under which they are a forest, and cells whose xors are their bits.
//!
//! Sets of connected cells are kept with parities: of every cell its parity to the one above it, so joining two sets also says how
//! their cells differ. An edge inside one set closes a cycle, and the next salt is tried. Of `n` random edges between `m` cells there is
//! none with a probability of sqrt(1 - c^2), c = 2 n / m, whatever the number of items: two tries are the rule.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

use super::cells::{Shard, WORD, ends};
use super::graph::Item;
use crate::error::BuildError;
use crate::hash::attempts::random;
use crate::hash::scramble;

/// More cells than this cannot be numbered.
pub(super) const MAX_CELLS: usize = 1 << 15;

/// Failed salts after which each further one has more cells: twelve failures of a fair coin are bad luck, a hundred are not.
const PATIENCE: u32 = 12;
const MAX_TRIES: u32 = 100;

/// Numbers that cannot be foreseen from those before, which files show.
#[derive(Clone)]
pub(crate) struct Stream {
    key: [u64; 2],
    count: u64,
}

impl Stream {
    /// The numbers of a key.
    pub(crate) fn new(key: [u64; 2]) -> Stream {
        Stream { key, count: 0 }
    }

    /// Numbers that are different each time.
    pub(crate) fn random() -> Stream {
        Stream::new([random(), random()])
    }

    pub(crate) fn next(&mut self) -> u64 {
        let mut sip = SipHasher13::new_with_keys(self.key[0], self.key[1]);
        sip.write_u64(self.count);
        self.count += 1;
        sip.finish()
    }
}

/// Connected cells. It is kept for its memory alone.
#[derive(Clone, Default)]
pub(super) struct Forest {
    /// The cell above and, in the lowest bit, how the two differ; a root is above itself.
    above: Vec<u16>,
    /// The ends of the items under the salt that was found.
    pub(super) ends: Vec<[u16; 2]>,
    /// Items times salts, so far.
    pub(super) work: u64,
}

impl Forest {
    /// Cells for distinct items, at least so many.
    pub(super) fn solve(&mut self, items: &[Item], cells: usize, random: &mut Stream) -> Result<Shard, BuildError> {
        let mut words = cells.div_ceil(WORD).max(1);
        for attempt in 0..MAX_TRIES {
            if attempt >= PATIENCE {
                words = (words + words.div_ceil(25)).min(MAX_CELLS / WORD);
            }
            let salt = random.next();
            if self.joins(items, salt, words * (WORD / 2)) {
                return Ok(Shard { salt, words: self.colours(salt, words) });
            }
        }
        Err(BuildError::Unsolvable { structure: "exact bits", keys: items.len(), attempts: MAX_TRIES })
    }

    /// Joins the cells of every item; false if one closes a cycle.
    fn joins(&mut self, items: &[Item], salt: u64, half: usize) -> bool {
        self.above.clear();
        self.above.extend((0..2 * half as u16).map(|cell| cell << 1));
        self.ends.clear();
        for (count, item) in items.iter().enumerate() {
            let ends = ends(item.key, salt, half);
            let [(a, to_a), (b, to_b)] = ends.map(|cell| self.root(cell));
            if a == b {
                self.work += count as u64;
                return false;
            }
            // Which one is above does not matter: their numbers are random.
            self.above[a] = (b as u16) << 1 | (to_a ^ to_b ^ u16::from(item.bit));
            self.ends.push(ends.map(|cell| cell as u16));
        }
        self.work += items.len() as u64;
        true
    }

    /// The root above a cell, and how the two differ; the way there is halved.
    #[inline(always)]
    fn root(&mut self, mut cell: usize) -> (usize, u16) {
        let mut differs = 0;
        loop {
            let above = self.above[cell];
            let parent = usize::from(above >> 1);
            if parent == cell {
                return (cell, differs);
            }
            let joined = self.above[parent] ^ (above & 1);
            self.above[cell] = joined;
            differs ^= joined & 1;
            cell = usize::from(joined >> 1);
        }
    }

    /// The cells: random at the roots, or else unlisted keys would find zeros there.
    fn colours(&mut self, salt: u64, words: usize) -> Box<[u64]> {
        let colour = |root: usize| scramble(salt.wrapping_add((root / WORD) as u64)) >> (root % WORD) & 1;
        let mut word = |word: usize| {
            (0..WORD).fold(0, |bits, i| {
                let (root, differs) = self.root(word * WORD + i);
                bits | (colour(root) ^ u64::from(differs)) << i
            })
        };
        (0..words).map(&mut word).collect()
    }
}
