//! `coffer put`, `get`, `ls`, `rm` and `cp`: files and objects, with coffer or another S3 server;
//! and `migrate`, from another to coffer.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use coffer_client::mover::{
    Counts, Event, Location, Mover, MoverError, MoverOptions, Transfer, Watch,
};
use coffer_client::s3::{Client, ClientOptions};
use coffer_client::{Settings, Wanted, is_address, looks_like_key, without_secret};
use tokio::signal::unix::{SignalKind, signal};

use crate::config::args::RemoteArgs;
use crate::config::data_args::DataArgs;
use crate::config::implied::{PASSED_OVER, is_trusted};
use crate::config::{self, DATA_DEFAULT};
use crate::error::Error;

mod own_server;

mod progress;

pub mod put;

pub mod get;

pub mod cp;

pub mod rm;

pub mod ls;

pub mod migrate;

use self::own_server::OwnServer;
pub(crate) use self::progress::Progress;

/// How the service is reached, beside what all commands have.
#[derive(Debug, Clone, Args)]
pub struct ServiceArgs {
    /// Profile of AWS's configuration and credentials files
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// How often a request is sent again that met a passing error
    ///
    /// A server that refuses the first connection, or resets it, is waited for up to 6 seconds.
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    pub retries: u32,
    /// Print JSON, an event a line where there are many
    #[arg(long)]
    pub json: bool,
}

/// How files are moved.
#[derive(Debug, Clone, Args)]
pub struct MovingArgs {
    /// Pieces of files that are under way at once
    #[arg(long, value_name = "COUNT", default_value_t = 8,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// How bytes go: sealed over the server's data port where the bucket allows it, or by TLS
    #[arg(long, value_name = "WAY", value_enum, default_value_t = Way::Auto)]
    pub transfer: Way,
}

/// The values of `--transfer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// Sealed where server and bucket allow it
    Auto,
    /// Always by TLS
    Tls,
    /// Sealed; waits for a ticket; objects of up to 16 KiB have no sealed form: those go by TLS
    Sealed,
}

impl From<Way> for Transfer {
    fn from(way: Way) -> Self {
        match way {
            Way::Auto => Self::Auto,
            Way::Tls => Self::Tls,
            Way::Sealed => Self::Sealed,
        }
    }
}

/// How files are stored.
#[derive(Debug, Default)]
pub(crate) struct Storing {
    /// Headers that objects get.
    pub(crate) headers: Vec<(String, String)>,
    /// Whether symbolic links stand for what they point to.
    pub(crate) follow_links: bool,
    /// Whether it is enough that a server has them, which opens them later.
    pub(crate) no_wait: bool,
}

/// What all of these commands are given.
pub struct Typed<'a> {
    /// Where the data is.
    pub data: &'a DataArgs,
    /// Where the service is.
    pub remote: &'a RemoteArgs,
}

