//! How far it has come: a bar for people, on a terminal, or lines of JSON for programs.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use coffer_client::mover::{Counts, Event, Failure, Moved, Watch};
use indicatif::{
    DecimalBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::error::Error;
use crate::limits::{FAILURE_KINDS, FAILURES_ALIKE, PROGRESS_INTERVAL};
use crate::output::printable::{printable, size};

/// Where lines for programs go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    /// Nowhere: it is for people.
    None,
    /// To standard output.
    Out,
    /// To standard error, for standard output has the object.
    Error,
}

/// Takes events, and tells them.
pub(crate) struct Progress {
    bar: ProgressBar,
    lines: Lines,
    tally: Mutex<Tally>,
    /// How often the same was said of something that failed.
    failures: Mutex<BTreeMap<String, u64>>,
}

struct Tally {
    started: Instant,
    told: Instant,
    bytes: i64,
    of: u64,
}

impl Progress {
    pub(crate) fn new(lines: Lines) -> Self {
        // On standard error, and only if that is a terminal.
        let target = match lines {
            Lines::None => ProgressDrawTarget::stderr(),
            _ => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let template = "{wide_bar} {decimal_bytes} of {decimal_total_bytes}{pace} {msg}";
        let style = ProgressStyle::with_template(template).expect("a template that parses");
        let told = |state: &ProgressState, out: &mut dyn fmt::Write| {
            let rest = state.len().unwrap_or(0).saturating_sub(state.pos());
            let _ = out.write_str(&pace(state.per_sec(), rest));
        };
        bar.set_style(style.with_key("pace", told));
        let now = Instant::now();
        Self {
            bar,
            lines,
            tally: Mutex::new(Tally {
                started: now,
                told: now,
                bytes: 0,
                of: 0,
            }),
            failures: Mutex::default(),
        }
    }

    pub(crate) fn retrying(&self, problem: &str, wait: Duration) {
        self.event(&Event::Retrying { problem, wait });
    }

    /// Takes the bar away, and tells of failures that were only counted.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
        for (message, count) in std::mem::take(&mut *self.failures.lock()) {
            let more = count.saturating_sub(FAILURES_ALIKE);
            if more > 0 {
                self.say(&format!(
                    "error: {more} more: {message} (--json names each)"
                ));
            }
        }
    }

    /// Tells an event to programs. A reader that has gone is found at the end.
    pub(crate) fn line(&self, event: &str, mut said: Value) {
        let Value::Object(fields) = &mut said else {
            return;
        };
        fields.insert("event".to_owned(), event.into());
        let _ = self.write(&said);
    }

    fn write(&self, said: &Value) -> io::Result<()> {
        match self.lines {
            Lines::None => Ok(()),
            Lines::Out => {
                let mut out = io::stdout().lock();
                writeln!(out, "{said}").and_then(|()| out.flush())
            }
            Lines::Error => writeln!(io::stderr().lock(), "{said}"),
        }
    }

    /// Tells of the whole.
    pub(crate) fn summary(&self, counts: &Counts) -> Result<(), Error> {
        self.clear();
        let seconds = self.tally.lock().started.elapsed().as_secs_f64();
        let Counts {
            done,
            bytes,
            failed,
            empty_folders,
        } = counts;
        let mut said = json!({
            "event": "summary", "done": done, "bytes": bytes, "failed": failed,
            "seconds": (seconds * 1000.0).round() / 1000.0,
        });
        if *empty_folders > 0 {
            said["empty_folders"] = (*empty_folders).into();
        }
        let written = self.write(&said);
        written.map_err(|source| Error::Unwritten {
            remedy: String::new(),
            source,
        })?;
        if self.lines == Lines::None {
            let is_terminal = io::IsTerminal::is_terminal(&io::stderr());
            if *empty_folders > 0 {
                let left_out = match empty_folders {
                    1 => "1 empty folder is left out".to_owned(),
                    many => format!("{many} empty folders are left out"),
                };
                self.say(&format!("note: {left_out}: objects lie in no folders"));
            }
            let rate = size((*bytes as f64 / seconds.max(0.001)) as u64);
            if *failed > 0 {
                self.say(&format!("error: {failed} failed, {done} went well"));
            } else if is_terminal {
                self.say(&format!("{done} done, {}, {rate}/s", size(*bytes)));
            }
        }
        Ok(())
    }

