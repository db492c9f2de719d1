//! What is asked for of a subject, checked.

use coffer_durable::now_ms;
use coffer_label::{Clearance, Label};
use coffer_seal::SubjectId;

use crate::access::looks_like_access_key_id;
use crate::error::{Result, VaultError};
use crate::limits::{EXPIRY_MAX_MS, SUBJECT_NAME_BYTES};
use crate::vault::Inner;

impl Inner {
    /// Reads a clearance; levels go before labels, should one be called like one.
    pub(super) fn clearance(&self, text: &str) -> Result<Clearance> {
        let what = "a clearance is a level or LOW..HIGH, such as default..secret, of levels that \
                    there are; or a label or range such as s0-s2:c1";
        let invalid = |_| VaultError::Invalid { what };
        let label = |text: &str| -> Result<Label> {
            match self.keystore.level_named(text) {
                Some(level) => Ok(level.label),
                None => text.parse().map_err(invalid),
            }
        };
        if let Some((low, high)) = text.split_once("..") {
            let what = "the upper end of a clearance must dominate the lower: have its rank or a \
                        higher one, and all of its categories";
            let (low, high) = (label(low)?, label(high)?);
            return Clearance::new(low, high).map_err(|_| VaultError::Invalid { what });
        }
        match self.keystore.level_named(text) {
            Some(level) => Clearance::new(level.label, level.label).map_err(invalid),
            None => text.parse().map_err(invalid),
        }
    }
}

pub(super) fn check_trust(clearance: &Clearance, is_trusted: bool) -> Result<()> {
    if is_trusted && clearance.low() == clearance.high() {
        Err(VaultError::Invalid {
            what: "a clearance of one level needs no trust: only a range LOW..HIGH can be trusted",
        })
    } else {
        Ok(())
    }
}

pub(super) fn check_name(name: &str) -> Result<()> {
    // Subjects are asked for by any of the three.
    if SubjectId::from_hex(name).is_some() || looks_like_access_key_id(name) {
        let what = "a subject's name can't look like the id of a subject or of an access key";
        return Err(VaultError::Invalid { what });
    }
    let alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    let good = bytes.len() <= SUBJECT_NAME_BYTES
        && alphanumeric(bytes.first())
        && alphanumeric(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._@-".contains(byte));
    if good {
        Ok(())
    } else {
        Err(VaultError::Invalid {
            what: "a subject's name is 1 to 63 letters and digits, with . _ @ and - between them",
        })
    }
}

pub(in crate::admin) fn check_expiry(expires_ms: Option<i64>) -> Result<()> {
    let what = match expires_ms {
        Some(expires_ms) if expires_ms <= now_ms() => {
            "a subject or an access key can't expire in the past: disable it"
        }
        Some(expires_ms) if expires_ms > EXPIRY_MAX_MS => {
            "the end of the year 9999 is the last moment at which anything expires"
        }
        _ => return Ok(()),
    };
    Err(VaultError::Invalid { what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_subjects() {
        for good in ["a", "Ann.Lee@example.org", "ci-42_x", &"n".repeat(63)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-a",
            "a.",
            "a b",
            "a/b",
            "ä",
            "a\n",
            &"n".repeat(64),
            &"a1".repeat(16),
            "CFAAAAAAAAAAAAAAAAAA",
        ] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
