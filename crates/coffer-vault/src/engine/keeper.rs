//! Keeping the lease: looking at another's, taking one that has ended, renewing one's own.
//!
//! A lease has ended for others when it was not seen to change for as long as it says it lasts, by
//! their own clock. It has ended for its holder sooner: the holder counts from before it asked for
//! the renewal, and takes off a margin for clocks that run at different speeds.

mod held;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coffer_replica::{CopyId, FoundLease, Lease, LeasePlace, Place, ReplicaError, Store};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::blocking::blocking;
use crate::error::Result;
use crate::fence::ServingRight;
use crate::limits::{LEASE_HESITATES, LEASE_LOOKS_EVERY, LEASE_RENEWED_EVERY, LEASE_RETRIED_AFTER};

/// Whose turn it is to serve, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// None has it, or it could not be asked.
    Unknown,
    /// Another gateway's, which takes requests at this address.
    Other {
        /// A host and a port.
        address: String,
    },
    /// This one's.
    Mine,
}

/// What was seen of another gateway's lease since this one looks.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    /// Not for long enough to tell.
    NotYet,
    /// It is renewed in this store, or none has it.
    Kept,
    /// It was not renewed for as long as it says it lasts, and has this address.
    Silent(String),
}

/// What keeps the lease of one gateway, in a task of its own.
pub struct LeaseKeeper {
    turns: watch::Receiver<Turn>,
    others: watch::Receiver<Seen>,
    wants: watch::Sender<bool>,
    right: Term,
    hesitation: Hesitation,
    address: String,
    task: JoinHandle<()>,
}

/// Whether a lease that is free is left to other gateways for a while: to be said where this one's
/// disk has no room. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Hesitation(Arc<AtomicBool>);

