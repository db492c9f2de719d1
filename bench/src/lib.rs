//! Measures coffer against its peers: a load client, the contenders, and the report.

#![forbid(unsafe_code)]

pub mod error;

pub mod args;
pub mod content;
pub mod pinning;
pub mod procstat;
pub mod sigv4;
pub mod stats;
pub mod tls;

pub mod record;
pub mod response;

pub mod connection;
pub mod load;

pub mod disk;
pub mod process;

pub mod contenders;

pub mod report;

pub mod bench;
pub mod rounds;

pub mod commits;
pub mod sealing;
pub mod transfers;

pub mod custody;
pub mod memory;
pub mod small;

pub mod circumstances;
pub mod table;
