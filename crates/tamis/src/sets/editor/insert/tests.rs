//! Many pairs at once are what they are one by one, to the byte.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::Sets;
use crate::hash::scramble;
use crate::sets::tune::Shape;
use crate::sets::{Kind, SetsBuilder, stream};

/// Pairs of a few keys, so that some come twice, in any order.
fn pairs(n: u64, sets: u64) -> Vec<(u64, u32)> {
    (0..n).map(|i| (scramble(i) % (n / 2 + 1), (scramble(!i) % sets) as u32)).collect()
}

fn by_hand(body: tune::Body) -> Shape {
    Shape { body, existence: None, heavy: None }
}

fn index(build: SetsBuilder<'static, ()>, sets: u32) -> Sets {
    let mut pairs = build.start();
    (0..sets).for_each(|set| assert_eq!(pairs.set(&set.to_string()).unwrap(), set));
    // One key in all sets, which some shapes list aside.
    (0..sets).for_each(|set| pairs.push(1u64, set).unwrap());
    pairs.finish().unwrap()
}

#[test]
fn many_are_one_by_one() {
    type Way = fn(SetsBuilder<'static, ()>) -> SetsBuilder<'static, ()>;
    let ways: [Way; 8] = [
        |build| build.kind(Kind::Bloom),
        |build| build.kind(Kind::Bloom).without_filter(),
        |build| build.kind(Kind::Bloom).heavy(5),
        |build| build.kind(Kind::Bloom).counts(true),
        |build| build.kind(Kind::Cuckoo),
        |build| build.kind(Kind::Cuckoo).counts(true),
        |build| build.shape(by_hand(tune::Body::Bloom { words: 90, hashes: 32, repetitions: 8, partitions: 9 })),
        |build| build.shape(by_hand(tune::Body::Cuckoo { buckets: 50, bits: 25, repetitions: 2, partitions: 9 })),
    ];
    for (at, way) in ways.into_iter().enumerate() {
        // With room for all, for some, and for hardly any: the others go into segments of their own.
        for (n, capacity) in [(0, 99), (1, 99), (2, 99), (63, 99), (64, 99), (65, 99), (700, 1000), (6000, 300)] {
            let start = index(way(stream()).capacity(capacity), 40);
            let pairs = pairs(n, 40);
            let mut editors = [(); 2].map(|()| Editor::new(&start).unwrap());
            for &(key, set) in &pairs {
                editors[0].insert(key, set).unwrap();
            }
            editors[1].insert_many(&pairs).unwrap();
            let [one, many] = editors.map(|editor| editor.snapshot().unwrap());
            assert!(one == many, "way {at}, {n} pairs, capacity {capacity}");
            let index = Sets::open(many).unwrap();
            for (key, set) in pairs {
                assert!(index.find(key).unwrap().contains(&set), "way {at}, {n} pairs");
            }
        }
    }
}

/// A set that is removed, or was never there, and a key of another type: nothing is inserted.
#[test]
fn all_or_nothing() {
    let mut editor = Editor::new(&index(stream().kind(Kind::Bloom).capacity(500), 4)).unwrap();
    editor.remove_set("3").unwrap();
    let before = editor.snapshot().unwrap();
    for set in [3, 4, u32::MAX] {
        let mut pairs = pairs(200, 3);
        pairs.push((5, set));
        let error = editor.insert_many(&pairs).unwrap_err();
        assert!(matches!(error, Error::Build(BuildError::Value(ValueError::NoSetNumber { .. }))), "{error}");
    }
    assert!(matches!(editor.insert_many(&[("a", 0), ("b", 1)]), Err(Error::Change(_))));
    assert!(editor.snapshot().unwrap() == before);
}
