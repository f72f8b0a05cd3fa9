//! digests -> k bits anywhere: the classic Bloom filter.
//!
//! The k positions come from two independent words a and b of the digest. Plain double hashing takes a + i b, and its
//! positions fall together whenever b is close to a fraction with a small denominator: in a table of a few hundred bits
//! that shows as a rate well above the formula. Here b is multiplied by a constant after every step,
//!
//! ```text
//!   a,  a + b,  a + b + M b,  a + b + M b + M^2 b,  ...
//! ```
//!
//! so two positions still differ by a random amount, and three are no longer in arithmetic progression for any b. Dillinger
//! and Manolios's enhanced double hashing ("Bloom Filters in Probabilistic Verification", 2004) adds i to b for the same
//! reason; that has no effect when a position is taken from the high bits, as here, where it allows any number of bits.

use super::{BATCH, ones};
use crate::arch::{Answer, Isa, Level, QueryFn, prefetch};
use crate::error::FormatError;
use crate::format::{Reader, put_varint};
use crate::hash::{Digest, Salt, reduce};
#[cfg(feature = "build")]
use crate::leaves::change::{Layer, Owned};
use crate::leaves::{Geometry, Part, Query, ShardedLeaf, Way};
use crate::math::bloom::{MAX_BITS, MAX_HASHES};

/// How to read a classic Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Classic {
    bits: u64,
    hashes: u8,
    /// How many keys were inserted: what the rate depends on.
    keys: u64,
    salts: [Salt; 2],
}

/// The positions of one key, one after the other.
#[derive(Clone, Copy)]
struct Probe {
    a: u64,
    b: u64,
}

impl Probe {
    /// The current position in a table of `bits` bits; then moves on to the next.
    #[inline(always)]
    fn next(&mut self, bits: u64) -> Place {
        let bit = reduce(self.a, bits);
        self.a = self.a.wrapping_add(self.b);
        // A good multiplier of a congruential generator modulo 2^64 (Steele, Vigna 2022).
        self.b = self.b.wrapping_mul(0xd134_2543_de82_ef95);
        // On a 32-bit processor a payload that is there has fewer bytes than a usize can count.
        Place { byte: usize::try_from(bit / 8).unwrap_or(usize::MAX), mask: 1 << (bit % 8) }
    }
}

/// A bit of the payload.
#[derive(Clone, Copy, Default)]
struct Place {
    byte: usize,
    mask: u8,
}

impl Place {
    /// Whether the bit is set; bits outside the payload are not.
    #[inline(always)]
    fn is_set(self, payload: &[u8]) -> bool {
        payload.get(self.byte).is_some_and(|byte| byte & self.mask != 0)
    }
}

/// The longest payload whose ones are counted for a rate.
const COUNTED: usize = 1 << 16;

impl Classic {
    fn with(bits: u64, hashes: u8, keys: u64, salt: Salt) -> Classic {
        Classic { bits, hashes, keys, salts: [salt, salt.child(0)] }
    }

    /// The share of bits that are set.
    fn share(&self, payload: &[u8]) -> f64 {
        if self.bits == 0 { 0.0 } else { (ones(payload) as f64 / self.bits as f64).min(1.0) }
    }

    #[inline(always)]
    fn probe(&self, key: Digest) -> Probe {
        Probe { a: key.salted(self.salts[0]), b: key.salted(self.salts[1]) }
    }
}

/// One query.
struct One;

impl Answer<Part<Classic>> for One {
    #[inline(always)]
    fn answer<I: Isa>(part: &Part<Classic>, key: Digest) -> bool {
        part.geometry.contains(&part.payload, key)
    }
}

