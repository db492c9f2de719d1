//! Levels that come from another server: their keys from an export, their buckets as folders.
//!
//! The folders are copied by the operator, before or after the import. A bucket is adopted
//! when both are here: it gets a row, under the name that its catalog tells, or under another if
//! that one is taken. Until then its key is kept, whatever happens.

use std::sync::{Arc, OnceLock};

use coffer_durable::now_ms;
use coffer_keys::{ExportIdentity, Keystore, LevelEntry};
use coffer_seal::BucketId;
use coffer_store::Catalog;
use coffer_store::lock::Locked;

use crate::access::{Act, Actor, BucketName, Role};
use crate::admin::levels::told_of;
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::error::{Result, VaultError};
use crate::limits::BUCKET_COUNT_MAX;
use crate::locks::ObjectLock;
use crate::system::{BucketConfiguration, BucketDocuments, BucketRow, LockBound};
use crate::vault::Vault;

/// What the other server keeps of a bucket outside of its folder, by kind: an export is of keys
/// alone, so none of it comes along, nor is it known which of it there was.
pub const LEFT_BEHIND: [&str; 12] = [
    "owner",
    "grants",
    "policy",
    "public-access-block",
    "object-ownership",
    "acl",
    "cors",
    "lifecycle",
    "encryption",
    "etag",
    "object-lock",
    "quota",
];

/// A level that was imported, and what became of its buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The level, as it is here.
    pub level: LevelEntry,
    /// Its buckets.
    pub buckets: Vec<(BucketId, Adoption)>,
}

/// What became of a bucket of an imported level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adoption {
    /// It can be used under this name.
    Adopted(BucketName),
    /// Another bucket has its name: [`Vault::adopt_bucket`] gives it one.
    NameTaken(BucketName),
    /// Its folder is not here yet; once it is, [`Vault::adopt_bucket`] or a restart adopts it.
    FolderMissing,
    /// Its folder is here but its catalog does not open.
    Unreadable(String),
}

/// What is recorded of an import: the level, and each of its buckets.
fn records(level: &LevelEntry, buckets: &[(BucketId, Adoption)]) -> Vec<Facts> {
    let bucket = |(id, adoption): &(BucketId, Adoption)| {
        let (outcome, name) = match adoption {
            Adoption::Adopted(name) => ("adopted", Some(name)),
            Adoption::NameTaken(name) => ("name taken", Some(name)),
            Adoption::FolderMissing => ("folder missing", None),
            Adoption::Unreadable(_) => ("unreadable", None),
        };
        let mut facts = Facts::from([
            ("level", level.name.clone()),
            ("bucket_id", id.to_string()),
            ("outcome", outcome.to_owned()),
        ]);
        facts.extend(name.map(|name| ("bucket", name.as_str().to_owned())));
        facts
    };
    let whole = told_of(&level.name, &level.label, level.options);
    std::iter::once(whole)
        .chain(buckets.iter().map(bucket))
        .collect()
}

impl Vault {
    /// Takes in a level from an export, under its own name or another, with the buckets whose
    /// folders are here already.
    ///
    /// # Errors
    /// [`LevelGoing`](crate::AdministrationError::LevelGoing); those of
    /// [`Keystore::import_level`].
    pub async fn import_level(
        &self,
        actor: &Actor,
        export: Vec<u8>,
        identity: ExportIdentity,
        name: Option<String>,
        may_share_label: bool,
    ) -> Result<Imported> {
        let as_name = name.clone().unwrap_or_else(|| "its own".to_owned());
        let facts = Facts::from([("as", as_name)]);
        let this = self.clone();
        let work = async move {
            let inner = this.inner.clone();
            let take_in = move || {
                let own = Keystore::level_of_export(&export, &identity)?;
                let name = name.as_deref();
                let wanted = name.unwrap_or(&own.name);
                // Its keys would be destroyed again.
                inner.refuse_ordered(|level| level.id == own.id || level.name == wanted)?;
                let keystore = &inner.keystore;
                Ok(keystore.import_level(&export, &identity, name, may_share_label)?)
            };
            let level = {
                // No erase begins meanwhile, or ends.
                let _changing = this.inner.changing_buckets.lock().await;
                blocking(take_in).await?
            };
            let buckets = this.adopt_all(&level).await;
            let told = records(&level, &buckets);
            Ok((Imported { level, buckets }, told))
        };
        self.act_telling(actor, Role::KeyCustodian, Act::ImportKey, vec![facts], work)
            .await
    }

    /// Adopts a bucket of an imported level whose folder has been copied here, under its own name
    /// or another.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`] when no imported level has such a bucket that waits.
    pub async fn adopt_bucket(
        &self,
        actor: &Actor,
        id: BucketId,
        name: Option<BucketName>,
    ) -> Result<Adoption> {
        let facts = Facts::from([("bucket_id", id.to_string())]);
        self.refuse_without(actor, Role::KeyCustodian, Act::AdoptBucket, &facts)?;
        if !self.waits_for_adoption(id) {
            return Err(self.failed(Act::AdoptBucket, actor, &facts, VaultError::NoSuchBucket));
        }
        let this = self.clone();
        let work = async move {
            if this.waits_for_adoption(id) {
                Ok(this.adopt(id, name).await)
            } else {
                Err(VaultError::NoSuchBucket)
            }
        };
        self.act(actor, Role::KeyCustodian, Act::AdoptBucket, facts, work)
            .await
    }

