//! `coffer rm`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use coffer_client::mover::{Counts, Event, Location, Mover, Watch};
use coffer_client::s3::ObjectName;
use serde_json::{Value, json};

use super::progress::Lines;
use super::{MovingArgs, Progress, ServiceArgs, Storing, Typed, Way, ended, until_interrupted};
use crate::error::Error;
use crate::output::asking::ask_for;
use crate::output::printable::{printable, size};
use crate::output::streams::check_output;
use crate::output::table::unless_read_enough;

/// `coffer rm`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RmArgs {
    /// What to delete: s3://BUCKET/NAME, or with -r s3://BUCKET/PREFIX
    #[arg(value_name = "s3://BUCKET/NAME")]
    pub place: String,
    /// Delete all objects whose names begin with PREFIX
    #[arg(short, long)]
    pub recursive: bool,
    /// With -r, delete all their versions and delete markers, for good
    #[arg(long, requires = "recursive")]
    pub versions: bool,
    /// A version or delete marker, by its id: coffer ls --versions tells them
    #[arg(long, value_name = "ID", conflicts_with = "recursive")]
    pub version_id: Option<String>,
    /// Tell what would be deleted, and delete nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// How the service is reached.
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// Deletes objects.
///
/// # Errors
/// When one can't be deleted, or they can't be listed.
pub async fn rm(typed: &Typed<'_>, args: &RmArgs) -> Result<ExitCode, Error> {
    let lines = if args.service.json {
        Lines::Out
    } else {
        Lines::None
    };
    let progress = Arc::new(Progress::new(lines));
    let moving = MovingArgs {
        jobs: 1,
        transfer: Way::Tls,
    };
    let place: Location = args.place.parse()?;
    let mover = typed
        .mover(&args.service, &moving, Storing::default(), &progress)
        .await?;
    if args.dry_run {
        return plan(args, &mover, &place, &progress).await;
    }
    let working = Arc::clone(&mover);
    let told = Arc::clone(&progress);
    let left = "what was deleted is gone, the rest is there";
    if args.recursive {
        if !args.yes {
            confirm(&place, args.versions)?;
        }
        let with_versions = args.versions;
        let work = async move {
            let removed = |name: &ObjectName| told.line("deleted", said(name));
            if with_versions {
                working.remove_versions(&place, removed).await
            } else {
                working.remove_folder(&place, removed).await
            }
        };
        let counts = until_interrupted(left, &mover, &progress, work).await?;
        return ended(&progress, counts);
    }
    let mut name = place.object()?;
    name.version_id.clone_from(&args.version_id);
    let work = async move {
        working.remove(&name).await?;
        let what = format!("s3://{}/{}", name.bucket, name.key);
        told.line("deleted", json!({ "what": what }));
        Ok(Counts {
            done: 1,
            ..Counts::default()
        })
    };
    let counts = until_interrupted(left, &mover, &progress, work).await?;
    ended(&progress, counts)
}

/// A name, for programs.
fn said(name: &ObjectName) -> Value {
    let mut said = json!({ "what": format!("s3://{}/{}", name.bucket, name.key) });
    if let Some(version_id) = &name.version_id {
        said["version_id"] = version_id.as_str().into();
    }
    said
}

/// Tells what would be deleted.
async fn plan(
    args: &RmArgs,
    mover: &Mover,
    place: &Location,
    progress: &Progress,
) -> Result<ExitCode, Error> {
    check_output(io::stdout())?;
    let mut out = io::BufWriter::new(io::stdout());
    let mut written = Ok(());
    let mut told = |name: &ObjectName| {
        let line = if args.service.json {
            let mut said = said(name);
            said["event"] = "would_delete".into();
            said.to_string()
        } else {
            let version = { name.version_id.as_ref() }.map(|id| format!(" (version {id})"));
            let (bucket, key) = (&name.bucket, &name.key);
            let what = format!("s3://{bucket}/{key}{}", version.unwrap_or_default());
            format!("would delete {}", printable(&what))
        };
        if written.is_ok() {
            written = writeln!(out, "{line}");
        }
    };
    let counts = if !args.recursive {
        let mut name = place.object()?;
        name.version_id.clone_from(&args.version_id);
        mover.would_remove(&name).await?;
        told(&name);
        None
    } else if args.versions {
        Some(mover.would_remove_versions(place, told).await?)
    } else {
        Some(mover.would_remove_folder(place, told).await?)
    };
    let written = written.and_then(|()| out.flush());
    unless_read_enough(written.map_err(|source| Error::System {
        doing: "writing the list",
        source,
    }))?;
    if let Some(Counts { done, bytes, .. }) = counts {
        progress.line("summary", json!({ "would_delete": done, "bytes": bytes }));
        if !args.service.json {
            let told = format!("{done} would be deleted, {}; nothing was", size(bytes));
            progress.event(&Event::Note(&told));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Has a person say that all of it is to go.
fn confirm(place: &Location, with_versions: bool) -> Result<(), Error> {
    let what = if with_versions {
        "All versions and delete markers of objects"
    } else {
        "All objects"
    };
    let name = printable(&place.to_string());
    let question =
        format!("{what} whose names begin with {name} will be deleted.\nType yes to delete them: ");
    ask_for("yes", &question, "deleted", "--yes")
}

const EXAMPLES: &str = "\
That there is no NAME, or no such version, is an error, and puts no delete marker: the server is
asked first, unless the access key may not read. -r takes PREFIX as it is written:
s3://evidence/2026 also means 2026-old. In buckets with versions, older ones stay, and a delete
marker is put before them: coffer ls --versions shows them, and --versions deletes them, too, for
good, but those that are locked. --dry-run asks nothing and names those as well.

Examples:
  coffer rm s3://evidence/recording.mkv --endpoint https://127.0.0.1:9000
  coffer rm s3://evidence/recording.mkv --version-id ID --endpoint https://127.0.0.1:9000
  coffer rm -r s3://evidence/2026/ --dry-run --endpoint https://127.0.0.1:9000
  coffer rm -r s3://evidence/2026/ --yes --endpoint https://127.0.0.1:9000
  coffer rm -r --versions s3://evidence/2026/ --endpoint https://127.0.0.1:9000";
