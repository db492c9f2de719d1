//! Moments as they are typed: everywhere in the same forms, as a moment or as a stretch of time,
//! which counts back or ahead as the option says.

use std::time::SystemTime;

use coffer_admin::from_rfc3339;

use crate::output::printable::{rfc3339, span};

/// A moment as RFC 3339 writes it, or with less: to the minute, without a zone (UTC), the beginning
/// of a day, or so long ago.
pub fn time_or_ago(text: &str) -> Result<String, String> {
    let at = |ago| SystemTime::now().checked_sub(ago);
    match span(text) {
        Some(ago) => at(ago).and_then(rfc3339),
        None => time(text),
    }
    .ok_or_else(|| {
        "write a time such as 2026-11-20, '2026-11-20 18:31', 2026-11-20T18:31:03Z (UTC), or 90m, \
         12h or 7d for so long ago"
            .to_owned()
    })
}

/// The same, or so long from now.
pub fn time_or_from_now(text: &str) -> Result<String, String> {
    let at = |after| SystemTime::now().checked_add(after);
    match span(text) {
        Some(after) => at(after).and_then(rfc3339),
        None => time(text),
    }
    .ok_or_else(|| {
        "write a time from now such as 12h, 30d or 8w, or 2026-12-31, '2026-12-31 18:30', \
         2026-12-31T18:30:00Z (UTC)"
            .to_owned()
    })
}

fn time(text: &str) -> Option<String> {
    let whole = text.replacen(' ', "T", 1);
    let whole = match whole.len() {
        10 => whole + "T00:00:00Z",
        16 => whole + ":00Z",
        19 => whole + "Z",
        _ => whole,
    };
    from_rfc3339(&whole).map(|_| whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_options_take_the_same_forms() {
        for read in [time_or_ago, time_or_from_now] {
            let day = Ok("2026-11-20T00:00:00Z".to_owned());
            assert_eq!(read("2026-11-20"), day);
            let minute = Ok("2026-11-20T18:31:00Z".to_owned());
            assert_eq!(read("2026-11-20 18:31"), minute);
            assert_eq!(read("2026-11-20T18:31"), minute);
            let second = Ok("2026-11-20T18:31:03Z".to_owned());
            assert_eq!(read("2026-11-20 18:31:03"), second);
            let zoned = "2026-11-20T18:31:03+01:00";
            assert_eq!(read(zoned).as_deref(), Ok(zoned));
            for wrong in [
                "",
                "7",
                "-1d",
                "1y",
                "d",
                "yesterday",
                "2026-13-01",
                "never",
            ] {
                assert!(read(wrong).is_err(), "{wrong}");
            }
            assert!(read("99999999999999999999d").is_err());
        }
    }

    #[test]
    fn a_stretch_counts_back_or_ahead() {
        let now = rfc3339(SystemTime::now()).unwrap();
        let (before, after) = (
            time_or_ago("30d").unwrap(),
            time_or_from_now("30d").unwrap(),
        );
        assert!(before < now && now < after, "{before} {now} {after}");
        let hour_ago = from_rfc3339(&time_or_ago("60m").unwrap()).unwrap();
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap();
        let off = now.as_millis() as i64 - 3_600_000 - hour_ago;
        assert!((0..5_000).contains(&off), "{off}");
    }
}
