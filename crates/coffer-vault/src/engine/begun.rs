//! A log that a first start began, and did not complete before it was ended: nothing was
//! acknowledged by then, and the next gateway that has the lease goes on with it.
//!
//! What lies there is taken for that only where it shows: no segment and no blob, heads that open
//! with the keystore beside them and say that the log was never whole, and a keystore that knows of
//! no more. Nothing is removed for it: it is taken over as any log, so that a gateway that began
//! it, and was paused, finds its next number taken.

use std::path::Path;

use coffer_keys::{CarriedKeystore, ExportIdentity, Held};
use coffer_replica::{
    Copy, CopyRecord, CopyWriter, KnownHead, Place, ReplicaError, Store, newest_keystore,
};

use crate::blocking::blocking;
use crate::copies::TakenLog;
use crate::data_folder::Folder;
use crate::error::{CopyError, Result};
use crate::fence::ServingRight;
use crate::limits::BEGUN_LOG_LOOKS;

/// What the gateway that has the lease finds in a store that held no log.
#[derive(Debug)]
pub enum FoundLog {
    /// Nothing: it makes one.
    None,
    /// One that was begun and holds nothing: it goes on with it.
    Begun(TakenLog),
    /// One that another gateway completed meanwhile, and that is to be followed first.
    Whole,
}

/// A log that is not whole, and holds nothing yet.
struct Begun {
    copy: Copy,
    known: KnownHead,
    keystore: CarriedKeystore,
}

/// Whether a store holds the log of an engine. One that was begun and holds nothing is none yet.
///
/// # Errors
/// Of the store.
pub async fn has_log(from: &Place, identity: &ExportIdentity) -> Result<bool> {
    let store = open(from).await?;
    if !CopyRecord::is_filled(&*store).await? {
        return Ok(false);
    }
    Ok(find(&store, identity).await?.is_none())
}

/// Takes over a log that was begun and holds nothing, and places its keystore in a folder that has
/// none: a start on that goes on as a first one. For the gateway that has the lease.
///
/// # Errors
/// Of the store; where the lease has ended.
pub async fn take_over_begun(
    from: &Place,
    identity: &ExportIdentity,
    data: &Path,
    right: ServingRight,
) -> Result<FoundLog> {
    let store = open(from).await?;
    let Some(begun) = find(&store, identity).await? else {
        let is_whole = CopyRecord::is_filled(&*store).await?;
        return Ok(if is_whole {
            FoundLog::Whole
        } else {
            FoundLog::None
        });
    };
    right.check()?;
    tracing::warn!("a first start of this engine was ended half-way: it is gone on with");
    let writer = CopyWriter::resume_engine(begun.copy, Some(&begun.known)).await?;
    if writer.head().as_of_ms != 0 {
        // It was completed at this very moment: what is in it is not here.
        return Ok(FoundLog::Whole);
    }
    // Its gateway may have put another until it was fenced off.
    let begun = find(&store, identity).await?;
    let keystore = begun.ok_or(CopyError::EngineNeverComplete)?.keystore;
    let data = data.to_owned();
    blocking(move || {
        let _lock = Folder::hold(&data)?;
        Ok(keystore.place(&data)?)
    })
    .await?;
    Ok(FoundLog::Begun(TakenLog::begun(writer, right)))
}

async fn open(from: &Place) -> Result<Store> {
    let from = from.clone();
    blocking(move || Ok(from.open(true)?)).await
}

/// The log, where it is begun and holds nothing, as far as this identity opens what tells.
async fn find(store: &Store, identity: &ExportIdentity) -> Result<Option<Begun>> {
    let mut looks = 0;
    loop {
        looks += 1;
        match look(store, identity).await {
            // The gateway that makes it puts a newer keystore, and removes the one before.
            Err(ReplicaError::Missing { .. }) if looks < BEGUN_LOG_LOOKS => {}
            found => return Ok(found?),
        }
    }
}

async fn look(
    store: &Store,
    identity: &ExportIdentity,
) -> std::result::Result<Option<Begun>, ReplicaError> {
    let record = match CopyRecord::read(&**store).await {
        Err(ReplicaError::NoCopy | ReplicaError::RecordLost | ReplicaError::RecordUnreadable) => {
            return Ok(None);
        }
        record => record?,
    };
    if !record.may_be_begun(&**store).await? {
        return Ok(None);
    }
    let Some(found) = newest_keystore(&**store).await? else {
        return Ok(None);
    };
    // What does not open is told by who follows the log.
    let Ok(keystore) = CarriedKeystore::read(&found.bytes, Some(identity)) else {
        return Ok(None);
    };
    let Ok(Some((system_key, held))) = keystore.system() else {
        return Ok(None);
    };
    if keystore.id().to_string() != record.keystore || knows_of_more(&held) {
        return Ok(None);
    }
    let copy = Copy::new(store.clone(), record.copy, &system_key);
    let known = match copy.newest_head().await {
        Ok(Some((head, known))) if head.as_of_ms == 0 && head.promotions == 0 => known,
        Err(error) if error.is_passing() => return Err(error),
        _ => return Ok(None),
    };
    Ok(Some(Begun {
        copy,
        known,
        keystore,
    }))
}

/// Whether a head was there by then that had anything: a keystore says of what heads have.
fn knows_of_more(held: &Held) -> bool {
    held.system_commits > 0 || held.audit_record > 0 || held.anchor_number > 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests;
