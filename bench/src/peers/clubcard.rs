//! keys and negatives, by block -> a clubcard, and how many bytes a client needs of it.
//!
//! Mozilla's crate for revoked certificates. Every block has its own two ribbons, of bands of 256: one of
//! `floor(log2 lambda)` bits on its keys, then one exact bit for its keys and for whatever of its negatives passes. Where most
//! of a block are keys, it stores the others. It is used as its documentation wants it: the first ribbons are made from
//! the keys alone, then everything streams through them, and only what passes is kept.
//!
//! **Size.** The crate derives serde's traits and has no format of its own. Mozilla's client began with bincode, which spends
//! eight bytes on every number; what is counted here is the shorter encoding that it has now: a version (2 bytes), the
//! number of blocks (2), for each its name, four numbers of 4 bytes, two of 1 and the number of exceptions (2), and for
//! each exception its length (1) and its bytes; then every column of bits as 64-bit words with a length (4). What a client
//! stores about dates and logs is left out, and names are as short as the caller makes them.

use clubcard::builder::{ApproximateRibbon, ClubcardBuilder, ExactRibbon};
use clubcard::{AsQuery, Clubcard, Equation, Filterable, Queryable};

use crate::stream::scramble;

/// Words of an equation: what Mozilla uses.
const WORDS: usize = 4;

pub(crate) type Card = Clubcard<WORDS, (), ()>;

/// The name of a block; a byte is enough for one that is alone.
#[derive(Clone, Copy)]
pub(crate) enum Block {
    Only,
    Named([u8; 4]),
}

/// A key as clubcard wants it. It wants bytes, and leaves the hash to the caller, who gives it our cheap one.
pub(crate) struct Item {
    bytes: [u8; 8],
    block: Block,
    included: bool,
}

impl Item {
    #[inline]
    pub(crate) fn new(block: Block, key: u64) -> Item {
        Item { bytes: key.to_le_bytes(), block, included: false }
    }

    fn included(self, included: bool) -> Item {
        Item { included, ..self }
    }
}

impl AsQuery<WORDS> for Item {
    #[inline]
    fn as_query(&self, m: usize) -> Equation<WORDS> {
        let hash = scramble(u64::from_le_bytes(self.bytes) ^ 0x2545_f491_4f6c_dd1d);
        let mut words = [1u64, 2, 3, 4].map(|i| scramble(hash.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))));
        // A remainder, as in Mozilla's client. With a product, a key would stand at the same relative place in both
        // ribbons; where the first is overfull and lets all pass, the second would get them all in one place.
        let place = words[3] % (m as u64).max(1);
        words[0] |= 1;
        Equation::homogeneous(place as usize, words)
    }

    #[inline]
    fn block(&self) -> &[u8] {
        match &self.block {
            // Not nothing: comparing empty names reads, under a mask, from no address at all, which takes some processors
            // 90 ns.
            Block::Only => &[0],
            Block::Named(name) => name,
        }
    }

    #[inline]
    fn discriminant(&self) -> &[u8] {
        &self.bytes
    }
}

impl Filterable<WORDS> for Item {
    fn included(&self) -> bool {
        self.included
    }
}

impl Queryable<WORDS> for Item {
    type UniverseMetadata = ();
    type PartitionMetadata = ();

    fn in_universe(&self, _: &()) -> bool {
        true
    }
}

pub(crate) struct Part<K, N> {
    pub(crate) block: Block,
    pub(crate) keys: K,
    pub(crate) negatives: N,
    /// How many keys there are, and how many negatives.
    pub(crate) counts: (usize, usize),
}

/// Builds a clubcard of all blocks; `part` is asked for each of them twice.
pub(crate) fn build<K, N>(blocks: usize, part: impl Fn(usize) -> Part<K, N>) -> Card
where
    K: Iterator<Item = u64>,
    N: Iterator<Item = u64>,
{
    let mut builder = ClubcardBuilder::<WORDS, Item>::new();
    let first = |i: usize| {
        let Part { block, keys, negatives, counts } = part(i);
        let mut first = builder.new_approx_builder(Item::new(block, 0).block());
        first.set_universe_size(counts.0 + counts.1);
        let inverted = counts.0 > counts.1;
        first.set_inverted(inverted);
        match inverted {
            true => negatives.for_each(|key| first.insert(Item::new(block, key).included(false))),
            false => keys.for_each(|key| first.insert(Item::new(block, key).included(true))),
        }
        ApproximateRibbon::from(first)
    };
    let first = (0..blocks).map(first).collect();
    builder.collect_approx_ribbons(first);
    let second = |i: usize| {
        let Part { block, keys, negatives, .. } = part(i);
        let mut second = builder.new_exact_builder(Item::new(block, 0).block());
        keys.for_each(|key| second.insert(Item::new(block, key).included(true)));
        negatives.for_each(|key| second.insert(Item::new(block, key).included(false)));
        ExactRibbon::from(second)
    };
    let second = (0..blocks).map(second).collect();
    builder.collect_exact_ribbons(second);
    builder.build::<Item>((), ())
}

/// Bytes of the whole, and of its index alone.
pub(crate) fn bytes(card: &Card) -> (usize, usize) {
    let block = |(name, entry): (&Vec<u8>, &clubcard::ClubcardIndexEntry)| {
        name.len() + 4 * 4 + 2 + 2 + entry.exceptions.iter().map(|exception| 1 + exception.len()).sum::<usize>()
    };
    let index = 2 + card.index.iter().map(block).sum::<usize>();
    let columns = card.approx_filter.iter().chain([&card.exact_filter]);
    let columns = 1 + columns.map(|column| 4 + 8 * column.len()).sum::<usize>();
    (2 + index + columns, index)
}
