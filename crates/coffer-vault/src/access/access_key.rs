//! Access keys: what a subject signs with. A subject may have several, so that one can take over
//! from another; each has an id, which is public, and a secret.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use zeroize::Zeroizing;

use crate::limits::{ACCESS_KEY_ID_CHARS, SECRET_ACCESS_KEY_CHARS};

/// How every access key id begins.
const PREFIX: &str = "CF";
/// RFC 4648.
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// What is known of an access key, but for its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessKey {
    /// Its id; public.
    pub id: String,
    /// Whether it is disabled.
    pub is_disabled: bool,
    /// When it expires, in milliseconds since 1970; none: never.
    pub expires_ms: Option<i64>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
}

impl AccessKey {
    /// Whether it counts at a time, in milliseconds since 1970, as far as it alone decides: its
    /// subject may be disabled or expire, too. The time is asked for only if it matters.
    pub(crate) fn counts_at(&self, now_ms: impl FnOnce() -> i64) -> bool {
        let has_expired = |expires_ms| now_ms() >= expires_ms;
        !self.is_disabled && !self.expires_ms.is_some_and(has_expired)
    }

    /// Whether it has expired at a time, in milliseconds since 1970.
    pub(crate) fn has_expired(&self, now_ms: i64) -> bool {
        self.expires_ms
            .is_some_and(|expires_ms| expires_ms <= now_ms)
    }
}

/// An access key that has just been made, with its secret.
#[derive(Clone)]
pub struct NewAccessKey {
    /// The access key.
    pub key: AccessKey,
    /// Its secret, which is given out this once.
    pub secret: Zeroizing<String>,
}

impl NewAccessKey {
    /// One at random, made now.
    pub(crate) fn random(expires_ms: Option<i64>, now_ms: i64) -> Self {
        Self {
            key: AccessKey {
                id: random_access_key_id(),
                is_disabled: false,
                expires_ms,
                created_ms: now_ms,
            },
            secret: random_secret_access_key(),
        }
    }
}

impl fmt::Debug for NewAccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewAccessKey({}, redacted)", self.key.id)
    }
}

/// Whether a text has the form of the ids that are made here.
pub fn looks_like_access_key_id(text: &str) -> bool {
    let tail = text.strip_prefix(PREFIX);
    text.len() == ACCESS_KEY_ID_CHARS
        && tail.is_some_and(|tail| tail.bytes().all(|byte| BASE32.contains(&byte)))
}

/// 20 characters as AWS forms them, of the Base32 alphabet, beginning with `CF`.
pub(crate) fn random_access_key_id() -> String {
    let random: [u8; ACCESS_KEY_ID_CHARS] = coffer_seal::random_bytes();
    let tail = random[PREFIX.len()..]
        .iter()
        .map(|byte| char::from(BASE32[usize::from(byte & 31)]));
    PREFIX.chars().chain(tail).collect()
}

/// 40 characters of Base64 that hold 240 random bits.
pub(crate) fn random_secret_access_key() -> Zeroizing<String> {
    let random: Zeroizing<[u8; SECRET_ACCESS_KEY_CHARS / 4 * 3]> =
        Zeroizing::new(coffer_seal::random_bytes());
    Zeroizing::new(BASE64.encode(*random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_from_names() {
        assert!(looks_like_access_key_id(&random_access_key_id()));
        for other in [
            "",
            "CF",
            "ann",
            "CFAAAAAAAAAAAAAAAAA1",
            "cfaaaaaaaaaaaaaaaaaa",
        ] {
            assert!(!looks_like_access_key_id(other), "{other}");
        }
    }

    #[test]
    fn a_key_counts_until_it_is_disabled_or_expires() {
        let key = NewAccessKey::random(Some(7), 1).key;
        assert!(key.counts_at(|| 6) && !key.has_expired(6));
        assert!(!key.counts_at(|| 7) && key.has_expired(7));
        let disabled = AccessKey {
            is_disabled: true,
            ..key
        };
        assert!(!disabled.counts_at(|| 6));
        assert!(NewAccessKey::random(None, 1).key.counts_at(|| i64::MAX));
    }

    #[test]
    fn a_secret_is_not_shown() {
        let new = NewAccessKey::random(None, 1);
        assert!(!format!("{new:?}").contains(new.secret.as_str()));
    }
}
