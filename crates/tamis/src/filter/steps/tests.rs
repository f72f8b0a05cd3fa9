//! hand-made lists of steps -> answers, in files of one and of several shards, against their definition.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::arch::Level;
use crate::filter::open::{Contents, open as open_filter};
use crate::filter::query::Filter;
use crate::format::{Budget, Form, Header, Writer};
use crate::hash::Salt;
use crate::hash::{Hasher, KeyType, scramble};
use crate::leaves::bloom::{classic, split};
use crate::leaves::{Sides, Values, Work, fuse, ribbon, steered};
use crate::plan::Structure;
use bytes::Bytes;

const RIBBON_4: Structure = Structure::Ribbon(ribbon::Params { width: 1024, tight: false, nested: false });
const RIBBON_1: Structure = Structure::Ribbon(ribbon::Params { width: 256, tight: false, nested: false });
const FUSE_3: Structure = Structure::Fuse(fuse::Params { arity: fuse::Arity::Three, width: 768 });
const FUSE_1: Structure = Structure::Fuse(fuse::Params { arity: fuse::Arity::Four, width: 256 });
const BLOOM_6: Structure = Structure::Bloom(classic::PerKey { bits_per_key: 6 * 256, hashes: 4 });
const BLOCK_8: Structure = Structure::SplitBlock(split::PerKey { bits_per_key: 8 * 256 });

/// A step to be: its leaf holds these keys, with these bits where it decides.
type Planned = (Role, Structure, Vec<(u64, bool)>);

fn open(bytes: Vec<u8>) -> Contents {
    let bytes = Bytes::from(bytes);
    open_filter(&bytes, None, &Budget::of(&bytes)).unwrap()
}

fn digest(key: u64) -> Digest {
    Hasher::seeded(9).integer(key)
}

fn write(shard_bits: u32, steps: &[Planned]) -> Vec<u8> {
    let header = Header { shard_bits, ..Header::new(Form::Filter, Hasher::seeded(9), KeyType::Integer) };
    let kinds = steps.iter().map(|(role, structure, _)| [role.encode(), structure.tag()]).collect();
    let mut file = vec![];
    let mut writer = Writer::new(&mut file, &header, kinds).unwrap();
    for shard in 0..1 << shard_bits {
        let parts = steps.iter().enumerate().map(|(number, (role, structure, keys))| {
            let mut keys: Vec<_> = keys.iter().map(|&(key, bit)| (digest(key), bit)).collect();
            keys.retain(|(digest, _)| digest.shard(shard_bits) == shard);
            keys.sort_unstable();
            let (digests, bits): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
            let values = if *role == Role::Exact { Values::Signed(&bits) } else { Values::Fingerprints };
            let work = Work { salt: Salt::new(number as u64), skip: shard_bits, threads: 2, stop: &|| false };
            structure.build(&mut Sides::alone(&digests, values), &work).unwrap()
        });
        writer.shard(&parts.collect::<Vec<_>>()).unwrap();
    }
    writer.finish().unwrap();
    file
}

/// The definition, on the answers of single leaves.
fn evaluate(steps: &[Step], key: Digest) -> bool {
    match steps {
        [] => true,
        [Step { role: Role::Positive, leaf, .. }, rest @ ..] => leaf.contains(key) && evaluate(rest, key),
        [Step { role: Role::Negative, leaf, .. }, rest @ ..] => !leaf.contains(key) || evaluate(rest, key),
        [Step { role: Role::Exact, leaf, .. }, ..] => leaf.contains(key),
    }
}

fn numbers(n: u64, seed: u64) -> Vec<u64> {
    (0..n).map(|i| scramble(seed << 32 | i)).collect()
}

/// Writes the list, opens it, and asks for everything: alone, in batches of every length, by definition. Then measures.
fn check(shard_bits: u32, steps: &[Planned], asked: &[u64]) -> Filter {
    let bytes = write(shard_bits, steps);
    let contents = open(bytes.clone());
    let filter = Filter::open(bytes).unwrap();
    filter.verify().unwrap();
    assert_eq!(filter.layers().count(), steps.len());
    let expected: Vec<bool> = asked.iter().map(|&key| evaluate(&contents.steps, digest(key))).collect();
    let alone: Vec<bool> = asked.iter().map(|key| filter.contains(key).unwrap()).collect();
    assert!(alone == expected, "{steps:.0?}");
    for len in [0, 1, 31, 32, 33, 255, 256, 257, 1000, asked.len()] {
        let len = len.min(asked.len());
        let mut answers = vec![false; len];
        filter.contains_into(&asked[..len], &mut answers).unwrap();
        assert!(answers == expected[..len], "a batch of {len}");
    }
    // The rates of leaves with a handful of keys hold on average only.
    if steps.iter().all(|(.., keys)| keys.is_empty() || keys.len() >= 400 << shard_bits) {
        let strangers = numbers(40_000, 77);
        let passed = strangers.iter().filter(|&key| filter.contains(key).unwrap()).count() as f64;
        let expected = filter.fpr() * 4e4;
        let sigma = (expected * (1.0 - filter.fpr())).sqrt();
        // Bloom leaves differ from their mean by more than the chance of the unlisted keys.
        assert!((passed - expected).abs() <= 5.0 * sigma + 0.02 * expected, "{passed} pass, expected {expected:.0}");
    }
    filter
}

