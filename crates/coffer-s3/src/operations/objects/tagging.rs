//! Tags of objects.

use coffer_vault::version::Absent;
use coffer_vault::{Vault, VaultError};
use s3s::dto::{
    DeleteObjectTaggingInput, DeleteObjectTaggingOutput, GetObjectTaggingInput,
    GetObjectTaggingOutput, PutObjectTaggingInput, PutObjectTaggingOutput,
};
use s3s::{S3Error, S3Request, S3Response, S3Result};

use crate::errors::marker_has_none;
use crate::limits::OBJECT_TAGS_MAX;
use crate::parameters::names;
use crate::parameters::tags;
use crate::request::caller::{Caller, headers};

/// The refusal of what asks for tags, or sets them.
fn tags_refused(caller: &Caller, error: VaultError) -> S3Error {
    match error {
        VaultError::NoVersion(Absent::Deleted(marker)) => marker_has_none(marker),
        other => caller.refused(other),
    }
}

/// `GetObjectTagging`.
pub(crate) async fn object_tags(
    vault: &Vault,
    request: S3Request<GetObjectTaggingInput>,
) -> S3Result<S3Response<GetObjectTaggingOutput>> {
    let caller = Caller::of(&request)?;
    let GetObjectTaggingInput {
        bucket,
        key,
        version_id,
        ..
    } = request.input;
    let which = names::which(version_id.as_deref())?;
    let (bucket, name) = (names::bucket(&bucket)?, names::object(key)?);
    let (tags, version) = vault
        .object_tags(&caller.subject, &bucket, &name, which)
        .await
        .map_err(|error| tags_refused(&caller, error))?;
    let output = GetObjectTaggingOutput {
        tag_set: tags::to_set(tags),
        version_id: version.map(|version| version.to_string()),
    };
    Ok(S3Response::new(output))
}

/// `PutObjectTagging`.
pub(crate) async fn put_object_tags(
    vault: &Vault,
    request: S3Request<PutObjectTaggingInput>,
) -> S3Result<S3Response<PutObjectTaggingOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let PutObjectTaggingInput {
        bucket,
        key,
        tagging,
        version_id,
        ..
    } = request.input;
    let which = names::which(version_id.as_deref())?;
    let (bucket, name) = (names::bucket(&bucket)?, names::object(key)?);
    let tags = tags::from_set(tagging.tag_set, OBJECT_TAGS_MAX)?;
    let version = vault
        .set_object_tags(&caller.subject, &bucket, (&name, which), tags)
        .await
        .map_err(|error| tags_refused(&caller, error))?;
    Ok(S3Response::new(PutObjectTaggingOutput {
        version_id: version.map(|version| version.to_string()),
    }))
}

/// `DeleteObjectTagging`.
pub(crate) async fn delete_object_tags(
    vault: &Vault,
    request: S3Request<DeleteObjectTaggingInput>,
) -> S3Result<S3Response<DeleteObjectTaggingOutput>> {
    let caller = Caller::of(&request)?;
    let DeleteObjectTaggingInput {
        bucket,
        key,
        version_id,
        ..
    } = request.input;
    let which = names::which(version_id.as_deref())?;
    let (bucket, name) = (names::bucket(&bucket)?, names::object(key)?);
    let version = vault
        .set_object_tags(&caller.subject, &bucket, (&name, which), Vec::new())
        .await
        .map_err(|error| tags_refused(&caller, error))?;
    Ok(S3Response::new(DeleteObjectTaggingOutput {
        version_id: version.map(|version| version.to_string()),
    }))
}
