//! `coffer put`.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use coffer_client::mover::{Counts, Location, Moved, Mover, MoverError};

use super::progress::Lines;
use super::{
    GOES_ON, GOES_ON_IN_PART, MovingArgs, Progress, ServiceArgs, Storing, Typed, check_file, ended,
    location, parted, twice, unless_noted, until_interrupted,
};
use crate::error::Error;
use crate::output::streams::check_input;

/// `coffer put`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct PutArgs {
    /// Files to store, folders with -r, or - for standard input; behind them, where they go
    ///
    /// The last is s3://BUCKET/NAME; a name that ends with / gets the file's name behind it.
    ///
    /// Several need such a name, or a bucket; of several folders, each gets its name, too.
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub places: Vec<PathBuf>,
    /// Store all files below a folder
    #[arg(short, long)]
    pub recursive: bool,
    /// With -r, store what symbolic links point to; else they are passed over, and told
    #[arg(long, requires = "recursive")]
    pub follow_links: bool,
    /// Do not wait until a server that opens later what comes sealed has done so
    ///
    /// With -r, large files that it has yet to open are stored again after an interruption.
    #[arg(long)]
    pub no_wait: bool,
    /// Media type of what is stored, e.g. video/mp4
    #[arg(long, value_name = "TYPE", value_parser = media_type)]
    pub content_type: Option<String>,
    /// Metadata of what is stored; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub metadata: Vec<String>,
    /// How files are moved.
    #[command(flatten)]
    pub moving: MovingArgs,
    /// How the service is reached.
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// Reads what a header can hold.
fn media_type(text: &str) -> Result<String, String> {
    match http::HeaderValue::try_from(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("it has a line break or another control character".to_owned()),
    }
}

/// Reads `NAME=VALUE`. What is none is not repeated: it may be what was meant for elsewhere.
fn name_and_value(text: &str) -> Result<(String, String), Error> {
    let wrong = |problem: &str| Error::Option {
        option: "--metadata",
        problem: problem.to_owned(),
    };
    let (name, value) = { text.split_once('=') }.ok_or_else(|| wrong("write NAME=VALUE"))?;
    if name.is_empty() {
        return Err(wrong("write a name before the ="));
    }
    let name = format!("x-amz-meta-{}", name.to_ascii_lowercase());
    let is_header = http::HeaderName::try_from(&name).is_ok();
    let is_value = http::HeaderValue::try_from(value).is_ok();
    if is_header && is_value {
        Ok((name, value.to_owned()))
    } else {
        Err(wrong(
            "name and value must be such that a header can hold them",
        ))
    }
}

/// Stores files.
///
/// # Errors
/// When one is not stored, or a folder can't be read.
pub async fn put(typed: &Typed<'_>, args: &PutArgs) -> Result<ExitCode, Error> {
    let lines = if args.service.json {
        Lines::Out
    } else {
        Lines::None
    };
    let (sources, to) = parted(&args.places, "coffer put FILE s3://BUCKET/NAME")?;
    let has_stream = { sources.iter() }.any(|from| from.as_os_str() == "-");
    if has_stream && sources.len() > 1 {
        return Err(Error::Option {
            option: "-",
            problem: "standard input is stored by itself, under a name of its own".to_owned(),
        });
    }
    if has_stream && args.recursive {
        return Err(Error::Option {
            option: "-r",
            problem: "standard input is no folder: name one in place of -, or leave out -r"
                .to_owned(),
        });
    }
    if has_stream {
        check_input(io::stdin())?;
    }
    sources.iter().try_for_each(|from| check_file(from))?;
    let progress = Arc::new(Progress::new(lines));
    let to = location(to)?;
    let metadata = args.metadata.iter().map(|text| name_and_value(text));
    let mut headers: Vec<_> = metadata.collect::<Result<_, _>>()?;
    if let Some(kind) = &args.content_type {
        headers.push(("content-type".to_owned(), kind.clone()));
    }
    let storing = Storing {
        headers,
        follow_links: args.follow_links,
        no_wait: args.no_wait,
    };
    let mover = typed
        .mover(&args.service, &args.moving, storing, &progress)
        .await?;
    let counts = match sources {
        [from] if args.recursive => {
            let (from, to, working) = (from.clone(), to.folder(), Arc::clone(&mover));
            let work = async move { working.put_folder(&from, &to).await };
            let counts = until_interrupted(GOES_ON, &mover, &progress, work).await;
            counts.map_err(|error| unless_noted(error, &mover))?
        }
        [from] => one_file(from, to, has_stream, &mover, &progress).await?,
        several => {
            let named = all_named(several, &to)?;
            let (working, is_recursive) = (Arc::clone(&mover), args.recursive);
            let work = async move { put_all(&working, named, is_recursive).await };
            let counts = until_interrupted(GOES_ON_IN_PART, &mover, &progress, work).await;
            counts.map_err(|error| unless_noted(error, &mover))?
        }
    };
    if args.recursive && counts.failed == 0 {
        mover.forget_notes();
    }
    ended(&progress, counts)
}

