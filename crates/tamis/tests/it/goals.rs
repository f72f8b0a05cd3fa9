//! goals that are numbers -> kept by every file that was built, and not by files on average; equal inputs -> equal bytes.
//!
//! The long run is named in CONTRIBUTING.md.

use std::fmt::Write as _;

use tamis::internals::with_shard_keys;
use tamis::{Effort, Error, Filter, FilterBuilder, Kind, Options, WorkloadReport};

use super::{excludes, integers, mix};

/// What every file keeps, and a test of each.
const PROMISES: &[(&str, fn())] = &[
    ("a workload goal is met by the workload that was given", frequent_queries),
    ("a goal that cannot be met is an error that has the best rate", unreachable_goals),
    ("a workload whose weights are all 1 is a list, and says so", lists),
    ("fpr is at most that, in small shards too", small_shards),
    ("other salts are part of the file: it can be changed, merged and built upon", salts_are_kept),
    ("equal members, inserted at once, make equal bytes in filters that change", equal_first_members),
    ("sets by name make equal bytes for pairs in any order", sets_by_name),
];

#[test]
fn promises_are_kept() {
    for (promise, test) in PROMISES {
        println!("{promise}");
        test();
    }
}

/// Builds in memory, with the report of the workload.
fn built(build: FilterBuilder<'_>) -> Result<(Filter, WorkloadReport), Error> {
    let (filter, report) = build.finish_with_report()?;
    Ok((filter, report.workload.unwrap()))
}

/// The share of these queries that match, and of unlisted keys in their share of all queries: by hand.
fn workload_fpr(filter: &Filter, queries: impl Iterator<Item = (u64, f64)>, unlisted: f64) -> f64 {
    let (mut passing, mut all) = (0.0, 0.0);
    for (key, weight) in queries {
        all += weight;
        passing += if filter.contains(key).unwrap() { weight } else { 0.0 };
    }
    (1.0 - unlisted) * passing / all + unlisted * filter.fpr()
}

/// The first of 3,000 queries is for 38 % of the workload: with some seeds it matches by chance, and then with other salts it does not.
fn frequent_queries() {
    let queries = || integers(3000, 2).zip(1u32..).map(|(key, rank)| (key, 1e6 / f64::from(rank).powf(1.5)));
    let build = |seed: u64| tamis::build(integers(2000, 1)).seed(seed).workload(queries()).workload_fpr(0.01);
    let mut sizes = vec![];
    for seed in 0..400 {
        let (filter, report) = built(build(seed)).unwrap();
        let found = workload_fpr(&filter, queries(), report.unlisted_share);
        assert!(found <= 1.02 * 0.01, "seed {seed}: {found}");
        assert!((found - report.measured.workload_fpr).abs() < 1e-5, "seed {seed}: {found} {report:?}");
        assert!(integers(2000, 1).all(|key| filter.contains(key) == Ok(true)), "seed {seed}");
        sizes.push(filter.as_bytes().len());
    }
    sizes.sort_unstable();
    assert!(sizes[399] as f64 <= 1.01 * sizes[0] as f64, "{} {}", sizes[0], sizes[399]);
    // Into a file and a stream as in memory.
    let file = tempfile::NamedTempFile::new().unwrap();
    for seed in 0..20 {
        let (filter, _) = built(build(seed)).unwrap();
        let mut stream = vec![];
        build(seed).finish_into(&mut stream).unwrap();
        build(seed).finish_to(file.path()).unwrap();
        assert!(stream == filter.as_bytes() && std::fs::read(file.path()).unwrap() == stream);
    }
}

/// The planner knows what a kind can reach; what only the built filter shows is tested next to it.
fn unreachable_goals() {
    let build = |kind| tamis::build(integers(40, 1)).kind(kind).workload(integers(60, 2).map(|key| (key, 2.0)));
    for (kind, goal, least) in [(Kind::Ribbon, 1e-12, "2.4e-10"), (Kind::Cuckoo, 1e-12, "1e-9")] {
        let error = build(kind).workload_fpr(goal).finish().unwrap_err().to_string();
        assert!(error.contains("expected at least") && error.contains(least), "{error}");
    }
}

