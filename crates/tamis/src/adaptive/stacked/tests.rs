#![allow(clippy::unwrap_used)]
use std::collections::HashSet;
use std::convert::Infallible;

use super::*;
use crate::adaptive::file::{self, Kind};
use crate::error::ChangeError;
use crate::hash::scramble;

const BASES: [Base; 3] = [Base::Bloom, Base::Cuckoo, Base::Quotient];
const KEY: [u64; 2] = [11, 12];

fn keys(n: u64) -> Vec<u64> {
    (0..n).map(|i| scramble(i + 1)).collect()
}

/// Zipf's law over some values that are no keys.
struct Load {
    sums: Vec<f64>,
    /// Where its values begin: another number, other values.
    start: u64,
    state: u64,
}

impl Load {
    fn new(exponent: f64, values: u64, start: u64) -> Load {
        let mut sum = 0.0;
        let weights = (1..=values).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Load { sums: weights.collect(), start: start << 40, state: start }
    }

    fn draw(&mut self) -> u64 {
        self.state = scramble(self.state ^ self.start);
        let at = (self.state >> 11) as f64 / (1u64 << 53) as f64 * self.sums[self.sums.len() - 1];
        scramble(self.start + (1 << 39) + self.sums.partition_point(|&sum| sum <= at) as u64)
    }
}

fn options(base: Base) -> AdaptiveBuilder<AdaptiveStacked> {
    let shape = Shape::zipf(1.0, 100_000, 50_000).unwrap();
    AdaptiveStacked::with_bits_per_key(10.0).shape(shape).base(base).secret(KEY)
}

/// Asks and reports; returns what happened, and how often a query passed.
fn drive(
    filter: &mut AdaptiveStacked,
    load: &mut Load,
    keys: &mut Vec<u64>,
    queries: u64,
) -> (Vec<StackedOutcome>, u64) {
    let (mut events, mut passed) = (vec![], 0);
    for _ in 0..queries {
        let query = load.draw();
        if filter.query(query).unwrap() {
            passed += 1;
            let event = filter.traced_adapt(query, keys).unwrap();
            if !matches!(event, StackedOutcome::Counted | StackedOutcome::Stored | StackedOutcome::Rejected) {
                complete(filter, keys);
                events.push(event);
            }
        }
    }
    (events, passed)
}

#[track_caller]
fn complete(filter: &AdaptiveStacked, keys: &[u64]) {
    assert!(keys.iter().all(|&key| filter.contains(key).unwrap()), "a key is refused, {:?}", filter.phase());
}

/// Every state, every base, both plans: keys are there, what was learned is rejected, and frozen layers stay as they are.
#[test]
fn no_key_is_rejected_and_what_was_learned_is() {
    for base in BASES {
        for lifetime in [None, Some(400_000)] {
            let mut keys = keys(3000);
            let mut options = options(base);
            options.options.goal.lifetime = lifetime;
            let mut filter = options.build(&mut keys).unwrap();
            assert_eq!((filter.phase(), filter.layers()), (Phase::Collecting, 1), "{base:?}: {:?}", filter.plan);
            complete(&filter, &keys);
            let mut load = Load::new(1.0, 100_000, 1);
            let mut learned = HashSet::new();
            let mut layered = 0;
            while layered == 0 {
                let query = load.draw();
                if filter.query(query).unwrap() {
                    let event = filter.traced_adapt(query, &mut keys).unwrap();
                    assert!(matches!(
                        event,
                        StackedOutcome::Layered | StackedOutcome::Stored | StackedOutcome::Counted
                    ));
                    layered += u32::from(event == StackedOutcome::Layered);
                    learned.insert(query);
                }
            }
            complete(&filter, &keys);
            assert!(
                filter.layers() == 3 && filter.memory_bytes() as f64 * 8.0 < 10.4 * 3000.0,
                "{}",
                filter.memory_bytes()
            );
            // Those that pass are as many as the third layer lets pass by chance.
            let passing = learned.iter().filter(|&&query| filter.contains(query).unwrap()).count() as f64;
            let mean = learned.len() as f64 * filter.rates()[2];
            assert!(passing < mean + 5.0 * mean.sqrt() + 2.0, "{base:?}: {passing} of {}, {mean}", learned.len());
            // Later reports leave the frozen layers alone.
            let frozen: Vec<Vec<u8>> = filter.layers.iter().map(|layer| layer.part.payload().to_vec()).collect();
            for _ in 0..20_000 {
                let query = load.draw();
                if filter.query(query).unwrap() {
                    filter.adapt(query, &mut keys).unwrap();
                }
                if filter.layers() < 3 {
                    break;
                }
                assert!(filter.layers.iter().zip(&frozen).all(|(layer, was)| layer.part.payload() == *was));
            }
            complete(&filter, &keys);
        }
    }
}

