//! counts, what is expected to be asked, a goal -> every design side by side, and the best of them.
//!
//! One family of lists of steps covers all designs, and all are judged alike, by what they do on the expected queries:
//!
//! ```text
//!   workload rate = psi * (share of listed negatives let through) + (1 - psi) * (share of strangers let through)
//! ```
//!
//! where psi is the share of queries that fall on the values a filter was told of. How many it is told of, the heaviest first, is a
//! choice too: every one costs bits, and the light ones are not worth them. For a filter and an exact bit (`P E`) with nu of them per
//! key, L bits before the exact one and C bits of file per bit of information,
//!
//! ```text
//!   bits = C (L + 1 + nu 2^-L)          rate = (1 - psi) 2^-(L + 1)
//! ```
//!
//! so a value of weight w is worth knowing while w n > (1 - psi) ln 2 2^-L: with eight bits or more, nearly always. The curve is
//! flat at its best, so a coarse search on this formula is enough, and the recipes plan exactly for what it finds. Stacks have optimisers
//! of their own (`math::stack`).

use std::f64::consts::{LN_2, LOG2_E};

use super::outlook::{Outlook, outlook};
use super::{Base, Effort, Goal, Kind, Plan, Request, Step, plan, spared};
use crate::error::BuildError;
use crate::leaves::Role;
use crate::leaves::integrated::Parts;
use crate::math::bounds::free_set;
use crate::math::portable::{exp2, log2};
use crate::math::shape::Shape;
use crate::plan::recipes::stacked;

/// The queries to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) shape: &'a Shape,
    /// The largest rate for unlisted keys; unless given, the [`ceiling`] of the request.
    pub(crate) cap: Option<f64>,
}

/// With queries to expect and a budget of bits, unlisted keys match at most so many times as often as with a plain filter of the same kind and
/// budget, unless [`max_rate_unknown`](crate::Build::max_rate_unknown) says otherwise.
///
/// It is half a bit, and in no paper: \[Stacked\] limits the rate of unlisted keys (EFPB) only where it is asked to, and a sample that shows none
/// of them would then give them all away.
///
/// ```
/// use tamis::plan::GUARD;
/// let popular = (1000..3000u64).map(|site| (site, 2.0)); // none was asked for once
/// let plain = tamis::build(0..1000u64).bits_per_key(9.0).finish()?;
/// let filter = tamis::build(0..1000u64).bits_per_key(9.0).expect(popular).finish()?;
/// assert!(filter.rate() <= GUARD * plain.rate());
/// # Ok::<(), tamis::Error>(())
/// ```
pub const GUARD: f64 = 1.42;

/// The largest rate for unlisted keys where none is given: the rate itself, or [`GUARD`] times what the budget gives without expected
/// queries. An exact filter has none.
fn ceiling(request: &Request) -> Result<f64, BuildError> {
    Ok(match request.goal {
        Goal::Rate(rate) => rate,
        Goal::BitsPerKey(_) => (GUARD * outlook(&plan(request)?.steps, request).strangers).min(1.0),
        Goal::Exact | Goal::Share(_) => 1.0,
    })
}

/// One design, planned for the goal: what it would take and do.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The structure's name on the command line.
    pub name: &'static str,
    /// The structure.
    pub kind: Kind,
    /// Whether the planner takes this one.
    pub chosen: bool,
    /// What it would be, or why it is out of the question.
    pub forecast: Result<Forecast, String>,
}

/// What a design will take and do.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Forecast {
    /// Its steps, one letter each: `P` a filter on the keys, `N` one on negatives, `E` an exact bit.
    pub steps: String,
    /// How many of the expected queries it is told of, the heaviest first.
    pub known: u64,
    /// Bits per key, file and all.
    pub bits_per_key: f64,
    /// The fewest bits per key for any filter with the same rates.
    pub bound: f64,
    /// The share of expected negative queries that it lets through (EFPR in \[Stacked\]); none if nothing is expected.
    pub workload_rate: Option<f64>,
    /// The share of strangers that it lets through (EFPB): what any query will get that was chosen without looking at the filter.
    pub unknown_rate: f64,
    /// Cache lines that a negative query reads, about: an expected one if there are any, else a stranger.
    pub lines: f64,
    /// Cache lines that the query for a member reads, about.
    pub member_lines: f64,
}

/// All designs side by side.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// In the order of [`Kind::ALL`].
    pub candidates: Vec<Candidate>,
    /// Why the chosen one was chosen, in sentences.
    pub reasons: Vec<String>,
}

