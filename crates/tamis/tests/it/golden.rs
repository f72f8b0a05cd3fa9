//! files of format version 1 -> opened, asked, and built again byte by byte.
//!
//! A file that was written once opens for ever, and equal keys give equal bytes on every platform. When the format changes
//! before its first release, `TAMIS_BLESS=1 cargo test -p tamis golden` writes the files anew; after it, never.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use bytes::Bytes;
use tamis::internals::with_shard_keys;
use tamis::{Base, Bloom, Chained, Digest, Effort, Filter, Hasher, Key, KeyType, Kind, Layout};

use super::repair::Parts;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name).with_extension("tamis")
}

/// Of files that do not have it.
pub(crate) const SECRET: [u64; 2] = [7, 0xfedc_ba98_7654_3210];

fn keys() -> impl Iterator<Item = String> {
    (0..1000).map(|i| format!("key-{i}"))
}

/// Keys that are excluded.
fn others() -> impl Iterator<Item = String> {
    (0..4000).map(|i| format!("other-{i}"))
}

/// A key of two fields.
pub(crate) struct Flow(pub(crate) String, pub(crate) i64);

impl Key for Flow {
    const KEY_TYPE: KeyType = KeyType::Fields;

    fn digest(&self, hasher: &Hasher) -> Digest {
        hasher.fields().bytes(&self.0).integer(self.1).finish()
    }
}

fn flow(i: i64) -> Flow {
    Flow(format!("host-{i}"), i - 500)
}

/// Integers whose digests begin with three zeros: in several shards they crowd, and the hash is mixed.
fn crowded() -> impl Iterator<Item = u64> {
    (0..).filter(|&i: &u64| Hasher::seeded(0).integer(i).to_bits() >> 125 == 0).take(9000)
}

/// Digests of the caller's that crowd.
fn crowded_digests() -> Vec<Digest> {
    (0..9000).map(|i| Digest::from_bits((u128::from(super::mix(i)) << 61) | u128::from(i))).collect()
}

fn blessing() -> bool {
    std::env::var_os("TAMIS_BLESS").is_some()
}

/// Every golden file as it is built now; written anew, before any test looks, when that is asked for.
static ALL: LazyLock<Vec<(String, Filter)>> = LazyLock::new(|| {
    let all = all();
    for (name, filter) in all.iter().filter(|_| blessing()) {
        std::fs::write(path(name), filter.as_bytes()).unwrap();
    }
    all
});

