//! The lab: where should encryption run, on this machine? See lab/README.md.

pub mod algorithm;
pub mod cost;
pub mod error;
pub mod kernel_crypto;
pub mod loopback;
pub mod progress;
pub mod stats;
pub mod undo;

pub mod contender;

pub mod programs;

pub mod machine;
pub mod record;

pub mod rounds;

pub mod cipher;
pub mod vectors;

pub mod agreement;

pub mod raw;

pub mod coffer_server;

pub mod observe;

mod content;
mod folder;

pub mod file;

pub mod tls;

pub mod kernel_tls;

pub mod sendfile;

pub mod net;

pub mod server;

pub mod published;
pub mod shares;

pub mod table;

pub mod advice;
pub mod plot;

pub mod report;

pub mod compare;

pub mod kernel;

pub mod args;
