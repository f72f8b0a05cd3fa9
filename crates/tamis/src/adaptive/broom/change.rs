//! a task -> what it changes, planned without touching anything; a change -> made, without reading the map.

use super::super::frontier::{Frontier, Side};
use super::super::map::{Asked, done, ensure, filed, next_key, only};
use super::super::verbs::full;
use super::super::{Adapt, AdaptError, AdaptiveFilter, Mechanism, PlanRemoval, Remove, ReverseMap, Task};
use super::{Broom, Spot, Table};
use crate::debug::brief_debug;
use crate::hash::Digest;
use crate::math::broom::plan;

/// A change of a [`Broom`] that is ready to be made.
pub struct BroomChange(Change);

brief_debug!(BroomChange, _it => );

#[derive(Debug)]
enum Change {
    /// A new key comes in.
    Insert { side: Side, put: Put },
    /// The key with this hash leaves.
    Remove { side: Side, hash: u64 },
    /// The fingerprint of the key with this hash gets a tail of so many bits.
    Lengthen { side: Side, hash: u64, tail: u32 },
    /// The next key goes to the next hash function.
    Move { key: Digest, from: u64, put: Put },
    /// All keys have moved; perhaps the next hash function has a table of its own.
    Turn { next: Option<Box<Table>> },
}

/// A key to be put in. Small, since it is handed on; a spot is soon found again.
#[derive(Debug)]
struct Put {
    hash: u64,
    /// Bits that its tail needs.
    tail: u32,
    /// Where the run of its quotient ends.
    run_end: u32,
    /// The hash of a key whose fingerprint is a prefix of this one, and the bits that its tail needs.
    collider: Option<Box<(u64, u32)>>,
}

const MIN_MOVES_PER_TOMBSTONE: u64 = 16;

/// Moves that an insertion adds when the filter is about to grow. It begins at 3/4 of the capacity. The epoch that goes on may have as many
/// steps left as there are keys, and the next one, which fills the larger table, has as many: at most twice the capacity, for which a quarter of
/// the capacity in insertions is left. Eight would do.
const MOVES_PER_INSERT: u32 = 9;

impl Broom {
    /// The one key that a full collision is with. `found` are the distinct keys under its name.
    pub(super) fn owner<E>(
        &self,
        side: Side,
        hit: &Spot,
        slot: usize,
        found: &[Digest],
    ) -> Result<(Digest, Spot), AdaptError<E>> {
        let table = self.table(side);
        let owners = found.iter().filter_map(|&key| {
            let its = self.frontier.side(key);
            let spot = self.spot(key, its);
            let same_table = its == side || self.next.is_none();
            (same_table && table.owned(hit, slot, &spot)).then_some((key, spot))
        });
        only(owners, table.name(hit))
    }

    /// The name that a key of this hash is filed under.
    fn name(&self, side: Side, hash: u64) -> u64 {
        let table = self.table(side);
        table.name(&table.spot(hash))
    }

    /// How to put a key in, or `None` if it is there. `moving`: it is there, and will be taken out first.
    fn plan_put<M: ReverseMap>(
        &self,
        key: Digest,
        side: Side,
        min_tail: u32,
        moving: bool,
        map: &mut M,
    ) -> Asked<Option<Put>, M> {
        let table = self.table(side);
        let spot = self.spot(key, side);
        let look = table.look(&spot);
        let mut put = Put { hash: spot.hash, tail: look.need.max(min_tail), run_end: look.end, collider: None };
        let mut room = true;
        if let Some(slot) = look.hit {
            let found = filed(map, table.name(&spot))?;
            if !moving && found.contains(&key) {
                return Ok(None);
            }
            let (owner, its) = self.owner(side, &spot, slot, &found)?;
            // A key that moves may meet its own old fingerprint, which will be gone.
            if owner != key {
                let tail = (its.print.more ^ spot.print.more).trailing_zeros() + 1;
                put.tail = put.tail.max(tail);
                put.collider = Some(Box::new((its.hash, tail)));
                room = table.takes_both(&spot, put.tail, &its, slot, tail);
            }
        } else if !moving && table.yard.has(spot.hash) {
            let name = table.name(&spot);
            ensure(filed(map, name)?.contains(&key), AdaptError::ambiguous(name))?;
            return Ok(None);
        }
        ensure(room && table.takes(&spot, put.tail), full(self))?;
        Ok(Some(put))
    }

