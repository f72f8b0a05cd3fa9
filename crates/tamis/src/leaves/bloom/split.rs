//! digests -> 256-bit blocks: the split-block Bloom filter.
//!
//! The 64 bits of a key are used twice. Their high end, multiplied by the number of blocks, chooses the block, so any
//! number of blocks will do; the low 32 bits, multiplied by eight odd constants, choose one bit in each of the block's eight
//! 32-bit lanes. The two uses overlap only beyond 2^32 blocks.
//!
//! ```text
//!   hash   hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh llllllllllllllllllllllllllllllll
//!          block = hash * blocks >> 64      bit of lane i = l * odd[i] >> 27
//! ```
//!
//! The processor's vector instructions are chosen when a file is opened, not when a key is queried: a query for one key is
//! one indirect call ([`QueryFn`](crate::arch::QueryFn)), and a batch is dispatched once.

use super::BATCH;
use crate::arch::{Answer, Base, Isa, Level, QueryFn, prefetch};
#[cfg(feature = "build")]
use crate::arch::{Kernel, dispatch};
use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, Salt, reduce};
use crate::leaves::batch::{InBatches, ask_leaf, ask_payload};
#[cfg(feature = "build")]
use crate::leaves::change::{Layer, Owned};
use crate::leaves::{Geometry, Part, Query, ShardedLeaf, Way};
use crate::math::bloom::MAX_BLOCKS;

const BLOCK: usize = 32;
type Block = [u8; BLOCK];

/// No key is in this block, which stands in for one that is not there.
const NOTHING: &Block = &[0; BLOCK];

/// How to read a split-block filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SplitBlock {
    blocks: u64,
    /// How many keys were inserted: what the rate depends on.
    keys: u64,
    salt: Salt,
    level: Level,
}

impl SplitBlock {
    /// The block of a key and what chooses its bits.
    #[inline(always)]
    fn locate(&self, key: Digest) -> (usize, u32) {
        let hash = key.salted(self.salt);
        // On a 32-bit processor a payload that is there has fewer blocks than a usize can count.
        (usize::try_from(reduce(hash, self.blocks)).unwrap_or(usize::MAX), hash as u32)
    }

    /// Queries a payload that is no part of a file for many keys; `out` is as long as `keys`.
    pub(crate) fn contains_many(&self, payload: &[u8], keys: &[Digest], out: &mut [bool]) {
        ask_payload::<One, BATCH>(self.level, *self, payload, keys, out);
    }
}

/// One query.
struct One;

impl Answer<Part<SplitBlock>> for One {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<SplitBlock>, key: Digest) -> bool {
        let (block, hash) = part.geometry.locate(key);
        part.payload.as_chunks().0.get(block).is_some_and(|block| I::block_contains(block, hash))
    }
}

/// The block of a key and what chooses its bits.
#[derive(Clone, Copy)]
struct Found<'a>(&'a Block, u32);

impl Default for Found<'_> {
    fn default() -> Self {
        Found(NOTHING, 0)
    }
}

impl InBatches for One {
    type Geometry = SplitBlock;
    type Found<'a> = Found<'a>;

    #[inline(always)]
    fn find<'a>(of: &SplitBlock, payload: &'a [u8], key: Digest) -> Found<'a> {
        let (block, hash) = of.locate(key);
        let block = payload.as_chunks().0.get(block).unwrap_or(NOTHING);
        // A payload may start anywhere, so a block may lie in two cache lines.
        prefetch(block, 0);
        prefetch(block, BLOCK - 1);
        Found(block, hash)
    }

    #[inline(always)]
    fn answer<I: Isa>(_: &SplitBlock, _: &[u8], Found(block, hash): Found<'_>) -> bool {
        I::block_contains(block, hash)
    }
}

impl Query for SplitBlock {
    fn contains(&self, payload: &[u8], key: Digest) -> bool {
        let (block, hash) = self.locate(key);
        payload.as_chunks().0.get(block).is_some_and(|block| Base::block_contains(block, hash))
    }

    fn same_kernel(&self, _: &SplitBlock) -> bool {
        true
    }

    fn query_fn<W: Way>(&self, leaf: &ShardedLeaf<SplitBlock>) -> QueryFn<W::Asked> {
        leaf.by::<W, One, _>(self.level)
    }

    fn contains_many(&self, leaf: &ShardedLeaf<SplitBlock>, _: &[u8], keys: &[Digest], out: &mut [bool]) {
        ask_leaf::<One, BATCH>(self.level, leaf, keys, out);
    }

    #[cfg(feature = "build")]
    fn layer(part: &Part<SplitBlock>) -> Option<Box<dyn Layer>> {
        Some(Box::new(Owned::from(part)))
    }
}

/// What the planner chooses.
#[cfg(feature = "build")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Params {
    /// The number of 256-bit blocks, at most 2^40.
    pub(crate) blocks: u64,
}

#[cfg(feature = "build")]
pub(crate) use build::PerKey;

