//! random digests in ranges, as an engine sends them -> a filter built in slices by 1, 2, 4, .. processes: time, peak memory, equal bytes.
//!
//! The digests of every range are written to a file first: that is the engine's shuffle, and is not counted. Then processes of this
//! program survey ranges, sketch them and build slices, each on one thread, one after the other of its share. Another process
//! builds the filter of all of them at once, and its bytes are compared with those of the joined slices.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tamis::slices::{self, KeyRange, Plan, Round, Sketch, Survey};
use tamis::{Digest, Hasher, KeyType, Limits};

use crate::args::Folder;
use crate::machine::Machine;
use crate::measure;
use crate::stream::Stream;
use crate::table::{self, Table};

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Number of keys.
    #[arg(long, default_value_t = 100_000_000)]
    n: u64,
    /// Number of excluded keys.
    #[arg(long, default_value_t = 50_000_000)]
    excluded: u64,
    /// Ranges, and slices at most: a power of two.
    #[arg(long, default_value_t = 64)]
    slices: u32,
    /// Numbers of processes to measure.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    processes: Vec<u32>,
    /// Rate for unlisted keys.
    #[arg(long, default_value_t = 0.01)]
    fpr: f64,
    /// Seed of the random keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    #[serde(skip)]
    folder: Folder,
    /// What one of the processes does: `survey`, `sketch`, `slice` or `whole`, a folder, its number, how many there are.
    #[arg(long, hide = true, num_args = 4)]
    #[serde(skip)]
    pub(crate) worker: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    processes: u32,
    step: &'static str,
    /// Seconds.
    wall: f64,
    /// Nanoseconds per key and excluded key, all processes.
    cpu: f64,
    /// Mebibytes of the process with the most.
    peak: f64,
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    shards: u64,
    slices: u32,
    bytes: u64,
    equal: bool,
    rows: Vec<Row>,
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn name(what: &str, range: u32) -> String {
    format!("{what}-{range:05}")
}

/// The digests of a file, as they stand there.
fn digests(path: &Path) -> Result<impl Iterator<Item = Digest> + use<>> {
    let mut from = BufReader::new(File::open(path)?);
    Ok(std::iter::from_fn(move || {
        let mut bytes = [0; 16];
        from.read_exact(&mut bytes).ok().map(|()| Digest::from_bits(u128::from_le_bytes(bytes)))
    }))
}

fn write_ranges(dir: &Path, what: &str, n: u64, stream: &mut Stream, ranges: u32) -> Result<()> {
    let open = |range| Ok(BufWriter::with_capacity(1 << 15, File::create(dir.join(name(what, range)))?));
    let mut files: Vec<_> = (0..ranges).map(open).collect::<std::io::Result<_>>()?;
    let hasher = Hasher::seeded(0);
    for _ in 0..n {
        let bits = hasher.integer(stream.draw()).to_bits();
        // One range takes no shift by all bits.
        let range = (bits >> 1) >> (127 - ranges.ilog2());
        files[range as usize].write_all(&bits.to_le_bytes())?;
    }
    files.iter_mut().try_for_each(BufWriter::flush)?;
    Ok(())
}

fn of(options: &Options) -> tamis::Options<'static> {
    tamis::Options::default().fpr(options.fpr).threads(1)
}

/// The numbers below `count` that are this process's.
fn share(number: u32, processes: u32, count: u32) -> impl Iterator<Item = u32> {
    (number..count).step_by(processes as usize)
}

fn read_plan(dir: &Path) -> Result<Plan> {
    Ok(fs::read_to_string(dir.join("plan"))?.parse()?)
}

pub(crate) fn work(options: &Options) -> Result<String> {
    let [task, dir, number, processes] = &options.worker[..] else { return Ok(String::new()) };
    let (dir, number, processes) = (Path::new(dir), number.parse()?, processes.parse()?);
    let read = |what, range| digests(&dir.join(name(what, range)));
    match &task[..] {
        "survey" => {
            for index in share(number, processes, options.slices) {
                let range = KeyRange::new(index, options.slices)?;
                let survey = Survey::new(&of(options), range, read("keys", index)?, read("excluded", index)?)?;
                fs::write(dir.join(name("survey", index)), survey.to_bytes())?;
            }
        }
        "sketch" => {
            let plan = read_plan(dir)?;
            for index in share(number, processes, options.slices) {
                let sketch = plan.sketch(KeyRange::new(index, options.slices)?, read("excluded", index)?)?;
                fs::write(dir.join(name("sketch", index)), sketch.to_bytes())?;
            }
        }
        "slice" => {
            let plan = read_plan(dir)?.threads(1);
            let ranges = options.slices / plan.slices();
            for slice in share(number, processes, plan.slices()) {
                let mut gather = plan.gather(slice)?;
                for range in slice * ranges..(slice + 1) * ranges {
                    read("keys", range)?.try_for_each(|digest| gather.push(digest))?;
                }
                for range in slice * ranges..(slice + 1) * ranges {
                    read("excluded", range)?.try_for_each(|digest| gather.exclude(digest))?;
                }
                gather.slice_to(&plan, dir.join(slices::file_name(slice)))?;
            }
        }
        _ => {
            let all = |what| -> Result<Vec<Digest>> {
                let mut all = vec![];
                (0..options.slices).try_for_each(|range| read(what, range).map(|digests| all.extend(digests)))?;
                Ok(all)
            };
            let limits = Limits::default().memory(8 << 30);
            let build = of(options).limits(limits).build_digests(all("keys")?, KeyType::Integer);
            build.exclude_digests(all("excluded")?).finish_to(dir.join("whole"))?;
        }
    }
    Ok(String::new())
}

