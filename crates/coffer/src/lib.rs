//! The program: configuration, wiring, command line. What it wires lives in the crates below.

#![forbid(unsafe_code)]

pub mod limits;

pub mod error;

pub mod output;

pub mod secrets;

pub mod log;

pub mod config;

pub mod tls;

pub mod connection;

pub mod data_port;

pub mod gateways;

#[doc(hidden)]
pub mod fuzzing;

pub mod hardening;

pub mod serve;

pub mod prove;

pub mod commands;

pub mod program;
