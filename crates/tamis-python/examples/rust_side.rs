//! a number of keys -> nanoseconds per key in Rust: the half of `bench/python.py` that is not Python.
//!
//! Prints a line `NAME NANOSECONDS` for each measurement, and the highest memory in bytes.

use std::hint::black_box;
use std::time::Instant;

/// Runs as often as the half in Python and prints the quickest.
fn time<T>(name: &str, n: usize, mut run: impl FnMut() -> Result<T, tamis::Error>) -> Result<(), tamis::Error> {
    let mut best = f64::INFINITY;
    for _ in 0..15 {
        let start = Instant::now();
        black_box(run()?);
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name} {}", 1e9 * best / n as f64);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let n: usize = arguments.first().map_or(Ok(1_000_000), |n| n.parse())?;
    let numbers: Vec<u64> = (0..n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    if arguments.get(1).is_some_and(|what| what == "memory") {
        black_box(tamis::build(&numbers).threads(2).finish()?);
    } else {
        let texts: Vec<String> = (0..n).map(|i| format!("host-{i}.example")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        time("build-u64", n, || tamis::build(&numbers).threads(1).finish())?;
        time("build-text", n, || tamis::build(&texts).threads(1).finish())?;
        let (by_number, by_text) = (tamis::build(&numbers).finish()?, tamis::build(&texts).finish()?);
        time("many-u64", n, || Ok(by_number.contains_many(&numbers)?))?;
        time("many-text", n, || Ok(by_text.contains_many(&texts)?))?;
        time("one-text", n, || {
            let mut found = 0;
            for text in &texts {
                found += usize::from(by_text.contains(text)?);
            }
            Ok(found)
        })?;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    println!("peak {}", peak.unwrap_or(0) * 1024);
    Ok(())
}
