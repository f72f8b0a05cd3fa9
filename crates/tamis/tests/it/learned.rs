//! a model before filters -> the promises of plain filters, in fewer bytes where keys can be told apart by their looks.

use std::collections::HashSet;
use std::path::Path;

use bytes::Bytes;
use tamis::learned::{Built, Grams, LearnBuilder, LearnReport, Learned, Scorer};
use tamis::{Base, Filter, FormatError, Kind, OnConflict, Options};

use super::golden::SECRET;
use super::mix;
use super::repair::{BITS, FORM, KEY_TYPE, Parts};

/// Names that look like members, most of them.
pub(crate) fn members(n: u64) -> Vec<String> {
    let name = |i: u64| {
        if mix(i).is_multiple_of(10) {
            plain_name(mix(i))
        } else {
            format!("login-{}.{}verify.xyz", mix(i) % 99_991, i)
        }
    };
    (0..n).map(name).collect()
}

/// Names that look like excluded keys, and a few like members.
pub(crate) fn excluded(n: u64) -> Vec<String> {
    excluded_from(0, n)
}

pub(crate) fn excluded_from(first: u64, n: u64) -> Vec<String> {
    let name = |i: u64| if mix(!i).is_multiple_of(50) { format!("login-{i}.xyz") } else { plain_name(mix(!i)) };
    (first..first + n).map(name).collect()
}

fn plain_name(number: u64) -> String {
    let letters = (0..9).map(|at| char::from(b'a' + (number >> (5 * at) & 15) as u8 + (number >> 50 & 3) as u8));
    format!("{}{number:x}.com", letters.collect::<String>())
}

fn strict<'a>(members: &'a [String], excluded: &'a [String]) -> LearnBuilder<'a> {
    tamis::stream().exact().learn(members, excluded)
}

fn learned((built, report): (Built, LearnReport)) -> (Learned, LearnReport) {
    match built {
        Built::Learned(filter) => (filter, report),
        Built::Plain(_) => panic!("the model did not pay: {report:?}"),
    }
}

/// Members, excluded keys: as they are; by one and in batches; from bytes that were opened again.
#[track_caller]
fn keeps(filter: &Learned, members: &[String], excluded: &[String]) {
    let filter = Learned::<Grams>::open(filter.as_bytes().to_vec()).unwrap();
    let all: Vec<&String> = members.iter().chain(excluded).collect();
    let mut answers = vec![false; all.len()];
    filter.contains_into(&all, &mut answers).unwrap();
    for (at, (key, answer)) in all.iter().zip(answers).enumerate() {
        assert_eq!((filter.contains(key), answer), (at < members.len(), at < members.len()), "{key}");
    }
}

#[test]
fn strict_filters_are_right_about_every_listed_key_and_smaller() {
    let (members, excluded) = (members(6000), excluded(9000));
    let kinds =
        [Kind::Auto, Kind::Steered, Kind::Chained(Base::Ribbon), Kind::Naive(Base::Fuse), Kind::Cascade(Base::Bloom)];
    for kind in kinds {
        let options = tamis::stream().exact().kind(kind);
        let (filter, report) = learned(options.learn(&members, &excluded).keep_model().finish().unwrap());
        keeps(&filter, &members, &excluded);
        assert_eq!((filter.len(), report.excluded_matches), (6000, 0), "{kind}");
        assert!(report.bytes as f64 <= 0.8 * report.plain_bytes as f64 || kind != Kind::Auto, "{kind}: {report:?}");
        let inside: u64 = filter.classes().map(|class| class.bytes).sum();
        assert!(filter.classes().len() > 1 && inside + filter.model_len() < report.bytes, "{kind}: {report:?}");
    }
}

