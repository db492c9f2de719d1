//! `coffer audit`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use coffer_admin::{AuditRecord, AuditReport, AuditVerifyRequest};
use coffer_audit::{AuditError, Hash, Recorded};
use coffer_client::{AdminClient, ClientError, Lines};
use coffer_keys::SourceSpec;
use coffer_vault::offline::OfflineAudit;
use coffer_vault::{AdministrationError, AuditQuery, VaultError};
use http::Method;
use serde::Deserialize;

use crate::error::Error;
use crate::output::printable::printable;
use crate::output::table::{AnswerArgs, moment, show, unless_read_enough};
use crate::secrets::passphrase::PassphraseArgs;
use crate::secrets::root_source::secrets_of;

pub mod filter;

pub mod prune;

use self::filter::{WantedArgs, recorded};
use self::prune::{PruneArgs, prune};

/// `coffer audit`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct AuditArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// Where the root key is of a copy that does not record it, such as file:/PATH
    #[arg(long, value_name = "SOURCE", global = true)]
    pub root_key: Option<SourceSpec>,
    /// Where the passphrase of a stopped server's root key comes from.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: AuditCommand,
}

/// What can be done with the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Show records
    #[command(after_help = EXAMPLES)]
    Show {
        /// Which ones.
        #[command(flatten)]
        wanted: WantedArgs,
        /// Only so many at the end [default: 100, unless --since is given]
        #[arg(long, value_name = "N")]
        last: Option<u64>,
    },
    /// Show records as they come, until interrupted
    #[command(after_help = EXAMPLES)]
    Follow {
        /// Which ones [default: from the last 10 on].
        #[command(flatten)]
        wanted: WantedArgs,
    },
    /// Verify every record, every checkpoint, and that the end is there
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Remove old segments, behind a signed record that says which
    Prune(PruneArgs),
    /// Print records as JSON, an object a line
    #[command(after_help = EXAMPLES)]
    Export {
        /// Which ones.
        #[command(flatten)]
        wanted: WantedArgs,
    },
}

/// `coffer audit verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// A record that must be in the log: its number and its hash
    #[arg(long, value_name = "SEQUENCE:HASH", value_parser = recorded)]
    pub record: Option<Recorded>,
    /// A receipt whose last audit record must be in the log
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub receipt: Option<PathBuf>,
}

/// The part of a receipt that counts here.
#[derive(Deserialize)]
struct Receipt {
    last_audit_record: Option<ReceiptRecord>,
}

#[derive(Deserialize)]
struct ReceiptRecord {
    number: u64,
    hash: String,
}

/// How many records `show` shows, and `follow` begins with.
const SHOWN: u64 = 100;
const FOLLOWED: u64 = 10;

/// Asks, and shows the answer. Where no server runs on this machine's data folder, its files are
/// read.
pub async fn audit(server: &AdminClient, args: &AuditArgs) -> Result<ExitCode, Error> {
    let asking = Asking {
        server,
        root_key: args.root_key.as_ref(),
        passphrase: &args.passphrase,
    };
    let json = args.answer.json;
    match &args.command {
        AuditCommand::Show { wanted, last } => {
            let last = last.or(wanted.since.is_none().then_some(SHOWN));
            asking.records(wanted, last, false, json).await
        }
        AuditCommand::Follow { wanted } => {
            let last = wanted.since.is_none().then_some(FOLLOWED);
            asking.records(wanted, last, true, json).await
        }
        AuditCommand::Export { wanted } => asking.records(wanted, None, false, true).await,
        AuditCommand::Verify(args) => asking.verify(args, json).await,
        AuditCommand::Prune(args) => prune(server, args, json).await,
    }
}

/// Whom to ask, and how to open the files where no server answers.
struct Asking<'a> {
    server: &'a AdminClient,
    root_key: Option<&'a SourceSpec>,
    passphrase: &'a PassphraseArgs,
}

