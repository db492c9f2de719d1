//! GET and HEAD of objects.

use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use coffer_vault::record::{Checksum, ObjectName};
use coffer_vault::version::VersionId;
use coffer_vault::{
    BucketName, Conditions, EtagMatch, ObjectBody, ObjectInfo, RangeRequest, ReadOptions, Released,
    SealedObject, Vault, VaultError,
};
use futures::Stream;
use http::{HeaderMap, HeaderValue, Uri};
use s3s::dto::{
    self, ChecksumMode, ETag, GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput,
    StreamingBlob,
};
use s3s::stream::{ByteStream, RemainingLength};
use s3s::{Body, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, StdError, s3_error};

use crate::around_s3s::finish_response::StatusInstead;
use crate::checksums::algorithms::kind;
use crate::checksums::fields::set_checksum;
use crate::errors::details::of_argument;
use crate::http::conditions;
use crate::http::dates::timestamp;
use crate::http::percent::form_pairs;
use crate::http::ranges;
use crate::lifecycle::told as told_of_rules;
use crate::parameters::customer_key;
use crate::parameters::encryption::{set_customer_key, set_encryption};
use crate::parameters::lock;
use crate::parameters::metadata::{self, DEFAULT_CONTENT_TYPE};
use crate::parameters::names;
use crate::request::caller::{Caller, headers};
use crate::transfers::answers::{self, ObjectHeaders};

/// What GET and HEAD tell alike.
macro_rules! describe {
    ($output:ident, $info:expr, $checksum:expr) => {
        $output {
            accept_ranges: Some("bytes".to_owned()),
            cache_control: $info.head.details.headers.cache_control.clone(),
            checksum_type: $checksum.map(|checksum| kind(checksum.kind)),
            content_disposition: $info.head.details.headers.content_disposition.clone(),
            content_encoding: $info.head.details.headers.content_encoding.clone(),
            content_language: $info.head.details.headers.content_language.clone(),
            content_length: i64::try_from($info.range.end - $info.range.start).ok(),
            content_type: Some(
                $info
                    .head
                    .details
                    .headers
                    .content_type
                    .clone()
                    .unwrap_or_else(|| DEFAULT_CONTENT_TYPE.to_owned()),
            ),
            e_tag: Some(ETag::Strong($info.head.etag.clone())),
            last_modified: Some(timestamp($info.head.modified_ms)),
            metadata: metadata::user_metadata(&$info.head.details),
            missing_meta: metadata::missing(&$info.head.details),
            website_redirect_location: $info.head.details.redirect.clone(),
            object_lock_legal_hold_status: lock::told_hold($info.head.lock),
            object_lock_mode: lock::told_mode($info.head.lock),
            object_lock_retain_until_date: { $info.head.lock.retention }
                .map(|retention| timestamp(retention.until_ms)),
            version_id: $info.version.map(VersionId::text),
            ..Default::default()
        }
    };
}

/// Headers of answers are chosen by who signs for them (API reference, GetObject): else a public
/// object would be a page of this origin to whom a link says so. No header can hold some of them.
fn check_overrides(caller: &Caller, uri: &Uri) -> S3Result {
    let pairs = form_pairs(uri.query().unwrap_or("")).unwrap_or_default();
    let is_override = |(name, _): &&(String, String)| name.starts_with("response-");
    let mut overrides = pairs.iter().filter(is_override).peekable();
    if caller.subject.is_anonymous() && overrides.peek().is_some() {
        return Err(s3_error!(
            InvalidRequest,
            "Request specific response headers cannot be used for anonymous GET requests."
        ));
    }
    if overrides.any(|(_, value)| HeaderValue::from_str(value).is_err()) {
        return Err(s3_error!(
            InvalidArgument,
            "A response header that the query asks for is none"
        ));
    }
    Ok(())
}

/// What is asked for of an object; a part number that is none is told by its name.
fn requested(range: Option<dto::Range>, part: Option<i32>) -> S3Result<RangeRequest> {
    let asked = ranges::requested(range, part);
    asked.map_err(|error| match part {
        Some(number) if *error.code() == S3ErrorCode::InvalidArgument => {
            of_argument(error, "partNumber", &number.to_string())
        }
        _ => error,
    })
}