/// Which of `keys` the steps so far leave undecided, or answer with yes.
fn pass(shard_bits: u32, steps: &[Planned], keys: &[u64]) -> Vec<u64> {
    let filter = Filter::open(write(shard_bits, steps)).unwrap();
    keys.iter().copied().filter(|key| filter.contains(key).unwrap()).collect()
}

fn bits(keys: &[u64], bit: bool) -> Vec<(u64, bool)> {
    keys.iter().map(|&key| (key, bit)).collect()
}

/// Sizes that leave shards empty, give one shard, or give a bumped ribbon.
const SIZES: [(u32, u64); 7] = [(0, 0), (0, 1), (0, 500), (1, 3), (1, 900), (3, 20), (2, 60_000)];

#[test]
fn an_empty_list_lets_everything_through() {
    let filter = check(0, &[], &numbers(700, 1));
    assert_eq!(filter.fpr(), 1.0);
    assert_eq!(filter.contains(5u64), Ok(true));
    // Nothing is left to shard, and shards that the directory does not pay for are refused.
    assert!(Filter::open(write(2, &[])).is_err());
}

#[test]
fn one_filter_of_every_structure() {
    for (shard_bits, n) in SIZES {
        let keys = numbers(n, 1);
        let asked = [&keys[..], &numbers(1000, 2)].concat();
        for structure in [RIBBON_4, RIBBON_1, FUSE_3, FUSE_1, BLOOM_6, BLOCK_8] {
            let filter = check(shard_bits, &[(Role::Positive, structure, bits(&keys, true))], &asked);
            assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)), "{structure:?}, {n} keys");
        }
    }
}

/// `P N P`: negatives that pass the first filter are listed, keys that look like them are listed again.
#[test]
fn cascades() {
    for (shard_bits, n) in SIZES {
        let (keys, negatives) = (numbers(n, 1), numbers(2 * n, 2));
        let asked = [&keys[..], &negatives, &numbers(1000, 3)].concat();
        for (p, q, r) in [(RIBBON_4, FUSE_3, RIBBON_1), (BLOOM_6, BLOCK_8, FUSE_3), (FUSE_1, RIBBON_4, BLOOM_6)] {
            let mut steps = vec![(Role::Positive, p, bits(&keys, true))];
            let wrong = pass(shard_bits, &steps, &negatives);
            steps.push((Role::Negative, q, bits(&wrong, false)));
            // The keys that the second leaf takes for negatives.
            let leaf = &open(write(shard_bits, &steps)).steps[1].leaf;
            let again: Vec<u64> = keys.iter().copied().filter(|&key| leaf.contains(digest(key))).collect();
            steps.push((Role::Positive, r, bits(&again, true)));
            let filter = check(shard_bits, &steps, &asked);
            assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)), "{p:?} {q:?} {r:?}, {n} keys");
        }
    }
}

/// `P E`: whoever passes the filter has an exact bit. No listed key is answered wrongly.
#[test]
fn a_filter_and_an_exact_bit() {
    for (shard_bits, n) in SIZES {
        let (keys, negatives) = (numbers(n, 1), numbers(3 * n, 2));
        let asked = [&keys[..], &negatives, &numbers(1000, 3)].concat();
        for (p, e) in [(RIBBON_4, RIBBON_1), (FUSE_3, FUSE_1), (BLOOM_6, RIBBON_1), (BLOCK_8, FUSE_1)] {
            let mut steps = vec![(Role::Positive, p, bits(&keys, true))];
            let wrong = pass(shard_bits, &steps, &negatives);
            steps.push((Role::Exact, e, [bits(&keys, true), bits(&wrong, false)].concat()));
            let filter = check(shard_bits, &steps, &asked);
            assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)), "{p:?} {e:?}, {n} keys");
            assert!(negatives.iter().all(|key| filter.contains(key) == Ok(false)), "{p:?} {e:?}, {n} keys");
        }
    }
}

/// `N E`: a filter on the negatives admits what it does not know.
#[test]
fn a_list_of_negatives_and_an_exact_bit() {
    for (shard_bits, n) in SIZES {
        let (keys, negatives) = (numbers(3 * n, 1), numbers(n, 2));
        let asked = [&keys[..], &negatives, &numbers(1000, 3)].concat();
        for (q, e) in [(RIBBON_4, FUSE_1), (FUSE_3, RIBBON_1), (BLOCK_8, RIBBON_1)] {
            let alike = pass(shard_bits, &[(Role::Positive, q, bits(&negatives, true))], &keys);
            let decided = [bits(&alike, true), bits(&negatives, false)].concat();
            let filter =
                check(shard_bits, &[(Role::Negative, q, bits(&negatives, false)), (Role::Exact, e, decided)], &asked);
            assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)), "{q:?} {e:?}, {n} negatives");
            assert!(negatives.iter().all(|key| filter.contains(key) == Ok(false)), "{q:?} {e:?}, {n} negatives");
        }
    }
}