/// A goal for unlisted keys holds in every class, so it holds for keys of any kind: a shifted workload.
#[test]
fn the_rate_holds_for_keys_that_look_like_neither() {
    let (members, excluded) = (members(6000), excluded(6000));
    let options = tamis::stream().fpr(0.02);
    let (filter, _) = learned(options.learn(&members, &excluded).keep_model().finish().unwrap());
    keeps(&filter, &members, &excluded);
    let others: [fn(u64) -> String; 3] =
        [|i| format!("login-{i}.verify.xyz"), |i| plain_name(mix(i << 30)), |i| format!("{i} of another language é")];
    for other in others {
        let matched = (0..20_000).filter(|&i| filter.contains(other(i + (1 << 32)))).count();
        // Five standard deviations of a share of .02 are .005.
        assert!(matched <= 500, "{matched} of 20,000 like {}", other(0));
    }
    assert!(filter.fpr() <= 0.0201, "{}", filter.fpr());
}

/// What accepting gives up: of a workload that shifts to keys that look like members nearly all match, however low the rate.
#[test]
fn accepting_filters_match_keys_that_look_like_members() {
    let (members, excluded) = (members(6000), excluded(6000));
    let shifted: Vec<String> = (0..5000u64).map(|i| format!("login-{i}.{}verify.xyz", i + (1 << 40))).collect();
    let count = |filter: &Learned| shifted.iter().filter(|key| filter.contains(key)).count();
    let build = |builder: LearnBuilder<'_>| learned(builder.keep_model().finish().unwrap()).0;
    let options = || tamis::stream().fpr(0.02);
    let accepting = build(options().learn(&members, &excluded).accept(0.03));
    assert!(count(&accepting) > 4000 && accepting.fpr() == 1.0, "{}", count(&accepting));
    // Strict: five standard deviations of 2 % are 50.
    let strict = build(options().learn(&members, &excluded));
    assert!(count(&strict) <= 150 && strict.fpr() <= 0.0201, "{}", count(&strict));
    assert!(members.iter().all(|key| accepting.contains(key) && strict.contains(key)));
}

#[test]
fn accepting_filters_match_about_the_share() {
    let (members, excluded, later) = (members(12_000), excluded(16_000), excluded_from(1 << 20, 16_000));
    let cases = [
        (Kind::Auto, 1.0),
        (Kind::Chained(Base::Fuse), 1.0),
        (Kind::Naive(Base::Fuse), 1.0),
        (Kind::Bloom, 0.01),
        (Kind::ClassicBloom, 0.01),
    ];
    for (kind, fpr) in cases {
        let options = tamis::stream().kind(kind);
        let options = if fpr < 1.0 { options.fpr(fpr) } else { options.exact() };
        let builder = options.learn(&members, &excluded).accept(0.03).classes(1).keep_model();
        let (filter, report) = learned(builder.finish().unwrap());
        assert!(members.iter().all(|key| filter.contains(key)), "{kind}");
        // The threshold is that of 2,000 keys: five standard deviations of their share, and of the filter's.
        let most = 0.03 + 5.0 * (0.03f64 * 0.97 / 2000.0).sqrt() + if fpr < 1.0 { 2.0 * fpr } else { 0.0 };
        assert!(report.excluded_matches as f64 <= most * 16_000.0, "{kind}: {}", report.excluded_matches);
        assert_eq!((filter.classes().len(), filter.fpr()), (2, 1.0), "{kind}");
        if fpr < 1.0 {
            let found = later.iter().filter(|key| filter.contains(key)).count() as f64 / 16_000.0;
            assert!(found <= most, "{kind}: {found}");
        }
    }
}

#[test]
fn a_sandwich_has_a_filter_in_front() {
    let (members, excluded) = (members(3000), excluded(30_000));
    for kind in [Kind::Auto, Kind::Bloom] {
        let options = tamis::stream().kind(kind).fpr(0.1);
        let builder = options.learn(&members, &excluded).sandwich(0.25).keep_model();
        let builder = if kind == Kind::Bloom { builder.accept(0.1) } else { builder };
        let (filter, _) = learned(builder.finish().unwrap());
        let front = filter.front().unwrap();
        assert!(front.len() == 3000 && front.fpr() <= 0.25);
        match kind {
            Kind::Auto => keeps(&filter, &members, &excluded),
            _ => assert!(members.iter().all(|key| filter.contains(key))),
        }
        let rejected = excluded.iter().find(|key| front.contains(key) == Ok(false)).unwrap();
        assert!(!filter.contains(rejected));
    }
}

