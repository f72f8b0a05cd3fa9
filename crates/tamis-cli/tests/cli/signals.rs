//! signals -> a build that ends, says so and leaves nothing behind.

use std::fs;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use crate::test_dir::{Run, TestDir, numbers};

fn send(signal: &str, child: &Child) {
    let done = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

/// Waits until `ready`, a minute at most; whether it came to that.
fn within_time(mut ready: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !ready() {
        if start.elapsed() > Duration::from_secs(60) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// The end of a program that must come to it by itself.
fn end(mut child: Child) -> Run {
    if !within_time(|| child.try_wait().unwrap().is_some()) {
        child.kill().unwrap();
        panic!("the signal did not end it");
    }
    child.wait_with_output().unwrap().into()
}

/// A test that was started with interrupts ignored (a background job of a script) hands that on to what it starts.
fn ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // SIGHUP is 1, SIGINT 2, SIGTERM 15.
    mask & (1 | 2 | 1 << 14) != 0
}

/// Whether the file to be is there: one without a name, or a part.
fn writes(dir: &TestDir, child: &Child) -> bool {
    let place = fs::canonicalize(dir.path("")).unwrap();
    let open = fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
    let mut files = open.filter_map(|file| fs::read_link(file.path()).ok());
    files.any(|file| file.parent() == Some(&place) && file.to_string_lossy().ends_with(" (deleted)"))
        || dir.names().iter().any(|name| name.ends_with(".part"))
}

/// A build that has read these keys and waits for more. They are more than a pipe holds, so it is past its start.
fn waiting(dir: &TestDir, program: &str, line: &str) -> (Child, ChildStdin) {
    let mut child = dir.around(program, line).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(numbers(0..100_000).as_bytes()).unwrap();
    (child, stdin)
}

#[test]
fn a_build_that_waits_for_input_ends_at_once() {
    if ignored() {
        return;
    }
    let dir = TestDir::new();
    dir.put("out.tamis", "old");
    // With little memory there is a temporary file by then, without a name.
    let filter = "build --integers --memory 4M -o out.tamis";
    let sets = "sets build numbers=- --integers --memory 4M -o out.tamis";
    for (signal, line) in [("INT", filter), ("TERM", filter), ("HUP", filter), ("INT", sets)] {
        let (child, mut stdin) = waiting(&dir, env!("CARGO_BIN_EXE_tamis"), line);
        stdin.write_all(numbers(100_000..300_000).as_bytes()).unwrap();
        send(signal, &child);
        // Standard input stays open: nothing but the signal ends the read.
        let run = end(child);
        drop(stdin);
        assert_eq!((run.code, run.err.as_str()), (Some(130), "tamis: interrupted; nothing was written\n"), "{signal}");
        assert!(run.out.is_empty());
        assert_eq!(dir.names(), ["out.tamis", "tmp"]);
        assert_eq!(dir.read("out.tamis"), b"old");
    }
}

#[test]
fn a_build_that_writes_removes_its_temporary_file() {
    if ignored() {
        return;
    }
    let dir = TestDir::new();
    dir.put("out.tamis", "old");
    dir.put("keys.txt", numbers(0..1_600_000));
    // Nothing can be done when a program is killed, so there must be nothing to do.
    let signals = if cfg!(target_os = "linux") { &["INT", "KILL"][..] } else { &["INT"] };
    for &signal in signals {
        let line = "build --integers --threads 1 --effort smallest keys.txt -o out.tamis";
        let child = dir.command(line).spawn().unwrap();
        assert!(within_time(|| writes(&dir, &child)));
        send(signal, &child);
        let run = end(child);
        let expected = match signal {
            "INT" => (Some(130), "tamis: interrupted; nothing was written\n"),
            _ => (None, ""),
        };
        assert_eq!((run.code, run.err.as_str()), expected);
        assert_eq!(dir.names(), ["keys.txt", "out.tamis", "tmp"]);
        assert_eq!(dir.read("out.tamis"), b"old");
    }
}

#[test]
fn a_map_that_is_built_removes_its_temporary_file() {
    if ignored() {
        return;
    }
    let dir = TestDir::new();
    dir.put("out.tamis", "old");
    dir.put("pairs.tsv", (0..1_600_000u32).map(|i| format!("{i}\t{}\n", i.trailing_zeros())).collect::<String>());
    let line = "map build --integers --threads 1 --effort smallest pairs.tsv -o out.tamis";
    let child = dir.command(line).spawn().unwrap();
    assert!(within_time(|| writes(&dir, &child)));
    send("INT", &child);
    let run = end(child);
    assert_eq!((run.code, run.err.as_str()), (Some(130), "tamis: interrupted; nothing was written\n"));
    assert_eq!(dir.names(), ["out.tamis", "pairs.tsv", "tmp"]);
    assert_eq!(dir.read("out.tamis"), b"old");
}

#[test]
fn a_build_under_nohup_outlives_its_terminal() {
    let dir = TestDir::new();
    dir.put("hup.sh", format!("trap '' HUP; exec {} build --integers -o out.tamis", env!("CARGO_BIN_EXE_tamis")));
    let (child, stdin) = waiting(&dir, "sh", "hup.sh");
    send("HUP", &child);
    std::thread::sleep(Duration::from_millis(50));
    drop(stdin);
    let report = end(child).text(0);
    assert!(report.starts_with("keys        100,000, 0 duplicates dropped\n"), "{report}");
}

/// Under nohup, and in the background of a script, one signal is ignored, and the others are what they were.
#[test]
fn an_ignored_signal_leaves_the_others() {
    if ignored() {
        return;
    }
    let dir = TestDir::new();
    for (without, signal) in [("HUP", "TERM"), ("HUP", "INT"), ("INT", "TERM"), ("TERM", "HUP")] {
        let program = env!("CARGO_BIN_EXE_tamis");
        dir.put("ignore.sh", format!("trap '' {without}; exec {program} build --integers -o out.tamis"));
        let (child, stdin) = waiting(&dir, "sh", "ignore.sh");
        send(without, &child);
        send(signal, &child);
        let run = end(child);
        drop(stdin);
        let expected = (Some(130), "tamis: interrupted; nothing was written\n");
        assert_eq!((run.code, run.err.as_str()), expected, "{signal} without {without}");
        assert_eq!(dir.names(), ["ignore.sh", "tmp"]);
    }
}

#[test]
fn a_limit_on_files_is_an_error() {
    let dir = TestDir::new();
    dir.put("keys.txt", numbers(0..20_000));
    // In blocks of 512 or 1024 bytes; the file has 17,000 bytes.
    dir.put("limit.sh", format!("ulimit -f 8; exec {} build keys.txt -o out.tamis", env!("CARGO_BIN_EXE_tamis")));
    let run: Run = dir.around("sh", "limit.sh").output().unwrap().into();
    assert_eq!(run.complaint(), "out.tamis: File too large (os error 27)");
    assert_eq!(dir.names(), ["keys.txt", "limit.sh", "tmp"]);
}
