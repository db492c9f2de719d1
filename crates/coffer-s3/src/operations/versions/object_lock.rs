//! Object lock: of buckets, and of versions of objects.

use coffer_vault::limits::LOCK_DEFAULT_MAX_DAYS;
use coffer_vault::lock::{Lock, LockChange, Retention};
use coffer_vault::record::ObjectName;
use coffer_vault::version::Which;
use coffer_vault::{
    AdministrationError, BucketName, DefaultRetention, ObjectLock, Vault, VaultError,
};
use s3s::dto::{
    self, GetObjectLegalHoldInput, GetObjectLegalHoldOutput, GetObjectLockConfigurationInput,
    GetObjectLockConfigurationOutput, GetObjectRetentionInput, GetObjectRetentionOutput,
    ObjectLockConfiguration, ObjectLockEnabled, ObjectLockLegalHold, ObjectLockLegalHoldStatus,
    ObjectLockRetention, ObjectLockRetentionMode, ObjectLockRule, PutObjectLegalHoldInput,
    PutObjectLegalHoldOutput, PutObjectLockConfigurationInput, PutObjectLockConfigurationOutput,
    PutObjectRetentionInput, PutObjectRetentionOutput,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use crate::errors::absent;
use crate::errors::details::of_argument;
use crate::http::dates::timestamp;
use crate::parameters::lock::{bypasses_governance, milliseconds, mode_name, mode_of, told_hold};
use crate::parameters::names;
use crate::request::caller::{Caller, headers};

/// `GetObjectLockConfiguration`.
pub(crate) async fn configuration(
    vault: &Vault,
    request: S3Request<GetObjectLockConfigurationInput>,
) -> S3Result<S3Response<GetObjectLockConfigurationOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let lock = of_bucket(vault, &caller, &bucket).await?;
    let lock = lock.ok_or_else(|| {
        absent(
            "ObjectLockConfigurationNotFoundError",
            "Object Lock configuration does not exist for this bucket",
        )
    })?;
    let rule = lock.default.map(|default| {
        let mode = if default.is_compliance {
            ObjectLockRetentionMode::COMPLIANCE
        } else {
            ObjectLockRetentionMode::GOVERNANCE
        };
        let length = i32::try_from(default.length).ok();
        ObjectLockRule {
            default_retention: Some(dto::DefaultRetention {
                days: length.filter(|_| !default.in_years),
                mode: Some(ObjectLockRetentionMode::from_static(mode)),
                years: length.filter(|_| default.in_years),
            }),
        }
    });
    Ok(S3Response::new(GetObjectLockConfigurationOutput {
        object_lock_configuration: Some(ObjectLockConfiguration {
            object_lock_enabled: Some(ObjectLockEnabled::from_static(ObjectLockEnabled::ENABLED)),
            rule,
        }),
    }))
}

/// `PutObjectLockConfiguration`.
pub(crate) async fn put_configuration(
    vault: &Vault,
    request: S3Request<PutObjectLockConfigurationInput>,
) -> S3Result<S3Response<PutObjectLockConfigurationOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let bucket = names::bucket(&request.input.bucket)?;
    let asked = request.input.object_lock_configuration;
    let asked = asked.ok_or_else(|| s3_error!(MissingRequestBodyError, "Request Body is empty"))?;
    let enabled = asked
        .object_lock_enabled
        .as_ref()
        .map(ObjectLockEnabled::as_str);
    if enabled != Some(ObjectLockEnabled::ENABLED) {
        return Err(malformed());
    }
    let default = match asked.rule {
        None => None,
        Some(rule) => Some(default_of(rule.default_retention.ok_or_else(malformed)?)?),
    };
    let set = vault.set_object_lock(&caller.subject, &bucket, ObjectLock { default });
    set.await.map_err(|error| match error {
        VaultError::Administration(AdministrationError::LockNeedsVersions) => s3_error!(
            InvalidBucketState,
            "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration"
        ),
        other => caller.refused(other),
    })?;
    Ok(S3Response::new(PutObjectLockConfigurationOutput::default()))
}

fn default_of(asked: dto::DefaultRetention) -> S3Result<DefaultRetention> {
    let mode = asked.mode.as_ref().map(ObjectLockRetentionMode::as_str);
    let is_compliance = match mode {
        Some(ObjectLockRetentionMode::COMPLIANCE) => true,
        Some(ObjectLockRetentionMode::GOVERNANCE) => false,
        _ => return Err(malformed()),
    };
    let (sent, in_years) = match (asked.days, asked.years) {
        (Some(days), None) => (days, false),
        (None, Some(years)) => (years, true),
        _ => return Err(malformed()),
    };
    let wrong = |message: &'static str| {
        let unit = if in_years { "Years" } else { "Days" };
        let error = S3Error::with_message(S3ErrorCode::InvalidArgument, message);
        of_argument(error, unit, &sent.to_string())
    };
    let length = u32::try_from(sent).ok().filter(|length| *length > 0);
    let default = DefaultRetention {
        is_compliance,
        length: length
            .ok_or_else(|| wrong("Default retention period must be a positive integer value."))?,
        in_years,
    };
    if default.days() > u64::from(LOCK_DEFAULT_MAX_DAYS) {
        return Err(wrong("Default retention period too large."));
    }
    Ok(default)
}

