//! maps that fail and maps that lie -> what the tests of adaptive filters share.
#![allow(clippy::unwrap_used)]

use super::{Memory, ReverseMap};
use crate::hash::{Digest, scramble};

/// Random numbers for tests.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        scramble(scramble(self.0) ^ 0x5eed)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

/// A map of which some calls fail, `every`-th on average.
pub(super) struct Flaky<M> {
    pub(super) inner: M,
    every: u64,
    random: Random,
}

impl<M> Flaky<M> {
    pub(super) fn new(inner: M, every: u64) -> Flaky<M> {
        Flaky { inner, every, random: Random(every) }
    }

    fn fails(&mut self) -> Result<(), &'static str> {
        // One in one would never let a key in.
        match self.random.below(self.every as usize + 1) {
            0 => Err("the disk is on fire"),
            _ => Ok(()),
        }
    }
}

impl ReverseMap for Flaky<Memory> {
    type Error = &'static str;

    fn file(&mut self, key: Digest, name: u64) -> Result<(), &'static str> {
        self.fails()?;
        self.inner.file(key, name).unwrap();
        Ok(())
    }

    fn unfile(&mut self, key: Digest, name: u64) -> Result<bool, &'static str> {
        self.fails()?;
        Ok(self.inner.unfile(key, name).unwrap())
    }

    fn refile(&mut self, key: Digest, from: u64, to: u64) -> Result<bool, &'static str> {
        self.fails()?;
        Ok(self.inner.refile(key, from, to).unwrap())
    }

    fn filed(&mut self, name: u64, found: &mut Vec<Digest>) -> Result<(), &'static str> {
        self.fails()?;
        self.inner.filed(name, found).unwrap();
        Ok(())
    }

    fn next(&mut self, after: Option<Digest>) -> Result<Option<Digest>, &'static str> {
        self.fails()?;
        Ok(self.inner.next(after).unwrap())
    }
}

/// How a map lies.
#[derive(Clone, Copy)]
pub(super) enum Lie {
    /// Nothing is filed under any name.
    Nothing,
    /// Keys of the set that are filed elsewhere.
    Others,
    /// Digests that are no keys.
    Strangers,
    /// The truth twice, and others with it.
    TooMuch,
    /// The next key is one that has moved.
    Back,
    /// The next key is none of the set.
    Unknown,
    /// There is no next key.
    End,
}

/// A map that returns wrong keys, and stores the right ones.
pub(super) struct Liar {
    inner: Memory,
    lie: Lie,
}

impl Liar {
    pub(super) fn all(inner: Memory) -> Vec<Liar> {
        let lies = [Lie::Nothing, Lie::Others, Lie::Strangers, Lie::TooMuch, Lie::Back, Lie::Unknown, Lie::End];
        lies.into_iter().map(|lie| Liar { inner: inner.clone(), lie }).collect()
    }
}

impl ReverseMap for Liar {
    type Error = std::convert::Infallible;

    fn file(&mut self, key: Digest, name: u64) -> Result<(), Self::Error> {
        self.inner.file(key, name)
    }

    fn unfile(&mut self, key: Digest, name: u64) -> Result<bool, Self::Error> {
        self.inner.unfile(key, name)
    }

    fn refile(&mut self, key: Digest, from: u64, to: u64) -> Result<bool, Self::Error> {
        self.inner.refile(key, from, to)
    }

    fn filed(&mut self, name: u64, found: &mut Vec<Digest>) -> Result<(), Self::Error> {
        let digest = |i: u64| Digest { hi: scramble(name ^ i), lo: scramble(i) };
        match self.lie {
            Lie::Nothing => {}
            Lie::Others => found.extend(self.inner.next(Some(digest(name)))?),
            Lie::Strangers => found.extend((0..20).map(digest)),
            Lie::TooMuch => {
                self.inner.filed(name, found)?;
                self.inner.filed(name, found)?;
                found.extend((0..20).map(digest));
            }
            Lie::Back | Lie::Unknown | Lie::End => self.inner.filed(name, found)?,
        }
        Ok(())
    }

    fn next(&mut self, after: Option<Digest>) -> Result<Option<Digest>, Self::Error> {
        match (self.lie, after) {
            (Lie::Back, Some(after)) => Ok(Some(after)),
            // After the frontier, close behind it, and an unlisted key to the filter but for chance.
            (Lie::Unknown, after) => Ok(Some(after.map_or(Digest { hi: 1, lo: 1 }, |d| Digest { lo: !d.lo, ..d }))),
            (Lie::End, _) => Ok(None),
            _ => self.inner.next(after),
        }
    }
}
