//! The signals that ask the server to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;

/// The signals that ask the server to end: SIGTERM, and SIGINT from a terminal.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Catches them from now on.
    pub fn catch() -> Result<Self, Error> {
        let catch = |kind| -> Result<Signal, Error> {
            signal(kind).map_err(|source: io::Error| Error::System {
                doing: "catching signals",
                source,
            })
        };
        Ok(Self {
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one; gives its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
