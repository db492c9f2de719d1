//! The signals that ask the server to end, or to take its certificate anew.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;

pub mod closing;

/// The signals that ask the server to end: SIGTERM, and SIGINT from a terminal.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Catches them from now on.
    pub fn catch() -> Result<Self, Error> {
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

/// SIGHUP, which asks the server to look at its certificate's files.
#[derive(Debug)]
pub struct Reloads(Signal);

impl Reloads {
    /// Catches it from now on: one that comes before the server is ready waits until it is.
    pub fn catch() -> Result<Self, Error> {
        catch(SignalKind::hangup()).map(Self)
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}

fn catch(kind: SignalKind) -> Result<Signal, Error> {
    signal(kind).map_err(|source: io::Error| Error::System {
        doing: "catching signals",
        source,
    })
}
