//! Multipart uploads: begun, filled, completed, aborted.

use coffer_vault::record::{ChecksumAlgorithm, ChecksumKind};
use coffer_vault::{CompleteUpload, CompletedPart, NewUpload, Vault, VaultError};
use http::{HeaderMap, HeaderName, header};
use s3s::dto::{
    self, AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput, ETag,
};
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};

use crate::around_s3s::xml_bodies::CanonicalXml;
use crate::checksums::algorithms::{by_name, kind, name as algorithm_name};
use crate::checksums::elements::{PartSum, sums_of_parts};
use crate::checksums::fields::set_checksum;
use crate::checksums::headers::header_value;
use crate::errors::details::of_argument;
use crate::errors::{etag_of_refused, of_conditions, of_part};
use crate::http::{conditions, percent, ranges, text_of};
use crate::lifecycle::told as told_of_rules;
use crate::limits::OBJECT_TAGS_MAX;
use crate::parameters::encryption::{self, set_customer_key, set_encryption};
use crate::parameters::{acl, customer_key, lock, metadata, names, tags};
use crate::request::caller::{Caller, headers};

const OBJECT_SIZE: HeaderName = HeaderName::from_static("x-amz-mp-object-size");

/// `CreateMultipartUpload`.
pub(crate) async fn create(
    vault: &Vault,
    request: S3Request<CreateMultipartUploadInput>,
) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let name = names::object(request.input.key.clone())?;
    caller
        .check_named_key(vault, &bucket, headers(&request))
        .await?;
    let details = metadata::of_headers(headers(&request))?;
    let encryption = encryption::asked(headers(&request))?;
    let brought = customer_key::of_object(headers(&request))?;
    let lock = lock::asked(headers(&request))?;
    let acl = acl::asked(headers(&request))?;
    let acl_sent = acl::sent(headers(&request));
    let input = request.input;
    let tags = tags::from_header(input.tagging.as_deref(), OBJECT_TAGS_MAX)?;
    let checksum = announced(
        input
            .checksum_algorithm
            .as_ref()
            .map(dto::ChecksumAlgorithm::as_str),
        input.checksum_type.as_ref().map(dto::ChecksumType::as_str),
    )?;
    let ruled = told_of_rules::ruled(vault, &bucket, &name);
    let new = NewUpload {
        name,
        details,
        tags,
        checksum,
        encryption,
        lock,
        acl,
        acl_sent,
    };
    let started = vault
        .create_upload(&caller.subject, &bucket, new)
        .await
        .map_err(|error| caller.refused(error))?;
    let end = ruled.and_then(|name| {
        let upload = (&name, started.started_ms);
        vault.upload_end(Some(&caller.subject), &bucket, upload)
    });
    let (abort_date, abort_rule_id) = told_of_rules::of_upload(end);
    let told = |algorithm| dto::ChecksumAlgorithm::from_static(algorithm_name(algorithm));
    let mut output = CreateMultipartUploadOutput {
        abort_date,
        abort_rule_id,
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(started.id.to_string()),
        checksum_algorithm: checksum.map(|(algorithm, _)| told(algorithm)),
        checksum_type: checksum.map(|(_, checksum_kind)| kind(checksum_kind)),
        ..Default::default()
    };
    set_encryption!(output, &started.encryption, &started.level);
    set_customer_key!(output, brought);
    Ok(S3Response::new(output))
}

/// The checksum that the whole object is to have, and S3's rules for what may be combined.
fn announced(
    algorithm: Option<&str>,
    asked_kind: Option<&str>,
) -> S3Result<Option<(ChecksumAlgorithm, ChecksumKind)>> {
    let Some(algorithm) = algorithm else {
        return match asked_kind {
            None => Ok(None),
            Some(dto::ChecksumType::FULL_OBJECT | dto::ChecksumType::COMPOSITE) => Err(s3_error!(
                InvalidRequest,
                "The x-amz-checksum-type header can only be used with the \
                 x-amz-checksum-algorithm header."
            )),
            Some(_) => Err(no_type()),
        };
    };
    let algorithm = by_name(algorithm)?;
    let is_crc64 = algorithm == ChecksumAlgorithm::Crc64nvme;
    let is_crc = is_crc64
        || matches!(
            algorithm,
            ChecksumAlgorithm::Crc32 | ChecksumAlgorithm::Crc32c
        );
    let checksum_kind = match asked_kind {
        None if is_crc64 => ChecksumKind::FullObject,
        None => ChecksumKind::Composite,
        Some(dto::ChecksumType::FULL_OBJECT) if is_crc => ChecksumKind::FullObject,
        Some(dto::ChecksumType::COMPOSITE) if !is_crc64 => ChecksumKind::Composite,
        Some(asked @ (dto::ChecksumType::FULL_OBJECT | dto::ChecksumType::COMPOSITE)) => {
            return Err(s3_error!(
                InvalidRequest,
                "The {asked} checksum type cannot be used with the {} checksum algorithm.",
                algorithm.word()
            ));
        }
        Some(_) => return Err(no_type()),
    };
    Ok(Some((algorithm, checksum_kind)))
}

