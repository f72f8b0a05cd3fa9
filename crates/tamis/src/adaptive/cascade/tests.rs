#![allow(clippy::unwrap_used)]
use super::*;
use crate::adaptive::testing::Random;
use crate::adaptive::trial::{self, Removal};
use crate::adaptive::{Kept, Mechanism, Memory, Remove, Segments, Task};
use crate::error::ChangeError;

fn builder<L: Level>(capacity: u64, rate: f64, steps: u32) -> AdaptiveBuilder<Cascade<L>> {
    Cascade::with_capacity(capacity).fpr(rate).moves_per_adapt(steps).secret([1, 2])
}

fn made<L: Level>(capacity: u64, rate: f64, steps: u32) -> Cascade<L> {
    builder::<L>(capacity, rate, steps).build::<u64>().unwrap()
}

/// A test for every kind of level.
macro_rules! each {
    ($($name:ident),*) => { $(
        mod $name {
            #[test]
            fn quotients() {
                super::check::$name::<super::Quotients>();
            }
            #[test]
            fn cuckoos() {
                super::check::$name::<super::Cuckoos>();
            }
            #[test]
            fn segments() {
                super::check::$name::<super::Segments>();
            }
        }
    )* };
}

each!(oracle, sizes, failing, lying, damaged, moves_end_in_time, closing, rate_under_attack, other_schedule);

#[test]
fn churn() {
    trial::churn_and_replay(made::<Quotients>(4000, 0.3, 4), 1000, 300);
    trial::churn_and_replay(made::<Cuckoos>(4000, 0.3, 4), 1000, 300);
}

mod check {
    use super::*;

    pub(super) fn oracle<L: Level>()
    where
        Cascade<L>: Removal,
    {
        // Rates high and steps few, so that generations come and go and all levels are in use.
        for (capacity, rate, steps, universe) in
            [(200, 0.5, 4, 250), (200, 0.25, 8, 250), (500, 0.1, 32, 5000), (2000, 0.5, 4, 1500), (64, 0.01, 128, 100)]
        {
            trial::oracle(made::<L>(capacity, rate, steps), 12_000, universe, capacity + u64::from(steps));
        }
    }

    pub(super) fn sizes<L: Level>()
    where
        Cascade<L>: Removal,
    {
        for capacity in 0..40 {
            let mut filter = made::<L>(capacity, 0.3, 4);
            let mut map = Memory::new();
            for key in 0..capacity {
                assert!(filter.insert(key, &mut map).unwrap().changed);
            }
            let full = filter.insert(capacity, &mut map).unwrap_err();
            assert_eq!(full, ChangeError::Full { keys: capacity, capacity }.into());
            assert!((0..capacity).all(|key| filter.contains(key).unwrap()));
            trial::oracle(made::<L>(capacity, 0.3, 4), 600, 60, capacity);
        }
        for (capacity, rate, steps) in [(10, 0.0, 8), (10, 0.7, 8), (10, f64::NAN, 8), (1 << 40, 0.1, 8), (10, 0.1, 3)]
        {
            let wrong = builder::<L>(capacity, rate, steps).build::<u64>();
            assert!(
                matches!(wrong, Err(BuildError::Range { .. } | BuildError::Size { .. })),
                "{capacity}, {rate}, {steps}"
            );
        }
    }

    pub(super) fn failing<L: Level>()
    where
        Cascade<L>: Removal,
    {
        trial::failing_map(|| made::<L>(400, 0.3, 8), 300);
        trial::failing_map(|| made::<L>(60, 0.5, 4), 60);
    }

    pub(super) fn lying<L: Level>() {
        trial::lying_map(made::<L>(1000, 0.002, 16), 1000);
    }

    pub(super) fn damaged<L: Level>()
    where
        Cascade<L>: Removal,
    {
        let mut filter = made::<L>(60, 0.3, 4);
        let mut map = Memory::new();
        for key in 0..60 {
            filter.insert(key, &mut map).unwrap();
        }
        trial::damage(&filter, L::KIND);
        let mut from = 0;
        while !filter.is_moving() || filter.next.as_ref().is_none_or(|next| next.live == 0) {
            from += trial::attack(&mut filter, &mut map, from, 1).0;
        }
        trial::damage(&filter, L::KIND);
    }

