//! S3's operations: each reads its input, calls the vault and writes the output. What several of
//! them read from a request is in `parameters`. An operation that is missing here answers
//! `NotImplemented` by s3s's defaults.

use coffer_vault::Vault;
use futures::future::BoxFuture;
use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result};

use crate::lifecycle::set as set_lifecycle;

mod acl;

mod page_length;

mod listing;

mod buckets;

mod bucket_encryption;

mod configuration;

mod cors;

mod sharing;

mod versions;

mod get_object;

mod object_attributes;

pub(crate) mod objects;

mod copy_object;

mod upload_part;

mod multipart_upload;

mod list_uploads;

/// The operations on one vault.
#[derive(Clone)]
pub(crate) struct Operations {
    pub(crate) vault: Vault,
}

/// Passes operations on to the functions that do them: what these give is boxed as it is, for a
/// future around it would hold the request a second time.
macro_rules! operations {
    ($($name:ident($input:ident) -> $output:ident = $function:path;)*) => {
        impl S3 for Operations {
            $(
                fn $name<'s, 'f>(
                    &'s self,
                    request: S3Request<$input>,
                ) -> BoxFuture<'f, S3Result<S3Response<$output>>>
                where
                    's: 'f,
                    Self: 'f,
                {
                    Box::pin($function(&self.vault, request))
                }
            )*
        }
    };
}

