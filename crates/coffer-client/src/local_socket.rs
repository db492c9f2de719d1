//! `DATA/admin.sock`, the socket on which the owner of a data folder asks its server.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use tokio::net::UnixStream;

use crate::limits::SOCKET_PATH_BYTES;

/// Where the socket of a data folder is.
pub fn path(data: &Path) -> PathBuf {
    data.join("admin.sock")
}

/// Connects to the socket of a data folder.
///
/// # Errors
/// When no server listens there, or it is another user's.
pub async fn connect(data: &Path) -> io::Result<UnixStream> {
    let (_folder, short) = addressable(&path(data))?;
    UnixStream::connect(short).await
}

/// The same file under a path that the address of a socket can hold, for as long as the folder that
/// comes with it is held open: data folders may lie deep.
///
/// # Errors
/// When the path is long and its folder can't be opened.
pub fn addressable(path: &Path) -> io::Result<(Option<File>, PathBuf)> {
    // A short path needs no open folder, and so gives the plainer error where there is none.
    if path.as_os_str().len() <= SOCKET_PATH_BYTES {
        return Ok((None, path.to_owned()));
    }
    let folder = File::open(path.parent().unwrap_or(Path::new(".")))?;
    let short = Path::new("/proc/self/fd")
        .join(folder.as_raw_fd().to_string())
        .join(path.file_name().unwrap_or_default());
    Ok((Some(folder), short))
}
