//! That a subject may change what is in a bucket: found when its request begins, and asked again
//! when it commits.

use std::sync::Arc;

use coffer_policy::Action;
use coffer_store::record::{ObjectName, Upload};

use super::decide::Marked;
use crate::access::{AskedEach, AskedOf, Right, Sharing, Single, may_use};
use crate::counters::add;
use crate::error::{Result, SharingError, VaultError};
use crate::open_buckets::{CommitGuard, OpenBucket};
use crate::system::BucketRow;
use crate::vault::Vault;

/// That a subject may write in a bucket, to be asked again when it commits.
#[derive(Clone)]
pub(super) struct Permit {
    pub(super) vault: Vault,
    pub(super) row: Arc<BucketRow>,
    pub(super) right: Right,
    pub(super) marked: Marked,
    /// What was said of sharing the bucket when the request began.
    pub(super) judged_by: Option<Arc<Sharing>>,
    /// What it does to objects one by one, where the bucket has a policy.
    pub(super) each: Vec<AskedEach>,
    /// The rights that it takes besides, where nothing else says who may.
    pub(super) also: Vec<Right>,
    /// The upload that it is about, and what it does to it.
    pub(super) upload: Option<(Action, Arc<Upload>)>,
    /// Whether it says who may use the bucket, as only its owner may where nothing lets others.
    pub(super) says_who_may: bool,
}

impl Permit {
    /// Keeps the bucket from being deleted while something is committed in it, and sees whether
    /// the subject may still write there. What it was judged by stays as it is for as long as the
    /// guard is held.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`], [`VaultError::BucketInDoubt`], [`VaultError::AccessDenied`],
    /// [`VaultError::ReadAbove`].
    pub(super) async fn to_commit<'a>(&self, bucket: &'a OpenBucket) -> Result<CommitGuard<'a>> {
        let guard = match self.guard(bucket).await {
            // It may have been in doubt, which may be over by now; or its deletion may be refused
            // yet.
            Err(VaultError::NoSuchBucket) => {
                return Err(self.vault.inner.out_of_use(&self.row, Some(bucket)).await);
            }
            guard => guard?,
        };
        // What a setting in doubt says of who may do what is not known; an act that makes one does
        // so from here on.
        if self.row.is_out_of_use() {
            drop(guard);
            return Err(self.vault.inner.out_of_use(&self.row, None).await);
        }
        self.marked.subject.cutoff.check()?;
        let label = self.vault.inner.label(&self.row)?;
        let (act, name) = (self.right.act(), &self.row.name);
        self.vault.check_marked(&self.marked, label, act, name)?;
        self.check_policy(bucket).await?;
        Ok(guard)
    }

    /// What says who may do what changes only while nothing else is committed. Where objects that
    /// are there say so, each changes only while nothing is committed that is judged by it, which
    /// is what names it; and what names none, such as the bucket's versioning, while nothing is.
    async fn guard<'a>(&self, bucket: &'a OpenBucket) -> Result<CommitGuard<'a>> {
        if self.says_who_may {
            return bucket.commit_alone().await;
        }
        if !self.asks_for_objects()? {
            let guard = bucket.commit_guard().await?;
            // It may have changed until then, and does not any more.
            if !self.asks_for_objects()? {
                return Ok(guard);
            }
        }
        let names = self.names();
        if names.is_empty() {
            bucket.commit_alone().await
        } else {
            bucket.commit_of(&names).await
        }
    }

    fn asks_for_objects(&self) -> Result<bool> {
        let sharing = self.vault.sharing(&self.row)?;
        Ok(sharing.is_some_and(|sharing| sharing.asks_for_objects()))
    }

    /// The objects that it changes, and is judged by.
    fn names(&self) -> Vec<&ObjectName> {
        let asked = self.marked.subject.asked.iter();
        let asked = asked.flat_map(|asked| asked.within(&self.row.name));
        let named = asked.filter_map(|asked| match &asked.on {
            AskedOf::Object(name, _) => Some(name),
            AskedOf::Bucket | AskedOf::Each => None,
        });
        let each = self.each.iter().map(|one| &one.name);
        let of_upload = self.upload.iter().map(|(_, upload)| &upload.name);
        named.chain(each).chain(of_upload).collect()
    }

    /// Whether grants and the label give the subject this right.
    pub(super) fn has(&self, right: Right) -> Result<bool> {
        let label = self.vault.inner.label(&self.row)?;
        Ok(may_use(&self.marked.subject, self.row.id, label, right))
    }

    /// Whether one of several actions is allowed: where the bucket is not shared, by the right that
    /// it takes. And whether that tells of what the bucket holds, or of what is said of sharing it.
    pub(super) async fn lets(&self, bucket: &OpenBucket, what: Single<'_>) -> Result<(bool, bool)> {
        let (vault, subject, row) = (&self.vault, &self.marked.subject, &self.row);
        match vault.sharing(row)? {
            Some(sharing) => {
                let lets = vault.lets_object(subject, row, &sharing, what, bucket);
                let (is_let, depends) = lets.await?;
                Ok((is_let, depends || !is_let))
            }
            None if matches!(what.action, Action::GetObject | Action::GetObjectVersion) => {
                Ok((self.has(Right::Read)?, false))
            }
            None => Ok((self.has(self.right)?, false)),
        }
    }

    /// Whether the bucket's policy, which may be another one by now, still allows it.
    async fn check_policy(&self, bucket: &OpenBucket) -> Result<()> {
        let (vault, subject, row) = (&self.vault, &self.marked.subject, &self.row);
        let mut lets_each = true;
        for one in &self.each {
            lets_each &= self.lets(bucket, one.single()).await?.0;
        }
        if row.documents.is_shared() {
            if !lets_each {
                return Err(SharingError::Changed.into());
            }
            let checked = self.check_shared(bucket).await;
            return checked
                .inspect_err(|error| vault.note_refusal(error, subject, self.right, row));
        }
        let is_not_owner = self.says_who_may && !vault.owns(subject, row);
        // It may have been the policy alone that let it in.
        if is_not_owner || !lets_each || !self.has_all()? {
            vault.refused(subject, self.right.act(), &row.name);
            return Err(VaultError::AccessDenied);
        }
        Ok(())
    }

    /// Whether the policy and the lists that there are now allow all that the request asks for.
    async fn check_shared(&self, bucket: &OpenBucket) -> Result<()> {
        let (vault, subject, row) = (&self.vault, &self.marked.subject, &self.row);
        let checked = vault.check_objects(subject, row, bucket, self.judged_by.as_ref());
        checked.await?;
        match &self.upload {
            Some((action, upload)) => {
                let about = (*action, &**upload);
                vault.judge_upload(subject, row, bucket, about).await
            }
            None => Ok(()),
        }
    }

    /// Whether grants and the label give all the rights that it takes.
    pub(super) fn has_all(&self) -> Result<bool> {
        let mut all = [self.right].into_iter().chain(self.also.iter().copied());
        all.try_fold(true, |has, right| Ok(has && self.has(right)?))
    }

    /// Before something is answered that tells of what the bucket holds: the subject has read
    /// there, then.
    pub(super) async fn note_read(&self) -> Result<()> {
        let label = self.vault.inner.label(&self.row)?;
        self.vault.raise(&self.marked, label).await.map(drop)
    }

    pub(super) fn count_full(&self, error: &VaultError) {
        if matches!(error, VaultError::StorageFull) {
            add(&self.vault.inner.tally.storage_full_count, 1);
        }
    }
}
