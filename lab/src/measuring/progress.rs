//! How far it is, and how much longer it takes.

use std::sync::LazyLock;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::host::undo::say;

/// When this variable is set, titles are printed as lines: for the lab that watches from outside.
pub const TELL: &str = "COFFER_LAB_TELL";

/// All bars, one below the other: a long work may have others in it.
static ALL: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// A bar on standard error; silent when that is not a terminal.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Announces `steps` steps.
    pub fn new(title: &str, steps: usize) -> Self {
        let bar = ALL.add(ProgressBar::new(steps as u64));
        let template = "{prefix} {wide_bar} {percent} % · {eta} left · {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(title.to_owned());
        bar.enable_steady_tick(Duration::from_millis(500));
        if std::env::var_os(TELL).is_some() {
            say(title);
        }
        Self(bar)
    }

    /// Announces work of unknown length: tells only how long it has taken.
    pub fn open(title: &str) -> Self {
        let bar = ALL.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} · {wide_msg}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(title.to_owned());
        bar.enable_steady_tick(Duration::from_millis(500));
        Self(bar)
    }

    /// Says what is being measured.
    pub fn say(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// One step done.
    pub fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
        ALL.remove(&self.0);
    }
}
