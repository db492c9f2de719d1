//! Failures to sign in, and what follows from too many of them.

use std::net::IpAddr;

use coffer_vault::SignInFailure;
use s3s::{S3Result, s3_error};

use super::turns::Serving;
use crate::signature::claimed_key::ClaimedKey;

impl Serving {
    /// Refuses without a look what claims to be of an access key by which the address has failed
    /// too often. Ids that no access key has count together, so that inventing them does not help.
    pub(super) fn throttled(&self, claim: &ClaimedKey, peer: Option<IpAddr>) -> S3Result {
        let (true, Some(peer)) = (self.failures.any(), peer) else {
            return Ok(());
        };
        let Some(id) = claim.access_key_id() else {
            return Ok(()); // unsigned: refused once the operation is known
        };
        if self.failures.are_too_many(peer, &self.counted(id)) {
            return Err(s3_error!(
                SlowDown,
                "Too many signatures by this access key were wrong from your address. Please look \
                 at the secret access key, and try again in a minute."
            ));
        }
        Ok(())
    }

    /// The access key that is claimed, as failures are counted.
    fn counted(&self, id: String) -> String {
        match self.at.vault.secret_access_key(&id) {
            Some(_) => id,
            None => String::new(),
        }
    }

    pub(super) fn sign_in_failed(
        &self,
        claim: &ClaimedKey,
        failure: SignInFailure,
        peer: Option<IpAddr>,
        is_signed_in: bool,
    ) {
        let claimed = claim.access_key_id();
        self.at
            .vault
            .sign_in_failed(claimed.as_deref(), failure, peer);
        let is_a_guess = matches!(failure, SignInFailure::Signature | SignInFailure::AccessKey);
        if let Some(peer) = peer
            && is_a_guess
            && !is_signed_in
            && self
                .failures
                .add(peer, &self.counted(claimed.unwrap_or_default()))
        {
            tracing::warn!(
                target: "coffer::s3",
                from = %peer,
                "too many wrong signatures: requests by this access key from there are refused for \
                 a minute"
            );
        }
    }
}
