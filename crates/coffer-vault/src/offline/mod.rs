//! A stopped server's data, read with its root key alone: for the day the server won't start.
//!
//! One who can read the root key and the folder can read everything anyhow, so there is no subject
//! here. Nothing is changed. A damaged `system.db` is done without: the keystore knows the buckets'
//! ids, and each catalog its bucket's name.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coffer_keys::{BucketKey, KeyFolder, Keystore, SourceSecrets, SourceSpec};
use coffer_seal::{BucketId, Context, SecretKey};
use coffer_store::record::{BlobRef, Content, ListPage, ListQuery, ObjectHead, ObjectName};
use coffer_store::version::Which;
use coffer_store::{BlobStore, Catalog, VersionsPage, VersionsQuery};

use crate::backup::BackupRecord;
use crate::counters::Tally;
use crate::data_folder::{ENGINE_FILE, Folder};
use crate::error::{CustomerKeyError, Result, Rollback, VaultError};
use crate::freshness::{Commits, Comparison};
use crate::objects::{ObjectBody, check_customer_key};
use crate::open_buckets::{OpenBucket, UsedBucket, customer_key};
use crate::system::System;

mod audit;

mod blob_commitments;

mod verify;

pub use self::audit::{OfflineAudit, OfflineRecords};
pub use self::blob_commitments::{CommitmentsChecked, WrongBlob};

/// A stopped server's data folder.
pub struct Offline {
    pub(crate) folder: Folder,
    pub(crate) keystore: Keystore,
    names: HashMap<BucketId, String>,
    /// Buckets that a restore of others left out.
    left_out: HashSet<BucketId>,
    /// Whether it is a copy that a backup made.
    pub(crate) is_backup: bool,
}

/// A bucket of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineBucket {
    /// Its id, which is its folder's name.
    pub id: BucketId,
    /// Its name; none where neither `system.db` nor its catalog could tell.
    pub name: Option<String>,
    /// Name of its level.
    pub level: Option<String>,
    /// Whether its folder is here.
    pub place: BucketPlace,
}

/// Whether a bucket's folder is in the data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketPlace {
    /// It is.
    Here,
    /// A restore of other buckets left it out, and it was not put there since.
    NotRestored,
    /// It is missing.
    Missing,
}

/// What it takes to open an object's bytes.
#[derive(Debug)]
pub enum ObjectKeys {
    /// They lie in the catalog, `catalog_file`, which is SQLCipher's.
    Inline {
        /// How many bytes there are.
        plaintext_bytes: u64,
    },
    /// They lie in blobs, in this order.
    Blobs(Vec<BlobKey>),
}

/// What it takes to open a blob with any implementation of Cobblestone-256.
#[derive(Debug)]
pub struct BlobKey {
    /// Its file, relative to the data folder.
    pub blob_file: PathBuf,
    /// The context that it is bound to.
    pub context: Vec<u8>,
    /// Its data key.
    pub data_key: SecretKey,
    /// How many bytes it holds.
    pub plaintext_bytes: u64,
}

