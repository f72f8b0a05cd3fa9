//! queries to expect -> filters that do as predicted on them.

use tamis::{BuildError, Error, Filter, Kind, Limits, Report};

use super::{integers, mix};

/// Keys 1; expected queries 2, skewed, each with its weight.
fn popular(n: u64) -> impl Iterator<Item = (u64, f64)> {
    integers(n, 2).zip(1u64..).map(|(key, rank)| (key, (1e6 / rank as f64).ceil()))
}

const KEYS: u64 = 20_000;
const POPULAR: u64 = 60_000;

fn report(build: tamis::FilterBuilder<'_>) -> Result<(Filter, Report), Error> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let report = build.finish_to(file.path())?;
    Ok((Filter::read(file.path())?, report))
}

/// The same without a query that is a twelfth of all: whether that one passes is chance.
fn flatter(n: u64) -> impl Iterator<Item = (u64, f64)> {
    integers(n, 2).zip(50u64..).map(|(key, rank)| (key, (1e7 / rank as f64).ceil()))
}

/// Every kind that can be planned for the expected queries holds its keys, keeps its budget, and does on the queries what was said.
#[test]
fn every_kind_does_what_was_predicted() {
    for &(name, kind) in Kind::ALL {
        for bits in [8.0, 13.0] {
            let build = tamis::build(integers(KEYS, 1))
                .kind(kind)
                .workload(flatter(POPULAR))
                .unlisted_share(0.2)
                .bits_per_key(bits);
            let (filter, report) = match report(build) {
                Ok(both) => both,
                // A cascade of many negatives does not fit in eight bits, and says so.
                Err(Error::Build(BuildError::Budget { .. })) if bits == 8.0 => continue,
                Err(Error::Build(BuildError::Instead { cause, kinds })) if bits == 8.0 => {
                    assert!(!kinds.is_empty() || matches!(*cause, BuildError::Budget { .. }), "{name}: {cause}");
                    continue;
                }
                Err(error) => panic!("{name}, {bits} bits: {error}"),
            };
            let what = format!("{name}, {bits} bits");
            assert!(integers(KEYS, 1).all(|key| filter.contains(key) == Ok(true)), "{what}");
            let workload = report.workload.unwrap();
            let (predicted, real) = (workload.predicted, workload.measured);
            assert!(real.bits_per_key <= bits * 1.0001, "{what}: {real:?}");
            assert!(real.bits_per_key <= 1.02 * predicted.bits_per_key + 0.05, "{what}: {real:?} {predicted:?}");
            // A quotient filter may need more slots at its end than it does, and a stack of few keys has many ends.
            assert!(real.bits_per_key >= 0.9 * predicted.bits_per_key, "{what}: {real:?} {predicted:?}");
            // Which bits an integrated filter compares is found out when it is built: here the worst is promised.
            let lucky = matches!(kind, Kind::Integrated(_, parts) if parts != tamis::IntegratedVariant::One);
            let ratio = real.fpr / predicted.fpr;
            assert!(ratio < 1.1 && (lucky || ratio > 0.9), "{what}: {real:?} {predicted:?}");
            // What passes among few heavy ones is chance.
            let slack = 0.3 * predicted.workload_fpr + 3e-3;
            let more = real.workload_fpr - predicted.workload_fpr;
            assert!(more < slack && (lucky || more > -slack), "{what}: {real:?} {predicted:?}");
            // Measured here as well.
            let (mut passing, mut all) = (0.0, 0.0);
            for (key, weight) in flatter(POPULAR) {
                all += weight;
                passing += if filter.contains(key).unwrap() { weight } else { 0.0 };
            }
            let measured = 0.8 * passing / all + 0.2 * filter.fpr();
            assert!((measured - real.workload_fpr).abs() < 1e-9, "{what}: {measured} {real:?}");
        }
    }
}