impl Query for Classic {
    #[inline(always)]
    fn contains(&self, payload: &[u8], key: Digest) -> bool {
        let mut probe = self.probe(key);
        // Half of the bits are set, so an unlisted key is rejected after two positions on average, but which of them rejects no branch can
        // foresee, and a branch for each costs more than a look. Three are looked at at once, then the others.
        let all =
            |probe: &mut Probe, count: u8| (0..count).fold(true, |all, _| probe.next(self.bits).is_set(payload) & all);
        let few = self.hashes.min(3);
        all(&mut probe, few) && all(&mut probe, self.hashes - few)
    }

    fn same_kernel(&self, _: &Classic) -> bool {
        true
    }

    fn query_fn<W: Way>(&self, leaf: &ShardedLeaf<Classic>) -> QueryFn<W::Asked> {
        leaf.by::<W, One, _>(Level::detect())
    }

    fn contains_many(&self, leaf: &ShardedLeaf<Classic>, file: &[u8], keys: &[Digest], out: &mut [bool]) {
        let small = file.len() <= SMALL;
        match leaf.parts() {
            // With a single part the compiler keeps all of it in registers.
            [part] => {
                let (geometry, payload) = (part.geometry, &part.payload[..]);
                ask_many(small, keys, out, |_| (&geometry, payload));
            }
            _ => ask_many(small, keys, out, |key| {
                let part = leaf.part(key);
                (&part.geometry, &part.payload[..])
            }),
        }
    }

    #[cfg(feature = "build")]
    fn layer(part: &Part<Classic>) -> Option<Box<dyn Layer>> {
        Some(Box::new(Owned::from(part)))
    }
}

/// Bytes that stay near the processor, where a plain loop is faster than the rounds: 18 against 14 ns a query at half a
/// megabyte, equal at two and a half, 32 against 65 at twelve (10 bits per key, every second query a key).
const SMALL: usize = 2 << 20;

#[inline(always)]
fn ask_many<'a>(small: bool, keys: &[Digest], out: &mut [bool], at: impl Fn(Digest) -> (&'a Classic, &'a [u8])) {
    if small {
        for (out, &key) in out.iter_mut().zip(keys) {
            let (geometry, payload) = at(key);
            *out = geometry.contains(payload, key);
        }
        return;
    }
    for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
        ask_batch(keys, out, &at);
    }
}

/// All keys of a batch take their first position, those that are left the second, and so on: a cache line is prefetched one
/// round before it is read, and never for a key that is already rejected. No branch depends on a bit of the table.
#[inline(always)]
fn ask_batch<'a>(keys: &[Digest], out: &mut [bool], at: impl Fn(Digest) -> (&'a Classic, &'a [u8])) {
    #[derive(Clone, Copy)]
    struct Open {
        probe: Probe,
        place: Place,
        index: u8,
    }
    const { assert!(BATCH <= 256) };
    let mut open = [Open { probe: Probe { a: 0, b: 0 }, place: Place { byte: 0, mask: 0 }, index: 0 }; BATCH];
    for ((index, open), &key) in (0..).zip(&mut open).zip(keys) {
        let (geometry, payload) = at(key);
        let mut probe = geometry.probe(key);
        let place = probe.next(geometry.bits);
        prefetch(payload, place.byte);
        *open = Open { probe, place, index };
    }
    let mut left = keys.len().min(BATCH);
    let mut round = 1;
    while left > 0 {
        let mut kept = 0;
        for i in 0..left {
            let Open { mut probe, place, index } = open[i];
            let (geometry, payload) = at(keys[usize::from(index)]);
            let set = place.is_set(payload);
            out[usize::from(index)] = set;
            let goes_on = set & (round < geometry.hashes);
            let place = probe.next(geometry.bits);
            prefetch(payload, if goes_on { place.byte } else { 0 });
            open[kept] = Open { probe, place, index };
            kept += usize::from(goes_on);
        }
        left = kept;
        round += 1;
    }
}

/// What the planner chooses.
#[cfg(feature = "build")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Params {
    /// The size of the table, at most 2^48.
    pub(crate) bits: u64,
    /// The number of bits per key, 1 to 32.
    pub(crate) hashes: u8,
}

