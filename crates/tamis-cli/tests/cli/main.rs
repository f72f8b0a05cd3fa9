//! the `tamis` program, run as a user runs it -> exit codes, output, messages, and what is left on the disk.

#![allow(clippy::unwrap_used, clippy::panic)]

mod answers;
mod bad;
mod changing;
mod errors;
mod expect;
mod formats;
mod goals;
mod grammar;
#[cfg(unix)]
mod guide;
mod inputs;
mod learn;
mod maps;
#[cfg(target_os = "linux")]
mod memory;
mod negatives;
#[cfg(unix)]
mod outputs;
mod partitions;
mod patches;
mod plan;
mod secrets;
mod sets;
#[cfg(unix)]
mod signals;
mod slices;
#[cfg(target_os = "linux")]
mod terminal;
mod test_dir;
