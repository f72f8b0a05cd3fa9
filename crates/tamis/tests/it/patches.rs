//! a filter of yesterday, lists of today -> patches: right for every listed key, small, and rejected where they do not belong.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

use tamis::{
    BuildError, Error, FileInfo, Filter, FormatError, Hasher, Kind, OnConflict, Options, Patch, Patched, Remote, bounds,
};

use super::corrupt::Random;
use super::memory::watched;
use super::repair::{FORM, HASH, KEY_TYPE, Parts};
use super::{integers, mix};

/// Listed keys, and whether each is a member.
type Lists = BTreeMap<u64, bool>;

fn lists(members: u64, excluded: u64, seed: u64) -> Lists {
    integers(members, seed).map(|key| (key, true)).chain(integers(excluded, seed + 1).map(|key| (key, false))).collect()
}

fn side(lists: &Lists, member: bool) -> impl Iterator<Item = u64> + '_ {
    lists.iter().filter(move |(_, found)| **found == member).map(|(&key, _)| key)
}

fn exact(lists: &Lists, options: Options<'_>) -> Filter {
    options.exact().build(side(lists, true)).exclude(side(lists, false)).finish().unwrap()
}

fn diff(old: &Patched, lists: &Lists, options: Options<'_>) -> Result<Patch, Error> {
    let mut diff = old.diff_with(options)?;
    for (key, member) in lists {
        if *member { diff.push(key)? } else { diff.exclude(key)? }
    }
    diff.finish()
}

/// Flips `answers` of the keys, chosen by `seed`.
fn change(lists: &mut Lists, answers: usize, seed: u64) {
    let mut keys: Vec<u64> = lists.keys().copied().collect();
    keys.sort_by_key(|key| mix(key ^ seed));
    for key in &keys[..answers] {
        lists.entry(*key).and_modify(|member| *member = !*member);
    }
}

/// Every listed key has the answer of the lists, however it is queried: also after a round trip as one file.
#[track_caller]
fn check(today: &Patched, lists: &Lists, secret: Option<[u64; 2]>) {
    let (keys, expected): (Vec<u64>, Vec<bool>) = lists.iter().unzip();
    assert!(today.contains_many(&keys).unwrap() == expected);
    let one = today.finish().unwrap();
    let again = match secret {
        Some(secret) => Filter::open_with_secret(one.as_bytes().to_vec(), secret).unwrap(),
        None => Filter::open(one.as_bytes().to_vec()).unwrap(),
    };
    again.verify().unwrap();
    assert_eq!((again.patches().len(), again.fpr()), (today.patches().len(), today.fpr()));
    assert!(again.contains_many(&keys).unwrap() == expected);
    for (&key, &member) in keys.iter().zip(&expected) {
        assert_eq!((today.contains(key), again.contains(key)), (Ok(member), Ok(member)));
        assert_eq!(today.contains_digest(again.hasher().integer(key)), Ok(member));
        assert_eq!(again.typed::<u64>().unwrap().contains(key), member);
    }
}

#[test]
fn every_listed_key_is_right_after_every_day() {
    for (n, others) in [(0, 0), (0, 5), (1, 1), (1, 2), (2, 3), (300, 200), (2000, 9000)] {
        let mut lists = lists(n, others, 3);
        let base = exact(&lists, Options::default());
        let mut today = base.with_patches([]).unwrap();
        check(&today, &lists, None);
        for (day, flips) in [0, 1, 2, 31, 32, 99, 100, 101, 500, 0, 3].into_iter().enumerate() {
            if flips > lists.len() {
                continue;
            }
            change(&mut lists, flips, day as u64);
            // Some keys are listed for the first time, and some no longer: those may have any answer.
            for key in integers(flips as u64 / 2, 77 + day as u64) {
                lists.insert(key, key % 2 == 0);
            }
            let gone = lists.keys().nth(flips).copied().filter(|_| lists.len() > 20);
            gone.map(|key| lists.remove(&key));
            let patch = diff(&today, &lists, Options::default()).unwrap();
            assert_eq!(patch.number(), today.patches().len() as u64 + 1);
            assert_eq!(Patch::open(patch.as_bytes().to_vec()).unwrap(), patch);
            assert!(patch.len() + 1 >= flips as u64 && patch.len() <= 2 * flips as u64, "{} of {flips}", patch.len());
            today = today.with_patches([patch]).unwrap();
            check(&today, &lists, None);
        }
    }
}

