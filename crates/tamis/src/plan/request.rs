//! counts, a goal, options -> a request: what the recipes plan for, and the bits of what they plan.

use super::budget::{allowed, file_bits, too_few};
use super::{Effort, Goal, Kind, Layout, Step, Structure};
use crate::error::{BuildError, Lack};
use crate::leaves::Role;
use crate::math::chance::most_tossed;

/// The most extra capacity, as a share of the keys.
pub(crate) const MAX_EXTRA_CAPACITY: f64 = 1000.0;

/// The options of a plan, and the number of keys.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Request {
    pub(crate) keys: u64,
    /// log2 of the number of shards.
    pub(crate) shard_bits: u32,
    /// About how many known negatives.
    pub(crate) negatives: u64,
    pub(crate) goal: Goal,
    pub(crate) kind: Kind,
    pub(crate) effort: Effort,
    pub(crate) layout: Layout,
    /// Of a cascade: how much shorter every list is than the one before.
    pub(crate) delta: f64,
    /// Of a cascade: how many steps it has.
    pub(crate) layers: u8,
    /// Bits of the first stage times 256, where the caller chose them.
    pub(crate) first: Option<u16>,
    /// Slacks of steered columns, where the caller chose them.
    pub(crate) columns: Option<Columns>,
    /// Room for more keys, as a share of them.
    pub(crate) spare: f64,
    /// What the hash takes in the head of the file.
    pub(crate) hash_bytes: u32,
}

/// Slacks in 1024ths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Columns {
    slacks: [u16; Columns::MAX_COLUMNS],
    count: u8,
}

impl Columns {
    /// The most columns there can be.
    pub(crate) const MAX_COLUMNS: usize = 8;

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

/// Narrowest and widest values of a leaf, in 256ths of a bit.
pub(super) const MIN_WIDTH: u16 = 256;
pub(super) const MAX_WIDTH: u16 = 32 * 256;

impl Request {
    /// The same for as many keys as there will be when the room is used up; a budget stays what it is in bits.
    pub(crate) fn grown(&self) -> Request {
        let keys = (self.keys as f64 * (1.0 + self.spare)).ceil() as u64;
        let goal = match self.goal {
            Goal::BitsPerKey(bits) => Goal::BitsPerKey(bits * self.keys as f64 / keys.max(1) as f64),
            goal @ (Goal::Fpr(_) | Goal::Exact | Goal::ExcludedFpr(_)) => goal,
        };
        Request { keys, goal, spare: 0.0, ..*self }
    }

    /// How many of `n` keys are in a shard that has few of them, four standard deviations below the mean: where keys are few, a classic Bloom
    /// filter of as many bits for each matches more. Of split-block filters those of many keys do, and of other leaves all match alike.
    pub(super) fn in_small_shard(&self, n: u64) -> u64 {
        if self.shard_bits == 0 {
            return n;
        }
        let mean = n as f64 / (1u64 << self.shard_bits) as f64;
        ((mean - 4.0 * mean.sqrt()) as u64).clamp(1, n.max(1))
    }

    pub(super) fn check(&self) -> Result<(), BuildError> {
        let range = |option, given, most| Err(BuildError::Range { option, given, least: 0.0, most });
        let steered = matches!(self.kind, Kind::Auto | Kind::Steered);
        let sharing = steered || matches!(self.kind, Kind::Chained(_));
        match self.goal {
            Goal::Fpr(rate) if !(rate > 0.0 && rate < 1.0) => range("fpr", rate, 1.0),
            Goal::BitsPerKey(bits) if !(bits > 0.0 && bits <= 4096.0) => range("bits_per_key", bits, 4096.0),
            Goal::ExcludedFpr(share) if !(share > 0.0 && share < 1.0) => range("excluded_fpr", share, 1.0),
            _ if !(self.spare >= 0.0 && self.spare <= MAX_EXTRA_CAPACITY) => {
                range("extra_capacity", self.spare, MAX_EXTRA_CAPACITY)
            }
            _ if self.spare > 0.0 && !self.kind.traits().more_keys => Err(self.unfit(Lack::MoreKeys)),
            Goal::ExcludedFpr(_) if !sharing => Err(self.unfit(Lack::Share)),
            _ if self.negatives > 0 && !self.kind.traits().negatives => Err(self.unfit(Lack::Negatives)),
            _ if self.layout == Layout::Local && !steered && self.negatives > 0 => Err(self.unfit(Lack::LocalLayout)),
            Goal::Exact if !self.kind.traits().negatives => Err(self.unfit(Lack::Exactness)),
            Goal::Fpr(_) | Goal::BitsPerKey(_) | Goal::Exact | Goal::ExcludedFpr(_) => Ok(()),
        }
    }