/// Every key once: no log, in which all queries would be for other keys from now on.
fn lists() {
    let once = || integers(10_000, 2).map(|key| (key, 1.0));
    let build = || tamis::build(integers(2000, 1)).workload(once());
    let (filter, report) = built(build().bits_per_key(12.0)).unwrap();
    assert!(report.warnings.len() == 1 && report.warnings[0].contains("all weights are 1; did you mean exclude?"));
    assert_eq!((report.unlisted_share, report.covered), (0.0, 10_000));
    assert!(once().all(|(key, _)| filter.contains(key) == Ok(false)));
    // Members among them count for nothing; twice the same key is a log, and so is a share that was given.
    let (_, members) = built(build().workload(integers(100, 1).map(|key| (key, 1.0)))).unwrap();
    assert_eq!((members.warnings.len(), members.unlisted_share), (1, 0.0));
    for more in [(mix(1 << 40), 2.0), (mix(7), 2.0)] {
        let (_, log) = built(build().workload([more])).unwrap();
        assert!(log.warnings.is_empty() && log.unlisted_share > 0.99, "{more:?}: {log:?}");
    }
    let (_, sample) = built(build().unlisted_share(0.5)).unwrap();
    assert!(sample.warnings.is_empty() && sample.unlisted_share == 0.5);
}

/// A Bloom filter of few keys needs more bits for each of them, and shards may have few.
fn small_shards() {
    for &(name, kind) in Kind::ALL.iter().filter(|(_, kind)| !matches!(kind, Kind::Stacked(_))) {
        for rate in [1e-9, 1e-6, 1e-4, 0.001, 0.01, 0.1, 0.3] {
            for shard_keys in [40, 100, 400, 3000] {
                let build =
                    with_shard_keys(Options::default(), shard_keys).kind(kind).fpr(rate).build(integers(3000, 1));
                let build = if excludes(kind) { build.exclude(integers(6000, 3)) } else { build };
                let fpr = build.finish().unwrap().fpr();
                assert!(fpr <= rate, "{name}, {shard_keys} keys in a shard: {fpr} for {rate}");
            }
        }
    }
}

/// A first attempt that misses its goal leads to other salts, which a filter that is opened to be changed keeps.
fn salts_are_kept() {
    use tamis::{Base, Bloom, Chained, Cuckoo, Quotient, Stacked};
    let queries = [(mix(3 << 40), 1e6), (mix(3 << 40 | 1), 2.0)];
    for kind in
        [Kind::Bloom, Kind::ClassicBloom, Kind::Cuckoo, Kind::Quotient, Kind::Stacked(Base::Bloom), Kind::Ribbon]
    {
        let members = |set: u64| integers(300, 100 + set);
        let build = |set| tamis::build(members(set)).kind(kind).workload(queries).unlisted_share(0.2);
        let filters: Vec<Filter> = (0..40).map(|set| build(set).workload_fpr(0.2).finish().unwrap()).collect();
        // The frequent query matches by chance in one of five, so some of them need other salts: two bytes more.
        let size = |filter: &Filter| filter.as_bytes().len();
        let plain = filters.iter().min_by_key(|filter| size(filter)).unwrap();
        let other = filters.iter().filter(|filter| size(filter) == size(plain) + 2).count();
        assert!(kind == Kind::Stacked(Base::Bloom) || (1..30).contains(&other), "{kind:?}: {other} with other salts");
        for (filter, set) in filters.iter().zip(0..) {
            let bytes = filter.as_bytes().to_vec();
            let again = match kind {
                Kind::Bloom | Kind::ClassicBloom => Bloom::restore(bytes).unwrap().snapshot(),
                Kind::Cuckoo => Cuckoo::restore(bytes).unwrap().snapshot(),
                Kind::Quotient => Quotient::restore(bytes).unwrap().snapshot(),
                Kind::Stacked(_) => Stacked::restore(bytes).unwrap().snapshot(),
                _ => Chained::over_built(filter, members(set)).unwrap().snapshot(),
            };
            let again = Filter::open(again.unwrap()).unwrap();
            assert!(members(set).all(|key| again.contains(key) == Ok(true)), "{kind:?}");
            let mut others = integers(3000, 9).chain(queries.map(|(key, _)| key));
            let alike = |key| again.contains(key) == filter.contains(key) || kind == Kind::Ribbon;
            assert!(others.all(alike), "{kind:?}: other answers");
        }
        if kind == Kind::Quotient {
            let restored = |filter: &Filter| Quotient::restore(filter.as_bytes().to_vec()).unwrap();
            let other = filters.iter().find(|filter| size(filter) == size(plain) + 2).unwrap();
            let error = restored(plain).merge(&restored(other)).unwrap_err().to_string();
            assert!(error.contains("their salts"), "{error}");
        }
    }
}

