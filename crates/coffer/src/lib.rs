//! The program: configuration, wiring, command line. What it wires lives in the crates below.

#![forbid(unsafe_code)]

pub mod pace;

pub mod limits;

pub mod error;

pub mod printable;

pub mod passphrase;

pub mod root_source;

pub mod credentials;

pub mod remote;

pub mod lines;

pub mod commands;

pub mod proxies;

pub mod cli;

pub mod domains;

pub mod config;

pub mod log_queue;

pub mod logging;

pub mod hardening;

pub mod server_names;

pub mod tls_folder;

pub mod authority;

pub mod certificates;

pub mod tls;

pub mod seat;

pub mod slots;

pub mod paced;

pub mod read_ahead;

pub mod quantum;

pub mod gather;

pub mod request_body;

pub mod turnstile;

pub mod shutdown;

pub mod severed;

pub mod seated;

pub mod listener;

pub mod door;

pub mod administration;

pub mod welcome;

pub mod serve;

pub mod verify;

pub mod prove;

pub mod offline;

pub mod renew_authority;

pub mod program;