/// A chain of many forms: lists, first layers of different widths, and more of one width than are queried in one call.
#[test]
fn long_chains_answer_alone_and_in_batches_alike() {
    let mut lists = lists(300, 900, 21);
    let mut today = exact(&lists, Options::default()).with_patches([]).unwrap();
    for day in 0..90 {
        change(&mut lists, [129, 129, 129, 5, 300][day % 5 * (day % 15 / 10)], day as u64);
        today = today.with_patches([diff(&today, &lists, Options::default()).unwrap()]).unwrap();
    }
    assert!(today.patches().iter().filter(|patch| patch.len() == 129).count() > 64);
    check(&today, &lists, None);
    let unlisted: Vec<u64> = integers(20_000, 99).collect();
    let answers = today.contains_many(&unlisted).unwrap();
    assert!(unlisted.iter().zip(answers).all(|(&key, answer)| today.contains(key) == Ok(answer)));
}

/// Sizes that the documentation promises.
#[test]
fn patches_are_near_their_bound() {
    for (n, lambda) in [(20_000, 1), (20_000, 8), (4000, 100)] {
        for flips in [0, 1, 10, 100, 101, 1000] {
            let mut lists = lists(n, lambda * n, 5);
            let base = exact(&lists, Options::default()).with_patches([]).unwrap();
            change(&mut lists, flips, 1);
            let patch = diff(&base, &lists, Options::default()).unwrap();
            let (c, bytes) = (flips as f64, patch.as_bytes().len() as f64);
            let bound = c * bounds::f(0.0, (lists.len() as f64 - c) / c.max(1.0)) / 8.0;
            assert!((patch.lower_bound() / 8.0 - bound).abs() <= 0.02 * bound, "{bound}, {patch:?}");
            let most = if flips <= 10 { 260.0 } else { 1.05 * bound + 260.0 };
            assert!(bytes <= most, "{bytes} bytes for {flips} of {n}, lambda {lambda}: expected {most}");
            check(&base.with_patches([patch]).unwrap(), &lists, None);
        }
    }
}

/// Everything changes; and a patch of several shards.
#[test]
fn all_answers_may_change() {
    for n in [20, 1000] {
        let mut lists = lists(n, n, 9);
        let base = exact(&lists, Options::default()).with_patches([]).unwrap();
        change(&mut lists, 2 * n as usize, 1);
        let patch = diff(&base, &lists, Options::default()).unwrap();
        assert_eq!((patch.len(), patch.unchanged()), (2 * n, 0));
        check(&base.with_patches([patch]).unwrap(), &lists, None);
    }
    let mut lists = lists(30_000, 30_000, 9);
    let base = exact(&lists, Options::default()).with_patches([]).unwrap();
    change(&mut lists, 40_000, 1);
    let patch = diff(&base, &lists, Options::default().shard_bytes(4096)).unwrap();
    check(&base.with_patches([patch.clone()]).unwrap(), &lists, None);
    // The bytes follow from the sets alone.
    let again = Options::default().shard_bytes(4096).threads(2).limits(tamis::Limits::default().memory(4 << 20));
    assert!(diff(&base, &lists, again).unwrap() == patch);
}

#[test]
fn unlisted_keys_flip_at_the_rate_that_is_computed() {
    let mut lists = lists(5000, 40_000, 11);
    let base = exact(&lists, Options::default());
    let mut today = base.with_patches([]).unwrap();
    let unlisted: Vec<u64> = integers(400_000, 1000).collect();
    for day in 0..5 {
        change(&mut lists, 1500, day);
        today = today.with_patches([diff(&today, &lists, Options::default()).unwrap()]).unwrap();
    }
    let rate =
        |today: &Patched| today.contains_many(&unlisted).unwrap().iter().filter(|&&yes| yes).count() as f64 / 4e5;
    let kept = today.patches().iter().fold(1.0 - 2.0 * base.fpr(), |kept, patch| kept * (1.0 - 2.0 * patch.fpr()));
    assert!((today.fpr() - (1.0 - kept) / 2.0).abs() < 1e-12);
    assert!(today.fpr() > 1.2 * base.fpr(), "{} {}", today.fpr(), base.fpr());
    // Five standard deviations, and the spread of real leaves around their expected rates.
    let (found, expected) = (rate(&today), today.fpr());
    assert!((found - expected).abs() < 5.0 * (expected / 4e5f64).sqrt() + 0.03 * expected, "{found} {expected}");

    // A filter with an fpr of its own has patches of a hundredth of it, and others where the caller says so.
    let build = tamis::build(side(&lists, true)).exclude(side(&lists, false)).fpr(0.001);
    let base = build.finish().unwrap().with_patches([]).unwrap();
    change(&mut lists, 1500, 99);
    for (options, most) in [(Options::default(), 1e-5), (Options::default().fpr(0.0004), 0.0004)] {
        let patch = diff(&base, &lists, options).unwrap();
        assert!(patch.fpr() <= most && patch.fpr() > most / 8.0, "{} {most}", patch.fpr());
        let today = base.with_patches([patch]).unwrap();
        assert!(today.fpr() <= base.fpr() + most);
        check(&today, &lists, None);
    }
}

