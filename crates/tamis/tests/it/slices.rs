//! ranges of digests on machines that share a plan -> the bytes of one build, whatever is left out, repeated, damaged or chosen.

use tamis::slices::{Gather, KeyRange, Plan, Round, Sketch, Sliced, Survey, file_name, join, join_to, write_manifest};
use tamis::{
    BuildError, Digest, Effort, Error, Filter, FormatError, Hasher, KeyType, Kind, Limits, OnConflict, Options,
};

use super::corrupt::Random;
use super::repair::Parts;
use super::{integers, mix};

fn digests(n: u64, seed: u64) -> Vec<Digest> {
    let hasher = Hasher::seeded(0);
    integers(n, seed).map(|key| hasher.integer(key)).collect()
}

/// Those of a range, as an engine would send them.
fn of(all: &[Digest], range: KeyRange) -> impl Iterator<Item = Digest> + '_ {
    all.iter().copied().filter(move |&digest| range.contains(digest))
}

fn ranges(count: u32) -> impl Iterator<Item = KeyRange> {
    (0..count).map(move |index| KeyRange::new(index, count).unwrap())
}

/// An order that is not that of numbers.
fn shuffled<T>(mut items: Vec<T>, seed: u64) -> Vec<T> {
    for i in (1..items.len()).rev() {
        items.swap(i, (mix(seed + i as u64) % (i as u64 + 1)) as usize);
    }
    items
}

fn survey(options: &Options<'_>, keys: &[Digest], excluded: &[Digest], count: u32) -> Result<Survey, Error> {
    let surveys = ranges(count).map(|range| {
        let survey = Survey::new(options, range, of(keys, range), of(excluded, range))?;
        let bytes = survey.to_bytes();
        assert_eq!(bytes, Survey::new(options, range, of(keys, range), of(excluded, range))?.to_bytes());
        Ok(Survey::from_bytes(&bytes)?)
    });
    let mut surveys = shuffled(surveys.collect::<Result<Vec<_>, Error>>()?, 7).into_iter();
    let first = surveys.next().unwrap();
    surveys.try_fold(first, Survey::merge)
}

/// Both rounds before the build, with the plan as text between them.
fn plan(options: &Options<'_>, keys: &[Digest], excluded: &[Digest], count: u32) -> Result<Plan, Error> {
    let again = |plan: Plan| {
        let read: Plan = plan.to_string().parse().unwrap();
        assert_eq!(read.to_string(), plan.to_string());
        read.limits(Limits::default().memory(4 << 20)).threads(1)
    };
    let plan = again(Plan::new(options, KeyType::Integer, survey(options, keys, excluded, count)?, count)?);
    if plan.round() == Round::Build {
        return Ok(plan);
    }
    let sketch = |range| Sketch::from_bytes(&plan.sketch(range, of(excluded, range)).unwrap().to_bytes()).unwrap();
    let mut sketches = shuffled(ranges(count).map(sketch).collect(), 9).into_iter();
    let first = sketches.next().unwrap();
    let sketch = sketches.try_fold(first, Sketch::merge)?;
    Ok(again(plan.with_sketch(sketch)?))
}

fn build(plan: &Plan, keys: &[Digest], excluded: &[Digest]) -> Result<Vec<Vec<u8>>, Error> {
    let slice = |number| {
        let range = plan.range(number)?;
        assert!(of(keys, range).all(|digest| plan.slice_of(digest) == number));
        Ok(plan.slice(number, of(keys, range), of(excluded, range))?.to_vec())
    };
    (0..plan.slices()).map(slice).collect()
}

fn in_slices(options: &Options<'_>, keys: &[Digest], excluded: &[Digest], count: u32) -> Result<Filter, Error> {
    let plan = plan(options, keys, excluded, count)?;
    join(shuffled(build(&plan, keys, excluded)?, 3))
}

/// What a join says.
fn says(slices: Vec<Vec<u8>>) -> String {
    join(slices).unwrap_err().to_string()
}

/// The error without what its numbers are.
fn refused<T>(result: Result<T, Error>) -> String {
    result.err().map_or("none".into(), |error| error.to_string())
}