operations! {
    abort_multipart_upload(AbortMultipartUploadInput) -> AbortMultipartUploadOutput
        = multipart_upload::abort;
    complete_multipart_upload(CompleteMultipartUploadInput) -> CompleteMultipartUploadOutput
        = multipart_upload::complete;
    copy_object(CopyObjectInput) -> CopyObjectOutput = copy_object::copy_object;
    create_bucket(CreateBucketInput) -> CreateBucketOutput = buckets::create_bucket;
    create_multipart_upload(CreateMultipartUploadInput) -> CreateMultipartUploadOutput
        = multipart_upload::create;
    delete_bucket(DeleteBucketInput) -> DeleteBucketOutput = buckets::delete_bucket;
    delete_bucket_cors(DeleteBucketCorsInput) -> DeleteBucketCorsOutput = cors::delete_bucket_cors;
    delete_bucket_encryption(DeleteBucketEncryptionInput) -> DeleteBucketEncryptionOutput
        = bucket_encryption::delete_bucket_encryption;
    delete_bucket_lifecycle(DeleteBucketLifecycleInput) -> DeleteBucketLifecycleOutput
        = set_lifecycle::delete_bucket_lifecycle;
    delete_bucket_ownership_controls(DeleteBucketOwnershipControlsInput)
        -> DeleteBucketOwnershipControlsOutput = acl::ownership::delete_ownership_controls;
    delete_bucket_policy(DeleteBucketPolicyInput) -> DeleteBucketPolicyOutput
        = sharing::delete_bucket_policy;
    delete_bucket_replication(DeleteBucketReplicationInput) -> DeleteBucketReplicationOutput
        = configuration::defaults::no_replication;
    delete_bucket_website(DeleteBucketWebsiteInput) -> DeleteBucketWebsiteOutput
        = configuration::defaults::no_website;
    delete_bucket_tagging(DeleteBucketTaggingInput) -> DeleteBucketTaggingOutput
        = buckets::delete_bucket_tags;
    delete_object(DeleteObjectInput) -> DeleteObjectOutput = objects::delete_object;
    delete_object_tagging(DeleteObjectTaggingInput) -> DeleteObjectTaggingOutput
        = objects::tagging::delete_object_tags;
    delete_objects(DeleteObjectsInput) -> DeleteObjectsOutput = objects::delete_objects;
    delete_public_access_block(DeletePublicAccessBlockInput) -> DeletePublicAccessBlockOutput
        = sharing::delete_public_access_block;
    get_bucket_accelerate_configuration(GetBucketAccelerateConfigurationInput)
        -> GetBucketAccelerateConfigurationOutput = configuration::accelerate;
    get_bucket_acl(GetBucketAclInput) -> GetBucketAclOutput = acl::bucket_acl;
    get_bucket_analytics_configuration(GetBucketAnalyticsConfigurationInput)
        -> GetBucketAnalyticsConfigurationOutput = configuration::analytics;
    get_bucket_cors(GetBucketCorsInput) -> GetBucketCorsOutput = cors::bucket_cors;
    get_bucket_encryption(GetBucketEncryptionInput) -> GetBucketEncryptionOutput
        = bucket_encryption::bucket_encryption;
    get_bucket_intelligent_tiering_configuration(GetBucketIntelligentTieringConfigurationInput)
        -> GetBucketIntelligentTieringConfigurationOutput = configuration::intelligent_tiering;
    get_bucket_inventory_configuration(GetBucketInventoryConfigurationInput)
        -> GetBucketInventoryConfigurationOutput = configuration::inventory;
    get_bucket_lifecycle_configuration(GetBucketLifecycleConfigurationInput)
        -> GetBucketLifecycleConfigurationOutput = set_lifecycle::bucket_lifecycle;
    get_bucket_location(GetBucketLocationInput) -> GetBucketLocationOutput
        = buckets::bucket_location;
    get_bucket_logging(GetBucketLoggingInput) -> GetBucketLoggingOutput = configuration::logging;
    get_bucket_metrics_configuration(GetBucketMetricsConfigurationInput)
        -> GetBucketMetricsConfigurationOutput = configuration::metrics;
    get_bucket_notification_configuration(GetBucketNotificationConfigurationInput)
        -> GetBucketNotificationConfigurationOutput = configuration::notification;
    get_bucket_ownership_controls(GetBucketOwnershipControlsInput)
        -> GetBucketOwnershipControlsOutput = acl::ownership::ownership_controls;
    get_bucket_policy(GetBucketPolicyInput) -> GetBucketPolicyOutput = sharing::bucket_policy;
    get_bucket_policy_status(GetBucketPolicyStatusInput) -> GetBucketPolicyStatusOutput
        = sharing::policy_status;
    get_bucket_replication(GetBucketReplicationInput) -> GetBucketReplicationOutput
        = configuration::replication;
    get_bucket_request_payment(GetBucketRequestPaymentInput) -> GetBucketRequestPaymentOutput
        = configuration::request_payment;
    get_bucket_tagging(GetBucketTaggingInput) -> GetBucketTaggingOutput = buckets::bucket_tags;
    get_bucket_versioning(GetBucketVersioningInput) -> GetBucketVersioningOutput
        = versions::bucket_versioning;
    get_bucket_website(GetBucketWebsiteInput) -> GetBucketWebsiteOutput = configuration::website;
    get_object(GetObjectInput) -> GetObjectOutput = get_object::get_object;
    get_object_acl(GetObjectAclInput) -> GetObjectAclOutput = acl::object_acl;
    get_object_attributes(GetObjectAttributesInput) -> GetObjectAttributesOutput
        = object_attributes::object_attributes;
    get_object_legal_hold(GetObjectLegalHoldInput) -> GetObjectLegalHoldOutput
        = versions::object_lock::legal_hold;
    get_object_lock_configuration(GetObjectLockConfigurationInput)
        -> GetObjectLockConfigurationOutput = versions::object_lock::configuration;
    get_object_retention(GetObjectRetentionInput) -> GetObjectRetentionOutput
        = versions::object_lock::retention;
    get_object_tagging(GetObjectTaggingInput) -> GetObjectTaggingOutput
        = objects::tagging::object_tags;
    get_public_access_block(GetPublicAccessBlockInput) -> GetPublicAccessBlockOutput
        = sharing::public_access_block;
    head_bucket(HeadBucketInput) -> HeadBucketOutput = buckets::head_bucket;
    head_object(HeadObjectInput) -> HeadObjectOutput = get_object::head_object;
    list_bucket_analytics_configurations(ListBucketAnalyticsConfigurationsInput)
        -> ListBucketAnalyticsConfigurationsOutput = configuration::all_analytics;
    list_bucket_intelligent_tiering_configurations(
        ListBucketIntelligentTieringConfigurationsInput
    ) -> ListBucketIntelligentTieringConfigurationsOutput = configuration::all_intelligent_tiering;
    list_bucket_inventory_configurations(ListBucketInventoryConfigurationsInput)
        -> ListBucketInventoryConfigurationsOutput = configuration::all_inventory;
    list_bucket_metrics_configurations(ListBucketMetricsConfigurationsInput)
        -> ListBucketMetricsConfigurationsOutput = configuration::all_metrics;
    list_buckets(ListBucketsInput) -> ListBucketsOutput = buckets::list_buckets;
    list_multipart_uploads(ListMultipartUploadsInput) -> ListMultipartUploadsOutput
        = list_uploads::list_uploads;
    list_object_versions(ListObjectVersionsInput) -> ListObjectVersionsOutput
        = versions::listing::list_object_versions;
    list_objects(ListObjectsInput) -> ListObjectsOutput = listing::list_objects;
    list_objects_v2(ListObjectsV2Input) -> ListObjectsV2Output = listing::list_objects_v2;
    list_parts(ListPartsInput) -> ListPartsOutput = list_uploads::list_parts;
    put_object_legal_hold(PutObjectLegalHoldInput) -> PutObjectLegalHoldOutput
        = versions::object_lock::put_legal_hold;
    put_object_lock_configuration(PutObjectLockConfigurationInput)
        -> PutObjectLockConfigurationOutput = versions::object_lock::put_configuration;
    put_object_retention(PutObjectRetentionInput) -> PutObjectRetentionOutput
        = versions::object_lock::put_retention;
    put_bucket_versioning(PutBucketVersioningInput) -> PutBucketVersioningOutput
        = versions::put_bucket_versioning;
    put_bucket_acl(PutBucketAclInput) -> PutBucketAclOutput = acl::put_bucket_acl;
    put_bucket_accelerate_configuration(PutBucketAccelerateConfigurationInput)
        -> PutBucketAccelerateConfigurationOutput = configuration::defaults::accelerate;
    put_bucket_logging(PutBucketLoggingInput) -> PutBucketLoggingOutput
        = configuration::defaults::logging;
    put_bucket_notification_configuration(PutBucketNotificationConfigurationInput)
        -> PutBucketNotificationConfigurationOutput = configuration::defaults::notification;
    put_bucket_request_payment(PutBucketRequestPaymentInput) -> PutBucketRequestPaymentOutput
        = configuration::defaults::request_payment;
    put_bucket_cors(PutBucketCorsInput) -> PutBucketCorsOutput = cors::put_bucket_cors;
    put_bucket_encryption(PutBucketEncryptionInput) -> PutBucketEncryptionOutput
        = bucket_encryption::put_bucket_encryption;
    put_bucket_ownership_controls(PutBucketOwnershipControlsInput)
        -> PutBucketOwnershipControlsOutput = acl::ownership::put_ownership_controls;
    put_bucket_lifecycle_configuration(PutBucketLifecycleConfigurationInput)
        -> PutBucketLifecycleConfigurationOutput = set_lifecycle::put_bucket_lifecycle;
    put_bucket_policy(PutBucketPolicyInput) -> PutBucketPolicyOutput
        = sharing::put_bucket_policy;
    put_bucket_tagging(PutBucketTaggingInput) -> PutBucketTaggingOutput
        = buckets::put_bucket_tags;
    put_object(PutObjectInput) -> PutObjectOutput = objects::put_object;
    put_object_acl(PutObjectAclInput) -> PutObjectAclOutput = acl::put_object_acl;
    put_object_tagging(PutObjectTaggingInput) -> PutObjectTaggingOutput
        = objects::tagging::put_object_tags;
    put_public_access_block(PutPublicAccessBlockInput) -> PutPublicAccessBlockOutput
        = sharing::put_public_access_block;
    upload_part(UploadPartInput) -> UploadPartOutput = upload_part::upload_part;
    upload_part_copy(UploadPartCopyInput) -> UploadPartCopyOutput = upload_part::upload_part_copy;
}
