//! `copy.json`, where its store lost it: put again by who knows whose the place is.
//!
//! It tells who reads a copy without knowing it of which id its key is derived, and decides nothing
//! more: who writes the copy is decided by heads alone.

use coffer_seal::KeystoreId;
use object_store::ObjectStoreExt;
use object_store::path::Path;

use super::check_known;
use crate::error::{ReplicaError, Result};
use crate::head::KnownHead;
use crate::names::RECORD;
use crate::store::{Copy, CopyRecord, create};

impl Copy {
    /// Puts what the copy says of itself again, where that is missing, or says nothing; whether it
    /// did. The place is this copy's for sure: its newest head opens by this one's key, and it has
    /// what is known to have been written.
    ///
    /// # Errors
    /// What lies there in its place, or what heads are there in place of those that are known.
    pub async fn put_record_again(
        &self,
        keystore: KeystoreId,
        known: Option<&KnownHead>,
    ) -> Result<bool> {
        let is_altered = match self.check_record().await {
            Err(ReplicaError::RecordLost) => false,
            Err(ReplicaError::RecordUnreadable) => true,
            there => return there.map(|()| false),
        };
        let newest = self.newest_entry().await?.ok_or(ReplicaError::NoCopy)?;
        check_known(Some(&newest.known), known)?;
        if let Some(known) = known {
            self.is_there(known).await?;
        }
        // There are records in the logs of engines alone.
        let is_of_engine = newest.head().map_or(true, |head| head.is_of_engine);
        let bytes = CopyRecord::again(self.id(), keystore, is_of_engine).bytes();
        let (store, path) = (&*self.store, Path::from(RECORD));
        if is_altered {
            store.put(&path, bytes.into()).await?;
        } else if !create(store, &path, bytes).await? {
            // Another was faster.
            self.check_record().await?;
        }
        Ok(true)
    }
}