/// What is inserted later leaves its order in the table, and so does what is inserted one by one.
fn equal_first_members() {
    use tamis::{Bloom, Chained, Cuckoo, Hasher, Quotient};
    let snapshot = |filter: Result<Chained, Error>, turn: usize| {
        let mut filter = filter.unwrap();
        let mut members: Vec<u64> = integers(3000, 1).collect();
        members.rotate_left(turn);
        filter.insert_many(members).unwrap();
        integers(3000, 2).for_each(|key| assert!(filter.exclude(key).is_ok()));
        assert!(integers(3000, 1).all(|key| filter.contains(key) == Ok(true)));
        assert!(integers(3000, 2).all(|key| filter.contains(key) == Ok(false)));
        let snapshot = filter.snapshot().unwrap();
        assert_eq!(Chained::restore(snapshot.clone()).unwrap().snapshot().unwrap(), snapshot);
        snapshot
    };
    let bloom = || Chained::over(Bloom::with_capacity(4000).build::<u64>().unwrap());
    let quotient = || Chained::over(Quotient::with_capacity(4000).build::<u64>().unwrap());
    let cuckoo = |hasher| Chained::over(Cuckoo::with_capacity(4000).hasher(hasher).build::<u64>().unwrap());
    assert!(snapshot(bloom(), 0) == snapshot(bloom(), 77));
    assert!(snapshot(quotient(), 0) == snapshot(quotient(), 77));
    for hasher in [Hasher::seeded(0), Hasher::seeded(5), Hasher::secret([1, 2])] {
        assert!(snapshot(cuckoo(hasher.clone()), 0) == snapshot(cuckoo(hasher), 77));
    }
}

fn sets_by_name() {
    use tamis::sets::{Editor, Kind, stream};
    let mut pairs: Vec<(u64, String)> = (0..3000).map(|i| (mix(i % 1000), format!("set {}", mix(i) % 40))).collect();
    for kind in [Kind::Frozen, Kind::Bloom, Kind::Cuckoo] {
        let build = |pairs: &[(u64, String)]| tamis::sets(pairs.to_vec()).kind(kind).by_name().finish().unwrap();
        let first = build(&pairs);
        assert!(first.names().is_sorted_by(|a, b| a.1 < b.1), "{kind:?}");
        let limits = tamis::Options::default().limits(tamis::Limits::default().memory(0)).threads(1);
        for turn in [1, 1234] {
            pairs.rotate_left(turn);
            assert!(build(&pairs).as_bytes() == first.as_bytes(), "{kind:?}");
            let small = limits.clone().sets(pairs.to_vec()).kind(kind).by_name().finish().unwrap();
            assert!(small.as_bytes() == first.as_bytes(), "{kind:?}: in little memory");
        }
        for (key, name) in &pairs {
            assert!(first.find(*key).unwrap().iter().any(|&id| first.name(id) == Some(name)), "{kind:?} {key}");
        }
        // Sets that were there keep their numbers, and new ones come after them, by name.
        let add = |names: &[&str]| {
            let mut more = stream().like(&first).by_name().start();
            for (key, name) in (5000u64..).zip(names) {
                let set = more.set(name).unwrap();
                more.push(key, set).unwrap();
                more.push(key + 100, set).unwrap();
            }
            let mut editor = Editor::new(&first).unwrap();
            editor.add(more).unwrap();
            tamis::Sets::open(editor.snapshot().unwrap()).unwrap()
        };
        let after = add(&["zoo", "aunt", "set 7"]);
        assert_eq!([after.id("set 7"), after.id("aunt"), after.id("zoo")], [first.id("set 7"), Some(40), Some(41)]);
        assert_eq!(
            (after.find(5001u64).unwrap().contains(&40), after.find(5000u64).unwrap().contains(&41)),
            (true, true)
        );
    }
}