/// Against sets, on keys that are hard to score: empty, of a megabyte, of zeros, alike.
#[test]
fn odd_keys_are_keys() {
    let long = |first: u8| [vec![first], vec![b'x'; 1 << 20]].concat();
    let odd =
        [vec![], vec![0], vec![0, 0], vec![2], vec![3], vec![255; 300], long(b'a'), long(b'b'), long(b'c'), long(b'd')];
    for size in [1, 2, 5] {
        let (members, excluded) = (&odd[..size], &odd[size..]);
        let (filter, _) = learned(tamis::stream().exact().learn(members, excluded).keep_model().finish().unwrap());
        let set: HashSet<&Vec<u8>> = members.iter().collect();
        assert!(odd.iter().all(|key| filter.contains(key) == set.contains(key)), "{size} members");
    }
    // The first 256 bytes are equal, so are the scores, and the filter tells them apart.
    let (filter, _) = learned(tamis::stream().exact().learn(&odd[6..7], &odd[7..8]).keep_model().finish().unwrap());
    assert_eq!((filter.contains(&odd[6]), filter.contains(&odd[7])), (true, false));
}

/// Where looks say nothing the plain filter is built, which opens as a filter.
#[test]
fn a_model_that_does_not_pay_is_left_out() {
    let keys: Vec<String> = (0..4000).map(|i| format!("{:016x}", mix(i))).collect();
    let (members, excluded) = keys.split_at(2000);
    let (built, report) = strict(members, excluded).finish().unwrap();
    let Built::Plain(filter) = &built else { panic!("{report:?}") };
    let plain = tamis::build(members).exclude(excluded).exact().finish().unwrap();
    assert!(
        filter == &plain && report.plain_bytes == plain.as_bytes().len() as u64 && report.bytes >= report.plain_bytes
    );
    assert!(members.iter().all(|key| built.contains(key) == Ok(true)));
    assert!(excluded.iter().all(|key| built.contains(key) == Ok(false)));
}

#[test]
fn any_order_and_any_threads_give_the_same_bytes() {
    let (mut members, mut excluded) = (members(3000), excluded(5000));
    let (first, _) = strict(&members, &excluded).finish().unwrap();
    members.reverse();
    members.extend_from_within(..100);
    excluded.sort();
    for threads in [1, 3] {
        let options = Options::default().exact().threads(threads);
        let (other, _) = options.learn(&members, &excluded).finish().unwrap();
        assert!(first.as_bytes() == other.as_bytes(), "{threads} threads");
    }
}

#[test]
fn what_cannot_be_learned_is_an_error() {
    let (some, none) = (members(50), vec![]);
    let other = excluded(50);
    let says = |builder: LearnBuilder<'_>| builder.finish().err().map(|error| error.to_string()).unwrap_or_default();
    let one_kind = "learn: members alone or excluded keys alone; expected both";
    assert_eq!([says(strict(&some, &none)), says(strict(&none, &some)), says(strict(&none, &none))], [one_kind; 3]);
    assert!(says(strict(&some, &some[..1])).starts_with("exclude: 1 key is also a member"));
    let keep = tamis::stream().exact().on_conflict(OnConflict::Keep);
    let both = [&other[..], &some[..1]].concat();
    let (built, _) = keep.learn(&some, &both).keep_model().finish().unwrap();
    assert_eq!(built.contains(&some[0]), Ok(true));
    let goal = tamis::stream().bits_per_key(9.0).learn(&some, &other);
    assert_eq!(says(goal), "learn: no effect; expected exact, fpr or excluded_fpr as the goal");
    for rate in [0.0, 1.0, -0.5, f64::NAN] {
        assert!(says(strict(&some, &other).accept(rate)).contains(": out of range; expected 0 to 1"), "{rate}");
        assert!(says(strict(&some, &other).sandwich(rate)).starts_with("sandwich "), "{rate}");
    }
    assert_eq!(says(strict(&some, &other).classes(0)), "classes 0: out of range; expected 1 to 16");
    assert_eq!(says(strict(&some, &other).classes(17)), "classes 17: out of range; expected 1 to 16");
    assert_eq!(says(strict(&some, &other).training_share(1.5)), "training_share 1.5: out of range; expected 0 to 1");
    // A filter that knows members alone cannot be strict.
    assert!(says(tamis::stream().kind(Kind::Bloom).learn(&some, &other).keep_model()).contains("bloom"));
    // Trained on nothing: all scores are 0, and the filters do the rest.
    let (filter, report) = learned(strict(&some, &other).training_share(0.0).keep_model().finish().unwrap());
    assert_eq!(report.examples, 0);
    keeps(&filter, &some, &other);
    let cancel = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    assert_eq!(says(tamis::stream().exact().cancel(cancel).learn(&some, &other)), "cancelled");
}

