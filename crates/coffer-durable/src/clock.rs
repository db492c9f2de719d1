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

/// A stretch of time in the largest unit that it is a whole number of: `36 hours`.
pub fn stretch_exactly(seconds: u64) -> String {
    in_unit(seconds, |unit| seconds.is_multiple_of(unit))
}

/// A stretch of time in its largest unit, rounded down: `1 day`.
pub fn stretch_roughly(seconds: u64) -> String {
    in_unit(seconds, |_| true)
}

fn in_unit(seconds: u64, is_fit: impl Fn(u64) -> bool) -> String {
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute")];
    let found = units
        .iter()
        .find(|(unit, _)| seconds >= *unit && is_fit(*unit));
    let (unit, name) = found.unwrap_or(&(1, "second"));
    let count = seconds / unit;
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_of_time_are_told_exactly_and_roughly() {
        for (seconds, exactly, roughly) in [
            (30 * 86_400, "30 days", "30 days"),
            (86_400, "1 day", "1 day"),
            (36 * 3_600, "36 hours", "1 day"),
            (90 * 60, "90 minutes", "1 hour"),
            (61, "61 seconds", "1 minute"),
            (1, "1 second", "1 second"),
            (0, "0 seconds", "0 seconds"),
        ] {
            assert_eq!(stretch_exactly(seconds), exactly);
            assert_eq!(stretch_roughly(seconds), roughly);
        }
    }

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