impl Comparison {
    /// The design that the planner takes.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.chosen)
    }
}

/// A design that can be built.
#[derive(Clone, Debug)]
pub(crate) struct Design {
    pub(crate) plan: Plan,
    /// How many of the expected queries, the heaviest first, are negatives of the plan.
    pub(crate) known: u64,
    pub(crate) outlook: Outlook,
    /// EFPR.
    pub(crate) workload_rate: Option<f64>,
    /// The largest rate for unlisted keys that it had to keep.
    pub(crate) cap: f64,
}

/// What strangers count at least, as a share of the queries: a sample never says that there will be none.
pub(crate) const SOMEBODY: f64 = 1e-6;

impl Design {
    /// The less the better.
    fn cost(&self, goal: Goal) -> f64 {
        match goal {
            Goal::BitsPerKey(_) => self.workload_rate.unwrap_or(0.0) + SOMEBODY * self.outlook.strangers,
            _ => self.outlook.bits,
        }
    }
}

/// What the planner looks at: one or two of every family.
fn considered(request: &Request) -> Vec<Kind> {
    let all = Kind::ALL.iter().map(|&(_, kind)| kind);
    match request.kind {
        Kind::Auto => all
            .filter(|kind| match kind {
                Kind::Auto => false,
                Kind::Integrated(_, parts) => *parts == Parts::One,
                _ => true,
            })
            .collect(),
        kind => vec![kind],
    }
}

/// Whether a kind may be chosen by the planner: at the lowest effort, only what is built fast.
fn eligible(kind: Kind, effort: Effort) -> bool {
    match kind {
        // Same sizes as others that are asked faster, or memory for all negatives.
        Kind::Naive(_) => false,
        Kind::Ribbon | Kind::Steered => effort != Effort::Fast,
        Kind::Chained(base) | Kind::Cascade(base) | Kind::Stacked(base) | Kind::Integrated(base, _) => {
            effort != Effort::Fast || base != Base::Ribbon
        }
        _ => true,
    }
}

/// Plans every design for the request, with the keys to exclude as its negatives.
pub(crate) fn compare(request: &Request, expected: Option<Expected<'_>>) -> Result<(Comparison, Design), BuildError> {
    request.check()?;
    let kinds = considered(request);
    let designs: Vec<(Kind, Result<Design, String>)> =
        kinds.into_iter().map(|kind| (kind, design(kind, request, expected).map_err(reason))).collect();
    let best = match expected {
        // What a plain build makes.
        None => {
            let plan = plan(request)?;
            let outlook = outlook(&plan.steps, request);
            let same = |design: &Design| design.plan.steps == plan.steps;
            let found = designs.iter().position(|(_, design)| design.as_ref().is_ok_and(same));
            let design = Design { plan, known: 0, outlook, workload_rate: None, cap: 1.0 };
            (found, design)
        }
        Some(_) => {
            let best = best(&designs, request);
            let Some(best) = best else { return Err(unreachable(request, expected, &designs)) };
            let Some((_, Ok(design))) = designs.get(best) else { return Err(unreachable(request, expected, &designs)) };
            (Some(best), design.clone())
        }
    };
    let (found, chosen) = best;
    let candidate = |(kind, design): &(Kind, Result<Design, String>), chosen: bool| Candidate {
        name: name(*kind),
        kind: *kind,
        chosen,
        forecast: design.as_ref().map(|design| forecast(design, request, expected)).map_err(Clone::clone),
    };
    let mut candidates: Vec<Candidate> =
        designs.iter().enumerate().map(|(i, both)| candidate(both, Some(i) == found)).collect();
    if found.is_none() {
        candidates.insert(0, candidate(&(Kind::Auto, Ok(chosen.clone())), true));
    }
    let reasons = reasons(&candidates, request, expected, chosen.cap);
    Ok((Comparison { candidates, reasons }, chosen))
}

fn reason(error: BuildError) -> String {
    match error {
        BuildError::Unreachable { reason } => reason,
        error => error.to_string(),
    }
}

/// The name on the command line.
pub(crate) fn name(kind: Kind) -> &'static str {
    Kind::ALL.iter().find(|(_, known)| *known == kind).map_or("custom", |(name, _)| name)
}