fn no_type() -> S3Error {
    s3_error!(
        InvalidRequest,
        "Value for x-amz-checksum-type header is invalid."
    )
}

/// `AbortMultipartUpload`.
pub(crate) async fn abort(
    vault: &Vault,
    request: S3Request<AbortMultipartUploadInput>,
) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
    let caller = Caller::of(&request)?;
    let AbortMultipartUploadInput {
        bucket,
        key,
        upload_id,
        ..
    } = request.input;
    let (bucket, name) = (names::bucket(&bucket)?, names::object(key)?);
    let id = names::upload(&upload_id);
    vault
        .abort_upload(&caller.subject, &bucket, &name, id)
        .await
        .map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(AbortMultipartUploadOutput::default()))
}

/// `CompleteMultipartUpload`.
pub(crate) async fn complete(
    vault: &Vault,
    request: S3Request<CompleteMultipartUploadInput>,
) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
    let caller = Caller::of(&request)?;
    let headers = headers(&request).clone();
    caller.check_xml_md5(&headers)?;
    let input = request.input;
    let bucket = names::bucket(&input.bucket)?;
    let name = names::object(input.key.clone())?;
    let id = names::upload(&input.upload_id);
    let precondition = conditions::of_write(&headers);
    let precondition = precondition.map_err(|error| of_conditions(error, &headers))?;
    let named = input
        .multipart_upload
        .and_then(|list| list.parts)
        .unwrap_or_default();
    let document = CanonicalXml::of(&request.extensions);
    let sums = sums_of_parts(document)?;
    if named.is_empty() || sums.len() != named.len() {
        return Err(s3_error!(MalformedXML));
    }
    let announced = vault.announced_checksum(&caller.subject, &bucket, &name, id, None);
    let checksum = match announced.await {
        Ok(announced) => whole(announced, input.checksum_type.as_ref(), &headers)?,
        // Perhaps it was completed by this request before: the vault knows.
        Err(VaultError::NoSuchUpload) => None,
        Err(error) => return Err(caller.refused(error)),
    };
    let parts = { named.into_iter().zip(sums) }.map(|(part, sum)| completed_part(part, sum));
    let complete = CompleteUpload {
        name,
        upload: id,
        parts: parts.collect::<S3Result<_>>()?,
        checksum,
        size_bytes: object_size(&headers)?,
        precondition,
    };
    let ruled = told_of_rules::ruled(vault, &bucket, &complete.name);
    let completed = vault.complete_upload(&caller.subject, &bucket, complete);
    let stored = match completed.await {
        Ok(stored) => stored,
        Err(error) => {
            let etag = etag_of_refused(&error, document);
            let refused = caller.refused(error);
            return Err(of_part(refused, etag));
        }
    };
    let place = (&bucket, ruled);
    let about = told_of_rules::about(&stored);
    let checksum = stored.checksum.as_ref();
    let mut output = CompleteMultipartUploadOutput {
        expiration: told_of_rules::of_write(vault, &caller, place, about).await,
        checksum_type: checksum.map(|checksum| kind(checksum.kind)),
        e_tag: Some(ETag::Strong(stored.etag)),
        version_id: stored.version.map(|version| version.to_string()),
        location: Some(location(&headers, &input.bucket, &input.key)),
        bucket: Some(input.bucket),
        key: Some(input.key),
        ..Default::default()
    };
    set_checksum!(output, checksum);
    set_encryption!(output, &stored.encryption, &stored.level);
    Ok(S3Response::new(output))
}

/// The whole object's checksum as the client has it, which must be of the algorithm and the kind
/// that the upload was begun with.
fn whole(
    announced: Option<(ChecksumAlgorithm, ChecksumKind)>,
    asked_kind: Option<&dto::ChecksumType>,
    headers: &HeaderMap,
) -> S3Result<Option<String>> {
    let default = (ChecksumAlgorithm::Crc64nvme, ChecksumKind::FullObject);
    let (algorithm, begun_kind) = announced.unwrap_or(default);
    let begun = kind(begun_kind);
    match asked_kind.map(dto::ChecksumType::as_str) {
        None => {}
        Some(asked) if asked == begun.as_str() => {}
        Some(dto::ChecksumType::COMPOSITE | dto::ChecksumType::FULL_OBJECT) => {
            return Err(s3_error!(
                InvalidRequest,
                "The upload was created using the {} checksum mode. The complete request must use \
                 the same checksum mode.",
                begun.as_str()
            ));
        }
        Some(_) => return Err(no_type()),
    }
    match header_value(headers)? {
        None => Ok(None),
        Some((sent, value)) if sent == algorithm => Ok(Some(value)),
        Some((sent, _)) => Err(s3_error!(
            InvalidRequest,
            "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
            announced.map_or("null", |(algorithm, _)| algorithm.word()),
            sent.word()
        )),
    }
}

