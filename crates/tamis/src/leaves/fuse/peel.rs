//! sorted distinct digests (and values) -> the cells of a binary fuse: sizing and peeling.
//!
//! **Peeling.** A cell that only one key uses can give that key any value, whatever the key's other cells hold. So: take
//! such a key away, note (key, cell), and go on; if every key goes, fill the cells in the reverse order.
//!
//! ```text
//!   hash and scatter     keys in the order of their first segment            n words
//!   fill                 per cell: xor of its keys' hashes, and their count  one word per slot
//!   peel, left to right  cells with count 1 enter a queue; their key leaves its other cells, which may enter too
//!   assign, right to left
//! ```
//!
//! Every pass walks the table from one end to the other and touches three or four segments at a time, which fit in the
//! second-level cache. The count is in the low six bits of the word, where hashes have zeros. The queue and the list of
//! peeled keys share one array (a key leaves the queue before it enters the list), and this is the array that held
//! the sorted hashes: two words per key in all, and one more when values are given.
//!
//! **Sizing.** A failed attempt costs a whole pass, a slack cell costs every user. Two things make an attempt fail: too many
//! keys for the slots, and two keys with the same slots, about n / 2^(2 log + 1) pairs for three probes, which
//! no slack cures. So there is a smallest useful segment for every n; larger ones waste the two or three extra segments.
//! `THREE` and `FOUR` are the result of a search over both for the smallest tables that 95 in 100 salts solve; the tests
//! `every_n_builds_..` watch them. After every fourth failure the table grows by 1/32.

use super::{Arity, COUNT, Fuse, Params, Shape, fingerprint, rate, shaped};
use crate::error::BuildError;
use crate::hash::attempts::{ATTEMPTS, SetHash, numbers};
use crate::hash::{Digest, Salt, reduce};
use crate::leaves::pack::{Cells, Packed, Short, Whole};
use crate::leaves::{Design, Geometry, Sides, Values, Work};

/// From this many keys on: log2 of the cells in a segment, and slots per thousand keys.
type Size = (u64, u64, u64);

#[rustfmt::skip]
const THREE: [Size; 43] = [
    (1, 0, 3000), (2, 2, 4000), (4, 3, 3500), (8, 3, 3400), (12, 4, 3000),
    (16, 4, 2700), (24, 4, 2500), (32, 5, 2000), (48, 5, 1900), (64, 5, 1900),
    (96, 6, 1500), (128, 6, 1550), (256, 7, 1500), (384, 7, 1450), (768, 7, 1400),
    (1024, 8, 1400), (1536, 8, 1360), (2048, 8, 1340), (3072, 8, 1320), (4096, 9, 1320),
    (6144, 9, 1290), (8192, 9, 1270), (12288, 9, 1245), (16384, 10, 1235), (24576, 10, 1220),
    (32768, 10, 1210), (49152, 10, 1195), (65536, 11, 1185), (98304, 11, 1180), (131072, 12, 1175),
    (196608, 12, 1165), (262144, 12, 1155), (393216, 12, 1145), (524288, 13, 1140), (786432, 13, 1130),
    (1 << 20, 13, 1125), (1_700_000, 13, 1118), (2_500_000, 14, 1116), (2_900_000, 14, 1112), (1 << 24, 15, 1115),
    (1 << 26, 16, 1115), (1 << 28, 17, 1115), (1 << 30, 18, 1115),
];
#[rustfmt::skip]
const FOUR: [Size; 42] = [
    (1, 0, 4000), (2, 1, 5000), (4, 2, 3400), (8, 2, 3400), (12, 3, 2100),
    (16, 3, 2050), (32, 4, 1750), (48, 4, 1700), (64, 4, 1700), (96, 4, 1650),
    (128, 4, 1600), (192, 4, 1580), (256, 5, 1500), (384, 5, 1470), (512, 5, 1450),
    (768, 6, 1400), (1024, 6, 1370), (1536, 6, 1330), (2048, 7, 1290), (3072, 7, 1280),
    (4096, 7, 1255), (6144, 8, 1235), (8192, 8, 1220), (12288, 8, 1200), (16384, 9, 1185),
    (24576, 9, 1170), (32768, 9, 1160), (49152, 10, 1145), (65536, 10, 1135), (98304, 10, 1125),
    (131072, 10, 1115), (196608, 11, 1110), (262144, 11, 1100), (393216, 11, 1090), (524288, 12, 1085),
    (786432, 12, 1075), (1 << 20, 12, 1072), (1 << 22, 13, 1070), (1 << 24, 14, 1070), (1 << 26, 15, 1070),
    (1 << 28, 16, 1070), (1 << 30, 17, 1070),
];

