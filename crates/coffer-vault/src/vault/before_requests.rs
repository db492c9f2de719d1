//! What front doors ask before a request is: whether to say what it asks for, and who asks that
//! signs nothing.

use std::sync::Arc;

use crate::access::{Asked, AskedAction, Asks, Subject, may_read};
use crate::vault::Vault;

impl Vault {
    /// What is asked of the subject's requests to a bucket, where what they ask for must be said
    /// ([`Subject::asking`]): it has a policy, or lists count in it. Of one that the subject's
    /// labels hide from it nothing must be: that takes time, by which it could be told from none.
    pub fn asks_of(&self, subject: &Subject, bucket: &str) -> Option<Asks> {
        let row = self.inner.system.bucket_named(bucket);
        let row = row.filter(|row| row.documents.is_shared())?;
        let label = self.inner.label(&row);
        label.ok().filter(|label| may_read(subject, label))?;
        // What can't be read is told once the request is judged.
        let sharing = self.sharing(&row).ok().flatten();
        Some(Asks::new(row.name.clone(), sharing))
    }

    /// Whether anything is asked of the subject's requests to a bucket.
    pub fn is_shared(&self, subject: &Subject, bucket: &str) -> bool {
        self.asks_of(subject, bucket).is_some()
    }

    /// Whether requests to a bucket that are not signed are to be looked at: it has a policy or
    /// lists, and its level is public.
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
}
