//! `tamis::lsm::Level` over the same runs, simulated: the engine reads from the newest run on, and this rule from the oldest.

use std::time::Instant;

use tamis::lsm::LevelBuilder;
use tamis_slatedb_bench::keys::{Random, key};

use crate::{Bench, Failure, bloom_rate};

pub(crate) fn table(bench: &Bench) -> Result<(), Failure> {
    println!("### The rule of `lsm::Level`, simulated\n");
    println!("Reads of runs without the key, of {} gets each.\n", bench.gets);
    println!(
        "| rule | readers' bits per key | writer's bytes per key | extra reads, existing | extra reads, absent | most of one get | build, ns per key |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    let rates = [("rate of Bloom 10", bloom_rate(10.0)), ("rate of Bloom 16", bloom_rate(16.0))];
    for (name, rate) in rates {
        for (rule, all) in [("newest version", false), ("all versions, as in Figure 11", true)] {
            let builder = LevelBuilder::new().fpr(rate).threads(1);
            let mut level = if all { builder.all_versions() } else { builder }.build::<[u8]>()?;
            let start = Instant::now();
            let runs = (0..bench.runs)
                .map(|run| level.push_run(bench.run(run).map(|number| key(number).to_vec())))
                .collect::<Result<Vec<_>, _>>()?;
            let build = start.elapsed().as_nanos() as f64 / bench.n as f64;
            let (reader, stats) = (level.reader(), level.stats());
            let (mut random, mut most) = (Random(5), 0);
            let mut extra = |first: u64| -> Result<u64, Failure> {
                let mut extra = 0;
                for _ in 0..bench.gets {
                    let number = first + random.below(bench.n);
                    let home = runs.get((number % bench.runs) as usize).filter(|_| number < bench.n).copied();
                    let read = |run| Ok::<_, Failure>((Some(run) == home).then_some(()));
                    let search = reader.search(&key(number)[..], read)?;
                    if search.run != home {
                        return Err(format!("key {number}: wrong run").into());
                    }
                    extra += u64::from(search.extra);
                    most = most.max(search.extra);
                }
                Ok(extra)
            };
            let (existing, absent) = (extra(0)?, extra(bench.n)?);
            let side = stats.side_bytes as f64 / bench.n as f64;
            let bits = stats.bits_per_key();
            println!("| {rule}, {name} | {bits:.2} | {side:.1} | {existing} | {absent} | {most} | {build:.0} |");
        }
    }
    println!();
    Ok(())
}
