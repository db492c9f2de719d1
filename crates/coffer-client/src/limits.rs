//! Every limit of the client side.

use std::time::Duration;

/// How long it may take to reach a server over the network.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of one answer of the administration API.
pub const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of one line of an answer that comes as lines.
pub const LINE_BYTES: usize = 64 * 1024;

/// Bytes of one answer of S3 that is taken whole.
pub const S3_ANSWER_BYTES: usize = 2 << 20;

/// Bytes of a path that the address of a socket holds (`sockaddr_un`, unix(7)).
pub const SOCKET_PATH_BYTES: usize = 107;
