//! keys, complete; negatives, one after the other -> the few negatives that match stage one.
//!
//! A chained filter stores only the negatives that pass its first stage, which is built from the keys alone. So when the keys
//! are complete, a million negatives per key need no room: stage one is built at once, and what it rejects is forgotten.
//!
//! ```text
//!   700,000,000 negatives ──▶ sieve, w bits ──▶ about 2,500 are kept
//!                               ▲
//!                             w grows with the negatives seen so far
//! ```
//!
//! The width of stage one grows with the number of negatives, which is known at the end. A filter of fewer bits on the same keys
//! rejects nothing that matches a wider one: it is made of the same columns (`Structure::nested`). So the sieve has the
//! width for the negatives seen so far, and is built again when that grows: a logarithmic number of times. The bytes of the
//! filter are those without a sieve.

use std::sync::Arc;

use super::{Common, Options, write_plan};
use crate::arch::arena::Arena;
use crate::error::{BuildError, Error};
use crate::filter::query::Filter;
use crate::gather::{OnConflict, Shards, Sketch};
use crate::hash::Digest;
use crate::leaves::Role;
use crate::math::chance::too_many;
use crate::plan::{Goal, Plan, Request, Step, Structure, plan};

/// Negatives between two looks at their number, at least.
const LOOK: u64 = 1 << 12;

/// How often stage one is made wider for negatives that were chosen to pass it.
pub(super) const ROUNDS: u32 = 4;

/// Whether there is no sieve. A key that a conflict drops would not be in stage one. With a budget, whether it is enough is known when
/// all negatives are; where queries are expected, the plan is chosen when all are counted.
fn without(options: &Options) -> bool {
    options.on_conflict == OnConflict::Drop || matches!(options.goal, Goal::BitsPerKey(_)) || options.expecting
}

/// The plan for so many keys and negatives, what it is for, and the first stage, if what really passes it is to be counted.
pub(super) fn planned(
    keys: u64,
    negatives: u64,
    options: &Options,
) -> Result<(Request, Plan, Option<Structure>), BuildError> {
    let request = options.request(keys, negatives);
    let planned = plan(&request)?;
    // Fewer negatives than keys cost little, whatever they pass.
    let few = request.negatives < request.keys || request.keys == 0;
    let fixed = matches!(options.goal, Goal::BitsPerKey(_)) || options.expecting;
    // A steered column is built from both sides: nobody knows beforehand what passes it.
    let first = planned.steps.first().filter(|step| step.role == Role::Positive);
    let first = first.map(|step| step.structure).filter(|first| !matches!(first, Structure::Steered(_)));
    let watched = first.filter(|_| !few && !fixed);
    Ok((request, planned, watched))
}

/// Whether memory may be spent on a first stage, or on a whole filter, only to see what passes it.
pub(super) fn fits(first: &Structure, request: &Request, options: &Options) -> bool {
    first.bits(request.keys, 0) / 8.0 < options.common.limits.memory as f64 / 4.0
}

/// Where more negatives pass this first stage than chance lets through of `like`: as how many ordinary ones they are.
pub(super) fn more_like(left: usize, like: u64, first: &Structure) -> Option<u64> {
    let rate = first.rate_at(1);
    let more = || ((left as f64 / rate) as u64).clamp(like, Sketch::MAX_DISTINCT);
    too_many(left, like as f64 * rate).then(more)
}

/// Rejects negatives that stage one will reject.
pub(super) struct Sieve {
    filter: Option<Box<(Structure, Filter)>>,
    /// When to look next, in negatives.
    next: u64,
}

impl Sieve {
    pub(super) fn new() -> Sieve {
        Sieve { filter: None, next: LOOK }
    }

    /// Whether negatives may have been let go.
    pub(super) fn is_active(&self) -> bool {
        self.filter.is_some()
    }

    /// The filter, if it is the leaf that a plan begins with.
    pub(super) fn first(&self, plan: &Plan) -> Option<&Filter> {
        let (structure, filter) = &**self.filter.as_ref()?;
        plan.steps.first().filter(|step| step.structure == *structure).map(|_| filter)
    }

    /// Builds the sieve, or a wider one, if `count` negatives, of which `distinct` are known to differ, call for it; says
    /// whether it did.
    pub(super) fn refresh(
        &mut self,
        shards: &Shards,
        distinct: impl FnOnce() -> Result<u64, BuildError>,
        count: u64,
        options: &Options,
    ) -> Result<bool, Error> {
        if count < self.next || without(options) {
            return Ok(false);
        }
        let request = options.request(shards.stats.keys, distinct()?);
        // Building it pays when it is queried as often as it has keys, and must fit in what a build may use. Fewer distinct
        // negatives than keys may yet be listed themselves by the first stage, and then none can be let go.
        if request.negatives < request.keys || request.keys == 0 {
            self.next = count + (count / 8).max(LOOK);
            return Ok(false);
        }
        // An error comes again, for it is not the last look.
        let built = match plan(&request)?.sieve {
            Some(structure) => self.widen(shards, &request, structure, options)?,
            None => false,
        };
        self.next = count + (count / 8).max(LOOK);
        Ok(built)
    }

    /// Builds the sieve of this structure, unless it is there; says whether it did.
    fn widen(
        &mut self,
        shards: &Shards,
        request: &Request,
        structure: Structure,
        options: &Options,
    ) -> Result<bool, Error> {
        if !fits(&structure, request, options) || self.filter.as_ref().is_some_and(|built| built.0 == structure) {
            return Ok(false);
        }
        let plan = Plan::new(vec![Step { role: Role::Positive, structure }]);
        let metadata = Arc::default();
        let common = Common { progress: None, secret_beside: false, metadata, ..options.common.clone() };
        let quiet = Options { common, patch: None, ..options.clone() };
        let mut arena = Arena::new(plan.bytes(request));
        write_plan(shards, &plan, None, None, 0, &quiet, &mut arena)?;
        self.filter = Some(Box::new((structure, Filter::open_unverified(arena.finish())?)));
        Ok(true)
    }

    /// The plan for these keys and negatives, and what it is for: `shards.approx_negatives` of them, unless negatives were chosen to pass stage
    /// one. Then it is for as many ordinary ones as would leave as many behind it, with a wider one, and so on.
    pub(super) fn plan(&mut self, shards: &Shards, options: &Options) -> Result<(Request, Plan), Error> {
        let mut like = shards.approx_negatives;
        let mut rounds = 0..ROUNDS;
        loop {
            let (request, planned, watched) = planned(shards.stats.keys, like, options)?;
            // The very leaf that the plan begins with, which need not be built again then.
            let Some(first) = watched.filter(|_| rounds.next().is_some()) else { return Ok((request, planned)) };
            self.widen(shards, &request, first, options)?;
            let Some((structure, _)) = self.filter.as_deref() else { return Ok((request, planned)) };
            let mut left = 0;
            shards.listed_negatives(&|| options.common.stop(), |digests, passing| {
                self.ask(digests, passing);
                left += passing.iter().filter(|passes| **passes).count();
            })?;
            // Those that a conflict made keys pass, and count for nothing.
            let left = left.saturating_sub((shards.approx_negatives - shards.known()) as usize);
            match more_like(left, like, structure) {
                Some(more) => like = more,
                None => return Ok((request, planned)),
            }
        }
    }

    /// Which of `negatives` may pass stage one; leaves `passing` alone where there is no sieve.
    pub(super) fn ask(&self, negatives: &[Digest], passing: &mut [bool]) {
        if let Some((_, filter)) = self.filter.as_deref() {
            filter.contains_digests(negatives, passing);
        }
    }
}
