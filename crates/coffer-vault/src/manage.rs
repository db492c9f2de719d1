//! Buckets: made, listed, tagged. `deletion.rs` deletes them.
//!
//! A bucket is made in three durable steps: its key in the keystore, its folder with an empty
//! catalog, its row in the system database; only the row makes it exist. When it is deleted, row,
//! key and folder go, in this order. What is left when the server dies in between has a key but no
//! row, and an empty catalog, or is a folder that the system database calls doomed: recovery
//! removes it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::sync::{Arc, OnceLock};

use coffer_keys::LevelEntry;
use coffer_label::Label;
use coffer_store::record::{Id, Tags};
use coffer_store::{BlobStore, Catalog, Totals};

use crate::actor::Actor;
use crate::bucket::OpenBucket;
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::folder::{failed, sync_folder};
use crate::granting::{Changeable, Readable};
use crate::limits::BUCKET_COUNT_MAX;
use crate::monitor::{is_marked_by, may_know, may_write};
use crate::name::BucketName;
use crate::recording::Facts;
use crate::request::{BucketInfo, BucketSummary};
use crate::rights::Right;
use crate::roles::Role;
use crate::start::DEFAULT_LEVEL;
use crate::subject::Subject;
use crate::system::BucketRow;
use crate::vault::{Inner, Vault, info, now_ms};
use crate::watch::{self, On, READ_TAGS, WRITE_TAGS, begin, tell};

impl Vault {
    /// Makes a bucket in a level, or in `default`, for a data user.
    ///
    /// # Errors
    /// [`VaultError::BucketAlreadyOwnedByYou`], or [`VaultError::BucketAlreadyExists`] for one that
    /// the subject may not know of: names are shared by all levels, as they are by all accounts
    /// in S3. [`VaultError::NoSuchLevel`] also for a level that the subject may not write,
    /// [`VaultError::TooManyBuckets`]; [`VaultError::AccessDenied`] for one whose grants name the
    /// buckets that it may use.
    pub async fn create_bucket(
        &self,
        subject: &Arc<Subject>,
        name: &BucketName,
        level: Option<&str>,
    ) -> Result<BucketInfo> {
        let actor = Actor::Subject(subject.clone());
        let may_make = |level: &LevelEntry| may_write(subject, &level.label);
        let level = self.level_for_bucket(&actor, name, level, may_make)?;
        subject.standing.note_caller()?;
        self.check_mark(subject, &level.label, "bucket.create", name)?;
        if subject.grants.is_some() {
            self.refused(subject, "bucket.create", name);
            return Err(VaultError::AccessDenied);
        }
        let made = self.make_bucket_as(&actor, Role::DataUser, name, level);
        made.await.map_err(|error| match error {
            VaultError::BucketAlreadyOwnedByYou if self.known(subject, name).is_err() => {
                VaultError::BucketAlreadyExists
            }
            error => error,
        })
    }

