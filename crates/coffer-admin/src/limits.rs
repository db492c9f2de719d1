//! Every limit of the administration front door.

use std::time::Duration;

/// Pause after the system refused us a new connection (out of files, for example).
pub const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Bytes of the body of a request: they are JSON objects, of which a list of grants is the largest.
pub const REQUEST_BYTES: usize = 256 * 1024;

/// Bytes of the body of an import: an export of the longest kind, and what is around it in JSON.
pub const IMPORT_BYTES: usize = coffer_keys::limits::EXPORT_MAX_BYTES + 1024 * 1024;

/// Connections to the local socket at once.
pub const SOCKET_CONNECTIONS: usize = 16;

/// Verifications at once: one reads as fast as the disk allows.
pub const VERIFICATIONS: usize = 1;

/// Fastest rate of a verification that can be asked for, in bytes a second: JSON's numbers are
/// exact up to it.
pub const RATE_MAX: u64 = (1 << 53) - 1;
