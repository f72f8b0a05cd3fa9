//! a task -> a change, planned and then made.

use super::entry::{Entry, MAX_EXTRA_BITS, Match, Place, Whole};
use super::{AdaptiveQuotient, Side};
use crate::adaptive::frontier::Frontier;
use crate::adaptive::map::{Asked, done, ensure, filed, next_key, only};
use crate::adaptive::verbs::full;
use crate::adaptive::{Adapt, AdaptError, AdaptiveFilter, Mechanism, PlanRemoval, Remove, ReverseMap, Task};
use crate::debug::brief_debug;
use crate::hash::Digest;
use crate::leaves::change::Layer;

/// A change of an [`AdaptiveQuotient`] that is ready to be made.
pub struct QuotientChange(Kind);

brief_debug!(QuotientChange, _it => );

#[derive(Debug)]
enum Kind {
    /// A new key comes in.
    Insert { side: Side, arrival: Arrival },
    /// A key leaves, and perhaps a tombstone stays.
    Remove { side: Side, place: Place, from: Match },
    /// A fingerprint becomes longer.
    Extend(Longer),
    /// A key that would need too many bits is kept whole from now on.
    Lift { place: Place, from: Match },
    /// The next key goes to the next hash function.
    Move { key: Digest, place: Place, from: Match, arrival: Arrival },
    /// Tombstones of the old hash function go.
    Sweep,
    /// All keys have moved.
    Turn,
}

/// Another fingerprint of a key with this hash.
#[derive(Debug)]
pub(super) struct Longer {
    from: Option<Entry>,
    to: Entry,
}

/// How a key comes in: where it goes, and which fingerprint has to give way.
#[derive(Debug)]
pub(super) struct Arrival {
    place: Place,
    to: Match,
    other: Option<Longer>,
}

/// A bit that no base has.
const WHOLE: u64 = 1 << 63;
/// Entries that only keys that move may use.
const RESERVED_ENTRIES: isize = 32;
/// Slots that a step sweeps.
const SLOTS_PER_SWEEP: usize = 64;

fn name(place: &Place, at: Match) -> u64 {
    if at == Match::Whole { WHOLE | Whole::upper(place) } else { place.base }
}

impl AdaptiveQuotient {
    /// Where a key of the set is, and all that is filed under its base if that was read.
    fn home<M: ReverseMap>(&self, key: Digest, place: &Place, map: &mut M) -> Asked<(Option<Match>, Vec<Digest>), M> {
        if self.is_whole(place) && filed(map, name(place, Match::Whole))?.contains(&key) {
            return Ok((Some(Match::Whole), vec![]));
        }
        let Some(found) = self.in_table(place) else { return Ok((None, vec![])) };
        let keys = filed(map, place.base)?;
        Ok((keys.contains(&key).then_some(found), keys))
    }

    /// The key that has this fingerprint, of those that the map names; it is not `except`.
    fn owner<E>(
        &self,
        base: u64,
        entry: Option<Entry>,
        found: &[Digest],
        except: Option<Digest>,
    ) -> Result<(Digest, Place), AdaptError<E>> {
        let places = found.iter().filter(|&&key| Some(key) != except).map(|&key| (key, self.place_of(key)));
        let fits = |(_, place): &(Digest, Place)| {
            let agrees = |entry: Entry| entry.parity == place.parity && entry.is_prefix(place);
            place.base == base && entry.is_none_or(agrees)
        };
        only(places.filter(fits), base)
    }

    /// How a key comes in, while its fingerprint `gone` goes. `keys` are those under its base.
    pub(super) fn arrive<E>(
        &self,
        key: Digest,
        place: Place,
        gone: Option<(u64, Match)>,
        keys: impl FnOnce() -> Result<Vec<Digest>, AdaptError<E>>,
    ) -> Result<Arrival, AdaptError<E>> {
        // A key that moves leaves its entry, and may use the last ones.
        let spare = match gone {
            None => RESERVED_ENTRIES,
            Some((_, from)) => -isize::from(matches!(from, Match::Long(_))),
        };
        let whole = |place| Arrival { place, to: Match::Whole, other: None };
        let was_whole = |(_, word)| Whole::is_tombstone(word) && Whole::parity(word) == place.parity;
        if self.whole.like(place.whole).any(was_whole) {
            return self.checked(whole(place), spare);
        }
        let gone = gone.filter(|gone| gone.0 == place.base && gone.1 != Match::Whole).map(|gone| gone.1);
        let (mut len, mut long, mut other) = (0, 0, None);
        for entry in self.entries(place.base) {
            match entry.tombstone {
                true if entry.parity == place.parity && entry.is_prefix(&place) => len = len.max(entry.len),
                true => {}
                false if gone == Some(Match::Long(entry)) => {}
                false => {
                    long += 1;
                    let common = entry.common(&place);
                    if common == entry.len { other = Some(Some(entry)) } else { len = len.max(common + 1) }
                }
            }
        }
        if self.copies(place.base) > long + u64::from(gone.is_some()) {
            other = Some(None);
        }
        let other = match other {
            None => None,
            // One more bit than they share makes prefixes of both that are none of each other.
            Some(from) => {
                let (_, owner) = self.owner(place.base, from, &keys()?, Some(key))?;
                let needed = place.common(&owner) + 1;
                if needed > MAX_EXTRA_BITS {
                    return self.checked(whole(place), spare);
                }
                len = len.max(needed);
                Some(Longer { from, to: owner.entry(needed) })
            }
        };
        let to = if len == 0 { Match::Bare } else { Match::Long(place.entry(len)) };
        self.checked(Arrival { place, to, other }, spare)
    }

