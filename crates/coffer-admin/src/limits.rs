//! Every limit of the administration front door.

use std::time::Duration;

/// Pause after the system refused us a new connection (out of files, for example).
pub const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Bytes of the body of a request: they are small JSON objects.
pub const REQUEST_BYTES: usize = 4 * 1024;

/// Connections to the local socket at once.
pub const SOCKET_CONNECTIONS: usize = 16;

/// Verifications at once: one reads as fast as the disk allows.
pub const VERIFICATIONS: usize = 1;

/// Bytes of a path that a Unix socket can be bound to (`sun_path`, with its final zero).
pub const SOCKET_PATH_BYTES: usize = 107;