    /// Makes a bucket in a level, or in `default`. A system administrator's act, which takes no
    /// access to its data.
    ///
    /// # Errors
    /// As [`create_bucket`](Self::create_bucket), but no level is hidden.
    pub async fn provide_bucket(
        &self,
        actor: &Actor,
        name: &BucketName,
        level: Option<&str>,
    ) -> Result<BucketSummary> {
        let may_make = |level: &LevelEntry| actor.may_know(&level.label);
        let level = self.level_for_bucket(actor, name, level, may_make)?;
        let label = level.label;
        if let Actor::Subject(subject) = actor
            && actor.has(Role::SystemAdministrator)
        {
            self.check_mark(subject, &label, "bucket.create", name)?;
        }
        let bucket = self
            .make_bucket_as(actor, Role::SystemAdministrator, name, level)
            .await?;
        self.summary_of(bucket, label, Some(Totals::default()))
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
            self.denied("bucket.create", actor, &facts);
            VaultError::NoSuchLevel
        })
    }

    async fn make_bucket_as(
        &self,
        actor: &Actor,
        role: Role,
        name: &BucketName,
        level: LevelEntry,
    ) -> Result<BucketInfo> {
        let facts = Facts::from([("bucket", name.to_string()), ("level", level.name.clone())]);
        self.refuse_without(actor, role, "bucket.create", &facts)?;
        let inner = self.inner.clone();
        blocking(move || inner.system.assure_certain()).await?;
        self.has_room_for(name)
            .map_err(|error| self.failed("bucket.create", actor, &facts, error))?;
        let (this, name) = (self.clone(), name.clone());
        let work = async move {
            let row = this.make_bucket(name, level.id).await?;
            Ok(info(&row, this.inner.tag(&row)?))
        };
        self.act(actor, role, "bucket.create", facts, work).await
    }

    async fn make_bucket(&self, name: BucketName, level_id: [u8; 16]) -> Result<BucketRow> {
        let _changing = self.inner.changing_buckets.lock().await;
        let inner = self.inner.clone();
        blocking(move || inner.system.assure_certain()).await?;
        self.has_room_for(&name)?;
        let id = Id(coffer_seal::random_bytes());
        let made = self.make_in_steps(id, name, level_id).await;
        // On a full disk clients try again and again. The row is certainly not there then: if it
        // might be, that would be in doubt.
        if matches!(made, Err(VaultError::StorageFull)) {
            let inner = self.inner.clone();
            if let Err(error) = blocking(move || unmake(&inner, id)).await {
                tracing::warn!(bucket = %id, %error, "half a bucket is left to the next start");
            }
        }
        made
    }

    /// Whether a bucket of this name can be made.
    fn has_room_for(&self, name: &BucketName) -> Result<()> {
        if self.inner.system.bucket(name).is_some() {
            return Err(VaultError::BucketAlreadyOwnedByYou);
        }
        if self.inner.system.buckets().len() >= BUCKET_COUNT_MAX {
            return Err(VaultError::TooManyBuckets {
                limit: BUCKET_COUNT_MAX,
            });
        }
        Ok(())
    }

    async fn make_in_steps(
        &self,
        id: Id,
        name: BucketName,
        level_id: [u8; 16],
    ) -> Result<BucketRow> {
        let inner = self.inner.clone();
        let key = blocking(move || {
            make_bucket_folder(&inner, id)?;
            Ok(inner.keystore.add_bucket(id.0, level_id)?)
        })
        .await?;
        let dir = self.inner.folder.bucket(id);
        let catalog = Catalog::create(&dir, &key.catalog_key(), name.as_str()).await?;
        let blobs = BlobStore::new(&dir, id);
        let row = BucketRow {
            id,
            name,
            level_id,
            created_ms: now_ms(),
            level: OnceLock::new(),
            is_hidden: Arc::default(),
        };
        let (inner, new_row) = (self.inner.clone(), row.clone());
        blocking(move || {
            sync_folder(&dir).map_err(failed("sync", &dir))?;
            inner.system.add_bucket(new_row)
        })
        .await?;
        self.inner
            .open_buckets
            .insert(OpenBucket::new(id, catalog, blobs, key))
            .await;
        Ok(row)
    }

    /// Whether the actor may know of a bucket.
    pub(crate) fn may_look_after(&self, actor: &Actor, row: &BucketRow) -> bool {
        let label = self.inner.label(row);
        label.is_ok_and(|label| match actor {
            Actor::Subject(subject) if !actor.looks_after() => {
                subject.roles.has(Role::DataUser) && may_know(subject, row.id, label)
            }
            _ => true,
        })
    }

    /// All buckets that the actor may know of, by name: those who look after the server know of
    /// all.
    pub async fn buckets_known_to(&self, actor: &Actor) -> Vec<BucketSummary> {
        let mut summaries = Vec::new();
        for row in self.inner.system.buckets() {
            if self.may_look_after(actor, &row) {
                summaries.extend(self.summary(actor, &row).await);
            }
        }
        summaries
    }

    /// A bucket that the actor may know of.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`].
    pub async fn bucket_known_to(&self, actor: &Actor, name: &BucketName) -> Result<BucketSummary> {
        let found = self.inner.system.bucket(name);
        let row = found.filter(|row| self.may_look_after(actor, row));
        let row = row.ok_or(VaultError::NoSuchBucket)?;
        self.summary(actor, &row).await
    }

    async fn summary(&self, actor: &Actor, row: &BucketRow) -> Result<BucketSummary> {
        let tag = self.inner.tag(row)?;
        let totals = match may_tell_totals(actor, &tag.label) {
            true => self.inner.open_buckets.known_totals(row.id).await,
            false => None,
        };
        self.summary_of(info(row, tag), tag.label, totals)
    }

    fn summary_of(
        &self,
        bucket: BucketInfo,
        label: Label,
        totals: Option<Totals>,
    ) -> Result<BucketSummary> {
        let key = self.inner.keystore.bucket(&bucket.id.0);
        let key = key.ok_or(VaultError::NoSuchBucket)?;
        Ok(BucketSummary {
            bucket,
            label,
            generation: key.generation,
            older_generation: key.older_generation,
            totals,
        })
    }

    /// A bucket.
    pub async fn bucket(&self, subject: &Subject, name: &BucketName) -> Result<BucketInfo> {
        let row = self.known(subject, name)?;
        Ok(info(&row, self.inner.tag(&row)?))
    }

    /// All buckets that the subject may read, by name.
    pub async fn buckets(&self, subject: &Subject) -> Result<Vec<BucketInfo>> {
        subject.standing.note_caller()?;
        if !subject.roles.has(Role::DataUser) {
            add(&self.inner.tally.denied_count, 1);
            self.denied("bucket.list", subject, &Facts::new());
            return Err(VaultError::AccessDenied);
        }
        let known = |row: Arc<BucketRow>| {
            let tag = self.inner.tag(&row).ok()?;
            may_know(subject, row.id, &tag.label).then(|| info(&row, tag))
        };
        let rows = self.inner.system.buckets().into_iter();
        Ok(rows.filter_map(known).collect())
    }

    /// The bucket's tags, if it has any.
    pub async fn bucket_tags(&self, subject: &Subject, name: &BucketName) -> Result<Option<Tags>> {
        let Readable {
            bucket,
            watch,
            reading: _reading,
            ..
        } = self.readable(subject, name, Right::Read).await?;
        tell(watch.as_ref(), READ_TAGS, On::Bucket).await?;
        Ok(bucket.catalog.bucket_tags().await?)
    }

    /// Sets or removes the bucket's tags.
    pub async fn set_bucket_tags(
        &self,
        subject: &Subject,
        name: &BucketName,
        tags: Option<Tags>,
    ) -> Result<()> {
        let Changeable {
            bucket,
            watch,
            permit,
            ..
        } = self.changeable(subject, name, Right::Write).await?;
        let begun = begin(watch.as_ref(), WRITE_TAGS, [On::Bucket]).await?;
        let set = async {
            let _guard = permit.to_commit(&bucket).await?;
            Ok(bucket.catalog.set_bucket_tags(tags).await?)
        };
        set.await.inspect_err(|error| watch::failed(&begun, error))
    }
}