#[test]
fn secrets_stay_where_they_are() {
    const SECRET: [u64; 2] = [0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321];
    let mut lists = lists(2000, 5000, 13);
    let hasher = Hasher::secret(SECRET);
    for beside in [false, true] {
        let options = Options::default().hasher(hasher.clone());
        let options = if beside { options.secret_beside() } else { options };
        let base = exact(&lists, options);
        let mut today = base.with_patches([]).unwrap();
        for flips in [5, 300] {
            change(&mut lists, flips, flips as u64);
            let patch = diff(&today, &lists, Options::default()).unwrap();
            let words = SECRET.map(u64::to_le_bytes);
            assert!(words.iter().all(|word| !patch.as_bytes().windows(8).any(|found| found == word)));
            today = today.with_patches([patch]).unwrap();
            check(&today, &lists, beside.then_some(SECRET));
        }
        let one = today.finish().unwrap();
        // Who opens it is told what it needs. A patch alone needs nothing.
        let info = FileInfo::of(one.as_bytes()).unwrap();
        assert_eq!((info.form, info.secret_beside), ("filter", beside));
        let info = FileInfo::of(today.patches()[0].as_bytes()).unwrap();
        assert_eq!((info.form, info.secret_beside), ("patch", false));
        let remote = Remote::open(one.as_bytes().to_vec(), one.as_bytes().len() as u64).unwrap_err();
        let expected = "filter without partitions";
        assert_eq!(remote, FormatError::Form { found: "filter with patches", expected });
        assert_eq!(Filter::open(one.as_bytes().to_vec()).is_err(), beside);
        assert!(Filter::open_with_secret(one.as_bytes().to_vec(), [1, 2]).is_err());
    }
}

/// A later release may not read the whole if it may not read the base.
#[test]
fn a_base_that_may_change_makes_a_file_that_may_change() {
    let mut lists = lists(300, 400, 15);
    for kind in ["integrated", "steered"] {
        let options = Options::default().kind(kind.parse().unwrap()).fpr(0.01);
        let base = options.build(side(&lists, true)).exclude(side(&lists, false)).finish().unwrap();
        change(&mut lists, 5, 1);
        let patch = diff(&base.with_patches([]).unwrap(), &lists, Options::default()).unwrap();
        let one = base.with_patches([patch]).unwrap().finish().unwrap();
        assert_eq!((base.may_change(), one.may_change()), (kind == "integrated", kind == "integrated"));
        assert_eq!(FileInfo::of(one.as_bytes()).unwrap().may_change, base.may_change());
    }
}

