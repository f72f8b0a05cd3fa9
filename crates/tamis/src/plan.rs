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
use crate::gather::{SHARD_KEYS, Sketch, shard_bits};
use crate::leaves::Role;
use crate::leaves::bloom::{classic, split};
use crate::leaves::{cuckoo, fuse, quotient, ribbon};
use crate::math::quotient as quotients;
use crate::plan::recipes::{cascade, chained, fpfs, local, steered};

mod choose;
mod kind;
mod outlook;
pub(crate) mod recipes;

pub(crate) use crate::leaves::Structure;
pub use choose::{Candidate, Comparison, Forecast, GUARD};
pub(crate) use choose::{Design, Expected, SOMEBODY, compare};
pub use kind::{Base, Effort, Goal, Kind, Layout};
pub(crate) use outlook::outlook;

/// What is wanted, and of how many keys.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Request {
    pub(crate) keys: u64,
    /// About how many known negatives.
    pub(crate) negatives: u64,
    pub(crate) goal: Goal,
    pub(crate) kind: Kind,
    pub(crate) effort: Effort,
    pub(crate) layout: Layout,
    /// Of a cascade: how much shorter every list is than the one before.
    pub(crate) delta: f64,
    /// Bits of the first stage times 256, where the caller chose them.
    pub(crate) first: Option<u16>,
    /// Slacks of steered columns, where the caller chose them.
    pub(crate) columns: Option<Columns>,
    /// Room for more keys, as a share of them.
    pub(crate) spare: f64,
}

/// Slacks in 1024ths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Columns {
    slacks: [u16; Columns::MOST],
    count: u8,
}

impl Columns {
    /// The most columns there can be.
    pub(crate) const MOST: usize = 8;

    /// The first of these slacks, each between 1/32 and 4.
    pub(crate) fn new(slacks: &[f64]) -> Columns {
        let mut columns = Columns::default();
        for (to, &slack) in columns.slacks.iter_mut().zip(slacks) {
            *to = (slack * 1024.0).round().clamp(32.0, 4096.0) as u16;
            columns.count += 1;
        }
        columns
    }

    pub(crate) fn as_slice(&self) -> &[u16] {
        &self.slacks[..self.count as usize]
    }
}

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
}

/// What will be built.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// A filter on the keys alone that lets through every negative which the plan's first step lets through, for this number of
    /// negatives and for any larger one.
    pub(crate) sieve: Option<Structure>,
}

/// Chooses the steps.
pub(crate) fn plan(request: &Request) -> Result<Plan, BuildError> {
    request.check()?;
    if request.spare > 0.0 {
        return Ok(Plan::new(spared(request, |grown| Ok((plan(grown)?.steps, 0)))?.0));
    }
    // The number of many negatives is an estimate: a budget must do for four standard deviations more.
    let more = match request.goal {
        Goal::BitsPerKey(_) if request.negatives > Sketch::EXACT => request.negatives / 32,
        _ => 0,
    };
    let request = &Request { negatives: request.negatives + more, ..*request };
    let Request { keys, negatives, goal, kind, effort, .. } = *request;
    let plan = Plan::new;
    Ok(match kind {
        // Without keys there is nothing to spend bits on, and nothing to exclude from.
        _ if keys == 0 => {
            let kind = if kind.knows_negatives() { Kind::Ribbon } else { kind };
            plan(vec![plain(&Request { goal: Goal::Rate(0.5), kind, columns: None, ..*request })?])
        }
        // Without negatives the answer is yes.
        _ if negatives == 0 && matches!(goal, Goal::Exact | Goal::Share(_)) => plan(vec![]),
        Kind::Auto | Kind::Steered if negatives == 0 => match effort {
            Effort::Fast => plan(vec![plain(&Request { kind: Kind::Fuse, ..*request })?]),
            _ => plan(vec![plain(&Request { kind: Kind::Ribbon, ..*request })?]),
        },
        Kind::Auto | Kind::Steered if local::wanted(request)? => local::plan(request)?,
        Kind::Auto | Kind::Steered if effort == Effort::Fast => match goal {
            // Nothing is known of whom it may let pass. A share that no width reaches is left to an exact set.
            Goal::Share(share) => {
                let goal = Goal::Rate(steered::aim(share, keys, negatives));
                match plain(&Request { kind: Kind::Fuse, goal, ..*request }) {
                    Ok(step) => plan(vec![step]),
                    Err(_) => plan(chained::steps(Base::Fuse, request)?),
                }
            }
            _ => chained::plan(Base::Fuse, request)?,
        },
        Kind::Auto | Kind::Steered => steered::plan(request)?,
        Kind::Chained(base) => chained::plan(base, request)?,
        Kind::Cascade(base) => plan(cascade::steps(base, request)?),
        Kind::Integrated(base, parts) => plan(fpfs::integrated(base, parts, request)?),
        Kind::Naive(base) => plan(fpfs::naive(base, request)?),
        // Nothing is expected: the first layer is all there is.
        Kind::Stacked(base) => plan(vec![plain(&Request { kind: base.alone(), ..*request })?]),
        _ => plan(vec![plain(request)?]),
    })
}

