//! The account: what a server is in the eyes of a policy.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::limits::ACCOUNT_DIGITS;

/// Not an id: an account's has 12 digits, a subject's 16 to 128 letters and digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an account's id has 12 digits, a subject's 16 to 128 letters and digits")]
pub struct NotAnId;

/// The id of an account: 12 digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountId(String);

impl AccountId {
    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AccountId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let is_id = text.len() == ACCOUNT_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
        is_id.then(|| Self(text.to_owned())).ok_or(NotAnId)
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