/// Whether the actor may be told how much is in a bucket. That is something read there, and this is
/// no place to raise marks.
fn may_tell_totals(actor: &Actor, label: &Label) -> bool {
    match actor {
        Actor::Subject(subject) => {
            !subject.roles.has(Role::DataUser)
                || !is_marked_by(subject, label)
                || subject.mark.covers(label)
        }
        Actor::Local { .. } => true,
    }
}

fn make_bucket_folder(inner: &Inner, id: Id) -> Result<()> {
    let buckets = inner.folder.buckets();
    let dir = inner.folder.bucket(id);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .map_err(failed("make the bucket's folder", &dir))?;
    sync_folder(&buckets).map_err(failed("sync", &buckets))?;
    sync_folder(inner.folder.path()).map_err(failed("sync", inner.folder.path()))
}

/// Removes what was made of a bucket that has no row: the folder first, for its key alone tells of
/// it.
fn unmake(inner: &Inner, id: Id) -> Result<()> {
    remove_folder(inner, id)?;
    match inner.keystore.holds_bucket(&id.0) {
        true => Ok(inner.keystore.destroy_bucket(&id.0)?),
        false => Ok(()),
    }
}

/// Removes the folder of a bucket that is doomed. One whose key is there stays: the key is about to
/// be destroyed, or an import has brought it back.
pub(crate) fn remove_doomed_folder(inner: &Inner, id: Id) -> Result<()> {
    if inner.keystore.holds_bucket(&id.0) {
        return Ok(());
    }
    remove_folder(inner, id)?;
    inner.system.forget_doomed(id)
}

fn remove_folder(inner: &Inner, id: Id) -> Result<()> {
    let dir = inner.folder.bucket(id);
    match std::fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(failed("remove", &dir)(error));
        }
        _ => {}
    }
    // Or a power cut brings the folder back when nobody knows of it any more.
    let buckets = inner.folder.buckets();
    sync_folder(&buckets).map_err(failed("sync", &buckets))
}

/// Runs what waits for the disk where it holds up nobody.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| VaultError::ShuttingDown)?
}