impl Plan {
    /// A plan that needs all negatives.
    pub(crate) fn new(steps: Vec<Step>) -> Plan {
        Plan { steps, sieve: None }
    }

    /// Whether all negatives of a build get a no.
    pub(crate) fn promises(&self, keys: u64) -> bool {
        keys == 0 || self.steps.last().is_none_or(|step| step.role == Role::Decide)
    }

    /// About how many bytes the file will have; rather a little more than less.
    pub(crate) fn bytes(&self, request: &Request) -> u64 {
        let bits = request.bits_of(&self.steps);
        let per_key = bits / request.keys.max(1) as f64;
        ((bits * 1.01 + file_bits(request.keys, self.steps.len(), per_key)) / 8.0) as u64 + 4096
    }
}

/// Everything of a file that is not payload: header, footer, and for every part an entry in the directory and, before a
/// payload of 64 KiB or more, a gap.
fn file_bits(n: u64, steps: usize, bits_per_key: f64) -> f64 {
    let parts = ((steps as u64) << shard_bits(n, SHARD_KEYS)) as f64;
    let large = (n as f64 * bits_per_key / (8 << 16) as f64).floor().min(parts);
    8.0 * (76.0 + 24.0 * parts + 64.0 * large)
}

/// Narrowest and widest values of a leaf, in 256ths of a bit.
const NARROWEST: u16 = 256;
const WIDEST: u16 = 32 * 256;

/// Why a structure is refused where room for more keys is wanted.
const NO_ROOM: &str = "room for more keys is for structures that take them: use bloom, classic-bloom, cuckoo, quotient, stacked-bloom, stacked-cuckoo or stacked-quotient";

/// Keys more for which a layer behind the first has room: a key that was a known negative goes through all of them.
const SOME: f64 = 64.0;

/// Steps with room for more keys, planned by `plan` for as many as there will be, and how many expected queries they know.
pub(crate) fn spared(
    request: &Request,
    plan: impl Fn(&Request) -> Result<(Vec<Step>, u64), BuildError>,
) -> Result<(Vec<Step>, u64), BuildError> {
    let mut grown = request.grown();
    // Tables are rounded up in every shard.
    let rounding = (512u64 << shard_bits(request.keys, SHARD_KEYS)) as f64;
    let mut least = f64::INFINITY;
    for _ in 0..8 {
        let (steps, known) = plan(&grown).map_err(|error| match error {
            BuildError::Unreachable { reason } => {
                BuildError::Unreachable { reason: format!("counted with the keys to come: {reason}") }
            }
            error => error,
        })?;
        let negatives = request.negatives + known;
        let steps = roomy(steps, request, negatives)?;
        let bits = Request { negatives, ..*request }.bits_of(&steps) + rounding * steps.len() as f64;
        let room = request.room(steps.len())?;
        match grown.goal {
            Goal::BitsPerKey(budget) if bits > room => {
                least = least.min(bits);
                grown.goal = Goal::BitsPerKey(budget * 0.999 * (room / bits).clamp(0.5, 1.0));
            }
            _ => return Ok((steps, known)),
        }
    }
    Err(request.too_few(1, least))
}

