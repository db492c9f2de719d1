//! Text for a terminal.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A name with its control characters escaped, so that no stored name can move a terminal's
/// cursor or fake a line, nor turn the order around in which it is read.
pub fn printable(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_control() || is_of_direction(character) {
            text.extend(character.escape_default())
        } else {
            text.push(character)
        }
    }
    text
}

/// Whether a character is a mark of the bidirectional algorithm (UAX #9, section 2).
fn is_of_direction(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// A number of bytes for people: three digits or so, in decimal units.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    // 999.95 would round up to 1000.0.
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Milliseconds since 1970 as date and time, UTC.
pub fn date(modified_ms: i64) -> String {
    let Ok(time) = time::OffsetDateTime::from_unix_timestamp(modified_ms.div_euclid(1000)) else {
        return "?".to_owned();
    };
    let (year, month, day) = time.to_calendar_date();
    let (hour, minute, second) = time.to_hms();
    let month = u8::from(month);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// A stretch of time as it is typed: a number with s, m, h, d or w behind it.
pub fn span(text: &str) -> Option<Duration> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(seconds).map(Duration::from_secs)
}

/// A stretch of time in its largest unit up to days, rounded down, as [`span`] reads it.
pub fn age(stretch: Duration) -> String {
    let seconds = stretch.as_secs();
    match seconds {
        86_400.. => format!("{}d", seconds / 86_400),
        3600.. => format!("{}h", seconds / 3600),
        60.. => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// A moment as RFC 3339 writes it, to the second, UTC; none beyond the year 9999.
pub fn rfc3339(at: SystemTime) -> Option<String> {
    let since = at.duration_since(UNIX_EPOCH).ok()?;
    let text = date(i64::try_from(since.as_millis()).ok()?);
    let moment = text.replace(' ', "T") + "Z";
    (text.len() == "2026-12-31 00:00:00".len()).then_some(moment)
}

/// A whole number of bytes, of which the unit may be thousands or 1,024s.
pub fn bytes(text: &str) -> Result<u64, String> {
    let advice = || "write a whole number of bytes such as 10GB, 512MiB or 1000000".to_owned();
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(advice()),
    };
    let number: u64 = number.parse().map_err(|_| advice())?;
    number.checked_mul(factor).ok_or_else(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for text in ["0s", "59s", "1m", "59m", "1h", "23h", "1d", "700d"] {
            assert_eq!(age(span(text).unwrap()), text);
        }
        assert_eq!(age(Duration::from_millis(7_199_999)), "1h");
    }

    #[test]
    fn names() {
        assert_eq!(printable("a/ü \\ \"b\""), "a/ü \\ \"b\"");
        assert_eq!(printable("a\nb\u{1b}[2J\u{9b}"), r"a\nb\u{1b}[2J\u{9b}");
        let marks = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}";
        let escaped = r"\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}";
        assert_eq!(printable(marks), escaped);
        // Letters of scripts that are read from the right stay.
        assert_eq!(
            printable("\u{5d0}\u{200d}\u{2029}"),
            "\u{5d0}\u{200d}\u{2029}"
        );
    }

    #[test]
    fn sizes() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (5 << 30, "5.4 GB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn bytes_are_whole_numbers_of_known_units() {
        let cases = [
            ("0", 0),
            ("17", 17),
            ("10GB", 10_000_000_000),
            ("512 MiB", 512 << 20),
            ("2tib", 2 << 40),
        ];
        for (text, expected) in cases {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for wrong in ["", "GB", "1.5GB", "-1", "10 apples", "99999999999999TB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01 00:00:00");
        assert_eq!(date(1_709_210_096_789), "2024-02-29 12:34:56");
        assert_eq!(date(-1), "1969-12-31 23:59:59");
        assert_eq!(date(i64::MAX), "?");
    }
}
