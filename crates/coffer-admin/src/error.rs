//! What can go wrong when the local socket is made.

use std::io;
use std::path::PathBuf;

/// Why the local socket could not be made.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The file system refused.
    #[error("cannot listen on the socket {path}: {source}", path = path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}