fn in_one(options: &Options<'_>, keys: &[Digest], excluded: &[Digest]) -> Result<Filter, Error> {
    let build = options.clone().build_digests(keys.to_vec(), KeyType::Integer);
    if excluded.is_empty() { build.finish() } else { build.exclude_digests(excluded.to_vec()).finish() }
}

/// The same file, or the same error but for the places of keys.
fn check(what: &str, options: &Options<'_>, keys: &[Digest], excluded: &[Digest], counts: &[u32]) {
    let one = in_one(options, keys, excluded);
    for &count in counts {
        match (&one, in_slices(options, keys, excluded, count)) {
            (Ok(one), Ok(joined)) => assert!(one.as_bytes() == joined.as_bytes(), "{what}, {count} ranges"),
            (Err(Error::Build(BuildError::Conflict { count: one, .. })), Err(Error::Build(joined))) => {
                assert!(matches!(joined, BuildError::Conflict { count, .. } if count == *one), "{what}: {joined}");
            }
            (Err(one), Err(joined)) => assert_eq!(one.to_string(), joined.to_string(), "{what}, {count} ranges"),
            (one, joined) => panic!("{what}, {count} ranges: {one:?} and {joined:?}"),
        }
    }
}

fn options() -> Options<'static> {
    Options::default().threads(1)
}

fn goals() -> Vec<(&'static str, Options<'static>)> {
    vec![
        ("fpr", options().fpr(0.01)),
        ("bits per key", options().bits_per_key(9.0)),
        ("exact", options().exact()),
        ("excluded fpr", options().excluded_fpr(0.05)),
    ]
}

#[test]
fn slices_are_joined_to_the_bytes_of_one_build() {
    for n in [0, 1, 2, 10, 1000] {
        let keys = digests(n, 1);
        for (name, options) in goals() {
            for others in [0, 1, 3 * n] {
                let excluded = digests(others, 2);
                let options = options.clone().shard_bytes(4096);
                check(&format!("{name}, {n} keys, {others} excluded"), &options, &keys, &excluded, &[1, 2, 8, 64]);
            }
        }
    }
}

#[test]
fn many_shards_are_joined_to_the_bytes_of_one_build() {
    let keys = digests(200_000, 1);
    let few = digests(10_000, 2);
    let many = digests(600_000, 3);
    for (name, options) in goals() {
        let options = options.shard_bytes(4096);
        check(&format!("{name}, members only"), &options, &keys, &[], &[8]);
        check(&format!("{name}, few excluded"), &options, &keys, &few, &[8]);
        check(&format!("{name}, many excluded"), &options, &keys, &many, &[2, 64]);
    }
}

#[test]
fn every_kind_and_effort_and_metadata() {
    let (keys, excluded) = (digests(20_000, 1), digests(50_000, 2));
    for (name, kind) in Kind::ALL {
        let options = options().kind(*kind).shard_bytes(4096).metadata("a note");
        check(&format!("{name}, members"), &options, &keys, &[], &[8]);
        check(name, &options, &keys, &excluded, &[8]);
    }
    for effort in [Effort::Fast, Effort::Smallest] {
        let options = options().effort(effort).exact().shard_bytes(4096).secret([1, 2]);
        check(&format!("{effort}"), &options, &keys, &excluded, &[8]);
    }
    let growing = options().kind(Kind::Bloom).extra_capacity(0.5).shard_bytes(4096);
    check("extra capacity", &growing, &keys, &[], &[4]);
}

#[test]
fn repeated_keys_and_weights_of_excluded_keys() {
    let repeat = |all: &[Digest]| -> Vec<Digest> {
        all.iter().enumerate().flat_map(|(i, &digest)| std::iter::repeat_n(digest, 1 + i % 7)).collect()
    };
    let (keys, excluded) = (repeat(&digests(30_000, 1)), repeat(&digests(60_000, 2)));
    for (name, options) in goals() {
        check(name, &options.shard_bytes(4096), &keys, &excluded, &[8]);
    }
}

