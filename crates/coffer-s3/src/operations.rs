//! S3's operations, each in the module of its topic. Those that are missing here answer
//! `NotImplemented` by s3s's defaults.

use coffer_vault::Vault;
use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result};

use crate::{
    attributes, buckets, configuration, copying, listing, multipart, objects, parts, reading,
    upload_lists,
};

/// The operations on one vault.
#[derive(Clone)]
pub(crate) struct Operations {
    pub(crate) vault: Vault,
}

/// Passes operations on to the functions that do them.
macro_rules! operations {
    ($($name:ident($input:ident) -> $output:ident = $function:path;)*) => {
        #[async_trait::async_trait]
        impl S3 for Operations {
            $(
                async fn $name(&self, request: S3Request<$input>) -> S3Result<S3Response<$output>> {
                    $function(&self.vault, request).await
                }
            )*
        }
    };
}

operations! {
    abort_multipart_upload(AbortMultipartUploadInput) -> AbortMultipartUploadOutput
        = multipart::abort;
    complete_multipart_upload(CompleteMultipartUploadInput) -> CompleteMultipartUploadOutput
        = multipart::complete;
    copy_object(CopyObjectInput) -> CopyObjectOutput = copying::copy_object;
    create_bucket(CreateBucketInput) -> CreateBucketOutput = buckets::create_bucket;
    create_multipart_upload(CreateMultipartUploadInput) -> CreateMultipartUploadOutput
        = multipart::create;
    delete_bucket(DeleteBucketInput) -> DeleteBucketOutput = buckets::delete_bucket;
    delete_bucket_tagging(DeleteBucketTaggingInput) -> DeleteBucketTaggingOutput
        = buckets::delete_bucket_tags;
    delete_object(DeleteObjectInput) -> DeleteObjectOutput = objects::delete_object;
    delete_object_tagging(DeleteObjectTaggingInput) -> DeleteObjectTaggingOutput
        = objects::delete_object_tags;
    delete_objects(DeleteObjectsInput) -> DeleteObjectsOutput = objects::delete_objects;
    get_bucket_accelerate_configuration(GetBucketAccelerateConfigurationInput)
        -> GetBucketAccelerateConfigurationOutput = configuration::accelerate;
    get_bucket_acl(GetBucketAclInput) -> GetBucketAclOutput = configuration::acl;
    get_bucket_analytics_configuration(GetBucketAnalyticsConfigurationInput)
        -> GetBucketAnalyticsConfigurationOutput = configuration::analytics;
    get_bucket_cors(GetBucketCorsInput) -> GetBucketCorsOutput = configuration::cors;
    get_bucket_encryption(GetBucketEncryptionInput) -> GetBucketEncryptionOutput
        = buckets::bucket_encryption;
    get_bucket_intelligent_tiering_configuration(GetBucketIntelligentTieringConfigurationInput)
        -> GetBucketIntelligentTieringConfigurationOutput = configuration::intelligent_tiering;
    get_bucket_inventory_configuration(GetBucketInventoryConfigurationInput)
        -> GetBucketInventoryConfigurationOutput = configuration::inventory;
    get_bucket_lifecycle_configuration(GetBucketLifecycleConfigurationInput)
        -> GetBucketLifecycleConfigurationOutput = configuration::lifecycle;
    get_bucket_location(GetBucketLocationInput) -> GetBucketLocationOutput
        = buckets::bucket_location;
    get_bucket_logging(GetBucketLoggingInput) -> GetBucketLoggingOutput = configuration::logging;
    get_bucket_metrics_configuration(GetBucketMetricsConfigurationInput)
        -> GetBucketMetricsConfigurationOutput = configuration::metrics;
    get_bucket_notification_configuration(GetBucketNotificationConfigurationInput)
        -> GetBucketNotificationConfigurationOutput = configuration::notification;
    get_bucket_ownership_controls(GetBucketOwnershipControlsInput)
        -> GetBucketOwnershipControlsOutput = configuration::ownership;
    get_bucket_policy(GetBucketPolicyInput) -> GetBucketPolicyOutput = configuration::policy;
    get_bucket_policy_status(GetBucketPolicyStatusInput) -> GetBucketPolicyStatusOutput
        = configuration::policy_status;
    get_bucket_replication(GetBucketReplicationInput) -> GetBucketReplicationOutput
        = configuration::replication;
    get_bucket_request_payment(GetBucketRequestPaymentInput) -> GetBucketRequestPaymentOutput
        = configuration::request_payment;
    get_bucket_tagging(GetBucketTaggingInput) -> GetBucketTaggingOutput = buckets::bucket_tags;
    get_bucket_versioning(GetBucketVersioningInput) -> GetBucketVersioningOutput
        = buckets::bucket_versioning;
    get_bucket_website(GetBucketWebsiteInput) -> GetBucketWebsiteOutput = configuration::website;
    get_object(GetObjectInput) -> GetObjectOutput = reading::get_object;
    get_object_acl(GetObjectAclInput) -> GetObjectAclOutput = configuration::object_acl;
    get_object_attributes(GetObjectAttributesInput) -> GetObjectAttributesOutput
        = attributes::object_attributes;
    get_object_legal_hold(GetObjectLegalHoldInput) -> GetObjectLegalHoldOutput
        = configuration::legal_hold;
    get_object_lock_configuration(GetObjectLockConfigurationInput)
        -> GetObjectLockConfigurationOutput = configuration::object_lock;
    get_object_retention(GetObjectRetentionInput) -> GetObjectRetentionOutput
        = configuration::retention;
    get_object_tagging(GetObjectTaggingInput) -> GetObjectTaggingOutput = objects::object_tags;
    get_public_access_block(GetPublicAccessBlockInput) -> GetPublicAccessBlockOutput
        = configuration::public_access;
    head_bucket(HeadBucketInput) -> HeadBucketOutput = buckets::head_bucket;
    head_object(HeadObjectInput) -> HeadObjectOutput = reading::head_object;
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
        = upload_lists::list_uploads;
    list_object_versions(ListObjectVersionsInput) -> ListObjectVersionsOutput
        = listing::list_object_versions;
    list_objects(ListObjectsInput) -> ListObjectsOutput = listing::list_objects;
    list_objects_v2(ListObjectsV2Input) -> ListObjectsV2Output = listing::list_objects_v2;
    list_parts(ListPartsInput) -> ListPartsOutput = upload_lists::list_parts;
    put_bucket_encryption(PutBucketEncryptionInput) -> PutBucketEncryptionOutput
        = buckets::put_bucket_encryption;
    put_bucket_tagging(PutBucketTaggingInput) -> PutBucketTaggingOutput
        = buckets::put_bucket_tags;
    put_object(PutObjectInput) -> PutObjectOutput = objects::put_object;
    put_object_tagging(PutObjectTaggingInput) -> PutObjectTaggingOutput
        = objects::put_object_tags;
    upload_part(UploadPartInput) -> UploadPartOutput = parts::upload_part;
    upload_part_copy(UploadPartCopyInput) -> UploadPartCopyOutput = parts::upload_part_copy;
}
