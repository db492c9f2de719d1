//! When it is held how far everything has come: with each administrative act, every few seconds,
//! and at the end.

use std::sync::Arc;

use coffer_durable::now_ms;

use crate::access::Role;
use crate::blocking::blocking;
use crate::error::{Result, VaultError};
use crate::freshness::Occasion;
use crate::limits::ANCHOR_EVERY;
use crate::open_buckets::see_commits;
use crate::vault::{Inner, Vault};

impl Vault {
    /// Holds an act that was done, before that is told.
    pub(crate) async fn hold_act(&self, role: Role) -> Result<()> {
        let occasion = match role {
            Role::DataUser => Occasion::Bucket,
            _ => Occasion::Act,
        };
        hold(self.inner.clone(), occasion).await
    }

    /// Holds, every few seconds, how far catalogs and all else have come, as long as the vault is
    /// there.
    pub(crate) fn start_holding(&self) {
        let inner = Arc::downgrade(&self.inner);
        let holding = tokio::spawn(async move {
            let mut is_failing = false;
            loop {
                tokio::time::sleep(ANCHOR_EVERY).await;
                let Some(inner) = inner.upgrade() else { return };
                see_all(&inner).await;
                let held = hold(inner, Occasion::Moment).await;
                if let (Err(error), false) = (&held, is_failing) {
                    tracing::warn!(%error, "how new the data is can't be written down for now");
                }
                is_failing = held.is_err();
            }
        });
        *self.inner.holding.lock() = Some(holding);
    }

    /// Ends that, once it is known how far the open catalogs have come.
    pub(crate) async fn stop_holding(&self) {
        let holding = self.inner.holding.lock().take();
        if let Some(holding) = holding {
            holding.abort();
            let _ = holding.await;
        }
        see_all(&self.inner).await;
    }

    /// Holds all, at the end.
    pub(crate) async fn hold_last(&self) {
        let inner = self.inner.clone();
        let keep = blocking(move || inner.lock_time.keep(&inner.system, now_ms()));
        if let Err(error) = keep.await {
            tracing::warn!(%error, "the time by which object locks end falls behind by the stop");
        }
        if let Err(error) = hold(self.inner.clone(), Occasion::Turn).await {
            tracing::error!(%error, "how new the data is could not be written down at the end");
        }
    }
}

async fn see_all(inner: &Inner) {
    for bucket in inner.open_buckets.all() {
        see_commits(bucket.id, &bucket.catalog, &inner.freshness.commits).await;
    }
}

async fn hold(inner: Arc<Inner>, occasion: Occasion) -> Result<()> {
    let hold = move || {
        let wall_ms = now_ms();
        if let Some(jump) = inner.lock_time.look(wall_ms) {
            inner.audit.note_lock_time(jump);
        }
        let kept = inner.lock_time.keep_when_due(&inner.system, wall_ms);
        let held = inner.freshness.hold(&inner.system, &inner.audit, occasion);
        kept.and(held)
    };
    let held = tokio::task::spawn_blocking(hold).await;
    held.map_err(|_| VaultError::ShuttingDown)?
}