#[test]
fn partitions_have_patches_too() {
    type Pairs = HashMap<(&'static str, u64), bool>;
    let fill = |pairs: &mut Pairs, label, members: u64, excluded: u64, seed| {
        pairs.extend(integers(members, seed).map(|key| ((label, key), true)));
        pairs.extend(integers(excluded, seed + 1).map(|key| ((label, key), false)));
    };
    let check = |filter: &Filter, pairs: &Pairs| {
        for ((label, key), member) in pairs {
            assert_eq!(filter.contains_in(label, key), Ok(*member), "{label} {key}");
            assert_eq!(filter.contains_many_in(label, &[*key]).unwrap(), [*member]);
            assert_eq!(filter.has_partition(label), Ok(true));
        }
        assert_eq!((filter.has_partition("none"), filter.contains_in("none", 5)), (Ok(false), Ok(false)));
    };
    for secret in [false, true] {
        let mut pairs = Pairs::new();
        fill(&mut pairs, "few", 500, 400, 1);
        fill(&mut pairs, "many", 500, 20_000, 1);
        fill(&mut pairs, "none yet", 0, 50, 1);
        let options = if secret { Options::default().hasher(Hasher::secret([3, 4])) } else { Options::default() };
        let mut keys = options.exact().partitioned();
        for ((label, key), member) in &pairs {
            if *member { keys.push(label, key).unwrap() } else { keys.exclude(label, key).unwrap() }
        }
        let base = keys.finish().unwrap();
        let mut today = base.with_patches([]).unwrap();
        for (day, (label, flips)) in [("new", 3), ("newer", 400), ("few", 1)].into_iter().enumerate() {
            fill(&mut pairs, label, flips, 30, 50 + day as u64);
            fill(&mut pairs, "none yet", flips, 0, 60 + day as u64);
            pairs
                .iter_mut()
                .filter(|((_, key), _)| mix(*key) % 997 == day as u64)
                .for_each(|(_, member)| *member ^= true);
            let mut diff = today.diff().unwrap();
            for ((label, key), member) in &pairs {
                if *member { diff.push_in(label, key).unwrap() } else { diff.exclude_in(label, key).unwrap() }
            }
            assert!(
                matches!(diff.push(5u64), Err(Error::Query(_)))
                    && matches!(diff.push_in("few", "text"), Err(Error::Query(_)))
            );
            today = today.with_patches([diff.finish().unwrap()]).unwrap();
            let one = today.finish().unwrap();
            check(&one, &pairs);
            check(&Filter::open(one.into_bytes()).unwrap(), &pairs);
        }
        assert_eq!((today.partitions(), base.partitions()), (5, 3));
        assert!(today.is_partitioned() && today.contains(5).is_err() && today.has_partition("newer") == Ok(true));
    }
}

#[test]
fn what_does_not_belong_is_an_error() {
    let mut lists = lists(1000, 3000, 15);
    let base = exact(&lists, Options::default());
    let old = base.with_patches([]).unwrap();
    let mut patches = vec![];
    let mut today = old.clone();
    for day in 0..3 {
        change(&mut lists, 200, day);
        patches.push(diff(&today, &lists, Options::default()).unwrap());
        today = today.with_patches([patches[day as usize].clone()]).unwrap();
    }
    let [one, two, three] = [0, 1, 2].map(|i: usize| patches[i].clone());
    let reason = |result: Result<Patched, FormatError>| match result {
        Err(FormatError::Patch { reason }) => reason,
        other => panic!("{other:?}"),
    };
    let other = exact(&lists, Options::default());
    assert!(reason(other.with_patches([one.clone()])).starts_with("made for the file "));
    assert_eq!(reason(base.with_patches([two.clone()])), "number 2 of its chain; expected number 1");
    assert_eq!(reason(base.with_patches([one.clone(), three])), "number 3 of its chain; expected number 2");
    assert_eq!(reason(base.with_patches([one.clone(), one.clone()])), "number 1 of its chain; expected number 2");
    // Another first patch of the same base.
    change(&mut lists, 150, 77);
    let sibling = diff(&old, &lists, Options::default()).unwrap();
    assert!(reason(base.with_patches([sibling, two])).starts_with("follows the patch "));

    // A patch is no filter, and a filter no patch; a filter with patches is a filter.
    let whole = today.finish().unwrap();
    assert_eq!(
        Filter::open(one.as_bytes().to_vec()).unwrap_err(),
        FormatError::Form { found: "patch", expected: "filter" }
    );
    for filter in [&base, &whole] {
        let found = Patch::open(filter.as_bytes().to_vec()).unwrap_err();
        assert_eq!(found, FormatError::Form { found: "filter", expected: "patch" });
    }
    // Keys cannot be inserted into a file with patches.
    let changing = |bytes: &[u8]| tamis::Stacked::restore(bytes.to_vec()).map(drop).unwrap_err();
    assert_eq!(changing(whole.as_bytes()), FormatError::Form { found: "patch", expected: "filter" });
    for cut in 0..one.as_bytes().len() {
        assert!(Patch::open(one.as_bytes()[..cut].to_vec()).is_err(), "{cut}");
    }
    // What is in one file goes on as if it were in several.
    change(&mut lists, 40, 5);
    let next = diff(&whole.with_patches([]).unwrap(), &lists, Options::default()).unwrap();
    assert_eq!((next.number(), next.base(), next.before()), (4, base.identity(), patches[2].identity()));
    check(&today.with_patches([next.clone()]).unwrap(), &lists, None);
    check(&whole.with_patches([next]).unwrap(), &lists, None);

    // Options and bases that patches cannot have.
    let refused = |result: Result<tamis::Diff<'_>, BuildError>| result.unwrap_err().to_string();
    assert!(refused(base.diff_with(Options::default().seed(5))).starts_with("hasher: no effect"));
    assert!(refused(base.diff_with(Options::default().kind(Kind::Bloom))).starts_with("kind: no effect"));
    for few in [1, 200] {
        let mut diff = base.diff().unwrap();
        integers(few, 500).for_each(|key| diff.push(key).unwrap());
        integers(3, 500).for_each(|key| diff.exclude(key).unwrap());
        let Err(Error::Build(BuildError::Conflict { count, .. })) = diff.finish() else { panic!() };
        assert_eq!(count, few.min(3));
    }
    assert!(matches!(base.diff().unwrap().push("text"), Err(Error::Query(_))));
}

/// A base of one kind, with or without partitions, and how its lists are given.
struct Listed {
    partitioned: bool,
    /// Members and excluded keys of the base, and of today.
    before: [Vec<u64>; 2],
    today: [Vec<u64>; 2],
}

impl Listed {
    /// Of the members so many are delisted and so many excluded; so many new members come, of which half were excluded.
    fn new(partitioned: bool, others: u64, delisted: usize, excluded: usize, new: usize) -> Listed {
        let members: Vec<u64> = integers(3000, 41).collect();
        let negatives: Vec<u64> = integers(others, 42).collect();
        let moved = if others > 0 { new / 2 } else { 0 };
        let added = integers((new - moved) as u64, 43);
        let remain = members[delisted + excluded..].iter().chain(&negatives[..moved]).copied();
        let out = members[delisted..delisted + excluded].iter().chain(&negatives[moved..]).copied();
        let today = [remain.chain(added).collect(), out.collect()];
        Listed { partitioned, before: [members, negatives], today }
    }

    fn label(key: u64) -> &'static str {
        ["a", "b"][(key % 2) as usize]
    }

    fn base(&self, options: Options<'_>) -> Filter {
        let [members, negatives] = self.before.each_ref().map(|keys| keys.iter().copied());
        if !self.partitioned {
            return options.build(members).exclude(negatives).finish().unwrap();
        }
        let mut keys = options.partitioned();
        members.for_each(|key| keys.push(Self::label(key), key).unwrap());
        negatives.for_each(|key| keys.exclude(Self::label(key), key).unwrap());
        keys.finish().unwrap()
    }

    /// The patch of today; `old` is where the old list comes: before the others, behind them, or not at all.
    fn patch(&self, base: &Patched, options: Options<'_>, old: Option<usize>) -> Patch {
        let mut diff = base.diff_with(options).unwrap();
        for turn in 0..3 {
            if old == Some(turn) {
                for &key in &self.before[0] {
                    if self.partitioned { diff.push_old_in(Self::label(key), key) } else { diff.push_old(key) }
                        .unwrap();
                }
            }
            for &key in self.today.get(turn).into_iter().flatten() {
                match (self.partitioned, turn) {
                    (false, 0) => diff.push(key),
                    (false, _) => diff.exclude(key),
                    (true, 0) => diff.push_in(Self::label(key), key),
                    (true, _) => diff.exclude_in(Self::label(key), key),
                }
                .unwrap();
            }
        }
        diff.finish().unwrap()
    }

    fn matches(&self, filter: &Patched, keys: &[u64]) -> usize {
        let one = |&&key: &&u64| match self.partitioned {
            true => filter.contains_in(Self::label(key), key).unwrap(),
            false => filter.contains(key).unwrap(),
        };
        keys.iter().filter(one).count()
    }
}

