//! What the audit log says of a promotion. The log of a standby is the original's until then, so
//! the record goes with the folder, sealed, and the first start that serves it writes it.

use std::collections::HashSet;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coffer_audit::{AuditError, Event, Reader, last};
use coffer_durable::now_ms;
use coffer_keys::Keystore;
use coffer_seal::{Context, SecretKey, open, seal};
use serde::{Deserialize, Serialize};

use crate::access::Act;
use crate::audit::audit_key;
use crate::backup::record::BackupRecord;
use crate::data_folder::Folder;
use crate::error::{AdministrationError, Result, VaultError};
use crate::system::System;

const KEY_LABEL: &[u8] = b"coffer promotion key v1\0";

const CONTEXT: &[u8] = b"coffer promotion v1\0";

/// What the event calls the copy that the standby followed.
pub(crate) const PROMOTED_FROM: &str = "url";

/// A promotion that the audit log is to tell of.
#[derive(Serialize, Deserialize)]
struct Promotion {
    event: Event,
    /// The last record that the log had by then.
    after: u64,
}

/// An event, sealed for the first start of a folder that was promoted.
pub(crate) fn seal_promotion(event: Event, folder: &Path, keystore: &Keystore) -> Result<String> {
    let last = last(&folder.join("audit"), &audit_key(keystore));
    let last = last.map_err(AdministrationError::of_reading)?;
    let promotion = Promotion {
        event,
        after: last.map_or(0, |last| last.sequence),
    };
    let json = serde_json::to_vec(&promotion).map_err(|_| VaultError::Damaged)?;
    let (key, context) = sealed_by(keystore);
    Ok(STANDARD.encode(seal(&key, &context, &json)))
}

/// What the audit log of a promoted folder is still to say of that. A start that was ended before
/// the folder was one like others may have written it. Blocks; before the log is open.
pub(crate) fn unrecorded_promotion(
    record: &BackupRecord,
    folder: &Folder,
    keystore: &Keystore,
) -> Option<Event> {
    record.promotion()?;
    let Some(promotion) = opened(record, keystore) else {
        tracing::warn!("what backup.json says of a promotion does not open: it was altered");
        return None;
    };
    let from = promotion.after + 1;
    let mut reader = Reader::open(&folder.audit(), audit_key(keystore), from);
    loop {
        match reader.next() {
            Ok(Some(record)) if record.event.act == Act::PromoteStandby.name() => return None,
            Ok(Some(_)) | Err(AuditError::Unreadable { .. }) => {}
            Ok(None) | Err(_) => return Some(promotion.event),
        }
    }
}

/// Notes what receipts and verifications are to say of the copy that the folder is, if it is one;
/// of what a restore left out earlier, what has a catalog by now is forgotten.
pub(crate) fn note_origin(
    record: Option<&BackupRecord>,
    folder: &Folder,
    (system, keystore): (&System, &Keystore),
) -> Result<()> {
    if !folder.is_cache() {
        let left_out = record.map_or_else(HashSet::new, BackupRecord::left_out);
        system.note_not_restored(left_out, |id| folder.has_catalog(id))?;
    }
    let Some(record) = record else {
        return Ok(());
    };
    let promotion = opened(record, keystore);
    let url = promotion.and_then(|mut promotion| promotion.event.details.remove(PROMOTED_FROM));
    system.note_went_on(now_ms(), url)
}

fn opened(record: &BackupRecord, keystore: &Keystore) -> Option<Promotion> {
    let sealed = STANDARD.decode(record.promotion()?).ok()?;
    let (key, context) = sealed_by(keystore);
    let opened = open(&key, &context, &sealed).ok();
    opened.and_then(|json| serde_json::from_slice(&json).ok())
}

fn sealed_by(keystore: &Keystore) -> (SecretKey, Context) {
    let mut context = CONTEXT.to_vec();
    context.extend(keystore.id().0);
    let key = keystore.system_key().derive(KEY_LABEL);
    (key, Context::raw(context))
}
