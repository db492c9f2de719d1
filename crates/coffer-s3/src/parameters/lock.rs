//! Object lock in headers: what is asked for, and what is told.

use coffer_vault::AskedLock;
use coffer_vault::lock::{Lock, Retention, RetentionMode};
use http::HeaderMap;
use s3s::dto::{
    ObjectLockLegalHoldStatus, ObjectLockMode, ObjectLockRetentionMode, Timestamp, TimestampFormat,
};
use s3s::{S3Result, s3_error};

use crate::errors::details::of_argument;
use crate::http::has_any;

/// How the names begin of headers that ask for a lock.
const START: &str = "x-amz-object-lock-";

pub(crate) const MODE: &str = "x-amz-object-lock-mode";
pub(crate) const UNTIL: &str = "x-amz-object-lock-retain-until-date";
pub(crate) const HOLD: &str = "x-amz-object-lock-legal-hold";
pub(crate) const BYPASS: &str = "x-amz-bypass-governance-retention";

/// The lock that a writer asks for.
pub(crate) fn asked(headers: &HeaderMap) -> S3Result<AskedLock> {
    if !has_any(headers, START) {
        return Ok(AskedLock::default());
    }
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let retention = match (text(MODE), text(UNTIL)) {
        (None, None) => None,
        (Some(mode), Some(until)) => Some(Retention {
            mode: mode_of(mode).ok_or_else(|| {
                let error = s3_error!(InvalidArgument, "Unknown wormMode directive.");
                of_argument(error, MODE, mode)
            })?,
            until_ms: until_of(until).map_err(|error| of_argument(error, UNTIL, until))?,
        }),
        _ => {
            return Err(s3_error!(
                InvalidArgument,
                "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be \
                 supplied"
            ));
        }
    };
    let hold = match text(HOLD) {
        None => None,
        Some("ON") => Some(true),
        Some("OFF") => Some(false),
        Some(other) => {
            let error = s3_error!(
                InvalidArgument,
                "Legal Hold must be either of 'ON' or 'OFF'"
            );
            return Err(of_argument(error, HOLD, other));
        }
    };
    Ok(AskedLock { retention, hold })
}

/// Whether retention for governance is to be passed over.
pub(crate) fn bypasses_governance(headers: &HeaderMap) -> bool {
    let value = headers.get(BYPASS);
    value.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// A mode by its name.
pub(crate) fn mode_of(name: &str) -> Option<RetentionMode> {
    match name {
        "GOVERNANCE" => Some(RetentionMode::Governance),
        "COMPLIANCE" => Some(RetentionMode::Compliance),
        _ => None,
    }
}

/// Until when, in milliseconds since 1970.
pub(crate) fn until_of(text: &str) -> S3Result<i64> {
    let time = Timestamp::parse(TimestampFormat::DateTime, text).ok();
    time.and_then(milliseconds).ok_or_else(|| {
        s3_error!(
            InvalidArgument,
            "The retain until date must be provided in ISO 8601 format"
        )
    })
}

/// A time of a request as the vault has it.
pub(crate) fn milliseconds(time: Timestamp) -> Option<i64> {
    let time = time::OffsetDateTime::from(time).unix_timestamp_nanos() / 1_000_000;
    i64::try_from(time).ok()
}

pub(crate) fn mode_name(mode: RetentionMode) -> &'static str {
    match mode {
        RetentionMode::Governance => ObjectLockRetentionMode::GOVERNANCE,
        RetentionMode::Compliance => ObjectLockRetentionMode::COMPLIANCE,
    }
}

/// What GET and HEAD tell of a retention's mode.
pub(crate) fn told_mode(lock: Lock) -> Option<ObjectLockMode> {
    let retention = lock.retention?;
    Some(ObjectLockMode::from_static(mode_name(retention.mode)))
}

/// What is told of a hold: of a version that never had one, nothing.
pub(crate) fn told_hold(lock: Lock) -> Option<ObjectLockLegalHoldStatus> {
    let status = match (lock.has_hold, lock.hold_is_off) {
        (true, _) => ObjectLockLegalHoldStatus::ON,
        (false, true) => ObjectLockLegalHoldStatus::OFF,
        (false, false) => return None,
    };
    Some(ObjectLockLegalHoldStatus::from_static(status))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn of(pairs: &[(&'static str, &'static str)]) -> S3Result<AskedLock> {
        let pairs = pairs.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        asked(&pairs.collect())
    }

    #[test]
    fn a_lock_is_asked_for_whole_or_not_at_all() {
        let date = (UNTIL, "2030-01-02T03:04:05.5Z");
        let whole = of(&[(MODE, "COMPLIANCE"), date, (HOLD, "ON")]).unwrap();
        let retention = Retention {
            mode: RetentionMode::Compliance,
            until_ms: 1_893_553_445_500,
        };
        assert_eq!(whole.retention, Some(retention));
        assert_eq!(whole.hold, Some(true));
        assert_eq!(of(&[]).unwrap(), AskedLock::default());
        assert_eq!(of(&[(HOLD, "OFF")]).unwrap().hold, Some(false));
        for bad in [
            &[(MODE, "COMPLIANCE")][..],
            &[date],
            &[(MODE, "compliance"), date],
            &[(MODE, "GOVERNANCE"), (UNTIL, "tomorrow")],
            &[(HOLD, "on")],
        ] {
            let error = of(bad).unwrap_err();
            assert_eq!(error.code().as_str(), "InvalidArgument", "{bad:?}");
        }
    }
}
