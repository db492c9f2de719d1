//! Configuration of buckets that can't be set here: each answers as S3 does for a bucket where it
//! was never set, by its default or by the code that says there is none. Setting it is
//! `NotImplemented`, by s3s's defaults.

pub(crate) mod defaults;

use coffer_vault::Vault;
use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Response, S3Result};

use crate::errors::absent;
use crate::operations::buckets::bucket_info;
use crate::request::caller::Caller;

/// What is answered once it is known that the bucket is there, and that the caller may know.
macro_rules! never_set {
    ($($(#[$doc:meta])* $function:ident($input:ident) -> $output:ident = $answer:expr;)*) => {
        $(
            $(#[$doc])*
            pub(crate) async fn $function(
                vault: &Vault,
                request: S3Request<$input>,
            ) -> S3Result<S3Response<$output>> {
                let caller = Caller::of(&request)?;
                bucket_info(vault, &caller, &request.input.bucket).await?;
                let answer: S3Result<$output> = $answer;
                answer.map(S3Response::new)
            }
        )*
    };
}

never_set! {
    accelerate(GetBucketAccelerateConfigurationInput) -> GetBucketAccelerateConfigurationOutput
        = Ok(Default::default());
    analytics(GetBucketAnalyticsConfigurationInput) -> GetBucketAnalyticsConfigurationOutput
        = Err(no_configuration());
    all_analytics(ListBucketAnalyticsConfigurationsInput)
        -> ListBucketAnalyticsConfigurationsOutput = Ok(ListBucketAnalyticsConfigurationsOutput {
            is_truncated: Some(false),
            ..Default::default()
        });
    intelligent_tiering(GetBucketIntelligentTieringConfigurationInput)
        -> GetBucketIntelligentTieringConfigurationOutput = Err(no_configuration());
    all_intelligent_tiering(ListBucketIntelligentTieringConfigurationsInput)
        -> ListBucketIntelligentTieringConfigurationsOutput
        = Ok(ListBucketIntelligentTieringConfigurationsOutput {
            is_truncated: Some(false),
            ..Default::default()
        });
    inventory(GetBucketInventoryConfigurationInput) -> GetBucketInventoryConfigurationOutput
        = Err(no_configuration());
    all_inventory(ListBucketInventoryConfigurationsInput)
        -> ListBucketInventoryConfigurationsOutput = Ok(ListBucketInventoryConfigurationsOutput {
            is_truncated: Some(false),
            ..Default::default()
        });
    logging(GetBucketLoggingInput) -> GetBucketLoggingOutput = Ok(Default::default());
    metrics(GetBucketMetricsConfigurationInput) -> GetBucketMetricsConfigurationOutput
        = Err(no_configuration());
    all_metrics(ListBucketMetricsConfigurationsInput) -> ListBucketMetricsConfigurationsOutput
        = Ok(ListBucketMetricsConfigurationsOutput {
            is_truncated: Some(false),
            ..Default::default()
        });
    notification(GetBucketNotificationConfigurationInput)
        -> GetBucketNotificationConfigurationOutput = Ok(Default::default());
    replication(GetBucketReplicationInput) -> GetBucketReplicationOutput = Err(absent(
        "ReplicationConfigurationNotFoundError",
        "The replication configuration was not found",
    ));
    request_payment(GetBucketRequestPaymentInput) -> GetBucketRequestPaymentOutput
        = Ok(GetBucketRequestPaymentOutput {
            payer: Some(Payer::from_static(Payer::BUCKET_OWNER)),
        });
    website(GetBucketWebsiteInput) -> GetBucketWebsiteOutput = Err(absent(
        "NoSuchWebsiteConfiguration",
        "The specified bucket does not have a website configuration",
    ));
}

fn no_configuration() -> S3Error {
    absent(
        "NoSuchConfiguration",
        "The specified configuration does not exist.",
    )
}
