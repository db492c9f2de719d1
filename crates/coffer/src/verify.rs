//! `coffer verify`: asks the running server to open all that is stored, and reports.

use std::io::{self, Write};
use std::process::ExitCode;

use coffer_admin::{Report, VerifyRequest};
use http::Method;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::VerifyArgs;
use crate::error::Error;
use crate::lines::Lines;
use crate::printable::{printable, size};
use crate::remote::Remote;

/// The exit code when something is damaged.
const DAMAGED: u8 = 1;

/// Verifies; damage is listed on standard output. Progress is drawn on standard error if that is a
/// terminal.
pub async fn verify(remote: &Remote, args: &VerifyArgs) -> Result<ExitCode, Error> {
    let request = VerifyRequest {
        rate: args.rate,
        commitments_only: false,
    };
    let body = remote
        .open(Method::POST, "/v1/verify", Some(&request))
        .await?;
    let mut console = Console::new(args.json);
    let mut lines = Lines::new(body);
    while let Some(line) = lines.next(remote).await? {
        let report =
            serde_json::from_slice(&line).map_err(|_| remote.nonsense("gave an unknown answer"))?;
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
    Err(remote.nonsense("ended before its report did"))
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
                let place = match (bucket, name) {
                    (Some(bucket), Some(name)) => format!("{bucket}/{}: ", printable(&name)),
                    (Some(bucket), None) => format!("{bucket}: "),
                    (None, _) => String::new(),
                };
                self.bar
                    .suspend(|| writeln!(io::stdout(), "damaged: {place}{what}"))?;
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
