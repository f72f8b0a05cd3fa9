//! equations, free rows -> the states of the search: answered, priced, and replaced by the best of their children.
//!
//! At a free row a state has two children, and of all children the best K live on: those below a limit, and as many as there is
//! room for of those that just reach it. A state with one child becomes it, in its place; one with two leaves the second to
//! a state that has none: first in its own group, where that is a shuffle (`Isa::settle`), then anywhere, and last behind
//! all states, while they are fewer than K. There are never more places than second children, so states lie without gaps.

use super::beam::Batch;
use crate::arch::Isa;
use crate::arch::planes::{Group, LANES, Planes, Shorts, Split};

/// Not a child.
const NONE: u16 = u16::MAX;

/// The states, group by group: the first `live` lanes are in use, the others hold anything.
pub(super) struct States {
    pub(super) planes: Vec<Planes>,
    /// How much worse than the best.
    scores: Vec<Shorts>,
    /// Which state it came from when windows were last written down.
    pub(super) origins: Vec<Shorts>,
    pub(super) live: usize,
    /// What a state refuses at the free row with bit 0.
    refused: Vec<Shorts>,
    answers: Vec<[u8; LANES]>,
    /// What the children would be worth: with bit 0, with bit 1.
    children: Vec<[Shorts; 2]>,
    /// Which of them live on.
    kept: Vec<[u64; 2]>,
    /// States whose second child found no place in its group, and places for them.
    seconds: Vec<u16>,
    places: Vec<u16>,
    /// Children that are worse than the best by less than this live on: it changes little from row to row.
    limit: u16,
    /// Lanes by a hash of their windows, four places for each: 0 for none, else the lane and 1.
    table: Vec<u16>,
    /// Their windows.
    windows: Vec<[u64; LANES]>,
}

impl States {
    pub(super) fn new(groups: usize) -> States {
        States {
            planes: vec![[[0; LANES]; 8]; groups],
            scores: vec![[0; LANES]; groups],
            origins: vec![[0; LANES]; groups],
            live: 1,
            refused: vec![[0; LANES]; groups],
            answers: vec![[0; LANES]; groups],
            children: vec![[[0; LANES]; 2]; groups],
            kept: vec![[0; 2]; groups],
            seconds: Vec::with_capacity(groups * LANES),
            places: Vec::with_capacity(groups * LANES),
            limit: 1,
            table: vec![0; (4 * groups * LANES).next_power_of_two()],
            windows: vec![[0; LANES]; groups],
        }
    }

    /// Groups in use.
    #[inline(always)]
    fn groups(&self) -> usize {
        self.live.div_ceil(LANES)
    }

    /// The first of the best.
    pub(super) fn best(&self) -> usize {
        let scores = &self.scores.as_flattened()[..self.live];
        let least = scores.iter().min();
        least.and_then(|least| scores.iter().position(|score| score == least)).unwrap_or(0)
    }

    /// The bits of a state.
    #[inline(always)]
    fn window(&self, lane: usize) -> u64 {
        window(&self.planes[lane / LANES], lane)
    }

    /// Answers a full batch.
    #[inline(always)]
    pub(super) fn make_room<I: Isa>(&mut self, batch: &mut Batch) {
        if batch.len == 8 {
            self.take::<I>(batch);
        }
    }

    /// Answers a batch, if there is anything in it.
    #[inline(always)]
    pub(super) fn take<I: Isa>(&mut self, batch: &mut Batch) {
        if batch.len == 0 {
            return;
        }
        let groups = self.groups();
        I::answers(&self.planes[..groups], &batch.equations, &mut self.answers[..groups]);
        self.price(batch);
        for pivot in &batch.pivots[..batch.rows.min(8)] {
            let (plane, to) = (pivot.row / 8 % 8, (pivot.row % 8) as u32);
            let (left, right, bit) = (to.saturating_sub(pivot.number), pivot.number.saturating_sub(to), 1 << to);
            for (planes, answers) in self.planes[..groups].iter_mut().zip(&self.answers) {
                for (byte, answer) in planes[plane].iter_mut().zip(answers) {
                    *byte = (*byte & !bit) | ((answer << (left & 7) >> (right & 7)) & bit);
                }
            }
        }
        batch.clear();
    }

