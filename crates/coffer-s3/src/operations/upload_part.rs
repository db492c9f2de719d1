//! Parts of multipart uploads: received, or copied from objects.

use coffer_vault::record::ChecksumAlgorithm;
use coffer_vault::{CopyPart, PutPart, RangeRequest, ReadOptions, Stored, Vault, VaultError};
use s3s::dto::{
    CopyPartResult, ETag, UploadPartCopyInput, UploadPartCopyOutput, UploadPartInput,
    UploadPartOutput,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::checksums::expected::ExpectedDigests;
use crate::checksums::fields::set_checksum;
use crate::errors::details::of_argument;
use crate::errors::from_vault;
use crate::http::dates::in_seconds;
use crate::http::ranges;
use crate::parameters::copy_source;
use crate::parameters::customer_key;
use crate::parameters::encryption::{set_customer_key, set_encryption};
use crate::parameters::names;
use crate::parameters::transfer::TRANSFER;
use crate::request::caller::{Caller, headers};
use crate::request::incoming;
use crate::transfers::answers::{just_stored, ticket_of};

const COPY_RANGE: &str = "x-amz-copy-source-range";

/// `UploadPart`.
pub(crate) async fn upload_part(
    vault: &Vault,
    request: S3Request<UploadPartInput>,
) -> S3Result<S3Response<UploadPartOutput>> {
    let caller = Caller::of(&request)?;
    let expected = ExpectedDigests::read(headers(&request))?;
    let brought = customer_key::of_object(headers(&request))?;
    let ticket = headers(&request).get(TRANSFER).cloned();
    let UploadPartInput {
        body,
        bucket,
        key,
        content_length,
        part_number,
        upload_id,
        ..
    } = request.input;
    let (bucket, name) = (names::bucket(&bucket)?, names::object(key)?);
    let number = number_of(part_number)?;
    let id = names::upload(&upload_id);

    let told = expected.told();
    // Where no checksum was announced, the object will have a CRC-64/NVME, whatever the client
    // sends with its parts; two are computed then.
    let other = expected
        .algorithm()
        .filter(|algorithm| *algorithm != ChecksumAlgorithm::Crc64nvme)
        .filter(|_| ticket.is_none());
    let announced = match other {
        Some(_) => vault
            .announced_checksum(&caller.subject, &bucket, &name, id, Some(number))
            .await
            .map_err(|error| caller.refused(error))?,
        None => None,
    };
    let mut incoming = match (other, announced) {
        (Some(algorithm), None) => incoming::incoming_summed(
            body,
            content_length,
            expected,
            algorithm,
            caller.context.clone(),
        )?,
        _ => incoming::incoming(body, content_length, expected, caller.context.clone())?,
    };
    incoming.arrived = ticket_of(ticket.as_ref(), incoming.declared_bytes, told)?;
    let put = PutPart {
        name,
        upload: id,
        number,
        customer_key: brought.as_ref().map(|brought| brought.key.clone()),
        incoming,
    };
    let stored = vault
        .put_part(&caller.subject, &bucket, put)
        .await
        .map_err(|error| caller.refused(error))?;
    let headers = just_stored(&stored);
    let mut output = UploadPartOutput {
        e_tag: Some(ETag::Strong(stored.etag)),
        ..Default::default()
    };
    set_checksum!(output, stored.checksum.as_ref());
    set_encryption!(output, &stored.encryption, &stored.level);
    set_customer_key!(output, brought);
    Ok(S3Response::with_headers(output, headers))
}

/// `UploadPartCopy`.
pub(crate) async fn upload_part_copy(
    vault: &Vault,
    request: S3Request<UploadPartCopyInput>,
) -> S3Result<S3Response<UploadPartCopyOutput>> {
    let caller = Caller::of(&request)?;
    let source = copy_source::read(headers(&request))?;
    let brought = customer_key::of_object(headers(&request))?;
    let input = request.input;
    let (bucket, name) = (names::bucket(&input.bucket)?, names::object(input.key)?);
    let number = number_of(input.part_number)?;
    let id = names::upload(&input.upload_id);
    let sent = input.copy_source_range.as_deref().unwrap_or_default();
    let range = ranges::copy_source(input.copy_source_range.as_deref());
    let range = range.map_err(|error| of_argument(error, COPY_RANGE, sent))?;
    if let RangeRequest::FromTo {
        last: Some(last), ..
    } = range
    {
        check_within(vault, &caller, &source, range, (last, sent)).await?;
    }
    let copy = CopyPart {
        name,
        upload: id,
        number,
        range,
        customer_key: brought.as_ref().map(|brought| brought.key.clone()),
    };
    let (stored, copied) = vault
        .copy_part(&caller.subject, source, &bucket, copy)
        .await
        .map_err(|error| caller.refused(copy_source::refused(error)))?;
    let Stored {
        etag,
        checksum,
        modified_ms,
        level,
        encryption,
        ..
    } = stored;
    let mut result = CopyPartResult {
        e_tag: Some(ETag::Strong(etag)),
        last_modified: Some(in_seconds(modified_ms)),
        ..Default::default()
    };
    set_checksum!(result, checksum.as_ref());
    let mut output = UploadPartCopyOutput {
        copy_part_result: Some(result),
        copy_source_version_id: copied.map(|version| version.to_string()),
        ..Default::default()
    };
    set_encryption!(output, &encryption, &level);
    set_customer_key!(output, brought);
    Ok(S3Response::new(output))
}

fn number_of(part: i32) -> S3Result<u32> {
    let number = ranges::part_number(part);
    number.map_err(|error| of_argument(error, "partNumber", &part.to_string()))
}

/// A read takes what there is of a range; a copy wants all of it, for a shorter part would go
/// unnoticed.
async fn check_within(
    vault: &Vault,
    caller: &Caller,
    source: &coffer_vault::CopySource,
    range: RangeRequest,
    (last, sent): (u64, &str),
) -> S3Result {
    let options = ReadOptions {
        range,
        which: source.which,
        customer_key: source.customer_key.clone(),
        ..ReadOptions::default()
    };
    let head = vault
        .head_object(&caller.subject, &source.bucket, &source.name, options)
        .await;
    match head {
        Ok(info) if info.range.end == last.saturating_add(1) => Ok(()),
        Ok(info) => {
            let error = s3_error!(
                InvalidArgument,
                "Range specified is not valid for source object of size: {}",
                info.head.size_bytes
            );
            Err(of_argument(error, COPY_RANGE, sent))
        }
        Err(VaultError::InvalidRange { .. }) => Err(s3_error!(
            InvalidRequest,
            "The specified copy range is invalid for the source object size"
        )),
        Err(error) => Err(from_vault(copy_source::refused(error))),
    }
}