/// Members of the base that are in neither list of today: with the old list a patch turns them off, and without it counts them.
#[test]
fn delisted_keys_are_turned_off_or_counted() {
    type Goal = fn(Options<'static>) -> Options<'static>;
    let secret: Goal = |options| options.fpr(0.001).hasher(Hasher::secret([1, 2]));
    let bases: [(&str, bool, u64, Goal); 7] = [
        ("one in a thousand", false, 9000, |options| options.fpr(0.001)),
        ("half of all", false, 9000, |options| options.fpr(0.5)),
        ("exact", false, 9000, |options| options.exact()),
        ("nothing excluded", false, 0, |options| options.fpr(0.001)),
        ("a secret", false, 9000, secret),
        ("partitions", true, 9000, |options| options.fpr(0.001)),
        ("exact partitions", true, 9000, |options| options.exact()),
    ];
    for (what, partitioned, others, goal) in bases {
        for (delisted, excluded, new) in
            [(100, 0, 0), (1, 0, 0), (0, 0, 0), (500, 0, 0), (100, 20, 0), (100, 20, 30), (0, 5, 300)]
        {
            let lists = Listed::new(partitioned, others, delisted, excluded, new);
            let what = format!("{what}: {delisted} delisted, {excluded} excluded, {new} new");
            let base = lists.base(goal(Options::default())).with_patches([]).unwrap();
            let gone = &lists.before[0][..delisted];

            let patch = lists.patch(&base, Options::default(), Some(2));
            assert!(patch == lists.patch(&base, Options::default(), Some(0)), "{what}: the order of lists");
            let low = Options::default().limits(tamis::Limits::default().memory(1)).threads(1);
            assert!(patch == lists.patch(&base, low, Some(1)), "{what}: little memory");
            let today = base.with_patches([patch]).unwrap();
            assert_eq!(lists.matches(&today, gone), 0, "{what}");
            assert_eq!(
                (today.delisted(), today.patches()[0].members()),
                (0..=0, lists.today[0].len() as u64),
                "{what}"
            );
            for (keys, expected) in lists.today.iter().zip([lists.today[0].len(), 0]) {
                assert_eq!(lists.matches(&today, keys), expected, "{what}");
            }

            // Members of the base are known to match: as many as are left over, at least.
            let without = base.with_patches([lists.patch(&base, Options::default(), None)]).unwrap();
            let counted = without.delisted();
            assert!(
                *counted.start() <= delisted as u64 && counted.contains(&(lists.matches(&without, gone) as u64)),
                "{what}: {counted:?}"
            );
            assert_eq!(lists.matches(&without, gone), delisted, "{what}");
            if new == 0 && excluded == 0 {
                assert_eq!(counted, delisted as u64..=delisted as u64, "{what}");
            }
            let one = without.finish().unwrap();
            assert_eq!(Filter::open(one.as_bytes().to_vec()).unwrap().delisted(), counted, "{what}: one file");

            // The next patch repeats what is left, and the old list turns off what patches before it left.
            let next = lists.patch(&without, Options::default(), None);
            assert_eq!((next.len(), next.members()), (0, lists.today[0].len() as u64), "{what}");
            assert_eq!(next.delisted().start(), counted.start(), "{what}");
            let next = lists.patch(&without, Options::default(), Some(2));
            let today = without.with_patches([next]).unwrap();
            assert_eq!((lists.matches(&today, gone), *today.delisted().start()), (0, 0), "{what}");
        }
    }
}

/// A key of the old list that is a member today stays one, and what becomes of a key of both lists of today is as without an old list.
#[test]
fn old_keys_are_no_conflict() {
    let base = tamis::build(0..400u64).exclude(1000..3000u64).fpr(0.001).finish().unwrap();
    for (policy, member) in [(OnConflict::Keep, true), (OnConflict::Drop, false)] {
        for few in [5, 300] {
            let mut diff = base.diff_with(Options::default().on_conflict(policy)).unwrap();
            (0..400u64).for_each(|key| diff.push_old(key).unwrap());
            (few..405).chain([1000]).for_each(|key| diff.push(key).unwrap());
            (1000..3000).chain([399, 404]).for_each(|key| diff.exclude(key).unwrap());
            let patch = diff.finish().unwrap();
            assert_eq!(patch.members(), 406 - few - if member { 0 } else { 3 }, "{policy} {few}");
            let today = base.with_patches([patch]).unwrap();
            assert!((0..few).all(|key| today.contains(key) == Ok(false)), "{policy} {few}");
            assert!((few..399).chain(400..404).all(|key| today.contains(key) == Ok(true)), "{policy} {few}");
            for key in [399, 404, 1000] {
                assert_eq!(today.contains(key), Ok(member), "{policy} {few}: {key}");
            }
            assert_eq!(today.delisted(), 0..=0, "{policy} {few}");
        }
    }
}

#[test]
fn a_chain_has_an_end() {
    let mut lists = lists(3, 3, 17);
    let mut today = exact(&lists, Options::default()).with_patches([]).unwrap();
    for day in 0..128 {
        assert_eq!(today.remaining(), 128 - day);
        change(&mut lists, 1, day);
        today = today.with_patches([diff(&today, &lists, Options::default()).unwrap()]).unwrap();
    }
    check(&today, &lists, None);
    let error = today.diff().unwrap_err().to_string();
    assert_eq!(error, "diff: the filter has 128 patches; expected fewer; build it again");
    let thousand: Vec<Patch> = today.patches().iter().cycle().take(1000).cloned().collect();
    let base = Filter::open(exact(&super::patches::lists(3, 3, 17), Options::default()).into_bytes()).unwrap();
    assert!(matches!(base.with_patches(thousand), Err(FormatError::Patch { .. })));
}

/// A patch of each kind, and a filter with both.
fn small() -> [Vec<u8>; 3] {
    let mut lists = lists(200, 600, 19);
    let base = exact(&lists, Options::default()).with_patches([]).unwrap();
    change(&mut lists, 5, 1);
    let one = diff(&base, &lists, Options::default()).unwrap();
    let today = base.with_patches([one.clone()]).unwrap();
    change(&mut lists, 200, 2);
    let two = diff(&today, &lists, Options::default()).unwrap();
    let whole = today.with_patches([two.clone()]).unwrap().finish().unwrap();
    [one.as_bytes().to_vec(), two.as_bytes().to_vec(), whole.as_bytes().to_vec()]
}

/// A filter of partitions and a patch that flips answers in two of them and lists a third.
fn partitioned() -> Vec<u8> {
    let member = |label: &str, key: u64| match label {
        "few" => key.is_multiple_of(3),
        "many" => key % 3 == 1,
        _ => key < 4,
    };
    let mut keys = Options::default().exact().partitioned();
    for (label, key) in (0..600).flat_map(|key| [("few", key), ("many", key)]) {
        if member(label, key) { keys.push(label, key).unwrap() } else { keys.exclude(label, key).unwrap() }
    }
    let base = keys.finish().unwrap();
    let mut diff = base.diff().unwrap();
    for (label, key) in (0..600).flat_map(|key| [("few", key), ("many", key), ("one", key)]) {
        let flips = label != "one" && [0, 3, 4, 5, 499].contains(&key);
        if member(label, key) ^ flips {
            diff.push_in(label, key).unwrap()
        } else {
            diff.exclude_in(label, key).unwrap()
        }
    }
    let patch = diff.finish().unwrap();
    base.with_patches([patch]).unwrap().finish().unwrap().as_bytes().to_vec()
}

#[test]
fn files_of_version_1_stay() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden-patches");
    let base = exact(&lists(200, 600, 19), Options::default()).as_bytes().to_vec();
    let files = small().into_iter().chain([base, partitioned()]);
    for (name, built) in ["list", "steps", "chain", "base", "chain-partitioned"].into_iter().zip(files) {
        let path = folder.join(name).with_extension("tamis");
        if std::env::var_os("TAMIS_BLESS").is_some() {
            std::fs::write(&path, &built).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == built, "{name}: other bytes than the golden file's");
    }
    let today = Filter::open(small()[2].clone()).unwrap();
    let mut lists = lists(200, 600, 19);
    change(&mut lists, 5, 1);
    change(&mut lists, 200, 2);
    check(&today.with_patches([]).unwrap(), &lists, None);
}

