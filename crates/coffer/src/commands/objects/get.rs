//! `coffer get`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use coffer_client::mover::{Location, Moved, target_path};

use super::progress::Lines;
use super::put::one;
use super::{
    GOES_ON, MovingArgs, Progress, ServiceArgs, Storing, Typed, ended, unless_noted,
    until_interrupted,
};
use crate::error::Error;

/// `coffer get`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct GetArgs {
    /// What to fetch: s3://BUCKET/NAME, or with -r s3://BUCKET/PREFIX/
    #[arg(value_name = "s3://BUCKET/NAME")]
    pub from: String,
    /// File or folder that it goes to, or - for standard output
    #[arg(value_name = "FILE")]
    pub to: PathBuf,
    /// Fetch all objects whose names begin with PREFIX/, to files below a folder
    #[arg(short, long)]
    pub recursive: bool,
    /// A version of the object, by its id
    #[arg(long, value_name = "ID", conflicts_with = "recursive")]
    pub version_id: Option<String>,
    /// How files are moved.
    #[command(flatten)]
    pub moving: MovingArgs,
    /// How the service is reached.
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// Fetches objects.
///
/// # Errors
/// When one is not fetched, or they can't be listed.
pub async fn get(typed: &Typed<'_>, args: &GetArgs) -> Result<ExitCode, Error> {
    let is_stream = args.to.as_os_str() == "-";
    let lines = match (args.service.json, is_stream) {
        (false, _) => Lines::None,
        (true, false) => Lines::Out,
        (true, true) => Lines::Error,
    };
    if is_stream && args.recursive {
        return Err(Error::Option {
            option: "-r",
            problem: "many objects can't go to standard output: name a folder in place of -"
                .to_owned(),
        });
    }
    let progress = Arc::new(Progress::new(lines));
    let from: Location = args.from.parse()?;
    let mover = typed
        .mover(&args.service, &args.moving, Storing::default(), &progress)
        .await?;
    let (to, working) = (args.to.clone(), Arc::clone(&mover));
    if args.recursive {
        let from = from.folder();
        let work = async move { working.fetch_folder(&from, &to).await };
        let counts = until_interrupted(GOES_ON, &mover, &progress, work).await;
        let counts = counts.map_err(|error| unless_noted(error, &mover))?;
        if counts.failed == 0 {
            mover.forget_notes();
        }
        return ended(&progress, counts);
    }
    let mut name = from.object()?;
    name.version_id.clone_from(&args.version_id);
    let work = async move {
        if is_stream {
            working.fetch_stream(&name, &mut io::stdout()).await
        } else {
            working.get(&name, &target_path(&name.key, &to)?).await
        }
    };
    let left = if is_stream {
        "the object was not written whole"
    } else {
        GOES_ON
    };
    let moved: Moved = until_interrupted(left, &mover, &progress, work).await?;
    ended(&progress, one(&moved))
}

const EXAMPLES: &str = "\
A file has its name when all of it is there and has the object's checksum; until then it is
.NAME.coffer-part, and the same command goes on from that. Times of files that `coffer put` or
rclone stored are kept; modes and owners are not: new files are as your umask has them. Where a
server tells no checksum, a note says that only the length was compared, and with --json `checked`
tells what was. With -r, what fails is named, the rest goes on, and the exit status is 1; the
same command then passes over what it has fetched, unless object or file changed since.

Examples:
  coffer get s3://evidence/recording.mkv . --endpoint https://127.0.0.1:9000
  coffer get -r s3://evidence/recordings/ restored --endpoint https://127.0.0.1:9000
  coffer get s3://backups/home.tar - --endpoint https://127.0.0.1:9000 | tar x";
