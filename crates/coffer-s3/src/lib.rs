//! The S3 front door: translates S3 into calls on the vault, and holds no policy.
//!
//! s3s parses requests, checks signatures and writes XML; what stands here maps its operations to
//! the vault's and back, and refuses by name what S3 has and coffer has not. [`service`] makes a
//! [`S3Service`], which hyper serves.

#![forbid(unsafe_code)]

pub mod limits;

mod counters;

mod http;

mod errors;

mod checksums;

mod parameters;

mod signature;

mod request;

mod around_s3s;

mod cors;

mod lifecycle;

mod forms;

mod transfers;

mod operations;

mod response_body;

mod service;

#[doc(hidden)]
pub mod fuzzing;

pub use crate::counters::{OPERATIONS, RequestCount, RequestTime, S3Counters, TIME_BOUNDS};
pub use crate::request::body::BrokenOff;
pub use crate::request::drain::{discard, waits_to_send};
pub use crate::request::head_size::unread_head;
pub use crate::response_body::ResponseBody;
pub use crate::service::{Claim, S3Options, S3Service, service};
pub use crate::signature::claimed_key::claimed_access_key;
pub use crate::signature::connection_headers::ConnectionHeaders;
pub use s3s::HttpError;