#[test]
fn secrets_are_in_the_file_or_outside() {
    let (members, excluded) = (members(2000), excluded(2000));
    let options = tamis::stream().exact().secret(SECRET).metadata("a note");
    let (filter, _) = learned(options.clone().learn(&members, &excluded).keep_model().finish().unwrap());
    assert_eq!(filter.metadata(), b"a note");
    keeps(&filter, &members, &excluded);
    let (filter, _) = learned(options.secret_beside().learn(&members, &excluded).keep_model().finish().unwrap());
    let file = filter.into_bytes();
    assert_eq!(Learned::<Grams>::open(file.clone()).err(), Some(FormatError::Secret { given: false }));
    assert_eq!(
        Learned::<Grams>::open_with_secret(file.clone(), [1, 2]).err(),
        Some(FormatError::Secret { given: true })
    );
    let filter = Learned::<Grams>::open_with_secret(file, SECRET).unwrap();
    assert!(members.iter().all(|key| filter.contains(key)));
}

/// Small files: all classes of scores, a class without a filter, a front.
fn golden() -> Vec<(&'static str, Learned)> {
    let (members, excluded) = (members(1000), excluded(1500));
    let strict = strict(&members, &excluded).keep_model();
    let accept = tamis::stream().exact().learn(&members, &excluded).accept(0.05).classes(1).keep_model();
    let sandwich =
        tamis::stream().fpr(0.05).seed(7).metadata("a note").learn(&members, &excluded).sandwich(0.2).keep_model();
    let build = |builder: LearnBuilder<'_>| learned(builder.finish().unwrap()).0;
    vec![("strict", build(strict)), ("accept", build(accept)), ("sandwich", build(sandwich))]
}

#[test]
fn the_same_keys_give_the_same_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden-learned");
    let all = golden();
    for (name, filter) in &all {
        let path = folder.join(name).with_extension("tamis");
        if std::env::var_os("TAMIS_BLESS").is_some() {
            std::fs::write(&path, filter.as_bytes()).unwrap();
        }
        let file = std::fs::read(path).unwrap();
        assert!(file == filter.as_bytes(), "{name}: other bytes than the golden file's");
        let filter = Learned::<Grams>::open(file).unwrap();
        assert!(members(1000).iter().all(|key| filter.contains(key)), "{name}");
        if *name != "accept" {
            keeps(&filter, &members(1000), &excluded(1500));
        }
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), all.len(), "a golden file without a builder");
}

fn open(parts: &Parts) -> Result<Learned, FormatError> {
    Learned::open(parts.file())
}

#[test]
fn changed_and_cut_files_are_errors() {
    for (name, filter) in golden() {
        let file = filter.as_bytes();
        for at in 0..file.len() {
            let mut changed = file.to_vec();
            changed[at] ^= 1 << (at % 8);
            assert!(Learned::<Grams>::open(changed).is_err(), "{name}: byte {at}");
        }
        for len in 0..file.len() {
            assert!(Learned::<Grams>::open(file[..len].to_vec()).is_err(), "{name}: cut to {len}");
        }
        let other = FormatError::Form { found: "learned filter", expected: "filter" };
        assert_eq!(Filter::open(file.to_vec()).err(), Some(other), "{name}");
    }
    let plain = tamis::build(["ann"]).finish().unwrap().into_bytes();
    let other = FormatError::Form { found: "filter", expected: "learned filter" };
    assert_eq!(Learned::<Grams>::open(plain).err(), Some(other));
}