#[cfg(feature = "build")]
mod build {
    use super::*;
    use crate::error::BuildError;
    use crate::leaves::bloom::{ones, zeros};
    use crate::leaves::change::{Change, Full};
    use crate::leaves::design::{Design, Sides, Work, roomier};
    use crate::math::bloom::{BLOCK_BITS, split_block_blocks, split_block_rate};

    const STRUCTURE: &str = "split-block Bloom filter";

    impl Params {
        /// The size that spends `bits` bits on each of `n` keys.
        pub(crate) fn for_bits_per_key(n: u64, bits: f64) -> Result<Params, BuildError> {
            let blocks = (n as f64 * bits / BLOCK_BITS as f64).ceil();
            if !(bits > 0.0 && blocks <= MAX_BLOCKS as f64) {
                return Err(BuildError::NotASize { structure: STRUCTURE, keys: n, bits });
            }
            Ok(Params { blocks: blocks as u64 })
        }

        /// The smallest size whose predicted rate with `n` keys is at most `rate`.
        pub(crate) fn for_rate(n: u64, rate: f64) -> Result<Params, BuildError> {
            let none = BuildError::NoSize { structure: STRUCTURE, keys: n, rate };
            Ok(Params { blocks: split_block_blocks(n, rate).ok_or(none)? })
        }
    }

    /// A filter of so many bits per key, whatever the shard.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct PerKey {
        /// Bits per key times 256.
        pub(crate) bits_per_key: u32,
    }

    impl PerKey {
        fn blocks(&self, n: u64) -> u64 {
            (n * u64::from(self.bits_per_key)).div_ceil(256 * 256)
        }
    }

    impl Design for PerKey {
        type Leaf = SplitBlock;

        fn bits(&self, listed: u64, others: u64) -> f64 {
            (listed + others) as f64 * f64::from(self.bits_per_key) / 256.0
        }

        fn rate_at(&self, listed: u64) -> f64 {
            split_block_rate(listed, self.blocks(listed))
        }

        fn lines(&self) -> [f64; 2] {
            [1.0; 2]
        }

        fn with_room(self, spare: f64) -> Option<PerKey> {
            Some(PerKey { bits_per_key: roomier(self.bits_per_key, spare) })
        }

        fn build(&self, sides: &mut Sides<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<SplitBlock, BuildError> {
            sides.fingerprints(|keys| {
                SplitBlock::build(keys, &Params { blocks: self.blocks(keys.len() as u64) }, work.salt, out)
            })
        }
    }

    /// Many insertions.
    struct InsertMany<'a> {
        geometry: SplitBlock,
        payload: &'a mut [u8],
        keys: &'a [Digest],
    }

    impl Kernel for InsertMany<'_> {
        const V4: bool = false;
        type Output = ();
        #[inline(always)]
        fn run<I: Isa>(self) {
            let (blocks, _) = self.payload.as_chunks_mut::<BLOCK>();
            let mut found = [(0, 0); BATCH];
            for keys in self.keys.chunks(BATCH) {
                for (found, &key) in found.iter_mut().zip(keys) {
                    *found = self.geometry.locate(key);
                    let at = found.0.wrapping_mul(BLOCK);
                    prefetch(blocks.as_flattened(), at);
                    prefetch(blocks.as_flattened(), at.wrapping_add(BLOCK - 1));
                }
                for &(block, hash) in &found[..keys.len()] {
                    if let Some(block) = blocks.get_mut(block) {
                        I::block_insert(block, hash);
                    }
                }
            }
        }
    }

    /// One insertion.
    struct Insert<'a>(&'a mut Block, u32);

    impl Kernel for Insert<'_> {
        const V4: bool = false;
        type Output = ();
        #[inline(always)]
        fn run<I: Isa>(self) {
            I::block_insert(self.0, self.1);
        }
    }

    impl Change for SplitBlock {
        fn keys(&self) -> u64 {
            self.keys
        }

        fn insert(&mut self, payload: &mut [u8], key: Digest) -> Result<(), Full> {
            SplitBlock::insert(self, payload, key);
            self.keys = self.keys.saturating_add(1); // a file may claim any number
            Ok(())
        }

        fn fill(&self, payload: &[u8]) -> f64 {
            ones(payload) as f64 / (8 * payload.len()).max(1) as f64
        }

        /// Blocks differ: the mean over them of the chance that all lanes have the bit.
        fn fpr_now(&self, payload: &[u8]) -> f64 {
            let (blocks, _) = payload.as_chunks::<BLOCK>();
            let matches = |block: &Block| -> f64 {
                let (lanes, _) = block.as_chunks::<4>();
                lanes.iter().map(|lane| f64::from(u32::from_le_bytes(*lane).count_ones()) / 32.0).product()
            };
            blocks.iter().map(matches).sum::<f64>() / blocks.len().max(1) as f64
        }

        #[inline]
        fn closed_gates(&self, payload: &[u8], key: Digest, mut each: impl FnMut(u64) -> bool) {
            let (number, hash) = self.locate(key);
            let mut bits = [0; BLOCK];
            Base::block_insert(&mut bits, hash);
            let block = payload.as_chunks().0.get(number).unwrap_or(NOTHING);
            let words = bits.as_chunks::<8>().0.iter().zip(block.as_chunks::<8>().0);
            for (word, (&bits, &set)) in (4 * number as u64..).zip(words) {
                let mut closed = u64::from_le_bytes(bits) & !u64::from_le_bytes(set);
                while closed != 0 {
                    if each(64 * word + u64::from(closed.trailing_zeros())) {
                        return;
                    }
                    closed &= closed - 1;
                }
            }
        }
    }

    impl SplitBlock {
        /// How to read a filter that holds `keys` keys; without any its payload is `payload_len` zeros.
        pub(crate) fn new(params: &Params, keys: u64, salt: Salt) -> Result<SplitBlock, BuildError> {
            BuildError::check_size(STRUCTURE, "blocks", params.blocks, 0..=MAX_BLOCKS)?;
            Ok(SplitBlock { blocks: params.blocks, keys, salt, level: Level::detect() })
        }

        /// Appends the payload that holds `keys`. Without keys it is empty, whatever the parameters say.
        pub(crate) fn build(
            keys: &[Digest],
            params: &Params,
            salt: Salt,
            out: &mut Vec<u8>,
        ) -> Result<SplitBlock, BuildError> {
            let blocks = if keys.is_empty() { 0 } else { params.blocks };
            if blocks == 0 && !keys.is_empty() {
                return Err(BuildError::Empty { structure: STRUCTURE, what: "blocks", keys: keys.len() });
            }
            let filter = SplitBlock::new(&Params { blocks }, keys.len() as u64, salt)?;
            filter.insert_many(zeros(out, filter.payload_len())?, keys);
            Ok(filter)
        }

        /// The same table with another number of keys.
        pub(crate) fn holding(self, keys: u64) -> SplitBlock {
            SplitBlock { keys, ..self }
        }

        /// Adds a key to a payload of this geometry.
        #[inline]
        pub(crate) fn insert(&self, payload: &mut [u8], key: Digest) {
            let (block, hash) = self.locate(key);
            if let Some(block) = payload.as_chunks_mut().0.get_mut(block) {
                dispatch(self.level, Insert(block, hash));
            }
        }

        /// Adds many keys.
        pub(crate) fn insert_many(&self, payload: &mut [u8], keys: &[Digest]) {
            dispatch(self.level, InsertMany { geometry: *self, payload, keys });
        }
    }
}

