//! the `tamis` command and a file of random keys -> time and memory of whole processes, as a user meets them.
//!
//! Reading, splitting into lines, hashing, building, writing and the start of the process are all inside. Keys and strangers
//! are written once, streamed: this process stays small, because the kernel's reading of a child's peak memory begins
//! before the child has replaced the program.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use serde::Serialize;

use crate::machine::Machine;
use crate::measure;
use crate::stream::Stream;
use crate::table::{self, Table, number};

#[derive(Args, Serialize)]
pub(crate) struct Options {
    /// Number of keys, one per line.
    #[arg(long, default_value_t = 1_000_000)]
    n: usize,
    /// Rounds; the table shows medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seed of the random keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The command line program [default: `tamis` beside this program].
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    tamis: Option<PathBuf>,
    /// Where the keys and the filter are written [default: the system's temporary directory].
    #[arg(long, value_name = "DIR")]
    #[serde(skip)]
    tmp: Option<PathBuf>,
    /// Further options of `tamis build`, after `--`.
    #[arg(last = true)]
    build: Vec<String>,
}

/// One process of one round.
struct Run {
    wall: f64,
    cpu: f64,
    peak: f64,
    stdout: String,
}

/// The medians of one command.
#[derive(Serialize)]
struct Row {
    command: String,
    /// Nanoseconds per key.
    wall: Option<f64>,
    /// Nanoseconds per key, all threads.
    cpu: Option<f64>,
    /// Mebibytes.
    peak: Option<f64>,
    /// What came out: bits per key of a build, share of yes in percent of a query.
    result: Option<f64>,
    unit: &'static str,
}

/// The experiment's results.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    false_negatives: usize,
    /// Microseconds to open the filter as a memory map, and its size; none if it is not a filter of this library.
    open: Option<(f64, u64)>,
    rows: Vec<Row>,
}

/// How long it takes to open a filter file.
#[allow(unsafe_code)]
fn time_open(file: &Path) -> Option<(f64, u64)> {
    let bytes = fs::metadata(file).ok()?.len();
    let once = || {
        // SAFETY: the file is in a folder of ours, and nothing changes it before the filter is gone.
        let (filter, time) = measure::wall(|| unsafe { tamis::Filter::mmap(file) });
        filter.ok().map(|_| time.as_nanos() as f64 / 1e3)
    };
    let times: Option<Vec<f64>> = (0..21).map(|_| once()).collect();
    Some((measure::median(times?)?, bytes))
}

/// A random name: the number in base 36, so that different numbers are different names, under a few common endings.
pub(crate) fn write_key(out: &mut impl Write, mut number: u64) -> std::io::Result<()> {
    let ending = [".example.com", ".example.org", ".test"][(number % 3) as usize];
    let mut digits = [0u8; 13];
    let mut len = 0;
    while len == 0 || number > 0 {
        digits[len] = b"0123456789abcdefghijklmnopqrstuvwxyz"[(number % 36) as usize];
        number /= 36;
        len += 1;
    }
    out.write_all(&digits[..len])?;
    writeln!(out, "{ending}")
}

fn write_keys(file: &Path, n: usize, stream: &mut Stream) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    for _ in 0..n {
        write_key(&mut out, stream.draw())?;
    }
    out.flush()
}

/// Runs one command to its end. Exit code 1 is grep's "nothing matched".
fn run_once(command: &mut Command, n: usize) -> Result<Run, Box<dyn Error>> {
    let (usage, wall, stdout) = measure::child(command.stderr(Stdio::null()))?;
    match usage.status.code() {
        Some(0 | 1) => Ok(Run {
            wall: measure::nanos_each(wall, n),
            cpu: measure::nanos_each(usage.cpu, n),
            peak: usage.peak as f64 / (1 << 20) as f64,
            stdout,
        }),
        _ => Err(format!("the command ended with {}", usage.status).into()),
    }
}