fn all() -> Vec<(String, Filter)> {
    let mut all = vec![];
    for &(name, kind) in Kind::ALL {
        match super::is_plain(kind) {
            true if kind == Kind::Auto => {}
            true => all.push((name.to_string(), tamis::build(keys()).kind(kind).finish().unwrap())),
            false if matches!(kind, Kind::Stacked(_)) => {
                let often = others().map(|key| (key, 9.0));
                let stack =
                    tamis::build(keys()).kind(kind).workload(often).unlisted_share(0.5).fpr(1.0).workload_fpr(0.001);
                all.push((name.to_string(), stack.finish().unwrap()));
            }
            false => all.push((name.to_string(), tamis::build(keys()).exclude(others()).kind(kind).finish().unwrap())),
        }
    }
    // Exact; the sides exchanged; more than one level.
    let exact = tamis::build(keys()).exclude(others()).exact().finish();
    all.push(("exact".into(), exact.unwrap()));
    all.push(("exact-swapped".into(), tamis::build(keys()).exclude(others().take(50)).exact().finish().unwrap()));
    // Columns on the keys, on both sides, on a share of the keys, and behind plain bits.
    let steered = |lambda: u64| (0..lambda * 100).map(|i| format!("other-{i}"));
    all.push(("steered-three".into(), tamis::build(keys()).exclude(steered(150)).exact().finish().unwrap()));
    let both = tamis::build(keys()).exclude(steered(18)).effort(Effort::Smallest).exact().finish();
    all.push(("steered-both-sides".into(), both.unwrap()));
    all.push(("steered-share".into(), tamis::build(keys()).exclude(steered(100)).excluded_fpr(0.3).finish().unwrap()));
    all.push(("steered-many".into(), tamis::build(keys()).exclude(steered(2000)).exact().finish().unwrap()));
    let local = || tamis::build(keys()).exclude(others()).layout(Layout::Local);
    all.push(("local".into(), local().exact().finish().unwrap()));
    all.push(("local-rate".into(), local().fpr(0.001).finish().unwrap()));
    // More than one level; bands of 128 bits; a width of one bit.
    let many = || (0..12_000).map(|i| format!("key-{i}"));
    all.push(("ribbon-bumped".into(), tamis::build(many()).fpr(0.06).finish().unwrap()));
    all.push(("ribbon-smallest".into(), tamis::build(many()).fpr(0.1).effort(Effort::Smallest).finish().unwrap()));
    all.push(("ribbon-bit".into(), tamis::build(many()).fpr(0.5).finish().unwrap()));
    all.push(("ribbon-chained".into(), tamis::build(many()).exclude(others()).finish().unwrap()));
    let cuckoo = tamis::build(keys()).kind(Kind::Cuckoo).fpr(1e-4).effort(Effort::Smallest);
    all.push(("cuckoo-semi-sorted".into(), cuckoo.finish().unwrap()));
    all.push(("u64".into(), tamis::build(0..1000u64).finish().unwrap()));
    all.push(("keyed".into(), tamis::build(keys()).secret([0x0123_4567_89ab_cdef, 42]).finish().unwrap()));
    let beside = tamis::build(keys()).secret(SECRET).secret_beside().metadata("a note");
    all.push(("secret-beside".into(), beside.finish().unwrap()));
    // Several shards, with one layer and with three; a part of more than 64 KB alone, and behind another.
    let large = || (0..70_000).map(|i| format!("key-{i}"));
    all.push(("shards".into(), tamis::build(many()).fpr(0.01).shard_bytes(4096).finish().unwrap()));
    let exact = tamis::build(many()).exclude(others()).exact().shard_bytes(4096);
    all.push(("shards-exact".into(), exact.finish().unwrap()));
    let local = tamis::build(many()).exclude(others()).exact().layout(Layout::Local).shard_bytes(4096);
    all.push(("shards-local".into(), local.finish().unwrap()));
    all.push(("large".into(), tamis::build(large()).fpr(1.0 / 256.0).finish().unwrap()));
    let chained = tamis::build(large()).exclude(others()).kind(Kind::Chained(Base::Fuse)).fpr(1.0 / 256.0);
    all.push(("large-chained".into(), chained.finish().unwrap()));
    all.push(("empty".into(), tamis::build([""; 0]).finish().unwrap()));
    all.push(("partitioned".into(), partitioned()));
    // Keys of every type; digests that crowd.
    all.push(("integers".into(), tamis::build(-500..500i64).finish().unwrap()));
    all.push(("lengths".into(), tamis::build((0..=600).map(|n| "x".repeat(n))).finish().unwrap()));
    all.push(("fields".into(), tamis::build((0..1000).map(flow)).finish().unwrap()));
    let hashed: Vec<Digest> = (0..1000).map(Digest::from_hash).collect();
    let foreign = |digests| tamis::build_digests(digests, Hasher::foreign(7), KeyType::Digest).shard_bytes(4096);
    all.push(("digests".into(), foreign(hashed).finish().unwrap()));
    all.push(("digests-mixed".into(), foreign(crowded_digests()).finish().unwrap()));
    all.push(("mixed".into(), tamis::build(crowded()).shard_bytes(4096).finish().unwrap()));
    // Partitions in several shards, and with digests that crowd.
    let options = || with_shard_keys(tamis::Options::default(), 2000);
    let mut shards = options().exact().partitioned();
    many().for_each(|key| shards.push("one", &key).unwrap());
    many().take(100).for_each(|key| shards.push("two", &key).unwrap());
    others().for_each(|key| shards.exclude("one", key).unwrap());
    others().take(50).for_each(|key| shards.exclude("two", key).unwrap());
    all.push(("partitioned-shards".into(), shards.finish().unwrap()));
    let mut mixed = options().fpr(0.01).partitioned();
    crowded().for_each(|key| mixed.push("one", key).unwrap());
    mixed.push("two", 7).unwrap();
    all.push(("partitioned-mixed".into(), mixed.finish().unwrap()));
    let mut foreign = options().hasher(Hasher::foreign(7)).fpr(0.01).partitioned();
    crowded_digests().iter().for_each(|key| foreign.push("one", key).unwrap());
    all.push(("partitioned-digests".into(), foreign.finish().unwrap()));
    // Sections and flags that readers skip.
    let mut later = Parts::of(tamis::build(keys()).finish().unwrap().as_bytes()).unwrap();
    later.more = vec![(4, b"a later writer".to_vec()), (1000, vec![0xff; 40])];
    later.front[12..].copy_from_slice(&[0, 0, 0, 0x80]);
    all.push(("skipped".into(), Filter::open(later.file()).unwrap()));
    all.push(("changing".into(), changing()));
    all.push(("changing-built".into(), changing_built()));
    all
}