/// Which of `keys` the steps of a file leave undecided.
fn undecided(steps: &[Step], keys: &[u64]) -> Vec<u64> {
    let open = |step: &Step, key| step.role.ends(step.leaf.contains(digest(key))).is_none();
    keys.iter().copied().filter(|&key| steps.iter().all(|step| open(step, key))).collect()
}

/// A file of these columns, behind a plain filter or not, and an exact bit.
fn columns(shard_bits: u32, plain: bool, roles: &[Role], keys: &[u64], negatives: &[u64]) -> Vec<Planned> {
    let column = Structure::Steered(steered::Params { slack: 100, beam: steered::FAST, share: 256 });
    let mut steps: Vec<Planned> = vec![];
    let roles = plain.then_some((Role::Positive, RIBBON_4)).into_iter().chain(roles.iter().map(|&role| (role, column)));
    for (role, structure) in roles.chain([(Role::Exact, RIBBON_1)]) {
        let before = if steps.is_empty() { vec![] } else { open(write(shard_bits, &steps)).steps };
        let [keys, negatives] = [keys, negatives].map(|all| undecided(&before, all));
        steps.push((
            role,
            structure,
            match role {
                Role::Positive => bits(&keys, true),
                Role::Negative => bits(&negatives, true),
                Role::Exact => [bits(&keys, true), bits(&negatives, false)].concat(),
            },
        ));
    }
    steps
}

/// `P .. P E`, with `N` among the `P`: by one call where that is possible, and always the answers of the definition. So too on bytes that no
/// builder wrote, at every level.
#[test]
fn steered_columns_and_an_exact_bit() {
    use Role::{Negative as N, Positive as P};
    let lists: [&[Role]; 7] = [&[P], &[P, P], &[P, N], &[N, P], &[P, P, P], &[P, N, P, N], &[P, P, P, P, P]];
    // One by one, and by one call.
    let mut lists_of = [0, 0];
    for (shard_bits, n) in [(0, 1), (0, 500), (1, 900), (3, 20), (2, 30_000)] {
        let (keys, negatives) = (numbers(n, 1), numbers(3 * n, 2));
        let asked = [&keys[..], &negatives, &numbers(1000, 3)].concat();
        for (roles, plain) in lists.iter().flat_map(|&roles| [(roles, false), (roles, true)]) {
            let planned = columns(shard_bits, plain, roles, &keys, &negatives);
            let filter = check(shard_bits, &planned, &asked);
            assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)), "{roles:?}, {n} keys");
            assert!(negatives.iter().all(|key| filter.contains(key) == Ok(false)), "{roles:?}, {n} keys");
            let mut bytes = write(shard_bits, &planned);
            for hostile in [false, true] {
                if hostile {
                    let end = bytes.len() - crate::format::tail(&bytes).unwrap().len();
                    bytes[16..end].iter_mut().zip(0..).for_each(|(byte, i)| *byte = scramble(i) as u8);
                }
                let file = Bytes::from(bytes.clone());
                let steps = open(bytes.clone()).steps;
                let expected: Vec<bool> = asked.iter().map(|&key| evaluate(&steps, digest(key))).collect();
                let digests: Vec<Digest> = asked.iter().map(|&key| digest(key)).collect();
                for level in Level::available() {
                    let steps = level.force(|| Steps::new(open(bytes.clone()).steps, &file));
                    // Shards without keys, a second attempt at a leaf and more columns than there are lanes go step by step.
                    assert!(roles.len() < 5 || steps.branchless.is_none(), "{level:?} {roles:?} {n}");
                    lists_of[steps.branchless.is_some() as usize] += 1;
                    assert!(
                        digests.iter().map(|&key| steps.contains(key)).eq(expected.iter().copied()),
                        "{level:?} {roles:?} {n}"
                    );
                    let mut out = vec![false; asked.len()];
                    for (keys, out) in digests.chunks(ROUND).zip(out.chunks_mut(ROUND)) {
                        contains_many(&steps, &file, keys, out);
                    }
                    assert!(out == expected, "{level:?} {roles:?} {n}, in batches");
                }
            }
        }
    }
    assert!(lists_of[1] > 100 && 4 * lists_of[1] > lists_of[0], "{lists_of:?}");
}

/// What follows a deciding step is never asked.
#[test]
fn nothing_is_asked_after_a_decision() {
    let (keys, others) = (numbers(300, 1), numbers(300, 2));
    let decided = [bits(&keys, true), bits(&others, false)].concat();
    let steps = [(Role::Exact, RIBBON_1, decided), (Role::Positive, FUSE_3, vec![])];
    let filter = check(1, &steps, &[&keys[..], &others].concat());
    assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)));
    assert!(others.iter().all(|key| filter.contains(key) == Ok(false)));
}

#[test]
fn roles_round_trip() {
    for role in [Role::Positive, Role::Negative, Role::Exact] {
        assert_eq!(Role::decode(role.encode()), Ok(role));
    }
    assert!((3..=255).all(|byte| Role::decode(byte).is_err()));
}
