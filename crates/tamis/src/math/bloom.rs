//! keys and bits -> false positive rate, and back: the formulas of the two Bloom filters.
//!
//! **Split-block** (Putze, Sanders, Singler 2007, "Cache-, Hash- and Space-Efficient Bloom Filters", section 3, for blocks in
//! general; the variant with one bit in each of eight 32-bit lanes is that of the Apache Parquet format). The paper takes the load of a
//! block as Poisson; here it is binomial, which differs when blocks are few.
//!
//! **Classic** (Bloom 1970, "Space/time trade-offs in hash coding with allowable errors"), with what the textbook's formula leaves out: the
//! share of ones varies (Bose et al. 2008, "On the false-positive rate of Bloom filters"). Derivations are in `docs/math.md`.
//!
//! Only additions, multiplications and divisions are used, which IEEE 754 rounds the same way everywhere: a planned size is
//! the same integer on every platform. The functions `exp` and `ln` of a system's library do not promise that.

/// The largest Bloom filter, in bits. Sizes stay far from overflow, also when counted in bytes by a signed integer.
pub const MAX_BITS: u64 = 1 << 48;
/// The bits of one block of a split-block filter.
pub const BLOCK_BITS: u64 = 256;
/// The largest split-block filter, in blocks.
pub const MAX_BLOCKS: u64 = MAX_BITS / BLOCK_BITS;
/// The most hash functions of a classic filter.
pub const MAX_HASHES: u32 = 32;

/// The false positive rate of a split-block filter of `blocks` blocks that holds `n` keys.
///
/// ```
/// // Ten bits per key cost 1.3 % instead of the 0.8 % of a classic filter: the price of a single cache line.
/// let rate = tamis::internals::math::bloom::split_block_rate(1_000_000, 10_000_000 / 256);
/// assert!((0.0125..0.0130).contains(&rate));
/// ```
pub fn split_block_rate(n: u64, blocks: u64) -> f64 {
    if n == 0 || blocks == 0 {
        return 0.0;
    }
    let mean = n as f64 / blocks as f64;
    if mean >= 4096.0 {
        // Twelve standard deviations below the mean, a lane still lacks a bit with probability 10^-45.
        return 1.0;
    }
    // The most likely load. Weights are relative to it: no factorial is needed.
    let mode = (((n as f64 + 1.0) / blocks as f64) as u64).min(n);
    if blocks == 1 {
        return all_lanes(mode);
    }
    // binomial(j + 1) / binomial(j) = (n - j) / ((j + 1) (blocks - 1))
    let rest = (blocks - 1) as f64;
    let (mut total, mut yes) = (0.0, 0.0);
    let (mut weight, mut last) = (1.0, 0.0);
    // Weight and answer are both log-concave in j, so the terms rise, then fall: they are done once they fall and are small.
    for j in mode..=n {
        let term = weight * all_lanes(j);
        total += weight;
        yes += term;
        if term < last && term <= yes * 1e-18 && weight <= total * 1e-18 {
            break;
        }
        last = term;
        weight *= (n - j) as f64 / ((j + 1) as f64 * rest);
    }
    weight = 1.0;
    for j in (0..mode).rev() {
        weight *= (j + 1) as f64 * rest / (n - j) as f64;
        total += weight;
        yes += weight * all_lanes(j);
        if weight <= total * 1e-18 {
            break;
        }
    }
    yes / total
}

/// The probability that eight random bits, one per lane, are all set in a block with `load` keys.
fn all_lanes(load: u64) -> f64 {
    power(1.0 - power(31.0 / 32.0, load), 8)
}

/// The smallest number of blocks whose rate with `n` keys is at most `rate`; none when there is no such size.
pub fn split_block_blocks(n: u64, rate: f64) -> Option<u64> {
    smallest(n, MAX_BLOCKS, n.div_ceil(32), |blocks| rate > 0.0 && split_block_rate(n, blocks) <= rate)
}