#[test]
fn conflicts_are_resolved_as_in_one_build() {
    let keys = digests(30_000, 1);
    for shared in [1, 5000] {
        let excluded = [&keys[..shared], &digests(70_000, 2)].concat();
        for policy in [OnConflict::Error, OnConflict::Keep, OnConflict::Drop] {
            for (name, options) in goals() {
                let options = options.shard_bytes(4096).on_conflict(policy);
                check(&format!("{name}, {policy}, {shared}"), &options, &keys, &excluded, &[8]);
            }
        }
    }
    // All keys, so that none is left; and all excluded keys.
    for policy in [OnConflict::Keep, OnConflict::Drop] {
        for (name, options) in goals() {
            check(&format!("{name}, {policy}, all"), &options.on_conflict(policy), &keys, &keys, &[2]);
        }
    }
}

/// A plan by one process, digest by digest, and slices of it.
#[test]
fn digests_that_come_one_by_one() {
    let (keys, excluded) = (digests(40_000, 1), digests(90_000, 2));
    for (name, options) in goals() {
        let options = options.shard_bytes(4096).limits(Limits::default().memory(4 << 20));
        let fill = |mut gather: Gather, range| {
            of(&keys, range).try_for_each(|digest| gather.push(digest)).unwrap();
            of(&excluded, range).try_for_each(|digest| gather.exclude(digest)).unwrap();
            gather
        };
        let all = fill(Gather::new(&options, KeyRange::ALL).unwrap(), KeyRange::ALL);
        let here = all.plan(KeyType::Integer, 16).unwrap();
        let there = plan(&options, &keys, &excluded, 16).unwrap();
        assert_eq!(here.to_string(), there.to_string(), "{name}");
        let slice = |slice| fill(here.gather(slice).unwrap(), here.range(slice).unwrap()).slice(&here).unwrap();
        let joined = join((0..here.slices()).map(slice)).unwrap();
        assert!(joined == in_one(&options, &keys, &excluded).unwrap(), "{name}");
    }
}

/// Excluded keys that were chosen to pass the first layer: the plan is refined until it is that of one process.
#[test]
fn chosen_excluded_keys_make_another_plan() {
    let (keys, mut excluded) = (digests(10_000, 1), digests(100_000, 2));
    let options = options().kind(Kind::Chained(tamis::Base::Ribbon)).exact().shard_bytes(4096);
    let first = in_one(&options, &keys, &excluded).unwrap();
    // What matches the whole filter passes its first layer.
    excluded.extend(digests(150_000, 3).into_iter().filter(|&digest| first.contains_digest(digest).unwrap()));
    let one = in_one(&options, &keys, &excluded).unwrap();
    let mut now = plan(&options, &keys, &excluded, 8).unwrap();
    let mut times = 0;
    let joined = loop {
        let slices = build(&now, &keys, &excluded).unwrap();
        match join(slices.clone()) {
            Ok(joined) => break joined,
            Err(Error::Build(BuildError::PlanAgain { passed })) => assert!(passed > 12_500, "{passed}"),
            Err(error) => panic!("{error}"),
        }
        now = now.refine(slices).unwrap().unwrap();
        assert_eq!(now.to_string().parse::<Plan>().unwrap().to_string(), now.to_string());
        times += 1;
        assert!(times <= 4);
    };
    assert!(times > 0 && joined == one);
    assert!(now.refine(build(&now, &keys, &excluded).unwrap()).unwrap().is_none());
}

/// Keys that crowd in one shard: mixed digests would have to be sent again.
#[test]
fn keys_that_crowd_are_an_error() {
    let crowd: Vec<Digest> = digests(60_000, 1).iter().map(|digest| Digest::from_bits(digest.to_bits() >> 5)).collect();
    let few = options().shard_bytes(4096);
    let says = refused(plan(&few, &crowd, &[], 4));
    assert!(says.starts_with("keys: too many in one shard"), "{says}");
    check("crowd with a secret", &few.clone().secret([1, 2]), &crowd, &[], &[4]);
    check("crowd in one shard", &options(), &crowd, &[], &[4]);
}

