//! The administration front door: health, metrics, verify.

#![forbid(unsafe_code)]

mod traffic;

pub use crate::traffic::{Traffic, TrafficSnapshot};