/// What ends in an exact bit never lets a known one through.
#[test]
fn known_queries_never_match_where_a_step_decides() {
    for kind in [Kind::Auto, Kind::Steered, Kind::Chained(tamis::Base::Fuse), Kind::Cascade(tamis::Base::Bloom)] {
        let build = tamis::build(integers(KEYS, 1)).kind(kind).workload(popular(POPULAR)).bits_per_key(14.0);
        let (filter, report) = report(build).unwrap();
        let workload = report.workload.unwrap();
        assert_eq!(workload.covered, POPULAR, "{kind:?}: all are worth knowing at 14 bits");
        assert!(popular(POPULAR).all(|(key, _)| filter.contains(key) == Ok(false)), "{kind:?}");
        assert_eq!(filter.excluded_len(), 0, "{kind:?}: none is excluded");
    }
}

/// The heaviest are known, whatever the order, and equal weights are cut without a pattern.
#[test]
fn the_heaviest_are_known() {
    let many = || integers(400_000, 2).zip(0u64..).map(|(key, i)| (key, if i % 4 == 0 { 30.0 } else { 2.0 }));
    let build = tamis::build(integers(2000, 1)).workload(many()).unlisted_share(0.0).fpr(1.0).bits_per_key(9.0);
    let (filter, report) = report(build).unwrap();
    let workload = report.workload.unwrap();
    println!("{workload:?}");
    assert!(workload.covered >= 100_000 && workload.covered < 400_000, "{workload:?}");
    let heavy = many().filter(|&(_, weight)| weight == 30.0);
    assert!(heavy.clone().count() == 100_000 && heavy.into_iter().all(|(key, _)| filter.contains(key) == Ok(false)));
}

/// Weights are exact whatever the memory: 4 MiB hold a third of these queries, and the others go to the disk.
#[test]
fn order_threads_and_memory_leave_no_trace() {
    let build = |threads: usize, turn: usize, limits: Limits| {
        let mut queries: Vec<(u64, f64)> = popular(60_000).chain(popular(1000)).chain([(mix(1 << 40), 5.0)]).collect();
        queries.rotate_left(turn);
        let build = tamis::build(integers(5000, 1)).workload(queries).bits_per_key(9.5).threads(threads);
        build.limits(limits).finish_with_report()
    };
    let [large, small] = [2 << 30, 0].map(|memory| Limits::default().memory(memory));
    let (first, report) = build(1, 0, large.clone()).unwrap();
    for (threads, turn, limits) in [(2, 7, &large), (1, 12_345, &small), (2, 777, &small)] {
        let (filter, other) = build(threads, turn, limits.clone()).unwrap();
        assert!(
            first.as_bytes() == filter.as_bytes() && report.workload == other.workload,
            "{threads} {turn} {limits:?}"
        );
    }
    assert_eq!(report.workload.map(|workload| (workload.keys, workload.dropped_members)), Some((60_000, 1)));
    let error = build(1, 0, small.disk(100_000)).unwrap_err();
    assert!(matches!(error, Error::Build(BuildError::DiskLimit { limit: 100_000 })), "{error}");
}

#[test]
fn queries_for_keys_are_dropped_and_counted() {
    let both = popular(1000).chain(integers(500, 1).map(|key| (key, 3.0)));
    let (filter, report) = report(tamis::build(integers(2000, 1)).workload(both).fpr(0.01)).unwrap();
    let workload = report.workload.unwrap();
    assert_eq!((workload.dropped_members, workload.keys), (500, 1000));
    assert!(integers(2000, 1).all(|key| filter.contains(key) == Ok(true)));
    // Nothing but keys is nothing to plan for.
    let only = integers(500, 1).map(|key| (key, 3.0));
    let (filter, report) = self::report(tamis::build(integers(2000, 1)).workload(only).fpr(0.01)).unwrap();
    assert!(report.workload.is_none());
    assert_eq!(filter.as_bytes(), tamis::build(integers(2000, 1)).fpr(0.01).finish().unwrap().as_bytes());
}

