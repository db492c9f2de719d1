//! Points in time, as policies write them.
//!
//! *IAM User Guide*, Condition operators, Date: the W3C's profile of ISO 8601
//! (`www.w3.org/TR/NOTE-datetime`), or seconds since 1970.

/// A point in time: seconds since 1970 in UTC, without leap seconds, and billionths of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    billionths: u32,
}

impl Timestamp {
    /// So many seconds after the beginning of 1970.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self {
            seconds,
            billionths: 0,
        }
    }

    /// Whole seconds since the beginning of 1970.
    pub const fn seconds(self) -> i64 {
        self.seconds
    }

    /// Reads `2026`, `2026-11`, `2026-11-23`, `2026-11-23T15:04Z`, `2026-11-23T15:04:05.678+01:00`,
    /// or seconds since 1970, which have other than four digits. Days begin in UTC.
    pub fn parse(text: &str) -> Option<Self> {
        let is_count = text.len() != 4 && text.len() <= 18;
        if is_count && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(Self::from_seconds);
        }
        let (date, time) = match text.split_once('T') {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let mut parts = date.split('-');
        let year = digits(parts.next()?, 4)?;
        let month = parts.next().map_or(Some(1), |part| digits(part, 2))?;
        let day = parts.next().map_or(Some(1), |part| digits(part, 2))?;
        let is_day = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
        if parts.next().is_some() || !is_day || (time.is_some() && date.len() != 10) {
            return None;
        }
        let midnight = days_since_1970(year, month, day) * 86_400;
        let (seconds, billionths) = time.map_or(Some((0, 0)), time_of_day)?;
        Some(Self {
            seconds: midnight + seconds,
            billionths,
        })
    }
}

/// Seconds since midnight in UTC, which may be in the day before or after, and billionths.
fn time_of_day(text: &str) -> Option<(i64, u32)> {
    let zone_at = text.find(['Z', '+', '-'])?;
    let (clock, zone) = text.split_at(zone_at);
    let ahead_seconds = match (zone.as_bytes()[0], &zone[1..]) {
        (b'Z', "") => 0,
        (b'+', offset) => minutes(offset)? * 60,
        (b'-', offset) => -minutes(offset)? * 60,
        _ => return None,
    };
    let (to_minutes, rest) = clock.split_at_checked(5)?;
    let (seconds, billionths) = match rest.strip_prefix(':') {
        Some(rest) => {
            let (seconds, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
            (digits(seconds, 2)?, billionths(fraction)?)
        }
        None if rest.is_empty() => (0, 0),
        None => return None,
    };
    let is_time = seconds < 60;
    is_time.then_some(())?;
    Some((
        minutes(to_minutes)? * 60 + seconds - ahead_seconds,
        billionths,
    ))
}

/// Minutes of `hh:mm`.
fn minutes(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}

fn billionths(fraction: &str) -> Option<u32> {
    let is_fraction = (1..=9).contains(&fraction.len()) && all_digits(fraction);
    is_fraction.then(|| format!("{fraction:0<9}").parse().ok())?
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && all_digits(text);
    is_number.then(|| text.parse().ok())?
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the beginning of 1970 in the Gregorian calendar, also where it is counted back.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Leap days of the years before this one; year 0 was one, too.
    let leap_days = |year: i64| {
        let last = year - 1;
        last.div_euclid(4) - last.div_euclid(100) + last.div_euclid(400)
    };
    let years = (year - 1970) * 365 + leap_days(year) - leap_days(1970);
    let months: i64 = (1..month).map(|month| days_of(year, month)).sum();
    years + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_the_w3c_writes_them() {
        for (text, seconds) in [
            ("1970", 0),
            ("1970-01-02", 86_400),
            ("2000-03", 951_868_800),
            ("2026-11-23T15:04:05Z", 1_795_446_245),
            ("2026-11-23T16:04:05+01:00", 1_795_446_245),
            ("2026-11-23T00:04-15:00", 1_795_446_240),
            ("1969-12-31T23:59:59Z", -1),
            ("1795446245", 1_795_446_245),
            ("0", 0),
        ] {
            let found = Timestamp::parse(text).map(Timestamp::seconds);
            assert_eq!(found, Some(seconds), "{text}");
        }
        let late = Timestamp::parse("2026-11-23T15:04:05.5Z").unwrap();
        assert!(late > Timestamp::from_seconds(1_795_446_245));
        assert!(late < Timestamp::from_seconds(1_795_446_246));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "x",
            "2026-13",
            "2026-02-29",
            "2100-02-29",
            "2026-11-23T15:04",
            "2026-11-23T15:04:05",
            "2026-11-23T24:00Z",
            "2026-11-23T15:60Z",
            "2026-11-23T15:04:60Z",
            "2026-11T15:04Z",
            "2026-11-23T15:04Zz",
            "2026-11-23T1504Z",
            "26-11-23",
            "-1",
            "2026-11-23T15:04:05.Z",
            "2026-11-23T15:04+25:00",
            "2026-11-23T",
            "2026-11-23-01",
            "2026-1-1",
            "2026-11-23T15:0äZ",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
        assert!(Timestamp::parse("2024-02-29").is_some());
        assert_eq!(Timestamp::parse(&"9".repeat(30)), None);
    }
}
