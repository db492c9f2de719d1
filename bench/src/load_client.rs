//! The load client: requests over many connections from one thread, as cheap as they can be made,
//! for its core must not be what is measured. Signing, TLS and the bodies it sends and compares are
//! here as well.

pub mod content;

pub mod sigv4;

pub mod tls;

pub mod tls_records;

pub mod response;

pub mod connection;

pub mod load;