    /// A line for people, beside the bar.
    fn say(&self, text: &str) {
        let text = printable(text);
        self.bar.suspend(|| {
            let _ = writeln!(io::stderr().lock(), "{text}");
        });
    }

    fn moved(&self, bytes: i64, of: u64) {
        let mut tally = self.tally.lock();
        tally.bytes += bytes;
        tally.of += of;
        let done = u64::try_from(tally.bytes).unwrap_or(0);
        self.bar.set_length(tally.of);
        self.bar.set_position(done);
        if self.lines != Lines::None && tally.told.elapsed() >= PROGRESS_INTERVAL {
            tally.told = Instant::now();
            let of = tally.of;
            drop(tally);
            self.line("progress", json!({ "bytes": done, "of": of }));
        }
    }
}

impl Watch for Progress {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Found { bytes, .. } => self.moved(0, *bytes),
            Event::Bytes(bytes) => self.moved(*bytes, 0),
            Event::Kept(bytes) => self.moved(*bytes as i64, 0),
            Event::Retrying { problem, wait } => {
                let (wait_ms, seconds) = (wait.as_millis() as u64, wait.as_secs_f64());
                self.bar
                    .set_message(format!("(again in {seconds:.1} s: {})", printable(problem)));
                self.line(
                    "retrying",
                    json!({ "problem": problem, "wait_ms": wait_ms }),
                );
            }
            Event::Note(text) => {
                if self.lines == Lines::None {
                    self.say(&format!("note: {text}"));
                }
                self.line("note", json!({ "message": text }));
            }
            Event::Done(moved) => self.done(moved),
            Event::Failed(failure) => self.failed(failure),
        }
    }
}

impl Progress {
    fn done(&self, moved: &Moved) {
        self.bar.set_message("");
        self.line("done", serde_json::to_value(moved).unwrap_or_default());
    }

    fn failed(&self, failure: &Failure) {
        let Failure { what, message, .. } = failure;
        if self.lines == Lines::None {
            // The path of a file stands in most messages already.
            if message.starts_with(what.as_str()) {
                self.say(&format!("error: {message}"))
            } else if self.is_told(message) {
                self.say(&format!("error: {what}: {message}"))
            }
        }
        self.line("failed", serde_json::to_value(failure).unwrap_or_default());
    }
}

impl Progress {
    /// Whether a failure is told by itself: not where many met the same.
    fn is_told(&self, message: &str) -> bool {
        let mut failures = self.failures.lock();
        if failures.len() >= FAILURE_KINDS && !failures.contains_key(message) {
            return true;
        }
        let count = failures.entry(message.to_owned()).or_default();
        *count += 1;
        *count <= FAILURES_ALIKE
    }
}

/// Longer than this, what is left is no more told than guessed: a connection stands still.
const LEFT_LONGEST: Duration = Duration::from_hours(99 * 24);

/// How many bytes go each second, and how long the rest will take, as far as either is known:
/// before something has moved, and where nothing does, they are not.
fn pace(rate: f64, rest: u64) -> String {
    if rate < 1.0 {
        return String::new();
    }
    let rate_text = format!(", {}/s", DecimalBytes(rate as u64));
    let left = Duration::try_from_secs_f64(rest as f64 / rate);
    match left.ok().filter(|left| *left <= LEFT_LONGEST) {
        Some(left) if rest > 0 => format!("{rate_text}, {:#} left", HumanDuration(left)),
        _ => rate_text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_where_it_is_known() {
        const HOUR: u64 = 3600;
        for (rate, rest, told) in [
            (0.0, 5_000_000, ""),
            (0.4, 5_000_000, ""),
            (0.0, 0, ""),
            (1e6, 0, ", 1.00 MB/s"),
            (1e6, 5_000_000, ", 1.00 MB/s, 5s left"),
            (1e6, 300_000_000, ", 1.00 MB/s, 5m left"),
            (1.0, 5 * HOUR, ", 1 B/s, 5h left"),
            (1.0, 3 * 24 * HOUR, ", 1 B/s, 3d left"),
            (1.0, 98 * 24 * HOUR, ", 1 B/s, 14w left"),
            (1.0, 100 * 24 * HOUR, ", 1 B/s"),
            (1.0, u64::MAX, ", 1 B/s"),
            (f64::MIN_POSITIVE, u64::MAX, ""),
        ] {
            assert_eq!(pace(rate, rest), told, "{rate} {rest}");
        }
    }
}
