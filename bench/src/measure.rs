//! work -> numbers: clocks, medians and memory readings.

use std::fmt::Display;
use std::hint::black_box;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::arch;

/// Processor time of all threads. For work on one thread this is the time to report: a preempted run costs nothing.
pub fn cpu<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = arch::cpu_time();
    let result = work();
    (result, arch::cpu_time() - start)
}

/// Wall time: for work on several threads.
pub fn wall<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Runs a command to its end: what it needed, wall time, and what it printed.
pub(crate) fn child(command: &mut Command) -> io::Result<(arch::Usage, Duration, String)> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut stdout = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut stdout)?;
    }
    Ok((arch::wait(child)?, start.elapsed(), stdout))
}

/// Nanoseconds for each of `n` things.
pub fn nanos_each(time: Duration, n: usize) -> f64 {
    time.as_nanos() as f64 / n as f64
}

/// Bytes of the heap beyond what was in use before.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Still in use after the work: its result.
    pub kept: usize,
    /// In use at the worst moment, the result included.
    pub peak: usize,
}

impl Memory {
    /// At most so many bytes were in use, if the result takes `bytes`.
    ///
    /// A filter of tamis of 64 KiB and more lies in pages of its own, which are not of the heap. What the heap does not have
    /// of the result is added, as if it had been there at the worst moment.
    pub fn peak_with(&self, bytes: usize) -> usize {
        self.peak + bytes.saturating_sub(self.kept)
    }
}

/// What `work` allocates. Nothing else may be running; there is one peak for the whole process, so readings take turns.
pub fn memory<T>(work: impl FnOnce() -> T) -> (T, Memory) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = arch::live();
    arch::reset_peak();
    let result = work();
    let kept = arch::live().saturating_sub(before);
    (result, Memory { kept, peak: arch::peak().saturating_sub(before) })
}

/// The middle value, or the mean of the two middle ones; nothing of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let (n, middle) = (values.len(), values.len() / 2);
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// Nanoseconds of processor time for each of `n` things, the least of `repetitions` timings: noise only ever adds.
pub fn least_nanos<T>(repetitions: usize, n: usize, mut work: impl FnMut() -> T) -> f64 {
    let once = |_| cpu(|| black_box(work())).1;
    nanos_each((0..repetitions).map(once).min().unwrap_or_default(), n.max(1))
}

/// Nanoseconds of processor time for each of `n` things, the median of some rounds, one at least.
pub fn median_nanos<T>(rounds: usize, n: usize, mut work: impl FnMut() -> T) -> Option<f64> {
    median((0..rounds.max(1)).map(|_| nanos_each(cpu(|| black_box(work())).1, n.max(1))))
}

/// Whose turn it is in a round: nobody has a fixed neighbour.
pub fn turns(n: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..n).map(move |turn| (turn + round) % n)
}

/// Says on the terminal what is being done, in the place of what was said before.
pub fn progress(what: impl Display) {
    eprint!("\r\x1b[K{what}");
}

/// What is measured in every round, and has a median.
pub trait Median: Sized {
    /// The median of the rounds, for a [`measured`](crate::measured) struct that of every field; nothing of no rounds.
    fn median<'a>(rounds: impl Iterator<Item = &'a Self> + Clone) -> Option<Self>
    where
        Self: 'a;
}

impl Median for f64 {
    fn median<'a>(rounds: impl Iterator<Item = &'a f64> + Clone) -> Option<f64> {
        median(rounds.copied())
    }
}

/// The median of the rounds that have it.
impl<T: Median> Median for Option<T> {
    fn median<'a>(rounds: impl Iterator<Item = &'a Option<T>> + Clone) -> Option<Option<T>>
    where
        T: 'a,
    {
        Some(T::median(rounds.flatten()))
    }
}

/// Declares a struct of numbers that every round measures; see [`Median`](crate::measure::Median).
#[macro_export]
macro_rules! measured {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$doc:meta])* $seen:vis $field:ident: $kind:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, serde::Serialize)]
        $vis struct $name { $($(#[$doc])* $seen $field: $kind,)* }

        impl $crate::measure::Median for $name {
            fn median<'a>(rounds: impl Iterator<Item = &'a $name> + Clone) -> Option<$name> {
                Some($name { $($field: $crate::measure::Median::median(rounds.clone().map(|round| &round.$field))?,)* })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0]), Some(3.0));
        assert_eq!(median([9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([9.0, 1.0, 2.0, 4.0]), Some(3.0));
    }

    crate::measured! {
        #[derive(Debug, PartialEq)]
        struct Sample {
            bits: f64,
            batch: Option<f64>,
        }
    }

    #[test]
    fn medians_of_every_field() {
        let rounds = [(1.0, Some(7.0)), (5.0, None), (2.0, Some(8.0))].map(|(bits, batch)| Sample { bits, batch });
        assert_eq!(Sample::median(rounds.iter()), Some(Sample { bits: 2.0, batch: Some(7.5) }));
        assert_eq!(Sample::median(rounds[1..2].iter()), Some(Sample { bits: 5.0, batch: None }));
        assert_eq!(Sample::median([].iter()), None);
    }

    #[test]
    fn what_is_not_on_the_heap_is_added() {
        let memory = Memory { kept: 100, peak: 300 };
        assert_eq!([0, 100, 5000].map(|bytes| memory.peak_with(bytes)), [300, 300, 5200]);
    }

    #[test]
    fn sleeping_costs_wall_time_and_no_processor_time() {
        let nap = Duration::from_millis(80);
        assert!(wall(|| std::thread::sleep(nap)).1 >= nap);
        // The other way round: work takes processor time, however little of the machine this process gets.
        let work = || (0..50_000_000u64).fold(0, |sum, i| std::hint::black_box(sum ^ i));
        assert!(cpu(work).1 > Duration::from_millis(1));
    }
}