impl Asking<'_> {
    async fn records(
        &self,
        wanted: &WantedArgs,
        last: Option<u64>,
        follow: bool,
        json: bool,
    ) -> Result<ExitCode, Error> {
        let mut path = if follow {
            "/v1/audit/follow?".to_owned()
        } else {
            "/v1/audit?".to_owned()
        };
        path += &wanted.query();
        if let Some(last) = last {
            path += &format!("last={last}");
        }
        let mut printer = Printer { json, problems: 0 };
        let done = match self.server.open(Method::GET, &path, None::<&()>).await {
            Err(ClientError::NoServer { data, .. }) if !follow && is_data(&data) => {
                self.read_files(&data, wanted.offline(last), &mut printer)
            }
            Err(error) => Err(error.into()),
            Ok(body) => {
                self.print(Lines::new(self.server, body), &mut printer)
                    .await
            }
        };
        unless_read_enough(done)?;
        Ok(match printer.problems {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        })
    }

    async fn print(&self, mut lines: Lines<'_>, printer: &mut Printer) -> Result<(), Error> {
        while let Some((record, _)) = lines.next().await? {
            printer.print(&record)?;
        }
        Ok(())
    }

    fn offline(&self, data: &Path) -> Result<OfflineAudit, Error> {
        eprintln!("no server runs on {}: its files are read", data.display());
        let secrets = secrets_of(data, self.root_key, self.passphrase)?;
        Ok(OfflineAudit::open(data, self.root_key, &secrets)?)
    }

    fn read_files(
        &self,
        data: &Path,
        query: AuditQuery,
        printer: &mut Printer,
    ) -> Result<(), Error> {
        let audit = self.offline(data)?;
        let mut reader = audit.records(query)?;
        loop {
            let record = match reader.next() {
                Ok(None) => return Ok(()),
                Ok(Some(record)) => AuditRecord::from(audit.shown(record)),
                Err(error @ AuditError::Unreadable { .. }) => AuditRecord {
                    unreadable: Some(error.to_string()),
                    ..AuditRecord::default()
                },
                Err(error) => {
                    let error = AdministrationError::of_reading(error);
                    return Err(VaultError::from(error).into());
                }
            };
            printer.print(&record)?;
        }
    }

    async fn verify(&self, args: &VerifyArgs, json: bool) -> Result<ExitCode, Error> {
        let wanted = match &args.receipt {
            Some(path) => Some(of_receipt(path)?),
            None => args.record,
        };
        let request = AuditVerifyRequest {
            sequence: wanted.map(|wanted| wanted.sequence),
            hash: wanted.map(|wanted| wanted.hash.to_string()),
        };
        let asked = self
            .server
            .call(Method::POST, "/v1/audit/verify", Some(&request));
        let report: AuditReport = match asked.await {
            Err(ClientError::NoServer { data, .. }) if is_data(&data) => {
                self.offline(&data)?.verify(wanted)?.into()
            }
            asked => asked?,
        };
        show(json, &report, summary)?;
        Ok(if report.sound {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(WRONG)
        })
    }
}

fn is_data(data: &Path) -> bool {
    data.join("keystore").exists()
}

/// Prints records, and counts what can't be read.
struct Printer {
    json: bool,
    problems: usize,
}

impl Printer {
    fn print(&mut self, record: &AuditRecord) -> Result<(), Error> {
        if let Some(what) = &record.unreadable {
            self.problems += 1;
            eprintln!("error: {what}; `coffer audit verify` says more");
            return Ok(());
        }
        let line = if self.json {
            serde_json::to_string(record).expect("records came as JSON")
        } else {
            for_people(record)
        };
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        written.map_err(|source| Error::System {
            doing: "writing the records",
            source,
        })
    }
}

