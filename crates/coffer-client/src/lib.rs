//! The client side: reaching a server over TLS or its local socket, signing requests of S3, and
//! asking its administration.
//!
//! Used by the commands that ask a running server, by `coffer prove`, and by the bench. What the
//! answers of the administration mean is in `coffer-admin`; nothing of the server is here.

#![forbid(unsafe_code)]

pub mod limits;

mod error;

mod credentials;

pub mod signing;

pub mod local_socket;

mod https;

mod http1;

mod administration;

mod lines;

mod s3;

pub mod sealed;

pub use crate::administration::{AdminClient, segment};
pub use crate::credentials::Credentials;
pub use crate::error::ClientError;
pub use crate::https::{HttpsServer, KEY_EXCHANGES, connector};
pub use crate::lines::Lines;
pub use crate::s3::{S3Answer, S3Client};