    /// Adopts what was copied here since the last start.
    pub(crate) async fn adopt_waiting(&self) {
        for level in self.inner.keystore.levels() {
            if !level.imported {
                continue;
            }
            for (id, adoption) in self.adopt_all(&level).await {
                tracing::info!(bucket = %id, ?adoption, "a bucket of an imported level");
            }
        }
    }

    async fn adopt_all(&self, level: &LevelEntry) -> Vec<(BucketId, Adoption)> {
        let mut adoptions = Vec::new();
        for entry in self.inner.keystore.buckets() {
            let id = entry.id;
            if entry.level_id == level.id && self.waits_for_adoption(id) {
                adoptions.push((id, self.adopt(id, None).await));
            }
        }
        adoptions
    }

    fn waits_for_adoption(&self, id: BucketId) -> bool {
        let system = &self.inner.system;
        let entry = self.inner.keystore.bucket(id);
        let is_going = entry.is_some_and(|entry| system.is_level_going(entry.level_id));
        let is_free = !is_going && !system.is_going(id) && system.bucket_of_id(id).is_none();
        is_free && self.is_imported(id)
    }

    async fn adopt(&self, id: BucketId, name: Option<BucketName>) -> Adoption {
        let _changing = self.inner.changing_buckets.lock().await;
        if !self.waits_for_adoption(id) {
            return Adoption::Unreadable("it was adopted or erased meanwhile".to_owned());
        }
        if !self.inner.folder.bucket(id).join("catalog.db").exists() {
            return Adoption::FolderMissing;
        }
        match self.try_adopt(id, name).await {
            Ok(adoption) => adoption,
            Err(error) => Adoption::Unreadable(error.to_string()),
        }
    }

    async fn try_adopt(&self, id: BucketId, name: Option<BucketName>) -> Result<Adoption> {
        let inner = &self.inner;
        let key = inner.keystore.bucket_key(id)?;
        // It comes from elsewhere: whatever was here before tells nothing of it.
        inner.freshness.commits.forget(id);
        let catalog = Catalog::open(&inner.folder.bucket(id), &key.catalog_key()).await?;
        let own = BucketName::new(catalog.bucket_name());
        let is_renamed = name.is_some();
        let chosen = name.or(own).ok_or(VaultError::Damaged);
        let taken = |name: &BucketName| inner.system.is_name_taken(name);
        let prepared = match chosen {
            Ok(name) if taken(&name) => Ok((name, None)),
            Ok(_) if inner.system.bucket_count() >= BUCKET_COUNT_MAX => {
                Err(VaultError::TooManyBuckets {
                    limit: BUCKET_COUNT_MAX,
                })
            }
            Ok(name) => {
                // The catalog first: a folder of a stopped server tells its name by it.
                let renamed = if is_renamed {
                    catalog.rename_bucket(name.as_str()).await
                } else {
                    Ok(())
                };
                match (renamed, catalog.locked().await) {
                    (Ok(()), Ok(locked)) => Ok((name, Some(locked))),
                    (Err(error), _) | (_, Err(error)) => Err(error.into()),
                }
            }
            Err(error) => Err(error),
        };
        // Before others find the row, and open it.
        catalog.close().await;
        match prepared? {
            (name, Some(locked)) => self.add_row(id, name, locked).await,
            (name, None) => Ok(Adoption::NameTaken(name)),
        }
    }

    async fn add_row(&self, id: BucketId, name: BucketName, locked: Locked) -> Result<Adoption> {
        let bound = LockBound::of(locked).to_document();
        let bound = bound.map(|document| (BucketConfiguration::LockBound, document));
        // What is locked stays under the rules of object lock; of the default nothing is known.
        let lock = ObjectLock::default().to_document();
        let lock = bound
            .is_some()
            .then_some((BucketConfiguration::ObjectLock, lock));
        let documents = bound.into_iter().chain(lock).collect();
        let entry = self.inner.keystore.bucket(id);
        let row = BucketRow {
            id,
            name: name.clone(),
            level_id: entry.ok_or(VaultError::NoSuchBucket)?.level_id,
            created_ms: now_ms(),
            level: OnceLock::new(),
            is_hidden: Arc::default(),
            made_by: None,
            documents: Arc::new(BucketDocuments::first(documents)),
        };
        let level_id = row.level_id;
        let inner = self.inner.clone();
        blocking(move || {
            // Had it been erased here before, its folder might have been noted for removal.
            inner.system.forget_doomed(id)?;
            inner.system.add_bucket(row)
        })
        .await?;
        self.inner.open_buckets.quotas.place(id, level_id, None);
        Ok(Adoption::Adopted(name))
    }

    /// Whether a bucket belongs to a level that came from another server.
    pub(crate) fn is_imported(&self, id: BucketId) -> bool {
        let keystore = &self.inner.keystore;
        let level = keystore
            .bucket(id)
            .and_then(|entry| keystore.level(entry.level_id));
        level.is_some_and(|level| level.imported)
    }
}