#[test]
fn options_that_slices_do_not_have() {
    let says = |options: Options<'_>| refused(Survey::new(&options, KeyRange::ALL, [], []));
    let wrong = "not possible in slices; expected a build in one process";
    assert_eq!(says(options().with_workload()), format!("with_workload: {wrong}"));
    assert_eq!(says(options().secret([1, 2]).secret_beside()), format!("secret_beside: {wrong}"));
    assert_eq!(says(options().fpr(0.1).exact()), "exact, fpr: two goals; expected one");
    assert_eq!(says(options().threads(0)), "threads 0: out of range; expected 1 to 1,024".replace("1,024", "1024"));
}

#[test]
fn slices_that_do_not_belong_together() {
    let keys = digests(20_000, 1);
    let options = options().shard_bytes(4096);
    let first = plan(&options, &keys, &[], 4).unwrap();
    let slices = build(&first, &keys, &[]).unwrap();
    assert_eq!(says(vec![]), "join: no slices; expected all slices of a plan");
    assert_eq!(says(slices[1..].to_vec()), "join: slice 0 of 4 is missing; expected each once");
    assert_eq!(says(slices[..3].to_vec()), "join: slice 3 of 4 is missing; expected each once");
    let twice = [&slices[..], &slices[2..3]].concat();
    assert_eq!(says(twice), "join: slice 2 of 4 is there twice; expected each once");
    let different = "join: slices of different plans; expected one plan, goal and seed for all of them";
    for other in [options.clone().fpr(0.02), options.clone().seed(5)] {
        let other = plan(&other, &keys, &[], 4).unwrap();
        let mut mixed = slices.clone();
        mixed[1] = build(&other, &keys, &[]).unwrap()[1].clone();
        assert_eq!(says(mixed), different);
        assert!(refused(other.refine(slices.clone())).contains("another plan"));
    }
    // One key less, another key, one key more.
    let less = |digests: &[Digest]| build(&first, digests, &[]).unwrap();
    assert!(says(less(&keys[1..])).starts_with("join: 19999 keys where 20000 were surveyed"));
    let other: Vec<Digest> = [&keys[1..], &digests(1, 77)].concat();
    assert_eq!(says(less(&other)), "join: other keys than were surveyed; expected the same digests in both rounds");
    assert!(says(build(&first, &keys, &digests(1, 78)).unwrap()).starts_with("join: 1 excluded keys where 0 were"));
    // Digests of another range, ranges that overlap or are missing, surveys of other options.
    let of_another = refused(first.slice(1, keys.iter().copied(), []));
    assert!(of_another.starts_with("keys: a digest ") && of_another.contains("is not of range 1/4"), "{of_another}");
    assert!(refused(first.slice(4, [], [])).starts_with("slice: 4 of 4"));
    assert!(refused(first.clone().threads(0).slice(0, [], [])).starts_with("threads 0: out of range"));
    let part = |index, count, options: &Options<'_>| {
        let range = KeyRange::new(index, count).unwrap();
        Survey::new(options, range, of(&keys, range), []).unwrap()
    };
    assert!(refused(part(0, 2, &options).merge(part(1, 4, &options))).contains("are there twice"));
    assert!(refused(part(0, 2, &options).merge(part(1, 2, &options.clone().seed(1)))).contains("different seeds"));
    let half = refused(Plan::new(&options, KeyType::Integer, part(0, 2, &options), 4));
    assert_eq!(half, "plan: no survey of the digests from 800.. up to fff..; expected all ranges");
    let other = refused(Plan::new(&options.clone().fpr(0.5), KeyType::Integer, part(0, 1, &options), 4));
    assert_eq!(other, "plan: the survey has other options; expected those of the plan");
    for slices in [0, 3, 8192] {
        let wrong = refused(Plan::new(&options, KeyType::Integer, part(0, 1, &options), slices));
        assert!(wrong.contains("expected a power of two, 1 to 4096"), "{wrong}");
    }
    for text in ["", "3", "3/", "/4", "4/4", "1/3", "0/8192", "-1/4", "1/4/2"] {
        assert!(text.parse::<KeyRange>().is_err(), "{text}");
    }
}