/// Runs so many processes of this program at once.
fn spawn(options: &Options, dir: &Path, task: &'static str, processes: u32) -> Result<Row> {
    let program = std::env::current_exe()?;
    let one = |number: u32| {
        let mut command = Command::new(&program);
        command.arg("slices").args(["--n", &options.n.to_string(), "--slices", &options.slices.to_string()]);
        command.args(["--fpr", &options.fpr.to_string(), "--worker", task]).arg(dir);
        command.args([number.to_string(), processes.to_string()]).stderr(Stdio::inherit());
        let (usage, _, _) = measure::child(&mut command).map_err(|error| error.to_string())?;
        if usage.status.success() { Ok(usage) } else { Err(format!("{task} ended with {}", usage.status)) }
    };
    let (usages, wall) = measure::wall(|| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..processes).map(|number| scope.spawn(move || one(number))).collect();
            let end = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or(Err("a panic".into()));
            threads.into_iter().map(end).collect::<std::result::Result<Vec<_>, String>>()
        })
    });
    let usages = usages?;
    let cpu = usages.iter().map(|usage| usage.cpu).sum::<Duration>().as_nanos() as f64;
    let peak = usages.iter().map(|usage| usage.peak).max().unwrap_or(0) as f64;
    let all = (options.n + options.excluded) as f64;
    Ok(Row { processes, step: task, wall: wall.as_secs_f64(), cpu: cpu / all, peak: peak / (1 << 20) as f64 })
}

/// All that the driver reads of the workers.
fn merged<T>(
    dir: &Path,
    what: &str,
    ranges: u32,
    read: impl Fn(&[u8]) -> Result<T>,
    merge: impl Fn(T, T) -> std::result::Result<T, tamis::Error>,
) -> Result<T> {
    let mut all = None;
    for range in 0..ranges {
        let one = read(&fs::read(dir.join(name(what, range)))?)?;
        all = Some(match all {
            None => one,
            Some(all) => merge(all, one)?,
        });
    }
    all.ok_or_else(|| "no ranges".into())
}

pub(crate) fn run(options: &Options) -> Result<Report<'_>> {
    let dir = options.folder.make()?;
    let dir = dir.path();
    let mut stream = Stream::new(options.seed);
    eprintln!("writing ranges");
    write_ranges(dir, "keys", options.n, &mut stream, options.slices)?;
    write_ranges(dir, "excluded", options.excluded, &mut stream, options.slices)?;
    let whole = spawn(options, dir, "whole", 1)?;
    let (mut rows, mut equal, mut last) = (vec![Row { step: "one build", ..whole }], true, None);
    for &processes in &options.processes {
        eprintln!("{processes} processes");
        rows.push(spawn(options, dir, "survey", processes)?);
        let survey = merged(dir, "survey", options.slices, |bytes| Ok(Survey::from_bytes(bytes)?), Survey::merge)?;
        let mut plan = Plan::new(&of(options), KeyType::Integer, survey, options.slices)?;
        if plan.round() == Round::Sketch {
            plan.save(dir.join("plan"))?;
            rows.push(spawn(options, dir, "sketch", processes)?);
            let sketch = merged(dir, "sketch", options.slices, |bytes| Ok(Sketch::from_bytes(bytes)?), Sketch::merge)?;
            plan = plan.with_sketch(sketch)?;
        }
        plan.save(dir.join("plan"))?;
        rows.push(spawn(options, dir, "slice", processes)?);
        let names = (0..plan.slices()).map(|slice| dir.join(slices::file_name(slice)));
        let (joined, wall) = measure::wall(|| slices::join_to(dir.join("joined"), names));
        let bytes = joined?;
        rows.push(Row { processes: 1, step: "join", wall: wall.as_secs_f64(), cpu: f64::NAN, peak: f64::NAN });
        equal &= equal_files(&dir.join("joined"), &dir.join("whole"))?;
        last = Some((plan.shards(), plan.slices(), bytes));
    }
    let (shards, slices, bytes) = last.ok_or("no number of processes")?;
    Ok(Report { machine: Machine::read(), options, shards, slices, bytes, equal, rows })
}

fn equal_files(a: &Path, b: &Path) -> Result<bool> {
    let [mut a, mut b] = [File::open(a)?, File::open(b)?];
    let (mut one, mut other) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    loop {
        let read = a.read(&mut one)?;
        if read == 0 {
            return Ok(true);
        }
        b.read_exact(&mut other[..read])?;
        if one[..read] != other[..read] {
            return Ok(false);
        }
    }
}

impl table::Report for Report<'_> {
    fn is_clean(&self) -> bool {
        self.equal
    }

    fn tables(&self) -> Vec<Table> {
        let equal = if self.equal { "The joined bytes are those of one build." } else { "THE BYTES DIFFER." };
        let Report { options, machine, shards, slices, bytes, .. } = self;
        let Options { n, excluded, fpr, .. } = options;
        let some = |number: f64| Some(number).filter(|number| number.is_finite());
        let table = Table::of(&self.rows)
            .text("step", |row| row.step)
            .text("processes", |row| row.processes)
            .number("wall s", 1, |row| row.wall)
            .number("cpu ns/digest", 1, |row| some(row.cpu))
            .number("peak MiB", 0, |row| some(row.peak))
            .table(
                format!(
                    "tamis: {n} keys, {excluded} excluded, fpr {fpr}, {shards} shards in {slices} slices. {machine}."
                ),
                format!("Processes of one thread; peak of the largest. The file has {bytes} bytes. {equal}"),
            );
        vec![table]
    }
}
