//! a base and its patches, a digest -> whether the answer is flipped: the chain of patches behind a filter.
//!
//! ```text
//!   digest ──▶ first layers of all patches, in one call ──no, nearly always──▶ not flipped
//!                                                       ──maybe──▶ that patch alone
//!          ──▶ lists, each by one bit of a bitmap
//! ```

use bytes::Bytes;

use super::open::{Contents, open_alone};
use super::partition::Label;
use super::patch::{Kind, MAX_PATCHES, Patch};
use super::steps::ROUND;
use crate::error::FormatError;
use crate::format::{Form, Places, Reader, identity};
use crate::hash::{Digest, KeyType};
use crate::leaves::ribbon::beside::Beside;

/// A base and the patches behind it, in order.
#[derive(Clone)]
pub(crate) struct Chain {
    /// The file of the base.
    pub(crate) base: Bytes,
    patches: Vec<Patch>,
    /// Patches whose first layers are queried together, a group for each kernel.
    groups: Vec<Group>,
    /// All others.
    alone: Vec<Patch>,
}

/// Patches whose first layers lie side by side.
#[derive(Clone)]
struct Group {
    first: Beside,
    patches: Vec<Patch>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.patches.fmt(f)
    }
}

impl Chain {
    pub(crate) fn new(base: Bytes) -> Chain {
        Chain { base, patches: vec![], groups: vec![], alone: vec![] }
    }

    pub(crate) fn patches(&self) -> &[Patch] {
        &self.patches
    }

    /// The identities that the next patch names: of the base, and of the last file.
    pub(crate) fn ends(&self) -> [[u8; 16]; 2] {
        let base = identity(&self.base);
        [base, self.patches.last().map_or(base, Patch::identity)]
    }

    /// Appends the next patch.
    pub(crate) fn push(&mut self, patch: Patch, key_type: KeyType) -> Result<(), FormatError> {
        let [base, last] = self.ends();
        let (number, of, before) = (patch.number(), patch.base(), patch.before());
        let next = self.patches.len() as u64 + 1;
        let hex = |identity: [u8; 16]| identity.map(|byte| format!("{byte:02x}")).concat();
        let reason = if of != base {
            format!("made for the file {}; expected a patch of {}", hex(of), hex(base))
        } else if number != next {
            format!("number {number} of its chain; expected number {next}")
        } else if before != last {
            format!("follows the patch {}; expected one that follows {}", hex(before), hex(last))
        } else if patch.key_type() != key_type {
            format!("its keys are {}; expected {key_type}", patch.key_type())
        } else {
            self.add(patch);
            return Ok(());
        };
        Err(FormatError::Patch { reason })
    }

    fn add(&mut self, patch: Patch) {
        self.patches.push(patch.clone());
        let Some(layer) = patch.first_layer() else { return self.alone.push(patch) };
        for group in &mut self.groups {
            if group.first.push(layer) {
                return group.patches.push(patch);
            }
        }
        match Beside::new(layer) {
            Some(first) => self.groups.push(Group { first, patches: vec![patch] }),
            None => self.alone.push(patch),
        }
    }

    /// Whether the answer for this digest is flipped.
    #[inline]
    pub(crate) fn flips(&self, digest: Digest) -> bool {
        // Most chains are one group. What others need must not cost them registers.
        let ([group], []) = (&self.groups[..], &self.alone[..]) else { return self.flips_of_many(digest) };
        let open = group.first.open(digest);
        open != 0 && group.flips(open, digest)
    }

    #[inline(never)]
    fn flips_of_many(&self, digest: Digest) -> bool {
        let mut flips = false;
        for group in &self.groups {
            let open = group.first.open(digest);
            flips ^= open != 0 && group.flips(open, digest);
        }
        self.alone.iter().fold(flips, |flips, patch| flips ^ patch.flips(digest))
    }

    /// Flips the answers of at most [`ROUND`] digests.
    pub(crate) fn flip_many(&self, digests: &[Digest], answers: &mut [bool]) {
        let mut open = [0; ROUND];
        for group in &self.groups {
            let open = &mut open[..digests.len().min(ROUND)];
            group.first.open_many(digests, open);
            for ((answer, &digest), &open) in answers.iter_mut().zip(digests).zip(&*open) {
                if open != 0 {
                    *answer ^= group.flips(open, digest);
                }
            }
        }
        self.alone.iter().for_each(|patch| patch.flip_many(digests, answers));
    }

    /// Whether a patch lists this partition for the first time.
    pub(crate) fn lists(&self, label: &Label) -> bool {
        self.patches.iter().any(|patch| patch.lists(label))
    }

    /// Partitions that patches list for the first time.
    pub(crate) fn partitions(&self) -> u64 {
        self.patches.iter().map(Patch::new_partitions).sum()
    }

    /// The rate of unlisted keys behind a base of this rate.
    pub(crate) fn fpr(&self, base: f64) -> f64 {
        let kept = |kept: f64, patch: &Patch| kept * (1.0 - 2.0 * patch.fpr());
        (1.0 - self.patches.iter().fold(1.0 - 2.0 * base, kept)) / 2.0
    }
}

impl Group {
    /// Whether the patches of these bits flip the answer.
    #[inline(never)]
    fn flips(&self, mut open: u64, digest: Digest) -> bool {
        let mut flips = false;
        while open != 0 {
            flips ^= self.patches.get(open.trailing_zeros() as usize).is_some_and(|patch| patch.flips(digest));
            open &= open - 1;
        }
        flips
    }
}

/// Reads a filter and its patches, which are whole files.
///
/// ```text
///   number of patches            varint, 1 to 128
///   length of the base           varint
///   lengths of the patches       varints
/// ```
///
/// The payloads are the base and the patches.
pub(crate) fn open_chain(
    mut from: Reader<'_>,
    mut places: Places<'_>,
    secret: Option<[u64; 2]>,
) -> Result<Contents, FormatError> {
    if Kind::decode(&mut from)? != Kind::Chain {
        return Err(FormatError::Form { found: Form::Patch.name(), expected: Form::Filter.name() });
    }
    let count = from.within("number of patches", 1..=MAX_PATCHES)?;
    let base = places.take(from.varint()?)?;
    let mut contents = open_alone(&base, secret, places.budget)?;
    from.draw(
        size_of::<Chain>() as u64
            + count * (4 * Beside::MEMORY + (4 * size_of::<Patch>() + 2 * size_of::<Group>()) as u64),
    )?;
    let mut chain = Chain::new(base);
    for _ in 0..count {
        let patch = Patch::within(places.take(from.varint()?)?, places.budget)?;
        chain.push(patch, contents.header.key_type)?;
    }
    from.end()?;
    places.check()?;
    contents.chain = Some(chain);
    Ok(contents)
}
