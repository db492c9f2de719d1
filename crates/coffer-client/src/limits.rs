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

/// How long nothing may move on a connection to a data port.
pub const TRANSFER_STANDSTILL: Duration = Duration::from_secs(30);

/// How long a server may take to say whether what it was sent is whole and durable.
pub const TRANSFER_VERDICT: Duration = Duration::from_secs(300);

/// Bytes of an answer that offers a sealed transfer, or takes an announcement.
pub const TRANSFER_ANSWER_BYTES: usize = 256 * 1024;

/// Segments of one offer.
pub const TRANSFER_SEGMENTS: usize = 256;

/// Characters of a ticket: 32 bytes in Base64 for URLs, without padding.
pub const TRANSFER_TICKET_BYTES: usize = 43;

/// Bytes of a context. A blob's has 47.
pub const TRANSFER_CONTEXT_BYTES: usize = 1024;

/// Bytes of the head of an answer from a data port.
pub const TRANSFER_HEAD_BYTES: usize = 4096;

/// Headers of such an answer.
pub const TRANSFER_HEADERS: usize = 32;

/// Chunks that are received and opened, or sealed and sent, at a time. Their 512 KiB, twice, stay
/// in a processor's second cache, and are few system calls.
pub const TRANSFER_BATCH_CHUNKS: usize = 32;