#[test]
fn sketches_that_do_not_belong_together() {
    let (keys, excluded) = (digests(2000, 1), digests(40_000, 2));
    let options = options().exact();
    let plan = Plan::new(&options, KeyType::Integer, survey(&options, &keys, &excluded, 2).unwrap(), 4).unwrap();
    assert_eq!((plan.round(), plan.slices(), plan.shards()), (Round::Sketch, 1, 0));
    assert!(refused(plan.slice(0, [], [])).starts_with("plan: the sketch is missing"));
    let sketch = |plan: &Plan, index, digests: &[Digest]| {
        let range = KeyRange::new(index, 2).unwrap();
        plan.sketch(range, of(digests, range)).unwrap()
    };
    assert!(refused(plan.clone().with_sketch(sketch(&plan, 0, &excluded))).contains("expected all ranges"));
    assert!(refused(sketch(&plan, 0, &excluded).merge(sketch(&plan, 0, &excluded))).contains("are there twice"));
    let few = sketch(&plan, 0, &excluded[..500]).merge(sketch(&plan, 1, &excluded[..500])).unwrap();
    assert!(refused(plan.clone().with_sketch(few)).contains("500 excluded keys where 40000 were surveyed"));
    let other = Plan::new(&options, KeyType::Integer, survey(&options, &keys[1..], &excluded, 2).unwrap(), 4).unwrap();
    assert!(refused(sketch(&plan, 0, &excluded).merge(sketch(&other, 1, &excluded))).contains("different plans"));
    let of_other = sketch(&other, 0, &excluded).merge(sketch(&other, 1, &excluded)).unwrap();
    assert!(refused(plan.with_sketch(of_other)).contains("for another plan"));
}

/// Writes the slices of a plan into a folder.
fn folder(plan: &Plan, keys: &[Digest], excluded: &[Digest]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for slice in 0..plan.slices() {
        let range = plan.range(slice).unwrap();
        let path = dir.path().join(file_name(slice));
        let report = plan.slice_to(&path, slice, of(keys, range), of(excluded, range)).unwrap();
        assert_eq!(report.bytes, std::fs::metadata(&path).unwrap().len());
        assert_eq!(report.keys, of(keys, range).count() as u64);
    }
    dir
}

#[test]
fn files_are_joined_and_a_folder_answers_as_the_file() {
    for (n, others, count) in [(0, 0, 1), (1, 5, 4), (50_000, 120_000, 16)] {
        let (keys, excluded, unlisted) = (digests(n, 1), digests(others, 2), digests(20_000, 3));
        // A budget for one key would have to pay for the whole directory.
        let budget = (n > 1).then(|| options().bits_per_key(40.0));
        for options in [Some(options().fpr(0.01)), budget].into_iter().flatten() {
            let options = options.shard_bytes(4096).metadata("a note").secret([3, 4]);
            let plan = plan(&options, &keys, &excluded, count).unwrap();
            let dir = folder(&plan, &keys, &excluded);
            let joined = dir.path().join("joined");
            let slices: Vec<_> = (0..plan.slices()).rev().map(|slice| dir.path().join(file_name(slice))).collect();
            let one = match in_one(&options, &keys, &excluded) {
                Ok(one) => one,
                Err(error) => panic!("{error}"),
            };
            assert_eq!(join_to(&joined, &slices).unwrap(), one.as_bytes().len() as u64);
            assert!(std::fs::read(&joined).unwrap() == one.as_bytes());
            write_manifest(dir.path()).unwrap();
            // SAFETY: nobody else knows these files.
            #[allow(unsafe_code)]
            let mapped = unsafe { Sliced::mmap(dir.path()) }.unwrap();
            for sliced in [Sliced::read(dir.path()).unwrap(), mapped] {
                sliced.verify().unwrap();
                for listed in [&keys, &excluded, &unlisted] {
                    let answers = one.contains_many_digests(listed).unwrap();
                    assert_eq!(sliced.contains_many_digests(listed).unwrap(), answers);
                    for (digest, answer) in listed.iter().zip(answers).take(2000) {
                        assert_eq!(sliced.contains_digest(*digest), Ok(answer));
                    }
                }
                let all: Vec<u64> = integers(500, 1).chain(integers(500, 3)).collect();
                assert_eq!(sliced.contains_many(&all), one.contains_many(&all));
                assert_eq!(sliced.contains("text").is_err(), one.contains("text").is_err());
                assert_eq!((sliced.len(), sliced.is_empty()), (one.len(), one.is_empty()));
                assert_eq!((sliced.excluded_len(), sliced.shards()), (one.excluded_len(), one.shards()));
                assert_eq!((sliced.fpr(), sliced.metadata()), (one.fpr(), one.metadata()));
                assert_eq!((sliced.key_type(), sliced.hasher()), (one.key_type(), one.hasher()));
                assert_eq!(sliced.layers().count(), one.layers().count());
                assert_eq!(sliced.slices() as u32, plan.slices());
            }
        }
    }
}

