//! Which actions an operation is (Amazon S3 User Guide, "Required permissions for Amazon S3 API
//! operations").

use coffer_vault::policy::Action::{self, *};

/// An operation, its actions, and those that it is where a version is named.
type Row = (&'static str, &'static [Action], &'static [Action]);

/// All operations on buckets and objects that there are here. What an operation does besides,
/// because a header asks for it, is in `besides`.
const OPERATIONS: &[Row] = &[
    // First what is asked for most: they are looked through in this order.
    ("GetObject", &[GetObject], &[GetObjectVersion]),
    ("HeadObject", &[GetObject], &[GetObjectVersion]),
    ("PutObject", &[PutObject], &[]),
    ("AbortMultipartUpload", &[AbortMultipartUpload], &[]),
    ("CompleteMultipartUpload", &[PutObject], &[]),
    ("CopyObject", &[PutObject], &[]),
    ("CreateBucket", &[CreateBucket], &[]),
    ("CreateMultipartUpload", &[PutObject], &[]),
    ("DeleteBucket", &[DeleteBucket], &[]),
    ("DeleteBucketCors", &[PutBucketCORS], &[]),
    ("DeleteBucketEncryption", &[PutEncryptionConfiguration], &[]),
    ("DeleteBucketLifecycle", &[PutLifecycleConfiguration], &[]),
    (
        "DeleteBucketOwnershipControls",
        &[PutBucketOwnershipControls],
        &[],
    ),
    ("DeleteBucketPolicy", &[DeleteBucketPolicy], &[]),
    ("DeleteBucketTagging", &[PutBucketTagging], &[]),
    ("DeleteObject", &[DeleteObject], &[DeleteObjectVersion]),
    (
        "DeleteObjectTagging",
        &[DeleteObjectTagging],
        &[DeleteObjectVersionTagging],
    ),
    // Decided one by one, by the names in the body.
    ("DeleteObjects", &[DeleteObject], &[]),
    (
        "DeletePublicAccessBlock",
        &[PutBucketPublicAccessBlock],
        &[],
    ),
    (
        "GetBucketAccelerateConfiguration",
        &[GetAccelerateConfiguration],
        &[],
    ),
    ("GetBucketAcl", &[GetBucketAcl], &[]),
    (
        "GetBucketAnalyticsConfiguration",
        &[GetAnalyticsConfiguration],
        &[],
    ),
    ("GetBucketCors", &[GetBucketCORS], &[]),
    ("GetBucketEncryption", &[GetEncryptionConfiguration], &[]),
    (
        "GetBucketIntelligentTieringConfiguration",
        &[GetIntelligentTieringConfiguration],
        &[],
    ),
    (
        "GetBucketInventoryConfiguration",
        &[GetInventoryConfiguration],
        &[],
    ),
    (
        "GetBucketLifecycleConfiguration",
        &[GetLifecycleConfiguration],
        &[],
    ),
    ("GetBucketLocation", &[GetBucketLocation], &[]),
    ("GetBucketLogging", &[GetBucketLogging], &[]),
    (
        "GetBucketMetricsConfiguration",
        &[GetMetricsConfiguration],
        &[],
    ),
    (
        "GetBucketNotificationConfiguration",
        &[GetBucketNotification],
        &[],
    ),
    (
        "GetBucketOwnershipControls",
        &[GetBucketOwnershipControls],
        &[],
    ),
    ("GetBucketPolicy", &[GetBucketPolicy], &[]),
    ("GetBucketPolicyStatus", &[GetBucketPolicyStatus], &[]),
    ("GetBucketReplication", &[GetReplicationConfiguration], &[]),
    ("GetBucketRequestPayment", &[GetBucketRequestPayment], &[]),
    ("GetBucketTagging", &[GetBucketTagging], &[]),
    ("GetBucketVersioning", &[GetBucketVersioning], &[]),
    ("GetBucketWebsite", &[GetBucketWebsite], &[]),
    ("GetObjectAcl", &[GetObjectAcl], &[GetObjectVersionAcl]),
    (
        "GetObjectAttributes",
        &[GetObject, GetObjectAttributes],
        &[GetObjectVersion, GetObjectVersionAttributes],
    ),
    ("GetObjectLegalHold", &[GetObjectLegalHold], &[]),
    (
        "GetObjectLockConfiguration",
        &[GetBucketObjectLockConfiguration],
        &[],
    ),
    ("GetObjectRetention", &[GetObjectRetention], &[]),
    (
        "GetObjectTagging",
        &[GetObjectTagging],
        &[GetObjectVersionTagging],
    ),
    ("GetPublicAccessBlock", &[GetBucketPublicAccessBlock], &[]),
    ("HeadBucket", &[ListBucket], &[]),
    (
        "ListBucketAnalyticsConfigurations",
        &[GetAnalyticsConfiguration],
        &[],
    ),
    (
        "ListBucketIntelligentTieringConfigurations",
        &[GetIntelligentTieringConfiguration],
        &[],
    ),
    (
        "ListBucketInventoryConfigurations",
        &[GetInventoryConfiguration],
        &[],
    ),
    (
        "ListBucketMetricsConfigurations",
        &[GetMetricsConfiguration],
        &[],
    ),
    ("ListBuckets", &[ListAllMyBuckets], &[]),
    ("ListMultipartUploads", &[ListBucketMultipartUploads], &[]),
    ("ListObjectVersions", &[ListBucketVersions], &[]),
    ("ListObjects", &[ListBucket], &[]),
    ("ListObjectsV2", &[ListBucket], &[]),
    ("ListParts", &[ListMultipartUploadParts], &[]),
    ("PostObject", &[PutObject], &[]),
    ("PutBucketAcl", &[PutBucketAcl], &[]),
    (
        "PutBucketAccelerateConfiguration",
        &[PutAccelerateConfiguration],
        &[],
    ),
    ("PutBucketCors", &[PutBucketCORS], &[]),
    ("PutBucketLogging", &[PutBucketLogging], &[]),
    (
        "PutBucketNotificationConfiguration",
        &[PutBucketNotification],
        &[],
    ),
    ("PutBucketRequestPayment", &[PutBucketRequestPayment], &[]),
    (
        "DeleteBucketReplication",
        &[PutReplicationConfiguration],
        &[],
    ),
    ("DeleteBucketWebsite", &[DeleteBucketWebsite], &[]),
    ("PutBucketEncryption", &[PutEncryptionConfiguration], &[]),
    (
        "PutBucketLifecycleConfiguration",
        &[PutLifecycleConfiguration],
        &[],
    ),
    (
        "PutBucketOwnershipControls",
        &[PutBucketOwnershipControls],
        &[],
    ),
    ("PutBucketPolicy", &[PutBucketPolicy], &[]),
    ("PutBucketTagging", &[PutBucketTagging], &[]),
    ("PutBucketVersioning", &[PutBucketVersioning], &[]),
    ("PutObjectAcl", &[PutObjectAcl], &[PutObjectVersionAcl]),
    ("PutObjectLegalHold", &[PutObjectLegalHold], &[]),
    (
        "PutObjectLockConfiguration",
        &[PutBucketObjectLockConfiguration],
        &[],
    ),
    ("PutObjectRetention", &[PutObjectRetention], &[]),
    (
        "PutObjectTagging",
        &[PutObjectTagging],
        &[PutObjectVersionTagging],
    ),
    ("PutPublicAccessBlock", &[PutBucketPublicAccessBlock], &[]),
    // Of the new name; what it asks of the other is in `describe`.
    ("RenameObject", &[PutObject], &[]),
    ("UploadPart", &[PutObject], &[]),
    ("UploadPartCopy", &[PutObject], &[]),
];

/// The actions of an operation; none where there is no such operation here.
pub(super) fn of(operation: &str, names_version: bool) -> &'static [Action] {
    let row = OPERATIONS.iter().find(|(name, ..)| *name == operation);
    match row {
        Some((_, _, versioned)) if names_version && !versioned.is_empty() => versioned,
        Some((_, actions, _)) => actions,
        None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the trait of s3s calls an operation.
    fn snake(name: &str) -> String {
        let mut snake = String::new();
        for (place, letter) in name.chars().enumerate() {
            if letter.is_ascii_uppercase() && place > 0 {
                snake.push('_');
            }
            snake.push(letter.to_ascii_lowercase());
        }
        // But for the version in a name.
        snake.replace("_v_2", "_v2").replace("v_2", "_v2")
    }

    #[test]
    fn every_operation_has_an_action() {
        let known: Vec<_> = OPERATIONS.iter().map(|(name, ..)| snake(name)).collect();
        let source = include_str!("../../operations.rs");
        let (_, done) = source.split_once("\noperations! {").unwrap();
        let mut count = 0;
        for line in done.lines() {
            let Some(rest) = line.strip_prefix("    ") else {
                continue;
            };
            let name: String = rest
                .chars()
                .take_while(|letter| {
                    letter.is_ascii_lowercase() || *letter == '_' || *letter == '2'
                })
                .collect();
            if rest[name.len()..].starts_with('(') {
                assert!(known.contains(&name), "{name} has no action");
                count += 1;
            }
        }
        assert!(count > 50);
        for name in crate::counters::OPERATIONS {
            assert!(name == "Other" || !of(name, false).is_empty(), "{name}");
        }
    }

    #[test]
    fn a_named_version_is_another_action() {
        assert_eq!(of("GetObject", false), [GetObject]);
        assert_eq!(of("GetObject", true), [GetObjectVersion]);
        assert_eq!(of("ListObjectsV2", true), [ListBucket]);
        assert_eq!(of("InventOperation", false), []);
    }
}
