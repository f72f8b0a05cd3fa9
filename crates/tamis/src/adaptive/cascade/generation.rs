//! levels + an exact table -> a generation: all that hangs on one hash function.

use super::level::{Level, Size, State, Tier};
use super::{Schedule, Shape};
use crate::adaptive::file::{bytes_of, words_of};
use crate::adaptive::words::{Scattered, Words, cost};
use crate::error::{BuildError, FormatError};
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, Salt};

/// Low bits of a word of the last level; they say that there is one, and the others are of a hash.
const SHIFT: u32 = 6;
/// Fewer keys than this are kept exactly.
const MIN_FILTER_KEYS: u64 = 64;
/// The lowest rate of a level, 2^-26: what it takes to fit remainders and fingerprints into their tables.
const MIN_RATE: f64 = 1.0 / (1 << 26) as f64;
/// More levels than any cascade has.
const MAX_LEVELS: usize = 8;

/// What a generation consists of.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sizes {
    pub(super) tiers: Vec<Size>,
    pub(super) last: usize,
}

impl Sizes {
    /// A spot dies with a false positive, and one during a move moves `steps` keys: a move of n keys is over after `burst` = n / steps
    /// of them. A generation is replaced after `burst` spots died, at most as many die while it is, and so 2 `burst` is
    /// room enough for any queries. (While it is filled, a generation gets at most `burst` dead spots: then it is not worn yet.)
    ///
    /// Of the spots of level i that die, a share of eps_(i+1) is a false positive again in the next level: the same query, repeated. \[Broom\] has
    /// the levels shrink in this way until n / (3 log n) keys are left, and those are kept exactly.
    pub(super) fn of<L: Level>(shape: &Shape) -> Sizes {
        let n = shape.capacity;
        let burst = n.div_ceil(shape.steps.into());
        let few = (n / (3 * u64::from(n.max(2).ilog2()))).max(MIN_FILTER_KEYS);
        let mut tiers = vec![];
        let mut next = Size { capacity: n.max(1), rate: shape.rate, marks: 2 * burst + 16, worn: u64::MAX };
        while tiers.len() < MAX_LEVELS && (tiers.is_empty() || next.capacity > few) {
            let rate = match (shape.schedule, tiers.len()) {
                (Schedule::Squaring, _) => power(next.rate, 2.0),
                (Schedule::LogStar, 0) => power(shape.rate, 1.0 / shape.rate.sqrt()),
                (Schedule::LogStar, _) => power(shape.rate, 1.0 / next.rate),
            };
            let capacity = (next.marks as f64 * L::KEYS_PER_FINGERPRINT) as u64 + 16;
            let marks = (next.marks as f64 * rate) as u64 + 16;
            tiers.push(next);
            next = Size { capacity, rate, marks, worn: capacity / 2 };
        }
        Sizes { tiers, last: next.capacity as usize }
    }
}

/// A rate to a power, rounded down to a whole one: sizes must be the same on every platform, and products are.
fn power(rate: f64, exponent: f64) -> f64 {
    let mut power = 1.0;
    for _ in 0..exponent as u64 {
        power *= rate;
        if power <= MIN_RATE {
            return MIN_RATE;
        }
    }
    power
}

/// Levels with one salt.
#[derive(Clone, Debug)]
pub(super) struct Generation<L> {
    pub(super) tiers: Vec<Tier<L>>,
    /// The last level: whole hashes.
    pub(super) last: Words<Scattered<SHIFT>>,
    salt: Salt,
    /// Keys of the set in it.
    pub(super) live: u64,
}

impl<L: Level> Generation<L> {
    pub(super) fn new(sizes: &Sizes, salt: Salt) -> Result<Generation<L>, BuildError> {
        let tiers =
            (0..).zip(&sizes.tiers).map(|(i, size)| Tier::new(size, salt.child(i))).collect::<Result<_, _>>()?;
        let salt = salt.child(sizes.tiers.len() as u64);
        Ok(Generation { tiers, last: Words::new(sizes.last)?, salt, live: 0 })
    }

    fn hash(&self, key: Digest) -> u64 {
        key.salted(self.salt) >> SHIFT
    }

    fn word(&self, key: Digest) -> u64 {
        self.hash(key) << SHIFT | 1
    }

    pub(super) fn spot(&self, level: usize, key: Digest) -> u64 {
        self.tiers.get(level).map_or_else(|| self.hash(key), |tier| tier.level.spot(key))
    }

