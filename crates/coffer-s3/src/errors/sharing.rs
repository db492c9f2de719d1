//! Refusals of what is said of who may use buckets.

use coffer_vault::SharingError;
use coffer_vault::policy::AclRefusal;
use http::StatusCode;
use s3s::{S3Error, s3_error};

use super::custom;

/// What is said of who may use a bucket.
pub(super) fn from_sharing(refusal: &SharingError) -> S3Error {
    match refusal {
        SharingError::Malformed(error) => custom(
            "MalformedPolicy",
            StatusCode::BAD_REQUEST,
            error.to_string(),
        ),
        SharingError::Changed => s3_error!(
            ServiceUnavailable,
            "What is said of who may use this bucket changed while the request was under way. \
             Please try again."
        ),
        SharingError::Acl(AclRefusal::NotSupported) => custom(
            "AccessControlListNotSupported",
            StatusCode::BAD_REQUEST,
            "The bucket does not allow ACLs",
        ),
        SharingError::Acl(AclRefusal::WithOwnership) => custom(
            "InvalidBucketAclWithObjectOwnership",
            StatusCode::BAD_REQUEST,
            "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting",
        ),
        SharingError::PublicFromTheStart => custom(
            "InvalidBucketAclWithBlockPublicAccessError",
            StatusCode::BAD_REQUEST,
            "Bucket cannot have public ACLs set with BlockPublicAccess enabled",
        ),
        SharingError::UnknownGrantee => s3_error!(InvalidArgument, "Invalid id"),
        SharingError::TooManyGrants(error) => custom(
            "MalformedACLError",
            StatusCode::BAD_REQUEST,
            error.to_string(),
        ),
        other => s3_error!(AccessDenied, "Access Denied: {other}"),
    }
}