/// `GetObject`.
pub(crate) async fn get_object(
    vault: &Vault,
    request: S3Request<GetObjectInput>,
) -> S3Result<S3Response<GetObjectOutput>> {
    let caller = Caller::of(&request)?;
    check_overrides(&caller, &request.uri)?;
    let conditions = conditions::of_read(headers(&request));
    let of_range = conditions::of_range(headers(&request));
    let brought = customer_key::of_object(headers(&request))?;
    let sealed = answers::is_asked(&caller, headers(&request));
    let input = request.input;
    let which = names::which(input.version_id.as_deref())?;
    let asked = requested(input.range, input.part_number)?;
    let (bucket, name) = (names::bucket(&input.bucket)?, names::object(input.key)?);
    let place = (&bucket, &name);
    let options = ReadOptions {
        which,
        conditions,
        range: asked,
        customer_key: brought.as_ref().map(|brought| brought.key.clone()),
    };
    let options = of_a_range(vault, &caller, place, options, of_range).await?;
    let range = options.range;
    let is_overridden = input.response_content_type.is_some()
        || input.response_content_encoding.is_some()
        || input.response_cache_control.is_some();
    let released = if sealed && !is_overridden {
        let releasing = vault.release_object(&caller.subject, &bucket, &name, options);
        // Apart, so that no other request pays for it.
        Box::pin(releasing).await
    } else {
        let reading = vault.read_object(&caller.subject, &bucket, &name, options);
        reading.await.map(Released::Opened)
    };
    let released = released.map_err(|error| read_refused(&caller, range, error))?;
    let (info, given) = match released {
        Released::Sealed(sealed) => (sealed.info.clone(), Given::Sealed(Box::new(sealed))),
        Released::Opened(read) => (read.info, Given::Opened(read.body)),
    };
    let checksum = told_checksum(&info, range, input.checksum_mode);
    let mut output = describe!(GetObjectOutput, info, checksum);
    output.expiration = told_of_rules::of_read(vault, &bucket, (&name, which), &info).await;
    set_checksum!(output, checksum);
    set_encryption!(output, &info.head.details.encryption, &info.level);
    set_customer_key!(output, brought);
    output.content_range = content_range(&info, range);
    output.parts_count = parts_count(&info, range);
    output.tag_count = i32::try_from(info.tag_count)
        .ok()
        .filter(|count| *count > 0);
    let (expires, odd) = metadata::expires(&info.head.details.headers);
    output.expires = expires;
    let overridden = input.response_expires.is_some();
    let mut headers = if overridden { HeaderMap::new() } else { odd };
    headers.extend(answers::stored_as(info.verification));
    match given {
        Given::Opened(body) => {
            output.body = Some(StreamingBlob::new(Outgoing { body }));
        }
        Given::Sealed(sealed) => {
            give_sealed(vault, &sealed, &mut output)?;
            headers.extend(answers::headers_of(&sealed));
        }
    }
    Ok(S3Response::with_headers(output, headers))
}

/// What an answer gives out, but for what describes it.
enum Given {
    Opened(ObjectBody),
    Sealed(Box<SealedObject>),
}

/// Puts keys and ticket in the place of the object's bytes.
fn give_sealed(vault: &Vault, sealed: &SealedObject, output: &mut GetObjectOutput) -> S3Result {
    let own = ObjectHeaders {
        content_type: output.content_type.replace("application/json".to_owned()),
        cache_control: output.cache_control.replace("no-store".to_owned()),
        content_encoding: output.content_encoding.take(),
    };
    let document = answers::document_of(vault, sealed, own)?;
    output.content_length = i64::try_from(document.len()).ok();
    output.body = Some(StreamingBlob::from(Body::from(document)));
    Ok(())
}

/// What a range takes that may be of another object than the one that is there.
async fn of_a_range(
    vault: &Vault,
    caller: &Caller,
    place: (&BucketName, &ObjectName),
    options: ReadOptions,
    condition: Option<Conditions>,
) -> S3Result<ReadOptions> {
    if options.range == RangeRequest::All {
        return Ok(options);
    }
    let looked = async {
        let options = still_of(vault, caller, place, options, condition).await;
        of_one_object(vault, caller, place, options).await
    };
    // Apart, so that no other request pays for it.
    Box::pin(looked).await
}

/// With the range, unless `If-Range` names another object than the one that is there: then all of
/// it. Should it be replaced between this look and the reading, its entity tag in the answer tells.
async fn still_of(
    vault: &Vault,
    caller: &Caller,
    (bucket, name): (&BucketName, &ObjectName),
    options: ReadOptions,
    condition: Option<Conditions>,
) -> ReadOptions {
    let Some(conditions) = condition else {
        return options;
    };
    let whole = ReadOptions {
        conditions,
        range: RangeRequest::All,
        ..options.clone()
    };
    let range = match vault
        .head_object(&caller.subject, bucket, name, whole)
        .await
    {
        Err(VaultError::PreconditionFailed) => RangeRequest::All,
        _ => options.range, // what else is wrong, the reading will tell
    };
    ReadOptions { range, ..options }
}

/// The vault looks up where a part lies, and then reads the object: which is another one, perhaps,
/// where the part lies elsewhere. So the entity tag becomes a condition, of parts alone.
async fn of_one_object(
    vault: &Vault,
    caller: &Caller,
    (bucket, name): (&BucketName, &ObjectName),
    options: ReadOptions,
) -> S3Result<ReadOptions> {
    let range = options.range;
    if !matches!(range, RangeRequest::Part(_)) {
        return Ok(options);
    }
    let conditions = options.conditions.clone();
    let whole = ReadOptions {
        range: RangeRequest::All,
        ..options.clone()
    };
    let info = vault
        .head_object(&caller.subject, bucket, name, whole)
        .await
        .map_err(|error| caller.refused(error))?;
    let conditions = Conditions {
        if_match: Some(EtagMatch::OneOf(vec![info.head.etag])),
        ..conditions
    };
    Ok(ReadOptions {
        conditions,
        ..options
    })
}

