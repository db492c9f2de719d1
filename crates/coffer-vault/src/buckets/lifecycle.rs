//! What lifecycle rules say of an object or an upload, for those who have just read or written it.

use std::sync::Arc;

use coffer_store::record::{ObjectName, Tags};
use coffer_store::version::Which;

use crate::access::{BucketName, Right, Subject, is_marked_by, may_use};
use crate::lifecycle::{Day, Ending, LifecycleRules};
use crate::limits::EXPIRY_MAX_MS;
use crate::system::{BucketConfiguration, BucketRow};
use crate::vault::Vault;

/// That a rule will end an object or an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueEnd {
    /// From when on, in milliseconds since 1970: a midnight.
    pub due_ms: i64,
    /// The rule's id.
    pub rule: String,
}

impl Vault {
    /// How long a day of lifecycle rules is.
    pub fn lifecycle_day(&self) -> Day {
        self.inner.lifecycle.day
    }

    /// Whether a bucket has lifecycle rules.
    pub fn has_lifecycle(&self, bucket: &BucketName) -> bool {
        let row = self.inner.system.bucket(bucket);
        row.is_some_and(|row| row.documents.get(BucketConfiguration::Lifecycle).is_some())
    }

    /// When rules end the newest version of an object, for one who has just read it. `writer`: for
    /// one who has just written it, if reading it would leave no mark.
    pub async fn object_end(
        &self,
        writer: Option<&Subject>,
        bucket: &BucketName,
        name: &ObjectName,
        (modified_ms, size_bytes): (i64, u64),
    ) -> Option<DueEnd> {
        let (row, rules) = self.rules_for(writer, bucket)?;
        let tags = if rules.asks_tags() {
            self.tags_of(&row, name).await?
        } else {
            Tags::new()
        };
        let about = (name.expose(), modified_ms);
        told(rules.expiration(about, size_bytes, &tags, self.lifecycle_day())?)
    }

    /// When rules end an upload, for one who has just looked at it. `writer`: as above.
    pub fn upload_end(
        &self,
        writer: Option<&Subject>,
        bucket: &BucketName,
        (name, started_ms): (&ObjectName, i64),
    ) -> Option<DueEnd> {
        let (_, rules) = self.rules_for(writer, bucket)?;
        told(rules.upload_ending(name.expose(), started_ms, self.lifecycle_day())?)
    }

    fn rules_for(
        &self,
        writer: Option<&Subject>,
        bucket: &BucketName,
    ) -> Option<(Arc<BucketRow>, Arc<LifecycleRules>)> {
        let row = self.inner.system.bucket(bucket)?;
        let rules = row.documents.lifecycle().ok()??;
        let label = self.inner.label(&row).ok()?;
        let may_know = |writer: &Subject| {
            may_use(writer, row.id, label, Right::Read) && !is_marked_by(writer, label)
        };
        writer.is_none_or(may_know).then(|| (row.clone(), rules))
    }

    async fn tags_of(&self, row: &BucketRow, name: &ObjectName) -> Option<Tags> {
        let bucket = self.grant(row).await.ok()?.bucket;
        let tags = bucket.catalog.object_tags(name, Which::Current).await;
        Some(tags.ok()?.ok()?.0)
    }
}

fn told(ending: Ending<'_>) -> Option<DueEnd> {
    let due_ms = Some(ending.due_ms).filter(|ms| (0..=EXPIRY_MAX_MS).contains(ms))?;
    Some(DueEnd {
        due_ms,
        rule: ending.rule.id.clone(),
    })
}
