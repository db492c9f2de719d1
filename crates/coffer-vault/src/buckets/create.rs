//! Making buckets.

use std::sync::{Arc, OnceLock};

use coffer_durable::{now_ms, sync_folder};
use coffer_keys::LevelEntry;
use coffer_policy::ObjectOwnership;
use coffer_seal::{BucketId, LevelId, SubjectId};
use coffer_store::record::Tags;
use coffer_store::version::Versioning;
use coffer_store::{Catalog, StoreError};

use super::folder::{make_bucket_folder, unmake};
use super::info::{BucketInfo, BucketSummary, info};
use crate::access::{Act, Actor, AskedAcl, BucketName, Role, Subject, maker, may_write};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::counters::add;
use crate::data_folder::failed;
use crate::error::{Result, SubjectLimit, VaultError};
use crate::limits::BUCKET_COUNT_MAX;
use crate::open_buckets::OpenBucket;
use crate::quotas::QuotaOf;
use crate::system::{BucketConfiguration, BucketDocuments, BucketRow};
use crate::vault::{DEFAULT_LEVEL, Vault};

/// What a bucket is to be like.
#[derive(Clone, Debug, Default)]
pub struct NewBucket<'a> {
    /// Name of its level, or `default`.
    pub level: Option<&'a str>,
    /// Its configuration.
    pub documents: Vec<(BucketConfiguration, String)>,
    /// Its tags, if it is to have any.
    pub tags: Option<Tags>,
    /// Who owns its objects; none: as the server has it for new buckets.
    pub object_ownership: Option<ObjectOwnership>,
    /// Who else may use it.
    pub acl: AskedAcl,
}

/// What a bucket is to be like, but for its level.
struct Made {
    documents: Vec<(BucketConfiguration, String)>,
    tags: Option<Tags>,
}

impl Vault {
    /// Makes a bucket in a level, or in `default`, for a data user; see
    /// [`create_bucket_with`](Self::create_bucket_with).
    pub async fn create_bucket(
        &self,
        subject: &Arc<Subject>,
        name: &BucketName,
        level: Option<&str>,
    ) -> Result<BucketInfo> {
        let new = NewBucket {
            level,
            ..NewBucket::default()
        };
        self.create_bucket_with(subject, name, new).await
    }

    /// Makes a bucket for a data user.
    ///
    /// # Errors
    /// [`VaultError::BucketAlreadyOwnedByYou`], or [`VaultError::BucketAlreadyExists`] for one that
    /// is another's or that the subject may not know of, which the answer does not tell apart:
    /// names are shared by all levels, as they are by all accounts in S3.
    /// [`VaultError::NoSuchLevel`] also for a level that the subject may not write,
    /// [`VaultError::TooManyBuckets`], [`SubjectLimit::Buckets`]; [`VaultError::AccessDenied`] for
    /// one whose grants name the buckets that it may use.
    pub async fn create_bucket_with(
        &self,
        subject: &Arc<Subject>,
        name: &BucketName,
        new: NewBucket<'_>,
    ) -> Result<BucketInfo> {
        let actor = Actor::Subject(subject.clone());
        let may_make = |level: &LevelEntry| may_write(subject, &level.label);
        let level = self.level_for_bucket(&actor, name, new.level, may_make)?;
        subject.cutoff.note_caller()?;
        self.check_mark(subject, &level.label, Act::CreateBucket, name)?;
        if subject.grants.is_some() {
            self.refused(subject, Act::CreateBucket, name);
            return Err(VaultError::AccessDenied);
        }
        let new = Made {
            documents: self.add_ownership(Some(subject), &new)?,
            tags: new.tags,
        };
        let made = self.make_bucket_as(&actor, Role::DataUser, name, level, new);
        made.await.map_err(|error| match error {
            VaultError::BucketAlreadyOwnedByYou => self.why_taken(subject, name),
            error => error,
        })
    }

    /// What the subject is told of a name that is taken.
    fn why_taken(&self, subject: &Subject, name: &BucketName) -> VaultError {
        match self.known(subject, name) {
            Ok(row) => match self.inner.check_key(&row) {
                Err(error) => error,
                Ok(()) if self.owns(subject, &row) => VaultError::BucketAlreadyOwnedByYou,
                Ok(()) => VaultError::BucketAlreadyExists,
            },
            // Of a level that is gone.
            Err(error @ VaultError::Administration(_)) => error,
            Err(_) => VaultError::BucketAlreadyExists,
        }
    }

