//! Every limit of the program. The defaults stand here; a configuration file can set those of
//! [`Limits`] in its `[limits]` table, mostly for tests and unusual sites. Those of gateways are a
//! part of it.

use std::num::NonZeroUsize;
use std::time::Duration;

use coffer_vault::SubjectLimits;
use serde::Deserialize;

mod gateways;

pub use self::gateways::*;

/// How often programs are told how far files have come.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// How many failures with the same words are told one by one; of more, people learn how many.
pub const FAILURES_ALIKE: u64 = 16;

/// Of how many such words it is counted how often they were told.
pub const FAILURE_KINDS: usize = 64;

/// How many lines of the log may wait to be written; what is more is lost, and counted.
pub const LOG_LINES_WAITING: usize = 2_048;

/// How long the end of the program waits for the log's last lines.
pub const LOG_FLUSH_WAIT: Duration = Duration::from_secs(2);

/// How long a start waits for its first lines on standard output to be taken.
pub const READY_WAIT: Duration = Duration::from_secs(1);

/// How long the answer that a standby was promoted has to reach who asked, before it stops.
pub const PROMOTION_ANSWER_WAIT: Duration = Duration::from_millis(300);

/// Bytes of ciphertext read from a socket at once. Fewer, larger reads save 0.18 CPU seconds a
/// gigabyte uploaded against the 4 KiB at a time that rustls asks for; still larger ones
/// save nothing more and take memory.
pub const READ_AHEAD_BYTES: usize = 32 * 1024;

/// Read-ahead buffers in use at once, over all connections. A connection holds one only while it
/// has bytes that its reader has not taken; one that gets none reads straight from its socket.
pub const READ_AHEAD_BUFFERS: usize = 128;

/// Read-ahead buffers kept for the next reader while no connection uses them.
pub const READ_AHEAD_IDLE_BUFFERS: usize = 4;

/// Plaintext that a connection reads, or writes, before it lets others go first. Of reading 1 MiB,
/// instead of the 128 KiB of one turn of hyper, uploads on a hundred connections cost a fifth less.
pub const QUANTUM_BYTES: usize = 1024 * 1024;

/// Plaintext that a connection must have read when hyper rests, to go on: a record of TLS.
pub const QUANTUM_STEP_BYTES: usize = 16 * 1024;

/// Bytes of an answer that waits until the others that are ready have theirs: of a larger one, what
/// it costs to wake the client is the smaller part.
pub const SMALL_ANSWER_BYTES: usize = 32 * 1024;

/// Small answers of a thread, without larger ones and uploads between them, after which they wait.
pub const SMALL_ANSWERS_IN_A_ROW: usize = 64;

/// After how many turns of its tasks a thread looks for new events. After tokio's usual 61, of a
/// quantum each, small requests beside uploads would wait noticeably longer.
pub const EVENT_INTERVAL: u32 = 16;

/// Plaintext that rustls takes and seals before the first byte must go to the socket, a
/// connection.
pub const TLS_WRITE_BYTES: usize = 256 * 1024;

/// Bytes of a request's body that hyper reads at once, and of a response that it queues.
pub const HTTP_BUFFER_BYTES: usize = 64 * 1024;

/// Bytes of a request's first line and headers that HTTP takes: what the buffer holds in any case.
/// S3 takes less (`coffer_s3::limits::HEAD_MAX_BYTES`), so that a request with somewhat more is
/// heard out and its connection stays; far above that it ends.
pub const HEADER_BYTES: usize = HTTP_BUFFER_BYTES;

/// Headers of a request. hyper's own limit of 100 costs an allocation less, and would refuse the
/// metadata that S3 allows where it is of many small entries.
pub const HEADERS_MAX: usize = 256;

/// Findings that `coffer prove` tells one by one.
pub const FINDINGS_MAX: usize = 1_000;

/// How long ago a blob of odd length was written last, if it may be uploaded right now: an upload
/// that does not progress is cut off much earlier.
pub const UNFINISHED_UPLOAD: Duration = Duration::from_secs(600);

