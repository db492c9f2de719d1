//! The listener over real sockets: what clients of all sorts get.

#![allow(clippy::unwrap_used)]

mod server;

mod patience;

mod crowds;

mod ending;
