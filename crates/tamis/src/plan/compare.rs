//! every design for a request -> a table of them, the chosen one, and the reasons.

use super::choose::{Designs, Expected, PlannedDesign, best, considered, design, eligible, unreachable};
use super::predict::predict;
use super::{Goal, Kind, Request, Step, plan};
use crate::error::BuildError;
use crate::leaves::Role;
use crate::math::bounds::free_set;

/// One design, planned for the goal.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The structure's name on the command line.
    pub name: &'static str,
    /// The structure.
    pub kind: Kind,
    /// True for the one that the planner chooses.
    pub chosen: bool,
    /// Prediction, or why the design cannot reach the goal.
    pub prediction: Result<Prediction, String>,
}

/// Size, rates and cost of a design, as the planner computes them.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Prediction {
    /// Its layers, one letter each: `P` positive, `N` negative, `E` exact.
    pub layers: String,
    /// Expected keys that it covers, heaviest first.
    pub covered: u64,
    /// Bits per key, file and all.
    pub bits_per_key: f64,
    /// Lower bound: the least bits per key of any filter with the same rates.
    pub bound: f64,
    /// The share of negative queries of the workload that match (EFPR in \[Stacked\]); none without a workload.
    pub workload_fpr: Option<f64>,
    /// The share of unlisted keys that match (EFPB).
    pub fpr: f64,
    /// Cache lines that a negative query reads, about: an expected one with a workload, else one for an unlisted key.
    pub lines: f64,
    /// Cache lines that the query for a member reads, about.
    pub member_lines: f64,
}

/// Designs that reach a goal or fail, compared.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// In the order of [`Kind::ALL`].
    pub candidates: Vec<Candidate>,
    /// Why the chosen one was chosen, in sentences.
    pub reasons: Vec<String>,
}

impl Comparison {
    /// Returns the design that the planner chooses.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.chosen)
    }
}

/// Plans every design for the request, with the keys to exclude as its negatives.
pub(crate) fn compare(
    request: &Request,
    expected: Option<Expected<'_>>,
) -> Result<(Comparison, PlannedDesign), BuildError> {
    request.check()?;
    let kinds = considered(request);
    let designs: Designs = kinds.into_iter().map(|kind| (kind, design(kind, request, expected))).collect();
    let (found, chosen) = match expected {
        // What a plain build makes.
        None => {
            let plan = plan(request)?;
            let prediction = predict(&plan.steps, request);
            let same = |design: &PlannedDesign| design.plan.steps == plan.steps;
            let found = designs.iter().position(|(_, design)| design.as_ref().is_ok_and(same));
            let design = PlannedDesign { plan, known: 0, prediction, workload_fpr: None, cap: 1.0 };
            (found, design)
        }
        Some(_) => match best(&designs, request) {
            Some((best, design)) => (Some(best), design.clone()),
            None => return Err(unreachable(request, expected, designs)),
        },
    };
    let candidate = |(kind, design): &(Kind, Result<PlannedDesign, BuildError>), chosen: bool| Candidate {
        name: kind.name(),
        kind: *kind,
        chosen,
        prediction: design.as_ref().map(|design| predicted(design, request, expected)).map_err(BuildError::to_string),
    };
    let mut candidates: Vec<Candidate> =
        designs.iter().enumerate().map(|(i, both)| candidate(both, Some(i) == found)).collect();
    if found.is_none() {
        candidates.insert(0, candidate(&(Kind::Auto, Ok(chosen.clone())), true));
    }
    let reasons = reasons(&candidates, request, expected, chosen.cap);
    Ok((Comparison { candidates, reasons }, chosen))
}

fn letters(steps: &[Step]) -> String {
    let letter = |step: &Step| match step.role {
        Role::Positive => "P",
        Role::Negative => "N",
        Role::Exact => "E",
    };
    steps.iter().map(letter).collect::<Vec<_>>().join(" ")
}