    /// The proof of `Sizes::of`, tried: nothing is ever full before its time, whatever is asked.
    pub(super) fn moves_end_in_time<L: Level>()
    where
        Cascade<L>: Removal,
    {
        for (capacity, steps) in [(100, 4), (1000, 8), (3000, 32), (3000, 128)] {
            let mut filter = made::<L>(capacity, 0.2, steps);
            let mut map = Memory::new();
            let mut random = Random(7);
            // Where no key goes, half of them come later.
            let mut next_key = if L::LOSSLESS { capacity } else { capacity / 2 };
            let mut keys: Vec<u64> = (0..next_key).collect();
            keys.iter().for_each(|&key| assert!(filter.insert(key, &mut map).unwrap().changed));
            let mut from = 0;
            while filter.epoch() < 6 {
                // Churn and repairs in all proportions, epoch after epoch.
                if random.below(6) < filter.epoch() as usize {
                    let at = random.below(keys.len());
                    if let Some(done) = filter.take(keys[at], &mut map) {
                        assert!(done.unwrap().changed);
                        keys.swap_remove(at);
                    }
                    if filter.len() < capacity {
                        filter.insert(next_key, &mut map).unwrap();
                        keys.push(next_key);
                        next_key += 1;
                    }
                }
                if random.below(6) >= filter.epoch() as usize {
                    from += trial::attack(&mut filter, &mut map, from, 1).0;
                }
                for generation in std::iter::once(&filter.now).chain(filter.next.as_deref()) {
                    for (tier, size) in generation.tiers.iter().zip(&filter.sizes.tiers) {
                        assert!(tier.dead() <= size.marks && tier.len() <= size.capacity);
                    }
                }
                assert!(filter.pending_moves() <= 2 * steps, "steps are made when they are due");
            }
            assert!(keys.iter().all(|&key| filter.contains(key).unwrap()));
        }
    }

    /// Where several keys share a spot, they leave one by one, and a map that fails in between finds all of them again.
    pub(super) fn closing<L: Level>()
    where
        Cascade<L>: Removal,
    {
        let mut seen = 0;
        for seed in 0..200 {
            let mut filter = builder::<L>(100, 0.5, 4).secret([seed, 2]).build::<u64>().unwrap();
            let mut map = Memory::new();
            (0..100u64).for_each(|key| assert!(filter.insert(key, &mut map).unwrap().changed));
            let Some(&stranger) = trial::false_positives(&filter, 0, 100, 1).first() else { continue };
            // One change of a repair, and then something else comes.
            let task = Task::Adapt(trial::digest(&filter, stranger));
            let change = filter.plan(task, &mut map).unwrap().unwrap();
            filter.apply(change);
            if filter.closing.is_none() {
                continue;
            }
            seen += 1;
            let mut filter = Cascade::<L>::restore(filter.snapshot().unwrap()).unwrap();
            for key in 0..100u64 {
                assert!(filter.contains(key).unwrap());
                assert!(!filter.insert(key, &mut map).unwrap().changed, "seed {seed}, key {key}");
            }
            for key in (0..100u64).step_by(2) {
                if let Some(done) = filter.take(key, &mut map) {
                    assert!(done.unwrap().changed);
                    assert!(filter.closing.is_none() || filter.insert(key, &mut map).unwrap().changed);
                }
            }
            filter.adapt(stranger, &mut map).unwrap();
            assert!(filter.closing.is_none() && !filter.contains(stranger).unwrap());
            assert!((1..100u64).step_by(2).all(|key| filter.contains(key).unwrap()));
        }
        assert!(seen > 10, "{seen} spots of several keys");
    }

    pub(super) fn rate_under_attack<L: Level>() {
        let (capacity, rate) = (5000, 1.0 / 32.0);
        let mut filter = made::<L>(capacity, rate, 32);
        let mut map = Memory::new();
        for key in 0..capacity {
            filter.insert(key, &mut map).unwrap();
        }
        let mut from = 0;
        let mut positives: Vec<u64> = vec![];
        let mut random = Random(3);
        while filter.epoch() < 4 {
            // A window of queries, half of them fresh, half of them what was false before.
            let (mut asked, mut passed) = (0u64, 0u64);
            for _ in 0..20_000 {
                let stranger = match random.below(2) {
                    0 if !positives.is_empty() => positives[random.below(positives.len())],
                    _ => {
                        from += 1;
                        trial::UNLISTED + from
                    }
                };
                asked += 1;
                if filter.contains(stranger).unwrap() {
                    passed += 1;
                    positives.push(stranger);
                    let stats = filter.adapt(stranger, &mut map).unwrap();
                    assert!(stats.moved > 0 || !filter.contains(stranger).unwrap());
                }
            }
            let mean = rate * asked as f64;
            assert!((passed as f64) < mean + 5.0 * mean.sqrt(), "{passed} of {asked}, at most {mean}");
        }
    }

    pub(super) fn other_schedule<L: Level>()
    where
        Cascade<L>: Removal,
    {
        let build =
            |capacity, rate| builder::<L>(capacity, rate, 8).schedule(Schedule::LogStar).build::<u64>().unwrap();
        let filter = build(100_000, 0.25);
        let rates: Vec<f64> = filter.sizes.tiers.iter().map(|size| -size.rate.log2()).collect();
        // 2 bits; 2 / sqrt(1/4) = 4 bits; 2 / 2^-4 = 32 bits, of which there are 26.
        assert!(rates.starts_with(&[2.0, 4.0]) && rates.iter().skip(2).all(|&bits| bits == 26.0), "{rates:?}");
        assert!(build(100_000, 1.0 / 256.0).sizes.tiers[1].rate == 2f64.powi(-26));
        trial::oracle(build(300, 0.4), 5000, 400, 5);
    }
}

