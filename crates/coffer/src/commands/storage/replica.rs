//! `coffer replica`: sealed copies on other stores.

mod sheets;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use coffer_admin::{ApprovalOutcome, Replica, ReplicaReport, ReplicaRequest};
use coffer_client::{AdminClient, ClientError, Lines, segment};
use http::Method;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use self::sheets::{many, one, sheets};
use crate::commands::approval_outcome::waits;
use crate::error::Error;
use crate::output::printable::{size, span};
use crate::output::table::{AnswerArgs, done, moment, print, show};

/// `coffer replica`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct ReplicaArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: ReplicaCommand,
}

/// What can be done with copies.
#[derive(Debug, Subcommand)]
pub enum ReplicaCommand {
    /// Begin a copy, which the server keeps up from then on
    #[command(after_help = EXAMPLES)]
    Add {
        /// Name of the copy
        name: String,
        /// file:///FOLDER, s3://BUCKET/PREFIX, az://CONTAINER/PREFIX or gs://BUCKET/PREFIX
        ///
        /// Parameters: endpoint=URL, ca=FILE and credentials=FILE; account=NAME of az; region=NAME
        /// of s3.
        ///
        /// Of s3 also checksum=sha256 or crc64nvme: one is sent with all that is put.
        url: String,
        /// How long what was can be restored, such as 30d, 12h or 0s for the newest only
        #[arg(long, value_name = "TIME", default_value = "7d", value_parser = keep)]
        keep: Duration,
        /// Acknowledge nothing before it is in this copy
        #[arg(long)]
        sync: bool,
        /// How long a write waits for that before it is in doubt [default: 10s]
        #[arg(long, value_name = "TIME", value_parser = keep, requires = "sync")]
        sync_wait: Option<Duration>,
        /// Have the keystore go along, which is an export of every level
        #[arg(long)]
        with_keystore: bool,
        /// Seal that keystore for this recipient of age; may be given more than once
        ///
        /// For none, the root key opens it, which is not in the copy.
        #[arg(
            long = "recipient",
            value_name = "RECIPIENT",
            requires = "with_keystore"
        )]
        recipients: Vec<String>,
    },
    /// List copies
    #[command(after_help = EXAMPLES)]
    List,
    /// Show how a copy stands, and the head for `coffer restore --head`; 1 if anything is wrong
    #[command(after_help = EXAMPLES)]
    Status {
        /// Copy; without one, all
        name: Option<String>,
    },
    /// Read a copy back and check its chain, every page and every chunk; 1 if anything is wrong
    #[command(after_help = EXAMPLES)]
    Verify {
        /// Copy
        name: String,
    },
    /// Keep a copy up no more; what is there stays
    #[command(after_help = EXAMPLES)]
    Remove {
        /// Copy
        name: String,
    },
}

