//! a digest -> the xor of two cells of its shard: all that a query reads, and how it is changed.

use crate::hash::{Digest, Salt, fold};

/// Cells of a word; shards have whole words of them.
pub(super) const WORD: usize = 64;

/// The cells of all shards, and which shard a digest belongs to.
#[derive(Clone)]
pub(crate) struct Cells {
    salt: Salt,
    /// log2 of the length of the directory.
    depth: u32,
    /// The shard of every prefix.
    directory: Vec<u32>,
    shards: Vec<Shard>,
}

/// The cells of one shard.
#[derive(Clone, Default)]
pub(super) struct Shard {
    pub(super) salt: u64,
    pub(super) words: Box<[u64]>,
}

/// Shards that take the place of others, all at once.
pub(super) struct Swap {
    /// Each with its number; numbers above the last one are in order.
    pub(super) shards: Vec<(usize, Shard)>,
    /// The directory, if it changes too.
    pub(super) directory: Option<(u32, Vec<u32>)>,
}

impl Cells {
    /// Shards in the order of their prefixes, a power of two of them.
    pub(super) fn new(salt: Salt, shards: Vec<Shard>) -> Cells {
        let depth = shards.len().ilog2();
        Cells { salt, depth, directory: (0..shards.len() as u32).collect(), shards }
    }

    /// What places a digest among the shards.
    #[inline(always)]
    pub(super) fn prefix(&self, key: Digest) -> u64 {
        key.salted(self.salt)
    }

    /// The number of the shard with this prefix.
    #[inline(always)]
    pub(super) fn place(&self, prefix: u64) -> usize {
        // Two shifts, because a shift by 64 is not defined.
        self.directory[(prefix >> 1 >> (63 - self.depth)) as usize] as usize
    }

    #[inline(always)]
    pub(super) fn shard(&self, place: usize) -> &Shard {
        &self.shards[place]
    }

    #[cfg(test)]
    pub(super) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    #[cfg(test)]
    pub(super) fn salt(&self) -> Salt {
        self.salt
    }

    pub(super) fn directory(&self) -> (u32, &[u32]) {
        (self.depth, &self.directory)
    }

    /// The bit of a listed digest; either bit for another.
    #[inline(always)]
    pub(crate) fn get(&self, key: Digest) -> bool {
        self.shards[self.place(self.prefix(key))].get(key)
    }

    /// Flips cells of one shard.
    pub(super) fn flip(&mut self, place: usize, cells: impl Iterator<Item = usize>) {
        let words = &mut self.shards[place].words;
        cells.for_each(|cell| words[cell / WORD] ^= 1 << (cell % WORD));
    }

    /// Exchanges whole shards.
    pub(super) fn swap(&mut self, swap: Swap) {
        for (place, shard) in swap.shards {
            match self.shards.get_mut(place) {
                Some(old) => *old = shard,
                None => self.shards.push(shard),
            }
        }
        if let Some((depth, directory)) = swap.directory {
            (self.depth, self.directory) = (depth, directory);
        }
    }

    /// Bits of cells, of what is stored with every shard, and of the directory.
    pub(crate) fn bits(&self) -> u64 {
        let bytes = |shard: &Shard| size_of::<Shard>() + size_of_val(&shard.words[..]);
        8 * (size_of_val(&self.directory[..]) + self.shards.iter().map(bytes).sum::<usize>()) as u64
    }
}

impl Shard {
    /// Cells on either side.
    #[inline(always)]
    pub(super) fn half(&self) -> usize {
        self.words.len() * (WORD / 2)
    }

    #[inline(always)]
    pub(super) fn ends(&self, key: Digest) -> [usize; 2] {
        ends(key, self.salt, self.half())
    }

    #[inline(always)]
    pub(super) fn get(&self, key: Digest) -> bool {
        let bit = |cell: usize| self.words[cell / WORD] >> (cell % WORD);
        let [a, b] = self.ends(key);
        (bit(a) ^ bit(b)) & 1 == 1
    }
}

/// The cells of a digest in a shard: one of the first `half`, one of the second.
#[inline(always)]
pub(super) fn ends(key: Digest, salt: u64, half: usize) -> [usize; 2] {
    let hash = fold(key.hi ^ salt, key.lo.wrapping_add(salt.rotate_left(32)));
    let within = |part: u64| ((part * half as u64) >> 32) as usize;
    [within(hash >> 32), half + within(hash & 0xffff_ffff)]
}
