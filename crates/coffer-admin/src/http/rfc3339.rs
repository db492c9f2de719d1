//! Moments as the API writes them.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since 1970 as RFC 3339 in UTC: `2026-11-20T18:31:03.042Z`.
pub(crate) fn rfc3339(at_ms: i64) -> String {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at_ms) * 1_000_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, time) = (at.date(), at.time());
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.millisecond()
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
    fn moments() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_709_210_096_789), "2024-02-29T12:34:56.789Z");
    }
    #[test]
    fn and_back() {
        assert_eq!(
            from_rfc3339("2024-02-29T12:34:56.789Z"),
            Some(1_709_210_096_789)
        );
        assert_eq!(from_rfc3339("1970-01-01T01:00:00+01:00"), Some(0));
        for wrong in ["", "2024-02-30T00:00:00Z", "2024-02-29", "never"] {
            assert_eq!(from_rfc3339(wrong), None, "{wrong}");
        }
    }
}
