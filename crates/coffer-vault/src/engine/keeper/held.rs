//! One's own lease: taken, renewed, lost and given back.

use std::time::Duration;

use coffer_replica::{CopyId, FoundLease, Lease, ReplicaError};
use futures::FutureExt;
use futures::future::select_ok;
use tokio::time::timeout;

use super::{Seen, Turn, Work};
use crate::fence::ServingRight;
use crate::limits::{LEASE_ASKED_AGAIN_AFTER, LEASE_LASTS, LEASE_MARGIN};

impl Work {
    pub(super) async fn take(&mut self, found: Option<&FoundLease>) {
        let before = found.map(|found| &found.lease);
        let lasts_ms = u64::try_from(LEASE_LASTS.as_millis()).unwrap_or(u64::MAX);
        self.own = [CopyId::random(), self.own[0]];
        let next = Lease::taken(before, self.own[0], self.address.clone(), lasts_ms);
        let asked = ServingRight::now();
        match self.place.put(&next, found).await {
            Ok(Some(held)) => self.hold(held, asked),
            // Another was faster: it is looked at next.
            Ok(None) => self.seen = None,
            Err(error) => {
                self.not_reached(&error);
                self.tell(Turn::Unknown);
            }
        }
    }

    fn hold(&mut self, held: FoundLease, asked: Duration) {
        tracing::info!(number = held.lease.number, "this gateway has the lease");
        (self.seen, self.asked, self.free_since) = (None, None, None);
        let right = ServingRight::default();
        right.extend(asked + LEASE_LASTS - LEASE_MARGIN);
        *self.right.lock() = right;
        self.held = Some(held);
        self.others.send_replace(Seen::Kept);
        self.tell(Turn::Mine);
    }

    /// Whether it is renewed; if not, it is tried again soon, or was lost.
    pub(super) async fn renew(&mut self) -> bool {
        let Some(held) = self.held.clone() else {
            return false;
        };
        // The same renewal may have been done when it was asked for before: others count from then.
        let asked = *self.asked.get_or_insert_with(ServingRight::now);
        let right = self.right.lock().clone();
        match self.put_renewal(&held).await {
            Ok(Some(held)) if right.holds() => {
                right.extend(asked + LEASE_LASTS - LEASE_MARGIN);
                (self.held, self.asked) = (Some(held), None);
            }
            Ok(_) => self.lose("another has it, or it was renewed too late"),
            Err(error) if right.holds() => {
                tracing::warn!(%error, "the lease could not be renewed yet");
            }
            Err(error) => self.lose(&error.to_string()),
        }
        self.asked.is_none() && self.held.is_some()
    }

    /// A request that is answered late, or never, costs no lease: it is asked for once more beside
    /// it. Both put the same in place of the same, and find it done where the other did it.
    async fn put_renewal(&self, held: &FoundLease) -> Result<Option<FoundLease>, ReplicaError> {
        let next = held.lease.renewed();
        let mut first = self.place.put(&next, Some(held)).boxed();
        if let Ok(done) = timeout(LEASE_ASKED_AGAIN_AFTER, &mut first).await {
            return done;
        }
        let again = self.place.put(&next, Some(held)).boxed();
        let (done, _) = select_ok([first, again]).await?;
        Ok(done)
    }

    /// It may be another's by now.
    fn lose(&mut self, why: &str) {
        self.right.lock().end();
        (self.held, self.seen, self.asked) = (None, None, None);
        tracing::warn!(why, "this gateway has lost the lease");
        self.tell(Turn::Unknown);
    }

    pub(super) async fn give_back(&mut self) {
        self.right.lock().end();
        if let Some(held) = self.held.take()
            && let Err(error) = self.place.put(&held.lease.over(), Some(&held)).await
        {
            tracing::info!(%error, "the lease could not be given back, and ends by itself");
        }
    }
}
