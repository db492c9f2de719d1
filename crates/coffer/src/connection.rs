//! Connections: who may hold one, what stands between a socket and HTTP, and when it must end.
//!
//! ```text
//! hyper             HTTP/1.1, requests counted by `tracked_service`
//! head::refused     heads that are too long for HTTP, refused in S3's words
//! coalesce_reads    up to 64 KiB a read, from several records
//! quanta            after a MiB read or written, others go first; small answers go out together
//! rustls            the records of TLS
//! read_ahead        32 KiB of ciphertext a read, in a pooled buffer
//! slow_peer         a peer that takes bytes too slowly is cut off
//! cutoff_socket     when what it carries was erased, throws away what the kernel still holds
//! TCP               accepted by `tls_listener`, in one of its `slots`; a proxy is heard out first
//! ```
//!
//! What is answered on a connection is decided in [`crate::serve`].

mod forward_writes;

pub mod minimum_rate;

pub mod activity;

pub mod head;

pub mod slots;

pub mod cutoff_socket;

pub mod slow_peer;

pub mod read_ahead;

pub mod quanta;

pub mod coalesce_reads;

pub mod tracked_service;

pub mod proxies;

pub mod shutdown;

pub mod plain_http;

pub mod tls_listener;

pub mod listen;
