//! Listings of multipart uploads and of their parts.

use coffer_vault::record::{ChecksumAlgorithm, ChecksumKind, Part, Upload, UploadsQuery};
use coffer_vault::{UploadId, Vault, VaultError};
use s3s::dto::{
    self, ETag, ListMultipartUploadsInput, ListMultipartUploadsOutput, ListPartsInput,
    ListPartsOutput, MultipartUpload, StorageClass,
};
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};

use crate::checksums::algorithms::{kind, name as algorithm_name};
use crate::checksums::fields::set_checksum;
use crate::errors::details::of_argument;
use crate::http::dates::in_seconds;
use crate::lifecycle::told as told_of_rules;
use crate::limits::LIST_MAX;
use crate::operations::acl::owners::Owners;
use crate::operations::listing::{Writing, page_size, prefixes};
use crate::operations::page_length::{self, cut_uploads};
use crate::parameters::names;
use crate::request::caller::Caller;

fn standard() -> StorageClass {
    StorageClass::from_static(StorageClass::STANDARD)
}

fn told(
    checksum: Option<(ChecksumAlgorithm, ChecksumKind)>,
) -> (Option<dto::ChecksumAlgorithm>, Option<dto::ChecksumType>) {
    let (algorithm, checksum_kind) = checksum.unzip();
    let algorithm =
        algorithm.map(|algorithm| dto::ChecksumAlgorithm::from_static(algorithm_name(algorithm)));
    (algorithm, checksum_kind.map(kind))
}

/// `ListParts`.
pub(crate) async fn list_parts(
    vault: &Vault,
    request: S3Request<ListPartsInput>,
) -> S3Result<S3Response<ListPartsOutput>> {
    let caller = Caller::of(&request)?;
    let input = request.input;
    let (bucket, name) = (
        names::bucket(&input.bucket)?,
        names::object(input.key.clone())?,
    );
    let id = names::upload(&input.upload_id);
    let rows = page_size(input.max_parts, "max-parts", LIST_MAX)?;
    let marker = page_size(
        input.part_number_marker.or(Some(0)),
        "part-number-marker",
        i32::MAX,
    )?;
    let mut page = vault
        .list_parts(
            &caller.subject,
            &bucket,
            &name,
            id,
            marker.unsigned_abs(),
            usize::try_from(rows).unwrap_or(0),
        )
        .await
        .map_err(|error| caller.refused(error))?;
    let count = page_length::parts(page.parts.len(), caller.context.answer());
    if count < page.parts.len() {
        page.parts.truncate(count);
        page.next = page.parts.last().map(|part| part.number);
    }
    let (checksum_algorithm, checksum_type) = told(page.upload.checksum);
    let is_truncated = rows > 0 && page.next.is_some();
    // S3 tells where a page ends whether there is more or not, and 0 where it has no row.
    let last = page.parts.last().map_or(0, |part| part.number);
    let owners = Owners::within(vault, &caller, &bucket).await?;
    let owner = page.upload.acl;
    let upload = (&page.upload.name, page.upload.started_ms);
    let end = vault.upload_end(None, &bucket, upload);
    let (abort_date, abort_rule_id) = told_of_rules::of_upload(end);
    Ok(S3Response::new(ListPartsOutput {
        abort_date,
        abort_rule_id,
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(input.upload_id),
        checksum_algorithm,
        checksum_type,
        initiator: Some(owners.initiator(page.upload.made_by)),
        owner: Some(owners.of(owner)),
        is_truncated: Some(is_truncated),
        max_parts: Some(rows),
        part_number_marker: Some(marker),
        next_part_number_marker: i32::try_from(last).ok(),
        parts: Some(page.parts.into_iter().map(part).collect()),
        storage_class: Some(standard()),
        ..Default::default()
    }))
}

