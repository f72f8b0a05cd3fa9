//! pivots of the keys, bands of the negatives -> the bits of one strip that refuse as many negatives as a beam finds.
//!
//! A state is the last 64 bits and a score: the (weight of the) negatives refused so far. States lie in arrays, one per
//! field, and everything done to all of them is a plain loop over `K` lanes: compiled for AVX2 or AVX-512 by `dispatch`, for NEON
//! where that is what the processor has, the compiler makes vectors of it, and bytes are the same everywhere because all is
//! integer arithmetic.
//!
//! What became of a state's earlier bits is not kept row by row. Every 64 rows the windows are written down, for they are
//! exactly the bits of these rows, and with each the number of the state that it came from 64 rows before. From the best state
//! at the end one walks these links back: 16 bytes per state and 64 rows.
//!
//! Where no negative is left to price, all children are worth the same, and which of them live on must not favour a bit: bands that
//! find nothing but zeros match whatever key they belong to. So a hash of the row decides which child comes first, and free rows
//! that nothing steers are random. `surplus` counts the bands that find zeros all the same, where keys fix every row.

use super::SURPLUS;
use crate::arch::{Isa, Kernel, Level, dispatch};

/// States of the search, at effort balanced and smallest.
pub(crate) const BALANCED: u16 = 64;
pub(crate) const SMALLEST: u16 = 512;

/// Free rows between two looks for states with equal windows: their future is the same, so that only the best of them is worth
/// its place. Without this the beam fills with copies of a few states.
const LOOK: u32 = 8;

/// One strip to search.
pub(in crate::leaves) struct Strip<'a> {
    /// For every row the band of the key that fixes it, its first coefficient included; 0 for a free row.
    pub(in crate::leaves) pivots: &'a [u64],
    /// Where the negatives that start at a row are found in `bands`: one entry more than rows.
    pub(in crate::leaves) starts: &'a [u32],
    pub(in crate::leaves) bands: &'a [u64],
    /// As many as bands, or none if all weigh the same.
    pub(in crate::leaves) weights: &'a [u32],
    /// What decides between children that are worth the same.
    pub(in crate::leaves) filler: u64,
}

/// The search with `K` states; `ROOM` is twice that.
struct Beam<'a, const K: usize, const ROOM: usize>(Strip<'a>);

/// The rows of a strip, 64 to a word, found by a search of so many states.
pub(in crate::leaves) fn search(level: Level, beam: u16, strip: Strip<'_>) -> Vec<u64> {
    match beam {
        SMALLEST => dispatch(level, Beam::<{ SMALLEST as usize }, { 2 * SMALLEST as usize }>(strip)),
        _ => dispatch(level, Beam::<{ BALANCED as usize }, { 2 * BALANCED as usize }>(strip)),
    }
}

/// The states, in `ROOM` lanes of which at most `K` are in use.
struct States<const ROOM: usize> {
    windows: Box<[u64; ROOM]>,
    scores: Box<[u32; ROOM]>,
    /// Which state it came from when windows were last written down.
    origins: Box<[u16; ROOM]>,
}

impl<const ROOM: usize> States<ROOM> {
    fn new() -> Self {
        States { windows: Box::new([0; ROOM]), scores: Box::new([0; ROOM]), origins: Box::new([0; ROOM]) }
    }

    /// Writes a state to a lane.
    #[inline(always)]
    fn put(&mut self, lane: usize, window: u64, score: u32, origin: u16) {
        let lane = lane & (ROOM - 1);
        self.windows[lane] = window;
        self.scores[lane] = score;
        self.origins[lane] = origin;
    }
}