    /// The first level, from `from` on, that takes the key for one of its own; none if the key is not in the set.
    #[inline]
    pub(super) fn alive(&self, key: Digest, from: usize) -> Option<usize> {
        for (i, tier) in self.tiers.iter().enumerate().skip(from) {
            match tier.find(key) {
                State::Absent => return None,
                State::Alive => return Some(i),
                State::Dead => {}
            }
        }
        let level = self.tiers.len();
        (from <= level && self.last.has(self.word(key))).then_some(level)
    }

    /// The level, from `from` on, that a key belongs to: the first where its spot is not dead.
    pub(super) fn open(&self, key: Digest, from: usize) -> usize {
        let alive = (from..self.tiers.len()).find(|&i| !self.tiers[i].is_dead(key));
        alive.unwrap_or(self.tiers.len())
    }

    /// Whether the last level has room.
    pub(super) fn has_end(&self) -> bool {
        self.last.len() < self.last.capacity()
    }

    /// Whether a key on its way from one level to another finds room.
    pub(super) fn has_room(&self, from: usize, to: usize) -> bool {
        // Bits are left at every level on the way.
        let from = if L::LOSSLESS { to } else { from };
        (from..=to).all(|i| match self.tiers.get(i) {
            Some(tier) => tier.has_room(),
            None => self.has_end(),
        })
    }

    pub(super) fn insert(&mut self, key: Digest, from: usize, to: usize) {
        for tier in &mut self.tiers[from..to] {
            tier.level.pass(key);
        }
        match self.tiers.get_mut(to) {
            Some(tier) => tier.insert(key),
            None => _ = self.last.insert(self.word(key)),
        }
    }

    pub(super) fn remove(&mut self, key: Digest, level: usize) {
        match self.tiers.get_mut(level) {
            Some(tier) => tier.remove(key),
            None => _ = self.last.remove(self.word(key)),
        }
    }

    pub(super) fn is_worn(&self) -> bool {
        self.tiers.iter().any(Tier::is_worn) || 2 * self.last.len() > self.last.capacity()
    }

    /// Whether a key or a dead spot more may find no room.
    pub(super) fn is_full(&self) -> bool {
        // The first level has room for all keys there can be: each enters a generation once.
        !self.has_end()
            || self.tiers.iter().any(|tier| !tier.can_kill())
            || self.tiers.iter().skip(1).any(|tier| !tier.has_room())
    }

    /// Words that a change of one key touches, about.
    pub(super) fn reach(&self) -> u32 {
        4 * (self.tiers.len() as u32 + 1)
    }

    pub(super) fn bytes(&self) -> usize {
        self.tiers.iter().map(Tier::bytes).sum::<usize>() + self.last.bytes()
    }

    /// Fields: keys, the tiers' fields. Payloads: those of the tiers, the words of the last level.
    pub(super) fn encode(&self, fields: &mut Vec<u8>, payloads: &mut Vec<Vec<u8>>) {
        put_varint(fields, self.live);
        self.tiers.iter().for_each(|tier| tier.encode(fields, payloads));
        payloads.push(bytes_of(&self.last.sorted()));
    }

    pub(super) fn load<'a>(
        sizes: &Sizes,
        salt: Salt,
        from: &mut Reader<'_>,
        payloads: &mut impl Iterator<Item = &'a [u8]>,
        capacity: u64,
    ) -> Result<Generation<L>, FormatError> {
        let live = from.within("keys of a generation", 0..=capacity)?;
        let mut next = || payloads.next().ok_or_else(|| FormatError::invalid("directory: too few payloads"));
        let mut tiers = from.room(sizes.tiers.len() as u64)?;
        for (i, size) in (0..).zip(&sizes.tiers) {
            tiers.push(Tier::load(size, salt.child(i), from, [next()?, next()?])?);
        }
        let words = words_of(next()?)?;
        from.draw(cost(sizes.last))?;
        let mut last = Words::new(sizes.last).map_err(|e| FormatError::invalid(e.to_string()))?;
        let sound = words.iter().all(|word| word & ((1 << SHIFT) - 1) == 1) && last.fill(&words);
        FormatError::check(sound, || "payload: the words of the last level are out of order")?;
        let held = tiers.iter().map(Tier::len).sum::<u64>() + last.len() as u64;
        // Keys that moved on left their bits in a Bloom filter.
        let entered = tiers.first().map_or(0, Tier::len);
        let fits = if L::LOSSLESS { held == live } else { (live..=capacity).contains(&entered) };
        FormatError::check(fits, || format!("directory: {live} keys in levels that hold {held}"))?;
        Ok(Generation { salt: salt.child(tiers.len() as u64), tiers, last, live })
    }
}