#[cfg(feature = "build")]
pub(crate) use build::PerKey;

#[cfg(feature = "build")]
mod build {
    use super::*;
    use crate::error::BuildError;
    use crate::leaves::bloom::zeros;
    use crate::leaves::change::{Change, Full};
    use crate::leaves::design::{Design, Sides, Work, roomier};
    use crate::math::bloom::{classic_bits, classic_hashes, classic_rate, power};

    const STRUCTURE: &str = "classic Bloom filter";

    impl Params {
        /// The size that spends `bits` bits on each of `n` keys, with the best number of hash functions.
        pub(crate) fn for_bits_per_key(n: u64, bits: f64) -> Result<Params, BuildError> {
            let total = (n as f64 * bits).ceil();
            if !(bits > 0.0 && total <= MAX_BITS as f64) {
                return Err(BuildError::NotASize { structure: STRUCTURE, keys: n, bits });
            }
            Ok(Params { bits: total as u64, hashes: classic_hashes(n, total as u64) as u8 })
        }

        /// The smallest size whose predicted rate with `n` keys and the best number of hash functions is at most `rate`.
        pub(crate) fn for_rate(n: u64, rate: f64) -> Result<Params, BuildError> {
            let bits = classic_bits(n, rate).ok_or(BuildError::NoSize { structure: STRUCTURE, keys: n, rate })?;
            Ok(Params { bits, hashes: classic_hashes(n, bits) as u8 })
        }
    }

