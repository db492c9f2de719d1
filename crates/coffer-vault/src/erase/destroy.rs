//! Destroying keys, and whether they were.

use std::time::Duration;

use coffer_keys::{Erased, ErasedWhat, KeysError, Keystore};

use super::journal::EraseDraft;
use crate::limits::SETTLE_PAUSES;

/// Whether keys were destroyed.
pub(super) enum Destroyed {
    Yes(Box<Erased>),
    No(KeysError),
    /// The keystore can't be brought to either state just now.
    Unknown(KeysError),
}

pub(super) fn destroy_keys(keystore: &Keystore, draft: &EraseDraft) -> Destroyed {
    if draft.has_no_key() {
        return destroyed_before(keystore, draft);
    }
    let erased = match (draft.what, draft.buckets.first()) {
        (ErasedWhat::Level, _) => keystore.erase_level(draft.level.id),
        (ErasedWhat::Bucket, Some(bucket)) => keystore.erase_bucket(bucket.entry.id),
        (ErasedWhat::Bucket, None) => Err(KeysError::Malformed { what: "draft" }),
    };
    let error = match erased {
        Ok(erased) => return Destroyed::Yes(Box::new(erased)),
        Err(error) => error,
    };
    // Gone from the newest copy, or perhaps not: once everything is settled, memory tells.
    match settle(keystore) {
        Err(unsettled) => Destroyed::Unknown(unsettled),
        Ok(()) if draft.is_untouched(keystore) => Destroyed::No(error),
        Ok(()) => Destroyed::Yes(Box::new(draft.erased(keystore))),
    }
}

/// Of keys that are gone from the keystore already.
pub(super) fn destroyed_before(keystore: &Keystore, draft: &EraseDraft) -> Destroyed {
    match settle(keystore) {
        Ok(()) => Destroyed::Yes(Box::new(draft.erased(keystore))),
        Err(error) => Destroyed::Unknown(error),
    }
}

/// Destroys what an unsettled change left, in several attempts.
pub(crate) fn settle(keystore: &Keystore) -> Result<(), KeysError> {
    let mut settled = keystore.settle();
    for pause in SETTLE_PAUSES {
        if settled.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(pause));
        settled = keystore.settle();
    }
    settled
}