impl Typed<'_> {
    /// The service that is meant.
    ///
    /// # Errors
    /// When there is no address or no access key.
    pub(crate) async fn client(
        &self,
        args: &ServiceArgs,
        progress: &Arc<Progress>,
    ) -> Result<Arc<Client>, Error> {
        let folder = self.folder()?;
        let own = match &folder {
            Some(folder) => match OwnServer::find(&folder.path, self).await {
                Err(_) if folder.is_implied => None,
                own => Some(own?),
            },
            None => None,
        };
        let (own, away) = match own {
            Some(OwnServer { address, away }) => (Some(address), away),
            None => (None, None),
        };
        let folder = folder.filter(|_| own.is_some());
        let wanted = Wanted {
            endpoint: self.remote.endpoint.as_deref(),
            credentials: self.remote.credentials.as_deref(),
            profile: args.profile.as_deref(),
            ca: self.remote.ca.as_deref(),
            data: folder.as_ref().map(|folder| folder.path.as_path()),
            data_endpoint: own.as_deref(),
            is_data_implied: folder.as_ref().is_some_and(|folder| folder.is_implied),
            ..Wanted::default()
        };
        // Another server may be where this one would be: it is not asked in its place.
        if let Some(away) = away
            && Settings::is_of_data(&wanted)?
        {
            return Err(away.into());
        }
        let told = Arc::clone(progress);
        let options = ClientOptions {
            retries: args.retries,
            retrying: Some(Arc::new(move |error, wait| {
                told.retrying(&error.to_string(), wait);
            })),
            ..ClientOptions::default()
        };
        let settings = Settings::find(&wanted).inspect_err(|_| {
            let is_missed = folder.is_none() && self.passes_over().unwrap_or(false);
            if is_missed {
                progress.event(&Event::Note(PASSED_OVER));
            }
        })?;
        Ok(Arc::new(Client::new(settings, options)?))
    }

    /// The data folder whose server may be meant: the one that was named, else, where no address
    /// is, the one that other commands take, unless another user may have put it there.
    fn folder(&self) -> Result<Option<Folder>, Error> {
        if let Some(data) = &self.data.data {
            let has_key = is_any_set(&KEY_VARIABLES);
            if self.data.is_data_typed || !has_key {
                return Ok(Some(Folder {
                    path: data.clone(),
                    is_implied: false,
                }));
            }
        }
        let has_address = self.remote.endpoint.is_some() || is_any_set(&ADDRESS_VARIABLES);
        let is_typed = self.data.is_config_typed;
        let named = match config::named_data(self.data) {
            // Where all is said elsewhere, a file of the environment need not be readable.
            Err(_) if !is_typed || self.remote.endpoint.is_some() => return Ok(None),
            named => named?,
        };
        let is_implied = !is_typed || self.data.data.is_some() || named.is_none();
        if is_implied && has_address {
            return Ok(None);
        }
        let is_named = named.is_some();
        let path = named.unwrap_or_else(|| PathBuf::from(DATA_DEFAULT));
        let may_be_meant = if is_named {
            !is_implied || path.is_dir()
        } else {
            path.is_dir() && is_trusted(&path)
        };
        Ok(may_be_meant.then_some(Folder { path, is_implied }))
    }

    /// Whether a folder would be meant, had another user not perhaps put it there.
    fn passes_over(&self) -> Result<bool, Error> {
        let path = Path::new(DATA_DEFAULT);
        let has_address = self.remote.endpoint.is_some() || is_any_set(&ADDRESS_VARIABLES);
        let is_named = has_address || config::named_data(self.data)?.is_some();
        Ok(!is_named && path.is_dir() && !is_trusted(path))
    }

    /// Moves files as these arguments say.
    pub(crate) async fn mover(
        &self,
        args: &ServiceArgs,
        moving: &MovingArgs,
        storing: Storing,
        progress: &Arc<Progress>,
    ) -> Result<Arc<Mover>, Error> {
        let options = MoverOptions {
            jobs: moving.jobs.into(),
            transfer: moving.transfer.into(),
            state: state_folder(),
            headers: storing.headers,
            follow_links: storing.follow_links,
            waits_for_verdict: !storing.no_wait,
        };
        let client = self.client(args, progress).await?;
        Ok(Mover::new(client, options, Arc::clone(progress) as _))
    }
}

/// A data folder on this machine.
struct Folder {
    path: PathBuf,
    /// Whether it is meant only where nothing else says an address.
    is_implied: bool,
}

/// Whether the environment says any of these.
fn is_any_set(names: &[&str]) -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    names.iter().any(is_set)
}

/// What says an access key, in the environment.
const KEY_VARIABLES: [&str; 3] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE",
];

/// What says an address, in the environment.
const ADDRESS_VARIABLES: [&str; 2] = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"];

