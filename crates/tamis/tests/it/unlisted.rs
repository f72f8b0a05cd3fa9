//! random configurations -> how often unlisted keys match, beside what `rate()` says and what was asked for.
//!
//! A configuration is a number of keys and of excluded keys, a kind, a layout, an effort, a goal and a seed. Its filter answers
//! for keys that were never listed, and two things must hold within five standard deviations: matches are as many as `rate()` says,
//! neither more nor fewer; and no more than the goal allows.
//!
//! **What a standard deviation is.** Matches among `N` unlisted keys are binomial, so the test takes the deviance of the binomial,
//! which is normal for small counts too. On top of it some tables have a rate of their own, and `rate()` is its mean: how many
//! of a Bloom filter's bits, or of the fingerprints that a cuckoo or quotient filter can hold, its keys have hit is chance.
//! `spread` derives that variance from the sizes; every other structure compares random bits with its table, and has no such
//! spread.
//!
//! **How often it fails by chance.** Five standard deviations, two-sided and once more for the goal, are about one in 10^6: of
//! 2,000 configurations one run in 600 would fail. The configurations are the same in every run.

use tamis::{Base, Effort, Error, Filter, Kind, Layout, Role};

use super::{ask_many, excludes, integers, mix};

/// Random numbers of one configuration.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 += 1;
        ((u128::from(mix(mix(self.0))) * u128::from(n)) >> 64) as u64
    }

    pub(super) fn of<T: Clone>(&mut self, choice: &[T]) -> T {
        choice[self.below(choice.len() as u64) as usize].clone()
    }

    /// Between two numbers, every octave as likely.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.below(1 << 32) as f64 / (1u64 << 32) as f64)
    }
}

#[derive(Clone, Debug)]
enum Goal {
    Fpr(f64),
    Exact,
    Allow(f64),
    BitsPerKey(f64),
    /// By hand, with bits before them.
    Columns(Vec<f64>, f64),
}

#[derive(Clone, Debug)]
#[allow(dead_code, reason = "the name is for the reader of a failure")]
struct Configuration {
    name: &'static str,
    kind: Kind,
    layout: Layout,
    effort: Effort,
    keys: u64,
    excluded: u64,
    goal: Goal,
    seed: u64,
}

impl Configuration {
    /// The configuration with this number. Kinds take turns, so that each comes as often as any other; those with most
    /// variants twice.
    fn new(number: u64) -> Configuration {
        let mut dice = Dice(number << 20);
        let turns = Kind::ALL.len() as u64 + 6;
        let turn = (number % turns) as usize;
        let (name, kind) = Kind::ALL.get(turn).copied().unwrap_or(("steered", Kind::Steered));
        let steered = matches!(kind, Kind::Auto | Kind::Steered);
        let keys = dice.between(1.0, 30_000.0) as u64;
        let excluded = match kind == Kind::Auto || excludes(kind) {
            true => dice.of(&[0, 1, 2, 5, 10, 100, keys / 10, keys, 3 * keys, 10 * keys]).min(100_000),
            false => 0,
        };
        let fpr = Goal::Fpr(dice.between(0.0005, 0.5));
        let goal = match dice.below(8) {
            0 | 1 if excluded > 0 => Goal::Exact,
            2 if excluded > 0 && (steered || matches!(kind, Kind::Chained(_))) => Goal::Allow(dice.between(0.001, 0.5)),
            3 => Goal::BitsPerKey(dice.between(4.0, 20.0)),
            4 | 5 if excluded > 0 && steered => {
                let slack = |dice: &mut Dice| dice.between(1.0 / 32.0, 4.0);
                let slacks = (0..=dice.below(5)).map(|_| slack(&mut dice)).collect();
                Goal::Columns(slacks, dice.of(&[0.0, 0.0, 1.0, 2.5]))
            }
            _ => fpr,
        };
        let layout = match steered {
            true => dice.of(&[Layout::Auto, Layout::Compact, Layout::Local, Layout::Local]),
            false => Layout::Auto,
        };
        let effort = dice.of(&[Effort::Fast, Effort::Balanced, Effort::Balanced, Effort::Smallest]);
        Configuration { name, kind, layout, effort, keys, excluded, goal, seed: dice.below(1 << 32) }
    }

