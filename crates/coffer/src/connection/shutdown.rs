//! How serving ends: nothing new, then nothing at all.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::error::Error;

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It has not begun.
    Serve,
    /// What is under way may end; nothing new begins.
    Drain,
    /// What is still under way is cut off.
    Abort,
}

/// Tells all parts of the server how far the end has come.
#[derive(Debug)]
pub struct Shutdown(watch::Sender<Phase>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::Sender::new(Phase::Serve))
    }
}

impl Shutdown {
    /// Moves on to a phase.
    pub fn enter(&self, phase: Phase) {
        self.0.send_replace(phase);
    }

    /// A listener to it.
    pub fn stop(&self) -> Stop {
        Stop(self.0.subscribe())
    }
}

/// Listens to a [`Shutdown`].
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<Phase>);

impl Stop {
    /// Waits until the end has come as far as `phase`, or the [`Shutdown`] is gone.
    pub async fn reached(&mut self, phase: Phase) {
        // An error says that the sender is gone: then the end has come as well.
        let _ = self.0.wait_for(|now| *now >= phase).await;
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn phases_are_reached_in_order() {
        let shutdown = Shutdown::default();
        let (mut drain, mut abort) = (shutdown.stop(), shutdown.stop());
        shutdown.enter(Phase::Drain);
        drain.reached(Phase::Drain).await;
        let short = std::time::Duration::from_millis(5);
        assert!(
            tokio::time::timeout(short, abort.reached(Phase::Abort))
                .await
                .is_err()
        );
        shutdown.enter(Phase::Abort);
        abort.reached(Phase::Abort).await;
        abort.reached(Phase::Drain).await;
    }
}
