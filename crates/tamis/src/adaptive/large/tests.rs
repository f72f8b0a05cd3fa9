//! the filter against a set, against attackers, against maps that fail and lie, and against damaged files.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, HashSet};

use super::*;
use crate::adaptive::testing::Liar;
use crate::adaptive::{AdaptError, Kept, Memory, PlanRemoval, Remove, file};
use crate::error::ChangeError;
use crate::hash::{Key, scramble};

fn random(state: &mut u64) -> u64 {
    *state = scramble(*state);
    *state
}

fn builder(capacity: u64, rate: f64) -> AdaptiveBuilder<LargeBroom> {
    LargeBroom::with_capacity(capacity).fpr(rate).secret([1, 2])
}

/// A filter whose rate is that of its signatures alone, about 2^-10: false positives come quickly.
fn coarse(capacity: u64) -> LargeBroom {
    builder(capacity, 0.5).build::<u64>().unwrap()
}

fn filled(mut broom: LargeBroom, keys: u64) -> (LargeBroom, Memory) {
    let mut map = Memory::new();
    (0..keys).for_each(|key| assert!(broom.insert(key, &mut map).unwrap().changed));
    (broom, map)
}

fn holds_all(broom: &LargeBroom, keys: impl IntoIterator<Item = u64>) {
    keys.into_iter().for_each(|key| assert!(broom.contains(key).unwrap(), "{key}"));
}

/// The next unlisted key that is let through.
fn false_positive(broom: &LargeBroom, from: &mut u64) -> u64 {
    loop {
        *from += 1;
        if broom.contains(*from).unwrap() {
            return *from;
        }
    }
}

const UNLISTED: u64 = 1 << 40;

#[test]
fn it_answers_as_a_set_does() {
    for (capacity, rate, seed) in
        [(0, 0.5, 1), (1, 0.5, 2), (2, 1e-4, 3), (3, 1e-6, 4), (70, 0.5, 5), (900, 0.5, 6), (900, 1e-9, 7)]
    {
        let mut broom = builder(capacity, rate).secret([seed, 0]).build::<u64>().unwrap();
        let (mut map, mut set, mut state) = (Memory::new(), HashSet::new(), seed);
        let rounds = if std::env::var_os("TAMIS_SLOW").is_some() { 600_000 } else { 60_000 };
        for round in 0..rounds {
            let key = random(&mut state) % (capacity + capacity / 8 + 1);
            match random(&mut state) % 4 {
                0 | 1 if set.len() as u64 == capacity && !set.contains(&key) => {
                    let full = ChangeError::Full { keys: capacity, capacity };
                    assert_eq!(broom.insert(key, &mut map), Err(AdaptError::Change(full)));
                }
                0 | 1 => assert_eq!(broom.insert(key, &mut map).unwrap().changed, set.insert(key)),
                2 if set.remove(&key) => assert!(broom.remove(key, &mut map).unwrap().changed),
                2 => assert_eq!(broom.remove(key, &mut map), Err(AdaptError::NotMember)),
                _ => {
                    let mut strangers = (0..50).map(|_| UNLISTED + (random(&mut state) >> 30));
                    let stranger = strangers.find(|&key| broom.contains(key).unwrap()).unwrap_or(UNLISTED);
                    let yes = broom.contains(stranger).unwrap();
                    let stats = broom.adapt(stranger, &mut map).unwrap();
                    assert_eq!(stats.changed, yes);
                    // One access for the repair, one for each step, and those of steps that met a collision.
                    assert!(stats.reads <= u32::from(yes) + stats.moved + 2, "{stats:?}");
                    assert!(
                        set.is_empty() || set.contains(&key) == (broom.adapt(key, &mut map) == Err(AdaptError::Member))
                    );
                }
            }
            assert_eq!((broom.len(), map.len()), (set.len() as u64, set.len()));
            if round % 64 == 0 {
                holds_all(&broom, set.iter().copied());
            }
        }
        holds_all(&broom, set.iter().copied());
        let old = set.iter().filter(|key| broom.frontier.side(key.digest(&broom.frontier.hasher)) == Side::Old).count();
        assert_eq!(broom.old, old as u64);
        assert!(capacity < 70 || rate < 0.1 || broom.epoch() > 3, "{capacity}: epoch {}", broom.epoch());
        for key in set {
            broom.remove(key, &mut map).unwrap();
        }
        assert!(broom.is_empty() && map.is_empty());
    }
}

