//! The identity of an engine, as one object beside its log: sealed, created once, and never changed
//! by a gateway. What is in it is the caller's to know.

use bytes::Bytes;
use object_store::path::Path;

use crate::error::{ReplicaError, Result};
use crate::limits::IDENTITY_MAX_BYTES;
use crate::names::IDENTITY;
use crate::store::{Store, create, get};

/// Where the identity of an engine is.
#[derive(Clone)]
pub struct IdentityPlace(Store);

impl IdentityPlace {
    /// That of the engine in this store.
    pub fn new(store: Store) -> Self {
        Self(store)
    }

    /// What lies there; none, if nothing does.
    ///
    /// # Errors
    /// [`ReplicaError::Altered`], if it is too long; of the store.
    pub async fn read(&self) -> Result<Option<Bytes>> {
        match get(&*self.0, &Path::from(IDENTITY), IDENTITY_MAX_BYTES).await {
            Err(ReplicaError::Missing { .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Puts this there if nothing is, and gives what counts: this, or what another put there.
    ///
    /// # Errors
    /// Of the store: then it is in doubt, and may be there later.
    pub async fn settle(&self, sealed: Bytes) -> Result<Bytes> {
        let created = create(&*self.0, &Path::from(IDENTITY), sealed).await;
        // An answer that was lost tells nothing: what is there counts.
        match self.read().await? {
            Some(found) => Ok(found),
            None => {
                created?;
                let object = IDENTITY.to_owned();
                Err(ReplicaError::Missing { object })
            }
        }
    }
}
