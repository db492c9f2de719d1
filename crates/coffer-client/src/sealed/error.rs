//! How a sealed transfer fails. Each way asks for something else of the caller.

use std::io;

/// Why sealed bytes were not moved.
#[derive(Debug, thiserror::Error)]
pub enum SealedError {
    /// The answer over HTTPS is not one of this version of the protocol.
    #[error("the server's answer about a sealed transfer {problem}")]
    Answer {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No connection to the data port: by TLS it may still go.
    #[error(
        "the data port {address} cannot be reached: {source}; open that port on the way to the \
         server, or use --transfer tls"
    )]
    Unreachable {
        /// Host and port.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Something takes connections where the data port should be, and is none: by TLS it may still
    /// go.
    #[error(
        "at {address}, where the data port should be, is none: {problem}; forward that port to \
         the server, or use --transfer tls"
    )]
    NoDataPort {
        /// Host and port.
        address: String,
        /// What shows it.
        problem: &'static str,
    },
    /// Sealed transfer was demanded, and the server has no ticket to give.
    #[error(
        "the server gave no ticket for a sealed transfer in {seconds} s: it has as many transfers \
         as it takes (one user 256), or the bucket's level allows none any more; end what else \
         moves sealed, take fewer --jobs, or run this again later; --transfer auto goes by TLS then"
    )]
    NoTicket {
        /// How long it was waited for.
        seconds: u64,
    },
    /// There is no room at the server.
    #[error(
        "the server has no room for what was sent to its data port {address} (status 507): make \
         room there, and run this again"
    )]
    Full {
        /// Host and port.
        address: String,
    },
    /// The data port does not take the ticket: its time is over, it was used, or what it stood for
    /// was taken back.
    #[error("the data port {address} did not take the ticket: it answered with status {status}")]
    Refused {
        /// Host and port.
        address: String,
        /// Its status.
        status: u16,
    },
    /// The connection broke or stood still, as it also does when a right to the object ends.
    #[error("the data port {address} broke off after {done} of {of} sealed bytes: {source}")]
    Cut {
        /// Host and port.
        address: String,
        /// Sealed bytes that were moved.
        done: u64,
        /// Sealed bytes of the transfer.
        of: u64,
        /// Why.
        source: io::Error,
    },
    /// What came is not what the server sealed. Nothing of it was given out.
    #[error(
        "what came from the data port {address} is not what the server sealed ({what}): something \
         on the way changes it, or the server's disk has damaged it, which `coffer verify` there \
         tells; nothing of that was kept. --transfer tls goes another way"
    )]
    Altered {
        /// Host and port.
        address: String,
        /// Which bytes.
        what: &'static str,
    },
    /// What arrived at the server is not what was sealed here.
    #[error(
        "what arrived at the data port {address} does not open there: something on the way changed \
         it; nothing was stored. --transfer tls goes another way"
    )]
    Spoilt {
        /// Host and port.
        address: String,
    },
    /// The plaintext could not be read here, or not be written.
    #[error(transparent)]
    Local(io::Error),
}

impl SealedError {
    /// Whether the same may go well with a new ticket.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Cut { .. })
    }
}