/// A build that is drawn: its members, queries with their weights, and goals.
struct Drawn {
    text: String,
    kind: Kind,
    goal: f64,
    cap: f64,
    weights: Vec<f64>,
    number: u64,
    keys: u64,
    excluded: u64,
    unlisted: Option<f64>,
    options: Options<'static>,
}

/// Numbers without a pattern.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Each octave as likely as the others.
    fn size(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.share())
    }

    fn weights(&mut self, text: &mut String) -> Vec<f64> {
        let n = self.size(1.0, 20_000.0) as u64;
        let ranks = || (1..=n).map(|rank| rank as f64);
        match self.below(6) {
            0 => {
                let exponent = 2.0 * self.share();
                let _ = write!(text, "{n} queries of weight 1e6 / i^{exponent:.2}");
                ranks().map(|rank| (1e6 / rank.powf(exponent)).max(1e-5)).collect()
            }
            1 => {
                let exponent = 2.0 * self.share();
                let _ = write!(text, "{n} queries, 1e4 / i^{exponent:.2} each, counted");
                ranks().map(|rank| (1e4 / rank.powf(exponent)).ceil()).collect()
            }
            2 => {
                let weight = 1.0 + self.below(4) as f64;
                let _ = write!(text, "{n} queries of weight {weight}");
                vec![weight; n as usize]
            }
            3 => {
                let _ = write!(text, "{n} queries");
                vec![1.0; n as usize]
            }
            4 => {
                let (heavy, share) = (self.size(2.0, 1e5).floor(), self.size(1e-3, 0.5));
                let _ = write!(text, "{n} queries of weight 2, {share:.3} of them {heavy}");
                (0..n).map(|_| if self.share() < share { heavy } else { 2.0 }).collect()
            }
            _ => {
                let exponent = 0.501 + 1.5 * self.share();
                let _ = write!(text, "a log of {} lines and exponent {exponent:.2}", 4 * n);
                let mut counts = vec![0.0; n as usize];
                for _ in 0..4 * n {
                    let (share, power) = (self.share(), 1.0 - exponent);
                    let rank = ((n as f64).powf(power) * share + 1.0 - share).powf(1.0 / power) as u64;
                    counts[rank.clamp(1, n) as usize - 1] += 1.0;
                }
                counts
            }
        }
    }

    fn build(number: u64) -> Drawn {
        let mut draw = Draw(mix(number + 1));
        let keys = draw.size(1.0, 20_000.0) as u64;
        let mut text = format!("build {number}: {keys} keys, ");
        let weights = draw.weights(&mut text);
        let goal = draw.size(1e-5, 0.3);
        let cap = (draw.below(4) == 0).then(|| draw.size(1e-4, 1.0));
        let unlisted = match draw.below(4) {
            0 => Some(0.0),
            1 => Some(draw.share()),
            _ => None,
        };
        let kind =
            if draw.below(2) == 0 { Kind::Auto } else { Kind::ALL[draw.below(Kind::ALL.len() as u64) as usize].1 };
        let effort = [Effort::Fast, Effort::Balanced, Effort::Smallest][draw.below(3) as usize];
        let some = draw.below(6) == 0 && (kind == Kind::Auto || excludes(kind));
        let excluded = if some { draw.size(1.0, 5000.0) as u64 } else { 0 };
        let mut options = Options::default().kind(kind).effort(effort).workload_fpr(goal).threads(1);
        if draw.below(5) == 0 {
            options = with_shard_keys(options, keys / 5 + 1);
            text += ", in shards";
        }
        let seed = draw.next();
        options = if draw.below(6) == 0 { options.secret([seed, 1]) } else { options.seed(seed) };
        options = if let Some(cap) = cap { options.fpr(cap) } else { options };
        options = if let Some(share) = unlisted { options.unlisted_share(share) } else { options };
        let _ = write!(
            text,
            ", goal {goal:.2e}, fpr {cap:?}, unlisted {unlisted:?}, {excluded} excluded, {kind:?}, {effort:?}"
        );
        let cap = cap.unwrap_or(goal);
        Drawn { text, kind, goal, cap, weights, number, keys, excluded, unlisted, options }
    }
}