/// Collecting -> Stacked -> (other values) -> Collecting -> Stacked -> (another law) -> Collecting -> Stacked -> Remodelling ->
/// Collecting or Stacked.
#[test]
fn the_phases_follow_each_other() {
    for base in BASES {
        let mut keys = keys(3000);
        let mut filter =
            options(base).lifetime(400_000).sample(20_000).counting_memory(1 << 20).build(&mut keys).unwrap();
        let planned = filter.plan.clone();
        let (events, _) = drive(&mut filter, &mut Load::new(1.0, 100_000, 1), &mut keys, 400_000);
        assert_eq!((&events[..], filter.phase()), (&[StackedOutcome::Layered][..], Phase::Stacked), "{base:?}");
        let (events, _) = drive(&mut filter, &mut Load::new(1.0, 100_000, 2), &mut keys, 400_000);
        assert_eq!(&events[..], [StackedOutcome::Dropped, StackedOutcome::Layered], "{base:?}");
        assert_eq!((filter.phase(), &filter.plan), (Phase::Stacked, &planned));
        // Nobody is asked for twice: hardly anything can be learned, and the next plan knows it.
        let (events, _) = drive(&mut filter, &mut Load::new(0.0, 50_000_000, 3), &mut keys, 1_000_000);
        let expected =
            [StackedOutcome::Dropped, StackedOutcome::Layered, StackedOutcome::Counting, StackedOutcome::Replanned];
        assert_eq!(&events[..4], expected, "{base:?}: {events:?}");
        assert!(events[4..].iter().all(|&event| event == StackedOutcome::Layered), "{base:?}: {events:?}");
        assert!(filter.phase() != Phase::Remodelling && filter.plan != planned);
    }
}

/// The rates before and after are those of the formulas, over filters with different keys of the hash.
#[test]
fn rates_are_those_of_the_formulas() {
    for base in BASES {
        let (mut ratios, mut strangers, mut stacked) = ([0.0, 0.0], 0.0, 0.0);
        let rounds = 6;
        for round in 0..rounds {
            let mut keys = keys(5000);
            let options = options(base).lifetime(1_000_000).secret([round, 5]);
            let mut filter = options.build(&mut keys).unwrap();
            let mut load = Load::new(1.0, 100_000, 100 + round);
            while filter.phase() == Phase::Collecting {
                drive(&mut filter, &mut load, &mut keys, 1000);
            }
            let passed = |filter: &AdaptiveStacked| {
                (0..200_000u64).filter(|&i| filter.contains(scramble(i + (1 << 60))).unwrap()).count() as f64
            };
            strangers += passed(&filter);
            stacked += filter.fpr() * 200_000.0;
            // Values of the same law, and every one counts with its weight.
            let (expected, queries) = (filter.expected(), 100_000);
            let passed = (0..queries).filter(|_| filter.contains(load.draw()).unwrap()).count() as f64;
            ratios = [ratios[0] + passed, ratios[1] + expected * f64::from(queries)];
        }
        assert!(
            (strangers - stacked).abs() < 4.0 * stacked.sqrt() + 0.03 * stacked,
            "{base:?}: {strangers}, {stacked}"
        );
        // One value in hundreds that passes has a weight of its own: the noise is not that of a count.
        assert!((ratios[0] / ratios[1] - 1.0).abs() < 0.2, "{base:?}: {ratios:?}");
    }
}