/// How often the keystore of a running server is looked at before a copy counts as damaged.
pub const KEYSTORE_LOOKS: usize = 5;

/// How long is waited between two looks.
pub const KEYSTORE_PAUSE: Duration = Duration::from_millis(100);

/// A canary that lies in a catalog, in bytes.
pub const CANARY_SMALL_BYTES: usize = 5_000;

/// A canary that lies in a blob, in bytes.
pub const CANARY_LARGE_BYTES: usize = 1 << 20;

/// The longest passphrase or PIN, in bytes.
pub const PASSPHRASE_MAX_BYTES: usize = 1024;

/// The shortest passphrase that is taken for a new one, in bytes.
pub const PASSPHRASE_MIN_BYTES: usize = 8;

/// Connections that the kernel keeps waiting for us to accept, a listener.
pub const ACCEPT_BACKLOG: u32 = 4096;

/// Connections to the administration listener at once.
pub const ADMIN_CONNECTIONS: usize = 256;

/// Connections to it beyond these, which get to see health and metrics and nothing else: they are
/// given when all others are at work.
pub const ADMIN_PROBES: usize = 16;

/// One address holds at most all slots but one in so many.
pub const SLOTS_FOR_OTHERS: usize = 8;

/// One subject asks by at most all slots but one in so many, if they are shared.
pub const SLOTS_FOR_OTHER_SUBJECTS: usize = 2;

/// From how many slots on they are shared between subjects.
pub const SLOTS_SHARED_FROM: usize = 16;

/// Requests that one access key may have under way, for each that could still begin: alone, it has
/// half of all at most.
pub const PERMITS_KEY_TO_FREE: usize = 1;

/// Those of one address, which many keys may share: three quarters of all at most.
pub const PERMITS_ADDRESS_TO_FREE: usize = 3;

/// Which part of all requests those may have together that claim no access key: half.
pub const PERMITS_TO_UNCLAIMED: usize = 2;

/// From how many requests at once on they are shared like this.
pub const PERMITS_SHARED_FROM: usize = 16;

/// Connections that were told to leave and may still be there, beyond those that count.
pub const LEAVING_MAX: usize = 64;

/// How long a connection that was told to leave may take to end, if nothing is under way on it.
pub const LEAVING_TIME: Duration = Duration::from_secs(1);

/// How often a newcomer looks for a connection that has become idle, while all are in use.
pub const SLOT_LOOK: Duration = Duration::from_millis(100);

/// Bytes of a request in plain HTTP that are read to be thrown away.
pub const PLAIN_REQUEST_BYTES: u64 = 64 * 1024;

/// Bytes of a PROXY header of version 2, without its first 16: addresses and a few additions.
pub const PROXY_HEADER_BYTES: usize = 1024;

/// Bytes of a PROXY header of version 1 (its specification).
pub const PROXY_LINE_BYTES: usize = 107;

/// Addresses that a request may have passed through, as its headers tell.
pub const FORWARDED_HOPS_MAX: usize = 16;

/// Open files that are needed besides those of connections and requests: databases and listeners.
pub const OTHER_FILES: usize = 1024;

/// Pause after the system refused us a new connection (out of files, for example).
pub const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Threads for calls that block (disk). They start when needed and end when idle.
pub const BLOCKING_THREADS: usize = 128;

/// How long blocking calls may take to end when all else has.
pub const END_WAIT: Duration = Duration::from_secs(2);

/// Rows of a page of `coffer offline ls`.
pub const OFFLINE_PAGE: usize = 1000;

/// How often the certificate of a running server is looked at, for renewal or replacement.
pub const CERTIFICATE_CHECK: Duration = Duration::from_secs(12 * 3600);

/// How often is asked whether the clock was set, after which the certificate is looked at, too.
pub const CLOCK_LOOK: Duration = Duration::from_secs(10);