    fn build(&self) -> Result<Filter, Error> {
        let build = tamis::build(integers(self.keys, 1)).exclude(integers(self.excluded, 2)).seed(self.seed);
        let build = build.kind(self.kind).layout(self.layout).effort(self.effort).threads(1);
        let build = match &self.goal {
            Goal::Fpr(rate) => build.fpr(*rate),
            Goal::Exact => build.exact(),
            Goal::Allow(share) => build.excluded_fpr(*share),
            Goal::BitsPerKey(bits) => build.bits_per_key(*bits),
            Goal::Columns(slacks, first) => {
                build.exact().papers(tamis::Papers::default().steered_columns(slacks).first_bits(*first))
            }
        };
        build.finish()
    }

    /// What is wrong with the filter, if it can be built.
    fn check(&self, unlisted: u64) -> Option<Vec<String>> {
        let filter = self.build().ok()?;
        let asked: Vec<u64> = integers(unlisted, 3).collect();
        let found = ask_many(&filter, &asked).into_iter().filter(|yes| *yes).count() as f64;
        let (n, spread) = (unlisted as f64, spread(&filter));
        let mut wrong = vec![];
        let mut compare = |what: &str, rate: f64, two_sided: bool| {
            let away = deviations(found, n, rate, spread);
            if if two_sided { away.abs() } else { away } > 5.0 {
                wrong.push(format!("{what} {rate:.6}, found {:.6}: {away:.1} sigma", found / n));
            }
        };
        compare("says", filter.fpr(), true);
        if let Goal::Fpr(asked) = self.goal {
            compare("asked for", asked, false);
            if filter.fpr() > asked * 1.0001 {
                wrong.push(format!("asked for {asked:.6}, says {:.6}", filter.fpr()));
            }
        }
        Some(wrong)
    }
}

/// By how many standard deviations `found` of `n` is more than a share of `rate`, where tables of the same size have rates with a
/// relative variance of `spread`.
fn deviations(found: f64, n: f64, rate: f64, spread: f64) -> f64 {
    let part = |found: f64, mean: f64| if found == 0.0 { 0.0 } else { found * (found / mean).ln() };
    let deviance = 2.0 * (part(found, n * rate) + part(n - found, n * (1.0 - rate)));
    let overdispersion = 1.0 + n * rate / (1.0 - rate) * spread;
    (deviance.max(0.0) / overdispersion).sqrt() * (found - n * rate).signum()
}

/// The relative variance of the rates of tables that are as large as the filter's first, and hold as many keys: what the
/// layers behind it let pass is a factor.
///
/// Keys throw balls into bins, and an unlisted key matches if the bins of its own `k` balls are all hit. Bloom: bits, k balls for a
/// key. Quotient: fingerprints, one ball. Cuckoo: fingerprints with their pairs of buckets; with an odd number of buckets one is
/// alone, and half as likely.
fn spread(filter: &Filter) -> f64 {
    let Some(layer) = filter.layers().next().filter(|layer| layer.role == Role::Positive) else { return 0.0 };
    let number = |i: usize| -> f64 {
        let numbers = layer.details.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
        numbers.map(|word| word.parse::<f64>().unwrap()).nth(i).unwrap()
    };
    let keys = filter.len() as f64;
    let alike = |bins: f64| [(bins, 1.0 / bins), (0.0, 0.0)];
    match layer.structure {
        "classic Bloom" => number(0).powi(2) * hit(number(0) * keys, alike(number(1))),
        "quotient" => hit(keys, alike(number(0) * number(1).exp2())),
        "cuckoo" => {
            let (buckets, values) = (number(0), number(1).exp2() - 1.0);
            let pairs = ((buckets / 2.0).floor() * values, 2.0 / (buckets * values));
            hit(keys, [pairs, (buckets % 2.0 * values, 1.0 / (buckets * values))])
        }
        "split-block Bloom" => split_block(keys, layer.bytes as f64 / 32.0),
        _ => 0.0,
    }
}

