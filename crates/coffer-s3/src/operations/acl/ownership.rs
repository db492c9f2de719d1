//! Who owns the objects of a bucket, and whether lists count in it.

use coffer_vault::Vault;
use coffer_vault::policy::ObjectOwnership as Ownership;
use http::HeaderMap;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::errors::absent;
use crate::errors::details::of_argument;
use crate::parameters::names;
use crate::request::caller::{Caller, headers};

/// What a new bucket is asked for in.
const HEADER: &str = "x-amz-object-ownership";

/// `GetBucketOwnershipControls`.
pub(crate) async fn ownership_controls(
    vault: &Vault,
    request: S3Request<GetBucketOwnershipControlsInput>,
) -> S3Result<S3Response<GetBucketOwnershipControlsOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let ownership = vault.object_ownership(&caller.subject, &bucket).await;
    let ownership = ownership.map_err(|error| caller.refused(error))?;
    let ownership = ownership.ok_or_else(|| {
        absent(
            "OwnershipControlsNotFoundError",
            "The bucket ownership controls were not found",
        )
    })?;
    Ok(S3Response::new(GetBucketOwnershipControlsOutput {
        ownership_controls: Some(OwnershipControls {
            rules: vec![OwnershipControlsRule {
                object_ownership: ObjectOwnership::from_static(ownership.name()),
            }],
        }),
    }))
}

/// `PutBucketOwnershipControls`.
pub(crate) async fn put_ownership_controls(
    vault: &Vault,
    request: S3Request<PutBucketOwnershipControlsInput>,
) -> S3Result<S3Response<PutBucketOwnershipControlsOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let bucket = names::bucket(&request.input.bucket)?;
    let [rule] = request.input.ownership_controls.rules.as_slice() else {
        return Err(s3_error!(MalformedXML, "Ownership controls have one rule"));
    };
    let ownership = Ownership::from_name(rule.object_ownership.as_str());
    let ownership =
        ownership.ok_or_else(|| s3_error!(MalformedXML, "The rule names no ownership"))?;
    let set = vault.set_object_ownership(&caller.subject, &bucket, Some(ownership));
    set.await.map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(Default::default()))
}

/// `DeleteBucketOwnershipControls`: from then on lists count as of old, and writers own.
pub(crate) async fn delete_ownership_controls(
    vault: &Vault,
    request: S3Request<DeleteBucketOwnershipControlsInput>,
) -> S3Result<S3Response<DeleteBucketOwnershipControlsOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let set = vault.set_object_ownership(&caller.subject, &bucket, None);
    set.await.map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(Default::default()))
}

/// Refuses a header that is empty, which s3s takes for none.
///
/// # Errors
/// `InvalidArgument`.
pub(crate) fn check_header(headers: &HeaderMap) -> S3Result {
    let asked = headers.get(HEADER);
    if asked.is_some_and(|ownership| ownership.is_empty()) {
        let error = s3_error!(InvalidArgument, "Invalid {HEADER} header: ");
        return Err(of_argument(error, HEADER, ""));
    }
    Ok(())
}

/// What a new bucket asks for.
///
/// # Errors
/// `InvalidArgument` for what names no ownership.
pub(crate) fn of_new(asked: Option<&ObjectOwnership>) -> S3Result<Option<Ownership>> {
    let known = |asked: &ObjectOwnership| Ownership::from_name(asked.as_str());
    let known = asked.map(|asked| {
        known(asked).ok_or_else(|| {
            let asked = asked.as_str();
            let error = s3_error!(InvalidArgument, "Invalid {HEADER} header: {asked}");
            of_argument(error, HEADER, asked)
        })
    });
    known.transpose()
}
