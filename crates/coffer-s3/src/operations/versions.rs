//! Versions of objects: whether a bucket keeps them, and which there are.

pub(crate) mod object_lock;

pub(crate) mod listing;

use coffer_vault::version::{Versioning, VersioningSetting};
use coffer_vault::{AdministrationError, Vault, VaultError};
use s3s::dto::{
    BucketVersioningStatus, GetBucketVersioningInput, GetBucketVersioningOutput, MFADelete,
    MFADeleteStatus, PutBucketVersioningInput, PutBucketVersioningOutput,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::errors::not_implemented;
use crate::parameters::names;
use crate::request::caller::{Caller, headers};

/// `GetBucketVersioning`: nothing is said of a bucket that was never versioned, and of second
/// factors once that was put.
pub(crate) async fn bucket_versioning(
    vault: &Vault,
    request: S3Request<GetBucketVersioningInput>,
) -> S3Result<S3Response<GetBucketVersioningOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let setting = vault.versioning(&caller.subject, &bucket).await;
    let setting = setting.map_err(|error| caller.refused(error))?;
    let status = match setting.state {
        Versioning::Never => None,
        Versioning::Enabled => Some(BucketVersioningStatus::ENABLED),
        Versioning::Suspended => Some(BucketVersioningStatus::SUSPENDED),
    };
    let mfa_delete = || MFADeleteStatus::from_static(MFADeleteStatus::DISABLED);
    Ok(S3Response::new(GetBucketVersioningOutput {
        status: status.map(BucketVersioningStatus::from_static),
        mfa_delete: setting.is_mfa_delete_off.then(mfa_delete),
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
    let is_mfa_delete_off = match asked.mfa_delete.as_ref().map(MFADelete::as_str) {
        None => false,
        Some(MFADelete::DISABLED) => true,
        Some(MFADelete::ENABLED) => {
            return Err(not_implemented("Deleting by multi-factor authentication"));
        }
        Some(_) => {
            return Err(s3_error!(
                MalformedXML,
                "The XML you provided was not well-formed or did not validate against our \
                 published schema: MfaDelete is Enabled or Disabled"
            ));
        }
    };
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
    let setting = VersioningSetting {
        state,
        is_mfa_delete_off,
    };
    let set = vault.set_versioning(&caller.subject, &bucket, setting);
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