/// log2 of the segment and the number of segments a key can start in, for at least one key.
pub(in crate::leaves) fn size(n: u64, arity: Arity, attempt: u32) -> (u64, u64) {
    let (sizes, probes): (&[Size], u64) = match arity {
        Arity::Three => (&THREE, 3),
        Arity::Four => (&FOUR, 4),
    };
    let (_, log, slots) = sizes[sizes.partition_point(|&(from, ..)| from <= n) - 1];
    let segments = (n * slots).div_ceil(1000).div_ceil(1 << log).max(probes);
    let growth = u64::from(attempt / 4);
    (log, segments - (probes - 1) + growth + segments * growth / 32)
}

/// The payload of a table of `n` keys in bits, exactly, unless more than three attempts fail.
pub(crate) fn payload_bits(n: u64, params: &Params) -> u64 {
    if n == 0 {
        return 0;
    }
    let (log, starts) = size(n, params.arity, 0);
    8 * Fuse::new(params, log, starts, 0, Salt::new(0)).payload_len()
}

/// Builds a table for sorted, distinct `keys` and appends its payload to `out`; on an error `out` is as before.
pub(crate) fn build(
    keys: &[Digest],
    values: Values<'_>,
    params: &Params,
    salt: Salt,
    out: &mut Vec<u8>,
) -> Result<Fuse, BuildError> {
    check(keys, values, params)?;
    if keys.is_empty() {
        return Ok(Fuse::EMPTY);
    }
    let n = keys.len();
    let mut space = Space::default();
    for (attempt, number) in numbers(n, || SetHash::of(keys)) {
        let (log, starts) = size(n as u64, params.arity, attempt);
        let fuse = Fuse::new(params, log, starts, number, salt);
        if solve(&fuse, keys, values, &mut space, out) {
            return Ok(fuse);
        }
        // Equal digests fail with every salt; so say so at once.
        if attempt == 0 && keys.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(BuildError::Unsolvable { structure: "binary fuse", keys: n, attempts: 1 });
        }
    }
    Err(BuildError::Unsolvable { structure: "binary fuse", keys: n, attempts: ATTEMPTS })
}

fn check(keys: &[Digest], values: Values<'_>, params: &Params) -> Result<(), BuildError> {
    let width = params.width;
    if !(256..=8192).contains(&width) {
        return Err(BuildError::Width { structure: "binary fuse", given: f64::from(width) / 256.0, most: 32 });
    }
    let given = match values {
        Values::Fingerprints => return Ok(()),
        Values::Given(given) => given.len(),
        Values::Signed(wanted) => wanted.len(),
    };
    match (width & 255, given == keys.len()) {
        (0, true) => Ok(()),
        (0, false) => Err(BuildError::Values { given, keys: keys.len() }),
        _ => Err(BuildError::PartOfABit),
    }
}

/// The working memory, kept between attempts.
#[derive(Default)]
pub(in crate::leaves) struct Space {
    /// Hashes in the order of their first segment; then the queue and the peeled keys.
    rows: Vec<u64>,
    /// Per slot: the xor of its keys' hashes, plus their number.
    cells: Vec<u64>,
    /// Given values, in the order of `rows`.
    values: Vec<u32>,
    /// Per slot: the xor of its keys' given values.
    sums: Vec<u32>,
}

