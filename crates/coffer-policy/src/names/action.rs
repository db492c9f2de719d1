//! The actions of S3: what a policy allows or denies.
//!
//! *Service Authorization Reference*, Actions, resources, and condition keys for Amazon S3
//! (`service-authorization/latest/reference/list_amazons3.html`), and *Amazon S3 User Guide*,
//! Required permissions for Amazon S3 API operations
//! (`AmazonS3/latest/userguide/using-with-s3-policy-actions.html`): the actions of general purpose
//! buckets and their objects, whether or not coffer has an operation for each, and the few of
//! accounts that policies name by mistake.

use std::fmt;

/// What an action is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    /// An account: never in a bucket's policy.
    Account,
    /// A bucket.
    Bucket,
    /// An object, or a place for one.
    Object,
}

macro_rules! actions {
    ($($kind:ident { $($name:ident,)+ })+) => {
        /// An action of S3, called as AWS calls it, without the `s3:` before it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Action {
            $($(#[doc = concat!("`s3:", stringify!($name), "`")] $name,)+)+
        }

        impl Action {
            /// All of them.
            pub const ALL: &[Self] = &[$($(Self::$name,)+)+];

            /// Its name, without `s3:`.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Self::$name => stringify!($name),)+)+
                }
            }

            /// What it is done to.
            pub const fn resource_kind(self) -> ResourceKind {
                match self {
                    $($(Self::$name => ResourceKind::$kind,)+)+
                }
            }
        }
    };
}

actions! {
    Object {
        AbortMultipartUpload, BypassGovernanceRetention, DeleteObject, DeleteObjectTagging,
        DeleteObjectVersion, DeleteObjectVersionTagging, GetObject, GetObjectAcl,
        GetObjectAttributes, GetObjectLegalHold, GetObjectRetention, GetObjectTagging,
        GetObjectTorrent, GetObjectVersion, GetObjectVersionAcl, GetObjectVersionAttributes,
        GetObjectVersionForReplication, GetObjectVersionTagging, GetObjectVersionTorrent,
        InitiateReplication, ListMultipartUploadParts, ObjectOwnerOverrideToBucketOwner,
        PutObject, PutObjectAcl, PutObjectLegalHold, PutObjectRetention, PutObjectTagging,
        PutObjectVersionAcl, PutObjectVersionTagging, ReplicateDelete, ReplicateObject,
        ReplicateTags, RestoreObject,
    }
    Bucket {
        CreateBucket, CreateBucketMetadataTableConfiguration, DeleteBucket,
        DeleteBucketMetadataTableConfiguration, DeleteBucketPolicy, DeleteBucketWebsite,
        GetAccelerateConfiguration, GetAnalyticsConfiguration, GetBucketAcl, GetBucketCORS,
        GetBucketLocation, GetBucketLogging, GetBucketMetadataTableConfiguration,
        GetBucketNotification, GetBucketObjectLockConfiguration, GetBucketOwnershipControls,
        GetBucketPolicy, GetBucketPolicyStatus, GetBucketPublicAccessBlock,
        GetBucketRequestPayment, GetBucketTagging, GetBucketVersioning, GetBucketWebsite,
        GetEncryptionConfiguration, GetIntelligentTieringConfiguration, GetInventoryConfiguration,
        GetLifecycleConfiguration, GetMetricsConfiguration, GetReplicationConfiguration,
        ListBucket, ListBucketMultipartUploads, ListBucketVersions, ListTagsForResource,
        PutAccelerateConfiguration, PutAnalyticsConfiguration, PutBucketAcl, PutBucketCORS,
        PutBucketLogging, PutBucketNotification, PutBucketObjectLockConfiguration,
        PutBucketOwnershipControls, PutBucketPolicy, PutBucketPublicAccessBlock,
        PutBucketRequestPayment, PutBucketTagging, PutBucketVersioning, PutBucketWebsite,
        PutEncryptionConfiguration, PutIntelligentTieringConfiguration, PutInventoryConfiguration,
        PutLifecycleConfiguration, PutMetricsConfiguration, PutReplicationConfiguration,
        TagResource, UntagResource,
    }
    Account {
        CreateAccessPoint, CreateJob, DeleteAccessPoint, DescribeJob, GetAccessPoint,
        GetAccountPublicAccessBlock, ListAccessPoints, ListAllMyBuckets, ListJobs,
        PutAccountPublicAccessBlock, UpdateJobPriority, UpdateJobStatus,
    }
}

impl fmt::Display for Action {
    /// With `s3:` before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3:{}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_done_to_what_aws_says() {
        for (action, kind) in [
            (Action::ListBucket, ResourceKind::Bucket),
            (Action::ListMultipartUploadParts, ResourceKind::Object),
            (Action::ListBucketMultipartUploads, ResourceKind::Bucket),
            (Action::BypassGovernanceRetention, ResourceKind::Object),
            (
                Action::PutBucketObjectLockConfiguration,
                ResourceKind::Bucket,
            ),
            (Action::ListAllMyBuckets, ResourceKind::Account),
        ] {
            assert_eq!(action.resource_kind(), kind, "{action}");
        }
        assert_eq!(Action::GetBucketCORS.to_string(), "s3:GetBucketCORS");
    }
}