/// Makes room for more keys in steps that were planned for all of them, with so many negatives.
fn roomy(mut steps: Vec<Step>, request: &Request, negatives: u64) -> Result<Vec<Step>, BuildError> {
    let (mut keys, mut negatives) = (request.grown().keys as f64, negatives as f64);
    for (i, step) in steps.iter_mut().enumerate() {
        if step.role == Role::Admit {
            keys *= step.structure.rate_at(negatives.ceil() as u64);
            continue;
        }
        negatives *= step.structure.rate_at(keys.ceil() as u64);
        let some = if i == 0 { 0.0 } else { SOME / keys.max(1.0) };
        let room = step.structure.with_room(request.spare.max(some));
        step.structure = room.ok_or_else(|| BuildError::Unreachable { reason: NO_ROOM.into() })?;
    }
    Ok(steps)
}

impl Request {
    /// The same for as many keys as there will be when the room is used up; a budget stays what it is in bits.
    pub(crate) fn grown(&self) -> Request {
        let keys = (self.keys as f64 * (1.0 + self.spare)).ceil() as u64;
        let goal = match self.goal {
            Goal::BitsPerKey(bits) => Goal::BitsPerKey(bits * self.keys as f64 / keys.max(1) as f64),
            goal => goal,
        };
        Request { keys, goal, spare: 0.0, ..*self }
    }

    fn check(&self) -> Result<(), BuildError> {
        let reason = match self.goal {
            Goal::Rate(rate) if !(rate > 0.0 && rate < 1.0) => {
                format!("the rate for strangers must lie between 0 and 1, not {rate}")
            }
            Goal::BitsPerKey(bits) if !(bits > 0.0 && bits <= 4096.0) => {
                format!("the bits per key must lie between 0 and 4096, not {bits}")
            }
            Goal::Share(share) if !(share > 0.0 && share < 1.0) => {
                format!("the share of excluded keys that may match must lie between 0 and 1, not {share}")
            }
            _ if !(self.spare >= 0.0 && self.spare <= 1000.0) => {
                format!("the room for more keys must be a share of them from 0 to 1000, not {}", self.spare)
            }
            _ if self.spare > 0.0 && !self.kind.takes_keys() => NO_ROOM.to_string(),
            Goal::Share(_) if !matches!(self.kind, Kind::Auto | Kind::Steered) => {
                "a share of the excluded keys may match only where columns are steered: use steered".to_string()
            }
            _ if self.negatives > 0 && !self.kind.knows_negatives() => {
                let name = Kind::ALL.iter().find(|(_, kind)| *kind == self.kind).map_or("this kind", |(name, _)| name);
                format!(
                    "{name} knows only its keys; to exclude others use steered, chained, cascade, integrated or naive"
                )
            }
            _ if self.layout == Layout::Local
                && !matches!(self.kind, Kind::Auto | Kind::Steered)
                && self.negatives > 0 =>
            {
                "the local layout is one of steered columns; leave out the kind, or the layout".to_string()
            }
            Goal::Exact if self.negatives == 0 && !self.kind.knows_negatives() => {
                "an exact filter needs the keys that are not in the set".to_string()
            }
            _ => return Ok(()),
        };
        Err(BuildError::Unreachable { reason })
    }

    /// The first width, in 256ths of a bit, that `reached` says yes to; it turns from no to yes once.
    pub(crate) fn widest(&self, reached: impl Fn(u16) -> Result<bool, BuildError>) -> Result<u16, BuildError> {
        let (mut low, mut high) = (NARROWEST, WIDEST + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if reached(middle)? { high = middle } else { low = middle + 1 }
        }
        match self.goal {
            _ if low <= WIDEST => Ok(low),
            Goal::Rate(rate) => Err(self.too_low(rate)),
            _ => Err(BuildError::Unreachable { reason: "no width is enough".into() }),
        }
    }

