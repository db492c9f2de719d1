//! Versions of objects: whether a bucket keeps them, and which there are.

pub(crate) mod object_lock;

use coffer_vault::version::{VersionId, Versioning};
use coffer_vault::{ListedVersion, Vault, VersionContent, VersionsPage, VersionsQuery};
use s3s::dto::{
    BucketVersioningStatus, DeleteMarkerEntry, ETag, GetBucketVersioningInput,
    GetBucketVersioningOutput, ListObjectVersionsInput, ListObjectVersionsOutput, ObjectVersion,
    ObjectVersionStorageClass, PutBucketVersioningInput, PutBucketVersioningOutput,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::checksums::algorithms::kind;
use crate::errors::not_implemented;
use crate::http::dates::timestamp;
use crate::limits::LIST_MAX;
use crate::operations::acl::owners::Owners;
use crate::operations::listing::{Writing, page_size, prefixes, written};
use crate::operations::page_length::cut_versions;
use crate::parameters::names;
use crate::request::caller::{Caller, headers};

/// `GetBucketVersioning`: nothing is said of a bucket that was never versioned.
pub(crate) async fn bucket_versioning(
    vault: &Vault,
    request: S3Request<GetBucketVersioningInput>,
) -> S3Result<S3Response<GetBucketVersioningOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let state = vault.versioning(&caller.subject, &bucket).await;
    let status = match state.map_err(|error| caller.refused(error))? {
        Versioning::Never => None,
        Versioning::Enabled => Some(BucketVersioningStatus::ENABLED),
        Versioning::Suspended => Some(BucketVersioningStatus::SUSPENDED),
    };
    Ok(S3Response::new(GetBucketVersioningOutput {
        status: status.map(BucketVersioningStatus::from_static),
        ..Default::default()
    }))
}

/// `PutBucketVersioning`.
pub(crate) async fn put_bucket_versioning(
    vault: &Vault,
    request: S3Request<PutBucketVersioningInput>,
) -> S3Result<S3Response<PutBucketVersioningOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let bucket = names::bucket(&request.input.bucket)?;
    let asked = request.input.versioning_configuration;
    if asked
        .mfa_delete
        .is_some_and(|mfa| mfa.as_str() == "Enabled")
    {
        return Err(not_implemented("Deleting by multi-factor authentication"));
    }
    let state = match asked.status.as_ref().map(BucketVersioningStatus::as_str) {
        Some(BucketVersioningStatus::ENABLED) => Versioning::Enabled,
        Some(BucketVersioningStatus::SUSPENDED) => Versioning::Suspended,
        _ => {
            return Err(s3_error!(
                IllegalVersioningConfigurationException,
                "The Versioning element must be specified: Enabled or Suspended"
            ));
        }
    };
    let set = vault.set_versioning(&caller.subject, &bucket, state);
    set.await.map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(PutBucketVersioningOutput::default()))
}

/// `ListObjectVersions`: of a bucket that was never versioned, the objects, whose version S3 calls
/// `null`.
pub(crate) async fn list_object_versions(
    vault: &Vault,
    request: S3Request<ListObjectVersionsInput>,
) -> S3Result<S3Response<ListObjectVersionsOutput>> {
    let caller = Caller::of(&request)?;
    let input = request.input;
    let bucket = names::bucket(&input.bucket)?;
    let writing = Writing::asked(input.encoding_type.as_ref())?;
    let rows = page_size(input.max_keys, "max-keys", LIST_MAX)?;
    let query = VersionsQuery {
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: input.delimiter.clone().filter(|text| !text.is_empty()),
        start_after: start(
            input.key_marker.as_deref(),
            input.version_id_marker.as_deref(),
        )?,
        limit: usize::try_from(rows).unwrap_or(0).max(1),
    };
    let listed = vault.list_versions(&caller.subject, &bucket, query);
    let mut page = listed.await.map_err(|error| caller.refused(error))?;
    // Without rows, the question is whether the bucket may be listed, which the vault answers.
    match rows {
        0 => page = VersionsPage::default(),
        _ => cut_versions(&mut page, caller.context.answer()),
    }
    let (next_key, next_version) = page.next.unzip();
    let (markers, versions): (Vec<_>, Vec<_>) =
        { page.versions.into_iter() }.partition(|listed| listed.content.is_none());
    let owners = Owners::within(vault, &caller, &bucket).await?;
    let version = |listed| version(listed, writing, &owners);
    let marker = |listed| marker(listed, writing, &owners);
    let text = |text: Option<String>| text.map(|text| writing.write(text));
    Ok(S3Response::new(ListObjectVersionsOutput {
        name: Some(input.bucket),
        prefix: Some(writing.write(input.prefix.unwrap_or_default())),
        key_marker: Some(writing.write(input.key_marker.unwrap_or_default())),
        version_id_marker: Some(input.version_id_marker.unwrap_or_default()),
        max_keys: Some(rows),
        is_truncated: Some(next_key.is_some()),
        next_key_marker: text(next_key),
        next_version_id_marker: next_version.flatten().map(|version| version.to_string()),
        versions: Some(versions.into_iter().filter_map(version).collect()),
        delete_markers: Some(markers.into_iter().map(marker).collect()),
        common_prefixes: prefixes(page.prefixes, writing),
        delimiter: text(input.delimiter),
        encoding_type: writing.told(),
        ..Default::default()
    }))
}

/// Where a page begins: after a name, or after a version of it.
fn start(
    key: Option<&str>,
    version: Option<&str>,
) -> S3Result<Option<(String, Option<VersionId>)>> {
    let key = key.filter(|key| !key.is_empty());
    let Some(version) = version.filter(|version| !version.is_empty()) else {
        return Ok(key.map(|key| (key.to_owned(), None)));
    };
    let Some(key) = key else {
        return Err(s3_error!(
            InvalidArgument,
            "A version-id marker cannot be specified without a key marker."
        ));
    };
    let version = version
        .parse()
        .map_err(|_| s3_error!(InvalidArgument, "Invalid version id specified"))?;
    Ok(Some((key.to_owned(), Some(version))))
}

fn version(listed: ListedVersion, writing: Writing, owners: &Owners) -> Option<ObjectVersion> {
    let VersionContent {
        size_bytes,
        etag,
        checksum,
    } = listed.content?;
    let (algorithm, checksum_kind) = checksum.unzip();
    Some(ObjectVersion {
        checksum_algorithm: algorithm.map(|algorithm| vec![written(algorithm)]),
        checksum_type: checksum_kind.map(kind),
        e_tag: Some(ETag::Strong(etag)),
        is_latest: Some(listed.is_latest),
        key: Some(writing.write(listed.name.expose().to_owned())),
        last_modified: Some(timestamp(listed.modified_ms)),
        owner: Some(owners.of(listed.owner)),
        size: i64::try_from(size_bytes).ok(),
        storage_class: Some(ObjectVersionStorageClass::from_static(
            ObjectVersionStorageClass::STANDARD,
        )),
        version_id: Some(listed.version.to_string()),
        ..Default::default()
    })
}

fn marker(listed: ListedVersion, writing: Writing, owners: &Owners) -> DeleteMarkerEntry {
    DeleteMarkerEntry {
        is_latest: Some(listed.is_latest),
        key: Some(writing.write(listed.name.expose().to_owned())),
        last_modified: Some(timestamp(listed.modified_ms)),
        owner: Some(owners.of(listed.owner)),
        version_id: Some(listed.version.to_string()),
    }
}
