//! what a broom filter is to be -> its options.

use crate::debug::brief_debug;
use crate::hash::KeyType;

/// The size of a block: larger ones take fewer bits, smaller ones fewer instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Block {
    /// 128 bytes.
    Small,
    /// 256 bytes.
    #[default]
    Medium,
    /// 512 bytes: the compact preset.
    Large,
}

impl Block {
    pub(super) fn words(self) -> u32 {
        match self {
            Block::Small => 16,
            Block::Medium => 32,
            Block::Large => 64,
        }
    }
}

/// How to make a [`Broom`](super::Broom).
///
/// ```
/// use tamis::adaptive::{Adapt, Block, Broom, Options};
/// use tamis::KeyType;
/// let options = Options::new(KeyType::Integer, 1000, 0.01).block(Block::Large).growing().secret([1, 2]);
/// assert_eq!(Broom::with(&options)?.hasher().words(), [1, 2]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Options {
    pub(super) key_type: KeyType,
    pub(super) capacity: u64,
    pub(super) rate: f64,
    pub(super) block: Block,
    pub(super) moved: u32,
    pub(super) grows: bool,
    pub(super) secret: Option<[u64; 2]>,
}

brief_debug!(Options, it => key_type: it.key_type, capacity: it.capacity, rate: it.rate, block: it.block, moved: it.moved, grows: it.grows);

impl Options {
    /// For this many keys, and this rate.
    pub fn new(key_type: KeyType, capacity: u64, rate: f64) -> Options {
        Options { key_type, capacity, rate, block: Block::default(), moved: 4, grows: false, secret: None }
    }

    /// The size of a block.
    pub fn block(mut self, block: Block) -> Options {
        self.block = block;
        self
    }

    /// How many keys each repair moves to the next hash function, 1 to 64; 4 unless it is said. More of them cost reads of the reverse map, and
    /// save adaptivity bits.
    pub fn moved(mut self, keys: u32) -> Options {
        self.moved = keys.clamp(1, 64);
        self
    }

    /// A filter that doubles its capacity instead of being full. It begins at three quarters, and is done before it is full.
    pub fn growing(mut self) -> Options {
        self.grows = true;
        self
    }

    /// A secret key of the caller's.
    pub fn secret(mut self, secret: [u64; 2]) -> Options {
        self.secret = Some(secret);
        self
    }
}
