//! Uploads by an HTML form (Amazon S3 API Reference, "POST Object"): what browsers send, signed
//! ahead for them by a policy that says what they may send.
//!
//! Fields are read up to the file, the policy is checked against them, and the file is streamed on
//! as that of a PUT is. What is stored, and whether it may be, is the vault's to say.

pub(crate) mod fields;

pub(crate) mod policy_json;

pub(crate) mod policy;

pub(crate) mod signed;

pub(crate) mod upload;