#[test]
fn inserts_read_the_map_only_when_prints_collide() {
    let (mut broom, mut map) = filled(coarse(2000), 0);
    let mut reads = 0;
    for key in 0..2000u64 {
        let stats = broom.insert(key, &mut map).unwrap();
        reads += stats.reads;
        // One bin, one rest, and a few words of the yard.
        let tasks = stats.moved + 1;
        assert!(stats.writes <= tasks && stats.words < 120 * tasks, "{stats:?}");
        reads -= stats.moved;
    }
    // Two thousand keys, of which one in a thousand has the print of another.
    assert!(reads < 12, "{reads}");
    // A key that is there costs one access.
    assert_eq!(broom.insert(5u64, &mut map).unwrap(), crate::adaptive::ChangeStats { reads: 1, ..Default::default() });
    assert!(broom.insert("text", &mut map).is_err() && broom.contains("text").is_err());
}

#[test]
fn a_repaired_unlisted_key_is_rejected_for_as_long_as_its_function_is_in_use() {
    let mut broom = coarse(3000);
    let mut map = Memory::new();
    for key in 0..3000u64 {
        let task = Task::Insert(key.digest(&broom.frontier.hasher));
        let change = broom.plan(task, &mut map).unwrap().unwrap();
        broom.apply(change);
    }
    let mut from = UNLISTED;
    let mut repaired = vec![];
    for _ in 0..40 {
        let stranger = false_positive(&broom, &mut from);
        let task = Task::Adapt(stranger.digest(&broom.frontier.hasher));
        // Without steps: no hash function changes.
        let change = broom.plan(task, &mut map).unwrap().unwrap();
        broom.apply(change);
        repaired.push(stranger);
        assert!(repaired.iter().all(|&stranger| !broom.contains(stranger).unwrap()));
        assert!(broom.plan(task, &mut map).unwrap().is_none());
    }
    assert_eq!((broom.pending_moves() >= 40 * STEPS, broom.epoch()), (true, 0));
    holds_all(&broom, 0..3000);
    // A key that was evicted, removed and put in again does not bring its false positive back; nor does a snapshot.
    for key in 0..3000u64 {
        let change = broom.plan_remove(key.digest(&broom.frontier.hasher), &mut map).unwrap();
        broom.apply(change);
    }
    // Tombstones of those 40, and of the few that met a key with their print when they came.
    assert!(broom.is_empty() && (40..48).contains(&broom.yard.taken()), "{:?}", broom.yard());
    let mut broom = LargeBroom::restore(broom.snapshot().unwrap()).unwrap();
    for round in 0..3000u64 {
        let key = Task::Insert(round.digest(&broom.frontier.hasher));
        let change = broom.plan(key, &mut map).unwrap().unwrap();
        broom.apply(change);
    }
    holds_all(&broom, 0..3000);
    assert!(repaired.iter().all(|&stranger| !broom.contains(stranger).unwrap()));
    assert_eq!(broom.yard.tombstones(0), 0);
}

/// Five epochs of an attack that repeats what it finds, and takes out and puts in all keys meanwhile.
#[test]
fn the_yard_never_fills_and_the_rate_holds() {
    for (n, churn) in [(300u64, false), (3000, false), (3000, true)] {
        let (mut broom, mut map) = filled(coarse(n), n);
        let promised = crate::math::large::shape(n, 0.5).unwrap().fpr(n);
        let (mut from, mut found, mut most) = (UNLISTED, vec![], 0);
        let (mut fresh, mut fresh_yes, mut again, mut again_yes) = (0u64, 0u64, 0u64, 0u64);
        let mut state = 9;
        while broom.epoch() < 5 {
            from += 1;
            fresh += 1;
            if broom.contains(from).unwrap() {
                fresh_yes += 1;
                broom.adapt(from, &mut map).unwrap();
                found.push(from);
                if churn {
                    // Everybody goes and comes back: every key that was evicted has a tombstone for a while.
                    for _ in 0..n / 8 {
                        let key = random(&mut state) % n;
                        broom.remove(key, &mut map).unwrap();
                        broom.insert(key, &mut map).unwrap();
                    }
                }
            }
            if let Some(&old) = found.get((random(&mut state) % 4096) as usize) {
                again += 1;
                if broom.contains(old).unwrap() {
                    again_yes += 1;
                    broom.adapt(old, &mut map).unwrap();
                }
            }
            most = most.max(broom.yard.taken());
            assert!(broom.pending_moves() <= 4 * STEPS && broom.yard.has_room(), "{n}: {:?}", broom.yard());
        }
        holds_all(&broom, 0..n);
        for (asked, yes) in [(fresh, fresh_yes), (again, again_yes)] {
            let expected = asked as f64 * promised;
            assert!(
                (yes as f64) < expected + 5.0 * expected.sqrt() + 3.0,
                "{n}: {yes} of {asked}, expected {expected}"
            );
        }
        // The attack is one: the promise would not be kept by a promise of nothing.
        assert!(fresh_yes as f64 > 0.7 * fresh as f64 * promised, "{n}: {fresh_yes} of {fresh}");
        assert!(most > n / 128, "{n}: {most}");
    }
}