/// The relative variance of the probability that a ball falls into a bin that one of `balls` balls has hit, for two classes of
/// (bins, probability of each). A bin stays empty with `(1 - p)^balls`, two of them with `(1 - p - q)^balls`; the variance of a sum is
/// that of all pairs.
fn hit(balls: f64, classes: [(f64, f64); 2]) -> f64 {
    let empty = |p: f64| (balls * (-p).ln_1p()).exp();
    let (mut mean, mut variance) = (0.0, 0.0);
    for (i, (bins, p)) in classes.into_iter().enumerate() {
        mean += bins * p * (1.0 - empty(p));
        variance += bins * p * p * empty(p) * (1.0 - empty(p));
        for (j, (others, q)) in classes.into_iter().enumerate() {
            let both = (balls * (-p * q / ((1.0 - p) * (1.0 - q))).ln_1p()).exp_m1();
            variance += bins * (others - f64::from(u8::from(i == j))) * p * q * empty(p) * empty(q) * both;
        }
    }
    variance.max(0.0) / (mean * mean)
}

/// The rate of a split-block filter is the mean over its blocks of a product over eight lanes of 32 bits. A block got `j` keys with
/// Poisson's probability. A bit of a lane is then hit with `1 - (31/32)^j`, and two bits that are drawn with `both`: either is the
/// other, or two are hit.
fn split_block(keys: f64, blocks: f64) -> f64 {
    let load = keys / blocks;
    let (mut weight, mut mean, mut square) = ((-load).exp(), 0.0, 0.0);
    for j in 0..20_000 {
        let (one, two) = ((31.0f64 / 32.0).powi(j), (30.0f64 / 32.0).powi(j));
        let both = (1.0 - one) / 32.0 + (1.0 - 2.0 * one + two) * 31.0 / 32.0;
        mean += weight * (1.0 - one).powi(8);
        square += weight * both.powi(8);
        weight *= load / f64::from(j + 1);
    }
    (square / (mean * mean) - 1.0) / blocks
}

#[test]
fn unlisted_keys_match_as_often_as_the_filter_says() {
    let (count, unlisted) = match (std::env::var("TAMIS_RATE_CONFIGURATIONS"), std::env::var_os("TAMIS_SLOW")) {
        (Ok(count), _) => (count.parse().unwrap(), 400_000),
        (_, Some(_)) => (390, 200_000),
        _ => (78, 60_000),
    };
    let built = keep((0..count).map(Configuration::new), unlisted);
    println!("{built} of {count} configurations can be built");
    assert!(10 * built > 8 * count, "{built} of {count}");
}

/// Checks configurations and says how many of them can be built.
fn keep(configurations: impl Iterator<Item = Configuration>, unlisted: u64) -> u64 {
    let (mut built, mut wrong) = (0, vec![]);
    for (number, configuration) in configurations.enumerate() {
        if let Some(found) = configuration.check(unlisted) {
            built += 1;
            wrong.extend(found.into_iter().map(|what| format!("{number}, {configuration:?}: {what}")));
        }
    }
    assert!(wrong.is_empty(), "{} of {built}:\n{}", wrong.len(), wrong.join("\n"));
    built
}

/// Few excluded keys steer few rows, and leave a layer of a cascade a key or two.
#[test]
fn few_excluded_keys_change_nothing() {
    let (kind, layout, effort) = (Kind::Steered, Layout::Local, Effort::Balanced);
    let steered =
        Configuration { name: "steered", kind, layout, effort, keys: 20_000, excluded: 1, goal: Goal::Exact, seed: 0 };
    let mut all = vec![];
    for excluded in [1, 2, 10, 100, 20_000] {
        for goal in [0.1, 0.01].map(Goal::Fpr) {
            all.push(Configuration { excluded, goal, ..steered });
        }
        for slacks in [&[0.25][..], &[0.25; 5], &[0.05; 5], &[1.0; 5], &[4.0; 3]] {
            all.push(Configuration { excluded, goal: Goal::Columns(slacks.into(), 0.0), ..steered });
        }
        for seed in 0..4 {
            let (name, kind) = ("cascade-bloom", Kind::Cascade(Base::Bloom));
            let goal = Goal::Fpr(0.1);
            all.push(Configuration { name, kind, layout: Layout::Auto, excluded, goal, seed, ..steered });
        }
    }
    let count = all.len() as u64;
    assert_eq!(keep(all.into_iter(), 100_000), count);
}
