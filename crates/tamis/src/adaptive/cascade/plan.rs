//! a task -> a change, planned and then made.

use super::generation::Generation;
use super::{Cascade, Erase, Level};
use crate::adaptive::frontier::{Frontier, Side};
use crate::adaptive::map::{Asked, done, ensure, filed, next_key};
use crate::adaptive::verbs::full;
use crate::adaptive::{Adapt, AdaptError, AdaptiveFilter, Mechanism, PlanRemoval, Remove, ReverseMap, Task};
use crate::debug::brief_debug;
use crate::error::ChangeError;
use crate::hash::Digest;

/// A change of a [`Cascade`] that is ready to be made.
pub struct CascadeChange<L>(Kind<L>);

brief_debug!(CascadeChange<L>, _it => );

#[derive(Debug)]
enum Kind<L> {
    /// A new key goes to a level.
    Insert { key: Digest, to: usize },
    /// A key leaves its level.
    Remove { key: Digest, from: usize },
    /// One of the keys at the spot of a false positive, if there is one, goes to a later level; with the last of them the spot dies.
    Close { false_positive: Digest, level: usize, moved: Option<(Digest, usize)>, last: bool },
    /// Here is the next generation.
    Begin(Box<Generation<L>>),
    /// The next key goes from its level in one generation to a level in the next.
    Move { key: Digest, from: usize, to: usize },
    /// All keys have moved.
    End,
}

/// Keys that an insertion or a removal moves while a generation is on the move.
const MOVES_PER_CHANGE: u32 = 4;

impl<L: Level> Cascade<L> {
    /// The name of a key at a level: level, generation, spot.
    fn name(&self, side: Side, level: usize, key: Digest) -> u64 {
        let parity = self.frontier.number(side) & 1;
        (level as u64) << 59 | parity << 58 | self.generation(side).spot(level, key)
    }

    /// Whether the spot of a key at this level is closing.
    fn is_closing(&self, side: Side, level: usize, key: Digest) -> bool {
        let same = |&(false_positive, at): &(Digest, usize)| {
            let spot = |key| self.generation(side).spot(level, key);
            at == level && self.side(false_positive) == side && spot(false_positive) == spot(key)
        };
        self.closing.as_ref().is_some_and(same)
    }

    /// The level at which a key of the set is filed.
    pub(super) fn home<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Asked<Option<usize>, M> {
        let side = self.side(key);
        let mut from = 0;
        while let Some(level) = self.generation(side).alive(key, from) {
            if filed(map, self.name(side, level, key))?.contains(&key) {
                return Ok(Some(level));
            }
            if !self.is_closing(side, level, key) {
                break;
            }
            from = level + 1;
        }
        Ok(None)
    }

    fn plan_insert<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Asked<Option<Kind<L>>, M> {
        if self.home(key, map)?.is_some() {
            return Ok(None);
        }
        let side = self.side(key);
        let generation = self.generation(side);
        let mut to = generation.open(key, 0);
        // A spot that is closing takes no key.
        if self.is_closing(side, to, key) {
            to = generation.open(key, to + 1);
        }
        ensure(self.len() < self.capacity() && generation.has_room(0, to), full(self))?;
        map.file(key, self.name(side, to, key)).map_err(AdaptError::Store)?;
        Ok(Some(Kind::Insert { key, to }))
    }

    /// One key fewer at the spot of a false positive.
    fn plan_close<M: ReverseMap>(
        &self,
        false_positive: Digest,
        level: usize,
        map: &mut M,
    ) -> Asked<Option<Kind<L>>, M> {
        let side = self.side(false_positive);
        let generation = self.generation(side);
        let name = self.name(side, level, false_positive);
        let mut found = filed(map, name)?;
        ensure(!found.contains(&false_positive), AdaptError::Member)?;
        // No key leaves the last level: hashes do not agree in 58 bits by chance.
        let Some(tier) = generation.tiers.get(level) else { return Ok(None) };
        // Whatever the map says: keys of this generation that are at this spot, at this level.
        let is_here = |&key: &Digest| {
            self.side(key) == side
                && tier.level.spot(key) == tier.level.spot(false_positive)
                && generation.alive(key, 0) == Some(level)
        };
        found.retain(is_here);
        match tier.copies(false_positive) {
            Some(copies) if copies > found.len() as u64 => return Err(AdaptError::unfiled(name)),
            Some(copies) if copies < found.len() as u64 => return Err(AdaptError::ambiguous(name)),
            // Some key set the bits, and none has left since.
            None if found.is_empty() && level == 0 && tier.len() == generation.live => {
                return Err(AdaptError::unfiled(name));
            }
            _ => {}
        }
        ensure(tier.can_kill(), full(self))?;
        let moved = match found.first() {
            None => None,
            Some(&key) => {
                let to = generation.open(key, level + 1);
                // What was begun is brought to an end, even if a level gets a few keys too many: otherwise nothing would ever move again.
                let room = match self.closing {
                    Some(_) => to < generation.tiers.len() || generation.has_end(),
                    None => generation.has_room(level + 1, to),
                };
                ensure(room, full(self))?;
                done(map.refile(key, name, self.name(side, to, key)), AdaptError::unfiled(name))?;
                Some((key, to))
            }
        };
        Ok(Some(Kind::Close { false_positive, level, moved, last: found.len() <= 1 }))
    }