/// The false positive rate of a classic filter of `bits` bits and `hashes` hash functions that holds `n` keys.
///
/// ```
/// let rate = tamis::internals::math::bloom::classic_rate(1_000_000, 10_000_000, 7);
/// assert!((0.0081..0.0083).contains(&rate));
/// ```
pub fn classic_rate(n: u64, bits: u64, hashes: u32) -> f64 {
    if n == 0 || bits == 0 {
        return 0.0;
    }
    let hashes = hashes.clamp(1, MAX_HASHES);
    // Not one bit in e^64 is left; a count that only a damaged file holds must not cost time.
    if n as f64 * hashes as f64 > 64.0 * bits as f64 {
        return 1.0;
    }
    if bits < 4096 {
        return occupancy(n.saturating_mul(hashes as u64), bits as f64, hashes as usize);
    }
    let (m, k) = (bits as f64, hashes as f64);
    // c = -k n ln(1 - 1/m), and exp(-c) is the expected share of zeros.
    let c = k * n as f64 / m * (1.0 + (0.5 + 1.0 / (3.0 * m)) / m);
    let ones = one_minus_exp(c);
    // The variance of the share is zeros (1 - (1 + c) zeros) / m; divided by the square of the mean, for small c, 1 / (2 m).
    let spread = if c < 1e-4 { 0.5 } else { (1.0 - ones) * (ones - c * (1.0 - ones)) / (ones * ones) };
    (power(ones, hashes as u64) * (1.0 + k * (k - 1.0) / 2.0 * spread / m)).min(1.0)
}

/// The probability that `k` more balls all fall into bins that are not empty after `balls` balls fell into `m` bins.
///
/// The matrix of one ball, to the power `balls`, has in row `d`, column 0 the probability that `d` given bins were all hit. Nothing is
/// subtracted, unlike in the inclusion and exclusion of Bose et al., which loses all digits from k = 16 on.
fn occupancy(mut balls: u64, m: f64, k: usize) -> f64 {
    const SIDE: usize = MAX_HASHES as usize + 1;
    type Matrix = [[f64; SIDE]; SIDE];
    fn product(a: &Matrix, b: &Matrix, k: usize, c: &mut Matrix) {
        for row in 0..=k {
            for column in 0..=row {
                c[row][column] = (column..=row).map(|i| a[row][i] * b[i][column]).sum();
            }
        }
    }
    // Planners call it thousands of times, and most of these matrices is never read: they change places, and are not copied.
    let zeros = || Box::new([[0.0; SIDE]; SIDE]);
    let (mut step, mut free) = (zeros(), zeros());
    // The k balls of the query hit `distinct` bins. With m < k no more than m bins can be empty.
    let mut distinct = [0.0; SIDE];
    distinct[0] = 1.0;
    for r in 0..=k {
        let leave = (r as f64 / m).min(1.0);
        step[r][r] = 1.0 - leave;
        if r > 0 {
            step[r][r - 1] = leave;
            for d in (0..=r).rev() {
                let new = if d == 0 { 0.0 } else { distinct[d - 1] * (1.0 - (d - 1) as f64 / m).max(0.0) };
                distinct[d] = distinct[d] * (d as f64 / m).min(1.0) + new;
            }
        }
    }
    let mut result: Option<Box<Matrix>> = None;
    while balls > 0 {
        if balls & 1 == 1 {
            result = Some(match result {
                None => step.clone(),
                Some(so_far) => {
                    product(&so_far, &step, k, &mut free);
                    std::mem::replace(&mut free, so_far)
                }
            });
        }
        balls >>= 1;
        if balls > 0 {
            product(&step, &step, k, &mut free);
            std::mem::swap(&mut step, &mut free);
        }
    }
    let hit = result.unwrap_or(step);
    (0..=k).map(|d| distinct[d] * hit[d][0]).sum::<f64>().min(1.0)
}

/// The number of hash functions with the lowest rate, near `bits / n ln 2`.
pub fn classic_hashes(n: u64, bits: u64) -> u32 {
    let ideal = bits as f64 / n.max(1) as f64 * std::f64::consts::LN_2 + 0.5;
    let mut best = (ideal as u32).clamp(1, MAX_HASHES);
    let mut lowest = classic_rate(n, bits, best);
    // The rate has one valley; rounding and small tables move its bottom by a step or two.
    for down in [true, false] {
        loop {
            let next = if down { best - 1 } else { best + 1 };
            let rate = classic_rate(n, bits, next);
            if next == 0 || next > MAX_HASHES || rate >= lowest {
                break;
            }
            (best, lowest) = (next, rate);
        }
    }
    best
}

/// The smallest number of bits whose rate with `n` keys and the best number of hash functions is at most `rate`.
pub fn classic_bits(n: u64, rate: f64) -> Option<u64> {
    smallest(n, MAX_BITS, n, |bits| rate > 0.0 && classic_rate(n, bits, classic_hashes(n, bits)) <= rate)
}

