//! Whether bytes go sealed, over a server's data port, and the lanes that they go by.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::Mutex;
use rustls::ClientConfig;
use tokio::time::{Instant, sleep};

use crate::limits::{TICKET_PAUSE, TICKET_WAIT};
use crate::mover::error::MoverError;
use crate::s3::{Client, ObjectName};
use crate::sealed::{Lane, SPOKEN_HEADER, SealedError, VERSION};

/// When sealed transfer is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// Where the bucket allows it, and the data port can be reached.
    Auto,
    /// Never.
    Tls,
    /// Always; else it is an error.
    Sealed,
}

/// Waits for a ticket, where it has to be one and the server has none to give.
#[derive(Debug, Default)]
pub(super) struct TicketWait {
    since: Option<Instant>,
}

impl TicketWait {
    /// Waits until it may be asked for again.
    ///
    /// # Errors
    /// [`SealedError::NoTicket`] once it has been waited for long enough.
    pub(super) async fn pause(&mut self) -> Result<(), SealedError> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= TICKET_WAIT {
            let seconds = TICKET_WAIT.as_secs();
            return Err(SealedError::NoTicket { seconds });
        }
        sleep(TICKET_PAUSE).await;
        Ok(())
    }
}

/// What is known of sealed transfer.
pub(super) struct SealedWay {
    wanted: Transfer,
    buckets: Mutex<HashMap<String, bool>>,
    /// Who asks first: the others wait for the answer, which mostly is theirs, too.
    turn: tokio::sync::Mutex<()>,
    /// Whether anything was asked.
    has_asked: AtomicBool,
    lanes: Mutex<Vec<Lane>>,
    /// Whom to trust where the data port speaks TLS.
    tls: Option<Arc<ClientConfig>>,
    /// Whether the data port could not be reached.
    is_closed: AtomicBool,
    /// Whether anything went by it.
    has_worked: AtomicBool,
}

impl SealedWay {
    pub(super) fn new(wanted: Transfer, tls: Option<Arc<ClientConfig>>) -> Self {
        Self {
            wanted,
            tls,
            buckets: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            has_asked: AtomicBool::new(false),
            lanes: Mutex::default(),
            is_closed: AtomicBool::new(false),
            has_worked: AtomicBool::new(false),
        }
    }

    /// Whether to ask for sealed transfer in a bucket. A server is asked once what a bucket allows.
    ///
    /// # Errors
    /// [`MoverError::NotSealed`] where it has to be so, and can't.
    pub(super) async fn is_wanted(
        &self,
        client: &Client,
        bucket: &str,
    ) -> Result<bool, MoverError> {
        if self.wanted == Transfer::Tls || self.is_closed.load(Relaxed) {
            return Ok(false);
        }
        let allows = match self.known(bucket) {
            Some(allows) => allows,
            None => self.asked(client, bucket).await?,
        };
        match (allows, self.wanted) {
            (false, Transfer::Sealed) => Err(MoverError::NotSealed {
                bucket: bucket.to_owned(),
            }),
            _ => Ok(allows),
        }
    }

    fn known(&self, bucket: &str) -> Option<bool> {
        self.buckets.lock().get(bucket).copied()
    }

    async fn asked(&self, client: &Client, bucket: &str) -> Result<bool, MoverError> {
        let turn = self.turn.lock().await;
        // Where the first had no answer, the others ask beside each other.
        let _turn = (!self.has_asked.load(Relaxed)).then_some(turn);
        if let Some(allows) = self.known(bucket) {
            return Ok(allows);
        }
        let answered = client.head_bucket(bucket).await;
        self.has_asked.store(true, Relaxed);
        let allows = match answered {
            Ok(headers) => {
                let spoken = headers.get(SPOKEN_HEADER).and_then(|it| it.to_str().ok());
                let version = VERSION.to_string();
                let mut spoken = spoken.unwrap_or_default().split(',');
                spoken.any(|spoken| spoken.trim() == version)
            }
            Err(error) if error.is_passing() => return Err(error.into()),
            // What was not answered is no word about sealed transfer.
            Err(error) if self.is_demanded() && error.is_absent() => {
                return Err(MoverError::Absent {
                    name: Box::new(ObjectName::new(bucket, "")),
                    has_bucket: false,
                });
            }
            Err(error) if self.is_demanded() => return Err(error.into()),
            // Who may use objects may not always ask about buckets; what is wrong with the bucket,
            // the request itself will tell.
            Err(_) => false,
        };
        self.buckets.lock().insert(bucket.to_owned(), allows);
        Ok(allows)
    }

    /// Whether what has a sealed form may go in no other way.
    pub(super) fn is_demanded(&self) -> bool {
        self.wanted == Transfer::Sealed
    }

    /// Whether to go on by TLS after this, from now on; true only the first time.
    pub(super) fn gives_up(&self, error: &SealedError) -> Option<bool> {
        let is_none = matches!(
            error,
            SealedError::Unreachable { .. } | SealedError::NoDataPort { .. }
        );
        (is_none && self.wanted == Transfer::Auto).then(|| !self.is_closed.swap(true, Relaxed))
    }

    /// The same after all attempts, where nothing ever went by the data port.
    pub(super) fn gives_up_at_last(&self) -> Option<bool> {
        let may = self.wanted == Transfer::Auto && !self.has_worked.load(Relaxed);
        may.then(|| !self.is_closed.swap(true, Relaxed))
    }

    /// A lane, which may have a connection.
    pub(super) fn lane(&self) -> Lane {
        if let Some(kept) = self.lanes.lock().pop() {
            return kept;
        }
        let lane = Lane::trusting(self.tls.clone());
        if self.wanted == Transfer::Auto && !self.has_worked.load(Relaxed) {
            // What else may be there would be waited for much longer.
            return lane.checking();
        }
        lane
    }

    /// Takes a lane back, by which all went well.
    pub(super) fn keep(&self, lane: Lane) {
        self.has_worked.store(true, Relaxed);
        self.lanes.lock().push(lane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tickets_are_waited_for_until_those_that_are_not_used_are_back() {
        let (began, mut wait) = (Instant::now(), TicketWait::default());
        let error = loop {
            if let Err(error) = wait.pause().await {
                break error;
            }
        };
        let told = error.to_string();
        assert!(
            told.contains("no ticket") && told.contains("75 s"),
            "{told}"
        );
        assert!(!error.is_passing(), "it is told, and not asked for again");
        assert_eq!(began.elapsed(), TICKET_WAIT);
    }
}