impl<const K: usize, const ROOM: usize> Kernel for Beam<'_, K, ROOM> {
    /// The rows, 64 to a word.
    type Output = Vec<u64>;

    #[inline(always)]
    fn run<I: Isa>(self) -> Vec<u64> {
        let Strip { pivots, starts, bands, weights, filler } = self.0;
        let blocks = pivots.len().div_ceil(64);
        let (mut states, mut next) = (States::<ROOM>::new(), States::<ROOM>::new());
        let mut live = 1;
        let mut refused = Box::new([0u32; K]);
        let mut choice = Choice::<K>::new();
        let mut copies = Copies::<ROOM>::new();
        let mut free = 0u32;
        let mut written: Vec<(u64, u16)> = Vec::with_capacity(blocks * K);
        let mut lives = Vec::with_capacity(blocks);
        for (row, &pivot) in pivots.iter().enumerate().rev() {
            let range = match starts.get(row..row + 2) {
                Some(&[start, end]) => start as usize..end as usize,
                _ => 0..0,
            };
            let bands = bands.get(range.clone()).unwrap_or(&[]);
            let weights = weights.get(range).unwrap_or(&[]);
            let (windows, _) = states.windows.split_at_mut(K);
            if pivot != 0 {
                let forced = pivot >> 1;
                for window in windows.iter_mut() {
                    *window = *window << 1 | u64::from((*window & forced).count_ones() & 1);
                }
                if !bands.is_empty() {
                    price::<K>(windows, bands, weights, &mut refused);
                    for (score, refused) in states.scores.iter_mut().zip(refused.iter()) {
                        *score += refused;
                    }
                }
            } else {
                for window in windows.iter_mut() {
                    *window <<= 1;
                }
                price::<K>(windows, bands, weights, &mut refused);
                let all = if weights.is_empty() { bands.len() as u32 } else { weights.iter().sum() };
                free += 1;
                let dead = free.is_multiple_of(LOOK).then(|| copies.find(&states, live));
                choice.of(&states, live, &refused, all, dead);
                let first = crate::hash::scramble(filler ^ row as u64) & 1;
                live = choice.branch(&states, live, first, &mut next);
                std::mem::swap(&mut states, &mut next);
            }
            if row % 64 == 0 {
                written.extend(states.windows.iter().zip(states.origins.iter()).take(live).map(|(w, o)| (*w, *o)));
                lives.push(live);
                for (lane, origin) in states.origins.iter_mut().enumerate() {
                    *origin = lane as u16;
                }
            }
        }
        // The first of the best: scores are equal on every processor, so is their order.
        let scores = &states.scores[..live];
        let best = scores.iter().max().and_then(|most| scores.iter().position(|score| score == most));
        let mut state = best.unwrap_or(0);
        let mut bits = Vec::with_capacity(blocks);
        let mut end = written.len();
        for live in lives.iter().rev() {
            end -= live;
            let (word, origin) = written.get(end + state).copied().unwrap_or((0, 0));
            bits.push(word);
            state = origin.into();
        }
        bits
    }
}

/// The 64 bits from a row on.
#[inline(always)]
pub(in crate::leaves) fn window(words: &[u64], row: usize) -> u64 {
    let word = |i: usize| words.get(i).copied().unwrap_or(0);
    let (low, high) = (word(row / 64), word(row / 64 + 1));
    low >> (row % 64) | high << 1 << (63 - row % 64)
}

/// By how much more than one in 2^columns of the random bands that start in the first `starts` rows match every column: summed
/// over the rows, in 2^-columns.
///
/// One in two matches a column, because its coefficients are random; but where all rows of a band are 0 after its first, that one
/// decides for every band.
pub(in crate::leaves) fn surplus(columns: &[Vec<u64>], starts: usize) -> i64 {
    let mut sum = 0;
    for octet in (0..starts).step_by(8) {
        // A one beyond the octet is in the band of each of its rows.
        if columns.iter().all(|words| window(words, octet) >> 8 != 0) {
            continue;
        }
        for row in octet..starts.min(octet + 8) {
            let twice = columns.iter().map(|words| match window(words, octet) >> (row % 8) {
                0 => 2,
                1 => 0,
                _ => 1,
            });
            sum += twice.product::<i64>() - 1;
        }
    }
    sum
}

