//! a log of queries -> time and memory to count it: `sort | uniq -c` beside [`tamis::internals::Counter`].
//!
//! The log is written once: names drawn with a chance of about one over their rank. Every way of counting is a process of its
//! own that reads the file; ours is this program again, with `--log`. All must agree on the number of distinct names.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde::Serialize;
use tamis::internals::{Counter, Counts, ONE, Workspace};
use tamis::{Hasher, Key, Limits};

use crate::args::Folder;
use crate::end_to_end::write_key;
use crate::machine::Machine;
use crate::measure::{self, progress};
use crate::stream::{Stream, scramble};
use crate::table::{self, Table};

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Lines of the log.
    #[arg(long, default_value_t = 100_000_000)]
    lines: u64,
    /// Names to draw from; not all of them will be drawn.
    #[arg(long, default_value_t = 10_000_000)]
    distinct: u64,
    /// Memory for counting, in MiB.
    #[arg(long, default_value_t = 1024)]
    memory: u64,
    /// Seed of the names.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    #[serde(skip)]
    folder: Folder,
    /// Only count this file, and print the number of distinct lines and of all lines.
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) log: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row {
    command: String,
    /// Seconds.
    wall: f64,
    /// Seconds, all threads and processes.
    cpu: f64,
    /// Mebibytes, of the largest process.
    peak: f64,
    distinct: u64,
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    bytes: u64,
    rows: Vec<Row>,
}

/// Ranks from 1 to `distinct`, each with a chance of about one over it: uniform on a logarithmic scale.
fn rank(stream: &mut Stream, distinct: u64) -> u64 {
    (distinct as f64 + 1.0).powf(stream.unit()) as u64
}

fn write_log(file: &Path, options: &Options) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(file)?);
    let mut stream = Stream::new(options.seed);
    for _ in 0..options.lines {
        write_key(&mut out, scramble(rank(&mut stream, options.distinct)))?;
    }
    out.flush()
}

fn count(file: &Path, memory: u64) -> Result<Counts, Box<dyn Error>> {
    let mut lines = BufReader::with_capacity(1 << 18, File::open(file)?);
    let hasher = Hasher::seeded(0);
    let mut counter = Counter::new(&Workspace::new(&Limits::default(), 1), memory);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        counter.push(line.strip_suffix(b"\n").unwrap_or(&line).digest(&hasher), ONE, &|| false)?;
        line.clear();
    }
    Ok(counter.finish(&|| false)?)
}

/// `--log`: what the process under measurement prints.
pub(crate) fn count_alone(file: &Path, options: &Options) -> Result<String, Box<dyn Error>> {
    let counts = count(file, options.memory << 20)?;
    Ok(format!("{} {}\n", counts.weights(&|| false)?.keys, counts.queries() / ONE))
}

/// Runs a command that prints the number of distinct lines first.
fn measured(name: &str, command: &mut Command) -> Result<Row, Box<dyn Error>> {
    progress(name);
    let (usage, wall, stdout) = measure::child(command)?;
    progress("");
    if !usage.status.success() {
        return Err(format!("{name} ended with {}", usage.status).into());
    }
    let distinct = stdout.split_whitespace().next().and_then(|word| word.parse().ok());
    Ok(Row {
        command: name.to_string(),
        wall: wall.as_secs_f64(),
        cpu: usage.cpu.as_secs_f64(),
        peak: usage.peak as f64 / (1 << 20) as f64,
        distinct: distinct.ok_or_else(|| format!("{name} printed no number"))?,
    })
}

/// Writes the log and counts it in every way.
pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    if options.lines == 0 || options.distinct == 0 {
        return Err("--lines and --distinct must be at least 1".into());
    }
    let dir = options.folder.make()?;
    let log = dir.path().join("log");
    progress("writing the log");
    write_log(&log, options)?;
    let memory = options.memory.to_string();
    let sort = |limit: &str| {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("sort {limit} -T \"$2\" \"$1\" | uniq -c | wc -l")).arg("sh");
        command.arg(&log).arg(dir.path()).env("LC_ALL", "C");
        command
    };
    let mut ours = Command::new(std::env::current_exe()?);
    ours.args(["count-log", "--memory", &memory, "--log"]).arg(&log);
    let rows = vec![
        measured("tamis", &mut ours)?,
        measured("sort, uniq -c", &mut sort(""))?,
        measured(&format!("sort -S {memory}M, uniq -c"), &mut sort(&format!("-S {memory}M")))?,
    ];
    let bytes = std::fs::metadata(&log)?.len();
    Ok(Report { machine: Machine::read(), options, bytes, rows })
}

impl table::Report for Report<'_> {
    /// Whether all found the same number of distinct lines.
    fn is_clean(&self) -> bool {
        self.rows.iter().all(|row| row.distinct == self.rows[0].distinct)
    }

    fn tables(&self) -> Vec<Table> {
        let mut note =
            "Whole processes, from the first byte read; the peak is that of the largest process.".to_string();
        if !self.is_clean() {
            note += " THE NUMBERS OF DISTINCT LINES DIFFER: a defect.";
        }
        let table = Table::of(&self.rows)
            .text("command", |row| &row.command)
            .number("wall s", 2, |row| row.wall)
            .number("ratio", 2, |row| row.wall / self.rows[0].wall)
            .number("cpu s", 2, |row| row.cpu)
            .number("peak MiB", 0, |row| row.peak)
            .text("distinct", |row| row.distinct);
        let (Options { lines, distinct, .. }, size) = (self.options, self.bytes as f64 / 1e6);
        let of = format!("{lines} queries, {distinct} names by Zipf's law, {size:.0} MB");
        vec![table.table(format!("Counting a log of {of}. {}.", self.machine), note)]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ranks_follow_the_law() {
        let mut stream = Stream::new(1);
        let ranks: Vec<u64> = (0..100_000).map(|_| rank(&mut stream, 1000)).collect();
        assert!(ranks.iter().all(|rank| (1..=1000).contains(rank)));
        let share = |most: u64| ranks.iter().filter(|&&rank| rank <= most).count() as f64 / 1e5;
        // ln(most + 1) / ln(1001), six sigma of 100,000 draws aside.
        assert!((share(1) - 0.1003).abs() < 0.006 && (share(30) - 0.4971).abs() < 0.01, "{} {}", share(1), share(30));
    }

    #[test]
    fn a_log_is_counted_as_a_map_counts_it() {
        let dir = tempfile::tempdir().unwrap();
        let options =
            Options { lines: 20_000, distinct: 3000, memory: 1, seed: 5, folder: Folder::default(), log: None };
        let log = dir.path().join("log");
        write_log(&log, &options).unwrap();
        let text = std::fs::read_to_string(&log).unwrap();
        let mut map = std::collections::HashMap::<&str, u64>::new();
        text.lines().for_each(|line| *map.entry(line).or_default() += 1);
        let counts = count(&log, 1 << 20).unwrap();
        let hasher = Hasher::seeded(0);
        let mut known: std::collections::HashMap<_, _> =
            map.iter().map(|(line, n)| (line.digest(&hasher), n * ONE)).collect();
        let mut agree = |part: &[tamis::internals::Counted]| {
            part.iter().for_each(|key| assert_eq!(known.remove(&key.digest), Some(key.weight)));
            Ok(())
        };
        counts.each(&|| false, &mut agree).unwrap();
        assert!(known.is_empty());
        assert_eq!(count_alone(&log, &options).unwrap(), format!("{} 20000\n", map.len()));
    }
}
