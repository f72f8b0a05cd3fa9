//! calls of a reverse map -> a log of them: which keys it named, and what the map alone costs.

use std::convert::Infallible;
use std::hint::black_box;

use tamis::Digest;
use tamis::adaptive::{Memory, ReverseMap};

/// A map in memory whose calls can be logged.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) map: Memory,
    log: Option<Log>,
}

enum Call {
    File(Digest, u64),
    Unfile(Digest, u64),
    Refile(Digest, u64, u64),
    /// With the answer.
    Filed(u64, Vec<Digest>),
    Next(Option<Digest>),
}

/// The calls since the log was started.
#[derive(Default)]
pub(crate) struct Log(Vec<Call>);

impl Watched {
    pub(crate) fn start(&mut self) {
        self.log = Some(Log::default());
    }

    pub(crate) fn stop(&mut self) -> Log {
        self.log.take().unwrap_or_default()
    }

    fn note(&mut self, call: impl FnOnce() -> Call) {
        if let Some(Log(calls)) = &mut self.log {
            calls.push(call());
        }
    }
}

impl Log {
    /// All keys that the map named.
    pub(crate) fn found(&self) -> Vec<Digest> {
        let answers = self.0.iter().filter_map(|call| match call {
            Call::Filed(_, found) => Some(found),
            _ => None,
        });
        let mut found: Vec<Digest> = answers.flatten().copied().collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    pub(crate) fn replay(&self, map: &mut Memory) {
        let mut answer = Vec::new();
        for call in &self.0 {
            answer.clear();
            let Ok(()) = match call {
                Call::File(key, name) => map.file(*key, *name).map(drop),
                Call::Unfile(key, name) => map.unfile(*key, *name).map(drop),
                Call::Refile(key, from, to) => map.refile(*key, *from, *to).map(drop),
                Call::Filed(name, _) => map.filed(*name, &mut answer).map(drop),
                Call::Next(after) => map.next(*after).map(|next| {
                    black_box(next);
                }),
            };
            black_box(&answer);
        }
    }
}

impl ReverseMap for Watched {
    type Error = Infallible;

    fn file(&mut self, key: Digest, name: u64) -> Result<(), Infallible> {
        self.note(|| Call::File(key, name));
        self.map.file(key, name)
    }

    fn unfile(&mut self, key: Digest, name: u64) -> Result<bool, Infallible> {
        self.note(|| Call::Unfile(key, name));
        self.map.unfile(key, name)
    }

    fn refile(&mut self, key: Digest, from: u64, to: u64) -> Result<bool, Infallible> {
        self.note(|| Call::Refile(key, from, to));
        self.map.refile(key, from, to)
    }

    fn filed(&mut self, name: u64, found: &mut Vec<Digest>) -> Result<(), Infallible> {
        let before = found.len();
        self.map.filed(name, found)?;
        self.note(|| Call::Filed(name, found[before..].to_vec()));
        Ok(())
    }

    fn next(&mut self, after: Option<Digest>) -> Result<Option<Digest>, Infallible> {
        self.note(|| Call::Next(after));
        self.map.next(after)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_log_replayed_makes_the_same_map() {
        let mut map = Watched::default();
        let key = |i: u64| Digest::from_bits(u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64 | u128::from(i));
        map.file(key(1), 5).unwrap();
        let mut copy = map.map.clone();
        map.start();
        for i in 2..100 {
            map.file(key(i), i % 10).unwrap();
        }
        map.unfile(key(7), 7).unwrap();
        map.refile(key(8), 8, 3).unwrap();
        map.filed(3, &mut vec![]).unwrap();
        map.next(Some(key(1))).unwrap();
        let log = map.stop();
        log.replay(&mut copy);
        let names = |map: &mut Memory| {
            let mut all = vec![];
            (0..10).for_each(|name| map.filed(name, &mut all).unwrap());
            all.sort_unstable();
            all
        };
        assert_eq!(names(&mut copy), names(&mut map.map));
        assert!(log.found().contains(&key(8)) && log.found().contains(&key(3)) && !log.found().contains(&key(4)));
        assert!(map.stop().found().is_empty());
    }
}