    /// A rate that no width reaches.
    pub(crate) fn too_low(&self, rate: f64) -> BuildError {
        let reason = format!("a rate of {rate} needs more than 32 bits per key; the lowest is 2.4e-10");
        BuildError::Unreachable { reason }
    }

    /// Bits for the payload of a filter of several steps, where the goal is a budget.
    pub(crate) fn room(&self, steps: usize) -> Result<f64, BuildError> {
        let Goal::BitsPerKey(bits) = self.goal else { return Ok(f64::INFINITY) };
        Ok(allowed(self.keys, bits) - file_bits(self.keys, steps, bits))
    }

    /// A budget below the `least` bits that the payload takes.
    pub(crate) fn too_few(&self, steps: usize, least: f64) -> BuildError {
        let Goal::BitsPerKey(bits) = self.goal else { return self.too_low(0.0) };
        too_few(self.keys, bits, least + file_bits(self.keys, steps, bits))
    }

    /// Payload bits of a list of steps, rather more than less: how many pass a filter is chance.
    pub(crate) fn bits_of(&self, steps: &[Step]) -> f64 {
        self.bits_with(steps, 4.0)
    }

    /// The bits that a file of these steps has on average, with what every step adds to it: to tell which of several is the smallest.
    pub(crate) fn likely_bits(&self, steps: &[Step]) -> f64 {
        // Leaves come in blocks. Where as many as expected just fit, half of the time there are more.
        let around = [-1.0, 0.0, 0.0, 1.0].map(|deviations| self.bits_with(steps, deviations));
        around.iter().sum::<f64>() / 4.0 + STEP * steps.len() as f64
    }

    /// Payload bits where so many standard deviations more pass every filter than expected.
    fn bits_with(&self, steps: &[Step], deviations: f64) -> f64 {
        let (mut keys, mut negatives, mut bits) = (self.keys as f64, self.negatives as f64, 0.0);
        for Step { role, structure } in steps {
            let whole = |x: f64| x.ceil() as u64;
            let [most_keys, most_negatives] =
                [(keys, self.keys), (negatives, self.negatives)].map(|(x, all)| most(x, all, deviations));
            match role {
                Role::Refuse => {
                    bits += structure.bits(most_keys, 0);
                    let passing = structure.passing(negatives / keys.max(1.0), whole(keys));
                    negatives = (negatives * passing * structure.margin()).min(negatives);
                }
                Role::Admit => {
                    bits += structure.bits(most_negatives, 0);
                    let passing = structure.passing(keys / negatives.max(1.0), whole(negatives));
                    keys = (keys * passing * structure.margin()).min(keys);
                }
                Role::Decide => bits += structure.bits(most_keys, most_negatives),
            }
        }
        bits
    }
}

/// How many of `all` pass where this many are expected to, and so many standard deviations more: with four, but for one time in 30,000.
pub(crate) fn most(expected: f64, all: u64, deviations: f64) -> u64 {
    ((expected + deviations * expected.sqrt()).ceil() as u64).min(all)
}

/// Bits that a step adds to a small file besides its payload.
const STEP: f64 = 96.0;

impl Base {
    /// A leaf of a given width; `nested` if narrower ones on the same keys shall be its first bits.
    pub(crate) fn leaf(self, request: &Request, width: u16, nested: bool) -> Result<Structure, BuildError> {
        let wide = request.effort == Effort::Smallest;
        Ok(match self {
            Base::Ribbon => ribbon::Params { width, wide, nested }.into(),
            Base::Fuse => fuse::Params { arity: fuse::Arity::Three, width }.into(),
            Base::Fuse4 => fuse::Params { arity: fuse::Arity::Four, width }.into(),
            Base::Bloom | Base::Cuckoo | Base::Quotient => {
                let reason = "Bloom, cuckoo and quotient filters cannot hold an exact bit".to_string();
                return Err(BuildError::Unreachable { reason });
            }
        })
    }

