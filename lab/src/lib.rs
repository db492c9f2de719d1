//! The lab: where should encryption run, on this machine? See lab/README.md.

pub mod error;

pub mod contender;

pub mod host;

pub mod record;

pub mod cipher;

pub mod measuring;

pub mod raw;

pub mod file;

pub mod sendfile;

pub mod net;

pub mod server;

pub mod kernel;

pub mod report;

pub mod args;
