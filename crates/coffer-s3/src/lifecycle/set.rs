//! The lifecycle configuration of a bucket: set, read, removed.

use coffer_vault::BucketConfiguration::Lifecycle;
use coffer_vault::{LifecycleRules, Vault};
use s3s::dto::{
    DeleteBucketLifecycleInput, DeleteBucketLifecycleOutput, GetBucketLifecycleConfigurationInput,
    GetBucketLifecycleConfigurationOutput, PutBucketLifecycleConfigurationInput,
    PutBucketLifecycleConfigurationOutput, TransitionDefaultMinimumObjectSize,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::errors::absent;
use crate::lifecycle::document;
use crate::limits::LIFECYCLE_MAX_BYTES;
use crate::request::bucket_document::BucketDocument;
use crate::request::caller::{Caller, headers};

const DOCUMENT: BucketDocument = BucketDocument {
    kind: Lifecycle,
    told: "lifecycle configuration",
    max_bytes: LIFECYCLE_MAX_BYTES,
};

/// `GetBucketLifecycleConfiguration`.
pub(crate) async fn bucket_lifecycle(
    vault: &Vault,
    request: S3Request<GetBucketLifecycleConfigurationInput>,
) -> S3Result<S3Response<GetBucketLifecycleConfigurationOutput>> {
    let caller = Caller::of(&request)?;
    let read = DOCUMENT.read(vault, &caller, &request.input.bucket);
    let rules: LifecycleRules = read.await?.ok_or_else(|| {
        absent(
            "NoSuchLifecycleConfiguration",
            "The lifecycle configuration does not exist",
        )
    })?;
    Ok(S3Response::new(GetBucketLifecycleConfigurationOutput {
        rules: Some(document::to_client(&rules)),
        transition_default_minimum_object_size: Some(least_that_moves()),
    }))
}

/// `PutBucketLifecycleConfiguration`, and `PutBucketLifecycle`, which is the same request.
pub(crate) async fn put_bucket_lifecycle(
    vault: &Vault,
    request: S3Request<PutBucketLifecycleConfigurationInput>,
) -> S3Result<S3Response<PutBucketLifecycleConfigurationOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let Some(configuration) = request.input.lifecycle_configuration else {
        return Err(s3_error!(
            MalformedXML,
            "The body is no LifecycleConfiguration"
        ));
    };
    let rules = document::of_client(configuration.rules, vault.lifecycle_day().ms)?;
    let bucket = &request.input.bucket;
    DOCUMENT.set(vault, &caller, bucket, &rules).await?;
    Ok(S3Response::new(PutBucketLifecycleConfigurationOutput {
        transition_default_minimum_object_size: Some(least_that_moves()),
    }))
}

/// What AWS answers where a request says nothing else. Here nothing moves to other classes, and so
/// what a request asks for is not kept.
fn least_that_moves() -> TransitionDefaultMinimumObjectSize {
    let name = TransitionDefaultMinimumObjectSize::ALL_STORAGE_CLASSES_128K;
    TransitionDefaultMinimumObjectSize::from_static(name)
}

/// `DeleteBucketLifecycle`.
pub(crate) async fn delete_bucket_lifecycle(
    vault: &Vault,
    request: S3Request<DeleteBucketLifecycleInput>,
) -> S3Result<S3Response<DeleteBucketLifecycleOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = &request.input.bucket;
    DOCUMENT.remove(vault, &caller, bucket).await?;
    Ok(S3Response::new(DeleteBucketLifecycleOutput::default()))
}
