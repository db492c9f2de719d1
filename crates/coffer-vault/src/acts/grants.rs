//! What the monitor grants a subject in a bucket: to read, or to change what is there.
//!
//! Catalog, blobs and key of a bucket are reached through a grant only from within
//! [`ReadGrant::read`] and [`ChangeGrant::change`], which take the act: they record it where the
//! level asks for that, guard the commit, reclaim what it freed and note that it failed. Their
//! fields are private, each in a file of its own, and nothing gives them out, so what goes past an
//! act does not compile. What comes before a change (receiving bytes, looking for an upload) runs
//! in [`ChangeGrant::prepare`], of which only a refusal is told.
//!
//! The server's own work (erasing, rotating, verifying, sweeping) is no subject's and needs no
//! grant: it opens buckets by `OpenBuckets::open`.
//!
//! [`ReadGrant::read`]: super::ReadGrant::read
//! [`ChangeGrant::change`]: super::ChangeGrant::change
//! [`ChangeGrant::prepare`]: super::ChangeGrant::prepare

use std::sync::Arc;

use crate::access::{Right, Sharing, Subject};
use crate::audit::ObjectAudit;
use crate::error::Result;
use crate::system::BucketRow;
use crate::vault::{Granted, JudgedObject, Vault};

impl Vault {
    /// The bucket opened, who records what is done there, and what may be used only because of its
    /// list or its tags. What was judged by the documents of `judged_by` is so no more than once.
    pub(super) async fn granted(
        &self,
        subject: &Subject,
        row: &Arc<BucketRow>,
        right: Right,
        judged_by: Option<&Arc<Sharing>>,
    ) -> Result<(Granted, Option<ObjectAudit>, Vec<JudgedObject>)> {
        if self.inner.tag(row)?.is_watched {
            let gate = &self.inner.gate;
            gate.refuse_on_standby("a level whose reads are recorded is not read here")?;
        }
        let granted = self.grant(row).await?;
        let mut judged = Vec::new();
        if row.documents.is_shared() && !self.is_judged(row, judged_by) {
            let checked = self.check_objects(subject, row, &granted.bucket, judged_by);
            let checked = checked.await;
            self.note_judged(subject, row, right, &checked).await?;
            let checked = self.noting_refusal(subject, row, checked).await;
            judged = checked.inspect_err(|error| self.note_refusal(error, subject, right, row))?;
        }
        let audit = self.inner.tag(row)?.is_watched.then(|| {
            let (audit, key) = (self.inner.audit.clone(), granted.bucket.key());
            ObjectAudit::new(audit, subject, &row.name, row.id, &key)
        });
        Ok((granted, audit, judged))
    }
}
