//! When something expires, as it is typed.

use crate::output::moments::time_or_from_now;

/// A moment, or `never`.
pub(super) fn expiry_or_never(text: &str) -> Result<String, String> {
    match text {
        "never" => Ok(text.to_owned()),
        text => expiry(text),
    }
}

/// A moment, or how long from now.
pub(super) fn expiry(text: &str) -> Result<String, String> {
    time_or_from_now(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiries() {
        assert_eq!(expiry("2099-12-31").unwrap(), "2099-12-31T00:00:00Z");
        assert!(expiry("30d").unwrap().ends_with('Z'));
        assert_eq!(expiry_or_never("never").unwrap(), "never");
        for wrong in ["", "30", "d", "-1d", "1y", "99999999999999999999d", "never"] {
            assert!(expiry(wrong).is_err(), "{wrong}");
        }
    }
}
