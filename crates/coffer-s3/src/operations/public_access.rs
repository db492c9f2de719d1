//! What blocks the public in a bucket: set, read, removed.

use coffer_vault::{Vault, policy};
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result};

use crate::errors::absent;
use crate::parameters::names;
use crate::request::caller::{Caller, headers};

/// `GetPublicAccessBlock`: all four, unless something else was said.
pub(crate) async fn public_access_block(
    vault: &Vault,
    request: S3Request<GetPublicAccessBlockInput>,
) -> S3Result<S3Response<GetPublicAccessBlockOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let read = vault.public_access_block(&caller.subject, &bucket).await;
    let block = read.map_err(|error| caller.refused(error))?;
    let block = block.ok_or_else(|| {
        absent(
            "NoSuchPublicAccessBlockConfiguration",
            "The public access block configuration was not found",
        )
    })?;
    Ok(S3Response::new(GetPublicAccessBlockOutput {
        public_access_block_configuration: Some(PublicAccessBlockConfiguration {
            block_public_acls: Some(block.block_public_acls),
            block_public_policy: Some(block.block_public_policy),
            ignore_public_acls: Some(block.ignore_public_acls),
            restrict_public_buckets: Some(block.restrict_public_buckets),
        }),
    }))
}

/// `PutPublicAccessBlock`: a block that is not named is off.
pub(crate) async fn put_public_access_block(
    vault: &Vault,
    request: S3Request<PutPublicAccessBlockInput>,
) -> S3Result<S3Response<PutPublicAccessBlockOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let input = request.input;
    let bucket = names::bucket(&input.bucket)?;
    let asked = input.public_access_block_configuration;
    let block = policy::PublicAccessBlock {
        block_public_acls: asked.block_public_acls.unwrap_or(false),
        ignore_public_acls: asked.ignore_public_acls.unwrap_or(false),
        block_public_policy: asked.block_public_policy.unwrap_or(false),
        restrict_public_buckets: asked.restrict_public_buckets.unwrap_or(false),
    };
    vault
        .set_public_access_block(&caller.subject, &bucket, Some(block))
        .await
        .map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(PutPublicAccessBlockOutput::default()))
}

/// `DeletePublicAccessBlock`: then nothing is blocked.
pub(crate) async fn delete_public_access_block(
    vault: &Vault,
    request: S3Request<DeletePublicAccessBlockInput>,
) -> S3Result<S3Response<DeletePublicAccessBlockOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    vault
        .set_public_access_block(&caller.subject, &bucket, None)
        .await
        .map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(DeletePublicAccessBlockOutput::default()))
}
