//! The store of one copy: what it says of itself, and its objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use coffer_durable::now_ms;
use coffer_seal::{KeystoreId, SecretKey};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutResult};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::error::{ReplicaError, Result};
use crate::head::entry::Entry;
use crate::limits::{BEGUN_OBJECTS_MAX, SETTINGS_MAX_BYTES};
use crate::names::{self, CopyId, IDENTITY, LEASE, PROBES, RECORD};

pub(crate) mod lease;

pub(crate) mod identity;

pub(crate) mod versions;

pub(crate) mod blobs;

/// The only format there is.
const FORMAT: u32 = 1;

/// A store that copies are in.
pub type Store = Arc<dyn ObjectStore>;

/// What tells the time of day, in milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// What a copy says of itself, in the clear: `copy.json`. Nothing rests on it being true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRecord {
    pub(crate) format: u32,
    /// The id of the copy.
    pub copy: CopyId,
    /// The id of the keystore that opens it.
    pub keystore: String,
    /// It was made as the log of an engine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_engine: bool,
}

/// What each format of it says.
#[derive(Deserialize)]
struct Told {
    format: u32,
}

/// A copy in its store.
#[derive(Clone)]
pub struct Copy {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) key: SecretKey,
    pub(crate) id: CopyId,
    /// What was read of a log behind its newest head.
    pub(crate) recent: Arc<Mutex<BTreeMap<u64, Entry>>>,
    /// By which it is written, and what leaves its window is told.
    pub(crate) clock: Clock,
}

impl CopyRecord {
    /// Of a new copy.
    pub fn new(keystore: KeystoreId) -> Self {
        Self {
            format: FORMAT,
            copy: CopyId::random(),
            keystore: keystore.to_string(),
            is_of_engine: false,
        }
    }

    /// Of the log of a new engine.
    pub fn of_engine(keystore: KeystoreId) -> Self {
        Self {
            is_of_engine: true,
            ..Self::new(keystore)
        }
    }

    /// Of a copy that was made before.
    pub fn again(copy: CopyId, keystore: KeystoreId, is_of_engine: bool) -> Self {
        Self {
            copy,
            is_of_engine,
            ..Self::new(keystore)
        }
    }

    /// Refuses another's, which was found where this copy is.
    ///
    /// # Errors
    /// [`ReplicaError::OtherCopy`].
    pub fn check_own(&self, found: &Self) -> Result<()> {
        if found.copy == self.copy {
            return Ok(());
        }
        Err(ReplicaError::OtherCopy {
            found: found.copy,
            own: self.copy,
        })
    }

    /// One that was kept elsewhere; none, where it says nothing, or is of a later version.
    pub fn kept(told: &serde_json::Value) -> Option<Self> {
        let record: Self = serde_json::from_value(told.clone()).ok()?;
        (record.format <= FORMAT).then_some(record)
    }