#[test]
fn impossible_fields_are_named() {
    let change = |file: usize, edit: &dyn Fn(&mut Parts)| {
        let mut parts = Parts::of(&small()[file]).unwrap();
        edit(&mut parts);
        match file {
            2 => Filter::open_unverified(parts.file()).unwrap_err().to_string(),
            _ => Patch::open_unverified(parts.file()).unwrap_err().to_string(),
        }
    };
    for (file, expected, edit) in [
        (0, "kind of patch 3 is not supported", &(|p: &mut Parts| p.directory[0] = 3) as &dyn Fn(&mut Parts)),
        (0, "invalid file: directory: number of the patch is 0, expected 1 to 128", &|p| p.directory[1] = 0),
        (0, "invalid file: header: hash is 0, expected 5 for a patch", &|p| p.head[HASH] = 0),
        (0, "invalid file: digests of a patch: not a list of as many", &|p| p.payload.fill(0xff)),
        (0, "invalid file: digests of a patch: not a list of as many", &|p| {
            if let Some(last) = p.payload.last_mut() {
                *last |= 0x80;
            }
        }),
        (0, "invalid file: directory: bits of a digest is 65, expected 1 to 64", &|p| p.directory[24] = 65),
        (0, "invalid file: directory: low bits of a gap is 64, expected 0 to 63", &|p| p.directory[25] = 64),
        (0, "invalid file: header: 200 keys in 2^0 shards, expected at most 128 in one", &|p| {
            p.head.splice(5..6, [200, 1]);
        }),
        (0, "invalid file: digests of a patch: not a list of as many", &|p| p.head[5] = 90),
        (0, "truncated or damaged: the payload needs ", &|p| {
            p.payload.pop();
        }),
        // A byte behind the list, a hash of more bits than there are, partitions that descend.
        (0, "invalid file: digests of a patch: not a list of as many", &|p| {
            p.directory[26] += 1;
            p.payload.push(0);
        }),
        (0, "invalid file: digests of a patch: not a list of as many", &|p| p.directory[24] -= 1),
        (0, "invalid file: partitions of a patch are not in order", &|p| {
            p.directory[18] = 2;
            p.payload.extend([[2; 8], [1; 8]].as_flattened());
        }),
        (1, "hash 5 is not supported by this release", &|p| p.head[FORM] = 0),
        (1, "invalid file: directory: bytes after its end", &|p| p.directory.push(0)),
        (2, "invalid file: directory: number of patches is 129, expected 1 to 128", &|p| {
            p.directory.splice(1..2, [129, 1]);
        }),
        (2, "the file holds a patch; expected a filter", &|p| p.directory[0] = 1),
        (2, "invalid file: directory: bytes after its end", &|p| p.directory.push(0)),
        (2, "invalid file: 3 bytes between payload and directory", &|p| p.payload.extend([0; 3])),
    ] {
        let text = change(file, edit);
        assert!(text.starts_with(expected), "{text}; expected {expected}");
    }
    // A patch of the same base whose keys are of another type.
    let mut parts = Parts::of(&small()[0]).unwrap();
    parts.head[KEY_TYPE] = 0;
    let text = Patch::open(parts.file()).unwrap();
    let base = exact(&lists(200, 600, 19), Options::default());
    let error = base.with_patches([text]).unwrap_err().to_string();
    assert!(error.contains("its keys are bytes; expected integer"), "{error}");
    // A hash number of patches is of patches alone.
    let mut parts = Parts::of(exact(&lists(20, 20, 1), Options::default()).as_bytes()).unwrap();
    parts.head[HASH] = 5;
    let error = Filter::open_unverified(parts.file()).unwrap_err().to_string();
    assert!(error.starts_with("hash 5 is not supported"), "{error}");
}

