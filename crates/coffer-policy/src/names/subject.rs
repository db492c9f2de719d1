//! The subject: who a principal is, whatever its name.

use std::fmt;
use std::str::FromStr;

use super::account::NotAnId;
use crate::limits::{SUBJECT_ID_MAX_CHARS, SUBJECT_ID_MIN_CHARS};

/// The id of a subject: 16 to 128 letters and digits, as AWS's unique ids of principals are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubjectId(String);

impl SubjectId {
    /// The letters and digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SubjectId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let is_id = (SUBJECT_ID_MIN_CHARS..=SUBJECT_ID_MAX_CHARS).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_id.then(|| Self(text.to_owned())).ok_or(NotAnId)
    }
}

impl fmt::Display for SubjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::AccountId;

    #[test]
    fn ids_are_told_apart() {
        assert!("111122223333".parse::<AccountId>().is_ok());
        assert!("111122223333".parse::<SubjectId>().is_err());
        assert!("AKIAEXAMPLEEXAMPLE01".parse::<SubjectId>().is_ok());
        for text in ["", "11112222333", "11112222333a", "1111222233334"] {
            assert_eq!(text.parse::<AccountId>(), Err(NotAnId), "{text}");
        }
        for text in ["", "short", "with-a-dash-in-it-", "with space in it."] {
            assert_eq!(text.parse::<SubjectId>(), Err(NotAnId), "{text}");
        }
    }
}