/// Asks, and shows the answer.
pub async fn replica(server: &AdminClient, args: &ReplicaArgs) -> Result<ExitCode, Error> {
    let json = args.answer.json;
    match &args.command {
        ReplicaCommand::Add {
            name,
            url,
            keep,
            sync,
            sync_wait,
            with_keystore,
            recipients,
        } => {
            let request = ReplicaRequest {
                name: name.clone(),
                url: url.clone(),
                keep_seconds: Some(keep.as_secs()),
                sync: *sync,
                sync_wait_seconds: sync_wait.map(|wait| wait.as_secs()),
                with_keystore: *with_keystore,
                recipients: recipients.clone(),
            };
            if *with_keystore {
                let path = "/v1/replicas";
                let outcome: ApprovalOutcome =
                    server.call(Method::POST, path, Some(&request)).await?;
                if let Some(waiting) = outcome.request {
                    return waits(&waiting, json);
                }
            } else {
                // There is nothing in the answer.
                let _empty = server
                    .open(Method::POST, "/v1/replicas", Some(&request))
                    .await?;
            }
            let told = format!(
                "copy {name} was begun: `coffer replica status {name}` tells how far it is"
            );
            done(json, &json!({ "name": name, "url": url }), &told)
        }
        ReplicaCommand::List => show(json, &all(server).await?, |replicas| many(replicas)),
        ReplicaCommand::Status { name: Some(name) } => {
            let all = all(server).await?;
            let found = all.into_iter().find(|replica| replica.name == *name);
            let Some(replica) = found else {
                let (told, shown) = (format!(" {name:?}"), "`coffer replica list` shows them");
                return Err(no_such_copy(server, &told, shown).await);
            };
            show(json, &replica, one)?;
            return Ok(exit_code([&replica]));
        }
        ReplicaCommand::Status { name: None } => {
            let all = all(server).await?;
            if all.is_empty() {
                let advice = "`coffer replica add` begins one";
                return Err(no_such_copy(server, "", advice).await);
            }
            show(json, &all, |all| sheets(all))?;
            return Ok(exit_code(&all));
        }
        ReplicaCommand::Verify { name } => return verify(server, name, json).await,
        ReplicaCommand::Remove { name } => {
            server
                .delete(&format!("/v1/replicas/{}", segment(name)))
                .await?;
            let told = format!("copy {name} is kept up no more; what is in its store stays there");
            done(json, &json!({ "name": name, "removed": true }), &told)
        }
    }?;
    Ok(ExitCode::SUCCESS)
}

fn keep(text: &str) -> Result<Duration, String> {
    span(text).ok_or_else(|| "write a number with s, m, h, d or w behind it: 30d".to_owned())
}

/// 1 where one of these copies does not follow, or lacks something.
fn exit_code<'a>(replicas: impl IntoIterator<Item = &'a Replica>) -> ExitCode {
    let follows = |replica: &Replica| replica.state == "following" && replica.problem.is_none();
    ExitCode::from(u8::from(!replicas.into_iter().all(follows)))
}

/// Why there is none to be told of. A gateway that follows keeps up none, and says how it stands.
async fn no_such_copy(server: &AdminClient, name: &str, otherwise: &str) -> Error {
    let health = server.text("/health/ready").await.unwrap_or_default();
    let line = |start: &str| health.lines().find(|line| line.starts_with(start));
    let (code, message) = match line("this gateway follows, ") {
        Some(follows) => {
            let serves = line("the gateway at ").map(|it| format!("{it}, and is to be asked"));
            let ended = line("not ready: this engine has ended").map(str::to_owned);
            let unknown = || "which gateway serves is not known now: try again".to_owned();
            let serves = serves.or(ended).unwrap_or_else(unknown);
            ("follows", format!("{follows}, and writes none: {serves}"))
        }
        None => {
            let message = format!("there is no copy{name}: {otherwise}");
            ("no_such_replica", message)
        }
    };
    ClientError::Refused {
        code: code.to_owned(),
        message,
    }
    .into()
}

async fn all(server: &AdminClient) -> Result<Vec<Replica>, Error> {
    Ok(server.get("/v1/replicas").await?)
}

