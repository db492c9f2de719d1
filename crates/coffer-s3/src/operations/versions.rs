//! Versions of objects: whether a bucket keeps them, and which there are.

pub(crate) mod object_lock;

pub(crate) mod listing;

use coffer_vault::version::Versioning;
use coffer_vault::{AdministrationError, Vault, VaultError};
use s3s::dto::{
    BucketVersioningStatus, GetBucketVersioningInput, GetBucketVersioningOutput,
    PutBucketVersioningInput, PutBucketVersioningOutput,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::errors::not_implemented;
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
        Some(_) => {
            return Err(s3_error!(
                MalformedXML,
                "The XML you provided was not well-formed or did not validate against our \
                 published schema: Status is Enabled or Suspended"
            ));
        }
        None => {
            return Err(s3_error!(
                IllegalVersioningConfigurationException,
                "The Versioning element must be specified: Enabled or Suspended"
            ));
        }
    };
    let set = vault.set_versioning(&caller.subject, &bucket, state);
    set.await.map_err(|error| match error {
        VaultError::Administration(AdministrationError::LockNeedsVersions) => s3_error!(
            InvalidBucketState,
            "An Object Lock configuration is present on this bucket, so the versioning state \
             cannot be changed."
        ),
        other => caller.refused(other),
    })?;
    Ok(S3Response::new(PutBucketVersioningOutput::default()))
}
