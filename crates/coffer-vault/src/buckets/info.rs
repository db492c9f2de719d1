//! What is told of buckets, and who is told of which.

use std::sync::Arc;
use std::time::Instant;

use coffer_keys::BucketEntry;
use coffer_label::Label;
use coffer_seal::BucketId;
use coffer_store::{OpenUploads, Totals};
use tokio::time::sleep;

use super::settings::BucketSettings;
use crate::access::{
    Act, Actor, BucketName, Right, Role, Subject, is_marked_by, may_know, may_use,
};
use crate::audit::Facts;
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::limits::{OUT_OF_USE_LOOK, OUT_OF_USE_WAIT};
use crate::system::{BucketRow, LevelTag};
use crate::vault::{EtagStyle, Vault};

/// A bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketInfo {
    /// Its name.
    pub name: BucketName,
    /// Its id.
    pub id: BucketId,
    /// Name of its level.
    pub level: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
    /// Whether entity tags of what comes to it are MD5s, by what was said when it was made; in a
    /// [`BucketSummary`] also where all of the server's are.
    pub md5_etags: bool,
}

/// A bucket as those see it who look after the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketSummary {
    /// The bucket.
    pub bucket: BucketInfo,
    /// Label of its level.
    pub label: Label,
    /// The generation of its key, from 1.
    pub generation: u32,
    /// The generation before, while it is being rotated.
    pub older_generation: Option<u32>,
    /// How much it holds, and its uploads under way, where that is known without opening it.
    pub totals: Option<(Totals, OpenUploads)>,
    /// What is set of it, where that may be told.
    pub settings: Option<BucketSettings>,
}

impl Vault {
    /// Whether the actor may know of a bucket.
    pub(crate) fn may_look_after(&self, actor: &Actor, row: &BucketRow) -> bool {
        let Ok(label) = self.inner.label(row) else {
            return actor.looks_after() && self.inner.is_level_gone(row);
        };
        match actor {
            Actor::Subject(subject) if !actor.looks_after() => {
                subject.roles.has(Role::DataUser) && may_know(subject, row.id, label)
            }
            _ => true,
        }
    }

    /// A bucket that the actor may know of.
    pub(crate) fn looked_after(&self, actor: &Actor, name: &BucketName) -> Result<Arc<BucketRow>> {
        let system = &self.inner.system;
        let found = system.bucket_or_doubt(name);
        let row = found.filter(|row| self.may_look_after(actor, row));
        let row = row.ok_or(VaultError::NoSuchBucket)?;
        if system.is_in_doubt(&row) {
            return Err(VaultError::BucketInDoubt);
        }
        Ok(row)
    }

    /// All buckets that the actor may know of, by name: those who look after the server know of
    /// all.
    ///
    /// # Errors
    /// [`VaultError::BucketInDoubt`] while it is not known whether one of them is there.
    pub async fn buckets_known_to(&self, actor: &Actor) -> Result<Vec<BucketSummary>> {
        let mut summaries = Vec::new();
        for row in self.certain(|row| self.may_look_after(actor, row)).await? {
            summaries.extend(self.summary(actor, &row).await);
        }
        Ok(summaries)
    }

    /// All buckets of those that may be told, by name. Where one of them is in doubt, a list would
    /// say that it is there, or that it is not. An erase of it that may be refused yet is waited
    /// for: that is known within milliseconds.
    async fn certain(&self, may_tell: impl Fn(&BucketRow) -> bool) -> Result<Vec<Arc<BucketRow>>> {
        let (system, begun) = (&self.inner.system, Instant::now());
        loop {
            let mut rows = system.buckets_and_doubts();
            rows.retain(|row| may_tell(row));
            if !rows.iter().any(|row| system.is_in_doubt(row)) {
                return Ok(rows);
            }
            let is_of_disk = system.has_doubt() || system.is_an_erase_in_doubt();
            if is_of_disk || begun.elapsed() > OUT_OF_USE_WAIT {
                return Err(VaultError::BucketInDoubt);
            }
            sleep(OUT_OF_USE_LOOK).await;
        }
    }

    /// A bucket that the actor may know of.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`], [`VaultError::BucketInDoubt`].
    pub async fn bucket_known_to(&self, actor: &Actor, name: &BucketName) -> Result<BucketSummary> {
        let row = self.looked_after(actor, name)?;
        self.summary(actor, &row).await
    }