    /// A filter of one leaf.
    fn alone(self) -> Kind {
        match self {
            Base::Ribbon => Kind::Ribbon,
            Base::Fuse => Kind::Fuse,
            Base::Fuse4 => Kind::Fuse4,
            Base::Bloom => Kind::ClassicBloom,
            Base::Cuckoo => Kind::Cuckoo,
            Base::Quotient => Kind::Quotient,
        }
    }

    /// One exact bit.
    pub(crate) fn exact(self, request: &Request) -> Result<Structure, BuildError> {
        if self == Base::Bloom { Base::Ribbon.leaf(request, 256, false) } else { self.leaf(request, 256, false) }
    }

    /// A leaf for `n` keys with this rate for strangers, or less.
    pub(crate) fn with_rate(self, request: &Request, n: u64, rate: f64) -> Result<Structure, BuildError> {
        match self {
            Base::Bloom => {
                let classic::Params { bits, hashes } = classic::Params::for_rate(n, rate)?;
                return Ok(classic::PerKey { bits_per_key: per_key(bits, n, Goal::Rate(rate))?, hashes }.into());
            }
            Base::Cuckoo => return Ok(Structure::Cuckoo(cuckoo::Params::for_rate(n, rate, true)?)),
            Base::Quotient => return Ok(Structure::Quotient(quotient_params(n, Goal::Rate(rate))?)),
            Base::Ribbon | Base::Fuse | Base::Fuse4 => {}
        }
        let wanted = Request { goal: Goal::Rate(rate), ..*request };
        let width = wanted.widest(|width| Ok(self.leaf(request, width, true)?.rate_at(1) <= rate))?;
        self.leaf(request, width, true)
    }

    /// Cells of a key, where both stages are in one word.
    pub(crate) fn arity(self) -> Result<fuse::Arity, BuildError> {
        match self {
            Base::Fuse => Ok(fuse::Arity::Three),
            Base::Fuse4 => Ok(fuse::Arity::Four),
            Base::Ribbon | Base::Bloom | Base::Cuckoo | Base::Quotient => {
                let reason = "integrated filters are made of fuse tables: use fuse or fuse4".into();
                Err(BuildError::Unreachable { reason })
            }
        }
    }
}

/// One filter on the keys.
fn plain(request: &Request) -> Result<Step, BuildError> {
    let Request { keys: n, goal, effort, .. } = *request;
    let fuse = |arity| move |width| Structure::Fuse(fuse::Params { arity, width });
    let wide = effort == Effort::Smallest;
    let structure = match request.kind {
        Kind::Fuse => widest(request, fuse(fuse::Arity::Three))?,
        Kind::Fuse4 => widest(request, fuse(fuse::Arity::Four))?,
        Kind::Bloom => {
            let params = match goal {
                Goal::BitsPerKey(bits) => split::Params::for_bits_per_key(n, budget(n, bits, 256)?)?,
                Goal::Rate(rate) => split::Params::for_rate(n, rate)?,
                Goal::Exact | Goal::Share(_) => split::Params::for_rate(n, 0.5)?,
            };
            split::PerKey { bits_per_key: per_key(params.blocks * 256, n, goal)? }.into()
        }
        Kind::ClassicBloom => {
            let params = match goal {
                Goal::BitsPerKey(bits) => classic::Params::for_bits_per_key(n, budget(n, bits, 64)?)?,
                Goal::Rate(rate) => classic::Params::for_rate(n, rate)?,
                Goal::Exact | Goal::Share(_) => classic::Params::for_rate(n, 0.5)?,
            };
            classic::PerKey { bits_per_key: per_key(params.bits, n, goal)?, hashes: params.hashes }.into()
        }
        Kind::Cuckoo => Structure::Cuckoo(match goal {
            Goal::BitsPerKey(_) => {
                let shards = 1 << shard_bits(n, SHARD_KEYS);
                let params = cuckoo::Params::for_room(n, shards, request.room(1)?, wide);
                params.map_err(|least| request.too_few(1, least))?
            }
            Goal::Rate(rate) => cuckoo::Params::for_rate(n, rate, wide)?,
            Goal::Exact | Goal::Share(_) => cuckoo::Params::for_rate(n, 0.5, wide)?,
        }),
        Kind::Quotient => Structure::Quotient(quotient_params(n, goal)?),
        _ => widest(request, |width| Structure::Ribbon(ribbon::Params { width, wide, nested: false }))?,
    };
    Ok(Step { role: Role::Refuse, structure })
}

