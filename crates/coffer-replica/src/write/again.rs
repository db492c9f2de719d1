//! `copy.json`, where its store lost it: put again by who knows whose the place is.
//!
//! It tells who reads a copy without knowing it of which id its key is derived, and decides nothing
//! more: who writes the copy is decided by heads alone.

use bytes::Bytes;
use coffer_seal::KeystoreId;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};

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
        let unreadable = match self.check_record().await {
            Err(ReplicaError::RecordLost) => None,
            Err(ReplicaError::RecordUnreadable) => {
                let version = self.record_version().await?;
                // As that version, or a later one.
                match self.check_record().await {
                    Err(ReplicaError::RecordUnreadable) => Some(version),
                    there => return there.map(|()| false),
                }
            }
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
        let is_put = match unreadable {
            Some(version) => self.replace_record(version, bytes).await?,
            None => create(&*self.store, &Path::from(RECORD), bytes).await?,
        };
        if !is_put {
            // Another was faster.
            self.check_record().await?;
        }
        Ok(true)
    }

    pub(crate) async fn record_version(&self) -> Result<UpdateVersion> {
        let meta = self.store.head(&Path::from(RECORD)).await?;
        Ok(UpdateVersion {
            e_tag: meta.e_tag,
            version: meta.version,
        })
    }

    /// Puts it in place of what lies there, if that is still of this version; whether it did.
    pub(crate) async fn replace_record(
        &self,
        version: UpdateVersion,
        bytes: Bytes,
    ) -> Result<bool> {
        let (store, path) = (&*self.store, Path::from(RECORD));
        let options = PutOptions::from(PutMode::Update(version.clone()));
        match store.put_opts(&path, bytes.clone().into(), options).await {
            Ok(_) => Ok(true),
            Err(Error::Precondition { .. } | Error::NotFound { .. }) => Ok(false),
            // Folders, and stores that know no condition but that nothing is there: it is compared
            // just before.
            Err(error) if knows_no_versions(&error) => {
                if self.record_version().await? != version {
                    return Ok(false);
                }
                // Not removed before: a reader is to find one or the other.
                store.put(&path, bytes.into()).await?;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn knows_no_versions(error: &Error) -> bool {
    let is_unknown = matches!(
        error,
        Error::NotImplemented { .. } | Error::NotSupported { .. }
    );
    is_unknown || error.to_string().contains("501 Not Implemented")
}