/// The keys under two labels, with few and with many excluded; and labels of one side only.
fn partitioned() -> Filter {
    let mut all = tamis::stream().exact().partitioned();
    for key in keys() {
        all.push("few", &key).unwrap();
        all.push("many", &key).unwrap();
    }
    others().take(500).for_each(|key| all.exclude("few", key).unwrap());
    (0..10).flat_map(|_| others()).enumerate().for_each(|(i, key)| all.exclude("many", format!("{i} {key}")).unwrap());
    all.push("key", "key-0").unwrap();
    all.exclude("other", "other-0").unwrap();
    all.finish().unwrap()
}

/// A filter that changes, which also keeps the digests of both sides.
fn changing() -> Filter {
    let mut filter = Chained::over(Bloom::with_capacity(1000).fpr(0.02).build::<str>().unwrap()).unwrap();
    filter.insert_many(keys()).unwrap();
    others().for_each(|key| assert!(filter.exclude(key).unwrap()));
    let bytes = filter.snapshot().unwrap();
    assert_eq!(Chained::restore(bytes.clone()).unwrap().snapshot().unwrap(), bytes);
    Filter::open(bytes).unwrap()
}

/// The same over a built first layer, whose members stay.
fn changing_built() -> Filter {
    let first = tamis::build(keys()).kind(Kind::Ribbon).fpr(0.02).finish().unwrap();
    let mut filter = Chained::over_built(&first, keys()).unwrap();
    let new: u64 = others().map(|key| u64::from(filter.exclude(key).unwrap())).sum();
    assert_eq!(new, filter.excluded_len());
    let bytes = filter.snapshot().unwrap();
    assert_eq!(Chained::restore(bytes.clone()).unwrap().snapshot().unwrap(), bytes);
    Filter::open(bytes).unwrap()
}

fn ask_partitioned(filter: &Filter) {
    assert!(keys().all(|key| filter.contains_in("few", &key) == Ok(true)));
    assert!(keys().all(|key| filter.contains_in("many", &key) == Ok(true)));
    assert!(others().take(500).all(|key| filter.contains_in("few", key) == Ok(false)));
    let many = (0..10).flat_map(|_| others()).enumerate();
    assert!(many.into_iter().all(|(i, key)| filter.contains_in("many", format!("{i} {key}")) == Ok(false)));
    assert_eq!((filter.contains_in("key", "key-0"), filter.contains_in("other", "other-0")), (Ok(true), Ok(false)));
    assert_eq!((filter.partitions(), filter.len(), filter.excluded_len()), (4, 2001, 40_501));
    assert!(filter.groups().count() > 1 && filter.has_partition("none") == Ok(false));
}

