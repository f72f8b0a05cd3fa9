//! key -> Digest: a key is hashed once, to 128 bits, and never seen again.
//!
//! Everything behind this file works on [`Digest`]s. A layer that needs random bits of its own calls
//! [`Digest::salted`] with its [`Salt`]; two layers with different salts err independently, which is what every
//! composite filter relies on (layers that share their bits err together: a trap of public code).
//!
//! Three ways in:
//!
//! * bytes are hashed with XXH3-128 and a seed: fast, the same on every platform, not secret; so are several fields, each with its length;
//! * an integer takes one 64 x 64 -> 128 bit multiplication. The low half of the product by an odd constant is a bijection of
//!   the integer, so distinct integers have distinct digests; [`Digest::salted`] is the second round that makes the
//!   bits random (the shape of wyhash: two multiplications and a fold);
//! * with a secret, both go through SipHash-2-4-128, where an adversary may choose keys or queries.
//!
//! Shards are ranges of digests. Where keys were chosen whose digests all lie in one, they are *mixed*: a bijection that follows from
//! all keys, and that the file names, spreads them again.
//!
//! Which one, its seed and the key's key type are in the file: a filter of strings rejects an integer.

use std::hash::Hasher as _;
use std::sync::Arc;

use crate::debug::brief_debug;
use siphasher::sip128::{Hasher128, SipHasher24};
use xxhash_rust::xxh3::xxh3_128_with_seed;

#[cfg(feature = "build")]
pub(crate) mod attempts;
mod key;
mod secret;

pub use key::{Fields, Integer, Key};
use secret::Secret;

/// The largest number of a leaf's own salt below that of its step: see `attempts.rs`.
pub(crate) const MAX_NUMBER: u64 = u32::MAX as u64;

/// 128 bits that stand for a key. Ordered by the high half first: shards are ranges of digests.
///
/// A [`Hasher`] makes digests of keys. A program that hashes keys itself makes them [`from_hash`](Digest::from_hash) or from a
/// `u128`. Both mix, so any 64 or 128 bits will do that differ from key to key; see [`Hasher::foreign`].
///
/// ```
/// use tamis::Digest;
/// let digest = Digest::from(7u128);
/// assert_eq!(Digest::from_bits(digest.to_bits()), digest);
/// assert_ne!(digest, Digest::from_hash(7));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Digest {
    /// High half; its top bits choose the shard.
    pub(crate) hi: u64,
    /// Low half.
    pub(crate) lo: u64,
}

impl From<u128> for Digest {
    /// Mixes 128 bits of a key's hash: distinct ones have distinct digests.
    fn from(hash: u128) -> Digest {
        Digest::from_bits(hash).spread(Digest::FOREIGN)
    }
}

impl Digest {
    /// Mixes what callers hash.
    const FOREIGN: Salt = Salt::new(0x6469_6765_7374);

    /// Mixes 64 bits of a key's hash: distinct ones have distinct digests.
    ///
    /// Equal hashes of different keys are one key to a filter. Of `n` keys, about `n^2 / 2^65` pairs have equal 64-bit hashes: one
    /// pair of 6 billion keys.
    pub fn from_hash(hash: u64) -> Digest {
        Digest { hi: hash, lo: !hash }.spread(Digest::FOREIGN)
    }

    /// Returns the bits, to be stored.
    pub fn to_bits(self) -> u128 {
        u128::from(self.hi) << 64 | u128::from(self.lo)
    }

    /// Returns the digest that had these bits, unmixed.
    pub fn from_bits(bits: u128) -> Digest {
        Digest { hi: (bits >> 64) as u64, lo: bits as u64 }
    }

    /// A bijection: three rounds of a Feistel network, which moves every bit of either half to all of both.
    fn spread(self, salt: Salt) -> Digest {
        let Digest { mut hi, mut lo } = self;
        for round in 0..3 {
            let Salt { a, b } = salt.child(round);
            (hi, lo) = (lo, hi ^ scramble(fold(lo ^ a, b | 1)));
        }
        Digest { hi: lo, lo: hi }
    }

