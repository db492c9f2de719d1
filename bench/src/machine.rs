//! The machine that is measured on: its cores and its disk, and what processes take of it. What is
//! asked of a server is in [`crate::works`].

pub mod pinning;

pub mod procstat;

pub mod disk;

pub mod server_process;
