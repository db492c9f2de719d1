//! The keystore of the copy: with each new one the standby learns of new buckets, and loses the
//! keys that an erase destroyed.

use std::path::Path;

use coffer_durable::rfc3339;
use coffer_keys::{CarriedKeystore, KeyFolder, SourceSecrets, SourceSpec};
use coffer_replica::{
    Copy, CopyReader, CopyRecord, FoundKeystore, KeystoreRef, ReplicaError, Store, newer_keystore,
};

use super::{Reached, Standby};
use crate::backup::BackupRecord;
use crate::blocking::blocking;
use crate::engine::note_record;
use crate::error::{CopyError, Result, VaultError};
use crate::replica::{OPENERS, read_carried, target};

impl Standby {
    /// Reaches the copy, with its newest keystore.
    pub(super) async fn reach(&mut self) -> Result<()> {
        let (store, known) = match &self.reached {
            Some(reached) => (reached.store.clone(), Some(&reached.reference)),
            None => {
                let from = self.from.clone();
                let store = blocking(move || Ok(from.open(false)?)).await?;
                (store, None)
            }
        };
        let found = newer_keystore(&*store, known).await;
        let found = match found {
            Err(ReplicaError::Missing { .. }) => return Err(self.without_keystore(&store).await),
            found => found?,
        };
        let Some(found) = found else {
            return Ok(());
        };
        let record = self.record(&store).await?;
        let keystore = self.place(&found).await?;
        let (id, key) = (keystore.id(), keystore.system_key());
        let copy = Copy::of(store.clone(), record.clone(), id, &key).await?;
        self.reached = Some(Reached {
            store,
            keystore,
            reference: found.reference,
            copy,
            record,
        });
        Ok(())
    }

    /// What the copy says of itself; where its store lost that, what it said before. Where it says
    /// that it is another, no head opens by that, and none is damaged.
    async fn record(&self, store: &Store) -> Result<CopyRecord> {
        match (CopyRecord::read(&**store).await, &self.record) {
            (Err(ReplicaError::RecordLost | ReplicaError::RecordUnreadable), Some(before)) => {
                Ok(before.clone())
            }
            (Ok(found), Some(before)) => {
                before.check_own(&found)?;
                Ok(found)
            }
            (record, _) => Ok(record?),
        }
    }

    /// A head was opened by what the copy says of itself: that is true, and is kept.
    pub(super) async fn note_record(&mut self) {
        let reached = self.reached.as_ref().map(|reached| &reached.record);
        let is_new =
            |record: &&CopyRecord| !self.has_noted || self.record.as_ref() != Some(*record);
        let Some(record) = reached.filter(is_new) else {
            return;
        };
        let (data, noted) = (self.data().to_owned(), record.clone());
        self.record = Some(record.clone());
        let noted = blocking(move || note_record(&data, noted)).await;
        self.has_noted = noted.is_ok();
        if let Err(error) = noted {
            tracing::warn!(%error, "what the engine's log says of itself could not be noted here");
        }
    }

    /// Has the copy say again what it said of itself, where its store lost that: its writer is
    /// about to be the one that goes on from this.
    pub(super) async fn put_record_again(&self, near: &CopyReader) -> Result<()> {
        let reached = self.reached.as_ref().ok_or(VaultError::ShuttingDown)?;
        let (copy, keystore) = (near.copy(), reached.keystore.id());
        if copy.put_record_again(keystore, Some(near.known())).await? {
            tracing::warn!("copy.json was missing in the copy's place, and was put there again");
        }
        Ok(())
    }

    /// Why there is no keystore.
    async fn without_keystore(&self, store: &Store) -> VaultError {
        match CopyRecord::read(&**store).await {
            Err(error) => error.into(),
            Ok(_) => CopyError::NoKeystore.into(),
        }
    }

    /// Puts a keystore that was found into the folder, and opens it there.
    async fn place(&self, found: &FoundKeystore) -> Result<coffer_keys::Keystore> {
        let has_root = CarriedKeystore::is_for_recipients(&found.bytes);
        if has_root && self.identity.is_none() {
            return Err(CopyError::IdentityMissing.into());
        }
        let carried = read_carried(&found.bytes, self.identity.as_ref())?;
        let data = self.data().to_owned();
        let (source, secrets) = (self.vault.source.clone(), self.vault.secrets.clone());
        blocking(move || {
            let is_first = !data.join("keystore").exists();
            if is_first && has_root && OPENERS.iter().any(|name| data.join(name).exists()) {
                let problem = "it holds what opens another keystore (`root.key` or the like), and \
                               the one in the copy comes with a root key of its own: take an \
                               empty folder";
                return Err(target(&data, problem));
            }
            if !BackupRecord::is_begun(&data) {
                BackupRecord::begun(carried.id(), rfc3339(0)).write(&data)?;
            }
            carried.place(&data)?;
            open(&data, source.as_ref(), &secrets)
        })
        .await
    }

    /// The copy as its newest head has it.
    pub(super) async fn newest(&self, reached: &Reached) -> Result<CopyReader> {
        let reader = CopyReader::newest(reached.copy.clone(), self.known.as_ref()).await?;
        check_head(&reader, &reached.reference)?;
        Ok(reader)
    }
}

/// Whether a head can be followed with this keystore.
pub(super) fn check_head(reader: &CopyReader, keystore: &KeystoreRef) -> Result<()> {
    let head = reader.head();
    if head.as_of_ms == 0 {
        return Err(CopyError::NeverComplete.into());
    }
    match &head.keystore {
        None => Err(CopyError::NoKeystore.into()),
        Some(named) if keystore.is_before(named) => Err(ReplicaError::OldKeystore {
            found: keystore.generation(),
            named: named.generation(),
        }
        .into()),
        Some(_) => Ok(()),
    }
}

/// Opens the keystore that the folder has.
pub(super) fn open(
    data: &Path,
    source: Option<&SourceSpec>,
    secrets: &SourceSecrets,
) -> Result<coffer_keys::Keystore> {
    Ok(KeyFolder::new(data).open_read_only(source, secrets)?)
}
