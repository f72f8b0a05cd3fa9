//! wishes -> the shape of a cascade.

use super::{Cascade, Level};
use crate::debug::brief_debug;
use crate::error::BuildError;
use crate::hash::{Hasher, KeyType};

/// How the rates of the levels fall.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Schedule {
    /// Every rate is the square of the one before: log log n levels.
    #[default]
    Squaring,
    /// eps, then eps^(1 / sqrt eps), then eps^(1 / eps') with eps' the one before: log* n levels, which only Theorem 20 of \[Broom\] tells from two.
    /// No rate is lower than 2^-26, so that fingerprints fit.
    LogStar,
}

/// What a cascade is made for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Shape {
    pub(super) key_type: KeyType,
    pub(super) capacity: u64,
    pub(super) rate: f64,
    pub(super) schedule: Schedule,
    pub(super) steps: u32,
}

/// Keys that can be moved for a repair: the worst case of a task bounds them.
pub(super) const STEPS: std::ops::RangeInclusive<u32> = 4..=128;
const DEFAULT_STEPS: u32 = 32;
pub(super) const MAX_KEYS: u64 = 1 << 36;
/// The lowest rate and the highest.
const RATES: std::ops::RangeInclusive<f64> = 1e-7..=0.5;

impl Shape {
    pub(super) fn check(self) -> Result<Shape, BuildError> {
        let ((least, most), given) = (RATES.into_inner(), self.rate);
        if !(least..=most).contains(&given) {
            return Err(BuildError::Range { option: "fpr", given, least, most });
        }
        BuildError::check_size("cascade", "keys", self.capacity, 0..=MAX_KEYS)?;
        let (least, most) = STEPS.into_inner();
        BuildError::check_size("cascade", "steps", self.steps.into(), least.into()..=most.into())?;
        Ok(self)
    }
}

/// A cascade to be made.
///
/// ```
/// use tamis::adaptive::{Adapt, CascadeOptions, QuotientCascade, Schedule};
/// use tamis::KeyType;
/// let options = CascadeOptions::new(KeyType::Integer, 1000, 0.01);
/// let filter: QuotientCascade = options.secret([1, 2]).schedule(Schedule::LogStar).steps(64).build()?;
/// assert_eq!((filter.capacity(), filter.fpr()), (1000, 0.01));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct CascadeOptions {
    shape: Shape,
    secret: Option<[u64; 2]>,
}

brief_debug!(CascadeOptions, it => shape: it.shape);

impl CascadeOptions {
    /// A cascade for `capacity` keys with this rate, squared from level to level; 32 keys are moved for a repair.
    pub fn new(key_type: KeyType, capacity: u64, rate: f64) -> CascadeOptions {
        let shape = Shape { key_type, capacity, rate, schedule: Schedule::Squaring, steps: DEFAULT_STEPS };
        CascadeOptions { shape, secret: None }
    }

    /// The secret key; without it the operating system gives one.
    pub fn secret(mut self, secret: [u64; 2]) -> CascadeOptions {
        self.secret = Some(secret);
        self
    }

    /// How the rates of the levels fall.
    pub fn schedule(mut self, schedule: Schedule) -> CascadeOptions {
        self.shape.schedule = schedule;
        self
    }

    /// How many keys are moved for a repair while a generation is replaced, 4 to 128: with more, the levels after the first are smaller.
    pub fn steps(mut self, steps: u32) -> CascadeOptions {
        self.shape.steps = steps;
        self
    }

    /// The filter, empty.
    pub fn build<L: Level>(self) -> Result<Cascade<L>, BuildError> {
        let hasher = Hasher::secret_or_random(self.secret)?;
        Cascade::empty(self.shape.check()?, hasher)
    }
}
