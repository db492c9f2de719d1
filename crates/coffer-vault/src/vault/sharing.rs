//! What a bucket's policy says of a request, within what labels allow.
//!
//! A request is let through where all that it asks for is: where the policy denies nothing of it,
//! and gives what the subject's grants don't. A bucket without a policy is not asked about here at
//! all. What a request asks for goes along with its subject (`Asked`); one that does not say so in
//! a bucket that has a policy is refused.
//!
//! Whose a bucket is: the subject's that made it. Where none did, or that one is gone, all who may
//! do everything in it are as its owner.

use std::sync::Arc;

use coffer_policy::{Action, Identity, Request, Requester, Resource, Shared};
use coffer_seal::SubjectId;
use coffer_store::record::{ObjectName, Tags};
use coffer_store::version::{Absent, Which};

use crate::access::{
    Asked, AskedAction, AskedOf, Rights, Sharing, Subject, WithObject, is_of_owner, may_read,
    right_for,
};
use crate::error::{Result, SharingError, VaultError};
use crate::open_buckets::OpenBucket;
use crate::system::BucketRow;
use crate::vault::Vault;

/// Who asks, as policies see it.
struct Requesting<'a> {
    id: coffer_policy::SubjectId,
    subject: &'a Subject,
    owns_bucket: bool,
}

impl Requesting<'_> {
    fn requester(&self) -> Requester<'_> {
        if self.subject.is_anonymous() {
            return Requester::Anonymous;
        }
        Requester::Subject(Identity {
            id: &self.id,
            name: &self.subject.name,
            owns_bucket: self.owns_bucket,
        })
    }
}

impl Vault {
    /// Whether what requests to a bucket ask for must be said ([`Subject::asking`]), for it has a
    /// policy.
    pub fn is_shared(&self, bucket: &str) -> bool {
        self.inner.system.is_shared(bucket)
    }

    /// Whether requests to a bucket that are not signed are to be looked at: it has a policy, and
    /// its level is public.
    pub fn may_be_public(&self, bucket: &str) -> bool {
        let row = self.inner.system.bucket_named(bucket);
        row.is_some_and(|row| {
            let is_public = self.inner.tag(&row).is_ok_and(|level| level.is_public);
            is_public && row.documents.is_shared()
        })
    }

