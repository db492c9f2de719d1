//! The lab in a virtual machine with Debian's own kernels: what this machine's kernel lacks runs
//! there, and so does the lab's own kernel module.

pub mod accelerator;
mod packages;

mod release;

mod machine;
mod modules;
mod own_module;
mod tree;

mod run;

pub mod configs;

pub use run::{Request, Work, default_cache, measure, run_script};