/// Where journals lie (XDG Base Directory Specification).
fn state_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = variable("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.filter(|state| state.is_absolute());
    let home = || Some(Path::new(&variable("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("coffer"))
}

/// Does some work until it is done, or the program is told to end. `interrupted` says what is left
/// then.
async fn until_interrupted<T: Send + 'static>(
    interrupted: &'static str,
    mover: &Arc<Mover>,
    progress: &Progress,
    work: impl Future<Output = Result<T, MoverError>> + Send + 'static,
) -> Result<T, Error> {
    let listening = |source| Error::System {
        doing: "listening to signals",
        source,
    };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(listening)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(listening)?;
    // A task of its own: it may wait for a disk or a pipe.
    let mut working = tokio::spawn(work);
    tokio::select! {
        done = &mut working => {
            progress.clear();
            let done = done.unwrap_or(Err(MoverError::Lost));
            if done.is_err() {
                // What was begun beside it, and still waits when the runtime goes, would panic.
                mover.at_rest().await;
                mover.abort_uploads().await;
            }
            return Ok(done?);
        }
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    working.abort();
    progress.clear();
    // What still waits when the runtime goes, would panic.
    mover.at_rest().await;
    mover.abort_uploads().await;
    Err(Error::Interrupted { left: interrupted })
}

/// How many went well, told; and the status that the program ends with.
fn ended(progress: &Progress, counts: Counts) -> Result<ExitCode, Error> {
    progress.summary(&counts)?;
    match counts.failed {
        0 => Ok(ExitCode::SUCCESS),
        _ => Ok(ExitCode::FAILURE),
    }
}

/// What was typed, in two: what is moved, and behind it where to. `usage` is the command.
fn parted<'a>(
    places: &'a [PathBuf],
    usage: &'static str,
) -> Result<(&'a [PathBuf], &'a Path), Error> {
    match places.split_last() {
        Some((target, sources)) if !sources.is_empty() => Ok((sources, target.as_path())),
        _ => Err(Error::Option {
            option: usage,
            problem: "say what is moved, and behind it where to".to_owned(),
        }),
    }
}

/// Refuses an address in a file's place: it may have a secret in it, which would be told with it.
/// A file that is there has that name.
fn check_file(path: &Path) -> Result<(), MoverError> {
    let text = path.to_str().unwrap_or_default();
    if looks_like_key(text) && path.symlink_metadata().is_err() {
        return Err(MoverError::Location {
            text: without_secret(text),
            problem: "what stands before it looks like an access key: that goes into a profile, \
                      and the address into --endpoint; a file of such a name is written ./NAME",
        });
    }
    if Location::is_meant(text) || !is_address(text) {
        return Ok(());
    }
    // What is no place in a bucket is told as such, without its secret.
    text.parse::<Location>().map(drop)
}

/// The same of an option that names a file.
fn check_option(option: &'static str, path: &Path) -> Result<(), Error> {
    check_file(path).map_err(|_| Error::Option {
        option,
        problem: "what stands there looks like an address or an access key, and is not repeated: \
                  name a file; one of such a name is written ./NAME"
            .to_owned(),
    })
}

/// A place in a bucket, of what was typed.
fn location(place: &Path) -> Result<Location, MoverError> {
    match place.to_str() {
        Some(text) => text.parse(),
        None => Err(MoverError::Location {
            text: place.display().to_string(),
            problem: "write it in UTF-8, as names of objects are",
        }),
    }
}

/// That two of what was named would have one name.
fn twice(name: String) -> MoverError {
    MoverError::Location {
        text: name,
        problem: "two of what is moved would have this name: move them one by one",
    }
}

/// What goes on after an interruption.
const GOES_ON: &str = "what has been moved is kept: the same command goes on from there";

/// The same of several files or objects, of which small ones are not noted.
const GOES_ON_IN_PART: &str = "what has been moved is kept: the same command moves small files \
                               once more, and goes on with large ones and folders where they \
                               broke off";

/// The same, where it can't be noted what was moved.
const BEGINS_ANEW: &str = "what was stored or fetched whole is there, but there is no place to \
                           note that: the same command begins anew; set XDG_STATE_HOME to a \
                           folder that can be written, and it goes on";

/// The same, where another notes it.
const NOTED_BY_ANOTHER: &str = "what was stored or fetched whole is there: the same command \
                                begins anew with what another coffer moves as well, which keeps \
                                the notes of that, and goes on with the rest";

/// An error of a command that goes on by what was noted, if it could be.
fn unless_noted(error: Error, mover: &Mover) -> Error {
    match error {
        Error::Interrupted { .. } if !mover.goes_on() => Error::Interrupted { left: BEGINS_ANEW },
        Error::Interrupted { .. } if mover.is_noted_by_another() => Error::Interrupted {
            left: NOTED_BY_ANOTHER,
        },
        error => error,
    }
}
