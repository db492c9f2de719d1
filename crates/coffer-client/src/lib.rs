//! The client side: reaching a server over TLS or its local socket, signing requests, speaking S3,
//! moving files, moving in from other servers, and asking a server's administration.
//!
//! Used by the commands that move files or ask a running server, by `coffer prove`, and by the
//! bench. What the answers of the administration mean is in `coffer-admin`; nothing of the server
//! is here.

#![forbid(unsafe_code)]

pub mod limits;

mod error;

mod address;

mod profiles;

pub mod signing;

pub mod local_socket;

mod https;

mod http1;

mod administration;

mod lines;

pub mod sealed;

pub mod s3;

pub mod mover;

pub mod migrate;

#[doc(hidden)]
pub mod fuzzing;

pub use crate::address::{has_port, has_secret, is_address, looks_like_key, without_secret};
pub use crate::administration::{AdminClient, segment};
pub use crate::error::ClientError;
pub use crate::https::{HttpsServer, KEY_EXCHANGES, connector};
pub use crate::lines::Lines;
pub use crate::profiles::{Credentials, Settings, Wanted};