/// Files whose sums hold, and whose parts contradict each other.
#[test]
fn impossible_files_are_errors() {
    let (_, filter) = golden().swap_remove(0);
    let sound = Parts::of(filter.as_bytes()).unwrap();
    assert!(open(&sound).is_ok() && sound.more[0].0 == 7);
    type Edit<'a> = &'a dyn Fn(&mut Parts);
    let cases: [(&str, Edit<'_>); 10] = [
        ("directory: no scorer in a learned filter", &|p| p.more.clear()),
        ("scorer 2 is not supported by this release", &|p| p.more[0].1[0] = 2),
        ("scorer: bytes after its end", &|p| p.more[0].1.push(0)),
        // A model of another length moves all that follows.
        ("scorer: not the bytes of a model", &|p| p.more[0].1[1] ^= 1),
        ("directory: bytes after its end", &|p| p.directory.push(0)),
        ("directory: number of thresholds is 255, expected 0 to 254", &|p| drop(p.directory.splice(..1, [0xff, 1]))),
        ("directory: thresholds are not ascending numbers of 32 bits", &|p| {
            // A second one, 0 above the first.
            let first = p.directory[1..].iter().position(|byte| byte & 0x80 == 0).unwrap();
            p.directory[0] += 1;
            p.directory.insert(2 + first, 0);
        }),
        ("header: key type is integer, expected bytes", &|p| p.head[KEY_TYPE] = 1),
        ("header: shards of a learned filter, expected none", &|p| p.head[BITS] = 1),
        ("form 11 is not supported by this release", &|p| p.head[FORM] = 11),
    ];
    for (says, edit) in cases {
        let mut parts = sound.clone();
        edit(&mut parts);
        let error = open(&parts).expect_err(says).to_string();
        assert!(error.contains(says), "{error}; expected {says}");
    }
    // The section of a scorer belongs to no other form.
    let mut plain = Parts::of(tamis::build(["ann"]).finish().unwrap().as_bytes()).unwrap();
    plain.more.push((7, sound.more[0].1.clone()));
    assert_eq!(Filter::open(plain.file()).err(), Some(FormatError::Unsupported { what: "section", number: 7 }));
    // Any weights give some score, those at the ends of their range too.
    for weight in [0x80, 0x7f, 0xff] {
        let mut parts = sound.clone();
        let model = filter.model_len() as usize;
        parts.payload[..model].fill(weight);
        let changed = open(&parts).unwrap();
        assert_eq!(changed.score([b'x'; 1000]), 512 * i32::from(weight as i8));
        members(1000).iter().chain([&String::new()]).for_each(|key| {
            let _ = changed.contains(key);
        });
    }
}

/// A scorer of the caller's, with scores at the ends of their range.
struct Ends;

impl Scorer for Ends {
    const NUMBER: u64 = 1 << 20;

    fn score(&self, key: &[u8]) -> i32 {
        if key.starts_with(b"login") { i32::MAX } else { i32::MIN }
    }

    fn to_bytes(&self) -> Vec<u8> {
        b"ends".to_vec()
    }

    fn from_bytes(bytes: Bytes) -> Option<Ends> {
        (&bytes[..] == b"ends").then_some(Ends)
    }
}

#[test]
fn a_scorer_of_the_callers_serves() {
    let (members, excluded) = (members(3000), excluded(3000));
    for accept in [None, Some(0.01)] {
        let builder = strict(&members, &excluded);
        let builder = if let Some(rate) = accept { builder.accept(rate) } else { builder };
        let (built, report) = builder.keep_model().finish_with(Ends).unwrap();
        let file = built.as_bytes().to_vec();
        let filter = Learned::<Ends>::open(file.clone()).unwrap();
        assert!(members.iter().all(|key| filter.contains(key)));
        assert!(excluded.iter().all(|key| !filter.contains(key)) && report.examples == 0);
        assert_eq!(
            Learned::<Grams>::open(file).err(),
            Some(FormatError::Unsupported { what: "scorer", number: 1 << 20 })
        );
    }
}
