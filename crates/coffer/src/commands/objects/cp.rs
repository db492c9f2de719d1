//! `coffer cp`.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use coffer_client::mover::{Location, Moved, MoverError};
use coffer_client::{has_secret, is_address};

use super::progress::Lines;
use super::put::one;
use super::{MovingArgs, Progress, ServiceArgs, Storing, Typed, Way, ended, until_interrupted};
use crate::error::Error;

/// `coffer cp`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CpArgs {
    /// What to copy: s3://BUCKET/NAME, or with -r s3://BUCKET/PREFIX/
    #[arg(value_name = "s3://BUCKET/NAME")]
    pub from: String,
    /// Where to, on the same server; a name that ends with / gets the object's name behind it
    #[arg(value_name = "s3://BUCKET/NAME")]
    pub to: String,
    /// Copy all objects whose names begin with PREFIX/
    #[arg(short, long)]
    pub recursive: bool,
    /// A version of the object, by its id
    #[arg(long, value_name = "ID", conflicts_with = "recursive")]
    pub version_id: Option<String>,
    /// Copies that are under way at once
    #[arg(long, value_name = "COUNT", default_value_t = 8,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// How the service is reached.
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// Has the server copy objects.
///
/// # Errors
/// When one is not copied, or they can't be listed.
pub async fn cp(typed: &Typed<'_>, args: &CpArgs) -> Result<ExitCode, Error> {
    for place in [&args.from, &args.to] {
        if !Location::is_meant(place) {
            // What has a secret in it is told without.
            if is_address(place) || has_secret(place) {
                place.parse::<Location>()?;
            }
            return Err(MoverError::Location {
                text: place.clone(),
                problem: "cp copies from s3://BUCKET/NAME to s3://BUCKET/NAME; `coffer put` and \
                          `coffer get` move files",
            }
            .into());
        }
    }
    let lines = if args.service.json {
        Lines::Out
    } else {
        Lines::None
    };
    let progress = Arc::new(Progress::new(lines));
    let (from, mut to): (Location, Location) = (args.from.parse()?, args.to.parse()?);
    let moving = MovingArgs {
        jobs: args.jobs,
        transfer: Way::Tls,
    };
    let mover = typed
        .mover(&args.service, &moving, Storing::default(), &progress)
        .await?;
    let working = Arc::clone(&mover);
    let left = "what was copied whole is there, the rest is not";
    if args.recursive {
        let (from, to) = (from.folder(), to.folder());
        let work = async move { working.copy_folder(&from, &to).await };
        let counts = until_interrupted(left, &mover, &progress, work).await?;
        return ended(&progress, counts);
    }
    let mut source = from.object()?;
    source.version_id.clone_from(&args.version_id);
    if to.key.is_empty() || to.key.ends_with('/') {
        to.key
            .push_str(source.key.rsplit('/').next().unwrap_or_default());
    }
    let target = to.object()?;
    let work = async move { working.copy(&source, &target).await };
    let moved: Moved = until_interrupted(left, &mover, &progress, work).await?;
    ended(&progress, one(&moved))
}

const EXAMPLES: &str = "\
No bytes come here: the server copies, with metadata and tags, above 5 GiB in parts. With -r neither
place may hold the other: copies would be copied again, or replace what is not copied yet. Nothing
is noted: an object is copied whole or not at all, and after a break the same command begins anew.

Examples:
  coffer cp s3://evidence/a.mkv s3://archive/2026/ --endpoint https://127.0.0.1:9000
  coffer cp -r s3://evidence/2026/ s3://archive/2026/ --endpoint https://127.0.0.1:9000";