    /// Nothing comes in without room, of which so many entries more are needed, or fewer.
    fn checked<E>(&self, arrival: Arrival, spare: isize) -> Result<Arrival, AdaptError<E>> {
        let new = arrival.other.as_ref().is_some_and(|longer| longer.from.is_none());
        let room = match arrival.to {
            Match::Whole => self.whole.len() < self.whole.capacity(),
            Match::Bare => true,
            Match::Long(_) => self.long.len().saturating_add_signed(spare) + usize::from(new) < self.long.capacity(),
        };
        ensure(room, full(self))?;
        Ok(arrival)
    }

    fn plan_insert<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Asked<Option<Kind>, M> {
        let (side, place) = (self.frontier.side(key), self.place_of(key));
        let (home, keys) = self.home(key, &place, map)?;
        if home.is_some() {
            return Ok(None);
        }
        ensure(self.len() < self.capacity, full(self))?;
        let arrival = self.arrive(key, place, None, || Ok(keys))?;
        map.file(key, name(&place, arrival.to)).map_err(AdaptError::Store)?;
        Ok(Some(Kind::Insert { side, arrival }))
    }

    fn plan_adapt<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Asked<Option<Kind>, M> {
        let place = self.place_of(key);
        let (home, keys) = self.home(key, &place, map)?;
        ensure(home.is_none(), AdaptError::Member)?;
        // No hashes agree by chance in all 58 bits of a whole hash.
        let Some(found) = self.in_table(&place) else { return Ok(None) };
        let from = if let Match::Long(entry) = found { Some(entry) } else { None };
        let (key, owner) = self.owner(place.base, from, &keys, None)?;
        let len = place.common(&owner) + 1;
        if len <= MAX_EXTRA_BITS {
            let room = from.is_some() || self.long.len().saturating_add_signed(RESERVED_ENTRIES) < self.long.capacity();
            ensure(room, full(self))?;
            return Ok(Some(Kind::Extend(Longer { from, to: owner.entry(len) })));
        }
        ensure(self.whole.len() < self.whole.capacity(), full(self))?;
        let refiled = map.refile(key, owner.base, name(&owner, Match::Whole));
        done(refiled, AdaptError::unfiled(owner.base))?;
        Ok(Some(Kind::Lift { place: owner, from: found }))
    }

    fn plan_move<M: ReverseMap>(&self, map: &mut M) -> Asked<Option<Kind>, M> {
        let Some(key) = next_key(map, self.frontier.last)? else {
            return match (self.old, self.tombstones[self.parity(Side::Old)]) {
                (0, 0) => Ok(Some(Kind::Turn)),
                (0, _) => Ok(Some(Kind::Sweep)),
                // Keys that are left are not lost because a map does not know them.
                _ => Err(AdaptError::order()),
            };
        };
        let place = self.place(key, Side::Old);
        let from = if self.is_whole(&place) { Some(Match::Whole) } else { self.in_table(&place) };
        let other_function = |from: &Match| matches!(from, Match::Long(entry) if entry.parity != place.parity);
        let from = from.filter(|from| self.old > 0 && !other_function(from));
        let from = from.ok_or(AdaptError::order())?;
        let there = self.place(key, Side::New);
        let arrival = self.arrive(key, there, Some((place.base, from)), || filed(map, there.base))?;
        done(map.refile(key, name(&place, from), name(&there, arrival.to)), AdaptError::order())?;
        Ok(Some(Kind::Move { key, place, from, arrival }))
    }

    fn parity(&self, side: Side) -> usize {
        (self.frontier.number(side) & 1) as usize
    }

    fn extend(&mut self, Longer { from, to }: Longer) {
        if let Some(from) = from {
            self.long.remove(from.pack());
        }
        self.long.insert(to.pack());
    }

    fn take_out(&mut self, place: &Place, from: Match) {
        if from == Match::Whole {
            self.whole_keys -= u64::from(self.whole.remove(Whole::pack(place, false)));
            return;
        }
        if !self.held.take(place.base)
            && let Some(at) = self.spare.iter().position(|&base| base == place.base)
        {
            self.spare.swap_remove(at);
        }
        if let Match::Long(entry) = from {
            self.long.remove(entry.pack());
        }
    }

    /// A fingerprint comes, and one makes room for it.
    fn take_in(&mut self, Arrival { place, to, other }: Arrival) {
        if let Some(longer) = other {
            self.extend(longer);
        }
        if to == Match::Whole {
            self.whole_keys += u64::from(self.whole.insert(Whole::pack(&place, false)).is_some());
            return;
        }
        if !self.held.put(place.base) {
            self.spare.push(place.base);
        }
        if let Match::Long(entry) = to {
            self.long.insert(entry.pack());
        }
    }

