//! What the monitor grants a subject that changes what is in a bucket.

use std::sync::Arc;

use coffer_audit::Outcome;
use coffer_policy::Action;
use coffer_seal::{BucketId, SubjectId};
use coffer_store::record::{Precondition, Upload};

use super::commit::{ToItsEnd, reclaim};
use super::decide::{Marked, Usable};
use super::outcome::Changed;
use super::permit::Permit;
use crate::access::{Act, AskedAcl, AskedEach, BucketName, Right, Subject};
use crate::audit::{ObjectAudit, On};
use crate::cutoff::SubjectCutoff;
use crate::error::{Result, VaultError};
use crate::open_buckets::UsedBucket;
use crate::system::{BucketConfiguration::Encryption, BucketEncryption, BucketRow};
use crate::vault::owners::NewAccess;
use crate::vault::{EtagStyle, Granted, Vault};

/// A bucket that a subject may change.
pub(crate) struct ChangeGrant {
    bucket: UsedBucket,
    level: String,
    audit: Option<ObjectAudit>,
    permit: Permit,
    /// Whether an act around it waits for synchronous copies.
    is_within_act: bool,
}

impl ChangeGrant {
    /// Name of the level whose key seals the bucket.
    pub(crate) fn level(&self) -> String {
        self.level.clone()
    }

    /// The same, for a change that is recorded as an act of administration.
    pub(crate) fn recorded_as_act(self) -> Self {
        Self {
            audit: None,
            is_within_act: true,
            ..self
        }
    }

    /// Remembers which upload the change is about, and what it does to it: whether the subject may
    /// do that to this one is asked again when it is committed.
    pub(crate) fn about_upload(&mut self, action: Action, upload: Arc<Upload>) {
        self.permit.upload = Some((action, upload));
    }

    /// The same, for a change of what says who may use the bucket.
    pub(crate) fn says_who_may(mut self) -> Self {
        self.permit.says_who_may = true;
        self.recorded_as_act()
    }

    /// What is done with objects whose writers ask for no encryption.
    pub(crate) fn encryption(&self) -> Result<BucketEncryption> {
        let document = self.permit.row.documents.get(Encryption);
        BucketEncryption::of_document(document.as_deref())
    }

    /// Whether entity tags of what comes to the bucket are MD5s.
    pub(crate) fn has_md5_etags(&self) -> bool {
        let server = self.permit.vault.inner.etag;
        server == EtagStyle::Md5 || self.permit.row.has_md5_etags()
    }

    /// The bucket's row.
    pub(crate) fn row(&self) -> &Arc<BucketRow> {
        &self.permit.row
    }

    /// Who changes it.
    pub(crate) fn subject(&self) -> SubjectId {
        self.permit.marked.subject.id
    }

    /// The bucket's id.
    pub(crate) fn bucket(&self) -> BucketId {
        self.bucket.id
    }

    /// Whether the subject's requests may go on.
    pub(crate) fn cutoff(&self) -> Arc<SubjectCutoff> {
        self.permit.marked.subject.cutoff.clone()
    }

    /// Whether the level asks for records of reads and writes.
    pub(crate) fn is_watched(&self) -> bool {
        self.audit.is_some()
    }

    /// Whether the bucket has a policy or lists, which are to be asked of each object.
    pub(crate) fn is_shared(&self) -> bool {
        self.permit.row.documents.is_shared()
    }

    /// Whether each of these is let through, of those that the request asks for one by one. Those
    /// that are will be asked again when the change is committed. Where it tells of what is there,
    /// the subject has read there when this returns.
    ///
    /// # Errors
    /// Those of looking at the objects.
    pub(crate) async fn lets_each(&mut self, asked: Vec<AskedEach>) -> Result<Vec<bool>> {
        let (mut lets, mut tells) = (Vec::with_capacity(asked.len()), false);
        for one in asked {
            let (is_let, tells_by_it) = self.permit.lets(&self.bucket, one.single()).await?;
            tells |= tells_by_it;
            if is_let {
                self.permit.each.push(one);
            } else {
                let Permit { vault, row, .. } = &self.permit;
                vault.refused(
                    &self.permit.marked.subject,
                    self.permit.right.act(),
                    &row.name,
                );
            }
            lets.push(is_let);
        }
        if tells {
            self.note_read().await?;
        }
        Ok(lets)
    }

    /// Before a change whose outcome tells of what the bucket holds, such as one with a condition:
    /// the subject has read there, then.
    pub(crate) async fn note_read(&self) -> Result<()> {
        self.permit.note_read().await
    }

    /// Whose a new object is to be, and who else may use it. That a list is taken or refused tells
    /// whether lists count in the bucket: the subject has read there, then.
    ///
    /// # Errors
    /// Those of [`Vault::access_of_new`].
    pub(crate) async fn access_of_new(&self, asked: &AskedAcl) -> Result<NewAccess> {
        if asked.may_be_refused() {
            self.note_read().await?;
        }
        let vault = &self.permit.vault;
        vault.access_of_new(self.row(), self.subject(), asked)
    }

