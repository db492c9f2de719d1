//! What several operations read from a request's headers, query or document, and write into
//! answers: names, tags, metadata, encryption, the source of a copy, continuation tokens; and what
//! is refused because it is not implemented. What HTTP itself defines is in `http`.

pub(crate) mod names;

pub(crate) mod continuation_tokens;

pub(crate) mod tags;

pub(crate) mod lock;
pub(crate) mod metadata;

pub(crate) mod customer_key;

pub(crate) mod encryption;

pub(crate) mod acl;

pub(crate) mod expected_owner;

pub(crate) mod copy_source;

pub(crate) mod rename_source;

pub(crate) mod transfer;

pub(crate) mod not_implemented;