/// The best design that may be chosen. Of two that are nearly as good, the one that reads fewer lines.
fn best(designs: &[(Kind, Result<Design, String>)], request: &Request) -> Option<usize> {
    let named = request.kind != Kind::Auto;
    let open = || {
        let fit = |(i, (kind, design)): (usize, &(Kind, Result<Design, String>))| {
            let design = design.as_ref().ok().filter(|_| named || eligible(*kind, request.effort))?;
            Some((i, design.cost(request.goal), design.outlook.lines[2]))
        };
        designs.iter().enumerate().filter_map(fit)
    };
    let least = open().map(|(_, cost, _)| cost).min_by(f64::total_cmp)?;
    let slack = if matches!(request.goal, Goal::BitsPerKey(_)) { 1.03 } else { NEARLY };
    let near = open().filter(|&(_, cost, _)| cost <= least * slack);
    near.min_by(|a, b| a.2.total_cmp(&b.2).then(a.1.total_cmp(&b.1))).map(|(i, ..)| i)
}

/// No design reaches the goal, or the one named by hand does not: says which could.
fn unreachable(
    request: &Request,
    expected: Option<Expected<'_>>,
    designs: &[(Kind, Result<Design, String>)],
) -> BuildError {
    let first = designs.iter().find_map(|(_, design)| design.as_ref().err()).cloned().unwrap_or_default();
    if let (Kind::Auto, Some(cap), Goal::BitsPerKey(bits)) = (request.kind, expected.and_then(|e| e.cap), request.goal)
    {
        let least = -cap.log2();
        let reason = format!(
            "no structure of {bits} bits per key keeps the rate of unlisted keys at {cap}, which takes {least:.2} at least"
        );
        return BuildError::Unreachable { reason };
    }
    if request.kind == Kind::Auto {
        // The design that comes closest knows the smallest budget.
        let least = |reason: &str| -> Option<f64> { reason.rsplit("works is ").next()?.parse().ok() };
        let all = designs.iter().filter_map(|(_, design)| design.as_ref().err());
        let closest = all.clone().filter(|r| least(r).is_some()).min_by(|a, b| {
            let [a, b] = [a, b].map(|reason| least(reason).unwrap_or(f64::INFINITY));
            a.total_cmp(&b)
        });
        return BuildError::Unreachable { reason: closest.cloned().unwrap_or(first) };
    }
    let others = Request { kind: Kind::Auto, first: None, columns: None, ..*request };
    let could: Vec<&str> = considered(&others)
        .into_iter()
        .filter(|&kind| eligible(kind, Effort::Balanced) && design(kind, &others, expected).is_ok())
        .map(name)
        .collect();
    let hint = match &could[..] {
        [] => "; no other structure could".to_string(),
        names => format!("; these could: {}", names.join(", ")),
    };
    BuildError::Unreachable { reason: format!("{first}{hint}") }
}

/// Plans one kind.
fn design(kind: Kind, request: &Request, expected: Option<Expected<'_>>) -> Result<Design, BuildError> {
    let request = Request { kind, ..*request };
    let Some(Expected { shape, cap: given }) = expected else {
        let plan = plan(&request)?;
        let outlook = outlook(&plan.steps, &request);
        return Ok(Design { plan, known: 0, outlook, workload_rate: None, cap: 1.0 });
    };
    let cap = given.map_or_else(|| ceiling(&request.grown()), Ok)?;
    let judge = |steps: Vec<Step>, known: u64| -> Result<Design, BuildError> {
        let negatives = request.negatives.saturating_add(known);
        let outlook = outlook(&steps, &Request { negatives, ..request });
        // Sums of shares are rounded: what is left of one may be nothing.
        let psi = if 1.0 - shape.mass(known) < 1e-12 { 1.0 } else { shape.mass(known) };
        let rate = psi * outlook.listed + (1.0 - psi) * outlook.strangers;
        // One layer of whole bits may be coarser than the plain filter of its budget, and has no better.
        let plain = given.is_none() && known == 0 && matches!(request.goal, Goal::BitsPerKey(_));
        let cap = if plain { cap.max(outlook.strangers) } else { cap };
        if outlook.strangers > cap * (1.0 + 1e-9) {
            let reason =
                format!("unlisted keys would match at a rate of {:.3e} at least, above {cap}", outlook.strangers);
            return Err(BuildError::Unreachable { reason });
        }
        if let Goal::Rate(goal) = request.goal
            && rate > goal * (1.0 + 1e-9)
        {
            let reason = format!("expected queries would pass at a rate of {rate:.2e}, above {goal}");
            return Err(BuildError::Unreachable { reason });
        }
        Ok(Design { plan: Plan::new(steps), known, outlook, workload_rate: Some(rate), cap })
    };
    if let Kind::Stacked(base) = kind
        && request.keys > 0
    {
        let (steps, known) = match request.spare > 0.0 {
            true => spared(&request, |grown| stacked::steps(base, grown, shape, cap))?,
            false => stacked::steps(base, &request, shape, cap)?,
        };
        return judge(steps, known);
    }
    // With values that it knows, strangers may pass a little more often.
    let planned = |known: u64| {
        let goal = match request.goal {
            Goal::Rate(goal) => {
                let unknown = (1.0 - shape.mass(known)).max(f64::MIN_POSITIVE);
                let rate = (goal / unknown).min(cap);
                if rate < 1.0 { Goal::Rate(rate) } else { Goal::Exact }
            }
            goal => goal,
        };
        let planned = plan(&Request { negatives: request.negatives.saturating_add(known), goal, ..request })?;
        judge(planned.steps, known)
    };
    if !kind.knows_negatives() {
        return planned(0);
    }
    let mut worth = if request.goal == Goal::Exact { shape.known() } else { worth_knowing(&request, shape, cap)? };
    let mut best: Result<Design, BuildError> = planned(worth);
    // Leaves of few keys take more than the formula says: where it asks for too much, fewer are known, and none at last: that is the
    // least rate for unlisted keys.
    for tries in 0..=FEWER {
        if best.is_ok() || worth == 0 || request.goal == Goal::Exact {
            break;
        }
        worth = if tries < FEWER { worth / 4 * 3 } else { 0 };
        best = planned(worth);
    }
    if worth < shape.known() {
        let all = planned(shape.known());
        if let Ok(all) = all
            && best.as_ref().map_or(true, |best| all.cost(request.goal) < best.cost(request.goal))
        {
            best = Ok(all);
        }
    }
    best
}

