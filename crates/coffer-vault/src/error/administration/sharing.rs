//! What can go wrong with what is said of sharing buckets.

use coffer_policy::{AclRefusal, PolicyError, TooManyGrants};

use super::AdministrationError;
use crate::error::VaultError;

/// Why something that says who may use a bucket was not kept, or could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SharingError {
    /// It is no policy of the bucket.
    #[error("{0}")]
    Malformed(#[from] PolicyError),
    /// The policy is public, and the bucket blocks such policies.
    #[error("the policy is public, and the BlockPublicPolicy setting of the bucket is on")]
    PublicPolicy,
    /// A list was refused.
    #[error(transparent)]
    Acl(#[from] AclRefusal),
    /// A list has too many grants.
    #[error(transparent)]
    TooManyGrants(#[from] TooManyGrants),
    /// A list names what is no canonical user id.
    #[error("the access control list names an id that is none of a subject's")]
    UnknownGrantee,
    /// A bucket that is to be made with a public list would block such lists.
    #[error("a new bucket blocks public access control lists")]
    PublicFromTheStart,
    /// What is said of sharing the bucket changed while the request was under way.
    #[error(
        "what is said of sharing the bucket changed while the request was under way; try again"
    )]
    Changed,
}

impl From<SharingError> for VaultError {
    fn from(error: SharingError) -> Self {
        Self::Administration(AdministrationError::Sharing(error))
    }
}