impl Offline {
    /// Opens the data folder of a server that is not running, or a copy of one. `secrets` open its
    /// root-key source, as far as that needs any; `source` is for a folder that records none.
    ///
    /// # Errors
    /// [`VaultError::FolderInUse`] while it is running; and when the keystore can't be opened.
    pub fn open(data: &Path, source: Option<&SourceSpec>, secrets: &SourceSecrets) -> Result<Self> {
        // A gateway's is always one that was begun: it may be all that is left, so it is read as it
        // is.
        let is_cache = data.join(ENGINE_FILE).exists();
        let record = if is_cache {
            None
        } else {
            BackupRecord::read(data)?
        };
        let folder = Folder::open_existing(data)?;
        let keystore = KeyFolder::new(data).open_read_only(source, secrets)?;
        let mut left_out = record
            .as_ref()
            .map_or_else(HashSet::new, BackupRecord::left_out);
        let names = match System::open_read_only(&folder.system_db(), &keystore.system_key()) {
            Ok(system) => {
                if !is_cache {
                    left_out.extend(system.not_restored().unwrap_or_default());
                }
                let rows = system.buckets().into_iter();
                rows.map(|row| (row.id, row.name.as_str().to_owned()))
                    .collect()
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    "system.db can't be read: names are taken from the catalogs"
                );
                HashMap::new()
            }
        };
        Ok(Self {
            folder,
            keystore,
            names,
            is_backup: record.is_some(),
            left_out,
        })
    }

    /// What is older than what stands above it holds: older copies that were put back.
    pub async fn rollbacks(&self) -> Vec<Rollback> {
        let keystore = &self.keystore;
        let mut found = Vec::new();
        let mut told = |rollbacks: Result<Vec<Rollback>>| match rollbacks {
            Ok(rollbacks) => found.extend(rollbacks),
            Err(error) => tracing::warn!(%error, "whether all is of one time can't be told"),
        };
        let of_keystore = keystore.rollback().map_err(VaultError::from);
        told(of_keystore.map(|found| found.into_iter().map(Rollback::of_keystore).collect()));
        let anchor = match Comparison::read_anchor(&self.folder, keystore) {
            Ok(anchor) => anchor,
            Err(error) => {
                told(Err(error));
                return found;
            }
        };
        let system = System::open_read_only(&self.folder.system_db(), &keystore.system_key());
        let looking = Comparison {
            folder: &self.folder,
            keystore,
            anchor: &anchor,
        };
        told(looking.look(system.ok().as_ref()));
        let commits = Commits::of(anchor.newest());
        for entry in keystore.buckets() {
            let id = entry.id;
            // What can't be opened is told when it is read.
            if let Ok(bucket) = self.open_id(id).await
                && let Ok(count) = bucket.catalog.commit_count().await
            {
                found.extend(commits.rollback(id, count));
            }
        }
        found
    }

    /// All buckets that the keystore has a key for.
    pub async fn buckets(&self) -> Vec<OfflineBucket> {
        let mut buckets = Vec::new();
        for entry in self.keystore.buckets() {
            let id = entry.id;
            let name = match self.names.get(&id) {
                Some(name) => Some(name.clone()),
                None => self.name_in_catalog(id).await,
            };
            let level = self.keystore.level(entry.level_id).map(|level| level.name);
            buckets.push(OfflineBucket {
                id,
                name,
                level,
                place: self.place_of(id),
            });
        }
        buckets.sort_by(|a, b| a.name.cmp(&b.name).then(a.id.cmp(&b.id)));
        buckets
    }

    fn place_of(&self, id: BucketId) -> BucketPlace {
        if self.folder.bucket(id).exists() {
            BucketPlace::Here
        } else if self.left_out.contains(&id) {
            BucketPlace::NotRestored
        } else {
            BucketPlace::Missing
        }
    }

    /// A page of a bucket's objects. Buckets may be given by name or by id.
    pub async fn list(&self, bucket: &str, query: ListQuery) -> Result<ListPage> {
        Ok(self.open_bucket(bucket).await?.catalog.list(query).await?)
    }

    /// A page of a bucket's versions and delete markers.
    pub async fn list_versions(&self, bucket: &str, query: VersionsQuery) -> Result<VersionsPage> {
        let bucket = self.open_bucket(bucket).await?;
        Ok(bucket.catalog.versions(query).await?)
    }

    /// An object's bytes.
    pub async fn read(
        &self,
        bucket: &str,
        name: &ObjectName,
        which: Which,
    ) -> Result<(ObjectHead, ObjectBody)> {
        let bucket = UsedBucket::new(Arc::new(self.open_bucket(bucket).await?));
        let pin = bucket.blobs.pin();
        let (head, content) = whole(&bucket.catalog, name, which).await?;
        let range = 0..head.size_bytes;
        let key = (bucket.key(), None);
        let body =
            ObjectBody::new(bucket, key, pin, content, range, Arc::<Tally>::default()).await?;
        Ok((head, body))
    }

    /// The keys of an object's blobs.
    pub async fn keys(&self, bucket: &str, name: &ObjectName, which: Which) -> Result<ObjectKeys> {
        let bucket = self.open_bucket(bucket).await?;
        let (head, content) = whole(&bucket.catalog, name, which).await?;
        let blobs = match content {
            Content::Inline(_) => {
                return Ok(ObjectKeys::Inline {
                    plaintext_bytes: head.size_bytes,
                });
            }
            Content::Blobs { blobs, .. } => blobs,
        };
        let key = bucket.key();
        let key_of = |blob: BlobRef| {
            let path = bucket.blobs.path(blob.id);
            let data_key = customer_key::unwrap(&key, &blob, None)?;
            let data_key = data_key.ok_or(CustomerKeyError::Missing)?;
            Ok(BlobKey {
                blob_file: path
                    .strip_prefix(self.folder.path())
                    .unwrap_or(&path)
                    .to_owned(),
                context: Context::blob(bucket.id, blob.id).as_bytes().to_vec(),
                data_key,
                plaintext_bytes: blob.plaintext_bytes,
            })
        };
        blobs
            .into_iter()
            .map(key_of)
            .collect::<Result<_>>()
            .map(ObjectKeys::Blobs)
    }

    /// Whether system.db told which buckets there are.
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    async fn name_in_catalog(&self, id: BucketId) -> Option<String> {
        let bucket = self.open_id(id).await.ok()?;
        Some(bucket.catalog.bucket_name().to_owned())
    }

    /// Whether a blob is in the store of an engine, and this folder is a cache without it.
    fn lies_elsewhere(&self, bucket: &OpenBucket, blob: &BlobRef) -> bool {
        self.folder.is_cache() && !bucket.blobs.path(blob.id).exists()
    }

    async fn open_bucket(&self, name_or_id: &str) -> Result<OpenBucket> {
        let buckets = self.buckets().await;
        let found = buckets.into_iter().find(|bucket| {
            bucket.name.as_deref() == Some(name_or_id) || bucket.id.to_string() == name_or_id
        });
        self.open_id(found.ok_or(VaultError::NoSuchBucket)?.id)
            .await
    }

    pub(crate) async fn open_id(&self, id: BucketId) -> Result<OpenBucket> {
        let key: BucketKey = self.keystore.bucket_key(id)?;
        let dir = self.folder.bucket(id);
        let catalog = Catalog::open_read_only(&dir, &key.catalog_key()).await?;
        Ok(OpenBucket::new(id, catalog, BlobStore::new(&dir, id), key))
    }
}

async fn whole(
    catalog: &Catalog,
    name: &ObjectName,
    which: Which,
) -> Result<(ObjectHead, Content)> {
    let all = |head: &ObjectHead| Ok::<_, VaultError>(0..head.size_bytes);
    let (head, _, content) = catalog.read(name, which, all).await???;
    // An empty object has no blob that would ask for the key.
    check_customer_key(&head.details.encryption, None)?;
    Ok((head, content))
}