/// The three layers do what the search promised, over their whole life.
#[test]
fn the_mean_rate_is_that_of_the_plan() {
    let (mut passed, mut promised, mut alone) = (0, 0.0, 0.0);
    for round in 0..12 {
        let mut keys = keys(5000);
        let options = options(Base::Bloom).lifetime(200_000).secret([round, 6]);
        let mut filter = options.build(&mut keys).unwrap();
        let mut load = Load::new(1.0, 100_000, 200 + round);
        passed += drive(&mut filter, &mut load, &mut keys, 200_000).1;
        let shape = Shape::zipf(1.0, 100_000, 50_000).unwrap();
        let plan = crate::math::stack::quick(filter.goal.size(), false, 5000, &shape, 10.0, 200_000).unwrap();
        promised += plan.mean * 200_000.0;
        alone += filter.goal.size().alpha(10.0) * 200_000.0;
    }
    // Heavy values that pass by luck are most of the noise.
    assert!((passed as f64 / promised - 1.0).abs() < 0.2, "{passed} passed, {promised} expected");
    assert!((passed as f64) < 0.75 * alone, "{passed} passed, one layer {alone}");
}

#[test]
fn every_small_number_of_keys() {
    for base in BASES {
        for n in (0..12).chain([40, 1000]) {
            for lifetime in [None, Some(20_000)] {
                let mut keys = keys(n);
                let shape = Shape::zipf(1.0, 2000, 2000).unwrap();
                let mut options = AdaptiveStacked::with_bits_per_key(4.0).shape(shape).base(base).secret([n, 1]);
                options.options.goal.lifetime = lifetime;
                let mut filter = options.build(&mut keys).unwrap();
                assert_eq!((filter.len(), filter.is_empty()), (n, n == 0));
                drive(&mut filter, &mut Load::new(1.0, 2000, n + 1), &mut keys, 3000);
                complete(&filter, &keys);
            }
        }
    }
}

/// Keys that cannot be read at every k-th pass.
struct Flaky {
    keys: Vec<u64>,
    calls: u64,
    every: u64,
}

impl Keys for Flaky {
    type Key = u64;
    type Error = &'static str;

    fn for_each(&mut self, visit: &mut dyn FnMut(&u64)) -> Result<(), &'static str> {
        self.calls += 1;
        let fails = !self.calls.is_multiple_of(self.every);
        // Half of the keys come before it breaks.
        let end = if fails { self.keys.len() / 2 } else { self.keys.len() };
        self.keys[..end].iter().for_each(visit);
        if fails { Err("broken") } else { Ok(()) }
    }
}

#[test]
fn keys_that_cannot_be_read_do_no_harm() {
    for base in BASES {
        let list = keys(2000);
        let mut flaky = Flaky { keys: list.clone(), calls: 3, every: 4 };
        let built = options(base).lifetime(100_000).build(&mut flaky);
        let mut filter = built.unwrap();
        let mut load = Load::new(1.0, 100_000, 1);
        let (mut errors, mut layered) = (0, 0);
        for _ in 0..100_000 {
            let query = load.draw();
            if filter.query(query).unwrap() {
                match filter.traced_adapt(query, &mut flaky) {
                    Ok(StackedOutcome::Layered) => layered += 1,
                    Ok(_) => {}
                    Err(e) => {
                        assert_eq!(e.to_string(), "store of the keys: broken");
                        assert!(filter.layers() == 1 && filter.phase() == Phase::Collecting);
                        errors += 1;
                        complete(&filter, &list);
                    }
                }
            }
        }
        complete(&filter, &list);
        assert_eq!((errors, layered), (3, 1), "{base:?}");
    }
    let mut broken = Flaky { keys: keys(10), calls: 0, every: 2 };
    assert!(matches!(options(Base::Bloom).build(&mut broken), Err(AdaptError::Store("broken"))));
}

