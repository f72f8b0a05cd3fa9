//! keys, how skewed the queries are, false positives as they come -> a stack that learns which negatives to reject ([Stacked] section 6).
//!
//! It answers from the first moment, by its first layer, and the false positives that are reported fill its second:
//!
//! ```text
//!   Collecting     P            N (open, not read yet) ◀── false positives
//!                  │ N is full: it is frozen, and the keys that it knows by chance make the next P
//!                  ▼
//!   Stacked        P  N  P      (or Collecting again, with another N, if the plan has more layers)
//!                  │ half as many false positives again as expected
//!                  ▼
//!   Collecting     P            the upper layers are dropped: other values are queried now
//!                  │ and when it is stacked again that did not help
//!                  ▼
//!   Remodelling    P            queries are counted; then there is another plan, and another first layer
//! ```
//!
//! * **Nothing goes into a frozen layer.** A key that N does not know is answered with yes there, so it is in no later layer. Were N to
//!   learn it afterwards, it would be rejected: a false negative.
//! * **An open layer is not read.** It would reject no key: what it knows is decided by the layer after it.
//! * **Full** is a Bloom filter half of whose bits are set, or a cuckoo or quotient filter with as many entries as it was made for. A
//!   stack whose few negatives never fill the layer is finished after twice the queries that the plan foresaw.
//! * **The keys** are read again, through [`Keys`], for every layer on keys. If that fails the filter is as it was, and right; the
//!   next false positive tries again.
//!
//! **No shape.** A filter that is given no shape of its queries begins with counting, as after *Remodelling*.
//!
//! **Two ways to plan.** Without a lifetime the plan is that of the best stacked filter on such queries, however long it takes to fill. With
//! one it has three layers, and watches just as long as pays over that many queries ([`quick`](crate::math::stack::quick)).
//!
//! **Monitoring.** Rejections and false positives are counted in windows (`window.rs`). The paper rebuilds where the rate *differs* by half;
//! a rate that is lower is left alone here. The expected rate follows from the *shape*, so that must be right.
//!
//! **What is promised.** Every key is found, in every state. A negative that was learned passes a finished stack only by a chance of
//! the third layer's rate, and those after it. Chosen queries are not held off: values that the second layer does
//! not know pass at the first layer's rate, again and again, until a window is bad.

use crate::debug::brief_debug;
use crate::error::{BuildError, QueryError};
use crate::filter::options::set;
use crate::gather::counter::{Counter, ONE};
use crate::gather::{Limits, Stop, Workspace};
use crate::hash::{Digest, Key, Salt};
use crate::leaves::change;
use crate::math::shape::Shape;
use crate::math::stack::{expected_rate, observed, unknown_rate};
use crate::plan::Base;

use super::builder::{AdaptiveBuilder, Built};
use super::keys::{KeySet, Keys};
use super::{AdaptError, AdaptiveFilter, ChangeStats, Kept};

mod codec;
mod plan;
mod window;

use plan::{Plan, StackGoal, half_set};
use window::{Verdict, Window};

/// The options of an [`AdaptiveStacked`].
#[derive(Clone, Debug)]
pub(crate) struct Options {
    goal: StackGoal,
    /// None: it is counted first.
    shape: Option<Shape>,
    sample: u64,
    memory: u64,
}

impl Built for AdaptiveStacked {
    type Options = Options;
}

impl AdaptiveBuilder<AdaptiveStacked> {
    set! {
        /// Plans for this many negative queries in all, those before the last layer included: three layers, and the fewest false
        /// positives over them. By default the plan is the best stack in the end, however long it takes to fill.
        lifetime(queries: u64) => options.goal.lifetime = Some(queries);

        /// Sets how many negative queries are counted before a plan is made. The default is 200,000. Counting takes up to 16 MiB: the
        /// plan is made earlier where so many different ones do not fit.
        sample(queries: u64) => options.sample = queries;
    }