    /// As it lies there.
    pub(crate) fn bytes(&self) -> Bytes {
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Reads what a copy says of itself.
    ///
    /// # Errors
    /// [`ReplicaError::NoCopy`], [`ReplicaError::RecordLost`], [`ReplicaError::RecordUnreadable`],
    /// [`ReplicaError::NewerFormat`].
    pub async fn read(store: &dyn ObjectStore) -> Result<Self> {
        let found = match get(store, &Path::from(RECORD), SETTINGS_MAX_BYTES).await {
            Err(ReplicaError::Missing { .. }) => {
                let is_lost = has_heads(store).await?;
                return Err(if is_lost {
                    ReplicaError::RecordLost
                } else {
                    ReplicaError::NoCopy
                });
            }
            Err(ReplicaError::Altered { .. }) => return Err(ReplicaError::RecordUnreadable),
            found => found?,
        };
        // First: what a later format says beside may be anything.
        let told = serde_json::from_slice(&found);
        let Told { format } = told.map_err(|_| ReplicaError::RecordUnreadable)?;
        if format > FORMAT {
            return Err(ReplicaError::NewerFormat {
                found: format,
                known: FORMAT,
            });
        }
        serde_json::from_slice(&found).map_err(|_| ReplicaError::RecordUnreadable)
    }

    /// Whether there is a copy here that holds anything. One that does not was begun, and
    /// interrupted before its first head. The log of an engine holds nothing before its first
    /// keystore either: without one its first head, which names nothing, opens for none. Where what
    /// it says of itself was lost or altered, it counts as one that does.
    ///
    /// # Errors
    /// Of the store.
    pub async fn is_filled(store: &dyn ObjectStore) -> Result<bool> {
        match Self::read(store).await {
            Err(ReplicaError::NoCopy) => Ok(false),
            Err(ReplicaError::RecordLost | ReplicaError::RecordUnreadable) => Ok(true),
            found => found?.has_anything(store).await,
        }
    }

    /// Whether anything is there but what is before a copy holds anything.
    async fn has_anything(&self, store: &dyn ObjectStore) -> Result<bool> {
        let first = names::head(1);
        let mut listed = store.list(None);
        while let Some(found) = listed.try_next().await? {
            let path = found.location;
            let top = path.parts().next();
            let is_beside = top.is_some_and(|top| BESIDE.contains(&top.as_ref()));
            if !(is_beside || self.is_of_engine && path == first) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether all that is here may be of a start that made the log of an engine and did not end:
    /// heads, keystores and pieces of small files, and few of them. What the heads say is not
    /// looked at.
    ///
    /// # Errors
    /// Of the store.
    pub async fn may_be_begun(&self, store: &dyn ObjectStore) -> Result<bool> {
        if !self.is_of_engine {
            return Ok(false);
        }
        let mut listed = store.list(None);
        let mut count = 0;
        while let Some(found) = listed.try_next().await? {
            let top = found.location.parts().next();
            let is_of_start = top.is_some_and(|top| {
                let top = top.as_ref();
                BESIDE.contains(&top) || OF_BEGUN_LOG.contains(&top)
            });
            count += 1;
            if !is_of_start || count > BEGUN_OBJECTS_MAX {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes room for a copy where one was begun that holds nothing. The caller knows that none is
    /// at it still.
    ///
    /// # Errors
    /// [`ReplicaError::Occupied`], of the store.
    pub async fn remove_begun(store: &dyn ObjectStore) -> Result<()> {
        let begun = match Self::read(store).await {
            Err(ReplicaError::NoCopy) => return Ok(()),
            begun => begun?,
        };
        if begun.has_anything(store).await? {
            return Err(ReplicaError::Occupied);
        }
        // The record last: where this is interrupted, the rest is still known as begun.
        let head = begun.is_of_engine.then(|| names::head(1));
        for path in head.into_iter().chain([Path::from(RECORD)]) {
            remove(store, &path).await?;
        }
        Ok(())
    }
}

/// What is in a place before the first head.
const BESIDE: [&str; 4] = [RECORD, LEASE, IDENTITY, PROBES];

/// What the log of an engine has beside that before its first bucket.
const OF_BEGUN_LOG: [&str; 3] = [names::HEADS, names::KEYSTORES, names::PIECES];

impl Copy {
    /// A copy of this id; its key is derived from `system_key`. Reads nothing.
    pub fn new(store: Arc<dyn ObjectStore>, id: CopyId, system_key: &SecretKey) -> Self {
        let label = [&b"coffer copy v1\0"[..], &id.0].concat();
        Self {
            store,
            key: system_key.derive(&label),
            id,
            recent: Arc::default(),
            clock: Arc::new(now_ms),
        }
    }

    /// The same by another clock than this machine's.
    #[must_use]
    pub fn by_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Its id.
    pub fn id(&self) -> CopyId {
        self.id
    }

    /// Whether what the copy says of itself is true, where its server has the keystore of this id.
    ///
    /// # Errors
    /// As [`CopyRecord::read`]; [`ReplicaError::OtherCopy`], [`ReplicaError::OtherKeystore`].
    pub async fn check_own_record(&self, keystore: KeystoreId) -> Result<()> {
        let (found, own) = (self.own_record().await?.keystore, keystore.to_string());
        if found == own {
            Ok(())
        } else {
            Err(ReplicaError::OtherKeystore { found, own })
        }
    }

    /// Refuses a place that has a copy, or parts of one that lost what it says of itself.
    pub(crate) async fn check_free(&self) -> Result<()> {
        match get(&*self.store, &Path::from(RECORD), u64::MAX).await {
            Err(ReplicaError::Missing { .. }) => {}
            found => return found.and(Err(ReplicaError::Occupied)),
        }
        if has_parts(&*self.store).await? {
            return Err(ReplicaError::Occupied);
        }
        Ok(())
    }

    /// Whether this very copy is in its place.
    pub(crate) async fn check_record(&self) -> Result<()> {
        self.own_record().await.map(drop)
    }

    async fn own_record(&self) -> Result<CopyRecord> {
        let record = CopyRecord::read(&*self.store).await?;
        let (found, own) = (record.copy, self.id);
        if found == own {
            Ok(record)
        } else {
            Err(ReplicaError::OtherCopy { found, own })
        }
    }
}

/// Whether there are heads of a copy.
async fn has_heads(store: &dyn ObjectStore) -> Result<bool> {
    let mut listed = store.list(Some(&Path::from(names::HEADS)));
    while let Some(found) = listed.try_next().await? {
        let name = found.location.filename().and_then(names::head_number);
        if name.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether heads or keystores are there, which only a copy has: it may lack what it says of itself.
async fn has_parts(store: &dyn ObjectStore) -> Result<bool> {
    let mut keystores = store.list(Some(&Path::from(names::KEYSTORES)));
    Ok(keystores.try_next().await?.is_some() || has_heads(store).await?)
}

/// An object, of so many bytes at most.
pub(crate) async fn get(store: &dyn ObjectStore, path: &Path, max_bytes: u64) -> Result<Bytes> {
    let found = read_versioned(store, path, max_bytes).await;
    found.map(|(bytes, _)| bytes)
}

/// The same, with the version that the store names of it.
pub(crate) async fn read_versioned(
    store: &dyn ObjectStore,
    path: &Path,
    max_bytes: u64,
) -> Result<(Bytes, Option<String>)> {
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
    let version = found.meta.version.clone();
    Ok((found.bytes().await?, version))
}

/// Creates an object that must not be there. Whether it was created; an error leaves that in doubt.
pub(crate) async fn create(store: &dyn ObjectStore, path: &Path, bytes: Bytes) -> Result<bool> {
    Ok(create_versioned(store, path, bytes).await?.is_some())
}

/// The same; of what was created, what the store answered.
pub(crate) async fn create_versioned(
    store: &dyn ObjectStore,
    path: &Path,
    bytes: Bytes,
) -> Result<Option<PutResult>> {
    let options = PutOptions::from(PutMode::Create);
    match store.put_opts(path, bytes.into(), options).await {
        Ok(put) => Ok(Some(put)),
        Err(object_store::Error::AlreadyExists { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// One that is not there is removed.
pub(crate) async fn remove(store: &dyn ObjectStore, path: &Path) -> Result<u64> {
    match store.delete(path).await {
        Ok(()) => Ok(1),
        Err(object_store::Error::NotFound { .. }) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