/// One salt. Appends the payload if it solves.
fn solve(fuse: &Fuse, keys: &[Digest], values: Values<'_>, space: &mut Space, out: &mut Vec<u8>) -> bool {
    let hashes = keys.iter().map(|&key| fuse.hash(key));
    let start = out.len();
    match values {
        Values::Fingerprints => solve_rows::<false>(fuse, hashes.map(|h| (h, 0)), u32::MAX, space, start, out),
        Values::Given(given) => {
            solve_rows::<true>(fuse, hashes.zip(given.iter().copied()), u32::MAX, space, start, out)
        }
        Values::Signed(wanted) => {
            let values = hashes.zip(wanted).map(|(h, &yes)| (h, fingerprint(h) ^ !yes as u32));
            solve_rows::<true>(fuse, values, u32::MAX, space, start, out)
        }
    }
}

/// One salt, for `rows` of (hash, value), in the bits `field` of the cells alone: a payload that starts at `start` in `out`
/// and is zero in these bits keeps its others; one that is not there yet is appended. False, and nothing changed, if
/// the rows cannot be solved. Values are fingerprints unless `GIVEN`.
///
/// Scattering is compiled for every kind of rows, peeling for the number of probes, assigning for every kind of cells.
pub(in crate::leaves) fn solve_rows<const GIVEN: bool>(
    fuse: &Fuse,
    rows: impl Iterator<Item = (u64, u32)> + Clone,
    field: u32,
    space: &mut Space,
    start: usize,
    out: &mut Vec<u8>,
) -> bool {
    scatter::<GIVEN>(fuse, rows, space).is_some_and(|n| solve_scattered::<GIVEN>(fuse, n, field, space, start, out))
}

fn solve_scattered<const GIVEN: bool>(
    fuse: &Fuse,
    n: usize,
    field: u32,
    space: &mut Space,
    start: usize,
    out: &mut Vec<u8>,
) -> bool {
    let solved = match fuse.probes() {
        3 => fill::<3, GIVEN>(fuse, n, space) && peel::<3, GIVEN>(fuse, n, space),
        _ => fill::<4, GIVEN>(fuse, n, space) && peel::<4, GIVEN>(fuse, n, space),
    };
    if solved {
        out.resize(start + fuse.payload_len() as usize, 0);
        let payload = &mut out[start..];
        shaped!(fuse, (), assign, fuse, n, GIVEN, field, space, payload);
    }
    solved
}

/// Sorts the rows by their first segment, by counting, and says how many there are; nothing if they are more than slots.
fn scatter<const GIVEN: bool>(
    fuse: &Fuse,
    rows: impl Iterator<Item = (u64, u32)> + Clone,
    space: &mut Space,
) -> Option<usize> {
    let starts = fuse.range >> fuse.log;
    let slots = ((starts + fuse.probes() - 1) << fuse.log) as usize;
    space.rows.resize(slots + 1, 0);
    space.cells.clear();
    space.cells.resize(slots, 0);
    if GIVEN {
        space.values.resize(slots, 0);
        space.sums.clear();
        space.sums.resize(slots, 0);
    }
    let segment = |h: u64| reduce(h, starts) as usize;
    let mut ends = vec![0usize; starts as usize];
    for (h, _) in rows.clone() {
        ends[segment(h)] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        sum += std::mem::replace(end, sum);
    }
    if sum > space.cells.len() {
        return None;
    }
    for (h, value) in rows {
        let at = &mut ends[segment(h)];
        space.rows[*at] = h;
        if GIVEN {
            space.values[*at] = value;
        }
        *at += 1;
    }
    Some(sum)
}

