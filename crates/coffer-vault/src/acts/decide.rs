//! What a subject may use, and what comes of its reading: a subject that may write at several
//! labels is not to carry down what it read at a high one.
//!
//! So whatever answers with something that a bucket holds (objects, names, tags, parts, or whether
//! they are there) first raises the subject's mark to the bucket's label, durably. A write asks
//! the mark when it begins and again when it commits: until then it may have taken in what was read
//! meanwhile. What is settled or changed of a subject cuts off its requests from before.

use std::sync::Arc;

use coffer_audit::Outcome;
use coffer_label::Label;

use crate::access::{
    Act, BucketName, Reading, Right, Sharing, Subject, is_marked_by, may_copy, may_use,
    may_use_by_label, may_write_after_reading,
};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::error::{Result, VaultError};
use crate::system::BucketRow;
use crate::vault::{JudgedObject, Vault};

/// Whose mark it is, and what raises it.
#[derive(Clone)]
pub(super) struct Marked {
    pub(super) subject: Subject,
    /// Whether a read where this is about raises the mark.
    is_marked: bool,
}

impl Marked {
    pub(super) fn new(subject: &Subject, label: &Label) -> Self {
        Self {
            subject: subject.clone(),
            is_marked: is_marked_by(subject, label),
        }
    }
}

/// A bucket that a subject may use.
pub(super) struct Usable {
    pub(super) row: Arc<BucketRow>,
    /// By what was said of sharing it.
    pub(super) judged_by: Option<Arc<Sharing>>,
}

impl Vault {
    /// The row of a bucket, if the subject may use this right in it. That it reads is not noted.
    pub(crate) fn usable_row(
        &self,
        subject: &Subject,
        name: &BucketName,
        right: Right,
    ) -> Result<Arc<BucketRow>> {
        Ok(self.judged_row(subject, name, right)?.row)
    }

    fn judged_row(&self, subject: &Subject, name: &BucketName, right: Right) -> Result<Usable> {
        let row = self.known(subject, name)?;
        let label = self.inner.label(&row)?;
        let judged_by = self.sharing(&row)?;
        let is_usable = match &judged_by {
            None => may_use(subject, row.id, label, right),
            Some(sharing) if may_use_by_label(subject, label, right) => {
                match self.check_asked(subject, &row, sharing) {
                    Err(VaultError::AccessDenied) => false,
                    outcome => outcome.map(|()| true)?,
                }
            }
            Some(_) => false,
        };
        self.used(subject, &row, right, is_usable)?;
        Ok(Usable { row, judged_by })
    }

    /// As [`usable_row`](Self::usable_row). Who is refused by a policy is told of that, and has
    /// read where it is, then.
    pub(crate) async fn usable(
        &self,
        subject: &Subject,
        name: &BucketName,
        right: Right,
    ) -> Result<Arc<BucketRow>> {
        Ok(self.judged(subject, name, right).await?.row)
    }

    /// As [`usable`](Self::usable), with what it was judged by.
    pub(super) async fn judged(
        &self,
        subject: &Subject,
        name: &BucketName,
        right: Right,
    ) -> Result<Usable> {
        let usable = self.judged_row(subject, name, right);
        if matches!(usable, Err(VaultError::AccessDenied)) {
            let row = self.known(subject, name)?;
            if may_use_by_label(subject, self.inner.label(&row)?, right) {
                return self.noting_refusal(subject, &row, usable).await;
            }
        }
        usable
    }

    /// That a policy refuses something tells of it: who is refused has read there.
    pub(crate) async fn noting_refusal<T>(
        &self,
        subject: &Subject,
        row: &BucketRow,
        outcome: Result<T>,
    ) -> Result<T> {
        if row.documents.is_shared() && matches!(outcome, Err(VaultError::AccessDenied)) {
            self.note_read(subject, row).await?;
        }
        outcome
    }

    /// That a change is let because of a list or of tags, or that there is no object for it, tells
    /// of what is there: who asks has read there.
    pub(super) async fn note_judged(
        &self,
        subject: &Subject,
        row: &BucketRow,
        right: Right,
        judged: &Result<Vec<JudgedObject>>,
    ) -> Result<()> {
        let tells = match judged {
            Ok(judged) => !judged.is_empty(),
            Err(error) => error.tells_what_is_stored(),
        };
        if tells && right.changes() {
            self.note_read(subject, row).await?;
        }
        Ok(())
    }