impl Hesitation {
    /// It is from now on, or is not any more.
    pub fn set(&self, hesitates: bool) {
        self.0.store(hesitates, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The right of the last time that the lease was taken. Each time has one of its own, so that what
/// was begun under one never goes on under another.
type Term = Arc<Mutex<ServingRight>>;

struct Work {
    place: LeasePlace,
    /// What this one's lease is named by, and the one before it. Each taking has a name of its own:
    /// so no lease is byte for byte one that was there before, also where that was removed.
    own: [CopyId; 2],
    address: String,
    turns: watch::Sender<Turn>,
    others: watch::Sender<Seen>,
    wants: watch::Receiver<bool>,
    right: Term,
    hesitation: Hesitation,
    /// Since when the lease was seen to be free.
    free_since: Option<Duration>,
    /// When the renewal was asked for first that is not answered yet.
    asked: Option<Duration>,
    /// The lease as it was seen last, and when it was seen so for the first time.
    seen: Option<(FoundLease, Duration)>,
    /// When it was read last.
    looked: Duration,
    /// One's own.
    held: Option<FoundLease>,
    /// That what lies there is no lease was told.
    is_told: bool,
}

impl LeaseKeeper {
    /// Looks at the lease of this store from now on, for a gateway that takes requests at this
    /// address, after it was tried whether the store is fit.
    ///
    /// # Errors
    /// [`ReplicaError::NoConditions`], [`ReplicaError::NoSwap`]; of the store.
    pub async fn begin(from: &Place, address: String) -> Result<Self> {
        let from = from.clone();
        let store = blocking(move || Ok(from.open(true)?)).await?;
        Self::begin_at(store, address, tokio::spawn).await
    }

    /// As [`LeaseKeeper::begin`], of a store that is open; `spawn` has the task run.
    pub(crate) async fn begin_at(
        store: Store,
        address: String,
        spawn: impl FnOnce(BoxFuture<'static, ()>) -> JoinHandle<()>,
    ) -> Result<Self> {
        let place = LeasePlace::new(store);
        place.probe().await?;
        let (turns, seen_turns) = watch::channel(Turn::Unknown);
        let (others, seen_others) = watch::channel(Seen::NotYet);
        let (wants, seen_wants) = watch::channel(false);
        let (right, hesitation) = (Term::default(), Hesitation::default());
        let work = Work {
            place,
            own: [CopyId::random(), CopyId::random()],
            address: address.clone(),
            turns,
            others,
            wants: seen_wants,
            right: right.clone(),
            hesitation: hesitation.clone(),
            free_since: None,
            asked: None,
            seen: None,
            looked: Duration::ZERO,
            held: None,
            is_told: false,
        };
        Ok(Self {
            turns: seen_turns,
            others: seen_others,
            wants,
            right,
            hesitation,
            address,
            task: spawn(work.run().boxed()),
        })
    }

    /// Where other gateways find this one, when it serves.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whose turn it is.
    pub fn turns(&self) -> watch::Receiver<Turn> {
        self.turns.clone()
    }

    /// The address in a lease that another gateway has left, and that this one has never seen to be
    /// renewed: the other is gone, or renews its lease in another store, of which this one is a
    /// copy. Waits until it is known.
    pub async fn silent_owner(&self) -> Option<String> {
        let mut others = self.others.clone();
        let seen = others.wait_for(|seen| *seen != Seen::NotYet).await.ok()?;
        match &*seen {
            Seen::Silent(address) if *address != self.address => Some(address.clone()),
            Seen::Silent(_) | Seen::Kept | Seen::NotYet => None,
        }
    }

    /// The right to serve of this time that the lease is held, or was.
    pub fn right(&self) -> ServingRight {
        self.right.lock().clone()
    }

    /// How it is said that this one rather leaves the lease to others.
    pub fn hesitation(&self) -> Hesitation {
        self.hesitation.clone()
    }

    /// Takes the lease as soon as it is free; or takes it no more, and gives back one that is held.
    pub fn wants(&self, wants: bool) {
        self.wants.send_replace(wants);
    }

    /// Waits until what keeps the lease has ended, which it does by itself only where it fails.
    pub async fn stopped(&self) {
        let mut turns = self.turns.clone();
        while turns.changed().await.is_ok() {}
    }

    /// Gives the lease back, if it is held, and ends. What is served must have ended.
    pub async fn end(self) {
        // A renewal under way is waited for: the lease that is given back is the newest.
        drop(self.wants);
        let _ = self.task.await;
    }
}

impl Work {
    async fn run(mut self) {
        loop {
            let wait = if self.held.is_some() && !*self.wants.borrow() {
                self.give_back().await;
                self.tell(Turn::Unknown);
                LEASE_LOOKS_EVERY
            } else if self.held.is_some() {
                if self.renew().await {
                    LEASE_RENEWED_EVERY
                } else {
                    LEASE_RETRIED_AFTER
                }
            } else {
                self.look().await;
                LEASE_LOOKS_EVERY
            };
            tokio::select! {
                biased;
                () = sleep(wait) => {}
                changed = self.wants.changed() => if changed.is_err() {
                    return self.give_back().await;
                },
            }
        }
    }

    /// Looks at another's lease, and takes it if it has ended.
    async fn look(&mut self) {
        // Before it is asked: what is seen is at least as new.
        let now = ServingRight::now();
        let found = match self.place.read().await {
            Ok(found) => found,
            Err(error) => {
                self.not_reached(&error);
                // What was seen is not there any more: it may come back as another's.
                self.seen = self.seen.take().filter(|_| error.is_passing());
                if !self.may_last() {
                    self.tell(Turn::Unknown);
                }
                return;
            }
        };
        (self.is_told, self.looked) = (false, now);
        let is_free = match (&found, &self.seen) {
            (None, _) => {
                self.seen = None;
                true
            }
            // Its own is of a time that has ended, or of a taking whose answer was lost.
            (Some(found), _) if found.lease.is_over || self.is_own(&found.lease) => {
                self.seen = None;
                true
            }
            (Some(found), Some((seen, since))) if seen.lease == found.lease => {
                now.saturating_sub(*since) > Duration::from_millis(found.lease.lasts_ms)
            }
            (Some(found), before) => {
                if before.is_some() {
                    self.others.send_replace(Seen::Kept);
                }
                self.seen = Some((found.clone(), ServingRight::now()));
                false
            }
        };
        if is_free {
            self.note_silence(found.as_ref());
        }
        let wants = *self.wants.borrow();
        if is_free && wants && self.is_due(now) {
            return self.take(found.as_ref()).await;
        }
        if !is_free {
            self.free_since = None;
        }
        self.tell(match found {
            Some(found) if !is_free => Turn::Other {
                address: found.lease.address,
            },
            _ => Turn::Unknown,
        });
    }

    /// A lease is free: whether another has left it that was never seen to renew it.
    fn note_silence(&self, found: Option<&FoundLease>) {
        let is_left = |lease: &&Lease| !lease.is_over && !self.is_own(lease);
        let left = found.map(|found| &found.lease).filter(is_left);
        self.others.send_if_modified(|seen| {
            let is_new = *seen == Seen::NotYet;
            if is_new {
                *seen = left.map_or(Seen::Kept, |lease| Seen::Silent(lease.address.clone()));
            }
            is_new
        });
    }

    fn is_own(&self, lease: &Lease) -> bool {
        self.own.contains(&lease.gateway)
    }

    /// Whether a lease that is free is to be taken. One that none takes is, also where the disk is
    /// full: what is there is answered then, and what makes room is done.
    fn is_due(&mut self, now: Duration) -> bool {
        let since = *self.free_since.get_or_insert(now);
        !self.hesitation.is_set() || now.saturating_sub(since) > LEASE_HESITATES
    }

    fn not_reached(&mut self, error: &ReplicaError) {
        let is_passing = error.is_passing();
        if is_passing || self.is_told {
            tracing::debug!(%error, "the lease could not be asked for");
        } else {
            tracing::error!(
                %error,
                "the engine's lease is none that is known, so no gateway takes it: where no newer \
                 version wrote it, remove `lease.json` from the store"
            );
        }
        self.is_told |= !is_passing;
    }

    /// Whether another's lease that was read last lasts, so far as it is known: until then one that
    /// can't be read says nothing new of whose turn it is.
    fn may_last(&self) -> bool {
        self.seen.as_ref().is_some_and(|(seen, _)| {
            let since = ServingRight::now().saturating_sub(self.looked);
            since <= Duration::from_millis(seen.lease.lasts_ms)
        })
    }

    fn tell(&self, turn: Turn) {
        self.turns.send_if_modified(|told| {
            let is_new = *told != turn;
            *told = turn;
            is_new
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests;
