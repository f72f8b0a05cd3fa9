//! levels of any filter -> an adaptive filter: what is found out at one level moves to the next (\[Broom\] section 5).
//!
//! Level 0 is a filter with all keys. When a false positive x matches, the *spot* they share, its fingerprint, is marked *dead*, and the
//! keys behind it move to level 1, a small filter of a lower rate. The few keys that reach the end of the levels are kept as whole hashes.
//!
//! ```text
//!   level 0   rate eps        all keys           a  b  X  d  e  X  f  g      X: a dead spot, go on to level 1
//!   level 1   rate eps^2      2 n / steps keys         c        h
//!   last      58-bit hashes   a handful
//! ```
//!
//! * A lookup stops at the first level whose spot is not dead: alive or absent. A key lives at the first level where its spot is not dead.
//!   Both hold for keys that come later, so no insertion brings a false positive back.
//! * Marks stay when a key is removed: *remove, insert, query again* finds the same spots dead. Keys can be removed from quotient and cuckoo levels.
//!   A Bloom filter cannot clear bits that keys share, so [`AdaptiveBloom`](super::AdaptiveBloom) has no removal.
//! * A key has one name in the reverse map, that of its spot at its level. Adapting reads the map once per key that moves.
//!
//! **Generations.** Nothing makes a dead spot alive again but a new hash function. A generation in which `n / steps` spots have died
//! is replaced: an empty one with new salts is made, and keys move to it in the order of their digests,
//! `moves_per_adapt` for each false positive and a few per insertion and removal; the frontier says which of the two a query reads. At rest there is one generation, and
//! nothing is due. The move is over before the old generation runs full: [`Sizes::of`](generation::Sizes::of) has the proof.
//!
//! **Moving several keys.** A spot may have several keys, and each is one write to the map, which may fail. So keys leave one at a time; until
//! the last has left the spot is *closing*: it still says yes, and a search for a key goes on to the next level.
//!
//! **Space**, in bits per key with 100,000 keys at a rate of 2^-8 (the test `bits_per_key` prints it), at rest and while keys move:
//!
//! ```text
//!   steps            16              32              64
//!   quotient    17.0   34.0     14.0   28.1     12.5   25.0
//!   cuckoo      16.7   33.5     14.3   28.6     13.5   27.0
//!   Bloom       16.9   33.7     14.3   28.6     13.0   26.0
//! ```
//!
//! Under permanent attack keys move about two thirds of the time.

mod cuckoo;
mod generation;
mod level;
mod options;
mod plan;
mod quotient;
mod snapshot;

pub use cuckoo::Cuckoos;
pub(crate) use level::Store;
pub use level::{Erase, Level};
pub use options::Schedule;
pub use quotient::Quotients;

use self::generation::{Generation, Sizes};
use self::options::{More, Shape};
use super::builder::AdaptiveBuilder;
use super::frontier::{Frontier, Side};
use super::{Adapt, AdaptiveFilter};
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::hash::{Digest, Hasher};

/// Levels of quotient filters.
///
/// ```
/// use tamis::adaptive::{Adapt, AdaptiveFilter, Memory, QuotientCascade, Remove};
/// let mut filter = QuotientCascade::with_capacity(1000).build::<str>()?;
/// let mut map = Memory::new();
/// filter.insert("ann", &mut map)?;
/// assert!(filter.contains("ann")?);
/// filter.remove("ann", &mut map)?;
/// assert!(!filter.contains("ann")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type QuotientCascade = Cascade<Quotients>;

/// Levels of cuckoo filters.
///
/// ```
/// use tamis::adaptive::{Adapt, AdaptiveFilter, CuckooCascade, Memory};
/// let mut filter = CuckooCascade::with_capacity(1000).build::<u64>()?;
/// let mut map = Memory::new();
/// for key in 0..1000u64 {
///     filter.insert(key, &mut map)?;
/// }
/// let mistake = (1000..100_000u64).find(|&key| filter.contains(key) == Ok(true)).expect("one in a hundred");
/// filter.adapt(mistake, &mut map)?;
/// assert!(!filter.contains(mistake)? && filter.contains(7u64)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type CuckooCascade = Cascade<Cuckoos>;

/// An adaptive filter made of levels of another.
#[derive(Clone)]
pub struct Cascade<L> {
    shape: Shape,
    sizes: Sizes,
    frontier: Frontier,
    /// The generation of the keys after the frontier; and the one that the others have moved to.
    now: Generation<L>,
    next: Option<Box<Generation<L>>>,
    /// A false positive and a level: the keys at its spot there are on their way out.
    closing: Option<(Digest, usize)>,
}

brief_debug!(Cascade<L: Level>, it => kind: L::KIND, keys: it.len(), capacity: it.capacity(), rate: it.fpr(), bytes: it.memory_bytes());

impl<L: Level> Cascade<L> {
    /// Starts a filter for `capacity` keys and a rate of 1e-7 to 0.5.
    pub fn with_capacity(capacity: u64) -> AdaptiveBuilder<Cascade<L>> {
        AdaptiveBuilder::new(capacity, More::default())
    }

    fn of(shape: Shape, hasher: Hasher) -> Result<Cascade<L>, BuildError> {
        let sizes = Sizes::of::<L>(&shape);
        let frontier = Frontier::new(hasher, shape.key_type);
        let now = Generation::new(&sizes, frontier.salt(Side::Old))?;
        Ok(Cascade { shape, sizes, frontier, now, next: None, closing: None })
    }

    /// How many levels there are, the exact one included.
    pub fn levels(&self) -> usize {
        self.sizes.tiers.len() + 1
    }

    /// How many spots are dead, or on the way there.
    pub fn dead(&self) -> u64 {
        let generations = std::iter::once(&self.now).chain(self.next.as_deref());
        generations.flat_map(|generation| &generation.tiers).map(|tier| tier.dead()).sum()
    }

    /// Whether keys are moving to the next generation.
    pub fn is_moving(&self) -> bool {
        self.next.is_some()
    }

    fn side(&self, key: Digest) -> Side {
        match self.next {
            Some(_) => self.frontier.side(key),
            None => Side::Old,
        }
    }

    fn generation(&self, side: Side) -> &Generation<L> {
        match (&self.next, side) {
            (Some(next), Side::New) => next,
            _ => &self.now,
        }
    }

    fn generation_mut(&mut self, side: Side) -> &mut Generation<L> {
        match (&mut self.next, side) {
            (Some(next), Side::New) => next,
            _ => &mut self.now,
        }
    }
}

#[cfg(test)]
mod tests;
