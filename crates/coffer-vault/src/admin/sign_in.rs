//! Signing in: with an access key and its secret, for front doors that are not told a signature;
//! and what is recorded of those who fail, however they tried.

use std::net::IpAddr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use coffer_audit::Outcome;
use coffer_durable::now_ms;

use crate::access::{Act, Actor, Subject};
use crate::audit::{Facts, event};
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::limits::{CLAIMED_ID_MAX_CHARS, SECRET_ACCESS_KEY_CHARS};
use crate::vault::Vault;

/// The act of signing in.
const SIGN_IN: Act = Act::SignIn;

/// Who claims an access key that there is not, in records.
const UNKNOWN: &str = "unknown";

/// Why a sign-in failed, as the front door found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInFailure {
    /// The secret is not that of the access key.
    Secret,
    /// The signature is not one by the access key's secret.
    Signature,
    /// The signature does not cover what it must, or has expired.
    Uncovered,
    /// The signature's time is not the server's.
    Clock,
    /// There is no signature.
    Unsigned,
    /// There is no such access key, or it does not count.
    AccessKey,
}

impl SignInFailure {
    fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "wrong secret",
            Self::Signature => "wrong signature",
            Self::Uncovered => "expired or incomplete signature",
            Self::Clock => "wrong time",
            Self::Unsigned => "unsigned",
            Self::AccessKey => "no such access key",
        }
    }
}

impl Vault {
    /// The actor whose access key and secret these are; `from` is for the record. It takes as long
    /// whether the access key or the secret is wrong. What it asks for ends with its cutoff.
    ///
    /// # Errors
    /// [`VaultError::SignInFailed`]; [`VaultError::AccessDenied`] when the access key just ended.
    pub fn sign_in(&self, access_key_id: &str, secret: &str, from: IpAddr) -> Result<Actor> {
        let stored = self.secret_access_key(access_key_id);
        let no_secret = "=".repeat(SECRET_ACCESS_KEY_CHARS);
        let expected = stored.as_ref().map_or(no_secret.as_str(), |known| known);
        let equal = verify_slices_are_equal(expected.as_bytes(), secret.as_bytes()).is_ok();
        match self.subject(access_key_id) {
            Some(subject) if equal => {
                subject.cutoff.note_caller()?;
                let facts = Facts::from([("from", from.to_string())]);
                self.noted(SIGN_IN, &*subject, Outcome::Done, &facts);
                Ok(Actor::Subject(subject))
            }
            _ => {
                self.sign_in_failed(Some(access_key_id), SignInFailure::Secret, Some(from));
                Err(VaultError::SignInFailed)
            }
        }
    }

    /// Notes a failed sign-in with this access key, as it was claimed; `from` is the
    /// address, where it is known.
    ///
    /// The record names the access key if there is one of this id. Of others the first few within a
    /// minute are told as they were claimed, and all further ones are counted together, so that
    /// inventing ids fills neither the memory nor the log.
    pub fn sign_in_failed(
        &self,
        claimed: Option<&str>,
        failure: SignInFailure,
        from: Option<IpAddr>,
    ) {
        add(&self.inner.tally.denied_count, 1);
        let subject = claimed.and_then(|id| self.inner.system.subject_of_key(id));
        let reason = match &subject {
            None if claimed.is_some() => SignInFailure::AccessKey.as_str(),
            Some(subject) if is_disabled(subject) => "disabled access key",
            Some(subject) if !subject.counts_at(now_ms) => "expired access key",
            _ => failure.as_str(),
        };
        let known = subject.as_ref().and_then(|subject| subject.access_key_id());
        let facts = Facts::from([("reason", reason.to_owned())]);
        let mut event = match &subject {
            Some(subject) => event(SIGN_IN, &**subject, Outcome::Denied, &facts),
            None => event(SIGN_IN, &UNKNOWN, Outcome::Denied, &facts),
        };
        if let Some(from) = from {
            event = event.with("from", from);
        }
        let from = from.map(tracing::field::display);
        // Front doors slow down those who guess secrets; signatures can be wrong at any rate.
        match failure {
            SignInFailure::Secret => {
                tracing::warn!(from, access_key_id = known, reason, "a sign-in failed");
            }
            _ => tracing::debug!(
                from,
                access_key_id = known,
                reason,
                "a signature was refused"
            ),
        }
        match claimed.filter(|id| known.is_none() && is_shaped(id)) {
            Some(id) => self.inner.audit.note_stranger(event, id),
            None => self.inner.audit.note_repeated(event),
        }
    }
}

/// Whether an access key is disabled, alone or with its subject.
fn is_disabled(holder: &Subject) -> bool {
    let by_itself = holder
        .access_key
        .as_ref()
        .is_some_and(|key| key.is_disabled);
    holder.is_disabled || by_itself
}

/// Whether an id that no subject has looks like one: what was sent for it may be a secret in the
/// wrong place, and those are longer and have other characters.
fn is_shaped(id: &str) -> bool {
    let is_of_ids = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    id.len() <= CLAIMED_ID_MAX_CHARS && !id.is_empty() && id.bytes().all(is_of_ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{random_access_key_id, random_secret_access_key};

    #[test]
    fn a_secret_is_never_taken_for_an_id() {
        assert!(is_shaped(&random_access_key_id()));
        assert!(is_shaped("AKIAIOSFODNN7EXAMPLE"));
        let upper_case = random_secret_access_key().to_uppercase();
        for other in ["", "a", "A B", "\u{c4}", "A\n", &upper_case] {
            assert!(!is_shaped(other), "{other:?}");
        }
    }
}