    /// Who signs nothing, as it asks for this: none where not all of it is in buckets that share
    /// anything with everyone, and whose levels are public.
    pub fn anonymous(&self, asked: Asked) -> Option<Arc<Subject>> {
        let anonymous = &self.inner.anonymous;
        let is_public = |ask: &AskedAction| {
            let row = self.inner.system.bucket(&ask.bucket);
            row.is_some_and(|row| self.is_shared_with(anonymous, &row).unwrap_or(false))
        };
        let is_any = !asked.actions.is_empty() && asked.actions.iter().all(is_public);
        is_any.then(|| Arc::new(anonymous.asking(asked)))
    }

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
        if subject.is_anonymous() {
            return false;
        }
        match self.owner_of(row) {
            Some(maker) => subject.id == maker,
            None => subject.grants.as_deref().is_none_or(|grants| {
                let rights = grants.get(&row.id);
                rights.is_some_and(|rights| *rights == Rights::all())
            }),
        }
    }

    /// Whether a bucket that the subject's grants don't name is shared with it, within what it may
    /// read.
    pub(crate) fn is_shared_with(&self, subject: &Subject, row: &BucketRow) -> Result<bool> {
        let Some(sharing) = self.sharing(row)? else {
            return Ok(false);
        };
        let requesting = self.requesting(subject, row);
        let level = self.inner.tag(row)?;
        let is_readable = may_read(subject, &level.label);
        let is_known = !subject.is_anonymous() || level.is_public;
        Ok(is_readable && is_known && sharing.is_shared_with(requesting.requester()))
    }

    /// Whether all that the subject asks for in the bucket is allowed. What depends on an object
    /// that is there is left to [`check_objects`](Self::check_objects).
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`], which the caller notes; [`SharingError::Changed`] for a
    /// request that began when there was nothing to be asked.
    pub(crate) fn check_asked(
        &self,
        subject: &Subject,
        row: &BucketRow,
        sharing: &Sharing,
    ) -> Result<()> {
        let asked = subject.asked.as_deref().ok_or(SharingError::Changed)?;
        let requesting = self.requesting(subject, row);
        let mut is_any = false;
        for ask in asked.within(&row.name) {
            is_any = true;
            let Some(resource) = ask.on.resource() else {
                continue;
            };
            let waits = sharing.asks_for_tags && matches!(resource, Resource::Object(_));
            if !waits
                && !lets(
                    &requesting,
                    row,
                    sharing,
                    (ask.action, resource),
                    asked,
                    None,
                )
            {
                return Err(VaultError::AccessDenied);
            }
        }
        if is_any {
            Ok(())
        } else {
            Err(VaultError::AccessDenied)
        }
    }

    /// As [`check_asked`](Self::check_asked), once the bucket is open: where the policy asks for
    /// the tags of objects that are there, with those.
    pub(crate) async fn check_objects(
        &self,
        subject: &Subject,
        row: &BucketRow,
        bucket: &OpenBucket,
    ) -> Result<()> {
        let Some(sharing) = self.sharing(row)? else {
            return Ok(());
        };
        self.check_asked(subject, row, &sharing)?;
        let Some(asked) = subject.asked.as_deref().filter(|_| sharing.asks_for_tags) else {
            return Ok(());
        };
        for ask in asked.within(&row.name) {
            if let AskedOf::Object(name, which) = &ask.on
                && !self
                    .lets_object(subject, row, &sharing, (ask.action, name, *which), bucket)
                    .await?
            {
                return Err(VaultError::AccessDenied);
            }
        }
        Ok(())
    }

    /// Whether an action on one object is allowed.
    pub(crate) async fn lets_object(
        &self,
        subject: &Subject,
        row: &BucketRow,
        sharing: &Sharing,
        (action, name, which): (Action, &ObjectName, Which),
        bucket: &OpenBucket,
    ) -> Result<bool> {
        let asked = subject.asked.as_deref().ok_or(SharingError::Changed)?;
        let tags = if sharing.asks_for_tags {
            let found = bucket.catalog.object_tags(name, which).await?;
            found.ok().map(|(tags, _)| tags)
        } else {
            None
        };
        let requesting = self.requesting(subject, row);
        let what = (action, Resource::Object(name.expose()));
        Ok(lets(&requesting, row, sharing, what, asked, tags.as_ref()))
    }

    /// Whether the subject may list the bucket, and so be told that an object is not there.
    pub(crate) fn may_list(&self, subject: &Subject, row: &BucketRow) -> Result<bool> {
        let (Some(sharing), Some(asked)) = (self.sharing(row)?, subject.asked.as_deref()) else {
            return Ok(true);
        };
        let what = (Action::ListBucket, Resource::Bucket);
        let requesting = self.requesting(subject, row);
        Ok(lets(&requesting, row, &sharing, what, asked, None))
    }

    /// That an object is missing is told only to who may list the bucket, where it has a policy
    /// (Amazon S3 API Reference, `GetObject`).
    pub(crate) fn missing(
        &self,
        subject: &Subject,
        row: &BucketRow,
        error: VaultError,
    ) -> VaultError {
        let is_missing = matches!(
            error,
            VaultError::NoSuchObject | VaultError::NoVersion(Absent::Deleted(_))
        );
        if !is_missing || !row.documents.is_shared() {
            return error;
        }
        match self.may_list(subject, row) {
            Ok(true) => error,
            _ => VaultError::AccessDenied,
        }
    }

    fn requesting<'a>(&self, subject: &'a Subject, row: &BucketRow) -> Requesting<'a> {
        let id = subject.id.to_string().parse();
        Requesting {
            id: id.expect("32 hexadecimal digits are an id"),
            subject,
            owns_bucket: self.owns(subject, row),
        }
    }
}

/// Whether an action is allowed: given by the policy, or by the subject's grants and not denied.
fn lets(
    requesting: &Requesting<'_>,
    row: &BucketRow,
    sharing: &Sharing,
    (action, resource): (Action, Resource<'_>),
    asked: &Asked,
    tags: Option<&Tags>,
) -> bool {
    // What is put has not the tags of what it replaces.
    let tags = tags.filter(|_| action != Action::PutObject);
    let values = &*asked.values;
    let request = Request {
        requester: requesting.requester(),
        action,
        resource,
        time: asked.time,
        values: &WithObject { values, tags },
    };
    match sharing.decide(&request) {
        Shared::Denied { .. } => false,
        Shared::ByPolicy { .. } | Shared::ByAcl => true,
        Shared::Delegated { .. } | Shared::Unshared => {
            let grants = requesting.subject.grants.as_deref();
            let is_granted = grants.is_none_or(|grants| {
                let rights = grants.get(&row.id);
                rights.is_some_and(|rights| rights.has(right_for(action)))
            });
            is_granted && (requesting.owns_bucket || !is_of_owner(action))
        }
    }
}
