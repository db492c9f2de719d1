//! When something expires, as it is typed.

use std::time::SystemTime;

use crate::output::printable::{rfc3339, span};

/// A moment, or `never`.
pub(super) fn expiry_or_never(text: &str) -> Result<String, String> {
    match text {
        "never" => Ok(text.to_owned()),
        text => expiry(text),
    }
}

/// `30d` from now as a moment; a moment stays what it is, for the server to judge.
pub(super) fn expiry(text: &str) -> Result<String, String> {
    let advice = "write a time from now such as 12h, 30d or 8w, or 2026-12-31T00:00:00Z";
    if text.contains('T') {
        return Ok(text.to_owned());
    }
    let at = span(text).and_then(|after| SystemTime::now().checked_add(after));
    at.and_then(rfc3339).ok_or_else(|| advice.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiries() {
        let soon = expiry("30d").unwrap();
        let now = rfc3339(SystemTime::now()).unwrap();
        assert!(soon > now && soon.ends_with('Z'), "{soon}");
        let moment = "2026-12-31T00:00:00+01:00";
        assert_eq!(expiry(moment).unwrap(), moment);
        assert_eq!(expiry_or_never("never").unwrap(), "never");
        for wrong in ["", "30", "d", "-1d", "1y", "99999999999999999999d", "never"] {
            assert!(expiry(wrong).is_err(), "{wrong}");
        }
    }
}
