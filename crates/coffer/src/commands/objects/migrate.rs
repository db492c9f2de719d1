//! `coffer migrate`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use clap::builder::PossibleValuesParser;
use coffer_client::migrate::{
    Migration, MigrationOptions, Mode, Origin, SETTINGS, SourceUrl, Summary, Target,
};
use coffer_client::mover::{Counts, Location, MoverError};
use coffer_client::s3::{Client, ClientOptions};
use coffer_client::{Credentials, Settings, Wanted, has_port};
use tokio::signal::unix::{SignalKind, signal};

use super::progress::Lines;
use super::{Progress, ServiceArgs, Typed, check_option, state_folder};
use crate::error::Error;
use crate::output::printable::{printable, size};
use crate::output::table::{Flush, table};

/// `coffer migrate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MigrateArgs {
    /// What moves in: https://HOST:PORT, https://HOST:PORT/BUCKET or a folder
    ///
    /// The first means all buckets of an S3 server, the second one of them.
    ///
    /// Of a folder, each folder in it becomes a bucket.
    #[arg(value_name = "SOURCE")]
    pub source: String,
    /// Where it goes, if not to buckets of the same names: s3://BUCKET or s3://BUCKET/PREFIX/
    ///
    /// It takes one bucket, or the folder as a whole.
    #[arg(value_name = "s3://BUCKET")]
    pub target: Option<String>,
    /// Compare source and target, and move nothing
    #[arg(long, visible_alias = "verify",
          conflicts_with_all = ["dry_run", "delete", "delete_all", "overwrite"])]
    pub check: bool,
    /// Tell what would be moved, and move nothing
    ///
    /// What has something of its length at the target counts as such: only a run compares it.
    #[arg(long)]
    pub dry_run: bool,
    /// Delete at the target what came from the source and is gone there since
    #[arg(long)]
    pub delete: bool,
    /// The same, also where a bucket or folder of the source is there and has no objects any more
    #[arg(long)]
    pub delete_all: bool,
    /// Replace what others stored at the target under the same names, and what they set there
    #[arg(long)]
    pub overwrite: bool,
    /// Ask both sides for tags, retention and legal holds of what has arrived, too, and bring what
    /// changed
    ///
    /// Tags that others set at the target stay, unless --overwrite is given; their holds stay.
    #[arg(long, conflicts_with_all = ["check", "dry_run"])]
    pub tags_and_locks: bool,
    /// Bring what symbolic links of a folder point to
    #[arg(long)]
    pub follow_links: bool,
    /// Only this bucket of the source; may be repeated
    #[arg(long, value_name = "NAME")]
    pub bucket: Vec<String>,
    /// Level of the target in which buckets are made
    #[arg(long, value_name = "NAME")]
    pub level: Option<String>,
    /// What to leave behind: a setting of buckets, or symbolic links; may be repeated
    ///
    /// One of cors, tags, encryption, policy, ownership, public-access-block, lock, lifecycle,
    ///
    /// acl, website, notification, replication, logging, links.
    #[arg(long, value_name = "SETTING", value_delimiter = ',', hide_possible_values = true,
          value_parser = PossibleValuesParser::new(SETTINGS))]
    pub without: Vec<String>,
    /// Write a line of JSON about each version to this file: what became of it, and its proof
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Profile of AWS's files with the source's access key
    #[arg(long, value_name = "NAME")]
    pub source_profile: Option<String>,
    /// File with the source's access key
    #[arg(long, value_name = "FILE")]
    pub source_credentials: Option<PathBuf>,
    /// Certificate authority of the source (PEM), which is trusted alone then
    ///
    /// Without it: that of --source-profile, else those of this system.
    ///
    /// AWS_CA_BUNDLE and --ca are for the target.
    #[arg(long, value_name = "FILE")]
    pub source_ca: Option<PathBuf>,
    /// Objects, and pieces of large ones, that are under way at once
    #[arg(long, value_name = "COUNT", default_value_t = 16,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// How the target is reached.
    #[command(flatten)]
    pub service: ServiceArgs,
}

const KEY_VARIABLE: &str = "COFFER_SOURCE_ACCESS_KEY_ID";
const SECRET_VARIABLE: &str = "COFFER_SOURCE_SECRET_ACCESS_KEY";
const TOKEN_VARIABLE: &str = "COFFER_SOURCE_SESSION_TOKEN";

impl MigrateArgs {
    fn mode(&self) -> Mode {
        match (self.check, self.dry_run) {
            (true, _) => Mode::Check,
            (_, true) => Mode::Plan,
            _ => Mode::Move,
        }
    }

