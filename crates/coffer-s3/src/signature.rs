//! Signatures of requests: what they must cover, and whose key they claim to be made with. What the
//! signer may do is for the vault to say.

pub(crate) mod requirements;

pub(crate) mod claimed_key;