#[test]
fn a_folder_whose_files_changed_is_an_error() {
    let (keys, excluded) = (digests(20_000, 1), digests(30_000, 2));
    let options = options().fpr(0.01).shard_bytes(4096);
    let plan = plan(&options, &keys, &excluded, 4).unwrap();
    let dir = folder(&plan, &keys, &excluded);
    let (path, manifest) = (dir.path().join(file_name(1)), dir.path().join("manifest.tamis"));
    let says = || refused(Sliced::read(dir.path()));
    assert!(says().contains("manifest.tamis"), "{}", says());
    write_manifest(dir.path()).unwrap();
    assert_eq!(says(), "none");
    let good = std::fs::read(&path).unwrap();
    // Gone, cut, from another build of the same length, damaged in its payload or its directory.
    std::fs::remove_file(&path).unwrap();
    assert!(says().contains(&file_name(1)));
    assert!(refused(write_manifest(dir.path())).contains(&file_name(1)));
    std::fs::write(&path, &good[..good.len() - 1]).unwrap();
    assert!(says().contains("where the manifest has"), "{}", says());
    for at in [20, good.len() - 100, good.len() - 2] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(&path, &bad).unwrap();
        assert!(says().contains(&file_name(1)) && says().contains("damaged"), "{at}: {}", says());
        let slices = (0..4).map(|slice| dir.path().join(file_name(slice)));
        let joined = dir.path().join("joined");
        assert!(refused(join_to(&joined, slices)).contains(&file_name(1)), "{at}");
        assert!(!joined.exists());
    }
    std::fs::copy(dir.path().join(file_name(2)), &path).unwrap();
    assert!(says().contains(&file_name(1)), "{}", says());
    std::fs::write(&path, &good).unwrap();
    assert_eq!(says(), "none");
    std::fs::write(&manifest, &good).unwrap();
    assert!(says().contains("holds a slice of a filter; expected a manifest of slices"), "{}", says());
    let filter = in_one(&options, &keys, &excluded).unwrap();
    std::fs::write(&path, filter.as_bytes()).unwrap();
    assert!(refused(write_manifest(dir.path())).contains("expected a slice of a filter"));
    let open = Filter::open(good).unwrap_err();
    assert_eq!(open, FormatError::Form { found: "slice of a filter", expected: "filter" });
    // Only complete files are left: what was begun has no name.
    let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| name.to_str().unwrap().ends_with(".tamis")));
}