    /// Makes a bucket in a level, or in `default`; see
    /// [`provide_bucket_with`](Self::provide_bucket_with).
    pub async fn provide_bucket(
        &self,
        actor: &Actor,
        name: &BucketName,
        level: Option<&str>,
    ) -> Result<BucketSummary> {
        let new = NewBucket {
            level,
            ..NewBucket::default()
        };
        self.provide_bucket_with(actor, name, new).await
    }

    /// Makes a bucket. A system administrator's act, which takes no access to its data.
    ///
    /// # Errors
    /// As [`create_bucket_with`](Self::create_bucket_with), but no level is hidden.
    pub async fn provide_bucket_with(
        &self,
        actor: &Actor,
        name: &BucketName,
        new: NewBucket<'_>,
    ) -> Result<BucketSummary> {
        let may_make = |level: &LevelEntry| actor.may_know(&level.label);
        let level = self.level_for_bucket(actor, name, new.level, may_make)?;
        let documents = self.add_ownership(None, &new)?;
        let tags = new.tags;
        let label = level.label;
        if let Actor::Subject(subject) = actor
            && actor.has(Role::SystemAdministrator)
        {
            self.check_mark(subject, &label, Act::CreateBucket, name)?;
        }
        let new = Made { documents, tags };
        let made = self.make_bucket_as(actor, Role::SystemAdministrator, name, level, new);
        let bucket = made.await.map_err(|error| match error {
            VaultError::BucketAlreadyOwnedByYou => {
                let row = self.looked_after(actor, name);
                let checked = row.and_then(|row| self.inner.check_key(&row));
                match checked {
                    Err(without_key @ VaultError::Administration(_)) => without_key,
                    _ => error,
                }
            }
            error => error,
        })?;
        let row = self.inner.system.bucket_of_id(bucket.id);
        let row = row.ok_or(VaultError::NoSuchBucket)?;
        let mut summary = self.summary(actor, &row).await?;
        summary.totals.get_or_insert_default();
        Ok(summary)
    }

    /// The level of a bucket that the actor is about to make. A level that it may not know of is
    /// refused, and recorded, like one that there is not.
    fn level_for_bucket(
        &self,
        actor: &Actor,
        bucket: &BucketName,
        level: Option<&str>,
        may_make: impl FnOnce(&LevelEntry) -> bool,
    ) -> Result<LevelEntry> {
        let keystore = &self.inner.keystore;
        let found = keystore.level_named(level.unwrap_or(DEFAULT_LEVEL));
        found.filter(may_make).ok_or_else(|| {
            add(&self.inner.tally.denied_count, 1);
            let facts = Facts::from([("bucket", bucket.to_string())]);
            self.denied(Act::CreateBucket, actor, &facts);
            VaultError::NoSuchLevel
        })
    }

    async fn make_bucket_as(
        &self,
        actor: &Actor,
        role: Role,
        name: &BucketName,
        level: LevelEntry,
        new: Made,
    ) -> Result<BucketInfo> {
        let facts = Facts::from([("bucket", name.to_string()), ("level", level.name.clone())]);
        self.refuse_without(actor, role, Act::CreateBucket, &facts)?;
        let inner = self.inner.clone();
        blocking(move || inner.system.assure_certain()).await?;
        // A subject is limited in what it makes for itself.
        let made_by = match actor {
            Actor::Subject(subject) if role == Role::DataUser => Some(Arc::from(maker(subject))),
            _ => None,
        };
        self.has_room_for(name, level.id, made_by.as_deref())
            .map_err(|error| self.failed(Act::CreateBucket, actor, &facts, error))?;
        let (this, name) = (self.clone(), name.clone());
        let work = async move {
            let row = this.make_bucket(name, level.id, made_by, new).await?;
            Ok(info(&row, this.inner.tag(&row)?))
        };
        self.act(actor, role, Act::CreateBucket, facts, work).await
    }

