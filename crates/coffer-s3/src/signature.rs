//! Signatures of requests and of the chunks of their bodies: what they must cover, whose key they
//! claim to be made with, and whether they are. What the signer may do is for the vault to say.

pub(crate) mod signer;

pub(crate) mod connection_headers;

pub(crate) mod requirements;

pub(crate) mod claimed_key;

pub(crate) mod payload;

pub(crate) mod version_4;

pub(crate) mod version_2;

pub(crate) mod authenticate;
