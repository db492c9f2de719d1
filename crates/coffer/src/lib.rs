//! The program: configuration, wiring, command line. What it wires lives in the crates below.

#![forbid(unsafe_code)]

pub mod limits;

pub mod cli;

pub mod error;

pub mod config;

pub mod logging;

pub mod hardening;

pub mod certificates;

pub mod tls;

pub mod pace;

pub mod paced;

pub mod read_ahead;

pub mod gather;