/// Slots and remainders of a quotient filter.
fn quotient_params(n: u64, goal: Goal) -> Result<quotient::Params, BuildError> {
    let with_rate = |rate: f64| {
        let size = quotients::size(n, rate).ok_or_else(|| BuildError::Unreachable {
            reason: format!(
                "quotient filter: no size gives a rate of {rate} with {n} keys; remainders have 32 bits at most"
            ),
        });
        Ok(quotient::Params::new(n, size?, false))
    };
    match goal {
        Goal::Rate(rate) => with_rate(rate),
        Goal::Exact | Goal::Share(_) => with_rate(0.5),
        Goal::BitsPerKey(per_key) => {
            let spare = quotient::Params::spare(n, 1 << shard_bits(n, SHARD_KEYS));
            let file = file_bits(n, 1, per_key);
            let size = quotients::size_within(n, spare, allowed(n, per_key) - file);
            let least = || too_few(n, per_key, file + quotients::bits((quotients::slots(n) + spare) as f64, 1));
            Ok(quotient::Params::new(n, size.ok_or_else(least)?, true))
        }
    }
}

/// All bits of a budget; a little more, lest 16.56 bits for each of 100 keys be rounded to less than 1656.
fn allowed(n: u64, bits: f64) -> f64 {
    bits * n as f64 * (1.0 + 1e-12)
}

/// What is left of a budget of bits per key for a table whose size in each shard is rounded up to a multiple of `unit` bits.
fn budget(n: u64, bits: f64, unit: u64) -> Result<f64, BuildError> {
    let round = (unit << shard_bits(n, SHARD_KEYS)) as f64;
    let file = file_bits(n, 1, bits);
    let left = allowed(n, bits) - file - round;
    if left < round { Err(too_few(n, bits, file + 2.0 * round)) } else { Ok(left / n as f64) }
}

/// A budget below the `least` bits that a file of `n` keys takes.
fn too_few(n: u64, bits: f64, least: f64) -> BuildError {
    let least = (100.0 * least / n as f64).ceil() / 100.0;
    let reason = format!("{bits} bits per key are too few for {n} keys; the smallest that works is {least:.2}");
    BuildError::Unreachable { reason }
}

/// Bits per key in 256ths, rounded to the safe side of the goal.
fn per_key(bits: u64, n: u64, goal: Goal) -> Result<u32, BuildError> {
    let exact = bits as f64 * 256.0 / n.max(1) as f64;
    let rounded = if matches!(goal, Goal::BitsPerKey(_)) { exact.floor() } else { exact.ceil() };
    if rounded > u32::MAX as f64 {
        let reason =
            format!("Bloom filter: a rate this low needs {:.0} bits per key, at most 2^24 are possible", exact / 256.0);
        return Err(BuildError::Unreachable { reason });
    }
    Ok(rounded.max(1.0) as u32)
}

/// The structure whose width meets the goal: rates fall and sizes grow with it.
fn widest(request: &Request, with: impl Fn(u16) -> Structure) -> Result<Structure, BuildError> {
    let n = request.keys;
    match request.goal {
        Goal::Exact | Goal::Share(_) => Ok(with(NARROWEST)),
        Goal::Rate(rate) => Ok(with(request.widest(|width| Ok(with(width).rate_at(1) <= rate))?)),
        Goal::BitsPerKey(bits) => {
            let size = |width| with(width).bits(n, 0) + file_bits(n, 1, bits);
            match request.widest(|width| Ok(size(width) > allowed(n, bits))) {
                Ok(NARROWEST) => Err(too_few(n, bits, size(NARROWEST))),
                Ok(width) => Ok(with(width - 1)),
                Err(_) => Ok(with(WIDEST)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
