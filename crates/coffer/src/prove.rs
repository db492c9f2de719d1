//! `coffer prove`: shows from outside that nothing in a data folder is readable.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use coffer_admin::{Report, VerifyRequest};
use coffer_client::s3::{Client, ClientOptions};
use coffer_client::signing::S3;
use coffer_client::{AdminClient, ClientError, Credentials, HttpsServer, Lines, Settings};
use coffer_keys::{KeyFolder, SourceSecrets, SourceSpec};
use coffer_vault::VaultError;
use coffer_vault::offline::Offline;
use http::Method;
use indicatif::{ProgressBar, ProgressStyle};

use crate::config;
use crate::config::args::{NoRemoteArgs, RemoteArgs, ca_of_environment};
use crate::config::data_args::DataArgs;
use crate::error::Error;
use crate::secrets::passphrase::{PassphraseArgs, Purpose};

pub mod kind;

pub mod statistic;

pub mod sealed;

pub mod report;

pub mod walk;

pub mod needles;

pub mod canary;

use self::report::{Commitments, Proof};
use self::walk::Walk;

/// `coffer prove`.
#[derive(Debug, Args)]
#[command(after_help = PROVE_EXAMPLES)]
pub struct ProveArgs {
    /// It asks the server on this machine.
    #[command(flatten)]
    pub remote: NoRemoteArgs,
    /// S3 service of the running server, for the canary [default: where it says]
    #[arg(long, value_name = "URL")]
    pub s3: Option<String>,
    /// Plant no canary
    #[arg(long, conflicts_with = "s3")]
    pub no_canary: bool,
    /// What opens the root key of a stopped server, if a passphrase does.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    /// Report as JSON: one object
    #[arg(long)]
    pub json: bool,
}

/// The exit code when something was found.
const FOUND: u8 = 1;

/// The exit code when it could not look at something.
const NOT_LOOKED: u8 = 2;

/// Proves, and reports on standard output. Progress is drawn on standard error if that is a
/// terminal.
pub async fn prove(
    folder: &DataArgs,
    remote: &RemoteArgs,
    args: &ProveArgs,
) -> Result<ExitCode, Error> {
    let data = config::data(folder)?;
    if let Some(endpoint) = &args.s3
        && HttpsServer::parse(endpoint).is_err()
    {
        return Err(Error::Option {
            option: "--s3",
            problem: "write an address such as https://127.0.0.1:9000".to_owned(),
        });
    }
    if !data.join("keystore").exists() {
        return Err(Error::NoKeystore { data });
    }
    let bar = bar(args.json);
    let mut proof = Proof::default();
    let server = AdminClient::Local { data: data.clone() };
    let (is_running, told) = match server.text("/health/ready").await {
        Ok(told) => (true, told),
        Err(
            ClientError::Answer { .. }
            | ClientError::BrokenOff { .. }
            | ClientError::Refused { .. },
        ) => (true, String::new()),
        Err(error @ ClientError::NotOwner { .. }) => return Err(error.into()),
        Err(_) => (false, String::new()),
    };

    bar.set_message("looking at files");
    look(&data, is_running, &bar, &mut proof)?;
    bar.set_message("comparing commitments");
    if is_running {
        ask_commitments(&server, &bar, &mut proof).await?;
    } else {
        let secrets = SourceSecrets {
            passphrase: match args.passphrase.passphrase_fd {
                Some(_) => Some(args.passphrase.passphrase(Purpose::Open)?),
                None => None,
            },
            pin: None,
        };
        let is_asked_for = secrets.passphrase.is_some();
        compare_commitments(&data, &secrets, is_asked_for, &bar, &mut proof).await;
    }
    if args.no_canary {
        proof.leave_out("whether a canary is found: --no-canary");
    } else if !is_running {
        proof.leave_out("whether a canary is found: no server runs, so none could be stored");
    } else {
        bar.set_message("planting a canary");
        let endpoint = match (&args.s3, s3_of(&told)) {
            (Some(endpoint), _) => endpoint.clone(),
            (None, Some(endpoint)) => endpoint.to_owned(),
            (None, None) => format!("https://{}", config::local_service(folder)?),
        };
        if let Err(problem) = plant(&data, remote, &endpoint, &mut proof).await {
            proof.fail(format!("whether a canary is found: {endpoint}: {problem}"));
        }
    }
    bar.finish_and_clear();
    tell(&mut proof, args.json)
}

/// Where a running server says that it serves S3.
pub(crate) fn s3_of(health: &str) -> Option<&str> {
    health.lines().find_map(|line| line.strip_prefix("S3 "))
}

fn tell(proof: &mut Proof, json: bool) -> Result<ExitCode, Error> {
    proof.proven = proof.finding_count == 0;
    let mut out = io::stdout().lock();
    let written = if json {
        proof.write_json(&mut out)
    } else {
        proof.write_text(&mut out)
    };
    written.map_err(|source| Error::System {
        doing: "writing the report",
        source,
    })?;
    Ok(match (proof.proven, proof.failed) {
        (true, false) => ExitCode::SUCCESS,
        (true, true) => ExitCode::from(NOT_LOOKED),
        (false, _) => ExitCode::from(FOUND),
    })
}