/// `GetObjectRetention`.
pub(crate) async fn retention(
    vault: &Vault,
    request: S3Request<GetObjectRetentionInput>,
) -> S3Result<S3Response<GetObjectRetentionOutput>> {
    let caller = Caller::of(&request)?;
    let input = request.input;
    let which = names::which(input.version_id.as_deref())?;
    let (bucket, name) = (names::bucket(&input.bucket)?, names::object(input.key)?);
    let lock = lock_of(vault, &caller, &bucket, (&name, which)).await?;
    let Retention { mode, until_ms } = lock.retention.ok_or_else(no_lock)?;
    Ok(S3Response::new(GetObjectRetentionOutput {
        retention: Some(ObjectLockRetention {
            mode: Some(ObjectLockRetentionMode::from_static(mode_name(mode))),
            retain_until_date: Some(timestamp(until_ms)),
        }),
    }))
}

/// `PutObjectRetention`.
pub(crate) async fn put_retention(
    vault: &Vault,
    request: S3Request<PutObjectRetentionInput>,
) -> S3Result<S3Response<PutObjectRetentionOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let bypasses = bypasses_governance(headers(&request));
    let input = request.input;
    let which = names::which(input.version_id.as_deref())?;
    let (bucket, name) = (names::bucket(&input.bucket)?, names::object(input.key)?);
    let asked = input.retention.ok_or_else(malformed)?;
    let retention = match (asked.mode, asked.retain_until_date) {
        (None, None) => None,
        (Some(mode), Some(until)) => Some(Retention {
            mode: mode_of(mode.as_str()).ok_or_else(malformed)?,
            until_ms: milliseconds(until).ok_or_else(malformed)?,
        }),
        _ => return Err(malformed()),
    };
    let change = LockChange::Retention(retention);
    let changed = vault.change_lock(&caller.subject, &bucket, (&name, which), change, bypasses);
    changed.await.map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(PutObjectRetentionOutput::default()))
}

/// `GetObjectLegalHold`.
pub(crate) async fn legal_hold(
    vault: &Vault,
    request: S3Request<GetObjectLegalHoldInput>,
) -> S3Result<S3Response<GetObjectLegalHoldOutput>> {
    let caller = Caller::of(&request)?;
    let input = request.input;
    let which = names::which(input.version_id.as_deref())?;
    let (bucket, name) = (names::bucket(&input.bucket)?, names::object(input.key)?);
    let lock = lock_of(vault, &caller, &bucket, (&name, which)).await?;
    let status = told_hold(lock).ok_or_else(no_lock)?;
    Ok(S3Response::new(GetObjectLegalHoldOutput {
        legal_hold: Some(ObjectLockLegalHold {
            status: Some(status),
        }),
    }))
}

/// `PutObjectLegalHold`.
pub(crate) async fn put_legal_hold(
    vault: &Vault,
    request: S3Request<PutObjectLegalHoldInput>,
) -> S3Result<S3Response<PutObjectLegalHoldOutput>> {
    let caller = Caller::of(&request)?;
    caller.check_xml_body(headers(&request))?;
    let input = request.input;
    let which = names::which(input.version_id.as_deref())?;
    let (bucket, name) = (names::bucket(&input.bucket)?, names::object(input.key)?);
    let status = input.legal_hold.and_then(|hold| hold.status);
    let has_hold = match status.as_ref().map(ObjectLockLegalHoldStatus::as_str) {
        Some(ObjectLockLegalHoldStatus::ON) => true,
        Some(ObjectLockLegalHoldStatus::OFF) => false,
        _ => return Err(malformed()),
    };
    let change = LockChange::Hold(has_hold);
    let changed = vault.change_lock(&caller.subject, &bucket, (&name, which), change, false);
    changed.await.map_err(|error| caller.refused(error))?;
    Ok(S3Response::new(PutObjectLegalHoldOutput::default()))
}

async fn of_bucket(
    vault: &Vault,
    caller: &Caller,
    bucket: &BucketName,
) -> S3Result<Option<ObjectLock>> {
    let lock = vault.object_lock(&caller.subject, bucket).await;
    lock.map_err(|error| caller.refused(error))
}

async fn lock_of(
    vault: &Vault,
    caller: &Caller,
    bucket: &BucketName,
    (name, which): (&ObjectName, Which),
) -> S3Result<Lock> {
    if of_bucket(vault, caller, bucket).await?.is_none() {
        return Err(s3_error!(
            InvalidRequest,
            "Bucket is missing Object Lock Configuration"
        ));
    }
    // No key of a client's is asked for, nor can one be sent along.
    let lock = vault.lock_of_object(&caller.subject, bucket, (name, which));
    lock.await.map_err(|error| caller.refused(error))
}

fn no_lock() -> S3Error {
    absent(
        "NoSuchObjectLockConfiguration",
        "The specified object does not have a ObjectLock configuration",
    )
}

fn malformed() -> S3Error {
    s3_error!(
        MalformedXML,
        "The XML you provided was not well-formed or did not validate against our published schema."
    )
}
