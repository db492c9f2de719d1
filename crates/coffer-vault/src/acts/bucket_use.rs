//! What a subject may use, and what comes of its reading: who may write at several labels is not to
//! carry down what it read at a high one.
//!
//! So whatever answers with something that a bucket holds (objects, names, tags, parts, or whether
//! they are there) first raises the subject's mark to the bucket's label, durably. A write asks
//! the mark when it begins and again when it commits: until then it may have taken in what was read
//! meanwhile. What is settled or changed of a subject cuts off its requests from before.

use std::sync::Arc;

use coffer_audit::Outcome;
use coffer_label::Label;
use tokio::sync::RwLockReadGuard;

use crate::access::{
    BucketName, Reading, Right, Subject, is_marked_by, may_copy, may_use, may_write_after_reading,
};
use crate::audit::{Facts, ObjectAudit};
use crate::error::{Result, VaultError};
use crate::open_buckets::OpenBucket;
use crate::system::BucketRow;
use crate::vault::{Granted, Vault};

/// A bucket that a subject may read.
pub(crate) struct Readable {
    pub(crate) bucket: Arc<OpenBucket>,
    pub(crate) level: String,
    /// What records reads and writes of objects, where the level asks for it.
    pub(crate) watch: Option<ObjectAudit>,
    /// To be held for as long as something is given out.
    pub(crate) reading: Option<Reading>,
}

/// A bucket that a subject may change.
pub(crate) struct Changeable {
    pub(crate) bucket: Arc<OpenBucket>,
    pub(crate) level: String,
    /// As in [`Readable`].
    pub(crate) watch: Option<ObjectAudit>,
    pub(crate) permit: Permit,
}

/// That a subject may write in a bucket, to be asked again when it commits.
#[derive(Clone)]
pub(crate) struct Permit {
    vault: Vault,
    row: Arc<BucketRow>,
    right: Right,
    marked: Marked,
}

/// Whose mark it is, and what raises it.
#[derive(Clone)]
pub(crate) struct Marked {
    subject: Subject,
    /// Whether a read where this is about raises the mark.
    is_marked: bool,
}

impl Marked {
    fn new(subject: &Subject, label: &Label) -> Self {
        Self {
            subject: subject.without_grants(),
            is_marked: is_marked_by(subject, label),
        }
    }
}

/// Whether the refusal of a write tells of what the bucket holds.
fn tells_what_is_stored(error: &VaultError) -> bool {
    matches!(
        error,
        VaultError::NoSuchObject
            | VaultError::NoSuchUpload
            | VaultError::PreconditionFailed
            | VaultError::InvalidPart { .. }
            | VaultError::PartTooSmall { .. }
            | VaultError::BucketNotEmpty
    )
}

impl Permit {
    /// Keeps the bucket from being deleted while something is committed in it, and sees whether
    /// the subject may still write there.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`], [`VaultError::AccessDenied`], [`VaultError::ReadAbove`].
    pub(crate) async fn to_commit<'a>(
        &self,
        bucket: &'a OpenBucket,
    ) -> Result<RwLockReadGuard<'a, ()>> {
        let guard = bucket.commit_guard().await?;
        self.marked.subject.cutoff.check()?;
        let label = self.vault.inner.label(&self.row)?;
        let act = self.right.act();
        let check = self
            .vault
            .check_marked(&self.marked, label, act, &self.row.name);
        check.map(|()| guard)
    }

    /// Before something is answered that tells of what the bucket holds: the subject has read
    /// there, then.
    pub(crate) async fn looks(&self) -> Result<()> {
        let label = self.vault.inner.label(&self.row)?;
        self.vault.raise(&self.marked, label).await.map(drop)
    }

    /// An outcome as it may be told: many a refusal tells of what the bucket holds.
    pub(crate) async fn telling<T>(&self, outcome: Result<T>) -> Result<T> {
        match &outcome {
            Err(error) if tells_what_is_stored(error) => self.looks().await?,
            _ => {}
        }
        outcome
    }
}

impl Vault {
    /// The bucket, if the subject may read in it by this right; that it does is durable when this
    /// returns. One that it may not know of does not exist.
    pub(crate) async fn readable(
        &self,
        subject: &Subject,
        name: &BucketName,
        right: Right,
    ) -> Result<Readable> {
        let row = self.usable_row(subject, name, right)?;
        let label = self.inner.label(&row)?;
        let reading = match is_marked_by(subject, label) {
            true => self.raise(&Marked::new(subject, label), label).await?,
            false => None,
        };
        let (Granted { bucket, level }, watch) = self.granted(subject, &row).await?;
        Ok(Readable {
            bucket,
            level,
            watch,
            reading,
        })
    }

