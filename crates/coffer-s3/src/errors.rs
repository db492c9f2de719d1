//! The vault's errors in S3's words.

mod customer_keys;

mod outcome;

mod copies;

pub(crate) mod details;

pub(crate) mod mismatches;

mod reads;

mod sharing;

mod limits;

mod unsettled;

mod writes;

use std::borrow::Cow;

use coffer_vault::version::Absent;
use coffer_vault::{
    AdministrationError, BackupError, ChecksumError, CopyError, VaultError, files_run_out,
};
use http::StatusCode;
use s3s::{S3Error, S3ErrorCode, s3_error};

use self::copies::{not_fetched, standing, unacknowledged};
use self::customer_keys::from_customer_key;
use self::limits::from_limit;
use self::reads::{invalid_range, not_modified};
pub(crate) use self::reads::{marker_has_none, no_version};
use self::sharing::from_sharing;
pub(crate) use self::writes::{etag_of_refused, of_conditions, of_part};

/// A code that s3s has no name for.
pub(crate) fn custom(
    code: &'static str,
    status: StatusCode,
    message: impl Into<Cow<'static, str>>,
) -> S3Error {
    let mut error = S3Error::with_message(S3ErrorCode::Custom(code.into()), message);
    error.set_status_code(status);
    error
}

/// What was asked for is not there.
pub(crate) fn absent(code: &'static str, message: &'static str) -> S3Error {
    custom(code, StatusCode::NOT_FOUND, message)
}

/// Says what the vault's refusal means to an S3 client.
pub(crate) fn from_vault(error: VaultError) -> S3Error {
    match error {
        VaultError::NoSuchBucket => s3_error!(NoSuchBucket, "The specified bucket does not exist"),
        VaultError::NoSuchObject | VaultError::NothingToMatch => no_version(Absent::Object),
        VaultError::NoVersion(absent) => no_version(absent),
        VaultError::NoSuchUpload => s3_error!(
            NoSuchUpload,
            "The specified multipart upload does not exist. The upload ID may be invalid, or the \
             upload may have been aborted or completed."
        ),
        VaultError::NoSuchLevel => s3_error!(
            InvalidLocationConstraint,
            "The specified location-constraint is not valid: there is no level of this name"
        ),
        VaultError::BucketAlreadyOwnedByYou => s3_error!(
            BucketAlreadyOwnedByYou,
            "Your previous request to create the named bucket succeeded and you already own it."
        ),
        VaultError::BucketAlreadyExists => s3_error!(
            BucketAlreadyExists,
            "The requested bucket name is not available. The bucket namespace is shared by all \
             users of the system. Please select a different name and try again."
        ),
        // Of a bucket without versions, S3 says the first sentence alone.
        VaultError::BucketNotEmpty => s3_error!(
            BucketNotEmpty,
            "The bucket you tried to delete is not empty. You must delete all versions in the \
             bucket."
        ),
        VaultError::TooManyBuckets { limit } => {
            s3_error!(
                TooManyBuckets,
                "This server holds {limit} buckets, as many as it can"
            )
        }
        VaultError::SubjectLimit(limit) => from_limit(limit),
        VaultError::CustomerKey(error) => from_customer_key(error),
        VaultError::Administration(AdministrationError::Sharing(refusal)) => from_sharing(&refusal),
        VaultError::Administration(error) => from_administration(&error),
        VaultError::AccessDenied => s3_error!(AccessDenied, "Access Denied"),
        VaultError::ReadAbove { read } => s3_error!(
            AccessDenied,
            "Access Denied: what this access key's subject has read at {read} must not be written \
             below that. Write to a bucket of that level, or ask a key custodian to settle the \
             subject (coffer subject settle NAME)."
        ),
        VaultError::PreconditionFailed => s3_error!(
            PreconditionFailed,
            "At least one of the pre-conditions you specified did not hold"
        ),
        VaultError::NotModified { etag, modified_ms } => not_modified(&etag, modified_ms),
        VaultError::InvalidRange { size_bytes } => invalid_range(size_bytes),
        VaultError::NoSuchPart => custom(
            "InvalidPartNumber",
            StatusCode::RANGE_NOT_SATISFIABLE,
            "The requested partnumber is not satisfiable",
        ),
        other => from_writing(other),
    }
}

/// What comes of configuration and of locks.
fn from_administration(error: &AdministrationError) -> S3Error {
    use AdministrationError as E;
    match error {
        E::Locked => s3_error!(
            AccessDenied,
            "Access Denied because object protected by object lock."
        ),
        E::RoleMissing { .. } => s3_error!(AccessDenied, "Access Denied"),
        E::ToldToAll => s3_error!(AccessDenied, "Access Denied: {error}"),
        E::NoObjectLock | E::ConfigurationsFull { .. } => s3_error!(InvalidRequest, "{error}"),
        E::LockNeedsVersions => s3_error!(InvalidBucketState, "{error}"),
        E::BucketKeyDestroyed { .. } | E::BucketLevelGone { .. } => {
            s3_error!(InvalidBucketState, "{error}")
        }
        E::BucketKeyMissing { .. } => s3_error!(InternalError, "{error}"),
        E::LockNotRecorded => s3_error!(ServiceUnavailable, "{error}"),
        E::LockTooLong { .. } | E::LockInPast => s3_error!(InvalidArgument, "{error}"),
        E::TokenOfAnother => custom(
            "IdempotencyParameterMismatch",
            StatusCode::BAD_REQUEST,
            error.to_string(),
        ),
        _ => from_storage(VaultError::Administration(error.clone())),
    }
}