/// Adds every key to its cells. False if a cell has so many keys that its count could run over.
fn fill<const K: usize, const GIVEN: bool>(fuse: &Fuse, n: usize, space: &mut Space) -> bool {
    let mut seen = 0;
    for (i, &h) in space.rows[..n].iter().enumerate() {
        for slot in fuse.slots::<K>(h) {
            let cell = &mut space.cells[slot as usize];
            // A cell whose count runs over spoils its hash as well; the attempt has failed by then.
            *cell = (*cell ^ h).wrapping_add(1);
            seen |= *cell & COUNT;
            if GIVEN {
                space.sums[slot as usize] ^= space.values[i];
            }
        }
    }
    seen <= COUNT / 2
}

/// Takes away keys that are alone in a cell; `rows` becomes the list of (hash, which of its cells), in this order, and
/// `values` follows. False if some keys cannot be reached.
///
/// The queue starts where the list ends and is empty after every segment. A slot enters it once, when its count falls to 1, and
/// every key in the list has a slot of its own that is not in the queue: together they never need more than `slots` places.
/// The place after the last is written to and not used, so that entering needs no branch.
fn peel<const K: usize, const GIVEN: bool>(fuse: &Fuse, n: usize, space: &mut Space) -> bool {
    let Space { rows, cells, values, sums } = space;
    let mut peeled = 0;
    for segment in (0..cells.len()).step_by(1 << fuse.log) {
        let (mut head, mut tail) = (peeled, peeled);
        for (slot, cell) in (segment as u64..).zip(&cells[segment..][..1 << fuse.log]) {
            rows[tail] = slot;
            tail += (cell & COUNT == 1) as usize;
        }
        while head < tail {
            let slot = rows[head];
            head += 1;
            let cell = cells[slot as usize];
            // The key may have left through another of its cells.
            if cell & COUNT != 1 {
                continue;
            }
            let h = cell & !COUNT;
            let slots = fuse.slots::<K>(h);
            rows[peeled] = h | ((slot >> fuse.log) - (slots[0] >> fuse.log));
            let mut value = 0;
            if GIVEN {
                value = sums[slot as usize];
                values[peeled] = value;
            }
            peeled += 1;
            for slot in slots {
                let cell = &mut cells[slot as usize];
                *cell = (*cell ^ h).wrapping_sub(1);
                rows[tail] = slot;
                tail += (*cell & COUNT == 1) as usize;
                if GIVEN {
                    sums[slot as usize] ^= value;
                }
            }
        }
    }
    peeled == n
}

/// Fills the cells in the reverse order: whatever a key's other cells hold, its own makes the xor right.
fn assign<C: Cells, const K: usize>(
    cells: C,
    fuse: &Fuse,
    n: usize,
    given: bool,
    field: u32,
    space: &Space,
    payload: &mut [u8],
) {
    for i in (0..n).rev() {
        let row = space.rows[i];
        let h = row & !COUNT;
        let slots = fuse.slots::<K>(h);
        let mut value = if given { space.values[i] } else { fingerprint(h) };
        for slot in slots {
            // The key's own cell is still zero in these bits.
            value ^= cells.read(payload, slot).unwrap_or(0);
        }
        cells.fill(payload, slots[(row & COUNT) as usize % K], value & field & cells.mask(slots[0]));
    }
}

impl Design for Params {
    type Leaf = Fuse;

    fn bits(&self, listed: u64, others: u64) -> f64 {
        payload_bits(listed + others, self) as f64
    }

    fn rate_at(&self, _: u64) -> f64 {
        rate(self.width)
    }

    fn lines(&self) -> [f64; 2] {
        [self.arity.probes(); 2]
    }

    fn nested(self) -> Option<Params> {
        Some(Params { width: self.width & !255, ..self })
    }

    fn build(&self, sides: &mut Sides<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<Fuse, BuildError> {
        sides.stored(|keys, values| build(keys, values, self, work.salt, out))
    }
}
