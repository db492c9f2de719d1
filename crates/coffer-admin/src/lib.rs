//! The administration front door: health and metrics for whoever asks, verification for whoever
//! owns the data folder.

#![forbid(unsafe_code)]

pub mod limits;

mod error;

mod status;

mod traffic;

mod requests;

mod process;

mod metrics;

mod report;

mod routes;

mod socket;

pub use crate::error::AdminError;
pub use crate::report::{Report, VerifyRequest};
pub use crate::requests::Requests;
pub use crate::routes::Admin;
pub use crate::socket::{LocalSocket, connect};
pub use crate::status::Status;
pub use crate::traffic::{Traffic, TrafficSnapshot};
