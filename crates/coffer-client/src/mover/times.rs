//! When a file was changed last, as metadata of an object: `mtime`, seconds since 1970 with a
//! fraction, as rclone and s3fs write it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The header.
pub(crate) const MTIME_HEADER: &str = "x-amz-meta-mtime";

/// Its value.
pub(crate) fn mtime_text(at: SystemTime) -> String {
    let (sign, span) = match at.duration_since(UNIX_EPOCH) {
        Ok(after) => ("", after),
        Err(before) => ("-", before.duration()),
    };
    format!("{sign}{}.{:09}", span.as_secs(), span.subsec_nanos())
}

/// Reads it.
pub(super) fn mtime(text: &str) -> Option<SystemTime> {
    let (is_before, text) = match text.trim().strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.trim()),
    };
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = fraction.bytes().all(|byte| byte.is_ascii_digit());
    let nanos = format!("{fraction:0<9}")
        .get(..9)
        .filter(|_| digits)?
        .parse()
        .ok()?;
    let span = Duration::new(seconds.parse().ok()?, nanos);
    if is_before {
        UNIX_EPOCH.checked_sub(span)
    } else {
        UNIX_EPOCH.checked_add(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_files() {
        for (text, nanos) in [
            ("1700000000.123456789", 1_700_000_000_123_456_789_i128),
            ("1700000000", 1_700_000_000_000_000_000),
            ("0.5", 500_000_000),
            ("-1.250000000", -1_250_000_000),
        ] {
            let at = mtime(text).unwrap();
            let found = match at.duration_since(UNIX_EPOCH) {
                Ok(after) => after.as_nanos() as i128,
                Err(before) => -(before.duration().as_nanos() as i128),
            };
            assert_eq!(found, nanos, "{text}");
            assert_eq!(mtime(&mtime_text(at)), Some(at));
        }
        for wrong in ["", "x", "1.x", "1e9", "--1", "1.-5", "99999999999999999999"] {
            assert_eq!(mtime(wrong), None, "{wrong}");
        }
    }
}
