//! Whether a store keeps what is removed from it, as far as its answers tell: by the version that
//! it names of what was put. What was removed is asked for by that, for there are stores that name
//! one of each object, and keep none. Snapshots, and what is kept for who asks for it otherwise
//! (soft delete), no answer tells.

use coffer_seal::random_bytes;
use object_store::path::Path;
use object_store::{Error, GetOptions, ObjectStore, ObjectStoreExt};

use crate::error::Result;
use crate::names::{CopyId, PROBES};
use crate::store::{Copy, remove};

/// What S3 calls the version of an object where none are kept any more.
const NO_VERSION: &str = "null";

/// Whether an answer names a version that may be kept.
pub(crate) fn names_version(version: Option<&str>) -> bool {
    version.is_some_and(|version| version != NO_VERSION)
}

impl Copy {
    /// Whether the place is free, and its store keeps what is removed, by a trial there.
    ///
    /// # Errors
    /// [`ReplicaError::Occupied`](crate::ReplicaError::Occupied); of the store.
    pub async fn keeps_versions(&self) -> Result<bool> {
        self.check_free().await?;
        self.keeps_removed().await
    }

    /// Puts an object of no use, removes it, and asks for it by the version that the store named.
    pub(crate) async fn keeps_removed(&self) -> Result<bool> {
        let name: [u8; 16] = random_bytes();
        let path = Path::from(format!("{PROBES}/{}", CopyId(name)));
        let put = self.store.put(&path, "1".into()).await;
        let removed = remove(&*self.store, &path).await;
        let version = put?.version;
        removed?;
        if !names_version(version.as_deref()) {
            return Ok(false);
        }
        let options = GetOptions {
            version,
            head: true,
            ..GetOptions::default()
        };
        match self.store.get_opts(&path, options).await {
            Err(Error::NotFound { .. }) => Ok(false),
            // One that may not ask for versions is told nothing of what is not there.
            Ok(_) | Err(Error::PermissionDenied { .. } | Error::Unauthenticated { .. }) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}