/// Writes the keys and runs every command once per round.
pub(crate) fn run(options: &Options) -> Result<Report<'_>, Box<dyn Error>> {
    if options.n == 0 || options.rounds == 0 {
        return Err("--n and --rounds must be at least 1".into());
    }
    let tamis = match &options.tamis {
        Some(file) => file.clone(),
        None => std::env::current_exe()?.with_file_name("tamis"),
    };
    if !tamis.is_file() {
        return Err(
            "the `tamis` program is not there: `cargo build --release -p tamis-cli`, or name it with --tamis".into()
        );
    }
    let dir = match &options.tmp {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir()?,
    };
    let [keys, strangers, filter] = ["keys.txt", "strangers.txt", "keys.filter"].map(|name| dir.path().join(name));
    let mut stream = Stream::new(options.seed);
    write_keys(&keys, options.n, &mut stream)?;
    write_keys(&strangers, options.n, &mut stream)?;

    let build = |threads: usize| -> Result<(Run, f64), Box<dyn Error>> {
        let mut command = Command::new(&tamis);
        command.arg("build").arg(&keys).arg("-o").arg(&filter).args(["--threads", &threads.to_string()]);
        let run = run_once(command.args(&options.build), options.n)?;
        let bytes = fs::metadata(&filter).map_err(|e| format!("`tamis build` wrote no filter: {e}"))?.len();
        Ok((run, bytes as f64 * 8.0 / options.n as f64))
    };
    let query = |input: &Path| -> Result<(Run, usize), Box<dyn Error>> {
        let run = run_once(Command::new(&tamis).arg("query").arg("-c").arg(&filter).arg(input), options.n)?;
        let count = run.stdout.trim().parse().map_err(|_| "`tamis query -c` printed no number")?;
        Ok((run, count))
    };

    let mut runs: [Vec<(Run, f64)>; 4] = Default::default();
    let mut false_negatives = 0;
    for round in 0..options.rounds {
        eprint!("\r\x1b[Kround {} of {}", round + 1, options.rounds);
        runs[0].push(build(1)?);
        runs[1].push(build(2)?);
        let percent = |count: usize| count as f64 * 100.0 / options.n as f64;
        let (run, count) = query(&keys)?;
        false_negatives += options.n.saturating_sub(count);
        runs[2].push((run, percent(count)));
        let (run, count) = query(&strangers)?;
        runs[3].push((run, percent(count)));
    }
    eprint!("\r\x1b[K");
    let names = ["build, 1 thread", "build, 2 threads", "query -c, members", "query -c, strangers"];
    let units = ["bits/key", "bits/key", "% yes", "% yes"];
    let row = |((command, unit), runs): ((&str, &'static str), &Vec<(Run, f64)>)| Row {
        command: command.to_string(),
        wall: measure::median(runs.iter().map(|r| r.0.wall)),
        cpu: measure::median(runs.iter().map(|r| r.0.cpu)),
        peak: measure::median(runs.iter().map(|r| r.0.peak)),
        result: measure::median(runs.iter().map(|r| r.1)),
        unit,
    };
    let rows = names.into_iter().zip(units).zip(&runs).map(row).collect();
    Ok(Report { machine: Machine::read(), options, false_negatives, open: time_open(&filter), rows })
}

impl table::Report for Report<'_> {
    /// Whether every key was found.
    fn is_clean(&self) -> bool {
        self.false_negatives == 0
    }

    fn tables(&self) -> Vec<Table> {
        let cells = |row: &Row| {
            let result = format!("{} {}", number(row.result, 3), row.unit);
            vec![row.command.clone(), number(row.wall, 1), number(row.cpu, 1), number(row.peak, 1), result]
        };
        let mut note = "Whole processes, from reading the text file to the last byte written; medians.".to_string();
        if let Some((micros, bytes)) = self.open {
            note += &format!(" Opening the file of {:.1} MB by memory map: {micros:.1} us.", bytes as f64 / 1e6);
        }
        if !self.is_clean() {
            note += &format!(" {} FALSE NEGATIVES.", self.false_negatives);
        }
        let build = if self.options.build.is_empty() { String::new() } else { self.options.build.join(" ") + ", " };
        vec![Table {
            head: format!(
                "tamis on {} random text keys, {build}{} rounds, seed {}. {}.",
                self.options.n, self.options.rounds, self.options.seed, self.machine
            ),
            columns: ["command", "wall ns/key", "cpu ns/key", "peak MiB", "result"].map(String::from).to_vec(),
            rows: self.rows.iter().map(cells).collect(),
            note,
        }]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::HashSet;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_are_distinct_lines() {
        let mut text = Vec::new();
        let mut stream = Stream::new(3);
        write_key(&mut text, 0).unwrap();
        write_key(&mut text, u64::MAX).unwrap();
        (0..1000).for_each(|_| write_key(&mut text, stream.draw()).unwrap());
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().next(), Some("0.example.com"));
        assert_eq!(text.lines().collect::<HashSet<_>>().len(), 1002);
    }

    /// A command with the same surface: the "filter" is a copy of the keys, less the first `lost` lines, and grep asks it.
    fn stand_in(dir: &Path, lost: usize) -> PathBuf {
        let file = dir.join("stand-in");
        let script = format!(
            "#!/bin/sh\ncase $1 in\nbuild) tail -n +{} \"$2\" > \"$4\" ;;\nquery) exec grep -c -x -F -f \"$3\" \"$4\" ;;\nesac\n",
            lost + 1
        );
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    #[test]
    fn commands_are_run_and_their_answers_counted() {
        let dir = tempfile::tempdir().unwrap();
        for lost in [0, 5] {
            let tamis = Some(stand_in(dir.path(), lost));
            let options = Options { n: 200, rounds: 2, seed: 1, tamis, tmp: None, build: vec!["--fpr".into()] };
            let report = run(&options).unwrap();
            assert_eq!(report.false_negatives, 2 * lost);
            assert_eq!(report.rows[3].result, Some(0.0));
            assert!(report.rows.iter().all(|row| row.wall > Some(0.0) && row.peak > Some(0.1)));
            let table = table::Report::tables(&report)[0].to_string();
            assert_eq!(table.contains("FALSE NEGATIVES"), lost > 0);
            assert!(!table.contains(dir.path().to_str().unwrap()));
        }
    }

    #[test]
    fn a_missing_or_failing_command_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let none = Options { n: 5, rounds: 1, seed: 1, tamis: Some(dir.path().join("none")), tmp: None, build: vec![] };
        assert!(run(&none).is_err());
        let idle = Options { tamis: Some("/bin/true".into()), ..none };
        assert!(run(&idle).err().unwrap().to_string().contains("wrote no filter"));
    }
}
