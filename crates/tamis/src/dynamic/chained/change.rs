//! keys inserted, excluded and removed -> changes of the first layer, of the exact bit, and of what waits for either.

use super::waiting::Waiting;
use crate::dynamic::access::Access;
use crate::dynamic::core::SALT;
use crate::dynamic::othello::cells::Cells;
use crate::dynamic::othello::change::Graphs;
use crate::error::{ChangeError, Error};
use crate::hash::Digest;
use crate::leaves::change::Layer;

/// What readers see.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(super) first: Box<dyn Layer>,
    pub(super) cells: Cells,
}

impl Shown {
    #[inline]
    pub(crate) fn contains(&self, key: Digest) -> bool {
        self.first.contains(key) && self.cells.get(key)
    }
}

/// The exact bit of what readers see.
struct Second<'a, A>(&'a mut A);

impl<A: Access<Shown>> Access<Cells> for Second<'_, A> {
    fn read<R>(&self, with: impl FnOnce(&Cells) -> R) -> R {
        self.0.read(|shown| with(&shown.cells))
    }

    fn change<R>(&mut self, with: impl FnOnce(&mut Cells) -> R) -> R {
        self.0.change(|shown| with(&mut shown.cells))
    }
}

/// What only changes need.
#[derive(Clone)]
pub(crate) struct Known {
    pub(super) graphs: Graphs,
    /// Excluded keys that do not pass the first layer; if keys can be removed from it, those that pass too.
    pub(super) waiting: Waiting,
    pub(super) members: u64,
    pub(super) excluded: u64,
    /// Gates that an insertion opens, and what waits for them: kept for their memory alone.
    opening: Vec<u64>,
    moves: Vec<Move>,
}

/// A key that waits for a gate which opens.
#[derive(Clone, Copy)]
struct Move {
    key: Digest,
    from: u64,
    /// The next gate that keeps it out; none if it passes.
    to: Option<u64>,
}

impl Known {
    pub(super) fn new(graphs: Graphs, waiting: Waiting) -> Known {
        Known { graphs, waiting, members: 0, excluded: 0, opening: vec![], moves: vec![] }
    }

    /// Excludes a key; false if it is excluded.
    pub(crate) fn exclude(&mut self, shown: &mut impl Access<Shown>, key: Digest) -> Result<bool, Error> {
        let new = match shown.read(|shown| shown.first.closed_gate(key, &[])) {
            // A member passes. What never will pass needs nothing.
            Some(_) if !shown.read(|shown| shown.first.takes_keys()) => false,
            Some(gate) => self.waiting.add(gate, key),
            None => match shown.read(|shown| self.graphs.listed(&shown.cells, key)) {
                Some(true) => return Err(ChangeError::Member.into()),
                Some(false) => false,
                None => {
                    self.graphs.set(&mut Second(shown), key, false)?;
                    if let Some(gate) = shown.read(|shown| shown.first.gate(key)) {
                        self.waiting.add(gate, key);
                    }
                    true
                }
            },
        };
        self.excluded += u64::from(new);
        Ok(new)
    }

    /// Takes an exclusion back; false if the key is not excluded.
    pub(crate) fn allow(&mut self, shown: &mut impl Access<Shown>, key: Digest) -> Result<bool, ChangeError> {
        let taken = match shown.read(|shown| shown.first.closed_gate(key, &[])) {
            Some(gate) => self.waiting.take(gate, key),
            None => match shown.read(|shown| self.graphs.listed(&shown.cells, key)) {
                Some(true) => return Err(ChangeError::Member),
                Some(false) => {
                    if let Some(gate) = shown.read(|shown| shown.first.gate(key)) {
                        self.waiting.take(gate, key);
                    }
                    self.graphs.remove(&mut Second(shown), key)
                }
                None => false,
            },
        };
        self.excluded -= u64::from(taken);
        Ok(taken)
    }

    /// Inserts a key; false if it is a member.
    ///
    /// Readers see the key's 1 first, then a 0 for every excluded key that is about to pass, and the first layer last. So at no time does
    /// an excluded key match, or a member not. After an error nothing has changed.
    pub(crate) fn insert(&mut self, shown: &mut impl Access<Shown>, key: Digest) -> Result<bool, Error> {
        takes_keys(shown, "insert: the first layer was built, and takes no keys; build the filter again")?;
        if self.is_member(shown, key)? {
            return Ok(false);
        }
        shown.read(|shown| {
            self.moves.clear();
            for (at, &gate) in self.opening.iter().enumerate() {
                self.waiting.prefetch(at, |at| self.opening.get(at).copied());
                for key in self.waiting.behind(gate) {
                    if shown.first.closed_gate(key, &[]) == Some(gate) {
                        self.moves.push(Move { key, from: gate, to: shown.first.closed_gate(key, &self.opening) });
                    }
                }
            }
        });
        let mut done = Ok(());
        let admitted = self.moves.iter().filter(|moved| moved.to.is_none()).map(|moved| (moved.key, false));
        for (key, bit) in std::iter::once((key, true)).chain(admitted) {
            done = done.and_then(|()| self.graphs.set(&mut Second(shown), key, bit).map(|_| ()).map_err(Error::from));
        }
        let done = done.and_then(|()| {
            shown.change(|shown| shown.first.insert(key)).map_err(|full| ChangeError::from(full).into())
        });
        if let Err(error) = done {
            self.undo(shown, std::iter::once(key));
            return Err(error);
        }
        self.move_on(shown);
        self.members += 1;
        Ok(true)
    }

