//! The keystore: its file of two copies, what is in it, and each change of that. Where root keys
//! come from is in `root`, what is said about an erase afterwards in `receipts`.

pub(crate) mod contents;

pub(crate) mod body;
pub(crate) mod copy;

pub(crate) mod copies;

pub(crate) mod bucket_key;

pub(crate) mod state;

pub(crate) mod rollback;

pub(crate) mod move_root;

pub(crate) mod buckets;
pub(crate) mod levels;
pub(crate) mod rotation;
pub(crate) mod take_back;

pub(crate) mod inspection;