    /// The share of the negatives that a list of steps leaves out: see [`Plan::allowed`](super::Plan::allowed). None where steered columns
    /// on the keys come first: weights for a share are too fine for their search.
    pub(crate) fn allowed(&self, steps: &[Step]) -> f64 {
        let exact = steps.last().is_some_and(|step| step.role == Role::Exact);
        let mut before = steps.iter().take_while(|step| step.role == Role::Positive);
        let steered = before.any(|step| matches!(step.structure, Structure::Steered(_)));
        if exact && !steered { self.share() } else { 0.0 }
    }

    /// The share of the negatives that may match.
    pub(crate) fn share(&self) -> f64 {
        if let Goal::ExcludedFpr(share) = self.goal { share } else { 0.0 }
    }

    /// How many negatives of one weight a step with this role leaves out, where a share of them is `allowed`. Those that an exact step
    /// does not know match with probability 1/2, those that a filter on negatives does not know nearly all.
    pub(crate) fn left_out(&self, role: Role, allowed: f64) -> f64 {
        let allowed = allowed * self.negatives as f64;
        match role {
            Role::Positive => 0.0,
            Role::Negative => allowed.floor(),
            Role::Exact => most_tossed(allowed),
        }
    }

    /// The error of a kind that lacks something.
    pub(crate) fn unfit(&self, lacks: Lack) -> BuildError {
        BuildError::Unfit { kind: self.kind.name(), lacks }
    }

    /// The first width, in 256ths of a bit, that `reached` says yes to; it turns from no to yes once.
    pub(crate) fn least_width(&self, reached: impl Fn(u16) -> Result<bool, BuildError>) -> Result<u16, BuildError> {
        let (mut low, mut high) = (MIN_WIDTH, MAX_WIDTH + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if reached(middle)? { high = middle } else { low = middle + 1 }
        }
        if low <= MAX_WIDTH { Ok(low) } else { Err(self.too_low()) }
    }

    /// No width reaches the rate.
    pub(crate) fn too_low(&self) -> BuildError {
        let fpr = if let Goal::Fpr(rate) = self.goal { rate } else { 0.0 };
        BuildError::Rate { kind: self.kind.name(), fpr, lowest: 2.4e-10 }
    }

    /// Bits for the payload of a filter of several steps, where the goal is a budget.
    pub(crate) fn room(&self, steps: usize) -> Result<f64, BuildError> {
        let Goal::BitsPerKey(bits) = self.goal else { return Ok(f64::INFINITY) };
        Ok(allowed(self.keys, bits) - file_bits(self, steps, bits))
    }

    /// A budget below the `least` bits that the payload takes.
    pub(crate) fn too_few(&self, steps: usize, least: f64) -> BuildError {
        let Goal::BitsPerKey(bits) = self.goal else { return self.too_low() };
        too_few(self.keys, bits, least + file_bits(self, steps, bits))
    }

    /// Payload bits of a list of steps, rather more than less: how many pass a filter is chance.
    pub(crate) fn bits_of(&self, steps: &[Step]) -> f64 {
        self.bits_with(steps, 4.0)
    }

    /// The bits that a file of these steps has on average, with what every step adds to it: to tell which of several is the smallest.
    pub(crate) fn likely_bits(&self, steps: &[Step]) -> f64 {
        // Leaves come in blocks. Where as many as expected just fit, half of the time there are more.
        let around = [-1.0, 0.0, 0.0, 1.0].map(|deviations| self.bits_with(steps, deviations));
        around.iter().sum::<f64>() / 4.0 + STEP_BITS * steps.len() as f64
    }

    /// Payload bits where so many standard deviations more pass every filter than expected.
    fn bits_with(&self, steps: &[Step], deviations: f64) -> f64 {
        let (mut keys, mut negatives, mut bits) = (self.keys as f64, self.negatives as f64, 0.0);
        let mut allowed = self.allowed(steps);
        for Step { role, structure } in steps {
            let whole = |x: f64| x.ceil() as u64;
            let left_out = self.left_out(*role, allowed);
            if *role != Role::Positive {
                allowed = 0.0;
            }
            let [most_keys, most_negatives] =
                [(keys, self.keys), (negatives, self.negatives)].map(|(x, all)| most(x, all, deviations));
            match role {
                Role::Positive => {
                    bits += structure.bits(most_keys, 0);
                    let passing = structure.passing(negatives / keys.max(1.0), whole(keys));
                    negatives = (negatives * passing * structure.margin()).min(negatives);
                }
                Role::Negative => {
                    bits += structure.bits(most_negatives.saturating_sub(left_out as u64), 0);
                    negatives = (negatives - left_out).max(0.0);
                    let passing = structure.passing(keys / negatives.max(1.0), whole(negatives));
                    keys = (keys * passing * structure.margin()).min(keys);
                }
                Role::Exact => bits += structure.bits(most_keys, most_negatives.saturating_sub(left_out as u64)),
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
const STEP_BITS: f64 = 96.0;
