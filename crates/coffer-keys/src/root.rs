//! Root keys and where they come from: one trait, and a source a file. What a data folder records
//! about its source is here as well; what a root key opens is in `keystore`.

pub(crate) mod source;

pub(crate) mod two_texts;

pub(crate) mod key_file;

pub(crate) mod generation_file;
pub(crate) mod storage;

pub(crate) mod file;
pub(crate) mod keyring;
pub(crate) mod memory;
pub(crate) mod passphrase;
pub(crate) mod token;

pub(crate) mod spec;

pub(crate) mod copies_apart;

pub(crate) mod record;
