//! a list of steps + a digest -> yes or no: the evaluator of every filter.
//!
//! A filter is a list of steps, and every step queries one leaf:
//!
//! ```text
//!   Refuse   leaf on the keys         "no" ends with no               P
//!   Admit    leaf on the negatives    "no" ends with yes              N
//!   Decide   leaf on both             its answer is the answer        E
//!   (end)                             yes                             A
//! ```
//!
//! Bloom, fuse and ribbon filters are `P`; longer lists are made by the recipes. A leaf that decides is a filter like the
//! others, of one bit as a rule, that holds the negatives which got this far with the wrong fingerprint
//! (`Values::Signed`): it never errs on a key it was built on, and matches half of the unlisted keys.
//!
//! One evaluator serves all lists, alone and in batches: each step answers for the keys that are still undecided, and the
//! survivors are moved together before the next, so that every step prefetches a full batch. Steered columns and an exact bit at the
//! end of a list are one query: `branchless.rs`.

use bytes::Bytes;

use crate::arch::rows::{Line, Rows};
use crate::arch::{Answer, Isa, QueryFn};
use crate::hash::Digest;
pub(crate) use crate::leaves::Role;
use crate::leaves::ribbon::Ribbon;
use crate::leaves::{Entry, Leaf, ShardedLeaf, Way};
use branchless::Branchless;

pub(super) mod branchless;

/// One step of a filter.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) role: Role,
    pub(crate) leaf: Leaf,
    /// Answers for one key of the leaf.
    ask: QueryFn<Leaf>,
}

impl Step {
    pub(crate) fn new(role: Role, leaf: Leaf) -> Step {
        Step { role, ask: leaf.query_fn::<Leaf>(), leaf }
    }

    /// The answer of the filter, if this step has it.
    #[inline(always)]
    fn ends(&self, key: Digest) -> Option<bool> {
        self.role.ends(self.ask.call(&self.leaf, key))
    }
}

/// A list of steps. The first one lies in it, so that the most common query has no pointer to follow to get there.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    first: Option<Step>,
    rest: Box<[Step]>,
    /// Whether the answer of the first leaf is the answer.
    single: bool,
    /// The same for a file that is [`NEAR`].
    pub(super) near: bool,
    /// The steered columns and the exact bit at the end, if there are such.
    branchless: Option<Box<Branchless>>,
    ask: QueryFn<Steps>,
    /// Answers for a key that the first step leaves undecided.
    later: QueryFn<Steps>,
    /// Of the first leaf, if it is a ribbon: nothing to look for on the way to them.
    rows: Line<Rows>,
}

/// The way to the first leaf of a list; `REST` if other steps follow.
struct First<const REST: bool>;

impl<const REST: bool> Way for First<REST> {
    type Asked = Steps;
    const SINGLE: bool = true;

    #[inline(always)]
    fn leaf<G: Entry>(steps: &Steps) -> Option<&ShardedLeaf<G>> {
        match &steps.first {
            Some(step) => G::of(&step.leaf),
            None => None,
        }
    }

    #[inline(always)]
    fn rows(steps: &Steps) -> Option<&Rows> {
        Some(&steps.rows.0)
    }

    #[inline(always)]
    fn go_on(steps: &Steps, yes: bool, key: Digest) -> bool {
        if REST { yes && steps.later.call(steps, key) } else { yes }
    }
}

/// One step after the other: lists that start with a leaf of several shards, or with one that admits, or are empty.
struct OneByOne;

impl Answer<Steps> for OneByOne {
    #[inline(always)]
    fn answer<I: Isa>(steps: &Steps, key: Digest) -> bool {
        match steps.first.as_ref().and_then(|step| step.ends(key)) {
            Some(answer) => answer,
            None => steps.later.call(steps, key),
        }
    }
}

/// The second and last step.
struct Second;

impl Answer<Steps> for Second {
    #[inline(always)]
    fn answer<I: Isa>(steps: &Steps, key: Digest) -> bool {
        match &steps.rest[..] {
            [step, ..] => step.ask.call(&step.leaf, key),
            [] => true,
        }
    }
}

/// One step after the other from the second on.
struct Later;

impl Answer<Steps> for Later {
    #[inline(always)]
    fn answer<I: Isa>(steps: &Steps, key: Digest) -> bool {
        for step in steps.rest.iter() {
            if let Some(answer) = step.ends(key) {
                return answer;
            }
        }
        true
    }
}

impl Steps {
    /// A list whose payloads are in `file`.
    pub(crate) fn new(steps: Vec<Step>, file: &Bytes) -> Steps {
        let mut steps = steps.into_iter();
        let (first, rest) = (steps.next(), steps.collect::<Box<[Step]>>());
        let single = match first.as_ref().map(|step| step.role) {
            Some(Role::Positive) => rest.is_empty(),
            Some(Role::Exact) => true,
            Some(Role::Negative) | None => false,
        };
        let branchless = Branchless::new(first.as_ref(), &rest, file);
        let at_once = |from: usize| branchless.as_ref().filter(|steps| steps.from == from).map(|steps| steps.ask);
        let later = at_once(1).unwrap_or_else(|| match &rest[..] {
            [Step { role: Role::Positive | Role::Exact, .. }] => QueryFn::portable::<Second>(),
            _ => QueryFn::portable::<Later>(),
        });
        let ask = at_once(0).unwrap_or_else(|| match &first {
            Some(Step { role: Role::Positive | Role::Exact, leaf, .. }) if leaf.is_single() => match single {
                true => leaf.query_fn::<First<false>>(),
                false => leaf.query_fn::<First<true>>(),
            },
            Some(_) | None => QueryFn::portable::<OneByOne>(),
        });
        let rows = first.as_ref().and_then(|step| Leaf::rows(&step.leaf)).cloned().unwrap_or_else(Rows::none);
        let near = single && file.len() <= NEAR;
        Steps { first, rest, single, near, branchless, ask, later, rows: Line(rows) }
    }

