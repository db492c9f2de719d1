//! What the monitor grants a subject that reads in a bucket.

use std::sync::Arc;

use super::decide::{Marked, Usable};
use super::outcome::recorded_as;
use crate::access::{Act, BucketName, Reading, Right, Subject, is_marked_by};
use crate::audit::{ObjectAudit, On};
use crate::error::Result;
use crate::open_buckets::UsedBucket;
use crate::system::BucketRow;
use crate::vault::{Granted, JudgedObject, Vault};

/// A bucket that a subject may read in.
pub(crate) struct ReadGrant<'s> {
    bucket: UsedBucket,
    row: Arc<BucketRow>,
    level: String,
    /// Where the level asks for records of reads and writes.
    audit: Option<ObjectAudit>,
    /// Who uses a bucket that has a policy or lists: for what is told of an object that is missing.
    shared: Option<&'s Subject>,
    /// What may be read only because of its list or its tags.
    judged: Vec<JudgedObject>,
    vault: Vault,
    /// For the subject's mark, to be held for as long as something is given out.
    reading: Option<Reading>,
}

impl<'s> ReadGrant<'s> {
    /// Name of the level whose key seals the bucket.
    pub(crate) fn level(&self) -> String {
        self.level.clone()
    }

    pub(crate) fn row(&self) -> &Arc<BucketRow> {
        &self.row
    }

    /// Who uses the bucket, where it has a policy.
    pub(crate) fn shared(&self) -> Option<(Vault, &'s Subject)> {
        Some((self.vault.clone(), self.shared?))
    }

    /// What may be read only because of its list or its tags: that, and nothing that took its place
    /// since.
    pub(crate) fn judged_objects(&self) -> Vec<JudgedObject> {
        self.judged.clone()
    }

    /// Looks at something and records the act, durably, before what was found is given out; with
    /// it what is to be held for as long as more is.
    ///
    /// # Errors
    /// Those of `look`; [`VaultError::AuditUnavailable`].
    pub(crate) async fn read<T, F>(
        self,
        act: Act,
        on: On<'_>,
        look: impl FnOnce(UsedBucket) -> F,
    ) -> Result<(T, Option<Reading>)>
    where
        F: Future<Output = Result<T>>,
    {
        let bucket = self.bucket.clone();
        let outcome = look(self.bucket).await;
        let outcome = outcome.map_err(|error| bucket.if_closed(error));
        let outcome = outcome.map_err(|error| match self.shared {
            Some(subject) => self.vault.missing(subject, &self.row, error),
            None => error,
        });
        if let Some(audit) = &self.audit {
            let (act, ended) = recorded_as(act, &outcome);
            audit.record(act, ended, on).await?;
        }
        let waited_for = &self.vault.inner.copies.waited_for;
        if self.audit.is_some() || self.reading.is_some() {
            waited_for.settle_what_a_read_left(Some(bucket.id)).await?;
        } else {
            waited_for.settle_read(Some(bucket.id)).await?;
        }
        Ok((outcome?, self.reading))
    }
}

impl Vault {
    /// The bucket, if the subject may read in it by this right; that it does is durable when this
    /// returns. One that it may not know of does not exist.
    pub(crate) async fn readable<'s>(
        &self,
        subject: &'s Subject,
        name: &BucketName,
        right: Right,
    ) -> Result<ReadGrant<'s>> {
        let Usable { row, judged_by } = self.judged(subject, name, right).await?;
        let label = self.inner.label(&row)?;
        let reading = if is_marked_by(subject, label) {
            self.raise(&Marked::new(subject, label), label).await?
        } else {
            None
        };
        let granted = self.granted(subject, &row, right, judged_by.as_ref());
        let (Granted { bucket, level }, audit, judged) = granted.await?;
        let shared = row.documents.is_shared().then_some(subject);
        Ok(ReadGrant {
            bucket,
            row,
            level,
            audit,
            shared,
            judged,
            vault: self.clone(),
            reading,
        })
    }
}
