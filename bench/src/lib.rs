//! Measures coffer against its peers: a load client, the contenders, and the report.

#![forbid(unsafe_code)]

pub mod error;

pub mod args;

pub mod machine;

pub mod report;

pub mod load_client;

pub mod contenders;

pub mod bench;

pub mod works;

pub mod circumstances;
