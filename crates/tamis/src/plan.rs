//! counts + a goal -> the list of steps to build, as plain integers.
//!
//! With nothing known but the keys there is one step, `P`, and the question is only which leaf, and how wide. The
//! default is the ribbon: as small as filters get. With known negatives the recipes say how leaves are put together; the
//! default is `P E`.
//!
//! A plan depends on the number of keys and on an estimate of the number of negatives that is the same for any order of
//! the input, and more negatives never make the first filter of a `P E` narrower: so a sieve of that width, built when the keys are
//! complete, may let negatives go long before their number is known (`build/sieve.rs`).

use crate::error::BuildError;
use crate::gather::Sketch;
use crate::leaves::Role;
pub(crate) use crate::leaves::Structure;

mod budget;
mod choose;
mod compare;
mod kind;
mod plain;
mod predict;
pub(crate) mod recipes;
mod request;
mod room;

use budget::file_bits;
pub use choose::GUARD;
pub(crate) use choose::{Expected, MIN_UNLISTED_SHARE, PlannedDesign};
pub(crate) use compare::compare;
pub use compare::{Candidate, Comparison, PredictedLayer, Prediction};
pub use kind::{Base, Effort, Goal, Kind, Layout};
use plain::plain;
pub(crate) use predict::predict;
use recipes::{chained, local, steered};
pub(crate) use request::{Columns, MAX_EXTRA_CAPACITY, Request, most};
use room::plan_with_capacity;

/// One step to build.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Step {
    pub(crate) role: Role,
    pub(crate) structure: Structure,
}

impl Step {
    /// How a directory names it.
    pub(crate) fn kind(&self) -> [u8; 2] {
        [self.role.encode(), self.structure.tag()]
    }

    /// Whether a later release may not read it.
    pub(crate) fn may_change(&self) -> bool {
        crate::leaves::may_change(self.structure.tag())
    }
}

/// What will be built.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// A filter on the keys alone that matches every negative which the plan's first step matches, for this number of
    /// negatives and for any larger one.
    pub(crate) sieve: Option<Structure>,
    /// The share of the negatives, by weight, that may match because the first step that stores negatives leaves out light ones. With an
    /// exact step each of them matches with probability 1/2.
    pub(crate) allowed: f64,
    /// The number that the salts of the steps follow from: not 0 where others did not keep a goal.
    pub(crate) salts: u64,
}

/// Chooses the steps.
pub(crate) fn plan(request: &Request) -> Result<Plan, BuildError> {
    request.check()?;
    if request.spare > 0.0 {
        return Ok(Plan::new(plan_with_capacity(request, |grown| Ok((plan(grown)?.steps, 0)))?.0));
    }
    // The number of many negatives is an estimate: a budget must do for four standard deviations more.
    let more = match request.goal {
        Goal::BitsPerKey(_) if request.negatives > Sketch::EXACT => request.negatives / 32,
        Goal::BitsPerKey(_) | Goal::Fpr(_) | Goal::Exact | Goal::ExcludedFpr(_) => 0,
    };
    let request = &Request { negatives: request.negatives + more, ..*request };
    let Request { keys, negatives, goal, kind, .. } = *request;
    // Without keys there is nothing to spend bits on, and nothing to exclude from.
    if keys == 0 {
        let kind = if kind.traits().negatives { Kind::Ribbon } else { kind };
        return plain(kind, &Request { goal: Goal::Fpr(0.5), columns: None, ..*request });
    }
    // Without negatives the answer is yes.
    if negatives == 0 && matches!(goal, Goal::Exact | Goal::ExcludedFpr(_)) {
        return Ok(Plan::new(vec![]));
    }
    kind.recipe(request).unwrap_or_else(|| plain(kind, request))
}

/// The default: what takes the least room, or the least time at [`Effort::Fast`], unless steering was named.
fn by_default(request: &Request) -> Result<Plan, BuildError> {
    let Request { keys, negatives, goal, kind, effort, .. } = *request;
    match goal {
        _ if negatives == 0 => plain(if effort == Effort::Fast { Kind::Fuse } else { Kind::Ribbon }, request),
        _ if local::wanted(request)? => local::plan(request),
        _ if effort != Effort::Fast || kind == Kind::Steered => steered::plan(request),
        // Nothing is known of which keys it may let pass. A share that no width reaches is left to two stages, and so are few negatives.
        Goal::ExcludedFpr(share) => {
            let goal = Goal::Fpr(steered::aim(share, keys, negatives));
            let two = chained::plan(Base::Fuse, request)?;
            let bits = |plan: &Plan| request.likely_bits(&plan.steps);
            let plain = plain(Kind::Fuse, &Request { goal, ..*request }).ok();
            Ok(plain.filter(|plain| negatives >= keys || bits(plain) <= bits(&two)).unwrap_or(two))
        }
        Goal::Fpr(_) | Goal::BitsPerKey(_) | Goal::Exact => chained::plan(Base::Fuse, request),
    }
}

impl Plan {
    /// A plan that needs all negatives.
    pub(crate) fn new(steps: Vec<Step>) -> Plan {
        Plan { steps, sieve: None, allowed: 0.0, salts: 0 }
    }

    /// The same, where a share of the negatives may match.
    fn sharing(steps: Vec<Step>, request: &Request) -> Plan {
        Plan { allowed: request.allowed(&steps), ..Plan::new(steps) }
    }

    /// Whether all negatives of a build get a no.
    pub(crate) fn promises(&self, keys: u64) -> bool {
        keys == 0 || self.steps.last().is_none_or(|step| step.role == Role::Exact)
    }

    /// About how many bytes the file will have; rather a little more than less.
    pub(crate) fn bytes(&self, request: &Request) -> u64 {
        let bits = request.bits_of(&self.steps);
        let per_key = bits / request.keys.max(1) as f64;
        ((bits * 1.01 + file_bits(request, self.steps.len(), per_key)) / 8.0) as u64 + 4096
    }
}

#[cfg(test)]
mod tests;