impl Drawn {
    fn queries(&self) -> impl Iterator<Item = (u64, f64)> + Clone {
        integers(self.weights.len() as u64, 3 * self.number + 5).zip(self.weights.clone())
    }

    fn builder(&self) -> FilterBuilder<'static> {
        let queries: Vec<_> = self.queries().collect();
        let build = self.options.clone().build(integers(self.keys, 3 * self.number + 4)).workload(queries);
        if self.excluded == 0 { build } else { build.exclude(integers(self.excluded, 3 * self.number + 6)) }
    }
}

/// The law of goals: 12,000 random builds with `TAMIS_GOALS=12000`.
#[test]
fn random_builds_meet_their_workload_goal() {
    let builds = std::env::var("TAMIS_GOALS").map_or(300, |builds| builds.parse().expect("TAMIS_GOALS: a number"));
    let (mut worst, mut reported) = ([0.0f64; 3], 0u64);
    for number in 0..builds {
        let drawn = Draw::build(number);
        let what = &drawn.text;
        // Of a log every key may have come to nothing.
        if drawn.weights.iter().all(|&weight| weight == 0.0) {
            continue;
        }
        let (filter, report) = match built(drawn.builder()) {
            Ok(both) => both,
            Err(error) => panic!("{what}: {error}"),
        };
        let found = workload_fpr(&filter, drawn.queries(), report.unlisted_share);
        assert!(found <= 1.02 * drawn.goal, "{what}: {found}");
        assert!((found - report.measured.workload_fpr).abs() <= 1e-5 * found + 1e-12, "{what}: {found} {report:?}");
        // The layers of a stack behind the first hold what passes by chance, and its rate follows from what they hold.
        let stack = matches!(drawn.kind, Kind::Stacked(_));
        let fpr = filter.fpr() / drawn.cap;
        worst[usize::from(stack) + 1] = fpr.max(worst[usize::from(stack) + 1]);
        assert!(fpr <= if stack { 1.02 } else { 1.0 + 1e-9 }, "{what}: {}", filter.fpr());
        assert!(drawn.unlisted.is_none_or(|share| share == report.unlisted_share), "{what}");
        assert!(integers(drawn.keys, 3 * number + 4).all(|key| filter.contains(key) == Ok(true)), "{what}");
        assert!(integers(drawn.excluded, 3 * number + 6).all(|key| filter.contains(key) == Ok(false)), "{what}");
        if number % 8 == 0 {
            let again = drawn.builder().threads(2).finish().unwrap();
            assert!(again.as_bytes() == filter.as_bytes(), "{what}: other bytes");
        }
        worst[0] = worst[0].max(found / drawn.goal);
        reported += 1;
    }
    let [goal, fpr, stacked] = worst;
    println!("{reported} builds, at worst {goal:.4} of the goal, {fpr:.4} of the fpr, {stacked:.4} in a stack");
}
