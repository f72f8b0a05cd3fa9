//! a table + a key -> the table with one fingerprint more or less, or as it was.
//!
//! A key goes into the emptier of its buckets. If both are full, others must make room: a breadth-first search from the two
//! looks at the other buckets of all fingerprints there, then at those of the fingerprints in these, until one has a free lane. Only then
//! is anything moved, from the free lane backwards: no key is left over, and a search that finds nothing has changed nothing.
//!
//! ```text
//!   [full]──x──▶[full]──y──▶[free]       y moves, then x, then the new one takes the place of x
//! ```
//!
//! The path that is found first is a shortest one, so it never takes the same fingerprint out of the same bucket twice, and every
//! fingerprint it wants to move is still there when its turn comes.

use std::ops::RangeInclusive;

use super::bucket::{Buckets, Word, width, word_bytes};
use super::{BATCH, Cuckoo, Place, with_buckets};
use crate::arch::{Isa, Kernel, Level, dispatch, prefetch};
use crate::error::BuildError;
use crate::hash::attempts::{ATTEMPTS, SetHash, number, numbers};
use crate::hash::{Digest, Salt};
use crate::leaves::bloom::zeros;
use crate::leaves::change::{Change, Full};
use crate::leaves::design::roomier;
use crate::leaves::{Design, Geometry, Query, Sides, Work};
use crate::math::cuckoo::{self, BITS, CHANGING_BITS, MAX_BUCKETS};

/// Buckets that a search looks at. At a load of 95 % it takes seven on average, and once in millions of keys a few hundred.
const SEARCH: usize = 4096;
/// Salts that are tried before the table grows.
const PATIENCE: u32 = 16;

/// A bucket on the way to a free lane.
struct Node {
    bucket: u64,
    /// The node from which it was reached; its own number for the two where the search began.
    from: u32,
    /// The fingerprint that would move here from there.
    moved: u32,
}

impl Cuckoo {
    /// Puts a fingerprint into one of its buckets; false, and nothing is changed, if no way was found.
    #[inline(always)]
    fn put<W: Word, const SEMI: bool>(&self, buckets: &Buckets<W, SEMI>, payload: &mut [u8], place: Place) -> bool {
        let (first, second) = (buckets.read(payload, place.first), buckets.read(payload, place.second));
        let empty = W::from(0);
        // Lanes are filled from the lowest, so the emptier bucket is the smaller number; after removals it may not be.
        let [near, far] = match second < first {
            true => [(place.second, second), (place.first, first)],
            false => [(place.first, first), (place.second, second)],
        };
        for (bucket, lanes) in [near, far] {
            if let Some(at) = buckets.find(lanes, empty) {
                buckets.write(payload, bucket, lanes | (W::from(place.fingerprint) << at));
                return true;
            }
        }
        self.make_room(buckets, payload, place)
    }

    #[cold]
    #[inline(never)]
    fn make_room<W: Word, const SEMI: bool>(
        &self,
        buckets: &Buckets<W, SEMI>,
        payload: &mut [u8],
        place: Place,
    ) -> bool {
        let start = |number, bucket| Node { bucket, from: number, moved: place.fingerprint };
        let mut nodes = Vec::with_capacity(64);
        nodes.extend([start(0, place.first), start(1, place.second)]);
        let mut next = 0;
        while next < nodes.len() && nodes.len() < SEARCH {
            let bucket = nodes[next].bucket;
            let four = buckets.four(buckets.read(payload, bucket));
            let others = four.map(|fingerprint| self.other(bucket, fingerprint));
            others.iter().for_each(|&other| prefetch(payload, buckets.byte(other)));
            for (i, (&fingerprint, &other)) in four.iter().zip(&others).enumerate() {
                // Equal ones lead to the same place.
                if four[..i].contains(&fingerprint) {
                    continue;
                }
                let lanes = buckets.read(payload, other);
                if let Some(at) = buckets.find(lanes, W::from(0)) {
                    buckets.write(payload, other, lanes | (W::from(fingerprint) << at));
                    self.shift(buckets, payload, &nodes, next, fingerprint);
                    return true;
                }
                nodes.push(Node { bucket: other, from: next as u32, moved: fingerprint });
            }
            next += 1;
        }
        false
    }