#[test]
fn the_same_keys_give_the_same_files() {
    for (name, filter) in &*ALL {
        let file = std::fs::read(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(file == filter.as_bytes(), "{name}: other bytes than the golden file's");
    }
}

#[test]
fn every_golden_file_opens_and_answers() {
    let expected = ALL.len();
    let mut found = 0;
    for entry in std::fs::read_dir(FOLDER).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let filter = match name {
            "secret-beside" => Filter::open_with_secret(std::fs::read(&path).unwrap(), SECRET).unwrap(),
            _ => crate::mapped::filter(&path).unwrap_or_else(|e| panic!("{name}: {e}")),
        };
        filter.verify().unwrap();
        found += 1;
        let members_in = |label: &str, n: usize| keys().take(n).all(|key| filter.contains_in(label, key) == Ok(true));
        match name {
            "partitioned" => ask_partitioned(&filter),
            "partitioned-shards" => {
                assert!(members_in("one", 1000) && members_in("two", 100));
                assert!(filter.groups().any(|group| group.shards > 1), "{name}");
            }
            "partitioned-mixed" => {
                assert!(crowded().all(|key| filter.contains_in("one", key) == Ok(true)));
                assert_eq!(filter.contains_in("two", 7), Ok(true));
            }
            "partitioned-digests" => {
                assert!(crowded_digests().iter().all(|key| filter.contains_in("one", key) == Ok(true)));
            }
            _ => {}
        }
        if filter.is_partitioned() {
            continue;
        }
        let (n, yes) = match name {
            "empty" => (0, 0),
            "u64" => (1000, (0..1000u64).filter(|key| filter.contains(key).unwrap()).count()),
            "integers" => (1000, (-500..500).filter(|key| filter.contains(key).unwrap()).count()),
            "lengths" => (601, (0..=600).filter(|&n| filter.contains("x".repeat(n)).unwrap()).count()),
            "fields" => (1000, (0..1000).filter(|&i| filter.contains(flow(i)).unwrap()).count()),
            "digests" => (1000, (0..1000).filter(|&i| filter.contains(Digest::from_hash(i)).unwrap()).count()),
            "digests-mixed" => {
                (9000, crowded_digests().iter().take(1000).filter(|key| filter.contains(key).unwrap()).count())
            }
            "mixed" => (9000, crowded().take(1000).filter(|key| filter.contains(key).unwrap()).count()),
            _ => {
                let large = name.starts_with("ribbon-") || name.starts_with("shards");
                let n = if name.starts_with("large") { 70_000 } else { if large { 12_000 } else { 1000 } };
                (n, keys().filter(|key| filter.contains(key).unwrap()).count())
            }
        };
        assert_eq!((filter.len(), yes as u64), (n, n.min(1000)), "{name}");
        let excluded = others().take(filter.excluded_len() as usize);
        assert!(excluded.into_iter().all(|key| filter.contains(key) == Ok(false)), "{name}");
        let key_type = match name {
            "u64" | "integers" | "mixed" => KeyType::Integer,
            "digests" | "digests-mixed" => KeyType::Digest,
            "fields" => KeyType::Fields,
            _ => KeyType::Bytes,
        };
        assert_eq!(filter.key_type(), key_type, "{name}");
        assert_eq!(filter.may_change(), name.starts_with("integrated"), "{name}");
        assert_eq!(tamis::FileInfo::of(filter.as_bytes()).unwrap().may_change, filter.may_change(), "{name}");
        assert_eq!(filter.hasher().is_secret(), ["keyed", "secret-beside"].contains(&name), "{name}");
        assert_eq!(filter.shards() > 1, name.starts_with("shards") || name.ends_with("mixed"), "{name}");
    }
    assert_eq!(found, expected, "a golden file without a builder, or the reverse");
}

/// A filter inside the program: no copy is made.
#[test]
fn a_static_array_is_a_filter() {
    static FILE: &[u8] = include_bytes!("../golden/ribbon.tamis");
    if blessing() {
        return; // what was compiled in is the old file
    }
    let filter = Filter::open(Bytes::from_static(FILE)).unwrap();
    assert!(std::ptr::eq(filter.as_bytes(), FILE));
    assert!(keys().all(|key| filter.contains(key) == Ok(true)));
    assert!(std::ptr::eq(Filter::open(FILE).unwrap().as_bytes(), FILE));
}