#[test]
fn rates_are_squared_and_levels_shrink() {
    let filter = made::<Quotients>(1_000_000, 0.25, 32);
    let tiers = &filter.sizes.tiers;
    assert!(tiers.len() >= 2 && filter.levels() == tiers.len() + 1);
    assert!(
        tiers.windows(2).all(|pair| pair[1].rate == pair[0].rate * pair[0].rate && pair[1].capacity < pair[0].capacity)
    );
    // What is left is less than n / (3 log n).
    assert!(filter.sizes.last < 1_000_000 / 57 && tiers[tiers.len() - 1].capacity > 1_000_000 / 57);
}

#[test]
fn rates_are_those_of_the_first_level() {
    let n = 50_000;
    let fill = |filter: &mut dyn FnMut(u64)| (0..n).for_each(filter);
    let (mut quotient, mut cuckoo) = (made::<Quotients>(n, 1.0 / 64.0, 32), made::<Cuckoos>(n, 1.0 / 64.0, 32));
    let mut maps = (Memory::new(), Memory::new());
    fill(&mut |key| assert!(quotient.insert(key, &mut maps.0).unwrap().changed));
    fill(&mut |key| assert!(cuckoo.insert(key, &mut maps.1).unwrap().changed));
    let (slots, remainder) = crate::math::quotient::size(n, 1.0 / 64.0).unwrap();
    trial::rate(&quotient, crate::math::quotient::rate(n, slots, remainder), 400_000);
    let least = |bits| crate::math::cuckoo::roomy(n, bits);
    let (bits, buckets) =
        crate::math::cuckoo::table(n, crate::math::cuckoo::CHANGING_BITS, least, 1.0 / 64.0, false).unwrap();
    trial::rate(&cuckoo, crate::math::cuckoo::rate(n, buckets, bits), 400_000);
}

/// The table in the documentation of the module.
#[test]
fn bits_per_key() {
    fn of<L: Level>() -> [f64; 3] {
        [16, 32, 64].map(|steps| 8.0 * made::<L>(100_000, 1.0 / 256.0, steps).memory_bytes() as f64 / 1e5)
    }
    let table = [
        ("quotient", of::<Quotients>(), [17.0, 14.0, 12.5]),
        ("cuckoo", of::<Cuckoos>(), [16.7, 14.3, 13.5]),
        ("Bloom", of::<Segments>(), [16.9, 14.3, 13.0]),
    ];
    for (name, found, expected) in table {
        println!("{name}: {found:.2?} at rest, twice that while keys move");
        assert!(found.iter().zip(expected).all(|(found, bits)| (found - bits).abs() < 0.06), "{name}: {found:?}");
    }
}

/// Two keys at one spot, a repair that fails after the first has left, and the second removed: the first is still found.
#[test]
fn the_last_key_of_a_closing_spot_may_be_removed() {
    fn check<L: Erase>() {
        let mut tried = 0;
        for seed in 0..200u64 {
            let mut filter = builder::<L>(100, 0.5, 32).secret([seed, 3]).build::<u64>().unwrap();
            let mut map = Memory::new();
            (0..100u64).for_each(|key| assert!(filter.insert(key, &mut map).unwrap().changed));
            let Some(stranger) = (1000..2000u64).find(|&key| {
                let digest = filter.digest(key).unwrap();
                filter.now.tiers[0].copies(digest) == Some(2)
            }) else {
                continue;
            };
            let stranger = filter.digest(stranger).unwrap();
            let change = filter.plan(Task::Adapt(stranger), &mut map).unwrap().unwrap();
            filter.apply(change);
            if filter.closing.is_none() {
                continue;
            }
            tried += 1;
            let here = |key: &u64| filter.now.spot(0, filter.digest(*key).unwrap()) == filter.now.spot(0, stranger);
            let both: Vec<u64> = (0..100).filter(here).collect();
            let left = both.iter().find(|&&key| {
                let digest = filter.digest(key).unwrap();
                filter.home(digest, &mut map).unwrap() == Some(0)
            });
            filter.remove(*left.unwrap(), &mut map).unwrap();
            let others = (0..100u64).filter(|key| key != left.unwrap());
            assert!(others.into_iter().all(|key| filter.contains(key).unwrap()), "seed {seed}");
            assert!(filter.closing.is_none());
        }
        assert!(tried > 20, "{tried}");
    }
    check::<Quotients>();
    check::<Cuckoos>();
}
