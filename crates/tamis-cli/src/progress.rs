//! how far the work has come -> a bar on a terminal, and nothing in a pipe.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error that disappears when it is dropped.
pub(crate) struct Bar(ProgressBar);

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
    pub(crate) fn shards() -> Bar {
        Bar::new("building", Some(0), "{msg} {wide_bar} shard {pos}/{len}, {eta} left")
    }

    fn new(what: &'static str, total: Option<u64>, template: &str) -> Bar {
        let quiet = !io::stderr().is_terminal();
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

    pub(crate) fn at(&self, position: u64) {
        self.0.set_position(position);
    }

    pub(crate) fn of(&self, total: u64) {
        self.0.set_length(total);
    }

    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}