/// A map that fails when it is asked for the `until`-th time.
struct Failing {
    map: Memory,
    until: u32,
}

impl Failing {
    fn ask(&mut self) -> Result<&mut Memory, &'static str> {
        self.until = self.until.saturating_sub(1);
        if self.until == 0 { Err("broken") } else { Ok(&mut self.map) }
    }
}

impl ReverseMap for Failing {
    type Error = &'static str;

    fn file(&mut self, key: Digest, name: u64) -> Result<(), &'static str> {
        self.ask()?.file(key, name).map_err(|_| "never")
    }

    fn unfile(&mut self, key: Digest, name: u64) -> Result<bool, &'static str> {
        self.ask()?.unfile(key, name).map_err(|_| "never")
    }

    fn refile(&mut self, key: Digest, from: u64, to: u64) -> Result<bool, &'static str> {
        self.ask()?.refile(key, from, to).map_err(|_| "never")
    }

    fn filed(&mut self, name: u64, found: &mut Vec<Digest>) -> Result<(), &'static str> {
        self.ask()?.filed(name, found).map_err(|_| "never")
    }

    fn next(&mut self, after: Option<Digest>) -> Result<Option<Digest>, &'static str> {
        self.ask()?.next(after).map_err(|_| "never")
    }
}

#[test]
fn a_map_that_fails_loses_no_key() {
    let (broom, map) = filled(coarse(400), 400);
    let (mut broom, mut map) = (broom, Failing { map, until: 0 });
    let mut set: HashSet<u64> = (0..400).collect();
    let (mut state, mut from, mut failures) = (3, UNLISTED, 0);
    for until in (1..200).chain(1..200) {
        map.until = until;
        let key = random(&mut state) % 400;
        let stranger = false_positive(&broom, &mut from);
        failures += u32::from(broom.adapt(stranger, &mut map).is_err());
        match set.contains(&key) {
            true => match broom.remove(key, &mut map) {
                Ok(_) => assert!(set.remove(&key)),
                Err(e) => assert_eq!(e, AdaptError::Store("broken")),
            },
            false => match broom.insert(key, &mut map) {
                Ok(_) => assert!(set.insert(key)),
                Err(e) => assert_eq!(e, AdaptError::Store("broken")),
            },
        }
        holds_all(&broom, set.iter().copied());
        assert_eq!((broom.len(), map.map.len()), (set.len() as u64, set.len()));
    }
    assert!(failures > 0 && broom.pending_moves() > 0);
    // It goes on where it stopped.
    map.until = u32::MAX;
    while broom.pending_moves() > 0 {
        broom.run(Task::Move, &mut map).unwrap();
    }
    assert!(broom.epoch() > 10);
    holds_all(&broom, set.iter().copied());
}

/// The lies that all filters are told.
#[test]
fn no_lie_loses_a_key() {
    let (broom, map) = filled(coarse(300), 300);
    for mut liar in Liar::all(map) {
        let (mut broom, mut from) = (broom.clone(), UNLISTED);
        for _ in 0..20 {
            let stranger = false_positive(&broom, &mut from);
            let _ = broom.adapt(stranger, &mut liar);
            let _ = broom.remove(stranger, &mut liar);
        }
        holds_all(&broom, 0..300);
        assert_eq!(broom.len(), 300);
    }
}

/// A map that answers what it is told to.
#[derive(Default)]
struct Lying {
    names: BTreeMap<u64, Vec<Digest>>,
    next: Option<Digest>,
    /// What it says when a key is to be moved.
    agrees: bool,
}

impl ReverseMap for Lying {
    type Error = &'static str;