    /// Adds to the scores what passes of the negatives at fixed rows, and counts what is refused of those at the free row.
    #[inline(always)]
    fn price(&mut self, batch: &Batch) {
        let Batch { fixed, free, ref weights, .. } = *batch;
        let groups = self.groups();
        let answers = &self.answers[..groups];
        let some = (0..8).any(|i| (fixed | free) >> i & 1 == 1 && weights[i] != 1);
        if some {
            let (at_fixed, at_free) = (sums(weights, fixed), sums(weights, free));
            for ((answers, scores), refused) in answers.iter().zip(&mut self.scores).zip(&mut self.refused) {
                for ((&answer, score), refused) in answers.iter().zip(scores).zip(refused) {
                    *score = score.saturating_add(at_fixed[255] - at_fixed[usize::from(answer)]);
                    *refused += at_free[usize::from(answer)];
                }
            }
            return;
        }
        if fixed != 0 {
            let count = fixed.count_ones() as u8;
            for (answers, scores) in answers.iter().zip(&mut self.scores) {
                for (answer, score) in answers.iter().zip(scores) {
                    let passed = count - (answer & fixed).count_ones() as u8;
                    *score = score.saturating_add(passed.into());
                }
            }
        }
        if free != 0 {
            for (answers, refused) in answers.iter().zip(&mut self.refused) {
                for (answer, refused) in answers.iter().zip(refused) {
                    *refused += (answer & free).count_ones() as u16;
                }
            }
        }
    }

    /// The best has score 0 again.
    pub(super) fn adjust(&mut self) {
        let scores = self.scores.as_flattened_mut();
        let least = scores[..self.live].iter().min().copied().unwrap_or(0);
        scores.iter_mut().for_each(|score| *score = score.saturating_sub(least));
    }

    /// Replaces the states by the best of their children at a free row, where negatives of weight `all` start. Of two that are worth
    /// the same, one with bit `first` comes first.
    #[inline(always)]
    pub(super) fn branch<I: Isa>(&mut self, row: usize, first: bool, all: u16) {
        let groups = self.groups();
        let best = self.weigh(all);
        self.choose::<I>(best, first);
        self.seconds.clear();
        self.places.clear();
        for group in 0..groups {
            let [zero, one] = self.kept[group];
            let lanes = u64::MAX >> ((LANES * (group + 1)).saturating_sub(self.live) % LANES);
            let (planes, scores) = (&mut self.planes[group], &mut self.scores[group]);
            let (origins, children) = (&mut self.origins[group], &self.children[group]);
            let split = Split { zero, one, lanes, row, first, best };
            let (seconds, places) = I::settle(Group { planes, scores, origins, children }, split);
            list(seconds, group, &mut self.seconds);
            list(places, group, &mut self.places);
        }
        let (plane, bit, second) = (row / 8 % 8, 1 << (row % 8), usize::from(!first));
        for i in 0..self.seconds.len() {
            let from = usize::from(self.seconds[i]);
            let to = self.places.get(i).map_or(self.live, |&place| place.into());
            self.live = self.live.max(to + 1);
            self.copy(from, to);
            self.planes[to / LANES][plane][to % LANES] ^= bit;
            let worth = self.children[from / LANES][second][from % LANES];
            self.scores[to / LANES][to % LANES] = worth.wrapping_sub(best);
        }
        self.refused.as_flattened_mut().fill(0);
    }

    /// What the children are worth, and the best of them.
    #[inline(always)]
    fn weigh(&mut self, all: u16) -> u16 {
        let groups = self.groups();
        let states = self.scores[..groups].iter().zip(&self.refused);
        for ((scores, refused), [zero, one]) in states.zip(&mut self.children) {
            for (((&score, &refused), zero), one) in scores.iter().zip(refused).zip(zero).zip(one) {
                *zero = score.saturating_add(all.wrapping_sub(refused)).min(NONE - 1);
                *one = score.saturating_add(refused).min(NONE - 1);
            }
        }
        let used = self.live - (groups - 1) * LANES;
        for children in &mut self.children[groups - 1] {
            children[used..].fill(NONE);
        }
        // As many as one register holds.
        let mut least = [NONE; 32];
        for children in self.children[..groups].as_flattened().as_flattened().as_chunks::<32>().0 {
            for (least, &child) in least.iter_mut().zip(children) {
                *least = child.min(*least);
            }
        }
        least.into_iter().min().unwrap_or(0)
    }

    /// Finds out which children live on.
    #[inline(always)]
    fn choose<I: Isa>(&mut self, best: u16, first: bool) {
        let (groups, most) = (self.groups(), self.planes.len() * LANES);
        let (mut limit, mut ties) = (NONE, 0);
        if 2 * self.live > most {
            (self.limit, ties) = find_limit(&self.children[..groups], best, self.limit, most);
            limit = best + self.limit;
        }
        // Ties are decided for the one bit before the other: then most states that have a child have one only, and stay where they are.
        for bit in [usize::from(first), usize::from(!first)] {
            for (children, kept) in self.children[..groups].iter().zip(&mut self.kept) {
                let mut mask = I::below(&children[bit], limit);
                if ties > 0 {
                    let mut equal = I::below(&children[bit], limit + 1) & !mask;
                    while equal.count_ones() > ties {
                        equal &= !(1 << (63 - equal.leading_zeros()));
                    }
                    ties -= equal.count_ones();
                    mask |= equal;
                }
                kept[bit] = mask;
            }
        }
    }