    /// 64 bits of this key for the owner of `salt`, independent of the bits for any other salt.
    #[doc(hidden)]
    #[inline(always)]
    pub fn salted(self, salt: Salt) -> u64 {
        // Two different operations: equal ones on neighbouring words make compilers use a vector for two scalars.
        fold(self.hi ^ salt.a, self.lo.wrapping_add(salt.b))
    }

    /// Returns the top `bits` bits, at most 32: the shard of this key.
    #[inline(always)]
    pub(crate) fn shard(self, bits: u32) -> usize {
        // Two shifts, because a shift by 64 is not defined and `bits` may be 0.
        ((self.hi >> 1) >> (63 - bits)) as usize
    }
}

/// The product of two words, its halves folded together.
#[inline(always)]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let p = a as u128 * b as u128;
    (p as u64) ^ ((p >> 64) as u64)
}

/// A position below `size` from the high bits of `hash`, without a division (Lemire 2019).
#[inline(always)]
pub(crate) fn reduce(hash: u64, size: u64) -> u64 {
    ((hash as u128 * size as u128) >> 64) as u64
}

/// A bijective scrambler of 64 bits (the finaliser of SplitMix64), for seeds and salts, not for keys.
pub(crate) const fn scramble(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What makes one layer's bits independent of another's. Made from small integers, which is what a file stores.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt {
    a: u64,
    b: u64,
}

brief_debug!(Salt, _it => );

impl Salt {
    /// The salt with this number.
    pub const fn new(number: u64) -> Salt {
        let a = scramble(number);
        Salt { a, b: scramble(a) }
    }

    /// The salt with this number of a keyed hash: as secret as its key.
    pub(crate) fn secret(hasher: &Hasher, number: u64) -> Salt {
        // Another key than the one that hashes keys: a chosen key must not hash to a salt.
        let [a, b] = hasher.words();
        let Digest { hi, lo } = Hasher::secret([scramble(a), scramble(!b)]).u64(number);
        Salt { a: hi, b: lo }
    }

    /// Its words, for those who compute [`Digest::salted`] themselves.
    pub(crate) fn words(self) -> [u64; 2] {
        [self.a, self.b]
    }

    /// The `i`-th salt below this one: a retry with other bits, or a level of a structure with several.
    pub const fn child(self, i: u64) -> Salt {
        let a = scramble(self.a ^ scramble(i));
        Salt { a, b: scramble(a ^ self.b) }
    }

    /// Up to 40 digests with the same bits for this salt: their factors have one product, whatever its bits.
    #[cfg(test)]
    pub(crate) fn alike(self, seed: u64, count: u32) -> Vec<Digest> {
        let [x, y] = [seed, !seed].map(|seed| scramble(seed) >> 40 | 1);
        let digest = |i: u32| Digest { hi: x << i ^ self.a, lo: (y << (39 - i)).wrapping_sub(self.b) };
        (0..count).map(digest).collect()
    }

    /// 64 bits that belong to no key: what a structure puts where any bits will do.
    #[cfg(feature = "build")]
    pub(crate) const fn filler(self, i: u64) -> u64 {
        scramble(self.child(i).b)
    }
}

/// Key type of a filter. Querying with a key of another type is an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KeyType {
    /// Strings of bytes; text is its UTF-8 bytes, an IP address and a `u128` its bytes, the highest first.
    Bytes,
    /// Integers from -2^63 to 2^64 - 1, whatever their type: `5i32` and `5u64` are the same key.
    Integer,
    /// Digests of the caller's own: see [`Hasher::foreign`].
    Digest,
    /// Several fields: see [`Hasher::fields`].
    Fields,
}

impl std::fmt::Display for KeyType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            KeyType::Bytes => "bytes",
            KeyType::Integer => "integer",
            KeyType::Digest => "digest",
            KeyType::Fields => "fields",
        })
    }
}

impl KeyType {
    /// Checks that a key of the key type `query` fits a filter whose keys are of this one.
    ///
    /// # Errors
    ///
    /// [`Mismatch`] if the two differ.
    #[inline(always)]
    pub fn check(self, query: KeyType) -> Result<(), Mismatch> {
        if self == query { Ok(()) } else { Err(Mismatch { filter: self, query }) }
    }