fn bar(is_hidden: bool) -> ProgressBar {
    // Draws on standard error, and only if that is a terminal.
    let bar = if is_hidden {
        ProgressBar::hidden()
    } else {
        ProgressBar::new_spinner()
    };
    let template = "{spinner} {msg}: {pos} in {elapsed}";
    bar.set_style(ProgressStyle::with_template(template).expect("a template that parses"));
    bar
}

fn look(data: &Path, is_running: bool, bar: &ProgressBar, proof: &mut Proof) -> Result<(), Error> {
    let source = match KeyFolder::new(data).record() {
        Ok(record) => {
            // During a move, a readable root key is where it may be.
            let moves_to_file = record.next() == Some(&SourceSpec::File(None));
            (!moves_to_file).then(|| record.current().clone())
        }
        Err(error) => {
            proof.find(Path::new("keystore.source"), error.to_string());
            None
        }
    };
    tokio::task::block_in_place(|| {
        Walk {
            data,
            is_running,
            source: source.as_ref(),
            told: &|count| bar.set_position(count),
        }
        .run(proof)
    })
}

/// Has the running server compare every blob's commitment.
async fn ask_commitments(
    server: &AdminClient,
    bar: &ProgressBar,
    proof: &mut Proof,
) -> Result<(), Error> {
    let request = VerifyRequest {
        rate: None,
        commitments_only: true,
    };
    let body = match server
        .open(Method::POST, "/v1/verify", Some(&request))
        .await
    {
        Ok(body) => body,
        Err(error @ ClientError::Refused { .. }) => {
            proof.fail(format!("commitments: {error}"));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let mut lines = Lines::new(server, body);
    while let Some((report, _)) = lines.next().await? {
        match report {
            Report::Progress { checked_count, .. } => bar.set_position(checked_count),
            // Names of objects stay where they are.
            Report::Damage { bucket, what, .. } => {
                let place = bucket.map(|bucket| format!("bucket {bucket}: "));
                let place = place.unwrap_or_default();
                proof.find(Path::new(""), format!("{place}{what}"));
            }
            // Nothing of it is there.
            Report::LeftOut { .. } => {}
            Report::Rollback { what } => {
                proof.find(Path::new(""), format!("ROLLBACK: {what}"));
            }
            Report::Done { checked_count, .. } => {
                proof.commitments = Some(Commitments {
                    by: "the running server",
                    checked_count,
                });
                return Ok(());
            }
        }
    }
    Err(server.ended_early().into())
}

/// Compares them here, if the root key can be had without asking for anything.
async fn compare_commitments(
    data: &Path,
    secrets: &SourceSecrets,
    is_asked_for: bool,
    bar: &ProgressBar,
    proof: &mut Proof,
) {
    let offline = match Offline::open(data, None, secrets) {
        Ok(offline) => offline,
        Err(VaultError::FolderInUse { .. }) => {
            proof.fail("commitments: a server holds the folder, but its socket does not answer");
            return;
        }
        Err(error) => {
            let what = format!("commitments: the keystore was not opened: {error}");
            if is_asked_for {
                proof.fail(what)
            } else {
                proof.leave_out(what)
            }
            return;
        }
    };
    for rollback in offline.rollbacks().await {
        let file = rollback.file();
        proof.find(Path::new(&file), format!("ROLLBACK: {rollback}"));
    }
    let checked = offline
        .check_commitments(|count| bar.set_position(count))
        .await;
    for wrong in &checked.wrong {
        proof.find(&wrong.file, wrong.what.clone());
    }
    proof.finding_count += checked.wrong_count - checked.wrong.len() as u64;
    proof.commitments = Some(Commitments {
        by: "this command, with the root key",
        checked_count: checked.blob_count,
    });
}

async fn plant(
    data: &Path,
    remote: &RemoteArgs,
    endpoint: &str,
    proof: &mut Proof,
) -> Result<(), String> {
    let typed = remote.credentials.clone();
    let made = Some(data.join("credentials")).filter(|made| made.exists());
    let credentials = Credentials::find(typed.or(made).as_deref())
        .map_err(|_| "an access key is needed: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")?;
    let own = data.join("tls/ca.pem");
    let ca: Option<PathBuf> = { remote.ca.clone() }
        .or_else(|| own.exists().then_some(own))
        .or_else(ca_of_environment);
    let settings = Settings {
        endpoint: endpoint.to_owned(),
        credentials,
        region: S3.region.to_owned(),
        ca,
    };
    let s3 = Client::new(settings, ClientOptions::default());
    let s3 = s3.map_err(|error| error.to_string())?;
    canary::canary(&s3, endpoint, data, proof).await
}

const PROVE_EXAMPLES: &str = "\
Looks at a data folder from outside, without any key: every file is of a known kind and private,
blobs have the length of sealed messages, blobs, databases, their logs, the keystore and the audit
log look like ciphertext. A running server is asked to compare the blobs' commitments to their keys;
of a stopped one that is done here, if its root key can be read. Through a running server's S3 a
canary is stored, with DATA/credentials or the access key in AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY; it is searched for in every file that was written since, and deleted.

What was not checked is told. Ends with 0 when nothing was found, 1 when something was, and 2 when
nothing was, but it could not look at all that it should (the S3 service, the commitments of a
running server or by the passphrase that was given), or not begin: no data folder, not its owner.

Examples:
  coffer prove
  coffer prove --data /srv/coffer --s3 https://coffer.example.org:9000
  coffer prove --data /srv/coffer --passphrase-fd 3 3< passphrase
  coffer prove --data /srv/coffer --json | jq .proven";