    /// Prepares a change. That it is refused may tell of what the bucket holds.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) async fn prepare<T, F>(&self, work: impl FnOnce(UsedBucket) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let outcome = work(self.bucket.clone()).await;
        let permit = &self.permit;
        let (vault, subject) = (&permit.vault, &permit.marked.subject);
        let missing = |error| vault.missing(subject, &permit.row, error);
        let outcome = outcome.map_err(|error| missing(self.bucket.if_closed(error)));
        if outcome
            .as_ref()
            .is_err_and(VaultError::tells_what_is_stored)
        {
            self.note_read().await?;
            let waited_for = &vault.inner.copies.waited_for;
            waited_for.settle_read(Some(self.bucket.id)).await?;
        }
        outcome.inspect_err(|error| self.permit.count_full(error))
    }

    /// Prepares an act on something that may not be there: that it is not is recorded before it is
    /// told.
    ///
    /// # Errors
    /// Those of `find`; [`VaultError::AuditUnavailable`].
    pub(crate) async fn find<T, F>(
        &self,
        act: Act,
        on: On<'_>,
        find: impl FnOnce(UsedBucket) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let found = self.prepare(find).await;
        if let (Some(audit), Err(VaultError::NoSuchObject | VaultError::NoSuchUpload)) =
            (&self.audit, &found)
        {
            audit.record(act, Outcome::Failed, on).await?;
        }
        found
    }

    /// Records that the act begins, durably, and commits the change, to its end even if the request
    /// goes away. Blobs that it freed are reclaimed in the background; that it failed is noted, but
    /// what is in doubt stays as begun. It is in all synchronous copies when this returns.
    ///
    /// # Errors
    /// Those of `commit`, and of a subject that may not write any more;
    /// [`VaultError::AuditUnavailable`], and nothing was done; of copies that did not take it.
    pub(crate) async fn change<'a, T, F>(
        &self,
        act: Act,
        on: impl IntoIterator<Item = On<'a>>,
        commit: impl FnOnce(UsedBucket) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<Changed<T>>> + Send,
    {
        let copies = &self.permit.vault.inner.copies;
        if !self.is_within_act {
            copies.waited_for.assure_reachable()?;
        }
        let begun = match &self.audit {
            Some(audit) => Some(audit.begin(act, on).await?),
            None => None,
        };
        let (bucket, permit) = (self.bucket.clone(), self.permit.clone());
        let waits = !self.is_within_act;
        let under_way = copies.waited_for.begin_change(Some(bucket.id));
        ToItsEnd::new(async move {
            let committed = async {
                let _guard = permit.to_commit(&bucket).await?;
                let mut changed = commit(bucket.clone()).await?;
                reclaim(&bucket, std::mem::take(&mut changed.freed));
                Ok(changed)
            };
            let outcome = committed.await;
            if let Some(begun) = begun {
                match &outcome {
                    Ok(changed) => begun.ended(&changed.failed, &changed.told),
                    Err(VaultError::InDoubt) => {}
                    Err(_) => begun.all_failed(),
                }
            }
            if outcome
                .as_ref()
                .is_err_and(VaultError::tells_what_is_stored)
            {
                permit.note_read().await?;
                let waited_for = &permit.vault.inner.copies.waited_for;
                waited_for.settle_read(Some(bucket.id)).await?;
            }
            let (vault, subject) = (&permit.vault, &permit.marked.subject);
            let outcome = vault.noting_refusal(subject, &permit.row, outcome).await;
            let waited_for = &vault.inner.copies.waited_for;
            if outcome.is_ok() && waits {
                waited_for.acknowledge_change(under_way.as_ref()).await?;
            } else if let (true, Some(under_way)) = (may_show(&outcome), &under_way) {
                under_way.is_in_doubt();
            }
            outcome
                .map(|changed| changed.value)
                .map_err(|error| vault.missing(subject, &permit.row, error))
                .inspect_err(|error| permit.count_full(error))
        })
        .await
    }
}

/// Whether a change that is not waited for here may be seen by readers.
fn may_show<T>(outcome: &Result<T>) -> bool {
    !matches!(outcome, Err(error) if !matches!(error, VaultError::InDoubt))
}

impl Vault {
    /// As [`changeable`](Self::changeable) by the right to write. A write that compares what is
    /// there takes the right to read it as well; where the bucket is shared, its policy was asked.
    pub(crate) async fn writable(
        &self,
        subject: &Subject,
        name: &BucketName,
        precondition: &Precondition,
    ) -> Result<ChangeGrant> {
        let mut grant = self.changeable(subject, name, Right::Write).await?;
        let compares = matches!(precondition, Precondition::Present | Precondition::Etag(_));
        if compares && !grant.is_shared() && !grant.permit.has(Right::Read)? {
            self.refused(subject, Right::Read.act(), name);
            return Err(VaultError::AccessDenied);
        }
        grant.permit.also.extend(compares.then_some(Right::Read));
        Ok(grant)
    }

    /// As [`changeable`](Self::changeable) by the right to write, by those who have others as well.
    /// All of them are asked for again when the change is committed.
    pub(crate) async fn changeable_by(
        &self,
        subject: &Subject,
        name: &BucketName,
        also: &[Right],
    ) -> Result<ChangeGrant> {
        for right in also {
            self.usable(subject, name, *right).await?;
        }
        let mut grant = self.changeable(subject, name, Right::Write).await?;
        grant.permit.also.extend(also);
        Ok(grant)
    }

    /// The bucket, if the subject may change it by this right. One that it may not know of does
    /// not exist.
    pub(crate) async fn changeable(
        &self,
        subject: &Subject,
        name: &BucketName,
        right: Right,
    ) -> Result<ChangeGrant> {
        let Usable { row, judged_by } = self.judged(subject, name, right).await?;
        let row = self.counted(row).await;
        let granted = self.granted(subject, &row, right, judged_by.as_ref());
        let (Granted { bucket, level }, audit, _) = granted.await?;
        let permit = Permit {
            judged_by,
            marked: Marked::new(subject, self.inner.label(&row)?),
            vault: self.clone(),
            row,
            right,
            each: Vec::new(),
            also: Vec::new(),
            upload: None,
            says_who_may: false,
        };
        Ok(ChangeGrant {
            bucket,
            level,
            audit,
            permit,
            is_within_act: false,
        })
    }
}
