//! Signing in with an access key and its secret, for front doors that are not told a signature.

use std::net::IpAddr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use coffer_audit::Outcome;

use crate::actor::Actor;
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::limits::SECRET_ACCESS_KEY_CHARS;
use crate::recording::Facts;
use crate::vault::Vault;

/// The act of signing in.
const SIGN_IN: &str = "server.sign-in";

impl Vault {
    /// The actor whose access key and secret these are; `from` is for the record. It takes as long
    /// whether the access key or the secret is wrong.
    ///
    /// # Errors
    /// [`VaultError::SignInFailed`].
    pub fn sign_in(&self, access_key_id: &str, secret: &str, from: IpAddr) -> Result<Actor> {
        let stored = self.secret_access_key(access_key_id);
        let nobodys = "=".repeat(SECRET_ACCESS_KEY_CHARS);
        let expected = stored.as_ref().map_or(nobodys.as_str(), |known| known);
        let equal = verify_slices_are_equal(expected.as_bytes(), secret.as_bytes()).is_ok();
        match self.subject(access_key_id) {
            Some(subject) if equal => {
                let facts = Facts::from([("from", from.to_string())]);
                self.noted(SIGN_IN, &access_key_id, Outcome::Done, &facts);
                Ok(Actor::Subject(subject))
            }
            _ => {
                add(&self.inner.tally.denied_count, 1);
                // What was sent for an id may be a secret in the wrong place.
                let is_known = self.inner.system.knows_access_key(access_key_id);
                let known = is_known.then_some(access_key_id);
                let facts = Facts::from([("from", from.to_string())]);
                self.denied(SIGN_IN, &known.unwrap_or("unknown"), &facts);
                tracing::warn!(%from, access_key_id = known, "a sign-in failed");
                Err(VaultError::SignInFailed)
            }
        }
    }
}