async fn one_file(
    from: &Path,
    to: Location,
    is_stream: bool,
    mover: &Arc<Mover>,
    progress: &Progress,
) -> Result<Counts, Error> {
    let to = named(to, from)?;
    let (from, working) = (from.to_owned(), Arc::clone(mover));
    let work = async move {
        let name = to.object()?;
        if is_stream {
            working.put_stream(&mut io::stdin(), &name).await
        } else {
            working.put(&from, &name).await
        }
    };
    let left = if is_stream {
        "nothing is stored"
    } else {
        GOES_ON
    };
    let moved = until_interrupted(left, mover, progress, work).await;
    let moved: Moved = match moved {
        Err(error) if !is_stream => return Err(unless_noted(error, mover)),
        moved => moved?,
    };
    Ok(one(&moved))
}

/// Several files or folders, and where each goes: below one place, under its own name.
fn all_named(sources: &[PathBuf], to: &Location) -> Result<Vec<(PathBuf, Location)>, MoverError> {
    if !(to.key.is_empty() || to.key.ends_with('/')) {
        return Err(MoverError::Location {
            text: to.to_string(),
            problem: "several go to s3://BUCKET/, or to a name that ends with /",
        });
    }
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for from in sources {
        let to = named(to.clone(), from)?;
        if !names.insert(to.key.clone()) {
            return Err(twice(to.to_string()));
        }
        all.push((from.clone(), to));
    }
    Ok(all)
}

/// Folders one after the other, and then all files. One that fails is told, and the others go on,
/// unless it would fail all of them.
async fn put_all(
    mover: &Arc<Mover>,
    sources: Vec<(PathBuf, Location)>,
    is_recursive: bool,
) -> Result<Counts, MoverError> {
    let mut counts = Counts::default();
    let mut files = Vec::new();
    for (from, to) in sources {
        if is_recursive && from.is_dir() {
            let stored = match mover.put_folder(&from, &to.folder()).await {
                Err(error)
                    if mover.is_of_service(&error, counts.done > 0) || error.is_of_bucket() =>
                {
                    return Err(error.with_counts(counts.done, counts.failed));
                }
                Err(error) => mover.failed(from.display().to_string(), &error),
                Ok(stored) => stored,
            };
            counts.include(stored);
        } else {
            files.push((from, to.object()?));
        }
    }
    let stored = mover.put_files(files).await;
    counts.include(stored.map_err(|error| error.with_counts(counts.done, counts.failed))?);
    Ok(counts)
}

/// The place with the file's name behind it, where it is a folder.
fn named(mut to: Location, from: &Path) -> Result<Location, MoverError> {
    if to.key.is_empty() || to.key.ends_with('/') {
        let name = from.file_name().and_then(|name| name.to_str());
        let name = name.filter(|name| *name != "-");
        to.key.push_str(name.unwrap_or_default());
        if name.is_none() {
            return Err(MoverError::Location {
                text: to.to_string(),
                problem: "name the object, s3://BUCKET/NAME",
            });
        }
    }
    Ok(to)
}

/// That one went well.
pub(super) fn one(moved: &Moved) -> Counts {
    Counts {
        done: 1,
        bytes: moved.bytes,
        ..Counts::default()
    }
}

const USAGE: &str = "coffer put [OPTIONS] <FILE>... <s3://BUCKET/NAME>";

const EXAMPLES: &str = "\
Keys come from --credentials, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, the address
from --endpoint, AWS_ENDPOINT_URL or a profile. --data means the server on that folder as a whole,
with its address, key and authority, before the environment; where nothing says an address, the
server on the folder of other commands is meant. Large files go in parts, and go on where they broke
off when the same command is given again; a file that was stored as the command was ended is found,
and not stored again, also where the verdict on it was waited for. With -r, nor is what an
interrupted command has stored, if neither it nor the object changed since. What comes from standard
input begins anew: broken off, nothing of it is stored. Each part is compared by its checksum. Times
of files are kept, their modes and owners are not. With -r, what fails is named, and what many meet
only counted after 16 of them (--json names each); the rest goes on, unless all of it would fail,
and the exit status is 1. Of a server that opens later what comes sealed (`coffer serve --verify
later`), the verdict is waited for, without --no-wait: 10 minutes, and longer for what is large.
What it finds damaged, or has not opened by then, is an error, though it is stored.

Examples:
  coffer put recording.mkv s3://evidence/2026/ --endpoint https://127.0.0.1:9000
  coffer put *.mkv s3://evidence/2026/ --endpoint https://127.0.0.1:9000
  coffer put -r recordings s3://evidence/recordings/ --endpoint https://127.0.0.1:9000
  tar c ~ | coffer put - s3://backups/home.tar --data ./coffer-data";