fn from_writing(error: VaultError) -> S3Error {
    match error {
        VaultError::InvalidPart { number } => writes::invalid_part(number),
        VaultError::InvalidPartOrder => s3_error!(
            InvalidPartOrder,
            "The list of parts was not in ascending order. Parts must be ordered by part number, \
             and have the numbers from 1 on where the upload was begun with a checksum."
        ),
        VaultError::PartTooSmall { number, size_bytes } => {
            writes::part_too_small(number, size_bytes)
        }
        VaultError::TooLarge { limit_bytes } => writes::too_large(limit_bytes),
        VaultError::Invalid { what } => s3_error!(InvalidRequest, "{what}"),
        VaultError::Checksum(
            error @ (ChecksumError::OtherOfPart { .. } | ChecksumError::OtherOfWhole { .. }),
        ) => s3_error!(BadDigest, "{error}"),
        VaultError::Checksum(ChecksumError::OtherMd5 { sent, computed }) => {
            writes::other_md5(sent, computed)
        }
        VaultError::Checksum(error) => s3_error!(InvalidRequest, "{error}"),
        VaultError::BadDigest { what } => writes::bad_digest(what),
        VaultError::IncompleteBody => s3_error!(
            IncompleteBody,
            "You did not provide the number of bytes specified by the Content-Length HTTP header"
        ),
        VaultError::Body(_) => s3_error!(IncompleteBody, "The request body could not be received"),
        full if full.over_quota().is_some() => over_quota(&full),
        VaultError::StorageFull => custom(
            "StorageFull",
            StatusCode::INSUFFICIENT_STORAGE,
            "The server's storage is full: nothing was stored. Delete objects or add space, then \
             try again.",
        ),
        VaultError::NoRoomForLog { needed_bytes, .. } => custom(
            "StorageFull",
            StatusCode::INSUFFICIENT_STORAGE,
            format!(
                "The server's storage is full: nothing was stored, and the bucket can't be used \
                 until the operator has freed {needed_bytes} bytes"
            ),
        ),
        other => from_server(other),
    }
}

/// S3 has no code for it. Who deletes to make room must not make delete markers.
fn over_quota(full: &VaultError) -> S3Error {
    let counts_markers = full.over_quota().is_some_and(|over| over.what == "objects");
    let advice = if counts_markers {
        ". A delete marker counts as an object: to make room, delete versions by their ids"
    } else {
        ""
    };
    let message = format!("{full}{advice}");
    custom("QuotaExceeded", StatusCode::FORBIDDEN, message)
}

/// What is not the fault of the client.
fn from_server(error: VaultError) -> S3Error {
    match error {
        VaultError::NewerCatalog {
            bucket,
            found,
            known,
            ..
        } => s3_error!(
            InternalError,
            "Bucket {bucket} is in format {found}, and this server understands formats up to \
             {known}: the operator must start the version of coffer that wrote it, or a newer one"
        ),
        VaultError::CatalogRolledBack(_) | VaultError::CatalogReplaced => s3_error!(
            InternalError,
            "An older copy of this bucket was put back, and is not served until the operator \
             accepts it or puts the newest back"
        ),
        VaultError::SystemRolledBack { .. }
        | VaultError::Administration(AdministrationError::SystemWrittenOver { .. }) => s3_error!(
            InternalError,
            "An older copy of the server's database was put back: nothing is changed until the \
             operator accepts it or puts the newest back"
        ),
        VaultError::Damaged => s3_error!(
            InternalError,
            "What is stored did not open: it was damaged or altered. Ask the operator to run \
             coffer verify."
        ),
        VaultError::OutOfFiles => out_of_files(),
        VaultError::TooManyFailures => s3_error!(
            SlowDown,
            "This was tried and failed too often within a minute: nothing was done. Try again in \
             a minute."
        ),
        VaultError::AuditUnavailable(_) => s3_error!(
            ServiceUnavailable,
            "This must be recorded in the audit log, which can't be written at the moment: nothing \
             was done. Ask the operator."
        ),
        VaultError::EndNotRecorded(_) | VaultError::EndNotHeld(_) => unsettled::done(&error),
        VaultError::ShuttingDown => s3_error!(
            ServiceUnavailable,
            "The server is shutting down. Try again."
        ),
        other => from_storage(other),
    }
}

