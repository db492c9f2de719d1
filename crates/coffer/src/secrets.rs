//! What opens a root key: where a passphrase or a PIN is read from, and which of them a source
//! needs. Keys themselves are in `coffer-keys`.

pub mod passphrase;

pub mod root_source;

pub mod engine_identity;
