//! The CORS configuration of a bucket: set, read, removed.

use coffer_vault::BucketConfiguration::Cors;
use coffer_vault::{BucketName, Vault};
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::cors::rules::Rules;
use crate::errors::absent;
use crate::limits::CORS_MAX_BYTES;
use crate::parameters::names;
use crate::request::caller::{Caller, headers};

/// `GetBucketCors`.
pub(crate) async fn bucket_cors(
    vault: &Vault,
    request: S3Request<GetBucketCorsInput>,
) -> S3Result<S3Response<GetBucketCorsOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let read = vault.bucket_configuration(&caller.subject, &bucket, Cors);
    let document = read.await.map_err(|error| caller.refused(error))?;
    let rules: Rules = document
        .and_then(|document| serde_json::from_str(&document).ok())
        .ok_or_else(|| {
            absent(
                "NoSuchCORSConfiguration",
                "The CORS configuration does not exist",
            )
        })?;
    Ok(S3Response::new(GetBucketCorsOutput {
        cors_rules: Some(rules.to_client()),
    }))
}

/// `PutBucketCors`.
pub(crate) async fn put_bucket_cors(
    vault: &Vault,
    request: S3Request<PutBucketCorsInput>,
) -> S3Result<S3Response<PutBucketCorsOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let bucket = names::bucket(&request.input.bucket)?;
    let rules = Rules::of_client(request.input.cors_configuration)?;
    let document = serde_json::to_string(&rules).expect("rules are JSON");
    if document.len() > CORS_MAX_BYTES {
        return Err(s3_error!(
            InvalidRequest,
            "A CORS configuration has at most {CORS_MAX_BYTES} bytes"
        ));
    }
    set(vault, &caller, &bucket, Some(document)).await?;
    Ok(S3Response::new(PutBucketCorsOutput::default()))
}

/// `DeleteBucketCors`.
pub(crate) async fn delete_bucket_cors(
    vault: &Vault,
    request: S3Request<DeleteBucketCorsInput>,
) -> S3Result<S3Response<DeleteBucketCorsOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    set(vault, &caller, &bucket, None).await?;
    Ok(S3Response::new(DeleteBucketCorsOutput::default()))
}

async fn set(
    vault: &Vault,
    caller: &Caller,
    bucket: &BucketName,
    document: Option<String>,
) -> S3Result {
    vault
        .set_bucket_configuration(&caller.subject, bucket, Cors, document)
        .await
        .map_err(|error| caller.refused(error))
}
