//! options -> the shape of a cascade.

use super::{Cascade, Level};
use crate::adaptive::builder::{AdaptiveBuilder, Built, Empty, Sizing, check_range};
use crate::error::BuildError;
use crate::filter::options::set;
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

/// Keys that can be moved for each false positive: the worst case of a task bounds them.
pub(super) const STEPS: std::ops::RangeInclusive<u32> = 4..=128;
const DEFAULT_STEPS: u32 = 32;
pub(super) const MAX_KEYS: u64 = 1 << 36;

impl Shape {
    pub(super) fn check(self) -> Result<Shape, BuildError> {
        check_range("fpr", self.rate, 1e-7..=0.5)?;
        BuildError::check_size("cascade", "keys", self.capacity, 0..=MAX_KEYS)?;
        let (least, most) = STEPS.into_inner();
        check_range("moves_per_adapt", self.steps, least.into()..=most.into())?;
        Ok(self)
    }
}

/// The options that only cascades have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct More {
    schedule: Schedule,
    steps: u32,
}

impl Default for More {
    fn default() -> More {
        More { schedule: Schedule::Squaring, steps: DEFAULT_STEPS }
    }
}

impl<L> Built for Cascade<L> {
    type Options = Sizing<More>;
}

impl<L: Level> Empty for Cascade<L> {
    type More = More;

    fn empty(sizing: &Sizing<More>, key_type: KeyType, hasher: Hasher) -> Result<Cascade<L>, BuildError> {
        let Sizing { capacity, fpr: rate, more: More { schedule, steps } } = *sizing;
        Cascade::of(Shape { key_type, capacity, rate, schedule, steps }.check()?, hasher)
    }
}

impl<L: Level> AdaptiveBuilder<Cascade<L>> {
    set! {
        /// Sets how the rates of the levels fall.
        schedule(schedule: Schedule) => options.more.schedule = schedule;

        /// Sets how many keys each false positive moves while a generation is replaced, 4 to 128; the default is 32. With more, the levels
        /// after the first are smaller.
        ///
        /// ```
        /// use tamis::adaptive::{Adapt, AdaptiveFilter, QuotientCascade, Schedule};
        /// let builder = QuotientCascade::with_capacity(1000).schedule(Schedule::LogStar).moves_per_adapt(64);
        /// let filter = builder.build::<u64>()?;
        /// assert_eq!((filter.capacity(), filter.fpr()), (1000, 0.01));
        /// # Ok::<(), tamis::Error>(())
        /// ```
        moves_per_adapt(keys: u32) => options.more.steps = keys;
    }
}
