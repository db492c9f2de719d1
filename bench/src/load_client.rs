//! The load client: requests over many connections from one thread, as cheap as they can be made,
//! for its core must not be what is measured. TLS and the bodies it sends and compares are
//! here as well.

pub mod content;

pub mod tls_records;

pub mod response;

pub mod connection;

pub mod load;

pub mod waiting;

pub mod plain;

pub mod sealed;