fn read_refused(caller: &Caller, range: RangeRequest, error: VaultError) -> S3Error {
    match (range, error) {
        // The client's own conditions held a moment ago.
        (RangeRequest::Part(_), VaultError::PreconditionFailed) => s3_error!(
            ServiceUnavailable,
            "The object was replaced while its part was looked up. Try again."
        ),
        (_, error) => caller.refused(error),
    }
}

/// `HeadObject`.
pub(crate) async fn head_object(
    vault: &Vault,
    request: S3Request<HeadObjectInput>,
) -> S3Result<S3Response<HeadObjectOutput>> {
    let caller = Caller::of(&request)?;
    check_overrides(&caller, &request.uri)?;
    let conditions = conditions::of_read(headers(&request));
    let of_range = conditions::of_range(headers(&request));
    let brought = customer_key::of_object(headers(&request))?;
    let input = request.input;
    let which = names::which(input.version_id.as_deref())?;
    let asked = requested(input.range, input.part_number)?;
    let (bucket, name) = (names::bucket(&input.bucket)?, names::object(input.key)?);
    let place = (&bucket, &name);
    let options = ReadOptions {
        which,
        conditions,
        range: asked,
        customer_key: brought.as_ref().map(|brought| brought.key.clone()),
    };
    let options = of_a_range(vault, &caller, place, options, of_range).await?;
    let range = options.range;
    let info = vault
        .head_object(&caller.subject, &bucket, &name, options)
        .await
        .map_err(|error| read_refused(&caller, range, error))?;
    let checksum = told_checksum(&info, range, input.checksum_mode);
    let mut output = describe!(HeadObjectOutput, info, checksum);
    output.expiration = told_of_rules::of_read(vault, &bucket, (&name, which), &info).await;
    set_checksum!(output, checksum);
    set_encryption!(output, &info.head.details.encryption, &info.level);
    set_customer_key!(output, brought);
    output.content_range = content_range(&info, range);
    output.parts_count = parts_count(&info, range);
    let (expires, mut more) = metadata::expires(&info.head.details.headers);
    output.expires = input.response_expires.clone().or(expires);
    if input.response_expires.is_some() {
        more.clear();
    }
    // s3s applies these to GET only.
    output.cache_control = input.response_cache_control.or(output.cache_control);
    output.content_disposition = input
        .response_content_disposition
        .or(output.content_disposition);
    output.content_encoding = input.response_content_encoding.or(output.content_encoding);
    output.content_language = input.response_content_language.or(output.content_language);
    output.content_type = input.response_content_type.or(output.content_type);
    more.extend(answers::stored_as(info.verification));
    // s3s has no field for it in this output.
    if info.tag_count > 0 {
        more.insert("x-amz-tagging-count", info.tag_count.into());
    }
    let mut response = S3Response::with_headers(output, more);
    if response.output.content_range.is_some() {
        response
            .extensions
            .insert(StatusInstead(http::StatusCode::PARTIAL_CONTENT));
    }
    Ok(response)
}

/// The checksum of the whole goes with the whole only, also where a range covers it, that of a part
/// with the part: clients compare it with what they get.
fn told_checksum(
    info: &ObjectInfo,
    range: RangeRequest,
    mode: Option<ChecksumMode>,
) -> Option<&Checksum> {
    let wanted = mode.is_some_and(|mode| mode.as_str().eq_ignore_ascii_case("ENABLED"));
    let told = match range {
        RangeRequest::All => info.head.details.checksum.as_ref(),
        RangeRequest::Part(_) => info.part_checksum.as_ref(),
        _ if info.range == (0..info.head.size_bytes) => info.head.details.checksum.as_ref(),
        _ => None,
    };
    told.filter(|_| wanted)
}

/// `Content-Range`, where a part of the object was asked for. An empty object has no range.
fn content_range(info: &ObjectInfo, range: RangeRequest) -> Option<String> {
    let Range { start, end } = info.range;
    let is_part = range != RangeRequest::All && start < end;
    is_part.then(|| format!("bytes {start}-{}/{}", end - 1, info.head.size_bytes))
}

fn parts_count(info: &ObjectInfo, range: RangeRequest) -> Option<i32> {
    let asked = matches!(range, RangeRequest::Part(_));
    let count = i32::try_from(info.head.part_count).ok();
    count.filter(|count| asked && *count > 0)
}

/// An object's bytes on their way to hyper, as they come from the vault. An error ends the
/// connection: the client has a status by then, and must not take what it has for the object.
struct Outgoing {
    body: ObjectBody,
}

impl Stream for Outgoing {
    type Item = Result<Bytes, StdError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = Pin::new(&mut self.body).poll_next(cx);
        polled.map_err(|error| Box::new(error) as StdError)
    }
}

impl ByteStream for Outgoing {
    fn remaining_length(&self) -> RemainingLength {
        let remaining = usize::try_from(self.body.remaining_bytes()).unwrap_or(usize::MAX);
        RemainingLength::new_exact(remaining)
    }
}