/// The length that the object must have. s3s reads a number up to the first byte that is no digit.
fn object_size(headers: &HeaderMap) -> S3Result<Option<u64>> {
    let mut sizes = headers.get_all(OBJECT_SIZE).iter();
    let Some(sent) = sizes.next() else {
        return Ok(None);
    };
    let is_number = sent.as_bytes().iter().all(u8::is_ascii_digit);
    let size = sent.to_str().ok().and_then(|text| text.parse().ok());
    match size {
        Some(size) if is_number && sizes.next().is_none() => Ok(Some(size)),
        _ => Err(s3_error!(
            InvalidRequest,
            "Value for x-amz-mp-object-size header is invalid: '{}'",
            text_of(sent.as_bytes())
        )),
    }
}

/// A part as the client names it.
fn completed_part(part: dto::CompletedPart, checksum: PartSum) -> S3Result<CompletedPart> {
    let number = part
        .part_number
        .ok_or_else(|| s3_error!(MalformedXML, "A part needs a number"))?;
    if number < 1 {
        let error = s3_error!(InvalidArgument, "PartNumber must be >= 1");
        return Err(of_argument(error, "PartNumber", &number.to_string()));
    }
    let number = ranges::part_number(number)?;
    let etag = part
        .e_tag
        .ok_or_else(|| s3_error!(MalformedXML, "A part needs an entity tag"))?;
    Ok(CompletedPart {
        number,
        etag: etag.into_value(),
        checksum,
    })
}

/// Where the object is, as the client would address it.
fn location(headers: &HeaderMap, bucket: &str, key: &str) -> String {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or("");
    let key = percent::encode(key);
    let rest = host.strip_prefix(bucket);
    if rest.is_some_and(|rest| rest.starts_with('.')) {
        return format!("https://{host}/{key}");
    }
    format!("https://{host}/{bucket}/{key}")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_size_is_read_whole() {
        let read = |sizes: &[&'static str]| {
            let value = |size: &&'static str| (OBJECT_SIZE, HeaderValue::from_static(size));
            object_size(&sizes.iter().map(value).collect::<HeaderMap>())
        };
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&["0"]).unwrap(), Some(0));
        assert_eq!(read(&["9876543210"]).unwrap(), Some(9_876_543_210));
        for bad in [
            "",
            "3x",
            "3.0",
            "+3",
            "-3",
            "0x3",
            " ",
            "99999999999999999999",
        ] {
            assert!(read(&[bad]).is_err(), "{bad}");
        }
        assert!(read(&["3", "3"]).is_err());
    }

    #[test]
    fn announced_checksums_keep_the_rules_of_s3() {
        use ChecksumAlgorithm::{Crc32, Crc64nvme, Sha256, Xxhash3};
        use ChecksumKind::{Composite, FullObject};
        let good = [
            (None, None, None),
            (Some("CRC32"), None, Some((Crc32, Composite))),
            (
                Some("CRC32"),
                Some("FULL_OBJECT"),
                Some((Crc32, FullObject)),
            ),
            (Some("CRC64NVME"), None, Some((Crc64nvme, FullObject))),
            (Some("SHA256"), Some("COMPOSITE"), Some((Sha256, Composite))),
            (Some("xxhash3"), None, Some((Xxhash3, Composite))),
        ];
        for (algorithm, kind, expected) in good {
            assert_eq!(announced(algorithm, kind).unwrap(), expected);
        }
        let bad = [
            (None, Some("COMPOSITE")),
            (Some("SHA1"), Some("FULL_OBJECT")),
            (Some("MD5"), Some("FULL_OBJECT")),
            (Some("XXHASH128"), Some("FULL_OBJECT")),
            (Some("CRC64NVME"), Some("COMPOSITE")),
            (Some("CRC32"), Some("HALF")),
            (Some("MD4"), None),
        ];
        for (algorithm, kind) in bad {
            assert!(
                announced(algorithm, kind).is_err(),
                "{algorithm:?} {kind:?}"
            );
        }
    }

    #[test]
    fn locations_follow_the_style_of_the_request() {
        let of = |host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, http::HeaderValue::from_static(host));
            location(&headers, "buc", "a b")
        };
        assert_eq!(of("h:9000"), "https://h:9000/buc/a%20b");
        assert_eq!(of("buc.h"), "https://buc.h/a%20b");
    }
}