/// By how much a clock is off that was set, not steered.
pub const CLOCK_JUMP: Duration = Duration::from_secs(60);

/// 2026-01-01, since 1970: a clock that shows an earlier time is wrong.
pub const CLOCK_FLOOR: Duration = Duration::from_secs(1_767_225_600);

/// A certificate of the local authority is renewed when it has less than this left.
pub const CERTIFICATE_RENEW_DAYS: u64 = 30;

/// How long a server certificate of the local authority is valid. With the days before, Apple's
/// clients refuse more than 825.
pub const CERTIFICATE_DAYS: u64 = 397;

/// How long before it was made it begins: our clock, or a client's, may be wrong.
pub const CERTIFICATE_DAYS_BEFORE: u64 = 90;

/// Validity of the local authority itself: 20 years, longer than a server lives, so that
/// `ca.pem` need not be distributed twice. Its end is not watched.
pub const AUTHORITY_DAYS: u64 = 20 * 365;

/// How often a command looks how far a rotation is.
pub const ROTATION_LOOK: Duration = Duration::from_millis(200);

/// After so many looks at one that waits for copies, the command says so.
pub const ROTATION_WAIT_LOOKS: u32 = 25;

/// Bytes of an export that is read from a file.
pub const EXPORT_FILE_BYTES: u64 = coffer_keys::limits::EXPORT_MAX_BYTES as u64;

/// Bytes of a receipt that is read from a file; one of 10,000 buckets has 2 MB.
pub const RECEIPT_BYTES: u64 = 16 * 1024 * 1024;

/// Limits that a configuration file can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// S3 connections at once. For more, idle ones are closed; while all are at work, more wait.
    pub connections: usize,
    /// Of them, those of one address, and of one network of IPv6. None: seven eighths of all.
    pub connections_per_address: Option<NonZeroUsize>,
    /// Of them, those by which one subject asks. None: half of all.
    pub connections_per_subject: Option<NonZeroUsize>,
    /// S3 requests at once, shared by address and access key. More wait, then get 503 SlowDown.
    pub requests: usize,
    /// How long a request waits for its turn before it gets 503 SlowDown.
    pub request_wait_seconds: u64,
    /// How long a TLS handshake may take.
    pub handshake_timeout_seconds: u64,
    /// How long a connection may be idle, and then how long a request's headers may take.
    pub header_timeout_seconds: u64,
    /// How long one may be idle that has made no signed request yet.
    pub sign_in_timeout_seconds: u64,
    /// How long a client may go without moving `progress_min_bytes` while the server waits for
    /// it, in either direction.
    pub progress_timeout_seconds: u64,
    /// What a client must move in `progress_timeout_seconds`.
    pub progress_min_bytes: u64,
    /// Failed sign-ins from one address within a minute, after which it is not heard for as long:
    /// for each access key over S3, for all together by administration.
    pub sign_in_failures: u32,
    /// Multipart uploads under way that one subject has begun, in all buckets.
    pub uploads_per_subject: usize,
    /// Buckets that one subject has made over S3.
    pub buckets_per_subject: usize,
    /// How long requests in flight may take to end after SIGTERM.
    pub shutdown_timeout_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            connections_per_address: None,
            connections_per_subject: None,
            requests: 512,
            request_wait_seconds: 10,
            handshake_timeout_seconds: 10,
            header_timeout_seconds: 60,
            sign_in_timeout_seconds: 15,
            progress_timeout_seconds: 60,
            progress_min_bytes: 60 * 1024,
            sign_in_failures: coffer_vault::limits::SIGN_IN_FAILURES,
            uploads_per_subject: coffer_vault::limits::UPLOADS_PER_SUBJECT,
            buckets_per_subject: coffer_vault::limits::BUCKETS_PER_SUBJECT,
            shutdown_timeout_seconds: 30,
        }
    }
}

impl Limits {
    /// What one subject may take of the vault.
    pub fn of_subjects(&self) -> SubjectLimits {
        SubjectLimits {
            uploads: self.uploads_per_subject,
            buckets: self.buckets_per_subject,
        }
    }