/// A surplus per row and column as files hold it, in 2^-24.
pub(in crate::leaves) fn scaled(surplus: i64, columns: u32, starts: u64) -> u32 {
    ((surplus.max(0) as u128 * SURPLUS as u128 / u128::from(starts.max(1))) >> columns) as u32
}

/// How much every state refuses of the negatives that start at a row.
#[inline(always)]
fn price<const K: usize>(windows: &[u64], bands: &[u64], weights: &[u32], refused: &mut [u32; K]) {
    let (windows, _) = windows.as_chunks::<16>();
    let (refused, _) = refused.as_chunks_mut::<16>();
    for (windows, refused) in windows.iter().zip(refused) {
        let mut sums = [0u64; 16];
        if weights.is_empty() {
            for band in bands {
                for (sum, window) in sums.iter_mut().zip(windows) {
                    *sum += u64::from((window & band).count_ones() & 1);
                }
            }
        } else {
            for (band, &weight) in bands.iter().zip(weights) {
                for (sum, window) in sums.iter_mut().zip(windows) {
                    let odd = u64::from((window & band).count_ones() & 1);
                    *sum += odd.wrapping_neg() & u64::from(weight);
                }
            }
        }
        for (refused, sum) in refused.iter_mut().zip(sums) {
            *refused = sum as u32;
        }
    }
}

/// Which of the children live on.
struct Choice<const K: usize> {
    /// By how much each child is worse than the best of all: of bit 0, of bit 1. [`NONE`] for lanes without a state.
    zero: Box<[u16; K]>,
    one: Box<[u16; K]>,
    /// The score of the best child.
    best: u32,
    /// Children worse by less than this live on, all of them: and as many as there is room for that are worse by just as much.
    limit: u16,
    ties: usize,
}

/// Not a child.
const NONE: u16 = u16::MAX;
/// Worse than this is all the same.
const WORST: u32 = u16::MAX as u32 - 1;

impl<const K: usize> Choice<K> {
    fn new() -> Self {
        Choice { zero: Box::new([0; K]), one: Box::new([0; K]), best: 0, limit: 1, ties: 0 }
    }

    /// Weighs the children of `live` states, of which some may be `dead`: a state's score grows by what it refuses with bit
    /// 0, or by the rest of `all` with bit 1.
    #[inline(always)]
    fn of<const ROOM: usize>(
        &mut self,
        states: &States<ROOM>,
        live: usize,
        refused: &[u32; K],
        all: u32,
        dead: Option<&[bool; ROOM]>,
    ) {
        let scores = &states.scores[..K];
        let mut best = 0;
        for (score, &refused) in scores.iter().zip(refused).take(live) {
            best = best.max(score + refused.max(all - refused));
        }
        self.best = best;
        let lanes = self.zero.iter_mut().zip(self.one.iter_mut()).zip(scores.iter().zip(refused));
        for ((zero, one), (&score, &refused)) in lanes {
            // Lanes that are not in use hold anything.
            *zero = best.wrapping_sub(score.wrapping_add(refused)).min(WORST) as u16;
            *one = best.wrapping_sub(score.wrapping_add(all).wrapping_sub(refused)).min(WORST) as u16;
        }
        self.zero[live..].fill(NONE);
        self.one[live..].fill(NONE);
        if let Some(dead) = dead {
            for ((zero, one), &dead) in self.zero.iter_mut().zip(self.one.iter_mut()).zip(dead) {
                if dead {
                    (*zero, *one) = (NONE, NONE);
                }
            }
        }
        self.find_limit();
    }

    /// How many children are worse by less than `limit`.
    #[inline(always)]
    fn below(&self, limit: u16) -> usize {
        let mut sum = 0;
        for (zero, one) in self.zero.chunks(64).zip(self.one.chunks(64)) {
            let mut count = 0u16;
            for (&zero, &one) in zero.iter().zip(one) {
                count += u16::from(zero < limit) + u16::from(one < limit);
            }
            sum += count as usize;
        }
        sum
    }

