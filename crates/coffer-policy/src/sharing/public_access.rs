//! What blocks the public.
//!
//! *Amazon S3 User Guide*, Blocking public access to your Amazon S3 storage
//! (`AmazonS3/latest/userguide/access-control-block-public-access.html`).

use std::borrow::Cow;

use thiserror::Error;

use crate::acl::{Acl, AclRefusal};
use crate::evaluate::Requester;
use crate::grammar::Policy;
use crate::public::is_public;

/// The four blocks of a bucket, or of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PublicAccessBlock {
    /// Public lists are refused.
    pub block_public_acls: bool,
    /// What lists grant to the public doesn't count.
    pub ignore_public_acls: bool,
    /// Public policies are refused.
    pub block_public_policy: bool,
    /// Where the policy is public, policy and lists let in those of the account alone.
    pub restrict_public_buckets: bool,
}

/// `AccessDenied`, 403: the policy is public, and the bucket blocks such policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the policy is public, and the BlockPublicPolicy setting of the bucket is on")]
pub struct PublicPolicy;

impl PublicAccessBlock {
    /// All four, as a new bucket has them on AWS.
    pub const ALL: Self = Self {
        block_public_acls: true,
        ignore_public_acls: true,
        block_public_policy: true,
        restrict_public_buckets: true,
    };

    /// What blocks where both hold: a bucket's and the server's.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            block_public_acls: self.block_public_acls || other.block_public_acls,
            ignore_public_acls: self.ignore_public_acls || other.ignore_public_acls,
            block_public_policy: self.block_public_policy || other.block_public_policy,
            restrict_public_buckets: self.restrict_public_buckets || other.restrict_public_buckets,
        }
    }

    /// Sees whether a policy may be put.
    ///
    /// # Errors
    ///
    /// When it is public, and such are blocked.
    pub fn check_policy(self, policy: &Policy) -> Result<(), PublicPolicy> {
        if self.block_public_policy && is_public(policy) {
            return Err(PublicPolicy);
        }
        Ok(())
    }

    /// Sees whether a list may be put.
    ///
    /// # Errors
    ///
    /// [`AclRefusal::Public`] when it is public, and such are blocked.
    pub fn check_acl(self, acl: &Acl) -> Result<(), AclRefusal> {
        if self.block_public_acls && acl.is_public() {
            return Err(AclRefusal::Public);
        }
        Ok(())
    }

    /// The list as it counts, and as it is shown.
    pub fn effective_acl(self, acl: &Acl) -> Cow<'_, Acl> {
        if self.ignore_public_acls && acl.is_public() {
            Cow::Owned(acl.without_public_grants())
        } else {
            Cow::Borrowed(acl)
        }
    }

    /// Whether a bucket with this policy is kept from this requester. A server has one account, so
    /// only those who are anonymous are outside of it.
    pub fn restricts(self, policy: &Policy, requester: Requester<'_>) -> bool {
        self.restrict_public_buckets && requester == Requester::Anonymous && is_public(policy)
    }
}