/// Any change of a survey, a sketch, a plan or a slice is an error, or leaves what was meant.
#[test]
fn hostile_bytes_are_errors() {
    let (keys, excluded) = (digests(9000, 1), digests(20_000, 2));
    let options = options().fpr(0.01).shard_bytes(4096).metadata("m");
    let survey = survey(&options, &keys, &excluded, 2).unwrap();
    let round = Plan::new(&options, KeyType::Integer, survey.clone(), 4).unwrap();
    let sketch = round.sketch(KeyRange::ALL, excluded.iter().copied()).unwrap();
    let plan = round.with_sketch(sketch.clone()).unwrap();
    let slices = build(&plan, &keys, &excluded).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (survey, sketch, text) = (survey.to_bytes(), sketch.to_bytes(), plan.to_string());
    let mut random = Random(1);
    for round in 0..1500 {
        let change = |from: &[u8], random: &mut Random| {
            let mut bytes = from.to_vec();
            match random.below(4) {
                0 => bytes.truncate(random.below(from.len())),
                1 => bytes.extend((0..1 + random.below(20)).map(|i| i as u8)),
                _ => {
                    let at = random.below(from.len());
                    bytes[at] = bytes[at].wrapping_add(1 + random.below(255) as u8);
                }
            }
            bytes
        };
        let bad = change(&survey, &mut random);
        assert!(Survey::from_bytes(&bad).is_err() || bad == survey);
        let bad = change(&sketch, &mut random);
        assert!(Sketch::from_bytes(&bad).is_err() || bad == sketch);
        // With a sum that holds, the decoder itself has to stand.
        for (bytes, open) in [(&survey, true), (&sketch, false)] {
            let mut bad = change(&bytes[..bytes.len() - 8], &mut random);
            bad.extend_from_slice(&xxhash_rust::xxh3::xxh3_64(&bad).to_le_bytes());
            if open {
                let read = Survey::from_bytes(&bad).ok().map(|survey| Plan::new(&options, KeyType::Integer, survey, 4));
                drop(read);
            } else {
                drop(Sketch::from_bytes(&bad));
            }
        }
        let bad = change(text.as_bytes(), &mut random);
        if let Ok(read) = String::from_utf8_lossy(&bad).parse::<Plan>() {
            drop(read.threads(1).slice(0, [], []));
        }
        let number = random.below(slices.len());
        let mut changed = slices.clone();
        changed[number] = change(&slices[number], &mut random);
        assert!(join(changed.clone()).is_err() || changed == slices, "{round}");
        // With sums that hold it may be another file, which answers.
        let mut parts = Parts::of(&slices[number]).unwrap();
        match random.below(4) {
            0 => random.edit(&mut parts.head),
            1 => random.edit(&mut parts.payload),
            _ => random.edit(&mut parts.directory),
        }
        changed[number] = parts.file();
        if let Ok(joined) = join(changed.clone()) {
            joined.contains_many_digests(&keys[..500]).unwrap();
        }
        if round % 10 == 0 {
            for (slice, bytes) in (0..).zip(&changed) {
                std::fs::write(dir.path().join(file_name(slice)), bytes).unwrap();
            }
            if write_manifest(dir.path()).is_ok()
                && let Ok(sliced) = Sliced::read(dir.path())
            {
                sliced.contains_many_digests(&keys[..500]).unwrap();
            }
        }
    }
    // Manifests.
    for (slice, bytes) in (0..).zip(&slices) {
        std::fs::write(dir.path().join(file_name(slice)), bytes).unwrap();
    }
    write_manifest(dir.path()).unwrap();
    let (path, mut read) = (dir.path().join("manifest.tamis"), 0);
    let manifest = std::fs::read(&path).unwrap();
    for _ in 0..500 {
        let mut parts = Parts::of(&manifest).unwrap();
        let part = if random.below(4) == 0 { &mut parts.head } else { &mut parts.directory };
        random.edit(part);
        std::fs::write(&path, parts.file()).unwrap();
        if let Ok(sliced) = Sliced::read(dir.path()) {
            sliced.contains_many_digests(&keys[..500]).unwrap();
            read += 1;
        }
    }
    assert!(read > 0 && read < 500);
}