    /// The largest limit that leaves no more than `K`. It changes little from row to row, so the search starts at the last one.
    #[inline(always)]
    fn find_limit(&mut self) {
        if self.below(NONE) <= K {
            (self.limit, self.ties) = (NONE, 0);
            return;
        }
        let fits = |limit: u16| self.below(limit) <= K;
        // fits(low), and not fits(high).
        let (mut low, mut high) = (0, NONE);
        let start = if self.limit == NONE { 1 } else { self.limit };
        let mut step = 1;
        if fits(start) {
            low = start;
            while high == NONE && low < NONE - 1 {
                let further = low.saturating_add(step).min(NONE - 1);
                if fits(further) {
                    low = further
                } else {
                    high = further
                }
                step = step.saturating_mul(2);
            }
        } else {
            high = start;
            while low == 0 && high > 1 {
                let nearer = high.saturating_sub(step);
                if nearer == 0 || fits(nearer) {
                    low = nearer;
                    break;
                }
                high = nearer;
                step = step.saturating_mul(2);
            }
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { low = middle } else { high = middle }
        }
        (self.limit, self.ties) = (low, K - self.below(low));
    }

    /// Writes the chosen children to `next`, of two siblings that with bit `first` first, and says how many they are. They come in
    /// the opposite order of their parents: so ties are not always decided for the same families.
    #[inline(always)]
    fn branch<const ROOM: usize>(
        &self,
        states: &States<ROOM>,
        live: usize,
        first: u64,
        next: &mut States<ROOM>,
    ) -> usize {
        let Choice { zero, one, best, limit, ties } = self;
        let (elder, younger) = if first == 0 { (zero, one) } else { (one, zero) };
        let (best, limit, mut ties) = (*best, *limit, *ties);
        let (mut lane, base) = (0, best.saturating_sub(1 << 24));
        let parents =
            states.windows[..live].iter().zip(&states.origins[..live]).zip(elder[..live].iter().zip(&younger[..live]));
        for ((&window, &origin), (&elder, &younger)) in parents.rev() {
            for (worse, bit) in [(elder, first), (younger, 1 - first)] {
                let tie = worse == limit && ties > 0;
                ties -= tie as usize;
                // Written in any case: a branch here would be taken by chance.
                next.put(lane, window | bit, (best - base).saturating_sub(worse.into()), origin);
                lane += (worse < limit || tie) as usize;
            }
        }
        lane
    }
}

/// Finds states with equal windows.
struct Copies<const ROOM: usize> {
    /// Lanes by a hash of their window, twice as many places as lanes; 0 for none, else the lane and 1.
    table: Vec<u16>,
    dead: Box<[bool; ROOM]>,
}

impl<const ROOM: usize> Copies<ROOM> {
    fn new() -> Self {
        Copies { table: vec![0; 2 * ROOM], dead: Box::new([false; ROOM]) }
    }

    /// Which states have an equal with a better score, or with the same in an earlier lane.
    #[inline(always)]
    fn find(&mut self, states: &States<ROOM>, live: usize) -> &[bool; ROOM] {
        self.table.fill(0);
        self.dead.fill(false);
        let mask = self.table.len() - 1;
        for lane in 0..live {
            let window = states.windows[lane];
            let mut at = (window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & mask;
            loop {
                match self.table[at] {
                    0 => {
                        self.table[at] = lane as u16 + 1;
                        break;
                    }
                    other => {
                        let other = other as usize - 1;
                        if states.windows[other] == window {
                            let better = states.scores[lane] > states.scores[other];
                            self.dead[if better { other } else { lane }] = true;
                            if better {
                                self.table[at] = lane as u16 + 1;
                            }
                            break;
                        }
                    }
                }
                at = (at + 1) & mask;
            }
        }
        &self.dead
    }
}