    fn file(&mut self, key: Digest, name: u64) -> Result<(), &'static str> {
        self.names.entry(name).or_default().push(key);
        Ok(())
    }

    fn unfile(&mut self, _: Digest, _: u64) -> Result<bool, &'static str> {
        Ok(self.agrees)
    }

    fn refile(&mut self, _: Digest, _: u64, _: u64) -> Result<bool, &'static str> {
        Ok(self.agrees)
    }

    fn filed(&mut self, name: u64, found: &mut Vec<Digest>) -> Result<(), &'static str> {
        found.extend(self.names.get(&name).into_iter().flatten());
        Ok(())
    }

    fn next(&mut self, _: Option<Digest>) -> Result<Option<Digest>, &'static str> {
        Ok(self.next)
    }
}

#[test]
fn a_map_that_lies_is_found_out() {
    let mut map = Lying::default();
    let mut broom = coarse(500);
    (0..500u64).for_each(|key| assert!(broom.insert(key, &mut map).unwrap().changed));
    let stranger = false_positive(&broom, &mut UNLISTED.clone());
    let digest = stranger.digest(&broom.frontier.hasher);
    let names = map.names.clone();
    let name =
        *names.iter().find(|(_, keys)| keys.iter().any(|&key| broom.print(key) == broom.print(digest))).unwrap().0;

    // It has lost the key, or knows others only.
    map.names.remove(&name);
    assert_eq!(broom.adapt(stranger, &mut map), Err(AdaptError::unfiled(name)));
    map.names.insert(
        name,
        names.values().flatten().copied().filter(|&key| broom.print(key) != broom.print(digest)).collect(),
    );
    assert_eq!(broom.adapt(stranger, &mut map), Err(AdaptError::unfiled(name)));
    // It knows two.
    let twin = (1 << 50..)
        .map(|key: u64| key.digest(&broom.frontier.hasher))
        .find(|&key| broom.print(key) == broom.print(digest))
        .unwrap();
    map.names.insert(name, [names[&name][0], twin].to_vec());
    assert_eq!(broom.adapt(stranger, &mut map), Err(AdaptError::ambiguous(name)));
    let key = (0..500u64).find(|key| key.digest(&broom.frontier.hasher) == names[&name][0]).unwrap();
    assert_eq!(broom.remove(key, &mut map), Err(AdaptError::ambiguous(name)));
    // The same one twice is one.
    map.names.insert(name, [names[&name][0]; 2].to_vec());
    assert!(broom.adapt(stranger, &mut map).unwrap().changed);
    // Steps: no key although there are, a key that is not held, one that does not come next.
    assert_eq!((broom.pending_moves(), broom.run(Task::Move, &mut map)), (STEPS, Err(AdaptError::order())));
    map.next = (1 << 51..).map(|key: u64| key.digest(&broom.frontier.hasher)).find(|&key| !broom.contains_digest(key));
    assert_eq!(broom.run(Task::Move, &mut map), Err(AdaptError::order()));
    map.next = (0..500u64).map(|key| key.digest(&broom.frontier.hasher)).min();
    assert_eq!(broom.run(Task::Move, &mut map), Err(AdaptError::order()));
    map.agrees = true;
    assert!(broom.run(Task::Move, &mut map).unwrap().changed);
    assert_eq!(broom.run(Task::Move, &mut map), Err(AdaptError::order()));
    // A removal that the map knows nothing of, or does not make.
    map.agrees = false;
    let key = (0..500u64)
        .find(|key| broom.print(key.digest(&broom.frontier.hasher)) != broom.print(map.next.unwrap()))
        .unwrap();
    assert!(matches!(broom.remove(key, &mut map), Err(AdaptError::Inconsistent(_))));
    map.names.clear();
    assert_eq!(broom.remove(7u64, &mut map), Err(AdaptError::NotMember));
    holds_all(&broom, 0..500);
}

#[test]
fn a_snapshot_goes_on_where_it_was_made() {
    for n in [0, 1, 40, 2000] {
        let (mut broom, mut map) = filled(coarse(n), n);
        let mut from = UNLISTED;
        for _ in 0..n / 4 {
            let stranger = false_positive(&broom, &mut from);
            broom.adapt(stranger, &mut map).unwrap();
            broom.remove(from % n, &mut map).unwrap();
            let bytes = broom.snapshot().unwrap();
            let back = LargeBroom::restore(bytes.clone()).unwrap();
            assert_eq!(back.snapshot().unwrap(), bytes);
            assert_eq!(
                (&back.front, &back.yard, back.old, back.frontier.pending_moves),
                (&broom.front, &broom.yard, broom.old, broom.frontier.pending_moves)
            );
            assert_eq!((back.fpr(), back.key_type(), back.epoch()), (broom.fpr(), KeyType::Integer, broom.epoch()));
            broom = back;
            broom.insert(from % n, &mut map).unwrap();
        }
        holds_all(&broom, 0..n);
        assert!(n < 40 || broom.epoch() > 5);
    }
}

