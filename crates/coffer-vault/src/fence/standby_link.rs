//! What a standby tells of itself, and how its promotion is asked for: between what follows the
//! copy and the states that are served of it.

use std::sync::Arc;
use std::time::Instant;

use coffer_audit::Event;
use coffer_durable::now_ms;
use coffer_replica::KnownHead;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::right::ServingRight;
use crate::error::{CopyError, Result, VaultError};

/// What a standby is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StandbyState {
    /// It serves the newest state that it has seen, or is about to.
    #[default]
    Following,
    /// The last attempt to follow failed, and it is tried again; the state before is served.
    Failing,
    /// It is being promoted.
    Promoting,
}

/// What keeps a standby from following, or from being whole.
pub type StandbyProblem = String;

/// How a standby stands.
#[derive(Clone, Debug, Default)]
pub struct StandbyStatus {
    /// The copy that it follows.
    pub url: String,
    /// What it is doing.
    pub state: StandbyState,
    /// What is wrong, if anything is.
    pub problem: Option<StandbyProblem>,
    /// The head whose state is served.
    pub head: Option<KnownHead>,
    /// All that was acknowledged before is served, in milliseconds since 1970.
    pub as_of_ms: i64,
    /// For how many seconds it has not been known to be what the copy has. What the original has
    /// not put there comes on top.
    pub lag_seconds: f64,
    /// How many states were served since the start.
    pub state_count: u64,
    /// How many bytes were fetched since the start.
    pub fetched_bytes: u64,
    /// How many blobs that are named could not be fetched.
    pub missing_count: u64,
    /// At which address the gateway serves that this one follows, if one does.
    pub gateway: Option<String>,
    /// By which head another standby was promoted, if one was: nothing comes any more.
    pub ended_by: Option<u64>,
}

/// What a promotion came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromotedStandby {
    /// All that was acknowledged before is there, in milliseconds since 1970.
    pub as_of_ms: i64,
    /// The head by which the original is fenced off; without the copy, the one that is served, and
    /// nothing fences the original off.
    pub head: KnownHead,
    /// How many blobs are missing.
    pub missing_count: u64,
}

type Answer<T> = oneshot::Sender<Result<T>>;

/// What is asked of what follows.
pub(crate) enum Asked {
    /// To be promoted; without the copy, if that is gone.
    Promotion {
        without_copy: bool,
        /// What the audit log is to say of it.
        event: Event,
        answer: Answer<PromotedStandby>,
    },
    /// To go on with what it follows, as the gateway of an engine that has its lease.
    TakingOver(ServingRight, Answer<()>),
    /// To look for what is new at once.
    Looking,
}

/// Held by what follows and by what is served. Clones are the same.
#[derive(Clone, Debug)]
pub struct StandbyLink {
    told: Arc<Mutex<(StandbyStatus, Option<Instant>)>>,
    asks: mpsc::Sender<Asked>,
    /// Whether it is the log of an engine, which is never promoted.
    is_of_engine: bool,
}

impl StandbyLink {
    /// Of a standby of this copy; with it, what takes the requests to promote it.
    pub(crate) fn new(url: String, is_of_engine: bool) -> (Self, mpsc::Receiver<Asked>) {
        let (asks, asked) = mpsc::channel(1);
        let status = StandbyStatus {
            url,
            ..StandbyStatus::default()
        };
        let told = Arc::new(Mutex::new((status, None)));
        let link = Self {
            told,
            asks,
            is_of_engine,
        };
        (link, asked)
    }

    /// Whether it follows the log of an engine.
    pub(crate) fn is_of_engine(&self) -> bool {
        self.is_of_engine
    }

    /// How it stands.
    pub fn status(&self) -> StandbyStatus {
        let told = self.told.lock();
        let (status, current_at) = &*told;
        let lag_seconds = match current_at {
            Some(at) => at.elapsed().as_secs_f64(),
            // What an earlier run left may be of long ago.
            None => (now_ms() - status.as_of_ms).max(0) as f64 / 1_000.0,
        };
        StandbyStatus {
            lag_seconds,
            ..status.clone()
        }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut StandbyStatus)) {
        change(&mut self.told.lock().0);
    }

    /// Notes at which address the gateway serves that this one follows.
    pub fn follows_gateway(&self, address: Option<String>) {
        self.change(|told| told.gateway = address);
    }

    /// What is served was all that the copy had at that time.
    pub(crate) fn is_current(&self, at: Instant) {
        self.told.lock().1 = Some(at);
    }

    /// Whether another standby was promoted by what is followed, as far as that was seen.
    pub fn is_ended(&self) -> bool {
        self.told.lock().0.ended_by.is_some()
    }

    /// Whether the last attempt to follow failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.told.lock().0.state == StandbyState::Failing
    }

    /// Has a gateway look at once for what the log that it follows has; not where that failed: it
    /// is tried again in time.
    pub fn look(&self) {
        if self.is_of_engine && !self.is_failing() {
            // If it is asked for something else, it looks soon.
            let _ = self.asks.try_send(Asked::Looking);
        }
    }

    /// Asks for the promotion, and waits until it is done; the audit log of what is served then
    /// tells of it by this event.
    pub(crate) async fn promote(
        &self,
        without_copy: bool,
        event: Event,
    ) -> Result<PromotedStandby> {
        if self.is_of_engine {
            return Err(CopyError::NoStandby.into());
        }
        let (answer, answered) = oneshot::channel();
        let asked = Asked::Promotion {
            without_copy,
            event,
            answer,
        };
        let sent = self.asks.try_send(asked);
        sent.map_err(|_| VaultError::Invalid {
            what: "this standby is being promoted already",
        })?;
        answered.await.map_err(|_| VaultError::ShuttingDown)?
    }

    /// Has a gateway go on with the log that it follows, and waits until it can.
    ///
    /// # Errors
    /// Of the store.
    pub async fn take_over(&self, right: ServingRight) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        let sent = self.asks.send(Asked::TakingOver(right, answer)).await;
        sent.map_err(|_| VaultError::ShuttingDown)?;
        answered.await.map_err(|_| VaultError::ShuttingDown)?
    }
}
