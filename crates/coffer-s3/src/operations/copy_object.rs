//! Copies of objects, within the server.

use coffer_vault::record::ChecksumAlgorithm;
use coffer_vault::version::{Versioning, Which};
use coffer_vault::{AskedEncryption, BucketName, CopySource, CopyTarget, Vault};
use s3s::dto::{
    CopyObjectInput, CopyObjectOutput, CopyObjectResult, ETag, MetadataDirective, TaggingDirective,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::checksums::algorithms::{by_name, kind};
use crate::checksums::fields::set_checksum;
use crate::errors::details::of_argument;
use crate::errors::of_conditions;
use crate::http::conditions;
use crate::http::dates::in_seconds;
use crate::lifecycle::told as told_of_rules;
use crate::limits::OBJECT_TAGS_MAX;
use crate::parameters::acl;
use crate::parameters::copy_source;
use crate::parameters::customer_key;
use crate::parameters::encryption::{self, set_customer_key, set_encryption};
use crate::parameters::lock;
use crate::parameters::metadata;
use crate::parameters::names;
use crate::parameters::tags;
use crate::request::caller::{Caller, headers};

/// `CopyObject`.
pub(crate) async fn copy_object(
    vault: &Vault,
    mut request: S3Request<CopyObjectInput>,
) -> S3Result<S3Response<CopyObjectOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let name = names::object(std::mem::take(&mut request.input.key))?;
    let source = copy_source::read(headers(&request))?;
    let named = caller.check_named_key(vault, &bucket, headers(&request));
    named.await?;
    let replace_metadata = replaces_metadata(request.input.metadata_directive.as_ref())?;
    let replace_tags = replaces_tags(request.input.tagging_directive.as_ref())?;
    let changes = replace_metadata || replace_tags || changes_more(&request, &source)?;
    if source.bucket == bucket && source.name == name && !changes {
        refuse_without_change(vault, &caller, &bucket, source.which).await?;
    }
    // What is not to be used has to be acceptable all the same (S3).
    let given = metadata::of_headers(headers(&request))?;
    let details = replace_metadata.then_some(given);
    let tags = request.input.tagging.as_deref();
    let tags = replace_tags.then(|| tags::from_header(tags, OBJECT_TAGS_MAX));
    let tags = tags.transpose()?;
    let checksum = checksum_of(request.input.checksum_algorithm.as_ref())?;
    let precondition = conditions::of_write(headers(&request));
    let precondition = precondition.map_err(|error| of_conditions(error, headers(&request)))?;
    let brought = customer_key::of_object(headers(&request))?;
    let target = CopyTarget {
        name,
        details,
        tags,
        checksum,
        encryption: encryption::asked(headers(&request))?,
        redirect: metadata::redirect_of(headers(&request))?,
        lock: lock::asked(headers(&request))?,
        acl: acl::asked(headers(&request))?,
        precondition,
    };
    let ruled = told_of_rules::ruled(vault, &bucket, &target.name);
    let copied = vault.copy_object(&caller.subject, source, &bucket, target);
    let (stored, copied) = match copied.await.map_err(copy_source::refused) {
        Ok(stored) => stored,
        Err(error) => return Err(caller.refused(error)),
    };

    let (place, about) = ((&bucket, ruled), told_of_rules::about(&stored));
    let checksum = stored.checksum.as_ref();
    let mut result = CopyObjectResult {
        checksum_type: checksum.map(|checksum| kind(checksum.kind)),
        e_tag: Some(ETag::Strong(stored.etag)),
        last_modified: Some(in_seconds(stored.modified_ms)),
        ..Default::default()
    };
    set_checksum!(result, checksum);
    let mut output = CopyObjectOutput {
        expiration: told_of_rules::of_write(vault, &caller, place, about).await,
        copy_object_result: Some(result),
        copy_source_version_id: copied.map(|version| version.to_string()),
        version_id: stored.version.map(|version| version.to_string()),
        ..Default::default()
    };
    set_encryption!(output, &stored.encryption, &stored.level);
    set_customer_key!(output, brought);
    Ok(S3Response::new(output))
}

fn checksum_of(asked: Option<&s3s::dto::ChecksumAlgorithm>) -> S3Result<Option<ChecksumAlgorithm>> {
    asked
        .map(|algorithm| by_name(algorithm.as_str()))
        .transpose()
}

/// Whether a copy differs from its source in more than metadata and tags.
fn changes_more(request: &S3Request<CopyObjectInput>, source: &CopySource) -> S3Result<bool> {
    Ok(request.input.checksum_algorithm.is_some()
        || request.input.storage_class.is_some()
        || metadata::redirect_of(headers(request))?.is_some()
        // What a key of the client's opens is stored without one.
        || source.customer_key.is_some()
        || encryption::asked(headers(request))? != AskedEncryption::default())
}

/// A copy of an object to itself without a change makes sense where it makes a version, or makes an
/// earlier one current again.
async fn refuse_without_change(
    vault: &Vault,
    caller: &Caller,
    bucket: &BucketName,
    which: Which,
) -> S3Result {
    let setting = vault.versioning(&caller.subject, bucket).await;
    match setting.map_err(|error| caller.refused(error))?.state {
        Versioning::Enabled => Ok(()),
        Versioning::Suspended if which != Which::Current => Ok(()),
        Versioning::Never | Versioning::Suspended => Err(s3_error!(
            InvalidRequest,
            "This copy request is illegal because it is trying to copy an object to itself \
             without changing the object's metadata, storage class, website redirect location or \
             encryption attributes."
        )),
    }
}

fn replaces_metadata(directive: Option<&MetadataDirective>) -> S3Result<bool> {
    match directive.map(MetadataDirective::as_str) {
        None | Some(MetadataDirective::COPY) => Ok(false),
        Some(MetadataDirective::REPLACE) => Ok(true),
        Some(other) => {
            let error = s3_error!(InvalidArgument, "Unknown metadata directive.");
            Err(of_argument(error, "x-amz-metadata-directive", other))
        }
    }
}

fn replaces_tags(directive: Option<&TaggingDirective>) -> S3Result<bool> {
    match directive.map(TaggingDirective::as_str) {
        None | Some(TaggingDirective::COPY) => Ok(false),
        Some(TaggingDirective::REPLACE) => Ok(true),
        Some(other) => {
            let error = s3_error!(InvalidArgument, "Unknown tagging directive.");
            Err(of_argument(error, "x-amz-tagging-directive", other))
        }
    }
}
