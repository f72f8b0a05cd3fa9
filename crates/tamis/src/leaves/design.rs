//! a leaf to be + the two sides of a shard -> its size and rate, and its bytes: planning and building, for every leaf.
//!
//! A *design* is a leaf with its parameters, the same for every shard, as plain integers. The planner gets sizes and rates from it;
//! the executor (`filter/build/shard.rs`) lets it build. It gets the two sides of a shard, keys and known negatives, as far as the
//! steps before it left them undecided, and takes them in the way it needs:
//!
//! ```text
//!            undecided keys      undecided negatives           a leaf that is       takes
//!   Positive stored              those that pass are left      stored on one side   Sides::stored
//!   Negative those that pass     stored                        steered: it thins    Sides::steered
//!            are left                                          the other side out
//!   Exact    stored              and stored, with the wrong    right about both     Sides::both, Sides::streamed
//!                                fingerprint
//! ```
//!
//! Until a step has rejected most of them, negatives are read in parts and not kept: there may be more than memory holds.

use std::borrow::Cow;

use super::{Geometry, Query, Role};
use crate::error::{BuildError, Lack};
use crate::hash::{Digest, Salt};
use crate::math::chance::may_toss;
use crate::parallel::Stop;

/// A leaf to build: its parameters, the same for every shard.
pub(crate) trait Design: Copy + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// What becomes of it.
    type Leaf: Query;

    /// What may pass beyond [`Design::passing`], as a factor: how far a measured share may be off.
    const MARGIN: f64 = 1.0;

    /// Expected payload bits for so many listed elements, and others that it must be right about as well. A leaf that only stores
    /// holds both.
    fn bits(&self, listed: u64, others: u64) -> f64;

    /// The share of unlisted keys that match, with so many listed elements, at least one.
    fn rate_at(&self, listed: u64) -> f64;

    /// The share of the other side that passes, where it has `mu` elements for each listed one.
    fn passing(&self, _mu: f64, listed: u64) -> f64 {
        if listed == 0 { 0.0 } else { self.rate_at(listed) }
    }

    /// Cache lines that a query reads, about: if the answer is yes, and if it is no. What is queried so often that it stays near
    /// the processor (thresholds, directories) is left out.
    fn lines(&self) -> [f64; 2];

    /// The same with room for a share of keys more, if it takes keys after it was built.
    fn with_room(self, _spare: f64) -> Option<Self> {
        None
    }

    /// The same with the bits of a key that are compared rounded down to a whole number, if a filter of fewer whole bits on the same
    /// keys rejects nothing that this one lets through.
    fn nested(self) -> Option<Self> {
        None
    }

    /// Builds the leaf of one shard and appends its payload to `out`.
    fn build(&self, sides: &mut Sides<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<Self::Leaf, BuildError>;
}

/// Cache lines of so many bytes that lie side by side, at any place.
pub(super) fn lines_of(bytes: f64) -> f64 {
    1.0 + (bytes - 1.0) / 64.0
}

/// A size in 256ths with room for a share more.
pub(super) fn roomier(size: u32, spare: f64) -> u32 {
    (f64::from(size) * (1.0 + spare)).ceil().min(u32::MAX.into()) as u32
}

/// How the leaf of a shard is built.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    /// That of the step.
    pub(crate) salt: Salt,
    /// Top bits in which all digests of the shard agree.
    pub(crate) skip: u32,
    pub(crate) threads: usize,
    pub(crate) stop: Stop<'a>,
}

