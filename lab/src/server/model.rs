//! The models of a server, and coffer beside them.

use clap::ValueEnum;

use crate::contender::{Contender, Placement};
use crate::host::coffer_server;

/// How a server divides its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Model {
    /// One thread after the other's request, without encryption.
    Plain,
    /// One thread for all requests.
    One,
    /// A thread for each request.
    ThreadPerRequest,
    /// A process for each request.
    ProcessPerRequest,
    /// As many threads as cores.
    Pool,
    /// Tasks on an asynchronous runtime.
    Async,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Plain,
        Self::One,
        Self::ThreadPerRequest,
        Self::ProcessPerRequest,
        Self::Pool,
        Self::Async,
    ];

    /// Whether what it sends is encrypted.
    pub fn encrypts(self) -> bool {
        self != Self::Plain
    }

    /// As the command line of the server calls it.
    pub fn argument(self) -> String {
        self.to_possible_value()
            .map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// As it stands in tables.
    pub fn contender(self) -> Contender {
        let user = |name| Contender::new(name, Placement::User, "AES-256-GCM by aws-lc-rs");
        match self {
            Self::Plain => Contender::new(
                "no encryption, one process",
                Placement::None,
                "poll, one thread",
            ),
            Self::One => user("one process").set("poll, one thread, one request after the other"),
            Self::ThreadPerRequest => user("a thread for each request"),
            Self::ProcessPerRequest => user("a process for each request")
                .set("fork and exec, socket and content handed over")
                .set(
                    "A's server only forked: here the figure holds the loading of a program for \
                     each request, too",
                ),
            Self::Pool => user("a pool of threads").set("as many threads as cores"),
            Self::Async => user("asynchronous").set("tokio, a task for each connection"),
        }
    }
}

/// coffer, which does more than the models: it authorises each request, and what it keeps lies
/// sealed on the disk.
pub(super) fn coffer() -> Contender {
    Contender::new("coffer", Placement::User, "coffer serve")
        .set(
            "S3 over TLS 1.3, AES-256-GCM, connections kept alive; each request signed, as one URL",
        )
        .set(
            "sends ranges of one object, opened from the page cache and encrypted again into \
             records",
        )
        .set(
            "stores an object for each client, opened from records and sealed again, durable on \
             the disk before it answers; the file by one request",
        )
        .available(coffer_server::availability())
}