/// Directory: blocks, keys (varints). Payload: blocks * 32 bytes; a block is eight little-endian 32-bit lanes.
impl Geometry for SplitBlock {
    const NAME: &'static str = "split-block Bloom";

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.blocks);
        put_varint(out, self.keys);
    }

    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Self, FormatError> {
        let blocks = from.within("number of blocks", 0..=MAX_BLOCKS)?;
        let keys = from.varint()?;
        Ok(SplitBlock { blocks, keys, salt, level: Level::detect() })
    }

    fn payload_len(&self) -> u64 {
        self.blocks * BLOCK as u64
    }

    fn fpr(&self) -> f64 {
        crate::math::bloom::split_block_rate(self.keys, self.blocks)
    }

    fn details(&self) -> String {
        format!("{} blocks of 256 bits", self.blocks)
    }
}

#[cfg(all(test, feature = "build"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Hasher;

    /// The bytes and the answers do not depend on the processor.
    #[test]
    fn every_level_gives_the_same_bytes_and_answers() {
        let hasher = Hasher::seeded(3);
        let digests: Vec<Digest> = (0..4000).map(|i| hasher.integer(i)).collect();
        for (n, blocks) in [(1, 1), (2, 3), (63, 5), (64, 5), (65, 7), (2000, 78), (2000, 20)] {
            let mut seen: Option<(Vec<u8>, Vec<bool>)> = None;
            for level in Level::available() {
                let geometry = SplitBlock { level, ..SplitBlock::new(&Params { blocks }, 0, Salt::new(9)).unwrap() };
                let mut many = vec![0; geometry.payload_len() as usize];
                geometry.insert_many(&mut many, &digests[..n]);
                let mut single = vec![0; many.len()];
                for &key in &digests[..n] {
                    geometry.insert(&mut single, key);
                }
                assert!(many == single, "{level:?}, {n} keys, {blocks} blocks");
                let answers: Vec<bool> = digests.iter().map(|&key| geometry.contains(&many, key)).collect();
                assert!(answers[..n].iter().all(|&yes| yes));
                let column = ShardedLeaf::of(0, &many, vec![(geometry, 0..many.len())]);
                let mut batch = vec![false; digests.len()];
                column.contains_many(&many, &digests, &mut batch);
                assert!(answers == batch, "{level:?}, {n} keys, {blocks} blocks");
                let seen = seen.get_or_insert_with(|| (many.clone(), answers.clone()));
                assert!(*seen == (many, answers), "{level:?}, {n} keys, {blocks} blocks");
            }
        }
    }
}