    /// Returns the digest of a key, which must be of this key type.
    #[inline(always)]
    pub(crate) fn digest<K: Key>(self, key: K, hasher: &Hasher) -> Result<Digest, Mismatch> {
        self.check(K::KEY_TYPE)?;
        Ok(key.digest(hasher))
    }
}

/// Error: the key type of a key is not that of the filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The filter's key type.
    pub filter: KeyType,
    /// The key's key type.
    pub query: KeyType,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "wrong key type {}; expected {}", self.query, self.filter)
    }
}

impl std::error::Error for Mismatch {}

/// What a hash is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HashKind {
    /// XXH3 and a multiplication, with a seed.
    Seeded,
    /// SipHash, with a secret.
    Secret,
    /// As seeded, and mixed.
    Mixed,
    /// The caller's.
    Foreign,
}

/// Odd, so that the low half of a product with it is a bijection.
const INTEGER: u64 = 0x9fb2_1c65_1e98_df25;

/// What tells an integer below zero from its complement: the fractions of the square roots of 2 and 3.
const NEGATIVE: (u64, u64) = (0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b);

/// Hash function of a filter: with a public seed, with a secret, or the caller's.
///
/// Clones share one secret. It is wiped when the last of them is dropped.
#[derive(Clone)]
pub struct Hasher {
    kind: HashKind,
    /// Whether files do not hold the secret. Digests do not depend on it.
    beside: bool,
    /// The seed or the caller's number, and the number of the mix.
    words: [u64; 2],
    /// The scrambled seed, ready for the integer path.
    integer: u64,
    /// What replaces the words in a hash with a secret.
    secret: Option<Arc<Secret>>,
}

impl PartialEq for Hasher {
    fn eq(&self, other: &Hasher) -> bool {
        self.kind == other.kind && self.words() == other.words()
    }
}

impl Eq for Hasher {}

impl std::fmt::Debug for Hasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A secret key does not belong in a log.
        match self.kind {
            HashKind::Secret => f.write_str("Hasher::secret(..)"),
            HashKind::Seeded => write!(f, "Hasher::seeded({})", self.words[0]),
            HashKind::Mixed => write!(f, "Hasher::seeded({}), mixed", self.words[0]),
            HashKind::Foreign => write!(f, "Hasher::foreign({})", self.words[0]),
        }
    }
}

impl Hasher {
    fn public(kind: HashKind, number: u64) -> Hasher {
        Hasher { kind, beside: false, words: [number, 0], integer: scramble(number), secret: None }
    }

    /// XXH3-128 with a seed. Reproducible; anyone can compute it.
    pub fn seeded(seed: u64) -> Hasher {
        Hasher::public(HashKind::Seeded, seed)
    }

    /// Returns the hash with a secret, SipHash-2-4-128, for keys or queries that an adversary chooses.
    pub fn secret(key: [u64; 2]) -> Hasher {
        Hasher { secret: Some(Arc::new(Secret::new(key))), ..Hasher::public(HashKind::Secret, 0) }
    }