/// What a leaf stores for its keys.
#[derive(Clone, Copy)]
pub(crate) enum Values<'a> {
    /// A fingerprint of each key: the function becomes a filter.
    Fingerprints,
    /// One value per key, in the order of the keys, each below 2^width.
    Given(&'a [u32]),
    /// A fingerprint of each key that is wanted, and for the others one whose lowest bit is wrong: the leaf says yes to the
    /// first and no to the second, and to an unlisted key as seldom as any filter ([Chained] section 4.2.1, strategy (a)).
    Signed(&'a [bool]),
}

/// Takes digests, and their weights if these matter.
pub(crate) type DigestSink<'a> = dyn FnMut(&[Digest], &[u32]) -> Result<(), BuildError> + 'a;

/// The known negatives of a shard, wherever they are.
pub(crate) trait Listed {
    /// Hands all of them to `part`, piece by piece and in the same order every time; its errors are passed on.
    fn each(&self, part: &mut DigestSink<'_>) -> Result<(), BuildError>;

    /// All of them, where they are in memory and worth the same.
    fn in_memory(&self) -> Option<&[Digest]> {
        None
    }
}

/// In memory, and all worth the same.
impl Listed for &[Digest] {
    fn each(&self, part: &mut DigestSink<'_>) -> Result<(), BuildError> {
        part(self, &[])
    }

    fn in_memory(&self) -> Option<&[Digest]> {
        Some(self)
    }
}

/// Digests that a leaf should reject.
#[derive(Clone, Debug, Default)]
pub(crate) struct RejectSide<'a> {
    /// Sorted.
    pub(crate) digests: Cow<'a, [Digest]>,
    /// How much each of them matters, or nothing if they all matter the same.
    pub(crate) weights: Vec<u32>,
}

impl Listed for RejectSide<'_> {
    fn each(&self, part: &mut DigestSink<'_>) -> Result<(), BuildError> {
        part(&self.digests, &self.weights)
    }
}

impl<'a> RejectSide<'a> {
    /// All of a list, copied only if it must be.
    fn load(listed: &'a dyn Listed) -> Result<RejectSide<'a>, BuildError> {
        if let Some(digests) = listed.in_memory() {
            return Ok(RejectSide { digests: Cow::Borrowed(digests), weights: vec![] });
        }
        let (mut all, mut all_weights) = (vec![], vec![]);
        listed.each(&mut |digests, weights| {
            all.extend_from_slice(digests);
            all_weights.extend_from_slice(weights);
            Ok(())
        })?;
        Ok(RejectSide { digests: Cow::Owned(all), weights: all_weights })
    }

    /// Goes on with those that pass.
    pub(super) fn keep(&mut self, passes: &[bool]) {
        match &mut self.digests {
            Cow::Owned(digests) => keep(digests, passes),
            Cow::Borrowed(digests) => {
                let passing = digests.iter().zip(passes).filter(|(_, passes)| **passes);
                let mut kept = Vec::with_capacity(passes.iter().filter(|passes| **passes).count());
                kept.extend(passing.map(|(digest, _)| *digest));
                self.digests = Cow::Owned(kept);
            }
        }
        if !self.weights.is_empty() {
            keep(&mut self.weights, passes);
        }
    }
}

/// Drops items that do not pass. Which do is as good as random: a branch would be guessed wrong half of the time.
fn keep<T: Copy>(items: &mut Vec<T>, passes: &[bool]) {
    let mut kept = 0;
    for (i, &passes) in passes.iter().enumerate() {
        items[kept] = items[i];
        kept += usize::from(passes);
    }
    items.truncate(kept);
    // Most are gone, and the next step has needs of its own.
    items.shrink_to_fit();
}

/// Of the salt that draws lots among negatives of the same weight; numbers below 2^32 are those of a table's attempts, and this one that of
/// an integrated filter's second.
const LEFT_OUT: u64 = (1 << 32) + 1;

/// Keys that are queried together.
const ROUND: usize = 256;

/// Answers for many keys of the leaf that was just built.
pub(crate) type Passes<'a> = dyn Fn(&[Digest], &mut [bool]) + 'a;

/// Appends the answers for so many keys.
fn ask(passes: &Passes<'_>, keys: &[Digest], answers: &mut Vec<bool>) {
    let start = answers.len();
    answers.resize(start + keys.len(), false);
    for (keys, answers) in keys.chunks(ROUND).zip(answers[start..].chunks_mut(ROUND)) {
        passes(keys, answers);
    }
}

/// The two sides of a shard, as far as they are undecided, seen from a step.
pub(crate) struct Sides<'a> {
    role: Role,
    keys: Cow<'a, [Digest]>,
    /// What a leaf that rejects stores for the keys.
    values: Values<'a>,
    listed: &'a dyn Listed,
    /// Negatives that are left, once they are in memory.
    left: Option<RejectSide<'a>>,
    /// Whether the leaf has thinned the other side out itself.
    thinned: bool,
    /// The weight of negatives that may match because the exact leaf does not know them.
    allowed: f64,
}