    /// A key is back, with a fingerprint as long as what was remembered of it, which need not be remembered any more.
    fn remove_tombstones(&mut self, Arrival { place, to, .. }: &Arrival) {
        let Match::Long(_) = to else { return };
        let tombstones = self.entries(place.base).filter(|entry| entry.tombstone && entry.parity == place.parity);
        let words: Vec<u64> = tombstones.filter(|entry| entry.is_prefix(place)).map(|entry| entry.pack()).collect();
        for word in words {
            let gone = u64::from(self.long.remove(word));
            let left = &mut self.tombstones[place.parity as usize & 1];
            *left = left.saturating_sub(gone);
        }
    }
}

impl Mechanism for AdaptiveQuotient {
    type Change = QuotientChange;

    fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    fn plan<M: ReverseMap>(&self, task: Task, map: &mut M) -> Asked<Option<QuotientChange>, M> {
        let kind = match task {
            Task::Insert(key) => self.plan_insert(key, map),
            Task::Adapt(key) => self.plan_adapt(key, map),
            Task::Move => self.plan_move(map),
        };
        Ok(kind?.map(QuotientChange))
    }

    fn apply(&mut self, change: QuotientChange) -> u32 {
        match change.0 {
            Kind::Insert { side, arrival } => {
                self.remove_tombstones(&arrival);
                self.take_in(arrival);
                self.old += u64::from(side == Side::Old);
                12
            }
            Kind::Remove { side, place, from } => {
                self.take_out(&place, from);
                // One entry of each kind is enough, and the removal has just made room for it.
                let new = match from {
                    Match::Bare => false,
                    Match::Long(entry) => self.long.insert_new(Entry { tombstone: true, ..entry }.pack()),
                    Match::Whole => self.whole.insert_new(Whole::pack(&place, true)),
                };
                self.tombstones[place.parity as usize & 1] += u64::from(new);
                self.old = self.old.saturating_sub(u64::from(side == Side::Old));
                self.frontier.add_moves(if new { 3 * self.steps } else { 0 });
                12
            }
            Kind::Extend(longer) => {
                self.extend(longer);
                self.frontier.add_moves(self.steps);
                8
            }
            Kind::Lift { place, from } => {
                self.take_out(&place, from);
                self.take_in(Arrival { place, to: Match::Whole, other: None });
                self.frontier.add_moves(self.steps);
                12
            }
            Kind::Move { key, place, from, arrival } => {
                self.take_out(&place, from);
                self.take_in(arrival);
                self.frontier.pass(key);
                self.old = self.old.saturating_sub(1);
                20
            }
            Kind::Sweep => {
                let parity = self.parity(Side::Old) as u64;
                let before = self.long.len() + self.whole.len();
                let gone = |word| Entry::unpack(word).tombstone && Entry::unpack(word).parity == parity;
                let next = self.long.sweep(self.swept, SLOTS_PER_SWEEP, gone);
                self.whole.sweep(self.swept, SLOTS_PER_SWEEP, |word| {
                    Whole::is_tombstone(word) && Whole::parity(word) == parity
                });
                // Round and round: what moved back behind the sweep in between is found the next time.
                self.swept = next.unwrap_or(0);
                let left = &mut self.tombstones[parity as usize];
                *left = left.saturating_sub((before - self.long.len() - self.whole.len()) as u64);
                self.frontier.made_move();
                2 * SLOTS_PER_SWEEP as u32
            }
            Kind::Turn => {
                self.frontier.turn();
                self.old = self.len();
                self.frontier.made_move();
                1
            }
        }
    }

    fn pending_moves(&self) -> u32 {
        // Steps make room: where there is none they come before all else.
        if self.is_full() { u32::MAX } else { self.frontier.pending_moves }
    }
}

impl AdaptiveFilter for AdaptiveQuotient {
    fn len(&self) -> u64 {
        self.held.keys() + self.spare.len() as u64 + self.whole_keys
    }

    fn memory_bytes(&self) -> usize {
        self.held.payload.capacity() + 8 * self.spare.capacity() + self.long.bytes() + self.whole.bytes()
    }

    fn fpr(&self) -> f64 {
        self.rate
    }
}

impl Adapt for AdaptiveQuotient {
    fn capacity(&self) -> u64 {
        self.capacity
    }
}

impl Remove for AdaptiveQuotient {}

impl PlanRemoval for AdaptiveQuotient {
    fn plan_remove<M: ReverseMap>(&self, key: Digest, map: &mut M) -> Asked<QuotientChange, M> {
        let (side, place) = (self.frontier.side(key), self.place_of(key));
        let (Some(from), _) = self.home(key, &place, map)? else { return Err(AdaptError::NotMember) };
        done(map.unfile(key, name(&place, from)), AdaptError::NotMember)?;
        Ok(QuotientChange(Kind::Remove { side, place, from }))
    }
}