    /// Inserts many keys, or none of them after an error.
    pub(crate) fn insert_many(&mut self, shown: &mut impl Access<Shown>, mut keys: Vec<Digest>) -> Result<u64, Error> {
        takes_keys(shown, "insert_many: the first layer was built, and takes no keys; build the filter again")?;
        keys.sort_unstable();
        keys.dedup();
        let mut next = shown.read(|shown| shown.first.clone());
        if self.members == 0 && self.excluded == 0 {
            // Equal keys make equal bytes. Whoever would choose keys for this number must know all of these.
            next.follow(&keys, SALT);
        }
        let (mut fresh, mut opening) = (Vec::with_capacity(keys.len()), vec![]);
        for key in keys {
            if !self.is_member(shown, key)? {
                next.insert(key).map_err(ChangeError::from)?;
                fresh.push(key);
                opening.extend_from_slice(&self.opening);
            }
        }
        opening.sort_unstable();
        opening.dedup();
        shown.read(|shown| {
            self.moves.clear();
            for (at, &gate) in opening.iter().enumerate() {
                self.waiting.prefetch(at, |at| opening.get(at).copied());
                for key in self.waiting.behind(gate) {
                    if shown.first.closed_gate(key, &[]) == Some(gate) {
                        self.moves.push(Move { key, from: gate, to: next.closed_gate(key, &[]) });
                    }
                }
            }
        });
        let admitted = self.moves.iter().filter(|moved| moved.to.is_none()).map(|moved| (moved.key, false));
        let items = fresh.iter().map(|&key| (key, true)).chain(admitted);
        if let Err(error) = self.graphs.set_many(&mut Second(shown), items) {
            self.undo(shown, fresh.into_iter());
            return Err(error.into());
        }
        shown.change(|shown| shown.first = next);
        self.move_on(shown);
        self.members += fresh.len() as u64;
        Ok(fresh.len() as u64)
    }

    /// Whether a key is a member, and otherwise which gates keep it out. An error if it is excluded.
    fn is_member(&mut self, shown: &impl Access<Shown>, key: Digest) -> Result<bool, ChangeError> {
        self.opening.clear();
        let listed = shown.read(|shown| {
            shown.first.closed_gates(key, &mut self.opening);
            match self.opening.first() {
                Some(&gate) => self.waiting.holds(gate, key).then_some(false),
                None => self.graphs.listed(&shown.cells, key),
            }
        });
        if listed == Some(false) { Err(ChangeError::Excluded) } else { Ok(listed == Some(true)) }
    }

    /// Takes keys out of the exact bit again, and what they would have let pass.
    fn undo(&mut self, shown: &mut impl Access<Shown>, keys: impl Iterator<Item = Digest>) {
        let admitted = self.moves.iter().filter(|moved| moved.to.is_none()).map(|moved| moved.key);
        for key in keys.chain(admitted) {
            self.graphs.remove(&mut Second(shown), key);
        }
    }

    /// After an insertion, excluded keys wait for their next gate.
    fn move_on(&mut self, shown: &impl Access<Shown>) {
        // Keys that stay under their only gate are found there when it closes again.
        if shown.read(|shown| shown.first.removes()) {
            return;
        }
        let Known { waiting, moves, .. } = self;
        for (at, &Move { key, from, to }) in moves.iter().enumerate() {
            waiting.prefetch(at, |at| moves.get(at).map(|moved| moved.from));
            waiting.prefetch(at, |at| moves.get(at).and_then(|moved| moved.to));
            waiting.take(from, key);
            if let Some(gate) = to {
                waiting.add_new(gate, key);
            }
        }
    }

    /// Removes a member; an error if it is none.
    pub(crate) fn remove(&mut self, shown: &mut impl Access<Shown>, key: Digest) -> Result<(), ChangeError> {
        takes_keys(shown, "remove: the first layer was built, and keeps its members; build the filter again")?;
        let listed =
            shown.read(|shown| shown.first.contains(key) && self.graphs.listed(&shown.cells, key) == Some(true));
        if !listed {
            return Err(ChangeError::Absent);
        }
        let gate = shown.read(|shown| shown.first.gate(key));
        if let Some(gate) = gate {
            let closed = shown.change(|shown| {
                shown.first.remove(key);
                !shown.first.contains(key)
            });
            if closed {
                let behind = |shown: &Shown| -> Vec<Digest> {
                    self.waiting.behind(gate).filter(|&key| shown.first.gate(key) == Some(gate)).collect()
                };
                for excluded in shown.read(behind) {
                    self.graphs.remove(&mut Second(shown), excluded);
                }
            }
        }
        self.graphs.remove(&mut Second(shown), key);
        self.members -= 1;
        Ok(())
    }
}

/// An error if the first layer never changes.
fn takes_keys(shown: &impl Access<Shown>, what: &'static str) -> Result<(), ChangeError> {
    if shown.read(|shown| shown.first.takes_keys()) { Ok(()) } else { Err(ChangeError::Unsupported { what }) }
}
