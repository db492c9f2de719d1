//! How an erase ends: catalogs and keys are let go of, the receipt is signed and kept, and the
//! folders go.

use std::sync::Arc;

use coffer_durable::now_ms;
use coffer_keys::Erased;
use coffer_keys::receipt::Receipt;
use coffer_seal::BucketId;
use futures::future::join_all;

use super::journal::{EraseDraft, last_audit_record};
use crate::blocking::blocking;
use crate::buckets::remove_doomed_folder;
use crate::error::{Result, VaultError};
use crate::open_buckets::OpenBucket;
use crate::vault::{Inner, Vault};

/// How an erase left those who were cut off.
pub(super) struct CutOff {
    pub(super) connections: Option<usize>,
    /// Whether a request was still there when the wait was over; none where it was not waited for.
    pub(super) is_request_left: Option<bool>,
    /// Whether an earlier attempt had cut off others: how that ended was not looked at.
    pub(super) was_cut_off_before: bool,
}

impl Vault {
    /// Lets go of the catalogs and their keys.
    pub(super) async fn let_go(&self, ids: &[BucketId], open: Vec<Arc<OpenBucket>>) {
        for id in ids {
            self.inner.open_buckets.let_go(*id);
        }
        join_all(open.iter().map(|bucket| bucket.catalog.abandon())).await;
        // If they are spared, what they committed last counts.
        for bucket in open {
            let commits = &self.inner.freshness.commits;
            commits.seen(bucket.id, bucket.catalog.last_commit());
        }
    }

    /// What others of an engine have in memory and on their disks stands among what may remain.
    fn where_checked(&self) -> &'static str {
        if self.inner.gate.is_of_engine() {
            " at the gateway that served"
        } else {
            ""
        }
    }

    pub(super) async fn finish(
        &self,
        draft: EraseDraft,
        erased: Erased,
        cut_off: CutOff,
    ) -> Result<Receipt> {
        for id in draft.bucket_ids() {
            self.inner.open_buckets.forget(id);
        }
        let cut = "reads and writes under way were cut off before the erase was acknowledged";
        let is_before = cut_off.was_cut_off_before;
        let mut checked = vec![match cut_off.connections {
            Some(connections) if is_before => format!(
                "{cut}, and {connections} connections with them, beside those that an earlier \
                 attempt at the erase had cut off"
            ),
            Some(connections) => format!("{cut}, and {connections} connections with them"),
            None => format!("{cut}, when it was first asked for"),
        }];
        checked.extend(draft.locks.clone());
        let mut left = Vec::new();
        let held = "gives out nothing, and the keys and the plaintext that it holds in memory \
                    go when it ends";
        match cut_off.is_request_left {
            Some(true) => left.push(format!(
                "a reader inside the server had not ended when the erase was acknowledged; it \
                 {held}"
            )),
            Some(false) if !is_before => checked.push(format!(
                "no reader and no writer was left{}, and the catalogs were closed; the keys in \
                 memory went with them, and buffers that had held plaintext were zeroized",
                self.where_checked()
            )),
            _ => {}
        }
        if is_before {
            left.push(format!(
                "whether every reader inside the server that was cut off when the erase was first \
                 asked for had ended was not looked at when it was completed; one that had not \
                 {held}"
            ));
        }
        self.inner.copies.carry_all(&self.inner.keystore).await;
        let inner = self.inner.clone();
        let receipt = blocking(move || {
            let last = last_audit_record(&inner.audit);
            let kept = (&*inner.keystore, &inner.copies, &inner.system);
            let receipt = draft.sign(kept, &erased, checked, left, last)?;
            inner.copies.note_pending(&receipt)?;
            let ids = draft.bucket_ids();
            let kept = (draft.level.id, draft.key_releases_kept());
            inner
                .system
                .finish_erase(draft.id(), &ids, kept, &receipt, now_ms())?;
            // There are no keys that would open them, unless an import brings them back.
            inner.open_buckets.unbar(&ids);
            Ok(receipt)
        })
        .await;
        // Whatever it was: "nothing was done" would be wrong.
        let receipt = receipt.map_err(|error| VaultError::ReceiptUnsettled {
            source: Box::new(error),
        })?;
        self.remove_doomed_folders_soon();
        Ok(receipt)
    }

    /// Removes, in the background, the folders of buckets that were erased.
    pub(crate) fn remove_doomed_folders_soon(&self) {
        let inner = self.inner.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = remove_doomed_folders(&inner) {
                tracing::warn!(%error, "an erased bucket's folder is left to the next start");
            }
        });
    }
}

fn remove_doomed_folders(inner: &Inner) -> Result<()> {
    for id in inner.system.doomed()? {
        remove_doomed_folder(inner, id)?;
    }
    Ok(())
}
