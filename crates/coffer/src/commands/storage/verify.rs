//! `coffer verify`: asks the running server to open all that is stored, or opens what is stored in
//! a folder that none runs on, and reports.

use clap::Args;
use coffer_client::{AdminClient, ClientError, Lines};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use coffer_admin::{Report, VerifyRequest};
use coffer_keys::SourceSpec;
use coffer_vault::VerifyEvent;
use coffer_vault::offline::Offline;
use http::Method;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use crate::error::Error;
use crate::limits::OFFLINE_PROGRESS;
use crate::output::printable::{printable, size};
use crate::secrets::passphrase::PassphraseArgs;
use crate::secrets::root_source::secrets_of;
use crate::tls::damage::find_damage;
use crate::tls::folder::Files;

/// `coffer verify`.
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct VerifyArgs {
    /// Read at most this much a second, e.g. 100MB [default: as fast as it goes]
    #[arg(long, value_name = "BYTES", value_parser = bytes_per_second)]
    pub rate: Option<u64>,
    /// Report as JSON, an event a line
    #[arg(long)]
    pub json: bool,
    /// Where the root key is of a copy that does not record it, such as file:/PATH
    #[arg(long, value_name = "SOURCE")]
    pub root_key: Option<SourceSpec>,
    /// Where the passphrase of the root key comes from, where no server runs.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
}

/// `100MB`, `1.5GiB`, `64k`, `1000000`, each with or without `/s`.
fn bytes_per_second(text: &str) -> Result<u64, String> {
    let advice = || "write a number of bytes a second such as 100MB, 1.5GiB or 500000".to_owned();
    let text = text.trim();
    let text = text.strip_suffix("/s").unwrap_or(text);
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| advice())?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(advice()),
    };
    let rate = number * factor;
    // The cast is exact enough below 2^53, far above any disk.
    if (1.0..9e15).contains(&rate) {
        Ok(rate as u64)
    } else {
        Err(advice())
    }
}

/// The exit code when something is damaged, or older than is known.
const DAMAGED: u8 = 1;

/// When all else is sound, and buckets are not there that a restore left out; as of a backup.
const LEFT_OUT: u8 = 4;

/// Verifies; damage is listed on standard output. Progress is drawn on standard error if that is a
/// terminal.
pub async fn verify(server: &AdminClient, args: &VerifyArgs) -> Result<ExitCode, Error> {
    let request = VerifyRequest {
        rate: args.rate,
        commitments_only: false,
    };
    let mut console = Console::new(args.json);
    let asked = server.open(Method::POST, "/v1/verify", Some(&request));
    let body = match asked.await {
        Err(ClientError::NoServer { data, .. }) if data.join("keystore").exists() => {
            return verify_files(&data, args, console).await;
        }
        asked => asked?,
    };
    let mut lines = Lines::new(server, body);
    while let Some((report, line)) = lines.next().await? {
        let done = console
            .show(&line, report)
            .map_err(|source| Error::System {
                doing: "writing the report",
                source,
            })?;
        if let Some(code) = done {
            return Ok(code);
        }
    }
    Err(server.ended_early().into())
}

fn exit_code(found_count: u64, left_out_count: u64) -> ExitCode {
    match (found_count, left_out_count) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(LEFT_OUT),
        _ => ExitCode::from(DAMAGED),
    }
}

/// Verifies a folder that no server runs on, with its root key.
async fn verify_files(
    data: &Path,
    args: &VerifyArgs,
    mut console: Console,
) -> Result<ExitCode, Error> {
    eprintln!("no server runs on {}: its files are read", data.display());
    let source = args.root_key.as_ref();
    let secrets = secrets_of(data, source, &args.passphrase)?;
    let offline = Offline::open(data, source, &secrets)?;
    let mut shown = Ok(None);
    let mut told = Instant::now();
    let elsewhere = match find_damage(&Files::of(data)) {
        Ok(found) => found,
        Err(error) => vec![error.to_string()],
    };
    offline
        .verify(elsewhere, |event| {
            if matches!(event, VerifyEvent::Progress { .. }) {
                if told.elapsed() < OFFLINE_PROGRESS {
                    return;
                }
                told = Instant::now();
            }
            let report = Report::from(event);
            let line = serde_json::to_vec(&report).unwrap_or_default();
            if shown.is_ok() {
                shown = console.show(&line, report);
            }
        })
        .await;
    let code = shown.map_err(|source| Error::System {
        doing: "writing the report",
        source,
    })?;
    Ok(code.unwrap_or(ExitCode::from(DAMAGED)))
}

