//! The S3 front door: translates S3 into calls on the vault, and holds no policy.
//!
//! s3s parses requests, checks signatures and writes XML; what stands here maps its operations to
//! the vault's and back, and refuses by name what S3 has and coffer has not. [`service`] makes a
//! [`S3Service`], which hyper serves.

#![forbid(unsafe_code)]

pub mod limits;

mod clock;

mod errors;

mod percent;

mod encoded_words;

mod tokens;

mod names;

mod ranges;

mod conditions;

mod tags;

mod algorithms;

mod checksum_headers;

mod checksums;

mod metadata;

mod encryption;

mod not_implemented;

mod signing;

mod claim;

mod hosts;

mod chunks;

mod counters;

mod room;

mod xml;

mod request_ids;

mod exchange;

mod request_body;

mod caller;

mod documents;

mod uploads;

mod reading;

mod objects;

mod copying;

mod listing;

mod buckets;

mod configuration;

mod attributes;

mod parts;

mod multipart;

mod upload_lists;

mod operations;

mod auth;

mod lenience;

mod answers;

mod service;

#[doc(hidden)]
pub mod fuzzing;

pub use crate::counters::{OPERATIONS, RequestCount, RequestTime, S3Counters};
pub use crate::request_body::{BrokenOff, discard};
pub use crate::service::{AnswerBody, S3Options, S3Service, service};
