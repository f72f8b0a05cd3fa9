//! how far the work has come -> a bar on a terminal, and nothing in a pipe.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tamis::Progress;

/// A bar on standard error that disappears when it is dropped.
pub(crate) struct Bar(ProgressBar);

/// No bars are shown.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Shows no bars from here on.
pub(crate) fn silence() {
    QUIET.store(true, Ordering::Relaxed);
}

impl Bar {
    /// A bar over bytes read, or a spinner where the total is not known.
    pub(crate) fn bytes(what: &'static str, total: Option<u64>) -> Bar {
        let template = match total {
            Some(_) => "{msg} {wide_bar} {bytes}/{total_bytes}, {eta} left",
            None => "{spinner} {msg} {bytes}, {bytes_per_sec}",
        };
        Bar::new(what, total, template)
    }

    /// A bar over shards.
    fn shards() -> Bar {
        Bar::new("building", Some(0), "{msg} {wide_bar} shard {pos}/{len}, {eta} left")
    }

    /// The progress callback of a build: a bar over shards, once there is something to show. Until then the line belongs
    /// to the bar of the reading.
    pub(crate) fn callback() -> impl Fn(Progress) + Send + Sync + 'static {
        let bar = OnceLock::new();
        move |progress| {
            if let Progress::Built { shards, total } = progress {
                let bar: &Bar = bar.get_or_init(Bar::shards);
                bar.set_total(total);
                bar.set_position(shards);
                if shards == total {
                    bar.clear();
                }
            }
        }
    }

    fn new(what: &'static str, total: Option<u64>, template: &str) -> Bar {
        let quiet = QUIET.load(Ordering::Relaxed) || !io::stderr().is_terminal();
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(8) };
        let bar = ProgressBar::with_draw_target(total, target).with_message(what);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if !quiet {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        Bar(bar)
    }

    pub(crate) fn set_position(&self, position: u64) {
        self.0.set_position(position);
    }

    fn set_total(&self, total: u64) {
        self.0.set_length(total);
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}
