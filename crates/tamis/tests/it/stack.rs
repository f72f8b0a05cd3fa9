//! every builder, opener, editor and query, on a thread of 128 KiB -> answers: what a thread has in musl; 512 KiB are one in macOS.
//!
//! A thread that needs more takes the whole process with it: the last name that was printed (`--nocapture`) is the one at fault. This
//! holds for code that is optimised, as tests and releases are here; without optimisation frames are larger.

use tamis::adaptive::{
    Adapt, AdaptiveBloom, AdaptiveChained, AdaptiveFilter, AdaptiveQuotient, AdaptiveStacked, Broom, CuckooCascade,
    LargeBroom, Memory, QuotientCascade,
};
use tamis::lsm::Level;
use tamis::sets::Editor;
use tamis::slices::{KeyRange, Plan, Sketch, Survey, join};
use tamis::table::{Predictor, TableBuilder};
use tamis::{
    Bloom, Chained, Cuckoo, Digest, Effort, Error, Fetch, Filter, Hasher, KeyType, Kind, Layout, Limits, Map,
    OnConflict, Options, Othello, Quotient, Sequence, Sets, SharedChained, Stacked,
};

use super::{excludes, integers, learned, mix};

const STACK: usize = 128 << 10;

/// A name, and what is done under it.
type Job = (&'static str, fn() -> Result<(), Error>);

/// A name, and the value of a key.
type Law = (&'static str, fn(u64) -> u64);

/// Sorts take another way from 16,384 keys on.
const KEYS: u64 = 20_000;

fn keys() -> impl Iterator<Item = u64> + Clone {
    integers(KEYS, 1)
}

fn others() -> impl Iterator<Item = u64> + Clone {
    integers(2 * KEYS, 2)
}

fn both() -> Vec<u64> {
    keys().take(3000).chain(others().take(3000)).collect()
}

/// Everything that can be done with a filter: all keys are found, one by one and together.
fn use_filter(filter: Filter) -> Result<(), Error> {
    let asked = both();
    let opened = Filter::open(filter.as_bytes().to_vec())?;
    opened.verify()?;
    let answers = opened.contains_many(&asked)?;
    let typed = opened.typed::<u64>()?;
    for (&key, answer) in asked.iter().zip(&answers) {
        assert_eq!((opened.contains(key)?, typed.contains(key)), (*answer, *answer));
    }
    assert!(answers[..3000].iter().all(|yes| *yes));
    assert!(opened.layers().count() < 20 && !format!("{opened:?}").is_empty());
    let mut remote = Fetch::open(filter.as_bytes().len() as u64, |range| {
        Ok(bytes::Bytes::copy_from_slice(&filter.as_bytes()[range.start as usize..range.end as usize]))
    })?;
    assert_eq!(remote.contains_many(&asked)?, answers);
    let file = tempfile::NamedTempFile::new()?.into_temp_path();
    tamis::save(filter.as_bytes(), &file)?;
    assert_eq!(Filter::read(&file)?, filter);
    Ok(())
}

fn filters() -> Result<(), Error> {
    for &(name, kind) in Kind::ALL.iter().filter(|(_, kind)| !matches!(kind, Kind::Stacked(_))) {
        for effort in [Effort::Fast, Effort::Balanced, Effort::Smallest] {
            if effort != Effort::Balanced && !matches!(kind, Kind::Auto | Kind::Steered | Kind::Ribbon | Kind::Cuckoo) {
                continue;
            }
            println!("{name}, {effort:?}");
            let options = Options::default().kind(kind).effort(effort).threads(1);
            if !excludes(kind) {
                use_filter(options.clone().fpr(0.003).build(keys()).finish()?)?;
            }
            if excludes(kind) || kind == Kind::Auto {
                use_filter(options.clone().exact().build(keys()).exclude(others()).finish()?)?;
                use_filter(options.fpr(0.003).build(keys()).exclude(others().take(300)).finish()?)?;
            }
        }
    }
    Ok(())
}

fn ways_to_build() -> Result<(), Error> {
    let exact = || tamis::build(keys()).exclude(others()).exact();
    use_filter(exact().layout(Layout::Local).threads(2).finish()?)?;
    // From 65,536 on, threads share a sort.
    use_filter(tamis::build(integers(70_000, 1)).exclude(integers(70_000, 2)).threads(2).finish()?)?;
    use_filter(exact().threads(1).shard_bytes(4096).finish()?)?;
    use_filter(exact().limits(Limits::default().memory(1 << 20)).threads(2).finish()?)?;
    use_filter(exact().on_conflict(OnConflict::Drop).secret([1, 2]).finish()?)?;
    use_filter(tamis::build(keys()).exclude(others()).bits_per_key(7.0).finish()?)?;
    use_filter(tamis::build(keys()).exclude(others()).excluded_fpr(0.1).finish()?)?;
    use_filter(tamis::build(keys()).bits_per_key(7.0).plan().map(|_| tamis::build(keys()).finish())??)?;
    let digests = Hasher::seeded(0).digests(&keys().collect::<Vec<_>>());
    use_filter(tamis::build_digests(digests, Hasher::seeded(0), KeyType::Integer).finish()?)?;
    let mut pieces = tamis::stream().exact().with_excluded().start();
    for (key, other) in keys().zip(others()) {
        pieces.push(key)?;
        pieces.exclude(other)?;
    }
    use_filter(pieces.finish()?)?;
    let names: Vec<String> = keys().map(|key| format!("{key}.example")).collect();
    let filter = tamis::build(&names).finish()?;
    assert!(names.iter().all(|name| filter.contains(name) == Ok(true)));
    let file = tempfile::NamedTempFile::new()?.into_temp_path();
    tamis::build(keys()).finish_to(&file)?;
    use_filter(Filter::read(&file)?)
}

/// Structures that the planner chooses for a workload, and all that can be named.
fn workloads() -> Result<(), Error> {
    let queries = || others().take(30_000).zip(1..).map(|(key, i)| (key, 1e6 / f64::from(i)));
    let build = || tamis::build(keys()).workload(queries());
    use_filter(build().bits_per_key(8.0).finish()?)?;
    use_filter(build().workload_fpr(0.01).finish()?)?;
    build().bits_per_key(8.0).plan()?;
    for &(name, kind) in Kind::ALL.iter().filter(|(_, kind)| matches!(kind, Kind::Stacked(_))) {
        println!("{name}");
        let filter = build().kind(kind).bits_per_key(14.0).finish()?;
        if let Ok(mut stack) = Stacked::restore(filter.as_bytes().to_vec()) {
            integers(500, 9).try_for_each(|key| stack.insert(key))?;
            use_filter(Filter::open(stack.snapshot()?)?)?;
        }
        use_filter(filter)?;
    }
    Ok(())
}

fn partitions() -> Result<(), Error> {
    let label = |key: u64| format!("label {}", key % 30);
    let mut build = tamis::stream().exact().threads(2).partitioned();
    keys().try_for_each(|key| build.push(label(key), key))?;
    others().filter(|key| key % 30 < 20).try_for_each(|key| build.exclude(label(key), key))?;
    let filter = build.finish()?;
    let filter = Filter::open(filter.as_bytes().to_vec())?;
    assert!(keys().all(|key| filter.contains_in(label(key), key) == Ok(true)));
    Ok(())
}

fn maps() -> Result<(), Error> {
    let values: [Law; 3] = [("few", |i| u64::from(mix(i).trailing_zeros())), ("many", |i| mix(i) % 5000), ("all", mix)];
    for kind in [tamis::maps::Kind::Compressed, tamis::maps::Kind::Ribbon, tamis::maps::Kind::Fuse] {
        for (name, value) in values {
            println!("{kind:?}, {name}");
            let map = tamis::map(keys().map(|key| (key, value(key)))).kind(kind).finish()?;
            let map = Map::open(map.as_bytes().to_vec())?;
            assert!(keys().all(|key| map.get_u64(key) == Ok(Some(value(key)))));
            assert_eq!(map.get_many(&both())?.len(), 6000);
        }
    }
    let text = tamis::map(keys().map(|key| (key, format!("value {}", key % 3000)))).finish()?;
    assert!(keys().all(|key| text.get_bytes(key).unwrap().is_some()));
    let items: Vec<u64> = keys().map(|key| key % 9).collect();
    let sequence = Sequence::open(tamis::sequence(items.iter().copied()).finish()?.as_bytes().to_vec())?;
    assert!(items.iter().zip(0..).all(|(&item, at)| sequence.get(at).and_then(|value| value.as_u64()) == Some(item)));
    Ok(())
}

fn sets() -> Result<(), Error> {
    let set = |key: u64, more: u64| format!("set {}", mix(key ^ more) % 300);
    let pairs = || keys().flat_map(|key| [(key, set(key, 0)), (key, set(key, 1))]);
    for kind in [tamis::sets::Kind::Bloom, tamis::sets::Kind::Cuckoo, tamis::sets::Kind::Frozen] {
        println!("{kind:?}");
        let index = Sets::open(tamis::sets(pairs()).kind(kind).finish()?.as_bytes().to_vec())?;
        let id = |key| index.id(&set(key, 0)).unwrap();
        assert!(keys().take(3000).all(|key| index.find(key).unwrap().contains(&id(key))));
        index.find_many(&both(), |_, _| {})?;
        assert!(!index.tally(&both())?.counts.is_empty());
        let mut editor = Editor::new(&index)?;
        let new = editor.add_set("new")?;
        editor.insert(7, new)?;
        editor.insert_many(&others().map(|key| (key, new)).collect::<Vec<_>>())?;
        if kind == tamis::sets::Kind::Cuckoo {
            assert!(editor.remove(7, new)?);
        }
        editor.merge(&tamis::sets(others().map(|key| (key, "other"))).finish()?)?;
        let edited = Sets::open(editor.snapshot()?)?;
        let frozen = edited.freeze(keys().chain(others()))?;
        assert!(keys().take(1000).all(|key| frozen.find(key).unwrap().contains(&id(key))));
    }
    tamis::sets(pairs()).counts(true).finish()?;
    Ok(())
}

fn dynamic() -> Result<(), Error> {
    let mut bloom = Bloom::with_capacity(KEYS).build::<u64>()?;
    keys().try_for_each(|key| bloom.insert(key).map(drop))?;
    let mut classic = Bloom::with_capacity(KEYS).classic().build::<u64>()?;
    keys().try_for_each(|key| classic.insert(key).map(drop))?;
    let mut cuckoo = Cuckoo::with_capacity(KEYS).build::<u64>()?;
    keys().try_for_each(|key| cuckoo.insert(key))?;
    let mut sorted = Cuckoo::with_capacity(KEYS).semi_sorted().build::<u64>()?;
    keys().try_for_each(|key| sorted.insert(key))?;
    let mut quotient = Quotient::with_capacity(3 * KEYS).fpr(1e-4).build::<u64>()?;
    keys().try_for_each(|key| quotient.insert(key))?;
    quotient.merge(&quotient.clone())?;
    quotient.grow()?;
    assert!(keys().take(99).all(|key| cuckoo.remove(key) == Ok(true) && quotient.remove(key) == Ok(true)));
    use_filter(Filter::open(Bloom::restore(bloom.snapshot()?)?.snapshot()?)?)?;
    use_filter(Filter::open(Bloom::restore(classic.snapshot()?)?.snapshot()?)?)?;
    use_filter(Filter::open(Cuckoo::restore(sorted.snapshot()?)?.snapshot()?)?)?;
    Quotient::restore(quotient.snapshot()?)?;

    let mut chained = Chained::over(Cuckoo::with_capacity(KEYS).fpr(0.05).build::<u64>()?)?;
    keys().try_for_each(|key| chained.insert(key).map(drop))?;
    others().try_for_each(|key| chained.exclude(key).map(drop))?;
    let chained = Chained::restore(chained.snapshot()?)?;
    use_filter(Filter::open(chained.snapshot()?)?)?;
    let shared = SharedChained::from(chained);
    assert!(keys().all(|key| shared.contains(key) == Ok(true)));
    let mut built = Chained::over_built(&tamis::build(keys()).fpr(0.05).finish()?, keys())?;
    others().take(9000).try_for_each(|key| built.exclude(key).map(drop))?;
    let mut bits = Othello::new::<u64>()?;
    keys().try_for_each(|key| bits.set(key, key % 2 == 0).map(drop))?;
    assert!(keys().all(|key| bits.get(key) == Ok(key % 2 == 0)));
    Ok(())
}

fn adaptive() -> Result<(), Error> {
    fn run<F: Adapt>(filter: Result<F, tamis::BuildError>) -> Result<(), Error> {
        let (mut filter, mut map) = (filter?, Memory::new());
        for key in integers(20_000, 1) {
            filter.insert(key, &mut map).unwrap();
        }
        for key in integers(20_000, 2) {
            if filter.contains(key)? {
                filter.adapt(key, &mut map).unwrap();
            }
        }
        let filter = F::restore(filter.snapshot()?)?;
        assert!(integers(20_000, 1).all(|key| filter.contains(key) == Ok(true)));
        Ok(())
    }
    run(Broom::with_capacity(20_000).build::<u64>())?;
    run(Broom::with_capacity(500).growing().build::<u64>())?;
    run(LargeBroom::with_capacity(20_000).fpr(1e-6).build::<u64>())?;
    run(QuotientCascade::with_capacity(20_000).build::<u64>())?;
    run(CuckooCascade::with_capacity(20_000).build::<u64>())?;
    run(AdaptiveBloom::with_capacity(20_000).build::<u64>())?;
    run(AdaptiveQuotient::with_capacity(20_000).build::<u64>())?;

    let mut all: Vec<u64> = keys().collect();
    let mut filter = AdaptiveChained::with_fpr(1.0 / 64.0).rebuild_every(500).build(&mut all).unwrap();
    for key in others() {
        if filter.contains(key)? {
            filter.adapt(key, &mut all).unwrap();
        }
    }
    assert!(AdaptiveChained::restore(filter.snapshot()?)?.contains(all[7])?);
    let mut filter = AdaptiveStacked::with_bits_per_key(8.0).sample(20_000).lifetime(300_000).build(&mut all).unwrap();
    for i in 0..60_000u64 {
        let query = 1 + (i * i + 7) % 3001;
        if filter.query(query)? {
            filter.adapt(query, &mut all).unwrap();
        }
    }
    assert!(AdaptiveStacked::restore(filter.snapshot()?)?.contains(all[7])?);
    Ok(())
}

fn tables() -> Result<(), Error> {
    for predictor in [Predictor::Auto, Predictor::Cascade] {
        for slots in [1, 4] {
            let mut table = TableBuilder::with_capacity(0).slots(slots).predictor(predictor).build::<u64, u64>()?;
            for key in keys() {
                table.insert(key, !key)?;
            }
            table.settle()?;
            assert!(keys().all(|key| table.get_and_learn(&key).unwrap() == Some(!key)));
            assert!(keys().all(|key| table.remove(&key).unwrap().is_some()));
        }
    }
    Ok(())
}

fn levels() -> Result<(), Error> {
    let mut level = Level::new::<u64>()?;
    let runs = [level.push_run(keys())?, level.push_run(others())?, level.push_run(keys().take(500))?];
    let merged = level.merge(runs[0], runs[1], keys().chain(others()))?;
    assert!(keys().skip(500).all(|key| level.find(key) == Ok(Some(merged))));
    Ok(())
}

fn models() -> Result<(), Error> {
    let (members, excluded) = (learned::members(6000), learned::excluded(9000));
    let (built, _) = tamis::stream().exact().learn(&members, &excluded).keep_model().finish()?;
    if let tamis::learned::Built::Learned(filter) = built {
        let filter = tamis::learned::Learned::<tamis::learned::Grams>::open(filter.as_bytes().to_vec())?;
        assert!(members.iter().all(|key| filter.contains(key)));
    }
    Ok(())
}

fn patches() -> Result<(), Error> {
    let base = tamis::build(keys()).exclude(others()).exact().finish()?;
    let mut today = base.with_patches([])?;
    for day in [3000, 30, 300] {
        let mut diff = today.diff()?;
        keys().take(day).try_for_each(|key| diff.exclude(key))?;
        others().take(day).try_for_each(|key| diff.push(key))?;
        today = today.with_patches([diff.finish()?])?;
    }
    let one = Filter::open(today.finish()?.as_bytes().to_vec())?;
    assert!(others().take(300).all(|key| one.contains(key) == Ok(true) && today.contains(key) == Ok(true)));
    Ok(())
}

fn slices() -> Result<(), Error> {
    let hasher = Hasher::seeded(0);
    let of = |range: KeyRange, keys: &dyn Fn() -> Vec<Digest>| -> Vec<Digest> {
        keys().into_iter().filter(|&digest| range.contains(digest)).collect()
    };
    let members = || keys().map(|key| hasher.integer(key)).collect::<Vec<_>>();
    let excluded = || others().map(|key| hasher.integer(key)).collect::<Vec<_>>();
    let options = Options::default().exact().shard_bytes(4096);
    let ranges: Vec<KeyRange> = (0..4).map(|index| KeyRange::new(index, 4)).collect::<Result<_, _>>()?;
    let survey = |&range| Survey::new(&options, range, of(range, &members), of(range, &excluded));
    let surveys = ranges.iter().map(survey).collect::<Result<Vec<_>, Error>>()?;
    let survey = surveys.into_iter().map(Ok).reduce(|one, two| one?.merge(two?)).unwrap()?;
    let plan = Plan::new(&options, KeyType::Integer, survey, 4)?;
    let sketches =
        ranges.iter().map(|&range| plan.sketch(range, of(range, &excluded))).collect::<Result<Vec<_>, _>>()?;
    let sketch: Sketch = sketches.into_iter().map(Ok).reduce(|one, two| one?.merge(two?)).unwrap()?;
    let plan: Plan = plan.with_sketch(sketch)?.to_string().parse()?;
    let slice = |number| {
        let range = plan.range(number)?;
        Ok(plan.slice(number, of(range, &members), of(range, &excluded))?.to_vec())
    };
    use_filter(join((0..plan.slices()).map(slice).collect::<Result<Vec<Vec<u8>>, Error>>()?)?)
}

fn values() -> Result<(), Error> {
    let filter = tamis::build(keys()).finish()?;
    assert_eq!(serde_json::from_str::<Filter>(&serde_json::to_string(&filter).unwrap()).unwrap(), filter);
    let map = tamis::map(keys().zip(0u64..)).finish()?;
    assert_eq!(postcard::from_bytes::<Map>(&postcard::to_allocvec(&map).unwrap()).unwrap(), map);
    let sets = tamis::sets(keys().map(|key| (key, "all"))).finish()?;
    assert_eq!(postcard::from_bytes::<Sets>(&postcard::to_allocvec(&sets).unwrap()).unwrap(), sets);
    Ok(())
}

#[test]
fn a_small_stack_is_enough() {
    let all: [Job; 14] = [
        ("filters", filters),
        ("ways to build", ways_to_build),
        ("workloads", workloads),
        ("partitions", partitions),
        ("maps", maps),
        ("sets", sets),
        ("dynamic", dynamic),
        ("adaptive", adaptive),
        ("tables", tables),
        ("levels", levels),
        ("models", models),
        ("patches", patches),
        ("slices", slices),
        ("values", values),
    ];
    for (name, run) in all {
        println!("{name}");
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap();
        thread.join().unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