    /// A filter of so many bits per key, whatever the shard.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct PerKey {
        /// Bits per key times 256.
        pub(crate) bits_per_key: u32,
        /// The number of bits that a key sets, 1 to 32.
        pub(crate) hashes: u8,
    }

    impl PerKey {
        fn table(&self, n: u64) -> u64 {
            (n * u64::from(self.bits_per_key)).div_ceil(256)
        }
    }

    impl Design for PerKey {
        type Leaf = Classic;

        fn bits(&self, listed: u64, others: u64) -> f64 {
            (listed + others) as f64 * f64::from(self.bits_per_key) / 256.0
        }

        fn rate_at(&self, listed: u64) -> f64 {
            classic_rate(listed, self.table(listed), self.hashes.into())
        }

        /// Half of the bits are set: an unlisted key is rejected at the second position, on average.
        fn lines(&self) -> [f64; 2] {
            [f64::from(self.hashes), f64::from(self.hashes).min(2.0)]
        }

        fn with_room(self, spare: f64) -> Option<PerKey> {
            Some(PerKey { bits_per_key: roomier(self.bits_per_key, spare), ..self })
        }

        fn build(&self, sides: &mut Sides<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<Classic, BuildError> {
            sides.fingerprints(|keys| {
                let params = Params { bits: self.table(keys.len() as u64), hashes: self.hashes };
                Classic::build(keys, &params, work.salt, out)
            })
        }
    }

    impl Change for Classic {
        fn keys(&self) -> u64 {
            self.keys
        }

        fn insert(&mut self, payload: &mut [u8], key: Digest) -> Result<(), Full> {
            Classic::insert(self, payload, key);
            self.keys = self.keys.saturating_add(1); // a file may claim any number
            Ok(())
        }

        fn fill(&self, payload: &[u8]) -> f64 {
            self.share(payload)
        }

        fn fpr_now(&self, payload: &[u8]) -> f64 {
            power(self.share(payload), self.hashes.into())
        }

        #[inline]
        fn closed_gates(&self, payload: &[u8], key: Digest, mut each: impl FnMut(u64) -> bool) {
            let mut probe = self.probe(key);
            for _ in 0..self.hashes {
                let place = probe.next(self.bits);
                let gate = || 8 * place.byte as u64 + u64::from(place.mask.trailing_zeros());
                if !place.is_set(payload) && each(gate()) {
                    return;
                }
            }
        }
    }

    impl Classic {
        /// How to read a filter that holds `keys` keys; without any its payload is `payload_len` zeros.
        pub(crate) fn new(params: &Params, keys: u64, salt: Salt) -> Result<Classic, BuildError> {
            let Params { bits, hashes } = *params;
            if bits > MAX_BITS || hashes == 0 || u32::from(hashes) > MAX_HASHES {
                let (most_bits, most_hashes) = (MAX_BITS, MAX_HASHES);
                return Err(BuildError::ClassicSize { bits, hashes, most_bits, most_hashes });
            }
            Ok(Classic::with(bits, hashes, keys, salt))
        }

        /// Appends the payload that holds `keys`. Without keys it is empty, whatever the parameters say.
        pub(crate) fn build(
            keys: &[Digest],
            params: &Params,
            salt: Salt,
            out: &mut Vec<u8>,
        ) -> Result<Classic, BuildError> {
            let bits = if keys.is_empty() { 0 } else { params.bits };
            if bits == 0 && !keys.is_empty() {
                return Err(BuildError::Empty { structure: STRUCTURE, what: "bits", keys: keys.len() });
            }
            let filter = Classic::new(&Params { bits, ..*params }, keys.len() as u64, salt)?;
            filter.insert_many(zeros(out, filter.payload_len())?, keys);
            Ok(filter)
        }

        /// Adds a key to a payload of this geometry.
        #[inline]
        pub(crate) fn insert(&self, payload: &mut [u8], key: Digest) {
            let mut probe = self.probe(key);
            for _ in 0..self.hashes {
                set(payload, probe.next(self.bits));
            }
        }

        /// Adds many keys.
        pub(crate) fn insert_many(&self, payload: &mut [u8], keys: &[Digest]) {
            // Cache lines that are on their way at the same time.
            const AHEAD: usize = 128;
            let mut places = [Place::default(); AHEAD];
            let hashes = usize::from(self.hashes);
            for keys in keys.chunks(AHEAD / hashes) {
                let places = &mut places[..keys.len() * hashes];
                for (places, &key) in places.chunks_exact_mut(hashes).zip(keys) {
                    let mut probe = self.probe(key);
                    for place in places {
                        *place = probe.next(self.bits);
                        prefetch(payload, place.byte);
                    }
                }
                for &mut place in places {
                    set(payload, place);
                }
            }
        }
    }

    #[inline(always)]
    fn set(payload: &mut [u8], place: Place) {
        if let Some(byte) = payload.get_mut(place.byte) {
            *byte |= place.mask;
        }
    }
}

/// Directory: bits, hash functions, keys (varints). Payload: the bits, low bit of a byte first, padded with zeros to a byte.
impl Geometry for Classic {
    const NAME: &'static str = "classic Bloom";

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.bits);
        put_varint(out, self.hashes.into());
        put_varint(out, self.keys);
    }

    fn decode(from: &mut Reader<'_>, salt: Salt) -> Result<Self, FormatError> {
        let bits = from.within("number of bits", 0..=MAX_BITS)?;
        let hashes = from.within("number of hash functions", 1..=MAX_HASHES.into())?;
        let keys = from.varint()?;
        Ok(Classic::with(bits, hashes as u8, keys, salt))
    }

    fn payload_len(&self) -> u64 {
        self.bits.div_ceil(8)
    }

    fn fpr(&self) -> f64 {
        crate::math::bloom::classic_rate(self.keys, self.bits, self.hashes.into())
    }

    /// How many bits are set is chance, and of a few keys the better part of it.
    fn counted_rate(&self, payload: &[u8]) -> f64 {
        if payload.is_empty() || payload.len() > COUNTED || payload.len() as u64 != self.payload_len() {
            return self.fpr();
        }
        crate::math::bloom::power(self.share(payload), self.hashes.into())
    }

    fn details(&self) -> String {
        format!("{} hashes, {} bits", self.hashes, self.bits)
    }
}
