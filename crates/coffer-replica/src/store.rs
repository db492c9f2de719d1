//! The store of one copy: what it says of itself, and its objects.

use std::sync::Arc;

use bytes::Bytes;
use coffer_seal::{KeystoreId, SecretKey};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use serde::{Deserialize, Serialize};

use crate::error::{ReplicaError, Result};
use crate::head::{Head, KnownHead};
use crate::limits::{HEAD_MAX_BYTES, SETTINGS_MAX_BYTES};
use crate::names::{self, CopyId, RECORD};

/// The only format there is.
const FORMAT: u32 = 1;

/// What a copy says of itself, in the clear: `copy.json`. Nothing rests on it being true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRecord {
    pub(crate) format: u32,
    /// The id of the copy.
    pub copy: CopyId,
    /// The id of the keystore that opens it.
    pub keystore: String,
}

/// A copy in its store.
#[derive(Clone)]
pub struct Copy {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) key: SecretKey,
    pub(crate) id: CopyId,
}

impl CopyRecord {
    /// Of a new copy.
    pub fn new(keystore: KeystoreId) -> Self {
        Self {
            format: FORMAT,
            copy: CopyId::random(),
            keystore: keystore.to_string(),
        }
    }

    /// Reads what a copy says of itself.
    ///
    /// # Errors
    /// [`ReplicaError::NoCopy`], [`ReplicaError::NewerFormat`].
    pub async fn read(store: &dyn ObjectStore) -> Result<Self> {
        let found = match get(store, &Path::from(RECORD), SETTINGS_MAX_BYTES).await {
            Err(ReplicaError::Missing { .. }) => return Err(ReplicaError::NoCopy),
            found => found?,
        };
        let record: Self = serde_json::from_slice(&found).map_err(|_| ReplicaError::NoCopy)?;
        if record.format > FORMAT {
            return Err(ReplicaError::NewerFormat {
                found: record.format,
                known: FORMAT,
            });
        }
        Ok(record)
    }
}

impl Copy {
    /// A copy of this id; its key is derived from `system_key`. Reads nothing.
    pub fn new(store: Arc<dyn ObjectStore>, id: CopyId, system_key: &SecretKey) -> Self {
        let label = [&b"coffer copy v1\0"[..], &id.0].concat();
        Self {
            store,
            key: system_key.derive(&label),
            id,
        }
    }

    /// The newest head; none of a copy that has none yet.
    ///
    /// # Errors
    /// [`ReplicaError::Altered`] when it does not open.
    pub async fn newest_head(&self) -> Result<Option<(Head, KnownHead)>> {
        match self.heads_from(0).await?.last() {
            Some(number) => Ok(Some(self.head(*number).await?)),
            None => Ok(None),
        }
    }

    /// The head of a number.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`], [`ReplicaError::Altered`].
    pub async fn head(&self, number: u64) -> Result<(Head, KnownHead)> {
        let sealed = get(&*self.store, &names::head(number), HEAD_MAX_BYTES).await?;
        Head::open(&self.key, self.id, number, &sealed)
    }

    /// The numbers of the heads that there are, from `from` on, ascending.
    pub(crate) async fn heads_from(&self, from: u64) -> Result<Vec<u64>> {
        let listed: Vec<_> = self
            .store
            .list(Some(&Path::from(names::HEADS)))
            .try_collect()
            .await?;
        let numbers = listed.iter().filter_map(|found| found.location.filename());
        let numbers = numbers.filter_map(names::head_number);
        let mut numbers: Vec<u64> = numbers.filter(|number| *number >= from).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// An object, of so many bytes at most.
pub(crate) async fn get(store: &dyn ObjectStore, path: &Path, max_bytes: u64) -> Result<Bytes> {
    let found = match store.get(path).await {
        Err(object_store::Error::NotFound { .. }) => {
            return Err(ReplicaError::Missing {
                object: path.to_string(),
            });
        }
        found => found?,
    };
    if found.meta.size > max_bytes {
        return Err(ReplicaError::Altered {
            object: path.to_string(),
            problem: "it is longer than any that is written",
        });
    }
    Ok(found.bytes().await?)
}

/// Creates an object that must not be there. Whether it was created; an error leaves that in doubt.
pub(crate) async fn create(store: &dyn ObjectStore, path: &Path, bytes: Bytes) -> Result<bool> {
    let options = PutOptions::from(PutMode::Create);
    match store.put_opts(path, bytes.into(), options).await {
        Ok(_) => Ok(true),
        Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