/// Number, time, outcome, who, what, details.
fn for_people(record: &AuditRecord) -> String {
    let text = |field: &Option<String>| printable(field.as_deref().unwrap_or("-"));
    let mut line = format!(
        "{:>6}  {}  {:<6}  {:<20}  {:<18}",
        record.sequence.unwrap_or(0),
        moment(record.time.as_deref().unwrap_or("-")),
        text(&record.outcome),
        text(
            record
                .actor_name
                .as_ref()
                .map_or(&record.actor, |_| &record.actor_name)
        ),
        text(&record.act),
    );
    if record.actor_name.is_some() {
        line += &format!("  by={}", text(&record.actor));
    }
    if record.access_key_id.is_some() {
        line += &format!("  key={}", text(&record.access_key_id));
    }
    for (name, value) in &record.details {
        // Of a checkpoint, people need no more.
        let is_long = ["signature", "public_key", "hash"].contains(&name.as_str());
        if !is_long {
            line += &format!("  {}={}", printable(name), printable(value));
        }
    }
    line.trim_end().to_owned()
}

/// The exit code when something is wrong.
const WRONG: u8 = 1;

fn of_receipt(path: &Path) -> Result<Recorded, Error> {
    let wrong = |problem: String| Error::Option {
        option: "--receipt",
        problem: format!("{}: {problem}", path.display()),
    };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let receipt: Receipt = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("that is no receipt: {error}")))?;
    let record = receipt
        .last_audit_record
        .ok_or_else(|| wrong("it names no record of the audit log".to_owned()))?;
    Ok(Recorded {
        sequence: record.number,
        hash: Hash::from_hex(&record.hash)
            .ok_or_else(|| wrong("its audit record has no hash".to_owned()))?,
    })
}

fn summary(report: &AuditReport) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text += &format!("wrong: {}\n", printable(finding));
    }
    if report.more_findings > 0 {
        text += &format!("and {} more\n", report.more_findings);
    }
    if report.pruned_through > 0 {
        text += &format!(
            "records up to {} were pruned, as a signed record says\n",
            report.pruned_through
        );
    }
    for told in &report.rolled_back {
        text += &format!("rolled back: {}\n", printable(told));
    }
    let result = match (report.sound, report.rolled_back.is_empty()) {
        (true, true) => "all sound",
        (true, false) => "sound, but for what was rolled back",
        (false, _) => "NOT SOUND",
    };
    text += &format!(
        "checked {} records and {} checkpoints in {} segments, up to record {}: {result}\n",
        report.record_count, report.checkpoint_count, report.segment_count, report.last_sequence,
    );
    text
}

const EXAMPLES: &str = "\
An auditor's. Where no server runs on the data folder, its files are read.

Examples:
  coffer audit show --last 20
  coffer audit show --since 1000 --json
  coffer audit show --since 2026-11-20 --subject alice --act object --outcome denied
  coffer audit follow
  coffer audit verify
  coffer audit export > audit.ndjson
  coffer audit show --endpoint https://coffer.example.org:9001 --credentials auditor.ini";

const VERIFY_EXAMPLES: &str = "\
Ends with 0 when all is sound, also where records were rolled back by a start that accepted that,
which is told; 1 when something is wrong, 2 when it could not look. An older copy
of the whole log is sound in itself: keep a record's number and hash elsewhere, or a receipt.

Examples:
  coffer audit verify
  coffer audit verify --receipt receipt.json
  coffer audit verify --record 1234:HASH
  coffer audit verify --data /srv/coffer --json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_for_people_are_a_line() {
        let record = AuditRecord {
            sequence: Some(7),
            time: Some("2026-11-20T18:31:03.042Z".to_owned()),
            act: Some("level.create".to_owned()),
            actor: Some("local:0".to_owned()),
            outcome: Some("done".to_owned()),
            details: [("level".to_owned(), "a\nb".to_owned())].into(),
            ..AuditRecord::default()
        };
        assert_eq!(
            for_people(&record),
            "     7  2026-11-20 18:31:03  done    local:0               level.create        \
             level=a\\nb"
        );
    }
}
