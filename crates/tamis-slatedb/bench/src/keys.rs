//! numbers -> keys of 36 bytes and values of 64, as in Figure 12 of the paper.

use bytes::Bytes;

/// A bijection of 64 bits that looks random (the finaliser of SplitMix64).
pub fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The key with this number: 36 bytes, in random order, so that all runs overlap.
pub fn key(number: u64) -> Bytes {
    Bytes::from(format!("{:016x}{number:020}", mix(number)))
}

/// A value of 64 bytes of the key with this number, in its given version.
pub fn value(number: u64, version: u64) -> Bytes {
    Bytes::from(format!("{number:032}{version:032}"))
}

/// A sequence of numbers that look random.
pub struct Random(pub u64);

impl Random {
    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        ((mix(self.0) as u128 * end as u128) >> 64) as u64
    }
}
