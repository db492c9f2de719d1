//! What is set of a bucket, in short: whose it is, what it keeps, and which documents it has. What
//! those say is told over S3, to who may read there.

use coffer_store::version::Versioning;

use crate::access::{Actor, may_know_subject};
use crate::error::Result;
use crate::locks::ObjectLock;
use crate::system::{BucketConfiguration, BucketRow};
use crate::vault::Vault;

/// What is set of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketSettings {
    /// The name of the subject whose it is; none where it belongs to all who may do everything in
    /// it, or to one that who asks may not know of.
    pub owner: Option<String>,
    /// Whether it keeps versions; none where it was not opened since the start, or that is in
    /// doubt.
    pub versioning: Option<Versioning>,
    /// Whether objects can be locked, and how new ones are.
    pub object_lock: Option<ObjectLock>,
    /// Whether it has a policy.
    pub has_policy: bool,
    /// Whether those who sign nothing are let in by the policy or the bucket's list. What lists of
    /// objects say is not looked at.
    pub is_public: bool,
    /// How many lifecycle rules it has, those among them that are not in force.
    pub lifecycle_rule_count: usize,
    /// Whether it has rules for pages of other origins.
    pub has_cors: bool,
}

impl Vault {
    /// What is set of a bucket. Told where its totals may be: who may write there can set it.
    pub(super) fn settings(&self, actor: &Actor, row: &BucketRow) -> Result<BucketSettings> {
        let system = &self.inner.system;
        let label = self.inner.label(row)?;
        let owner = self.owner_of(row).and_then(|id| system.subject_of_id(id));
        let owner = owner.filter(|owner| match actor {
            Actor::Subject(asker) => may_know_subject(asker, owner, label),
            Actor::Local { .. } => true,
        });
        let document = |kind| row.documents.get(kind);
        let object_lock = document(BucketConfiguration::ObjectLock);
        let rules = row.documents.lifecycle()?;
        Ok(BucketSettings {
            owner: owner.map(|subject| subject.name().to_owned()),
            versioning: self.inner.open_buckets.last_versioning(row.id),
            object_lock: ObjectLock::of_document(object_lock.as_deref())?,
            has_policy: document(BucketConfiguration::Policy).is_some(),
            is_public: self.is_public(row)?,
            lifecycle_rule_count: rules.map_or(0, |rules| rules.0.len()),
            has_cors: document(BucketConfiguration::Cors).is_some(),
        })
    }
}