    /// As [`usable_row`](Self::usable_row), for what is asked otherwise than over S3: where the
    /// bucket has a policy, by its owner alone.
    pub(crate) fn usable_as_owner(
        &self,
        subject: &Subject,
        name: &BucketName,
        right: Right,
    ) -> Result<Arc<BucketRow>> {
        let row = self.known(subject, name)?;
        if !row.documents.is_shared() {
            return self.usable_row(subject, name, right);
        }
        let label = self.inner.label(&row)?;
        let is_usable = may_use(subject, row.id, label, right) && self.owns(subject, &row);
        self.used(subject, &row, right, is_usable)?;
        Ok(row)
    }

    /// Notes what is refused; what is not must still not carry down what was read.
    fn used(
        &self,
        subject: &Subject,
        row: &BucketRow,
        right: Right,
        is_usable: bool,
    ) -> Result<()> {
        if !is_usable {
            self.refused(subject, right.act(), &row.name);
            return Err(VaultError::AccessDenied);
        }
        if right.changes() {
            self.check_mark(subject, self.inner.label(row)?, right.act(), &row.name)?;
        }
        Ok(())
    }

    /// Whether what the subject has read lets it write at this label.
    ///
    /// # Errors
    /// [`VaultError::ReadAbove`], which is noted.
    pub(crate) fn check_mark(
        &self,
        subject: &Subject,
        label: &Label,
        act: Act,
        bucket: &BucketName,
    ) -> Result<()> {
        if may_write_after_reading(subject.is_trusted, &subject.mark, label) {
            return Ok(());
        }
        self.check_marked(&Marked::new(subject, label), label, act, bucket)
    }

    pub(super) fn check_marked(
        &self,
        marked: &Marked,
        label: &Label,
        act: Act,
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
    pub(crate) async fn copyable(
        &self,
        subject: &Subject,
        from: &BucketName,
        to: &BucketName,
    ) -> Result<()> {
        let to = self.usable(subject, to, Right::Write).await?;
        let from = self.usable(subject, from, Right::Read).await?;
        if may_copy(self.inner.label(&from)?, self.inner.label(&to)?) {
            return Ok(());
        }
        self.refused(subject, Act::CopyObject, &from.name);
        Err(VaultError::AccessDenied)
    }

    /// Notes what a policy refuses.
    pub(crate) fn note_refusal(
        &self,
        error: &VaultError,
        subject: &Subject,
        right: Right,
        row: &BucketRow,
    ) {
        if matches!(error, VaultError::AccessDenied) {
            self.refused(subject, right.act(), &row.name);
        }
    }

    /// Before it is told whether a bucket is empty: the subject has read there, then.
    pub(crate) async fn note_read(&self, subject: &Subject, row: &BucketRow) -> Result<()> {
        let label = self.inner.label(row)?;
        let marked = Marked::new(subject, label);
        self.raise(&marked, label).await.map(drop)
    }

    /// Raises a subject's mark to a label at which it is about to be told something; durable when
    /// this returns. Who reads there for the first time waits for the disk, others don't.
    pub(super) async fn raise(&self, marked: &Marked, label: &Label) -> Result<Option<Reading>> {
        if !marked.is_marked {
            return Ok(None);
        }
        marked.subject.cutoff.check()?;
        let gate = &self.inner.gate;
        // The one that serves settles who has read nothing that counts for long.
        gate.refuse_on_follower("a read that counts for the subject's mark is not answered")?;
        let reading = Reading::begin(&marked.subject.mark);
        if !marked.subject.mark.covers(label) {
            gate.refuse_on_standby("a read that would raise the subject's mark is not answered")?;
            let (inner, id) = (self.inner.clone(), marked.subject.id);
            let (mark, label) = (marked.subject.mark.clone(), *label);
            let raise = move || inner.system.raise_mark(id, &mark, &label);
            let raised = blocking(raise).await?;
            let facts = Facts::from([("read", raised.to_string())]);
            self.noted(Act::RaiseSubject, &marked.subject, Outcome::Done, &facts);
        }
        // It may have been settled or changed meanwhile: then this reads no more.
        marked.subject.cutoff.check()?;
        Ok(Some(reading))
    }
}
