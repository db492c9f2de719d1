//! What becomes of erases that a stop interrupted, before anything is served.

use coffer_audit::{Event, Outcome};
use coffer_durable::now_ms;
use coffer_keys::{Erased, Keystore};

use super::destroy::{Destroyed, destroy_keys};
use super::journal::{EraseDraft, last_audit_record};
use crate::audit::{Audit, SERVER};
use crate::copies::Copies;
use crate::error::Result;
use crate::open_buckets::OpenBuckets;
use crate::system::{Kind, System};

/// Completes erases that have begun: from when its draft is kept, an erase is an order. Where the
/// keystore holds the keys still they are destroyed now; where it doesn't, opening it has completed
/// that. Then the receipt is signed. Whether there was one.
///
/// Where the keys can't be destroyed, the draft stays: see [`hide_ordered`]. One that is no order,
/// for it is of an earlier version, or of a database that was put back, is dropped.
pub(crate) fn complete_interrupted(
    system: &System,
    keystore: &Keystore,
    copies: &Copies,
    audit: &Audit,
) -> Result<bool> {
    let mut has_erased = false;
    for draft in system.documents::<EraseDraft>(Kind::Erase)? {
        // An erase of its level may have been completed just now.
        if system
            .document::<EraseDraft>(Kind::Erase, draft.id())?
            .is_none()
        {
            continue;
        }
        let level = &draft.level.name;
        let Some((erased, checked)) = destroyed(system, keystore, &draft)? else {
            continue;
        };
        let last = last_audit_record(audit);
        let mut checked = vec![checked.to_owned()];
        checked.extend(draft.locks.clone());
        let receipt = draft.sign(
            (keystore, copies, system),
            &erased,
            checked,
            Vec::new(),
            last,
        )?;
        copies.note_pending(&receipt)?;
        let kept = (draft.level.id, draft.key_releases_kept());
        system.finish_erase(draft.id(), &draft.bucket_ids(), kept, &receipt, now_ms())?;
        let event = Event::new(draft.act().name(), SERVER, Outcome::Done);
        audit.note(event.with("level", level).with("receipt", &receipt.id));
        tracing::info!(
            level = %draft.level.id,
            receipt = receipt.id,
            "completed an erase that was interrupted"
        );
        has_erased = true;
    }
    Ok(has_erased)
}

/// What was destroyed, now or before, and what a receipt says of that; none where it was not.
fn destroyed(
    system: &System,
    keystore: &Keystore,
    draft: &EraseDraft,
) -> Result<Option<(Erased, &'static str)>> {
    if draft.has_no_key() {
        let checked = "the server was stopped before the erase was acknowledged, which was \
                       completed when it started again, before anything was served";
        return Ok(Some((draft.erased(keystore), checked)));
    }
    if !draft.is_untouched(keystore) {
        let checked = "the server was stopped before the erase was acknowledged; when it started \
                       again the keys were gone from both copies of the keystore, and the older \
                       root key was destroyed";
        return Ok(Some((draft.erased(keystore), checked)));
    }
    if !draft.is_ordered {
        system.drop_document(Kind::Erase, draft.id())?;
        tracing::warn!(
            level = %draft.level.id,
            "an erase that was interrupted is not completed, for its draft is of an earlier \
             version or of an older copy: nothing of it was erased. Ask for it again"
        );
        return Ok(None);
    }
    match destroy_keys(keystore, draft) {
        Destroyed::Yes(erased) => {
            let checked = "the server was stopped before the erase was acknowledged; the keys were \
                           destroyed when it started again, before anything was served";
            Ok(Some((*erased, checked)))
        }
        Destroyed::No(error) | Destroyed::Unknown(error) => {
            tracing::error!(
                level = %draft.level.id, %error,
                "an erase can't be completed yet, and what it is of stays out of use: put that \
                 right and ask for the erase again, or restart the server"
            );
            Ok(None)
        }
    }
}

/// Has what is yet to be erased out of use.
pub(crate) fn hide_ordered(system: &System, open_buckets: &OpenBuckets) -> Result<()> {
    for draft in system.documents::<EraseDraft>(Kind::Erase)? {
        if draft.is_ordered {
            let ids = draft.bucket_ids();
            system.set_aside(&ids, draft.whole_level());
            open_buckets.bar(&ids);
        }
    }
    Ok(())
}