    /// A state in two places.
    #[inline(always)]
    fn copy(&mut self, from: usize, to: usize) {
        let window = self.window(from).to_le_bytes();
        let ((from, a), (to, b)) = ((from / LANES, from % LANES), (to / LANES, to % LANES));
        for (plane, byte) in self.planes[to].iter_mut().zip(window) {
            plane[b] = byte;
        }
        self.scores[to][b] = self.scores[from][a];
        self.origins[to][b] = self.origins[from][a];
        self.refused[to][b] = self.refused[from][a];
    }

    /// Keeps the best of the states whose windows are equal in the bits of `mask`.
    #[inline(always)]
    pub(super) fn drop_copies(&mut self, mask: u64) {
        for (planes, windows) in self.planes.iter().zip(&mut self.windows) {
            *windows = std::array::from_fn(|lane| window(planes, lane) & mask);
        }
        self.table.fill(0);
        let (last, mut count) = (self.table.len() - 1, 0);
        for lane in 0..self.live {
            let window = self.windows.as_flattened()[lane];
            let mut at = (window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & last;
            loop {
                let Some(other) = usize::from(self.table[at]).checked_sub(1) else {
                    self.table[at] = count as u16 + 1;
                    if count < lane {
                        self.windows.as_flattened_mut()[count] = window;
                        self.copy(lane, count);
                    }
                    count += 1;
                    break;
                };
                if self.windows.as_flattened()[other] == window {
                    if self.scores[lane / LANES][lane % LANES] < self.scores[other / LANES][other % LANES] {
                        self.copy(lane, other);
                    }
                    break;
                }
                at = (at + 1) & last;
            }
        }
        self.live = count;
    }
}

/// The bits of a state of a group.
#[inline(always)]
pub(super) fn window(planes: &Planes, lane: usize) -> u64 {
    let mut bytes = [0; 8];
    for (byte, plane) in bytes.iter_mut().zip(planes) {
        *byte = plane[lane % LANES];
    }
    u64::from_le_bytes(bytes)
}

/// What the chosen equations weigh whose bits are in an answer, for every answer.
#[inline(always)]
fn sums(weights: &[u16; 8], chosen: u8) -> [u16; 256] {
    let mut sums = [0u16; 256];
    for (i, weight) in weights.iter().enumerate() {
        let weight = if chosen >> i & 1 == 1 { *weight } else { 0 };
        let (known, rest) = sums.split_at_mut(1 << i);
        for (sum, known) in rest.iter_mut().zip(known) {
            *sum = *known + weight;
        }
    }
    sums
}

/// Writes down which lanes of a group are meant.
#[inline(always)]
fn list(mut mask: u64, group: usize, lanes: &mut Vec<u16>) {
    while mask != 0 {
        lanes.push((LANES * group) as u16 + mask.trailing_zeros() as u16);
        mask &= mask - 1;
    }
}

/// By how much less than a limit a child must be worse than the best to live on, so that no more than `most` are, and how many of those
/// that just reach it live on too. There are more than `most`.
#[inline(always)]
fn find_limit(children: &[[Shorts; 2]], best: u16, start: u16, most: usize) -> (u16, u32) {
    // It is at least `low` and less than `high`.
    let (mut low, mut high, mut limit) = (0, NONE - best, start);
    loop {
        limit = limit.clamp(low, high - 1);
        let (below, up_to) = count(children, best + limit);
        let here = (up_to - below).max(1);
        // The next guess is where it would be if all values were as frequent.
        if below > most {
            high = limit;
            limit = limit.saturating_sub(1.max((below - most) / here).min(NONE.into()) as u16);
        } else if up_to <= most && limit < high - 1 {
            low = limit + 1;
            limit = limit.saturating_add(1.max((most - below) / here).min(NONE.into()) as u16);
        } else {
            return (limit, (most - below) as u32);
        }
    }
}

/// How many children are less than a limit, and how many are not more.
#[inline(always)]
fn count(children: &[[Shorts; 2]], limit: u16) -> (usize, usize) {
    let (mut below, mut up_to) = ([0u16; 32], [0u16; 32]);
    for children in children.as_flattened().as_flattened().as_chunks::<32>().0 {
        for ((child, below), up_to) in children.iter().zip(&mut below).zip(&mut up_to) {
            *below += u16::from(*child < limit);
            *up_to += u16::from(*child <= limit);
        }
    }
    (below.iter().map(|&n| usize::from(n)).sum(), up_to.iter().map(|&n| usize::from(n)).sum())
}
