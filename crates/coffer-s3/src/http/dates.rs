//! Times as HTTP, S3 and the vault write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use s3s::dto::Timestamp;

/// A time of the vault for an answer.
pub(crate) fn timestamp(unix_ms: i64) -> Timestamp {
    Timestamp::from(system_time(unix_ms))
}

/// A time of the vault as an HTTP date, as in `Last-Modified`.
pub(crate) fn http_date(unix_ms: i64) -> String {
    httpdate::fmt_http_date(system_time(unix_ms.max(0)))
}

/// An HTTP date in any of the three forms of RFC 9110, section 5.6.7.
pub(crate) fn parse_http_date(text: &str) -> Option<i64> {
    let time = httpdate::parse_http_date(text.trim()).ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

fn system_time(unix_ms: i64) -> SystemTime {
    let distance = Duration::from_millis(unix_ms.unsigned_abs());
    let time = if unix_ms < 0 {
        UNIX_EPOCH.checked_sub(distance)
    } else {
        UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_forms_of_http_dates_are_read() {
        let dates = [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ];
        for date in dates {
            assert_eq!(parse_http_date(date), Some(784_111_777_000), "{date}");
        }
        assert_eq!(parse_http_date("yesterday"), None);
        assert_eq!(http_date(784_111_777_999), dates[0]);
    }
}
