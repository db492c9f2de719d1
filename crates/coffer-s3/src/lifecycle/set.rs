//! The lifecycle configuration of a bucket: set, read, removed.

use coffer_vault::BucketConfiguration::Lifecycle;
use coffer_vault::{BucketName, LifecycleRules, Vault};
use s3s::dto::{
    DeleteBucketLifecycleInput, DeleteBucketLifecycleOutput, GetBucketLifecycleConfigurationInput,
    GetBucketLifecycleConfigurationOutput, PutBucketLifecycleConfigurationInput,
    PutBucketLifecycleConfigurationOutput,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::errors::absent;
use crate::lifecycle::document;
use crate::limits::LIFECYCLE_MAX_BYTES;
use crate::parameters::names;
use crate::request::caller::{Caller, headers};

/// `GetBucketLifecycleConfiguration`.
pub(crate) async fn bucket_lifecycle(
    vault: &Vault,
    request: S3Request<GetBucketLifecycleConfigurationInput>,
) -> S3Result<S3Response<GetBucketLifecycleConfigurationOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let read = vault.bucket_configuration(&caller.subject, &bucket, Lifecycle);
    let document = read.await.map_err(|error| caller.refused(error))?;
    let rules: LifecycleRules = document
        .and_then(|document| serde_json::from_str(&document).ok())
        .ok_or_else(|| {
            absent(
                "NoSuchLifecycleConfiguration",
                "The lifecycle configuration does not exist",
            )
        })?;
    Ok(S3Response::new(GetBucketLifecycleConfigurationOutput {
        rules: Some(document::to_client(&rules)),
        ..Default::default()
    }))
}

/// `PutBucketLifecycleConfiguration`, and `PutBucketLifecycle`, which is the same request.
pub(crate) async fn put_bucket_lifecycle(
    vault: &Vault,
    request: S3Request<PutBucketLifecycleConfigurationInput>,
) -> S3Result<S3Response<PutBucketLifecycleConfigurationOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let bucket = names::bucket(&request.input.bucket)?;
    let Some(configuration) = request.input.lifecycle_configuration else {
        return Err(s3_error!(
            MalformedXML,
            "The body is no LifecycleConfiguration"
        ));
    };
    let rules = document::of_client(configuration.rules, vault.lifecycle_day().ms)?;
    let document = serde_json::to_string(&rules).expect("rules are JSON");
    if document.len() > LIFECYCLE_MAX_BYTES {
        return Err(s3_error!(
            InvalidRequest,
            "A lifecycle configuration has at most {LIFECYCLE_MAX_BYTES} bytes"
        ));
    }
    set(vault, &caller, &bucket, Some(document)).await?;
    Ok(S3Response::new(Default::default()))
}

/// `DeleteBucketLifecycle`.
pub(crate) async fn delete_bucket_lifecycle(
    vault: &Vault,
    request: S3Request<DeleteBucketLifecycleInput>,
) -> S3Result<S3Response<DeleteBucketLifecycleOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    set(vault, &caller, &bucket, None).await?;
    Ok(S3Response::new(DeleteBucketLifecycleOutput::default()))
}

async fn set(
    vault: &Vault,
    caller: &Caller,
    bucket: &BucketName,
    document: Option<String>,
) -> S3Result {
    vault
        .set_bucket_configuration(&caller.subject, bucket, Lifecycle, document)
        .await
        .map_err(|error| caller.refused(error))
}