fn predicted(design: &PlannedDesign, request: &Request, expected: Option<Expected<'_>>) -> Prediction {
    let PlannedDesign { plan, known, prediction, workload_fpr, .. } = design;
    let keys = request.keys.max(1) as f64;
    let exact = plan.steps.last().is_some_and(|step| step.role == Role::Exact);
    // What a filter is bound to tell apart: the negatives that it may let through count for nothing.
    let negatives = request.negatives.saturating_add(if exact { *known } else { 0 });
    let strangers = if request.goal == Goal::Exact { 1.0 } else { prediction.fpr };
    let psi = expected.map_or(0.0, |expected| expected.shape.mass(*known));
    Prediction {
        layers: letters(&plan.steps),
        covered: *known,
        bits_per_key: prediction.bits / keys,
        bound: free_set(request.keys, negatives, strangers).bits / keys,
        workload_fpr: *workload_fpr,
        fpr: prediction.fpr,
        lines: psi * prediction.lines[1] + (1.0 - psi) * prediction.lines[2],
        member_lines: prediction.lines[0],
    }
}

/// A share with three digits, as a person reads it.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    #[allow(clippy::disallowed_methods, reason = "how many digits are printed decides no byte")]
    let digits = if percent > 0.0 { (2.0 - percent.log10().floor()).clamp(0.0, 12.0) as usize } else { 0 };
    format!("{percent:.digits$} %")
}

fn reasons(candidates: &[Candidate], request: &Request, expected: Option<Expected<'_>>, cap: f64) -> Vec<String> {
    let Some((name, chosen)) =
        candidates.iter().find(|c| c.chosen).and_then(|c| Some((c.name, c.prediction.as_ref().ok()?)))
    else {
        return vec![];
    };
    let mut reasons = vec![];
    let rate = |forecast: &Prediction| forecast.workload_fpr.unwrap_or(forecast.fpr);
    let whom = if expected.is_some() { "negative queries" } else { "unlisted keys" };
    let others = candidates.iter().filter(|c| !c.chosen && eligible(c.kind, request.effort));
    let others = || others.clone().filter_map(|c| Some((c.name, c.prediction.as_ref().ok()?)));
    match request.goal {
        _ if request.kind != Kind::Auto => reasons.push(format!("kind {name} was given")),
        Goal::BitsPerKey(budget) => {
            let next = others().min_by(|a, b| rate(a.1).total_cmp(&rate(b.1)));
            let next = next.map_or(String::new(), |(name, f)| format!("; the next best, {name}, {}", percent(rate(f))));
            reasons.push(format!(
                "{name} matches the fewest {whom} within {budget} bits per key: {}{next}",
                percent(rate(chosen))
            ));
        }
        Goal::Fpr(_) | Goal::Exact | Goal::ExcludedFpr(_) => {
            let next = others().min_by(|a, b| a.1.bits_per_key.total_cmp(&b.1.bits_per_key));
            let next =
                next.map_or(String::new(), |(name, f)| format!("; the next best, {name}, {:.2}", f.bits_per_key));
            reasons.push(format!(
                "{name} is the smallest that reaches the goal: {:.2} bits per key{next}",
                chosen.bits_per_key
            ));
        }
    }
    if let Some(Expected { shape, .. }) = expected {
        let psi = shape.mass(chosen.covered);
        reasons.push(format!(
            "it covers {} of {} keys of the workload, {} of the negative queries; {} are for unlisted keys",
            chosen.covered,
            shape.known(),
            percent(psi),
            percent(shape.unseen())
        ));
        reasons.push(format!("at most {} of unlisted keys may match", percent(cap)));
        let plain = others().filter(|(_, f)| f.layers == "P").min_by(|a, b| rate(a.1).total_cmp(&rate(b.1)));
        if let Some((plain, f)) = plain
            && let Goal::BitsPerKey(_) = request.goal
            && rate(chosen) > 0.0
            && rate(f) > rate(chosen)
        {
            reasons.push(format!(
                "{plain}, the best without the workload, matches {:.1} times as many",
                rate(f) / rate(chosen)
            ));
        }
    }
    reasons
}
