//! `DATA/tls`: the files of the local authority.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use coffer_durable::{sync_folder, write_file_atomically};
use zeroize::Zeroizing;

/// What went wrong with a file of `DATA/tls`.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// Something of the authority is lost or damaged, so that it signs nothing.
    #[error("{path}: {problem}; {advice}", path = path.display(), advice = AUTHORITY_ADVICE)]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is no authority, or none for the server's names.
    #[error("{path}: {problem}; the next start makes another", path = path.display())]
    NoAuthority {
        /// Its certificate.
        path: PathBuf,
        /// Why it is none.
        problem: &'static str,
    },
}

/// What to do about an authority that is lost or damaged.
pub const AUTHORITY_ADVICE: &str = "put back a copy of it (every client has one of ca.pem), or \
     give the authority up with `coffer tls renew-authority`, after which clients need the new \
     ca.pem";

/// The files of the local authority.
#[derive(Debug, Clone)]
pub struct Files {
    folder: PathBuf,
}

impl Files {
    /// Those of a data folder.
    pub fn of(data: &Path) -> Self {
        Self {
            folder: data.join("tls"),
        }
    }

    /// The authority's certificate, which clients trust.
    pub fn ca_cert(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// The server's certificate.
    pub fn server_cert(&self) -> PathBuf {
        self.folder.join("server.pem")
    }

    /// The server's private key.
    pub fn server_key(&self) -> PathBuf {
        self.folder.join("server.key")
    }

    /// The authority's private key.
    pub fn ca_key(&self) -> PathBuf {
        self.folder.join("ca.key")
    }

    /// Makes the folder where it is absent, and its name durable.
    pub fn make_folder(&self) -> Result<(), CertificateError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(failed("make", &self.folder))?;
        let data = self.folder.parent().unwrap_or(Path::new("."));
        sync_folder(data).map_err(failed("sync", data))
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CertificateError {
    move |source| CertificateError::File {
        action,
        path: path.to_owned(),
        source,
    }
}

/// A file's bytes; `None` if there is no such file.
pub fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, CertificateError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(Zeroizing::new(bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

/// A file that must be there is not.
pub fn missing(path: &Path) -> CertificateError {
    failed("find", path)(io::ErrorKind::NotFound.into())
}

/// Removes a file, durably.
pub fn remove(path: &Path) -> Result<(), CertificateError> {
    let steps = || -> io::Result<()> {
        fs::remove_file(path)?;
        sync_folder(path.parent().unwrap_or(Path::new(".")))
    };
    steps().map_err(failed("remove", path))
}

/// Writes a file in one durable step. Only the owner may read it; the folder lets no others in
/// anyhow.
pub fn write(path: &Path, text: &str) -> Result<(), CertificateError> {
    let written = write_file_atomically(path, text.as_bytes()).map_err(io::Error::from);
    written.map_err(failed("write", path))
}
