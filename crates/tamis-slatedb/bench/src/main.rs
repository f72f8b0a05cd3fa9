//! `cargo run --release`: built-in Bloom filters and ours in the same engine, over the same keys. Prints tables in Markdown.

mod changes;
mod gets;
mod level;
mod neighbours;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use slatedb::BloomFilterPolicy;
use tamis_slatedb::Tamis;
use tamis_slatedb_bench::database::Policies;

const USAGE: &str = "options: --n KEYS --runs RUNS --gets GETS --timed GETS --wait MICROSECONDS --rounds ROUNDS --part gets|writes|changes|neighbours|level";

/// Errors of the engine, of the library and of the command line.
type Failure = Box<dyn std::error::Error>;

/// What is measured.
struct Bench {
    /// Keys.
    n: u64,
    /// Tables, each with a share of the keys.
    runs: u64,
    /// Gets whose wasted reads are counted.
    gets: u64,
    /// Gets that are timed.
    timed: u64,
    /// What a read of the store takes.
    wait: Duration,
    /// How often times of writing are measured.
    rounds: usize,
    part: Option<String>,
}

impl Bench {
    fn from_args() -> Result<Bench, Failure> {
        let mut bench = Bench {
            n: 480_000,
            runs: 24,
            gets: 100_000,
            timed: 5_000,
            wait: Duration::from_millis(1),
            rounds: 3,
            part: None,
        };
        let mut args = std::env::args().skip(1);
        while let Some(option) = args.next() {
            let value = args.next().ok_or_else(|| format!("{option}: no value; {USAGE}"))?;
            let number = || value.replace('_', "").parse::<u64>().map_err(|error| format!("{option} {value}: {error}"));
            match &option[..] {
                "--n" => bench.n = number()?,
                "--runs" => bench.runs = number()?,
                "--gets" => bench.gets = number()?,
                "--timed" => bench.timed = number()?,
                "--wait" => bench.wait = Duration::from_micros(number()?),
                "--rounds" => bench.rounds = number()? as usize,
                "--part" => bench.part = Some(value),
                _ => return Err(format!("{option}: unknown; {USAGE}").into()),
            }
        }
        if bench.runs == 0 || bench.n < bench.runs || bench.gets == 0 || bench.timed == 0 || bench.rounds == 0 {
            return Err(format!("expected at least one run, one key for each, one get and one round; {USAGE}").into());
        }
        Ok(bench)
    }

    fn has(&self, part: &str) -> bool {
        self.part.as_deref().is_none_or(|only| only == part)
    }

    /// The numbers of the keys of a run: distinct, and all over the key space.
    fn run(&self, run: u64) -> impl Iterator<Item = u64> + Clone + use<> {
        (run..self.n).step_by(self.runs as usize)
    }
}

/// The rates of the engine's Bloom filters: `(1 - e^(-k/b))^k` for `b` bits and `k = floor(.69 b)` probes.
fn bloom_rate(bits: f64) -> f64 {
    let probes = (bits * 0.69).floor();
    (1.0 - (-probes / bits).exp()).powf(probes)
}

/// Filters that are compared, with their names.
fn contenders() -> Result<Vec<(&'static str, Policies)>, Failure> {
    let tamis = |policy: Result<Tamis, tamis::Error>| -> Result<Policies, Failure> { Ok(vec![Arc::new(policy?)]) };
    Ok(vec![
        ("Bloom 10, built in", vec![Arc::new(BloomFilterPolicy::new(10))]),
        ("Bloom 16, built in", vec![Arc::new(BloomFilterPolicy::new(16))]),
        ("ribbon, rate of Bloom 10", tamis(Tamis::fpr(bloom_rate(10.0)))?),
        ("ribbon, rate of Bloom 16", tamis(Tamis::fpr(bloom_rate(16.0)))?),
        ("ribbon, 10 bits", tamis(Tamis::bits_per_key(10.0))?),
        ("ribbon, 11 bits", tamis(Tamis::bits_per_key(11.0))?),
        ("ribbon, 16 bits", tamis(Tamis::bits_per_key(16.0))?),
        ("fuse, rate of Bloom 16", tamis(Tamis::fpr(bloom_rate(16.0)).and_then(Tamis::with_fuse))?),
    ])
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let bench = Bench::from_args()?;
    let Bench { n, runs, gets, timed, .. } = bench;
    println!(
        "{n} keys of 36 bytes with values of 64 in {runs} runs that overlap; filters and indexes are cached, blocks are not."
    );
    println!(
        "{gets} gets are counted, {timed} are timed with {} us for a read of the store.\n",
        bench.wait.as_micros()
    );
    if bench.has("gets") {
        gets::tables(&bench).await?;
    }
    if bench.has("writes") {
        writes::table(&bench).await?;
    }
    if bench.has("changes") {
        changes::table(&bench).await?;
    }
    if bench.has("neighbours") {
        neighbours::table(&bench)?;
    }
    if bench.has("level") {
        level::table(&bench)?;
    }
    Ok(())
}
