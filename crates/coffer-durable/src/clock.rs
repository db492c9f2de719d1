//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since 1970; 0 on a clock that is set before.
pub fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
}

/// As RFC 3339 writes it, in UTC: `2026-11-20T18:31:03.042Z`. Times beyond the year 9999 become
/// that of 1970.
pub fn rfc3339(at_ms: i64) -> String {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at_ms) * 1_000_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.millisecond()
    )
}

/// Milliseconds since 1970 of a text of RFC 3339, in whatever time zone.
pub fn from_rfc3339(text: &str) -> Option<i64> {
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_in_the_rfc() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_709_251_199_042), "2024-02-29T23:59:59.042Z");
        assert_eq!(rfc3339(i64::MAX), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn and_read_again() {
        assert_eq!(
            from_rfc3339("2024-02-29T23:59:59.042Z"),
            Some(1_709_251_199_042)
        );
        assert_eq!(from_rfc3339("1970-01-01T01:00:00+01:00"), Some(0));
        for wrong in ["", "2024-02-30T00:00:00Z", "2024-02-29", "never"] {
            assert_eq!(from_rfc3339(wrong), None, "{wrong}");
        }
    }
}
