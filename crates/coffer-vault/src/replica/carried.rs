//! The keystore that goes along with a copy: put by rounds, and told of on receipts that wait.

use coffer_audit::{Event, Outcome};
use coffer_replica::KeystoreRef;
use tokio::time::timeout;

use super::round::Round;
use crate::access::Act;
use crate::audit::SERVER;
use crate::blocking::blocking;
use crate::error::{CopyError, Result};
use crate::limits::COPY_KEYSTORE_WAIT;

impl Round {
    /// Puts the keystore, if one goes along and the copy has another, and settles receipts.
    pub(super) async fn carry(&self) -> Result<Option<KeystoreRef>> {
        if self.entry.keystore.is_none() {
            return Ok(None);
        }
        let inner = self.inner()?;
        let put = self
            .carrier
            .carry(&inner.copies.registry, &inner.keystore)
            .await?;
        let (id, name) = (self.entry.id, self.entry.name.clone());
        let entry = inner.copies.registry.of_id(id);
        let waits = entry.and_then(|entry| entry.keystore);
        if waits.is_none_or(|with| with.pending.is_empty()) {
            return Ok(put);
        }
        // A receipt that an erase has noted as waiting, and not kept yet, is not taken for gone.
        let _changing = inner.changing_buckets.lock().await;
        let inner = inner.clone();
        blocking(move || {
            let (system, keystore) = (&inner.system, &inner.keystore);
            let settled = { &inner.copies.registry }.settle_receipts(id, system, keystore)?;
            for receipt in settled {
                let event = Event::new(Act::CarryKeystore.name(), SERVER, Outcome::Done);
                let event = event.with("copy", &name).with("receipt", &receipt);
                inner.audit.note(event);
                tracing::info!(
                    copy = name,
                    receipt,
                    "a copy has taken the keystore that a receipt was waiting for"
                );
            }
            Ok(())
        })
        .await?;
        Ok(put)
    }

    /// Puts the keystore once more where it was changed since it was put: the catalogs that were
    /// read meanwhile may need keys that the one there lacks. Receipts are settled by the next.
    pub(super) async fn carry_changed(
        &self,
        put: Option<KeystoreRef>,
    ) -> Result<Option<KeystoreRef>> {
        let inner = self.inner()?;
        let has_changed = |put: &KeystoreRef| put.generation() != inner.keystore.generation();
        if !put.as_ref().is_some_and(has_changed) {
            return Ok(put);
        }
        // No longer than an erase waits, which may wait for who asks.
        let carried = self.carrier.carry(&inner.copies.registry, &inner.keystore);
        let carried = timeout(COPY_KEYSTORE_WAIT, carried).await;
        carried.map_err(|_| CopyError::NotReached)?
    }
}