    /// All steps in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Step> {
        self.first.iter().chain(self.rest.iter())
    }

    /// The first leaf, if it is a ribbon whose "no" is the answer.
    pub(crate) fn refuses(&self) -> Option<&ShardedLeaf<Ribbon>> {
        match &self.first {
            Some(Step { role: Role::Positive, leaf: Leaf::Ribbon(leaf), .. }) => Some(leaf),
            _ => None,
        }
    }

    /// The answer for one key.
    #[inline(always)]
    pub(crate) fn contains(&self, key: Digest) -> bool {
        self.ask.call(self, key)
    }
}

/// Bytes of a file that a core's caches mostly hold: a query does not wait for them, and a batch that fetches them ahead takes longer
/// than a loop.
const NEAR: usize = 1 << 21;

/// Keys per round: the survivors of one step are a full batch for the next.
pub(crate) const ROUND: usize = 256;

/// The answers of a list of steps for at most [`ROUND`] keys.
pub(crate) fn contains_many(steps: &Steps, file: &[u8], keys: &[Digest], out: &mut [bool]) {
    if let Some(Step { leaf, .. }) = steps.first.as_ref().filter(|_| steps.single) {
        return leaf.contains_many(file, keys, out);
    }
    let done = steps.contains_many_at_once(0, keys, out);
    if done == keys.len() {
        return;
    }
    let (keys, out) = (&keys[done..], &mut out[done..]);
    // The undecided keys and where their answers go; the rest is decided.
    let mut open = [Digest::default(); ROUND];
    let mut places = [0u16; ROUND];
    let mut answers = [false; ROUND];
    let mut count = keys.len().min(out.len()).min(ROUND);
    open[..count].copy_from_slice(&keys[..count]);
    for (i, place) in places.iter_mut().enumerate() {
        *place = i as u16;
    }
    out[..count].fill(true);
    for (number, Step { role, leaf, .. }) in steps.iter().enumerate() {
        let done =
            if number > 0 { steps.contains_many_at_once(number, &open[..count], &mut answers[..count]) } else { 0 };
        if done > 0 {
            for (&place, &answer) in places.iter().zip(&answers[..done]) {
                out[place as usize] = answer;
            }
            open.copy_within(done..count, 0);
            places.copy_within(done..count, 0);
            count -= done;
        }
        leaf.contains_many(file, &open[..count], &mut answers[..count]);
        // Members come in crowds: where all pass there is nothing to move.
        if *role != Role::Exact && answers[..count].iter().fold(true, |all, yes| all & yes) {
            continue;
        }
        let mut kept = 0;
        for i in 0..count {
            let place = places[i];
            if *role != Role::Negative {
                out[place as usize] = answers[i];
            }
            (open[kept], places[kept]) = (open[i], place);
            kept += answers[i] as usize;
        }
        if *role == Role::Exact {
            return;
        }
        count = kept;
    }
}

/// The same for keys of which nothing is known. Of two steps the second is queried for all of them: about half would be left, and to move
/// those together costs as much.
pub(crate) fn contains_many_at_once(steps: &Steps, file: &[u8], keys: &[Digest], out: &mut [bool]) {
    match (&steps.first, &steps.rest[..]) {
        (Some(Step { role: Role::Positive, leaf, .. }), [Step { role: Role::Exact, leaf: last, .. }]) => {
            let mut passes = [false; ROUND];
            let passes = &mut passes[..keys.len().min(ROUND)];
            leaf.contains_many(file, keys, passes);
            last.contains_many(file, keys, out);
            out.iter_mut().zip(passes).for_each(|(out, passes)| *out &= *passes);
        }
        _ => contains_many(steps, file, keys, out),
    }
}

/// The share of unlisted keys that match a list of steps, if its leaves err independently. A first leaf on the keys has as many of
/// them as was planned for, and its rate is the expected one; others may hold a key or two, and are counted.
pub(crate) fn rate(steps: &Steps) -> f64 {
    let (mut undecided, mut admitted) = (1.0, 0.0);
    for (number, Step { role, leaf, .. }) in steps.iter().enumerate() {
        let planned = number == 0 && *role == Role::Positive;
        let passed = undecided * if planned { leaf.fpr() } else { leaf.counted_rate() };
        match role {
            Role::Positive => undecided = passed,
            Role::Negative => {
                admitted += undecided - passed;
                undecided = passed;
            }
            Role::Exact => return (admitted + passed).min(1.0),
        }
    }
    (admitted + undecided).min(1.0) // sums of rounded numbers may exceed it
}

#[cfg(all(test, feature = "build"))]
mod tests;