/// A rate is one on the expected queries, and a cap one on all others.
#[test]
fn rates_and_caps_are_kept() {
    for (goal, cap) in [(0.01, None), (0.001, None), (0.01, Some(0.005)), (0.05, Some(1e-4))] {
        let build = tamis::build(integers(KEYS, 1)).workload(popular(POPULAR)).unlisted_share(0.3).workload_fpr(goal);
        let build = match cap {
            Some(cap) => build.fpr(cap),
            None => build,
        };
        let (_, report) = report(build).unwrap();
        let workload = report.workload.unwrap();
        let real = workload.measured;
        assert!(workload.predicted.workload_fpr <= goal && real.workload_fpr <= 1.2 * goal, "{goal} {workload:?}");
        assert!(real.fpr <= 1.02 * cap.unwrap_or(goal), "{cap:?} {workload:?}");
    }
}

/// A list of popular names that was cut off says nothing of the others: they are kept at bay, and there is a warning.
#[test]
fn a_list_that_was_cut_off_gives_nothing_away() {
    let cut = || integers(3000, 2).map(|key| (key, 7.0));
    let build = || tamis::build(integers(KEYS, 1)).workload(cut());
    let plain = tamis::build(integers(KEYS, 1)).bits_per_key(9.0).finish().unwrap();
    for (build, most) in [
        (build().fpr(0.001), 0.001),
        (build().bits_per_key(9.0), tamis::internals::GUARD * plain.fpr()),
        (build().bits_per_key(9.0).kind(Kind::Stacked(tamis::Base::Bloom)), 0.03),
        (build().workload_fpr(0.001).fpr(0.02), 0.02),
    ] {
        let (filter, report) = report(build).unwrap();
        let workload = report.workload.unwrap();
        assert!(filter.fpr() <= most * 1.01 && workload.max_fpr <= most * 1.01, "{most}: {workload:?}");
        let passing = integers(20_000, 5).filter(|&key| filter.contains(key).unwrap()).count();
        assert!(passing as f64 <= 20_000.0 * most + 5.0 * (20_000.0 * most).sqrt() + 1.0, "{most}: {passing}");
        assert_eq!(workload.warnings.len(), 1);
        assert!(workload.warnings[0].starts_with("unlisted_share: cannot be estimated"), "{workload:?}");
    }
    // Lifted by hand, for those who know.
    let (filter, open) = report(build().workload_fpr(0.001).fpr(1.0)).unwrap();
    assert!(filter.fpr() > 0.4 && open.workload.unwrap().max_fpr == 1.0);
    // A share that was said, or can be estimated, is no reason to warn.
    let once = cut().chain([(77, 1.0)]);
    let (_, once) = report(tamis::build(integers(KEYS, 1)).workload(once)).unwrap();
    let (_, said) = report(build().unlisted_share(0.0)).unwrap();
    assert!(once.workload.unwrap().warnings.is_empty() && said.workload.unwrap().warnings.is_empty());
    let plan = build().plan().unwrap();
    assert!(
        plan.reasons.iter().any(|reason| reason.starts_with("unlisted_share: cannot be estimated")),
        "{:?}",
        plan.reasons
    );
    assert!(
        plan.reasons.iter().any(|reason| reason.starts_with("at most 1.00 % of unlisted keys")),
        "{:?}",
        plan.reasons
    );
}

/// Few keys leave little of a budget unused: what a file adds, and what passes by chance.
#[test]
fn small_budgets_are_spent() {
    for (n, least) in [(20_000, 9.82), (100_000, 9.9)] {
        for kind in [Kind::Stacked(tamis::Base::Bloom), Kind::Stacked(tamis::Base::Cuckoo)] {
            let build = tamis::build(integers(n, 1)).kind(kind).workload(popular(10 * n)).bits_per_key(10.0);
            let real = report(build).unwrap().1.workload.unwrap().measured;
            assert!((least..=10.0).contains(&real.bits_per_key), "{n} {kind:?}: {real:?}");
        }
    }
}