    fn plan_insert<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Asked<Option<Change>, M> {
        let side = self.frontier.side(key);
        let tombstones = &self.table(side).tombstones;
        let min_tail = match tombstones.len {
            0 => 0,
            _ => tombstones.length(self.spot(key, side).hash, self.frontier.number(side)),
        };
        // A filter that is full still knows the keys it has.
        let Some(put) = self.plan_put(key, side, min_tail, false, map)? else { return Ok(None) };
        ensure(self.len < self.table.capacity(), full(self))?;
        map.file(key, self.name(side, put.hash)).map_err(AdaptError::Store)?;
        Ok(Some(Change::Insert { side, put }))
    }

    fn plan_adapt<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Asked<Option<Change>, M> {
        let side = self.frontier.side(key);
        let (table, spot) = (self.table(side), self.spot(key, side));
        let hit = table.look(&spot).hit;
        if hit.is_none() && !table.yard.has(spot.hash) {
            return Ok(None);
        }
        let found = filed(map, table.name(&spot))?;
        ensure(!found.contains(&key), AdaptError::Member)?;
        // Two keys that agree in 58 bits cannot be told apart: one of 2^58 pairs.
        let Some(slot) = hit else { return Err(AdaptError::ambiguous(table.name(&spot))) };
        let (_, its) = self.owner(side, &spot, slot, &found)?;
        let tail = (its.print.more ^ spot.print.more).trailing_zeros() + 1;
        ensure(table.lengthens(&its, slot, tail), full(self))?;
        Ok(Some(Change::Lengthen { side, hash: its.hash, tail }))
    }

    fn plan_move<M: ReverseMap>(&self, map: &mut M) -> Asked<Option<Change>, M> {
        let Some(key) = next_key(map, self.frontier.last)? else {
            // A map that ends too early would strand the rest under a hash function that is gone.
            ensure(self.moved >= self.len, AdaptError::order())?;
            return Ok(Some(Change::Turn { next: self.larger() }));
        };
        let from = self.spot(key, Side::Old);
        ensure(self.table.look(&from).hit.is_some() || self.table.yard.has(from.hash), AdaptError::order())?;
        let Some(put) = self.plan_put(key, Side::New, 0, true, map)? else { return Err(AdaptError::order()) };
        let names = (self.table.name(&from), self.name(Side::New, put.hash));
        // A key that is not filed there is not in the set, even if it matches.
        done(map.refile(key, names.0, names.1), AdaptError::order())?;
        Ok(Some(Change::Move { key, from: from.hash, put }))
    }

    /// Whether it has begun to grow, or must.
    fn fills(&self) -> bool {
        self.grows && self.len >= (self.table.capacity() * 3).div_ceil(4)
    }

    /// The table for the next epoch, if it must be larger.
    fn larger(&self) -> Option<Box<Table>> {
        if self.next.is_some() || !self.fills() {
            return None;
        }
        let now = &self.table.plan;
        let larger = plan(self.table.capacity().checked_mul(2)?, self.rate, now.words, self.moves_per_adapt);
        larger.map(|plan| Box::new(Table::new(plan)))
    }

    /// `as_planned`: the table is as it was when the end of the run was looked up.
    fn put(&mut self, side: Side, Put { hash, tail, run_end, collider }: Put, as_planned: bool) -> u32 {
        let table = self.table_mut(side);
        let spot = table.spot(hash);
        let Some(collider) = collider else { return table.put(&spot, tail, as_planned.then_some(run_end)) };
        let (its, length) = *collider;
        table.lengthen(&table.spot(its), length) + table.put(&spot, tail, None)
    }

    fn remove(&mut self, side: Side, hash: u64) -> u32 {
        let table = self.table_mut(side);
        let spot = table.spot(hash);
        let (tail, mut touched) = table.take(&spot);
        touched += table.refill(spot.block);
        self.len = self.len.saturating_sub(1);
        self.moved = self.moved.saturating_sub(u64::from(side == Side::New));
        if let Some(tail @ 1..) = tail {
            let number = self.frontier.number(side);
            self.table_mut(side).tombstones.insert(hash, number, tail);
            self.frontier.add_moves(self.moves_per_tombstone(side));
        }
        touched
    }

