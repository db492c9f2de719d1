//! What has been said of sharing a bucket: read from the documents of its configuration.

use std::sync::Arc;

use coffer_policy::{
    AccountId, Acl, Key, NO_GRANTS, ObjectOwnership, Permission, Policy, PublicAccessBlock,
    Requester, is_shared_with,
};
use serde::{Deserialize, Serialize};

use super::acl::{counted, ownership_of};
use crate::error::{Result, VaultError};

/// What policies call the condition keys of an object's tags.
const EXISTING_TAG: &str = "s3:existingobjecttag/";

/// What has been said of sharing a bucket.
#[derive(Debug)]
pub(crate) struct Sharing {
    pub(crate) policy: Option<Policy>,
    pub(crate) block: PublicAccessBlock,
    /// Who owns objects, and whether lists count.
    pub(crate) ownership: ObjectOwnership,
    /// The bucket's list, as it is kept.
    pub(crate) bucket_acl: Option<Arc<str>>,
    /// Whether the policy may ask for the tags of an object that is there.
    pub(crate) asks_for_tags: bool,
    /// All that the policy may ask of a request.
    pub(crate) keys: Vec<Key>,
}

/// The documents of a bucket that say who may use it, as they are kept.
#[derive(Debug, Default)]
pub(crate) struct SharingDocuments {
    pub(crate) policy: Option<Arc<str>>,
    pub(crate) block: Option<Arc<str>>,
    pub(crate) ownership: Option<Arc<str>>,
    pub(crate) acl: Option<Arc<str>>,
}

impl Sharing {
    /// Reads the documents as they are kept.
    ///
    /// # Errors
    /// [`VaultError::Damaged`] where one is none of this bucket on this server.
    pub(crate) fn read(
        documents: SharingDocuments,
        bucket: &str,
        account: &AccountId,
    ) -> Result<Self> {
        let policy = documents.policy.as_deref();
        let asks_for_tags =
            policy.is_some_and(|text| text.to_ascii_lowercase().contains(EXISTING_TAG));
        let policy = policy.map(|text| Policy::from_stored(text.as_bytes(), bucket, account));
        let policy = policy.transpose().map_err(|_| VaultError::Damaged)?;
        Ok(Self {
            keys: policy.as_ref().map(Policy::keys).unwrap_or_default(),
            policy,
            block: block_of(documents.block.as_deref())?.unwrap_or_default(),
            ownership: counted(ownership_of(documents.ownership.as_deref())?),
            bucket_acl: documents.acl,
            asks_for_tags,
        })
    }

    /// Whether lists count.
    pub(crate) fn has_acls(&self) -> bool {
        self.ownership.has_acls()
    }

    /// Whether what is said depends on the object that a request is about.
    pub(crate) fn asks_for_objects(&self) -> bool {
        self.asks_for_tags || self.has_acls()
    }

    /// Whether who asks may be given anything in the bucket, so that it may know that there is one.
    /// Where lists count, any object may have one that names it.
    pub(crate) fn is_shared_with(&self, requester: Requester<'_>) -> bool {
        let is_of_public_alone = requester == Requester::Anonymous;
        let by_list = self.has_acls() && !(is_of_public_alone && self.block.ignore_public_acls);
        let policy = self.policy.as_ref();
        if policy.is_some_and(|policy| self.block.restricts(policy, requester)) {
            return false;
        }
        by_list || policy.is_some_and(|policy| is_shared_with(policy, requester))
    }

    /// Whether policy or the bucket's list let this requester in to anything, whatever lists of
    /// objects say.
    pub(crate) fn is_public(&self, requester: Requester<'_>, bucket_list: &Acl) -> bool {
        let policy = self.policy.as_ref();
        if policy.is_some_and(|policy| self.block.restricts(policy, requester)) {
            return false;
        }
        let list = self.block.effective_acl(bucket_list);
        let given = [Permission::Read, Permission::Write, Permission::ReadAcp];
        let by_list = self.has_acls() && given.iter().any(|may| list.permits(requester, *may));
        by_list || policy.is_some_and(|policy| is_shared_with(policy, requester))
    }

    /// What policy, lists and blocks say of a request.
    pub(crate) fn decide(
        &self,
        request: &coffer_policy::Request<'_>,
        lists: Lists<'_>,
    ) -> coffer_policy::Shared {
        let sharing = coffer_policy::Sharing {
            policy: self.policy.as_ref(),
            bucket_acl: lists.bucket.unwrap_or(&NO_GRANTS),
            object_acl: lists.object,
            ownership: self.ownership,
            block: self.block,
        };
        coffer_policy::decide(&sharing, request)
    }
}

/// The lists that a request is about, where lists count.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lists<'a> {
    pub(crate) bucket: Option<&'a Acl>,
    /// None where there is no such object.
    pub(crate) object: Option<&'a Acl>,
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
        let documents = || SharingDocuments {
            policy: Some(policy.into()),
            ..SharingDocuments::default()
        };
        let read = Sharing::read(documents(), "a", &account).unwrap();
        assert!(read.asks_for_tags && !read.has_acls());
        assert!(Sharing::read(documents(), "b", &account).is_err());
    }
}
