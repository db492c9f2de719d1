//! What the bench and the lab both measure with. What is measured, and how it is shown, is theirs.

#![forbid(unsafe_code)]

pub mod error;

pub mod rounds;

pub mod statistics;

pub mod comparison;

pub mod cpu_time;

pub mod process;

pub mod machine;

pub mod loopback;

pub mod tls;
