//! The CORS configuration of a bucket: set, read, removed.

use coffer_vault::BucketConfiguration::Cors;
use coffer_vault::Vault;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result};

use crate::cors::rules::Rules;
use crate::errors::absent;
use crate::limits::CORS_MAX_BYTES;
use crate::request::bucket_document::BucketDocument;
use crate::request::caller::{Caller, headers};

const DOCUMENT: BucketDocument = BucketDocument {
    kind: Cors,
    told: "CORS configuration",
    max_bytes: CORS_MAX_BYTES,
};

/// `GetBucketCors`.
pub(crate) async fn bucket_cors(
    vault: &Vault,
    request: S3Request<GetBucketCorsInput>,
) -> S3Result<S3Response<GetBucketCorsOutput>> {
    let caller = Caller::of(&request)?;
    let read = DOCUMENT.read(vault, &caller, &request.input.bucket);
    let rules: Rules = read.await?.ok_or_else(|| {
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
    let rules = Rules::of_client(request.input.cors_configuration)?;
    let bucket = &request.input.bucket;
    DOCUMENT.set(vault, &caller, bucket, &rules).await?;
    Ok(S3Response::new(PutBucketCorsOutput::default()))
}

/// `DeleteBucketCors`.
pub(crate) async fn delete_bucket_cors(
    vault: &Vault,
    request: S3Request<DeleteBucketCorsInput>,
) -> S3Result<S3Response<DeleteBucketCorsOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = &request.input.bucket;
    DOCUMENT.remove(vault, &caller, bucket).await?;
    Ok(S3Response::new(DeleteBucketCorsOutput::default()))
}
