//! Subjects and access keys that expire: at their time, requests that they began are cut off.

use std::sync::Arc;
use std::time::Duration;

use coffer_durable::now_ms;

use crate::limits::EXPIRY_LOOK;
use crate::vault::{Inner, Vault};

impl Vault {
    /// Watches until the vault is gone.
    pub(crate) fn watch_expiries(&self) {
        let changed = self.inner.expiries_changed.clone();
        let vault = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            loop {
                // Not held while it sleeps: a vault that is not used any more must be able to go.
                let Some(pause) = vault.upgrade().map(|inner| inner.end_expired()) else {
                    return;
                };
                tokio::select! {
                    () = changed.notified() => {}
                    () = tokio::time::sleep(pause) => {}
                }
            }
        });
    }
}

impl Inner {
    /// Cuts off what has expired; gives the time until the next look.
    fn end_expired(&self) -> Duration {
        let now = now_ms();
        for entry in self.system.all_subjects() {
            for access_key_id in entry.cut_expired(now) {
                tracing::info!(access_key_id, subject = %entry.subject.id, "an access key expired");
            }
        }
        let next = self.system.next_expiry_ms();
        let left_ms = next.and_then(|next| u64::try_from(next - now).ok());
        left_ms.map_or(EXPIRY_LOOK, |ms| Duration::from_millis(ms).min(EXPIRY_LOOK))
    }
}