/// A file inside a file inside a file: no depth of them is followed.
#[test]
fn no_file_is_nested_twice() {
    let [one, _, whole] = small();
    let parts = Parts::of(&whole).unwrap();
    let nest = |inner: &[u8]| {
        let mut directory = vec![2, 1];
        for len in [inner.len(), one.len()] {
            directory.extend([(len & 0x7f | 0x80) as u8, (len >> 7 & 0x7f | 0x80) as u8, (len >> 14) as u8]);
            while directory.last() == Some(&0) {
                directory.pop();
                if let Some(last) = directory.last_mut() {
                    *last &= 0x7f;
                }
            }
        }
        Parts::new(&parts.head, &[inner, &one].concat(), &directory).file()
    };
    let mut file = whole.clone();
    for _ in 0..20 {
        file = nest(&file);
        let error = Filter::open_unverified(file.clone()).unwrap_err();
        assert_eq!(error, FormatError::Form { found: "patch", expected: "filter" });
    }
}

/// For as many seconds as TAMIS_MUTATE_SECONDS says, 3 unless it is set.
#[test]
fn repaired_mutations_never_panic() {
    let seconds = std::env::var("TAMIS_MUTATE_SECONDS").map_or(3, |text| text.parse().unwrap());
    let files = small();
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut random, mut tried, mut opened) = (Random(23 << 32), 0u64, [0u64; 3]);
    let base = exact(&lists(200, 600, 19), Options::default());
    let asked: Vec<u64> = integers(60, 19).chain(integers(60, 20)).collect();
    let agree = |filter: &Patched| {
        let many = filter.contains_many(&asked).unwrap();
        assert!(asked.iter().zip(many).all(|(key, answer)| filter.contains(key) == Ok(answer)));
        assert!((-1e-9..=1.0 + 1e-9).contains(&filter.fpr()));
    };
    while Instant::now() < end {
        let which = random.below(3);
        let mut parts = Parts::of(&files[which]).unwrap();
        for _ in 0..random.below(4) {
            match random.below(8) {
                0 => random.edit(&mut parts.head),
                1 => random.edit(&mut parts.payload),
                _ => random.edit(&mut parts.directory),
            }
        }
        tried += 1;
        if which == 2 {
            let filter = watched("a chain", parts.file(), Filter::open_unverified);
            if let Some(filter) = filter.ok().filter(|filter| !filter.is_partitioned() && filter.typed::<u64>().is_ok())
            {
                opened[which] += 1;
                agree(&filter.with_patches([]).unwrap());
            }
            continue;
        }
        parts.fit(1 << 18, Patch::open_unverified);
        let patch = watched("a patch", parts.file(), Patch::open_unverified);
        let Ok(patch) = patch else { continue };
        opened[which] += 1;
        // Behind the base if it still names it, at its place.
        let first = Patch::open(files[0].clone()).unwrap();
        let before = if which == 1 { vec![first] } else { vec![] };
        if let Ok(filter) = base.with_patches(before.into_iter().chain([patch])) {
            agree(&filter);
        }
    }
    assert!(opened.iter().all(|&opened| opened * 30 > tried), "{opened:?} of {tried}");
}
