//! What a bucket's policy and lists say of a request, within what labels allow.
//!
//! A request is let through where all that it asks for is: where the policy denies nothing of it,
//! and gives what the subject's grants don't, or a list does. A bucket without a policy where lists
//! don't count is not asked about here at all. What a request asks for goes along with its subject
//! (`Asked`); one that does not say so in a bucket that has a policy or lists is refused.
//!
//! Whose a bucket is: the subject's that made it. Where none did, or that one is gone, all who may
//! do everything in it are as its owner.

use std::sync::Arc;

use coffer_policy::{Acl, Action, Resource};
use coffer_seal::{IdText, SubjectId};
use coffer_store::record::{ObjectName, Upload};
use coffer_store::version::{Absent, VersionId, Versioning, Which};

use super::judge::{
    Bench, Known, Requesting, Verdict, needs_object, sees_tags, takes_place_of_null,
};
use super::judged_object::JudgedObject;
use crate::access::{AskedOf, Rights, Sharing, Single, Subject, maker, may_read};
use crate::error::{Result, SharingError, VaultError};
use crate::open_buckets::OpenBucket;
use crate::system::BucketRow;
use crate::vault::Vault;

impl Vault {
    /// What is said of sharing a bucket, if anything is.
    pub(crate) fn sharing(&self, row: &BucketRow) -> Result<Option<Arc<Sharing>>> {
        row.documents
            .sharing(row.name.as_str(), &self.inner.account)
    }

    /// The subject that made a bucket, if it did and is still there.
    pub(crate) fn owner_of(&self, row: &BucketRow) -> Option<SubjectId> {
        let maker = row.made_by.as_deref().and_then(SubjectId::from_hex)?;
        self.inner.system.subject_of_id(maker).map(|_| maker)
    }

    /// Whether the subject counts as the owner of a bucket.
    pub(crate) fn owns(&self, subject: &Subject, row: &BucketRow) -> bool {
        self.owns_as(&IdText::new(&subject.id.0), subject, row)
    }

    /// The same of who has this id.
    fn owns_as(&self, id: &IdText, subject: &Subject, row: &BucketRow) -> bool {
        if subject.is_anonymous() {
            return false;
        }
        // Who asks is there.
        if row.made_by.as_deref() == Some(id.as_str()) {
            return true;
        }
        match self.owner_of(row) {
            Some(_) => false,
            None => subject.grants.as_deref().is_none_or(|grants| {
                let rights = grants.get(&row.id);
                rights.is_some_and(|rights| *rights == Rights::all())
            }),
        }
    }

    /// Whether a bucket that the subject's grants don't name is shared with it, within what it may
    /// read.
    pub(crate) fn is_shared_with(&self, subject: &Subject, row: &BucketRow) -> Result<bool> {
        // First, so that what a bucket says that may not be known of takes no time.
        let level = self.inner.tag(row)?;
        let is_known = !subject.is_anonymous() || level.is_public;
        if !may_read(subject, &level.label) || !is_known {
            return Ok(false);
        }
        let Some(sharing) = self.sharing(row)? else {
            return Ok(false);
        };
        let requesting = self.requesting(subject, row);
        Ok(sharing.is_shared_with(requesting.requester()))
    }

    /// Whether those who sign nothing are let in to a bucket by its policy, or by its own list.
    pub(crate) fn is_public(&self, row: &BucketRow) -> Result<bool> {
        let Some(sharing) = self.sharing(row)? else {
            return Ok(false);
        };
        let anonymous = self.requesting(&self.inner.anonymous, row);
        let list = self.bucket_list(row, &sharing)?;
        Ok(self.inner.tag(row)?.is_public && sharing.is_public(anonymous.requester(), &list))
    }