    async fn make_bucket(
        &self,
        name: BucketName,
        level_id: LevelId,
        made_by: Option<Arc<str>>,
        new: Made,
    ) -> Result<BucketRow> {
        let _changing = self.inner.changing_buckets.lock().await;
        let inner = self.inner.clone();
        blocking(move || inner.system.assure_certain()).await?;
        self.has_room_for(&name, level_id, made_by.as_deref())?;
        let id = BucketId::random();
        let row = BucketRow {
            id,
            name,
            level_id,
            created_ms: now_ms(),
            level: OnceLock::new(),
            is_hidden: Arc::default(),
            made_by,
            documents: Arc::new(BucketDocuments::first(new.documents)),
        };
        let made = self.make_in_steps(row, new.tags).await;
        // Its row is certainly not there, or that would be in doubt. What can't be removed now is
        // left to the next start.
        let is_refused = made.as_ref().is_err_and(|error| {
            !matches!(error, VaultError::SystemInDoubt | VaultError::ShuttingDown)
        });
        if is_refused {
            let inner = self.inner.clone();
            if let Err(error) = blocking(move || unmake(&inner, id)).await {
                tracing::warn!(bucket = %id, %error, "half a bucket is left to the next start");
            }
        }
        made
    }

    /// Whether a bucket of this name can be made.
    fn has_room_for(
        &self,
        name: &BucketName,
        level_id: LevelId,
        made_by: Option<&str>,
    ) -> Result<()> {
        let system = &self.inner.system;
        if system.is_name_taken(name) {
            return Err(VaultError::BucketAlreadyOwnedByYou);
        }
        if system.is_level_going(level_id) {
            // Where it turns out that its erase is not ordered, it is there.
            let is_in_doubt = system.is_an_erase_in_doubt();
            return Err(if is_in_doubt {
                VaultError::SystemInDoubt
            } else {
                VaultError::NoSuchLevel
            });
        }
        if system.bucket_count() >= BUCKET_COUNT_MAX {
            return Err(VaultError::TooManyBuckets {
                limit: BUCKET_COUNT_MAX,
            });
        }
        let limit = self.inner.subject_limits.buckets;
        if made_by.is_some_and(|maker| system.buckets_made_by(maker) >= limit) {
            return Err(SubjectLimit::Buckets { limit }.into());
        }
        self.refuse_over_quota(level_id, made_by)
    }

    /// Refuses one bucket more than the quota of its level, or of who makes it, allows.
    fn refuse_over_quota(&self, level_id: LevelId, made_by: Option<&str>) -> Result<()> {
        let ledger = &self.inner.open_buckets.quotas;
        if ledger.is_empty() {
            return Ok(());
        }
        let rows = self.inner.system.buckets();
        let of_level = rows.iter().filter(|row| row.level_id == level_id);
        let of_level = (QuotaOf::Level(level_id), of_level.count());
        let of_maker = made_by.and_then(|maker| {
            let subject = QuotaOf::Subject(SubjectId::from_hex(maker)?);
            Some((subject, self.inner.system.buckets_made_by(maker)))
        });
        for (of, used) in std::iter::once(of_level).chain(of_maker) {
            ledger
                .admit_bucket(of, used as u64)
                .map_err(|over| StoreError::OverQuota(Box::new(over)))?;
        }
        Ok(())
    }

    /// The bucket is there once its row is; all else comes before.
    async fn make_in_steps(&self, row: BucketRow, tags: Option<Tags>) -> Result<BucketRow> {
        let (id, level_id) = (row.id, row.level_id);
        let inner = self.inner.clone();
        let key = blocking(move || {
            make_bucket_folder(&inner, id)?;
            Ok(inner.keystore.add_bucket(id, level_id)?)
        })
        .await?;
        let dir = self.inner.folder.bucket(id);
        let catalog = Catalog::create(&dir, &key.catalog_key(), row.name.as_str()).await?;
        if row.has_object_lock() {
            catalog.set_versioning(Versioning::Enabled).await?;
        }
        if tags.is_some() {
            catalog.set_bucket_tags(tags).await?;
        }
        let (open_buckets, made_by) = (&self.inner.open_buckets, row.made_by.as_deref());
        open_buckets.quotas.place(id, level_id, made_by);
        // Before others find the row: they would open the catalog once more.
        let blobs = open_buckets.blobs_of(&self.inner.folder, id);
        let bucket = OpenBucket::new(id, catalog.clone(), blobs, key);
        open_buckets.insert(bucket).await;
        let (inner, new_row) = (self.inner.clone(), row.clone());
        let added = blocking(move || {
            sync_folder(&dir).map_err(failed("sync", &dir))?;
            inner.system.add_bucket(new_row)
        });
        if let Err(error) = added.await {
            open_buckets.forget(id);
            catalog.close().await;
            // What may be there after all must not come back as an older copy of itself.
            if !matches!(error, VaultError::SystemInDoubt) {
                self.inner.freshness.commits.forget(id);
            }
            return Err(error);
        }
        Ok(row)
    }
}

#[cfg(test)]
mod tests;