    /// Follows the nodes back to where the search began: in each, what has moved on makes room for what moves in.
    fn shift<W: Word, const SEMI: bool>(
        &self,
        buckets: &Buckets<W, SEMI>,
        payload: &mut [u8],
        nodes: &[Node],
        mut number: usize,
        mut gone: u32,
    ) {
        while let Some(&Node { bucket, from, moved }) = nodes.get(number) {
            let lanes = buckets.read(payload, bucket);
            if let Some(at) = buckets.find(lanes, buckets.all(gone)) {
                buckets.write(payload, bucket, lanes ^ (W::from(gone ^ moved) << at));
            }
            if from as usize == number {
                return;
            }
            (number, gone) = (from as usize, moved);
        }
    }

    /// Takes out one fingerprint; false if it is in neither bucket.
    fn take<W: Word, const SEMI: bool>(&self, buckets: &Buckets<W, SEMI>, payload: &mut [u8], place: Place) -> bool {
        let all = buckets.all(place.fingerprint);
        for bucket in [place.first, place.second] {
            let lanes = buckets.read(payload, bucket);
            if let Some(at) = buckets.find(lanes, all) {
                buckets.write(payload, bucket, lanes ^ (W::from(place.fingerprint) << at));
                return true;
            }
        }
        false
    }
}

impl Change for Cuckoo {
    const REMOVES: bool = true;

    fn keys(&self) -> u64 {
        self.keys
    }

    fn capacity(&self) -> Option<u64> {
        Some(self.capacity)
    }

    #[inline]
    fn insert(&mut self, payload: &mut [u8], key: Digest) -> Result<(), Full> {
        let place = self.find(key);
        if !with_buckets!(self, buckets => self.put(&buckets, payload, place)) {
            return Err(Full { keys: self.keys, capacity: self.capacity });
        }
        self.keys = self.keys.saturating_add(1); // a file may claim any number
        Ok(())
    }

    #[inline]
    fn remove(&mut self, payload: &mut [u8], key: Digest) -> bool {
        let place = self.find(key);
        let taken = with_buckets!(self, buckets => self.take(&buckets, payload, place));
        self.keys = self.keys.saturating_sub(taken.into());
        taken
    }

    #[inline]
    fn closed_gates(&self, payload: &[u8], key: Digest, mut each: impl FnMut(u64) -> bool) {
        if !self.contains(payload, key) {
            each(self.name(key));
        }
    }

    fn gate(&self, key: Digest) -> Option<u64> {
        Some(self.name(key))
    }

    fn follow(&mut self, keys: &[Digest], salt: Salt) {
        // With a secret there is no number.
        if self.keys == 0 && self.number > 0 {
            self.number = number(SetHash::of(keys), 1);
            self.salt = salt.child(self.number);
        }
    }
}

/// Many insertions; false if one found no place.
struct InsertMany<'a, W, const SEMI: bool> {
    geometry: Cuckoo,
    buckets: Buckets<W, SEMI>,
    payload: &'a mut [u8],
    keys: &'a [Digest],
}

impl<W: Word, const SEMI: bool> Kernel for InsertMany<'_, W, SEMI> {
    type Output = bool;
    #[inline(always)]
    fn run<I: Isa>(self) -> bool {
        let InsertMany { geometry, buckets, payload, keys } = self;
        let mut places = [Place::default(); BATCH];
        for keys in keys.chunks(BATCH) {
            for (place, &key) in places.iter_mut().zip(keys) {
                *place = geometry.find(key);
                buckets.prefetch(payload, *place);
            }
            for &place in &places[..keys.len()] {
                if !geometry.put(&buckets, payload, place) {
                    return false;
                }
            }
        }
        true
    }
}