    fn plan_move<M: ReverseMap>(&self, map: &mut M) -> Asked<Option<Kind<L>>, M> {
        let Some(next) = &self.next else {
            if !self.now.is_worn() {
                return Ok(None);
            }
            // Made here, where readers need not wait for it.
            let next = Generation::new(&self.sizes, self.frontier.salt(Side::New));
            let what = "table: the next generation of the filter cannot be allocated; expected more memory";
            return Ok(Some(Kind::Begin(Box::new(next.map_err(|_| ChangeError::Unsupported { what })?))));
        };
        let Some(key) = next_key(map, self.frontier.last)? else {
            // Keys that are left in the old generation are not lost because a map does not know them.
            return if self.now.live == 0 { Ok(Some(Kind::End)) } else { Err(AdaptError::order()) };
        };
        let from = self.now.alive(key, 0).filter(|_| self.now.live > 0).ok_or(AdaptError::order())?;
        let to = next.open(key, 0);
        // A level takes a key that moves, even if it is full: otherwise a map that failed for long could stop the move for ever.
        ensure(to < next.tiers.len() || next.has_end(), full(self))?;
        let names = (self.name(Side::Old, from, key), self.name(Side::New, to, key));
        done(map.refile(key, names.0, names.1), AdaptError::order())?;
        Ok(Some(Kind::Move { key, from, to }))
    }

    /// Steps are due, if keys are moving.
    fn add_moves(&mut self, steps: u32) {
        if self.next.is_some() {
            self.frontier.add_moves(steps);
        }
    }
}

impl<L: Level> Mechanism for Cascade<L> {
    type Change = CascadeChange<L>;

    fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    fn plan<M: ReverseMap>(&self, task: Task, map: &mut M) -> Asked<Option<CascadeChange<L>>, M> {
        let kind = match (task, self.closing) {
            (Task::Insert(key), _) => self.plan_insert(key, map),
            // What was begun comes first.
            (Task::Adapt(_) | Task::Move, Some((false_positive, level))) => self.plan_close(false_positive, level, map),
            (Task::Adapt(key), None) => match self.generation(self.side(key)).alive(key, 0) {
                Some(level) => self.plan_close(key, level, map),
                None => Ok(None),
            },
            (Task::Move, None) => self.plan_move(map),
        };
        Ok(kind?.map(CascadeChange))
    }

    fn apply(&mut self, change: CascadeChange<L>) -> u32 {
        let reach = self.now.reach();
        match change.0 {
            Kind::Insert { key, to } => {
                let generation = self.generation_mut(self.side(key));
                generation.insert(key, 0, to);
                generation.live += 1;
                self.add_moves(MOVES_PER_CHANGE);
            }
            Kind::Remove { key, from } => {
                let side = self.side(key);
                let closing = self.is_closing(side, from, key);
                let generation = self.generation_mut(side);
                generation.remove(key, from);
                // A file may claim fewer.
                generation.live = generation.live.saturating_sub(1);
                // The last key at a spot that is closing: those that left before are looked for behind a dead spot only.
                let tier = generation.tiers.get_mut(from).filter(|tier| closing && tier.copies(key) == Some(0));
                if let Some(tier) = tier {
                    tier.kill(key);
                    self.closing = None;
                    self.add_moves(self.shape.steps);
                }
                self.add_moves(MOVES_PER_CHANGE);
            }
            Kind::Close { false_positive, level, moved, last } => {
                let generation = self.generation_mut(self.side(false_positive));
                if let Some((key, to)) = moved {
                    generation.remove(key, level);
                    generation.insert(key, level + 1, to);
                }
                if let Some(tier) = generation.tiers.get_mut(level).filter(|_| last) {
                    tier.kill(false_positive);
                }
                self.closing = (!last).then_some((false_positive, level));
                if last {
                    self.add_moves(self.shape.steps);
                }
                return 2 * reach;
            }
            Kind::Begin(next) => {
                self.next = Some(next);
                self.frontier.pending_moves = 0;
            }
            Kind::Move { key, from, to } => {
                self.now.remove(key, from);
                self.now.live -= 1;
                if let Some(next) = &mut self.next {
                    next.insert(key, 0, to);
                    next.live += 1;
                }
                self.frontier.pass(key);
                return 2 * reach;
            }
            Kind::End => {
                if let Some(next) = self.next.take() {
                    self.now = *next;
                }
                self.frontier.turn();
                self.frontier.pending_moves = 0;
            }
        }
        reach
    }

    fn pending_moves(&self) -> u32 {
        match self.next {
            // A map that keeps failing can stop a move until the generation is full. Then steps come before all else.
            Some(_) if self.now.is_full() => u32::MAX,
            Some(_) => self.frontier.pending_moves,
            None => self.now.is_worn().into(),
        }
    }
}

impl<L: Level> AdaptiveFilter for Cascade<L> {
    fn len(&self) -> u64 {
        self.now.live + self.next.as_ref().map_or(0, |next| next.live)
    }

    fn memory_bytes(&self) -> usize {
        self.now.bytes() + self.next.as_ref().map_or(0, |next| next.bytes())
    }

    fn fpr(&self) -> f64 {
        self.shape.rate
    }
}

impl<L: Level> Adapt for Cascade<L> {
    fn capacity(&self) -> u64 {
        self.shape.capacity
    }
}

impl<L: Erase> Remove for Cascade<L> {}

impl<L: Erase> PlanRemoval for Cascade<L> {
    fn plan_remove<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Asked<CascadeChange<L>, M> {
        let Some(from) = self.home(key, map)? else { return Err(AdaptError::NotMember) };
        done(map.unfile(key, self.name(self.side(key), from, key)), AdaptError::NotMember)?;
        Ok(CascadeChange(Kind::Remove { key, from }))
    }
}
