//! Buckets.

use std::sync::Arc;

use coffer_vault::{
    BucketConfiguration, BucketInfo, MD5_ETAGS, NewBucket, ObjectLock, Vault, VaultError, is_region,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use s3s::dto::{
    Bucket, BucketLocationConstraint, CreateBucketInput, CreateBucketOutput, DeleteBucketInput,
    DeleteBucketOutput, DeleteBucketTaggingInput, DeleteBucketTaggingOutput,
    GetBucketLocationInput, GetBucketLocationOutput, GetBucketTaggingInput, GetBucketTaggingOutput,
    HeadBucketInput, HeadBucketOutput, ListBucketsInput, ListBucketsOutput, PutBucketTaggingInput,
    PutBucketTaggingOutput,
};
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};

use crate::around_s3s::finish_response::StatusInstead;
use crate::around_s3s::xml_bodies::CanonicalXml;
use crate::errors::details::of_argument;
use crate::errors::{from_vault, not_implemented};
use crate::http::dates::in_seconds;
use crate::limits::{BUCKET_TAGS_MAX, BUCKETS_PAGE_MAX, LOCATION_MAX_BYTES};
use crate::operations::acl::{owners, ownership};
use crate::parameters::acl;
use crate::parameters::continuation_tokens;
use crate::parameters::names;
use crate::parameters::tags;
use crate::request::caller::{Caller, headers};
use crate::signature::requirements::REGION;
use crate::transfers::answers::offered;

/// The level whose buckets have no location constraint.
const DEFAULT_LEVEL: &str = "default";

/// How entity tags of what is uploaded to a new bucket come about.
const ETAG_HEADER: HeaderName = HeaderName::from_static("x-coffer-etag");

/// `CreateBucket`: the location constraint names a level. Clients send their region by themselves,
/// so that means the default; no level is made that is called like one.
pub(crate) async fn create_bucket(
    vault: &Vault,
    request: S3Request<CreateBucketInput>,
) -> S3Result<S3Response<CreateBucketOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let document = request.extensions.get::<Arc<CanonicalXml>>();
    let tags = document.map_or(Ok(None), |document| tags::of_new_bucket(&document.text))?;
    let mut documents = etag_document(headers(&request))?;
    let acl = acl::asked(headers(&request))?;
    ownership::check_header(headers(&request))?;
    let input = request.input;
    if input.object_lock_enabled_for_bucket == Some(true) {
        let lock = ObjectLock::default().to_document();
        documents.push((BucketConfiguration::ObjectLock, lock));
    }
    let object_ownership = ownership::of_new(input.object_ownership.as_ref())?;
    let bucket = names::new_bucket(&input.bucket)?;
    let configuration = input.create_bucket_configuration.unwrap_or_default();
    if configuration.bucket.is_some() || configuration.location.is_some() {
        return Err(not_implemented("Making a directory bucket"));
    }
    let constraint = configuration.location_constraint;
    let level = constraint.as_ref().map(BucketLocationConstraint::as_str);
    let level = level.filter(|name| !name.is_empty() && !is_region(name));
    let made = match level {
        Some(name) if name.len() > LOCATION_MAX_BYTES => Err(VaultError::NoSuchLevel),
        level => {
            let new = NewBucket {
                level,
                documents,
                tags,
                object_ownership,
                acl,
            };
            vault
                .create_bucket_with(&caller.subject, &bucket, new)
                .await
        }
    };
    made.map_err(|error| match (error, level) {
        (VaultError::NoSuchLevel, None) => not_by_default(),
        (error, _) => caller.refused(error),
    })?;
    let location = Some(format!("/{bucket}"));
    Ok(S3Response::new(CreateBucketOutput { location }))
}

/// The level that is meant where none is named is none of the caller's.
fn not_by_default() -> S3Error {
    s3_error!(
        InvalidLocationConstraint,
        "The specified location-constraint is not valid: the request names no level, so the bucket \
         would be made in the level {DEFAULT_LEVEL}, which this access key may not write. Name the \
         level of the access key as LocationConstraint."
    )
}

/// What the header that is coffer's own says of entity tags.
fn etag_document(headers: &HeaderMap) -> S3Result<Vec<(BucketConfiguration, String)>> {
    match headers.get(ETAG_HEADER).map(HeaderValue::as_bytes) {
        None | Some(b"random") => Ok(Vec::new()),
        Some(b"md5") => Ok(vec![(BucketConfiguration::Etag, MD5_ETAGS.to_owned())]),
        Some(_) => Err(s3_error!(InvalidArgument, "{ETAG_HEADER} is md5 or random")),
    }
}

/// `DeleteBucket`.
pub(crate) async fn delete_bucket(
    vault: &Vault,
    request: S3Request<DeleteBucketInput>,
) -> S3Result<S3Response<DeleteBucketOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    vault
        .delete_bucket(&caller.subject, &bucket)
        .await
        .map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(DeleteBucketOutput::default()))
}

pub(crate) async fn bucket_info(
    vault: &Vault,
    caller: &Caller,
    bucket: &str,
) -> S3Result<BucketInfo> {
    let bucket = names::bucket(bucket)?;
    let info = vault.bucket(&caller.subject, &bucket).await;
    let info = info.map_err(from_vault)?;
    // That it is there is told.
    vault.settle_acts().await.map_err(from_vault)?;
    Ok(info)
}

/// `HeadBucket`.
pub(crate) async fn head_bucket(
    vault: &Vault,
    request: S3Request<HeadBucketInput>,
) -> S3Result<S3Response<HeadBucketOutput>> {
    let caller = Caller::of(&request)?;
    bucket_info(vault, &caller, &request.input.bucket).await?;
    let output = HeadBucketOutput {
        bucket_region: Some(REGION.to_owned()),
        ..Default::default()
    };
    let offered = offered(vault, &caller, &request.input.bucket)?;
    Ok(S3Response::with_headers(output, offered))
}