    /// The bucket, if the subject may change it by this right. One that it may not know of does
    /// not exist.
    pub(crate) async fn changeable(
        &self,
        subject: &Subject,
        name: &BucketName,
        right: Right,
    ) -> Result<Changeable> {
        let row = self.usable_row(subject, name, right)?;
        let (Granted { bucket, level }, watch) = self.granted(subject, &row).await?;
        let permit = self.permit(subject, row, right)?;
        Ok(Changeable {
            bucket,
            level,
            watch,
            permit,
        })
    }

    /// What a subject's act on a bucket hangs on that it may change.
    pub(crate) fn permit(
        &self,
        subject: &Subject,
        row: Arc<BucketRow>,
        right: Right,
    ) -> Result<Permit> {
        Ok(Permit {
            marked: Marked::new(subject, self.inner.label(&row)?),
            vault: self.clone(),
            row,
            right,
        })
    }

    async fn granted(
        &self,
        subject: &Subject,
        row: &Arc<BucketRow>,
    ) -> Result<(Granted, Option<ObjectAudit>)> {
        let granted = self.grant(row).await?;
        let watch = self.inner.tag(row)?.is_watched.then(|| {
            let (audit, key) = (self.inner.audit.clone(), granted.bucket.key());
            ObjectAudit::new(audit, subject, &row.name, row.id, &key)
        });
        Ok((granted, watch))
    }

    /// The row of a bucket, if the subject may use this right in it. That it reads is not noted.
    pub(crate) fn usable_row(
        &self,
        subject: &Subject,
        name: &BucketName,
        right: Right,
    ) -> Result<Arc<BucketRow>> {
        let row = self.known(subject, name)?;
        let label = self.inner.label(&row)?;
        if !may_use(subject, row.id, label, right) {
            self.refused(subject, right.act(), name);
            return Err(VaultError::AccessDenied);
        }
        if right.changes() {
            self.check_mark(subject, label, right.act(), name)?;
        }
        Ok(row)
    }

    /// Whether what the subject has read lets it write at this label.
    ///
    /// # Errors
    /// [`VaultError::ReadAbove`], which is noted.
    pub(crate) fn check_mark(
        &self,
        subject: &Subject,
        label: &Label,
        act: &'static str,
        bucket: &BucketName,
    ) -> Result<()> {
        if may_write_after_reading(subject.is_trusted, &subject.mark, label) {
            return Ok(());
        }
        self.check_marked(&Marked::new(subject, label), label, act, bucket)
    }

    fn check_marked(
        &self,
        marked: &Marked,
        label: &Label,
        act: &'static str,
        bucket: &BucketName,
    ) -> Result<()> {
        if may_write_after_reading(marked.subject.is_trusted, &marked.subject.mark, label) {
            return Ok(());
        }
        self.refused(&marked.subject, act, bucket);
        // Above its clearance, if that was lowered: there it knows of no level.
        let read = marked.subject.mark.label();
        let read = read.filter(|read| marked.subject.clearance.high().dominates(read));
        Err(VaultError::ReadAbove {
            read: read.map_or("a level that it may read no more".to_owned(), |read| {
                self.inner.label_told(&read)
            }),
        })
    }

    /// Whether the subject may copy from one bucket to another: read the one, write the other, and
    /// carry nothing downwards. A missing target is told before a missing source.
    pub(crate) fn copyable(
        &self,
        subject: &Subject,
        from: &BucketName,
        to: &BucketName,
    ) -> Result<()> {
        let to = self.usable_row(subject, to, Right::Write)?;
        let from = self.usable_row(subject, from, Right::Read)?;
        if may_copy(self.inner.label(&from)?, self.inner.label(&to)?) {
            return Ok(());
        }
        self.refused(subject, "object.copy", &from.name);
        Err(VaultError::AccessDenied)
    }

    /// Raises a subject's mark to a label at which it is about to be told something; durable when
    /// this returns. Who reads there for the first time waits for the disk, others don't.
    async fn raise(&self, marked: &Marked, label: &Label) -> Result<Option<Reading>> {
        if !marked.is_marked {
            return Ok(None);
        }
        let reading = Reading::begin(&marked.subject.mark);
        if !marked.subject.mark.covers(label) {
            let (inner, name) = (self.inner.clone(), marked.subject.name.clone());
            let (mark, label) = (marked.subject.mark.clone(), *label);
            let raising =
                tokio::task::spawn_blocking(move || inner.system.raise_mark(&name, &mark, &label));
            let raised = raising.await.map_err(|_| VaultError::ShuttingDown)??;
            let facts = Facts::from([("read", raised.to_string())]);
            self.noted("subject.raise", &marked.subject, Outcome::Done, &facts);
        }
        // It may have been settled or changed meanwhile: then this reads no more.
        marked.subject.cutoff.check()?;
        Ok(Some(reading))
    }
}
