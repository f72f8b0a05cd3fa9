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

use crate::args::Folder;
use crate::machine::Machine;
use crate::measure::{self, Median as _, nanos_each, progress};
use crate::stream::Stream;
use crate::table::{self, Table};

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
    #[command(flatten)]
    #[serde(skip)]
    folder: Folder,
    /// Further options of `tamis build`, after `--`.
    #[arg(last = true)]
    build: Vec<String>,
}

crate::measured! {
    struct Sample {
        /// Nanoseconds per key.
        wall: f64,
        /// Nanoseconds per key, all threads.
        cpu: f64,
        /// Mebibytes.
        peak: f64,
        /// What came out: bits per key of a build, share of yes in percent of a query.
        result: f64,
    }
}

#[derive(Serialize)]
struct Row {
    command: &'static str,
    #[serde(flatten)]
    median: Sample,
    unit: &'static str,
}

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: Machine,
    options: &'a Options,
    false_negatives: usize,
    /// Microseconds to open the filter as a memory map, and its size; none if it is not a filter of this library.
    open: Option<(f64, u64)>,
    rows: Vec<Row>,
}

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

/// Runs one command to its end: what it needed, and what it printed. Exit code 1 is grep's "nothing matched".
fn run_once(command: &mut Command, n: usize) -> Result<(Sample, String), Box<dyn Error>> {
    let (usage, wall, stdout) = measure::child(command.stderr(Stdio::null()))?;
    let Some(0 | 1) = usage.status.code() else {
        return Err(format!("the command ended with {}", usage.status).into());
    };
    let (wall, cpu) = (nanos_each(wall, n), nanos_each(usage.cpu, n));
    Ok((Sample { wall, cpu, peak: usage.peak as f64 / (1 << 20) as f64, result: 0.0 }, stdout))
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
    let dir = options.folder.make()?;
    let [keys, strangers, filter] = ["keys.txt", "strangers.txt", "keys.filter"].map(|name| dir.path().join(name));
    let mut stream = Stream::new(options.seed);
    write_keys(&keys, options.n, &mut stream)?;
    write_keys(&strangers, options.n, &mut stream)?;

    let build = |threads: usize| -> Result<Sample, Box<dyn Error>> {
        let mut command = Command::new(&tamis);
        command.arg("build").arg(&keys).arg("-o").arg(&filter).args(["--threads", &threads.to_string()]);
        let (sample, _) = run_once(command.args(&options.build), options.n)?;
        let bytes = fs::metadata(&filter).map_err(|e| format!("`tamis build` wrote no filter: {e}"))?.len();
        Ok(Sample { result: bytes as f64 * 8.0 / options.n as f64, ..sample })
    };
    let query = |input: &Path| -> Result<(Sample, usize), Box<dyn Error>> {
        let mut command = Command::new(&tamis);
        let (sample, stdout) = run_once(command.arg("query").arg("-c").arg(&filter).arg(input), options.n)?;
        let count = stdout.trim().parse().map_err(|_| "`tamis query -c` printed no number")?;
        Ok((Sample { result: count as f64 * 100.0 / options.n as f64, ..sample }, count))
    };

    let mut rounds: [Vec<Sample>; 4] = Default::default();
    let mut false_negatives = 0;
    for round in 0..options.rounds {
        progress(format_args!("round {} of {}", round + 1, options.rounds));
        let builds = [build(1)?, build(2)?];
        let ((members, found), (others, _)) = (query(&keys)?, query(&strangers)?);
        false_negatives += options.n.saturating_sub(found);
        let samples = builds.into_iter().chain([members, others]);
        rounds.iter_mut().zip(samples).for_each(|(rounds, sample)| rounds.push(sample));
    }
    progress("");
    let commands = [
        ("build, 1 thread", "bits/key"),
        ("build, 2 threads", "bits/key"),
        ("query -c, members", "% yes"),
        ("query -c, strangers", "% yes"),
    ];
    let row = |((command, unit), rounds): (_, &Vec<Sample>)| {
        Sample::median(rounds.iter()).map(|median| Row { command, median, unit })
    };
    let rows = commands.into_iter().zip(&rounds).filter_map(row).collect();
    Ok(Report { machine: Machine::read(), options, false_negatives, open: time_open(&filter), rows })
}

impl table::Report for Report<'_> {
    fn is_clean(&self) -> bool {
        self.false_negatives == 0
    }

    fn tables(&self) -> Vec<Table> {
        let mut note = "Whole processes, from reading the text file to the last byte written; medians.".to_string();
        if let Some((micros, bytes)) = self.open {
            note += &format!(" Opening the file of {:.1} MB by memory map: {micros:.1} us.", bytes as f64 / 1e6);
        }
        if !self.is_clean() {
            note += &format!(" {} FALSE NEGATIVES.", self.false_negatives);
        }
        let build = if self.options.build.is_empty() { String::new() } else { self.options.build.join(" ") + ", " };
        let table = Table::of(&self.rows)
            .text("command", |row| row.command)
            .number("wall ns/key", 1, |row| row.median.wall)
            .number("cpu ns/key", 1, |row| row.median.cpu)
            .number("peak MiB", 1, |row| row.median.peak)
            .text("result", |row| format!("{:.3} {}", row.median.result, row.unit));
        let Options { n, rounds, seed, .. } = self.options;
        let head = format!("tamis on {n} random text keys, {build}{rounds} rounds, seed {seed}. {}.", self.machine);
        vec![table.table(head, note)]
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
            let options =
                Options { n: 200, rounds: 2, seed: 1, tamis, folder: Folder::default(), build: vec!["--fpr".into()] };
            let report = run(&options).unwrap();
            assert_eq!(report.false_negatives, 2 * lost);
            assert_eq!((report.rows.len(), report.rows[3].median.result), (4, 0.0));
            assert!(report.rows.iter().all(|row| row.median.wall > 0.0 && row.median.peak > 0.1));
            let table = table::Report::tables(&report)[0].to_string();
            assert_eq!(table.contains("FALSE NEGATIVES"), lost > 0);
            assert!(!table.contains(dir.path().to_str().unwrap()));
        }
    }

    #[test]
    fn a_missing_or_failing_command_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let none = Options {
            n: 5,
            rounds: 1,
            seed: 1,
            tamis: Some(dir.path().join("none")),
            folder: Folder::default(),
            build: vec![],
        };
        assert!(run(&none).is_err());
        let idle = Options { tamis: Some("/bin/true".into()), ..none };
        assert!(run(&idle).err().unwrap().to_string().contains("wrote no filter"));
    }
}