    #[cfg(feature = "internals")]
    set! {
        /// Layers of another structure.
        #[doc(hidden)]
        base(base: Base) => options.goal.base = base;

        /// A workload that is known: nothing is counted.
        #[doc(hidden)]
        shape(shape: Shape) => options.shape = Some(shape);

        /// Bytes for counting.
        #[doc(hidden)]
        counting_memory(bytes: u64) => options.memory = bytes;
    }

    /// Reads the keys and makes the filter. Keys take 16 bytes of memory each meanwhile.
    ///
    /// # Errors
    ///
    /// [`AdaptError::Store`] if the keys cannot be read, [`AdaptError::Build`] if an option is out of range.
    pub fn build<M: Keys>(self, keys: &mut M) -> Result<AdaptiveStacked, AdaptError<M::Error>> {
        let hasher = self.hasher();
        let Options { goal, shape, sample, memory } = self.options;
        goal.check()?;
        for (option, given) in [("sample", Some(sample)), ("lifetime", goal.lifetime)] {
            if given == Some(0) {
                return Err(BuildError::Range { option, given: 0.0, least: 1.0, most: u64::MAX as f64 }.into());
            }
        }
        let (set, digests) = KeySet::new(hasher, keys)?;
        let counts_first = shape.is_none();
        let shape = match shape {
            Some(shape) => shape,
            None => Shape::new([], 1.0).map_err(BuildError::from)?,
        };
        let mut filter = AdaptiveStacked {
            set,
            plan: goal.plan(digests.len() as u64, &shape),
            goal,
            shape,
            sample,
            memory,
            layers: vec![],
            open: None,
            phase: Phase::Collecting,
            dropped: false,
            made: 0,
            queries: 0,
            psi: 0.0,
            window: Window::default(),
            counter: None,
        };
        filter.build_first_layer(&digests)?;
        if counts_first {
            filter.start_remodelling();
        }
        Ok(filter)
    }
}

/// What a stack that learns is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// False positives fill a layer that is not read yet.
    Collecting,
    /// All layers of the plan are there.
    Stacked,
    /// The first layer answers, and queries are counted for another plan.
    Remodelling,
}

/// What a false positive brought about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StackedOutcome {
    /// The filter rejects the key already.
    Rejected,
    /// It was counted. No layer is open, or the key is in it, or an earlier layer lets it pass for good.
    Counted,
    /// It went into the open layer.
    Stored,
    /// The open layer is frozen, and there is another layer on keys.
    Layered,
    /// The rate was too high: the upper layers are gone, and the second one is open again.
    Dropped,
    /// That had not helped: queries are counted now.
    Counting,
    /// There is another plan, and another first layer.
    Replanned,
}

/// Stacked filter of a fixed set that learns from its false positives which keys to reject.
///
/// Every member matches. It first counts [`sample`](AdaptiveBuilder::sample) negative queries, then plans its layers, and fills them with
/// reported false positives. When queries change and too many match, it begins again. It keeps no rate against an attacker: it is for
/// queries of which some are frequent.
///
/// ```
/// use tamis::adaptive::{AdaptiveFilter, AdaptiveStacked};
/// let mut keys: Vec<u64> = (0..10_000).collect();
/// let builder = AdaptiveStacked::with_bits_per_key(8.0).sample(20_000).lifetime(300_000);
/// let mut filter = builder.build(&mut keys)?;
/// let mut matches = [0; 5];
/// for i in 0..100_000u64 {
///     let query = 1_000_000 + (i * i + 7) % 3001; // few keys, queried often
///     if filter.query(query)? {
///         // The table behind the filter has no such key.
///         matches[i as usize / 20_000] += 1;
///         filter.adapt(query, &mut keys)?;
///     }
/// }
/// assert!(matches[4] < matches[0]);
/// assert!(keys.iter().all(|&key| filter.contains(key) == Ok(true)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AdaptiveStacked {
    set: KeySet,
    goal: StackGoal,
    shape: Shape,
    sample: u64,
    memory: u64,
    plan: Plan,
    /// Those that are read: an odd number, the first never dropped.
    layers: Vec<Layer>,
    open: Option<Layer>,
    phase: Phase,
    /// Whether the upper layers were dropped and no window has been good since.
    dropped: bool,
    /// How many layers were ever begun: the number of the next salt.
    made: u64,
    /// Negative queries since the first layer was alone.
    queries: u64,
    /// The share of queries on what had been seen when the third layer was built.
    psi: f64,
    window: Window,
    /// Counts queries where they are modelled again; none once the shape is known.
    counter: Option<Counter>,
}

