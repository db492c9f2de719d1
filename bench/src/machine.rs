//! The machine that is measured on: its cores and its disk, and the servers on it. What is
//! asked of a server is in [`crate::works`].

pub mod pinning;

pub mod disk;

pub mod server_process;

pub mod late;

pub mod held;
