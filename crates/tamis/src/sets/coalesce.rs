//! rows of partitions, one per repetition -> the sets that are in all of them.
//!
//! A set is an answer if its partition is marked in every repetition. The repetition with the fewest marks names the candidates;
//! the others are only looked at where a candidate has its place.

use crate::arch::Level;
use crate::hash::Digest;
use crate::sets::groups::Groups;

/// What a query needs besides its answer, kept from one to the next.
#[derive(Debug, Clone)]
pub(crate) struct Scratch {
    pub(crate) level: Level,
    /// A row of marks for each repetition, one behind the other.
    pub(crate) rows: Vec<u64>,
}

/// For the best instruction set of this processor.
impl Default for Scratch {
    fn default() -> Scratch {
        Scratch { level: Level::detect(), rows: vec![] }
    }
}

/// One query of a sketch: what is read for which key, and where its sets go.
pub(crate) struct SketchQuery<'a> {
    pub(crate) payload: &'a [u8],
    pub(crate) groups: &'a Groups,
    pub(crate) key: Digest,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) out: &'a mut Vec<u32>,
}

/// Appends the places of the ones of a word, the lowest of which counts as `base`.
#[inline(always)]
pub(crate) fn push_ones(word: u64, base: u32, out: &mut Vec<u32>) {
    let mut rest = word;
    while rest != 0 {
        out.push(base + rest.trailing_zeros());
        rest &= rest - 1;
    }
}

/// Words that [`push_block`] takes at most.
pub(crate) const BLOCK: usize = 64;

/// Appends the places of the ones of some words, the lowest of which counts as `base`.
///
/// Where the ones are cannot be predicted, and a branch for each word would cost more than all the rest of a query. So the words that have some are
/// listed first, every word writes its number, and what counts is whether it had one; then two places are written for each of them, and what counts is how
/// many it has.
#[inline(always)]
pub(crate) fn push_block(words: &[u64], base: u32, out: &mut Vec<u32>) {
    if words.iter().fold(0, |any, word| any | word) == 0 {
        return;
    }
    let (mut some, mut count, mut total) = ([0u8; BLOCK], 0, 0);
    for (i, &word) in words.iter().enumerate().take(BLOCK) {
        some[count % BLOCK] = i as u8;
        count += usize::from(word != 0);
        total += word.count_ones() as usize;
    }
    let start = out.len();
    // One more than there are, for a last word with a single one.
    out.resize(start + total + 1, 0);
    let mut free = &mut out[start..];
    for &i in &some[..count.min(BLOCK)] {
        let (base, mut rest) = (base + 64 * u32::from(i), words[usize::from(i)]);
        let ones = rest.count_ones() as usize;
        let Some((now, _)) = free.split_at_mut_checked(ones.max(2)) else { break };
        for place in now {
            *place = base + rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
        }
        free = free.split_at_mut(ones).1;
    }
    out.truncate(start + total);
}

/// The bits of word `at` of a row that has `width` places.
#[inline(always)]
pub(crate) fn inside(at: usize, width: u32) -> u64 {
    match (width as usize).saturating_sub(64 * at) {
        left @ 0..64 => (1 << left) - 1,
        _ => u64::MAX,
    }
}

/// Appends, ascending, the sets whose partition is marked in every row.
#[inline(always)]
pub(crate) fn coalesce(groups: &Groups, rows: &[u64], out: &mut Vec<u32>) {
    let words = groups.width().div_ceil(64) as usize;
    let ones = |row: &[u64]| row.iter().map(|word| word.count_ones()).sum::<u32>();
    let rows = rows.chunks_exact(words.max(1));
    if groups.is_hashed() {
        return every(groups, rows, out);
    }
    let Some((fewest, row)) = (0..).zip(rows.clone()).min_by_key(|(_, row)| ones(row)) else { return };
    let count = rows.len() as u32;
    let after = (fewest + 1) % count.max(1);
    let next = rows.clone().nth(after as usize).unwrap_or(&[]);
    let marked =
        |row: &[u64], place: u32| (row.get(place as usize / 64).copied().unwrap_or(0) >> (place % 64) & 1) as usize;
    // All candidates are written, and those that stay are counted: a branch that cannot be predicted costs more.
    let start = out.len();
    let mut kept = start;
    for (base, &word) in (0..).step_by(64).zip(row) {
        let mut rest = word;
        while rest != 0 {
            let (members, places) = groups.members(fewest, base + rest.trailing_zeros());
            if out.len() < kept + members.len() {
                out.resize(kept + members.len() + 64, 0);
            }
            for (&id, &place) in members.iter().zip(places) {
                out[kept] = id;
                kept += marked(next, place);
            }
            rest &= rest - 1;
        }
    }
    out.truncate(kept);
    for (t, row) in (0..).zip(rows).filter(|&(t, _)| t != fewest && t != after) {
        let mut kept = start;
        for i in start..out.len() {
            let id = out[i];
            out[kept] = id;
            kept += marked(row, groups.offset(t, id));
        }
        out.truncate(kept);
    }
    out[start..].sort_unstable();
}

/// The same where the members of partitions are not known: every set is looked at.
#[cold]
#[inline(never)]
fn every<'a>(groups: &Groups, rows: impl Iterator<Item = &'a [u64]> + Clone, out: &mut Vec<u32>) {
    let marked = |id: u32, (t, row): (u32, &[u64])| {
        let place = groups.offset(t, id);
        row.get(place as usize / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    };
    out.extend((0..groups.sets).filter(|&id| (0..).zip(rows.clone()).all(|row| marked(id, row))));
}
