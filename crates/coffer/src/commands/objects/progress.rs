//! How far it has come: a bar for people, on a terminal, or lines of JSON for programs.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use coffer_client::mover::{Counts, Event, Failure, Moved, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::error::Error;
use crate::limits::PROGRESS_INTERVAL;
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
        let template = "{wide_bar} {decimal_bytes} of {decimal_total_bytes}, \
                        {decimal_bytes_per_sec}, {eta} left {msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("a template that parses"));
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
        }
    }

    pub(crate) fn retrying(&self, problem: &str, wait: Duration) {
        self.event(&Event::Retrying { problem, wait });
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
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
            } else {
                self.say(&format!("error: {what}: {message}"))
            }
        }
        self.line("failed", serde_json::to_value(failure).unwrap_or_default());
    }
}