fn part(part: Part) -> dto::Part {
    let mut row = dto::Part {
        e_tag: Some(ETag::Strong(part.etag)),
        last_modified: Some(in_seconds(part.modified_ms)),
        part_number: i32::try_from(part.number).ok(),
        size: i64::try_from(part.blob.plaintext_bytes).ok(),
        ..Default::default()
    };
    set_checksum!(row, part.blob.checksum.as_ref());
    row
}

/// `ListMultipartUploads`.
pub(crate) async fn list_uploads(
    vault: &Vault,
    request: S3Request<ListMultipartUploadsInput>,
) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
    let caller = Caller::of(&request)?;
    let input = request.input;
    let bucket = names::bucket(&input.bucket)?;
    let rows = page_size(input.max_uploads, "max-uploads", LIST_MAX)?;
    let writing = Writing::asked(input.encoding_type.as_ref())?;
    let key_marker = input.key_marker.clone().filter(|marker| !marker.is_empty());
    let key_is_marked = key_marker.is_some();
    let id_marker = id_marker(input.upload_id_marker.as_deref(), key_is_marked)?;
    let delimiter = { input.delimiter }.filter(|delimiter| !delimiter.is_empty());
    let query = UploadsQuery {
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: delimiter.clone(),
        start_after: key_marker.map(|name| (name, id_marker)),
        limit: usize::try_from(rows).unwrap_or(0).max(1),
    };
    let id_told = { input.upload_id_marker }.filter(|_| key_is_marked);
    let mut page = vault
        .list_uploads(&caller.subject, &bucket, query)
        .await
        .map_err(|error| match (error, id_told.as_deref()) {
            // One of another name: S3 knows of no other that begins behind it.
            (VaultError::NoSuchUpload, Some(id)) => no_id_marker(id),
            (error, _) => caller.refused(error),
        })?;
    if rows == 0 {
        page = Default::default();
    }
    cut_uploads(&mut page, caller.context.answer());
    let is_truncated = page.next.is_some();
    // S3 tells where a page ends whether there is more or not.
    let (next_name, next_id) = page_length::last_upload(&page).unzip();
    let next_id = next_id.flatten().map(|id| id.to_string());
    let written = |text: Option<String>| text.map(|text| writing.write(text));
    let owners = Owners::within(vault, &caller, &bucket).await?;
    let row = |upload: Upload| {
        let (checksum_algorithm, checksum_type) = told(upload.checksum);
        MultipartUpload {
            checksum_algorithm,
            checksum_type,
            initiated: Some(in_seconds(upload.started_ms)),
            initiator: Some(owners.initiator(upload.made_by)),
            owner: Some(owners.of(upload.acl)),
            key: Some(writing.write(upload.name.expose().to_owned())),
            storage_class: Some(standard()),
            upload_id: Some(upload.id.to_string()),
        }
    };
    Ok(S3Response::new(ListMultipartUploadsOutput {
        bucket: Some(input.bucket),
        prefix: written(input.prefix),
        delimiter: written(delimiter),
        encoding_type: writing.told(),
        key_marker: Some(writing.write(input.key_marker.unwrap_or_default())),
        upload_id_marker: Some(id_told.unwrap_or_default()),
        max_uploads: Some(rows),
        is_truncated: Some(is_truncated),
        next_key_marker: written(Some(next_name.unwrap_or_default())),
        next_upload_id_marker: Some(next_id.unwrap_or_default()),
        uploads: Some(page.uploads.into_iter().map(row).collect()),
        common_prefixes: prefixes(page.prefixes, writing),
        ..Default::default()
    }))
}

/// An upload's id to list from, which counts only behind a name (S3).
fn id_marker(marker: Option<&str>, behind_a_name: bool) -> S3Result<Option<UploadId>> {
    let Some(text) = marker.filter(|text| behind_a_name && !text.is_empty()) else {
        return Ok(None);
    };
    let id = names::parse_id(text);
    id.map(Some).ok_or_else(|| no_id_marker(text))
}

fn no_id_marker(sent: &str) -> S3Error {
    let error = s3_error!(InvalidArgument, "Invalid uploadId marker");
    of_argument(error, "upload-id-marker", sent)
}
