//! every design for a request -> a table of them, the chosen one, and the reasons.

use super::choose::{Designs, Expected, PlannedDesign, best, considered, design, eligible, unreachable};
use super::predict::predict;
use super::{Goal, Kind, Request, Step, plan};
use crate::error::BuildError;
use crate::leaves::Role;
use crate::math::bounds::{f, free_set};
use crate::math::shape::Shape;

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
    /// Its layers, in the order of queries.
    pub layers: Vec<PredictedLayer>,
    /// Expected keys that it covers, heaviest first.
    pub covered: u64,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Bits per key, file and all.
    pub bits_per_key: f64,
    /// Lower bound: the least bits per key of any filter with the same rates.
    pub bound: f64,
    /// The share of negative queries of the workload that match (EFPR in \[Stacked\]); none without a workload.
    pub workload_fpr: Option<f64>,
    /// The share of excluded and covered keys that match.
    pub excluded_fpr: f64,
    /// The share of unlisted keys that match (EFPB).
    pub fpr: f64,
    /// Cache lines that a negative query reads, about: an expected one with a workload, else one for an unlisted key.
    pub lines: f64,
    /// Cache lines that the query for a member reads, about.
    pub member_lines: f64,
}

/// One layer of a design.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PredictedLayer {
    /// What it stores, and what its answer means.
    pub role: Role,
    /// Name of its structure.
    pub structure: &'static str,
    /// Bits per key of the set.
    pub bits_per_key: f64,
    /// The shares of members, of excluded and covered keys, and of unlisted keys whose answer the layers before it leave open.
    pub reached_by: [f64; 3],
}

/// Designs that reach a goal or fail, compared.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// In the order of [`Kind::ALL`].
    pub candidates: Vec<Candidate>,
    /// Why the chosen one was chosen, in sentences.
    pub reasons: Vec<String>,
    /// Number of keys.
    pub keys: u64,
    /// Number of excluded keys; an estimate if there are many.
    pub excluded: u64,
    request: Request,
    workload: Option<Shape>,
}

impl Comparison {
    /// Returns the design that the planner chooses.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.chosen)
    }

    /// Plans for the same keys, excluded keys and workload, but for another goal: at most a share `fpr` of unlisted keys
    /// matches, and of the negative queries of the workload.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if `fpr` is not between 0 and 1, exclusive, or if no design reaches it.
    ///
    /// ```
    /// let plan = tamis::build(0..1000).exclude(1000..9000).exact().plan()?;
    /// let sizes = [0.1, 0.01, 0.001].map(|fpr| plan.at_fpr(fpr).ok()?.chosen()?.prediction.as_ref().ok().map(|p| p.bytes));
    /// assert!(sizes.is_sorted());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn at_fpr(&self, fpr: f64) -> Result<Comparison, BuildError> {
        let expected = self.workload.as_ref().map(|shape| Expected { shape, cap: None });
        Ok(compare(&Request { goal: Goal::Fpr(fpr), ..self.request }, expected)?.0)
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
            let same = |design: &PlannedDesign| design.plan.steps == plan.steps && design.plan.allowed == plan.allowed;
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
        // What an exact layer leaves out depends on the kind.
        prediction: design
            .as_ref()
            .map(|design| predicted(design, &Request { kind: *kind, ..*request }, expected))
            .map_err(|e| why_not(*kind, e)),
    };
    let mut candidates: Vec<Candidate> =
        designs.iter().enumerate().map(|(i, both)| candidate(both, Some(i) == found)).collect();
    if found.is_none() {
        candidates.insert(0, candidate(&(Kind::Auto, Ok(chosen.clone())), true));
    }
    let reasons = reasons(&candidates, request, expected, chosen.cap);
    let workload = expected.map(|expected| expected.shape.clone());
    let (keys, excluded) = (request.keys, request.negatives);
    Ok((Comparison { candidates, reasons, keys, excluded, request: *request, workload }, chosen))
}

/// Why a kind cannot reach the goal, without its name, which is in the same row: kinds that fail alike read alike.
fn why_not(kind: Kind, error: &BuildError) -> String {
    let text = error.to_string().replace(&format!("kind {}", kind.name()), "this structure");
    text.strip_prefix("this structure: ").unwrap_or(&text).to_string()
}

/// The layers of a plan; the request has all known negatives.
fn layers(steps: &[Step], request: &Request) -> Vec<PredictedLayer> {
    let bits = |end: usize| request.bits_of(&steps[..end]);
    let layer = |(i, step): (usize, &Step)| PredictedLayer {
        role: step.role,
        structure: step.structure.name(),
        bits_per_key: (bits(i + 1) - bits(i)) / request.keys.max(1) as f64,
        reached_by: predict(&steps[..i], request).undecided,
    };
    steps.iter().enumerate().map(layer).collect()
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
        layers: layers(&plan.steps, &Request { negatives: request.negatives.saturating_add(*known), ..*request }),
        covered: *known,
        bytes: (prediction.bits / 8.0).ceil() as u64,
        bits_per_key: prediction.bits / keys,
        bound: match request.goal {
            Goal::ExcludedFpr(share) => f(share, request.negatives as f64 / keys),
            Goal::Fpr(_) | Goal::BitsPerKey(_) | Goal::Exact => {
                free_set(request.keys, negatives, strangers).bits / keys
            }
        },
        workload_fpr: *workload_fpr,
        excluded_fpr: prediction.known_fpr,
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
    let budget = if let Goal::BitsPerKey(bits) = request.goal { Some(bits) } else { None };
    let measure = |f: &Prediction| if budget.is_some() { rate(f) } else { f.bits_per_key };
    let show = |f: &Prediction| if budget.is_some() { percent(rate(f)) } else { format!("{:.3}", f.bits_per_key) };
    let unit = if budget.is_some() { "" } else { " bits per key" };
    let best = match budget {
        Some(bits) => {
            format!("matches the fewest {whom} within {bits} bit{} per key", if bits == 1.0 { "" } else { "s" })
        }
        None => "is the smallest that reaches the goal".to_string(),
    };
    let better = if budget.is_some() { format!("matches fewer {whom}") } else { "is smaller".to_string() };
    reasons.push(match others().min_by(|a, b| measure(a.1).total_cmp(&measure(b.1))) {
        _ if request.kind != Kind::Auto => format!("kind {name} was given"),
        // Of two that are nearly as good, the planner takes the one that reads fewer lines. Without a workload it looks at sizes
        // only among designs of its effort and layout.
        Some((other, f)) if show(f) == show(chosen) => {
            format!("{name} {best}: {}{unit}; {other} is as good", show(chosen))
        }
        Some((other, f)) if measure(f) < measure(chosen) => {
            let why = match expected {
                Some(_) => "reads fewer cache lines for unlisted keys".to_string(),
                None => format!("is the default at effort {}", request.effort),
            };
            format!("{name} {why}; {other} {better}: {} against {}{unit}", show(f), show(chosen))
        }
        Some((other, f)) => format!("{name} {best}: {}{unit}; the next best, {other}, {}", show(chosen), show(f)),
        None => format!("{name} {best}: {}{unit}", show(chosen)),
    });
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
        let plain = others()
            .filter(|(_, f)| matches!(&f.layers[..], [layer] if layer.role == Role::Positive))
            .min_by(|a, b| rate(a.1).total_cmp(&rate(b.1)));
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
