//! This machine: what it has, the programs that run on it, and how all that was changed on it is
//! undone.

pub mod processor;

pub mod kernel_crypto;

pub mod machine;

pub mod undo;

pub mod peers;

pub mod programs;

pub(crate) mod cache;

pub(crate) mod note;

pub(crate) mod folder;

pub mod kernel_tls;

pub mod coffer_server;

pub mod leftovers;

pub mod cleaning;