/// Keys that are not those of the filter make no layer.
#[test]
fn other_keys_are_rejected() {
    let list = keys(2000);
    let mut filter = options(Base::Bloom).lifetime(100_000).build(&mut list.clone()).unwrap();
    let mut load = Load::new(1.0, 100_000, 1);
    let mut others = list.clone();
    others[7] = 1;
    let lies = [list[1..].to_vec(), others, vec![], list.iter().chain(&list).copied().collect()];
    let mut told = vec![];
    for i in 0..200_000 {
        let query = load.draw();
        if filter.query(query).unwrap()
            && let Err(e) = filter.adapt(query, &mut lies[i % 4].clone())
        {
            told.push(e.to_string());
        }
    }
    complete(&filter, &list);
    assert_eq!(filter.layers(), 1);
    assert!(told.contains(&"keys: 1999 keys; expected the 2000 that the filter was made of".to_string()));
    assert!(
        told.contains(
            &"keys: 2000 keys, but not those that the filter was made of; expected the same keys".to_string()
        )
    );
    // A list of another key type, and then the right one.
    let query = (0..).map(scramble).find(|&i| filter.contains(i).unwrap() && !list.contains(&i)).unwrap();
    let error: AdaptError<Infallible> = filter.adapt(query, &mut vec!["text"]).unwrap_err();
    assert!(matches!(error, AdaptError::Change(ChangeError::KeyType(_))));
    assert_eq!(filter.traced_adapt(query, &mut list.clone()).unwrap(), StackedOutcome::Layered);
    complete(&filter, &list);
}

#[test]
fn what_makes_no_sense_is_rejected() {
    let shape = || Shape::zipf(1.0, 1000, 1000).unwrap();
    let build = |options: AdaptiveBuilder<AdaptiveStacked>| options.build(&mut keys(10)).map(|_| ());
    assert!(build(AdaptiveStacked::with_bits_per_key(10.0).shape(shape()).base(Base::Ribbon)).is_err());
    for bits in [0.0, -1.0, f64::NAN, 1e9] {
        assert!(build(AdaptiveStacked::with_bits_per_key(bits).shape(shape())).is_err());
    }
    let mut filter = options(Base::Bloom).build(&mut keys(10)).unwrap();
    assert!(filter.contains("text").is_err() && filter.query("text").is_err());
    assert!(filter.adapt("text", &mut keys(10)).is_err());
    // Without a key of its own every filter has another secret.
    let secret = || AdaptiveStacked::with_bits_per_key(10.0).shape(shape()).build(&mut keys(10)).unwrap();
    assert!(secret().hasher().is_secret() && secret().hasher().words() != secret().hasher().words());
}

/// A key that is reported as a false positive by mistake stays.
#[test]
fn a_key_that_is_learned_is_still_found() {
    for base in BASES {
        let mut list = keys(2000);
        let mut filter = options(base).lifetime(100_000).build(&mut list).unwrap();
        let mut layered = 0;
        for key in list.clone() {
            layered += u32::from(filter.traced_adapt(key, &mut list).unwrap() == StackedOutcome::Layered);
            assert!(filter.contains(key).unwrap());
        }
        assert!(layered > 0);
        complete(&filter, &list);
    }
}

/// In every phase: a snapshot answers alike, and goes on alike.
#[test]
fn snapshots_go_on() {
    for base in BASES {
        let mut list = keys(2000);
        let mut filter =
            options(base).lifetime(100_000).sample(10_000).counting_memory(1 << 20).build(&mut list).unwrap();
        let mut seen = HashSet::new();
        let loads = [(1.0, 100_000, 1), (1.0, 100_000, 2), (0.0, 1 << 24, 3)];
        for (exponent, values, start) in loads {
            let mut load = Load::new(exponent, values, start);
            for _ in 0..12 {
                drive(&mut filter, &mut load, &mut list, 20_000);
                let mut again = AdaptiveStacked::restore(filter.snapshot().unwrap()).unwrap();
                complete(&again, &list);
                assert_eq!(
                    (again.phase(), again.layers(), again.memory_bytes()),
                    (filter.phase(), filter.layers(), filter.memory_bytes())
                );
                assert!((again.expected() / filter.expected() - 1.0).abs() < 1e-9);
                for i in 0..2000 {
                    assert_eq!(filter.contains(scramble(i)), again.contains(scramble(i)));
                }
                let state = load.state;
                let mut twin = Load { sums: load.sums.clone(), start: load.start, state };
                drive(&mut again, &mut twin, &mut list, 3000);
                complete(&again, &list);
                seen.insert(format!("{:?}", filter.phase()));
            }
        }
        assert!(seen.len() >= 2, "{base:?}: {seen:?}");
    }
}

