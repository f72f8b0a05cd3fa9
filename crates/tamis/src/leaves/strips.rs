//! a digest -> its place among the strips of a leaf: by the digest's own bits, or by a hash where these were chosen.
//!
//! Leaves that lay their rows out in strips take the strip from the top bits of the digest: keys are sorted by them already, so that
//! nothing has to be moved. But these bits are public, and an attacker who chooses keys with equal ones puts them all into one strip. The
//! same goes for rows under a salt that is known in advance. So a leaf looks whether its keys lie as chance would have it. If not,
//! it is built again under a number that follows from all its keys (`attempts.rs`), and then the strip is a hash of the digest
//! as well:
//!
//! ```text
//!   skip 0 to 24     place = hi << skip                       ordinary keys
//!   skip 25          place = salted(number), number behind it  keys that were chosen
//! ```

#[cfg(feature = "build")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "build")]
use crate::error::BuildError;
use crate::error::FormatError;
use crate::format::{MAX_SHARD_BITS, Reader, put_varint};
use crate::hash::{Digest, MAX_NUMBER, Salt};
#[cfg(feature = "build")]
use crate::parallel::{Stop, check, run};

/// A band's eight bytes start at the byte of its first row: the last rows of a strip start none.
pub(super) const TAIL: u64 = 56;
/// The fewest rows of a strip.
pub(super) const LEAST: u64 = 64;
/// Rows of all strips together, at most.
pub(super) const MAX_ROWS: u64 = 1 << 40;

/// In the place of `skip`: strips follow from a hash.
const HASHED: u64 = MAX_SHARD_BITS as u64 + 1;

/// How a leaf finds the strip of a digest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strips {
    /// Top bits of a digest that are the same in the whole shard.
    skip: u32,
    /// Of the salt; 0 for the step's own, and strips by the bits of the digest.
    number: u32,
    salt: Salt,
}

impl Strips {
    /// For ordinary keys that agree in their top `skip` bits, or for chosen ones under a number that is not 0.
    pub(super) fn new(skip: u32, number: u32, salt: Salt) -> Strips {
        Strips { skip, number, salt: salt.child(number.into()).child(0) }
    }

    /// Top bits in which the digests agree.
    #[cfg(feature = "build")]
    pub(super) fn skip(&self) -> u32 {
        self.skip
    }

    /// The bits of a digest by which it is placed begin behind so many; nothing where it is placed by a hash.
    pub(super) fn by_bits(&self) -> Option<u32> {
        (self.number == 0).then_some(self.skip)
    }

    /// The salt of the leaf, below the step's.
    pub(super) fn leaf(&self, salt: Salt) -> Salt {
        if self.number == 0 { salt } else { salt.child(self.number.into()) }
    }

    /// Where a digest lies, from the first strip to the last.
    #[inline(always)]
    pub(super) fn place(&self, key: Digest) -> u64 {
        if self.number == 0 { key.hi << self.skip } else { self.hashed(key) }
    }

    /// Apart, so that ordinary leaves do not compute it in vain.
    #[cold]
    fn hashed(&self, key: Digest) -> u64 {
        key.salted(self.salt)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self.number {
            0 => put_varint(out, self.skip.into()),
            number => {
                put_varint(out, HASHED);
                put_varint(out, number.into());
            }
        }
    }

    pub(super) fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Strips, FormatError> {
        Ok(match from.within("skip", 0..=HASHED)? {
            HASHED => Strips::new(0, from.within("salt", 1..=MAX_NUMBER)? as u32, salt),
            skip => Strips::new(skip as u32, 0, salt),
        })
    }
}

/// Sorts digests by their places: those of a hash, which nothing is sorted by yet.
#[cfg(feature = "build")]
pub(super) fn sort_by_place(digests: &mut [Digest], place: &dyn Fn(Digest) -> u64) {
    digests.sort_unstable_by_key(|&digest| (place(digest), digest));
}

/// Where every strip of sorted digests ends.
#[cfg(feature = "build")]
pub(super) fn ends(digests: &[Digest], strips: u64, strip: &dyn Fn(Digest) -> u64) -> Vec<usize> {
    let mut end = 0;
    let mut next = |number| {
        end += digests[end..].partition_point(|&digest| strip(digest) <= number);
        end
    };
    (0..strips).map(&mut next).collect()
}

/// Builds all strips; nothing if keys crowd in one of them, which is when `build` returns nothing.
#[cfg(feature = "build")]
pub(super) fn build_all<J: Send, T: Send>(
    jobs: Vec<J>,
    threads: usize,
    stop: Stop<'_>,
    build: impl Fn(J) -> Option<T> + Sync,
) -> Result<Option<Vec<T>>, BuildError> {
    // Once a strip is crowded the others need not begin.
    let crowded = AtomicBool::new(false);
    let done = run(jobs, threads, |job| {
        check(stop)?;
        let built = if crowded.load(Ordering::Relaxed) { None } else { build(job) };
        crowded.fetch_or(built.is_none(), Ordering::Relaxed);
        Ok(built)
    })?;
    Ok(done.into_iter().collect())
}

/// For every row the equation that fixes it, 0 for a free one. An equation that says nothing new is left out.
#[cfg(feature = "build")]
pub(super) fn eliminate(rows: usize, equations: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
    let mut pivots = vec![0u64; rows];
    for (row, mut band) in equations {
        let mut row = row as usize;
        // A band ends with the strip, so that what is left of it does too: the row is there.
        while band != 0 {
            let shift = band.trailing_zeros();
            row += shift as usize;
            band >>= shift;
            let Some(pivot) = pivots.get_mut(row) else { break };
            if *pivot == 0 {
                *pivot = band;
                break;
            }
            band ^= *pivot;
        }
    }
    pivots
}

/// Rows that are counted together when a leaf looks for crowds.
#[cfg(feature = "build")]
pub(super) const WINDOW: usize = 128;

#[cfg(all(test, feature = "build"))]
mod tests {
    use super::*;

    #[test]
    fn both_ways_are_in_the_file() {
        let salt = Salt::new(3);
        let key = Digest { hi: 0x1234_5678_9abc_def0, lo: 77 };
        for strips in
            [Strips::new(0, 0, salt), Strips::new(24, 0, salt), Strips::new(0, 1, salt), Strips::new(0, u32::MAX, salt)]
        {
            let mut bytes = vec![];
            strips.encode(&mut bytes);
            let again = Strips::decode(&mut Reader::new(&bytes, "test"), salt);
            assert_eq!(again.map(|again| again.place(key)).ok(), Some(strips.place(key)));
        }
        for wrong in [&[26][..], &[25], &[25, 0], &[25, 128, 128, 128, 128, 16]] {
            assert!(Strips::decode(&mut Reader::new(wrong, "test"), salt).is_err(), "{wrong:?}");
        }
    }
}