/// Progress is drawn on standard error if that is a terminal.
async fn verify(server: &AdminClient, name: &str, json: bool) -> Result<ExitCode, Error> {
    let path = format!("/v1/replicas/{}/verify", segment(name));
    let body = server.open(Method::POST, &path, None::<&Value>).await?;
    let bar = if json {
        ProgressBar::hidden()
    } else {
        ProgressBar::new_spinner()
    };
    let template = "{spinner} {human_pos} blobs, {msg}";
    bar.set_style(ProgressStyle::with_template(template).expect("a template that parses"));
    let mut lines = Lines::new(server, body);
    while let Some((report, line)) = lines.next::<ReplicaReport>().await? {
        if json {
            tell(&String::from_utf8_lossy(&line))?;
        }
        match report {
            ReplicaReport::Progress {
                blob_count,
                blob_bytes,
            } => {
                bar.set_position(blob_count);
                bar.set_message(format!("{} opened", size(blob_bytes)));
            }
            ReplicaReport::Damage { what } | ReplicaReport::Note { what } => {
                if !json {
                    bar.suspend(|| tell(&what))?;
                }
            }
            ReplicaReport::Failed { message } => {
                bar.finish_and_clear();
                let code = "replica_unreadable".to_owned();
                return Err(ClientError::Refused { code, message }.into());
            }
            ReplicaReport::Done {
                as_of,
                bucket_count,
                page_count,
                blob_count,
                blob_bytes,
                damage_count,
                behind_count,
                ..
            } => {
                bar.finish_and_clear();
                if !json {
                    let (as_of, bytes) = (moment(&as_of), size(blob_bytes));
                    let behind = match behind_count {
                        0 => String::new(),
                        count => format!(", {count} not opened"),
                    };
                    tell(&format!(
                        "{name}, as of {as_of}: {bucket_count} buckets, {page_count} pages, \
                         {blob_count} blobs ({bytes}), {damage_count} damaged{behind}"
                    ))?;
                }
                let is_whole = damage_count == 0 && behind_count == 0;
                return Ok(ExitCode::from(u8::from(!is_whole)));
            }
        }
    }
    Err(server.ended_early().into())
}

fn tell(line: &str) -> Result<(), Error> {
    print(&format!("{line}\n")).map_err(|source| Error::System {
        doing: "writing the report",
        source,
    })
}

const EXAMPLES: &str = "\
What is deleted or replaced can be restored for as long as --keep says, to any second (`coffer
restore --at`); `status` names times of which the copy has no state. What `verify` finds missing or
damaged the server puts again at once, from its own data. `status` ends with 1 where a copy is
`failing` or `stopped`, or has a `problem`, such as a bucket that it lacks.

A copy holds no keys: keep `keystore` and what opens it elsewhere, and copy `keystore` again after
each new level and bucket. With --with-keystore the keystore goes along, and is kept up: sealed for
the recipients of age that are named, or else under the root key, which is not in the copy. That
is an export of every level: it takes a key custodian who is a system administrator, and as many
custodians as any level wants (exit status 3: they have to approve it first), is counted on
receipts, and refused where a level forbids exports. Levels that are made later go along if no more
custodians have to approve their export than approved the copy. An erase waits ten seconds for such
copies to take the keystore without the keys; after that its receipt calls them pending, and says
when it was done.

With --sync a write is answered only when it is in the copy, so the loss of this machine takes
nothing that was acknowledged. Writes that wait share what is put. One that the copy does not take
in time is answered as in doubt (503): it is stored here, and goes there when the copy is reached
again. Reads don't wait. `status` says `catching up` until the copy was whole once; writes wait from
then on. Where another server writes the copy by now, writes are refused until it is removed.

Credentials come from a file as the tools of that cloud have it, or from the environment of the
server: for s3:// those of the AWS tools, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; for az://
`key = …` or `sas_token = …`, or AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN; for gs:// the JSON
file of a service account's key, which GOOGLE_APPLICATION_CREDENTIALS may name.

Examples:
  coffer replica add disk file:///mnt/disk/copies/coffer --keep 30d
  coffer replica add far 's3://copies/coffer?endpoint=https://s3.example&credentials=/etc/far'
  coffer replica add safe 's3://copies/coffer?endpoint=https://s3.example' --sync --sync-wait 5s
  coffer replica add cloud 'az://copies/coffer?account=acme&credentials=/etc/coffer/azure'
  coffer replica add vault file:///mnt/other/coffer --with-keystore --recipient age1…
  coffer replica status disk --json
  coffer replica verify disk
  coffer restore --from file:///mnt/disk/copies/coffer --data /srv/restored
  coffer restore --from file:///mnt/disk/copies/coffer --data /srv/monday --at '2026-11-23 08:00'";
