//! What can go wrong in the program. A message is one line: what happened, to what, what to do.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coffer_admin::AdminError;
use coffer_client::ClientError;
use coffer_client::migrate::MigrateError;
use coffer_client::mover::MoverError;
use coffer_client::s3::S3Error;
use coffer_vault::{ENGINE_FILE, STANDBY_FOLDER, VaultError};

/// A failure that ends the program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A gateway was started on a copy of its engine's log.
    #[error(
        "the gateway at {address} serves this engine, and does not renew its lease in this store, \
         which has a copy of its log: of two that go on with one log each would acknowledge what \
         the other never has. Give the URL of the log itself; or stop the gateways of the other \
         for good, and start again"
    )]
    CopiedLog {
        /// Where the gateway takes requests.
        address: String,
    },
    /// The configuration file could not be read.
    #[error("configuration file {path} could not be read: {source}", path = path.display())]
    ConfigUnreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The configuration file makes no sense.
    #[error(
        "configuration file {path}{at}: {problem}; `coffer serve --help` shows what it may say",
        path = path.display(),
        at = line.map(|line| format!(", line {line}")).unwrap_or_default()
    )]
    Config {
        /// The file.
        path: PathBuf,
        /// Its line, counted from one, where known.
        line: Option<usize>,
        /// What is wrong with it.
        problem: String,
    },
    /// Options that do not fit together, or a value that is none.
    #[error("{option}: {problem}")]
    Option {
        /// The option.
        option: &'static str,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// What is asked before something can't be undone was not answered as it was to be.
    #[error("{said}; nothing was {undone} (scripts say {scripts})")]
    NotConfirmed {
        /// What was typed, or that nothing was.
        said: String,
        /// What was not done.
        undone: &'static str,
        /// What answers without a terminal.
        scripts: &'static str,
    },
    /// An address could not be listened on.
    #[error("{address} cannot be listened on: {source}; {advice}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
        /// What to do.
        advice: String,
    },
    /// A certificate or its key could not be used.
    #[error("{path}: {problem}; {advice}", path = path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
        /// What to do.
        advice: &'static str,
    },
    /// The vault did not open, or an operation of it failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The system refused something that should always work.
    #[error("{doing} failed: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// What was served could not be closed before the process ended.
    #[error(
        "what was served was not closed: {why}; all that was acknowledged is kept: look at the \
         disk and the log, and start it again"
    )]
    Unclosed {
        /// Why.
        why: String,
    },
    /// What was asked for was done, but the answer is lost.
    #[error("it was done, and the answer could not be written: {source}{remedy}")]
    Unwritten {
        /// How to get on without the answer.
        remedy: String,
        /// Why it could not be written.
        source: io::Error,
    },
    /// Files could not be written where they were asked for.
    #[error("{path} can't be written: {source}", path = path.display())]
    Unwritable {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no room for what belongs in a folder.
    #[error(
        "no room is left on the disk that {path} is on: make some, and give the same command \
         again, which goes on from what is there",
        path = path.display()
    )]
    Full {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is no data folder.
    #[error(
        "there is no keystore in {data}: name a data folder with --data",
        data = data.display()
    )]
    NoKeystore {
        /// The folder.
        data: PathBuf,
    },
    /// The folder is no data folder, but that of a backup, in which the copy lies.
    #[error(
        "{folder} is no data folder: it holds a backup, whose copy is {copy}; `coffer verify` and \
         `coffer offline` read that, with --data {copy}",
        folder = folder.display(),
        copy = folder.join("copy").display()
    )]
    FolderOfBackup {
        /// The folder.
        folder: PathBuf,
    },
    /// A server holds the data folder.
    #[error(
        "a server is running on {data}: stop it first, or ask it over S3",
        data = data.display()
    )]
    ServerRunning {
        /// The data folder.
        data: PathBuf,
    },
    /// A small object has no blob whose keys could be printed.
    #[error(
        "the object's {plaintext_bytes} bytes lie in its bucket's catalog, not in blobs: \
         read it with `coffer offline cat`"
    )]
    InCatalog {
        /// How long it is.
        plaintext_bytes: u64,
    },
    /// The local socket could not be made.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// No server runs on the folder of a standby.
    #[error(
        "no server runs on {data}, which is the folder of a standby: start it with `coffer serve \
         --follow URL --data {data}`, and the URL of the copy that it follows",
        data = data.display()
    )]
    StandbyStopped {
        /// The standby's folder.
        data: PathBuf,
    },
    /// No server runs on the folder of a gateway.
    #[error(
        "no server runs on {data}, which is the folder of a gateway of an engine: one that is \
         about to serve or to follow answers soon; else start it with `coffer serve --engine URL \
         --data {data}`, and the engine's URL",
        data = data.display()
    )]
    GatewayStopped {
        /// The gateway's folder.
        data: PathBuf,
    },
    /// A stopped server's folder has no bucket of this name.
    #[error(
        "there is no bucket {bucket} in {data}: `coffer offline ls` lists those that it has",
        data = data.display()
    )]
    NoBucket {
        /// The data folder.
        data: PathBuf,
        /// What was asked for.
        bucket: String,
    },
    /// A running server could not be asked, or said no.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A file or an object was not moved.
    #[error(transparent)]
    Mover(#[from] MoverError),
    /// Something could not be moved in.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// The program was told to end.
    #[error("interrupted: {left}")]
    Interrupted {
        /// What is left.
        left: &'static str,
    },
    /// A bucket of an imported level is not in use.
    #[error("bucket {id} was not adopted: {problem}")]
    NotAdopted {
        /// Its id.
        id: String,
        /// Why, and what to do.
        problem: &'static str,
    },
    /// A rotation stopped before its end.
    #[error("{problem}; the next start of the server goes on with it")]
    RotationFailed {
        /// Why.
        problem: String,
    },
}

