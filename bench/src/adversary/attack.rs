//! a filter, its keys -> an adversary who queries, watches the answers, and reports every false positive.
//!
//! Keys are odd and unlisted keys even, which saves looking up which is which. Every 64th question is followed by one for a key, and in the
//! end all keys are asked for: a filter that loses one has failed, whatever its rate.

use tamis::Digest;

use super::claim::{Claim, Meter};
use super::subject::{Cost, Subject, Work};
use crate::stream::Stream;

/// Questions between two checks of a key.
const CHECKED: u64 = 64;

pub(super) struct Attack {
    pub(super) subject: Box<dyn Subject>,
    pub(super) members: Vec<u64>,
    pub(super) dice: Stream,
    pub(super) meter: Meter,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) moved: u64,
    /// Keys that anything moved to the next hash function.
    pub(super) progress: u64,
    /// Epochs of attack, counted as [`Attack::epoch`] does.
    pub(super) epochs: u64,
    lost: u64,
    errors: u64,
    first_error: Option<String>,
    /// Questions that may be asked.
    most: u64,
}

impl Attack {
    pub(super) fn new(subject: Box<dyn Subject>, keys: usize, window: u64, most: u64, seed: u64) -> Attack {
        let mut dice = Stream::new(seed);
        let members: Vec<u64> = (0..keys).map(|_| dice.draw() | 1).collect();
        let mut attack = Attack {
            subject,
            members: vec![],
            dice,
            meter: Meter::new(window, keys as u64),
            reads: 0,
            writes: 0,
            moved: 0,
            progress: 0,
            epochs: 0,
            lost: 0,
            errors: 0,
            first_error: None,
            most,
        };
        for key in members {
            attack.insert(key);
        }
        attack
    }

    pub(super) fn n(&self) -> u64 {
        self.members.len() as u64
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.dice.below(n)
    }

    /// A key that nobody has asked for before.
    pub(super) fn stranger(&mut self) -> u64 {
        self.dice.draw() & !1
    }

    pub(super) fn goes_on(&self) -> bool {
        self.meter.asked < self.most && self.errors == 0
    }

    /// Notes what a piece of work came to; `None` after an error.
    fn done(&mut self, done: Result<Cost, String>) -> Option<Cost> {
        match done {
            Ok(stats) => {
                self.progress += u64::from(stats.moved);
                Some(stats)
            }
            Err(e) => {
                self.errors += 1;
                self.first_error.get_or_insert(e);
                None
            }
        }
    }

    /// Queries an unlisted key, and reports it if it matches.
    #[inline]
    pub(super) fn ask(&mut self, key: u64) -> bool {
        let yes = self.look(key);
        if yes {
            self.report(key);
        }
        yes
    }

    /// Queries an unlisted key without reporting it.
    #[inline]
    pub(super) fn look(&mut self, key: u64) -> bool {
        let yes = self.subject.ask(key);
        self.meter.note(yes);
        if self.meter.asked.is_multiple_of(CHECKED) && !self.members.is_empty() {
            let at = self.below(self.members.len());
            self.lost += u64::from(!self.subject.ask(self.members[at]));
        }
        yes
    }

    fn report(&mut self, key: u64) {
        let done = self.subject.work(Work::Report, key);
        self.count(done);
    }

    /// Reports a key. Returns the members that it collided with.
    pub(super) fn accuse(&mut self, key: u64) -> Vec<Digest> {
        match self.subject.accused(key) {
            Ok((stats, found)) => {
                self.count(Ok(stats));
                found
            }
            Err(e) => {
                self.count(Err(e));
                vec![]
            }
        }
    }

    fn count(&mut self, done: Result<Cost, String>) {
        if let Some(stats) = self.done(done) {
            self.reads += u64::from(stats.reads);
            self.writes += u64::from(stats.writes);
            self.moved += u64::from(stats.moved);
        }
    }

    pub(super) fn insert(&mut self, key: u64) {
        let done = self.subject.work(Work::Insert, key);
        if self.done(done).is_some() {
            self.members.push(key);
        }
    }

    /// Removes the key at this place of the members; the last one takes its place.
    pub(super) fn delete(&mut self, at: usize) -> u64 {
        let key = self.members.swap_remove(at);
        let done = self.subject.work(Work::Delete, key);
        if self.done(done).is_none() {
            self.members.push(key);
        }
        key
    }

    /// Removes a key and inserts it again.
    pub(super) fn shake(&mut self, key: u64) {
        let out = self.subject.work(Work::Delete, key);
        self.done(out);
        let back = self.subject.work(Work::Insert, key);
        self.done(back);
    }

    /// Finds `count` new false positives and reports each; fewer if a quarter of the remaining queries does not find them, so that some are left for the trial.
    pub(super) fn find(&mut self, count: usize) -> Vec<u64> {
        let mut found = Vec::with_capacity(count);
        let until = self.meter.asked + self.most.saturating_sub(self.meter.asked) / 4;
        while found.len() < count && self.meter.asked < until && self.goes_on() {
            let key = self.stranger();
            if self.ask(key) {
                found.push(key);
            }
        }
        found
    }

    /// Queries a whole pool. Returns how many matched.
    pub(super) fn replay(&mut self, pool: &[u64]) -> u64 {
        pool.iter().filter(|&&key| self.ask(key)).count() as u64
    }

    /// Asks for strangers until all keys have a new hash function; `each` is called after every false positive. A filter that has no epochs, or that is
    /// slow to end one, is attacked with as many false positives as end one of four keys per false positive, or of one key for two. False if the questions
    /// ran out before.
    pub(super) fn epoch(&mut self, mut each: impl FnMut(&mut Attack, u64)) -> bool {
        let (start, wrong) = (self.subject.epoch(), self.meter.wrong);
        let most = if start.is_some() { 2 * self.n() } else { self.n().div_ceil(4) };
        while self.goes_on() {
            let key = self.stranger();
            if !self.ask(key) {
                continue;
            }
            each(self, key);
            if self.subject.epoch() > start || self.meter.wrong - wrong >= most {
                self.epochs += 1;
                return true;
            }
        }
        false
    }

    pub(super) fn bits_per_item(&self) -> f64 {
        self.subject.bits() as f64 / self.members.len().max(1) as f64
    }

    /// What every trial claims: no key lost, no error.
    pub(super) fn always(&mut self) -> Vec<Claim> {
        let lost = self.lost + (self.members.len() - self.subject.count(&self.members)) as u64;
        vec![Claim::new("keys lost", lost as f64, 0.0), Claim::new("errors", self.errors as f64, 0.0)]
    }

    pub(super) fn error(&self) -> Option<String> {
        self.first_error.clone()
    }
}