/// What comes of the disk.
fn from_storage(error: VaultError) -> S3Error {
    match error {
        VaultError::SystemInDoubt => s3_error!(
            InternalError,
            "The server's disk fails or is full, and it is in doubt whether this has happened; \
             what it was about is out of use until that is known. Look before you ask for it again."
        ),
        VaultError::BucketInDoubt => s3_error!(
            ServiceUnavailable,
            "It is in doubt whether this bucket is there, or what is set of it or of what it \
             holds: it is just being erased, or the server's disk failed or was full when that was \
             changed. What is in doubt is out of use until it is known. Please try again."
        ),
        VaultError::InDoubt => s3_error!(
            InternalError,
            "The storage failed while this was committed: it may have been done, or not. Look, or \
             try again."
        ),
        VaultError::Backup(BackupError::Copy(error)) if error.is_of_standing() => standing(&error),
        VaultError::Backup(BackupError::Copy(error)) if error.is_of_acknowledgement() => {
            unacknowledged(&error)
        }
        VaultError::Backup(BackupError::Copy(CopyError::NotFetched { .. })) => not_fetched(),
        read_only if read_only.is_of_read_only_disk() => {
            tracing::warn!(target: "coffer::s3", error = %read_only, "the disk takes no writes");
            s3_error!(
                ServiceUnavailable,
                "The server's storage can't be written, for its file system is read-only: nothing \
                 was stored. What is stored can be read. Ask the operator."
            )
        }
        // Some errors do not say what they come from.
        unexpected if files_run_out() => {
            tracing::warn!(target: "coffer::s3", error = %unexpected, "files have run out");
            out_of_files()
        }
        unexpected => {
            tracing::error!(target: "coffer::s3", error = %unexpected, "a request failed");
            s3_error!(
                InternalError,
                "We encountered an internal error. Please try again."
            )
        }
    }
}

fn out_of_files() -> S3Error {
    s3_error!(
        SlowDown,
        "As many files and connections are open as the server may have. Try again."
    )
}

/// The answer to what S3 can do and coffer can't: never silence.
pub(crate) fn not_implemented(what: &str) -> S3Error {
    s3_error!(NotImplemented, "{what} is not implemented")
}

#[cfg(test)]
mod tests {
    use http::header;

    use super::*;

    #[test]
    fn codes_and_statuses_are_those_of_s3() {
        let cases = [
            (VaultError::NoSuchBucket, "NoSuchBucket", 404),
            (VaultError::NoSuchObject, "NoSuchKey", 404),
            (VaultError::NoSuchUpload, "NoSuchUpload", 404),
            (VaultError::BucketNotEmpty, "BucketNotEmpty", 409),
            (
                VaultError::TooManyBuckets { limit: 1 },
                "TooManyBuckets",
                400,
            ),
            (VaultError::AccessDenied, "AccessDenied", 403),
            (VaultError::PreconditionFailed, "PreconditionFailed", 412),
            (VaultError::InvalidPartOrder, "InvalidPartOrder", 400),
            (
                VaultError::TooLarge { limit_bytes: 1 },
                "EntityTooLarge",
                400,
            ),
            (VaultError::IncompleteBody, "IncompleteBody", 400),
            (VaultError::StorageFull, "StorageFull", 507),
            (VaultError::Damaged, "InternalError", 500),
            (VaultError::ShuttingDown, "ServiceUnavailable", 503),
            (VaultError::OutOfFiles, "SlowDown", 503),
            (VaultError::SystemInDoubt, "InternalError", 500),
            (VaultError::BucketInDoubt, "ServiceUnavailable", 503),
            (VaultError::StorageReadOnly, "ServiceUnavailable", 503),
        ];
        for (error, code, status) in cases {
            let error = from_vault(error);
            assert_eq!(error.code().as_str(), code);
            assert_eq!(error.status_code().unwrap().as_u16(), status, "{code}");
            assert!(error.message().is_some(), "{code}");
        }
    }

    /// A change of `system.db` can fail half-way where there is no room, too.
    #[test]
    fn what_is_in_doubt_says_that_the_disk_may_be_full() {
        for error in [VaultError::SystemInDoubt, VaultError::BucketInDoubt] {
            let told = from_vault(error);
            let told = told.message().unwrap();
            assert!(told.contains("in doubt") && told.contains("full"), "{told}");
        }
    }

    #[test]
    fn unsatisfiable_ranges_tell_the_size() {
        let error = from_vault(VaultError::InvalidRange { size_bytes: 7 });
        assert_eq!(error.headers().unwrap()[header::CONTENT_RANGE], "bytes */7");
        assert_eq!(error.status_code().unwrap().as_u16(), 416);
    }

    #[test]
    fn not_modified_names_the_version_that_is_there() {
        let error = from_vault(VaultError::NotModified {
            etag: "a-1".into(),
            modified_ms: 0,
        });
        let headers = error.headers().unwrap();
        assert_eq!(headers[header::ETAG], "\"a-1\"");
        assert_eq!(
            headers[header::LAST_MODIFIED],
            "Thu, 01 Jan 1970 00:00:00 GMT"
        );
        assert_eq!(error.status_code().unwrap().as_u16(), 304);
    }
}