/// What the planner chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Params {
    /// Bits of a fingerprint, 4 to 32.
    pub(crate) bits: u8,
    /// Whether the low nibbles of a bucket are coded together.
    pub(crate) semi_sorted: bool,
    /// Places per key, times 2^16; a table has no fewer than a load of 95 % leaves.
    pub(crate) places: u32,
}

impl Params {
    /// The smallest table with which `n` keys have at most this rate.
    pub(crate) fn for_rate(n: u64, rate: f64, semi_sorted: bool) -> Result<Params, BuildError> {
        let (bits, buckets) = table(n, BITS, |_| cuckoo::buckets(n), rate, semi_sorted)?;
        let mut params = Params { bits: bits as u8, semi_sorted, places: places(n, buckets) };
        if params.buckets(n) < buckets {
            params.places = params.places.saturating_add(1);
        }
        Ok(params)
    }

    /// The widest fingerprints in at most `room` bits for `n` keys in `shards` shards, and as many buckets as fit; or the least number
    /// of bits that is enough.
    pub(crate) fn for_room(n: u64, shards: u64, room: f64, semi_sorted: bool) -> Result<Params, f64> {
        // Each shard rounds its buckets up, and ends with part of a word.
        let lost = |bits| (shards * (u64::from(width(bits, semi_sorted)) + 8 * word_bytes(bits))) as f64;
        let least = |bits| (cuckoo::buckets(n) * u64::from(width(bits, semi_sorted))) as f64 + lost(bits);
        let Some(bits) = BITS.rev().find(|&bits| least(bits) <= room) else { return Err(least(*BITS.start())) };
        let buckets = ((room - lost(bits)) / f64::from(width(bits, semi_sorted))) as u64;
        // No more than the widest fingerprints can use.
        let buckets = buckets.min(64 * cuckoo::buckets(n));
        Ok(Params { bits: bits as u8, semi_sorted, places: places(n, buckets) })
    }

    /// Buckets for `n` keys.
    fn buckets(&self, n: u64) -> u64 {
        let wanted = (u128::from(n) * u128::from(self.places)).div_ceil(4 << 16);
        (wanted as u64).max(cuckoo::buckets(n))
    }
}

/// Places per key, times 2^16, that make this number of buckets, or a few less for many keys.
fn places(n: u64, buckets: u64) -> u32 {
    u32::try_from((u128::from(buckets) << 18) / u128::from(n.max(1))).unwrap_or(u32::MAX)
}

fn table(
    n: u64,
    choice: RangeInclusive<u32>,
    least: impl Fn(u32) -> u64,
    rate: f64,
    semi_sorted: bool,
) -> Result<(u32, u64), BuildError> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(BuildError::Range { option: "fpr", given: rate, least: 0.0, most: 1.0 });
    }
    let none = BuildError::Rate { kind: "cuckoo", fpr: rate, lowest: 1e-9 };
    cuckoo::table(n, choice, least, rate, semi_sorted).ok_or(none)
}

impl Cuckoo {
    /// How to read an empty table for `capacity` keys that come one by one; its payload is `payload_len` zeros.
    pub(crate) fn empty(
        capacity: u64,
        rate: f64,
        semi_sorted: bool,
        salt: Salt,
        number: u32,
    ) -> Result<Cuckoo, BuildError> {
        let number = u64::from(number);
        let least = |bits| cuckoo::roomy(capacity, bits);
        let (bits, buckets) = table(capacity.max(1), CHANGING_BITS, least, rate, semi_sorted)?;
        // Of an odd number one bucket is its own other one: five keys there, and a small table is full.
        let buckets = buckets.next_multiple_of(2);
        let geometry = Cuckoo {
            buckets,
            bits,
            semi_sorted,
            number,
            keys: 0,
            capacity,
            salt: salt.child(number),
            level: Level::detect(),
        };
        geometry.check()
    }

    fn check(self) -> Result<Cuckoo, BuildError> {
        BuildError::check_size("cuckoo filter", "buckets", self.buckets, 0..=MAX_BUCKETS)?;
        Ok(self)
    }