brief_debug!(AdaptiveStacked, it => keys: it.len(), layers: it.layers.len(), phase: it.phase, bytes: it.memory_bytes());

/// Counting here is never cancelled, and ends before it would need the disk.
const NEVER: Stop<'static> = &|| false;

fn counter(memory: u64) -> Counter {
    Counter::new(&Workspace::new(&Limits::default(), 1), memory)
}

/// A layer, and the number of its salt.
#[derive(Clone, Debug)]
struct Layer {
    number: u64,
    part: Box<dyn change::Layer>,
    /// Entries that were put in one by one.
    entries: u64,
}

/// The entries of an open layer that takes no more.
const FULL: u64 = u64::MAX;
/// How many times the queries that the plan foresaw a layer stays open.
const MAX_OPEN_PERIODS: u64 = 2;
/// How often a layer is looked at while it fills.
const FILL_CHECKS: u64 = 64;

impl AdaptiveStacked {
    /// Starts a filter of this many bits per key in all layers, 1 to 1024. Small sets may take a few bytes more.
    pub fn with_bits_per_key(bits: f64) -> AdaptiveBuilder<AdaptiveStacked> {
        let goal = StackGoal { base: Base::Bloom, bits, lifetime: None };
        AdaptiveBuilder {
            secret: None,
            secret_beside: false,
            options: Options { goal, shape: None, sample: 200_000, memory: 1 << 24 },
        }
    }

    /// Returns `true` if the key matches; counts it if not. The rates that the filter compares are those of false positives among
    /// these queries and those that it adapts to. [`contains`](AdaptiveFilter::contains) counts nothing.
    ///
    /// # Errors
    ///
    /// [`QueryError::KeyType`] if the key type is not the filter's.
    #[inline]
    pub fn query<K: Key>(&mut self, key: K) -> Result<bool, QueryError> {
        let key = self.digest(key)?;
        let yes = self.contains_digest(key);
        if !yes {
            self.count(key);
        }
        Ok(yes)
    }

    /// Counts a false positive, and stores it if a layer is open. A member does no harm but to the counts.
    ///
    /// Now and then this reads all keys: when a layer is full, and when there is another plan.
    ///
    /// # Errors
    ///
    /// [`AdaptError::Change`] if the key type is not the filter's, [`AdaptError::Store`] and [`AdaptError::Inconsistent`] if the keys
    /// cannot be read or are others than before. The filter is as it was but for the counts, and the next false positive tries again.
    pub fn adapt<K: Key, M: Keys>(&mut self, key: K, keys: &mut M) -> Result<ChangeStats, AdaptError<M::Error>> {
        let outcome = self.adapt_to(self.digest(key)?, keys)?;
        let reads = matches!(outcome, StackedOutcome::Layered | StackedOutcome::Replanned);
        let changed = outcome != StackedOutcome::Rejected;
        Ok(ChangeStats { changed, reads: reads.into(), ..ChangeStats::default() })
    }

