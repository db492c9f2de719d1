//! The server's side of TLS: its settings, its certificate, and the local authority that makes one
//! where the operator has none. Handshakes are in [`crate::connection`].

pub mod server_names;

pub mod folder;

pub mod authority;

pub mod expiry;

pub mod certificates;

pub mod damage;

pub mod server_config;