    /// Appends the payload that holds distinct `keys`. Without keys it is empty, whatever the parameters say.
    pub(crate) fn build(keys: &[Digest], params: &Params, salt: Salt, out: &mut Vec<u8>) -> Result<Cuckoo, BuildError> {
        let n = keys.len() as u64;
        let start = out.len();
        for (attempt, number) in numbers(keys.len(), || SetHash::of(keys)) {
            let planned = if n == 0 { 0 } else { params.buckets(n) };
            // Other salts first; then, if fingerprints are short and luck is bad, more room.
            let more = u64::from(attempt.saturating_sub(PATIENCE - 1)) * planned.div_ceil(32);
            let geometry = Cuckoo {
                buckets: planned + more,
                bits: params.bits.into(),
                semi_sorted: params.semi_sorted,
                number,
                keys: n,
                capacity: n,
                salt: salt.child(number),
                level: Level::detect(),
            };
            let geometry = geometry.check()?;
            out.truncate(start);
            let payload = zeros(out, geometry.payload_len())?;
            let all = with_buckets!(geometry, buckets => {
                dispatch(geometry.level, InsertMany { geometry, buckets, payload, keys })
            });
            if all {
                return Ok(geometry);
            }
        }
        out.truncate(start);
        Err(BuildError::Unsolvable { structure: "cuckoo filter", keys: keys.len(), attempts: ATTEMPTS })
    }

    /// A number that two keys share if and only if they share fingerprint and buckets; below [`names`](Self::names), and spread evenly.
    pub(crate) fn name(&self, key: Digest) -> u64 {
        let Place { first, second, fingerprint } = self.find(key);
        // Of a pair the one from which it is nearer to the other, upwards and round the end: the smaller one would be a low number
        // twice as often as a high one.
        let ahead = |from: u64, to: u64| if to >= from { to - from } else { to + self.buckets - from };
        let (there, back) = (ahead(first, second), ahead(second, first));
        let bucket = if there < back || (there == back && first < second) { first } else { second };
        bucket << self.bits | u64::from(fingerprint)
    }

    /// How many names there are; none if they are more than a word can count.
    pub(crate) fn names(&self) -> Option<u64> {
        self.buckets.checked_mul(1 << self.bits)
    }

    /// How many copies of a key's fingerprint there are.
    pub(crate) fn count(&self, payload: &[u8], key: Digest) -> u64 {
        let Place { first, second, fingerprint } = self.find(key);
        let copies = |bucket| {
            let four = with_buckets!(self, buckets => buckets.four(buckets.read(payload, bucket)));
            four.into_iter().filter(|&found| found == fingerprint).count() as u64
        };
        copies(first) + if first == second { 0 } else { copies(second) }
    }

    /// The same table with as many keys as its payload has fingerprints.
    pub(crate) fn counted(self, payload: &[u8]) -> Cuckoo {
        let four = |bucket| with_buckets!(self, buckets => buckets.four(buckets.read(payload, bucket)));
        let keys = (0..self.buckets).map(|bucket| four(bucket).into_iter().filter(|&found| found != 0).count() as u64);
        Cuckoo { keys: keys.sum(), ..self }
    }
}

impl Design for Params {
    type Leaf = Cuckoo;

    fn bits(&self, listed: u64, others: u64) -> f64 {
        let bits = u32::from(self.bits);
        (self.buckets(listed + others) * u64::from(width(bits, self.semi_sorted)) + 8 * word_bytes(bits)) as f64
    }

    fn rate_at(&self, listed: u64) -> f64 {
        cuckoo::rate(listed, self.buckets(listed), self.bits.into())
    }

    /// One of two buckets, or both.
    fn lines(&self) -> [f64; 2] {
        [1.5, 2.0]
    }

    fn with_room(self, spare: f64) -> Option<Params> {
        Some(Params { places: roomier(self.places, spare), ..self })
    }

    fn build(&self, sides: &mut Sides<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<Cuckoo, BuildError> {
        sides.fingerprints(|keys| Cuckoo::build(keys, self, work.salt, out))
    }
}