/// Sections that readers may skip, and their units, are skipped; without such a section nothing lies beside the shards.
#[test]
fn slices_of_later_releases() {
    let (keys, excluded) = (digests(9000, 1), digests(12_000, 2));
    let plan = plan(&options().fpr(0.01).shard_bytes(4096), &keys, &excluded, 2).unwrap();
    let (slices, dir) = (build(&plan, &keys, &excluded).unwrap(), folder(&plan, &keys, &excluded));
    let one = join(slices.clone()).unwrap();
    let later = |file: &[u8], section: bool, unit: bool| {
        let mut parts = Parts::of(file).unwrap();
        if unit {
            parts.append_unit(&[7; 100]);
        }
        parts.more.extend(section.then(|| (2000, vec![0xff; 40])));
        parts.file()
    };
    let manifest = dir.path().join("manifest.tamis");
    for (section, unit) in [(true, false), (true, true), (false, true)] {
        let changed = [later(&slices[0], section, unit), slices[1].clone()];
        for (number, slice) in (0..).zip(&changed) {
            std::fs::write(dir.path().join(file_name(number)), slice).unwrap();
        }
        if section {
            assert!(join(changed.to_vec()).unwrap() == one, "{unit}");
            write_manifest(dir.path()).unwrap();
            std::fs::write(&manifest, later(&std::fs::read(&manifest).unwrap(), section, unit)).unwrap();
            let sliced = Sliced::read(dir.path()).unwrap();
            assert_eq!(sliced.contains_many_digests(&keys), one.contains_many_digests(&keys), "{unit}");
            continue;
        }
        assert!(says(changed.to_vec()).contains("bytes that are of no shard"));
        std::fs::write(dir.path().join(file_name(0)), &slices[0]).unwrap();
        write_manifest(dir.path()).unwrap();
        assert_eq!(refused(Sliced::read(dir.path())), "none");
        std::fs::write(&manifest, later(&std::fs::read(&manifest).unwrap(), section, unit)).unwrap();
        assert!(refused(Sliced::read(dir.path())).contains("100 bytes between payload and directory"));
    }
}

/// A plan whose secret is not a possible one: the message does not have it.
#[test]
fn no_message_shows_a_secret() {
    let keys = digests(100, 1);
    let options = options().secret([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
    let text = plan(&options, &keys, &[], 1).unwrap().to_string();
    let good = "secret 0123456789abcdef fedcba9876543210";
    assert!(text.contains(good));
    for bad in [
        "sacret 0123456789abcdef fedcba9876543210",
        "secret 0123456789abcdef fedcba987654321x",
        "secret 123456789abcdef fedcba9876543210",
        "secret 0123456789abcdef",
    ] {
        let says = text.replace(good, bad).parse::<Plan>().unwrap_err().to_string();
        assert_eq!(says, "plan: hash: the value is not possible; expected what this release wrote");
    }
    assert!(!format!("{:?}", text.parse::<Plan>().unwrap()).contains("cdef"));
}

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden-slices");

/// A slice and a manifest of format version 1: opened for ever. Slices of a plan of this release are built again, byte by byte.
#[test]
fn golden_slices() {
    let (keys, excluded) = (digests(12_000, 1), digests(18_000, 2));
    let options = options().fpr(0.05).shard_bytes(4096).metadata("golden");
    let plan = plan(&options, &keys, &excluded, 2).unwrap();
    let dir = folder(&plan, &keys, &excluded);
    write_manifest(dir.path()).unwrap();
    let names = [file_name(0), file_name(1), "manifest.tamis".into(), "plan.json".into()];
    plan.save(dir.path().join("plan.json")).unwrap();
    if std::env::var_os("TAMIS_BLESS").is_some() {
        for name in &names {
            std::fs::copy(dir.path().join(name), format!("{GOLDEN}/{name}")).unwrap();
        }
    }
    let sliced = Sliced::read(GOLDEN).unwrap();
    assert_eq!((sliced.slices(), sliced.len(), sliced.metadata()), (2, 12_000, &b"golden"[..]));
    assert!(sliced.contains_many_digests(&keys).unwrap().iter().all(|&yes| yes));
    assert!(sliced.contains_many_digests(&excluded).unwrap().iter().all(|&yes| !yes));
    let old = std::fs::read_to_string(format!("{GOLDEN}/plan.json")).unwrap();
    if old.parse::<Plan>().is_ok() {
        for name in &names {
            let old = std::fs::read(format!("{GOLDEN}/{name}")).unwrap();
            assert!(std::fs::read(dir.path().join(name)).unwrap() == old, "{name}");
        }
    }
}