    /// Sweeps a few tombstones of the old table. While the filter grows, the new table has none of a hash function that is gone.
    fn sweep(&mut self) -> u32 {
        let share = self.table.tombstones.share(self.len);
        self.table.tombstones.sweep(share, self.frontier.epoch);
        share.div_ceil(2) as u32
    }

    /// Moves that a tombstone adds, so that there is always room for another. Beyond half of the room, each adds as many as there are moves
    /// until the hash function of this side is gone, over the room that is left.
    fn moves_per_tombstone(&self, side: Side) -> u32 {
        let tombstones = &self.table(side).tombstones;
        let free = tombstones.room.saturating_sub(tombstones.len) as u64;
        let left = self.len.saturating_sub(self.moved) + if side == Side::New { self.len } else { 0 };
        let moves = match free * 2 > tombstones.room as u64 {
            true => MIN_MOVES_PER_TOMBSTONE,
            false => MIN_MOVES_PER_TOMBSTONE.max(left.div_ceil(free.max(1))),
        };
        moves.min(1024) as u32
    }
}

impl Mechanism for Broom {
    type Change = BroomChange;

    fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    fn plan<M: ReverseMap>(&self, task: Task, map: &mut M) -> Asked<Option<BroomChange>, M> {
        let change = match task {
            Task::Insert(key) => self.plan_insert(key, map),
            Task::Adapt(key) => self.plan_adapt(key, map),
            Task::Move => self.plan_move(map),
        };
        Ok(change?.map(BroomChange))
    }

    fn apply(&mut self, BroomChange(change): BroomChange) -> u32 {
        match change {
            Change::Insert { side, put } => {
                let number = self.frontier.number(side);
                self.table_mut(side).tombstones.remove(put.hash, number);
                self.len += 1;
                self.moved += u64::from(side == Side::New);
                if self.fills() {
                    self.frontier.add_moves(MOVES_PER_INSERT);
                }
                self.put(side, put, true)
            }
            Change::Remove { side, hash } => self.remove(side, hash),
            Change::Lengthen { side, hash, tail } => {
                self.frontier.add_moves(self.moves_per_adapt);
                let table = self.table_mut(side);
                table.lengthen(&table.spot(hash), tail)
            }
            Change::Move { key, from, put } => {
                let from = self.table.spot(from);
                let (_, taken) = self.table.take(&from);
                self.frontier.pass(key);
                self.moved += 1;
                let touched = taken + self.sweep() + self.put(Side::New, put, false);
                // Only now: a key that came home before could be one that `put` does not know of.
                touched + self.table.refill(from.block)
            }
            Change::Turn { next } => {
                match self.len {
                    0 => self.frontier.pending_moves = 0,
                    _ => self.frontier.made_move(),
                }
                if let Some(table) = self.next.take() {
                    self.table = table;
                }
                self.next = next.map(|table| *table);
                self.frontier.turn();
                self.moved = 0;
                self.sweep()
            }
        }
    }
}

impl AdaptiveFilter for Broom {
    fn len(&self) -> u64 {
        self.len
    }

    fn memory_bytes(&self) -> usize {
        let next = self.next.as_ref().map_or(0, Table::bytes);
        size_of::<Broom>() + self.table.bytes() + next
    }

    fn fpr(&self) -> f64 {
        self.rate
    }
}

impl Adapt for Broom {
    fn capacity(&self) -> u64 {
        self.table.capacity()
    }
}

impl Remove for Broom {}

impl PlanRemoval for Broom {
    fn plan_remove<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Asked<BroomChange, M> {
        let side = self.frontier.side(key);
        let (table, spot) = (self.table(side), self.spot(key, side));
        let look = table.look(&spot);
        let in_yard = table.yard.has(spot.hash);
        ensure(look.hit.is_some() || in_yard, AdaptError::NotMember)?;
        let name = table.name(&spot);
        let found = filed(map, name)?;
        ensure(found.contains(&key), AdaptError::NotMember)?;
        if let Some(slot) = look.hit.filter(|_| !in_yard) {
            ensure(self.owner(side, &spot, slot, &found)?.0 == key, AdaptError::unfiled(name))?;
        }
        done(map.unfile(key, name), AdaptError::unfiled(name))?;
        Ok(BroomChange(Change::Remove { side, hash: spot.hash }))
    }
}