/// The smallest size in `1..=max` that is large enough, where no size that is not follows one that is; 0 without keys.
pub(super) fn smallest(n: u64, max: u64, guess: u64, enough: impl Fn(u64) -> bool) -> Option<u64> {
    if n == 0 {
        return Some(0);
    }
    let (mut low, mut high) = (0, guess.clamp(1, max));
    while !enough(high) {
        if high == max {
            return None;
        }
        (low, high) = (high, high.saturating_mul(2).min(max));
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        *(if enough(middle) { &mut high } else { &mut low }) = middle;
    }
    Some(high)
}

/// `base` to the power `exponent` by multiplications, the same ones everywhere.
pub(crate) fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

/// 1 - exp(-c) for c >= 0, with all digits also for small c.
pub(crate) fn one_minus_exp(c: f64) -> f64 {
    if c > 64.0 {
        return 1.0;
    }
    // y = 1 - exp(-x) for a small x, by its series; then double x until it is c: 1 - (1 - y)^2 = y (2 - y).
    let (mut x, mut doublings) = (c, 0);
    while x > 1.0 / 64.0 {
        x /= 2.0;
        doublings += 1;
    }
    let y = (1..=8).rev().fold(0.0, |y, i| x / f64::from(i) * (1.0 - y));
    (0..doublings).fold(y, |y, _| y * (2.0 - y))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[track_caller]
    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance * expected.abs(), "{found}, expected {expected}");
    }

    /// (1 - q^j)^8 expanded, and the mean of q^(i j) over the binomial load taken in closed form.
    fn split_block_oracle(n: u64, blocks: u64) -> f64 {
        let q: f64 = 31.0 / 32.0;
        let mut choose = 1.0;
        let mut sum = 0.0;
        for i in 0..=8 {
            let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
            sum += sign * choose * (n as f64 * (-(1.0 - q.powi(i)) / blocks as f64).ln_1p()).exp();
            choose = choose * (8 - i) as f64 / (i + 1) as f64;
        }
        sum
    }

    #[test]
    fn split_block_equals_its_closed_form() {
        for blocks in [1, 2, 3, 7, 100, 39_063, 1 << 20, 1 << 40] {
            for load in [0.5, 1.0, 5.0, 13.3, 25.6, 60.0, 200.0, 1000.0] {
                let n = (blocks as f64 * load) as u64;
                let (found, oracle) = (split_block_rate(n, blocks), split_block_oracle(n, blocks));
                // The oracle cancels: it is good to 10^-14 at blocks = 1, to n times less in its powers.
                assert!((found - oracle).abs() < 1e-11 + 1e-15 * load, "n {n}, {blocks} blocks: {found}, {oracle}");
            }
        }
    }

    /// Putze, Sanders, Singler: a block that gets exactly its mean would err less; few keys in one block is the pure power.
    #[test]
    fn split_block_edges() {
        assert_eq!(split_block_rate(0, 5), 0.0);
        assert_eq!(split_block_rate(5, 0), 0.0);
        assert_eq!(split_block_rate(u64::MAX, 1), 1.0);
        close(split_block_rate(u64::MAX, u64::MAX), split_block_rate(1 << 40, 1 << 40), 1e-9);
        close(split_block_rate(1, 1), 32f64.powi(-8), 1e-12);
        close(split_block_rate(1, 1000), 32f64.powi(-8) / 1000.0, 1e-12);
        assert!(split_block_rate(25_600, 1000) > all_lanes(26));
        assert!(split_block_rate(4095, 1) > 0.999_999 && split_block_rate(4095 << 30, 1 << 30) > 0.999_999);
    }

    /// Parquet's documentation: about 10.5 bits per key for 1 %, and 16.9 for 0.1 %, 26.4 for 0.01 %.
    #[test]
    fn split_block_sizes_are_those_of_parquet() {
        for (rate, bits) in [(0.01, 10.5), (0.001, 16.9), (0.0001, 26.4)] {
            let n = 1_000_000;
            let blocks = split_block_blocks(n, rate).unwrap();
            close(blocks as f64 * 256.0 / n as f64, bits, 0.005);
        }
    }

    #[test]
    fn sizes_are_the_smallest() {
        for n in [1, 2, 3, 10, 100, 1000, 12_345, 1_000_000, 1 << 33] {
            for rate in [0.9, 0.5, 0.1, 0.01, 1e-3, 1e-6] {
                let blocks = split_block_blocks(n, rate).unwrap();
                assert!(split_block_rate(n, blocks) <= rate);
                assert!(blocks == 1 || split_block_rate(n, blocks - 1) > rate);
                let bits = classic_bits(n, rate).unwrap();
                assert!(classic_rate(n, bits, classic_hashes(n, bits)) <= rate);
                assert!(bits == 1 || classic_rate(n, bits - 1, classic_hashes(n, bits - 1)) > rate);
            }
        }
        for bad in [0.0, -1.0, f64::NAN] {
            assert_eq!(split_block_blocks(10, bad), None);
            assert_eq!(classic_bits(10, bad), None);
            assert_eq!(split_block_blocks(0, bad), Some(0));
        }
        assert_eq!(split_block_blocks(u64::MAX, 0.01), None);
        assert_eq!(classic_bits(u64::MAX, 0.01), None);
        assert_eq!((split_block_blocks(u64::MAX, 1.0), classic_bits(u64::MAX, 1.0)), (Some(1), Some(1)));
    }

    /// All ways to throw `balls` balls into `m` bins, then `k` more.
    fn occupancy_oracle(balls: u32, m: u32, k: i32) -> f64 {
        let ways = m.pow(balls);
        let sum: f64 = (0..ways)
            .map(|mut way| {
                let mut hit = 0u64;
                for _ in 0..balls {
                    hit |= 1 << (way % m);
                    way /= m;
                }
                (hit.count_ones() as f64 / m as f64).powi(k)
            })
            .sum();
        sum / ways as f64
    }

    #[test]
    fn classic_is_exact_in_small_tables() {
        for (n, m, k) in [(1, 1, 1), (1, 2, 1), (1, 2, 5), (2, 3, 4), (3, 5, 2), (2, 7, 3), (1, 9, 6), (5, 16, 1)] {
            let oracle = occupancy_oracle((n * k) as u32, m as u32, k as i32);
            close(classic_rate(n, m, k as u32), oracle, 1e-10);
        }
    }

    /// Bose et al. 2008, and the two branches at their border.
    #[test]
    fn classic_branches_agree() {
        for k in [1, 2, 3, 7, 12, 20, 32] {
            for n in [1, 10, 100, 300, 600, 1000, 4000, 40_000] {
                let exact = occupancy(n * k as u64, 4096.0, k as usize);
                // A few keys in a large table have rates that no test can see, and the expansion is not made for them.
                let tolerance = if exact < 1e-15 { 5e-2 } else { 1e-3 };
                close(classic_rate(n, 4096, k), exact, tolerance);
                let textbook = (1.0 - (1.0 - 1.0 / 4096f64).powi((n * k as u64) as i32)).powi(k as i32);
                assert!(exact >= textbook * (1.0 - 1e-12));
            }
        }
        for n in [1u64 << 20, 1 << 30, 1 << 40] {
            close(classic_rate(n, n * 10, 7), (1.0 - (-0.7f64).exp()).powi(7), 1e-5);
        }
        close(classic_rate(u64::MAX, 64, 32), 1.0, 1e-12);
        assert_eq!(classic_rate(u64::MAX, MAX_BITS, 32), 1.0);
        assert_eq!(classic_rate(0, 64, 3), 0.0);
    }

    /// Bloom 1970: with the best number of hashes half of the bits are set, and a rate p takes 1.44 log2(1/p) bits.
    #[test]
    fn classic_has_the_textbook_optimum() {
        let n = 1 << 20;
        for k in 1..=20 {
            let bits = classic_bits(n, 0.5f64.powi(k)).unwrap();
            close(bits as f64 / n as f64, k as f64 * std::f64::consts::LOG2_E, 1e-4);
            assert_eq!(classic_hashes(n, bits), k as u32);
        }
        for (n, bits) in [(0, 100), (1, 1), (1, 8), (5, 40), (7, 333), (100, 10_000), (100, 50)] {
            let best = classic_hashes(n, bits);
            for k in 1..=32 {
                assert!(classic_rate(n, bits, best) <= classic_rate(n, bits, k), "n {n}, {bits} bits: {best}, {k}");
            }
        }
    }

    #[test]
    fn one_minus_exp_has_all_digits() {
        for c in [0.0, 1e-300, 1e-9, 1e-3, 0.015, 0.016, 0.1, 0.7, 1.0, 5.0, 40.0, 64.0, 65.0, 1e300] {
            close(one_minus_exp(c), -(-c).exp_m1(), 1e-14);
        }
    }
}