/// Excluded keys never match, whatever is expected.
#[test]
fn excluded_keys_never_match() {
    for kind in [
        Kind::Auto,
        Kind::Chained(tamis::Base::Ribbon),
        Kind::Integrated(tamis::Base::Fuse, tamis::IntegratedVariant::One),
    ] {
        let build =
            tamis::build(integers(3000, 1)).kind(kind).exclude(integers(20_000, 3)).workload(popular(5000)).fpr(0.01);
        let filter = build.finish().unwrap();
        assert!(integers(3000, 1).all(|key| filter.contains(key) == Ok(true)));
        assert!(integers(20_000, 3).all(|key| filter.contains(key) == Ok(false)), "{kind:?}");
    }
}

#[test]
fn bad_weights_and_goals_are_rejected() {
    for weight in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-12, 1e30] {
        let error = tamis::build(0..9u64).workload([(77u64, weight)]).finish().unwrap_err().to_string();
        assert!(error.contains("weight") || error.contains("count"), "{weight}: {error}");
    }
    let many = std::iter::repeat_n((77u64, 8e12), 4);
    let error = tamis::build(0..9u64).workload(many).finish().unwrap_err().to_string();
    assert!(error.contains("add up"), "{error}");
    // Zero is never asked.
    tamis::build(0..9u64).workload([(77u64, 0.0)]).finish().unwrap();
    for cap in [0.0, -0.5, 1.5, f64::NAN] {
        let error =
            tamis::build(0..9u64).workload([(77u64, 2.0)]).bits_per_key(9.0).fpr(cap).finish().unwrap_err().to_string();
        assert!(error.contains("expected 0 to 1"), "{error}");
    }
    for unseen in [-0.5, 1.5, f64::NAN] {
        let error =
            tamis::build(0..9u64).workload([(77u64, 2.0)]).unlisted_share(unseen).finish().unwrap_err().to_string();
        assert!(error.contains("expected 0 to 1"), "{error}");
    }
    let error = tamis::build(["text"]).workload([(77u64, 2.0)]).finish().unwrap_err().to_string();
    assert_eq!(error, "keys: of two key types; expected one key type");
}

/// A sieve that has let excluded keys go has decided on a plan.
#[test]
fn expectations_come_in_time() {
    let mut keys = tamis::stream().fpr(0.01).with_excluded().start();
    integers(1000, 1).for_each(|key| keys.push(key).unwrap());
    let mut sealed = keys.seal().unwrap();
    integers(200_000, 3).for_each(|key| sealed.exclude(key).unwrap());
    let error = sealed.push_query(77u64, 2.0).unwrap_err().to_string();
    assert!(error.contains("with_workload"), "{error}");
    let mut keys = tamis::stream().fpr(0.01).with_excluded().with_workload().start();
    integers(1000, 1).for_each(|key| keys.push(key).unwrap());
    let mut sealed = keys.seal().unwrap();
    integers(200_000, 3).for_each(|key| sealed.exclude(key).unwrap());
    popular(1000).for_each(|(key, weight)| sealed.push_query(key, weight).unwrap());
    let filter = sealed.finish().unwrap();
    assert!(integers(200_000, 3).all(|key| filter.contains(key) == Ok(false)));
}

/// A cap on unlisted keys holds where nothing but keys is expected, and where nothing is.
#[test]
fn a_cap_holds_without_expectations() {
    for queries in [0, 500] {
        let only = || integers(queries, 1).map(|key| (key, 3.0));
        let build = || tamis::build(integers(2000, 1)).workload(only()).fpr(1e-4);
        if queries > 0 {
            assert!(build().workload_fpr(0.01).finish().unwrap().fpr() <= 1e-4);
            let error = build().bits_per_key(9.0).finish().unwrap_err().to_string();
            assert!(error.contains("because the workload is empty"), "{error}");
        }
    }
}