/// Bytes that are flipped or cut, with and without checksums that fit: errors, or filters that work.
#[test]
fn damaged_snapshots_do_no_harm() {
    for (base, queries) in [(Base::Bloom, 0), (Base::Bloom, 60_000), (Base::Cuckoo, 60_000), (Base::Quotient, 2000)] {
        let mut list = keys(300);
        let mut filter = options(base).lifetime(60_000).build(&mut list).unwrap();
        drive(&mut filter, &mut Load::new(1.0, 100_000, 1), &mut list, queries);
        let bytes = filter.snapshot().unwrap();
        for end in (0..bytes.len()).step_by(7) {
            assert!(AdaptiveStacked::restore(bytes[..end].to_vec()).is_err());
        }
        for at in (0..bytes.len()).step_by(5) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            assert!(AdaptiveStacked::restore(bytes).is_err());
        }
        let file = file::read(bytes, None, Kind::Stacked).unwrap();
        let mut from = file.fields();
        let fields = from.take(from.len()).unwrap().to_vec();
        let payloads: Vec<Vec<u8>> = file.payloads.iter().map(|payload| payload.to_vec()).collect();
        let mut opened = 0;
        let mut try_out = |fields: &[u8], payloads: &[Vec<u8>], keys: u64| {
            let bytes =
                file::write(Kind::Stacked, &filter.set.hasher, filter.set.key_type, keys, fields, payloads).unwrap();
            let Ok(mut filter) = AdaptiveStacked::restore(bytes) else { return };
            opened += 1;
            for i in 0..200 {
                filter.query(scramble(i)).unwrap();
                filter.adapt(scramble(i), &mut list).ok();
            }
            filter.snapshot().unwrap();
        };
        for at in 0..fields.len() {
            for flip in [1, 0x80, 0xff] {
                let mut fields = fields.clone();
                fields[at] ^= flip;
                try_out(&fields, &payloads, 300);
            }
            try_out(&fields[..at], &payloads, 300);
        }
        for keys in [0, 1, u64::MAX] {
            try_out(&fields, &payloads, keys);
        }
        for which in 0..payloads.len() {
            let mut payloads = payloads.clone();
            for at in (0..payloads[which].len()).step_by(97) {
                payloads[which][at] ^= 0x41;
                try_out(&fields, &payloads, 300);
            }
            payloads[which].pop();
            try_out(&fields, &payloads, 300);
            payloads.pop();
            try_out(&fields, &payloads, 300);
        }
        assert!(opened > 20, "{opened}");
    }
}

/// Without a shape it counts queries first, and then plans as if it had been given one.
#[test]
fn a_stack_that_knows_no_queries_counts_them_first() {
    let mut list = keys(3000);
    let builder = AdaptiveStacked::with_bits_per_key(10.0).secret(KEY).lifetime(400_000).sample(20_000);
    let mut filter = builder.clone().build(&mut list).unwrap();
    assert_eq!((filter.phase(), filter.layers()), (Phase::Remodelling, 1));
    let again = AdaptiveStacked::restore(filter.snapshot().unwrap()).unwrap();
    assert_eq!((again.phase(), again.layers()), (Phase::Remodelling, 1));
    let (events, _) = drive(&mut filter, &mut Load::new(1.0, 100_000, 1), &mut list, 200_000);
    assert_eq!(events[..2], [StackedOutcome::Replanned, StackedOutcome::Layered]);
    assert_eq!((filter.phase(), filter.layers()), (Phase::Stacked, 3));
    for (builder, option) in [(builder.clone().sample(0), "sample"), (builder.lifetime(0), "lifetime")] {
        let error = builder.build(&mut list).map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{option} 0: out of range; expected 1 to")), "{error}");
    }
}
