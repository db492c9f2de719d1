//! Times as HTTP, S3 and the vault write them.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use s3s::dto::{Timestamp, TimestampFormat};

/// A time of the vault for an answer.
pub(crate) fn timestamp(unix_ms: i64) -> Timestamp {
    Timestamp::from(system_time(unix_ms))
}

/// A time of the vault as documents tell it: S3 knows its objects' times in whole seconds, as
/// headers and conditions have them, and writes them with three zeros behind.
pub(crate) fn in_seconds(unix_ms: i64) -> Timestamp {
    timestamp(unix_ms.div_euclid(1_000) * 1_000)
}

/// Times of the vault as answers tell them, one after the other. Most rows of a page are of few
/// days, so that the calendar is asked for each of them once.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// Days since 1970, and what all times of that day begin with.
    day: Option<(i64, String)>,
}

impl Times {
    /// Writes a time as [`in_seconds`] is written in XML.
    pub(crate) fn write(&mut self, written: &mut String, unix_ms: i64) {
        const DAY_MS: i64 = 24 * 60 * 60 * 1000;
        let day = unix_ms.div_euclid(DAY_MS);
        match &self.day {
            Some((known, begin)) if *known == day => written.push_str(begin),
            _ => {
                let begin = date(day * DAY_MS);
                written.push_str(&begin);
                self.day = Some((day, begin));
            }
        }
        let ms = unix_ms.rem_euclid(DAY_MS);
        let mut digits = *b"00:00:00.000Z";
        let places = [
            (0, 36_000_000, 10),
            (1, 3_600_000, 10),
            (3, 600_000, 6),
            (4, 60_000, 10),
            (6, 10_000, 6),
            (7, 1_000, 10),
        ];
        for (place, unit, base) in places {
            digits[place] += (ms / unit % base) as u8;
        }
        written.extend(digits.map(char::from));
    }
}

/// The date of a time, with the `T` behind it.
fn date(unix_ms: i64) -> String {
    let mut text = Vec::new();
    // Writing to a Vec fails where the calendar ends only, and answers tell of no such times.
    let _ = timestamp(unix_ms).format(TimestampFormat::DateTime, &mut text);
    let end = text.iter().position(|byte| *byte == b'T');
    text.truncate(end.map_or(0, |at| at + 1));
    String::from_utf8(text).unwrap_or_default()
}

/// A time of the vault as an HTTP date, as in `Last-Modified`.
pub(crate) fn http_date(unix_ms: i64) -> String {
    httpdate::fmt_http_date(system_time(unix_ms.max(0)))
}

/// An HTTP date in any of the three forms of RFC 9110, section 5.6.7; a fraction of its second is
/// dropped.
pub(crate) fn parse_http_date(text: &str) -> Option<i64> {
    let time = httpdate::parse_http_date(&without_fraction(text.trim())).ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// A date without the fraction of a second, which HTTP does not have, and the SDK for Rust writes.
pub(crate) fn without_fraction(date: &str) -> Cow<'_, str> {
    let parts = date
        .strip_suffix(" GMT")
        .and_then(|time| time.rsplit_once('.'));
    let is_fraction = |digits: &str| {
        (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    match parts {
        Some((seconds, digits)) if is_fraction(digits) => format!("{seconds} GMT").into(),
        _ => date.into(),
    }
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
    fn times_are_written_as_s3s_writes_them() {
        let mut times = Times::default();
        let of_days = [0, 951_782_399_999, 951_782_400_000, 1_767_225_599_990, -1];
        for unix_ms in of_days
            .into_iter()
            .chain((0..100).map(|i| i * 1_234_567_891))
        {
            let mut written = String::new();
            times.write(&mut written, unix_ms);
            let mut known = Vec::new();
            let format = TimestampFormat::DateTime;
            in_seconds(unix_ms).format(format, &mut known).unwrap();
            assert_eq!(written.as_bytes(), known, "{unix_ms}");
        }
    }

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
        for date in [
            "Sun, 06 Nov 1994 08:49:37.5 GMT",
            "Sun, 06 Nov 1994 08:49:37.999 GMT",
            "Sun, 06 Nov 1994 08:49:37.123456789 GMT",
        ] {
            assert_eq!(parse_http_date(date), Some(784_111_777_000), "{date}");
        }
        for none in [
            "yesterday",
            "Sun, 06 Nov 1994 08:49:37. GMT",
            "Sun, 06 Nov 1994 08:49:37.x GMT",
            "Sun, 06 Nov 1994 08:49:37,5 GMT",
            "Sun, 06 Nov 1994 08:49.5 GMT",
            "Sun, 06 Nov 1994 08:49:37.1234567890 GMT",
        ] {
            assert_eq!(parse_http_date(none), None, "{none}");
        }
        assert_eq!(http_date(784_111_777_999), dates[0]);
    }
}
