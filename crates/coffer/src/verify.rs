//! `coffer verify`: asks the running server to open all that is stored, and reports.

use std::io::{self, Write};
use std::process::ExitCode;

use coffer_admin::{Report, VerifyRequest};
use http::Method;
use http_body_util::BodyExt;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::VerifyArgs;
use crate::error::Error;
use crate::limits::REPORT_LINE_BYTES;
use crate::printable::{printable, size};
use crate::remote::Remote;

/// The exit code when something is damaged.
const DAMAGED: u8 = 1;

/// Verifies; damage is listed on standard output. Progress is drawn on standard error if that is a
/// terminal.
pub async fn verify(remote: &Remote, args: &VerifyArgs) -> Result<ExitCode, Error> {
    let request = VerifyRequest { rate: args.rate };
    let mut body = remote
        .open(Method::POST, "/v1/verify", Some(&request))
        .await?;
    let mut console = Console::new(args.json);
    let mut lines = Lines::default();
    let early = || remote.nonsense("ended before its report did");
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| early())?;
        let Ok(bytes) = frame.into_data() else {
            continue;
        };
        lines.push(&bytes);
        while let Some(line) = lines.next() {
            let report = serde_json::from_slice(&line)
                .map_err(|_| remote.nonsense("gave an unknown answer"))?;
            let done = console
                .show(&line, report)
                .map_err(|source| Error::System {
                    doing: "writing the report",
                    source,
                })?;
            if let Some(damage_count) = done {
                return Ok(match damage_count {
                    0 => ExitCode::SUCCESS,
                    _ => ExitCode::from(DAMAGED),
                });
            }
        }
        if lines.is_too_long() {
            return Err(remote.nonsense("gave an answer without an end"));
        }
    }
    Err(early())
}

/// Puts lines together from frames.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let end = self.text.iter().position(|byte| *byte == b'\n')?;
        let rest = self.text.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.text, rest);
        line.pop();
        Some(line)
    }

    fn is_too_long(&self) -> bool {
        self.text.len() > REPORT_LINE_BYTES
    }
}

/// Where the report goes.
struct Console {
    json: bool,
    bar: ProgressBar,
}

impl Console {
    fn new(json: bool) -> Self {
        // Draws on standard error, and only if that is a terminal.
        let bar = if json {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(0)
        };
        let template = "{bar:32} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left{msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("a template that parses"));
        Self { json, bar }
    }

    /// Shows a line of the report; gives the count of damage when it was the last.
    fn show(&mut self, line: &[u8], report: Report) -> io::Result<Option<u64>> {
        if self.json {
            let mut out = io::stdout().lock();
            out.write_all(line)?;
            out.write_all(b"\n")?;
            out.flush()?;
        }
        match report {
            Report::Progress {
                checked_bytes,
                total_bytes,
                ..
            } => {
                self.bar.set_length(total_bytes.max(checked_bytes));
                self.bar.set_position(checked_bytes);
                Ok(None)
            }
            Report::Damage { bucket, name, what } if !self.json => {
                self.bar.set_message(", DAMAGE FOUND");
                let place = match name {
                    Some(name) => format!("{bucket}/{}", printable(&name)),
                    None => bucket,
                };
                self.bar
                    .suspend(|| writeln!(io::stdout(), "damaged: {place}: {what}"))?;
                Ok(None)
            }
            Report::Damage { .. } => Ok(None),
            Report::Done {
                checked_count,
                checked_bytes,
                damage_count,
            } => {
                self.bar.finish_and_clear();
                if !self.json {
                    let checked =
                        format!("checked {checked_count} objects, {}", size(checked_bytes));
                    let result = match damage_count {
                        0 => "all sound".to_owned(),
                        count => format!("{count} DAMAGED"),
                    };
                    writeln!(io::stdout(), "{checked}: {result}")?;
                }
                Ok(Some(damage_count))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let text = b"{\"a\":1}\n\n{\"b\":2}\nrest";
        for cut in 0..text.len() {
            let mut lines = Lines::default();
            let mut got = Vec::new();
            for part in [&text[..cut], &text[cut..]] {
                lines.push(part);
                while let Some(line) = lines.next() {
                    got.push(line);
                }
            }
            assert_eq!(got, [&b"{\"a\":1}"[..], b"", b"{\"b\":2}"]);
            assert_eq!(lines.text, b"rest");
        }
    }
}