    /// As [`adapt`](Self::adapt), and says what happened.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn traced_adapt<K: Key, M: Keys>(
        &mut self,
        key: K,
        keys: &mut M,
    ) -> Result<StackedOutcome, AdaptError<M::Error>> {
        self.adapt_to(self.digest(key)?, keys)
    }

    fn adapt_to<M: Keys>(&mut self, key: Digest, keys: &mut M) -> Result<StackedOutcome, AdaptError<M::Error>> {
        self.count(key);
        if !self.contains_digest(key) {
            return Ok(StackedOutcome::Rejected);
        }
        self.window.passed = self.window.passed.saturating_add(1);
        if self.phase == Phase::Remodelling {
            return self.remodel(keys);
        }
        // The first layer alone has nothing above it that could be wrong.
        if self.layers.len() > 1 || self.plan.alphas.len() == 1 {
            match self.window.judge(self.expected()) {
                Verdict::Good => self.dropped = false,
                Verdict::Bad if self.dropped => {
                    self.start_remodelling();
                    return Ok(StackedOutcome::Counting);
                }
                Verdict::Bad => {
                    self.drop_upper()?;
                    return Ok(StackedOutcome::Dropped);
                }
                Verdict::Open => {}
            }
        }
        let stored = self.store(key);
        if self.is_full() {
            self.close(keys)?;
            return Ok(StackedOutcome::Layered);
        }
        Ok(if stored { StackedOutcome::Stored } else { StackedOutcome::Counted })
    }

    /// A negative query.
    #[inline]
    fn count(&mut self, key: Digest) {
        self.queries = self.queries.saturating_add(1);
        self.window.queries = self.window.queries.saturating_add(1);
        if let Some(counter) = self.counter.as_mut().filter(|counter| !counter.is_full()) {
            // Its only error is 2^44 queries and more.
            counter.push(key, ONE, NEVER).ok();
        }
    }

    /// Puts a key into the open layer if it gets there: it must pass every layer so far.
    fn store(&mut self, key: Digest) -> bool {
        let reaches = self.layers.iter().all(|layer| layer.part.contains(key));
        let new = |open: &&mut Layer| reaches && open.entries != FULL && !open.part.contains(key);
        let Some(open) = self.open.as_mut().filter(new) else { return false };
        let stored = open.part.insert(key).is_ok();
        open.entries = if stored { open.entries.saturating_add(1) } else { FULL };
        stored
    }

    /// Whether the open layer takes no more. Once it does not it never does: if the next layer cannot be built now it waits.
    fn is_full(&mut self) -> bool {
        let patience = self.layers.len() == 1 && self.queries / MAX_OPEN_PERIODS >= self.plan.queries.max(1);
        let Some(open) = self.open.as_mut().filter(|open| open.entries > 0) else { return false };
        let full = match open.part.capacity() {
            Some(capacity) => open.entries >= capacity,
            None => {
                // A Bloom filter is full when half of its bits are set. To count them for every entry would be too much.
                let table = open.part.payload();
                let often = (table.len() as u64 / FILL_CHECKS).max(1);
                open.entries == FULL || (open.entries.is_multiple_of(often) && half_set(table))
            }
        };
        if full || patience {
            open.entries = FULL;
        }
        full || patience
    }

    /// Freezes the open layer and builds the one after it, from the keys that it knows.
    fn close<M: Keys>(&mut self, keys: &mut M) -> Result<(), AdaptError<M::Error>> {
        let Some(open) = &self.open else { return Ok(()) };
        let negative = || self.layers.iter().skip(1).step_by(2).chain([open]);
        let wanted = |key: Digest| negative().all(|layer| layer.part.contains(key));
        let left = self.set.read(keys, wanted)?;
        let index = self.layers.len() + 1;
        let taken = 8.0 * (self.memory_bytes() as f64);
        let rest = self.plan.bits_from(index + 1, self.goal.size(), self.set.keys);
        let room = self.goal.bits * self.set.keys as f64 - taken - rest;
        let part = self.goal.closed(&left, room, self.salt(self.made))?;
        let next = self.empty_layer(index + 1, self.made + 1)?;
        // From here on nothing fails.
        if self.layers.len() == 1 {
            self.psi = observed(&self.shape, self.queries).0.clamp(0.0, 1.0);
        }
        self.layers.extend(self.open.take());
        self.layers.push(Layer { number: self.made, part, entries: 0 });
        self.collect(next);
        self.made += 2;
        self.window = Window::default();
        Ok(())
    }

    /// A layer for the negatives that get as far as layer `index`, if the plan has one there.
    fn empty_layer(&self, index: usize, number: u64) -> Result<Option<Layer>, BuildError> {
        if index >= self.plan.alphas.len() {
            return Ok(None);
        }
        let part = self.goal.open(&self.plan, self.set.keys, index, self.salt(number))?;
        Ok(Some(Layer { number, part, entries: 0 }))
    }

    /// Collects false positives in this layer; without one the stack is complete.
    fn collect(&mut self, open: Option<Layer>) {
        self.phase = if open.is_some() { Phase::Collecting } else { Phase::Stacked };
        self.open = open;
    }

    /// Other values are queried now: the first layer stays, and the second is empty again.
    fn drop_upper(&mut self) -> Result<(), BuildError> {
        let open = self.empty_layer(1, self.made)?;
        self.made += 1;
        self.layers.truncate(1);
        self.collect(open);
        self.dropped = true;
        self.reset_counters();
        Ok(())
    }

    /// That did not help: the queries themselves must be different.
    fn start_remodelling(&mut self) {
        self.layers.truncate(1);
        self.open = None;
        self.phase = Phase::Remodelling;
        self.counter = Some(counter(self.memory));
        self.reset_counters();
    }

    /// The first layer answers alone from here on.
    fn reset_counters(&mut self) {
        (self.queries, self.psi, self.window) = (0, 0.0, Window::default());
    }

    /// Once enough queries are counted: a shape, a plan, and a first layer.
    fn remodel<M: Keys>(&mut self, keys: &mut M) -> Result<StackedOutcome, AdaptError<M::Error>> {
        if self.queries < self.sample && !self.counter.as_ref().is_some_and(Counter::is_full) {
            return Ok(StackedOutcome::Counted);
        }
        // The shape is there for good, also where the keys cannot be read now.
        if let Some(counter) = std::mem::take(&mut self.counter) {
            let weights = counter.finish(NEVER)?.weights(NEVER)?;
            let unseen = weights.unseen();
            if let Ok(shape) = Shape::new(weights.classes, unseen) {
                self.shape = shape;
            }
        }
        let digests = self.set.read(keys, |_| true)?;
        let before = std::mem::replace(&mut self.plan, self.goal.plan(digests.len() as u64, &self.shape));
        if let Err(e) = self.build_first_layer(&digests) {
            self.plan = before;
            return Err(e.into());
        }
        Ok(StackedOutcome::Replanned)
    }

    /// The first layer of the plan, and the second, empty. After an error nothing has changed.
    fn build_first_layer(&mut self, digests: &[Digest]) -> Result<(), BuildError> {
        let keys = self.set.keys;
        let open = self.empty_layer(1, self.made + 1)?;
        let taken = open.as_ref().map_or(0, |open| open.part.payload().len()) as f64 * 8.0;
        let rest = if open.is_some() { self.plan.bits_from(2, self.goal.size(), keys) } else { 0.0 };
        let first = self.goal.closed(digests, self.goal.bits * keys as f64 - taken - rest, self.salt(self.made))?;
        self.layers = vec![Layer { number: self.made, part: first, entries: 0 }];
        self.collect(open);
        self.made += 2;
        self.dropped = false;
        self.reset_counters();
        Ok(())
    }

    fn salt(&self, number: u64) -> Salt {
        Salt::secret(&self.set.hasher, number)
    }

    /// The rates of the layers that answer, as they are filled.
    fn rates(&self) -> Vec<f64> {
        self.layers.iter().map(|layer| layer.part.fpr()).collect()
    }

    /// The rate that is expected now, over all negative queries; windows are compared with it. Layers after the third are left out: how
    /// much of what is known they hold is not foreseen, and little is left for them.
    fn expected(&self) -> f64 {
        let rates = self.rates();
        expected_rate(self.psi, rates.get(..3).unwrap_or(&rates[..rates.len().min(1)]))
    }

    /// What it is doing.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// How many layers answer.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// The rates of the planned layers, and the negative queries that the first of them must answer alone.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn planned(&self) -> (&[f64], u64) {
        (&self.plan.alphas, self.plan.queries)
    }
}

impl AdaptiveFilter for AdaptiveStacked {
    fn len(&self) -> u64 {
        self.set.keys
    }

    fn fpr(&self) -> f64 {
        unknown_rate(&self.rates())
    }

    fn memory_bytes(&self) -> usize {
        self.layers.iter().chain(&self.open).map(|layer| layer.part.payload().len()).sum()
    }
}

#[cfg(test)]
mod tests;