/// The same file with other fields and payloads, and checksums that hold.
fn rewritten(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>, &mut Vec<Vec<u8>>)) -> Vec<u8> {
    let read = file::read(bytes.to_vec(), None, file::Kind::LargeBroom).unwrap();
    let mut from = read.fields();
    let len = from.len();
    let mut fields = from.take(len).unwrap().to_vec();
    let mut payloads: Vec<Vec<u8>> = read.payloads.iter().map(|payload| payload.to_vec()).collect();
    change(&mut fields, &mut payloads);
    let header = read.header;
    file::write(file::Kind::LargeBroom, &header.hasher, header.key_type, header.keys, &fields, &payloads).unwrap()
}

#[test]
fn damaged_snapshots_are_rejected_or_harmless() {
    let (mut broom, mut map) = filled(coarse(90), 90);
    let mut from = UNLISTED;
    for key in 0..30u64 {
        let stranger = false_positive(&broom, &mut from);
        broom.adapt(stranger, &mut map).unwrap();
        broom.remove(key, &mut map).unwrap();
    }
    let bytes = broom.snapshot().unwrap();
    assert!((0..bytes.len()).all(|len| LargeBroom::restore(bytes[..len].to_vec()).is_err()));
    for at in (0..bytes.len()).step_by(7) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(LargeBroom::restore(bytes).is_err(), "byte {at}");
    }
    let (mut refused, mut taken, mut state) = (0, 0, 1);
    for _ in 0..6000 {
        let damaged = rewritten(&bytes, |fields, payloads| {
            let mut parts: Vec<&mut Vec<u8>> = std::iter::once(fields).chain(payloads).collect();
            let which = (random(&mut state) % 4) as usize;
            let part = &mut parts[which];
            match random(&mut state) % 8 {
                0 => part.truncate((random(&mut state) % (part.len() as u64 + 1)) as usize),
                1 => part.extend([random(&mut state) as u8; 8]),
                _ => {
                    let at = (random(&mut state) % part.len() as u64) as usize;
                    part[at] = random(&mut state) as u8;
                }
            }
        });
        let Ok(mut broom) = LargeBroom::restore(damaged) else {
            refused += 1;
            continue;
        };
        taken += 1;
        // What was taken up works, whatever it has lost; every task ends.
        let mut map = map.clone();
        for round in 0..20u64 {
            let key = random(&mut state) % 90;
            let _ = broom.insert(key, &mut map);
            let _ = broom.remove(key + round % 2, &mut map);
            let _ = broom.adapt(UNLISTED + key, &mut map);
            let _ = broom.run(Task::Move, &mut map);
            broom.snapshot().unwrap();
        }
    }
    assert!(refused > 1000 && taken > 100, "{refused} refused, {taken} taken up");
    let other = rewritten(&bytes, |_, payloads| payloads.truncate(2));
    assert!(LargeBroom::restore(other).unwrap_err().to_string().contains("2 payloads, expected 3"));
}

#[test]
fn what_cannot_be_is_said() {
    for (capacity, rate) in [(10, 0.0), (10, 1.0), (10, -1.0), (10, f64::NAN), (1 << 33, 0.1), (1000, 1e-25)] {
        let e = builder(capacity, rate).build::<u64>().unwrap_err().to_string();
        let range = format!("fpr {rate}: out of range; expected 0 to 1");
        let many = format!("capacity {capacity}: out of range; expected 0 to 4294967296");
        let small = e.contains("too small for a broom filter of large remainders of ");
        assert!(e.starts_with(&range) || e == many || small, "{e}");
    }
}

/// The secret of the operating system differs, and so does what is let through.
#[test]
fn a_secret_is_a_secret() {
    let secrets = [0; 2].map(|_| LargeBroom::with_capacity(10).fpr(1e-6).build::<u64>().unwrap().hasher().words());
    assert_ne!(secrets[0], secrets[1]);
}