/// A secret and a long seed are bytes of the file, and part of the budget.
#[test]
fn the_hash_is_part_of_the_budget() {
    for n in [100, 128, 1000] {
        for bits in [12.0, 16.0, 24.0, 32.0] {
            for kind in [Kind::Auto, Kind::Fuse, Kind::Bloom, Kind::ClassicBloom, Kind::Cuckoo, Kind::Quotient] {
                let build = || tamis::build(integers(n, 1)).kind(kind).bits_per_key(bits);
                for build in [build(), build().seed(u64::MAX), build().secret([7, 9])] {
                    // Some kinds are too large for 100 keys.
                    let Ok(filter) = build.finish() else { continue };
                    let real = filter.as_bytes().len() as f64 * 8.0 / n as f64;
                    assert!(real <= bits, "{n} {kind:?} {bits}: {real}");
                }
            }
        }
    }
}

/// Room for more keys costs no more than the budget, and is there.
#[test]
fn spare_room_keeps_the_budget() {
    let stacks = [tamis::Base::Bloom, tamis::Base::Cuckoo, tamis::Base::Quotient].map(Kind::Stacked);
    for kind in [Kind::Bloom, Kind::ClassicBloom, Kind::Cuckoo, Kind::Quotient].into_iter().chain(stacks) {
        for (n, bits, spare) in [(3000, 9.0, 0.1), (10_000, 20.0, 0.3), (10_000, 15.0, 0.01), (1000, 30.0, 0.3)] {
            let what = format!("{kind:?}, {n} keys, {bits} bits, {spare}");
            let build = || tamis::build(integers(n, 1)).kind(kind).bits_per_key(bits).extra_capacity(spare);
            let plain = build().finish().unwrap();
            let told = build().workload(popular(2 * n)).finish().unwrap();
            for filter in [plain, told] {
                let real = filter.as_bytes().len() as f64 * 8.0 / n as f64;
                assert!(real <= bits, "{what}: {real}");
                let mut stack = tamis::Stacked::restore(filter.as_bytes().to_vec()).unwrap();
                let more = (n as f64 * spare * 0.9) as u64;
                let refused = integers(more, 9).filter(|key| stack.insert(*key).is_err()).count();
                assert!(refused as f64 <= 0.02 * more as f64, "{what}: {refused} of {more} refused");
            }
        }
    }
    let error = tamis::build(integers(9, 1)).kind(Kind::Ribbon).extra_capacity(0.5).finish().unwrap_err().to_string();
    assert!(error.contains("capacity: keys cannot be inserted"), "{error}");
}

/// Expected queries are not counted as excluded keys, and keys are not dropped behind the planner's back.
#[test]
fn excluded_keys_are_counted_apart() {
    let build = || tamis::build(integers(1000, 1)).exclude(integers(500, 3).chain(integers(500, 3))).bits_per_key(14.0);
    let (_, report) = {
        let file = tempfile::NamedTempFile::new().unwrap();
        let report = build().workload(popular(3000)).finish_to(file.path()).unwrap();
        (file, report)
    };
    assert_eq!((report.stats.negatives, report.stats.duplicate_negatives), (500, 500));
    assert_eq!(report.workload.unwrap().covered, 3000);
    let error = build().workload(popular(3000)).on_conflict(tamis::OnConflict::Drop).finish().unwrap_err().to_string();
    assert!(error.contains("on_conflict drop: not possible"), "{error}");
}

/// No keys at all make a filter that lets nothing through, whatever is expected.
#[test]
fn no_keys_and_expectations() {
    for &(name, kind) in Kind::ALL {
        let filter = tamis::build(integers(0, 1)).kind(kind).workload(popular(100)).finish();
        let filter = filter.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(popular(100).all(|(key, _)| filter.contains(key) == Ok(false)), "{name}");
    }
}