impl<'a> Sides<'a> {
    /// Both sides of a shard, sorted and distinct.
    pub(crate) fn new(keys: &'a [Digest], listed: &'a dyn Listed) -> Sides<'a> {
        let (role, keys, values) = (Role::Positive, Cow::Borrowed(keys), Values::Fingerprints);
        Sides { role, keys, values, listed, left: None, thinned: false, allowed: 0.0 }
    }

    /// The same, where all negatives are in memory and may be used up.
    pub(crate) fn left(self, negatives: Option<Vec<Digest>>) -> Sides<'a> {
        let side = |negatives| RejectSide { digests: Cow::Owned(negatives), weights: vec![] };
        Sides { left: negatives.map(side), ..self }
    }

    /// The same, where negatives of so much weight may match.
    pub(crate) fn allowing(self, allowed: f64) -> Sides<'a> {
        Sides { allowed, ..self }
    }

    /// Leaves out the lightest negatives, as many as may be: to the coins of an exact leaf ([Chained] section 4.2.1, strategy (a)), or to
    /// a filter on the negatives, which matches what it does not know. Later steps leave out no more.
    pub(crate) fn leave_out(&mut self, salt: Salt) -> Result<(), BuildError> {
        let (role, allowed) = (self.role, std::mem::take(&mut self.allowed));
        if allowed <= 0.0 {
            return Ok(());
        }
        let (_, left) = self.load()?;
        // Equals by chance: a ribbon's rows are in the order of digests.
        let salt = salt.child(LEFT_OUT);
        let weight = |i: usize| left.weights.get(i).copied().unwrap_or(1);
        let mut order: Vec<(u32, u64, usize)> =
            left.digests.iter().enumerate().map(|(i, digest)| (weight(i), digest.salted(salt), i)).collect();
        order.sort_unstable();
        let (mut sum, mut squares) = (0.0, 0.0);
        let mut stored = vec![true; order.len()];
        for (weight, _, i) in order {
            (sum, squares) = (sum + f64::from(weight), squares + f64::from(weight) * f64::from(weight));
            let may = if role == Role::Exact { may_toss(sum, squares, allowed) } else { sum <= allowed };
            if !may {
                break;
            }
            stored[i] = false;
        }
        left.keep(&stored);
        // What is left is to be rejected, whatever it weighs.
        left.weights.clear();
        Ok(())
    }

    /// Keys with what a leaf stores for them, and nothing to reject.
    pub(crate) fn alone(keys: &'a [Digest], values: Values<'a>) -> Sides<'a> {
        const NOTHING: &[Digest] = &[];
        Sides { values, ..Sides::new(keys, &NOTHING) }
    }

    /// The same sides, seen from a step with this role.
    pub(crate) fn of(&mut self, role: Role) -> &mut Sides<'a> {
        self.role = role;
        self
    }

    /// For a leaf that stores digests, in any role.
    pub(super) fn stored<T>(
        &mut self,
        build: impl FnOnce(&[Digest], Values<'_>) -> Result<T, BuildError>,
    ) -> Result<T, BuildError> {
        match self.role {
            Role::Positive => build(&self.keys, self.values),
            Role::Negative => build(&self.load()?.1.digests, Values::Fingerprints),
            Role::Exact => {
                let (keys, negatives) = self.both()?;
                let both = [keys, negatives].concat();
                let mut wanted = vec![true; both.len()];
                wanted[keys.len()..].fill(false);
                // It is the answer: nobody needs the sides any more.
                (self.keys, self.left) = (Cow::default(), Some(RejectSide::default()));
                build(&both, Values::Signed(&wanted))
            }
        }
    }

    /// For a leaf that stores fingerprints and nothing else, in any role but [`Role::Exact`].
    pub(super) fn fingerprints<T: Geometry>(
        &mut self,
        build: impl FnOnce(&[Digest]) -> Result<T, BuildError>,
    ) -> Result<T, BuildError> {
        self.stored(|digests, values| match values {
            Values::Fingerprints => build(digests),
            Values::Given(_) | Values::Signed(_) => Err(BuildError::Unfit { kind: T::NAME, lacks: Lack::ExactBit }),
        })
    }

    /// For a leaf on one side that looks at the other, and leaves in it those that pass.
    pub(super) fn steered<T>(
        &mut self,
        build: impl FnOnce(&[Digest], &mut RejectSide<'_>) -> Result<T, BuildError>,
    ) -> Result<T, BuildError> {
        self.thinned = true;
        if self.role == Role::Negative {
            let mut side = RejectSide { digests: std::mem::take(&mut self.keys), weights: vec![] };
            let built = build(&self.load()?.1.digests, &mut side);
            self.keys = side.digests;
            return built;
        }
        let (keys, left) = self.load()?;
        build(keys, left)
    }

    /// For a leaf that holds all of both sides in memory.
    pub(super) fn both(&mut self) -> Result<(&[Digest], &[Digest]), BuildError> {
        let (keys, left) = self.load()?;
        Ok((keys, &left.digests))
    }

    /// For a leaf that reads the negatives, perhaps more than once, and keeps few.
    pub(super) fn streamed(&self) -> (&[Digest], &dyn Listed) {
        (&self.keys, self.left.as_ref().map_or(self.listed, |left| left))
    }

    /// Both sides, the negatives in memory.
    fn load(&mut self) -> Result<(&[Digest], &mut RejectSide<'a>), BuildError> {
        if self.left.is_none() {
            self.left = Some(RejectSide::load(self.listed)?);
        }
        Ok((&self.keys, self.left.get_or_insert_default()))
    }

    /// Whether the leaf that was just built has thinned the other side out.
    pub(crate) fn is_thinned(&mut self) -> bool {
        std::mem::take(&mut self.thinned)
    }

    /// How many negatives are left, once they are in memory.
    pub(crate) fn negatives_left(&self) -> Option<usize> {
        self.left.as_ref().map(|left| left.digests.len())
    }

    /// Goes on with what passes the leaf that was just built.
    pub(crate) fn pass(&mut self, passes: &Passes<'_>) -> Result<(), BuildError> {
        let mut answers = vec![];
        if self.role == Role::Negative {
            ask(passes, &self.keys, &mut answers);
            let mut side = RejectSide { digests: std::mem::take(&mut self.keys), weights: vec![] };
            side.keep(&answers);
            self.keys = side.digests;
            return Ok(());
        }
        if self.left.is_some() || self.listed.in_memory().is_some() {
            let (_, left) = self.load()?;
            ask(passes, &left.digests, &mut answers);
            left.keep(&answers);
            return Ok(());
        }
        let (mut passing, mut passing_weights) = (vec![], vec![]);
        self.listed.each(&mut |digests, weights| {
            answers.clear();
            ask(passes, digests, &mut answers);
            passing.extend(digests.iter().zip(&answers).filter(|(_, passes)| **passes).map(|(digest, _)| *digest));
            passing_weights
                .extend(weights.iter().zip(&answers).filter(|(_, passes)| **passes).map(|(weight, _)| *weight));
            Ok(())
        })?;
        self.left = Some(RejectSide { digests: Cow::Owned(passing), weights: passing_weights });
        Ok(())
    }
}