    fn options(&self) -> Result<MigrationOptions, Error> {
        let target = match &self.target {
            None => None,
            Some(text) => {
                let place = text.parse::<Location>()?.folder();
                Some(Target {
                    bucket: place.bucket,
                    prefix: place.key,
                })
            }
        };
        let state = state_folder().ok_or_else(|| Error::Option {
            option: "SOURCE",
            problem: "set HOME or XDG_STATE_HOME: what has arrived is noted below it".to_owned(),
        })?;
        Ok(MigrationOptions {
            mode: self.mode(),
            delete: self.delete || self.delete_all,
            delete_all: self.delete_all,
            overwrite: self.overwrite,
            jobs: self.jobs.into(),
            state,
            buckets: self.bucket.clone(),
            target,
            level: self.level.clone(),
            without: self.without.clone(),
            tags_and_locks: self.tags_and_locks,
            follow_links: self.follow_links,
            report: self.report.clone(),
        })
    }

    /// Where the source is, and the key to it.
    fn origin(&self, progress: &Arc<Progress>) -> Result<Origin, Error> {
        let (endpoint, bucket) = match self.source.parse()? {
            SourceUrl::Folder(folder) if !folder.exists() && has_port(&self.source) => {
                return Err(Error::Option {
                    option: "SOURCE",
                    problem: format!(
                        "write https:// or http:// before {}: there is no folder of this name",
                        self.source
                    ),
                });
            }
            SourceUrl::Folder(folder) => {
                let folder = std::path::absolute(&folder).unwrap_or(folder);
                return Ok(match self.target {
                    Some(_) => Origin::Folder(folder),
                    None => Origin::Folders(folder),
                });
            }
            SourceUrl::Service { endpoint, bucket } => (endpoint, bucket),
        };
        if self.target.is_some() && bucket.is_none() {
            return Err(Error::Option {
                option: "s3://BUCKET",
                problem: format!("name the one bucket that goes there: {endpoint}/BUCKET"),
            });
        }
        let settings = self.settings(&endpoint)?;
        let client = Client::new(settings, retrying(self.service.retries, progress))?;
        Ok(Origin::Service {
            client: Arc::new(client),
            bucket,
        })
    }

    /// The source's access key is never the target's: the environment has it by names of its own.
    fn settings(&self, endpoint: &str) -> Result<Settings, Error> {
        let ways = format!(
            "name a profile of AWS's files that has one by --source-profile, a file by \
             --source-credentials, or set {KEY_VARIABLE} and {SECRET_VARIABLE}"
        );
        if self.source_profile.is_some() || self.source_credentials.is_some() {
            return Ok(Settings::find(&Wanted {
                endpoint: Some(endpoint),
                credentials: self.source_credentials.as_deref(),
                profile: self.source_profile.as_deref(),
                ca: self.source_ca.as_deref(),
                is_source: true,
                key_advice: Some(&ways),
                ..Wanted::default()
            })?);
        }
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let (Some(id), Some(secret)) = (variable(KEY_VARIABLE), variable(SECRET_VARIABLE)) else {
            return Err(Error::Option {
                option: "--source-profile",
                problem: format!("say which access key opens the source: {ways}"),
            });
        };
        Ok(Settings {
            endpoint: endpoint.to_owned(),
            credentials: Credentials {
                access_key_id: id,
                secret_access_key: secret.into(),
                session_token: variable(TOKEN_VARIABLE).map(Into::into),
            },
            region: variable("AWS_REGION")
                .or_else(|| variable("AWS_DEFAULT_REGION"))
                .unwrap_or_else(|| "us-east-1".to_owned()),
            ca: self.source_ca.clone(),
        })
    }
}

fn retrying(retries: u32, progress: &Arc<Progress>) -> ClientOptions {
    let told = Arc::clone(progress);
    ClientOptions {
        retries,
        retrying: Some(Arc::new(move |error, wait| {
            told.retrying(&error.to_string(), wait);
        })),
        authority_by: "--source-ca",
        is_source: true,
    }
}

/// Moves buckets in.
///
/// # Errors
/// When source or target can't be reached; all else stands in the report.
pub async fn migrate(typed: &Typed<'_>, args: &MigrateArgs) -> Result<ExitCode, Error> {
    let lines = if args.service.json {
        Lines::Out
    } else {
        Lines::None
    };
    if let Some(report) = &args.report {
        check_option("--report", report)?;
    }
    let progress = Arc::new(Progress::new(lines));
    let origin = args.origin(&progress)?;
    let target = typed.client(&args.service, &progress).await?;
    let options = args.options()?;
    let migration = Migration::new(origin, target, options, Arc::clone(&progress) as _)?;
    let summary = until_interrupted(&migration, &progress).await?;
    shown(args, &progress, &summary)?;
    Ok(ExitCode::from(u8::from(summary.missing > 0)))
}