/// Where the report goes.
struct Console {
    json: bool,
    bar: ProgressBar,
    left_out_count: u64,
}

/// How long it takes still; nothing while that can't be told, for nothing was done yet.
fn time_left(state: &ProgressState, out: &mut dyn fmt::Write) {
    if state.per_sec() > 0.0 {
        let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
    }
}

impl Console {
    fn new(json: bool) -> Self {
        // Draws on standard error, and only if that is a terminal.
        let bar = if json {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(0)
        };
        let template = "{bar:32} {bytes} of {total_bytes}, {bytes_per_sec}{left}{msg}";
        let style = ProgressStyle::with_template(template).expect("a template that parses");
        bar.set_style(style.with_key("left", time_left));
        Self {
            json,
            bar,
            left_out_count: 0,
        }
    }

    /// Shows a line of the report; gives the code to end with when it was the last.
    fn show(&mut self, line: &[u8], report: Report) -> io::Result<Option<ExitCode>> {
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
            Report::Rollback { what } if !self.json => {
                self.bar.set_message(", ROLLBACK FOUND");
                self.bar
                    .suspend(|| writeln!(io::stdout(), "ROLLBACK: {what}"))?;
                Ok(None)
            }
            Report::Damage { .. } | Report::Rollback { .. } => Ok(None),
            Report::LeftOut { bucket } => {
                self.left_out_count += 1;
                if !self.json {
                    let told = format!("not restored, and not looked at: bucket {bucket}");
                    self.bar.suspend(|| eprintln!("{told}"));
                }
                Ok(None)
            }
            Report::Done {
                checked_count,
                checked_bytes,
                damage_count,
                rollback_count,
                client_key_count,
            } => {
                self.bar.finish_and_clear();
                if !self.json {
                    let checked =
                        format!("checked {checked_count} objects, {}", size(checked_bytes));
                    let result = result(damage_count, rollback_count);
                    writeln!(io::stdout(), "{checked}: {result}")?;
                    if client_key_count > 0 {
                        writeln!(
                            io::stdout(),
                            "{client_key_count} blobs are sealed under clients' keys too, which \
                             alone open them: their lengths and wrapped keys were checked"
                        )?;
                    }
                }
                let found_count = damage_count + rollback_count;
                Ok(Some(exit_code(found_count, self.left_out_count)))
            }
        }
    }
}

/// What was found, in a few words.
fn result(damage_count: u64, rollback_count: u64) -> String {
    match (damage_count, rollback_count) {
        (0, 0) => "all sound".to_owned(),
        (damaged, 0) => format!("{damaged} DAMAGED"),
        (0, older) => format!("all opens, and {older} older than is known (ROLLBACK)"),
        (damaged, older) => format!("{damaged} DAMAGED, {older} older than is known (ROLLBACK)"),
    }
}

const VERIFY_EXAMPLES: &str = "\
Where no server runs, the files are read with the root key: those of a copy, for example. What opens
and is older than its keystore knows, as after a restore, is told as ROLLBACK, and is no damage.
Ends with 0 when all is sound, 1 when something is damaged or older, 2 when it could not look, 4
when all is sound and a restore of other buckets (`--bucket`) left some out, which are named.

Examples:
  coffer verify
  coffer verify --data /srv/coffer --rate 100MB
  coffer verify --json > report.ndjson
  coffer verify --data /mnt/backup/copy --root-key file:/root/kept-apart/root.key";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        for (text, rate) in [
            ("100MB", 100_000_000),
            ("100MB/s", 100_000_000),
            ("1.5GiB", 3 * 512 * 1024 * 1024),
            ("64k", 64_000),
            ("1", 1),
            ("2 mib", 2 * 1024 * 1024),
        ] {
            assert_eq!(bytes_per_second(text), Ok(rate), "{text}");
        }
        for text in [
            "",
            "MB",
            "0",
            "-1",
            "1e9",
            "10XB",
            "nan",
            "inf",
            "0.1",
            "99999999999GB",
            "1.2.3",
        ] {
            assert!(bytes_per_second(text).is_err(), "{text}");
        }
    }
}
