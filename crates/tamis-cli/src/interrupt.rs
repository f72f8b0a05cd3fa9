//! an interrupt (Ctrl-C, a hang-up, `kill`) -> the end of a build that leaves nothing behind.
//!
//! ```text
//!   reading ──build()──▶ building ──▶ done
//!      │                    │
//!      ▼ exit at once       ▼ flag: the library removes its temporary file
//! ```
//!
//! A read of standard input may wait for ever, and no flag ends it. But as long as keys are read there is no file with a
//! name (spilled keys are in files without one), so the handler itself ends the program. Once the filter is written there
//! may be a temporary file next to it; then the handler raises a flag, and the build stops between two shards
//! and removes it. The two sides agree on where the build stands by one compare-and-swap each. A second interrupt
//! ends the program whatever it does.
//!
//! A signal that was ignored when the program began stays ignored, as `nohup` and background jobs of scripts have it; the
//! others are handled all the same.

use std::io::{self, IsTerminal, Write};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use anyhow::Result;
use tamis::BuildError;

use crate::failure;

/// What a shell expects of a program that was interrupted.
pub(crate) const CODE: u8 = 130;

const READING: u8 = 0;
const BUILDING: u8 = 1;
const ENDED: u8 = 2;

/// The interrupt handler of a build.
pub(crate) struct Interrupt {
    phase: Arc<AtomicU8>,
    cancel: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs the handler; once per program.
    pub(crate) fn install() -> Result<Interrupt> {
        let (phase, cancel) = (Arc::new(AtomicU8::new(READING)), Arc::new(AtomicBool::new(false)));
        let (at, flag) = (Arc::clone(&phase), Arc::clone(&cancel));
        let handler = move || match at.compare_exchange(READING, ENDED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                say();
                process::exit(CODE.into());
            }
            Err(_) if flag.swap(true, Ordering::Relaxed) => process::exit(CODE.into()),
            Err(_) => {}
        };
        listen(handler)?;
        Ok(Interrupt { phase, cancel })
    }

    /// The flag that stops a build.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// From here on there may be a temporary file.
    pub(crate) fn build(&self) -> Result<()> {
        match self.phase.compare_exchange(READING, BUILDING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(_) => Err(BuildError::Cancelled.into()),
        }
    }

    /// Whether to go on, between two steps of which none looks at the flag.
    pub(crate) fn check(&self) -> Result<()> {
        match self.cancel.load(Ordering::Relaxed) {
            true => Err(BuildError::Cancelled.into()),
            false => Ok(()),
        }
    }
}

/// Calls the handler at every interrupt.
#[cfg(unix)]
fn listen(handler: impl Fn() + Send + 'static) -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    // Where the system does not say, a hang-up ends the program or not, as it would without us.
    let ignored = ignored().unwrap_or(1 << (SIGHUP - 1));
    let heard = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = signal_hook::iterator::Signals::new(heard)?;
    std::thread::Builder::new().spawn(move || signals.forever().for_each(|_| handler()))?;
    Ok(())
}

#[cfg(not(unix))]
fn listen(handler: impl Fn() + Send + 'static) -> Result<()> {
    Ok(ctrlc::set_handler(handler)?)
}

/// The signals that this program ignores, a bit for each.
#[cfg(unix)]
fn ignored() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Makes a file that grows past the limit of the shell (`ulimit -f`) an error of the write, as a full disk is, and not the end of the
/// program.
pub(crate) fn survive_file_limit() {
    #[cfg(unix)]
    // The flag is not read: what counts is that the signal does nothing else.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Reports the interrupt.
pub(crate) fn say() {
    if io::stderr().is_terminal() {
        // A progress bar may stand in the line.
        let _ = write!(io::stderr(), "\r\x1b[2K");
    }
    failure::write(failure::Kind::Interrupted, "interrupted; nothing was written", &[]);
}
