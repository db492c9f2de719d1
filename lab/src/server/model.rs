//! The models of a server.

use clap::ValueEnum;

use crate::contender::{Contender, Placement};

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
            Self::ProcessPerRequest => {
                user("a process for each request").set("fork and exec, the socket handed over")
            }
            Self::Pool => user("a pool of threads").set("as many threads as cores"),
            Self::Async => user("asynchronous").set("tokio, a task for each connection"),
        }
    }
}
