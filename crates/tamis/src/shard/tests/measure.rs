//! the machine at hand -> times and peak memory: `cargo test --release -p tamis --lib shard::tests::measure -- --ignored --nocapture`

use std::hint::black_box;
use std::time::Instant;

use super::super::sort::sort_distinct;
use super::super::*;
use crate::hash::scramble;

fn digest(i: u64) -> Digest {
    Digest { hi: scramble(2 * i), lo: scramble(2 * i + 1) }
}

/// Nanoseconds that this thread has run, which other programs do not add to, on Linux.
fn on_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
}

#[test]
#[ignore = "a measurement"]
fn sorting() {
    for n in [1_000_000, 10_000_000u64] {
        let input: Vec<Digest> = (0..n).map(digest).collect();
        let time = |sort: &dyn Fn(&mut Vec<Digest>)| {
            let mut records = input.clone();
            let (start, busy) = (Instant::now(), on_cpu());
            sort(&mut records);
            let time = [start.elapsed().as_nanos() as f64, on_cpu() - busy].map(|ns| ns / n as f64);
            assert!(black_box(&records).is_sorted());
            time
        };
        let mut times = [const { vec![] }; 3];
        for _ in 0..15 {
            times[0].push(time(&|r| r.sort_unstable()));
            times[1].push(time(&|r| sort_distinct(r, 1, &|| false).unwrap()));
            times[2].push(time(&|r| sort_distinct(r, 2, &|| false).unwrap()));
        }
        // The least of many: other programs can only slow a run down.
        let [std, one, two] = times.map(|t| [0, 1].map(|i| t.iter().map(|t: &[f64; 2]| t[i]).fold(f64::MAX, f64::min)));
        println!("{n} digests, ns/key: sort_unstable {:.1}, 1 thread {:.1}, 2 threads {:.1}", std[0], one[0], two[0]);
        println!("    of this thread's processor time: sort_unstable {:.1}, 1 thread {:.1}", std[1], one[1]);
    }
}

/// Bytes from /proc/self/status, where there is one.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[test]
#[ignore = "a measurement"]
fn end_to_end() {
    // The peak never falls, so the smaller limit comes first; its peak is that of two loaded shards.
    [MIN_MEMORY, 512 << 20].into_iter().for_each(end_to_end_in);
}

fn end_to_end_in(memory: u64) {
    const N: u64 = 100_000_000;
    println!("{N} digests, 2 threads, {} MiB", memory >> 20);
    let idle = peak();
    let limits = Limits { memory, ..Default::default() };
    let workspace = Workspace::new(&limits, 2);
    let mut clock = Instant::now();
    let mut lap = |what: &str| {
        let ns = clock.elapsed().as_nanos() as f64 / N as f64;
        println!("{what}: {ns:.1} ns/key, peak {} MiB, {} MiB at the start", peak() >> 20, idle >> 20);
        clock = Instant::now();
    };
    let mut intake = Intake::new(&workspace, workspace.memory);
    (0..N).for_each(|i| intake.push(digest(i), &|| false).unwrap());
    lap("push");
    let sorted = intake.finish(&|| false).unwrap();
    lap("finish");
    let shards = Shards::new(Keys::Plain(sorted), None, OnConflict::Error, &|| false).unwrap();
    lap("census");
    assert_eq!((shards.stats.keys, shards.count()), (N, 128));
    let load = |i| Ok(shards.load(i, &|| false)?.keys.len() as u64);
    let keys = run((0..shards.count()).collect(), 2, load).unwrap();
    lap("load");
    assert_eq!(keys.iter().sum::<u64>(), N);
}
