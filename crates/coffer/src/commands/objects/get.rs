//! `coffer get`.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use coffer_client::mover::{Counts, Location, Moved, Mover, MoverError, target_path};

use super::progress::Lines;
use super::put::one;
use super::{
    GOES_ON, GOES_ON_IN_PART, MovingArgs, Progress, ServiceArgs, Storing, Typed, check_file, ended,
    location, parted, twice, unless_noted, until_interrupted,
};
use crate::error::Error;
use crate::output::streams::check_output;

/// `coffer get`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct GetArgs {
    /// What to fetch: s3://BUCKET/NAME, or with -r s3://BUCKET/PREFIX/; behind it, where to
    ///
    /// The last is a file or a folder, or - for standard output. A file that is there is replaced.
    ///
    /// Several go to a folder that is there, each under its own name.
    #[arg(value_name = "s3://BUCKET/NAME", required = true, num_args = 1..)]
    pub places: Vec<PathBuf>,
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
    let (sources, to) = parted(&args.places, "coffer get s3://BUCKET/NAME FILE")?;
    let is_stream = to.as_os_str() == "-";
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
    if is_stream {
        check_output(io::stdout())?;
    }
    check_file(to)?;
    let progress = Arc::new(Progress::new(lines));
    let from = sources.iter().map(|from| location(from));
    let from: Vec<Location> = from.collect::<Result<_, _>>()?;
    let from = match <[Location; 1]>::try_from(from) {
        Ok([from]) => from,
        Err(several) => return fetch_several(typed, args, several, to, &progress).await,
    };
    let mover = typed
        .mover(&args.service, &args.moving, Storing::default(), &progress)
        .await?;
    let (to, working) = (to.to_owned(), Arc::clone(&mover));
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

/// Several objects, or what is below several prefixes, into one folder.
async fn fetch_several(
    typed: &Typed<'_>,
    args: &GetArgs,
    sources: Vec<Location>,
    to: &Path,
    progress: &Arc<Progress>,
) -> Result<ExitCode, Error> {
    let refused = |option, problem: &str| Error::Option {
        option,
        problem: problem.to_owned(),
    };
    if args.version_id.is_some() {
        return Err(refused("--version-id", "it names a version of one object"));
    }
    if !to.is_dir() {
        return Err(refused(
            "FILE",
            "several objects go to a folder that is there: name one behind them",
        ));
    }
    let mut names = BTreeSet::new();
    let mut wanted = Vec::new();
    for from in sources {
        let path = path_in(&from, to, args.recursive)?;
        if !names.insert(path.clone()) {
            return Err(twice(path.display().to_string()).into());
        }
        wanted.push((from, path));
    }
    let mover = typed
        .mover(&args.service, &args.moving, Storing::default(), progress)
        .await?;
    let (working, is_recursive) = (Arc::clone(&mover), args.recursive);
    let work = async move { fetch_all(&working, wanted, is_recursive).await };
    let counts = until_interrupted(GOES_ON_IN_PART, &mover, progress, work).await;
    // Objects that are named one by one go on by what lies beside their files.
    let counts = counts.map_err(|error| match error {
        error if is_recursive => unless_noted(error, &mover),
        error => error,
    })?;
    if counts.failed == 0 {
        mover.forget_notes();
    }
    ended(progress, counts)
}

/// Prefixes one after the other, or all objects. One that fails is told, and the others go on,
/// unless it would fail all of them.
async fn fetch_all(
    mover: &Arc<Mover>,
    wanted: Vec<(Location, PathBuf)>,
    is_recursive: bool,
) -> Result<Counts, MoverError> {
    let mut counts = Counts::default();
    let mut objects = Vec::new();
    for (from, path) in wanted {
        if is_recursive {
            let what = from.to_string();
            let fetched = match mover.fetch_folder(&from.folder(), &path).await {
                Err(error) if mover.is_of_service(&error, counts.done > 0) => {
                    return Err(error.with_counts(counts.done, counts.failed));
                }
                Err(error) => mover.failed(what, &error),
                Ok(fetched) => fetched,
            };
            counts.include(fetched);
        } else {
            objects.push((from.object()?, path));
        }
    }
    let fetched = mover.fetch_files(objects).await;
    counts.include(fetched.map_err(|error| error.with_counts(counts.done, counts.failed))?);
    Ok(counts)
}

/// Where one of several goes: into the folder, under its own name; that of a bucket is its name.
fn path_in(from: &Location, to: &Path, is_recursive: bool) -> Result<PathBuf, MoverError> {
    if !is_recursive {
        return target_path(&from.object()?.key, to);
    }
    match from.key.strip_suffix('/').unwrap_or(&from.key) {
        "" => target_path(&from.bucket, to),
        folder => target_path(folder, to),
    }
}

const USAGE: &str = "coffer get [OPTIONS] <s3://BUCKET/NAME>... <FILE>";

const EXAMPLES: &str = "\
A file has its name when all of it is there and has the object's checksum; until then it is
.NAME.coffer-part, and the same command goes on from that. Times of files that `coffer put` or
rclone stored are kept; modes and owners are not: new files are as your umask has them. Where a
server tells no checksum, a note says that only the length was compared, and with --json `checked`
tells what was. With -r, what fails is named, and what many meet only counted after 16 of them
(--json names each); the rest goes on, unless all of it would fail, and the exit status is 1; the
same command then passes over what it has fetched, unless object or file changed since.

Examples:
  coffer get s3://evidence/recording.mkv . --endpoint https://127.0.0.1:9000
  coffer get s3://evidence/a.mkv s3://evidence/b.mkv films --endpoint https://127.0.0.1:9000
  coffer get -r s3://evidence/recordings/ restored --endpoint https://127.0.0.1:9000
  coffer get s3://backups/home.tar - --endpoint https://127.0.0.1:9000 | tar x";
