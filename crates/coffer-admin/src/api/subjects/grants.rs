//! What subjects are granted in which buckets.

use coffer_vault::{BucketName, Right, Rights, VaultError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{SubjectChanges, SubjectRequest};
use crate::api::buckets::bucket_name;
use crate::http::refusal::Refusal;

/// Rights in one bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The bucket's name.
    pub bucket: String,
    /// One or more of `read`, `write`, `list` and `delete`.
    #[schema(example = json!(["read", "list"]))]
    pub rights: Vec<String>,
}

impl From<(BucketName, Rights)> for Grant {
    fn from((bucket, rights): (BucketName, Rights)) -> Self {
        let named = rights.iter().map(|right| right.as_str().to_owned());
        Self {
            bucket: bucket.to_string(),
            rights: named.collect(),
        }
    }
}

impl SubjectRequest {
    /// The buckets that it names.
    pub(super) fn buckets(&self) -> String {
        named(self.grants.as_deref().unwrap_or_default(), &[])
    }
}

impl SubjectChanges {
    /// The buckets that they name.
    pub(super) fn buckets(&self) -> String {
        named(&self.grant, &self.revoke)
    }
}

fn named(grants: &[Grant], others: &[String]) -> String {
    let granted = grants.iter().map(|grant| grant.bucket.as_str());
    let names: Vec<_> = granted.chain(others.iter().map(String::as_str)).collect();
    names.join(" or no bucket ")
}

pub(super) fn grants(grants: Vec<Grant>) -> Result<Vec<(BucketName, Rights)>, Refusal> {
    let read = |grant: Grant| {
        let rights = grant.rights.iter().map(|name| name.parse::<Right>());
        let rights: Result<Rights, VaultError> = rights.collect();
        Ok((bucket_name(&grant.bucket)?, rights?))
    };
    grants.into_iter().map(read).collect()
}