async fn until_interrupted(
    migration: &Arc<Migration>,
    progress: &Progress,
) -> Result<Summary, Error> {
    let listening = |source| Error::System {
        doing: "listening to signals",
        source,
    };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(listening)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(listening)?;
    let running = Arc::clone(migration);
    let mut working = tokio::spawn(async move { running.run().await });
    tokio::select! {
        done = &mut working => {
            progress.clear();
            return Ok(done.unwrap_or_else(|_| Err(MoverError::Lost.into()))?);
        }
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    working.abort();
    progress.clear();
    migration.at_rest().await;
    Err(Error::Interrupted {
        left: "what has arrived stays and is noted: the same command goes on from there",
    })
}

/// Shows how it went: a row for each bucket, and what did not come.
fn shown(args: &MigrateArgs, progress: &Progress, summary: &Summary) -> Result<(), Error> {
    if args.service.json {
        for bucket in &summary.buckets {
            progress.line("bucket", serde_json::to_value(bucket).unwrap_or_default());
        }
        return progress.summary(&counts(summary));
    }
    let text = text(args.mode(), summary);
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|source| Error::Unwritten {
        remedy: String::new(),
        source,
    })
}

/// What is there now, and what is not.
fn counts(summary: &Summary) -> Counts {
    let mut counts = Counts {
        failed: summary.missing,
        ..Counts::default()
    };
    for bucket in &summary.buckets {
        counts.done += bucket.moved + bucket.there;
        counts.bytes += bucket.moved_bytes;
    }
    counts
}

fn text(mode: Mode, summary: &Summary) -> String {
    let (moved, deletes) = match mode {
        Mode::Plan => ("would move", "would be deleted"),
        _ => ("moved now", "deleted"),
    };
    let columns = [
        ("bucket", Flush::Left),
        ("versions", Flush::Right),
        ("markers", Flush::Right),
        ("bytes", Flush::Right),
        (moved, Flush::Right),
        ("there before", Flush::Right),
        ("proven", Flush::Right),
        ("gone at source", Flush::Right),
        ("missing", Flush::Right),
    ];
    let rows: Vec<Vec<String>> = { summary.buckets.iter() }
        .map(|bucket| {
            let gone = match bucket.deleted {
                0 => bucket.gone.to_string(),
                deleted => format!("{} ({deleted} {deletes})", bucket.gone),
            };
            vec![
                printable(&bucket.to),
                bucket.versions.to_string(),
                bucket.markers.to_string(),
                size(bucket.bytes),
                bucket.moved.to_string(),
                bucket.there.to_string(),
                format!("{}, {}", bucket.proven, size(bucket.proven_bytes)),
                gone,
                bucket.missing.to_string(),
            ]
        })
        .collect();
    let mut text = table(&columns, rows);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let uncompared: u64 = summary.buckets.iter().map(|it| it.uncompared).sum();
    if uncompared > 0 {
        text.push_str(&format!(
            "\nOf what would move, {uncompared} have something of their length at the target:\n\
             a run compares them, moves nothing that is the same, and replaces what others\n\
             stored only with --overwrite.\n"
        ));
    }
    match mode {
        _ if summary.missing > 0 => text.push_str(&missing(mode, summary)),
        Mode::Move => text.push_str("\nAll of it arrived.\n"),
        Mode::Plan => text.push_str("\nNothing was moved.\n"),
        Mode::Check => text.push_str("\nAll of it is there, and the same.\n"),
    }
    text
}

/// How much did not come, or is not the same. What, was told when that was met.
fn missing(mode: Mode, summary: &Summary) -> String {
    let what = match mode {
        Mode::Move => "did not come",
        Mode::Plan => "would not come",
        Mode::Check => "not the same, or not compared",
    };
    let count = summary.missing;
    format!("\n{count} {what}: standard error says what and why, --report FILE of each.\n")
}

const EXAMPLES: &str = "\
Versions come oldest first, with delete markers, metadata, tags, retention and legal holds; buckets
that are missing are made. Run it as often as you like: what has arrived does not go again. What
can't come is named, the rest goes on, and the exit status is 1. The source's key is that of
--source-profile or --source-credentials, or of the environment's COFFER_SOURCE_ACCESS_KEY_ID and
COFFER_SOURCE_SECRET_ACCESS_KEY; the target is reached as by `coffer put`.

Examples:
  coffer migrate https://minio.example.org:9000 --source-profile minio --dry-run
  coffer migrate https://minio.example.org:9000 --source-profile minio --report moved.jsonl
  coffer migrate https://minio.example.org:9000/films s3://old-films --source-profile minio
  coffer migrate https://minio.example.org:9000 --source-profile minio --delete --tags-and-locks
  coffer migrate https://minio.example.org:9000 --source-profile minio --check
  coffer migrate /srv/shares                          each folder in it becomes a bucket
  coffer migrate /srv/shares/films s3://films/2026/   all of it goes below one prefix";