/// A file so much larger is as good as the smallest.
const NEARLY: f64 = 1.003;

/// How often fewer queries are tried.
const FEWER: usize = 6;

/// How many of the expected queries a filter with an exact bit should know, by the formula above.
fn worth_knowing(request: &Request, shape: &Shape, cap: f64) -> Result<u64, BuildError> {
    let keys = request.keys.max(1) as f64;
    // What a bit of information takes in a leaf of so many keys.
    let base = match request.kind {
        Kind::Chained(base) | Kind::Cascade(base) | Kind::Integrated(base, _) | Kind::Naive(base) => base,
        _ => Base::Ribbon,
    };
    let per_bit = match base {
        Base::Ribbon | Base::Fuse | Base::Fuse4 => {
            base.leaf(request, 2048, true)?.bits(request.keys.max(1), 0) / 8.0 / keys
        }
        _ => LOG2_E,
    };
    let room = request.room(2)? / keys;
    // Lower is better: the rate for a budget, the bits for a rate.
    let cost = |known: u64| -> f64 {
        let nu = (known + request.negatives) as f64 / keys;
        let unknown = (1.0 - shape.mass(known)).max(SOMEBODY);
        // The width that makes the file smallest.
        let least = if nu * LN_2 > 1.0 { log2(nu * LN_2) } else { 0.0 };
        let bits = |first: f64| per_bit * (first + 1.0 + nu * exp2(-first));
        match request.goal {
            Goal::BitsPerKey(_) => {
                if bits(least) > room {
                    return f64::INFINITY;
                }
                let (mut low, mut high) = (least, 64.0);
                for _ in 0..24 {
                    let middle = (low + high) / 2.0;
                    if bits(middle) <= room { low = middle } else { high = middle }
                }
                let strangers = exp2(-(low + 1.0));
                if strangers > cap { f64::INFINITY } else { unknown * strangers }
            }
            Goal::Rate(goal) => {
                let strangers = (goal / unknown.max(f64::MIN_POSITIVE)).min(cap).min(1.0);
                let wanted = -log2(strangers.max(1e-30)) - 1.0;
                bits(wanted.max(least))
            }
            _ => 0.0,
        }
    };
    // Eighths of octaves from all of them down to one, and none.
    let all = shape.known();
    let octaves = 64 - all.leading_zeros();
    let counts = (0..octaves).flat_map(|octave| (5..=8u64).rev().map(move |eighths| (all >> octave) / 8 * eighths));
    let counts = std::iter::once(all).chain(counts.filter(|&count| count > 0)).chain([0]);
    let costs: Vec<(u64, f64)> = counts.map(|count| (count, cost(count))).collect();
    let least = costs.iter().map(|&(_, cost)| cost).fold(f64::INFINITY, f64::min);
    // For a rate, more of them where that costs next to nothing: the rate is then kept with room to spare.
    let slack = if matches!(request.goal, Goal::Rate(_)) { NEARLY } else { 1.0 };
    Ok(costs.into_iter().find(|&(_, cost)| cost <= slack * least).map_or(all, |(count, _)| count))
}

