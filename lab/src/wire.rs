//! Connections within this machine, as the experiments over them set them up.

pub mod loopback;

pub mod tls;

pub mod kernel_tls;
