//! S3 as a client sees it: signed requests through the whole front door, to a vault on disk.

// Everything here is a test, also what `#[test]` functions call.
#![allow(clippy::unwrap_used)]

mod answers;
mod bodies;
mod front;
mod listings;
mod log;
mod objects;
mod refusals;
mod signer;
mod uploads;