    /// Whether all that the subject asks for in the bucket is allowed. What depends on an object
    /// that is there is left to [`check_objects`](Self::check_objects).
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`], which the caller notes; [`SharingError::Changed`] for a
    /// request that began when there was nothing, or less, to be asked.
    pub(crate) fn check_asked(
        &self,
        subject: &Subject,
        row: &BucketRow,
        sharing: &Sharing,
    ) -> Result<()> {
        let asked = subject.asked.as_deref().ok_or(SharingError::Changed)?;
        let bench = self.bench(subject, row, sharing)?;
        let mut is_any = false;
        for ask in asked.within(&row.name) {
            is_any = true;
            let Some(resource) = ask.on.resource() else {
                continue;
            };
            let known = Known {
                which: ask.on.which(),
                ..Known::default()
            };
            let waits = sharing.asks_for_objects() && matches!(resource, Resource::Object(_));
            if !waits && bench.judge(ask.action, resource, asked, known) == Verdict::No {
                return Err(VaultError::AccessDenied);
            }
        }
        if is_any {
            Ok(())
        } else {
            Err(VaultError::AccessDenied)
        }
    }

    /// Whether nothing is left to be judged once the bucket is open: what was judged by are still
    /// its documents, and they ask for no object.
    pub(crate) fn is_judged(&self, row: &BucketRow, judged_by: Option<&Arc<Sharing>>) -> bool {
        let Some(by) = judged_by.filter(|by| !by.asks_for_objects()) else {
            return false;
        };
        matches!(self.sharing(row), Ok(Some(sharing)) if Arc::ptr_eq(by, &sharing))
    }

    /// As [`check_asked`](Self::check_asked), once the bucket is open: where it depends on objects
    /// that are there, with those. Tells which it depended on. What was let by these same documents
    /// (`judged_by`) is let again: nothing else of a request changes while it runs.
    pub(crate) async fn check_objects(
        &self,
        subject: &Subject,
        row: &BucketRow,
        bucket: &OpenBucket,
        judged_by: Option<&Arc<Sharing>>,
    ) -> Result<Vec<JudgedObject>> {
        let mut judged = Vec::new();
        let Some(sharing) = self.sharing(row)? else {
            return Ok(judged);
        };
        if !judged_by.is_some_and(|by| Arc::ptr_eq(by, &sharing)) {
            self.check_asked(subject, row, &sharing)?;
        }
        let Some(asked) = subject.asked.as_deref() else {
            return Ok(judged);
        };
        if !sharing.asks_for_objects() {
            return Ok(judged);
        }
        for ask in asked.within(&row.name) {
            let AskedOf::Object(name, which) = &ask.on else {
                continue;
            };
            let what = Single {
                action: ask.action,
                name,
                which: *which,
                own: None,
            };
            match self
                .judge_object(subject, row, &sharing, what, bucket)
                .await?
            {
                (Verdict::No, _) => return Err(VaultError::AccessDenied),
                (_, by) => judged.extend(by),
            }
        }
        Ok(judged)
    }

    /// Whether an action on one object is allowed; and if it is, whether that depended on what is
    /// there.
    pub(crate) async fn lets_object(
        &self,
        subject: &Subject,
        row: &BucketRow,
        sharing: &Sharing,
        what: Single<'_>,
        bucket: &OpenBucket,
    ) -> Result<(bool, bool)> {
        let judged = self.judge_object(subject, row, sharing, what, bucket);
        let (verdict, by) = judged.await?;
        Ok((verdict != Verdict::No, by.is_some()))
    }

    /// What is said of an action on one object, and by what of it, where it depends on that.
    ///
    /// # Errors
    /// Also that there is no such object, to who may not read it but list the bucket.
    async fn judge_object(
        &self,
        subject: &Subject,
        row: &BucketRow,
        sharing: &Sharing,
        what: Single<'_>,
        bucket: &OpenBucket,
    ) -> Result<(Verdict, Option<JudgedObject>)> {
        let asked = subject.asked.as_deref().ok_or(SharingError::Changed)?;
        let Single {
            action,
            name,
            which,
            own,
        } = what;
        let tags = if sharing.asks_for_tags && sees_tags(action) {
            let found = bucket.catalog.object_tags(name, which).await?;
            Some(found.ok().map(|(tags, _)| tags))
        } else {
            None
        };
        let found = if sharing.has_acls() {
            Some(bucket.catalog.object_access(name, which).await?)
        } else {
            None
        };
        let access = found.as_ref().and_then(|found| found.as_ref().ok());
        let list = access.map(|(access, _)| self.object_list(row, access));
        let list = list.transpose()?;
        let resource = Resource::Object(name.expose());
        let known = Known {
            tags: tags.as_ref().and_then(Option::as_ref),
            list: list.as_ref(),
            which,
            own,
        };
        let bench = self.bench(subject, row, sharing)?;
        let mut verdict = bench.judge(action, resource, asked, known);
        if sharing.has_acls() && takes_place_of_null(action, which) {
            let null = self.null_list(row, bucket, name).await?;
            if let Some(list) = null.as_ref() {
                let list = Some(list);
                let known = Known { list, ..known };
                verdict = verdict.min(bench.judge(action, resource, asked, known));
            }
        }
        let by_list = verdict == Verdict::ByList;
        let access = match found {
            Some(Err(absent)) if verdict == Verdict::No && needs_object(action, asked) => {
                // Whom a list lets list, it lets know what is missing.
                if self.may_list(subject, row)? {
                    return Err(absent.into());
                }
                None
            }
            Some(Ok((access, _))) => Some(access),
            _ => None,
        };
        let judged = JudgedObject {
            is_read: action.name().starts_with("Get"),
            name: name.clone(),
            which,
            access: access.filter(|_| by_list),
            tags,
        };
        let depends = judged.access.is_some() || judged.tags.is_some();
        Ok((verdict, depends.then_some(judged)))
    }

    /// The list of the null version that a write or a delete marker would take the place of, where
    /// that is not the newest.
    async fn null_list(
        &self,
        row: &BucketRow,
        bucket: &OpenBucket,
        name: &ObjectName,
    ) -> Result<Option<Acl>> {
        let versioning = bucket.catalog.versioning().await;
        if versioning.map_err(VaultError::of_setting)? != Versioning::Suspended {
            return Ok(None);
        }
        let null = Which::Version(VersionId::Null);
        let found = bucket.catalog.object_access(name, null).await?;
        let access = found.ok().map(|(access, _)| access);
        access
            .map(|access| self.object_list(row, &access))
            .transpose()
    }

    /// Whether an action on an upload under way is allowed: on any, or, by a list or because who
    /// begins an upload may end it, on what the subject has begun.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`], which the caller notes.
    pub(crate) async fn judge_upload(
        &self,
        subject: &Subject,
        row: &BucketRow,
        bucket: &OpenBucket,
        (action, upload): (Action, &Upload),
    ) -> Result<()> {
        let Some(sharing) = self.sharing(row)? else {
            return Ok(());
        };
        let what = Single {
            action,
            name: &upload.name,
            which: Which::Current,
            own: None,
        };
        let judged = self.judge_object(subject, row, &sharing, what, bucket);
        let is_own = upload.made_by.as_deref() == Some(maker(subject).as_str());
        match judged.await?.0 {
            Verdict::Yes => Ok(()),
            Verdict::ByList | Verdict::AsInitiator if is_own => Ok(()),
            _ => Err(VaultError::AccessDenied),
        }
    }

    /// Whether the subject may list the bucket, and so be told that an object is not there.
    pub(crate) fn may_list(&self, subject: &Subject, row: &BucketRow) -> Result<bool> {
        let (Some(sharing), Some(asked)) = (self.sharing(row)?, subject.asked.as_deref()) else {
            return Ok(true);
        };
        let bench = self.bench(subject, row, &sharing)?;
        let verdict = bench.judge(
            Action::ListBucket,
            Resource::Bucket,
            asked,
            Known::default(),
        );
        Ok(verdict != Verdict::No)
    }

    /// That an object is missing is told only to who may list the bucket, where it has a policy
    /// (Amazon S3 API Reference, `GetObject`). To others a condition failed, or they are denied.
    pub(crate) fn missing(
        &self,
        subject: &Subject,
        row: &BucketRow,
        error: VaultError,
    ) -> VaultError {
        let told_to_others = match error {
            VaultError::NoSuchObject | VaultError::NoVersion(Absent::Deleted(_)) => {
                VaultError::AccessDenied
            }
            VaultError::NothingToMatch => VaultError::PreconditionFailed,
            _ => return error,
        };
        if !row.documents.is_shared() {
            return error;
        }
        match self.may_list(subject, row) {
            Ok(true) => error,
            _ => told_to_others,
        }
    }

    /// All that judging takes but the objects.
    ///
    /// # Errors
    /// [`SharingError::Changed`] for a request that does not say all that is asked of it by now.
    fn bench<'a>(
        &self,
        subject: &'a Subject,
        row: &'a BucketRow,
        sharing: &'a Sharing,
    ) -> Result<Bench<'a>> {
        let asked = subject.asked.as_deref();
        if asked.is_some_and(|asked| !asked.is_enough_for(sharing)) {
            return Err(SharingError::Changed.into());
        }
        let list = sharing.has_acls().then(|| self.bucket_list(row, sharing));
        Ok(Bench {
            requesting: self.requesting(subject, row),
            row,
            sharing,
            list: list.transpose()?,
        })
    }

    fn requesting<'a>(&self, subject: &'a Subject, row: &BucketRow) -> Requesting<'a> {
        let id = IdText::new(&subject.id.0);
        Requesting {
            id,
            subject,
            owns_bucket: self.owns_as(&id, subject, row),
        }
    }
}