    pub(super) async fn summary(&self, actor: &Actor, row: &BucketRow) -> Result<BucketSummary> {
        if self.inner.is_level_gone(row) {
            return Err(self.inner.without_key(row));
        }
        let tag = self.inner.tag(row)?;
        let may_tell = may_tell_content(actor, row.id, &tag.label);
        let (totals, settings) = if may_tell && self.is_let_to_ask(actor, row) {
            let totals = self.inner.open_buckets.known(row.id).await;
            (totals, self.settings(actor, row).ok())
        } else {
            (None, None)
        };
        let mut bucket = info(row, tag);
        bucket.md5_etags |= self.inner.etag == EtagStyle::Md5;
        let key = self.inner.keystore.bucket(bucket.id);
        let is_destroyed = || self.inner.is_key_destroyed(row);
        let without = || is_destroyed().then(|| BucketEntry::without_key(row.id, row.level_id));
        let key = key.or_else(without);
        let key = key.ok_or_else(|| self.inner.without_key(row))?;
        Ok(BucketSummary {
            bucket,
            label: tag.label,
            generation: key.generation,
            older_generation: key.older_generation,
            totals,
            settings,
        })
    }

    /// Whether what a bucket says of who may use it lets the actor ask otherwise than over S3:
    /// there, where it says anything, its owner alone.
    fn is_let_to_ask(&self, actor: &Actor, row: &BucketRow) -> bool {
        match actor {
            Actor::Subject(subject) => {
                actor.looks_after() || !row.documents.is_shared() || self.owns(subject, row)
            }
            Actor::Local { .. } => true,
        }
    }

    /// A bucket that the subject is told of, as far as its policy lets it. That it does tells of
    /// the policy, as a refusal would: the subject has read there, then.
    pub(super) async fn told_row(
        &self,
        subject: &Subject,
        name: &BucketName,
    ) -> Result<Arc<BucketRow>> {
        let row = self.known(subject, name)?;
        if let Some(sharing) = self.sharing(&row)? {
            let checked = self.check_asked(subject, &row, &sharing);
            let checked = self.noting_refusal(subject, &row, checked).await;
            checked.inspect_err(|error| {
                if matches!(error, VaultError::AccessDenied) {
                    self.refused(subject, Act::UseBucket, name);
                }
            })?;
            self.note_read(subject, &row).await?;
        }
        Ok(row)
    }

    /// A bucket.
    pub async fn bucket(&self, subject: &Subject, name: &BucketName) -> Result<BucketInfo> {
        let row = self.told_row(subject, name).await?;
        self.inner.check_key(&row)?;
        Ok(info(&row, self.inner.tag(&row)?))
    }

    /// All buckets that the subject may read, by name.
    pub async fn buckets(&self, subject: &Subject) -> Result<Vec<BucketInfo>> {
        subject.cutoff.note_caller()?;
        if !subject.roles.has(Role::DataUser) {
            add(&self.inner.tally.denied_count, 1);
            self.denied(Act::ListBuckets, subject, &Facts::new());
            return Err(VaultError::AccessDenied);
        }
        let may_tell = |row: &BucketRow| {
            let label = self.inner.label(row);
            label.is_ok_and(|label| may_know(subject, row.id, label))
        };
        let rows = self.certain(may_tell).await?.into_iter();
        let told = |row: Arc<BucketRow>| Some(info(&row, self.inner.tag(&row).ok()?));
        self.inner.copies.waited_for.settle_read(None).await?;
        Ok(rows.filter_map(told).collect())
    }
}

pub(crate) fn info(row: &BucketRow, level: &LevelTag) -> BucketInfo {
    let BucketRow {
        id,
        name,
        created_ms,
        ..
    } = row;
    BucketInfo {
        name: name.clone(),
        id: *id,
        level: level.name.clone(),
        created_ms: *created_ms,
        md5_etags: row.has_md5_etags(),
    }
}

/// Whether the actor may be told how much is in a bucket, and what was set of it. That is something
/// read there, which takes the right to list, and this is no place to raise marks.
fn may_tell_content(actor: &Actor, id: BucketId, label: &Label) -> bool {
    match actor {
        Actor::Subject(subject) => {
            let may_list = actor.looks_after() || may_use(subject, id, label, Right::List);
            let is_read = !is_marked_by(subject, label) || subject.mark.covers(label);
            may_list && (!subject.roles.has(Role::DataUser) || is_read)
        }
        Actor::Local { .. } => true,
    }
}
