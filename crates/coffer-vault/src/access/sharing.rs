//! What has been said of sharing a bucket: read from the documents of its configuration.

use coffer_policy::{
    AccountId, Acl, ObjectOwnership, Policy, PublicAccessBlock, Requester, is_shared_with,
};
use serde::{Deserialize, Serialize};

use crate::error::{Result, VaultError};

/// What policies call the condition keys of an object's tags.
const EXISTING_TAG: &str = "s3:existingobjecttag/";

/// What has been said of sharing a bucket.
#[derive(Debug)]
pub(crate) struct Sharing {
    pub(crate) policy: Option<Policy>,
    pub(crate) block: PublicAccessBlock,
    /// Whether the policy may ask for the tags of an object that is there.
    pub(crate) asks_for_tags: bool,
}

impl Sharing {
    /// Reads the documents as they are kept.
    ///
    /// # Errors
    /// [`VaultError::Damaged`] where one is none of this bucket on this server.
    pub(crate) fn read(
        policy: Option<&str>,
        block: Option<&str>,
        bucket: &str,
        account: &AccountId,
    ) -> Result<Self> {
        let asks_for_tags =
            policy.is_some_and(|text| text.to_ascii_lowercase().contains(EXISTING_TAG));
        let policy = policy.map(|text| Policy::from_stored(text.as_bytes(), bucket, account));
        Ok(Self {
            policy: policy.transpose().map_err(|_| VaultError::Damaged)?,
            block: block_of(block)?.unwrap_or_default(),
            asks_for_tags,
        })
    }

    /// Whether who asks is given anything in the bucket, so that it may know that there is one.
    pub(crate) fn is_shared_with(&self, requester: Requester<'_>) -> bool {
        self.policy.as_ref().is_some_and(|policy| {
            is_shared_with(policy, requester) && !self.block.restricts(policy, requester)
        })
    }

    /// What policy and blocks say of a request.
    pub(crate) fn decide(&self, request: &coffer_policy::Request<'_>) -> coffer_policy::Shared {
        let nothing = Acl::new(None, Vec::new()).expect("no grants are not too many");
        let sharing = coffer_policy::Sharing {
            policy: self.policy.as_ref(),
            bucket_acl: &nothing,
            object_acl: None,
            ownership: ObjectOwnership::BucketOwnerEnforced,
            block: self.block,
        };
        coffer_policy::decide(&sharing, request)
    }
}

/// The blocks of a bucket, as they are kept.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Blocks {
    block_public_acls: bool,
    ignore_public_acls: bool,
    block_public_policy: bool,
    restrict_public_buckets: bool,
}

/// The blocks of a bucket: all of them where nothing was ever said, none where what was said was
/// removed.
pub(crate) fn block_of(document: Option<&str>) -> Result<Option<PublicAccessBlock>> {
    let Some(document) = document else {
        return Ok(Some(PublicAccessBlock::ALL));
    };
    let blocks: Option<Blocks> = serde_json::from_str(document).map_err(|_| VaultError::Damaged)?;
    Ok(blocks.map(|blocks| PublicAccessBlock {
        block_public_acls: blocks.block_public_acls,
        ignore_public_acls: blocks.ignore_public_acls,
        block_public_policy: blocks.block_public_policy,
        restrict_public_buckets: blocks.restrict_public_buckets,
    }))
}

/// The blocks of a bucket, or that they were removed, as it is kept.
pub(crate) fn block_document(block: Option<PublicAccessBlock>) -> String {
    let blocks = block.map(|block| Blocks {
        block_public_acls: block.block_public_acls,
        ignore_public_acls: block.ignore_public_acls,
        block_public_policy: block.block_public_policy,
        restrict_public_buckets: block.restrict_public_buckets,
    });
    serde_json::to_string(&blocks).expect("blocks are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_kept_as_json_and_all_where_nothing_was_said() {
        assert_eq!(block_of(None).unwrap(), Some(PublicAccessBlock::ALL));
        let some = PublicAccessBlock {
            block_public_policy: true,
            ..Default::default()
        };
        for block in [Some(some), Some(PublicAccessBlock::ALL), None] {
            assert_eq!(block_of(Some(&block_document(block))).unwrap(), block);
        }
        assert!(block_of(Some("{}")).is_err());
    }

    #[test]
    fn what_is_kept_of_another_server_is_damaged() {
        let policy = r#"{"Statement":[{"Effect":"Deny","Principal":"*","Action":"s3:*",
            "Resource":"arn:aws:s3:::a/${s3:ExistingObjectTag/t}"}],"Version":"2012-10-17"}"#;
        let account = "111122223333".parse().unwrap();
        let read = Sharing::read(Some(policy), None, "a", &account).unwrap();
        assert!(read.asks_for_tags);
        assert!(Sharing::read(Some(policy), None, "b", &account).is_err());
    }
}
