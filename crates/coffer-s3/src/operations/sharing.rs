//! What is said of sharing a bucket: its policy, and what blocks the public; set, read, removed.

use coffer_vault::{Vault, policy};
use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};

use crate::around_s3s::finish_response::StatusInstead;
use crate::errors::absent;
use crate::parameters::names;
use crate::request::caller::{Caller, headers};

/// `GetBucketPolicy`.
pub(crate) async fn bucket_policy(
    vault: &Vault,
    request: S3Request<GetBucketPolicyInput>,
) -> S3Result<S3Response<GetBucketPolicyOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let read = vault.bucket_policy(&caller.subject, &bucket).await;
    let policy = read.map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(GetBucketPolicyOutput {
        policy: Some(policy.ok_or_else(no_policy)?),
    }))
}

/// `GetBucketPolicyStatus`.
pub(crate) async fn policy_status(
    vault: &Vault,
    request: S3Request<GetBucketPolicyStatusInput>,
) -> S3Result<S3Response<GetBucketPolicyStatusOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let read = vault.is_policy_public(&caller.subject, &bucket).await;
    let is_public = read.map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(GetBucketPolicyStatusOutput {
        policy_status: Some(PolicyStatus {
            is_public: Some(is_public.ok_or_else(no_policy)?),
        }),
    }))
}

/// `PutBucketPolicy`.
pub(crate) async fn put_bucket_policy(
    vault: &Vault,
    request: S3Request<PutBucketPolicyInput>,
) -> S3Result<S3Response<PutBucketPolicyOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let bucket = names::bucket(&request.input.bucket)?;
    let policy = request.input.policy;
    vault
        .set_bucket_policy(&caller.subject, &bucket, Some(policy.as_bytes()))
        .await
        .map_err(|error| caller.refused(error))?;
    let mut response = S3Response::new(PutBucketPolicyOutput::default());
    response
        .extensions
        .insert(StatusInstead(http::StatusCode::NO_CONTENT));
    Ok(response)
}

/// `DeleteBucketPolicy`: of none, too.
pub(crate) async fn delete_bucket_policy(
    vault: &Vault,
    request: S3Request<DeleteBucketPolicyInput>,
) -> S3Result<S3Response<DeleteBucketPolicyOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    vault
        .set_bucket_policy(&caller.subject, &bucket, None)
        .await
        .map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(DeleteBucketPolicyOutput::default()))
}

fn no_policy() -> S3Error {
    absent("NoSuchBucketPolicy", "The bucket policy does not exist")
}

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
    let named = [
        asked.block_public_acls,
        asked.ignore_public_acls,
        asked.block_public_policy,
        asked.restrict_public_buckets,
    ];
    if named.iter().all(Option::is_none) {
        return Err(s3_error!(
            InvalidRequest,
            "Must specify at least one configuration."
        ));
    }
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
