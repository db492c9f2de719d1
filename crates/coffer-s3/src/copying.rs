//! Copies of objects, within the server.

use coffer_vault::record::ObjectName;
use coffer_vault::{BucketName, CopySource, CopyTarget, Vault, VaultError};
use http::HeaderMap;
use s3s::dto::{
    CopyObjectInput, CopyObjectOutput, CopyObjectResult, ETag, MetadataDirective, TaggingDirective,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::algorithms::{by_name, kind, set_checksum};
use crate::caller::{Caller, headers};
use crate::clock::timestamp;
use crate::conditions;
use crate::encryption;
use crate::errors::not_implemented;
use crate::limits::OBJECT_TAGS_MAX;
use crate::metadata;
use crate::names;
use crate::percent;
use crate::tags;

/// `CopyObject`.
pub(crate) async fn copy_object(
    vault: &Vault,
    mut request: S3Request<CopyObjectInput>,
) -> S3Result<S3Response<CopyObjectOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let name = names::object(std::mem::take(&mut request.input.key))?;
    let source = source(headers(&request))?;
    caller
        .check_named_key(vault, &bucket, headers(&request))
        .await?;

    let replace_metadata = replaces_metadata(request.input.metadata_directive.as_ref())?;
    let replace_tags = replaces_tags(request.input.tagging_directive.as_ref())?;
    let changes = replace_metadata
        || replace_tags
        || request.input.checksum_algorithm.is_some()
        || request.input.storage_class.is_some()
        || request.input.server_side_encryption.is_some();
    if source.bucket == bucket && source.name == name && !changes {
        return Err(s3_error!(
            InvalidRequest,
            "This copy request is illegal because it is trying to copy an object to itself \
             without changing the object's metadata, storage class, website redirect location or \
             encryption attributes."
        ));
    }
    let details = match replace_metadata {
        true => Some(metadata::of_headers(headers(&request))?),
        false => None,
    };
    let header = request.input.tagging.as_deref();
    let tags = match replace_tags {
        true => Some(tags::from_header(header, OBJECT_TAGS_MAX)?),
        false => None,
    };
    let algorithm = request.input.checksum_algorithm.as_ref();
    let checksum = algorithm
        .map(|algorithm| by_name(algorithm.as_str()))
        .transpose()?;
    let precondition = conditions::of_write(headers(&request))?;
    let wanted = conditions::wanted(&precondition, &name);
    let target = CopyTarget {
        name,
        details,
        tags,
        checksum,
        precondition,
    };
    let copied = vault.copy_object(&caller.subject, source, &bucket, target);
    let stored = match copied.await.map_err(too_large) {
        Ok(stored) => stored,
        Err(error) => return Err(caller.write_refused(vault, &bucket, wanted, error).await),
    };

    let checksum = stored.checksum.as_ref();
    let mut result = CopyObjectResult {
        checksum_type: checksum.map(|checksum| kind(checksum.kind)),
        e_tag: Some(ETag::Strong(stored.etag)),
        last_modified: Some(timestamp(stored.modified_ms)),
        ..Default::default()
    };
    set_checksum!(result, checksum);
    Ok(S3Response::new(CopyObjectOutput {
        copy_object_result: Some(result),
        server_side_encryption: encryption::algorithm(),
        ssekms_key_id: Some(stored.level),
        ..Default::default()
    }))
}

fn replaces_metadata(directive: Option<&MetadataDirective>) -> S3Result<bool> {
    match directive.map(MetadataDirective::as_str) {
        None | Some(MetadataDirective::COPY) => Ok(false),
        Some(MetadataDirective::REPLACE) => Ok(true),
        Some(_) => Err(s3_error!(InvalidArgument, "Unknown metadata directive.")),
    }
}

fn replaces_tags(directive: Option<&TaggingDirective>) -> S3Result<bool> {
    match directive.map(TaggingDirective::as_str) {
        None | Some(TaggingDirective::COPY) => Ok(false),
        Some(TaggingDirective::REPLACE) => Ok(true),
        Some(_) => Err(s3_error!(InvalidArgument, "Unknown tagging directive.")),
    }
}

/// The source of a copy, with its conditions.
pub(crate) fn source(headers: &HeaderMap) -> S3Result<CopySource> {
    let header = headers.get("x-amz-copy-source");
    let text = header.and_then(|source| source.to_str().ok());
    let (bucket, name) = locate(text.unwrap_or(""))?;
    let conditions = conditions::of_copy_source(headers);
    Ok(CopySource {
        bucket,
        name,
        conditions,
    })
}

/// Reads `bucket/name`, encoded as a form is, perhaps with a slash before it and a version after
/// it: `+` is a space, as AWS reads it. Clients that mean a plus send `%2B`, whatever they are.
/// Not left to s3s, which takes fewer names for those of buckets than there may be.
pub(crate) fn locate(header: &str) -> S3Result<(BucketName, ObjectName)> {
    let malformed = || {
        s3_error!(
            InvalidArgument,
            "Copy Source must mention the source bucket and key: sourcebucket/sourcekey"
        )
    };
    let (path, version) = header
        .split_once("?versionId=")
        .map_or((header, None), |(path, version)| (path, Some(version)));
    let path = percent::decode_form(path).ok_or_else(malformed)?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    if path.starts_with("arn:") {
        return Err(not_implemented("Copying from an access point"));
    }
    let version = version.map(|version| percent::decode_form(version).ok_or_else(malformed));
    names::check_version(version.transpose()?.as_deref())?;
    let (bucket, name) = path.split_once('/').ok_or_else(malformed)?;
    Ok((names::bucket(bucket)?, names::object(name)?))
}

/// What S3 says of a source that is too large to be copied at once.
pub(crate) fn too_large(error: VaultError) -> VaultError {
    match error {
        VaultError::TooLarge { .. } => VaultError::Invalid {
            what: "The specified copy source is larger than the maximum allowable size for a copy \
                   source: 5368709120. Copy it in parts.",
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_name_objects_of_any_name() {
        let parsed = |header: &str| {
            let located = locate(header).ok();
            located.map(|(bucket, name)| (bucket.to_string(), name.expose().to_owned()))
        };
        let some = |name: &str| Some(("buc".to_owned(), name.to_owned()));
        assert_eq!(parsed("buc/a%20b%2Bc"), some("a b+c"));
        assert_eq!(parsed("buc/a+b.txt"), some("a b.txt"));
        assert_eq!(parsed("buc%2Fa%2fb"), some("a/b"));
        assert_eq!(parsed("/buc//a/../b"), some("/a/../b"));
        assert_eq!(parsed("/buc/k?versionId=null"), some("k"));
        assert_eq!(parsed("buc/%C3%A4%01"), some("ä\u{1}"));
        for short in ["b/k", "xn--b/k"] {
            assert!(parsed(short).is_some(), "{short}");
        }
        for bad in ["", "buc", "/buc/", "B/k", "buc/k?versionId=7", "buc/%ff"] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