    /// Returns the hash of a caller who makes digests: keys are [`Digest`]s. `id` is stored, so that files of different hashes can be distinguished.
    ///
    /// A filter of such digests is queried by digests. It returns an error for any other key, because its hash is unknown: what
    /// [`bytes`](Self::bytes) and [`integer`](Self::integer) make of a key here has nothing to do with the caller's.
    ///
    /// ```
    /// use tamis::{Digest, Hasher, KeyType};
    /// let mine = |key: &str| Digest::from_hash(key.bytes().fold(7, |h, byte| h * 31 + u64::from(byte)));
    /// let filter = tamis::build_digests(vec![mine("ann"), mine("bob")], Hasher::foreign(1), KeyType::Digest).finish()?;
    /// assert!(filter.contains(mine("ann"))?);
    /// assert!(filter.contains("ann").is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn foreign(id: u64) -> Hasher {
        Hasher::public(HashKind::Foreign, id)
    }

    /// The same hash, its digests mixed; a secret needs no mixing.
    pub(crate) fn mixed(&self, number: u64) -> Hasher {
        match self.kind {
            HashKind::Secret => self.clone(),
            HashKind::Seeded | HashKind::Mixed => {
                Hasher { kind: HashKind::Mixed, words: [self.words[0], number], ..self.clone() }
            }
            // 0 is none.
            HashKind::Foreign => Hasher { words: [self.words[0], number.max(1)], ..self.clone() },
        }
    }

    /// The same hash, not mixed.
    pub(crate) fn unmixed(&self) -> Hasher {
        match self.kind {
            HashKind::Mixed => Hasher::seeded(self.words[0]),
            HashKind::Foreign => Hasher::foreign(self.words[0]),
            HashKind::Seeded | HashKind::Secret => self.clone(),
        }
    }

    /// Returns the secret hash with a secret that the operating system draws.
    ///
    /// # Errors
    ///
    /// An error of the operating system if it has no random bits.
    #[cfg(feature = "secret")]
    pub fn random_secret() -> std::io::Result<Hasher> {
        Ok(Hasher::secret([getrandom::u64()?, getrandom::u64()?]))
    }

    #[cfg(all(feature = "build", not(feature = "secret")))]
    pub(crate) fn random_secret() -> std::io::Result<Hasher> {
        let message = "no source of random secrets; expected a secret of the caller's, or the feature `secret`";
        Err(std::io::Error::new(std::io::ErrorKind::Unsupported, message))
    }

    /// The keyed hash that is given, or one with a secret that is drawn.
    #[cfg(feature = "build")]
    pub(crate) fn secret_or_random(given: Option<Hasher>) -> std::io::Result<Hasher> {
        given.map_or_else(Hasher::random_secret, Ok)
    }

    /// Returns true if the hash has a secret.
    pub fn is_secret(&self) -> bool {
        self.kind == HashKind::Secret
    }

    /// Returns true if digests are the caller's.
    pub fn is_foreign(&self) -> bool {
        self.kind == HashKind::Foreign
    }

    /// The same hash, for files that hold its secret or do not.
    pub(crate) fn with_secret_beside(self, beside: bool) -> Hasher {
        Hasher { beside: beside && self.is_secret(), ..self }
    }

    /// Whether files need the secret to be opened, as it is not in them.
    pub(crate) fn is_beside(&self) -> bool {
        self.beside
    }

    /// Whether files hold a secret.
    #[cfg(feature = "build")]
    pub(crate) fn is_written(&self) -> bool {
        self.is_secret() && !self.beside
    }

    /// The secret that files need to be opened.
    #[cfg(feature = "build")]
    pub(crate) fn needed_secret(&self) -> Option<[u64; 2]> {
        self.beside.then(|| self.words())
    }

    pub(crate) fn kind(&self) -> HashKind {
        self.kind
    }

    /// Returns what the file stores: the seed and zero (or the number of a mix), or the secret.
    pub fn words(&self) -> [u64; 2] {
        self.secret.as_ref().map_or(self.words, |secret| secret.words())
    }

    /// Returns the digest of a string of bytes.
    #[inline]
    pub fn bytes(&self, key: &[u8]) -> Digest {
        if self.kind != HashKind::Seeded {
            return self.careful_bytes(key);
        }
        self.seeded_bytes(key)
    }

    #[inline]
    fn seeded_bytes(&self, key: &[u8]) -> Digest {
        let h = xxh3_128_with_seed(key, self.words[0]);
        Digest { hi: (h >> 64) as u64, lo: h as u64 }
    }

    #[cold]
    #[inline(never)]
    fn careful_bytes(&self, key: &[u8]) -> Digest {
        match self.kind {
            HashKind::Secret => self.sip(key),
            HashKind::Seeded | HashKind::Mixed | HashKind::Foreign => self.mix(self.seeded_bytes(key)),
        }
    }

    /// Returns the digest of an integer.
    #[inline(always)]
    pub fn integer(&self, key: impl Integer) -> Digest {
        key.digest(self)
    }

    /// The digest of an integer that is not negative.
    #[inline(always)]
    fn u64(&self, key: u64) -> Digest {
        if self.kind != HashKind::Seeded {
            return self.careful_integer(key);
        }
        self.seeded_integer(key)
    }

    /// The digest of an integer below zero: that of its complement, altered, so that it is no digest of another integer but by the
    /// chance of one in 2^64.
    #[inline]
    fn negative(&self, key: i64) -> Digest {
        let digest = |Digest { hi, lo }| Digest { hi: hi ^ NEGATIVE.0, lo: lo ^ NEGATIVE.1 };
        match self.kind {
            // A relation between digests is nothing to give away with a secret.
            HashKind::Secret => {
                let mut bytes = [0xff; 9];
                bytes[..8].copy_from_slice(&key.to_le_bytes());
                self.sip(&bytes)
            }
            HashKind::Seeded | HashKind::Mixed | HashKind::Foreign => {
                self.mix(digest(self.seeded_integer(!key as u64)))
            }
        }
    }

    /// Starts the digest of a key that has several fields.
    ///
    /// Each field is written with its type and length, so that no two different lists of fields are written alike: `("ab", "c")` and
    /// `("a", "bc")` are different keys.
    ///
    /// ```
    /// use tamis::{Digest, Hasher, Key, KeyType};
    ///
    /// struct Flow { host: String, port: u16 }
    ///
    /// impl Key for Flow {
    ///     const KEY_TYPE: KeyType = KeyType::Fields;
    ///     fn digest(&self, hasher: &Hasher) -> Digest {
    ///         hasher.fields().bytes(&self.host).integer(self.port).finish()
    ///     }
    /// }
    ///
    /// let flow = |host: &str, port| Flow { host: host.into(), port };
    /// let filter = tamis::build([flow("a.example", 443), flow("b.example", 80)]).finish()?;
    /// assert!(filter.contains(flow("b.example", 80))?);
    /// assert!(filter.contains("b.example").is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn fields(&self) -> Fields<'_> {
        Fields { hasher: self, bytes: Vec::with_capacity(64) }
    }

    /// Returns the digests of many keys.
    ///
    /// ```
    /// use tamis::Hasher;
    /// let hasher = Hasher::seeded(0);
    /// assert_eq!(hasher.digests(&["ann", "bob"]), [hasher.bytes(b"ann"), hasher.bytes(b"bob")]);
    /// ```
    pub fn digests<K: Key>(&self, keys: &[K]) -> Vec<Digest> {
        let mut digests = vec![Digest::default(); keys.len()];
        self.digests_into(keys, |key| key, &mut digests);
        digests
    }

    /// The digests of as many keys. The kind of hash is decided once, so that the loop over integers uses vector instructions.
    #[inline]
    pub(crate) fn digests_into<Q, K: Key + ?Sized>(&self, keys: &[Q], key: impl Fn(&Q) -> &K, out: &mut [Digest]) {
        let pairs = out.iter_mut().zip(keys);
        match self.kind {
            HashKind::Seeded => pairs.for_each(|(digest, of)| *digest = key(of).seeded_digest(self)),
            HashKind::Secret | HashKind::Mixed | HashKind::Foreign => {
                pairs.for_each(|(digest, of)| *digest = key(of).digest(self))
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn careful_integer(&self, key: u64) -> Digest {
        match self.kind {
            HashKind::Secret => self.sip(&key.to_le_bytes()),
            HashKind::Seeded | HashKind::Mixed | HashKind::Foreign => self.mix(self.seeded_integer(key)),
        }
    }

    /// What a mixed hash makes of a digest. Others leave it as it is.
    pub(crate) fn mix(&self, digest: Digest) -> Digest {
        match (self.kind, self.words[1]) {
            (HashKind::Seeded | HashKind::Secret, _) | (HashKind::Foreign, 0) => digest,
            (HashKind::Mixed | HashKind::Foreign, number) => digest.spread(Salt::new(number)),
        }
    }

    /// Whether [`mix`](Self::mix) changes digests.
    pub(crate) fn mixes(&self) -> bool {
        self.kind == HashKind::Mixed || self.kind == HashKind::Foreign && self.words[1] != 0
    }

    /// The digest of an integer, by the hash without a secret.
    #[inline(always)]
    fn seeded_integer(&self, key: u64) -> Digest {
        let p = (key ^ self.integer) as u128 * INTEGER as u128;
        let lo = p as u64;
        Digest { hi: (p >> 64) as u64 ^ lo, lo }
    }

    fn sip(&self, key: &[u8]) -> Digest {
        let [a, b] = self.words();
        let mut sip = SipHasher24::new_with_keys(a, b);
        sip.write(key);
        let h = sip.finish128();
        Digest { hi: h.h1, lo: h.h2 }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::sync::Arc;

    use super::*;

    /// The file promises the same bytes on every platform; these digests must never change.
    #[test]
    fn digests_are_fixed_for_ever() {
        let hasher = Hasher::seeded(0);
        // The reference vector of XXH3-128 for the empty string.
        assert_eq!(hasher.bytes(b""), Digest { hi: 0x99aa_06d3_0147_98d8, lo: 0x6001_c324_468d_497f });
        let p = 0x2a ^ scramble(0);
        let p = p as u128 * INTEGER as u128;
        assert_eq!(hasher.integer(42).lo, p as u64);
        assert_eq!(hasher.integer(-1).lo, hasher.integer(0).lo ^ NEGATIVE.1);
        // SplitMix64 with state 0 starts with this number.
        assert_eq!(scramble(0), 0xe220_a839_7b1d_cdaf);
        // The reference vector of SipHash-2-4-128: key 00..0f, message 00.
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let sip = Hasher::secret(key).bytes(&[0]);
        assert_eq!(sip.hi.to_le_bytes(), [0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44]);
        assert_eq!(sip.lo.to_le_bytes(), [0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45]);
    }

    /// Nothing is lost, and nothing stays together: not digests that agree in their top bits, nor in one half.
    #[test]
    fn mixed_digests_are_distinct_and_spread() {
        let hasher = Hasher::seeded(0).mixed(77);
        let of = |i: u64| [(scramble(i) >> 20, scramble(!i)), (5, i), (i, 5), (i << 40, 0)];
        for shape in 0..4 {
            let mut cells = vec![0u32; 256];
            let mut all: Vec<Digest> =
                (0..100_000).map(|i| Digest { hi: of(i)[shape].0, lo: of(i)[shape].1 }).collect();
            all.sort_unstable();
            all.dedup();
            let count = all.len();
            all.iter_mut().for_each(|digest| *digest = hasher.mix(*digest));
            all.iter().for_each(|digest| cells[digest.shard(8)] += 1);
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count);
            let mean = count as f64 / 256.0;
            assert!(cells.iter().all(|&load| (f64::from(load) - mean).abs() < 6.0 * mean.sqrt()), "shape {shape}");
        }
        assert_eq!(hasher.integer(7), hasher.mix(Hasher::seeded(0).integer(7)));
        assert_eq!(hasher.bytes(b"a"), hasher.mix(Hasher::seeded(0).bytes(b"a")));
        assert_eq!(hasher.unmixed(), Hasher::seeded(0));
        assert_eq!(Hasher::secret([1, 2]).mixed(3), Hasher::secret([1, 2]));
    }

    /// An integer is one key whatever its type is, and 2^64 - 1 is not -1.
    #[test]
    fn integers_are_one_key_type() {
        for hasher in [Hasher::seeded(3), Hasher::seeded(3).mixed(9), Hasher::secret([1, 2])] {
            let same = [5u8.digest(&hasher), 5i16.digest(&hasher), 5usize.digest(&hasher), hasher.integer(5)];
            assert_eq!(same, [Hasher::u64(&hasher, 5); 4]);
            assert_eq!((-7i8).digest(&hasher), (-7i64).digest(&hasher));
            assert_eq!(i64::MIN.digest(&hasher), hasher.integer(i64::MIN));
            let mut all: Vec<Digest> = (0..1000).flat_map(|i| [hasher.integer(i), hasher.integer(-1 - i)]).collect();
            all.extend([u64::MAX, u64::MAX - 1, 1 << 63].map(|key| hasher.integer(key)));
            all.extend([i64::MIN, i64::MIN + 1].map(|key| hasher.integer(key)));
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count, "{hasher:?}");
        }
        assert_eq!([u8::KEY_TYPE, i64::KEY_TYPE], [KeyType::Integer; 2]);
        assert!(
            [Box::new(7).digest(&Hasher::seeded(0)), Rc::new(7).digest(&Hasher::seeded(0))]
                .iter()
                .all(|&digest| digest == Arc::new(7u8).digest(&Hasher::seeded(0)))
        );
        let text: Arc<str> = "abc".into();
        assert_eq!(text.digest(&Hasher::seeded(0)), bytes::Bytes::from("abc").digest(&Hasher::seeded(0)));
    }

    /// Lists of fields that could be mistaken for each other: cut elsewhere, empty, of other types, nested.
    #[test]
    fn fields_are_written_unlike() {
        let hasher = Hasher::seeded(0);
        let fields = || hasher.fields();
        let mut all = vec![
            fields().finish(),
            fields().bytes("").finish(),
            fields().bytes("").bytes("").finish(),
            fields().bytes("ab").bytes("c").finish(),
            fields().bytes("a").bytes("bc").finish(),
            fields().bytes("abc").finish(),
            fields().integer(1).finish(),
            fields().integer(-1).finish(),
            fields().integer(u64::MAX).finish(),
            fields().bytes(1u64.to_le_bytes()).finish(),
            fields().integer(1).bytes("a").finish(),
            fields().bytes("a").integer(1).finish(),
        ];
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!(fields().integer(5u8).finish(), fields().integer(5i64).finish());
        let written = [&[0, 1, 0, 0, 0, 0, 0, 0, 0, b'a'][..], &[2, 1, 0, 0, 0, 0, 0, 0, 0]].concat();
        assert_eq!(fields().bytes("a").integer(-2).finish(), hasher.bytes(&written));
    }

    #[test]
    fn shards_are_the_top_bits() {
        let d = Digest { hi: 0xabcd_0000_0000_0000, lo: 0 };
        assert_eq!([0, 1, 4, 8, 16].map(|b| d.shard(b)), [0, 1, 0xa, 0xab, 0xabcd]);
    }

    /// Integers come in patterns: counters, multiples, single bits. Salted bits must look random for all of them.
    #[test]
    fn integers_in_patterns_spread_evenly() {
        let hasher = Hasher::seeded(7);
        type Pattern = fn(u64) -> u64;
        let patterns: [(&str, Pattern); 7] = [
            ("counter", |i| i),
            ("multiples of 2^20", |i| i << 20),
            ("multiples of 2^44", |i| i << 44),
            ("multiples of 1000003", |i| i * 1_000_003),
            ("descending", |i| u64::MAX - i),
            ("two halves", |i| (i >> 8) << 40 | (i & 255)),
            ("either sign", |i| if i.is_multiple_of(2) { i } else { (-(i as i64)) as u64 }),
        ];
        const N: u64 = 1 << 18;
        const BINS: usize = 1024;
        for (name, pattern) in patterns {
            for number in 0..4 {
                let salt = Salt::new(number);
                let mut low = [0u32; BINS];
                let mut high = [0u32; BINS];
                for i in 0..N {
                    let key = pattern(i);
                    let digest = if name == "either sign" { hasher.integer(key as i64) } else { hasher.integer(key) };
                    let h = digest.salted(salt);
                    low[h as usize % BINS] += 1;
                    high[(h >> 54) as usize] += 1;
                }
                let mean = N as f64 / BINS as f64;
                for bins in [low, high] {
                    let chi: f64 = bins.iter().map(|&c| (c as f64 - mean).powi(2) / mean).sum();
                    // chi-square with 1023 degrees of freedom: mean 1023, sigma 45; six sigma on either side.
                    assert!((750.0..1300.0).contains(&chi), "{name}, salt {number}: chi-square {chi}");
                }
            }
        }
    }
}