fn letters(steps: &[Step]) -> String {
    let letter = |step: &Step| match step.role {
        Role::Refuse => "P",
        Role::Admit => "N",
        Role::Decide => "E",
    };
    steps.iter().map(letter).collect::<Vec<_>>().join(" ")
}

fn forecast(design: &Design, request: &Request, expected: Option<Expected<'_>>) -> Forecast {
    let Design { plan, known, outlook, workload_rate, .. } = design;
    let keys = request.keys.max(1) as f64;
    let exact = plan.steps.last().is_some_and(|step| step.role == Role::Decide);
    // What a filter is bound to tell apart: the negatives that it may let through count for nothing.
    let negatives = request.negatives.saturating_add(if exact { *known } else { 0 });
    let strangers = match request.goal {
        Goal::Exact => 1.0,
        _ => outlook.strangers,
    };
    let psi = expected.map_or(0.0, |expected| expected.shape.mass(*known));
    Forecast {
        steps: letters(&plan.steps),
        known: *known,
        bits_per_key: outlook.bits / keys,
        bound: free_set(request.keys, negatives, strangers).bits / keys,
        workload_rate: *workload_rate,
        unknown_rate: outlook.strangers,
        lines: psi * outlook.lines[1] + (1.0 - psi) * outlook.lines[2],
        member_lines: outlook.lines[0],
    }
}

/// A share with three digits, as a person reads it.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let digits = if percent > 0.0 { (2.0 - percent.log10().floor()).clamp(0.0, 12.0) as usize } else { 0 };
    format!("{percent:.digits$} %")
}

fn reasons(candidates: &[Candidate], request: &Request, expected: Option<Expected<'_>>, cap: f64) -> Vec<String> {
    let Some((name, chosen)) =
        candidates.iter().find(|c| c.chosen).and_then(|c| Some((c.name, c.forecast.as_ref().ok()?)))
    else {
        return vec![];
    };
    let mut reasons = vec![];
    let rate = |forecast: &Forecast| forecast.workload_rate.unwrap_or(forecast.unknown_rate);
    let whom = if expected.is_some() { "expected queries" } else { "unknown keys" };
    let others = candidates.iter().filter(|c| !c.chosen && eligible(c.kind, request.effort));
    let others = || others.clone().filter_map(|c| Some((c.name, c.forecast.as_ref().ok()?)));
    match request.goal {
        _ if request.kind != Kind::Auto => reasons.push(format!("{name} was asked for")),
        Goal::BitsPerKey(budget) => {
            let next = others().min_by(|a, b| rate(a.1).total_cmp(&rate(b.1)));
            let next = next.map_or(String::new(), |(name, f)| format!("; the next best, {name}, {}", percent(rate(f))));
            reasons.push(format!(
                "{name} lets the fewest {whom} through within {budget} bits per key: {}{next}",
                percent(rate(chosen))
            ));
        }
        _ => {
            let next = others().min_by(|a, b| a.1.bits_per_key.total_cmp(&b.1.bits_per_key));
            let next =
                next.map_or(String::new(), |(name, f)| format!("; the next, {name}, takes {:.2}", f.bits_per_key));
            reasons.push(format!(
                "{name} is the smallest that reaches the goal: {:.2} bits per key{next}",
                chosen.bits_per_key
            ));
        }
    }
    if let Some(Expected { shape, .. }) = expected {
        let psi = shape.mass(chosen.known);
        reasons.push(format!(
            "it knows {} of {} expected keys, {} of the queries; {} of the queries are for keys outside the sample",
            chosen.known,
            shape.known(),
            percent(psi),
            percent(shape.unseen())
        ));
        reasons.push(format!("at most {} of unlisted keys may match", percent(cap)));
        let plain = others().filter(|(_, f)| f.steps == "P").min_by(|a, b| rate(a.1).total_cmp(&rate(b.1)));
        if let Some((plain, f)) = plain
            && let Goal::BitsPerKey(_) = request.goal
            && rate(chosen) > 0.0
            && rate(f) > rate(chosen)
        {
            reasons.push(format!(
                "{plain}, the best that knows only the keys, lets {:.1} times as many through",
                rate(f) / rate(chosen)
            ));
        }
    }
    reasons
}

#[cfg(test)]
mod tests;