/// `GetBucketLocation`: the level, or nothing for the default one.
pub(crate) async fn bucket_location(
    vault: &Vault,
    request: S3Request<GetBucketLocationInput>,
) -> S3Result<S3Response<GetBucketLocationOutput>> {
    let caller = Caller::of(&request)?;
    let info = bucket_info(vault, &caller, &request.input.bucket).await?;
    let named = (info.level != DEFAULT_LEVEL).then_some(info.level);
    let location_constraint = named.map(BucketLocationConstraint::from);
    Ok(S3Response::new(GetBucketLocationOutput {
        location_constraint,
    }))
}

/// `ListBuckets`.
pub(crate) async fn list_buckets(
    vault: &Vault,
    request: S3Request<ListBucketsInput>,
) -> S3Result<S3Response<ListBucketsOutput>> {
    let caller = Caller::of(&request)?;
    let input = request.input;
    let prefix = input.prefix.unwrap_or_default();
    // An empty one is none here (S3), where ListObjectsV2 refuses it.
    let token = input.continuation_token.filter(|token| !token.is_empty());
    let after = token.as_deref().map(continuation_tokens::decode);
    let after = after.transpose()?;
    let rows = input.max_buckets.unwrap_or(BUCKETS_PAGE_MAX);
    if !(1..=BUCKETS_PAGE_MAX).contains(&rows) {
        let error = s3_error!(
            InvalidArgument,
            "Argument max-buckets must be an integer between 1 and {BUCKETS_PAGE_MAX}"
        );
        return Err(of_argument(error, "max-buckets", &rows.to_string()));
    }
    if let Some(region) = &input.bucket_region {
        check_region(region)?;
    }
    if input.bucket_region.is_some_and(|region| region != REGION) {
        let none = ListBucketsOutput {
            buckets: Some(Vec::new()),
            // Who asks: its canonical user id, by which policies and lists name it.
            owner: Some(owners::told(vault, caller.subject.id().to_string())),
            ..Default::default()
        };
        return Ok(S3Response::new(none));
    }
    let all = vault
        .buckets(&caller.subject)
        .await
        .map_err(|error| caller.refused(error))?;
    let mut infos: Vec<_> = all
        .into_iter()
        .filter(|info| info.name.as_str().starts_with(&prefix))
        .filter(|info| {
            after
                .as_deref()
                .is_none_or(|after| info.name.as_str() > after)
        })
        .collect();
    let rows = usize::try_from(rows).unwrap_or(0);
    let more = infos.len() > rows;
    infos.truncate(rows);
    let last = infos.last().map(|info| info.name.as_str().to_owned());
    let row = |info: BucketInfo| Bucket {
        bucket_region: Some(REGION.to_owned()),
        creation_date: Some(in_seconds(info.created_ms)),
        name: Some(info.name.as_str().to_owned()),
    };
    Ok(S3Response::new(ListBucketsOutput {
        buckets: Some(infos.into_iter().map(row).collect()),
        continuation_token: last
            .filter(|_| more)
            .as_deref()
            .map(continuation_tokens::encode),
        // Who asks: its canonical user id, by which policies and lists name it.
        owner: Some(owners::told(vault, caller.subject.id().to_string())),
        prefix: (!prefix.is_empty()).then_some(prefix),
    }))
}

/// What is asked for has the form of a region. Which of them AWS has is not known here.
fn check_region(asked: &str) -> S3Result {
    if is_region(asked) {
        return Ok(());
    }
    let error = s3_error!(
        InvalidArgument,
        "Argument value {asked} is not a valid AWS Region"
    );
    Err(of_argument(error, "bucket-region", asked))
}

/// `GetBucketTagging`.
pub(crate) async fn bucket_tags(
    vault: &Vault,
    request: S3Request<GetBucketTaggingInput>,
) -> S3Result<S3Response<GetBucketTaggingOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let found = vault.bucket_tags(&caller.subject, &bucket).await;
    match found.map_err(|error| caller.refused(error))? {
        // None may have been kept as a set of none.
        Some(tags) if !tags.is_empty() => Ok(S3Response::new(GetBucketTaggingOutput {
            tag_set: tags::to_set(tags),
        })),
        _ => Err(s3_error!(NoSuchTagSet, "The TagSet does not exist")),
    }
}

/// `PutBucketTagging`.
pub(crate) async fn put_bucket_tags(
    vault: &Vault,
    request: S3Request<PutBucketTaggingInput>,
) -> S3Result<S3Response<PutBucketTaggingOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let bucket = names::bucket(&request.input.bucket)?;
    let tags = tags::from_set(request.input.tagging.tag_set, BUCKET_TAGS_MAX)?;
    // None is the same as never set, which a read tells by an error (S3).
    let tags = (!tags.is_empty()).then_some(tags);
    vault
        .set_bucket_tags(&caller.subject, &bucket, tags)
        .await
        .map_err(|error| caller.refused(error))?;
    let mut response = S3Response::new(PutBucketTaggingOutput::default());
    response
        .extensions
        .insert(StatusInstead(StatusCode::NO_CONTENT));
    Ok(response)
}

/// `DeleteBucketTagging`.
pub(crate) async fn delete_bucket_tags(
    vault: &Vault,
    request: S3Request<DeleteBucketTaggingInput>,
) -> S3Result<S3Response<DeleteBucketTaggingOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    vault
        .set_bucket_tags(&caller.subject, &bucket, None)
        .await
        .map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(DeleteBucketTaggingOutput::default()))
}