impl Error {
    /// The same, but where a folder was named that holds a backup, and the copy in it is meant; or
    /// that of a standby or a gateway, which is started in another way.
    #[must_use]
    pub fn saying_what_the_folder_is(self) -> Self {
        if let Self::Client(ClientError::NoServer { data, .. }) = &self
            && [STANDBY_FOLDER, ENGINE_FILE]
                .iter()
                .any(|of| data.join(of).exists())
        {
            let data = data.clone();
            return if data.join(ENGINE_FILE).exists() {
                Self::GatewayStopped { data }
            } else {
                Self::StandbyStopped { data }
            };
        }
        let folder = match &self {
            Self::NoKeystore { data } => data.clone(),
            Self::Client(ClientError::NoServer { data, .. }) => data.clone(),
            Self::Vault(VaultError::Folder { path, .. }) => PathBuf::from(path),
            _ => return self,
        };
        let has_keystore = |folder: &Path| folder.join("keystore").exists();
        if !has_keystore(&folder) && has_keystore(&folder.join("copy")) {
            Self::FolderOfBackup { folder }
        } else {
            self
        }
    }

    /// The same, but where a disk is full, with the folder that is on it.
    #[must_use]
    pub fn of_folder(self, path: &Path) -> Self {
        match self {
            Self::Vault(VaultError::StorageFull) => Self::Full {
                path: path.to_owned(),
            },
            error => error,
        }
    }

    /// The same, but where a stopped server's folder has no such bucket, with both names.
    #[must_use]
    pub fn of_bucket(self, data: &Path, bucket: &str) -> Self {
        match self {
            Self::Vault(VaultError::NoSuchBucket) => Self::NoBucket {
                data: data.to_owned(),
                bucket: bucket.to_owned(),
            },
            error => error,
        }
    }

    /// Whether a disk is full.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }

    /// Whether a gateway of an engine ends by it, and does not try again: no time mends it.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Vault(error) => error.is_lasting(),
            Self::CopiedLog { .. } | Self::Unclosed { .. } => true,
            _ => false,
        }
    }

    /// Whether it says that who reads standard output has read enough, as `head` has: no failure of
    /// what only tells.
    pub fn is_of_reader_gone(&self) -> bool {
        matches!(self, Self::System { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// For programs: a word that stays the same.
    pub fn code(&self) -> &str {
        match self {
            Self::Client(ClientError::Refused { code, .. }) => code,
            Self::StandbyStopped { .. }
            | Self::GatewayStopped { .. }
            | Self::Client(ClientError::NoServer { .. } | ClientError::Unreachable { .. }) => {
                "unreachable"
            }
            Self::ConfigUnreadable { .. }
            | Self::Config { .. }
            | Self::Option { .. }
            | Self::NotConfirmed { .. }
            | Self::Client(ClientError::NoAddress | ClientError::Endpoint { .. }) => {
                "invalid_argument"
            }
            Self::Mover(error) => error.code(),
            Self::Migrate(error) => error.code(),
            Self::Interrupted { .. } => "interrupted",
            Self::Unwritten { .. } => "done_but_not_told",
            _ => "failed",
        }
    }

    /// 2 for what typing another command mends, else 1.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::ConfigUnreadable { .. }
            | Self::Config { .. }
            | Self::Option { .. }
            | Self::NotConfirmed { .. }
            | Self::Client(ClientError::NoAddress | ClientError::Endpoint { .. })
            | Self::Mover(
                MoverError::Location { .. }
                | MoverError::S3(S3Error::Client(ClientError::Endpoint { .. })),
            )
            | Self::Migrate(MigrateError::Source { .. } | MigrateError::Report { .. }) => {
                ExitCode::from(2)
            }
            Self::Client(ClientError::Refused { code, .. }) if code == "invalid_request" => {
                ExitCode::from(2)
            }
            _ => ExitCode::FAILURE,
        }
    }
}