    /// How many connections one address holds at most, if that is said.
    pub fn per_address(&self) -> Option<usize> {
        self.connections_per_address.map(NonZeroUsize::get)
    }

    /// By how many of so many connections one subject asks at most. A few are not shared.
    pub fn per_subject(&self, connections: usize) -> usize {
        let shared = match connections {
            0..SLOTS_SHARED_FROM => connections,
            more => more - more / SLOTS_FOR_OTHER_SUBJECTS,
        };
        self.connections_per_subject
            .map_or(shared, NonZeroUsize::get)
    }

    /// How long a TLS handshake may take.
    pub fn handshake_timeout(&self) -> Duration {
        Duration::from_secs(self.handshake_timeout_seconds)
    }

    /// How long a connection may be idle or send headers.
    pub fn header_timeout(&self) -> Duration {
        Duration::from_secs(self.header_timeout_seconds)
    }

    /// How long a connection may be idle that has not signed in.
    pub fn sign_in_timeout(&self) -> Duration {
        Duration::from_secs(self.sign_in_timeout_seconds)
    }

    /// How long requests in flight may take to end.
    pub fn shutdown_timeout(&self) -> Duration {
        Duration::from_secs(self.shutdown_timeout_seconds)
    }

    /// The first key whose value makes no sense, if any.
    pub fn nonsense(&self) -> Option<&'static str> {
        [
            ("connections", self.connections as u64),
            ("requests", self.requests as u64),
            ("handshake-timeout-seconds", self.handshake_timeout_seconds),
            ("header-timeout-seconds", self.header_timeout_seconds),
            ("sign-in-timeout-seconds", self.sign_in_timeout_seconds),
            ("sign-in-failures", u64::from(self.sign_in_failures)),
            ("progress-timeout-seconds", self.progress_timeout_seconds),
            ("progress-min-bytes", self.progress_min_bytes),
            ("uploads-per-subject", self.uploads_per_subject as u64),
            ("buckets-per-subject", self.buckets_per_subject as u64),
        ]
        .into_iter()
        .find_map(|(key, value)| (value == 0).then_some(key))
    }
}

/// How often a verification without a server tells how far it is.
pub const OFFLINE_PROGRESS: Duration = Duration::from_millis(200);

/// How often it is looked whether the data folder is still there under its name.
pub const FOLDER_LOOK: Duration = Duration::from_secs(1);

/// Connections to the data port at once: one in so many of those to S3.
pub const DATA_CONNECTIONS_SHARE: usize = 4;

/// But at least so many.
pub const DATA_CONNECTIONS_MIN: usize = 16;

/// Bytes of the head of a request at the data port.
pub const DATA_HEAD_BYTES: usize = 4 * 1024;

/// Header fields in it.
pub const DATA_HEADERS_MAX: usize = 32;

/// How long it may take, once it has begun.
pub const DATA_HEAD_TIME: Duration = Duration::from_secs(10);

/// Sealed bytes that are sent before it is looked whether the next are in the page cache.
pub const SEND_WINDOW_BYTES: u64 = 1024 * 1024;

/// Plaintext of a record of TLS, at most.
pub const TLS_RECORD_BYTES: usize = 16 * 1024;

/// Bytes of a file that are sealed and sent at a time, where the kernel does not do it.
pub const TLS_FILE_BYTES: usize = 4 * TLS_RECORD_BYTES;

/// Records that the kernel seals with the keys of a connection to the data port. AES-GCM is good
/// for 2^24.5 (RFC 8446, section 5.5).
pub const TLS_RECORDS_MAX: u64 = 1 << 24;

/// Bytes of a refused request that are read and thrown away, so that its client gets to see why.
pub const DATA_DRAIN_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// So many at once.
pub const DATA_DRAIN_BYTES: usize = 64 * 1024;

/// How long they are read.
pub const DATA_DRAIN_TIME: Duration = Duration::from_secs(10);
